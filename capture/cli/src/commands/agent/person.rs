//! The user at the terminal this process runs in.
//!
//! The terminal shows one question at a time, in full. Input typed before the question is discarded. A process in the
//! background asks nothing, because a shell would stop it. Ctrl-D answers nothing, and a process that was stopped and
//! continued shows the question again. Only a person can answer: a process started by an agent was refused earlier, and
//! the programs the agent runs have no terminal.

use std::{
    io::{self, IsTerminal, Write},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use api::approvals::DecisionScope;
use executor::{BoxFuture, PrintPass};
use processes::wake::{Wake, WakeReceiver, pair};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    termios::{QueueSelector, tcflush, tcgetpgrp},
};
use session_setup::{AskerDecision, PermissionAsker, PermissionQuestion, SessionOffer, allowed, answered, denied};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};

use crate::show::request::painted_block;

/// The name of the decider in the session's file.
const BY: &str = "terminal";
/// Maximum length of an answer, bytes; terminals do not deliver longer lines.
const ANSWER_BYTES: usize = 4096;

/// Whether standard input and standard error are a terminal, with this process in its foreground.
pub(super) fn is_at_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal() && is_in_foreground()
}

fn is_in_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// The user, who is asked one question after another.
#[derive(Debug)]
pub(super) struct Person {
    questions: Sender<PersonQuestion>,
    wake: Wake,
    standing: Arc<StandingQuestion>,
    /// Waits for output that must be printed before a question.
    printed: PrintPass,
}

/// The state of the question on the terminal, shared by the asking task and the thread that reads answers.
#[derive(Debug, Default)]
struct StandingQuestion {
    /// Whether the question is printed and unanswered, so that the cursor is after it.
    is_open: Mutex<bool>,
    /// Whether the process was stopped and continued since it was printed.
    is_continued: AtomicBool,
}

impl StandingQuestion {
    fn is_open(&self) -> MutexGuard<'_, bool> {
        self.is_open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints more of a question unless it has been withdrawn; returns whether it was printed.
    fn print(&self, text: &str) -> bool {
        let is_open = self.is_open();
        *is_open && print(text)
    }
}

#[derive(Debug)]
struct PersonQuestion {
    question: PermissionQuestion,
    answer: oneshot::Sender<AskerDecision>,
}

/// Withdraws a question whose answer is no longer needed: ends its line before anything else is printed.
struct Withdrawn(Wake, Arc<StandingQuestion>);

impl Drop for Withdrawn {
    fn drop(&mut self) {
        if std::mem::take(&mut *self.1.is_open()) {
            printing::print_error_line("");
        }
        self.0.wake();
    }
}

impl Person {
    /// The user at the terminal of this process. A question is shown after the output of `printed` that precedes it.
    ///
    /// # Errors
    /// If the thread or the pipe cannot be created.
    pub(super) fn at_terminal(printed: PrintPass) -> io::Result<Self> {
        let (wake, woken) = pair()?;
        let (questions, asked) = channel();
        let standing = Arc::<StandingQuestion>::default();
        let shared = Arc::clone(&standing);
        std::thread::Builder::new().name("person".to_owned()).spawn(move || ask_all(&asked, &shared, &woken))?;
        Ok(Self { questions, wake, standing, printed })
    }
}

impl PermissionAsker for Person {
    fn ask(&self, question: PermissionQuestion, wait: Duration) -> BoxFuture<'static, Option<AskerDecision>> {
        let (questions, wake, printed) = (self.questions.clone(), self.wake.clone(), self.printed.clone());
        let standing = Arc::clone(&self.standing);
        Box::pin(async move {
            // Held until the question is answered or withdrawn.
            let _held = printed.wait().await;
            let (answer, decided) = oneshot::channel();
            questions.send(PersonQuestion { question, answer }).ok()?;
            // Dropped after the receiver below, even if this future is dropped.
            let _withdrawn = Withdrawn(wake.clone(), Arc::clone(&standing));
            let mut continued = signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw())).ok();
            let decided = tokio::time::timeout(wait, decided);
            tokio::pin!(decided);
            loop {
                tokio::select! {
                    decided = &mut decided => return decided.ok()?.ok(),
                    () = received(&mut continued) => {
                        standing.is_continued.store(true, Ordering::Relaxed);
                        wake.wake();
                    }
                }
            }
        })
    }
}

/// Waits for a signal; waits forever if the signal cannot be received.
async fn received(signal: &mut Option<Signal>) {
    let is_received = match signal {
        Some(signal) => signal.recv().await.is_some(),
        None => false,
    };
    if !is_received {
        std::future::pending::<()>().await;
    }
}

/// The question on a terminal of this size, in columns and rows. If it `replaces` a withdrawn question, the user may be
/// about to type the answer to the earlier one.
fn shown(question: &PermissionQuestion, size: (usize, usize), replaces: bool, has_colours: bool) -> ShownQuestion {
    if question.is_question {
        let options: String =
            question.options.iter().zip(1..).map(|(option, n)| format!("  {n}. {option}\n")).collect();
        return ShownQuestion {
            text: format!("\nThe agent asks: {}\n{options}Answer: ", question.title),
            in_full: replaces,
        };
    }
    let indented = |text: &str| text.lines().map(|line| format!("  {line}\n")).collect::<String>();
    let beginning = format!("\n{}\n{}", question.title, indented(&question.details));
    let change = question.change.as_ref().map(|change| change.block.as_str()).unwrap_or_default();
    let meaning = if question.lasts == Some(SessionOffer::Edits) { EDITS_MEANING } else { "" };
    let text = format!("{beginning}{}{meaning}", indented(change));
    let note = printing::asked::asks_for_word(&text, size, replaces);
    let in_full = note.is_some();
    let note = note.unwrap_or_default();
    let words = offered(question, in_full);
    let painted = match &question.change {
        Some(change) if has_colours => indented(&painted_block(&change.block)),
        Some(_) | None => indented(change),
    };
    let text = format!("{beginning}{painted}{meaning}{note}Allow it? {words}, or say what to do instead: ");
    ShownQuestion { text, in_full }
}

/// The meaning of `session` for an edit, directly above the answer.
const EDITS_MEANING: &str = "  session: also allows further edits of the workspace until this command ends, except \
                             edits of secrets and of files that control what runs later\n";

/// The words that answer a question, as the question lists them.
fn offered(question: &PermissionQuestion, in_full: bool) -> String {
    let words =
        [("[y]es", true), ("[s]ession", question.lasts.is_some()), ("[r]ule", question.rule.is_some()), ("[n]o", true)];
    let words: Vec<_> = words.into_iter().filter_map(|(word, is_offered)| is_offered.then_some(word)).collect();
    let words = words.join(", ");
    if in_full { words.replace(['[', ']'], "") } else { words }
}

/// The rules to be saved, and the question whether to save them.
fn shown_rule(rule: &str) -> String {
    let (these, them) =
        if rule.matches("[[rule]]").count() > 1 { ("These rules", "them") } else { ("This rule", "it") };
    let rule: String = rule.lines().map(|line| format!("    {}\n", printing::safe(line))).collect();
    format!(
        "{these} would be added to your policy, for every session:\n\n{rule}\nSave {them}, and allow the call? Type yes or no: "
    )
}

/// A question as shown on the terminal.
struct ShownQuestion {
    text: String,
    /// Whether the question is longer than the screen or replaces another one, so that a single key does not allow it
    /// and free text does not answer it at once.
    in_full: bool,
}

/// The decision that an answer makes; `None` if the question must be repeated.
fn decided(question: &PermissionQuestion, in_full: bool, line: &str) -> Option<AskerDecision> {
    if question.is_question {
        if line.trim().is_empty() {
            return None;
        }
        let chosen = printing::asked::numbered(&question.options, line).and_then(|n| question.options.get(n));
        return Some(AskerDecision::once(answered(chosen.map_or(line, String::as_str), BY)));
    }
    let word = line.to_lowercase();
    let once = AskerDecision::once(allowed(BY));
    match word.as_str() {
        "y" | "s" | "r" if in_full => None,
        "y" | "yes" => Some(once),
        "s" | "session" if question.lasts.is_some() => Some(AskerDecision { scope: DecisionScope::Session, ..once }),
        "r" | "rule" if question.rule.is_some() => Some(AskerDecision { rule: question.rule.clone(), ..once }),
        // These words are valid only if the question offers them, and must not fall back to a wider or narrower
        // decision.
        "s" | "session" | "r" | "rule" => None,
        "" | "n" | "no" => Some(AskerDecision::once(denied("", BY))),
        // Meant as a yes, but as a reason it would deny the call.
        _ if is_consent(&word) => None,
        _ => Some(AskerDecision::once(denied(line, BY))),
    }
}

/// Whether all words of a line express consent, but the line is not one of the words that allow a call.
fn is_consent(line: &str) -> bool {
    const CONSENT: [&str; 15] = [
        "y", "yes", "yep", "yeah", "ok", "okay", "sure", "fine", "allow", "allowed", "approve", "approved", "accept",
        "go", "please",
    ];
    let mut words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).peekable();
    words.peek().is_some() && words.all(|word| CONSENT.contains(&word))
}

fn ask_all(asked: &Receiver<PersonQuestion>, standing: &StandingQuestion, woken: &WakeReceiver) {
    let mut was_withdrawn = false;
    while let Ok(question) = asked.recv() {
        if question.answer.is_closed() || !is_in_foreground() {
            continue;
        }
        // Input typed before the question does not answer it.
        if tcflush(io::stdin(), QueueSelector::IFlush).is_err() {
            continue;
        }
        let has_colours = printing::style::error_colours();
        let shown = shown(&question.question, printing::error_size(), was_withdrawn, has_colours);
        standing.is_continued.store(false, Ordering::Relaxed);
        {
            let mut is_open = standing.is_open();
            // The task that withdraws the question waits for this lock, and then ends the line.
            if question.answer.is_closed() || !print(&shown.text) {
                continue;
            }
            *is_open = true;
        }
        // The asking task may be gone.
        let decided = answer(&TerminalQuestion { question: &question, shown: &shown, standing, woken });
        was_withdrawn = decided.is_none();
        let was_open = std::mem::take(&mut *standing.is_open());
        match decided {
            Some(decided) => drop(question.answer.send(decided)),
            None if was_open => printing::print_error_line(""),
            None => {}
        }
    }
}

/// A question on the terminal, and the handles that end the wait for its answer.
struct TerminalQuestion<'a> {
    question: &'a PersonQuestion,
    shown: &'a ShownQuestion,
    standing: &'a StandingQuestion,
    woken: &'a WakeReceiver,
}

/// Returns the decision; `None` if the question is withdrawn or the terminal is gone.
fn answer(here: &TerminalQuestion<'_>) -> Option<AskerDecision> {
    let (asked, in_full) = (&here.question.question, here.shown.in_full);
    let mut is_confirmed = !(in_full && asked.is_question);
    loop {
        let line = here.typed(&here.shown.text)?;
        let is_end = line.is_none();
        let is_empty = line.as_ref().is_some_and(|line| line.trim().is_empty());
        if is_confirmed && let Some(decided) = line.and_then(|line| decided(asked, in_full, &line)) {
            let Some(rule) = &decided.rule else { return Some(decided) };
            // Show a rule before saving it; input typed ahead does not confirm it.
            let shown = shown_rule(rule);
            let note = printing::asked::asks_for_word(&shown, printing::error_size(), false).unwrap_or_default();
            let shown = format!("{note}{shown}");
            if !here.flush_and_print(&shown) {
                return None;
            }
            if here.typed(&shown)?.is_some_and(|line| line.to_lowercase() == "yes") {
                return Some(decided);
            }
        }
        let again = match (asked.is_question, is_end) {
            (true, true) => "\nType your answer; Ctrl-C ends the turn: ".to_owned(),
            (true, false) if is_empty => "Type your answer; Ctrl-C ends the turn: ".to_owned(),
            (true, false) => {
                is_confirmed = true;
                "This question replaced an earlier one. Type your answer to this question: ".to_owned()
            }
            (false, true) => format!("\nType {}, or what to do instead; Ctrl-C ends the turn: ", offered(asked, true)),
            (false, false) => format!("Type {}, or what to do instead: ", offered(asked, true)),
        };
        if !here.standing.print(&again) {
            return None;
        }
    }
}

/// Input from the terminal.
enum TerminalInput {
    Line(String),
    /// Ctrl-D, which answers nothing; the terminal stays open.
    End,
    /// The process was stopped and is in the foreground again.
    Continued,
}

impl TerminalQuestion<'_> {
    /// The line that is typed, `Some(None)` for Ctrl-D, or `None` if the question is withdrawn or the terminal is gone.
    /// If the process was stopped, `shown` is printed again, because the shell has printed below it.
    fn typed(&self, shown: &str) -> Option<Option<String>> {
        loop {
            match self.input()? {
                TerminalInput::Line(line) => return Some(Some(line)),
                TerminalInput::End => return Some(None),
                TerminalInput::Continued if self.flush_and_print(shown) => {}
                TerminalInput::Continued => return None,
            }
        }
    }

    /// Discards typed-ahead input and prints the text to answer.
    fn flush_and_print(&self, text: &str) -> bool {
        tcflush(io::stdin(), QueueSelector::IFlush).is_ok() && self.standing.print(text)
    }

    fn input(&self) -> Option<TerminalInput> {
        let stdin = io::stdin();
        loop {
            self.woken.drain();
            if self.question.answer.is_closed() {
                return None;
            }
            if self.standing.is_continued.load(Ordering::Relaxed) && is_in_foreground() {
                self.standing.is_continued.store(false, Ordering::Relaxed);
                return Some(TerminalInput::Continued);
            }
            let mut ready = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(self.woken, PollFlags::IN)];
            match poll(&mut ready, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return None,
            }
            let happened = ready[0].revents();
            if happened.is_empty() || self.question.answer.is_closed() {
                continue;
            }
            let mut bytes = [0_u8; ANSWER_BYTES];
            return match rustix::io::read(&stdin, &mut bytes) {
                Ok(read @ 1..) => Some(TerminalInput::Line(String::from_utf8_lossy(&bytes[..read]).trim().to_owned())),
                // A closed terminal does not come back.
                Ok(0) if !happened.contains(PollFlags::HUP) && stdin.is_terminal() => Some(TerminalInput::End),
                Err(Errno::INTR) => continue,
                Ok(0) | Err(_) => None,
            };
        }
    }
}

/// Prints a text that waits for an answer; returns whether it was printed.
fn print(text: &str) -> bool {
    let mut err = printing::stderr();
    write!(err, "{text}").and_then(|()| err.flush()).is_ok()
}

#[cfg(test)]
mod tests;
