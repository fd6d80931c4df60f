//! Creates the rewritten form of a git command.

use super::contents::Operands;
use crate::shell::ShellWord;

/// Variables that name programs, directories, files to write, or another configuration.
const UNSET: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ASKPASS",
    "GIT_ATTR_GLOBAL",
    "GIT_ATTR_SOURCE",
    "GIT_ATTR_SYSTEM",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_SYSTEM",
    "GIT_DIFF_OPTS",
    "GIT_DIR",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PAGER",
    "GIT_PAGER_IN_USE",
    "GIT_PREFIX",
    "GIT_PROXY_COMMAND",
    "GIT_REPLACE_REF_BASE",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SHALLOW_FILE",
    "GIT_SHELL_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
    "GIT_TEST_FSMONITOR",
    "GIT_TRACE",
    "GIT_TRACE2",
    "GIT_TRACE2_EVENT",
    "GIT_TRACE2_PERF",
    "GIT_TRACE_CURL",
    "GIT_TRACE_FSMONITOR",
    "GIT_TRACE_PACKET",
    "GIT_TRACE_PACKFILE",
    "GIT_TRACE_PACK_ACCESS",
    "GIT_TRACE_PERFORMANCE",
    "GIT_TRACE_REFS",
    "GIT_TRACE_SETUP",
    "GIT_TRACE_SHALLOW",
    "GIT_WORK_TREE",
    "EDITOR",
    "LESS",
    "LESSCLOSE",
    "LESSOPEN",
    "LV",
    "PAGER",
    "SSH_ASKPASS",
    "VISUAL",
];

/// Settings that override every configuration.
const SETTINGS: &[&str] = &[
    "core.fsmonitor=",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=keep",
    "safe.bareRepository=explicit",
    "diff.ignoreSubmodules=dirty",
    "diff.submodule=short",
    "diff.external=",
    "diff.autoRefreshIndex=false",
    "status.submoduleSummary=false",
    "submodule.recurse=false",
    "log.showSignature=false",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=false",
    "protocol.allow=never",
    "format.pretty=medium",
    "column.ui=never",
    "help.autoCorrect=never",
];

/// The rewritten form of a command.
#[derive(Debug)]
pub(super) struct SafeCommand<'a> {
    /// The directory of `-C`.
    dir: Option<&'a str>,
    /// Whether the user's own configuration is excluded, because its `insteadOf` would put tokens into addresses.
    pub(super) own_configuration_only: bool,
    /// Options, their values and texts, in order.
    words: Vec<String>,
    /// The words after them: commits, `--`, paths.
    behind: Vec<String>,
}

impl<'a> SafeCommand<'a> {
    /// Creates the rewritten form of a command that runs in `dir`, with these words besides its operands.
    pub(super) const fn new(dir: Option<&'a str>, words: Vec<String>) -> Self {
        Self { dir, own_configuration_only: false, words, behind: Vec::new() }
    }

    /// Copies the operands as written.
    pub(super) fn add_words(&mut self, rest: &[ShellWord]) {
        self.words = rest.iter().map(|word| word.text.clone()).collect();
    }

    /// Adds operands so that none can be confused with another kind: commits, then a `--`, then paths.
    pub(super) fn add_operands(&mut self, name: &str, operands: Operands) {
        self.behind = operands.commits;
        // Excluding paths would exclude commits too.
        if name == "log" && operands.paths.is_empty() && !operands.left_out.is_empty() {
            self.words.extend(["--full-history", "--sparse"].map(str::to_owned));
        }
        let paths: Vec<String> = operands.paths.into_iter().chain(operands.left_out).collect();
        if name != "cat-file" {
            self.behind.push("--".into());
        }
        self.behind.extend(paths);
    }

    /// The words of the rewritten form.
    pub(super) fn render(self, name: &str, insert: &[String]) -> Vec<String> {
        let mut words = vec!["env"];
        for variable in UNSET.iter().filter(|name| !(self.own_configuration_only && **name == "GIT_CONFIG_GLOBAL")) {
            words.extend(["-u", variable]);
        }
        words.extend(["GIT_CONFIG_NOSYSTEM=1", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0"]);
        words.extend([
            "GIT_NO_REPLACE_OBJECTS=1",
            "GIT_LITERAL_PATHSPECS=0",
            "GIT_GLOB_PATHSPECS=0",
            "GIT_NOGLOB_PATHSPECS=0",
        ]);
        if self.own_configuration_only {
            words.push("GIT_CONFIG_GLOBAL=/dev/null");
        }
        words.extend(["git", "--no-pager", "--no-optional-locks"]);
        if let Some(dir) = self.dir {
            words.extend(["-C", dir]);
        }
        for setting in SETTINGS {
            words.extend(["-c", setting]);
        }
        words.push(name);
        words.extend(insert.iter().map(String::as_str));
        words.into_iter().map(str::to_owned).chain(self.words).chain(self.behind).collect()
    }
}
