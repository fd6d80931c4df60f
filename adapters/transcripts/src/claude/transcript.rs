//! Transcripts: `projects/<folder>/<session>.jsonl` and the sub-agents' files beside them.
//!
//! What the format asks of a reader (2.1.328):
//! - One message of the model is several lines, one a block, with the same `message.id`; each has
//!   the final stop reason and the whole usage. Each line is put out as `assistant.message` with
//!   that id; ingest merges them.
//! - A `user` line may be a prompt, a tool's result, a machine's remark, an interrupt.
//! - A fork's file begins with copies of its parent's lines: same uuids, same times, its own
//!   `sessionId`. Lines of the model also carry `session_id`, the session their process began with.
//!   In copies that is the session they were first written in; a copied line is handed to it, so
//!   that it does not matter which of the two files is read first. Lines without it follow their
//!   neighbours: prompts the next line, others the one before.
//! - `/branch` marks every copy (`forkedFrom`); what is not marked there is the session's own.
//!   `--fork-session` marks nothing: there the copies end with the first line that has the file's
//!   own id. After `/clear` and `/branch` the process goes on under the `session_id` it began with,
//!   so that in a file begun by `/clear`, and behind the first line of a session's own, it says
//!   nothing.
//! - A dialog leaves no trace here; that is the registry's to say.

use std::sync::Arc;

use events::{
    Annotation, AssistantDelta, AssistantMessage, Claim, CompactTrigger, Confidence, ContextCompacted, ErrorReported,
    Identity, NewEvent, Payload, PromptOrigin, Provider, QuestionAnswered, QuestionAsked, Repeat, SessionForked,
    SessionStarted, Severity, Signal, StartKind, Stop, Timestamp, ToolCall, ToolOutcome, ToolResult, Topic,
    TurnOutcome, UsageReported, UserPrompt,
};
use serde::{Deserialize, Serialize};

use super::record::{Block, Class, Content, Input, Line, Question, classify};
use super::words::{Who, api_error, between, command_name, text_block, title, tool_kind, who};
use agents::borrowed::Text;
use tailer::decode::{Decoded, Decoder, Malformed, Record, line_identity};

const CLAUDE: Provider = Provider::Claude;

/// Block numbers of identities, so that several events of one line differ.
const CALL: u32 = 1_000;
const QUESTION: u32 = 2_000;
const ANSWER: u32 = 3_000;
const EXTRA: u32 = 4_000;

/// What is written where an answer would stand, but none was asked for.
const NO_RESPONSE: &str = "No response requested.";

/// Questions without an answer that are remembered.
const OPEN_QUESTIONS: usize = 16;

/// What a transcript's decoder carries from line to line.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Carried {
    cwd: Option<String>,
    branch: Option<String>,
    version: Option<String>,
    mode: Option<String>,
    title: Option<String>,
    started: bool,
    prompted: bool,
    /// The last message whose usage was counted.
    counted: Option<String>,
    /// A permission was refused and the turn's end has not been seen yet.
    denied: bool,
    questions: Vec<String>,
    /// The session the copies at the start of a fork's file come from; empty once its own lines
    /// have begun.
    copying: Option<String>,
    /// Whether the copies are marked.
    branched: bool,
    /// Whether its own lines have begun: no copies follow.
    own: bool,
}

/// Decodes one transcript.
pub struct TranscriptDecoder {
    session: Arc<str>,
    parent: Option<Arc<str>>,
    carried: Carried,
    foreign: Option<Arc<str>>,
    held: Vec<NewEvent>,
}

impl TranscriptDecoder {
    /// A decoder for the transcript at `path`, going on from `state`.
    #[must_use]
    pub fn new(path: &str, state: Option<&str>) -> Self {
        let mut parts = path.rsplit('/');
        let stem = parts.next().unwrap_or_default().strip_suffix(".jsonl").unwrap_or_default();
        let parent = match stem.strip_prefix("agent-") {
            Some(_) if parts.next() == Some("subagents") => parts.next().map(Arc::from),
            _ => None,
        };
        let session: Arc<str> = Arc::from(if parent.is_some() { stem.trim_start_matches("agent-") } else { stem });
        let carried: Carried = state.and_then(|s| serde_json::from_str(s).ok()).unwrap_or_default();
        let foreign = carried.copying.as_deref().map(Arc::from);
        Self { session, parent, carried, foreign, held: Vec::new() }
    }

    fn identity(line: &Line<'_>, record: &Record<'_>, session: &str, block: u32) -> (Identity, Repeat) {
        match &line.uuid {
            Some(uuid) => (Identity::record(CLAUDE, uuid, block), Repeat::Unique),
            None => (line_identity(CLAUDE, session, record.bytes, block), Repeat::Next),
        }
    }

    /// Puts an event out, in the session its line belongs to.
    #[expect(clippy::too_many_arguments, reason = "the parts of one event")]
    fn emit(
        &self,
        line: &Line<'_>,
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
        event.created_at = line.timestamp.as_deref().and_then(Timestamp::parse);
        event.text = text;
        out.push(event);
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one event")]
    fn annotate(
        &self,
        line: &Line<'_>,
        record: &Record<'_>,
        owner: &Arc<str>,
        block: u32,
        topic: Topic,
        value: &str,
        out: &mut Decoded,
    ) {
        self.emit(line, record, owner, block, Annotation { topic, value: value.to_owned() }, None, out);
    }

    /// Folder, branch, version: told by nearly every line, put out when they change.
    fn note_base(&mut self, line: &Line<'_>, record: &Record<'_>, out: &mut Decoded) {
        let session = Arc::clone(&self.session);
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
        for (index, (topic, value)) in changed.into_iter().enumerate() {
            self.annotate(line, record, &session, EXTRA + 10 + index as u32, topic, &value, out);
        }
    }

    /// Whose line it is: the file's own session, or the one a fork copied it from.
    fn owner(&mut self, line: &Line<'_>, record: &Record<'_>, out: &mut Decoded) -> Arc<str> {
        let own = Arc::clone(&self.session);
        if self.parent.is_some() || self.carried.own {
            return own;
        }
        let parent = line.copied_from();
        let is_own = line.first_session_id.as_deref() == Some(&*own) || self.carried.branched;
        if parent.is_none() && is_own {
            self.begin_own(out);
            return own;
        }
        let owner = match (line.first_session_id.as_deref(), parent) {
            (Some(first), _) => {
                let first: Arc<str> = Arc::from(first);
                self.copy(parent.unwrap_or(&first), &first, record, out);
                first
            }
            (None, Some(parent)) => self.copied(parent, record, out),
            (None, None) => self.foreign.clone().unwrap_or(own),
        };
        self.release(Some(&owner), out);
        owner
    }

    /// Notes a marked copy that does not say where it was first written; gives its neighbours'
    /// session.
    fn copied(&mut self, parent: &str, record: &Record<'_>, out: &mut Decoded) -> Arc<str> {
        self.carried.branched = true;
        let owner = self.foreign.clone().unwrap_or_else(|| Arc::from(parent));
        self.copy(parent, &owner, record, out);
        owner
    }

    /// Notes that lines are copies: of `parent`'s, first written in `first`.
    fn copy(&mut self, parent: &str, first: &Arc<str>, record: &Record<'_>, out: &mut Decoded) {
        if self.foreign.is_none() {
            let identity = Identity::of(CLAUDE, "forked", &[self.session.as_bytes(), parent.as_bytes()]);
            out.push(out.event(record, &self.session, identity, SessionForked { from: parent.to_owned(), at: None }));
        }
        if self.foreign.as_ref() != Some(first) {
            self.carried.copying = Some(first.to_string());
            self.foreign = Some(Arc::clone(first));
        }
    }

    /// The copies, if there were any, are over.
    fn begin_own(&mut self, out: &mut Decoded) {
        self.release_rest(out);
        self.foreign = None;
        self.carried.copying = None;
        self.carried.own = true;
    }

    /// Puts out held prompts that no line followed: a marked one is a copy, any other the first of
    /// the session's own.
    fn release_rest(&mut self, out: &mut Decoded) {
        let copied = self.foreign.clone().filter(|_| self.carried.branched);
        self.release(copied.as_ref(), out);
    }

    /// Puts out the held prompts, in the session that turned out to be theirs.
    fn release(&mut self, session: Option<&Arc<str>>, out: &mut Decoded) {
        for mut event in self.held.drain(..) {
            if let Some(session) = session {
                event.provider_session_id = Arc::clone(session);
            }
            out.push(event);
        }
    }

    /// Whether a prompt must wait for the next line to know whose it is.
    fn undecided(&self, line: &Line<'_>) -> bool {
        let marked = line.forked_from.is_some();
        self.parent.is_none()
            && !self.carried.own
            && line.first_session_id.is_none()
            && (marked || !self.carried.branched)
    }

    fn user(&mut self, mut line: Line<'_>, record: &Record<'_>, out: &mut Decoded) {
        let undecided = self.undecided(&line);
        let owner = match (undecided, line.copied_from()) {
            (true, Some(parent)) => self.copied(parent, record, out),
            (true, None) => Arc::clone(&self.session),
            (false, _) => self.owner(&line, record, out),
        };
        let before = out.events.len();
        let Some(message) = line.message.take() else { return };
        match message.content {
            Content::Empty => {}
            Content::Text(text) => self.prompt(&line, record, &owner, text, 0, out),
            Content::Blocks(blocks) => self.user_blocks(&line, record, &owner, blocks, out),
        }
        if undecided && !self.carried.own {
            self.held.extend(out.events.drain(before..));
        }
    }

    fn user_blocks(
        &mut self,
        line: &Line<'_>,
        record: &Record<'_>,
        owner: &Arc<str>,
        blocks: Vec<Block<'_>>,
        out: &mut Decoded,
    ) {
        let mut texts: Option<Text<'_>> = None;
        let mut attachments = 0;
        for (index, block) in blocks.into_iter().enumerate() {
            match &*block.kind {
                "tool_result" => self.result(line, record, owner, block, index as u32, out),
                "text" => {
                    let Some(text) = block.text else { continue };
                    texts = Some(match texts.take() {
                        None => text,
                        Some(first) => Text(format!("{}\n{}", &*first, &*text).into()),
                    });
                }
                _ => attachments += 1,
            }
        }
        if let Some(text) = texts {
            self.prompt(line, record, owner, text, attachments, out);
        } else if attachments > 0 {
            self.prompt(line, record, owner, Text("(attachment)".into()), attachments, out);
        }
    }

    fn result(
        &mut self,
        line: &Line<'_>,
        record: &Record<'_>,
        owner: &Arc<str>,
        block: Block<'_>,
        index: u32,
        out: &mut Decoded,
    ) {
        let call_id = block.tool_use_id.map(Text::into_string).unwrap_or_default();
        let outcome = match line.tool_denial_kind.as_deref() {
            Some("user-rejected") if line.tool_denial_before_run => {
                self.carried.denied = true;
                ToolOutcome::Denied
            }
            Some("user-rejected") => ToolOutcome::Cancelled,
            Some(_) => ToolOutcome::Blocked,
            None if block.is_error == Some(true) => ToolOutcome::Error,
            None => ToolOutcome::Ok,
        };
        let text = block.content.text();
        let exit_code = match (&text, outcome) {
            (Some(text), ToolOutcome::Error) => {
                text.strip_prefix("Exit code ").and_then(|t| t.split_whitespace().next()).and_then(|n| n.parse().ok())
            }
            _ => None,
        };
        let parent = line.source_tool_assistant_uuid.as_deref().map(|uuid| Identity::record(CLAUDE, uuid, CALL));
        let result = ToolResult { call_id: call_id.clone(), outcome, exit_code, duration_ms: None, detail: false };
        self.emit(line, record, owner, index, result, text, out);
        if let Some(event) = out.events.last_mut() {
            event.parent = parent;
            if outcome == ToolOutcome::Error {
                event.severity = Some(Severity::Warning);
            }
        }
        if let Some(at) = self.carried.questions.iter().position(|q| *q == call_id) {
            self.carried.questions.remove(at);
            self.emit(line, record, owner, ANSWER + index, QuestionAnswered { call_id: Some(call_id) }, None, out);
        }
    }

    fn prompt(
        &mut self,
        line: &Line<'_>,
        record: &Record<'_>,
        owner: &Arc<str>,
        text: Text<'_>,
        attachments: u32,
        out: &mut Decoded,
    ) {
        let start = text.trim_start();
        if start.starts_with("[Request interrupted by user") {
            let outcome =
                if std::mem::take(&mut self.carried.denied) { TurnOutcome::Denied } else { TurnOutcome::Interrupted };
            self.end(line, record, owner, outcome, 0, "[Request interrupted by user]", out);
            return;
        }
        let origin = match who(line, start, self.parent.is_some() && !self.carried.prompted) {
            Who::Prompt(origin) => origin,
            Who::Command(name) => {
                if name == "/clear" && self.foreign.is_none() && !self.carried.own {
                    self.begin_own(out);
                }
                self.annotate(line, record, owner, EXTRA, Topic::Command, &name, out);
                return;
            }
            Who::Machine => return,
        };
        self.carried.prompted = true;
        self.carried.denied = false;
        let text = match origin {
            PromptOrigin::Command => {
                between(start, "<bash-input>", "</bash-input>").map_or_else(|| start.to_owned(), |c| format!("!{c}"))
            }
            PromptOrigin::Human | PromptOrigin::Steering | PromptOrigin::Wakeup | PromptOrigin::Agent => {
                text.into_string()
            }
        };
        self.emit(line, record, owner, 0, UserPrompt { origin, attachments, provider_turn_id: None }, Some(text), out);
    }

    fn assistant(&mut self, mut line: Line<'_>, record: &Record<'_>, out: &mut Decoded) {
        if self.parent.is_none()
            && !self.carried.own
            && line.first_session_id.is_none()
            && line.forked_from.is_none()
            && self.foreign.is_none()
        {
            // Older versions do not tell, and what never tells cannot be waited for.
            self.begin_own(out);
        }
        let owner = self.owner(&line, record, out);
        let Some(message) = line.message.take() else { return };
        if line.is_api_error_message {
            let error = api_error(&line);
            self.emit(&line, record, &owner, 0, error, message.content.text(), out);
            if let Some(event) = out.events.last_mut() {
                event.severity = Some(Severity::Error);
            }
            return;
        }
        let synthetic = message.model.as_deref() == Some("<synthetic>");
        if synthetic && message.content.is_text(NO_RESPONSE) {
            // Stands for an answer when a session is taken up behind a command; nobody said it.
            self.annotate(&line, record, &owner, EXTRA, Topic::Notice, NO_RESPONSE, out);
            return;
        }
        let message_id = message.id.map(Text::into_string);
        let model = message.model.filter(|_| !synthetic).map(Text::into_string);
        let stop = match message.stop_reason.as_deref() {
            _ if line.is_aborted_mid_stream => Some(Stop::Aborted),
            Some("end_turn" | "stop_sequence") => Some(Stop::EndTurn),
            Some("tool_use") => Some(Stop::ToolUse),
            Some("max_tokens") => Some(Stop::MaxTokens),
            Some("refusal") => Some(Stop::Refusal),
            Some(_) => Some(Stop::Other),
            None => None,
        };
        let blocks = match message.content {
            Content::Blocks(blocks) => blocks,
            Content::Text(text) => vec![text_block(text)],
            Content::Empty => Vec::new(),
        };
        for (index, block) in blocks.into_iter().enumerate() {
            let index = index as u32;
            let is_call = matches!(&*block.kind, "tool_use" | "server_tool_use" | "mcp_tool_use");
            if let Some(thinking) = block.thinking {
                // Its stop reason is the message's; the text that follows ends the turn, not this.
                let part = AssistantDelta {
                    message_id: message_id.clone(),
                    block: events::Block::Thinking,
                    stop: None,
                    blocks: 1,
                };
                let text = Some(thinking.into_string()).filter(|t| !t.is_empty());
                self.emit(&line, record, &owner, index, part, text, out);
                continue;
            }
            let said = AssistantMessage {
                message_id: message_id.clone(),
                model: model.clone(),
                stop,
                blocks: 1,
                tool_calls: u32::from(is_call),
                thinking: None,
            };
            let text = block.text.map(Text::into_string).filter(|t| !t.is_empty());
            self.emit(&line, record, &owner, index, said, text, out);
            if is_call {
                self.call(&line, record, &owner, block.id, block.name, block.input.map(|i| i.get()), index, out);
            }
        }
        if let (Some(tokens), Some(id), false) = (message.usage, message_id, synthetic)
            && self.carried.counted.as_deref() != Some(&id)
        {
            let usage = UsageReported {
                message_id: Some(id.clone()),
                model,
                input_tokens: tokens.input_tokens.unwrap_or(0),
                output_tokens: tokens.output_tokens.unwrap_or(0),
                cache_read_tokens: tokens.cache_read_input_tokens.unwrap_or(0),
                cache_write_tokens: tokens.cache_creation_input_tokens.unwrap_or(0),
            };
            let mut event = out.event(record, &owner, Identity::of(CLAUDE, "usage", &[id.as_bytes()]), usage);
            event.created_at = line.timestamp.as_deref().and_then(Timestamp::parse);
            out.push(event);
            self.carried.counted = Some(id);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one block")]
    fn call(
        &mut self,
        line: &Line<'_>,
        record: &Record<'_>,
        owner: &Arc<str>,
        id: Option<Text<'_>>,
        name: Option<Text<'_>>,
        input: Option<&str>,
        index: u32,
        out: &mut Decoded,
    ) {
        let call_id = id.map(Text::into_string).unwrap_or_default();
        let name = name.map(Text::into_string).unwrap_or_default();
        let tool = tool_kind(&name);
        let parsed: Input<'_> = input.and_then(|i| serde_json::from_str(i).ok()).unwrap_or_default();
        let question = parsed
            .questions
            .and_then(|q| serde_json::from_str::<Vec<Question<'_>>>(q.get()).ok())
            .and_then(|q| q.into_iter().next());
        let title =
            question.as_ref().map(|q| q.question.0.to_string()).or_else(|| title(tool, &parsed)).or_else(|| {
                name.starts_with("mcp__").then(|| name.trim_start_matches("mcp__").replacen("__", ": ", 1))
            });
        let background = parsed.run_in_background == Some(true);
        let payload = ToolCall { call_id: call_id.clone(), name, tool, title, escalated: false, background };
        self.emit(line, record, owner, CALL + index, payload, input.map(str::to_owned), out);
        if let Some(question) = question {
            let options = question.options.into_iter().map(|c| c.label.into_string()).collect();
            let text = Some(question.question.into_string());
            self.emit(
                line,
                record,
                owner,
                QUESTION + index,
                QuestionAsked { call_id: Some(call_id.clone()), options },
                text,
                out,
            );
            if self.carried.questions.len() == OPEN_QUESTIONS {
                self.carried.questions.remove(0);
            }
            self.carried.questions.push(call_id);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one signal")]
    fn end(
        &self,
        line: &Line<'_>,
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

    fn system(&mut self, mut line: Line<'_>, record: &Record<'_>, out: &mut Decoded) {
        let owner = self.owner(&line, record, out);
        let content = line.content.take().and_then(Content::text);
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
                if let Some(name) = content.as_deref().and_then(command_name) {
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
            Some("stop_hook_summary") => {}
            other => self.unknown(&line, record, &owner, &format!("system/{}", other.unwrap_or("")), out),
        }
    }

    fn unknown(&self, line: &Line<'_>, record: &Record<'_>, owner: &Arc<str>, raw_kind: &str, out: &mut Decoded) {
        let (identity, repeat) = Self::identity(line, record, owner, 0);
        out.unrecognized(record, owner, identity, raw_kind, line.timestamp.as_deref().and_then(Timestamp::parse));
        if let Some(event) = out.events.last_mut() {
            event.repeat = repeat;
        }
    }
}

impl Decoder for TranscriptDecoder {
    fn record(&mut self, record: Record<'_>, out: &mut Decoded) -> Result<(), Malformed> {
        if classify(record.bytes) == Class::Skip {
            return Ok(());
        }
        let line: Line<'_> = serde_json::from_slice(record.bytes)?;
        self.note_base(&line, &record, out);
        let own = Arc::clone(&self.session);
        match &*line.kind {
            "user" => self.user(line, &record, out),
            "assistant" => self.assistant(line, &record, out),
            "system" => self.system(line, &record, out),
            "queue-operation" => {
                let content = match &line.content {
                    Some(Content::Text(text)) => Some(&**text),
                    _ => None,
                };
                if !content.is_some_and(|c| c.trim_start().starts_with('<')) {
                    let operation = line.operation.as_deref().unwrap_or("");
                    let value = content.map_or_else(|| operation.to_owned(), |c| format!("{operation}: {c}"));
                    self.annotate(&line, &record, &own, 0, Topic::Queue, &value, out);
                }
            }
            "permission-mode" => {
                if let Some(mode) = line.permission_mode.as_deref()
                    && self.carried.mode.as_deref() != Some(mode)
                {
                    self.carried.mode = Some(mode.to_owned());
                    self.annotate(&line, &record, &own, 0, Topic::PermissionMode, mode, out);
                }
            }
            "custom-title" | "ai-title" | "summary" => {
                let title = line.custom_title.as_deref().or(line.summary.as_deref());
                if let Some(title) = title.filter(|t| self.carried.title.as_deref() != Some(t)) {
                    let title = title.to_owned();
                    self.annotate(&line, &record, &own, 0, Topic::Title, &title, out);
                    self.carried.title = Some(title);
                }
            }
            "last-prompt" => {
                if line.explicit {
                    let at = line.leaf_uuid.as_deref().map(str::to_owned);
                    self.emit(&line, &record, &own, 0, SessionForked { from: own.to_string(), at }, None, out);
                }
            }
            "attachment" | "progress" => {}
            skipped if classify(format!("{{\"type\":\"{skipped}\"").as_bytes()) == Class::Skip => {}
            other => {
                let raw_kind = other.to_owned();
                self.unknown(&line, &record, &own, &raw_kind, out);
            }
        }
        Ok(())
    }

    fn pause(&mut self, out: &mut Decoded) {
        self.release_rest(out);
    }

    fn state(&self) -> Option<String> {
        serde_json::to_string(&self.carried).ok()
    }

    fn session(&self) -> Option<&Arc<str>> {
        Some(&self.session)
    }
}
