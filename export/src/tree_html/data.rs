//! The data for the page's script: the unchanged entries of the file, and their tree.

use std::{borrow::Cow, collections::HashMap};

use serde::Serialize;
use session_tree::{Entry, Json, Object, Tree, entry::LEAF_TYPE};

use crate::tree_html::options::{PageOptions, escaped};

/// Fields of an entry that define the tree. They are identifiers, and are not redacted.
const NAMES: [&str; 7] = ["type", "id", "parentId", "timestamp", "targetId", "fromId", "firstKeptEntryId"];

/// Types of images that may be shown. SVG is excluded, because it is a document.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PageData {
    title: Option<String>,
    header: Object,
    entries: Vec<Object>,
    /// The index of each entry's parent; -1 for a root.
    parents: Vec<i64>,
    /// The indices of all entries, each before its descendants.
    order: Vec<usize>,
    /// The index of the leaf; -1 before all entries.
    leaf: i64,
    /// Number of entries without children.
    leaves: usize,
    labels: Vec<(usize, String)>,
    leaf_type: &'static str,
}

/// The data of a tree, as JSON that can be embedded in a page.
pub(super) fn of(tree: &Tree, options: &PageOptions<'_>) -> std::io::Result<String> {
    let places: HashMap<*const Entry, usize> =
        tree.entries().iter().enumerate().map(|(place, entry)| (std::ptr::from_ref(entry), place)).collect();
    let place = |entry: &Entry| places.get(&std::ptr::from_ref(entry)).copied();
    let mut parents: Vec<Option<usize>> = vec![None; tree.entries().len()];
    let mut labels = Vec::new();
    let mut order = Vec::with_capacity(tree.entries().len());
    let mut is_placed = vec![false; tree.entries().len()];
    for node in tree.outline().nodes {
        let Some(at) = place(node.entry).filter(|at| !is_placed[*at]) else { continue };
        is_placed[at] = true;
        order.push(at);
        parents[at] = node.parent.and_then(place);
        labels.extend(node.label.map(|mark| (at, (options.redact)(&mark.text).into_owned())));
    }
    // Entries that damage excludes from the tree (a cycle, a duplicate id) are shown after it.
    order.extend((0..is_placed.len()).filter(|at| !is_placed[*at]));
    let mut has_children = vec![false; parents.len()];
    for parent in parents.iter().flatten() {
        has_children[*parent] = true;
    }
    let is_leaf = |at: usize| !has_children[at] && tree.entries()[at].leaf_move().is_none();
    let number = |at: Option<usize>| at.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1);
    let data = PageData {
        title: tree.name().or(options.title).map(|title| (options.redact)(title).into_owned()),
        header: object(tree.header().fields(), options, &["type", "version", "id", "timestamp"]),
        entries: tree.entries().iter().map(|entry| object(entry.fields(), options, &NAMES)).collect(),
        leaves: (0..parents.len()).filter(|at| is_leaf(*at)).count(),
        parents: parents.into_iter().map(number).collect(),
        order,
        leaf: number(options.leaf.and_then(place)),
        labels,
        leaf_type: LEAF_TYPE,
    };
    Ok(escaped(&serde_json::to_string(&data)?))
}

/// Redacts an object. The fields in `names` are not redacted.
fn object(given: &Object, options: &PageOptions<'_>, names: &[&str]) -> Object {
    let is_picture = is_picture(given);
    let kept = given.iter().map(|(key, value)| {
        let is_kept = names.contains(&key) || is_picture && key == "data";
        let value = if is_kept && value.as_str().is_some() { value.clone() } else { json(value, options) };
        ((options.redact)(key).into_owned(), value)
    });
    kept.collect()
}

fn json(given: &Json, options: &PageOptions<'_>) -> Json {
    match given {
        Json::String(text) => match (options.redact)(text) {
            Cow::Borrowed(text) => Json::String(text.to_owned()),
            Cow::Owned(text) => Json::String(text),
        },
        Json::Array(items) => Json::Array(items.iter().map(|item| json(item, options)).collect()),
        Json::Object(fields) => Json::Object(object(fields, options, &[])),
        Json::Null | Json::Bool(_) | Json::Number(_) => given.clone(),
    }
}

/// Whether an object is an image that the page may show. Its data is left unredacted only if it is valid base64
/// throughout.
fn is_picture(given: &Object) -> bool {
    given.text("type") == Some("image")
        && given.text("mimeType").is_some_and(|kind| PICTURES.contains(&kind))
        && given.text("data").is_some_and(|data| {
            let data = data.trim_end_matches('=');
            data.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
        })
}
