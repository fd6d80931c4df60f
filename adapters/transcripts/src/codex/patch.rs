//! The one-line title of a call: the files of a patch, the beginning of anything else.

/// Longest title, bytes.
const TITLE: usize = 240;
/// Maximum number of files of a patch that are named.
const FILES: usize = 4;

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

/// The files a patch (`*** Begin Patch`) touches.
pub(super) fn files(patch: &str) -> Option<String> {
    let mut names = patch.lines().filter_map(|line| {
        let rest = line.strip_prefix("*** ")?;
        ["Update File: ", "Add File: ", "Delete File: "].iter().find_map(|head| rest.strip_prefix(head))
    });
    let named: Vec<&str> = names.by_ref().take(FILES).collect();
    let more = names.count();
    let list = named.join(", ");
    match more {
        0 => title(&list),
        more => title(&format!("{list} and {more} more")),
    }
}
