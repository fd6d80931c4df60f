//! The one-line title of a call: the files of a patch, the beginning of anything else; and the files of a patch.

/// Longest title, bytes.
const TITLE: usize = 240;
/// Maximum number of files of a patch that its title names.
const TITLE_FILES: usize = 4;
/// Maximum number of files of a patch.
const FILES: usize = 64;
/// Longest path of a file, bytes.
const FILE_BYTES: usize = 1024;

/// The text on one line, cut.
pub(super) fn title(text: &str) -> Option<String> {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.len() + word.len() >= TITLE {
            let room = TITLE.saturating_sub(line.len() + 1);
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word[..word.floor_char_boundary(room)]);
            line.push('…');
            return Some(line);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    (!line.is_empty()).then_some(line)
}

/// What can be seen of a patch (`*** Begin Patch`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Patch {
    /// The first files, in one line.
    pub(super) title: Option<String>,
    /// The files it touches, if there are several.
    pub(super) files: Vec<String>,
}

impl Patch {
    /// Looks at a patch.
    pub(super) fn of(patch: &str) -> Self {
        let mut named: Vec<&str> = Vec::new();
        let mut files: Vec<String> = Vec::new();
        for line in patch.lines() {
            let Some(rest) = line.strip_prefix("*** ") else { continue };
            let path = |heads: &[&str]| heads.iter().find_map(|head| rest.strip_prefix(head)).map(str::trim_end);
            let touched = path(&["Update File: ", "Add File: ", "Delete File: "]);
            named.extend(touched);
            let file = touched.or_else(|| path(&["Move to: "])).filter(|file| file.len() <= FILE_BYTES);
            if let Some(file) = file.filter(|file| files.len() < FILES && !files.iter().any(|known| known == file)) {
                files.push(file.to_owned());
            }
        }
        let list = named.iter().take(TITLE_FILES).copied().collect::<Vec<_>>().join(", ");
        let title = match named.len().saturating_sub(TITLE_FILES) {
            0 => title(&list),
            more => title(&format!("{list} and {more} more")),
        };
        if files.len() == 1 {
            files.clear();
        }
        Self { title, files }
    }
}
