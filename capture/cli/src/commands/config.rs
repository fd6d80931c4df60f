//! `capture config`: shows and changes the configuration file.

use std::path::PathBuf;

use anyhow::Context as _;
use client::{Client, failure::Failed};
use home::{
    config::{self, Config, Setting, SettingOrigin, TakesEffect},
    endpoint::read_if_there,
    environment::Environment,
    paths,
};
use serde::Serialize;
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::{context::print_line, editor, output};
use printing::safe;

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: ConfigCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigCommand {
    /// List all settings with their values; `(default)` marks settings that the file does not set.
    Show,
    /// Print one setting, such as `status.idle_after_s`, and `(default)` if the file does not set it.
    Get {
        /// The dotted key, such as `status.idle_after_s`.
        key: String,
    },
    /// Change one setting.
    Set {
        /// The dotted key, such as `status.idle_after_s`.
        key: String,
        /// The value, as in TOML: `60`, `true`, `["/srv"]`. A string needs no quotes.
        ///
        /// A list is replaced as a whole, including a list of tables: `notify.rules '[{ kind = "idle", loudness =
        /// "normal" }]'`. For several entries, `capture config edit` is easier.
        value: String,
    },
    /// Remove one setting from the file, so that its default applies.
    Unset {
        /// The dotted key, such as `status.idle_after_s`.
        key: String,
    },
    /// Edit the configuration file in your editor, and check it before saving.
    Edit,
    /// Check the configuration file.
    Check,
    /// Print the path of the configuration file.
    Path,
}

/// The action named when an agent is refused.
const CHANGE: &str = "changing the configuration";

/// All settings, for `--json`.
#[derive(Serialize)]
struct SettingsOutput {
    file: PathBuf,
    settings: Vec<Setting>,
}

/// Runs the command. It also works on an invalid file, so that the user can repair it.
pub(super) fn run(data: Option<&std::path::Path>, json: bool, arguments: &Arguments) -> anyhow::Result<()> {
    let file = paths::config_file()?;
    match &arguments.verb {
        ConfigCommand::Path => print_line(&safe(&file.display().to_string())),
        ConfigCommand::Check => {
            Config::load(&file)?;
            print_line(&format!("{} is valid", safe(&file.display().to_string())))
        }
        ConfigCommand::Show => {
            let settings = Config::settings(&read_if_there(&file)?.unwrap_or_default(), &file)?;
            if json {
                return output::print_json(&SettingsOutput { file, settings });
            }
            show(&settings)
        }
        ConfigCommand::Get { key } => {
            let settings = Config::settings(&read_if_there(&file)?.unwrap_or_default(), &file)?;
            let below: Vec<Setting> = settings.into_iter().filter(|setting| setting.is_in(key)).collect();
            match below.as_slice() {
                [] if Config::has_no_default(key) => {
                    let key = safe(key);
                    let unset =
                        format!("`{key}` is not set and has no default; `capture config set {key} VALUE` sets it");
                    Err(Failed::NotFound(unset).into())
                }
                [] => {
                    let unknown = format!("no setting `{}`; `capture config show` lists them", safe(key));
                    Err(Failed::NotFound(unknown).into())
                }
                [only] if only.key == *key && json => output::print_json(only),
                [only] if only.key == *key => {
                    let from = if only.from == SettingOrigin::Default { " (default)" } else { "" };
                    print_line(&format!("{}{from}", safe(&value_text(&only.value))))
                }
                several if json => output::print_json(&SettingsOutput { file, settings: several.to_vec() }),
                several => show(several),
            }
        }
        ConfigCommand::Set { key, value } => change(data, &file, ("set", key), |document| set(document, key, value)),
        ConfigCommand::Unset { key } => change(data, &file, ("unset", key), |document| unset(document, key)),
        ConfigCommand::Edit => edit(data, &file),
    }
}

fn show(settings: &[Setting]) -> anyhow::Result<()> {
    let width = settings.iter().map(|setting| setting.key.len()).max().unwrap_or_default();
    for setting in settings {
        let from = if setting.from == SettingOrigin::Default { "  (default)" } else { "" };
        print_line(&format!("{:width$}  {}{from}", safe(&setting.key), safe(&value_text(&setting.value))))?;
    }
    Ok(())
}

/// The value as users write it in the file.
pub(super) fn value_text(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Changes the file if the result is valid. The verb and the key identify the change in errors.
fn change(
    data: Option<&std::path::Path>,
    file: &std::path::Path,
    (verb, key): (&str, &str),
    with: impl FnOnce(&mut DocumentMut) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (file, before) = editor::in_force(file, CHANGE)?;
    let before = before.unwrap_or_default();
    let mut document: DocumentMut = before.parse().with_context(|| format!("{} is not valid TOML", file.display()))?;
    with(&mut document)?;
    let after = document.to_string();
    if let Err(error) = Config::parse(&after, &file) {
        // If the file was valid before, the change is at fault. Omit the position, because the text it refers to is not
        // saved.
        Config::parse(&before, &file)?;
        let why = unplaced(&error, &file, key);
        return Err(Failed::Other(format!("cannot {verb} `{}`: {}", safe(key), safe(&why))).into());
    }
    replace(data, &file, &before, &after)
}

/// The error in a setting, without the file name, the position and the key.
fn unplaced(error: &anyhow::Error, file: &std::path::Path, key: &str) -> String {
    // The last cause is a failed check, or the parser's message after `FILE:LINE:COLUMN: `.
    let cause = error.root_cause().to_string();
    let place = format!("{}:", file.display());
    let message = cause.strip_prefix(&place).and_then(|rest| rest.split_once(": ")).map(|(_, message)| message);
    let message = message.unwrap_or(&cause);
    let of_key = message.strip_prefix(key);
    of_key.and_then(|rest| rest.strip_prefix(": ").or_else(|| rest.strip_prefix(" = "))).unwrap_or(message).to_owned()
}

fn edit(data: Option<&std::path::Path>, file: &std::path::Path) -> anyhow::Result<()> {
    let (file, before) = editor::in_force(file, CHANGE)?;
    let before = before.unwrap_or_default();
    let after = editor::edited(&file, &before, |text| Config::parse(text, &file).map(drop))?;
    replace(data, &file, &before, &after)
}

fn replace(data: Option<&std::path::Path>, file: &std::path::Path, before: &str, after: &str) -> anyhow::Result<()> {
    if before == after {
        return print_line(&format!("{} is unchanged", safe(&file.display().to_string())));
    }
    editor::put_in_force(editor::copy_of(file, after)?, file)?;
    print_line(&format!("saved {}", safe(&file.display().to_string())))?;
    let data = paths::data_dir(data)?;
    // Only the hint depends on whether a server is running.
    if Client::running(&data, client::Connection::Unix).is_ok_and(|client| client.is_some()) {
        let changed = config::changed(&Config::settings(before, file)?, &Config::settings(after, file)?);
        for hint in hints(&changed, &data, file) {
            printing::print_error_line(&format!("capture: {hint}"));
        }
    }
    Ok(())
}

/// Describes how a running server applies a change.
fn hints(changed: &[Setting], data: &std::path::Path, file: &std::path::Path) -> Vec<String> {
    let of_server = Environment::recorded(data).ok().flatten().and_then(|recorded| recorded.config_dir().ok());
    let of_server = of_server.map(|dir| dir.join("config.toml"));
    if let Some(other) = of_server.map(|path| path.canonicalize().unwrap_or(path)).filter(|path| path != file) {
        return vec![format!("the running server reads another file: {}", safe(&other.display().to_string()))];
    }
    let keys = |when: TakesEffect| {
        let keys: Vec<&str> =
            changed.iter().filter(|s| config::takes_effect(s) == when).map(|s| s.key.as_str()).collect();
        (!keys.is_empty()).then(|| safe(&keys.join(", ")))
    };
    let live = keys(TakesEffect::Soon)
        .map(|keys| format!("the running server applies {keys} within {} s", config::LOOK_EVERY.as_secs() + 1));
    let restart = keys(TakesEffect::AfterRestart).map(|keys| {
        format!("the running server still uses the old {keys}; `capture serve --restart` applies the change")
    });
    live.into_iter().chain(restart).collect()
}

fn set(document: &mut DocumentMut, key: &str, text: &str) -> anyhow::Result<()> {
    let (tables, name) = split(key)?;
    if let Some(above) = setting_above(key) {
        let why = if above.value.is_array() {
            "a list; set the whole list, or change a part with `capture config edit`"
        } else {
            "one setting, not a group of settings"
        };
        return Err(Failed::Usage(format!("cannot set `{}`: `{}` is {why}", safe(key), above.key)).into());
    }
    let value = text.parse::<Value>().unwrap_or_else(|_| Value::from(text));
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in tables {
        let below = table.entry(part).or_insert_with(|| Item::Table(Table::new()));
        let not_table = || Failed::Other(format!("cannot set `{}`: `{}` is not a table", safe(key), safe(part)));
        table = below.as_table_like_mut().ok_or_else(not_table)?;
    }
    match table.get_mut(name) {
        // Preserve the comment next to it.
        Some(Item::Value(old)) => {
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        }
        _ => {
            table.insert(name, Item::Value(value));
        }
    }
    Ok(())
}

/// The existing setting that a key descends into as if it were a table.
fn setting_above(key: &str) -> Option<Setting> {
    let settings = Config::settings("", std::path::Path::new("")).ok()?;
    settings.into_iter().find(|setting| key.strip_prefix(&setting.key).is_some_and(|rest| rest.starts_with('.')))
}

fn unset(document: &mut DocumentMut, key: &str) -> anyhow::Result<()> {
    let (tables, name) = split(key)?;
    let absent = || Failed::NotFound(format!("`{}` is not set in the configuration file", safe(key)));
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in tables {
        table = table.get_mut(part).and_then(Item::as_table_like_mut).ok_or_else(absent)?;
    }
    table.remove(name).ok_or_else(absent)?;
    Ok(())
}

/// The tables of a key, and its name in the innermost table.
fn split(key: &str) -> anyhow::Result<(Vec<&str>, &str)> {
    let mut parts: Vec<&str> = key.split('.').collect();
    let name = parts.pop().unwrap_or_default();
    if name.is_empty() || parts.iter().any(|part| part.is_empty()) {
        return Err(Failed::Usage(format!("expected a key such as `status.idle_after_s`, got `{}`", safe(key))).into());
    }
    Ok((parts, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, with: impl FnOnce(&mut DocumentMut) -> anyhow::Result<()>) -> String {
        let mut document: DocumentMut = text.parse().unwrap();
        with(&mut document).unwrap();
        document.to_string()
    }

    #[test]
    fn a_change_keeps_the_rest_of_the_file() {
        let text = "# mine\nautostart = true # why not\n\n[status]\nidle_after_s = 60\n";
        assert_eq!(
            changed(text, |d| set(d, "autostart", "false")),
            "# mine\nautostart = false # why not\n\n[status]\nidle_after_s = 60\n"
        );
        assert_eq!(
            changed(text, |d| unset(d, "status.idle_after_s")),
            "# mine\nautostart = true # why not\n\n[status]\n"
        );
    }

    #[test]
    fn setting_a_key_creates_its_table_and_quotes_plain_text() {
        assert_eq!(changed("", |d| set(d, "read.watch", "false")), "[read]\nwatch = false\n");
        assert_eq!(changed("", |d| set(d, "name", "plain text")), "name = \"plain text\"\n");
        assert_eq!(changed("", |d| set(d, "ignore", r#"["/srv"]"#)), "ignore = [\"/srv\"]\n");
    }

    #[test]
    fn lists_of_tables_and_inline_tables_are_set() {
        let rule = r#"[{ kind = "idle", loudness = "off" }]"#;
        let text = "[[notify.rules]]\nkind = \"stuck\"\n";
        assert_eq!(changed(text, |d| set(d, "notify.rules", rule)), format!("[notify]\nrules = {rule}\n"));
        let text = "status = { idle_after_s = 60 }\n";
        assert_eq!(changed(text, |d| set(d, "status.idle_after_s", "30")), "status = { idle_after_s = 30 }\n");
        assert_eq!(changed(text, |d| unset(d, "status.idle_after_s")), "status = {}\n");
    }

    #[test]
    fn setting_or_removing_an_invalid_key_is_refused() {
        let mut document: DocumentMut = "autostart = true\n".parse().unwrap();
        assert!(unset(&mut document, "status.idle_after_s").is_err());
        let why = |key: &str| set(&mut "".parse().unwrap(), key, "1").unwrap_err().to_string();
        assert!(why("autostart.x").contains("`autostart` is one setting, not a group"), "{}", why("autostart.x"));
        assert!(why("notify.rules.kind").contains("`notify.rules` is a list; set the whole list"));
        assert!(set(&mut document, "status.", "1").is_err());
    }
}
