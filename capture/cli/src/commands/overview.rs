//! `capture` alone and `capture setup`: which sessions need the user, and what is not set up yet.

use std::path::{Path, PathBuf};

use atomic_file::Durability;
use events::{Need, Provider};
use home::{desktop, paths};
use projections::Session;
use serde::{Deserialize, Serialize};

use super::{
    context::{Context, active_sessions, print_line},
    hooks, ps, shell,
    watch::show,
    web,
};
use printing::wrapped;

#[derive(Debug, clap::Args)]
pub(super) struct SetupArguments {
    /// Hide the suggestions printed by `capture` without a command.
    #[arg(long, conflicts_with = "restore")]
    dismiss: bool,
    /// Show the suggestions again.
    #[arg(long)]
    restore: bool,
}

/// An improvement that takes one command to set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Offer {
    name: &'static str,
    done: bool,
    command: String,
    /// The benefit, in one line.
    gain: String,
}

/// The user's decision about the offers, stored in the data directory.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Decided {
    dismissed: bool,
}

/// Maximum number of active sessions examined.
const LOOKED_AT: usize = 1000;
/// Maximum number of sessions listed.
const LISTED: usize = 10;

#[derive(Serialize)]
struct Overview<'a> {
    need_you: &'a [Session],
    /// The number of further active sessions.
    others: usize,
    setup: &'a [Offer],
}

/// `capture` without a command.
pub(super) fn run(context: &Context) -> anyhow::Result<()> {
    let client = context.client()?;
    let sources = ps::settled_sources(&client)?;
    let needs = ps::needs(&client)?;
    let top = |session: &Session| session.parent_session_id.is_none();
    let active = active_sessions(&client, LOOKED_AT)?.into_iter().filter(top);
    let (need_you, others): (Vec<Session>, Vec<Session>) = active.partition(|session| needs.of(session).is_some());
    let offers = if is_dismissed(&context.data) { Vec::new() } else { offers(context) };
    let open: Vec<Offer> = offers.into_iter().filter(|offer| !offer.done).collect();
    if context.json {
        return context.print_json(&Overview { need_you: &need_you, others: others.len(), setup: &open });
    }
    let asks = need_you.iter().any(|session| needs.of(session) == Some(Need::Approval));
    let mut text = if need_you.is_empty() {
        "No session needs you.\n".to_owned()
    } else {
        let mut text = ps::table_of(&need_you[..need_you.len().min(LISTED)], &needs);
        if need_you.len() > LISTED {
            text += &format!("… and {} more\n", need_you.len() - LISTED);
        }
        text
    };
    text += &format!("\n{}\n", wrapped(&next(asks, others.len()), printing::width(), 0));
    if !open.is_empty() {
        text += "\nNot set up yet:\n";
        text += &listed(&open, printing::width());
        text += "`capture setup --dismiss` hides this.\n";
    }
    show(&text)?;
    ps::print_progress(&sources);
    Ok(())
}

/// Suggests the next command.
fn next(asks: bool, others: usize) -> String {
    let more = match others {
        0 => "`capture ps --all` lists all sessions".to_owned(),
        1 => "1 more session is active: `capture ps`".to_owned(),
        n => format!("{n} more sessions are active: `capture ps`"),
    };
    let act = if asks { "`capture approvals` shows their requests · " } else { "" };
    format!("{act}{more} · `capture --help`")
}

fn listed(offers: &[Offer], columns: Option<usize>) -> String {
    let width = offers.iter().map(|offer| offer.command.chars().count()).max().unwrap_or_default();
    let line = |offer: &Offer| {
        let mark = if offer.done { "✓" } else { "·" };
        let line = format!("  {mark} {:width$}  {}", offer.command, offer.gain);
        wrapped(&line, columns, width + "  · ".chars().count() + 2) + "\n"
    };
    offers.iter().map(line).collect()
}

/// `capture setup`
pub(super) fn setup(context: &Context, arguments: &SetupArguments) -> anyhow::Result<()> {
    if arguments.dismiss || arguments.restore {
        let decided = serde_json::to_string(&Decided { dismissed: arguments.dismiss })?;
        atomic_file::replace(&file(&context.data), decided.as_bytes(), Durability::Unsynced)?;
        let words = if arguments.dismiss {
            "`capture` no longer shows suggestions; `capture setup` lists them"
        } else {
            "`capture` shows suggestions again"
        };
        return print_line(words);
    }
    let offers = offers(context);
    if context.json {
        return context.print_json(&serde_json::json!({ "setup": offers }));
    }
    show(&listed(&offers, printing::width()))
}

fn file(data: &Path) -> PathBuf {
    data.join("setup.json")
}

/// Whether the user dismissed the suggestions. An unreadable file counts as missing, so the suggestions are shown
/// again.
fn is_dismissed(data: &Path) -> bool {
    let text = std::fs::read_to_string(file(data)).unwrap_or_default();
    serde_json::from_str::<Decided>(&text).is_ok_and(|decided| decided.dismissed)
}

fn offers(context: &Context) -> Vec<Offer> {
    let (missing, installed) = hooks::coverage(context).unwrap_or_default();
    let names = |agents: &[Provider]| agents.iter().map(|agent| agent.as_str()).collect::<Vec<_>>().join(", ");
    let mut offers = Vec::new();
    if !missing.is_empty() || !installed.is_empty() {
        let agents = if missing.is_empty() { names(&installed) } else { names(&missing) };
        offers.push(Offer {
            name: "hooks",
            done: missing.is_empty(),
            command: "capture hooks install".into(),
            gain: format!(
                "report permission requests of {agents} immediately; with --approver, you can answer them here"
            ),
        });
    }
    offers.push(Offer {
        name: "notifications",
        done: desktop::can_deliver(&context.config.notify),
        command: "capture notify --help".into(),
        gain: "send permission requests and stuck sessions to the desktop, Slack, ntfy, a webhook or a program".into(),
    });
    let paired = web::paired(&context.data);
    offers.push(Offer {
        name: "page",
        done: paired > 0,
        command: "capture web".into(),
        gain: "see all sessions and answer requests in the browser".into(),
    });
    offers.push(Offer {
        name: "phone",
        done: paired > 1,
        command: "capture web pair --qr".into(),
        gain: "the same on a phone that can reach this machine; `capture web pair --help` explains how".into(),
    });
    let shell = shell::Shell::of_user();
    offers.push(Offer {
        name: "completions",
        done: shell.is_some_and(shell::Shell::is_set_up),
        command: format!("capture init {}", shell.map_or("bash", shell::Shell::name)),
        gain: "complete commands and the ids of live sessions with Tab".into(),
    });
    // Without a home directory there is nothing to set up in it.
    if paths::home().is_err() {
        offers.retain(|offer| ["notifications", "page", "phone"].contains(&offer.name));
    }
    offers
}
