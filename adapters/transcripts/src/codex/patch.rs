//! The one-line title of a call: the files of a patch, or the beginning of other input; and the files of a patch.

/// Maximum length of a title, bytes.
const TITLE: usize = 240;
/// Maximum number of files of a patch that its title names.
const TITLE_FILES: usize = 4;
/// Maximum number of files of a patch.
const FILES: usize = 64;
/// Maximum length of a file's path, bytes.
const FILE_BYTES: usize = 1024;

/// The text as one line, shortened.
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

/// The parts of a patch (`*** Begin Patch`) that are used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Patch {
    /// The first files, as one line.
    pub(super) title: Option<String>,
    /// The files it changes, if there are several.
    pub(super) files: Vec<String>,
}

impl Patch {
    /// Parses a patch.
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
