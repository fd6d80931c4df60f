//! How a page is made, and how its data is written into it.

use std::borrow::Cow;

use session_tree::Entry;

/// How a tree is exported.
#[derive(Clone, Copy)]
pub struct PageOptions<'a> {
    /// The entry whose path is shown first, for instance [`Tree::leaf`](session_tree::Tree::leaf); nothing before all
    /// entries.
    pub leaf: Option<&'a Entry>,
    /// A title for a session that has no name of its own.
    pub title: Option<&'a str>,
    /// Gets every text of the session before it is written, the names of its fields among them, and gives what may
    /// leave. Not called for the ids, times and types the tree is made of, and for pictures.
    pub redact: &'a dyn Fn(&str) -> Cow<'_, str>,
}

/// JSON that can stand in a page: outside of strings none of these characters occur, and inside they are the same when
/// they are escaped.
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
