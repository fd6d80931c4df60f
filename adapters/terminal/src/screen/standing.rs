//! The dialog on the screen now, for answering it by keys.
//!
//! The screen's claim is as old as its last reading. Here the screen is read again after every received byte, and
//! anything uncertain counts as no dialog. While a dialog is open, each step of the program's output is also checked
//! ([`Observer::feed`]): a dialog that disappears and reappears between two readings is another dialog.

use super::standing_dialog::{StandingDialog, StandingOption};
use super::{
    Observer, dialog, rules,
    view::{ScreenFrame, View},
};

/// Above this number of steps a chunk is not checked step by step: the dialog counts as gone.
const MOST_STEPS: usize = 2048;

impl Observer {
    /// The mark of the dialog reported last, if it was still open at the last reading.
    #[must_use]
    pub fn mark(&self) -> Option<&str> {
        self.judge.current.as_ref()?.claim.dialog.as_ref()?.mark.as_deref()
    }

    /// Whether every word of the reported dialog has been on the screen since the report.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.judge.watched().is_some_and(|(_, told)| self.shows(told, &self.frame_now()))
    }

    /// The reported dialog, if it is still open after all received bytes.
    ///
    /// # Errors
    /// The reason, when no dialog is open, when it is uncertain which one is, or when it must not be answered by keys.
    pub fn standing(&self) -> Result<StandingDialog, &'static str> {
        if self.skipped_bytes > 0 {
            return Err("capture could not read all output of the run, so it cannot be sure what its screen shows");
        }
        if !self.terminal.is_at_rest() {
            return Err("its screen is still changing");
        }
        let frame = self.frame_now();
        let view = View::new(&frame, &self.judge.set);
        let (rule, reading) = self.judge.standing(&view)?;
        let form = rule.dialog.as_ref().ok_or("no dialog is open")?;
        if form.tested.is_empty() {
            return Err("keys were not tested for this kind of dialog");
        }
        let version = self.version().and_then(rules::version).ok_or("the agent's version is not known")?;
        if !form.tested.iter().any(|range| range.matches(&version)) {
            return Err("keys were not tested with this version of the agent");
        }
        if let Some(fault) = dialog::layout_fault(form, &reading, &view) {
            return Err(fault);
        }
        if self.answered {
            return Err("a key that answers it was already typed");
        }
        if reading.dialog.options.iter().filter(|option| option.selected).count() != 1 {
            return Err("the cursor is not on one of its options");
        }
        let keys = reading.keys.into_iter();
        let option = |(choice, keys): (&events::Choice, Vec<String>)| StandingOption {
            answer: choice.answer,
            keys,
            selected: choice.selected,
        };
        let mark = reading.dialog.mark.ok_or("the dialog has no identifying mark")?;
        let since = self.marked.as_ref().filter(|(told, _)| *told == mark).ok_or("the dialog was not reported")?.1;
        Ok(StandingDialog {
            since,
            options: reading.dialog.options.iter().zip(keys).map(option).collect(),
            mark,
            deny_key: form.deny_key.clone(),
            row: form.row,
        })
    }

    /// The screen after all received bytes.
    fn frame_now(&self) -> ScreenFrame {
        ScreenFrame::of(&self.terminal, &self.judge.set)
    }

    /// The kitty keyboard protocol flags set by the program.
    #[must_use]
    pub fn keyboard(&self) -> u16 {
        self.terminal.keyboard()
    }

    /// Processes bytes; returns whether they cleared the screen. While a dialog is open they are processed step by
    /// step, a step being a control sequence with the text after it: the result does not depend on how the bytes were
    /// split into chunks.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> bool {
        if self.judge.watched().is_none() {
            return self.terminal.feed(bytes);
        }
        let (mut rest, mut cleared, mut steps) = (bytes, false, 0);
        while let Some(&first) = rest.first() {
            if self.judge.watched().is_none() || steps > MOST_STEPS {
                if steps > MOST_STEPS {
                    self.judge.appearance += 1;
                }
                return self.terminal.feed(rest) || cleared;
            }
            if first == 0x1b {
                self.watch_terminal();
            }
            let next = rest[1..].iter().position(|b| *b == 0x1b).map_or(rest.len(), |at| at + 1);
            let line = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            let (step, after) = rest.split_at(next.min(line));
            cleared |= self.terminal.feed(step);
            if step.ends_with(b"\n") {
                self.watch_terminal();
            }
            (rest, steps) = (after, steps + 1);
        }
        cleared
    }

    fn watch_terminal(&mut self) {
        let frame = self.frame_now();
        // The last reading saw the dialog there.
        if frame.text != self.frame.text && self.judge.watched().is_some_and(|(_, told)| !self.shows(told, &frame)) {
            self.judge.appearance += 1;
        }
    }

    /// Checks the frame being read.
    pub(super) fn watch(&mut self) {
        if self.judge.watched().is_some_and(|(_, told)| !self.shows(told, &self.frame)) {
            self.judge.appearance += 1;
        }
    }

    fn shows(&self, told: &dialog::DialogReading, frame: &ScreenFrame) -> bool {
        let Some((rule, _)) = self.judge.watched() else { return false };
        let view = View::new(frame, &self.judge.set);
        rule.dialog.as_ref().and_then(|form| dialog::whole(form, &view)) == told.whole
    }
}
