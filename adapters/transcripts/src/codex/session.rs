//! The session of a rollout: its id, its origin, and its settings.

use events::{Annotation, SessionForked, SessionStarted, StartKind, Topic};

use super::{
    memory::CodexMemory,
    records::{Field, Git, Helper, HistoryBase, Mode, SessionMeta, Settings, SettingsApplied, ThreadChange},
    writer::EventWriter,
};

/// `session_meta`. The first one names the file's thread. Older forks copy their parent's records, including its
/// `session_meta`: later ones only name the thread these records come from.
///
/// A fork names its parent in `forked_from_id` (0.169.0, S14-resume-fork). A file written after a rewind continues the
/// same thread; its `history_base` refers to the thread's own earlier file.
pub(super) fn meta(meta: SessionMeta<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    if memory.thread.is_some() {
        let of_another = meta.id.name().filter(|id| memory.thread.as_deref() != Some(id));
        memory.root = of_another.map(std::borrow::Cow::into_owned).or(memory.root.take());
        return;
    }
    let Some(thread) = meta.id.name() else {
        w.unrecognized("session_meta");
        return;
    };
    w.set_session(&thread);
    memory.thread = Some(thread.clone().into_owned());

    let helper = Helped::read(&meta);
    let parent = helper.as_ref().and_then(|helper| helper.parent.clone());
    let forked_from = meta.forked_from_id.name().filter(|from| *from != thread);
    memory.root = forked_from.clone().map(Into::into);
    memory.subagent = helper.is_some();
    memory.cwd = meta.cwd.text();

    let started = SessionStarted {
        how: match (&helper, &forked_from) {
            (Some(_), _) => StartKind::Subagent,
            (None, Some(_)) => StartKind::Fork,
            (None, None) => StartKind::New,
        },
        cwd: memory.cwd.clone(),
        git_branch: meta.git.parse::<Git<'_>>().and_then(|git| git.branch.text()),
        cli_version: meta.cli_version.text(),
        parent_provider_session_id: parent,
        agent_type: helper.and_then(|helper| helper.kind),
        // `codex exec`; other values are `cli` and `vscode`.
        headless: (meta.source.name().as_deref() == Some("exec")).then_some(true),
        ..SessionStarted::default()
    };
    // The event is the same whichever of the thread's files is read first.
    let event = w.event("session", Some(&thread), started);
    w.push(event);

    if let Some(from) = forked_from {
        let at = meta.forked_from_ordinal_exclusive.parse::<u64>();
        forked(&from, at, w);
    }
    let base = meta.history_base.parse::<HistoryBase<'_>>().unwrap_or_default();
    if base.thread_id.name().is_some_and(|from| from == thread) {
        forked(&thread, base.end_ordinal_exclusive.parse::<u64>(), w);
    }
}

/// A line's id is its ordinal, which continues through forks and rewinds.
fn forked(from: &str, end_ordinal: Option<u64>, w: &mut EventWriter<'_, '_>) {
    let at = end_ordinal.and_then(|end| end.checked_sub(1)).map(|last| last.to_string());
    let id = format!("{from}@{}", at.as_deref().unwrap_or_default());
    let event = w.event("fork", Some(&id), SessionForked { from: from.to_owned(), at, ..SessionForked::default() });
    w.push(event);
}

/// A sub-agent's parent and kind according to `session_meta`.
struct Helped {
    parent: Option<String>,
    kind: Option<String>,
}

impl Helped {
    /// `source` is a string such as `"cli"`, or `{"subagent": …}` with the name of a built-in sub-agent or with
    /// `thread_spawn` (0.169.0, S12-subagent). `session_id` is that of the root thread.
    fn read(meta: &SessionMeta<'_>) -> Option<Self> {
        let source = meta.source.parse::<Helper<'_>>().and_then(|source| source.subagent);
        let said = meta.thread_source.name().is_some_and(|source| source == "subagent");
        if source.is_none() && !said {
            return None;
        }
        let inner = source.parse::<Helper<'_>>().unwrap_or_default();
        let spawn = inner.thread_spawn.parse::<Helper<'_>>().unwrap_or_default();
        let root = meta.session_id.text().filter(|root| Some(root.as_str()) != meta.id.name().as_deref());
        Some(Self {
            parent: meta.parent_thread_id.text().or_else(|| spawn.parent_thread_id.text()).or(root),
            kind: meta
                .agent_path
                .text()
                .or_else(|| spawn.agent_path.text())
                .or_else(|| spawn.agent_role.text())
                .or_else(|| source.text())
                .or_else(|| inner.other.text()),
        })
    }
}

/// `turn_context`: the settings of the turn that is starting.
pub(super) fn turn_context(settings: &Settings<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    put_if_changed(Topic::Model, settings.model.text(), &mut memory.model, w);
    put_if_changed(Topic::Cwd, settings.cwd.text(), &mut memory.cwd, w);
    put_if_changed(Topic::PermissionMode, permission_mode(settings), &mut memory.permission_mode, w);
}

/// The context that Codex injects: in the bare form, the only record that names the working directory.
pub(super) fn environment(text: &str, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let cwd = text.split_once("<cwd>").and_then(|(_, rest)| rest.split_once("</cwd>")).map(|(cwd, _)| cwd.to_owned());
    put_if_changed(Topic::Cwd, cwd, &mut memory.cwd, w);
}

/// `thread_settings_applied`: the settings were changed or repeated.
pub(super) fn settings(applied: &SettingsApplied<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    if let Some(settings) = applied.thread_settings.parse::<Settings<'_>>() {
        turn_context(&settings, memory, w);
    }
}

/// `plan` in plan mode, otherwise the approval policy. A policy that is an object is reported as JSON.
fn permission_mode(settings: &Settings<'_>) -> Option<String> {
    let mode = settings.collaboration_mode.parse::<Mode<'_>>().and_then(|mode| mode.mode.name());
    if mode.as_deref() == Some("plan") {
        return mode.map(std::borrow::Cow::into_owned);
    }
    let policy = settings.approval_policy?;
    policy.text().or_else(|| Some(policy.json().to_owned()))
}

/// Emits a value if it differs from the last one.
fn put_if_changed(topic: Topic, value: Option<String>, last: &mut Option<String>, w: &mut EventWriter<'_, '_>) {
    if value.is_none() || value == *last {
        return;
    }
    *last = value;
    annotate(topic, last.clone().unwrap_or_default(), w);
}

pub(super) fn annotate(topic: Topic, value: String, w: &mut EventWriter<'_, '_>) {
    let event = w.event("annotation", None, Annotation { topic, value });
    w.push(event);
}

/// `thread_rolled_back` (read): the older form of a rewind, in place.
pub(super) fn rolled_back(change: &ThreadChange<'_>, w: &mut EventWriter<'_, '_>) {
    let from = w.session().to_owned();
    let turns = change.num_turns.parse::<u32>();
    let mut event = w.event("fork", None, SessionForked { from, turns, ..SessionForked::default() });
    event.text = turns.map(|turns| format!("{turns} turns taken back"));
    w.push(event);
}

/// `thread_name_updated` (read): the thread's title.
pub(super) fn renamed(change: &ThreadChange<'_>, w: &mut EventWriter<'_, '_>) {
    if let Some(title) = change.thread_name.text() {
        annotate(Topic::Title, title, w);
    }
}
