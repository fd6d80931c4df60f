//! What a dataset leaves out beside what looks like a secret: the user's home, and calls about files of secrets.

use std::path::Path;

use serde_json::Value;

/// The text with `~` for the home directory, also where an agent made a name of a path (`-home-me-project`).
pub(crate) fn without_home(text: &str, home: &str) -> String {
    let text = text.replace(home, "~");
    let dashed = home.replace('/', "-");
    // `-root` is also an option.
    if dashed.matches('-').count() > 1 { text.replace(&dashed, "~") } else { text }
}

/// Whether the input of a call names a file whose name says that it holds secrets (`.env`, `id_rsa`): neither what is
/// written there nor what was read looks like a secret in each case.
pub(crate) fn names_secrets(input: &str) -> bool {
    match serde_json::from_str::<Value>(input) {
        Ok(value) => in_value(&value),
        Err(_) => in_text(input),
    }
}

fn in_value(value: &Value) -> bool {
    match value {
        Value::String(text) => in_text(text),
        Value::Array(values) => values.iter().any(in_value),
        Value::Object(fields) => fields.values().any(in_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn in_text(text: &str) -> bool {
    // What stands between paths in a shell, in JSON and in git's names of files (`HEAD:.env`).
    let is_between = |c: char| c.is_whitespace() || "\"'`;|&<>(){}[],:=$\\".contains(c);
    text.split(is_between).filter(|word| !word.is_empty()).any(|word| approver::is_secret(Path::new(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_about_files_of_secrets_are_found() {
        for input in [
            r#"{"command":"cat .env"}"#,
            r#"{"command":"git show HEAD:.env | head"}"#,
            r#"{"command":"true\ncat '/home/me/.ssh/id_rsa'"}"#,
            r#"{"file_path":"/p/.env.local","content":"KEY=value"}"#,
            r#"{"edits":[{"path":"/home/me/.aws/credentials"}]}"#,
            "*** Update File: .npmrc",
            "cat $HOME/.netrc",
        ] {
            assert!(names_secrets(input), "{input}");
        }
        for input in [r#"{"command":"cat src/env.rs"}"#, r#"{"file_path":"/p/environment.md"}"#, "ls -la", "", "{}"] {
            assert!(!names_secrets(input), "{input}");
        }
    }

    #[test]
    fn the_home_is_left_out_in_each_of_its_forms() {
        let clean = |text| without_home(text, "/home/me");
        assert_eq!(clean("/home/me/p and ~/x"), "~/p and ~/x");
        assert_eq!(clean("/home/me/.claude/projects/-home-me-p/1.jsonl"), "~/.claude/projects/~-p/1.jsonl");
        assert_eq!(without_home("qemu -root /root/p", "/root"), "qemu -root ~/p");
    }
}
