//! What the agent does before its answer, a line each: what it says, which tools it runs, and which of them failed.
//!
//! A turn does not depend on whoever watches it: lines that cannot be written are lost.

use std::io::Write;

use engine::{EngineActivity, PauseReason, RuntimeFrame, limits::DISK_RETRY_MS, window::grouped};
use session_tree::{Entry, Json, Object, context::text_of};

use super::PrintDetail;
use crate::handle::SessionUpdate;

/// Arguments that say what a call is about, the first that there is.
const ABOUT: [&str; 5] = ["path", "command", "pattern", "url", "action"];
/// Most letters of such an argument, or of the error of a call that ran.
const LETTERS: usize = 72;
/// Most letters of the reason why a call was not run.
const REASON_LETTERS: usize = 240;

/// Prints it to a stream.
pub(super) struct PrintProgress<'a> {
    out: &'a mut (dyn Write + Send),
    detail: PrintDetail,
    /// A moment as clock time.
    clock: fn(i64) -> String,
    /// Why the file cannot be written, as it was said last.
    disk_trouble: Option<String>,
    /// What the model said; it is the answer unless a call follows.
    said: Vec<String>,
    /// The calls of the last answer.
    calls: Vec<Object>,
    /// Those of them that have a line, by their places.
    started: Vec<usize>,
    is_new: bool,
    /// Why the last request failed.
    error: Option<String>,
    /// Lines that wait while a question stands; nothing when none does.
    held: Option<String>,
}

impl<'a> PrintProgress<'a> {
    pub(super) fn new(out: &'a mut (dyn Write + Send), detail: PrintDetail, clock: fn(i64) -> String) -> Self {
        Self {
            out,
            detail,
            clock,
            disk_trouble: None,
            said: Vec::new(),
            calls: Vec::new(),
            started: Vec::new(),
            is_new: true,
            error: None,
            held: None,
        }
    }

    /// Keeps what is printed from now on, so that it does not get into a question, or prints what was kept.
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
            None => {
                writeln!(self.out, "{line}").ok();
            }
        }
    }

    pub(super) fn print(&mut self, update: &SessionUpdate) {
        self.warn(update);
        if self.detail == PrintDetail::Trouble {
            return;
        }
        let frame = match update {
            SessionUpdate::Frame(frame) => &**frame,
            SessionUpdate::Entry(entry) => return self.failed(entry),
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

    /// Says what holds the turn up, and what soon will.
    pub(super) fn warn(&mut self, update: &SessionUpdate) {
        let SessionUpdate::Frame(frame) = update else { return };
        match &**frame {
            RuntimeFrame::RequestEnded { error, .. } => self.error.clone_from(error),
            RuntimeFrame::Activity(activity) => self.holds_up(*activity),
            RuntimeFrame::DiskTrouble { error } => {
                // It is told with each attempt, and said once.
                if *error == self.disk_trouble {
                    return;
                }
                self.disk_trouble.clone_from(error);
                match error {
                    Some(error) => self.line(&format!(
                        "{error}; nothing goes on until it can be written, which is tried every {} seconds",
                        DISK_RETRY_MS / 1000
                    )),
                    None => self.line("the session's file can be written again; the agent goes on"),
                }
            }
            RuntimeFrame::ContextFills { tokens, window } => self.line(&format!(
                "the context is {} % full ({} of {} tokens); once it is full, only a new session or a model with a \
                 larger context goes on",
                tokens.saturating_mul(100) / (*window).max(1),
                grouped(*tokens),
                grouped(*window)
            )),
            RuntimeFrame::TurnStarted
            | RuntimeFrame::TurnEnded { .. }
            | RuntimeFrame::Text(_)
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

    /// Says why nothing comes for a while, and until when.
    fn holds_up(&mut self, activity: EngineActivity) {
        match activity {
            EngineActivity::Retrying { until_wall_ms, .. } => {
                let why = self.error.take().unwrap_or_else(|| "the request failed".to_owned());
                let at = (self.clock)(until_wall_ms);
                self.line(&format!("{}; trying again at {at}", why.trim()))
            }
            EngineActivity::Slowed { until_wall_ms, times, .. } => {
                let at = (self.clock)(until_wall_ms);
                self.line(&format!("the same result {times} times; the next request is sent at {at}"))
            }
            EngineActivity::Paused(PauseReason::Quota | PauseReason::Unavailable) => {
                if let Some(error) = self.error.take() {
                    self.line(error.trim());
                }
            }
            EngineActivity::Idle
            | EngineActivity::Waiting
            | EngineActivity::Streaming
            | EngineActivity::Deciding
            | EngineActivity::Running
            | EngineActivity::Paused(_) => {}
        }
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

    fn failed(&mut self, entry: &Entry) {
        let result = entry.message().filter(|message| message.text("role") == Some("toolResult"));
        let Some(result) = result.filter(|result| result.get("isError") == Some(&Json::Bool(true))) else {
            return;
        };
        let text = result.get("content").map(|content| text_of(content, " ")).unwrap_or_default();
        let tool = result.text("toolName").unwrap_or_default();
        let id = result.text("toolCallId");
        let call = self.calls.iter().position(|call| id.is_some() && call.text("id") == id);
        // Nothing else names a call that was not run, nor says why.
        let line = match call.filter(|at| !self.started.contains(at)) {
            Some(at) => format!("  {}: {}", about(&self.calls[at]), beginning(&text, REASON_LETTERS)),
            // A command says at the end why it failed.
            None if tool == "bash" => format!("  {tool}: {}", last_line(&text)),
            None => format!("  {tool}: {}", first_line(&text)),
        };
        self.line(&line);
        let details = result.get("details").and_then(Json::as_object);
        let notes = details.and_then(|details| details.get("notes")).and_then(Json::as_array).unwrap_or_default();
        notes.iter().filter_map(Json::as_str).for_each(|note| self.line(&format!("  {note}")));
    }
}

/// A call in one line.
fn about(call: &Object) -> String {
    let name = call.text("name").unwrap_or_default();
    let arguments = call.get("arguments").and_then(Json::as_object);
    let about = arguments.and_then(|arguments| ABOUT.iter().find_map(|key| arguments.text(key)).map(first_line));
    let stays = arguments.is_some_and(|arguments| arguments.get("background") == Some(&Json::Bool(true)));
    match about.or_else(|| arguments.and_then(todo_progress)) {
        Some(about) if stays => format!("{name} {about} (in the background)"),
        Some(about) => format!("{name} {about}"),
        None => name.to_owned(),
    }
}

/// How far a list of things to do is, and what is being done.
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

/// The beginning of the first line.
fn first_line(text: &str) -> String {
    beginning(text, LETTERS)
}

/// At most this many letters of the first line.
fn beginning(text: &str, letters: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(letters) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None if line.len() < text.trim_end().len() => format!("{line} …"),
        None => line.to_owned(),
    }
}

/// The beginning of the last line, and of the one before it when the last is a note in brackets.
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

    use engine::{CallId, RequestNumber};

    use super::*;

    fn clock(ms: i64) -> String {
        format!("{} s", ms / 1000)
    }

    fn object(text: &str) -> Object {
        Json::parse(text).unwrap().as_object().unwrap().clone()
    }

    #[test]
    fn what_is_said_before_a_call_is_told_and_the_answer_is_not() {
        let mut out = Vec::new();
        let mut progress = PrintProgress::new(&mut out, PrintDetail::All, clock);
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
    fn a_call_that_was_not_run_is_named_with_the_whole_reason() {
        let mut out = Vec::new();
        let mut progress = PrintProgress::new(&mut out, PrintDetail::All, clock);
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

    #[test]
    fn a_command_that_stays_says_so() {
        let call = |more: &str| object(&format!(r#"{{"name":"bash","arguments":{{"command":"npm start"{more}}}}}"#));
        assert_eq!(about(&call(r#","background":true"#)), "bash npm start (in the background)");
        assert_eq!(about(&call(r#","background":false"#)), "bash npm start");
    }

    #[test]
    fn a_list_of_things_to_do_says_how_far_it_is() {
        let call = |items: &str| object(&format!(r#"{{"name":"todo","arguments":{{"items":{items}}}}}"#));
        let items = r#"[{"text":"Read","state":"done"},{"text":"Write\nit","state":"in_progress"},{"text":"Test","state":"pending"}]"#;
        assert_eq!(about(&call(items)), "todo 1 of 3 done, now: Write …");
        assert_eq!(about(&call(r#"[{"text":"Read","state":"done"}]"#)), "todo 1 of 1 done");
        assert_eq!(about(&call(r#""none""#)), "todo");
    }

    fn told(detail: PrintDetail, frames: impl IntoIterator<Item = RuntimeFrame>) -> String {
        let mut out = Vec::new();
        let mut progress = PrintProgress::new(&mut out, detail, clock);
        for frame in frames {
            progress.print(&SessionUpdate::Frame(Arc::new(frame)));
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_holds_a_request_up_is_told_with_its_time() {
        let ended = RuntimeFrame::RequestEnded {
            request: RequestNumber(1),
            usage: None,
            predicted: engine::cache::CachePrediction::default(),
            cause: None,
            failure: Some(engine::FailureKind::Network),
            error: Some("the connection failed: cannot connect".to_owned()),
        };
        let retrying = RuntimeFrame::Activity(EngineActivity::Retrying { until_mono_ms: 1, until_wall_ms: 5_000 });
        let quota = RuntimeFrame::Activity(EngineActivity::Paused(PauseReason::Quota));
        let slowed = EngineActivity::Slowed { until_mono_ms: 1, until_wall_ms: 9_000, times: 7 };
        let slowed = RuntimeFrame::Activity(slowed);
        for detail in [PrintDetail::All, PrintDetail::Trouble] {
            let frames = [ended.clone(), retrying.clone(), ended.clone(), quota.clone(), slowed.clone()];
            assert_eq!(
                told(detail, frames),
                "the connection failed: cannot connect; trying again at 5 s\n\
                 the connection failed: cannot connect\n\
                 the same result 7 times; the next request is sent at 9 s\n"
            );
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told_once_and_when_it_is_over() {
        let trouble = |error: Option<&str>| RuntimeFrame::DiskTrouble { error: error.map(str::to_owned) };
        let full = || trouble(Some("cannot append to /s.jsonl: No space left on device"));
        let frames = [full(), full(), full(), trouble(None), full(), trouble(None)];
        let once = "cannot append to /s.jsonl: No space left on device; nothing goes on until it can be written, which \
                    is tried every 5 seconds\nthe session's file can be written again; the agent goes on\n";
        assert_eq!(told(PrintDetail::Trouble, frames), once.repeat(2));
    }

    #[test]
    fn lines_that_cannot_be_written_are_lost_and_nothing_else_is() {
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
        let mut progress = PrintProgress::new(&mut closed, PrintDetail::All, clock);
        progress.print(&SessionUpdate::Frame(Arc::new(RuntimeFrame::ContextFills { tokens: 161, window: 200 })));
        progress.hold(true);
        progress.line("held");
        progress.hold(false);
        assert_eq!(progress.held, None);
    }

    #[test]
    fn a_context_that_fills_is_told_with_both_numbers() {
        let told = told(PrintDetail::All, [RuntimeFrame::ContextFills { tokens: 161_000, window: 200_000 }]);
        assert!(told.starts_with("the context is 80 % full (161,000 of 200,000 tokens); "), "{told}");
    }

    #[test]
    fn nothing_gets_into_a_question() {
        let mut out = Vec::new();
        let mut progress = PrintProgress::new(&mut out, PrintDetail::All, clock);
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
    fn a_command_says_at_its_end_why_it_failed() {
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
