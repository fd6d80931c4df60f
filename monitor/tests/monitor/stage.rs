//! Plays one session: a line becomes an event, the reducer draws its conclusions, and the monitor gets both, in the
//! order and at the times of the program.

use std::sync::Arc;

use events::{
    Confidence, Event, Finding, FindingKind, FindingState, Identity, Kind, Origin, Payload, Provider, SessionId,
    Source, Timestamp,
};
use monitor::{DetectorLimits, Monitor};
use projections::{Conclusion, SessionState};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

/// Second 0.
pub(crate) const START: Timestamp = Timestamp::from_millisecond(1_795_149_432_000);

/// A report of a source.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    /// The time, ms.
    pub(crate) at: i64,
    pub(crate) payload: Payload,
    pub(crate) source: Source,
    pub(crate) text: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) history: bool,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    at: f64,
    kind: Kind,
    #[serde(default = "transcript", skip_serializing_if = "is_transcript")]
    source: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    history: bool,
    data: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

fn transcript() -> Source {
    Source::Transcript
}

fn is_transcript(source: &Source) -> bool {
    *source == Source::Transcript
}

impl Line {
    pub(crate) fn new(at: i64, payload: impl Into<Payload>) -> Self {
        Self { at, payload: payload.into(), source: Source::Transcript, text: None, agent: None, history: false }
    }

    pub(crate) fn text(self, text: &str) -> Self {
        Self { text: Some(text.to_owned()), ..self }
    }

    pub(crate) fn by(self, source: Source) -> Self {
        Self { source, ..self }
    }

    pub(crate) fn read(json: &str) -> Self {
        let wire: Wire = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
        Self {
            at: (wire.at * 1000.0).round() as i64,
            payload: Payload::from_json(wire.kind, wire.data.get()).unwrap_or_else(|error| panic!("{error}: {json}")),
            source: wire.source,
            text: wire.text,
            agent: wire.agent,
            history: wire.history,
        }
    }

    pub(crate) fn write(&self) -> String {
        let data = serde_json::to_string(&self.payload).unwrap();
        let wire = Wire {
            at: self.at as f64 / 1000.0,
            kind: self.payload.kind(),
            source: self.source,
            agent: self.agent.clone(),
            history: self.history,
            data: RawValue::from_string(data).unwrap(),
            text: self.text.clone(),
        };
        serde_json::to_string(&wire).unwrap()
    }
}

/// A session, its reducer and a monitor.
pub(crate) struct Stage {
    pub(crate) monitor: Monitor,
    state: SessionState,
    id: SessionId,
    now: Timestamp,
    position: u64,
    sequence: u64,
    /// Whether the monitor is also compared with the reducer's state.
    pub(crate) looks: bool,
    /// The input of the monitor, for applying it again.
    pub(crate) log: Vec<Event>,
    /// Each change of a finding, and when it was reported.
    pub(crate) told: Vec<(Timestamp, Finding)>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(DetectorLimits::default())
    }

    pub(crate) fn with(rules: DetectorLimits) -> Self {
        Self::of(Monitor::new(rules), "session")
    }

    pub(crate) fn of(monitor: Monitor, name: &str) -> Self {
        let id = SessionId::mint(START, Provider::Claude, name);
        let rules = projections::StatusRules::default();
        Self {
            monitor,
            state: SessionState::new(id, Provider::Claude, Some(Arc::from(name)), START, rules),
            id,
            now: START,
            position: 0,
            sequence: 0,
            looks: true,
            log: Vec::new(),
            told: Vec::new(),
        }
    }

    /// The same session, watched by another monitor.
    pub(crate) fn monitored_by(self, monitor: Monitor) -> Self {
        Self { monitor, ..self }
    }

    pub(crate) fn played(lines: &[Line]) -> Self {
        let mut stage = Self::new();
        stage.play(lines);
        stage
    }

    pub(crate) fn play(&mut self, lines: &[Line]) {
        for line in lines {
            self.say(line);
        }
    }

    pub(crate) fn say(&mut self, line: &Line) {
        let observed_at = START.plus_ms(line.at).max(self.now);
        if !line.history {
            self.until(line.at);
        }
        self.position += 1;
        self.sequence += 1;
        let text = line.text.as_deref().map(cut);
        let identity = Identity::record(
            Provider::Claude,
            self.state.session.id.to_string().as_str(),
            u32::try_from(self.sequence).unwrap(),
        );
        let event = Event {
            position: self.position,
            id: identity.event_id(),
            session_id: self.id,
            sequence: self.sequence,
            provider: Provider::Claude,
            provider_session_id: Arc::from("session"),
            source: line.source,
            created_at: START.plus_ms(line.at),
            observed_at: if line.history { START.plus_ms(86_400_000 * 30) } else { observed_at },
            turn_id: None,
            parent_id: None,
            agent_id: line.agent.as_deref().map(Arc::from),
            confidence: Confidence::High,
            severity: None,
            text: text.as_ref().map(|(text, _)| text.clone()),
            text_ref: text.and_then(|(_, reference)| reference),
            payload: line.payload.clone(),
            origin: Origin::Derived,
            derived: false,
            history: line.history,
        };
        let conclusions = self.state.fold(&event);
        let observed_at = event.observed_at;
        self.give(event);
        self.conclude(conclusions, observed_at);
        self.check();
    }

    /// Advances the time to `at` (ms).
    pub(crate) fn until(&mut self, at: i64) {
        let until = START.plus_ms(at);
        loop {
            let reducer = self.state.next_deadline().filter(|due| *due <= until);
            let monitor = self.monitor.next_deadline().filter(|due| *due <= until);
            let Some(due) = reducer.into_iter().chain(monitor).min() else { break };
            if reducer == Some(due) {
                let conclusions = self.state.advance(due);
                self.conclude(conclusions, due);
            }
            self.advance(due);
            self.now = self.now.max(due);
        }
        self.now = self.now.max(until);
        self.advance(until);
    }

    fn advance(&mut self, now: Timestamp) {
        let changed = self.monitor.advance(now);
        self.note(now, changed);
    }

    fn conclude(&mut self, conclusions: Vec<Conclusion>, observed_at: Timestamp) {
        for conclusion in conclusions {
            self.position += 1;
            self.sequence += 1;
            self.state.session.last_sequence = self.sequence;
            let identity = Identity::record(
                Provider::Capture,
                self.id.to_string().as_str(),
                u32::try_from(self.sequence).unwrap(),
            );
            let event = Event {
                position: self.position,
                id: identity.event_id(),
                session_id: self.id,
                sequence: self.sequence,
                provider: Provider::Claude,
                provider_session_id: Arc::from("session"),
                source: Source::Runtime,
                created_at: conclusion.at,
                observed_at,
                turn_id: conclusion.turn_id,
                parent_id: None,
                agent_id: None,
                confidence: Confidence::High,
                severity: None,
                text: None,
                text_ref: None,
                payload: conclusion.payload,
                origin: Origin::Derived,
                derived: true,
                history: false,
            };
            self.give(event);
        }
    }

    fn give(&mut self, event: Event) {
        let now = event.observed_at;
        let changed = self.monitor.apply(&event);
        self.note(now, changed);
        self.log.push(event);
    }

    pub(crate) fn check(&mut self) {
        if self.looks {
            let now = self.now;
            let changed = self.monitor.check(self.state.view(), now);
            self.note(now, changed);
        }
    }

    fn note(&mut self, now: Timestamp, changed: Vec<Finding>) {
        self.told.extend(changed.into_iter().map(|finding| (now, finding)));
    }

    /// Each opened finding, once: its kind, and when it was reported (ms).
    pub(crate) fn opened(&self) -> Vec<(FindingKind, i64)> {
        let mut seen = std::collections::BTreeSet::new();
        let opened = self.told.iter().filter(|(_, finding)| finding.is_open());
        opened
            .filter(|(_, finding)| seen.insert(finding.id.clone()))
            .map(|(at, finding)| (finding.kind, at.since_ms(START)))
            .collect()
    }

    /// The opened kinds, in order, except those in `but`.
    pub(crate) fn kinds_but(&self, but: &[FindingKind]) -> Vec<FindingKind> {
        self.opened().into_iter().map(|(kind, _)| kind).filter(|kind| !but.contains(kind)).collect()
    }

    /// The last report of a finding of this kind.
    pub(crate) fn last(&self, kind: FindingKind) -> Option<&Finding> {
        self.told.iter().rev().map(|(_, finding)| finding).find(|finding| finding.kind == kind)
    }

    pub(crate) fn is_open(&self, kind: FindingKind) -> bool {
        self.last(kind).is_some_and(|finding| finding.state != FindingState::Resolved)
    }
}

/// The ends of a long text, as in its event, and the reference to the whole text.
fn cut(text: &str) -> (String, Option<events::TextRef>) {
    if text.len() <= 1024 {
        return (text.to_owned(), None);
    }
    let (mut head, mut tail) = (256, text.len() - 256);
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    let hash = format!("{:?}", Identity::of(Provider::Capture, "text", &[text.as_bytes()]));
    let reference = events::TextRef { hash, length: text.len() as u64, stored: true };
    (format!("{}…{}", &text[..head], &text[tail..]), Some(reference))
}

/// The first line of a trace.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Head {
    /// A description of the trace.
    pub(crate) trace: String,
    /// The findings that must be raised, and their latest times (seconds). Only findings that are always correct may be
    /// raised besides.
    pub(crate) expected: Vec<Expected>,
    /// The end of the trace, seconds.
    pub(crate) until: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Expected {
    pub(crate) kind: FindingKind,
    pub(crate) by: f64,
}

/// A trace in the format of its file.
pub(crate) fn file_of(head: &Head, lines: &[Line]) -> String {
    let head = serde_json::to_value(head).map(|value: Value| value.to_string()).unwrap();
    let lines: Vec<String> = std::iter::once(head).chain(lines.iter().map(Line::write)).collect();
    lines.join("\n") + "\n"
}
