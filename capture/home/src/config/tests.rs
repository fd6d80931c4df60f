use super::*;

fn check(text: &str) -> Result<Config, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, text).unwrap();
    Config::load(&path).map_err(|e| format!("{e:#}"))
}

#[test]
fn an_empty_or_missing_file_means_the_defaults() {
    assert_eq!(check(""), Ok(Config::default()));
    assert_eq!(Config::load(Path::new("/nonexistent/config.toml")).unwrap(), Config::default());
}

#[test]
fn an_unknown_key_is_an_error_that_names_it() {
    let error = check("[status]\nidle_aftr_s = 3\n").unwrap_err();
    assert!(error.contains("idle_aftr_s") && error.contains("config.toml:2:1: "), "{error}");
}

#[test]
fn every_setting_is_listed_with_its_origin() {
    let text = "[status]\nidle_after_s = 60\n";
    let settings = Config::settings(text, Path::new("config.toml")).unwrap();
    let of = |key: &str| settings.iter().find(|setting| setting.key == key).unwrap();
    assert_eq!((&of("status.idle_after_s").value, of("status.idle_after_s").from), (&60.into(), SettingOrigin::File));
    assert_eq!(of("status.lost_after_s").from, SettingOrigin::Default);
    assert_eq!(of("monitor.stuck_ms").value, 600_000);
    assert_eq!(of("roots.codex").value, serde_json::json!([]));
    assert_eq!((&of("notify.group_at").value, of("notify.group_at").from), (&3.into(), SettingOrigin::Default));
    assert_eq!(of("notify.quiet.hours").value, serde_json::json!([]));
}

#[test]
fn the_listed_notification_defaults_match_the_actual_ones() {
    let listed = toml::to_string(&notify_values(&notifier::NotifySettings::default())).unwrap();
    assert_eq!(toml::from_str::<notifier::NotifySettings>(&listed).unwrap(), notifier::NotifySettings::default());
}

#[test]
fn values_out_of_range_are_errors_that_name_them() {
    assert!(check("[read]\nmax_line_mib = 0\n").unwrap_err().contains("read.max_line_mib"));
    for (text, wrong) in [
        ("ignore = [\"rel\"]\n", "ignore: expected an absolute path, got `rel`"),
        ("[roots]\nclaude = [\"rel\"]\n", "roots.claude: expected an absolute path, got `rel`"),
    ] {
        assert!(check(text).unwrap_err().contains(wrong), "{text}");
    }
}

#[test]
fn a_value_of_the_wrong_type_is_reported_with_the_expected_type() {
    for (text, wrong) in [
        (
            "[status]\nidle_after_s = \"abc\"\n",
            "2:16: status.idle_after_s: expected a whole number, 0 or more, got \"abc\"",
        ),
        ("[status]\nidle_after_s = -5\n", "2:16: status.idle_after_s: expected a whole number, 0 or more, got `-5`"),
        ("[read]\nwatch = 3\n", "2:9: read.watch: expected `true` or `false`, got `3`"),
        ("ignore = \"/srv\"\n", "1:10: ignore: expected a list, got \"/srv\""),
        ("ignore = [3]\n", "expected a string, got `3`"),
        ("status = 3\n", "1:10: `status` is a group of settings; set one of them, such as `status.idle_after_s`"),
        (
            "autostart = true\n[[notify.channels]]\nname = \"a\"\ntype = \"slack\"\nnope = 1\n",
            "config.toml:5:1: unknown setting `nope`",
        ),
        ("actions = [3]\n", "expected a table, got `3`"),
        ("autostart = \n", "1:13: `autostart` has no value"),
        ("[status]\nnope = 1\n", "2:1: unknown setting `nope`, expected `idle_after_s` or `lost_after_s`"),
        ("[roots]\nnope = []\n", "2:1: unknown setting `nope`, expected one of `claude`"),
        ("[status]\n[roots]\ncodex = []\nnope = []\n", "4:1: unknown setting `nope`"),
        ("[[notify.channels]]\ntype = \"slack\"\nname = \"a\"\nx = { nope = 1 }\n", "unknown setting `x`"),
        (
            "[[notify.rules]]\nkind = \"status\"\n",
            "2:8: unknown value `status`, expected one of `approval`, `risky_approval`, `approval_backlog`",
        ),
        ("[[notify.channels]]\ntype = \"slack\"\n", "`name` is missing"),
    ] {
        let error = check(text).unwrap_err();
        assert!(error.contains(wrong), "{text}: {error}");
    }
}

#[test]
fn a_table_instead_of_an_array_of_tables_is_reported_with_a_correction() {
    for (text, wrong) in [
        ("autostart = true\n[actions]\nx = 1\n", "config.toml:2:1: write `[[actions]]`, not `[actions]`"),
        ("[notify.channels]\nx = 1\n", "config.toml:1:1: write `[[notify.channels]]`, not `[notify.channels]`"),
    ] {
        let error = check(text).unwrap_err();
        assert!(error.contains(wrong), "{error}");
    }
}

#[test]
fn settings_in_the_file_override_the_defaults() {
    let config =
        check("autostart = false\n[status]\nidle_after_s = 60\n[roots]\nclaude = [\"/srv/claude\"]\n").unwrap();
    assert!(!config.autostart);
    assert_eq!(config.rules().idle_after_ms, 60_000);
    assert_eq!(config.roots.of(Provider::Claude), [PathBuf::from("/srv/claude")]);
}
