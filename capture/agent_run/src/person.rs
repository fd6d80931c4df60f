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
use engine::CallDecision;
use processes::wake::{Wake, WakeReceiver, pair};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    termios::{QueueSelector, tcflush, tcgetpgrp},
};
use tokio::sync::oneshot;

use crate::{
    broker::PermissionAsker,
    question::{PermissionQuestion, answered, by_person},
};

/// Who decides, in the session's file.
const BY: &str = "terminal";
/// Longest answer, in bytes; a terminal gives no longer lines.
const ANSWER_BYTES: usize = 4096;

/// Whether standard input and standard error are a terminal, with this process in its foreground.
#[must_use]
pub(crate) fn is_at_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal() && is_in_foreground()
}

fn is_in_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// The person, who is asked one question after the other.
#[derive(Debug)]
pub(crate) struct Person {
    questions: Sender<PersonQuestion>,
    wake: Wake,
    /// What is printed before a question.
    printed: PrintPass,
}

#[derive(Debug)]
struct PersonQuestion {
    text: String,
    answer: oneshot::Sender<String>,
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
    pub(crate) fn at_terminal(printed: PrintPass) -> io::Result<Self> {
        let (wake, woken) = pair()?;
        let (questions, asked) = channel();
        std::thread::Builder::new().name("person".to_owned()).spawn(move || ask_all(&asked, &woken))?;
        Ok(Self { questions, wake, printed })
    }
}

impl PermissionAsker for Person {
    fn ask(&self, question: PermissionQuestion, wait: Duration) -> BoxFuture<'static, Option<CallDecision>> {
        let (questions, wake, printed) = (self.questions.clone(), self.wake.clone(), self.printed.clone());
        Box::pin(async move {
            // Until it is answered or withdrawn.
            let _held = printed.wait().await;
            let (answer, line) = oneshot::channel();
            questions.send(PersonQuestion { text: shown(&question), answer }).ok()?;
            // Dropped after the receiver below, also when this future is.
            let withdrawn = Withdrawn(wake);
            let line = tokio::time::timeout(wait, line).await.ok()?.ok()?;
            drop(withdrawn);
            Some(if question.is_question {
                let chosen = line.parse::<usize>().ok().and_then(|n| question.options.get(n.checked_sub(1)?));
                answered(chosen.unwrap_or(&line), BY)
            } else {
                by_person(matches!(line.as_str(), "y" | "Y" | "yes"), BY)
            })
        })
    }
}

/// The question on a terminal.
fn shown(question: &PermissionQuestion) -> String {
    if question.is_question {
        let options: String =
            question.options.iter().zip(1..).map(|(option, n)| format!("  {n}. {option}\n")).collect();
        return format!("\nThe agent asks: {}\n{options}Answer: ", question.title);
    }
    let details: String = question.details.lines().map(|line| format!("  {line}\n")).collect();
    format!("\n{}\n{details}Allow it once? [y/N] ", question.title)
}

fn ask_all(asked: &Receiver<PersonQuestion>, woken: &WakeReceiver) {
    while let Ok(question) = asked.recv() {
        if question.answer.is_closed() || !is_in_foreground() {
            continue;
        }
        // What was typed before the question does not answer it.
        if tcflush(io::stdin(), QueueSelector::IFlush).is_err() {
            continue;
        }
        let mut err = printing::stderr();
        let shown = write!(err, "{}", question.text).and_then(|()| err.flush());
        drop(err);
        if shown.is_err() {
            continue;
        }
        match line(&question, woken) {
            // Who asked may be gone.
            Some(line) => drop(question.answer.send(line)),
            None => printing::print_error_line(""),
        }
    }
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
