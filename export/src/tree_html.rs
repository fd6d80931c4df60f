//! Writes a session tree as one self-contained HTML file.
//!
//! The page shows the tree, searches and filters it, and shows the path to a leaf, which the address names
//! (`#leaf=ID&entry=ID`). It makes no requests: style and script are part of it, and a policy in its head lets the
//! browser run only these (by their hashes) and load only images that are in the page.
//!
//! The content of the session is untrusted. It is in the page once, as JSON in a block that is not run, and every
//! character that could end that block is escaped (`escaped`). The script inserts it into the page only as the text of
//! nodes. The caller decides which texts may leave: every text passes its closure first ([`PageOptions::redact`]).
//!
//! Owns the page and its data. The script is `tree_html/page/`. Parents are determined here and not in the script,
//! because files may be damaged. Must not read a clock or write a file.

mod data;
mod options;

use std::{io, io::Write};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac_sha256::Hash;
pub use options::PageOptions;
use session_tree::Tree;

const PAGE: &str = include_str!("tree_html/page/page.html");
const STYLE: &str = include_str!("tree_html/page/style.css");
const SCRIPT: &str = concat!(
    include_str!("tree_html/page/text.js"),
    include_str!("tree_html/page/model.js"),
    include_str!("tree_html/page/sidebar.js"),
    include_str!("tree_html/page/content.js"),
    include_str!("tree_html/page/main.js"),
);

/// Writes a tree as a page.
///
/// # Errors
/// If `out` fails.
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

/// The content security policy of the page.
fn policy() -> String {
    policy_of(SCRIPT, STYLE)
}

/// A policy for a page with this script and this style: only these run, and nothing is loaded.
pub(crate) fn policy_of(script: &str, style: &str) -> String {
    let hash = |text: &str| STANDARD.encode(Hash::hash(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; \
         form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        hash(script),
        hash(style)
    )
}

#[cfg(test)]
mod tests;
