//! The options of a page, and the functions that write its data.

use std::borrow::Cow;

use session_tree::Entry;

/// How a tree is exported.
#[derive(Clone, Copy)]
pub struct PageOptions<'a> {
    /// The entry whose path is shown first, for instance [`Tree::leaf`](session_tree::Tree::leaf); `None` is the
    /// position before all entries.
    pub leaf: Option<&'a Entry>,
    /// The title for a session without a name.
    pub title: Option<&'a str>,
    /// Called for every text of the session before it is written, including the names of fields; returns the text that
    /// may leave. Not called for the ids, times and types that form the tree, or for images.
    pub redact: &'a dyn Fn(&str) -> Cow<'_, str>,
}

/// JSON that can be part of a page: outside strings none of these characters occur, and inside strings their escapes
/// have the same meaning.
pub(crate) fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + json.len() / 16);
    let mut from = 0;
    for (at, found) in json.match_indices(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        text.push_str(&json[from..at]);
        text.push_str(match found {
            "<" => "\\u003c",
            ">" => "\\u003e",
            "&" => "\\u0026",
            "\u{2028}" => "\\u2028",
            _ => "\\u2029",
        });
        from = at + found.len();
    }
    text.push_str(&json[from..]);
    text
}
