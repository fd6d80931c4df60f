//! The safe form of a command of git.

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

/// Settings that outweigh those of every configuration.
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

/// The words of the safe form of `git NAME WORDS…`.
pub(super) fn words(name: &str, insert: &[String], rest: &[&str]) -> Vec<String> {
    let mut words = vec!["env"];
    for variable in UNSET {
        words.extend(["-u", variable]);
    }
    words.extend(["GIT_CONFIG_NOSYSTEM=1", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0"]);
    words.extend(["git", "--no-pager", "--no-optional-locks"]);
    for setting in SETTINGS {
        words.extend(["-c", setting]);
    }
    words.push(name);
    words.extend(insert.iter().map(String::as_str));
    words.extend(rest);
    words.into_iter().map(str::to_owned).collect()
}
