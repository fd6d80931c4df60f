//! The JSON output of the session commands, in the format of pi's recorded answers.

use session_tree::{Context, Entry, Json, Node, Object, compaction::CompactionPlan};

use super::file::Loaded;

fn ok() -> Object {
    Object::new().with("ok", true)
}

/// Adds the leaf's id: `null` before the first entry, and no key if the leaf has no id.
fn with_leaf(object: Object, loaded: &Loaded, leaf: Option<&Entry>) -> Object {
    match leaf {
        None => object.with("leafId", Json::Null),
        Some(leaf) => object.with_some("leafId", id(loaded, leaf)),
    }
}

/// The id as shown. An id that is not a string is returned unchanged.
fn id(loaded: &Loaded, entry: &Entry) -> Option<Json> {
    entry.id().map(|id| loaded.shown(id).into()).or_else(|| entry.fields().get("id").cloned())
}

fn id_or_null(loaded: &Loaded, entry: &Entry) -> Json {
    id(loaded, entry).unwrap_or(Json::Null)
}

pub(super) fn load(loaded: &Loaded, with_issues: bool) -> Object {
    let header: Json =
        if loaded.is_empty { "(fresh header)".into() } else { loaded.tree.header().fields().clone().into() };
    let object = ok().with("header", header).with("entries", loaded.tree.entries().len() as u64);
    let object = with_leaf(object, loaded, loaded.tree.leaf())
        .with("fileRewritten", loaded.is_rewritten)
        .with("sizeBefore", loaded.size_before)
        .with("sizeAfter", loaded.size_after);
    if !with_issues {
        return object;
    }
    let issues = loaded.issues.iter().map(|issue| {
        let object = Object::new().with("line", issue.position.line as u64).with("offset", issue.position.offset);
        object.with("reason", issue.reason.to_string()).into()
    });
    object.with("issues", Json::Array(issues.collect()))
}

pub(super) fn context(loaded: &Loaded, context: &Context<'_>, messages: Vec<Json>) -> Object {
    let model = context.model.map_or(Json::Null, |model| {
        Object::new().with_some("provider", model.provider.cloned()).with_some("modelId", model.id.cloned()).into()
    });
    with_leaf(ok(), loaded, loaded.leaf())
        .with("messages", messages)
        .with_some("thinkingLevel", context.thinking_level.as_deref().cloned())
        .with("model", model)
}

pub(super) fn tree(loaded: &Loaded) -> Object {
    let outline = loaded.tree.outline();
    let roots: Vec<Json> = outline.roots.iter().map(|root| id_or_null(loaded, root)).collect();
    let nodes: Vec<Json> = outline.nodes.iter().map(|n| node(loaded, n).into()).collect();
    with_leaf(ok().with("roots", roots), loaded, loaded.tree.leaf()).with("nodes", nodes)
}

fn node(loaded: &Loaded, node: &Node<'_>) -> Object {
    let object = Object::new()
        .with_some("id", id(loaded, node.entry))
        .with("parent", node.parent.map_or(Json::Null, |parent| id_or_null(loaded, parent)))
        .with("depth", node.depth as u64);
    if node.is_repeated {
        return object.with("repeated", true);
    }
    let children: Vec<Json> = node.children.iter().map(|child| id_or_null(loaded, child)).collect();
    object
        .with_some("type", node.entry.fields().get("type").cloned())
        .with_some("role", node.entry.message().and_then(|message| message.get("role")).cloned())
        .with_some("label", node.label.map(|label| label.label().clone()))
        .with_some("labelTimestamp", node.label.and_then(|label| label.written_at()).cloned())
        .with("children", children)
}

pub(super) fn path(loaded: &Loaded, path: &[&Entry]) -> Object {
    let entries = path.iter().map(|entry| {
        let parent = entry.parent_id().map_or(Json::Null, |parent| loaded.shown(parent).into());
        let object = Object::new().with_some("id", entry.id().map(|id| loaded.shown(id))).with("parent", parent);
        let object = object.with_some("type", entry.type_name()).with_some("role", entry.role());
        object.with_some("timestamp", entry.timestamp()).into()
    });
    let entries = Json::Array(entries.collect());
    with_leaf(ok(), loaded, loaded.leaf()).with("path", entries)
}

pub(super) fn labels(loaded: &Loaded) -> Object {
    let labels = loaded.tree.labels().into_iter().map(|(target, mark)| {
        let object = Object::new().with("id", loaded.shown(target)).with("label", mark.text.as_str());
        object.with_some("timestamp", mark.timestamp.as_deref()).into()
    });
    ok().with("labels", Json::Array(labels.collect()))
}

pub(super) fn plan(loaded: &Loaded, plan: Option<&CompactionPlan<'_>>) -> Object {
    let Some(plan) = plan else { return ok().with("nothing", true) };
    let list = |files: &[String]| Json::Array(files.iter().map(|file| file.as_str().into()).collect());
    let files = Object::new()
        .with("read", list(&plan.files.read))
        .with("written", list(&plan.files.written))
        .with("edited", list(&plan.files.edited));
    ok().with("firstKeptEntryId", loaded.shown(plan.first_kept))
        .with("isSplitTurn", plan.is_split_turn)
        .with("tokensBefore", plan.tokens_before)
        .with_some("previousSummary", plan.previous_summary)
        .with("messagesToSummarize", plan.history.len() as u64)
        .with("turnPrefixMessages", plan.turn_prefix.len() as u64)
        .with("fileOps", files)
}
