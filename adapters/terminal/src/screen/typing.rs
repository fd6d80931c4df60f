//! Decides whether text may be typed into the current screen; no other code decides this.
//!
//! Text and Enter belong to a prompt. In a dialog or menu, a letter may choose an option, and Enter chooses the one
//! under the cursor; while an agent is starting, they reach the dialog it opens next. So the screen must show the input
//! line of a prompt, and must have shown it for [`SETTLED_MS`].
//!
//! No rules read the prompt of a shell, of an unknown program and of some agents. Their screen must have been still for
//! that long, and must not show a dialog that the rules of any agent match.

use events::{Confidence, Provider, Reason, State, Timestamp};
use host_protocol::claim::{ScreenClaim, TypingGate};

use super::{
    Observer,
    form::ScreenRule,
    judge::matches,
    view::{ScreenFrame, View},
};

/// Minimum time a prompt, or a screen that no rules read, must have been unchanged before text is typed, ms: an agent
/// that has just drawn its input line may still open a dialog, and does not read input yet.
pub(crate) const SETTLED_MS: i64 = 1_500;
/// Maximum length of a description of the screen, in characters.
const MAX_SHOWN: usize = 160;

/// Identifies the prompt that a text is typed into: each prompt has a different value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptMark {
    provider: Provider,
    /// The number of the prompt in this run; `None` if no rules read the screen.
    number: Option<u64>,
}

impl PromptMark {
    /// Whether rules read the prompt.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.number.is_some()
    }
}

/// The prompt on the screen, according to the claims.
#[derive(Debug, Default)]
pub(crate) struct PromptOnScreen {
    /// Since when there is one.
    since: Option<Timestamp>,
    /// Number of prompts so far.
    count: u64,
}

impl Observer {
    /// Whether text may be typed now. All received bytes count, even those that were not judged yet.
    #[must_use]
    pub fn typing_gate(&self, now: Timestamp) -> TypingGate {
        if !self.terminal.is_at_rest() {
            return busy("its screen is being drawn");
        }
        let frame = ScreenFrame::of(&self.terminal, &self.judge.set);
        if !self.is_read() {
            return self.unread_gate(&frame, now);
        }
        if let Some(choice) = self.choice(&frame) {
            return choice;
        }
        if let Err(shows) = self.at_prompt(&frame) {
            return busy(&shows);
        }
        match self.prompt.since {
            Some(since) if now >= since.plus_ms(SETTLED_MS) && self.dirty_since.is_none() => TypingGate::Open,
            Some(_) | None => busy("its prompt has only just appeared"),
        }
    }

    /// The prompt on the screen.
    #[must_use]
    pub fn prompt_mark(&self) -> PromptMark {
        PromptMark { provider: self.provider, number: self.is_read().then_some(self.prompt.count) }
    }

    /// Whether Enter after a text still reaches the prompt that the text was typed into.
    ///
    /// # Errors
    /// When it does not, or this is uncertain: a description of the screen.
    pub fn is_still_at(&self, mark: &PromptMark) -> Result<(), String> {
        if !self.terminal.is_at_rest() {
            return Err("its screen is being drawn".into());
        }
        let frame = ScreenFrame::of(&self.terminal, &self.judge.set);
        if let Some(TypingGate::Choice { shows }) = self.choice(&frame).or_else(|| self.known_dialog(&frame)) {
            return Err(shows);
        }
        if *mark != self.prompt_mark() {
            return Err(self.shown());
        }
        if mark.number.is_some() { self.at_prompt(&frame) } else { Ok(()) }
    }

    /// Whether rules read the prompt of this program or anything else on its screen.
    fn is_read(&self) -> bool {
        let set = &self.judge.set;
        self.judge.current.is_some() || set.provider != Provider::Unknown && set.prompt.is_some()
    }

    /// How often the screen shows a text; whitespace and line ends are ignored, because an input line wraps.
    #[must_use]
    pub fn occurrences(&self, text: &str) -> usize {
        let solid = |text: &str| text.split_whitespace().collect::<String>();
        let text = solid(text);
        if text.is_empty() {
            0
        } else {
            solid(&ScreenFrame::of(&self.terminal, &self.judge.set).text).matches(&text).count()
        }
    }

    /// The screen as text, with the title and the state reported by the program, for detecting any change.
    #[must_use]
    pub fn screen_text(&self) -> String {
        let frame = ScreenFrame::of(&self.terminal, &self.judge.set);
        [frame.text, frame.title, frame.state].join("\n")
    }

    /// Records whether there is a prompt, after the screen was judged.
    pub(super) fn note_prompt(&mut self, now: Timestamp) {
        let is_there = self.judge.current.as_ref().is_some_and(|current| !current.over && is_rest(&current.claim));
        match (is_there, self.prompt.since) {
            (true, None) => {
                self.prompt.since = Some(now);
                self.prompt.count += 1;
            }
            (false, Some(_)) => self.prompt.since = None,
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// The open dialog, menu or question.
    fn choice(&self, frame: &ScreenFrame) -> Option<TypingGate> {
        let current = self.judge.current.as_ref().filter(|current| !current.over)?;
        let claim = &current.claim;
        let asks =
            claim.state == State::WaitingApproval || claim.dialog.is_some() || is_question(claim.state, claim.reason);
        // A search or a sign-in: the program is waiting, but not at a prompt.
        let (first, has_input) = self.read_frame(frame);
        let waits = is_rest(claim) && first.is_some_and(|(at, _)| at == current.rule) && !has_input;
        (asks || waits).then(|| TypingGate::Choice { shows: described(claim) })
    }

    /// The rule that a frame matches, with its index, and whether the frame shows the input line of a prompt.
    fn read_frame(&self, frame: &ScreenFrame) -> (Option<(usize, &ScreenRule)>, bool) {
        let set = &self.judge.set;
        let view = View::new(frame, set);
        let first = set.rules.iter().enumerate().find(|(_, rule)| matches(rule, &view));
        (first, set.prompt.as_ref().is_some_and(|prompt| view.find(prompt).is_some()))
    }

    /// Whether this frame shows the input line of a prompt and nothing that takes precedence over it.
    fn at_prompt(&self, frame: &ScreenFrame) -> Result<(), String> {
        let is_claimed = self.judge.current.as_ref().is_some_and(|current| !current.over && is_rest(&current.claim));
        let (first, has_input) = self.read_frame(frame);
        let rests = first.is_some_and(|(_, rule)| is_rest_rule(rule));
        if is_claimed && rests && has_input { Ok(()) } else { Err(self.shown()) }
    }

    fn unread_gate(&self, frame: &ScreenFrame, now: Timestamp) -> TypingGate {
        if let Some(choice) = self.known_dialog(frame) {
            return choice;
        }
        if now < self.output_at.plus_ms(SETTLED_MS) { busy("its output has not paused yet") } else { TypingGate::Open }
    }

    /// A dialog on the screen that the rules of any agent match, for a screen without rules of its own: the agent may
    /// have been started by a script.
    fn known_dialog(&self, frame: &ScreenFrame) -> Option<TypingGate> {
        if self.is_read() {
            return None;
        }
        let provider = Provider::ALL.iter().filter(|provider| **provider != Provider::Unknown);
        let found = provider.filter(|provider| self.rules.has(**provider)).find_map(|provider| {
            let set = self.rules.select(*provider, None);
            let view = View::new(frame, &set);
            let asks = |rule: &&ScreenRule| rule.state == State::WaitingApproval || rule.dialog.is_some();
            let rule = set.rules.iter().filter(asks).find(|rule| matches(rule, &view))?;
            Some(format!("{provider}/{}", rule.name))
        })?;
        Some(TypingGate::Choice { shows: format!("what looks like a dialog ({found})") })
    }

    /// A description of the screen, as text for the user.
    fn shown(&self) -> String {
        match &self.judge.current {
            Some(current) => described(&current.claim),
            None => "no prompt that capture recognizes".into(),
        }
    }
}

/// Whether this is a question of the agent, which a prompt does not answer.
fn is_question(state: State, reason: Option<Reason>) -> bool {
    let waiting = reason.and_then(|reason| reason.facts().waiting);
    state == State::Waiting && waiting.is_some_and(|waiting| !waiting.takes_typed_prompt)
}

/// Whether the claim is that the program is waiting for a prompt.
fn is_rest(claim: &ScreenClaim) -> bool {
    claim.state == State::Waiting
        && claim.strength > Confidence::Low
        && claim.dialog.is_none()
        && !is_question(claim.state, claim.reason)
}

fn is_rest_rule(rule: &ScreenRule) -> bool {
    rule.state == State::Waiting
        && rule.strength > Confidence::Low
        && rule.dialog.is_none()
        && !is_question(rule.state, rule.reason)
}

fn busy(shows: &str) -> TypingGate {
    TypingGate::Busy { shows: shows.to_owned() }
}

/// A claim in words: the question of its dialog and the options, or the state and its reason.
fn described(claim: &ScreenClaim) -> String {
    let short = |text: &str| -> String {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        line.chars().take(MAX_SHOWN).collect()
    };
    let Some(dialog) = &claim.dialog else {
        let state =
            claim.reason.map_or_else(|| claim.state.to_string(), |reason| format!("{} ({reason})", claim.state));
        return format!("{state}: {}", short(&claim.words));
    };
    let labels: Vec<&str> = dialog.options.iter().map(|option| option.label.as_str()).collect();
    let about = dialog.question.as_deref().or(dialog.subject.as_deref());
    let about = about.map_or_else(|| "a choice".to_owned(), |about| format!("\"{}\"", short(about)));
    if labels.is_empty() { about } else { format!("{about} with the options {}", short(&labels.join(" / "))) }
}
