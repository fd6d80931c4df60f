//! Print mode: one prompt, its answer on a stream, and an exit code.

mod gate;
mod progress;
mod streamed;

use std::{
    io::{self, Write},
    path::Path,
    time::Duration,
};

use engine::{
    CallVerdict, EngineActivity, EngineInput, PauseReason, RuntimeFrame, SpendLimits, TurnOutcome, UserMessage,
};
use serde::Serialize;
use session_tree::{Entry, Object};
use tokio::{
    sync::broadcast::{
        Receiver,
        error::{RecvError, TryRecvError},
    },
    time::Instant,
};

pub use self::gate::{PrintGate, PrintHold, PrintPass};
use self::{
    progress::{PrintProgress, ProgressClock},
    streamed::StreamedText,
};
use crate::handle::{SessionClosed, SessionHandle, SessionUpdate, TurnReport};

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrintFormat {
    /// The text of the last answer.
    Text,
    /// A line of JSON for every update: `{"type", "data"}`, where `type` is that of a frame, `entry`, or `skipped` with
    /// the number of updates lost because printing was too slow.
    JsonLines,
}

/// The result of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrintExit {
    /// The model finished.
    Done,
    /// The turn failed, was aborted, or was stopped by the loop guard.
    Failed,
    /// A limit was reached: time, tokens, cost, calls or answers.
    OutOfBudget,
    /// The prompt was not accepted, or the model refused to answer.
    Refused,
    /// The model answered, but none of its calls was run, because none was decided.
    Undone,
}

impl PrintExit {
    /// The exit code of the program.
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

/// How much progress is shown until the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrintDetail {
    /// Like `All`, and the model's texts in `out` while they arrive: `out` and the progress are one terminal.
    Streamed,
    /// Everything, for a user who watches.
    All,
    /// Only messages about current or coming delays.
    Trouble,
}

/// The output streams of print mode.
pub struct PrintStreams<'a> {
    /// The answer, or all updates.
    pub out: &'a mut (dyn Write + Send),
    /// The stream for progress, and its detail; `None` if all updates are in `out`.
    pub progress: Option<(&'a mut (dyn Write + Send), PrintDetail)>,
    /// Formats a time (milliseconds since 1970) as local clock time.
    pub clock: fn(i64) -> String,
    /// The current time, in milliseconds since 1970.
    pub now: fn() -> i64,
    /// Maximum number of attempts at a request.
    pub attempts: u32,
    /// Synchronizes progress with other output to the user, so that they do not mix.
    pub gate: PrintGate,
}

/// Sends a prompt, prints the turn and those of messages queued after it, and returns how the last turn ended, with a
/// message for the user. A pause cannot be answered here, so a paused turn is ended.
///
/// # Errors
/// `out` cannot be written to.
pub async fn print(
    session: &SessionHandle,
    message: UserMessage,
    format: PrintFormat,
    streams: PrintStreams<'_>,
) -> io::Result<(PrintExit, Option<String>)> {
    let PrintStreams { out, progress, clock, now, attempts, gate } = streams;
    let watch = ProgressClock { time: clock, now, attempts };
    let streamed = matches!(progress, Some((_, PrintDetail::Streamed))).then(StreamedText::default);
    let progress = progress.map(|(out, detail)| PrintProgress::new(out, detail, watch));
    let file = session.snapshot().await.ok().map(|now| now.path);
    let updates = session.subscribe();
    let calls = DecidedCalls::default();
    let mut printer = Printer { format, out, progress, streamed, gate, updates, calls, silence: None };
    let mut report = printer.follow(async { session.prompt(message).await.map(Some) }).await?;
    let mut spent = None;
    let last = loop {
        let ended = match report {
            Ok(Some(ended)) => ended,
            Ok(None) | Err(SessionClosed) => break Err(SessionClosed),
        };
        if let TurnReport::Paused { .. } = &ended {
            spent = session.snapshot().await.ok().map(|now| (now.spent, now.limits));
            // If the session is closed, the turn is not paused.
            let _ = session.input(EngineInput::Stop).await;
        }
        printer.answer(&ended)?;
        printer.rest()?;
        if !matches!(ended, TurnReport::Ended { .. }) {
            break Ok(ended);
        }
        report = printer.follow(session.finish()).await?;
        if let Ok(None) | Err(SessionClosed) = report {
            break Ok(ended);
        }
    };
    let said = printer.progress.as_mut().and_then(PrintProgress::finish);
    printer.out.flush()?;
    let Printer { calls, .. } = printer;
    let go_on = file.map_or(NOT_SAVED, |file| way_on(&file));
    Ok(exit_of(last, &calls, &ExitWords { go_on, clock, said, spent }))
}

/// How long the end of a turn waits until its question is withdrawn.
const WITHDRAWN_WITHIN: Duration = Duration::from_secs(1);

/// The state of printing a turn.
struct Printer<'a> {
    format: PrintFormat,
    out: &'a mut (dyn Write + Send),
    progress: Option<PrintProgress<'a>>,
    streamed: Option<StreamedText>,
    gate: PrintGate,
    updates: Receiver<SessionUpdate>,
    calls: DecidedCalls,
    /// The silence of the model, while it is to answer.
    silence: Option<Silence>,
}

/// Time without text from the model after which a line reports it. Each further line follows after three times as long.
const SILENT_FOR: Duration = Duration::from_secs(10);

/// How long the model has sent no text.
struct Silence {
    since: Instant,
    /// When to report it next.
    report_at: Instant,
    is_thinking: bool,
}

impl Silence {
    fn begin() -> Self {
        let since = Instant::now();
        Self { since, report_at: since + SILENT_FOR, is_thinking: false }
    }

    /// The silence after an update.
    fn after(before: Option<Self>, update: &SessionUpdate) -> Option<Self> {
        let SessionUpdate::Frame(frame) = update else { return before };
        match &**frame {
            RuntimeFrame::Text(_) | RuntimeFrame::Activity(EngineActivity::Waiting | EngineActivity::Streaming) => {
                Some(Self::begin())
            }
            RuntimeFrame::Thinking(_) => before.map(|silence| Self { is_thinking: true, ..silence }),
            RuntimeFrame::Activity(
                EngineActivity::Idle
                | EngineActivity::Deciding
                | EngineActivity::Running
                | EngineActivity::Compacting
                | EngineActivity::Retrying { .. }
                | EngineActivity::Slowed { .. }
                | EngineActivity::Paused(_),
            )
            | RuntimeFrame::RequestEnded { .. }
            | RuntimeFrame::TurnEnded { .. } => None,
            RuntimeFrame::TurnStarted
            | RuntimeFrame::CallOpened { .. }
            | RuntimeFrame::Block(_)
            | RuntimeFrame::CallDecided { .. }
            | RuntimeFrame::CallStarted { .. }
            | RuntimeFrame::CallEnded { .. }
            | RuntimeFrame::ContextFills { .. }
            | RuntimeFrame::SecretsMasked { .. }
            | RuntimeFrame::CompactionStarted { .. }
            | RuntimeFrame::Compacted { .. }
            | RuntimeFrame::CompactionFailed { .. }
            | RuntimeFrame::Message { .. }
            | RuntimeFrame::Refused { .. }
            | RuntimeFrame::DiskTrouble { .. }
            | RuntimeFrame::FileLost { .. } => before,
        }
    }

    /// Waits until the silence is to be reported; forever without one.
    async fn reportable(silence: Option<&Self>) {
        match silence {
            Some(silence) => tokio::time::sleep_until(silence.report_at).await,
            None => std::future::pending().await,
        }
    }

    /// The line that reports the silence.
    fn report(&mut self) -> String {
        self.report_at += 3 * SILENT_FOR;
        let what = if self.is_thinking { "the model has been thinking" } else { "the model has sent nothing" };
        format!("{what} for {} s; Ctrl-C interrupts it", self.since.elapsed().as_secs())
    }
}

/// How a turn ended; `None` without a turn.
type FollowedTurn = Result<Option<TurnReport>, SessionClosed>;

impl Printer<'_> {
    /// Prints updates until the turn ends.
    async fn follow(&mut self, turn: impl Future<Output = FollowedTurn>) -> io::Result<FollowedTurn> {
        tokio::pin!(turn);
        let report = loop {
            let is_held = self.gate.is_held();
            self.progress.iter_mut().for_each(|progress| progress.hold(is_held));
            tokio::select! {
                // Updates are printed before the end is handled.
                biased;
                update = self.updates.recv() => match update {
                    Ok(update) => {
                        if !self.stream(&update, is_held) {
                            self.progress.iter_mut().for_each(|progress| progress.print(&update));
                        }
                        // Silence is reported only with the progress.
                        let before = self.silence.take();
                        self.silence = self.progress.as_ref().and_then(|_| Silence::after(before, &update));
                        tell(Ok(&update), &mut self.calls, self.format, self.out)?;
                    }
                    Err(RecvError::Lagged(count)) => {
                        self.streamed.iter_mut().for_each(StreamedText::miss);
                        tell(Err(count), &mut self.calls, self.format, self.out)?;
                    }
                    Err(RecvError::Closed) => break Err(SessionClosed),
                },
                () = self.gate.open() => {}
                report = &mut turn => break report,
                () = Silence::reportable(self.silence.as_ref()) => self.report_silence(),
            }
        };
        // The end of a turn withdraws its question, which ends the question's line before anything else is printed.
        tokio::time::timeout(WITHDRAWN_WITHIN, self.gate.free()).await.ok();
        self.progress.iter_mut().for_each(|progress| progress.hold(false));
        Ok(report)
    }

    /// Prints the text of an update if texts are printed while they arrive. Returns whether nothing is left to print.
    fn stream(&mut self, update: &SessionUpdate, is_held: bool) -> bool {
        let Some(streamed) = &mut self.streamed else { return false };
        // A terminal that takes no text does not end the turn; the end prints the answer, and reports the error.
        streamed.print(update, is_held, self.out).unwrap_or_else(|_| {
            self.streamed = None;
            false
        })
    }

    fn report_silence(&mut self) {
        let Some(line) = self.silence.as_mut().map(Silence::report) else { return };
        if let Some(streamed) = &mut self.streamed
            && streamed.end_line(self.out).is_err()
        {
            self.streamed = None;
        }
        self.progress.iter_mut().for_each(|progress| progress.report_silence(&line));
    }

    /// Prints the remaining updates.
    fn rest(&mut self) -> io::Result<()> {
        loop {
            match self.updates.try_recv() {
                Ok(update) => {
                    self.stream(&update, false);
                    self.progress.iter_mut().for_each(|progress| progress.warn(&update));
                    tell(Ok(&update), &mut self.calls, self.format, self.out)?;
                }
                Err(TryRecvError::Lagged(count)) => tell(Err(count), &mut self.calls, self.format, self.out)?,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(()),
            }
        }
    }

    /// Prints the text of the last answer.
    fn answer(&mut self, ended: &TurnReport) -> io::Result<()> {
        if let (TurnReport::Ended { text, .. } | TurnReport::Paused { text, .. }, PrintFormat::Text) =
            (ended, self.format)
            && !text.is_empty()
            && !self.streamed.as_mut().is_some_and(|streamed| streamed.take_printed(text))
        {
            writeln!(self.out, "{}", text.trim_end_matches('\n'))?;
        }
        self.out.flush()
    }
}

/// Counts and prints an update, or the number of lost ones.
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

/// The calls of a turn: those with a decision and those without.
#[derive(Debug, Default)]
struct DecidedCalls {
    decided: usize,
    undone: usize,
    /// Whether some calls may not have been counted.
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

    /// The remark after the answer if no call was run.
    fn remark(&self) -> Option<String> {
        let which = match (self.decided, self.undone) {
            (0, 0) | (1.., _) => return None,
            _ if self.were_missed => return None,
            (0, 1) => "the model's only call was skipped",
            (0, many) => &format!("all {many} calls of the model were skipped"),
        };
        Some(format!("{which}, because no permission was given in time; give it with `capture approve` or your policy"))
    }
}

/// How to continue a session whose turn has ended.
const GO_ON: &str = "`capture agent run --continue` continues this session";
/// The way on if the session's file was never written or is gone.
const NOT_SAVED: &str = "nothing of this session is saved, so repeat the prompt";

/// How to continue a session with this file.
#[must_use]
pub fn way_on(file: &Path) -> &'static str {
    if file.exists() { GO_ON } else { NOT_SAVED }
}

/// The parts of the message about the end of a prompt.
struct ExitWords {
    /// How to continue the session.
    go_on: &'static str,
    clock: fn(i64) -> String,
    /// The provider's message for the last failure.
    said: Option<String>,
    /// The amount spent by a paused session, and its limits.
    spent: Option<(SpendLimits, SpendLimits)>,
}

fn exit_of(
    report: Result<TurnReport, SessionClosed>,
    calls: &DecidedCalls,
    words: &ExitWords,
) -> (PrintExit, Option<String>) {
    let go_on = words.go_on;
    match report {
        Ok(TurnReport::Ended { outcome: TurnOutcome::Done, error: None, .. }) => match calls.remark() {
            Some(remark) => (PrintExit::Undone, Some(remark)),
            None => (PrintExit::Done, None),
        },
        Ok(TurnReport::Ended { outcome: TurnOutcome::Rounds, error, .. }) => {
            let error = error.unwrap_or_else(|| "the limit of answers is reached".to_owned());
            (PrintExit::OutOfBudget, Some(format!("{error}; {go_on}, and `--max-turns` sets another limit")))
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
                let setting = "`max_output_tokens` of its provider in the configuration sets another maximum";
                (outcome == TurnOutcome::Length).then(|| format!("{what}; {go_on}, and {setting}"))
            });
            (exit, error)
        }
        Ok(TurnReport::Paused { why, until_wall_ms, .. }) => {
            let higher = |limit: &str| format!("the limit of {limit} is reached; {go_on} once the limit is higher");
            let (exit, text) = match why {
                PauseReason::TokenLimit => (PrintExit::OutOfBudget, higher("tokens")),
                PauseReason::CostLimit => {
                    let spent = words.spent.as_ref().and_then(|(spent, most)| {
                        let (spent, most) = (spent.cost_nano_usd?, most.cost_nano_usd?);
                        Some(format!(" (spent {} of {} US dollars)", usd_in_words(spent), usd_in_words(most)))
                    });
                    let text = format!("the limit of costs is reached{}", spent.unwrap_or_default());
                    (PrintExit::OutOfBudget, format!("{text}; {go_on} once the limit is higher"))
                }
                PauseReason::PriceUnknown => (
                    PrintExit::OutOfBudget,
                    "costs are limited, but the price of the model is unknown; add its price, or remove the limit"
                        .to_owned(),
                ),
                PauseReason::TimeLimit => (PrintExit::OutOfBudget, higher("time")),
                PauseReason::CallLimit => (PrintExit::OutOfBudget, higher("tool calls")),
                PauseReason::Quota | PauseReason::Unavailable => {
                    let until = until_wall_ms.map(|ms| format!(", until {}", (words.clock)(ms))).unwrap_or_default();
                    let is_quota = why == PauseReason::Quota;
                    let (exit, what) = if is_quota {
                        (PrintExit::OutOfBudget, "the provider's quota is used up")
                    } else {
                        (PrintExit::Failed, "the provider accepts no requests")
                    };
                    let said = words.said.as_ref().map(|said| format!(" (the provider says: {said})"));
                    (exit, format!("{what} for now{until}{}; {go_on} then", said.unwrap_or_default()))
                }
                PauseReason::Loop => (
                    PrintExit::Failed,
                    format!("the model repeats the same calls with the same results, so the turn was ended; {go_on}"),
                ),
                PauseReason::Requested => (PrintExit::Failed, format!("the turn was paused; {go_on}")),
            };
            (exit, Some(text))
        }
        Ok(TurnReport::FileLost(error)) => {
            let way_on = if go_on == GO_ON {
                "find out what changed it; `capture agent run --continue` continues with the content of the file, and \
                 without --continue a new session begins"
            } else {
                "look for the file; without it, a new session begins"
            };
            let text = format!(
                "{error}, so this session ends: the file does not contain later actions of the agent; {way_on}"
            );
            (PrintExit::Failed, Some(text))
        }
        Ok(TurnReport::Refused(reason)) => (PrintExit::Refused, Some(reason)),
        Err(closed) => (PrintExit::Failed, Some(closed.to_string())),
    }
}

/// An amount in billionths of a dollar, with two decimal places, or more for less than a cent.
#[must_use]
pub fn usd_in_words(nano: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "it is shown")]
    let usd = nano as f64 / 1e9;
    match nano {
        0 | 10_000_000.. => format!("{usd:.2}"),
        _ => {
            let digits = format!("{usd:.6}");
            let digits = digits.trim_end_matches('0');
            if digits == "0." { "less than 0.000001".to_owned() } else { digits.to_owned() }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_amounts_are_shown_with_more_digits() {
        for (nano, shown) in [
            (0, "0.00"),
            (500_000_000, "0.50"),
            (12_345_000_000, "12.35"),
            (10_000_000, "0.01"),
            (1_000_000, "0.001"),
            (6_120_000, "0.00612"),
            (10, "less than 0.000001"),
        ] {
            assert_eq!(usd_in_words(nano), shown);
        }
    }

    #[test]
    fn a_limit_message_contains_the_amount_spent_or_the_provider_message() {
        let limits = |nano| SpendLimits { cost_nano_usd: Some(nano), ..SpendLimits::default() };
        let words = ExitWords {
            go_on: GO_ON,
            clock: |_| "23:10:00".to_owned(),
            said: Some("daily limit".to_owned()),
            spent: Some((limits(6_000_000), limits(1_000_000))),
        };
        let end = |why, until_wall_ms| {
            let report = TurnReport::Paused { why, until_wall_ms, text: String::new() };
            exit_of(Ok(report), &DecidedCalls::default(), &words).1.unwrap()
        };
        assert_eq!(
            end(PauseReason::CostLimit, None),
            format!(
                "the limit of costs is reached (spent 0.006 of 0.001 US dollars); {GO_ON} once the limit is higher"
            )
        );
        assert_eq!(
            end(PauseReason::Quota, Some(1)),
            format!(
                "the provider's quota is used up for now, until 23:10:00 (the provider says: daily limit); {GO_ON} then"
            )
        );
    }
}
