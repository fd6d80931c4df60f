//! Types into runs. Text is meant for a prompt and waits for one; keys are meant for dialogs and are pressed at once.
//!
//! Whether text may be typed is decided in one place for the queue, `capture send`, the HTTP API and agentapi:
//! [`Runs::gate`], which asks the host about the screen and the sessions about requests that no screen shows. The host
//! checks its screen again right before the text and before Enter (`terminal::host::type_prompt`).

use std::time::Duration;

use api::runs::{Input as RunInput, InputSent, Run};
use events::SessionId;
use host_protocol::{
    claim::TypingGate,
    frame::{HostRequest, PromptTyping},
};
use live_view::{Refusal, RunTarget};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};

use super::{
    QueuedRequest, Runs,
    command::{STEER, takes},
    question::{Unanswered, name_of, question, question_within},
};

/// Interval between checks of a run that is not at a prompt.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long ingest may take to commit earlier observations.
const COMMITTED_WITHIN: Duration = Duration::from_secs(2);
/// How long a host may take to type a text: longer than the sum of its waits.
const TYPED_WITHIN: Duration = Duration::from_secs(15);
/// Delay between forced text and the Enter after it: agents treat input that arrives in one piece as a paste.
const BEFORE_ENTER: Duration = Duration::from_millis(300);

/// The outcome of typing a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptOutcome {
    /// Nothing was typed, for this reason; a retry is safe.
    Refused(String),
    /// The prompt was typed and submitted.
    Typed,
    /// The prompt may have been typed, partly or completely: a retry could type it twice.
    Unknown(String),
}

/// Why a text was not typed and submitted.
enum NotTyped {
    /// Nothing was typed: the screen does not allow it now.
    Closed(TypingGate),
    /// Nothing was typed.
    Refused(Refusal),
    /// The text was typed but not submitted.
    NotSubmitted(String),
    /// The text may have been typed, partly or completely.
    Unknown(Refusal),
}

/// The channel for requests to a host.
type Asks<'a> = Option<&'a mpsc::Sender<QueuedRequest>>;

impl Runs {
    /// Types into a run. Text waits for a prompt up to the timeout of the input, and is never typed into a dialog or a
    /// menu unless it is forced. Keys are pressed at once: a client that sends keys is expected to know their effect.
    ///
    /// # Errors
    /// When there is no such run, it has ended, or its host refuses; when a dialog or menu is open that text could
    /// answer; when no prompt appeared in time; and when the text was typed but could not be submitted.
    pub async fn send_input(&self, target: &RunTarget, input: RunInput) -> Result<InputSent, Refusal> {
        let (run, asks) = self.find_reconnected(target).await?;
        match (&input.text, input.force) {
            (Some(_), _) if takes(&run, STEER) => self.send_as_command(&run, asks.as_ref(), input).await,
            (Some(text), false) => self.send_text(target, run, text, &input).await,
            _ if !run.hello.takes.is_empty() => self.send_as_command(&run, asks.as_ref(), input).await,
            (Some(_), true) | (None, _) => {
                let (position, forced) = (self.position().await, input.force && input.text.is_some());
                // Typing must not stop half way when the client disconnects.
                let task = tokio::spawn(async move { type_blind(&run, asks.as_ref(), input).await.map(|()| run.id) });
                let run = task.await.map_err(|error| Refusal::Failed(error.to_string()))??;
                Ok(InputSent { run, sent: true, position, forced })
            }
        }
    }

    /// Types the characters a user enters in a view of the terminal.
    ///
    /// # Errors
    /// When there is no such run or its host refuses, and when a dialog or menu is open and `force` is false.
    pub async fn type_characters(&self, target: &RunTarget, text: String, force: bool) -> Result<(), Refusal> {
        let (run, asks) = self.find_reconnected(target).await?;
        if !run.hello.takes.is_empty() {
            let input = RunInput { text: Some(text), ..RunInput::default() };
            return self.send_as_command(&run, asks.as_ref(), input).await.map(drop);
        }
        if !force && let TypingGate::Choice { shows } = self.gate(&run, asks.as_ref()).await? {
            return Err(Refusal::Conflict(open_choice(&run, &shows)));
        }
        type_blind(&run, asks.as_ref(), RunInput { text: Some(text), ..RunInput::default() }).await
    }

    /// The position of the log after everything observed so far.
    pub(super) async fn position(&self) -> u64 {
        // A position that is too low only shortens the client's wait.
        timeout(COMMITTED_WITHIN, self.inputs.commit()).await.ok();
        self.live_view.position()
    }

    /// Whether text may be typed into a run: its screen allows it, and no hook or transcript reports a permission
    /// request that no rule recognizes on the screen.
    async fn gate(&self, run: &Run, asks: Asks<'_>) -> Result<TypingGate, Unanswered> {
        let gate = question(run, asks, HostRequest::Gate).await?;
        let gate =
            serde_json::from_value(gate).map_err(|error| Unanswered::Refused(Refusal::Failed(error.to_string())))?;
        match gate {
            // The screen's own description takes precedence.
            TypingGate::Choice { .. } => Ok(gate),
            TypingGate::Open | TypingGate::Busy { .. } => Ok(self.unseen_request(run).unwrap_or(gate)),
        }
    }

    fn unseen_request(&self, run: &Run) -> Option<TypingGate> {
        let shows = "a permission request, or will show one soon".to_owned();
        self.live_view.waits_for_approval(run.id).then_some(TypingGate::Choice { shows })
    }

    /// Types a text if that is allowed now, and submits it if the prompt is still the same afterwards.
    async fn type_text(&self, run: &Run, asks: Asks<'_>, text: &str, submit: bool) -> Result<(), NotTyped> {
        if let Some(gate) = self.unseen_request(run) {
            return Err(NotTyped::Closed(gate));
        }
        let ask = HostRequest::Prompt { text: text.to_owned(), submit };
        let typed = match question_within(run, asks, ask, TYPED_WITHIN).await {
            Ok(typed) => typed,
            Err(Unanswered::Refused(refusal)) => return Err(NotTyped::Refused(refusal)),
            Err(Unanswered::Unknown(refusal)) => return Err(NotTyped::Unknown(refusal)),
        };
        match serde_json::from_value(typed) {
            Ok(PromptTyping::Typed) => Ok(()),
            Ok(PromptTyping::Refused { gate }) => Err(NotTyped::Closed(gate)),
            Ok(PromptTyping::NotSubmitted { why }) => Err(NotTyped::NotSubmitted(why)),
            Err(error) => Err(NotTyped::Unknown(Refusal::Failed(error.to_string()))),
        }
    }

    /// Types a text once the run is at a prompt.
    async fn send_text(
        &self,
        target: &RunTarget,
        run: Run,
        text: &str,
        input: &RunInput,
    ) -> Result<InputSent, Refusal> {
        let within = Duration::from_millis(input.prompt_within_ms());
        let deadline = Instant::now() + within;
        let body = text.strip_suffix("\r\n").or_else(|| text.strip_suffix(['\n', '\r'])).unwrap_or(text);
        let submit = input.submit || body.len() < text.len();
        if body.is_empty() && !submit {
            return Ok(InputSent { run: run.id, sent: true, position: self.position().await, forced: false });
        }
        loop {
            // Looked up again: the host may have reconnected.
            let (run, asks) = self.find(target)?;
            let mut gate = self.gate(&run, asks.as_ref()).await?;
            if gate == TypingGate::Open {
                let position = self.position().await;
                let (runs, body, described) = (self.clone(), body.to_owned(), run.clone());
                // Typing must not stop half way when the client disconnects.
                let typing =
                    tokio::spawn(async move { runs.type_text(&described, asks.as_ref(), &body, submit).await });
                match typing.await.map_err(|error| Refusal::Failed(error.to_string()))? {
                    Ok(()) => return Ok(InputSent { run: run.id, sent: true, position, forced: false }),
                    Err(NotTyped::Closed(closed)) => gate = closed,
                    Err(NotTyped::Refused(refusal) | NotTyped::Unknown(refusal)) => return Err(refusal),
                    Err(NotTyped::NotSubmitted(why)) => return Err(Refusal::Conflict(not_submitted(&run, &why))),
                }
            }
            match gate {
                TypingGate::Choice { shows } => return Err(Refusal::Conflict(open_choice(&run, &shows))),
                TypingGate::Busy { shows } if Instant::now() >= deadline => {
                    return Err(Refusal::TimedOut(no_prompt(&run, &shows, within)));
                }
                TypingGate::Busy { .. } | TypingGate::Open => sleep(LOOK_EVERY).await,
            }
        }
    }

    /// Whether a prompt would be typed now into the run that hosts a session.
    pub async fn takes_prompt(&self, session: SessionId) -> bool {
        let Ok((run, asks)) = self.find(&RunTarget::Session(session)) else { return false };
        matches!(self.gate(&run, asks.as_ref()).await, Ok(TypingGate::Open))
    }

    /// Types and submits a prompt in the run that hosts a session, if it waits for one.
    pub async fn prompt(&self, session: SessionId, text: &str) -> PromptOutcome {
        let (run, asks) = match self.find(&RunTarget::Session(session)) {
            Ok(found) => found,
            Err(refusal) => return PromptOutcome::Refused(refusal.to_string()),
        };
        match self.type_text(&run, asks.as_ref(), text, true).await {
            Ok(()) => PromptOutcome::Typed,
            Err(NotTyped::Closed(TypingGate::Choice { shows })) => PromptOutcome::Refused(open_choice(&run, &shows)),
            Err(NotTyped::Closed(TypingGate::Busy { shows })) => {
                PromptOutcome::Refused(format!("the run is not at a prompt: {shows}"))
            }
            Err(NotTyped::Closed(TypingGate::Open)) => PromptOutcome::Refused("the prompt was not typed".into()),
            Err(NotTyped::Refused(refusal)) => PromptOutcome::Refused(refusal.to_string()),
            Err(NotTyped::NotSubmitted(why)) => PromptOutcome::Unknown(not_submitted(&run, &why)),
            Err(NotTyped::Unknown(refusal)) => PromptOutcome::Unknown(format!("it may have been typed: {refusal}")),
        }
    }
}

/// Types into a run regardless of its screen.
async fn type_blind(run: &Run, asks: Asks<'_>, input: RunInput) -> Result<(), Refusal> {
    let RunInput { text, submit, keys, interrupt, force: _, timeout_ms: _ } = input;
    if let Some(text) = text {
        let body = text.strip_suffix("\r\n").or_else(|| text.strip_suffix(['\n', '\r'])).unwrap_or(&text);
        let enter = submit || body.len() < text.len();
        if !body.is_empty() {
            let paste = body.contains(['\n', '\r']);
            question(run, asks, HostRequest::Type { text: body.to_owned(), paste }).await?;
        }
        if enter {
            if submit && !body.is_empty() {
                sleep(BEFORE_ENTER).await;
            }
            question(run, asks, HostRequest::Keys { keys: vec!["enter".into()] }).await?;
        }
    } else if let Some(keys) = keys {
        question(run, asks, HostRequest::Keys { keys }).await?;
    } else if interrupt {
        question(run, asks, HostRequest::Interrupt).await?;
    }
    Ok(())
}

fn open_choice(run: &Run, shows: &str) -> String {
    let name = name_of(run);
    if !run.hello.takes.is_empty() {
        // There is no terminal in which a key could answer it.
        return format!("nothing was sent: run {name} shows {shows}; answer it first (`capture approvals`)");
    }
    format!(
        "nothing was typed: run {name} shows {shows}, and the text could answer it; answer it first (`capture send {name} \
         --keys KEY`, `capture attach {name}`), or type the text anyway (`--force`)"
    )
}

fn no_prompt(run: &Run, shows: &str, within: Duration) -> String {
    let (name, seconds) = (name_of(run), within.as_secs_f64());
    format!(
        "nothing was typed: run {name} was not at a prompt within {seconds} s ({shows}); look at it (`capture screen \
         {name}`), queue the text (`capture queue {name} TEXT`), wait longer (`--timeout`), or type it anyway \
         (`--force`)"
    )
}

fn not_submitted(run: &Run, why: &str) -> String {
    let name = name_of(run);
    format!(
        "the text was typed into run {name}, but not submitted: {why}; look at it (`capture screen {name}`), then press \
         Enter (`capture send {name} --keys enter`) or remove the text"
    )
}
