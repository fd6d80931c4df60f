//! Print mode: one prompt, its answer on a stream, and an exit code.

mod gate;
mod progress;

use std::io::{self, Write};

use engine::{CallVerdict, EngineInput, PauseReason, RuntimeFrame, TurnOutcome, UserMessage};
use serde::Serialize;
use session_tree::{Entry, Object};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

pub use self::gate::{PrintGate, PrintHold, PrintPass};
use self::progress::PrintProgress;
use crate::handle::{SessionClosed, SessionHandle, SessionUpdate, TurnReport};

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrintFormat {
    /// The text of the last answer.
    Text,
    /// A line of JSON for everything that happens: `{"type", "data"}`, where `type` is that of a frame, `entry`, or
    /// `skipped` with a number of updates when printing was too slow.
    JsonLines,
}

/// How a prompt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrintExit {
    /// The model has said everything.
    Done,
    /// The turn failed, was aborted, or went in circles.
    Failed,
    /// A limit was reached: time, tokens, costs, calls or answers.
    OutOfBudget,
    /// The prompt was not accepted, or the model refused to answer.
    Refused,
    /// The model has answered, but none of its calls was done, because nobody decided about any.
    Undone,
}

impl PrintExit {
    /// The code with which a program exits.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::OutOfBudget => 3,
            Self::Refused => 5,
            Self::Undone => 6,
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
enum PrintedLine<'a> {
    Entry(&'a Object),
    Skipped(u64),
}

/// How much a person sees of what is done until the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrintDetail {
    /// Everything, for a person who watches.
    All,
    /// Only what holds the turn up, and what soon will.
    Trouble,
}

/// Where print mode writes.
pub struct PrintStreams<'a> {
    /// The answer, or everything that happens.
    pub out: &'a mut (dyn Write + Send),
    /// What is done until then, and how much of it is told; nothing when all of it is in `out`.
    pub progress: Option<(&'a mut (dyn Write + Send), PrintDetail)>,
    /// A moment in milliseconds since 1970 as the clock time where the person is.
    pub clock: fn(i64) -> String,
    /// By which others write to the person too, without getting in between.
    pub gate: PrintGate,
}

/// Sends a prompt, prints what comes of it, and gives how it ended, with a message for the person. Nobody can answer a
/// pause here, so a turn that is paused is ended.
///
/// # Errors
/// `out` cannot be written to.
pub async fn print(
    session: &SessionHandle,
    message: UserMessage,
    format: PrintFormat,
    streams: PrintStreams<'_>,
) -> io::Result<(PrintExit, Option<String>)> {
    let PrintStreams { out, progress, clock, mut gate } = streams;
    let mut progress = progress.map(|(out, detail)| PrintProgress::new(out, detail, clock));
    let mut calls = DecidedCalls::default();
    let mut updates = session.subscribe();
    let turn = session.prompt(message);
    tokio::pin!(turn);
    let report = loop {
        progress.iter_mut().for_each(|progress| progress.hold(gate.is_held()));
        tokio::select! {
            // What happened is printed before the end of it is.
            biased;
            update = updates.recv() => match update {
                Ok(update) => {
                    progress.iter_mut().for_each(|progress| progress.print(&update));
                    tell(Ok(&update), &mut calls, format, out)?;
                }
                Err(RecvError::Lagged(count)) => tell(Err(count), &mut calls, format, out)?,
                Err(RecvError::Closed) => break Err(SessionClosed),
            },
            () = gate.open() => {}
            report = &mut turn => break report,
        }
    };
    progress.iter_mut().for_each(|progress| progress.hold(false));
    if let Ok(TurnReport::Paused { .. }) = &report {
        // When it is closed, it is not paused.
        let _ = session.input(EngineInput::Stop).await;
    }
    loop {
        match updates.try_recv() {
            Ok(update) => {
                progress.iter_mut().for_each(|progress| progress.warn(&update));
                tell(Ok(&update), &mut calls, format, out)?;
            }
            Err(TryRecvError::Lagged(count)) => tell(Err(count), &mut calls, format, out)?,
            Err(TryRecvError::Empty | TryRecvError::Closed) => break,
        }
    }
    if let (Ok(TurnReport::Ended { text, .. }), PrintFormat::Text) = (&report, format)
        && !text.is_empty()
    {
        writeln!(out, "{}", text.trim_end_matches('\n'))?;
    }
    out.flush()?;
    Ok(exit_of(report, &calls, clock))
}

/// Counts and prints an update, or how many were lost.
fn tell(
    update: Result<&SessionUpdate, u64>,
    calls: &mut DecidedCalls,
    format: PrintFormat,
    out: &mut (dyn Write + Send),
) -> io::Result<()> {
    match update {
        Ok(update) => {
            calls.count(update);
            print_update(update, format, out)
        }
        Err(lost) => {
            calls.were_missed = true;
            print_skipped(lost, format, out)
        }
    }
}

/// The calls of a turn: those about which was decided, and those about which nobody did.
#[derive(Debug, Default)]
struct DecidedCalls {
    decided: usize,
    undone: usize,
    /// Whether some may not have been counted.
    were_missed: bool,
}

impl DecidedCalls {
    fn count(&mut self, update: &SessionUpdate) {
        let SessionUpdate::Frame(frame) = update else { return };
        let RuntimeFrame::CallDecided { decision, .. } = &**frame else { return };
        match decision.verdict {
            CallVerdict::Allow | CallVerdict::NoEffect | CallVerdict::Deny => self.decided += 1,
            CallVerdict::Unanswered => self.undone += 1,
        }
    }

    /// What is said of them behind the answer, when none was done.
    fn remark(&self) -> Option<String> {
        let which = match (self.decided, self.undone) {
            (0, 0) | (1.., _) => return None,
            _ if self.were_missed => return None,
            (0, 1) => "the model's only call was",
            (0, many) => &format!("all {many} calls of the model were"),
        };
        Some(format!("{which} left undone, because nobody answered; `capture approve` and your policy answer requests"))
    }
}

/// How a session whose turn has ended goes on.
const GO_ON: &str = "`capture agent run --continue` goes on with this session";

fn exit_of(
    report: Result<TurnReport, SessionClosed>,
    calls: &DecidedCalls,
    clock: fn(i64) -> String,
) -> (PrintExit, Option<String>) {
    match report {
        Ok(TurnReport::Ended { outcome: TurnOutcome::Done, error: None, .. }) => match calls.remark() {
            Some(remark) => (PrintExit::Undone, Some(remark)),
            None => (PrintExit::Done, None),
        },
        Ok(TurnReport::Ended { outcome: TurnOutcome::Rounds, error, .. }) => {
            let error = error.unwrap_or_else(|| "the limit of answers is reached".to_owned());
            (PrintExit::OutOfBudget, Some(format!("{error}; {GO_ON}, and `--max-turns` sets another limit")))
        }
        Ok(TurnReport::Ended { outcome, error, .. }) => {
            let exit = match outcome {
                TurnOutcome::Done => PrintExit::Done,
                TurnOutcome::Rounds => PrintExit::OutOfBudget,
                TurnOutcome::Refused => PrintExit::Refused,
                TurnOutcome::Length
                | TurnOutcome::Empty
                | TurnOutcome::Aborted
                | TurnOutcome::Interrupted
                | TurnOutcome::Failed => PrintExit::Failed,
            };
            let error = error.or_else(|| {
                let what = "the answer reached its maximum length";
                (outcome == TurnOutcome::Length)
                    .then(|| format!("{what}; {GO_ON}, and agent.providers.….max_output_tokens sets another maximum"))
            });
            (exit, error)
        }
        Ok(TurnReport::Paused { why, until_wall_ms }) => {
            let higher = |limit: &str| format!("the limit of {limit} is reached; {GO_ON} once the limit is higher");
            let (exit, text) = match why {
                PauseReason::TokenLimit => (PrintExit::OutOfBudget, higher("tokens")),
                PauseReason::CostLimit => (PrintExit::OutOfBudget, higher("costs")),
                PauseReason::PriceUnknown => (
                    PrintExit::OutOfBudget,
                    "costs are limited, and the price of the model is unknown; add its price, or take the limit away"
                        .to_owned(),
                ),
                PauseReason::TimeLimit => (PrintExit::OutOfBudget, higher("time")),
                PauseReason::CallLimit => (PrintExit::OutOfBudget, higher("tool calls")),
                PauseReason::Quota | PauseReason::Unavailable => {
                    let until = until_wall_ms.map(|ms| format!(", until {}", clock(ms))).unwrap_or_default();
                    let is_quota = why == PauseReason::Quota;
                    let (exit, what) = if is_quota {
                        (PrintExit::OutOfBudget, "the provider's quota is used up")
                    } else {
                        (PrintExit::Failed, "the provider takes no requests")
                    };
                    (exit, format!("{what} for now{until}; {GO_ON} then"))
                }
                PauseReason::Loop => (
                    PrintExit::Failed,
                    format!("the model repeats the same calls with the same results, so the turn was ended; {GO_ON}"),
                ),
                PauseReason::Requested => (PrintExit::Failed, format!("the turn was paused; {GO_ON}")),
            };
            (exit, Some(text))
        }
        Ok(TurnReport::FileLost(error)) => {
            let way_on = "look at what changed it; `capture agent run --continue` goes on with what the file holds, and \
                          without --continue a new session begins";
            let text =
                format!("{error}, so this session ends: what the agent did since then is not in the file; {way_on}");
            (PrintExit::Failed, Some(text))
        }
        Ok(TurnReport::Refused(reason)) => (PrintExit::Refused, Some(reason)),
        Err(closed) => (PrintExit::Failed, Some(closed.to_string())),
    }
}

fn print_update(update: &SessionUpdate, format: PrintFormat, out: &mut (dyn Write + Send)) -> io::Result<()> {
    match (update, format) {
        (_, PrintFormat::Text) => Ok(()),
        (SessionUpdate::Frame(frame), PrintFormat::JsonLines) => print_frame(frame, out),
        (SessionUpdate::Entry(entry), PrintFormat::JsonLines) => print_entry(entry, out),
    }
}

fn print_frame(frame: &RuntimeFrame, out: &mut (dyn Write + Send)) -> io::Result<()> {
    writeln!(out, "{}", serde_json::to_string(frame).map_err(io::Error::other)?)
}

fn print_entry(entry: &Entry, out: &mut (dyn Write + Send)) -> io::Result<()> {
    let line = PrintedLine::Entry(entry.fields());
    writeln!(out, "{}", serde_json::to_string(&line).map_err(io::Error::other)?)
}

fn print_skipped(count: u64, format: PrintFormat, out: &mut (dyn Write + Send)) -> io::Result<()> {
    match format {
        PrintFormat::Text => Ok(()),
        PrintFormat::JsonLines => {
            writeln!(out, "{}", serde_json::to_string(&PrintedLine::Skipped(count)).map_err(io::Error::other)?)
        }
    }
}
