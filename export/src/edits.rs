//! Changes of files as diffs, made from the input of an edit as agents write it: removed and added lines.
//!
//! If an input is not completely understood, there is no diff, and the caller shows it unchanged. Characters that
//! cannot be printed are shown by their numbers (`\u{1b}`).

use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

use crate::unseen::escaped;

/// Maximum size of the texts that are compared, bytes.
const DIFF_BYTES: usize = 256 << 10;
/// Unchanged lines around a change.
const AROUND: usize = 3;

/// The names of the field with the path of an edit.
const PATH: &[&str] = &["file_path", "path", "absolute_path", "filePath", "target_file"];
/// The names of the field with the text before an edit.
const OLD: &[&str] = &["old_string", "oldString", "old_text", "oldText", "old_str", "old"];
/// The names of the field with the text after an edit.
const NEW: &[&str] = &["new_string", "newString", "new_text", "newText", "new_str", "new"];
/// The names of the field with a file's whole new text.
const CONTENT: &[&str] = &["content", "contents", "file_text"];
/// The first and last line of a patch.
const PATCH: (&str, &str) = ("*** Begin Patch", "*** End Patch");
/// The program that applies a patch.
const PATCH_TOOL: &str = "apply_patch";

/// The changes of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileEdits {
    /// Texts of a file are replaced by others; if the whole file is written, the text before is empty.
    Replaced {
        /// The file, as the agent names it.
        path: Option<String>,
        /// Text before and after, in order.
        texts: Vec<(String, String)>,
    },
    /// A patch, as the agent wrote it.
    Patch(String),
}

impl FileEdits {
    /// The edits in a tool's input; `None` if the input is not understood, or too long to compare.
    pub(crate) fn of(input: &str) -> Option<Self> {
        let fields = match serde_json::from_str(input) {
            Ok(Value::Object(fields)) => fields,
            Ok(Value::String(text)) => return patch(&text).map(Self::Patch),
            Ok(_) => return None,
            Err(_) => return patch(input).or_else(|| patch_of_script(input)).map(Self::Patch),
        };
        let mut texts = Vec::new();
        if let (Some(old), Some(new)) = (text(&fields, OLD), text(&fields, NEW)) {
            texts.push((old, new));
        } else if let Some(content) = text(&fields, CONTENT) {
            texts.push((String::new(), content));
        }
        for edit in fields.get("edits").and_then(Value::as_array).into_iter().flatten() {
            let edit = edit.as_object()?;
            texts.push((text(edit, OLD)?, text(edit, NEW)?));
        }
        if texts.is_empty() {
            return patch_of_fields(&fields).map(Self::Patch);
        }
        let is_short = texts.iter().all(|(old, new)| old.len() + new.len() <= DIFF_BYTES);
        is_short.then(|| Self::Replaced { path: text(&fields, PATH), texts })
    }

    /// The lines of the diff, each with its sign; unchanged lines far from a change are left out.
    pub(crate) fn lines(&self) -> Vec<String> {
        match self {
            Self::Patch(patch) => patch.split('\n').map(escaped).collect(),
            Self::Replaced { texts, .. } => {
                let mut lines = Vec::new();
                for (index, (old, new)) in texts.iter().enumerate() {
                    if index > 0 {
                        lines.push("…".to_owned());
                    }
                    lines.extend(difference(old, new));
                }
                lines
            }
        }
    }
}

fn difference(old: &str, new: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(old, new);
    let mut lines = Vec::new();
    for (index, group) in diff.grouped_ops(AROUND).iter().enumerate() {
        if index > 0 {
            lines.push("…".to_owned());
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            lines.push(format!("{sign}{}", escaped(change.value().trim_end_matches('\n'))));
        }
    }
    lines
}

fn text(fields: &Map<String, Value>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| fields.get(*name)?.as_str()).map(str::to_owned)
}

/// The patch, if the whole text is one.
fn patch(text: &str) -> Option<String> {
    let (begin, end) = PATCH;
    let (within, behind) = text.trim_start().strip_prefix(begin)?.rsplit_once(&format!("\n{end}"))?;
    let within = within.trim_matches('\n');
    (behind.trim().is_empty() && !within.is_empty()).then(|| within.to_owned())
}

/// The patch in the fields of an input, if exactly one of them is a patch. In a list it follows the patch tool.
fn patch_of_fields(fields: &Map<String, Value>) -> Option<String> {
    let mut patches = fields.values().filter_map(|value| match value {
        Value::String(text) => patch(text),
        Value::Array(list) => match list.as_slice() {
            [Value::String(tool), Value::String(text)] if tool == PATCH_TOOL => patch(text),
            _ => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    });
    let only = patches.next()?;
    patches.next().is_none().then_some(only)
}

/// The patch that a script passes to a tool as a string; cut JSON is not a script.
fn patch_of_script(script: &str) -> Option<String> {
    if script.trim_start().starts_with(['{', '[', '"']) {
        return None;
    }
    let at = script.find(&format!("\"{}", PATCH.0))?;
    patch(&serde_json::Deserializer::from_str(&script[at..]).into_iter::<String>().next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &str) -> Option<Vec<String>> {
        Some(FileEdits::of(input)?.lines())
    }

    #[test]
    fn every_edit_input_format_becomes_a_diff() {
        for input in [
            r#"{"file_path":"a.py","old_string":"x\nsame","new_string":"y\nsame","replace_all":false}"#,
            r#"{"filePath":"a.py","oldString":"x\nsame","newString":"y\nsame"}"#,
            r#"{"path":"a.py","oldText":"x\nsame","newText":"y\nsame"}"#,
            r#"{"path":"a.py","edits":[{"old":"x\nsame","new":"y\nsame"}]}"#,
        ] {
            assert_eq!(lines(input).unwrap(), ["-x", "+y", " same"], "{input}");
        }
        let written = r#"{"file_path":"a.py","content":"one\ntwo\n"}"#;
        assert_eq!(lines(written).unwrap(), ["+one", "+two"]);
        let two = r#"{"path":"a","edits":[{"old":"a","new":"b"},{"old":"c","new":"d"}]}"#;
        assert_eq!(lines(two).unwrap(), ["-a", "+b", "…", "-c", "+d"]);
    }

    #[test]
    fn a_patch_becomes_a_diff_from_every_input_format() {
        let wanted = ["*** Update File: a.md", "@@", "-42", "+43"];
        for input in [
            "*** Begin Patch\n*** Update File: a.md\n@@\n-42\n+43\n*** End Patch",
            r#"{"input":"*** Begin Patch\n*** Update File: a.md\n@@\n-42\n+43\n*** End Patch\n"}"#,
            r#"{"command":["apply_patch","*** Begin Patch\n*** Update File: a.md\n@@\n-42\n+43\n*** End Patch"],"workdir":"/w"}"#,
            r#""*** Begin Patch\n*** Update File: a.md\n@@\n-42\n+43\n*** End Patch""#,
            r#"const r = await tools.apply_patch("*** Begin Patch\n*** Update File: a.md\n@@\n-42\n+43\n*** End Patch\n"); text(r);"#,
        ] {
            assert_eq!(lines(input).unwrap(), wanted, "{input}");
        }
    }

    #[test]
    fn patch_markers_inside_the_edited_text_hide_no_lines() {
        let fragment = "*** Begin Patch\n+one\n*** End Patch";
        for text in [fragment.to_owned(), format!("before\n{fragment}\nbehind"), format!("{fragment}\nbehind")] {
            let written: Vec<String> = text.lines().map(|line| format!("+{line}")).collect();
            let inputs = [
                serde_json::json!({"file_path": "a.md", "content": text}),
                serde_json::json!({"file_path": "a.md", "old_string": "", "new_string": text}),
                serde_json::json!({"path": "a.md", "edits": [{"old": "", "new": text}]}),
            ];
            for input in inputs {
                assert_eq!(lines(&input.to_string()).unwrap(), written, "{input}");
            }
            let patch = format!("*** Begin Patch\n*** Add File: a.md\n{}\n*** End Patch", written.join("\n"));
            let shown = lines(&serde_json::json!({"input": patch}).to_string()).unwrap();
            assert_eq!(shown[1..], written, "{patch}");
        }
    }

    #[test]
    fn unprintable_characters_in_a_diff_are_escaped() {
        let text = "a\u{1b}[2J\tb\u{202e}c\u{61c}\u{2066}d\u{85}\r";
        let shown = "+a\\u{1b}[2J\tb\\u{202e}c\\u{61c}\\u{2066}d\\u{85}\\u{d}";
        let patch = format!("*** Begin Patch\n+{text}\n*** End Patch");
        for input in [
            serde_json::json!({"file_path": "a", "content": text}).to_string(),
            serde_json::json!({"input": patch}).to_string(),
            patch,
        ] {
            assert_eq!(lines(&input).unwrap(), [shown], "{input}");
        }
    }

    #[test]
    fn unrecognized_edit_inputs_produce_no_diff() {
        for input in [
            "",
            "{}",
            r#"{"path":1}"#,
            r#"{"path":"a","old_string":"x"}"#,
            r#"{"path":"a","edits":[{"old":"x"}]}"#,
            r#"{"path":"a","edits":["x"]}"#,
            "apply *** Begin Patch",
            r#"say("*** Begin Patch"#,
            "*** Begin Patch\n+x\n*** End Patch\nand more",
            r#"{"input":"*** Begin Patch\n+x\n*** End Patch","other":"*** Begin Patch\n+y\n*** End Patch"}"#,
            r#"{"command":"ls; apply_patch <<E\n*** Begin Patch\n+x\n*** End Patch\nE\n rm x"}"#,
            r#"{"command":["sh","*** Begin Patch\n+x\n*** End Patch"]}"#,
            r#"{"file_path":"cut","old_string":"*** Begin Patch\n+x\n*** End Patch","new_st"#,
        ] {
            assert_eq!(lines(input), None, "{input}");
        }
    }

    #[test]
    fn only_the_lines_around_a_change_are_shown() {
        let old: String = (0..40).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n20\n", "\nx\n");
        let input = serde_json::json!({"path": "a", "old_string": old, "new_string": new}).to_string();
        assert_eq!(lines(&input).unwrap(), [" 17", " 18", " 19", "-20", "+x", " 21", " 22", " 23"]);
    }
}
