//! No crate branches on an agent's name: the differences between agents are facts in `adapters/agents`. Agents may be
//! named only there, where an agent's module is selected, and in that module.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use events::Provider;

/// The files that may name an agent, not counting tests. Files below a folder with the agent's name are always allowed.
const NAMED_IN: &[&str] = &[
    // The facts, and the mapping from values to agents.
    "adapters/agents/src/agent.rs",
    // One module per agent.
    "adapters/hooks/src/delivery/decode.rs",
    "adapters/protocols/src/codex_daemon/session.rs",
    "adapters/protocols/src/telemetry/event.rs",
    "adapters/terminal/src/screen/rules.rs",
    "adapters/transcripts/src/providers.rs",
    // The name of an instructions file that is read by default.
    "runtime/settings/src/lib.rs",
];

/// The agents: all providers except our own and the unknown one.
fn agents() -> impl Iterator<Item = Provider> {
    Provider::ALL.iter().copied().filter(|provider| agents::Agent::of(*provider).is_some())
}

/// Fails unless the recordings `names`, as `agent/scenario`, are of every agent whose files capture reads.
#[track_caller]
pub(crate) fn assert_rows_of_read_agents(names: &[&str]) {
    let named: BTreeSet<&str> = names.iter().filter_map(|name| Some(name.split_once('/')?.0)).collect();
    let read = agents().filter(|provider| agents::Agent::of(*provider).is_some_and(agents::Agent::is_read));
    let missing: Vec<Provider> = read.filter(|provider| !named.contains(provider.as_str())).collect();
    assert!(missing.is_empty(), "no row for {missing:?}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// The shipped sources, relative to the root.
fn sources() -> Vec<PathBuf> {
    let root = root();
    let mut open = vec![root.clone()];
    let mut files = Vec::new();
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let skipped = matches!(name.as_str(), "target" | "tests" | "benches" | "fixtures") || name.starts_with('.');
            if path.is_dir() && !skipped {
                open.push(path);
            } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
                files.push(path.strip_prefix(&root).unwrap().to_owned());
            }
        }
    }
    files
}

/// The text without comments and without the test module at its end.
fn shipped(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Whether a text names an agent: a variant of `Provider`, or its value in `adapters/agents`.
fn names_one(text: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let holds = |word: &str| {
        text.match_indices(word)
            .any(|(at, _)| !text[..at].ends_with(is_name) && !text[at + word.len()..].starts_with(is_name))
    };
    agents().any(|agent| holds(&format!("Provider::{agent:?}")) || holds(&format!("{agent:?}").to_uppercase()))
}

/// Whether a file belongs to one agent: the file or a folder above it has the agent's name.
fn is_own(file: &Path) -> bool {
    file.with_extension("").iter().any(|part| agents().any(|agent| part == agent.as_str()))
}

#[test]
fn only_declared_files_name_an_agent() {
    let naming: BTreeSet<String> = sources()
        .into_iter()
        .filter(|file| !is_own(file) && names_one(&shipped(&fs::read_to_string(root().join(file)).unwrap())))
        .map(|file| file.to_str().unwrap().to_owned())
        .collect();
    let declared: BTreeSet<String> = NAMED_IN.iter().map(|file| (*file).to_owned()).collect();
    let undeclared: Vec<_> = naming.difference(&declared).collect();
    let gone: Vec<_> = declared.difference(&naming).collect();
    assert!(
        undeclared.is_empty(),
        "these files name an agent; state a fact in adapters/agents instead, and ask for it: {undeclared:?}"
    );
    assert!(gone.is_empty(), "these files are declared and name no agent: {gone:?}");
}

#[test]
fn the_search_for_agent_names_matches_whole_names_only() {
    assert!(names_one("match provider { Provider::Pi => 1 }") && names_one("use agents::agent::{ALL, PI};"));
    assert!(!names_one("Provider::Pipe; CLAUDECODE; PI_HOME"));
    assert!(!names_one(&shipped("x(); // Provider::Pi\n#[cfg(test)]\nmod tests {\n Provider::Pi }")));
    assert!(is_own(Path::new("adapters/agents/src/pi.rs")) && !is_own(Path::new("adapters/pipes.rs")));
}
