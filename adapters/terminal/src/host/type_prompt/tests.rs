use std::sync::Arc;

use crossbeam_channel::bounded;
use events::Provider;
use host_protocol::screen::Size;

use super::*;
use crate::screen::ScreenRules;

/// Claude Code's input line containing `text`, below the output `said`.
fn prompt(said: &str, text: &str) -> String {
    let rule = "─".repeat(40);
    format!("\x1b[2J\x1b[H{said}\r\n{rule}\r\n❯ {text}\r\n{rule}\r\n  ? for shortcuts")
}

const MENU: &str =
    "\x1b[2J\x1b[H Select model\r\n\r\n❯ 1. Default\r\n  2. Small\r\n\r\n Enter to confirm · Esc to exit";

/// A program and the text being typed into it, with a clock controlled by the test.
struct Typing {
    observer: Observer,
    prompting: Prompting,
    now: i64,
}

impl Typing {
    /// A Claude Code that has been at its prompt for two seconds.
    fn at_prompt(text: &str) -> Self {
        let mut typing = Self::new(Provider::Claude, text);
        typing.draw(&prompt("hello", ""));
        typing.pass(2_000);
        typing.begin(text);
        typing
    }

    fn begin(&mut self, text: &str) {
        self.prompting = Prompting::new(text.into(), true, self.at());
    }

    fn new(provider: Provider, text: &str) -> Self {
        let now = 1_000_000;
        let at = Timestamp::from_millisecond(now);
        let rules = Arc::new(ScreenRules::load(None).unwrap());
        let observer = Observer::new(Size { rows: 24, columns: 80 }, provider, rules, at);
        Self { observer, prompting: Prompting::new(text.into(), true, at), now }
    }

    fn at(&self) -> Timestamp {
        Timestamp::from_millisecond(self.now)
    }

    fn draw(&mut self, bytes: &str) {
        self.observer.output(bytes.as_bytes(), self.at());
    }

    fn pass(&mut self, ms: i64) {
        let until = self.now + ms;
        while let Some(due) = self.observer.next_deadline().filter(|due| due.as_millisecond() <= until) {
            self.now = self.now.max(due.as_millisecond());
            self.observer.advance(self.at());
        }
        self.now = until;
        self.observer.advance(self.at());
    }

    /// The next bytes to type, or the outcome, within at most `ms`.
    fn next(&mut self, ms: i64) -> PromptStep {
        let until = self.now + ms;
        loop {
            match self.prompting.step(&self.observer, self.at()) {
                PromptStep::Wait(at) if at.as_millisecond() <= until => {
                    self.pass((at.as_millisecond() - self.now).max(1))
                }
                step => return step,
            }
        }
    }

    /// Returns the next bytes to type and reports them as typed.
    fn typed(&mut self) -> String {
        let step = self.next(5_000);
        let PromptStep::Type { bytes, .. } = step else { panic!("{step:?}") };
        assert!(self.prompting.typed(PromptTyped::Yes, self.at()).is_none());
        String::from_utf8(bytes).unwrap()
    }

    fn outcome(&mut self) -> Result<PromptTyping, String> {
        let step = self.next(10_000);
        let PromptStep::Done(outcome) = step else { panic!("{step:?}") };
        outcome
    }

    fn unsubmitted(&mut self) -> String {
        match self.outcome() {
            Ok(PromptTyping::NotSubmitted { why }) => why,
            outcome => panic!("{outcome:?}"),
        }
    }
}

#[test]
fn a_text_is_submitted_once_the_screen_shows_it() {
    let mut typing = Typing::at_prompt("do the work");
    assert_eq!(typing.typed(), "do the work");
    let begun = typing.now;
    assert!(matches!(typing.next(1_000), PromptStep::Wait(_)), "the screen does not show it yet");
    typing.draw(&prompt("hello", "do the work"));
    assert_eq!(typing.typed(), "\r");
    assert!(typing.now - begun >= BEFORE_ENTER_MS);
    typing.draw(&prompt("> do the work", ""));
    assert_eq!(typing.outcome(), Ok(PromptTyping::Typed));
}

#[test]
fn a_long_text_is_recognized_by_its_end_or_by_a_paste_placeholder() {
    let text = "a line\n".repeat(40) + "and the last of them";
    for shown in ["and the last\r\n  of them", "[Pasted text #1 +40 lines]"] {
        let mut typing = Typing::new(Provider::Claude, &text);
        typing.draw("\x1b[?2004h");
        typing.draw(&prompt("hello", ""));
        typing.pass(2_000);
        typing.begin(&text);
        assert_eq!(typing.typed(), format!("\x1b[200~{text}\x1b[201~"));
        typing.draw(&prompt("hello", shown));
        assert_eq!(typing.typed(), "\r", "{shown}");
    }
}

#[test]
fn enter_is_not_pressed_if_a_dialog_opens_after_the_text() {
    let dialogs = [
        MENU.to_owned(),
        // No rule matches this screen.
        "\x1b[2J\x1b[H Install the update?\r\n\r\n [ Yes ]  [ No ]".to_owned(),
    ];
    for dialog in dialogs {
        let mut typing = Typing::at_prompt("do the work");
        typing.typed();
        typing.draw(&prompt("hello", "do the work"));
        typing.pass(100);
        typing.draw(&dialog);
        let why = typing.unsubmitted();
        assert!(why.contains("the screen changed"), "{why}");
    }
}

#[test]
fn enter_is_not_pressed_when_a_dialog_came_and_went() {
    let mut typing = Typing::at_prompt("do the work");
    typing.typed();
    typing.draw(&prompt("hello", "do the work"));
    typing.draw(MENU);
    typing.pass(250);
    typing.draw(&prompt("hello", "do the work"));
    typing.pass(250);
    let why = typing.unsubmitted();
    assert!(why.contains("the screen changed"), "{why}");
}

#[test]
fn enter_is_not_pressed_in_a_program_that_does_not_show_the_text() {
    let mut typing = Typing::at_prompt("do the work");
    typing.typed();
    assert_eq!(typing.unsubmitted(), "the screen does not show the text");
}

#[test]
fn an_enter_without_effect_is_reported() {
    let mut typing = Typing::at_prompt("do the work");
    typing.typed();
    typing.draw(&prompt("hello", "do the work"));
    assert_eq!(typing.typed(), "\r");
    assert_eq!(typing.unsubmitted(), "Enter was pressed, but the screen did not change");
}

#[test]
fn nothing_is_typed_while_no_prompt_is_open() {
    let mut menu = Typing::at_prompt("x");
    menu.draw(MENU);
    menu.pass(1_000);
    menu.begin("x");
    let outcome = menu.outcome();
    assert!(matches!(&outcome, Ok(PromptTyping::Refused { gate: TypingGate::Choice { .. } })), "{outcome:?}");
    let mut starting = Typing::new(Provider::Claude, "x");
    let outcome = starting.outcome();
    assert!(matches!(&outcome, Ok(PromptTyping::Refused { gate: TypingGate::Busy { .. } })), "{outcome:?}");
}

#[test]
fn typing_deferred_by_new_output_is_refused_if_a_menu_appeared() {
    let mut typing = Typing::at_prompt("x");
    assert!(matches!(typing.next(1_000), PromptStep::Type { .. }));
    assert!(typing.prompting.typed(PromptTyped::NotNow, typing.at()).is_none());
    typing.draw(MENU);
    typing.pass(300);
    let outcome = typing.outcome();
    assert!(matches!(&outcome, Ok(PromptTyping::Refused { gate: TypingGate::Choice { .. } })), "{outcome:?}");
}

#[test]
fn a_text_that_would_act_as_keys_is_not_typed() {
    for text in ["a\x1bb", "a\x03", "two\nlines"] {
        let mut typing = Typing::at_prompt(text);
        let why = typing.outcome().unwrap_err();
        assert!(why.starts_with("the text was not typed"), "{text:?}: {why}");
    }
}

#[test]
fn a_program_without_screen_rules_gets_text_once_its_screen_is_still() {
    let mut typing = Typing::new(Provider::Unknown, "ls");
    typing.draw("$ ");
    let outcome = typing.outcome();
    assert!(matches!(&outcome, Ok(PromptTyping::Refused { gate: TypingGate::Busy { .. } })), "{outcome:?}");
    typing.pass(1_600);
    typing.begin("ls");
    assert_eq!(typing.typed(), "ls");
    // The program does not echo, as at a password prompt.
    assert_eq!(typing.typed(), "\r");
    assert_eq!(typing.outcome(), Ok(PromptTyping::Typed));
}

#[test]
fn prompt_keys_are_refused_after_new_output_or_user_input() {
    let right = InputFacts { passed: 10, unread: false, waiting: false, runs: true, typed: None, text: None };
    let minute = Some(Duration::from_secs(60));
    let text = |ago, same| Some((Duration::from_secs(ago), same));
    let cases = [
        (right, [Ok(()), Ok(())]),
        (InputFacts { passed: 11, ..right }, [Err(PromptTyped::NotNow); 2]),
        (InputFacts { unread: true, ..right }, [Err(PromptTyped::NotNow); 2]),
        (InputFacts { waiting: true, ..right }, [Err(PromptTyped::NotNow); 2]),
        (InputFacts { runs: false, ..right }, [Err(PromptTyped::No("the program has ended, or is stopped")); 2]),
        (
            InputFacts { typed: Some(Duration::from_secs(1)), ..right },
            [Err(PromptTyped::No("another client is typing")); 2],
        ),
        (InputFacts { typed: minute, text: text(1, true), ..right }, [Ok(()), Ok(())]),
        // The user typed between the text and Enter.
        (
            InputFacts { typed: Some(Duration::from_secs(7)), text: text(8, true), ..right },
            [Ok(()), Err(PromptTyped::No("another client is typing"))],
        ),
        (
            InputFacts { text: text(1, false), ..right },
            [Ok(()), Err(PromptTyped::No("another program is in the foreground now"))],
        ),
    ];
    for (facts, expected) in cases {
        for (after_text, expected) in [false, true].into_iter().zip(expected) {
            let keys = PromptKeys { bytes: Vec::new(), parsed: 10, after_text, typed: bounded(1).0 };
            assert_eq!(may_type(&keys, &facts), expected, "{facts:?}, after the text: {after_text}");
        }
    }
}
