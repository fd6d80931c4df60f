use std::path::Path;

use super::*;
use crate::config::Config;

fn settings(text: &str) -> Vec<Setting> {
    Config::settings(text, Path::new("config.toml")).unwrap()
}

#[test]
fn each_changed_setting_reports_when_it_takes_effect() {
    // The server decides at start what to remove before storing.
    let secrets = changed(&settings(""), &settings("[store]\nredacted_only = true\n"));
    assert_eq!(secrets.iter().map(takes_effect).collect::<Vec<_>>(), [TakesEffect::AfterRestart]);
    let before = settings("ignore = [\"/a\"]\n[monitor]\nstuck_ms = 5\n");
    let after = settings(
        "ignore = [\"/b\"]\npager = false\n[monitor]\nstuck_ms = 6\n[[notify.channels]]\ntype = \"desktop\"\nname = \"screen\"\n",
    );
    let changed = changed(&before, &after);
    let keys = |when| -> Vec<&str> {
        changed.iter().filter(|setting| takes_effect(setting) == when).map(|setting| setting.key.as_str()).collect()
    };
    assert_eq!(keys(TakesEffect::Soon), ["monitor.stuck_ms", "notify.channels"]);
    assert_eq!(keys(TakesEffect::AfterRestart), ["ignore"]);
    assert_eq!(keys(TakesEffect::NextCommand), ["pager"]);
    assert!(super::changed(&before, &before).is_empty());
    let gone = super::changed(&after, &before);
    assert!(gone.iter().any(|setting| setting.key == "notify.channels"), "{gone:?}");
}
