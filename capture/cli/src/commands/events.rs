//! `capture events`

use std::io::Write;

use api::{
    history::EventsQuery,
    list::Limit,
    routes::{ListEvents, Stream, StreamQuery},
};
use events::{ApprovalKind, ApprovalRequested, ApprovalResolved, ApprovalState, Event, Kind, Payload};

use super::{Context, SCHEMA_VERSION, find, meanings, number::integer, output, style};
use crate::terminal::{self, safe, safe_json};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of
    /// its id.
    session: String,
    /// Keep printing new events.
    #[arg(long, short)]
    pub(super) follow: bool,
    /// Only these kinds.
    #[arg(long, value_delimiter = ',', value_name = "KIND", value_parser = super::one_of_explained(Kind::ALL, Kind::as_str, meanings::of_event))]
    kind: Vec<Kind>,
    /// Only events with a higher sequence number.
    #[arg(long, value_name = "SEQUENCE", default_value_t = 0, value_parser = integer::<u64>, allow_negative_numbers = true)]
    after: u64,
    /// Print only the first N events (after `--after`) [default: all].
    #[arg(long, value_name = "N", value_parser = integer::<usize>, allow_negative_numbers = true)]
    limit: Option<usize>,
}

/// Number of events requested at a time.
const PAGE: usize = 500;

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let client = context.client()?;
    let session = find(&client, &arguments.session)?;
    let mut left = arguments.limit.unwrap_or(usize::MAX);
    let mut after = arguments.after;
    // The stream is opened before the pages are read, so that nothing falls between them.
    let id = session.id.to_string();
    let of_session = StreamQuery { session: Some(id.clone()), ..StreamQuery::default() };
    let stream = arguments.follow.then(|| client.stream::<Stream>("", &of_session)).transpose()?;
    while left > 0 {
        let query = EventsQuery {
            after: Some(after),
            cursor: None,
            limit: Some(Limit::of(PAGE.min(left))),
            kind: arguments.kind.clone().into(),
        };
        let page = client.get::<ListEvents>(&id, &query)?;
        for event in &page.events {
            print(context, event.json())?;
        }
        left -= page.events.len();
        if page.next_after <= after || page.events.is_empty() {
            break;
        }
        after = page.next_after;
    }
    for news in stream.into_iter().flatten() {
        let (name, data) = news?;
        if name != "event" || left == 0 {
            continue;
        }
        let event = Event::from_json(&data)?;
        if event.sequence > after && (arguments.kind.is_empty() || arguments.kind.contains(&event.payload.kind())) {
            after = event.sequence;
            left -= 1;
            print(context, &data)?;
        }
    }
    Ok(())
}

fn print(context: &Context, json: &str) -> anyhow::Result<()> {
    let mut out = terminal::stdout();
    if output::has_template() {
        return context.print_json(&serde_json::from_str::<serde_json::Value>(json)?);
    }
    if context.json {
        let rest = json.strip_prefix('{').unwrap_or(json);
        writeln!(out, "{{\"schema_version\":{SCHEMA_VERSION},{}", safe_json(rest))?;
        return Ok(out.flush()?);
    }
    let event = Event::from_json(json)?;
    let text = match &event.payload {
        Payload::ToolCall(call) => format!("{} {}", call.name, call.title.as_deref().unwrap_or("")),
        Payload::ToolResult(result) => format!("{} {}", result.outcome, event.text.as_deref().unwrap_or("")),
        Payload::StatusChanged(change) => format!("{} {}", change.to, change.reason.map_or("", |r| r.as_str())),
        Payload::Annotation(note) => format!("{} {}", note.topic, note.value),
        Payload::Signal(signal) => format!("{} {}", event.source, signal.words.as_deref().unwrap_or("")),
        Payload::Unrecognized(unknown) => format!("{} ({} bytes)", unknown.raw_kind, unknown.length),
        Payload::TurnCompleted(turn) => format!("{} after {} ms", turn.outcome, turn.duration_ms),
        Payload::SessionStarted(start) => [start.cwd.as_deref(), start.cli_version.as_deref(), start.model.as_deref()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" "),
        Payload::SessionExited(exit) => exit.reason.map_or_else(String::new, |r| r.to_string()),
        Payload::TurnStarted(turn) => format!("turn {} by {}", turn.number, turn.trigger),
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
    };
    let text = safe(&projections::shorten::one_line(&text, 140));
    writeln!(out, "{:>6}  {}  {:<18} {text}", event.sequence, style::local(event.created_at), event.payload.kind())?;
    Ok(out.flush()?)
}

/// What a permission request is about: `command Bash make clean`.
fn asked_for(asked: &ApprovalRequested) -> String {
    let subject = asked.command.as_ref().or(asked.url.as_ref()).or(asked.paths.first());
    let parts = [asked.about.map(ApprovalKind::as_str), asked.tool.as_deref(), subject.map(String::as_str)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// How a permission request was decided, by whom and why: `denied by person: not now`.
fn resolution(resolved: &ApprovalResolved) -> String {
    let by = resolved.by.map(|by| format!(" by {by}")).unwrap_or_default();
    let why = resolved.message.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("{}{by}{why}", resolved.state.map_or("resolved", ApprovalState::as_str))
}

#[cfg(test)]
mod tests {
    use events::DecidedBy;

    use super::*;

    #[test]
    fn a_request_says_what_it_is_about_and_its_end_who_decided() {
        let asked = ApprovalRequested {
            about: Some(ApprovalKind::Command),
            tool: Some("Bash".into()),
            command: Some("make clean".into()),
            ..ApprovalRequested::default()
        };
        assert_eq!(asked_for(&asked), "command Bash make clean");
        let resolved = ApprovalResolved {
            state: Some(ApprovalState::Denied),
            by: Some(DecidedBy::Person),
            message: Some("not now".into()),
            ..ApprovalResolved::default()
        };
        assert_eq!(resolution(&resolved), "denied by person: not now");
        assert_eq!(resolution(&ApprovalResolved::default()), "resolved");
    }
}
