//! Prints the agent's activity before its answer, one line each: its texts, the tools it runs, and which of them
//! failed.
//!
//! A turn does not depend on its watchers: lines that cannot be written are lost.

use std::io::Write;

use engine::{
    AnswerUsage, CompactionReason, EngineActivity, FailureKind, RuntimeFrame, limits::DISK_RETRY_MS, window::grouped,
};
use session_tree::{Entry, Json, Object, context::text_of};

use super::{PrintDetail, usd_in_words};
use crate::handle::SessionUpdate;

/// Arguments that describe a call, in order of preference.
const ABOUT: [&str; 5] = ["path", "command", "pattern", "url", "action"];
/// Maximum number of characters of such an argument, or of the error of a call that ran.
const LETTERS: usize = 72;
/// Maximum number of characters of the reason why a call was not run.
const REASON_LETTERS: usize = 240;

/// Minimum duration of a command without output for it to be shown, in milliseconds.
const TOLD_MS: f64 = 1_000.0;

/// The clock, and the number of attempts at a request.
#[derive(Clone, Copy)]
pub(super) struct ProgressClock {
    /// Formats a time as clock time.
    pub(super) time: fn(i64) -> String,
    /// The current time.
    pub(super) now: fn() -> i64,
    /// Maximum number of attempts at a request.
    pub(super) attempts: u32,
}

/// The requests of a prompt and their cost.
#[derive(Debug, Default)]
struct RequestTally {
    requests: u64,
    cost_nano_usd: u64,
    /// Whether the cost of a request is unknown.
    is_incomplete: bool,
}

impl RequestTally {
    fn add(&mut self, usage: &AnswerUsage) {
        self.requests += 1;
        match usage.cost_nano_usd {
            Some(cost) => self.cost_nano_usd = self.cost_nano_usd.saturating_add(cost),
            None => self.is_incomplete = true,
        }
    }

    fn in_words(&self) -> Option<String> {
        let requests = match self.requests {
            0 => return None,
            1 => "1 request".to_owned(),
            many => format!("{many} requests"),
        };
        let cost = (!self.is_incomplete).then(|| format!(", {} US dollars", usd_in_words(self.cost_nano_usd)));
        Some(format!("{requests}{}", cost.unwrap_or_default()))
    }
}

/// Prints progress to a stream.
pub(super) struct PrintProgress<'a> {
    out: &'a mut (dyn Write + Send),
    detail: PrintDetail,
    clock: ProgressClock,
    /// Number of failed attempts at the last request.
    attempts: u32,
    tally: RequestTally,
    /// Whether the prompt of the command has been seen; it is not shown.
    has_prompt: bool,
    /// Whether no turn is running.
    is_between: bool,
    /// Why the file cannot be written, as last reported.
    disk_trouble: Option<String>,
    /// The model's texts; they are the answer unless a call follows.
    said: Vec<String>,
    /// The calls of the last answer.
    calls: Vec<Object>,
    /// The indices of the calls that have a line.
    started: Vec<usize>,
    is_new: bool,
    /// Why the last request failed.
    error: Option<(Option<FailureKind>, String)>,
    /// Lines delayed by an open question; `None` if there is none.
    held: Option<String>,
}

impl<'a> PrintProgress<'a> {
    pub(super) fn new(out: &'a mut (dyn Write + Send), detail: PrintDetail, clock: ProgressClock) -> Self {
        Self {
            out,
            detail,
            clock,
            attempts: 0,
            tally: RequestTally::default(),
            has_prompt: false,
            is_between: false,
            disk_trouble: None,
            said: Vec::new(),
            calls: Vec::new(),
            started: Vec::new(),
            is_new: true,
            error: None,
            held: None,
        }
    }

    /// Starts delaying output, so that it does not mix with a question, or prints the delayed output.
    pub(super) fn hold(&mut self, holds: bool) {
        if holds {
            self.held.get_or_insert_default();
        } else if let Some(held) = self.held.take().filter(|held| !held.is_empty()) {
            self.out.write_all(held.as_bytes()).ok();
        }
    }

    fn line(&mut self, line: &str) {
        match &mut self.held {
            Some(held) => {
                held.push_str(line);
                held.push('\n');
            }
            // One write per line.
            None => drop(self.out.write_all(format!("{line}\n").as_bytes())),
        }
    }

    /// Prints a line that is not from the agent.
    fn notice(&mut self, line: &str) {
        self.line(&format!("capture: {line}"));
    }

    /// Prints a summary of the prompt. Returns the provider's message for the last failure.
    pub(super) fn finish(&mut self) -> Option<String> {
        self.hold(false);
        if self.detail != PrintDetail::Trouble
            && let Some(tally) = self.tally.in_words()
        {
            self.notice(&tally);
        }
        let (kind, error) = self.error.take()?;
        let said = kind.and_then(|kind| error.strip_prefix(kind.in_words())?.strip_prefix(": ")).unwrap_or(&error);
        Some(said.trim().trim_end_matches('.').to_owned())
    }

    pub(super) fn print(&mut self, update: &SessionUpdate) {
        self.warn(update);
        if self.detail == PrintDetail::Trouble {
            return;
        }
        let frame = match update {
            SessionUpdate::Frame(frame) => &**frame,
            SessionUpdate::Entry(entry) => return self.returned(entry),
        };
        if let RuntimeFrame::Block(block) = frame {
            return self.block(block);
        }
        if let RuntimeFrame::RequestEnded { .. } = frame {
            self.is_new = true;
        }
        if let RuntimeFrame::CallStarted { call, .. } = frame
            && let Ok(at) = usize::try_from(call.index)
            && let Some(call) = self.calls.get(at)
        {
            let line = format!("· {}", about(call));
            self.started.push(at);
            self.line(&line);
        }
    }

    /// Prints that the model has been silent, for a user who watches.
    pub(super) fn report_silence(&mut self, line: &str) {
        if self.detail != PrintDetail::Trouble {
            self.notice(line);
        }
    }

    /// Prints messages about current or coming delays.
    pub(super) fn warn(&mut self, update: &SessionUpdate) {
        let frame = match update {
            SessionUpdate::Frame(frame) => frame,
            SessionUpdate::Entry(entry) => return self.message(entry),
        };
        match &**frame {
            RuntimeFrame::RequestEnded { error, failure, usage, .. } => {
                self.error = error.clone().map(|error| (*failure, error));
                if error.is_none() {
                    self.attempts = 0;
                }
                usage.iter().for_each(|usage| self.tally.add(usage));
            }
            RuntimeFrame::TurnStarted => self.is_between = false,
            RuntimeFrame::TurnEnded { .. } => self.is_between = true,
            RuntimeFrame::Activity(activity) => self.holds_up(*activity),
            RuntimeFrame::DiskTrouble { error } => {
                // The machine reports it with each attempt; it is printed once.
                if *error == self.disk_trouble {
                    return;
                }
                self.disk_trouble.clone_from(error);
                match error {
                    Some(error) => self.notice(&format!(
                        "{error}; the agent waits until the file can be written, and tries every {} seconds",
                        DISK_RETRY_MS / 1000
                    )),
                    None => self.notice("the session's file can be written again; the agent continues"),
                }
            }
            RuntimeFrame::SecretsMasked { secrets, .. } => self.notice(&format!(
                "{secrets} {} in your message {} replaced by `[redacted: …]`: neither the model nor the session's file \
                 has {}; `agent.mask_prompts = false` sends messages as they are",
                if *secrets == 1 { "secret" } else { "secrets" },
                if *secrets == 1 { "was" } else { "were" },
                if *secrets == 1 { "it" } else { "them" },
            )),
            RuntimeFrame::CompactionStarted { reason } => self.notice(match reason {
                CompactionReason::Manual => "summarizing the conversation",
                CompactionReason::Threshold => "the context is almost full; summarizing the conversation",
                CompactionReason::Overflow => "the conversation no longer fits the context; summarizing it",
            }),
            RuntimeFrame::Compacted { tokens_before, summary_tokens, .. } => self.notice(&format!(
                "summarized the beginning of the conversation: of about {} tokens, the last ones stay, and about {} \
                 tokens replace the others; the session's file keeps everything",
                grouped(*tokens_before),
                grouped(*summary_tokens)
            )),
            RuntimeFrame::CompactionFailed { error, .. } => {
                self.notice(&format!("the conversation was not summarized: {}", error.trim_end_matches('.')));
            }
            RuntimeFrame::ContextFills { tokens, window } => self.notice(&format!(
                "the context is {} % full ({} of {} tokens)",
                tokens.saturating_mul(100) / (*window).max(1),
                grouped(*tokens),
                grouped(*window)
            )),
            RuntimeFrame::Text(_)
            | RuntimeFrame::Thinking(_)
            | RuntimeFrame::CallOpened { .. }
            | RuntimeFrame::Block(_)
            | RuntimeFrame::CallDecided { .. }
            | RuntimeFrame::CallStarted { .. }
            | RuntimeFrame::CallEnded { .. }
            | RuntimeFrame::Message { .. }
            | RuntimeFrame::Refused { .. }
            | RuntimeFrame::FileLost { .. } => {}
        }
    }

    /// Prints why the turn is delayed, and until when.
    fn holds_up(&mut self, activity: EngineActivity) {
        match activity {
            EngineActivity::Retrying { until_wall_ms, .. } => {
                self.attempts += 1;
                let (kind, why) = self.error.take().unwrap_or_else(|| (None, "the request failed".to_owned()));
                let at = self.moment(until_wall_ms);
                // Other failures are retried less often.
                let is_common =
                    |kind| matches!(kind, FailureKind::Overloaded | FailureKind::Rate | FailureKind::Network);
                let most = kind.filter(|kind| is_common(*kind)).map(|_| format!(" of {}", self.clock.attempts));
                let attempt = format!("attempt {}{}", self.attempts + 1, most.unwrap_or_default());
                let why = why.trim().trim_end_matches('.');
                self.notice(&format!("{why}; trying again {at}, {attempt}"));
            }
            EngineActivity::Slowed { until_wall_ms, times, .. } => {
                let at = self.moment(until_wall_ms);
                self.notice(&format!("the same result {times} times; the next request is sent {at}"));
            }
            EngineActivity::Idle
            | EngineActivity::Waiting
            | EngineActivity::Streaming
            | EngineActivity::Deciding
            | EngineActivity::Running
            | EngineActivity::Compacting
            | EngineActivity::Paused(_) => {}
        }
    }

    /// A time in the future, as text.
    fn moment(&self, at_ms: i64) -> String {
        let left_ms = u64::try_from(at_ms.saturating_sub((self.clock.now)())).unwrap_or_default();
        format!("in {} s ({})", left_ms.div_ceil(1000), (self.clock.time)(at_ms))
    }

    /// Shows a message that arrived during the prompt: it was not typed here.
    fn message(&mut self, entry: &Entry) {
        let Some(message) = entry.message().filter(|message| message.text("role") == Some("user")) else { return };
        if !std::mem::replace(&mut self.has_prompt, true) {
            return;
        }
        let text = message.get("content").map(|content| text_of(content, " ")).unwrap_or_default();
        let what = if self.is_between { "the next prompt" } else { "a message for this turn" };
        self.notice(&format!("{what}: {}", beginning(&text, REASON_LETTERS)));
    }

    fn block(&mut self, block: &Object) {
        if std::mem::take(&mut self.is_new) {
            self.said.clear();
            self.calls.clear();
            self.started.clear();
        }
        match block.text("type") {
            Some("text") => self.said.push(block.text("text").unwrap_or_default().trim().to_owned()),
            Some("toolCall") => {
                self.calls.push(block.clone());
                let said = std::mem::take(&mut self.said);
                for text in said.iter().filter(|text| !text.is_empty()) {
                    self.line(text);
                }
            }
            Some(_) | None => {}
        }
    }

    /// Shows the result of a call.
    fn returned(&mut self, entry: &Entry) {
        let Some(result) = entry.message().filter(|message| message.text("role") == Some("toolResult")) else { return };
        let details = result.get("details").and_then(Json::as_object);
        if result.get("isError") == Some(&Json::Bool(true)) {
            self.failed(result, details);
        } else if let Some(line) = outcome(result, details) {
            self.line(&format!("  → {line}"));
        }
    }

    fn failed(&mut self, result: &Object, details: Option<&Object>) {
        let text = result.get("content").map(|content| text_of(content, " ")).unwrap_or_default();
        let tool = result.text("toolName").unwrap_or_default();
        let id = result.text("toolCallId");
        let call = self.calls.iter().position(|call| id.is_some() && call.text("id") == id);
        // No other line names a call that was not run, or the reason.
        let line = match call.filter(|at| !self.started.contains(at)) {
            Some(at) => {
                let why = beginning(&text, REASON_LETTERS);
                let subject = subject(&self.calls[at]).filter(|subject| why.starts_with(subject.as_str()));
                // If the reason names the subject itself, only the tool is added.
                let call = if subject.is_some() { tool.to_owned() } else { about(&self.calls[at]) };
                format!("  {call}: {why}")
            }
            // A failing command prints the reason at the end.
            None if tool == "bash" => format!("  {tool}: {}", last_line(&text)),
            None => format!("  {tool}: {}", first_line(&text)),
        };
        self.line(&line);
        let notes = details.and_then(|details| details.get("notes")).and_then(Json::as_array).unwrap_or_default();
        notes.iter().filter_map(Json::as_str).for_each(|note| self.line(&format!("  {note}")));
    }
}

/// The outcome of a successful call, if its line does not show it: the last line and the duration of a command, the
/// number of lines changed by an edit.
fn outcome(result: &Object, details: Option<&Object>) -> Option<String> {
    let details = details?;
    if let Some(diff) = details.text("diff") {
        let count = |sign: char, head: &str| {
            diff.lines().filter(|line| line.starts_with(sign) && !line.starts_with(head)).count()
        };
        return Some(format!("+{} −{}", count('+', "+++"), count('-', "---")));
    }
    if result.text("toolName") != Some("bash") || details.get("background").is_some() {
        return None;
    }
    let ms = details.get("ms").and_then(Json::as_f64).unwrap_or_default();
    let said = result.get("content").map(|content| last_line(&text_of(content, " "))).unwrap_or_default();
    let has_said = !said.is_empty() && !said.starts_with('[');
    let seconds = format!("({:.1} s)", ms / 1000.0);
    match (has_said, ms >= TOLD_MS) {
        (true, _) => Some(format!("{said} {seconds}")),
        (false, true) => Some(seconds),
        (false, false) => None,
    }
}

/// The subject of a call.
fn subject(call: &Object) -> Option<String> {
    let arguments = call.get("arguments").and_then(Json::as_object)?;
    ABOUT.iter().find_map(|key| arguments.text(key)).map(first_line)
}

/// A call as one line.
fn about(call: &Object) -> String {
    let name = call.text("name").unwrap_or_default();
    let arguments = call.get("arguments").and_then(Json::as_object);
    let about = subject(call);
    let stays = arguments.is_some_and(|arguments| arguments.get("background") == Some(&Json::Bool(true)));
    match about.or_else(|| arguments.and_then(todo_progress)) {
        Some(about) if stays => format!("{name} {about} (in the background)"),
        Some(about) => format!("{name} {about}"),
        None => name.to_owned(),
    }
}

/// The progress of a to-do list, and its current task.
fn todo_progress(arguments: &Object) -> Option<String> {
    let items: Vec<&Object> = arguments.get("items")?.as_array()?.iter().filter_map(Json::as_object).collect();
    let in_state = |state: &'static str| items.iter().filter(move |item| item.text("state") == Some(state)).copied();
    let count = format!("{} of {} done", in_state("done").count(), items.len());
    let now = in_state("in_progress").next().and_then(|item| item.text("text"));
    Some(match now {
        Some(now) => format!("{count}, now: {}", first_line(now)),
        None => count,
    })
}

/// The start of the first line.
fn first_line(text: &str) -> String {
    beginning(text, LETTERS)
}

/// At most this many characters of the first line.
fn beginning(text: &str, letters: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(letters) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None if line.len() < text.trim_end().len() => format!("{line} …"),
        None => line.to_owned(),
    }
}

/// The start of the last line, preceded by the line before it if the last is a note in brackets.
fn last_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match &lines[..] {
        [.., before, note] if note.starts_with('[') && !before.starts_with('[') => {
            format!("{} {}", first_line(before), first_line(note))
        }
        [.., last] => first_line(last),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::{CallId, PauseReason, RequestNumber};

    use super::*;

    const CLOCK: ProgressClock =
        ProgressClock { time: |ms| format!("12:00:0{}", ms / 1000), now: || 1_000, attempts: 13 };

    fn object(text: &str) -> Object {
        Json::parse(text).unwrap().as_object().unwrap().clone()
    }

    #[test]
    fn text_before_a_call_is_printed_but_the_final_answer_is_not() {
        let mut out = Vec::new();
        let mut progress = PrintProgress::new(&mut out, PrintDetail::All, CLOCK);
        let mut tell = |update: SessionUpdate| progress.print(&update);
        let block = |text: &str| SessionUpdate::Frame(Arc::new(RuntimeFrame::Block(object(text))));
        tell(block(r#"{"type":"text","text":"I look.\n"}"#));
        tell(block(r#"{"type":"toolCall","id":"1","name":"read","arguments":{"path":"a.rs"}}"#));
        tell(block(r#"{"type":"toolCall","id":"2","name":"bash","arguments":{"command":"one\ntwo"}}"#));
        for index in 0..2 {
            let call = CallId { request: RequestNumber(1), index };
            tell(SessionUpdate::Frame(Arc::new(RuntimeFrame::CallStarted { call, tool: "read".to_owned() })));
        }
        let failed = r#"{"type":"message","id":"e","parentId":null,"message":{"role":"toolResult","toolName":"bash",
            "content":[{"type":"text","text":"no such file"}],"isError":true,"details":{"notes":["it misses X"]}}}"#;
        tell(SessionUpdate::Entry(Arc::new(Entry::read(object(failed)))));
        tell(block(r#"{"type":"text","text":"The answer."}"#));
        let told = "I look.\n· read a.rs\n· bash one …\n  bash: no such file\n  it misses X\n";
        assert_eq!(String::from_utf8(out).unwrap(), told);
    }

    #[test]
    fn a_call_that_was_not_run_prints_the_full_reason() {
        let mut out = Vec::new();
        let mut progress = PrintProgress::new(&mut out, PrintDetail::All, CLOCK);
        let block = |text: &str| SessionUpdate::Frame(Arc::new(RuntimeFrame::Block(object(text))));
        let why = format!("Permission denied: {}", "because ".repeat(12));
        for (id, command) in [("1", "git log"), ("2", "ls")] {
            let call =
                format!(r#"{{"type":"toolCall","id":"{id}","name":"bash","arguments":{{"command":"{command}"}}}}"#);
            progress.print(&block(&call));
        }
        let call = CallId { request: RequestNumber(1), index: 1 };
        let started = RuntimeFrame::CallStarted { call, tool: "bash".to_owned() };
        progress.print(&SessionUpdate::Frame(Arc::new(started)));
        for (id, text) in [("1", why.as_str()), ("2", "gone")] {
            let failed = format!(
                r#"{{"type":"message","id":"e{id}","parentId":null,"message":{{"role":"toolResult","toolCallId":"{id}",
                "toolName":"bash","content":[{{"type":"text","text":"{text}"}}],"isError":true}}}}"#
            );
            progress.print(&SessionUpdate::Entry(Arc::new(Entry::read(object(&failed)))));
        }
        assert_eq!(String::from_utf8(out).unwrap(), format!("· bash ls\n  bash git log: {why}\n  bash: gone\n"));
    }

    fn entry(message: &str) -> SessionUpdate {
        let entry = format!(r#"{{"type":"message","id":"e","parentId":null,"message":{message}}}"#);
        SessionUpdate::Entry(Arc::new(Entry::read(object(&entry))))
    }

    #[test]
    fn a_successful_call_prints_its_last_line_and_time_or_its_diff_size() {
        let result = |tool: &str, text: &str, details: &str| {
            format!(
                r#"{{"role":"toolResult","toolName":"{tool}","content":[{{"type":"text","text":"{text}"}}],
                "isError":false,"details":{details}}}"#
            )
        };
        let diff = r#"{"ms":3,"diff":"--- a\n+++ b\n@@ -1,2 +1,3 @@\n-x\n+y\n+z\n w\n"}"#;
        for (message, told) in [
            (result("bash", "one\\nOK\\n", r#"{"ms":1240}"#), "  → OK (1.2 s)\n"),
            (result("bash", "", r#"{"ms":2000}"#), "  → (2.0 s)\n"),
            (result("bash", "", r#"{"ms":10}"#), ""),
            (result("bash", "p1 runs", r#"{"ms":10,"background":"p1"}"#), ""),
            (result("edit", "edited", diff), "  → +2 −1\n"),
            (result("read", "text", r#"{"ms":10}"#), ""),
        ] {
            let mut out = Vec::new();
            PrintProgress::new(&mut out, PrintDetail::All, CLOCK).print(&entry(&message));
            assert_eq!(String::from_utf8(out).unwrap(), told, "{message}");
        }
    }

    #[test]
    fn messages_from_other_clients_are_printed_but_the_prompt_is_not() {
        let mut out = Vec::new();
        let mut progress = PrintProgress::new(&mut out, PrintDetail::Trouble, CLOCK);
        let ended = RuntimeFrame::TurnEnded { outcome: engine::TurnOutcome::Done, error: None };
        for update in [
            entry(r#"{"role":"user","content":"the prompt"}"#),
            SessionUpdate::Frame(Arc::new(RuntimeFrame::TurnStarted)),
            entry(r#"{"role":"user","content":"only below src"}"#),
            SessionUpdate::Frame(Arc::new(ended)),
            entry(r#"{"role":"user","content":"then this"}"#),
        ] {
            progress.print(&update);
        }
        let told = "capture: a message for this turn: only below src\ncapture: the next prompt: then this\n";
        assert_eq!(String::from_utf8(out).unwrap(), told);
    }

    #[test]
    fn a_failed_call_that_never_started_is_printed_once() {
        let mut out = Vec::new();
        let mut progress = PrintProgress::new(&mut out, PrintDetail::All, CLOCK);
        let call = r#"{"type":"toolCall","id":"1","name":"read","arguments":{"path":"src/a.rs"}}"#;
        progress.print(&SessionUpdate::Frame(Arc::new(RuntimeFrame::Block(object(call)))));
        progress.print(&entry(
            r#"{"role":"toolResult","toolCallId":"1","toolName":"read","isError":true,
            "content":[{"type":"text","text":"src/a.rs does not exist"}]}"#,
        ));
        assert_eq!(String::from_utf8(out).unwrap(), "  read: src/a.rs does not exist\n");
    }

    #[test]
    fn the_final_line_counts_requests_and_their_cost() {
        let ended = |cost_nano_usd| RuntimeFrame::RequestEnded {
            request: RequestNumber(1),
            usage: Some(AnswerUsage { cost_nano_usd, ..AnswerUsage::default() }),
            predicted: engine::cache::CachePrediction::default(),
            cause: None,
            failure: None,
            error: None,
        };
        for (costs, told) in [
            (vec![], ""),
            (vec![Some(2_000_000)], "capture: 1 request, 0.002 US dollars\n"),
            (vec![Some(20_000_000), Some(15_000_000)], "capture: 2 requests, 0.04 US dollars\n"),
            (vec![Some(20_000_000), None], "capture: 2 requests\n"),
        ] {
            let mut out = Vec::new();
            let mut progress = PrintProgress::new(&mut out, PrintDetail::All, CLOCK);
            costs.into_iter().for_each(|cost| progress.print(&SessionUpdate::Frame(Arc::new(ended(cost)))));
            assert_eq!(progress.finish(), None);
            assert_eq!(String::from_utf8(out).unwrap(), told);
        }
    }

    #[test]
    fn a_background_command_is_labelled_as_such() {
        let call = |more: &str| object(&format!(r#"{{"name":"bash","arguments":{{"command":"npm start"{more}}}}}"#));
        assert_eq!(about(&call(r#","background":true"#)), "bash npm start (in the background)");
        assert_eq!(about(&call(r#","background":false"#)), "bash npm start");
    }

    #[test]
    fn a_todo_call_prints_its_progress() {
        let call = |items: &str| object(&format!(r#"{{"name":"todo","arguments":{{"items":{items}}}}}"#));
        let items = r#"[{"text":"Read","state":"done"},{"text":"Write\nit","state":"in_progress"},{"text":"Test","state":"pending"}]"#;
        assert_eq!(about(&call(items)), "todo 1 of 3 done, now: Write …");
        assert_eq!(about(&call(r#"[{"text":"Read","state":"done"}]"#)), "todo 1 of 1 done");
        assert_eq!(about(&call(r#""none""#)), "todo");
    }

    fn told(detail: PrintDetail, frames: impl IntoIterator<Item = RuntimeFrame>) -> String {
        let mut out = Vec::new();
        let mut progress = PrintProgress::new(&mut out, detail, CLOCK);
        for frame in frames {
            progress.print(&SessionUpdate::Frame(Arc::new(frame)));
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn retry_and_slowdown_delays_are_printed_with_their_end_time() {
        let ended = RuntimeFrame::RequestEnded {
            request: RequestNumber(1),
            usage: None,
            predicted: engine::cache::CachePrediction::default(),
            cause: None,
            failure: Some(engine::FailureKind::Network),
            error: Some("the connection to the provider failed: cannot connect.".to_owned()),
        };
        let retrying = RuntimeFrame::Activity(EngineActivity::Retrying { until_mono_ms: 1, until_wall_ms: 5_000 });
        let quota = RuntimeFrame::Activity(EngineActivity::Paused(PauseReason::Quota));
        let slowed = EngineActivity::Slowed { until_mono_ms: 1, until_wall_ms: 9_000, times: 7 };
        let slowed = RuntimeFrame::Activity(slowed);
        for detail in [PrintDetail::All, PrintDetail::Trouble] {
            let frames = [ended.clone(), retrying.clone(), ended.clone(), quota.clone(), slowed.clone()];
            assert_eq!(
                told(detail, frames),
                "capture: the connection to the provider failed: cannot connect; trying again in 4 s (12:00:05), attempt \
                 2 of 13\n\
                 capture: the same result 7 times; the next request is sent in 8 s (12:00:09)\n"
            );
        }
    }

    #[test]
    fn a_disk_write_failure_is_printed_once_and_again_when_resolved() {
        let trouble = |error: Option<&str>| RuntimeFrame::DiskTrouble { error: error.map(str::to_owned) };
        let full = || trouble(Some("cannot append to /s.jsonl: No space left on device"));
        let frames = [full(), full(), full(), trouble(None), full(), trouble(None)];
        let once = "capture: cannot append to /s.jsonl: No space left on device; the agent waits until the file can be \
                    written, and tries every 5 seconds\ncapture: the session's file can be written again; the agent continues\n";
        assert_eq!(told(PrintDetail::Trouble, frames), once.repeat(2));
    }

    #[test]
    fn progress_lines_to_a_closed_stream_are_dropped() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
        }
        let mut closed = Closed;
        let mut progress = PrintProgress::new(&mut closed, PrintDetail::All, CLOCK);
        progress.print(&SessionUpdate::Frame(Arc::new(RuntimeFrame::ContextFills { tokens: 161, window: 200 })));
        progress.hold(true);
        progress.line("held");
        progress.hold(false);
        assert_eq!(progress.held, None);
    }

    #[test]
    fn a_filling_context_is_printed_with_used_and_total_tokens() {
        let told = told(PrintDetail::All, [RuntimeFrame::ContextFills { tokens: 161_000, window: 200_000 }]);
        assert!(told.starts_with("capture: the context is 80 % full (161,000 of 200,000 tokens)"), "{told}");
    }

    #[test]
    fn progress_lines_are_held_back_while_a_question_is_shown() {
        let mut out = Vec::new();
        let mut progress = PrintProgress::new(&mut out, PrintDetail::All, CLOCK);
        progress.line("before");
        progress.hold(true);
        progress.line("meanwhile");
        progress.hold(true);
        assert_eq!(progress.held.as_deref(), Some("meanwhile\n"));
        progress.hold(false);
        progress.line("after");
        assert_eq!(String::from_utf8(out).unwrap(), "before\nmeanwhile\nafter\n");
    }

    #[test]
    fn a_failed_command_is_summarized_by_its_last_line_and_exit_code() {
        assert_eq!(
            last_line("=====\nERROR: a\n\nFAILED (errors=2)\n\n[exit code 1]\n"),
            "FAILED (errors=2) [exit code 1]"
        );
        assert_eq!(last_line("[exit code 1]"), "[exit code 1]");
        assert_eq!(last_line("Aborted by the user."), "Aborted by the user.");
        assert_eq!(last_line(" \n"), "");
    }

    #[test]
    fn long_lines_are_cut_between_letters() {
        let long = "ä".repeat(LETTERS + 1);
        assert_eq!(first_line(&long), format!("{}…", "ä".repeat(LETTERS)));
        assert_eq!(first_line("short\n"), "short");
    }
}
