//! Lists the files that a conversation read and changed, from the calls of the tools `read`, `write` and `edit`.

use crate::json::{Json, Object};

/// Paths in the order of first occurrence, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileOperations {
    /// Files read.
    pub read: Vec<String>,
    /// Files written as a whole.
    pub written: Vec<String>,
    /// Files edited.
    pub edited: Vec<String>,
}

impl FileOperations {
    /// Adds the files of an answer's calls.
    pub fn add_message(&mut self, message: &Object) {
        if message.text("role") != Some("assistant") {
            return;
        }
        for block in message.get("content").and_then(Json::as_array).unwrap_or_default() {
            let Some(block) = block.as_object().filter(|b| b.text("type") == Some("toolCall")) else { continue };
            let arguments = block.get("arguments").and_then(Json::as_object);
            let Some(path) = arguments.and_then(|a| a.text("path")).filter(|path| !path.is_empty()) else { continue };
            match block.text("name") {
                Some("read") => add(&mut self.read, path),
                Some("write") => add(&mut self.written, path),
                Some("edit") => add(&mut self.edited, path),
                Some(_) | None => {}
            }
        }
    }

    /// Adds the files listed by an earlier summary.
    pub fn add_details(&mut self, details: Option<&Json>) {
        let Some(details) = details.and_then(Json::as_object) else { return };
        let listed = |key: &str| details.get(key).and_then(Json::as_array).unwrap_or_default().iter();
        listed("readFiles").filter_map(Json::as_str).for_each(|path| add(&mut self.read, path));
        listed("modifiedFiles").filter_map(Json::as_str).for_each(|path| add(&mut self.edited, path));
    }

    /// The files that were only read, and the files that were changed; sorted.
    #[must_use]
    pub fn lists(&self) -> (Vec<String>, Vec<String>) {
        let mut modified = Vec::new();
        self.edited.iter().chain(&self.written).for_each(|path| add(&mut modified, path));
        let mut read: Vec<String> = self.read.iter().filter(|path| !modified.contains(path)).cloned().collect();
        // Sorted like in JavaScript: by UTF-16 units.
        read.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
        modified.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
        (read, modified)
    }
}

/// The lists as text for the end of a summary.
pub(crate) fn as_text(read: &[String], modified: &[String]) -> String {
    let section = |name: &str, files: &[String]| {
        if files.is_empty() { String::new() } else { format!("\n\n<{name}>\n{}\n</{name}>", files.join("\n")) }
    };
    section("read-files", read) + &section("modified-files", modified)
}

fn add(files: &mut Vec<String>, path: &str) {
    if !files.iter().any(|file| file == path) {
        files.push(path.to_owned());
    }
}
