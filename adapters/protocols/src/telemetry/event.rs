//! Maps log records of all agents to one set of meanings, and creates events from them.

use std::sync::Arc;

use events::{
    AccountScope, AccountedModel, Annotation, Claim, Confidence, ErrorClass, ErrorReported, Heartbeat, NewEvent,
    Origin, Payload, Provider, Reason, Repeat, Severity, Signal, Source, State, Timestamp, ToolOutcome, ToolResult,
    Topic, UsageAccount, UsageReported,
};

use super::{
    claude, codex, gemini,
    record::{RecordSource, TelemetryRecord},
};
use crate::telemetry::meaning::{NAME_CHARS, TelemetryEvent, cut};

/// Longest time between a failed attempt and the next one, in ms.
const RETRYING_MS: i64 = 15_000;
/// How long an agent counts as working after a prompt without other activity, in ms.
const PROMPTED_MS: i64 = 15_000;
/// Maximum number of characters kept of a message.
const MESSAGE_CHARS: usize = 2_000;

/// The events of a record: none if it has no meaning, no session, or no time.
pub(super) fn events(writer: &RecordSource, record: &TelemetryRecord, observed_at: Timestamp) -> Vec<NewEvent> {
    let told = match writer.provider {
        Provider::Claude => claude::decode_event(record),
        Provider::Codex => codex::decode_event(record),
        Provider::Gemini => gemini::decode_event(record),
        Provider::Pi
        | Provider::Qwen
        | Provider::Capture
        | Provider::Opencode
        | Provider::Aider
        | Provider::Crush
        | Provider::Goose
        | Provider::Amp
        | Provider::Unknown => TelemetryEvent::Nothing,
    };
    let (Some(session), Some(at)) = (record.session().filter(|id| id.len() <= NAME_CHARS), record.at()) else {
        return Vec::new();
    };
    let mut made = make(&told, record.name(), at.min(observed_at));
    if matches!(told, TelemetryEvent::Prompted) {
        made.extend(record.trace().map(|trace| PendingEvent::of(Annotation { topic: Topic::Trace, value: trace })));
    }
    let session: Arc<str> = Arc::from(session);
    (0..).zip(made).map(|(index, made)| made.event(writer, record, index, &session, at, observed_at)).collect()
}

/// An event under construction.
struct PendingEvent {
    payload: Payload,
    text: Option<String>,
    confidence: Confidence,
    severity: Option<Severity>,
}

impl PendingEvent {
    fn of(payload: impl Into<Payload>) -> Self {
        Self { payload: payload.into(), text: None, confidence: Confidence::Medium, severity: None }
    }

    fn event(
        self,
        writer: &RecordSource,
        record: &TelemetryRecord,
        index: u32,
        session: &Arc<str>,
        at: Timestamp,
        observed_at: Timestamp,
    ) -> NewEvent {
        let identity = writer.identity(record, index);
        NewEvent {
            provider: writer.provider,
            provider_session_id: Arc::clone(session),
            identity,
            repeat: Repeat::Unique,
            source: Source::Telemetry,
            created_at: Some(at),
            observed_at,
            parent: None,
            agent_id: None,
            confidence: self.confidence,
            severity: self.severity,
            text: self.text,
            payload: self.payload,
            origin: Origin::Delivery { id: Arc::from(identity.event_id().to_string()) },
        }
    }
}

fn make(told: &TelemetryEvent<'_>, name: &str, at: Timestamp) -> Vec<PendingEvent> {
    match told {
        TelemetryEvent::Prompted => vec![running(Reason::Thinking, at.plus_ms(PROMPTED_MS), name)],
        TelemetryEvent::Answered { line, used } => {
            let alive = PendingEvent { text: Some(cut(line, MESSAGE_CHARS)), ..PendingEvent::of(Heartbeat {}) };
            let account = |used: &AccountedModel| {
                let account = UsageAccount { scope: AccountScope::Call, began_at: None, models: vec![used.clone()] };
                PendingEvent::of(UsageReported { account: Some(account), ..UsageReported::default() })
            };
            [alive].into_iter().chain(used.as_ref().map(account)).collect()
        }
        TelemetryEvent::Failed { status, code, message, retrying, main } => {
            let error = ErrorReported {
                class: class_of(*status, *code, message),
                code: code.map(|code| cut(code, NAME_CHARS)).or_else(|| status.map(|status| status.to_string())),
                ends_turn: false,
                retrying: *retrying,
            };
            let severity = Some(if *retrying { Severity::Warning } else { Severity::Error });
            let error = PendingEvent { text: Some(cut(message, MESSAGE_CHARS)), severity, ..PendingEvent::of(error) };
            let signal = (*retrying && *main).then(|| running(Reason::Retrying, at.plus_ms(RETRYING_MS), name));
            [error].into_iter().chain(signal).collect()
        }
        TelemetryEvent::Decided { tool, call_id, allowed, by } => {
            let verdict = if *allowed { "allowed" } else { "denied" };
            let call = call_id.map_or_else(String::new, |id| format!(" ({id})"));
            vec![remark(&format!("{tool} {verdict} by {by}{call}"))]
        }
        TelemetryEvent::Returned { call_id, worked, duration_ms } => vec![PendingEvent::of(ToolResult {
            call_id: cut(call_id, NAME_CHARS),
            outcome: if *worked { ToolOutcome::Ok } else { ToolOutcome::Error },
            exit_code: None,
            duration_ms: *duration_ms,
            detail: true,
        })],
        TelemetryEvent::Remarked(line) => vec![remark(line)],
        TelemetryEvent::Nothing => Vec::new(),
    }
}

/// A claim with an end, relative to the record's own time: a late one has already ended.
fn running(reason: Reason, until: Timestamp, words: &str) -> PendingEvent {
    PendingEvent::of(Signal {
        holds_from: None,
        key: None,
        claim: Claim::State { state: State::Running, reason: Some(reason) },
        strength: Confidence::Medium,
        valid_until: Some(until),
        words: Some(cut(words, NAME_CHARS)),
        dialog: None,
    })
}

fn remark(line: &str) -> PendingEvent {
    PendingEvent::of(Annotation { topic: Topic::Notice, value: cut(line, NAME_CHARS * 2) })
}

/// The class of a failure: by its status, and if a provider uses one status for two kinds, by its code and message.
fn class_of(status: Option<i64>, code: Option<&str>, message: &str) -> ErrorClass {
    let says = |words: &[&str]| {
        let said = |text: &str| words.iter().any(|word| text.contains(word));
        code.is_some_and(said) || said(message)
    };
    match status {
        Some(401 | 403) => ErrorClass::Auth,
        Some(402) => ErrorClass::Quota,
        Some(429) if says(&["insufficient_quota", "usage_limit", "billing"]) => ErrorClass::Quota,
        Some(429) => ErrorClass::RateLimit,
        Some(413) => ErrorClass::Context,
        Some(400) if says(&["context_length", "too long", "maximum context", "token count"]) => ErrorClass::Context,
        Some(status) if status >= 500 => ErrorClass::Provider,
        Some(_) => ErrorClass::Other,
        None => ErrorClass::Network,
    }
}
