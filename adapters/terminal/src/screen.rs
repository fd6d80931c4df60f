//! The screen of a run: a model of what the program displays, and what it tells about the program's state.
//!
//! [`Observer`] takes the bytes of a terminal in, after they were passed on, and the time; out come
//! claims, notifications and, when asked, the screen itself ([`Picture`]) and why it is read the
//! way it is ([`Explanation`]). Pure: the time is an argument. Nothing it is fed can make it panic
//! or grow without bound.
//!
//! `terminal` is the model, `rules` and `form` the rules as data, `view` cuts a frame into regions,
//! `judge` decides what is claimed. No provider is named in any of them.

mod content;
mod dialog;
mod error;
mod explain;
mod form;
mod grid;
mod guard;
mod judge;
mod keys;
mod playback;
mod program_status;
mod rules;
mod signals;
mod standing;
mod standing_dialog;
mod terminal;
#[cfg(test)]
mod tests;
mod typing;
mod view;

use std::{fmt, sync::Arc};

use events::{Confidence, Provider, State, Timestamp};
use host_protocol::{
    claim::{HostEvent, ScreenClaim},
    screen::{Explanation, GridUpdate, Picture, Scrollback, Size},
};

use grid::Grid;
pub use playback::PlaybackScreen;
pub use rules::{RuleError, ScreenRules};
pub use standing_dialog::{StandingDialog, StandingOption};

use agents::Agent;
use content::TerminalContent;
use judge::{ClaimChange, ScreenJudge};
use signals::AttentionCall;
use terminal::Terminal;
pub use typing::PromptMark;
use typing::PromptOnScreen;
use view::{ScreenFrame, View};

/// Delay between the first byte of a frame and the reading of its screen, ms, so that the rest of the
/// frame is there.
const FRAME_MS: i64 = 8;
/// Interval between readings of the screen while output flows, ms.
const LOOK_EVERY_MS: i64 = 20;
/// Longest wait for the end of a synchronized update, ms.
const UPDATE_MS: i64 = 150;
/// Time within which bells count as one, ms.
const BELL_MS: i64 = 1000;
/// Time within which a working agent changes something on its screen, ms.
const STILL_MS: i64 = 5_000;
/// How long a version that may have been read half drawn is read again, ms.
const VERSION_MS: i64 = 2_000;
/// Most events kept until they are taken; the oldest are dropped first.
const MAX_EVENTS: usize = 1024;

/// Watches one terminal.
pub struct Observer {
    terminal: Terminal,
    rules: Arc<ScreenRules>,
    provider: Provider,
    version: Option<String>,
    /// When it was read first.
    version_at: Option<Timestamp>,
    judge: ScreenJudge,
    /// The frame that was looked at last.
    frame: ScreenFrame,
    /// Since when there are bytes that were not looked at.
    dirty_since: Option<Timestamp>,
    looked_at: Timestamp,
    updating_since: Option<Timestamp>,
    now: Timestamp,
    output_at: Timestamp,
    skipped_bytes: u64,
    bell_at: Option<Timestamp>,
    /// The open dialog was answered; and the cursor was moved since the screen was read.
    answered: bool,
    moved: bool,
    /// It shows work and has stood still for long.
    still: bool,
    /// The mark that was told last, and when.
    marked: Option<(String, Timestamp)>,
    /// The prompt that is on the screen.
    prompt: PromptOnScreen,
    /// Present for an agent whose files are not read.
    content: Option<TerminalContent>,
    /// What those who show the screen elsewhere know of it.
    grid: Grid,
    events: Vec<(Timestamp, HostEvent)>,
}

/// What is kept of the conversation of an agent whose files are not read; of a program that is not known, nothing.
fn content_of(provider: Provider) -> Option<TerminalContent> {
    Agent::of(provider).filter(|agent| !agent.is_read()).map(|_| TerminalContent::default())
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer")
            .field("provider", &self.provider)
            .field("version", &self.version)
            .field("current", &self.judge.current)
            .finish_non_exhaustive()
    }
}

impl Observer {
    /// A terminal of this size, blank.
    #[must_use]
    pub fn new(size: Size, provider: Provider, rules: Arc<ScreenRules>, now: Timestamp) -> Self {
        Self {
            terminal: Terminal::new(size),
            judge: ScreenJudge::new(
                Arc::new(rules.select(provider, None)),
                u64::try_from(now.as_millisecond()).unwrap_or(0),
            ),
            rules,
            provider,
            version: None,
            version_at: None,
            frame: ScreenFrame::default(),
            dirty_since: None,
            looked_at: Timestamp::MIN,
            updating_since: None,
            now,
            output_at: now,
            skipped_bytes: 0,
            bell_at: None,
            answered: false,
            still: false,
            moved: false,
            marked: None,
            prompt: PromptOnScreen::default(),
            content: content_of(provider),
            grid: Grid::default(),
            events: Vec::new(),
        }
    }

    /// Takes in bytes the program wrote.
    pub fn output(&mut self, bytes: &[u8], now: Timestamp) {
        self.now = now;
        self.output_at = now;
        if self.feed(bytes) {
            self.skipped_bytes = 0;
        }
        self.apply_signals(now);
        if let Some(alive) = self.content.as_mut().and_then(|content| content.output(now)) {
            self.push_event(now, alive);
        }
        self.dirty_since.get_or_insert(now);
        self.stirs(now);
        self.advance(now);
    }

    /// Whether the next byte begins something: no control sequence or character is half there.
    #[must_use]
    pub fn is_between_sequences(&self) -> bool {
        self.terminal.is_between_sequences()
    }

    /// Bytes were not kept because there were too many: the screen may be wrong until it is redrawn.
    pub fn skipped(&mut self, bytes: u64, now: Timestamp) {
        self.now = now;
        self.output_at = now;
        self.terminal.lost();
        self.skipped_bytes = self.skipped_bytes.saturating_add(bytes);
        self.dirty_since.get_or_insert(now);
    }

    /// Takes in bytes somebody typed. Their meaning for a dialog that is open is kept; and, of an agent whose files are
    /// not read, the prompts that are seen on the screen.
    pub fn input(&mut self, bytes: &[u8], now: Timestamp) {
        self.now = now;
        self.read_typed(bytes, now);
        let Some(current) = self.judge.current.as_ref().filter(|_| !self.answered) else { return };
        let Some(reading) = &current.reading else { return };
        if let Some(meaning) = keys::meaning(reading, bytes, &mut self.moved) {
            self.answered = true;
            self.push_event(now, HostEvent::Answered { meaning });
        }
    }

    fn read_typed(&mut self, bytes: &[u8], now: Timestamp) {
        let Some(content) = &mut self.content else { return };
        let asks = |claim: &ScreenClaim| claim.state == State::WaitingApproval || claim.dialog.is_some();
        if self.judge.current.as_ref().is_some_and(|current| asks(&current.claim)) {
            return content.forget_typed();
        }
        let lines = self.terminal.lines(self.terminal.screen().size().1.get());
        for prompt in content.input(bytes, &lines) {
            self.push_event(now, prompt);
        }
    }

    /// The terminal has another size.
    pub fn resize(&mut self, size: Size, now: Timestamp) {
        self.now = now;
        self.terminal.resize(size);
        self.dirty_since.get_or_insert(now);
    }

    /// Another program is in the foreground.
    pub fn set_provider(&mut self, provider: Provider, now: Timestamp) {
        self.now = now;
        if provider == self.provider {
            return;
        }
        self.provider = provider;
        self.content = content_of(provider);
        self.version = None;
        self.version_at = None;
        if self.judge.current.is_some() {
            self.push_event(now, HostEvent::Withdrawn);
        }
        self.judge = ScreenJudge::new(Arc::new(self.rules.select(provider, None)), self.judge.appearance + 1);
        self.dirty_since.get_or_insert(now);
    }

    /// Lets time pass up to `now`.
    pub fn advance(&mut self, now: Timestamp) {
        self.now = now;
        if self.judge_due().is_some_and(|due| due <= now) {
            let frame = ScreenFrame::of(&self.terminal, &self.judge.set);
            if frame.text != self.frame.text {
                self.judge.changed_at = now;
            }
            self.frame = frame;
            self.watch();
            self.dirty_since = None;
            self.looked_at = now;
            self.moved = false;
            self.read_version();
            self.judge(now);
        } else if self.judge.deadline.is_some_and(|due| due <= now) {
            self.judge(now);
        }
        self.note_prompt(now);
        let screen = &self.terminal;
        let text = self
            .content
            .as_mut()
            .and_then(|content| content.advance(now, || screen.lines(screen.screen().size().1.get())));
        if let Some(text) = text {
            self.push_event(now, text);
        }
        if self.still_due().is_some_and(|due| due <= now) {
            self.still = true;
            self.push_work_claim(now, Confidence::Medium);
        }
    }

    /// An agent that works moves something on its screen all the time; when it stands still for
    /// long, whoever knows better is believed.
    fn still_due(&self) -> Option<Timestamp> {
        let works = self.judge.current.as_ref().is_some_and(|c| c.claim.state == State::Running);
        (works && !self.still && self.provider != Provider::Unknown).then(|| self.output_at.plus_ms(STILL_MS))
    }

    /// Something moves again.
    fn stirs(&mut self, now: Timestamp) {
        if std::mem::take(&mut self.still) {
            let strength = self.judge.current.as_ref().map(|c| c.claim.strength);
            self.push_work_claim(now, strength.unwrap_or(Confidence::Medium));
        }
    }

    /// Repeats the claim of work with this strength.
    fn push_work_claim(&mut self, now: Timestamp, strength: Confidence) {
        let Some(claim) = self.judge.current.as_ref().map(|c| c.claim.clone()) else { return };
        if claim.state == State::Running && claim.strength > Confidence::Medium {
            self.push_event(now, HostEvent::Claim(ScreenClaim { strength: strength.min(claim.strength), ..claim }));
        }
    }

    /// When [`advance`](Self::advance) would next change something.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let content = self.content.as_ref().and_then(TerminalContent::due);
        self.judge_due().into_iter().chain(self.judge.deadline).chain(self.still_due()).chain(content).min()
    }

    /// Takes the events since the last call, in order.
    pub fn take_events(&mut self) -> Vec<(Timestamp, HostEvent)> {
        std::mem::take(&mut self.events)
    }

    /// Whether the screen claims anything.
    #[must_use]
    pub fn has_claim(&self) -> bool {
        self.judge.current.is_some()
    }

    /// The agent's version, as its screen says it.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// The current screen.
    #[must_use]
    pub fn picture(&self) -> Picture {
        let screen = self.terminal.screen();
        let (rows, columns) = screen.size();
        Picture {
            size: Size { rows: rows.get(), columns: columns.get() },
            lines: self.terminal.lines(columns.get()),
            cursor: (!screen.hide_cursor()).then(|| screen.cursor_position()),
            title: self.terminal.signals().title.clone(),
            agent_state: Some(self.terminal.signals().status.root()).filter(|s| !s.is_empty()),
            alternate: screen.alternate_screen(),
            at: self.output_at,
            skipped_bytes: self.skipped_bytes,
            claim: self.judge.current.as_ref().map(|c| c.claim.clone()),
        }
    }

    /// What changed of the screen since a revision, as rows of coloured text; from 0 everything did.
    pub fn grid(&mut self, since: u64) -> GridUpdate {
        self.grid.update(&self.terminal, self.skipped_bytes, since)
    }

    /// Since when the program draws a synchronized update whose end has not come; what it has drawn of it is not to be
    /// shown yet.
    #[must_use]
    pub const fn updating_since(&self) -> Option<Timestamp> {
        self.updating_since
    }

    /// At most `count` lines that scrolled off the screen before the one with the number `before`.
    #[must_use]
    pub fn scrollback(&self, before: u64, count: usize) -> Scrollback {
        self.terminal.signals().scrolled.before(before, count)
    }

    /// Whether the program takes pastes as such (mode 2004).
    #[must_use]
    pub fn accepts_pastes(&self) -> bool {
        self.terminal.screen().bracketed_paste()
    }

    /// Whether it wants cursor keys in their application form (mode 1).
    #[must_use]
    pub fn application_cursor(&self) -> bool {
        self.terminal.screen().application_cursor()
    }

    /// Bytes that draw the current screen on a terminal of the same size, modes included.
    #[must_use]
    pub fn repaint(&self) -> Vec<u8> {
        self.terminal.repaint()
    }

    /// Bytes that undo the modes the program left on (alternate screen, mouse, bracketed paste, hidden
    /// cursor, keyboard protocols); empty when it left none.
    #[must_use]
    pub fn restore(&self) -> Vec<u8> {
        self.terminal.restore()
    }

    /// Answers to what the program asked its terminal (cursor position, device attributes); to be
    /// typed into it only while no terminal is attached that answers itself.
    pub fn take_replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.terminal.signals_mut().replies)
    }

    /// Why the screen is read the way it is, as of when it was last looked at.
    #[must_use]
    pub fn explain(&self) -> Explanation {
        let view = View::new(&self.frame, &self.judge.set);
        explain::explain(&self.judge, &view, self.version(), self.terminal.panics, self.now)
    }

    /// When the screen is to be looked at next.
    fn judge_due(&self) -> Option<Timestamp> {
        let due = self.dirty_since?.plus_ms(FRAME_MS).max(self.looked_at.plus_ms(LOOK_EVERY_MS));
        Some(self.updating_since.map_or(due, |since| due.max(since.plus_ms(UPDATE_MS))))
    }

    fn judge(&mut self, now: Timestamp) {
        let set = Arc::clone(&self.judge.set);
        match self.judge.update(&View::new(&self.frame, &set), now) {
            Some(ClaimChange::Claimed(claim)) => {
                self.answered = false;
                let mark = claim.dialog.as_ref().and_then(|dialog| dialog.mark.clone());
                self.marked = mark.map(|mark| (mark, now));
                self.push_event(now, HostEvent::Claim(claim));
            }
            Some(ClaimChange::Weighed(claim)) => self.push_event(now, HostEvent::Claim(claim)),
            Some(ClaimChange::Withdrawn) => self.push_event(now, HostEvent::Withdrawn),
            None => {}
        }
    }

    /// Looks for the agent's version until it is known; rules for that version take over.
    fn read_version(&mut self) {
        if self.version_at.is_some_and(|at| self.now.since_ms(at) > VERSION_MS) {
            return;
        }
        let set = Arc::clone(&self.judge.set);
        let Some(pattern) = &set.version else { return };
        let view = View::new(&self.frame, &set);
        let Some(text) = view.region(&pattern.place.name).and_then(|text| rules::group(&pattern.regex, text)) else {
            return;
        };
        let Some(version) = rules::version(text) else { return };
        // Only the rest of what was there may come.
        if self.version.as_ref().is_some_and(|known| text == known || !text.starts_with(known.as_str())) {
            return;
        }
        self.version_at.get_or_insert(self.now);
        self.version = Some(text.to_owned());
        let claimed = self.judge.current.is_some();
        self.judge.change_rules(Arc::new(self.rules.select(self.provider, Some(&version))));
        if claimed && self.judge.current.is_none() {
            self.push_event(self.now, HostEvent::Withdrawn);
        }
    }

    fn apply_signals(&mut self, now: Timestamp) {
        let signals = self.terminal.signals_mut();
        let calls = std::mem::take(&mut signals.calls);
        self.updating_since = signals.updating.then(|| self.updating_since.unwrap_or(now));
        for call in calls {
            match call {
                AttentionCall::Notification(text) => self.push_event(now, HostEvent::Notification { text }),
                AttentionCall::Bell if self.bell_at.is_none_or(|at| now.since_ms(at) >= BELL_MS) => {
                    self.bell_at = Some(now);
                    self.push_event(now, HostEvent::Bell);
                }
                AttentionCall::Bell => {}
            }
        }
    }

    fn push_event(&mut self, at: Timestamp, events: HostEvent) {
        if self.events.len() >= MAX_EVENTS {
            self.events.remove(0);
        }
        self.events.push((at, events));
    }
}
