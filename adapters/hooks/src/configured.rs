//! The commands that users configured for agents: their own hooks, status lines. They run below an agent like the
//! commands it asks permission for, but show nothing about what was allowed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use agents::{Agent, Homes};
use jsonc_parser::ast::Value;
use processes::{executed_commands, simple_command};

use crate::{
    facts::{AGENTS, facts},
    file::LARGEST,
    text::{JsonDialect, parse},
};

/// The member of the settings that contains a command line.
const COMMAND: &str = "command";

/// The command lines configured in agents' settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfiguredCommands(Vec<ConfiguredCommand>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ConfiguredCommand {
    line: String,
    /// Whether it is called when the agent asks for permission, and may decide.
    decides: bool,
}

impl ConfiguredCommands {
    /// Reads them from the settings below the agents' homes and in the working directory of an agent. Unreadable
    /// settings count as empty.
    #[must_use]
    pub fn read(homes: &Homes, project: Option<&Path>) -> Self {
        let mut lines = Vec::new();
        for provider in AGENTS.iter().copied() {
            let (Some(hooks), Some(agent)) = (facts(provider), Agent::of(provider)) else { continue };
            let asking = hooks.answers.asking_event;
            let in_project = project
                .map(directories_of_project)
                .into_iter()
                .flatten()
                .flat_map(|directory| agent.home.usual.iter().map(move |home| directory.join(home)));
            for home in homes.of(provider).iter().cloned().chain(in_project) {
                let settings = home.join(hooks.settings_file);
                // Claude Code: settings that are not shared.
                for file in [settings.with_extension("local.json"), settings] {
                    add_json(&file, asking, &mut lines);
                }
                if let Some(config) = hooks.config {
                    add_toml(&home.join(config.file), asking, &mut lines);
                }
                for file in files_of_plugins(&home) {
                    add_json(&file, asking, &mut lines);
                }
            }
        }
        lines.sort_unstable();
        lines.dedup();
        Self(lines)
    }

    /// Whether a process with these NUL-terminated arguments runs one of them.
    #[must_use]
    pub fn are_run_by(&self, arguments: &[u8]) -> bool {
        self.run_by(arguments).next().is_some()
    }

    /// Whether it runs one that may decide a permission request.
    #[must_use]
    pub fn decide_in(&self, arguments: &[u8]) -> bool {
        self.run_by(arguments).any(|command| command.decides)
    }

    /// Whether any of them may decide a permission request.
    #[must_use]
    pub fn may_decide(&self) -> bool {
        self.0.iter().any(|command| command.decides)
    }

    fn run_by<'a>(&'a self, arguments: &'a [u8]) -> impl Iterator<Item = &'a ConfiguredCommand> + 'a {
        let text = String::from_utf8_lossy(arguments).into_owned();
        let executed: Vec<String> = executed_commands(arguments).collect();
        self.0.iter().filter(move |command| {
            text.split('\0').skip(1).any(|word| is_expanded_from(word.trim(), &command.line))
                || simple_command(&command.line)
                    .is_some_and(|line| executed.iter().any(|command| is_expanded_from(command, &line)))
        })
    }
}

/// The directories whose settings apply to a project: the working directory and its ancestors up to the root of its
/// repository.
fn directories_of_project(project: &Path) -> Vec<PathBuf> {
    let root = project.ancestors().find(|directory| directory.join(".git").exists()).unwrap_or(project);
    project.ancestors().take_while(|directory| directory.starts_with(root)).map(Path::to_owned).collect()
}

/// The hook files of plugins: `plugins/cache/MARKETPLACE/PLUGIN/VERSION/hooks/hooks.json` below a home, for Claude Code
/// and Codex.
fn files_of_plugins(home: &Path) -> Vec<PathBuf> {
    let mut directories = vec![home.join("plugins/cache")];
    for _ in 0..3 {
        let below = directories.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten();
        directories = below.flatten().map(|entry| entry.path()).take(MAX_PLUGINS).collect();
    }
    directories.into_iter().map(|directory| directory.join("hooks/hooks.json")).collect()
}

/// Maximum number of plugins read below a home.
const MAX_PLUGINS: usize = 256;

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

/// Whether a command line matches the configured one, with any text for its variables: Gemini CLI expands some itself.
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

/// Minimum length of the text around variables by which a command line is recognised, in bytes.
const LITERAL: usize = 4;

/// The text after the name of a variable.
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
    fn user_configured_hooks_are_recognized_by_command_line() {
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
        assert!(runs(&commands, &["python3", "/home/me/decide.py", "--slow"]), "it took its shell's place");
        assert!(runs(&commands, &["sh", "/work/p/ask.sh", "me", "now"]), "so did a script");
        assert!(!runs(&commands, &["bash", "-lc", "python3 /home/me/decide.py"]), "another command");
        assert!(!runs(&commands, &["python3", "/home/me/decide.py"]), "another command");
        assert!(commands.decide_in(b"python3\0/home/me/decide.py\0--slow\0") && commands.may_decide());
        assert!(commands.decide_in(b"bash\0-lc\0python3 /home/me/decide.py --slow\0"));
        assert!(!commands.decide_in(b"bash\0-lc\0beep; sleep 2\0"), "it is called when a turn ends");
        assert!(!runs(&commands, &["bash", "-c", "sleep 2; my-line"]) && !runs(&commands, &["my-line", "x"]));
        assert!(runs(&commands, &["my-line"]), "it took its shell's place");
        assert!(!runs(&ConfiguredCommands::default(), &["bash", "-c", ""]));
    }

    #[test]
    fn plugin_and_repository_hooks_are_recognized() {
        let dir = tempfile::tempdir().unwrap();
        let (home, project) = (dir.path().join("h/.claude"), dir.path().join("repository/crates/one"));
        let (plugin, above) = (home.join("plugins/cache/market/guard/1.2.0/hooks"), dir.path().join("repository"));
        for dir in [&plugin, &project, &above.join(".git"), &above.join(".codex"), &dir.path().join(".codex")] {
            fs::create_dir_all(dir).unwrap();
        }
        let hook = |command: &str| {
            format!(r#"{{"hooks":{{"PermissionRequest":[{{"hooks":[{{"type":"command","command":"{command}"}}]}}]}}}}"#)
        };
        fs::write(plugin.join("hooks.json"), hook("${CLAUDE_PLUGIN_ROOT}/hooks/guard.sh")).unwrap();
        fs::write(above.join(".codex/hooks.json"), hook("./review.sh")).unwrap();
        fs::write(dir.path().join(".codex/hooks.json"), hook("./outside.sh")).unwrap();
        let homes: Homes = BTreeMap::from([(Provider::Claude, vec![home])]).into_iter().collect();
        let commands = ConfiguredCommands::read(&homes, Some(&project));
        assert!(commands.decide_in(b"/bin/sh\0-c\0${CLAUDE_PLUGIN_ROOT}/hooks/guard.sh\0"));
        assert!(commands.decide_in(b"bash\0/h/.claude/plugins/cache/market/guard/1.2.0/hooks/guard.sh\0"));
        assert!(commands.decide_in(b"bash\0-lc\0./review.sh\0"));
        assert!(!commands.decide_in(b"bash\0-lc\0./outside.sh\0"), "the repository ends below it");
    }
}
