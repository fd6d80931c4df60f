//! The variables that a line may set without changing which programs run. The table is data (`variables.toml`).

use std::sync::LazyLock;

use serde::Deserialize;

/// The table of variables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VariableTable {
    /// Variables from which programs read only a word or a number.
    harmless: Vec<String>,
    /// Variables whose values may be printed.
    told: Vec<String>,
    /// Prefixes of names by which shells and programs find or run something.
    begins: Vec<String>,
    /// Parts of such names.
    holds: Vec<String>,
}

#[expect(clippy::panic, reason = "the table is part of the program, and a test reads it")]
static TABLE: LazyLock<VariableTable> = LazyLock::new(|| {
    toml::from_str(include_str!("../../variables.toml")).unwrap_or_else(|error| panic!("variables.toml: {error}"))
});

fn is_in(names: &[String], name: &str) -> bool {
    names.iter().any(|known| known == name)
}

/// Whether a line may assign this variable for its own use, because shells and the programs they run do not read it.
pub(crate) fn is_free(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    // Some are just one letter longer than a harmless word.
    let begins = TABLE.begins.iter().any(|start| {
        upper == start.trim_end_matches('_')
            || upper.starts_with(start.as_str()) && (start.len() > 2 || start.ends_with('_') && start != "_")
    });
    let runs_commands = upper.ends_with("RC") && upper != "SRC" || upper.ends_with("CMD");
    !name.starts_with('_')
        && !begins
        && !runs_commands
        && !TABLE.holds.iter().any(|part| upper.contains(part.as_str()))
        && !is_prompt(&upper)
}

fn is_prompt(upper: &str) -> bool {
    upper.strip_prefix("PS").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether `NAME=value` before a program that only reads affects only its output.
pub(crate) fn is_harmless(name: &str, value: &str) -> bool {
    let word = value.len() <= 64 && value.chars().all(|c| c.is_ascii_alphanumeric() || "_.-@,:=".contains(c));
    if name == "TZ" {
        let zone = |c: char| c.is_ascii_alphanumeric() || "_+-/".contains(c);
        return value.chars().all(zone) && !value.starts_with('/') && value.len() <= 64;
    }
    if is_in(&TABLE.harmless, name) || name.starts_with("LC_") {
        return word && !value.contains("..");
    }
    // A number is neither a file nor an option.
    let plain = matches!(value, "" | "true" | "false" | "yes" | "no" | "on" | "off");
    is_free(name) && (plain || value.len() < 8 && value.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether `NAME=value` is allowed before a program that runs code of the repository.
pub(crate) fn is_usual(name: &str, value: &str) -> bool {
    (is_in(&TABLE.harmless, name) || name.starts_with("LC_")) && is_harmless(name, value)
}

/// Whether the value of a variable may be printed.
pub(crate) fn is_told(name: &str) -> bool {
    is_in(&TABLE.told, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_influence_execution_are_not_free_to_assign() {
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
