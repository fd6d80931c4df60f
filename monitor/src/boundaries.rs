//! Boundaries: what a person forbade in a prompt, held against what a session ran or asks to run.
//!
//! A boundary comes only from a prompt that the agent's own record attributes to a person. It is open until the person
//! allows the same in such a prompt, or until the session ends. If it is not certain what a sentence means, it opens no
//! boundary; if a sentence may allow something, it lifts the boundary.

mod acts;
mod grammar;
mod permissions;
mod reader;
mod sentences;

use std::collections::VecDeque;

use events::{
    ApprovalId, ApprovalRequested, ApprovalResolved, DecidedBy, Event, EventId, FindingKind, Payload, PromptOrigin,
    Severity, Timestamp, ToolCall, ToolKind, ToolOutcome, ToolResult, UserPrompt,
};
use projections::{
    failure::FinishedCall,
    receipt::{self, ShellCommand},
    shorten::{one_line, verbatim_line},
};

use crate::findings::{NewFinding, SessionFindings};
use acts::{Act, Files, Place, Sure, Verb};
use permissions::{Permissions, permissions};

/// Maximum number of open boundaries of a session; the oldest is dropped for a new one.
const OPEN: usize = 32;
/// Longest quotation of a prompt, characters.
const SAID: usize = 120;
/// Longest command in a finding, characters.
const COMMAND: usize = 60;
/// Maximum number of calls of a session that may break a boundary once they end.
const CALLS: usize = 64;
/// Maximum number of calls of a session that wait for permission, and of those that a person allowed.
const APPROVALS: usize = 16;

/// Something that a person forbade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary {
    /// The event of the prompt.
    pub event: EventId,
    /// When the person wrote the prompt.
    pub at: Timestamp,
    /// The sentence of the prompt, shortened and without secrets.
    pub said: String,
    /// The number of the boundary among those of the prompt.
    number: usize,
    act: Act,
}

impl Boundary {
    /// What is forbidden, in words: `do not push`.
    #[must_use]
    pub fn words(&self) -> String {
        self.act.words()
    }
}

/// The open boundaries of a session.
#[derive(Debug, Clone, Default)]
pub struct Boundaries {
    open: Vec<Boundary>,
}

/// What an agent asks to do.
#[derive(Debug, Clone, Copy, Default)]
pub struct BoundaryRequest<'a> {
    /// The command line.
    pub command: Option<&'a str>,
    /// The files to change.
    pub files: &'a [String],
    /// The directory in which the command runs.
    pub cwd: Option<&'a str>,
    /// The directory in which the session began.
    pub began_in: Option<&'a str>,
}

/// Whether a prompt is the word of a person, according to the agent's own record.
fn is_persons(prompt: &UserPrompt, event: &Event) -> bool {
    let by_person = match prompt.origin {
        PromptOrigin::Human | PromptOrigin::Steering => true,
        PromptOrigin::Wakeup | PromptOrigin::Agent | PromptOrigin::Command | PromptOrigin::Monitor => false,
    };
    by_person && prompt.stated && event.confidence != events::Confidence::Low
}

impl Boundaries {
    /// Applies an event of the session: a prompt may open and lift boundaries, and the end of the session lifts all.
    pub fn apply(&mut self, event: &Event) {
        if let Payload::UserPrompt(prompt) = &event.payload
            && is_persons(prompt, event)
        {
            self.prompted(event.text.as_deref().unwrap_or_default(), event.id, event.created_at);
        } else if let Payload::UserPrompt(UserPrompt { origin: PromptOrigin::Command, .. }) = &event.payload {
            // The person typed `/push`. What a command changes or runs is not known from its name.
            let text = event.text.as_deref().unwrap_or_default().to_lowercase();
            let is_broad = |act: &Act| matches!(act.verb(), Verb::Change | Verb::Run);
            self.open.retain(|boundary| is_broad(&boundary.act) || !boundary.act.is_named_in(&text));
        } else if matches!(event.payload, Payload::SessionExited(_)) && event.derived {
            self.open.clear();
        }
    }

    fn prompted(&mut self, text: &str, event: EventId, at: Timestamp) {
        let sentences = sentences::sentences(text);
        let mut last: Vec<usize> = Vec::new();
        let mut number = 0;
        for sentence in &sentences {
            if grammar::limits_the_last(sentence) {
                self.open.retain(|boundary| boundary.event != event || !last.contains(&boundary.number));
            }
            let forbidden = grammar::prohibitions(sentence);
            if forbidden.is_empty() && self.open.is_empty() {
                continue;
            }
            let mut allowed = permissions(sentence, sentences.len() == 1);
            allowed.verbs.retain(|(verb, _)| !forbidden.iter().any(|act| act.verb() == *verb));
            if forbidden.iter().any(|act| act.verb() == Verb::Change) {
                (allowed.files, allowed.changes) = (Vec::new(), false);
            }
            self.open.retain(|boundary| !lifts(&allowed, boundary, boundary.event == event));
            last.clear();
            for act in forbidden {
                self.open.retain(|boundary| boundary.act != act);
                if self.open.len() == OPEN {
                    self.open.remove(0);
                }
                let said = one_line(&sentence.text, SAID);
                self.open.push(Boundary { event, at, said, number, act });
                last.push(number);
                number += 1;
            }
        }
    }

    /// A person answered a question of the agent, or approved its plan: lifts the earlier boundaries that the answer may
    /// be about. `text` is the result of the call.
    pub fn answered(&mut self, tool: ToolKind, text: &str, at: Timestamp) {
        let text = text.to_lowercase();
        let is_lifted = |boundary: &Boundary| match tool {
            ToolKind::Plan => boundary.act == Act::Change(Files::All),
            ToolKind::Question => !is_refusal(&text) && boundary.act.is_named_in(&text),
            ToolKind::Execute
            | ToolKind::Edit
            | ToolKind::Read
            | ToolKind::Fetch
            | ToolKind::Mcp
            | ToolKind::Subagent
            | ToolKind::Other => false,
        };
        self.open.retain(|boundary| boundary.at > at || !is_lifted(boundary));
    }

    /// The open boundary that a request certainly breaks.
    #[must_use]
    pub fn broken_by(&self, request: &BoundaryRequest<'_>) -> Option<&Boundary> {
        if self.open.is_empty() {
            return None;
        }
        let place = Place::new(request.began_in, request.cwd);
        let by_file =
            |boundary: &&Boundary| request.files.iter().any(|file| boundary.act.is_done_by_edit(file, &place));
        if let Some(boundary) = self.open.iter().find(by_file) {
            return Some(boundary);
        }
        let attempts = self.attempts(request.command?, place);
        attempts.into_iter().find(|attempt| attempt.sure == Sure::Yes).map(|attempt| attempt.boundary)
    }

    /// The boundaries that the commands of a line would break.
    fn attempts(&self, line: &str, mut place: Place) -> Vec<LineAttempt<'_>> {
        let mut all = Vec::new();
        for command in receipt::commands(line) {
            for boundary in &self.open {
                if let Some(sure) = boundary.act.is_done_by(&command, &place) {
                    all.push(LineAttempt { boundary, sure, command: command.clone() });
                }
            }
            place.follow(&command);
        }
        all
    }
}

struct LineAttempt<'a> {
    boundary: &'a Boundary,
    sure: Sure,
    command: ShellCommand,
}

/// Whether permissions lift a boundary; `is_same` is true if both are in one prompt.
fn lifts(allowed: &Permissions, boundary: &Boundary, is_same: bool) -> bool {
    if allowed.all && !is_same {
        return true;
    }
    let verb = boundary.act.verb();
    let by_verb = allowed.verbs.iter().any(|(other, target)| {
        let target_of = boundary.act.target();
        // To push elsewhere is allowed anyway.
        *other == verb && (target.is_none() || target_of.is_none() || target.as_deref() == target_of)
    });
    let of_files = match boundary.act.files() {
        Some(Files::All) => verb == Verb::Change && !is_same && allowed.changes,
        Some(Files::Named(named)) => allowed.files.iter().any(|file| are_related(file, named)),
        None => false,
    };
    by_verb || of_files
}

/// Whether the answer to a question says no. Agents write `"Push now?"="No"`.
fn is_refusal(text: &str) -> bool {
    let answer = text.split_once("\"=\"").map_or(text, |(_, answer)| answer);
    let mut words = answer.split(|c: char| !(c.is_alphanumeric() || c == '\''));
    words.any(|word| matches!(word, "no" | "not" | "don't" | "dont" | "never" | "wait" | "stop" | "cancel" | "later"))
}

/// Whether a word of a permission names a file, a part of its path, or a directory around it.
fn are_related(word: &str, named: &str) -> bool {
    let parts = |path: &str| -> Vec<String> {
        path.split('/').filter(|part| !matches!(*part, "" | "." | "**" | "*")).map(str::to_lowercase).collect()
    };
    let (word, named) = (parts(word), parts(named));
    let fits = |(word, named): (&String, &String)| word == named || acts::fits(word, named);
    let within =
        (0..word.len()).any(|from| word.len() - from >= named.len() && word[from..].iter().zip(&named).all(fits));
    let around =
        (0..named.len()).any(|from| named.len() - from >= word.len() && word.iter().zip(&named[from..]).all(fits));
    !word.is_empty() && !named.is_empty() && (within || around)
}

/// A call that breaks a boundary once it succeeds.
#[derive(Debug)]
struct PendingBreach {
    call: String,
    boundary: (EventId, usize),
    /// What runs, in words.
    what: String,
    /// The command; `None` for an edit.
    command: Option<ShellCommand>,
    sure: Sure,
}

/// Holds the calls of one session against its boundaries.
#[derive(Debug, Default)]
pub(crate) struct BoundaryWatch {
    boundaries: Boundaries,
    began_in: Option<String>,
    cwd: Option<String>,
    pending: VecDeque<PendingBreach>,
    /// Calls that wait for permission.
    asked: VecDeque<(ApprovalId, String)>,
    /// Calls that a person allowed.
    permitted: VecDeque<String>,
    /// Questions to the person, and plans to approve.
    questions: VecDeque<(String, ToolKind)>,
}

impl BoundaryWatch {
    pub(crate) fn len(&self) -> usize {
        self.boundaries.open.len() + self.pending.len() + self.asked.len() + self.permitted.len() + self.questions.len()
    }

    /// Applies an event that may open or lift boundaries. A new word of a person ends the findings.
    pub(crate) fn apply(&mut self, event: &Event, at: Timestamp, findings: &mut SessionFindings) {
        self.boundaries.apply(event);
        if matches!(&event.payload, Payload::UserPrompt(prompt) if is_persons(prompt, event)) {
            findings.resolve_kinds(&[FindingKind::Boundary], at, "a new prompt was sent");
        }
    }

    /// The session reports its directory; the first one is that in which it began.
    pub(crate) fn moved(&mut self, directory: Option<&str>) {
        if let Some(directory) = directory {
            self.cwd = Some(directory.to_owned());
            self.began_in.get_or_insert_with(|| directory.to_owned());
        }
    }

    /// The reducer's state: the directories from before the first event that was applied.
    pub(crate) fn stands(&mut self, began_in: Option<&str>, cwd: Option<&str>) {
        if began_in.is_some() && self.began_in.as_deref() != began_in {
            self.began_in = began_in.map(str::to_owned);
        }
        if self.cwd.as_deref() != cwd {
            self.cwd = cwd.map(str::to_owned).or(self.cwd.take());
        }
    }

    /// A call waits for permission.
    pub(crate) fn requested(&mut self, asked: &ApprovalRequested) {
        if let Some(call) = asked.call_id.clone().filter(|_| !self.boundaries.open.is_empty()) {
            remember(&mut self.asked, (asked.approval_id.clone(), call));
        }
    }

    /// A person who allows a call, with the boundary on the card, permits it.
    pub(crate) fn resolved(&mut self, resolved: &ApprovalResolved) {
        let at = self.asked.iter().position(|(approval, _)| *approval == resolved.approval_id);
        let Some((_, call)) = at.and_then(|at| self.asked.remove(at)) else { return };
        if resolved.allowed == Some(true) && resolved.by == Some(DecidedBy::Person) {
            self.pending.retain(|pending| pending.call != call);
            remember(&mut self.permitted, call);
        }
    }

    pub(crate) fn called(&mut self, call: &ToolCall, input: Option<&str>) {
        if self.boundaries.open.is_empty() || self.permitted.contains(&call.call_id) {
            return;
        }
        if matches!(call.tool, ToolKind::Question | ToolKind::Plan) {
            remember(&mut self.questions, (call.call_id.clone(), call.tool));
            return;
        }
        self.pending.retain(|pending| pending.call != call.call_id);
        let place = Place::new(self.began_in.as_deref(), self.cwd.as_deref());
        let mut found: Vec<PendingBreach> = Vec::new();
        let of = |boundary: &Boundary| (boundary.event, boundary.number);
        if call.tool == ToolKind::Execute
            && let Some(line) = receipt::command_of(call, input)
        {
            for LineAttempt { boundary, sure, command } in self.boundaries.attempts(&line, place) {
                let what = format!("`{}`", one_line(&command.words.join(" "), COMMAND));
                let call = call.call_id.clone();
                found.push(PendingBreach { call, boundary: of(boundary), what, command: Some(command), sure });
            }
        } else {
            for file in call.edited_files() {
                for boundary in self.boundaries.open.iter().filter(|it| it.act.is_done_by_edit(file, &place)) {
                    let what = format!("{} `{}`", one_line(&call.name, COMMAND), one_line(file, COMMAND));
                    let call = call.call_id.clone();
                    found.push(PendingBreach { call, boundary: of(boundary), what, command: None, sure: Sure::Yes });
                }
            }
        }
        self.pending.extend(found);
        while self.pending.len() > CALLS {
            self.pending.pop_front();
        }
    }

    /// Raises a finding for each boundary that a finished call broke.
    pub(crate) fn returned(
        &mut self,
        event: &Event,
        result: &ToolResult,
        at: Timestamp,
        findings: &mut SessionFindings,
    ) {
        if let Some(at) = self.questions.iter().position(|(call, _)| *call == result.call_id)
            && let Some((_, tool)) = self.questions.remove(at)
            && result.outcome == ToolOutcome::Ok
        {
            self.boundaries.answered(tool, event.text.as_deref().unwrap_or_default(), event.created_at);
        }
        let is_of_call = |pending: &PendingBreach| pending.call == result.call_id;
        if !self.pending.iter().any(is_of_call) {
            return;
        }
        let text = event.text.as_deref().unwrap_or_default();
        let finished = FinishedCall {
            tool: ToolKind::Execute,
            title: None,
            exit_code: result.exit_code,
            outcome: result.outcome,
            text: Some(text),
        };
        let (ended, rest): (Vec<_>, Vec<_>) = self.pending.drain(..).partition(is_of_call);
        self.pending = rest.into();
        for pending in ended {
            let is_broken = match &pending.command {
                Some(command) => command.succeeded(&finished) && is_printed(&pending.sure, text),
                None => result.outcome == ToolOutcome::Ok && result.exit_code.is_none_or(|code| code == 0),
            };
            let is_it = |boundary: &&Boundary| (boundary.event, boundary.number) == pending.boundary;
            if let Some(boundary) = self.boundaries.open.iter().find(is_it).filter(|_| is_broken) {
                findings.raise(breach(boundary, &pending.what, event.id, findings, at), at);
            }
        }
    }

    /// The session has ended.
    pub(crate) fn ended(&mut self) {
        self.boundaries.open.clear();
        self.pending.clear();
        self.asked.clear();
        self.permitted.clear();
        self.questions.clear();
    }
}

/// Adds to a list of bounded length; the oldest is dropped.
fn remember<T>(list: &mut VecDeque<T>, new: T) {
    if list.len() == APPROVALS {
        list.pop_front();
    }
    list.push_back(new);
}

/// Whether the output of git names the branch that was pushed or committed to.
fn is_printed(sure: &Sure, text: &str) -> bool {
    let Sure::IfPrinted(branch) = sure else { return true };
    text.lines().any(|line| {
        let line = line.trim();
        let pushed = line.rsplit_once(" -> ").is_some_and(|(_, to)| to == branch) && !line.starts_with('!');
        let committed = line.strip_prefix('[').and_then(|rest| rest.strip_prefix(branch.as_str()));
        pushed || committed.is_some_and(|rest| rest.starts_with(' '))
    })
}

fn breach(boundary: &Boundary, what: &str, event: EventId, findings: &SessionFindings, at: Timestamp) -> NewFinding {
    let key = format!("boundary:{}:{}", boundary.event, boundary.number);
    let before = findings.open().find(|finding| finding.key == key);
    let minutes = boundary.at.as_millisecond().div_euclid(60_000).rem_euclid(24 * 60);
    let time = format!("{:02}:{:02} UTC", minutes / 60, minutes % 60);
    let why = format!("at {time} you wrote “{}”, and no later prompt of yours allows it", boundary.said);
    let count = before.map_or(1, |finding| finding.count.saturating_add(1));
    let title = format!("{what} ran although you said: {}", boundary.words());
    let raise = NewFinding::new(FindingKind::Boundary, Severity::Error, title, why, at);
    let evidence = vec![boundary.event, event];
    NewFinding { key, subject: Some(verbatim_line(what, COMMAND)), evidence, count, ..raise }
}

#[cfg(test)]
mod tests;
