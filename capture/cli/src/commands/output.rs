//! Output for programs: JSON, or a user's template filled with it.

use std::sync::{Arc, OnceLock};

use clap::{Arg, ArgMatches, Command};
use client::failure::Failed;
use minijinja::{
    Environment, UndefinedBehavior,
    value::{Enumerator, Object, Serde},
};
use serde_json::{Map, Value};

use super::context::print_line;

/// Schema version of the `--json` output.
pub const SCHEMA_VERSION: u32 = 1;

/// The template of `--format` or `--quiet`, if one was given.
static TEMPLATE: OnceLock<Environment<'static>> = OnceLock::new();

/// The name of the template in messages.
const NAME: &str = "--format";

/// The id of the option; its name on the command line is `--format`.
const OPTION: &str = "template";

/// The id of the option `--quiet`.
const QUIET: &str = "quiet";

/// The commands whose help shows `--format`, each with an example. If it has an id, the help shows `--quiet` too. Other
/// commands accept both.
const EXAMPLES: &[(&str, &str)] = &[
    ("ps", "{{ id }} {{ status.state }} {{ title }}"),
    ("show", "{{ session.id }} {{ session.status.state }}"),
    ("wait", "{{ id }} {{ status.state }}"),
    ("events", "{{ sequence }} {{ kind }}"),
    ("search", "{{ id }} {{ session_id }} {{ kind }}"),
    ("label", "{{ id }} {{ labels }}"),
    ("statusline", "{{ need_you }} {{ waiting }} {{ running }}"),
    ("runs", "{{ id }} {{ state }}"),
    ("queue", "{{ id }} {{ state }}"),
    ("approvals", "{{ id }} {{ state }} {{ provider }}"),
    ("approve", "{{ id }} {{ state }}"),
    ("deny", "{{ id }} {{ state }}"),
    ("findings", "{{ id }} {{ kind }} {{ severity }}"),
];

/// Adds `--format` to each command, except those that have an option of that name. The help shows `--quiet`, which is
/// otherwise hidden, for the commands that print ids.
pub(super) fn with_template(command: Command) -> Command {
    let quiet = command.get_arguments().find(|argument| argument.get_id() == QUIET).cloned();
    command.mut_subcommands(|command| {
        let example = EXAMPLES.iter().find(|(name, _)| *name == command.get_name()).map(|(_, example)| *example);
        let shown = quiet.clone().filter(|_| example.is_some_and(|example| example.contains("{{ id }}")));
        with_option(command, example).args(shown.map(|quiet| quiet.hide(false)))
    })
}

/// Adds `--format` to the command and its subcommands. The help shows the option with this example, or hides it if
/// there is none.
fn with_option(command: Command, example: Option<&str>) -> Command {
    let command = command.mut_subcommands(|command| with_option(command, None));
    if command.get_arguments().any(|argument| argument.get_long() == Some("format")) {
        return command;
    }
    let help =
        format!("Print each row with this template, such as '{}'; --json shows the fields", example.unwrap_or(""));
    let option = Arg::new(OPTION).long("format").value_name("TEMPLATE").help(help).conflicts_with("json");
    command.arg(option.hide(example.is_none()))
}

/// The template given on the command line.
pub(super) fn template_of(matches: &ArgMatches) -> Option<String> {
    let (_, below) = matches.subcommand()?;
    template_of(below).or_else(|| below.try_get_one::<String>(OPTION).ok().flatten().cloned())
}

/// Prints all further values with this template.
///
/// # Errors
/// If the template is not valid.
pub(super) fn use_template(template: String) -> anyhow::Result<()> {
    let mut environment = Environment::new();
    // A misspelled field is an error, not an empty column.
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.add_template_owned(NAME, template).map_err(|error| usage(&error))?;
    TEMPLATE.set(environment).ok();
    Ok(())
}

/// Whether values are printed with a template.
pub(super) fn has_template() -> bool {
    TEMPLATE.get().is_some()
}

/// Prints a value: as JSON with the schema version, or by the template, with one line per element of a list.
pub(super) fn print_json<T: serde::Serialize>(value: &T) -> anyhow::Result<()> {
    #[derive(serde::Serialize)]
    struct Versioned<'a, T> {
        schema_version: u32,
        #[serde(flatten)]
        value: &'a T,
    }
    let Some(environment) = TEMPLATE.get() else {
        let versioned = Versioned { schema_version: SCHEMA_VERSION, value };
        return print_line(&printing::safe_json(&serde_json::to_string(&versioned)?));
    };
    for line in filled(environment, serde_json::to_value(value)?)? {
        print_line(&line)?;
    }
    Ok(())
}

fn filled(environment: &Environment<'_>, value: Value) -> anyhow::Result<Vec<String>> {
    let template = environment.get_template(NAME)?;
    let rows = rows_of(value);
    let fill = |row: Value| {
        let Value::Object(fields) = row else {
            return template.render(minijinja::Value::from(Serde(row))).map_err(|error| usage(&error));
        };
        let row = Arc::new(Row(fields));
        let filled = template.render(minijinja::Value::from_dyn_object(Arc::clone(&row)));
        filled.map_err(|error| match unknown_field(template.source(), &row.0) {
            Some(name) if error.kind() == minijinja::ErrorKind::UndefinedError => {
                let line = error.line().map(|line| format!(" (line {line})")).unwrap_or_default();
                let name = printing::safe(&name);
                Failed::Usage(format!(
                    "--format: the template uses `{name}`, which is not a field here{line}; --json shows the fields"
                ))
                .into()
            }
            Some(_) | None => usage(&error),
        })
    };
    rows.into_iter().map(fill).collect()
}

/// A row as a template sees it. Only the fields a template uses are converted.
#[derive(Debug)]
struct Row(Map<String, Value>);

impl Object for Row {
    fn get_value(self: &Arc<Self>, name: &minijinja::Value) -> Option<minijinja::Value> {
        self.0.get(name.as_str()?).map(|field| minijinja::Value::from(Serde(field)))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.keys().map(minijinja::Value::from).collect())
    }
}

/// The first `{{ name }}` of a template that is not a field of the row.
fn unknown_field(template: &str, row: &Map<String, Value>) -> Option<String> {
    let in_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let names = template.split("{{").skip(1).map(|rest| {
        let rest = rest.trim_start_matches('-').trim_start();
        rest.split(|c| !in_path(c)).next().unwrap_or_default()
    });
    let is_field = |name: &str| {
        let mut parts = name.split('.');
        let field = parts.next().and_then(|part| row.get(part));
        field.and_then(|field| parts.try_fold(field, |value, part| value.get(part))).is_some()
    };
    let starts = |name: &&str| name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    names.filter(starts).find(|name| !is_field(name)).map(str::to_owned)
}

/// The elements of a page of a list, or the value itself.
fn rows_of(value: Value) -> Vec<Value> {
    let Value::Object(mut fields) = value else { return vec![value] };
    if fields.contains_key("next_cursor")
        && let Some(name) = fields.iter().find(|(_, field)| field.is_array()).map(|(name, _)| name.clone())
        && let Some(Value::Array(rows)) = fields.remove(&name)
    {
        // The elements of an approval list contain the approval in one field, next to what else is known about it.
        return rows;
    }
    vec![Value::Object(fields)]
}

fn usage(error: &minijinja::Error) -> anyhow::Error {
    let detail = error.detail().unwrap_or("a name in the template is unknown or is not a field of the output");
    let line = error.line().map(|line| format!(" (line {line})")).unwrap_or_default();
    Failed::Usage(format!("--format: {}: {detail}{line}; --json shows the fields", error.kind())).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn environment(template: &str) -> Environment<'_> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        environment.add_template(NAME, template).unwrap();
        environment
    }

    #[test]
    fn help_shows_format_and_quiet_only_where_they_apply() {
        let mut command = crate::commands::arguments::command_line();
        command.build();
        let mut help = |name: &str| command.find_subcommand_mut(name).unwrap().render_long_help().to_string();
        for (name, example) in EXAMPLES {
            let text = help(name);
            assert!(text.contains(example), "{name}: {text}");
            assert_eq!(text.contains("--quiet"), example.contains("{{ id }}"), "{name}: {text}");
        }
        for name in ["run", "send", "serve", "doctor", "policy", "init"] {
            let text = help(name);
            assert!(!text.contains("--format") && !text.contains("--quiet"), "{name}: {text}");
        }
        for line in [["capture", "doctor", "-q"], ["capture", "-q", "ps"], ["capture", "ps", "-q"]] {
            let matches = command.clone().try_get_matches_from(line).unwrap();
            assert!(matches.get_flag(QUIET), "{line:?}");
        }
    }

    #[test]
    fn a_template_prints_one_line_per_element_of_a_page() {
        let page = json!({"as_of": 3, "sessions": [{"id": "A", "n": 1}, {"id": "B", "n": 2}], "next_cursor": null});
        assert_eq!(filled(&environment("{{ id }}={{ n }}"), page).unwrap(), ["A=1", "B=2"]);
    }

    #[test]
    fn a_template_prints_one_line_for_a_single_value() {
        let session = json!({"id": "A", "labels": ["x"], "status": {"state": "idle"}});
        assert_eq!(filled(&environment("{{ id }} {{ status.state }}"), session).unwrap(), ["A idle"]);
    }

    #[test]
    fn an_unknown_template_field_is_named_with_a_hint_to_json() {
        let error = filled(&environment("{{ nope }}"), json!({"id": "A"})).unwrap_err();
        let wanted = "--format: the template uses `nope`, which is not a field here (line 1); --json shows the fields";
        assert_eq!(error.to_string(), wanted);
        let nested =
            filled(&environment("{{ id }} {{ status.nope.x }}"), json!({"id": "A", "status": {}})).unwrap_err();
        assert!(nested.to_string().contains("`status.nope.x`"), "{nested}");
    }
}
