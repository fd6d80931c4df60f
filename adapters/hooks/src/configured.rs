//! The commands that a user configured for agents: hooks of their own, status lines. They run below an agent as the
//! commands do that it asks permission for, and show nothing of what was allowed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use agents::{Agent, Homes};
use jsonc_parser::ast::Value;

use crate::{
    facts::{AGENTS, facts},
    file::LARGEST,
    text::{JsonDialect, parse},
};

/// The member of the settings that holds a command line.
const COMMAND: &str = "command";

/// The command lines configured in agents' settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfiguredCommands(Vec<ConfiguredCommand>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ConfiguredCommand {
    line: String,
    /// It is called when the agent asks for permission, and may decide.
    decides: bool,
}

impl ConfiguredCommands {
    /// Reads them from the settings below the agents' homes and in the directory that an agent works in. What cannot be
    /// read has none.
    #[must_use]
    pub fn read(homes: &Homes, project: Option<&Path>) -> Self {
        let mut lines = Vec::new();
        for provider in AGENTS.iter().copied() {
            let (Some(hooks), Some(agent)) = (facts(provider), Agent::of(provider)) else { continue };
            let asking = hooks.answers.asking_event;
            let in_project =
                project.into_iter().flat_map(|project| agent.home.usual.iter().map(|home| project.join(home)));
            for home in homes.of(provider).iter().cloned().chain(in_project) {
                let settings = home.join(hooks.settings_file);
                // Claude Code: settings that are not shared with others.
                for file in [settings.with_extension("local.json"), settings] {
                    add_json(&file, asking, &mut lines);
                }
                if let Some(config) = hooks.config {
                    add_toml(&home.join(config.file), asking, &mut lines);
                }
            }
        }
        lines.sort_unstable();
        lines.dedup();
        Self(lines)
    }

    /// Whether a process with these arguments, which end with NUL, runs one of them.
    #[must_use]
    pub fn are_run_by(&self, arguments: &[u8]) -> bool {
        self.run_by(arguments).next().is_some()
    }

    /// Whether it runs one that may decide about a request for permission.
    #[must_use]
    pub fn decide_in(&self, arguments: &[u8]) -> bool {
        self.run_by(arguments).any(|command| command.decides)
    }

    fn run_by<'a>(&'a self, arguments: &'a [u8]) -> impl Iterator<Item = &'a ConfiguredCommand> + 'a {
        let text = String::from_utf8_lossy(arguments).into_owned();
        self.0
            .iter()
            .filter(move |command| text.split('\0').skip(1).any(|word| is_expanded_from(word.trim(), &command.line)))
    }
}

fn text_of(file: &PathBuf) -> Option<String> {
    let small = fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.len() <= LARGEST);
    small.then(|| fs::read_to_string(file).ok()).flatten()
}

fn add_json(file: &PathBuf, asking: &str, lines: &mut Vec<ConfiguredCommand>) {
    fn add(value: &Value<'_>, decides: bool, asking: &str, lines: &mut Vec<ConfiguredCommand>) {
        match value {
            Value::Object(object) => {
                for property in &object.properties {
                    match (property.name.as_str(), &property.value) {
                        (COMMAND, Value::StringLit(line)) => {
                            lines.push(ConfiguredCommand { line: line.value.trim().to_owned(), decides });
                        }
                        (name, other) => add(other, decides || name == asking, asking, lines),
                    }
                }
            }
            Value::Array(array) => array.elements.iter().for_each(|value| add(value, decides, asking, lines)),
            Value::StringLit(_) | Value::NumberLit(_) | Value::BooleanLit(_) | Value::NullKeyword(_) => {}
        }
    }
    let Some(text) = text_of(file) else { return };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if let Ok(root) = parse(text, JsonDialect::Commented) {
        add(&Value::Object(root), false, asking, lines);
    }
}

fn add_toml(file: &PathBuf, asking: &str, lines: &mut Vec<ConfiguredCommand>) {
    fn add(value: &toml::Value, decides: bool, asking: &str, lines: &mut Vec<ConfiguredCommand>) {
        match value {
            toml::Value::Table(table) => {
                for (key, value) in table {
                    match (key.as_str(), value) {
                        (COMMAND, toml::Value::String(line)) => {
                            lines.push(ConfiguredCommand { line: line.trim().to_owned(), decides });
                        }
                        (name, other) => add(other, decides || name == asking, asking, lines),
                    }
                }
            }
            toml::Value::Array(array) => array.iter().for_each(|value| add(value, decides, asking, lines)),
            toml::Value::String(_)
            | toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_) => {}
        }
    }
    if let Some(table) = text_of(file).and_then(|text| text.parse().ok()) {
        add(&toml::Value::Table(table), false, asking, lines);
    }
}

/// Whether a command line is what was configured, with any text for its variables: Gemini CLI expands some itself.
fn is_expanded_from(word: &str, configured: &str) -> bool {
    let mut pieces = configured.split('$');
    let first = pieces.next().unwrap_or_default();
    let mut behind: Vec<&str> = pieces.map(after_variable).collect();
    let Some(last) = behind.pop() else { return !word.is_empty() && word == configured };
    if behind.iter().chain([&first, &last]).all(|literal| literal.len() < LITERAL) {
        return false;
    }
    let Some(mut rest) = word.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else { return false };
    behind.into_iter().all(|literal| {
        let found = rest.find(literal).and_then(|at| rest.get(at + literal.len()..));
        rest = found.unwrap_or_default();
        found.is_some()
    })
}

/// Shortest text beside variables by which a command line is recognised, bytes.
const LITERAL: usize = 4;

/// What stands behind the name of a variable.
fn after_variable(piece: &str) -> &str {
    match piece.strip_prefix('{') {
        Some(braced) => braced.split_once('}').map_or("", |(_, behind)| behind),
        None => piece.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_'),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use events::Provider;

    use super::*;

    fn runs(commands: &ConfiguredCommands, words: &[&str]) -> bool {
        commands.are_run_by(words.iter().map(|word| format!("{word}\0")).collect::<String>().as_bytes())
    }

    #[test]
    fn a_users_own_hook_is_known_by_its_command_line() {
        let dir = tempfile::tempdir().unwrap();
        let (home, project) = (dir.path().join("h/.codex"), dir.path().join("p"));
        for dir in [home.clone(), project.join(".claude"), project.join(".gemini")] {
            fs::create_dir_all(dir).unwrap();
        }
        let hook = |command: &str| {
            format!(r#"{{"hooks":{{"PermissionRequest":[{{"hooks":[{{"type":"command","command":"{command}"}}]}}]}}}}"#)
        };
        fs::write(home.join("hooks.json"), hook("python3 /home/me/decide.py --slow ")).unwrap();
        fs::write(home.join("config.toml"), "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ncommand = \"beep; sleep 2\"\n")
            .unwrap();
        let line = "// mine\n{\"statusLine\": {\"type\": \"command\", \"command\": \"my-line\"},}";
        fs::write(project.join(".claude/settings.local.json"), line).unwrap();
        fs::write(project.join(".gemini/settings.json"), hook("$GEMINI_PROJECT_DIR/ask.sh ${USER} now")).unwrap();
        let homes: Homes = BTreeMap::from([(Provider::Codex, vec![home])]).into_iter().collect();
        let commands = ConfiguredCommands::read(&homes, Some(&project));
        assert!(runs(&commands, &["/bin/bash", "-lc", "python3 /home/me/decide.py --slow"]));
        assert!(runs(&commands, &["/bin/bash", "-lc", "beep; sleep 2"]));
        assert!(runs(&commands, &["/bin/sh", "-c", "my-line"]));
        assert!(runs(&commands, &["bash", "-c", "/work/p/ask.sh me now"]));
        assert!(!runs(&commands, &["bash", "-lc", "python3 /home/me/decide.py"]), "another command");
        assert!(commands.decide_in(b"bash\0-lc\0python3 /home/me/decide.py --slow\0"));
        assert!(!commands.decide_in(b"bash\0-lc\0beep; sleep 2\0"), "it is called when a turn ends");
        assert!(!runs(&commands, &["bash", "-c", "sleep 2; my-line"]) && !runs(&commands, &["my-line"]));
        assert!(!runs(&ConfiguredCommands::default(), &["bash", "-c", ""]));
    }
}
