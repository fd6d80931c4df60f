//! The interface of all protocols: decodes lines, and builds the lines that answer.

use agents::AgentAnswer;
use events::ToolOutcome;
use serde_json::value::RawValue;

/// Maximum number of calls remembered for requests that refer to them.
const CALLS: usize = 256;

/// The meaning of a line from the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Meaning {
    /// A line to send at once: a step of the handshake, or an answer that needs no decision.
    Send(String),
    /// The agent's own id of the session.
    Session(String),
    /// The agent accepts a prompt.
    Ready,
    /// A text for the user; one text may arrive in parts.
    Text(String),
    /// The agent calls a tool.
    Called {
        /// The agent's id of the call.
        call: String,
        /// The tool, by the agent's name or description.
        tool: String,
    },
    /// A call ended.
    Returned {
        /// The agent's id of the call.
        call: String,
        /// The outcome.
        outcome: ToolOutcome,
    },
    /// The agent asks for permission, and waits.
    Asks(Box<PermissionRequest>),
    /// The agent no longer waits for the answer to this request.
    Settled(String),
    /// The turn is over.
    Ended(TurnEnd),
    /// An error; the turn may continue.
    Failed(String),
    /// A message of an unknown kind, with its name.
    Unrecognized(String),
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEnd {
    /// It completed.
    Completed,
    /// It was interrupted.
    Interrupted,
    /// It ended with an error, in the agent's words.
    Failed(String),
}

/// A request for permission.
#[derive(Debug, Clone)]
pub struct PermissionRequest {
    /// The protocol's id of the request, as JSON.
    pub id: String,
    /// The session that asks.
    pub session: String,
    /// The agent's id of the call.
    pub call: Option<String>,
    /// The directory of the call, if the agent sent it separately.
    pub place: Option<String>,
    /// The request line, as exact bytes.
    pub line: Box<RawValue>,
    /// The part of the call missing from the request, as exact bytes.
    pub item: Option<Box<RawValue>>,
}

impl PartialEq for PermissionRequest {
    fn eq(&self, other: &Self) -> bool {
        let text = |item: &Option<Box<RawValue>>| item.as_ref().map(|item| item.get().to_owned());
        (&self.id, &self.session, &self.call, &self.place) == (&other.id, &other.session, &other.call, &other.place)
            && self.line.get() == other.line.get()
            && text(&self.item) == text(&other.item)
    }
}

/// One conversation with an agent, in its protocol.
pub trait Codec: Send {
    /// The lines to send first.
    fn begin(&mut self) -> Vec<String>;

    /// The line that sends a prompt; `None` if there is no session yet.
    fn prompt(&mut self, text: &str) -> Option<String>;

    /// The line that stops the turn; `None` if no turn is open.
    fn interrupt(&mut self) -> Option<String>;

    /// Decodes a line of the agent.
    fn decode_line(&mut self, line: &str) -> Vec<Meaning>;

    /// The line that answers a request; `None` if the protocol cannot express the decision.
    fn answer(&self, request: &PermissionRequest, given: &AgentAnswer) -> Option<String>;

    /// The line that cancels the request because the turn is stopped; it grants nothing.
    fn cancel(&self, request: &PermissionRequest) -> String;
}

/// Remembers data of recent calls; the oldest are dropped.
#[derive(Debug)]
pub(crate) struct Calls<T>(std::collections::VecDeque<(String, T)>);

impl<T> Default for Calls<T> {
    fn default() -> Self {
        Self(std::collections::VecDeque::new())
    }
}

impl<T> Calls<T> {
    pub(crate) fn insert(&mut self, call: String, what: T) {
        self.0.retain(|(known, _)| *known != call);
        if self.0.len() >= CALLS {
            self.0.pop_front();
        }
        self.0.push_back((call, what));
    }

    pub(crate) fn get(&self, call: &str) -> Option<&T> {
        self.0.iter().find(|(known, _)| known == call).map(|(_, what)| what)
    }

    pub(crate) fn forget(&mut self, call: &str) {
        self.0.retain(|(known, _)| known != call);
    }
}

/// A message as written.
pub(crate) fn raw(line: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(line.trim().to_owned()).ok()
}
