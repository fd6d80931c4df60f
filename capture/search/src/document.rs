//! Decides which texts of an event are searchable, and collects the context of its session.

use std::{collections::HashMap, fmt, sync::Arc};

use api::search::TextKind;
use events::{
    ApprovalRequested, ApprovalResolved, ApprovalState, Block, Event, Finding, FindingState, Kind, Payload, SessionId,
    ToolKind, Topic, TurnId,
};
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use store::{ReadError, Reader};

use crate::tokens::floor;

/// Length of the searchable beginning of a text, bytes.
const HEAD_BYTES: usize = 16 << 10;
/// Length of the searchable end of a text, bytes.
const TAIL_BYTES: usize = 16 << 10;
/// Maximum number of sessions whose context is kept in memory.
const SESSIONS: usize = 512;
/// Maximum number of a session's calls remembered until their result.
const CALLS: usize = 256;
/// Number of calls before a result that are searched for its call.
const CALLS_BACK: usize = 64;

/// The kinds of events that contain a text, or change the context of later events.
pub(crate) const KINDS: &[Kind] = &[
    Kind::SessionStarted,
    Kind::TurnStarted,
    Kind::UserPrompt,
    Kind::AssistantDelta,
    Kind::AssistantMessage,
    Kind::ToolCall,
    Kind::ToolResult,
    Kind::ApprovalRequested,
    Kind::ApprovalResolved,
    Kind::Error,
    Kind::QuestionAsked,
    Kind::ContextCompacted,
    Kind::Annotation,
    Kind::Finding,
];

/// A searchable text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Searchable {
    pub(crate) kind: TextKind,
    pub(crate) text: String,
}

/// The searchable texts of an event.
pub(crate) fn texts_of(event: &Event, store: &Reader) -> Result<Vec<Searchable>, ReadError> {
    let mut texts = Vec::new();
    for kind in kinds_of(event) {
        let text = text_of(event, kind, store)?;
        if !text.trim().is_empty() {
            texts.push(Searchable { kind, text: capped(text) });
        }
    }
    Ok(texts)
}

/// The kinds of text an event may contain.
fn kinds_of(event: &Event) -> Vec<TextKind> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "events of the other kinds hold nothing that is searched for")]
    match &event.payload {
        Payload::UserPrompt(_) => vec![TextKind::Prompt],
        Payload::AssistantMessage(message) if message.thinking.is_some() => vec![TextKind::Answer, TextKind::Thinking],
        Payload::AssistantMessage(_) => vec![TextKind::Answer],
        Payload::AssistantDelta(delta) => match delta.block {
            Block::Text => vec![TextKind::Answer],
            Block::Thinking => vec![TextKind::Thinking],
        },
        Payload::ToolCall(_) => vec![TextKind::Call],
        Payload::ToolResult(_) => vec![TextKind::Output],
        Payload::Error(_) => vec![TextKind::Error],
        Payload::QuestionAsked(_) => vec![TextKind::Question],
        Payload::ContextCompacted(_) => vec![TextKind::Summary],
        Payload::Annotation(annotation) => match annotation.topic {
            Topic::Title => vec![TextKind::Title],
            Topic::Command | Topic::Notice | Topic::Note | Topic::Screen => vec![TextKind::Note],
            Topic::Model
            | Topic::Cwd
            | Topic::GitBranch
            | Topic::PermissionMode
            | Topic::CliVersion
            | Topic::Queue
            | Topic::MergedInto
            | Topic::Capture
            | Topic::Run
            | Topic::Input
            | Topic::Trace
            | Topic::Label
            | Topic::Mark
            | Topic::Asleep => Vec::new(),
        },
        Payload::ApprovalRequested(_) => vec![TextKind::Approval],
        // A resolution with only an outcome reports how the call ended, which its result says too.
        Payload::ApprovalResolved(resolved) if resolved.new_state().is_some() => vec![TextKind::Approval],
        Payload::Finding(finding) => match finding.state {
            FindingState::Open => vec![TextKind::Finding],
            // The finding is found once, by its opening event.
            FindingState::Resolved | FindingState::Acknowledged => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The text of this kind, in readable form.
pub(crate) fn text_of(event: &Event, kind: TextKind, store: &Reader) -> Result<String, ReadError> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the text of the other kinds is that of the event")]
    Ok(match &event.payload {
        Payload::AssistantMessage(message) if kind == TextKind::Thinking => {
            message.thinking.clone().unwrap_or_default()
        }
        Payload::Annotation(annotation) => joined([annotation.value.as_str(), &whole_text(event, store)?]),
        Payload::QuestionAsked(question) => {
            joined([whole_text(event, store)?].iter().chain(&question.options).map(String::as_str))
        }
        Payload::ToolCall(call) => {
            let input = whole_text(event, store)?;
            let strings = strings_of(&input).unwrap_or(input);
            match &call.title {
                Some(title) if !strings.contains(title.as_str()) => joined([title.as_str(), &strings]),
                Some(_) | None => strings,
            }
        }
        Payload::ApprovalRequested(request) => request_text(request, &whole_text(event, store)?),
        Payload::ApprovalResolved(resolved) => decision_text(resolved),
        Payload::Finding(finding) => finding_text(finding),
        _ => whole_text(event, store)?,
    })
}

/// The text of a permission request.
fn request_text(request: &ApprovalRequested, text: &str) -> String {
    let mut lines = vec![request.tool.as_deref().unwrap_or_default()];
    lines.extend(request.command.as_deref());
    lines.extend(request.paths.iter().map(String::as_str));
    lines.extend(request.url.as_deref());
    lines.push(text);
    let shown = joined(lines);
    // The command and the paths also occur among the strings of the input.
    let input = request.input.as_deref().map(|input| strings_of(input).unwrap_or_else(|| input.to_owned()));
    let more = input.iter().flat_map(|input| input.lines()).filter(|line| !shown.contains(line));
    joined(std::iter::once(shown.as_str()).chain(more))
}

/// The text of a decision: the outcome, who decided, and why.
fn decision_text(resolved: &ApprovalResolved) -> String {
    let state = match resolved.new_state() {
        Some(ApprovalState::AnsweredElsewhere) => "answered elsewhere",
        Some(state) => state.as_str(),
        None => "",
    };
    let by = resolved.by.map(|by| format!("{state} by {}", by.as_str()));
    let reasons = [&resolved.rule, &resolved.message, &resolved.rewrite].into_iter().flatten().map(String::as_str);
    joined(std::iter::once(by.as_deref().unwrap_or(state)).chain(reasons))
}

/// The text of a finding, without repetitions.
fn finding_text(finding: &Finding) -> String {
    let is_new = |subject: &&str| !finding.what.contains(*subject);
    joined([finding.what.as_str(), &finding.why].into_iter().chain(finding.subject.as_deref().filter(is_new)))
}

fn joined<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut out = String::new();
    for text in texts.into_iter().filter(|text| !text.is_empty()) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(text);
    }
    out
}

/// The text of an event; the complete text if it is stored.
fn whole_text(event: &Event, store: &Reader) -> Result<String, ReadError> {
    if let Some(reference) = event.text_ref.as_ref().filter(|reference| reference.stored) {
        match store.text(&reference.hash) {
            Ok(Some(text)) => return Ok(text),
            // The part in the event is still searchable.
            Ok(None) | Err(ReadError::Damaged { .. }) => {}
            Err(error @ ReadError::Sqlite { .. }) => return Err(error),
        }
    }
    Ok(event.text.clone().unwrap_or_default())
}

/// Shortens a long text to its beginning and end.
fn capped(text: String) -> String {
    if text.len() <= HEAD_BYTES + TAIL_BYTES {
        return text;
    }
    let tail = text.get(floor(&text, text.len() - TAIL_BYTES)..).unwrap_or_default();
    let head = text.get(..floor(&text, HEAD_BYTES)).unwrap_or_default();
    format!("{head}\n…\n{tail}")
}

/// The strings in a JSON value, one per line; `None` if it is not JSON.
fn strings_of(json: &str) -> Option<String> {
    struct Strings<'a>(&'a mut String);
    impl<'de> DeserializeSeed<'de> for Strings<'_> {
        type Value = ();
        fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_any(self)
        }
    }
    impl<'de> Visitor<'de> for Strings<'_> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("JSON")
        }
        fn visit_bool<E>(self, _: bool) -> Result<(), E> {
            Ok(())
        }
        fn visit_i64<E>(self, _: i64) -> Result<(), E> {
            Ok(())
        }
        fn visit_u64<E>(self, _: u64) -> Result<(), E> {
            Ok(())
        }
        fn visit_f64<E>(self, _: f64) -> Result<(), E> {
            Ok(())
        }
        fn visit_unit<E>(self) -> Result<(), E> {
            Ok(())
        }
        fn visit_str<E>(self, text: &str) -> Result<(), E> {
            if !self.0.is_empty() {
                self.0.push('\n');
            }
            self.0.push_str(text);
            Ok(())
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
            while seq.next_element_seed(Strings(self.0))?.is_some() {}
            Ok(())
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while map.next_key::<IgnoredAny>()?.is_some() {
                map.next_value_seed(Strings(self.0))?;
            }
            Ok(())
        }
    }
    let mut out = String::new();
    let mut deserializer = serde_json::Deserializer::from_str(json);
    Strings(&mut out).deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    Some(out)
}

/// A tool called by a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CalledTool {
    pub(crate) name: Arc<str>,
    /// The kind of the tool, if known.
    pub(crate) kind: Option<ToolKind>,
    /// The files it reads or changes.
    pub(crate) files: Vec<Arc<str>>,
}

/// The context of a session's events, as stored in the index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SessionContext {
    /// Its id and the agent's id, in lower case.
    pub(crate) ids: [Arc<str>; 2],
    /// The current working directory.
    pub(crate) cwd: Option<WorkingDir>,
    /// The name of the directory it began in.
    pub(crate) project: Option<Arc<str>>,
    /// Its model.
    pub(crate) model: Option<Arc<str>>,
    /// The latest turn: its id and number.
    turn: Option<(TurnId, u32)>,
    /// Calls waiting for their result.
    calls: HashMap<String, CalledTool>,
}

/// A directory and its ancestors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkingDir {
    pub(crate) path: Arc<str>,
    /// The directory itself and all its ancestors.
    pub(crate) ancestors: Vec<Arc<str>>,
}

/// The contexts of the sessions whose events were seen most recently.
#[derive(Debug, Default)]
pub(crate) struct Contexts(HashMap<SessionId, SessionContext>);

impl Contexts {
    /// The context of an event's session, including the event itself.
    pub(crate) fn of(&mut self, event: &Event, store: &Reader) -> Result<&mut SessionContext, ReadError> {
        let id = event.session_id;
        if !self.0.contains_key(&id) {
            if self.0.len() >= SESSIONS {
                self.0.clear();
            }
            self.0.insert(id, SessionContext::read(event, store)?);
        }
        let context = self.0.entry(id).or_default();
        context.apply(event);
        Ok(context)
    }
}

impl SessionContext {
    /// The context of a session before an event.
    fn read(event: &Event, store: &Reader) -> Result<Self, ReadError> {
        let id = event.session_id;
        let ids = [id.to_string().to_lowercase().into(), event.provider_session_id.to_lowercase().into()];
        let mut context = Self { ids, ..Self::default() };
        if event.sequence <= 1 {
            return Ok(context);
        }
        // The session's row may be newer than the event.
        if let Some(session) = store.session(id)? {
            context.moved_to(session.began_in.as_ref());
            context.moved_to(session.cwd.as_ref());
            context.model = session.model.map(Arc::from);
        }
        let turns = store.last_before(id, event.sequence, 1, &[Kind::TurnStarted])?;
        turns.iter().for_each(|event| context.apply(event));
        Ok(context)
    }

    fn apply(&mut self, event: &Event) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the others say nothing of where a session is")]
        match &event.payload {
            Payload::SessionStarted(started) => {
                self.moved_to(started.cwd.as_ref());
                self.uses(started.model.as_ref());
            }
            Payload::TurnStarted(started) => {
                if let Some(turn) = event.turn_id {
                    self.turn = Some((turn, started.number));
                }
            }
            Payload::AssistantMessage(message) => self.uses(message.model.as_ref()),
            Payload::Annotation(annotation) if annotation.topic == Topic::Cwd => {
                self.moved_to(Some(&annotation.value));
            }
            Payload::Annotation(annotation) if annotation.topic == Topic::Model => {
                self.uses(Some(&annotation.value));
            }
            Payload::ToolCall(call) => {
                if self.calls.len() >= CALLS {
                    self.calls.clear();
                }
                self.calls.insert(call.call_id.clone(), CalledTool::of(call));
            }
            _ => {}
        }
    }

    fn uses(&mut self, model: Option<&String>) {
        if let Some(model) = model.filter(|model| self.model.as_deref() != Some(model.as_str())) {
            self.model = Some(model.as_str().into());
        }
    }

    fn moved_to(&mut self, cwd: Option<&String>) {
        let Some(cwd) = cwd else { return };
        self.project.get_or_insert_with(|| project_of(cwd).into());
        if self.cwd.as_ref().is_none_or(|now| *now.path != **cwd) {
            let ancestors = ancestors(cwd).map(Arc::from).collect();
            self.cwd = Some(WorkingDir { path: cwd.as_str().into(), ancestors });
        }
    }

    /// The number of the turn that an event belongs to.
    pub(crate) fn turn_of(&self, event: &Event) -> Option<u32> {
        let id = event.turn_id?;
        match self.turn {
            Some((newest, number)) if newest == id => Some(number),
            // The event that opens a turn precedes the one that contains its number.
            newest => (id == event.id.into()).then(|| newest.map_or(1, |(_, number)| number + 1)),
        }
    }

    /// The tool an event is about.
    pub(crate) fn tool_of(&mut self, event: &Event, store: &Reader) -> Result<Option<CalledTool>, ReadError> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the other kinds of events are not about tools")]
        match &event.payload {
            Payload::ToolCall(call) => Ok(Some(CalledTool::of(call))),
            Payload::ApprovalRequested(request) => {
                let call = request.call_id.as_ref().and_then(|id| self.calls.get(id));
                let named = || {
                    request.tool.as_deref().map(|name| CalledTool { name: name.into(), kind: None, files: Vec::new() })
                };
                Ok(call.cloned().or_else(named))
            }
            Payload::ToolResult(result) => {
                if let Some(tool) = self.calls.get(&result.call_id) {
                    return Ok(Some(tool.clone()));
                }
                let calls = store.last_before(event.session_id, event.sequence, CALLS_BACK, &[Kind::ToolCall])?;
                Ok(calls.iter().find_map(|event| match &event.payload {
                    Payload::ToolCall(call) if call.call_id == result.call_id => Some(CalledTool::of(call)),
                    _ => None,
                }))
            }
            _ => Ok(None),
        }
    }
}

impl CalledTool {
    fn of(call: &events::ToolCall) -> Self {
        let read = call.title.as_deref().filter(|_| call.tool == ToolKind::Read);
        Self {
            name: call.name.as_str().into(),
            kind: Some(call.tool),
            files: read.into_iter().chain(call.edited_files()).map(Arc::from).collect(),
        }
    }
}

/// The name of the directory in which a session began.
fn project_of(directory: &str) -> &str {
    directory.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// A directory and its ancestors.
fn ancestors(directory: &str) -> impl Iterator<Item = &str> {
    let whole = directory.trim_end_matches('/');
    let inner = whole.match_indices('/').filter(|(at, _)| *at > 0).filter_map(|(at, _)| whole.get(..at));
    inner.chain((!whole.is_empty()).then_some(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_extracted_from_a_tool_input() {
        let input = r#"{"command":"cargo test\n-p x","n":3,"edits":[{"old":"a\"b","new":null}],"ok":true}"#;
        assert_eq!(strings_of(input).as_deref(), Some("cargo test\n-p x\na\"b"));
        assert_eq!(strings_of("cargo test"), None);
        assert_eq!(strings_of("{\"a\":\"b\"} trailing"), None);
    }

    #[test]
    fn long_texts_keep_both_ends() {
        let text = format!("begin{}end", "é".repeat(HEAD_BYTES + TAIL_BYTES));
        let short = capped(text);
        assert!(short.starts_with("begin") && short.ends_with("end") && short.contains("\n…\n"));
        assert!(short.len() <= HEAD_BYTES + TAIL_BYTES + 5);
        assert_eq!(capped("x".into()), "x");
    }

    #[test]
    fn project_names_and_ancestors_are_derived_from_a_directory() {
        assert_eq!(project_of("/home/me/my-app/"), "my-app");
        assert_eq!(ancestors("/home/me/").collect::<Vec<_>>(), ["/home", "/home/me"]);
        assert_eq!(ancestors("/").collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
