//! Events: the form in which a source reports them ([`NewEvent`]), and the form that is committed and leaves the
//! program ([`Event`]).

use std::{borrow::Cow, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    id::{EventId, Identity, SessionId, TurnId},
    payload::{Kind, Payload},
    provider::{Provider, Source},
    time::Timestamp,
};

pub use crate::level::{Confidence, Severity};

/// The bytes, or the delivery, from which an event was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A range of a file.
    File {
        /// Absolute path.
        path: Arc<str>,
        /// The generation of the file at this path, from 1.
        generation: u32,
        /// Start of the record, bytes.
        offset: u64,
        /// Length of the record without its newline, bytes.
        length: u64,
    },
    /// A delivery: a call of a hook, telemetry, or a frame of a terminal host.
    Delivery {
        /// The id minted by the sender.
        id: Arc<str>,
    },
    /// No source: capture concluded the event itself.
    Derived,
}

/// Whether a record may occur more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Repeat {
    /// The record has an id: a second one is a copy.
    #[default]
    Unique,
    /// The record has no id. Its identity is derived from its content, and this is the next occurrence.
    Next,
}

/// An event as reported by a source: it has no position, sequence or session id of capture yet, and may turn out to be
/// already known.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// The agent.
    pub provider: Provider,
    /// The provider's id of the session it belongs to.
    pub provider_session_id: Arc<str>,
    /// The identity by which it is recognized when it is read again.
    pub identity: Identity,
    /// Whether that identity may occur again.
    pub repeat: Repeat,
    /// The source.
    pub source: Source,
    /// The time by the provider's clock, if the record has a time.
    pub created_at: Option<Timestamp>,
    /// Capture's clock.
    pub observed_at: Timestamp,
    /// The event that it answers: for a result, its call.
    pub parent: Option<Identity>,
    /// The provider's id of its sub-agent, if that is not a separate session.
    pub agent_id: Option<Arc<str>>,
    /// The confidence of the source.
    pub confidence: Confidence,
    /// The severity.
    pub severity: Option<Severity>,
    /// The text for the user.
    pub text: Option<String>,
    /// The payload.
    pub payload: Payload,
    /// The position of its bytes.
    pub origin: Origin,
}

/// A reference to a whole text that is longer than the text in an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextRef {
    /// BLAKE3 of the text, first 16 bytes, hexadecimal.
    pub hash: String,
    /// Length, bytes.
    pub length: u64,
    /// Whether the text itself is stored. False above the size limit: then only `origin` locates it.
    pub stored: bool,
}

/// A committed event, as it leaves the program.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Global commit order, from 1.
    pub position: u64,
    /// Its id.
    pub id: EventId,
    /// Its session.
    pub session_id: SessionId,
    /// Order within the session, from 1 without gaps.
    pub sequence: u64,
    /// The agent.
    pub provider: Provider,
    /// The provider's id of the session.
    pub provider_session_id: Arc<str>,
    /// Where it came from.
    pub source: Source,
    /// The time by the provider's clock, or by capture's clock if the record has no time.
    pub created_at: Timestamp,
    /// Capture's clock.
    pub observed_at: Timestamp,
    /// The turn it belongs to.
    pub turn_id: Option<TurnId>,
    /// The event it answers.
    pub parent_id: Option<EventId>,
    /// The sub-agent it came from.
    pub agent_id: Option<Arc<str>>,
    /// How sure the source is.
    pub confidence: Confidence,
    /// How severe it is.
    pub severity: Option<Severity>,
    /// The text, cut to the maximum length in an event.
    pub text: Option<String>,
    /// The reference to the whole text, if `text` was cut.
    pub text_ref: Option<TextRef>,
    /// What happened.
    pub payload: Payload,
    /// Where its bytes are.
    pub origin: Origin,
    /// Concluded by a reducer; ignored when the log is folded.
    pub derived: bool,
    /// Whether it was written before capture observed it: `created_at` is then when it happened, and `observed_at` only
    /// when it was read.
    pub history: bool,
}

/// The wire form, and the only place that names its fields.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EventWire<'a> {
    position: u64,
    id: EventId,
    session_id: SessionId,
    sequence: u64,
    provider: Provider,
    provider_session_id: &'a str,
    source: Source,
    kind: Kind,
    created_at: Timestamp,
    observed_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<TurnId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<EventId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text_ref: Option<&'a TextRef>,
    data: &'a Payload,
    confidence: Confidence,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<Severity>,
    origin: &'a Origin,
    derived: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    history: bool,
}

impl Serialize for Event {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        EventWire {
            position: self.position,
            id: self.id,
            session_id: self.session_id,
            sequence: self.sequence,
            provider: self.provider,
            provider_session_id: &self.provider_session_id,
            source: self.source,
            kind: self.payload.kind(),
            created_at: self.created_at,
            observed_at: self.observed_at,
            turn_id: self.turn_id,
            parent_id: self.parent_id,
            agent_id: self.agent_id.as_deref(),
            text: self.text.as_deref(),
            text_ref: self.text_ref.as_ref(),
            data: &self.payload,
            confidence: self.confidence,
            severity: self.severity,
            origin: &self.origin,
            derived: self.derived,
            history: self.history,
        }
        .serialize(s)
    }
}

/// The reason why a JSON text is not an event.
#[derive(Debug, thiserror::Error)]
#[error("not an event in wire form: {0}")]
pub struct WireError(#[source] serde_json::Error);

impl Event {
    /// Parses the wire form.
    ///
    /// # Errors
    /// If the text is not JSON, a field is missing, or the data does not fit the kind.
    pub fn from_json(json: &str) -> Result<Self, WireError> {
        #[derive(Deserialize)]
        struct Read<'a> {
            position: u64,
            id: EventId,
            session_id: SessionId,
            sequence: u64,
            provider: Provider,
            #[serde(borrow)]
            provider_session_id: Cow<'a, str>,
            source: Source,
            kind: Kind,
            created_at: Timestamp,
            observed_at: Timestamp,
            turn_id: Option<TurnId>,
            parent_id: Option<EventId>,
            agent_id: Option<Arc<str>>,
            text: Option<String>,
            text_ref: Option<TextRef>,
            #[serde(borrow)]
            data: &'a RawValue,
            confidence: Confidence,
            severity: Option<Severity>,
            origin: Origin,
            derived: bool,
            #[serde(default)]
            history: bool,
        }
        let r: Read<'_> = serde_json::from_str(json).map_err(WireError)?;
        Ok(Self {
            position: r.position,
            id: r.id,
            session_id: r.session_id,
            sequence: r.sequence,
            provider: r.provider,
            provider_session_id: Arc::from(&*r.provider_session_id),
            source: r.source,
            created_at: r.created_at,
            observed_at: r.observed_at,
            turn_id: r.turn_id,
            parent_id: r.parent_id,
            agent_id: r.agent_id,
            confidence: r.confidence,
            severity: r.severity,
            text: r.text,
            text_ref: r.text_ref,
            payload: Payload::from_json(r.kind, r.data.get()).map_err(WireError)?,
            origin: r.origin,
            derived: r.derived,
            history: r.history,
        })
    }
}
