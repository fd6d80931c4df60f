//! The live registry: `sessions/<pid>.json`, which Claude Code writes for each of its processes and rewrites in place
//! when the state changes (2.1.328). It is the most reliable source for the state, but a killed process leaves its file
//! behind, so its pid and start time are reported for a check. One process can switch sessions (`/clear`, `/branch`,
//! `--continue`).

use std::sync::Arc;

use events::{
    Annotation, Claim, Confidence, Identity, Payload, Provider, Reason, SessionStarted, Signal, Source, StartKind,
    State, Timestamp, Topic,
};
use serde::{Deserialize, Serialize};

use agents::borrowed::Text;
use tailer::decode::{Decoded, Decoder, Malformed, Record};

use super::words::version_numbers;

const CLAUDE: Provider = Provider::Claude;
/// The status of a working process.
const BUSY: &str = "busy";
/// How long a process that switches sessions can be `busy` without a turn, ms; up to 150 were observed.
const MOVES_MS: i64 = 300;
/// The first tested version with a distinct status for a question.
const NAMES_QUESTIONS: [u32; 3] = [2, 1, 328];
/// How long a dialog of an older version may be a question that the transcript has not recorded yet, ms; up to 100 were
/// observed (2.1.200).
const QUESTION_MS: i64 = 150;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RegistryEntry<'a> {
    pid: u32,
    #[serde(borrow)]
    session_id: Text<'a>,
    #[serde(borrow)]
    cwd: Option<Text<'a>>,
    started_at: Option<i64>,
    #[serde(borrow)]
    proc_start: Option<Text<'a>>,
    #[serde(borrow)]
    version: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    name_source: Option<Text<'a>>,
    #[serde(borrow)]
    status: Option<Text<'a>>,
    #[serde(borrow)]
    waiting_for: Option<Text<'a>>,
    updated_at: Option<i64>,
    status_updated_at: Option<i64>,
}

/// The last entry read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Last {
    session: String,
    pid: u32,
    start: u64,
    status: Option<String>,
    waiting_for: Option<String>,
    name: Option<String>,
}

/// Decodes one registry file.
pub struct RegistryDecoder {
    session: Option<Arc<str>>,
    last: Option<Last>,
}

impl RegistryDecoder {
    /// A decoder that continues from `state`.
    #[must_use]
    pub fn new(state: Option<&str>) -> Self {
        let last: Option<Last> = state.and_then(|s| serde_json::from_str(s).ok());
        Self { session: last.as_ref().map(|l| Arc::from(l.session.as_str())), last }
    }

    fn emit(
        session: &Arc<str>,
        record: &Record<'_>,
        pid: u32,
        what: &str,
        at: Option<i64>,
        payload: impl Into<Payload>,
        out: &mut Decoded,
    ) {
        // A registry file has no records, only a state; the time of the change identifies the record.
        let stamp = at.unwrap_or_else(|| record.observed_at.as_millisecond());
        let identity = Identity::of(
            CLAUDE,
            "registry",
            &[session.as_bytes(), &pid.to_le_bytes(), what.as_bytes(), &stamp.to_le_bytes()],
        );
        let mut event = out.event(record, session, identity, payload);
        event.source = Source::Registry;
        event.created_at = at.map(Timestamp::from_millisecond);
        out.push(event);
    }
}

fn signal(claim: Claim, words: String) -> Signal {
    Signal::new(claim, Confidence::High, Some(words))
}

/// The claim for a status word; `None` for unknown words.
fn claim(status: &str, waiting_for: Option<&str>) -> Option<Claim> {
    let (state, reason) = match (status, waiting_for) {
        ("idle", _) => (State::Waiting, None),
        (BUSY, _) => (State::Running, None),
        ("shell", _) => (State::Waiting, Some(Reason::Background)),
        ("waiting", Some("permission prompt" | "sandbox request" | "worker request")) => (State::WaitingApproval, None),
        ("waiting", Some("input needed" | "goal proposal")) => (State::Waiting, Some(Reason::Question)),
        ("waiting", _) => (State::Waiting, None),
        _ => return None,
    };
    Some(Claim::State { state, reason })
}

/// Whether a dialog in this version may also be a question.
fn may_be_question(claim: &Claim, version: Option<&str>) -> bool {
    let asks = matches!(claim, Claim::State { state: State::WaitingApproval, .. });
    asks && version.and_then(version_numbers).is_some_and(|version| version < NAMES_QUESTIONS)
}

impl Decoder for RegistryDecoder {
    fn record(&mut self, record: Record<'_>, out: &mut Decoded) -> Result<(), Malformed> {
        let entry: RegistryEntry<'_> = serde_json::from_slice(record.bytes)?;
        let session: Arc<str> = Arc::from(&*entry.session_id);
        let start = entry.proc_start.as_deref().and_then(|s| s.parse().ok()).unwrap_or(0);
        let now = Last {
            session: session.to_string(),
            pid: entry.pid,
            start,
            status: entry.status.as_deref().map(str::to_owned),
            waiting_for: entry.waiting_for.as_deref().map(str::to_owned),
            name: entry.name.as_deref().map(str::to_owned),
        };
        let changed_at = entry.status_updated_at.or(entry.updated_at);
        let last = self.last.replace(now);
        self.session = Some(Arc::clone(&session));
        let same_process = last.as_ref().is_some_and(|l| l.pid == entry.pid && l.start == start);
        let moved = last.as_ref().is_none_or(|l| l.session != *session) || !same_process;
        if moved {
            if let Some(left) = last.as_ref().filter(|l| l.session != *session) {
                let left_session: Arc<str> = Arc::from(left.session.as_str());
                let gone = signal(
                    Claim::ProcessGone { pid: left.pid, clean: true },
                    format!("process {} switched to session {session}", left.pid),
                );
                Self::emit(&left_session, &record, left.pid, "left", entry.updated_at, gone, out);
            }
            let started = SessionStarted {
                how: StartKind::Unknown,
                cwd: entry.cwd.as_deref().map(str::to_owned),
                cli_version: entry.version.as_deref().map(str::to_owned),
                ..SessionStarted::default()
            };
            let at = if same_process { entry.updated_at } else { entry.started_at };
            Self::emit(&session, &record, entry.pid, "started", at, started, out);
            let alive =
                signal(Claim::ProcessAlive { pid: entry.pid, start_ticks: start }, format!("process {}", entry.pid));
            Self::emit(&session, &record, entry.pid, "alive", at, alive, out);
        }
        let status_changed = moved
            || last.as_ref().is_none_or(|l| {
                l.status.as_deref() != entry.status.as_deref()
                    || l.waiting_for.as_deref() != entry.waiting_for.as_deref()
            });
        if let Some(status) = entry.status.as_deref().filter(|_| status_changed) {
            let words = match entry.waiting_for.as_deref() {
                Some(what) => format!("{status}: {what}"),
                None => status.to_owned(),
            };
            match claim(status, entry.waiting_for.as_deref()) {
                Some(claim) => {
                    // A process that was already busy before switching may only be running the command that switched
                    // it, such as `/clear`.
                    let carried_over = moved && same_process && status == BUSY && changed_at < entry.updated_at;
                    let unclear = may_be_question(&claim, entry.version.as_deref());
                    let wait = carried_over.then_some(MOVES_MS).or(unclear.then_some(QUESTION_MS));
                    let holds_from = wait.map(|ms| record.observed_at.plus_ms(ms));
                    let signal = Signal { holds_from, ..signal(claim, words.clone()) };
                    Self::emit(&session, &record, entry.pid, &words, changed_at, signal, out);
                }
                None => {
                    let identity = Identity::of(CLAUDE, "registry-unknown", &[session.as_bytes(), words.as_bytes()]);
                    out.unrecognized(
                        &record,
                        &session,
                        identity,
                        &format!("registry/{words}"),
                        changed_at.map(Timestamp::from_millisecond),
                    );
                }
            }
        }
        let name_changed = moved || last.as_ref().is_none_or(|l| l.name.as_deref() != entry.name.as_deref());
        if let Some(name) =
            entry.name.as_deref().filter(|_| name_changed && entry.name_source.as_deref() != Some("derived"))
        {
            let title = Annotation { topic: Topic::Title, value: name.to_owned() };
            Self::emit(&session, &record, entry.pid, name, entry.updated_at, title, out);
        }
        Ok(())
    }

    fn removed(&mut self, observed_at: Timestamp, out: &mut Decoded) {
        let (Some(last), Some(session)) = (self.last.take(), self.session.take()) else { return };
        let record = Record { bytes: &[], offset: 0, observed_at };
        let goodbye = signal(Claim::Withdrawn, "registry file removed".into());
        Self::emit(&session, &record, last.pid, "removed", None, goodbye, out);
    }

    fn state(&self) -> Option<String> {
        self.last.as_ref().and_then(|l| serde_json::to_string(l).ok())
    }

    fn session(&self) -> Option<&Arc<str>> {
        self.session.as_ref()
    }
}
