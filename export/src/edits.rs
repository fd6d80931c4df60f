//! Changes of files as differences: the input of an edit as agents write it, and its lines that went and came.
//!
//! An input that is not understood as a whole has no difference, and the caller shows it as it is.

use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

/// Most bytes of texts that are compared.
const DIFF_BYTES: usize = 256 << 10;
/// Unchanged lines around a change.
const AROUND: usize = 3;

/// The names under which agents write the path, the text before and the text after an edit.
const PATH: &[&str] = &["file_path", "path", "absolute_path", "filePath", "target_file"];
const OLD: &[&str] = &["old_string", "oldString", "old_text", "oldText", "old_str", "old"];
const NEW: &[&str] = &["new_string", "newString", "new_text", "newText", "new_str", "new"];
/// The names of a file's whole new text.
const CONTENT: &[&str] = &["content", "contents", "file_text"];
/// What a patch begins and ends with.
const PATCH: (&str, &str) = ("*** Begin Patch", "*** End Patch");

/// What an edit does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileEdits {
    /// Texts of a file are replaced by others; of a file that is written, the text before is empty.
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
    /// The edits in a tool's input; `None` if they are not understood, or too long to compare.
    pub(crate) fn of(input: &str) -> Option<Self> {
        if let Some(patch) = patch(input) {
            return Some(Self::Patch(patch));
        }
        let fields: Map<String, Value> = serde_json::from_str(input).ok()?;
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
        let is_short = texts.iter().all(|(old, new)| old.len() + new.len() <= DIFF_BYTES);
        (is_short && !texts.is_empty()).then(|| Self::Replaced { path: text(&fields, PATH), texts })
    }

    /// The lines of the difference, each with its sign; unchanged lines far from a change are left out.
    pub(crate) fn lines(&self) -> Vec<String> {
        match self {
            Self::Patch(patch) => patch.lines().map(str::to_owned).collect(),
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
            lines.push(format!("{sign}{}", change.value().trim_end_matches('\n')));
        }
    }
    lines
}

fn text(fields: &Map<String, Value>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| fields.get(*name)?.as_str()).map(str::to_owned)
}

/// The patch in an input: the input itself, or a string within it.
fn patch(input: &str) -> Option<String> {
    let (begin, end) = PATCH;
    let at = input.find(begin)?;
    let text = match at.checked_sub(1).and_then(|before| input.get(before..)).filter(|text| text.starts_with('"')) {
        Some(quoted) => serde_json::Deserializer::from_str(quoted).into_iter::<String>().next()?.ok()?,
        None => input[at..].to_owned(),
    };
    let end = text.find(end)?;
    let within = text.get(begin.len()..end)?.trim_matches('\n');
    (!within.is_empty()).then(|| within.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &str) -> Option<Vec<String>> {
        Some(FileEdits::of(input)?.lines())
    }

    #[test]
    fn every_way_to_write_an_edit_is_a_difference() {
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
    fn a_patch_is_a_difference_wherever_it_stands_in_the_input() {
        let wanted = ["*** Update File: a.md", "@@", "-42", "+43"];
        for input in [
            "*** Begin Patch\n*** Update File: a.md\n@@\n-42\n+43\n*** End Patch",
            r#"{"input":"*** Begin Patch\n*** Update File: a.md\n@@\n-42\n+43\n*** End Patch\n"}"#,
            r#"const r = await tools.apply_patch("*** Begin Patch\n*** Update File: a.md\n@@\n-42\n+43\n*** End Patch\n"); text(r);"#,
        ] {
            assert_eq!(lines(input).unwrap(), wanted, "{input}");
        }
    }

    #[test]
    fn what_is_not_understood_has_no_difference() {
        for input in [
            "",
            "{}",
            r#"{"path":1}"#,
            r#"{"path":"a","old_string":"x"}"#,
            r#"{"path":"a","edits":[{"old":"x"}]}"#,
            r#"{"path":"a","edits":["x"]}"#,
            "apply *** Begin Patch",
            r#"say("*** Begin Patch"#,
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
