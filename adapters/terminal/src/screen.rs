//! The screen of a run: a model of the program's display, and the program's state as read from it.
//!
//! [`Observer`] receives a terminal's bytes after they were passed on, and the time. It produces claims, notifications
//! and, on request, the screen itself ([`Picture`]) and the reasons for its reading ([`Explanation`]). It is pure: the
//! time is an argument. No input can make it panic or grow without bound.
//!
//! `terminal` is the model, `rules` and `form` hold the rules as data, `view` cuts a frame into regions, `judge`
//! decides the claim. None of them names a provider.

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

/// Delay between the first byte of a frame and the reading of its screen, ms, so that the rest of the frame has
/// arrived.
const FRAME_MS: i64 = 8;
/// Interval between readings of the screen while output flows, ms.
const LOOK_EVERY_MS: i64 = 20;
/// Maximum wait for the end of a synchronized update, ms.
const UPDATE_MS: i64 = 150;
/// Time within which several bells count as one, ms.
const BELL_MS: i64 = 1000;
/// Time within which a working agent changes its screen, ms.
const STILL_MS: i64 = 5_000;
/// Time for which a version is read again, because the first reading may have seen it half drawn, ms.
const VERSION_MS: i64 = 2_000;
/// Maximum number of events kept until they are taken; the oldest are dropped first.
const MAX_EVENTS: usize = 1024;

/// Watches one terminal.
pub struct Observer {
    terminal: Terminal,
    rules: Arc<ScreenRules>,
    provider: Provider,
    version: Option<String>,
    /// When the version was first read.
    version_at: Option<Timestamp>,
    judge: ScreenJudge,
    /// The frame that was judged last.
    frame: ScreenFrame,
    /// Since when there are bytes that were not judged.
    dirty_since: Option<Timestamp>,
    looked_at: Timestamp,
    updating_since: Option<Timestamp>,
    now: Timestamp,
    output_at: Timestamp,
    skipped_bytes: u64,
    bell_at: Option<Timestamp>,
    /// `answered`: the open dialog was answered. `moved`: the cursor was moved since the screen was read.
    answered: bool,
    moved: bool,
    /// The screen shows work but has not changed for a long time.
    still: bool,
    /// The mark reported last, and when.
    marked: Option<(String, Timestamp)>,
    /// The prompt on the screen.
    prompt: PromptOnScreen,
    /// Present for an agent whose files capture does not read.
    content: Option<TerminalContent>,
    /// The screen as rows, for showing it elsewhere.
    grid: Grid,
    events: Vec<(Timestamp, HostEvent)>,
}

/// The conversation content for an agent whose files capture does not read; `None` for an unknown program.
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
    /// A blank terminal of this size.
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

    /// Processes bytes written by the program.
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

    /// Whether the stream is between sequences: no control sequence or character is incomplete.
    #[must_use]
    pub fn is_between_sequences(&self) -> bool {
        self.terminal.is_between_sequences()
    }

    /// Records that bytes were dropped because there were too many: the screen may be wrong until it is redrawn.
    pub fn skipped(&mut self, bytes: u64, now: Timestamp) {
        self.now = now;
        self.output_at = now;
        self.terminal.lost();
        self.skipped_bytes = self.skipped_bytes.saturating_add(bytes);
        self.dirty_since.get_or_insert(now);
    }

    /// Processes bytes typed by the user: their meaning for an open dialog, and, for an agent whose files capture does
    /// not read, the prompts seen on the screen.
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

    /// Changes the size of the terminal.
    pub fn resize(&mut self, size: Size, now: Timestamp) {
        self.now = now;
        self.terminal.resize(size);
        self.dirty_since.get_or_insert(now);
    }

    /// Records that another program is in the foreground.
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

    /// Advances the time to `now`.
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

    /// When the screen counts as still. A working agent changes its screen all the time; if it is still for long, other
    /// sources take precedence.
    fn still_due(&self) -> Option<Timestamp> {
        let works = self.judge.current.as_ref().is_some_and(|c| c.claim.state == State::Running);
        (works && !self.still && self.provider != Provider::Unknown).then(|| self.output_at.plus_ms(STILL_MS))
    }

    /// Restores the strength of the claim when the screen changes again.
    fn stirs(&mut self, now: Timestamp) {
        if std::mem::take(&mut self.still) {
            let strength = self.judge.current.as_ref().map(|c| c.claim.strength);
            self.push_work_claim(now, strength.unwrap_or(Confidence::Medium));
        }
    }

    /// Repeats a claim of work with this strength.
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

    /// Whether the screen supports a claim.
    #[must_use]
    pub fn has_claim(&self) -> bool {
        self.judge.current.is_some()
    }

    /// The agent's version, as read from its screen.
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

    /// The changes of the screen since a revision, as rows of coloured text; everything since revision 0.
    pub fn grid(&mut self, since: u64) -> GridUpdate {
        self.grid.update(&self.terminal, self.skipped_bytes, since)
    }

    /// Start of a synchronized update that has not ended yet; its half-drawn screen must not be shown.
    #[must_use]
    pub const fn updating_since(&self) -> Option<Timestamp> {
        self.updating_since
    }

    /// At most `count` lines that scrolled off the screen before line number `before`.
    #[must_use]
    pub fn scrollback(&self, before: u64, count: usize) -> Scrollback {
        self.terminal.signals().scrolled.before(before, count)
    }

    /// Whether the program accepts bracketed paste (mode 2004).
    #[must_use]
    pub fn accepts_pastes(&self) -> bool {
        self.terminal.screen().bracketed_paste()
    }

    /// Whether the program wants cursor keys in their application form (mode 1).
    #[must_use]
    pub fn application_cursor(&self) -> bool {
        self.terminal.screen().application_cursor()
    }

    /// Bytes that draw the current screen on a terminal of the same size, including modes.
    #[must_use]
    pub fn repaint(&self) -> Vec<u8> {
        self.terminal.repaint()
    }

    /// Bytes that undo the modes the program left on (alternate screen, mouse, bracketed paste, hidden cursor, keyboard
    /// protocols); empty if it left none.
    #[must_use]
    pub fn restore(&self) -> Vec<u8> {
        self.terminal.restore()
    }

    /// Replies to the program's terminal queries (cursor position, device attributes); type them only while no terminal
    /// is attached, because an attached terminal replies itself.
    pub fn take_replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.terminal.signals_mut().replies)
    }

    /// Explains the reading of the screen as of the last time it was judged.
    #[must_use]
    pub fn explain(&self) -> Explanation {
        let view = View::new(&self.frame, &self.judge.set);
        explain::explain(&self.judge, &view, self.version(), self.terminal.panics, self.now)
    }

    /// When the screen must be judged next.
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

    /// Looks for the agent's version until it is known; then the rules for that version apply.
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
        // Only the rest of a half-drawn version may be added.
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
