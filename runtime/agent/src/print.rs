//! Print mode: one prompt, its answer on a stream, and an exit code.

mod gate;
mod progress;

use std::io::{self, Write};

use engine::{EngineInput, PauseReason, RuntimeFrame, TurnOutcome, UserMessage};
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
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
enum PrintedLine<'a> {
    Entry(&'a Object),
    Skipped(u64),
}

/// Where print mode writes.
pub struct PrintStreams<'a> {
    /// The answer, or everything that happens.
    pub out: &'a mut (dyn Write + Send),
    /// What is done until then, for a person who waits; nothing when nobody does.
    pub progress: Option<&'a mut (dyn Write + Send)>,
    /// By which others write to the person too, without getting in between.
    pub gate: PrintGate,
}

/// Sends a prompt, prints what comes of it, and gives how it ended, with a message for the person. Nobody can answer a
/// pause here, so a turn that is paused is ended.
///
/// # Errors
/// A stream cannot be written to.
pub async fn print(
    session: &SessionHandle,
    message: UserMessage,
    format: PrintFormat,
    streams: PrintStreams<'_>,
) -> io::Result<(PrintExit, Option<String>)> {
    let PrintStreams { out, progress, mut gate } = streams;
    let mut progress = progress.map(PrintProgress::new);
    let mut updates = session.subscribe();
    let turn = session.prompt(message);
    tokio::pin!(turn);
    let report = loop {
        progress.as_mut().map_or(Ok(()), |progress| progress.hold(gate.is_held()))?;
        tokio::select! {
            // What happened is printed before the end of it is.
            biased;
            update = updates.recv() => match update {
                Ok(update) => {
                    progress.as_mut().map_or(Ok(()), |progress| progress.print(&update))?;
                    print_update(&update, format, out)?;
                }
                Err(RecvError::Lagged(count)) => print_skipped(count, format, out)?,
                Err(RecvError::Closed) => break Err(SessionClosed),
            },
            () = gate.open() => {}
            report = &mut turn => break report,
        }
    };
    progress.as_mut().map_or(Ok(()), |progress| progress.hold(false))?;
    if let Ok(TurnReport::Paused(_)) = &report {
        // When it is closed, it is not paused.
        let _ = session.input(EngineInput::Abort).await;
    }
    loop {
        match updates.try_recv() {
            Ok(update) => print_update(&update, format, out)?,
            Err(TryRecvError::Lagged(count)) => print_skipped(count, format, out)?,
            Err(TryRecvError::Empty | TryRecvError::Closed) => break,
        }
    }
    if let (Ok(TurnReport::Ended { text, .. }), PrintFormat::Text) = (&report, format)
        && !text.is_empty()
    {
        writeln!(out, "{}", text.trim_end_matches('\n'))?;
    }
    out.flush()?;
    Ok(exit_of(report))
}

fn exit_of(report: Result<TurnReport, SessionClosed>) -> (PrintExit, Option<String>) {
    match report {
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
                (outcome == TurnOutcome::Length).then(|| "the answer reached its maximum length".to_owned())
            });
            (exit, error)
        }
        Ok(TurnReport::Paused(why)) => {
            let (exit, text) = match why {
                PauseReason::TokenLimit => (PrintExit::OutOfBudget, "the limit of tokens is reached"),
                PauseReason::CostLimit => (PrintExit::OutOfBudget, "the limit of costs is reached"),
                PauseReason::PriceUnknown => {
                    (PrintExit::OutOfBudget, "costs are limited, and the price of the model is unknown")
                }
                PauseReason::TimeLimit => (PrintExit::OutOfBudget, "the limit of time is reached"),
                PauseReason::CallLimit => (PrintExit::OutOfBudget, "the limit of tool calls is reached"),
                PauseReason::Quota => (PrintExit::OutOfBudget, "the provider's quota is used up for now"),
                PauseReason::Loop => (PrintExit::Failed, "the model repeats the same calls with the same results"),
                PauseReason::Requested => (PrintExit::Failed, "the turn was paused"),
            };
            (exit, Some(text.to_owned()))
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
