//! `capture queue`: prompts to type when a session waits for one.

use std::fmt::Write;

use api::{
    list::Limit,
    prompts::{PromptRequest, PromptsQuery},
    routes::{CancelPrompt, EmptyBody, ListPrompts, QueuePrompt},
};
use client::failure::Failed;
use events::QueuedState;
use home::clock;
use printing::style;
use projections::{Prompt, shorten::verbatim_line};

use super::{
    context::{Context, find, print_line},
    watch::show,
};
use printing::safe;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of
    /// its id. Without a prompt, list its queue.
    session: Option<String>,
    /// The prompt; `-` reads it from standard input.
    prompt: Option<String>,
    /// Cancel this queued prompt: its id, or at least 3 characters from the start or end of its id.
    #[arg(long, value_name = "ID", conflicts_with_all = ["session", "prompt"])]
    cancel: Option<String>,
    /// Include prompts that were delivered or cancelled.
    #[arg(long, short)]
    all: bool,
}

/// Maximum number of prompts listed.
const LISTED: usize = 200;

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let client = context.client()?;
    let shown = |prompt: &Prompt| {
        if context.json { context.print_json(prompt) } else { print_line(row(prompt).trim_end()) }
    };
    if let Some(id) = &arguments.cancel {
        return shown(&client.send::<CancelPrompt>(id, &EmptyBody {})?);
    }
    let session = arguments.session.as_deref().map(|given| find(&client, given)).transpose()?;
    if let (Some(session), Some(prompt)) = (&session, &arguments.prompt) {
        let text = if prompt == "-" { std::io::read_to_string(std::io::stdin())? } else { prompt.clone() };
        if text.trim().is_empty() {
            return Err(Failed::Usage("the prompt is empty".into()).into());
        }
        let prompt = client.send::<QueuePrompt>(&session.id.to_string(), &PromptRequest { text })?;
        if context.json {
            return context.print_json(&prompt);
        }
        let (id, session) = (style::short(&prompt.id), style::short(&prompt.session_id));
        let text = safe(&verbatim_line(&prompt.text, 100));
        if prompt.state == QueuedState::Delivered {
            return print_line(&format!(
                "sent as {id} to session {session}, whose agent runs it after this turn: {text}"
            ));
        }
        return print_line(&format!("queued as {id} for session {session}: {text}"));
    }
    let query = PromptsQuery {
        state: (!arguments.all).then_some(QueuedState::Queued),
        session: session.map(|session| session.id.to_string()),
        cursor: None,
        limit: Some(Limit::of(LISTED)),
    };
    let page = client.get::<ListPrompts>("", &query)?;
    if context.json {
        return context.print_json(&page);
    }
    if page.prompts.is_empty() {
        return show(if arguments.all {
            "no queued prompts yet\n"
        } else {
            "no prompts are waiting (--all includes the others)\n"
        });
    }
    show(&page.prompts.iter().map(row).collect::<String>())
}

fn row(prompt: &Prompt) -> String {
    let (mark, colour) = match prompt.state {
        QueuedState::Queued => ("…", style::CYAN),
        QueuedState::Delivering => ("→", style::CYAN),
        QueuedState::Delivered => ("✓", style::GREEN),
        QueuedState::Unclear => ("?", style::YELLOW),
        QueuedState::Cancelled => ("✗", style::DIM),
    };
    let state = style::painted(&format!("{mark} {:<10}", prompt.state), colour);
    let mut text = format!(
        "{state}  {}  {}  {:>4}  {}\n",
        style::short(&prompt.id),
        style::short(&prompt.session_id),
        style::age(prompt.queued_at, clock::now()),
        safe(&verbatim_line(&prompt.text, 100))
    );
    if let Some(why) = &prompt.why {
        let _ = writeln!(text, "    {}", safe(why));
    }
    text
}
