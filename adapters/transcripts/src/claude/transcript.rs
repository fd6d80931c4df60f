//! Transcripts: `projects/<folder>/<session>.jsonl` and the sub-agents' files beside them.
//!
//! Properties of the format that a reader must handle (2.1.328):
//! - A message of the model is spread over several lines, one per block, with the same `message.id`; each has the final
//!   stop reason and the whole usage. Each line is emitted as `assistant.message` with that id; ingest merges them.
//! - A `user` line may be a prompt, a tool result, a remark by Claude Code, or an interrupt.
//! - A fork's file begins with copies of its parent's lines: same uuids and times, but the fork's `sessionId`. Lines of
//!   the model also have `session_id`, the session in which their process started. In copies it names the session they
//!   were first written in; a copied line is attributed to that session, so the order in which the two files are read
//!   does not matter. Lines without it are attributed like their neighbours: prompts like the next line, others like
//!   the previous one.
//! - `/branch` marks every copy (`forkedFrom`); unmarked lines belong to the session itself. `--fork-session` marks
//!   nothing: there the copies end at the first line with the file's own id. After `/clear` and `/branch` the process
//!   keeps the `session_id` it started with, so the field is meaningless in a file started by `/clear` and after the
//!   first line that is the session's own.
//! - Up to 1.0.x, resuming a session also creates a new file. It begins with copies under the same uuids: prompts keep
//!   their `sessionId` and time, all other lines have those of the new file. Each prompt determines the session of the
//!   lines after it.
//! - Sub-agents have separate files: below `<session>/subagents`, in 2.0.x next to the session's file as
//!   `agent-<id>.jsonl`. Up to 1.0.x their lines are interleaved with those of the session.
//! - Dialogs are not recorded here; the registry reports them.
//! - Up to 2.1.101 lines are written while the message streams, and in many versions no line has a stop reason. A text
//!   may then be the end of the turn; `ends` decides how certain that is.
//!
//! `copies` handles forks, `user` prompts and results, `assistant` messages and calls, `ends` ends without a stop
//! reason, and `account` the process's own accounting.

mod account;
mod assistant;
mod copies;
mod ends;
mod sidechains;
mod state;
mod user;

use std::sync::Arc;

use events::{
    Annotation, Claim, CompactTrigger, Confidence, ContextCompacted, ErrorReported, Identity, NewEvent, Payload,
    Provider, Repeat, SessionForked, SessionStarted, Signal, StartKind, Timestamp, Topic, TurnOutcome,
};

use super::record::{ClaudeLine, LineClass, MessageContent, classify};
use super::{
    parent_of,
    words::{api_error, command},
};
use agents::borrowed::Text;
use tailer::decode::{Decoded, Decoder, Malformed, Record, line_identity};

use state::{ClaudeState, PendingSummary};

const CLAUDE: Provider = Provider::Claude;

/// Block numbers of identities, so that several events of one line differ.
const CALL: u32 = 1_000;
const QUESTION: u32 = 2_000;
const ANSWER: u32 = 3_000;
const EXTRA: u32 = 4_000;
const REWIND: u32 = 5_000;

/// The placeholder written where no answer was requested.
const NO_RESPONSE: &str = "No response requested.";

/// Maximum number of summaries remembered until the line they name is found.
const SUMMARIES: usize = 8;

/// Maximum number of unanswered questions remembered.
const OPEN_QUESTIONS: usize = 16;

/// Decodes one transcript.
pub struct TranscriptDecoder {
    session: Arc<str>,
    parent: Option<Arc<str>>,
    carried: ClaudeState,
    foreign: Option<Arc<str>>,
    held: Vec<HeldPrompt>,
}

/// A prompt held until a later line shows which session it belongs to.
struct HeldPrompt {
    event: NewEvent,
    /// The session it was written for, if that is not the file's session.
    written_for: Option<Arc<str>>,
}

impl TranscriptDecoder {
    /// A decoder for the transcript at `path` that continues from `state`.
    #[must_use]
    pub fn new(path: &str, state: Option<&str>) -> Self {
        let stem = path.rsplit('/').next().unwrap_or_default().strip_suffix(".jsonl").unwrap_or_default();
        let carried: ClaudeState = state.and_then(|s| serde_json::from_str(s).ok()).unwrap_or_default();
        let parent = stem.strip_prefix("agent-").and(parent_of(path)).or(carried.parent.as_deref()).map(Arc::from);
        let name = if parent.is_some() { stem.trim_start_matches("agent-") } else { stem };
        let session = Arc::from(carried.session.as_deref().unwrap_or(name));
        let foreign = carried.copying.as_deref().map(Arc::from);
        Self { session, parent, carried, foreign, held: Vec::new() }
    }

    /// Determines the session of a file that is not named after it: a sub-agent's file next to its session's, or a
    /// renamed file, which belongs to the session its lines name.
    fn identify(&mut self, line: &ClaudeLine<'_>) {
        let Some(session) = line.session_id.as_deref().filter(|_| !self.carried.started) else { return };
        if let (Some(agent), Some(true)) = (self.session.strip_prefix("agent-"), line.is_sidechain) {
            self.session = Arc::from(agent);
            self.parent = Some(Arc::from(session));
            self.carried.parent = Some(session.to_owned());
        } else if self.parent.is_none() && !is_uuid(&self.session) && is_uuid(session) {
            self.session = Arc::from(session);
            self.carried.session = Some(session.to_owned());
        }
    }

    /// The time of the event a line describes.
    fn time_of(&self, line: &ClaudeLine<'_>) -> Option<Timestamp> {
        let is_copied = self.carried.resumed && self.foreign.is_some();
        let written = || line.timestamp.as_deref().and_then(Timestamp::parse);
        self.carried.copied_at.filter(|_| is_copied).or_else(written)
    }

    fn identity(line: &ClaudeLine<'_>, record: &Record<'_>, session: &str, block: u32) -> (Identity, Repeat) {
        match &line.uuid {
            Some(uuid) => (Identity::record(CLAUDE, uuid, block), Repeat::Unique),
            None => (line_identity(CLAUDE, session, record.bytes, block), Repeat::Next),
        }
    }

    /// Emits an event in the session its line belongs to.
    #[expect(clippy::too_many_arguments, reason = "the parts of one event")]
    fn emit(
        &self,
        line: &ClaudeLine<'_>,
        record: &Record<'_>,
        owner: &Arc<str>,
        block: u32,
        payload: impl Into<Payload>,
        text: Option<String>,
        out: &mut Decoded,
    ) {
        let (identity, repeat) = Self::identity(line, record, owner, block);
        let mut event = out.event(record, owner, identity, payload);
        event.repeat = repeat;
        event.created_at = self.time_of(line);
        event.text = text;
        out.push(event);
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one event")]
    fn annotate(
        &self,
        line: &ClaudeLine<'_>,
        record: &Record<'_>,
        owner: &Arc<str>,
        block: u32,
        topic: Topic,
        value: &str,
        out: &mut Decoded,
    ) {
        self.emit(line, record, owner, block, Annotation { topic, value: value.to_owned() }, None, out);
    }

    /// Directory, branch and version: contained in nearly every line, emitted when they change.
    fn put_changed_facts(&mut self, line: &ClaudeLine<'_>, record: &Record<'_>, out: &mut Decoded) {
        let session = Arc::clone(&self.session);
        // A session can switch between headless and interactive when it is resumed.
        let headless = line.entrypoint.as_deref().map(is_headless);
        let turned = headless.filter(|now| self.carried.headless.replace(*now).unwrap_or_default() != *now);
        if !self.carried.started {
            if line.cwd.is_none() && line.uuid.is_none() {
                return;
            }
            self.carried.started = true;
            let text = |t: &Option<Text<'_>>| t.as_deref().map(str::to_owned);
            self.carried.cwd = text(&line.cwd);
            self.carried.branch = text(&line.git_branch);
            self.carried.version = text(&line.version);
            let started = SessionStarted {
                how: if self.parent.is_some() { StartKind::Subagent } else { StartKind::Unknown },
                cwd: text(&line.cwd),
                git_branch: text(&line.git_branch),
                model: None,
                cli_version: text(&line.version),
                parent_provider_session_id: self.parent.as_deref().map(str::to_owned),
                parent_session_id: None,
                agent_type: None,
                headless,
            };
            let identity = Identity::of(CLAUDE, "started", &[session.as_bytes()]);
            let mut event = out.event(record, &session, identity, started);
            event.created_at = line.timestamp.as_deref().and_then(Timestamp::parse);
            out.push(event);
            return;
        }
        let changes = [
            (Topic::Cwd, &line.cwd, &mut self.carried.cwd),
            (Topic::GitBranch, &line.git_branch, &mut self.carried.branch),
            (Topic::CliVersion, &line.version, &mut self.carried.version),
            (Topic::PermissionMode, &line.permission_mode, &mut self.carried.mode),
        ];
        let mut changed = Vec::new();
        for (topic, now, last) in changes {
            if let Some(now) = now
                && last.as_deref() != Some(&**now)
            {
                *last = Some(now.0.to_string());
                changed.push((topic, now.0.to_string()));
            }
        }
        if turned.is_some() {
            let started = SessionStarted { how: StartKind::Resume, headless: turned, ..SessionStarted::default() };
            self.emit(line, record, &session, EXTRA + 9, started, None, out);
        }
        for (index, (topic, value)) in changed.into_iter().enumerate() {
            self.annotate(line, record, &session, EXTRA + 10 + index as u32, topic, &value, out);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one signal")]
    fn end(
        &self,
        line: &ClaudeLine<'_>,
        record: &Record<'_>,
        owner: &Arc<str>,
        outcome: TurnOutcome,
        pending_subagents: u32,
        words: &str,
        out: &mut Decoded,
    ) {
        let signal =
            Signal::new(Claim::TurnEnded { outcome, pending_subagents }, Confidence::High, Some(words.to_owned()));
        self.emit(line, record, owner, EXTRA + 1, signal, None, out);
    }

    fn system(&mut self, mut line: ClaudeLine<'_>, record: &Record<'_>, out: &mut Decoded) {
        let owner = self.owner(&line, record, out);
        let content = line.content.take().and_then(MessageContent::text);
        match line.subtype.as_deref() {
            Some("turn_duration") => {
                let pending = line.pending_background_agent_count.unwrap_or(0);
                self.end(&line, record, &owner, TurnOutcome::Completed, pending, "turn_duration", out);
            }
            Some("compact_boundary") => {
                let meta = line.compact_metadata.as_ref();
                let payload = ContextCompacted {
                    trigger: meta.and_then(|m| m.trigger.as_deref()).and_then(|t| match t {
                        "manual" => Some(CompactTrigger::Manual),
                        "auto" => Some(CompactTrigger::Auto),
                        _ => None,
                    }),
                    tokens_before: meta.and_then(|m| m.pre_tokens),
                    tokens_after: meta.and_then(|m| m.post_tokens),
                };
                self.emit(&line, record, &owner, 0, payload, None, out);
            }
            Some("local_command") => {
                if let Some(name) = content.as_deref().map(str::trim_start).and_then(command) {
                    self.annotate(&line, record, &owner, 0, Topic::Command, &name, out);
                }
            }
            Some("informational") => {
                if let Some(content) = content {
                    self.annotate(&line, record, &owner, 0, Topic::Notice, &content, out);
                }
            }
            Some("api_error") => {
                let error = ErrorReported { ends_turn: false, retrying: true, ..api_error(&line) };
                self.emit(&line, record, &owner, 0, error, content, out);
            }
            // The hooks that run at the end of a turn have run, and no line has a stop reason.
            Some("stop_hook_summary") if std::mem::take(&mut self.carried.may_have_ended) => {
                self.likely_end(&line, record, &owner, None, Confidence::Low, "stop_hook_summary", out);
            }
            Some("stop_hook_summary" | "away_summary") => {}
            other => self.unknown(&line, record, &owner, &format!("system/{}", other.unwrap_or("")), out),
        }
    }

    fn unknown(&self, line: &ClaudeLine<'_>, record: &Record<'_>, owner: &Arc<str>, raw_kind: &str, out: &mut Decoded) {
        let (identity, repeat) = Self::identity(line, record, owner, 0);
        out.unrecognized(record, owner, identity, raw_kind, self.time_of(line));
        if let Some(event) = out.events.last_mut() {
            event.repeat = repeat;
        }
    }

    /// A summary is the title of the session that contains the line it names. Up to 2.0.x a new file begins with
    /// summaries of other sessions.
    fn summary(&mut self, line: &ClaudeLine<'_>, record: &Record<'_>, out: &mut Decoded) {
        let Some(title) = line.summary.as_deref() else { return };
        match line.leaf_uuid.as_deref() {
            Some(leaf) if self.carried.last_uuid.as_deref() != Some(leaf) => {
                let summaries = &mut self.carried.summaries;
                summaries.truncate(SUMMARIES - 1);
                summaries.push(PendingSummary { leaf: leaf.to_owned(), title: title.to_owned() });
            }
            _ => self.entitle(line, record, 0, title.to_owned(), out),
        }
    }

    /// Emits the pending summary that names this line.
    fn release_summary(&mut self, line: &ClaudeLine<'_>, record: &Record<'_>, out: &mut Decoded) {
        let Some(uuid) = line.uuid.as_deref() else { return };
        if let Some(at) = self.carried.summaries.iter().position(|summary| summary.leaf == uuid) {
            let PendingSummary { title, .. } = self.carried.summaries.remove(at);
            let before = out.events.len();
            self.entitle(line, record, EXTRA + 20, title, out);
            // A summary has no time, and the line may be a copy.
            out.events[before..].iter_mut().for_each(|event| event.created_at = None);
        }
        uuid.clone_into(self.carried.last_uuid.get_or_insert_default());
    }

    fn entitle(&mut self, line: &ClaudeLine<'_>, record: &Record<'_>, block: u32, title: String, out: &mut Decoded) {
        if self.carried.title.as_deref() != Some(&*title) {
            let own = Arc::clone(&self.session);
            self.annotate(line, record, &own, block, Topic::Title, &title, out);
            self.carried.title = Some(title);
        }
    }

    fn line(&mut self, line: ClaudeLine<'_>, record: &Record<'_>, out: &mut Decoded) {
        self.put_changed_facts(&line, record, out);
        self.release_summary(&line, record, out);
        let own = Arc::clone(&self.session);
        match &*line.kind {
            "user" => self.user(line, record, out),
            "assistant" => self.assistant(line, record, out),
            "system" => self.system(line, record, out),
            "queue-operation" => {
                let content = match &line.content {
                    Some(MessageContent::Text(text)) => Some(&**text),
                    _ => None,
                };
                if !content.is_some_and(|c| c.trim_start().starts_with('<')) {
                    let operation = line.operation.as_deref().unwrap_or("");
                    let value = content.map_or_else(|| operation.to_owned(), |c| format!("{operation}: {c}"));
                    self.annotate(&line, record, &own, 0, Topic::Queue, &value, out);
                }
            }
            "permission-mode" => {
                if let Some(mode) = line.permission_mode.as_deref()
                    && self.carried.mode.as_deref() != Some(mode)
                {
                    self.carried.mode = Some(mode.to_owned());
                    self.annotate(&line, record, &own, 0, Topic::PermissionMode, mode, out);
                }
            }
            "summary" => self.summary(&line, record, out),
            "custom-title" | "ai-title" => {
                let title = line.custom_title.as_deref().or(line.summary.as_deref());
                if let Some(title) = title.map(str::to_owned) {
                    self.entitle(&line, record, 0, title, out);
                }
            }
            "last-prompt" => {
                if line.explicit {
                    let at = line.leaf_uuid.as_deref().map(str::to_owned);
                    let taken_back = at.as_deref().and_then(|at| self.carried.prompts.go_back(at));
                    let rewind = SessionForked { from: own.to_string(), at, taken_back, turns: None };
                    self.emit(&line, record, &own, 0, rewind, None, out);
                }
            }
            "cost-state" if self.account(record, out) => {}
            "attachment" | "progress" | "pr-link" | "worktree-state" => {}
            skipped if classify(format!("{{\"type\":\"{skipped}\"").as_bytes()) == LineClass::Skip => {}
            other => {
                let raw_kind = other.to_owned();
                self.unknown(&line, record, &own, &raw_kind, out);
            }
        }
    }
}

/// Whether the entrypoint means that a program started the process and provides its prompts: `claude -p`, the SDKs, a
/// workflow (2.1.328: `cli`, `sdk-cli`, `sdk-ts`, `sdk-py`, `claude-code-github-action`; editors have other names).
fn is_headless(entrypoint: &str) -> bool {
    entrypoint.starts_with("sdk-") || entrypoint == "claude-code-github-action"
}

/// Whether a text has the format of a session id.
fn is_uuid(text: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| if dashes.contains(&at) { b == b'-' } else { b.is_ascii_hexdigit() })
}

impl Decoder for TranscriptDecoder {
    fn record(&mut self, record: Record<'_>, out: &mut Decoded) -> Result<(), Malformed> {
        if classify(record.bytes) == LineClass::Skip {
            return Ok(());
        }
        let line: ClaudeLine<'_> = serde_json::from_slice(record.bytes)?;
        self.identify(&line);
        if self.parent.is_none() && line.is_sidechain == Some(true) {
            self.sidechain(line, &record, out);
        } else {
            self.line(line, &record, out);
        }
        Ok(())
    }

    fn pause(&mut self, out: &mut Decoded) {
        self.release_resumed(out);
        self.release_rest(out);
    }

    fn state(&self) -> Option<String> {
        serde_json::to_string(&self.carried).ok()
    }

    fn session(&self) -> Option<&Arc<str>> {
        Some(&self.session)
    }
}
