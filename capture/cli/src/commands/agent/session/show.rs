//! The text output of the session commands.

use std::{collections::HashMap, fmt::Write as _, path::Path};

use session_tree::{Entry, EntryBody, Json, Object, compaction::CompactionPlan, context::text_of};

use super::file::Loaded;
use printing::safe;

/// Maximum number of characters of a text on one line.
const WIDTH: usize = 100;

pub(super) fn load(loaded: &Loaded, path: &Path) -> String {
    let header = loaded.tree.header();
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(out, "{name:<10} {}", safe(value));
    };
    line("file", &path.display().to_string());
    line("session", header.id());
    if let Some(name) = loaded.tree.name().or(loaded.title.as_deref()).filter(|name| !name.is_empty()) {
        line("name", name);
    }
    line("directory", header.cwd().unwrap_or("?"));
    line("began", header.timestamp().unwrap_or("?"));
    if let Some(parent) = header.parent_session() {
        line("fork of", parent);
    }
    line("entries", &loaded.tree.entries().len().to_string());
    line("leaf", &leaf(loaded, loaded.tree.leaf()));
    line("issues", &loaded.issues.len().to_string());
    if loaded.is_rewritten {
        line("note", "the file is rewritten when it is opened for writing");
    }
    out
}

fn leaf(loaded: &Loaded, leaf: Option<&Entry>) -> String {
    match leaf {
        None => "before the first entry".to_owned(),
        Some(leaf) => leaf.id().map_or_else(|| "an entry without an id".to_owned(), |id| loaded.shown(id)),
    }
}

pub(super) fn messages<'a>(messages: impl Iterator<Item = &'a Object>) -> String {
    let lines = messages.map(|message| format!("{:<18} {}", role(message), message_text(message)));
    let text = lines.collect::<Vec<_>>().join("\n");
    if text.is_empty() { "The context is empty.".to_owned() } else { text }
}

pub(super) fn path(loaded: &Loaded, path: &[&Entry]) -> String {
    if path.is_empty() {
        return "There are no entries before this point.".to_owned();
    }
    path.iter().map(|entry| line(loaded, entry)).collect::<Vec<_>>().join("\n")
}

/// The tree. Entries are indented only below a branch, so that a long conversation stays at the margin.
pub(super) fn tree(loaded: &Loaded) -> String {
    let outline = loaded.tree.outline();
    let at = loaded.tree.leaf().map(std::ptr::from_ref::<Entry>);
    let mut indents: HashMap<*const Entry, usize> = HashMap::new();
    let mut out = String::new();
    for node in outline.nodes.iter().filter(|node| !node.is_repeated) {
        let seen = |entry: &&&Entry| entry.leaf_move().is_none();
        let indent = indents.get(&std::ptr::from_ref(node.entry)).copied().unwrap_or_default();
        let below = indent + usize::from(node.children.iter().filter(seen).count() > 1);
        indents.extend(node.children.iter().map(|child| (std::ptr::from_ref::<Entry>(child), below)));
        if node.entry.leaf_move().is_some() {
            continue;
        }
        let label = node.label.map(|label| format!(" [{}]", safe(&label.text))).unwrap_or_default();
        let mark = if at == Some(std::ptr::from_ref(node.entry)) { " ← here" } else { "" };
        let _ = writeln!(out, "{:indent$}{}{label}{mark}", "", line(loaded, node.entry), indent = indent * 2);
    }
    if out.is_empty() { "The session has no entries.".to_owned() } else { out }
}

pub(super) fn labels(loaded: &Loaded) -> String {
    let labels = loaded.tree.labels();
    if labels.is_empty() {
        return "There are no labels.".to_owned();
    }
    let line = |id: &str, text: &str| {
        let on = loaded.tree.entry(id).map_or_else(|| format!("{id} (missing)"), |entry| line(loaded, entry));
        format!("{:<20} {}", safe(text), safe(&on))
    };
    labels.into_iter().map(|(id, mark)| line(id, &mark.text)).collect::<Vec<_>>().join("\n")
}

pub(super) fn plan(loaded: &Loaded, plan: Option<&CompactionPlan<'_>>) -> String {
    let Some(plan) = plan else { return "Nothing to compact.".to_owned() };
    let (read, modified) = plan.files.lists();
    let mut out = format!(
        "The context has about {} tokens. {} messages are summarized; everything from {} on is kept.",
        plan.tokens_before,
        plan.history.len(),
        loaded.shown(plan.first_kept),
    );
    if plan.is_split_turn {
        let _ = write!(out, "\nA turn is split: its first {} messages get a separate summary.", plan.turn_prefix.len());
    }
    if plan.previous_summary.is_some() {
        out.push_str("\nThe summary of the previous compaction is continued.");
    }
    for (name, files) in [("read", read), ("changed", modified)] {
        if !files.is_empty() {
            let _ = write!(out, "\n{name}: {}", safe(&files.join(", ")));
        }
    }
    out
}

/// An entry on one line.
fn line(loaded: &Loaded, entry: &Entry) -> String {
    let id = entry.id().map_or_else(|| "-".to_owned(), |id| loaded.shown(id));
    let (what, text) = match entry.body() {
        EntryBody::Message(Some(message)) => (role(message), message_text(message)),
        EntryBody::Message(None) => ("message".to_owned(), "(no message)".to_owned()),
        EntryBody::ThinkingLevelChange(level) => {
            ("thinking".to_owned(), level.and_then(Json::as_str).unwrap_or("?").to_owned())
        }
        EntryBody::ModelChange(model) => {
            let both =
                [model.provider, model.id].into_iter().flatten().filter_map(Json::as_str).collect::<Vec<_>>().join("/");
            ("model".to_owned(), model.both.map_or(both, str::to_owned))
        }
        EntryBody::Compaction(compaction) => ("compaction".to_owned(), short(compaction.summary().unwrap_or_default())),
        EntryBody::BranchSummary(summary) => {
            ("branch summary".to_owned(), short(summary.summary().unwrap_or_default()))
        }
        EntryBody::Custom(custom) => ("custom".to_owned(), custom.custom_type().unwrap_or("?").to_owned()),
        EntryBody::CustomMessage(message) => {
            let text = message.content().map(|content| text_of(content, " ")).unwrap_or_default();
            (message.custom_type().unwrap_or("custom").to_owned(), short(&text))
        }
        EntryBody::Label(label) => {
            let on = label.target.as_str().map_or_else(|| "?".to_owned(), |id| loaded.shown(id));
            (
                "label".to_owned(),
                format!("{} on {on}", label.text.map_or_else(|| "(removed)".to_owned(), Json::to_template)),
            )
        }
        EntryBody::SessionInfo(name) => ("name".to_owned(), name.unwrap_or_default().to_owned()),
        EntryBody::ContextEdit(edit) => {
            let on = edit.target.as_str().map_or_else(|| "?".to_owned(), |id| loaded.shown(id));
            let what = if edit.replacement == Some(&Json::Null) { "left out" } else { "replaced" };
            ("edit".to_owned(), format!("{on} {what}"))
        }
        EntryBody::SessionInit(_) | EntryBody::TtsrInjection(_) | EntryBody::Usage(_) | EntryBody::Unknown(_) => {
            (entry.type_name().unwrap_or("?").to_owned(), String::new())
        }
    };
    format!("{} {:<14} {}", safe(&id), safe(&what), safe(&text)).trim_end().to_owned()
}

fn role(message: &Object) -> String {
    safe(message.text("role").unwrap_or("?"))
}

fn message_text(message: &Object) -> String {
    let content = message.get("content").map(|content| text_of(content, " ")).unwrap_or_default();
    let said = ["summary", "command"].into_iter().find_map(|key| message.text(key));
    let blocks = message.get("content").and_then(Json::as_array).unwrap_or_default().iter();
    let calls = blocks.filter_map(Json::as_object).filter(|block| block.text("type") == Some("toolCall"));
    let calls: Vec<&str> = calls.filter_map(|call| call.text("name")).collect();
    let mut text = if content.is_empty() { said.unwrap_or_default().to_owned() } else { content };
    if !calls.is_empty() {
        let _ = write!(text, "{}→ {}", if text.is_empty() { "" } else { " " }, calls.join(", "));
    }
    short(&text)
}

/// A text on one line, shortened if it is too long.
fn short(text: &str) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if words.chars().count() > WIDTH {
            break;
        }
        words.push_str(if words.is_empty() { "" } else { " " });
        words.extend(word.chars().take(WIDTH + 1));
    }
    let cut: String = words.chars().take(WIDTH).collect();
    safe(&if cut.len() < words.len() { format!("{cut}…") } else { cut })
}
