//! What commands print for programs: JSON, or a template of the user's filled with it.

use std::sync::OnceLock;

use clap::{Arg, ArgMatches, Command};
use minijinja::{Environment, UndefinedBehavior, value::Serde};
use serde_json::Value;

use super::{Failed, print_line};
use crate::terminal;

/// Version of the shapes `--json` prints.
pub const SCHEMA_VERSION: u32 = 1;

/// The template of `--format` or `--quiet`, when one was given.
static TEMPLATE: OnceLock<Environment<'static>> = OnceLock::new();

/// The name of the template in messages.
const NAME: &str = "--format";

/// The id of the option; its name on the command line is `--format`.
const OPTION: &str = "template";

/// The command line with `--format` in each command, but for those that have an option of that name.
pub(super) fn with_template(command: Command) -> Command {
    command.mut_subcommands(|command| {
        let command = with_template(command);
        if command.get_arguments().any(|argument| argument.get_long() == Some("format")) {
            return command;
        }
        command.arg(
            Arg::new(OPTION)
                .long("format")
                .value_name("TEMPLATE")
                .help("Print this template for each row, with the fields of --json: '{{ id }} {{ status.state }}'")
                .conflicts_with("json"),
        )
    })
}

/// The template that was given to the command.
pub(super) fn template_of(matches: &ArgMatches) -> Option<String> {
    let (_, below) = matches.subcommand()?;
    template_of(below).or_else(|| below.try_get_one::<String>(OPTION).ok().flatten().cloned())
}

/// Prints values with this template from now on.
///
/// # Errors
/// When the template is not valid.
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

/// Prints a value: as JSON with the schema's version, or by the template, a line for each element of a list.
pub(super) fn print_json<T: serde::Serialize>(value: &T) -> anyhow::Result<()> {
    #[derive(serde::Serialize)]
    struct Versioned<'a, T> {
        schema_version: u32,
        #[serde(flatten)]
        value: &'a T,
    }
    let Some(environment) = TEMPLATE.get() else {
        let versioned = Versioned { schema_version: SCHEMA_VERSION, value };
        return print_line(&terminal::safe_json(&serde_json::to_string(&versioned)?));
    };
    for line in filled(environment, serde_json::to_value(value)?)? {
        print_line(&line)?;
    }
    Ok(())
}

fn filled(environment: &Environment<'_>, value: Value) -> anyhow::Result<Vec<String>> {
    let template = environment.get_template(NAME)?;
    let rows = rows_of(value);
    rows.iter().map(|row| template.render(minijinja::Value::from(Serde(row))).map_err(|error| usage(&error))).collect()
}

/// The elements of a page of a list, or the value itself.
fn rows_of(value: Value) -> Vec<Value> {
    let Value::Object(mut fields) = value else { return vec![value] };
    if fields.contains_key("next_cursor")
        && let Some(name) = fields.iter().find(|(_, field)| field.is_array()).map(|(name, _)| name.clone())
        && let Some(Value::Array(rows)) = fields.remove(&name)
    {
        // An approval stands in a field beside what is known of it.
        return rows;
    }
    vec![Value::Object(fields)]
}

fn usage(error: &minijinja::Error) -> anyhow::Error {
    let detail = error.detail().unwrap_or("a name in it is unknown, or not a field of what is printed");
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
    fn a_page_gives_a_line_for_each_element() {
        let page = json!({"as_of": 3, "sessions": [{"id": "A", "n": 1}, {"id": "B", "n": 2}], "next_cursor": null});
        assert_eq!(filled(&environment("{{ id }}={{ n }}"), page).unwrap(), ["A=1", "B=2"]);
    }

    #[test]
    fn one_value_gives_one_line() {
        let session = json!({"id": "A", "labels": ["x"], "status": {"state": "idle"}});
        assert_eq!(filled(&environment("{{ id }} {{ status.state }}"), session).unwrap(), ["A idle"]);
    }

    #[test]
    fn an_unknown_field_is_an_error_that_tells_where_to_look() {
        let error = filled(&environment("{{ nope }}"), json!({"id": "A"})).unwrap_err();
        assert!(error.to_string().contains("--json shows the fields"), "{error}");
    }
}
