//! Writes a session tree as one self-contained HTML file.
//!
//! The page shows the tree, searches and filters it, and shows the path to a leaf; an address says which
//! (`#leaf=ID&entry=ID`). It asks nobody for anything: style and script are in it, and a policy in its head lets the browser
//! run just these (by their hashes) and load nothing but pictures that are in the page.
//!
//! What the session says is untrusted. It is in the page once, as JSON in a block that is not run, with every
//! character escaped that could end that block (`escaped`); the script puts it into the page as the text of nodes
//! only. What must not leave is the caller's to say: every text goes through his closure first ([`PageOptions::redact`]).
//!
//! Owns the page and its data. The script is `tree_html/page/`; it finds no parents, that is done here, since files may be
//! damaged. Must not read a clock or write a file.

mod data;

use std::{borrow::Cow, io, io::Write};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac_sha256::Hash;
use session_tree::{Entry, Tree};

const PAGE: &str = include_str!("tree_html/page/page.html");
const STYLE: &str = include_str!("tree_html/page/style.css");
const SCRIPT: &str = concat!(
    include_str!("tree_html/page/text.js"),
    include_str!("tree_html/page/model.js"),
    include_str!("tree_html/page/sidebar.js"),
    include_str!("tree_html/page/content.js"),
    include_str!("tree_html/page/main.js"),
);

/// How a tree is exported.
#[derive(Clone, Copy)]
pub struct PageOptions<'a> {
    /// The entry whose path is shown first, for instance [`Tree::leaf`]; nothing before all entries.
    pub leaf: Option<&'a Entry>,
    /// A title for a session that has no name of its own.
    pub title: Option<&'a str>,
    /// Gets every text of the session before it is written, the names of its fields among them, and gives what may
    /// leave. Not called for the ids, times and types the tree is made of, and for pictures.
    pub redact: &'a dyn Fn(&str) -> Cow<'_, str>,
}

/// Writes a tree as a page.
///
/// # Errors
/// `out` fails.
pub fn write(tree: &Tree, options: &PageOptions<'_>, out: &mut dyn Write) -> io::Result<()> {
    let data = data::of(tree, options)?;
    let mut rest = PAGE;
    while let Some((before, (name, after))) =
        rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        out.write_all(before.as_bytes())?;
        match name {
            "csp" => out.write_all(policy().as_bytes())?,
            "style" => out.write_all(STYLE.as_bytes())?,
            "script" => out.write_all(SCRIPT.as_bytes())?,
            _ => out.write_all(data.as_bytes())?,
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

/// What the browser may do with the page.
fn policy() -> String {
    let hash = |text: &str| STANDARD.encode(Hash::hash(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; \
         form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
}

/// JSON that can stand in a page: outside of strings none of these characters occur, and inside they are the same when
/// they are escaped.
fn escaped(json: &str) -> String {
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

#[cfg(test)]
mod tests;
