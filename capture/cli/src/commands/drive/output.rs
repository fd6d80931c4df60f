//! Prints a conversation: the agent's text to standard output and everything else to standard error, or with `--json`
//! one event per line.

use std::{
    io::Write,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use events::{ApprovalId, ApprovalKind, ToolOutcome};
use projections::Approval;
use protocols::TurnEnd;
use serde::Serialize;

use printing::{safe, safe_json};

use crate::{
    commands::{context::complain, output::SCHEMA_VERSION},
    show::request,
};

/// An event to print.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum DriveOutput<'a> {
    Session {
        provider: &'a str,
        session_id: &'a str,
        cwd: &'a str,
    },
    Text {
        text: &'a str,
    },
    ToolCall {
        id: &'a str,
        tool: &'a str,
    },
    ToolResult {
        id: &'a str,
        outcome: ToolOutcome,
    },
    Approval {
        approval_id: &'a ApprovalId,
        #[serde(flatten)]
        asked: RequestOutput<'a>,
    },
    Decided {
        approval_id: &'a ApprovalId,
        allowed: bool,
        decided: DecisionSource,
        message: Option<&'a str>,
    },
    Settled {
        approval_id: &'a ApprovalId,
    },
    Ended {
        outcome: &'static str,
        message: Option<&'a str>,
    },
    Error {
        message: &'a str,
    },
    Unrecognized {
        sort: &'a str,
    },
}

/// The content of a request. The server reports to which of its sessions the request belongs.
#[derive(Debug, Serialize)]
pub(super) struct RequestOutput<'a> {
    kind: Option<ApprovalKind>,
    tool: Option<&'a str>,
    command: Option<&'a str>,
    paths: &'a [String],
    url: Option<&'a str>,
    input: Option<&'a str>,
    exact: bool,
    cwd: Option<&'a str>,
    /// A one-line summary for users.
    #[serde(skip)]
    headline: String,
}

/// A request in the form that is printed.
pub(super) fn request_output(approval: &Approval) -> DriveOutput<'_> {
    let asked = RequestOutput {
        kind: approval.kind,
        tool: approval.tool.as_deref(),
        command: approval.command.as_deref(),
        paths: &approval.paths,
        url: approval.url.as_deref(),
        input: approval.input.as_deref(),
        exact: approval.exact,
        cwd: approval.cwd.as_deref(),
        headline: request::headline(approval),
    };
    DriveOutput::Approval { approval_id: &approval.id, asked }
}

/// The source of a decision on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DecisionSource {
    /// The server: a rule, a grant or a person.
    #[serde(rename = "desk")]
    Server,
    /// The user at this terminal, while no server could be reached.
    Terminal,
    /// No decision was made, so the request was denied.
    Nobody,
}

/// The output, shared by the conversation and the agent's standard error.
#[derive(Debug, Clone)]
pub(super) struct OutputWriter(Arc<Mutex<OutputState>>);

#[derive(Debug)]
struct OutputState {
    json: bool,
    /// Whether the last text did not end its line.
    open: bool,
    /// Output that arrived while the terminal shows a question, below which nothing may be printed.
    held: Option<Vec<HeldOutput>>,
}

/// Output to print once no question is shown.
#[derive(Debug)]
enum HeldOutput {
    Text(String),
    Remark(String),
    /// A line of the agent's standard error.
    ErrorLine(String),
}

impl OutputWriter {
    pub(super) fn new(json: bool) -> Self {
        Self(Arc::new(Mutex::new(OutputState { json, open: false, held: None })))
    }

    fn state(&self) -> MutexGuard<'_, OutputState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self, what: &DriveOutput<'_>) -> std::io::Result<()> {
        self.state().write(what)
    }

    /// Holds back output while the terminal shows a question, so that an answer refers to the question and not to text
    /// an agent printed below it.
    pub(super) fn hold(&self) {
        let mut state = self.state();
        if !state.json {
            state.held.get_or_insert_default();
        }
    }

    /// Prints the held output.
    pub(super) fn release(&self) -> std::io::Result<()> {
        let mut state = self.state();
        for held in state.held.take().unwrap_or_default() {
            match held {
                HeldOutput::Text(text) => state.write(&DriveOutput::Text { text: &text })?,
                HeldOutput::Remark(remark) => complain(&remark),
                HeldOutput::ErrorLine(line) => printing::print_error_line(&safe(&line)),
            }
        }
        Ok(())
    }

    /// Forwards a line of the agent's standard error, escaped for the terminal.
    pub(super) fn write_error_line(&self, line: &str) {
        match &mut self.state().held {
            Some(held) => held.push(HeldOutput::ErrorLine(line.to_owned())),
            None => printing::print_error_line(&safe(line)),
        }
    }
}

impl OutputState {
    fn write(&mut self, what: &DriveOutput<'_>) -> std::io::Result<()> {
        let mut out = printing::stdout();
        if self.json {
            #[derive(Serialize)]
            struct Versioned<'a> {
                schema_version: u32,
                #[serde(flatten)]
                what: &'a DriveOutput<'a>,
            }
            let line = serde_json::to_string(&Versioned { schema_version: SCHEMA_VERSION, what })?;
            writeln!(out, "{}", safe_json(&line))?;
            return out.flush();
        }
        if let Some(held) = &mut self.held {
            let text =
                if let DriveOutput::Text { text } = what { Some(HeldOutput::Text((*text).to_owned())) } else { None };
            held.extend(text.or_else(|| remark(what).map(HeldOutput::Remark)));
            return Ok(());
        }
        if let DriveOutput::Text { text } = what {
            let text = if out.escapes() { lines(text) } else { (*text).to_owned() };
            self.open = !text.is_empty() && !text.ends_with('\n') || text.is_empty() && self.open;
            out.write_all(text.as_bytes())?;
            return out.flush();
        }
        if std::mem::take(&mut self.open) {
            writeln!(out)?;
        }
        out.flush()?;
        drop(out);
        if let Some(remark) = remark(what) {
            complain(&remark);
        }
        Ok(())
    }
}

/// The remark for an event; `None` for events that are not shown.
fn remark(what: &DriveOutput<'_>) -> Option<String> {
    Some(match what {
        DriveOutput::Session { provider, session_id, .. } => format!("{provider} started, session {session_id}"),
        DriveOutput::Text { .. }
        | DriveOutput::ToolCall { .. }
        | DriveOutput::ToolResult { .. }
        | DriveOutput::Unrecognized { .. }
        | DriveOutput::Ended { outcome: "completed", .. } => return None,
        DriveOutput::Approval { approval_id, asked } => {
            format!("permission requested: {} ({approval_id})", asked.headline)
        }
        DriveOutput::Decided { allowed, message, decided, .. } => {
            let word = if *allowed { "allowed" } else { "denied" };
            let why = message.map(|why| format!(": {why}")).unwrap_or_default();
            let whose = if *decided == DecisionSource::Terminal {
                " here; the decision was not recorded, because no server could be reached"
            } else {
                ""
            };
            format!("{word}{whose}{why}")
        }
        DriveOutput::Settled { .. } => "the agent no longer waits for the answer".to_owned(),
        DriveOutput::Ended { outcome, message } => {
            message.map_or_else(|| format!("the turn ended: {outcome}"), str::to_owned)
        }
        DriveOutput::Error { message } => (*message).to_owned(),
    })
}

/// Asks the user at the terminal, showing the request in full. Returns whether a single key is not enough to allow it:
/// because it is longer than the screen, or because it `replaces` a question the user may be answering.
pub(super) fn question(approval: &Approval, replaces: bool) -> bool {
    let whole = request::surroundings(approval) + &request::exact(approval);
    let note = printing::asked::asks_for_word(&whole, printing::error_size(), replaces);
    let choices = if note.is_some() { "yes/No" } else { "y/N" };
    ask(&format!("{whole}\n{}Allow it once? [{choices}] ", note.as_deref().unwrap_or_default()));
    note.is_some()
}

/// Asks again after a single-key answer.
pub(super) fn ask_for_word() {
    ask("Type yes or no: ");
}

fn ask(text: &str) {
    let mut err = printing::stderr();
    write!(err, "{text}").and_then(|()| err.flush()).ok();
}

/// A text with its line breaks and tabs, without anything else that moves the cursor.
fn lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for part in text.split_inclusive(['\n', '\t']) {
        let end = part.chars().last().filter(|c| matches!(c, '\n' | '\t'));
        shown.push_str(&safe(part.trim_end_matches(['\n', '\t'])));
        shown.extend(end);
    }
    shown
}

/// How a turn ended, as one word, and why.
pub(super) fn ended(outcome: &TurnEnd) -> DriveOutput<'_> {
    match outcome {
        TurnEnd::Completed => DriveOutput::Ended { outcome: "completed", message: None },
        TurnEnd::Interrupted => DriveOutput::Ended { outcome: "interrupted", message: None },
        TurnEnd::Failed(why) => DriveOutput::Ended { outcome: "failed", message: Some(why) },
    }
}
