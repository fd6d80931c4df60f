//! Answers a dialog by pressing keys, and makes sure that no key reaches any dialog except the one that was answered.
//!
//! Two threads are involved. The thread that reads the screen owns the [`Answering`]: it knows which dialog is open,
//! chooses the key to press, and checks its effect. The thread that owns the terminal presses the key ([`may_press`]):
//! immediately before, it reads all the program's output, and if that is more than the screen has parsed, it types
//! nothing and the screen is checked again. Both are pure; the time and the terminal's state are arguments.
//!
//! One race remains: a program that is about to show a new dialog, has not written a byte of it, and reads the key as
//! the answer to that one. It is invisible from outside the program, even to a person. Two waits make it rare: the
//! dialog must have been open for `STOOD_MS`, and the program must have written nothing for `QUIET_MS`, so that a
//! dialog drawn in several writes is not answered between two of them. The screen also cannot reveal a request that is
//! replaced by another with the same words in the same cells.

use std::time::Duration;

use crossbeam_channel::Sender;
use events::{ChoiceAnswer, Timestamp};
use host_protocol::frame::{Answered, DialogAnswer};

use super::keys;
use crate::screen::{Observer, StandingDialog};

/// Minimum time since a dialog was reported before a key is typed, ms: a dialog redrawn after the key that answered it
/// disappears sooner.
const STOOD_MS: i64 = 400;
/// Minimum time since the program's last output before a key is typed, ms.
const QUIET_MS: i64 = 60;
/// Minimum time since the user last typed before a key is typed.
const HANDS_OFF: Duration = Duration::from_millis(500);
/// Time within which all conditions for a key must hold, ms.
const READY_MS: i64 = 1500;
/// Time within which the cursor must move after an arrow key, ms.
const MOVED_MS: i64 = 500;
/// Time within which the dialog must disappear after the last key, ms.
const GONE_MS: i64 = 2000;
/// Interval between checks while waiting, ms.
const AGAIN_MS: i64 = 10;
/// Maximum number of arrow keys for one answer.
const MOST_ARROWS: u32 = 8;
/// Flag of the kitty keyboard protocol: Esc is sent as a distinct sequence.
const DISAMBIGUATE: u16 = 1;
/// Flag of the kitty keyboard protocol: every key is sent as a sequence.
const ALL_AS_SEQUENCES: u16 = 8;

/// A key to press if nothing has changed.
#[derive(Debug, Clone)]
pub struct Press {
    /// The dialog the key is for.
    pub mark: String,
    /// The bytes of the key.
    pub bytes: Vec<u8>,
    /// Bytes of the program's output that the screen model has parsed.
    pub parsed: u64,
    /// Receives the outcome.
    pub pressed: Sender<Pressed>,
}

/// The outcome of a key press.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pressed {
    /// The key was typed.
    Yes,
    /// Nothing was typed because the program wrote output in the meantime. Check the screen again.
    NotNow,
    /// Nothing was typed, for this reason.
    No(&'static str),
}

/// The state of the terminal after all pending output was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalFacts<'a> {
    /// Bytes of the program's output passed on so far.
    pub passed: u64,
    /// Whether output is unread or cannot be read now.
    pub unread: bool,
    /// The dialog reported last, and the process group in the foreground at that time.
    pub stood: Option<(&'a str, Option<i32>)>,
    /// The process group in the foreground now.
    pub group: Option<i32>,
    /// Whether the program reads keys one by one, without echo.
    pub raw: bool,
    /// Time since the user last typed.
    pub typed: Option<Duration>,
    /// Whether the program has not yet read all typed bytes.
    pub waiting: bool,
    /// Whether the program is running: neither ended nor stopped.
    pub runs: bool,
}

/// Whether the key may be pressed. The caller must type the key immediately, before any other input.
///
/// # Errors
/// [`Pressed::NotNow`] or [`Pressed::No`].
pub fn may_press(press: &Press, facts: &TerminalFacts<'_>) -> Result<(), Pressed> {
    if !facts.runs {
        return Err(Pressed::No("the program has ended, or is stopped"));
    }
    if facts.unread || facts.passed != press.parsed {
        return Err(Pressed::NotNow);
    }
    if facts.waiting {
        return Err(Pressed::No("the program has not yet read earlier input"));
    }
    if facts.typed.is_some_and(|ago| ago < HANDS_OFF) {
        return Err(Pressed::No("another client is typing"));
    }
    if !facts.raw {
        return Err(Pressed::No("the program reads lines, not single keys"));
    }
    match facts.stood {
        Some((mark, group)) if mark == press.mark => {
            if group.is_none() || group != facts.group {
                return Err(Pressed::No("the foreground program changed since the dialog appeared"));
            }
        }
        Some(_) | None => return Err(Pressed::NotNow),
    }
    Ok(())
}

/// The next step.
#[derive(Debug)]
pub enum AnswerStep {
    /// Do nothing before this moment, unless the program writes.
    Wait(Timestamp),
    /// Press this key and report the [`Pressed`].
    Press {
        /// The bytes of the key.
        bytes: Vec<u8>,
    },
    /// Finished.
    Done(Result<Answered, String>),
}

/// An answer in progress.
#[derive(Debug)]
pub struct Answering {
    mark: String,
    answer: DialogAnswer,
    stage: AnswerStage,
    keys: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerStage {
    /// All conditions must be met by `until`; they are not checked before `from`.
    Ready { from: Timestamp, until: Timestamp },
    /// A key was sent: `goal` is the option the cursor should move to, `None` after the last key.
    Handed { until: Timestamp, goal: Option<usize> },
    /// Waiting for the cursor to reach `goal`.
    Moving { until: Timestamp, goal: usize },
    /// The last key was typed.
    Typed { until: Timestamp },
}

/// The next key.
#[derive(Debug, PartialEq, Eq)]
enum NextKey {
    /// This key answers the dialog.
    Last(String),
    /// This key moves the cursor to that option.
    Arrow(&'static str, usize),
}

impl Answering {
    /// Starts answering the dialog.
    #[must_use]
    pub fn new(mark: String, answer: DialogAnswer, now: Timestamp) -> Self {
        Self { mark, answer, stage: AnswerStage::Ready { from: now, until: now.plus_ms(READY_MS) }, keys: 0 }
    }

    /// The dialog being answered.
    #[must_use]
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Performs the next step. `written_at` is the time of the program's last output.
    pub fn step(&mut self, observer: &Observer, written_at: Timestamp, now: Timestamp) -> AnswerStep {
        match self.stage {
            AnswerStage::Ready { from, .. } if now < from => AnswerStep::Wait(from),
            AnswerStage::Ready { until, .. } => self.ready(observer, written_at, now, until),
            AnswerStage::Handed { .. } => AnswerStep::Wait(now.plus_ms(GONE_MS)),
            AnswerStage::Moving { until, goal } => self.moving(observer, now, until, goal),
            AnswerStage::Typed { until } => {
                let gone = !observer.is_there() && observer.mark() != Some(&self.mark);
                if gone || now >= until { self.done(gone, observer) } else { wait(now, until) }
            }
        }
    }

    /// Handles the outcome of the key that was sent.
    pub fn pressed(&mut self, pressed: &Pressed, observer: &Observer, now: Timestamp) -> Option<AnswerStep> {
        let AnswerStage::Handed { until, goal } = self.stage else { return None };
        match (pressed, goal) {
            (Pressed::Yes, goal) => {
                self.keys += 1;
                self.stage = match goal {
                    Some(goal) => AnswerStage::Moving { until: now.plus_ms(MOVED_MS), goal },
                    None => AnswerStage::Typed { until: now.plus_ms(GONE_MS) },
                };
                None
            }
            (Pressed::NotNow, _) => {
                self.stage = AnswerStage::Ready { from: now.plus_ms(AGAIN_MS), until };
                None
            }
            (Pressed::No(why), _) => Some(self.refuse(why, observer)),
        }
    }

    fn ready(&mut self, observer: &Observer, written_at: Timestamp, now: Timestamp, until: Timestamp) -> AnswerStep {
        let standing = match observer.standing() {
            Ok(standing) if standing.mark == self.mark => standing,
            Ok(_) => return self.refuse("another dialog is open", observer),
            // The dialog that was answered is closed and will not open again.
            Err(why) if observer.mark() != Some(&self.mark) || now >= until => return self.refuse(why, observer),
            Err(_) => return wait(now, until),
        };
        let next = match next_key(&standing, self.answer) {
            Ok(next) => next,
            Err(why) => return self.refuse(why, observer),
        };
        let settled = standing.since.plus_ms(STOOD_MS).max(written_at.plus_ms(QUIET_MS));
        if now < settled {
            if settled > until {
                return self.refuse("its screen keeps changing", observer);
            }
            return AnswerStep::Wait(settled);
        }
        if now >= until {
            return self.refuse("its screen keeps changing", observer);
        }
        let (key, goal) = match next {
            NextKey::Last(key) => (key, None),
            NextKey::Arrow(..) if self.keys >= MOST_ARROWS => {
                return self.refuse("the option is too far from the cursor", observer);
            }
            NextKey::Arrow(key, goal) => (key.to_owned(), Some(goal)),
        };
        match bytes(&key, observer) {
            Ok(bytes) => {
                self.stage = AnswerStage::Handed { until, goal };
                AnswerStep::Press { bytes }
            }
            Err(why) => self.refuse(&why, observer),
        }
    }

    fn moving(&mut self, observer: &Observer, now: Timestamp, until: Timestamp, goal: usize) -> AnswerStep {
        match observer.standing() {
            Ok(standing) if standing.mark == self.mark => {
                if standing.options.get(goal).is_some_and(|option| option.selected) {
                    self.stage = AnswerStage::Ready { from: now, until: now.plus_ms(READY_MS) };
                    return AnswerStep::Wait(now);
                }
            }
            Ok(_) => return self.refuse("another dialog is open", observer),
            Err(why) if observer.mark() != Some(&self.mark) => return self.refuse(why, observer),
            Err(_) => {}
        }
        if now >= until { self.refuse("the cursor did not move as expected", observer) } else { wait(now, until) }
    }

    /// Finishes without pressing the key that answers. If arrow keys were typed, this is reported as an answer that was
    /// not applied.
    fn refuse(&self, why: &str, observer: &Observer) -> AnswerStep {
        if self.keys > 0 {
            return AnswerStep::Done(Ok(Answered { why: Some(why.to_owned()), ..self.answered(false, observer) }));
        }
        AnswerStep::Done(Err(format!("{why} (no key was pressed)")))
    }

    fn done(&self, applied: bool, observer: &Observer) -> AnswerStep {
        AnswerStep::Done(Ok(self.answered(applied, observer)))
    }

    fn answered(&self, applied: bool, observer: &Observer) -> Answered {
        let after = observer.picture().claim.map(Box::new);
        Answered { applied, keys: self.keys, before: self.mark.clone(), after, why: None }
    }
}

fn wait(now: Timestamp, until: Timestamp) -> AnswerStep {
    AnswerStep::Wait(until.min(now.plus_ms(AGAIN_MS)))
}

/// The key for an answer in the dialog's current state.
fn next_key(standing: &StandingDialog, answer: DialogAnswer) -> Result<NextKey, &'static str> {
    let meant = match answer {
        DialogAnswer::AllowOnce => ChoiceAnswer::AllowOnce,
        DialogAnswer::Deny => ChoiceAnswer::Deny,
    };
    let mut meaning = standing.options.iter().enumerate().filter(|(_, option)| option.answer == Some(meant));
    let (Some((goal, option)), None) = (meaning.next(), meaning.next()) else {
        return Err("the dialog has no option for this answer, or several");
    };
    if answer == DialogAnswer::Deny {
        let key = standing.deny_key.clone().ok_or("capture does not know which key denies in this dialog")?;
        let others = standing.options.iter().enumerate().filter(|(at, _)| *at != goal);
        if others.into_iter().any(|(_, other)| other.keys.contains(&key)) {
            return Err("in this dialog, the key that would deny also chooses another option");
        }
        return Ok(NextKey::Last(key));
    }
    if let Some(key) = option.keys.first() {
        let owners = standing.options.iter().filter(|other| other.keys.contains(key)).count();
        if owners != 1 || key == "esc" {
            return Err("in this dialog, the key of that option also chooses another one");
        }
        return Ok(NextKey::Last(key.clone()));
    }
    let cursor = standing
        .options
        .iter()
        .position(|option| option.selected)
        .ok_or("capture does not know the position of the cursor")?;
    let (back, on) = if standing.row { ("left", "right") } else { ("up", "down") };
    Ok(match cursor.cmp(&goal) {
        std::cmp::Ordering::Equal => NextKey::Last("enter".to_owned()),
        std::cmp::Ordering::Less => NextKey::Arrow(on, cursor + 1),
        std::cmp::Ordering::Greater => NextKey::Arrow(back, cursor - 1),
    })
}

/// The bytes sent to the program for a key, in the encoding it requested.
fn bytes(key: &str, observer: &Observer) -> Result<Vec<u8>, String> {
    let flags = observer.keyboard();
    if flags & ALL_AS_SEQUENCES != 0 {
        return Err("the program uses a keyboard protocol that was not tested".into());
    }
    if key == "esc" && flags & DISAMBIGUATE != 0 {
        return Ok(b"\x1b[27u".to_vec());
    }
    keys::bytes(key, observer.application_cursor())
}

#[cfg(test)]
mod tests;
