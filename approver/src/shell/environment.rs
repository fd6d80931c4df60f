//! Which variables a line may set without changing what runs.

/// Variables that programs of every kind take a word or a number from, and nothing else.
const HARMLESS: &[&str] = &[
    "LANG",
    "LANGUAGE",
    "TZ",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "LINES",
    "TERM",
    "CI",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "CARGO_TERM_COLOR",
    "CARGO_INCREMENTAL",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "NODE_ENV",
    "CGO_ENABLED",
    "GOOS",
    "GOARCH",
    "PROPTEST_CASES",
    "INSTA_UPDATE",
    "VITE_CJS_IGNORE_WARNING",
    "UV_FROZEN",
];

/// Whose values are told, as `printenv` may.
const TOLD: &[&str] = &[
    "HOME",
    "PATH",
    "PWD",
    "OLDPWD",
    "SHELL",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TERM",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "TZ",
    "HOSTNAME",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "VIRTUAL_ENV",
    "CONDA_DEFAULT_ENV",
    "JAVA_HOME",
    "GOPATH",
    "GOROOT",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "NODE_ENV",
    "CI",
];

/// What begins, holds or ends the names of variables by which shells, loaders and programs find or run something.
const BEGINS: &[&str] = &[
    "LD_",
    "DYLD_",
    "GIT_",
    "BASH",
    "ZSH",
    "ZDOTDIR",
    "PYTHON",
    "NODE",
    "NPM",
    "YARN",
    "PNPM",
    "RUBY",
    "GEM_",
    "BUNDLE",
    "PERL",
    "JAVA",
    "_JAVA",
    "JDK",
    "MAVEN",
    "GRADLE",
    "RUST",
    "CARGO",
    "GO",
    "CC",
    "CXX",
    "CPP",
    "AR",
    "MAKE",
    "MFLAGS",
    "CMAKE",
    "PS",
    "GREP_",
    "RIPGREP",
    "LS_",
    "LESS",
    "GLIBC",
    "MALLOC",
    "LOC",
    "NLS",
    "GCONV",
    "RES_",
    "HOST",
    "SSH",
    "SSL",
    "CURL",
    "WGET",
    "AWS",
    "DOCKER",
    "KUBE",
    "XDG_",
    "HIST",
    "POSIX",
    "AWK",
    "GAWK",
    "MAGIC",
    "TMP",
    "TEMP",
    "ENV",
    "IFS",
    "CD",
    "HOME",
    "PWD",
    "OLDPWD",
    "USER",
    "LOGNAME",
    "MAIL",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "MAN",
    "PROMPT",
    "FPATH",
    "MODULE",
    "NULL",
    "READNULL",
    "FUNC",
    "OPT",
    "RANDOM",
    "SECONDS",
    "TMOUT",
    "GLOB",
    "FIGNORE",
    "INPUTRC",
    "TERMINFO",
    "TERMCAP",
    "JQ_",
    "FIND",
    "TREE",
    "STATUS",
    "ARGV",
    "WORDCHARS",
    "CAPTURE",
    "CLAUDE",
    "CODEX",
    "GEMINI",
    "NIX",
    "DBUS",
    "DISPLAY",
    "GTK",
    "QT",
    "QUOTING",
    "BLOCK",
    "DU_",
    "DF_",
    "TIME",
    "TABSIZE",
    "_",
    "REPLY",
    "LINENO",
    "PIPESTATUS",
    "UID",
    "EUID",
    "PPID",
];
const HOLDS: &[&str] = &[
    "PATH", "PRELOAD", "OPTION", "OPTS", "FLAGS", "COMMAND", "CONFIG", "INIT", "HOOK", "EXEC", "SHELL", "PAGER",
    "EDITOR", "PROXY", "WRAPPER", "LIBRAR", "PLUGIN", "STARTUP", "LOADER", "PASS", "SECRET", "TOKEN",
];

/// Whether a line may give this variable a value, for itself. Shells and what they run take nothing from it.
pub(crate) fn is_free(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    // Some are just one letter longer than a harmless word.
    let begins = BEGINS.iter().any(|start| {
        upper == start.trim_end_matches('_')
            || upper.starts_with(start) && (start.len() > 2 || start.ends_with('_') && *start != "_")
    });
    let runs_commands = upper.ends_with("RC") && upper != "SRC" || upper.ends_with("CMD");
    !name.starts_with('_')
        && !begins
        && !runs_commands
        && !HOLDS.iter().any(|part| upper.contains(part))
        && !is_prompt(&upper)
}

fn is_prompt(upper: &str) -> bool {
    upper.strip_prefix("PS").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether `NAME=value` before a program that only reads changes nothing but how it prints.
pub(crate) fn is_harmless(name: &str, value: &str) -> bool {
    let word = value.len() <= 64 && value.chars().all(|c| c.is_ascii_alphanumeric() || "_.-@,:=".contains(c));
    if name == "TZ" {
        let zone = |c: char| c.is_ascii_alphanumeric() || "_+-/".contains(c);
        return value.chars().all(zone) && !value.starts_with('/') && value.len() <= 64;
    }
    if HARMLESS.contains(&name) || name.starts_with("LC_") {
        return word && !value.contains("..");
    }
    // A number names no file and no option.
    let plain = matches!(value, "" | "true" | "false" | "yes" | "no" | "on" | "off");
    is_free(name) && (plain || value.len() < 8 && value.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether `NAME=value` may stand before a program that runs code of the repository.
pub(crate) fn is_usual(name: &str, value: &str) -> bool {
    (HARMLESS.contains(&name) || name.starts_with("LC_")) && is_harmless(name, value)
}

/// Whether anybody may be told the value of a variable.
pub(crate) fn is_told(name: &str) -> bool {
    TOLD.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_what_runs_is_not_free() {
        for name in [
            "PATH",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "GIT_DIR",
            "PAGER",
            "BASH_ENV",
            "ENV",
            "IFS",
            "PS4",
            "PROMPT_COMMAND",
            "NODE_OPTIONS",
            "GREP_OPTIONS",
            "RUSTC_WRAPPER",
            "PYTHONPATH",
            "CDPATH",
            "HOME",
            "path",
            "cdpath",
            "fpath",
            "npm_config_registry",
            "RIPGREP_CONFIG_PATH",
            "LESSOPEN",
            "MAKEFLAGS",
            "CC",
            "GOFLAGS",
            "http_proxy",
            "ZDOTDIR",
            "GLIBC_TUNABLES",
            "MANPAGER",
            "VISUAL",
            "_",
            "PS1",
            "TMPDIR",
            "INPUTRC",
        ] {
            assert!(!is_free(name) && !is_harmless(name, "1"), "{name}");
        }
        for name in ["f", "i", "FOO", "file", "dir", "x", "SRC", "name", "line", "count", "d", "p", "c", "a", "n"] {
            assert!(is_free(name), "{name}");
        }
        assert!(
            is_harmless("FOO", "1")
                && is_harmless("LANG", "C")
                && is_harmless("LC_ALL", "en_US.UTF-8")
                && is_harmless("TZ", "Europe/Berlin")
        );
        for (name, value) in [("FOO", "./x"), ("FOO", "-x"), ("LANG", "/tmp/x"), ("TZ", "/etc/passwd"), ("TZ", ":x")] {
            assert!(!is_harmless(name, value), "{name}={value}");
        }
    }
}
