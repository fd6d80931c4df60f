//! The person at the terminal this process runs in.
//!
//! One question at a time stands there, whole. What was typed before it is thrown away, and a process in the background
//! asks nothing: a shell would stop it. Nobody but a person can answer: who runs the agent from an agent was refused
//! before, and what the agent runs has no terminal.

use std::{
    io::{self, IsTerminal, Write},
    sync::mpsc::{Receiver, Sender, channel},
    time::Duration,
};

use agent::{BoxFuture, PrintPass};
use agent_run::{AskerDecision, PermissionAsker, PermissionQuestion, allowed, answered, denied};
use api::approvals::DecisionScope;
use processes::wake::{Wake, WakeReceiver, pair};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    termios::{QueueSelector, tcflush, tcgetpgrp},
};
use tokio::sync::oneshot;

/// Who decides, in the session's file.
const BY: &str = "terminal";
/// Longest answer, in bytes; a terminal gives no longer lines.
const ANSWER_BYTES: usize = 4096;

/// Whether standard input and standard error are a terminal, with this process in its foreground.
pub(super) fn is_at_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal() && is_in_foreground()
}

fn is_in_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// The person, who is asked one question after the other.
#[derive(Debug)]
pub(super) struct Person {
    questions: Sender<PersonQuestion>,
    wake: Wake,
    /// What is printed before a question.
    printed: PrintPass,
}

#[derive(Debug)]
struct PersonQuestion {
    question: PermissionQuestion,
    answer: oneshot::Sender<AskerDecision>,
}

/// Withdraws a question when its answer is not needed any more.
struct Withdrawn(Wake);

impl Drop for Withdrawn {
    fn drop(&mut self) {
        self.0.wake();
    }
}

impl Person {
    /// The person at the terminal of this process. A question comes after what is `printed` before it.
    ///
    /// # Errors
    /// There can be no thread or no pipe for it.
    pub(super) fn at_terminal(printed: PrintPass) -> io::Result<Self> {
        let (wake, woken) = pair()?;
        let (questions, asked) = channel();
        std::thread::Builder::new().name("person".to_owned()).spawn(move || ask_all(&asked, &woken))?;
        Ok(Self { questions, wake, printed })
    }
}

impl PermissionAsker for Person {
    fn ask(&self, question: PermissionQuestion, wait: Duration) -> BoxFuture<'static, Option<AskerDecision>> {
        let (questions, wake, printed) = (self.questions.clone(), self.wake.clone(), self.printed.clone());
        Box::pin(async move {
            // Until it is answered or withdrawn.
            let _held = printed.wait().await;
            let (answer, decided) = oneshot::channel();
            questions.send(PersonQuestion { question, answer }).ok()?;
            // Dropped after the receiver below, also when this future is.
            let withdrawn = Withdrawn(wake);
            let decided = tokio::time::timeout(wait, decided).await.ok()?.ok()?;
            drop(withdrawn);
            Some(decided)
        })
    }
}

/// The question on a terminal of this size, in columns and rows. Where it `replaces` one that was withdrawn, what a person
/// was about to type may be meant for the other.
fn shown(question: &PermissionQuestion, size: (usize, usize), replaces: bool) -> ShownQuestion {
    if question.is_question {
        let options: String =
            question.options.iter().zip(1..).map(|(option, n)| format!("  {n}. {option}\n")).collect();
        return ShownQuestion {
            text: format!("\nThe agent asks: {}\n{options}Answer: ", question.title),
            in_full: replaces,
        };
    }
    let details: String = question.details.lines().map(|line| format!("  {line}\n")).collect();
    let text = format!("\n{}\n{details}", question.title);
    let note = printing::asked::asks_for_word(&text, size, replaces);
    let in_full = note.is_some();
    let note = note.unwrap_or_default();
    let words = offered(question, in_full);
    ShownQuestion { text: format!("{text}{note}Allow it? {words}, or say what to do instead: "), in_full }
}

/// The words that answer a question, as it names them.
fn offered(question: &PermissionQuestion, in_full: bool) -> String {
    let words =
        [("[y]es", true), ("[s]ession", question.can_last), ("[r]ule", question.rule.is_some()), ("[n]o", true)];
    let words: Vec<_> = words.into_iter().filter_map(|(word, is_offered)| is_offered.then_some(word)).collect();
    let words = words.join(", ");
    if in_full { words.replace(['[', ']'], "") } else { words }
}

/// What saving rules would add, and the question for it.
fn shown_rule(rule: &str) -> String {
    let (these, them) =
        if rule.matches("[[rule]]").count() > 1 { ("These rules", "them") } else { ("This rule", "it") };
    let rule: String = rule.lines().map(|line| format!("    {}\n", printing::safe(line))).collect();
    format!(
        "{these} would be added to your policy, for every session:\n\n{rule}\nSave {them}, and allow the call? Type yes or no: "
    )
}

/// A question as the terminal shows it.
struct ShownQuestion {
    text: String,
    /// Whether it is longer than the screen, or replaces another, so that one key does not allow it and no text answers
    /// it at once.
    in_full: bool,
}

/// What an answer decides; nothing when it has to be given again.
fn decided(question: &PermissionQuestion, in_full: bool, line: &str) -> Option<AskerDecision> {
    if question.is_question {
        let chosen = printing::asked::numbered(&question.options, line).and_then(|n| question.options.get(n));
        return Some(AskerDecision::once(answered(chosen.map_or(line, String::as_str), BY)));
    }
    let word = line.to_lowercase();
    let once = AskerDecision::once(allowed(BY));
    match word.as_str() {
        "y" | "s" | "r" if in_full => None,
        "y" | "yes" => Some(once),
        "s" | "session" if question.can_last => Some(AskerDecision { scope: DecisionScope::Session, ..once }),
        "r" | "rule" if question.rule.is_some() => Some(AskerDecision { rule: question.rule.clone(), ..once }),
        // They are offered where they can be given, and must not become more or less than that.
        "s" | "session" | "r" | "rule" => None,
        "" | "n" | "no" => Some(AskerDecision::once(denied("", BY))),
        _ => Some(AskerDecision::once(denied(line, BY))),
    }
}

fn ask_all(asked: &Receiver<PersonQuestion>, woken: &WakeReceiver) {
    let mut was_withdrawn = false;
    while let Ok(question) = asked.recv() {
        if question.answer.is_closed() || !is_in_foreground() {
            continue;
        }
        // What was typed before the question does not answer it.
        if tcflush(io::stdin(), QueueSelector::IFlush).is_err() {
            continue;
        }
        let shown = shown(&question.question, printing::error_size(), was_withdrawn);
        if !print(&shown.text) {
            continue;
        }
        // Who asked may be gone.
        let decided = answer(&question, shown.in_full, woken);
        was_withdrawn = decided.is_none();
        match decided {
            Some(decided) => drop(question.answer.send(decided)),
            None => printing::print_error_line(""),
        }
    }
}

/// What is decided; nothing when the question is withdrawn, or the terminal is gone.
fn answer(question: &PersonQuestion, in_full: bool, woken: &WakeReceiver) -> Option<AskerDecision> {
    let asked = &question.question;
    let mut is_confirmed = !(in_full && asked.is_question);
    loop {
        let line = line(question, woken)?;
        if is_confirmed && let Some(decided) = decided(asked, in_full, &line) {
            let Some(rule) = &decided.rule else { return Some(decided) };
            // What is allowed for good is shown before it is, and what was typed ahead does not allow it.
            let shown = shown_rule(rule);
            let note = printing::asked::asks_for_word(&shown, printing::error_size(), false).unwrap_or_default();
            if tcflush(io::stdin(), QueueSelector::IFlush).is_err() || !print(&format!("{note}{shown}")) {
                return None;
            }
            if self::line(question, woken)?.to_lowercase() == "yes" {
                return Some(decided);
            }
        }
        let again = if asked.is_question {
            is_confirmed = true;
            "This question replaced another one. Type your answer to it again: ".to_owned()
        } else {
            format!("Type {}, or what to do instead: ", offered(asked, true))
        };
        if !print(&again) {
            return None;
        }
    }
}

/// Prints a text that stands until it is answered; gives whether it was printed.
fn print(text: &str) -> bool {
    let mut err = printing::stderr();
    write!(err, "{text}").and_then(|()| err.flush()).is_ok()
}

/// The line that is typed; nothing when the question is withdrawn, or the terminal is gone.
fn line(question: &PersonQuestion, woken: &WakeReceiver) -> Option<String> {
    let stdin = io::stdin();
    loop {
        woken.drain();
        if question.answer.is_closed() {
            return None;
        }
        let mut ready = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
        match poll(&mut ready, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        if ready[0].revents().is_empty() || question.answer.is_closed() {
            continue;
        }
        let mut bytes = [0_u8; ANSWER_BYTES];
        return match rustix::io::read(&stdin, &mut bytes) {
            Ok(read @ 1..) => Some(String::from_utf8_lossy(&bytes[..read]).trim().to_owned()),
            Ok(0) | Err(_) => None,
        };
    }
}

#[cfg(test)]
mod tests;
