//! `capture events`

use std::{fmt::Write as _, io::Write as _};

use api::{
    history::{EventPage, EventsQuery, RawEvent},
    list::Limit,
    routes::{ListEvents, Stream, StreamQuery},
};
use client::{Client, ClientError};
use crossbeam_channel::{Sender, bounded};
use events::{
    AccountedModel, ApprovalKind, ApprovalRequested, ApprovalResolved, Event, Kind, Payload, QuotaReported,
    TurnCompleted, TurnOutcome, TurnTrigger, UsageReported,
};
use export::conversation::duration;
use printing::style;

use printing::{safe, safe_json};

use crate::show::request::decided;

use super::{
    context::{Context, find},
    meanings,
    number::integer,
    output::{self, SCHEMA_VERSION},
};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of
    /// its id.
    session: String,
    /// Keep printing new events.
    #[arg(long, short)]
    pub(super) follow: bool,
    /// Only these kinds.
    #[arg(long, value_delimiter = ',', value_name = "KIND", value_parser = super::words::one_of_explained(Kind::ALL, Kind::as_str, meanings::of_event))]
    kind: Vec<Kind>,
    /// Only events with a higher sequence number.
    #[arg(long, value_name = "SEQUENCE", default_value_t = 0, value_parser = integer::<u64>, allow_negative_numbers = true)]
    after: u64,
    /// Print only the first N events (after `--after`) [default: all].
    #[arg(long, value_name = "N", value_parser = integer::<usize>, allow_negative_numbers = true)]
    limit: Option<usize>,
}

/// Number of events in the first request: enough to fill a screen, and fast.
const FIRST_PAGE: usize = 100;
/// Number of events in each further request.
const PAGE: usize = 1_000;
/// Number of pages read before they are printed.
const PAGES_AHEAD: usize = 1;

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let client = context.client()?;
    let session = find(&client, &arguments.session)?;
    let mut left = arguments.limit.unwrap_or(usize::MAX);
    let mut after = arguments.after;
    // Open the stream before reading the pages, so that no event is missed between them.
    let id = session.id.to_string();
    let of_session = StreamQuery { session: Some(id.clone()), ..StreamQuery::default() };
    let stream = arguments.follow.then(|| client.stream::<Stream>("", &of_session)).transpose()?;
    std::thread::scope(|scope| {
        let (send, pages) = bounded(PAGES_AHEAD);
        let (first, client, id) = (Pages { after, left, kinds: &arguments.kind }, &client, &id);
        scope.spawn(move || first.read(client, id, &send));
        // Print each page while the next one is read.
        for page in pages {
            let page: EventPage = page?;
            print_all(context, page.events.iter().map(RawEvent::json))?;
            left -= page.events.len();
            after = page.next_after.max(after);
        }
        anyhow::Ok(())
    })?;
    for news in stream.into_iter().flatten() {
        let (name, data) = news?;
        if name != "event" || left == 0 {
            continue;
        }
        let event = Event::from_json(&data)?;
        if event.sequence > after && (arguments.kind.is_empty() || arguments.kind.contains(&event.payload.kind())) {
            after = event.sequence;
            left -= 1;
            print_all(context, std::iter::once(data.as_str()))?;
        }
    }
    Ok(())
}

/// The pages of a session's events that remain to be read.
struct Pages<'a> {
    after: u64,
    left: usize,
    kinds: &'a [Kind],
}

impl Pages<'_> {
    /// Sends page after page until there are no more or the receiver is gone.
    fn read(mut self, client: &Client, id: &str, pages: &Sender<Result<EventPage, ClientError>>) {
        let mut most = FIRST_PAGE;
        while self.left > 0 {
            let query = EventsQuery {
                after: Some(self.after),
                cursor: None,
                limit: Some(Limit::of(most.min(self.left))),
                kind: self.kinds.to_vec().into(),
            };
            let page = client.get::<ListEvents>(id, &query);
            let read = page.as_ref().map_or((0, 0), |page| (page.events.len(), page.next_after));
            let is_last = read.0 == 0 || read.1 <= self.after;
            if pages.send(page).is_err() || is_last {
                return;
            }
            (self.after, self.left, most) = (read.1, self.left - read.0, PAGE);
        }
    }
}

/// Prints events in one write.
fn print_all<'a>(context: &Context, events: impl Iterator<Item = &'a str>) -> anyhow::Result<()> {
    if output::has_template() {
        for json in events {
            context.print_json(&serde_json::from_str::<serde_json::Value>(json)?)?;
        }
        return Ok(());
    }
    let width = printing::width();
    let mut lines = String::new();
    for json in events {
        if context.json {
            let rest = json.strip_prefix('{').unwrap_or(json);
            let _ = writeln!(lines, "{{\"schema_version\":{SCHEMA_VERSION},{}", safe_json(rest));
        } else {
            let _ = writeln!(lines, "{}", line_of(&Event::from_json(json)?, width));
        }
    }
    let mut out = printing::stdout();
    out.write_all(lines.as_bytes())?;
    Ok(out.flush()?)
}

/// Maximum number of characters of an event's text.
const TEXT_CHARS: usize = 140;
/// Minimum number of characters of an event's text, however narrow the terminal is.
const LEAST_CHARS: usize = 24;

/// The text of an event.
pub(super) fn text_of(event: &Event) -> String {
    match &event.payload {
        Payload::ToolCall(call) => format!("{} {}", call.name, call.title.as_deref().unwrap_or("")),
        Payload::ToolResult(result) => format!("{} {}", result.outcome, event.text.as_deref().unwrap_or("")),
        Payload::StatusChanged(change) => format!("{} {}", change.to, change.reason.map_or("", |r| r.as_str())),
        Payload::Annotation(note) => format!("{} {}", note.topic, note.value),
        Payload::Signal(signal) => format!("{} {}", event.source, signal.words.as_deref().unwrap_or("")),
        Payload::Unrecognized(unknown) => format!("{} ({} bytes)", unknown.raw_kind, unknown.length),
        Payload::TurnCompleted(turn) => turn_words(turn),
        Payload::SessionStarted(start) => [start.cwd.as_deref(), start.cli_version.as_deref(), start.model.as_deref()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" "),
        Payload::SessionExited(exit) => exit.reason.map_or_else(String::new, |r| r.to_string()),
        Payload::TurnStarted(turn) => {
            let trigger = match turn.trigger {
                TurnTrigger::Prompt => "started by a prompt",
                TurnTrigger::Wakeup => "started by the agent itself",
                TurnTrigger::Command => "started by a command",
                TurnTrigger::Monitor => "started by a rule's prompt",
            };
            format!("turn {} {trigger}", turn.number)
        }
        Payload::UsageReported(usage) if usage.input_tokens == 0 && !usage.quotas.is_empty() => {
            let used = |quota: &QuotaReported| {
                format!("quota {}: {:.1} % used", safe(&quota.name), f64::from(quota.used_permille) / 10.0)
            };
            usage.quotas.iter().map(used).collect::<Vec<_>>().join(", ")
        }
        Payload::UsageReported(UsageReported { account: Some(account), .. }) => {
            let spent = |sum: &AccountedModel| {
                format!("{}: {} in, {} out", safe(&sum.model), sum.input_tokens, sum.output_tokens)
            };
            let sums: Vec<String> = account.models.iter().map(spent).collect();
            format!("the agent's own totals for the {}: {}", account.scope, sums.join("; "))
        }
        Payload::UsageReported(usage) => {
            format!("{} in, {} out, {} from cache", usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
        }
        Payload::SessionForked(fork) => format!("from {}", fork.from),
        Payload::Finding(finding) => format!("{} {}: {}", finding.state, finding.kind, finding.what),
        Payload::Notification(sent) => {
            format!("{} {} {}", sent.channel, sent.outcome, sent.error.as_deref().unwrap_or(""))
        }
        Payload::QueuedPrompt(prompt) => format!("{} {}", prompt.state, event.text.as_deref().unwrap_or("")),
        Payload::ApprovalRequested(asked) => asked_for(asked),
        Payload::ApprovalResolved(resolved) => resolution(resolved),
        Payload::UserPrompt(_)
        | Payload::AssistantDelta(_)
        | Payload::AssistantMessage(_)
        | Payload::Error(_)
        | Payload::Heartbeat(_)
        | Payload::QuestionAsked(_)
        | Payload::QuestionAnswered(_)
        | Payload::ContextCompacted(_) => event.text.clone().unwrap_or_default(),
    }
}

/// How a turn ended, and its duration: `done in 15 s`.
pub(super) fn turn_words(turn: &TurnCompleted) -> String {
    let how = match turn.outcome {
        TurnOutcome::Completed => return format!("done in {}", duration(turn.duration_ms)),
        TurnOutcome::TakenBack => return "taken back by the user".to_owned(),
        TurnOutcome::Interrupted => "interrupted",
        TurnOutcome::Denied => "ended by a denial",
        TurnOutcome::Failed => "failed",
        TurnOutcome::Exited => "ended with its process",
        TurnOutcome::Superseded => "replaced by the next prompt",
        TurnOutcome::TimedOut => "fell silent",
    };
    format!("{how} after {}", duration(turn.duration_ms))
}

/// An event in one line, cut to the width but never below [`LEAST_CHARS`] characters of text.
fn line_of(event: &Event, width: Option<usize>) -> String {
    let (sequence, at, kind) = (event.sequence, style::local(event.created_at), event.payload.kind());
    behind(format!("{sequence:>6}  {at}  {kind:<18} "), &text_of(event), width)
}

/// Appends a text to the head of its line.
pub(super) fn behind(head: String, text: &str, width: Option<usize>) -> String {
    let room =
        width.map_or(TEXT_CHARS, |width| width.saturating_sub(head.chars().count()).clamp(LEAST_CHARS, TEXT_CHARS));
    head + &safe(&projections::shorten::verbatim_line(text, room))
}

/// The subject of a permission request: `command Bash make clean`.
fn asked_for(asked: &ApprovalRequested) -> String {
    let subject = asked.command.as_ref().or(asked.url.as_ref()).or(asked.paths.first());
    let parts = [asked.about.map(ApprovalKind::as_str), asked.tool.as_deref(), subject.map(String::as_str)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// How a permission request was decided, by whom and why: `denied by you: not now`; otherwise, how its call ended.
fn resolution(resolved: &ApprovalResolved) -> String {
    let Some(state) = resolved.new_state() else {
        return resolved.outcome.map_or_else(String::new, |outcome| format!("the call ended: {outcome}"));
    };
    let why = resolved.message.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    decided(state, resolved.by, resolved.device.as_deref(), resolved.rule.as_deref()) + &why
}

#[cfg(test)]
mod tests {
    use events::{
        AssistantMessage, Confidence, DecidedBy, EventId, Origin, Provider, SessionId, Source, Timestamp, ToolOutcome,
    };

    use super::*;

    #[test]
    fn event_text_takes_24_to_140_columns_by_terminal_width() {
        let event = Event {
            position: 1,
            id: EventId::from_bits(1),
            session_id: SessionId::from_bits(1),
            sequence: 7,
            provider: Provider::Claude,
            provider_session_id: "p".into(),
            source: Source::Transcript,
            created_at: Timestamp::MIN,
            observed_at: Timestamp::MIN,
            turn_id: None,
            parent_id: None,
            agent_id: None,
            confidence: Confidence::High,
            severity: None,
            text: Some("word ".repeat(99)),
            text_ref: None,
            payload: AssistantMessage::default().into(),
            origin: Origin::Derived,
            derived: false,
            history: false,
        };
        for (width, columns) in [(None, 48 + 140), (Some(200), 48 + 140), (Some(120), 120), (Some(40), 48 + 24)] {
            let line = line_of(&event, width);
            assert_eq!(line.chars().count(), columns, "{width:?}: {line}");
        }
    }

    #[test]
    fn a_request_shows_its_command_and_a_resolution_its_decider() {
        let asked = ApprovalRequested {
            about: Some(ApprovalKind::Command),
            tool: Some("Bash".into()),
            command: Some("make clean".into()),
            ..ApprovalRequested::default()
        };
        assert_eq!(asked_for(&asked), "command Bash make clean");
        let resolved = ApprovalResolved {
            allowed: Some(false),
            by: Some(DecidedBy::Person),
            message: Some("not now".into()),
            ..ApprovalResolved::default()
        };
        assert_eq!(resolution(&resolved), "denied by you: not now");
        let outcome = Some(ToolOutcome::Ok);
        assert_eq!(resolution(&ApprovalResolved { outcome, ..ApprovalResolved::default() }), "the call ended: ok");
    }
}
