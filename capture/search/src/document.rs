//! What of an event is searchable, and what is known of it besides its text.

use std::{collections::HashMap, fmt};

use api::search::TextKind;
use events::{Block, Event, Kind, Payload, SessionId, ToolKind, Topic};
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use store::{ReadError, Reader};

/// What is searchable of the beginning of a text, bytes.
const HEAD_BYTES: usize = 16 << 10;
/// What is searchable of its end, bytes.
const TAIL_BYTES: usize = 16 << 10;
/// Maximum number of sessions whose context is kept in memory.
const SESSIONS: usize = 512;
/// Maximum number of calls of a session that wait for their result.
const CALLS: usize = 256;
/// How many calls before a result are looked through for its own.
const CALLS_BACK: usize = 64;

/// The kinds of events that hold a text, or say where the next ones belong.
pub(crate) const KINDS: &[Kind] = &[
    Kind::SessionStarted,
    Kind::UserPrompt,
    Kind::AssistantDelta,
    Kind::AssistantMessage,
    Kind::ToolCall,
    Kind::ToolResult,
    Kind::Error,
    Kind::QuestionAsked,
    Kind::ContextCompacted,
    Kind::Annotation,
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

/// What an event may hold.
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
            | Topic::Label => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The text of a kind, as people would read it.
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
        _ => whole_text(event, store)?,
    })
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

/// The text of an event, whole if it is stored.
fn whole_text(event: &Event, store: &Reader) -> Result<String, ReadError> {
    if let Some(reference) = event.text_ref.as_ref().filter(|reference| reference.stored) {
        match store.text(&reference.hash) {
            Ok(Some(text)) => return Ok(text),
            // What the event itself has of it is still searchable.
            Ok(None) | Err(ReadError::Damaged { .. }) => {}
            Err(error @ ReadError::Sqlite { .. }) => return Err(error),
        }
    }
    Ok(event.text.clone().unwrap_or_default())
}

/// The beginning and the end of a text.
fn capped(text: String) -> String {
    if text.len() <= HEAD_BYTES + TAIL_BYTES {
        return text;
    }
    let head = (0..=HEAD_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let tail = (text.len() - TAIL_BYTES..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let (head, tail) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    format!("{head}\n…\n{tail}")
}

/// The strings of a JSON value, one a line; `None` when it is not JSON.
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

/// A tool, as a session called it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CalledTool {
    pub(crate) name: String,
    pub(crate) kind: ToolKind,
    /// The file it reads or changes.
    pub(crate) file: Option<String>,
}

/// What is known of a session where an event belongs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SessionContext {
    /// Where it works now.
    pub(crate) cwd: Option<String>,
    /// Where it began.
    pub(crate) began_in: Option<String>,
    /// Its model.
    pub(crate) model: Option<String>,
    /// Calls whose results are awaited.
    calls: HashMap<String, CalledTool>,
}

/// What is known of the sessions whose events were seen last.
#[derive(Debug, Default)]
pub(crate) struct Contexts(HashMap<SessionId, SessionContext>);

impl Contexts {
    /// What is known of the session of an event once the event is taken in.
    pub(crate) fn of(&mut self, event: &Event, store: &Reader) -> Result<&mut SessionContext, ReadError> {
        let id = event.session_id;
        if !self.0.contains_key(&id) {
            if self.0.len() >= SESSIONS {
                self.0.clear();
            }
            // What the session's row says may be newer than the event; for a new session there is none.
            let session = if event.sequence > 1 { store.session(id)? } else { None };
            let context = session.map(|session| SessionContext {
                began_in: session.began_in.or_else(|| session.cwd.clone()),
                cwd: session.cwd,
                model: session.model,
                calls: HashMap::new(),
            });
            self.0.insert(id, context.unwrap_or_default());
        }
        let context = self.0.entry(id).or_default();
        context.apply(&event.payload);
        Ok(context)
    }
}

impl SessionContext {
    fn apply(&mut self, payload: &Payload) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the others say nothing of where a session is")]
        match payload {
            Payload::SessionStarted(started) => {
                self.moved_to(started.cwd.as_ref());
                self.model = started.model.clone().or(self.model.take());
            }
            Payload::AssistantMessage(message) if message.model.is_some() => self.model.clone_from(&message.model),
            Payload::Annotation(annotation) if annotation.topic == Topic::Cwd => {
                self.moved_to(Some(&annotation.value));
            }
            Payload::Annotation(annotation) if annotation.topic == Topic::Model => {
                self.model = Some(annotation.value.clone());
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

    fn moved_to(&mut self, cwd: Option<&String>) {
        if let Some(cwd) = cwd {
            self.cwd = Some(cwd.clone());
            self.began_in.get_or_insert_with(|| cwd.clone());
        }
    }

    /// The tool that an event is about.
    pub(crate) fn tool_of(&mut self, event: &Event, store: &Reader) -> Result<Option<CalledTool>, ReadError> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "only two kinds of events are about tools")]
        match &event.payload {
            Payload::ToolCall(call) => Ok(Some(CalledTool::of(call))),
            Payload::ToolResult(result) => {
                if let Some(tool) = self.calls.get(&result.call_id) {
                    return Ok(Some(tool.clone()));
                }
                let calls = store.last_before(event.session_id, event.sequence, CALLS_BACK, Kind::ToolCall)?;
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
        let has_file = matches!(call.tool, ToolKind::Edit | ToolKind::Read);
        Self { name: call.name.clone(), kind: call.tool, file: call.title.clone().filter(|_| has_file) }
    }
}

/// The name of the directory a session began in.
pub(crate) fn project_of(directory: &str) -> &str {
    directory.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// A directory and those it is in.
pub(crate) fn ancestors(directory: &str) -> impl Iterator<Item = &str> {
    let whole = directory.trim_end_matches('/');
    let inner = whole.match_indices('/').filter(|(at, _)| *at > 0).filter_map(|(at, _)| whole.get(..at));
    inner.chain((!whole.is_empty()).then_some(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_a_tool_input() {
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
    fn directories() {
        assert_eq!(project_of("/home/me/my-app/"), "my-app");
        assert_eq!(ancestors("/home/me/").collect::<Vec<_>>(), ["/home", "/home/me"]);
        assert_eq!(ancestors("/").collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
