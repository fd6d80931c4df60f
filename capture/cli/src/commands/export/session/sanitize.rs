//! Removes what a dataset must not contain besides recognizable secrets: the user's home directory, and calls about
//! files of secrets.

use std::path::Path;

use serde_json::Value;

/// Replaces the home directory with `~`, including names an agent derived from its path (`-home-me-project`).
pub(super) fn without_home(text: &str, home: &str) -> String {
    let plain = home.trim_end_matches('/');
    let dashed = plain.replace(['/', '.'], "-");
    let mut text = text.to_owned();
    // `-root` could also be an option.
    let has_parts = dashed.matches('-').count() > 1;
    for name in [Some(plain), has_parts.then_some(&*dashed)].into_iter().flatten().filter(|name| name.len() > 1) {
        let mut found = text.as_str();
        let mut out = String::with_capacity(text.len());
        while let Some(at) = found.find(name) {
            let (before, rest) = (&found[..at], &found[at + name.len()..]);
            out.push_str(before);
            // `/home/medium` is not below `/home/me`.
            let goes_on = rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
            out.push_str(if goes_on { name } else { "~" });
            found = rest;
        }
        out.push_str(found);
        text = out;
    }
    text
}

/// Whether the input of a call names a file whose name indicates secrets (`.env`, `id_rsa`). The text such a call reads
/// or writes does not always look like a secret.
pub(super) fn names_secrets(input: &str) -> bool {
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
    // The separators between paths in a shell, in JSON and in git's file names (`HEAD:.env`).
    let is_between = |c: char| c.is_whitespace() || "\"'`;|&<>(){}[],:=$\\".contains(c);
    text.split(is_between).filter(|word| !word.is_empty()).any(|word| approver::is_secret(Path::new(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_name_secret_files_are_detected() {
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
    fn every_form_of_the_home_directory_is_replaced_by_a_tilde() {
        let clean = |text| without_home(text, "/home/me");
        assert_eq!(clean("/home/me/p and ~/x"), "~/p and ~/x");
        assert_eq!(clean("/home/me/.claude/projects/-home-me-p/1.jsonl"), "~/.claude/projects/~-p/1.jsonl");
        assert_eq!(without_home("qemu -root /root/p", "/root"), "qemu -root ~/p");
        assert_eq!(without_home("a/b", "/"), "a/b");
    }

    #[test]
    fn paths_that_only_share_the_homes_prefix_are_kept() {
        let without = |text: &str| without_home(text, "/home/me.x");
        assert_eq!(without("cd /home/me.x/src && ls /home/me.x"), "cd ~/src && ls ~");
        assert_eq!(without("{\"path\":\"/home/me.x/a\"}"), "{\"path\":\"~/a\"}");
        assert_eq!(without("/home/me.xy /home/me.x_1 /home/me"), "/home/me.xy /home/me.x_1 /home/me");
        assert_eq!(without("/home/me.x/.claude/projects/-home-me-x-src/1.jsonl"), "~/.claude/projects/~-src/1.jsonl");
    }
}
