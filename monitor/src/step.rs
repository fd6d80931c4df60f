//! Steps: a tool call and its result, in the form in which the detectors compare them.
//!
//! Owns the open calls, and the comparison of two steps: the same call, the same result, the same command, the same
//! kind of attempt. Texts are stored only as hashes.

use std::collections::VecDeque;

use events::{Event, EventId, Timestamp, ToolCall, ToolKind, ToolOutcome, ToolResult};
use projections::{
    FailureKind,
    failure::{FinishedCall, classify},
    receipt::whole_command_of,
    shorten::one_line,
};
use serde::Deserialize;

use crate::{
    cause::COMMAND_BYTES,
    text::{hash_of, head, output, settled, shape, tail},
};

/// Maximum number of open calls; the oldest is dropped for a new one.
const OPEN: usize = 64;
/// Length of a call's title in a finding, characters.
const TITLE_CHARS: usize = 120;
/// Longest path of a file that is compared between sessions, bytes.
const PATH_BYTES: usize = 1 << 10;
/// Maximum number of commands left running by calls that returned; the oldest is dropped for a new one.
const LEFT: usize = 8;
/// Bytes of an open call's input that are kept, to recognize its words in the result.
const INPUT_BYTES: usize = 1 << 10;

/// A call without a result.
#[derive(Debug)]
pub(crate) struct PendingCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) tool: ToolKind,
    pub(crate) title: Option<String>,
    /// The files of an edit, as the agent names them, if their paths are complete.
    pub(crate) paths: Vec<String>,
    pub(crate) background: bool,
    pub(crate) at: Timestamp,
    /// The command that it waits for.
    pub(crate) command_line: Option<RunningCommand>,
    /// Hash of the call: tool, input and helper. Equal for the same call.
    same: u64,
    /// Hash of the kind of attempt: the tool, or the programs a command runs.
    kin: u64,
    /// Hash of the command without its wrapping.
    command: Option<u64>,
    poll: bool,
    edit: Option<Edit>,
    input: String,
}

/// A command that runs.
#[derive(Debug, Clone)]
pub(crate) struct RunningCommand {
    /// The call that started it, and the event of this call.
    pub(crate) call: String,
    pub(crate) event: EventId,
    /// The whole command line.
    pub(crate) line: String,
    /// When its running time begins: later than the call if the machine slept, or if the call was read as history.
    pub(crate) since: Timestamp,
    /// The end of its output so far, if the call that started it returned.
    pub(crate) output: Option<String>,
    /// Whether it polls in a loop, which may take longer.
    pub(crate) polls: bool,
    /// Whether the cause of a hang was looked for during the current call.
    pub(crate) examined: bool,
    /// The number by which the agent's tools refer to it (Codex: `Process running with session ID 1`).
    session: Option<u64>,
}

/// The text that an edit removes from a file, and the text it inserts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) file: u64,
    /// The removed text; `None` if the whole file is written.
    pub(crate) old: Option<u64>,
    pub(crate) new: u64,
}

/// A call and its outcome.
#[derive(Debug, Clone)]
pub(crate) struct ToolStep {
    pub(crate) name: String,
    pub(crate) tool: ToolKind,
    pub(crate) title: Option<String>,
    pub(crate) same: u64,
    pub(crate) kin: u64,
    pub(crate) command: Option<u64>,
    /// The result without the parts that change on each run.
    pub(crate) result: u64,
    /// The unchanged result.
    pub(crate) exact: u64,
    /// The result without numbers and without the words of the call.
    pub(crate) shape: u64,
    pub(crate) failed: Option<FailureKind>,
    /// The tests that failed, if the result names them.
    pub(crate) tests: Option<u64>,
    /// Whether the user, a rule or an interruption prevented the call.
    pub(crate) refused: bool,
    /// Whether the outcome is not recorded, as for pages and searches served by the model's provider.
    pub(crate) unrecorded: bool,
    /// Whether a search found nothing.
    pub(crate) barren: bool,
    /// Whether it waits and checks.
    pub(crate) poll: bool,
    pub(crate) edit: Option<Edit>,
    pub(crate) began_at: Timestamp,
    pub(crate) event: EventId,
}

impl ToolStep {
    /// The step as text: the command, or the tool and its subject.
    pub(crate) fn words(&self) -> String {
        match (&self.title, self.tool) {
            (Some(title), ToolKind::Execute) => format!("`{title}`"),
            (Some(title), _) => format!("{} `{title}`", self.name),
            (None, _) => self.name.clone(),
        }
    }
}

/// The calls without a result, oldest first.
#[derive(Debug, Default)]
pub(crate) struct PendingCalls {
    open: VecDeque<PendingCall>,
    /// Commands that run although their calls returned.
    left: VecDeque<RunningCommand>,
}

impl PendingCalls {
    /// Records a call. Returns the call that started the command to which this one sends keys.
    pub(crate) fn called(&mut self, event: &Event, call: &ToolCall, at: Timestamp) -> Option<String> {
        self.open.retain(|open| open.id != call.call_id);
        if self.open.len() == OPEN {
            self.open.pop_front();
        }
        let mut pending = PendingCall::of(event, call, at);
        let mut answered = None;
        let keys = KeysInput::of(event, call);
        let left =
            keys.as_ref().and_then(|keys| self.left.iter_mut().find(|left| left.session == Some(keys.session_id)));
        if let Some(left) = left {
            if keys.is_some_and(|keys| !keys.chars.is_empty()) {
                left.output = Some(String::new());
                answered = Some(left.call.clone());
            }
            pending.command_line = Some(left.clone());
        }
        self.open.push_back(pending);
        answered
    }

    pub(crate) fn returned(&mut self, event: &Event, result: &ToolResult) -> Option<(PendingCall, ToolStep)> {
        let index = self.open.iter().position(|call| call.id == result.call_id)?;
        let call = self.open.remove(index)?;
        self.continues(&call, event.text.as_deref().unwrap_or_default());
        let step = ToolStep::of(&call, event, result);
        Some((call, step))
    }

    /// Records the command that a call left running, or its further output.
    fn continues(&mut self, call: &PendingCall, text: &str) {
        let Some(command) = &call.command_line else { return };
        let before = self.left.iter().position(|left| left.call == command.call);
        let before = before.and_then(|at| self.left.remove(at)).and_then(|left| left.output);
        let Some(session) = session_of(text) else { return };
        let output = Some(text).filter(|text| !output(text).is_empty()).map(|text| tail(text, INPUT_BYTES).to_owned());
        if self.left.len() == LEFT {
            self.left.pop_front();
        }
        let output = output.or(before).or(Some(String::new()));
        let session = Some(session);
        self.left.push_back(RunningCommand { output, session, examined: false, ..command.clone() });
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &PendingCall> {
        self.open.iter()
    }

    /// The commands for which calls wait.
    pub(crate) fn commands(&mut self) -> impl Iterator<Item = &mut RunningCommand> {
        self.open.iter_mut().filter_map(|call| call.command_line.as_mut())
    }

    /// Excludes the time before `at` from the running times.
    pub(crate) fn follow_live(&mut self, at: Timestamp) {
        self.running().for_each(|command| command.since = command.since.max(at));
    }

    /// Excludes a time in which nothing was observed from the running times.
    pub(crate) fn slept(&mut self, ms: i64) {
        self.running().for_each(|command| command.since = command.since.plus_ms(ms));
    }

    fn running(&mut self) -> impl Iterator<Item = &mut RunningCommand> {
        self.open.iter_mut().filter_map(|call| call.command_line.as_mut()).chain(&mut self.left)
    }

    pub(crate) fn clear(&mut self) {
        self.open.clear();
        self.left.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }
}

impl PendingCall {
    fn of(event: &Event, call: &ToolCall, at: Timestamp) -> Self {
        let text = event.text.as_deref().unwrap_or_default();
        let command = (call.tool == ToolKind::Execute).then_some(call.title.as_deref()).flatten();
        // A text that was cut is identified by the hash of the whole text.
        let whole = event.text_ref.as_ref().map(|text| &*text.hash);
        let same = hash_of((&call.name, whole.unwrap_or(text), &call.title, event.agent_id.as_deref()));
        let kin = match command {
            Some(command) => hash_of((call.tool.code(), programs(&plain(command)))),
            None => hash_of((call.tool.code(), &call.name)),
        };
        Self {
            id: call.call_id.clone(),
            name: one_line(&call.name, TITLE_CHARS),
            tool: call.tool,
            title: call.title.as_deref().map(|title| one_line(title, TITLE_CHARS)),
            paths: call.edited_files().filter(|path| is_whole(path)).map(str::to_owned).collect(),
            background: call.background,
            at,
            command_line: RunningCommand::of(event, call, at),
            same,
            kin,
            command: command.map(|command| hash_of((plain(command), event.agent_id.as_deref()))),
            poll: waits(&call.name, command),
            edit: (call.tool == ToolKind::Edit && whole.is_none()).then(|| Edit::of(call, text)).flatten(),
            input: head(text, INPUT_BYTES).to_owned(),
        }
    }

    /// Whether the call may take any amount of time.
    pub(crate) fn takes_its_time(&self) -> bool {
        match self.tool {
            ToolKind::Execute | ToolKind::Subagent | ToolKind::Question | ToolKind::Plan => true,
            ToolKind::Edit | ToolKind::Read | ToolKind::Fetch | ToolKind::Mcp | ToolKind::Other => self.poll,
        }
    }
}

impl RunningCommand {
    /// The command that a call runs and waits for, if its whole line is known.
    fn of(event: &Event, call: &ToolCall, since: Timestamp) -> Option<Self> {
        let runs = match call.tool {
            ToolKind::Execute | ToolKind::Mcp | ToolKind::Other => call.name != WRITE_STDIN && !call.background,
            ToolKind::Edit
            | ToolKind::Read
            | ToolKind::Fetch
            | ToolKind::Plan
            | ToolKind::Question
            | ToolKind::Subagent => false,
        };
        // A longer input is only partly in the event.
        if !runs || event.text_ref.is_some() {
            return None;
        }
        let line = whole_command_of(call, event.text.as_deref()).filter(|line| line.len() <= COMMAND_BYTES)?;
        let (call, line) = (call.call_id.clone(), line.into_owned());
        Some(Self { call, event: event.id, line, since, output: None, polls: false, examined: false, session: None })
    }
}

/// The tool of Codex that sends keys to a running command, or only waits for its output.
const WRITE_STDIN: &str = "write_stdin";

/// The input of this tool.
#[derive(Deserialize)]
struct KeysInput {
    session_id: u64,
    #[serde(default)]
    chars: String,
}

impl KeysInput {
    fn of(event: &Event, call: &ToolCall) -> Option<Self> {
        let input = event.text.as_deref().filter(|_| call.name == WRITE_STDIN)?;
        serde_json::from_str(input).ok()
    }
}

/// The number of the command that still runs although its call returned.
pub(crate) fn session_of(text: &str) -> Option<u64> {
    let line = text.lines().take(8).find_map(|line| line.strip_prefix("Process running with session ID "))?;
    line.trim().parse().ok()
}

/// Whether a path of an edit is complete: the title of a call may be cut.
fn is_whole(path: &str) -> bool {
    !path.ends_with('…') && path.len() <= PATH_BYTES
}

impl ToolStep {
    fn of(call: &PendingCall, event: &Event, result: &ToolResult) -> Self {
        let told = event.text.as_deref().unwrap_or_default();
        let text = output(told);
        // The event of a long result contains only its ends. The length indicates changes in the rest; small
        // differences come from times in the output.
        let length = event.text_ref.as_ref().map(|text| text.length / 256);
        // The hash of the whole text includes the text around the output, which differs on each run.
        let whole = event.text_ref.as_ref().filter(|_| text == told.trim()).map(|text| &*text.hash);
        let outcome = (result.outcome.code(), result.exit_code);
        let failed = classify(&FinishedCall {
            tool: call.tool,
            title: call.title.as_deref(),
            exit_code: result.exit_code,
            outcome: result.outcome,
            text: Some(told),
        });
        let refused = match result.outcome {
            ToolOutcome::Denied | ToolOutcome::Blocked | ToolOutcome::Cancelled => true,
            ToolOutcome::Ok | ToolOutcome::Error => false,
        };
        Self {
            name: call.name.clone(),
            tool: call.tool,
            title: call.title.clone(),
            same: call.same,
            kin: call.kin,
            command: call.command,
            result: hash_of((outcome, settled(text), length)),
            exact: hash_of((outcome, whole.unwrap_or(text), length)),
            shape: hash_of((result.outcome.code(), shape(text, &call.input))),
            failed: failed.filter(|_| !refused),
            tests: (failed == Some(FailureKind::TestFailure)).then(|| failed_tests(text)).flatten(),
            refused,
            unrecorded: call.tool == ToolKind::Fetch && result.outcome == ToolOutcome::Ok && told.trim().is_empty(),
            barren: !refused && failed.is_none() && is_barren(call, result.outcome, text),
            poll: call.poll,
            edit: call.edit.filter(|_| result.outcome == ToolOutcome::Ok),
            began_at: call.at,
            event: event.id,
        }
    }

    /// The event of its result, which identifies the events of the step.
    pub(crate) fn evidence(&self) -> EventId {
        self.event
    }
}

/// Hash of the names of the tests that failed according to the runner, independent of their order.
fn failed_tests(text: &str) -> Option<u64> {
    let mut names = std::collections::BTreeSet::new();
    for line in head(text, crate::text::LOOKED_AT).lines().map(str::trim) {
        let name = if let Some(test) = line.strip_prefix("test ") {
            test.split_once(" ... FAILED").map(|(name, _)| name)
        } else {
            ["FAILED ", "--- FAIL: ", "FAIL: ", "✕ ", "✗ ", "● ", "× "].iter().find_map(|sign| line.strip_prefix(sign))
        };
        let Some(name) = name else { continue };
        let name = name.split(" - ").next().unwrap_or(name).split(" (").next().unwrap_or(name).trim();
        if !name.starts_with('(') && names.len() < 64 {
            names.insert(name);
        }
    }
    (!names.is_empty()).then(|| hash_of(names))
}

/// Whether a search found nothing.
fn is_barren(call: &PendingCall, outcome: ToolOutcome, text: &str) -> bool {
    let searches = match call.tool {
        ToolKind::Read | ToolKind::Fetch => true,
        ToolKind::Execute => call.title.as_deref().is_some_and(|title| {
            commands(title).last().is_some_and(|last| {
                matches!(program(last), "grep" | "rg" | "egrep" | "fgrep" | "ag" | "find" | "fd" | "locate")
            })
        }),
        ToolKind::Edit | ToolKind::Mcp | ToolKind::Plan | ToolKind::Question | ToolKind::Subagent | ToolKind::Other => {
            false
        }
    };
    let says_none = || {
        let text = head(text.trim(), 200).to_ascii_lowercase();
        text.is_empty()
            || text == "(empty)"
            || [
                "no match",
                "no files",
                "no results",
                "nothing found",
                "0 matches",
                "not found",
                "exit code 1",
                "exit code: 1",
            ]
            .iter()
            .any(|sign| text.contains(sign))
    };
    searches && (outcome == ToolOutcome::Error || text.len() < 200 && says_none())
}

/// The commands of a line. A quoted text is one word of one command.
fn commands(line: &str) -> impl Iterator<Item = &str> {
    let (mut quote, mut escaped) = (None, false);
    line.split(move |c: char| {
        let plain = !std::mem::take(&mut escaped);
        match (quote, c) {
            (Some(open), _) if open == c && plain => quote = None,
            (None, '\'' | '"') if plain => quote = Some(c),
            (None | Some('"'), '\\') if plain => escaped = true,
            (None, '\n' | ';' | '&' | '|') if plain => return true,
            (Some(_) | None, _) => {}
        }
        false
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

/// The program that a command runs, and its arguments: not the wrapper that only starts it, with its options and
/// numbers.
fn started(command: &str) -> (&str, impl Iterator<Item = &str>) {
    let mut words = command.split_whitespace();
    let mut wrapped = false;
    let word = words
        .find(|word| {
            let starts =
                matches!(*word, "sudo" | "time" | "env" | "nohup" | "timeout" | "nice" | "stdbuf" | "command" | "exec");
            let of_it = wrapped && word.starts_with(|c: char| c == '-' || c.is_ascii_digit());
            wrapped |= starts;
            !starts && !of_it && !word.contains('=')
        })
        .unwrap_or_default();
    (word.rsplit('/').next().unwrap_or(word), words)
}

fn program(command: &str) -> &str {
    started(command).0
}

/// The programs that the commands of a line run, with their subcommands, without arguments.
fn programs(line: &str) -> Vec<&str> {
    let mut all = Vec::new();
    for command in commands(line).take(8) {
        let (mut name, mut words) = started(command);
        if matches!(name, "cd" | "export" | "set" | "") {
            continue;
        }
        let mut verb = words.next();
        // `python3 -m pip install` counts as `pip install`.
        if verb == Some("-m")
            && let Some(module) = words.next()
        {
            (name, verb) = (module, words.next());
        }
        // `pip3` counts as `pip`.
        let version = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        all.push(if version.len() < 3 { name } else { version });
        all.extend(
            verb.filter(|word| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') && !word.starts_with('-')),
        );
    }
    all
}

/// The command without its wrapping: its directory, and filters that shorten its output.
fn plain(line: &str) -> String {
    let mut plain = String::new();
    let kept =
        line.split("&&").map(str::trim).filter(|part| !matches!(program(part), "cd" | "export" | "source" | "set"));
    for part in kept {
        let mut piped = part.split(" | ").map(str::trim);
        let mut command = piped.next().unwrap_or_default().to_owned();
        for filter in piped {
            if !matches!(program(filter), "tail" | "head" | "grep" | "cat" | "less" | "tee" | "sed" | "awk") {
                command.push_str(" | ");
                command.push_str(filter);
            }
        }
        let words = command.split_whitespace().filter(|word| *word != "2>&1");
        for word in words {
            plain.push_str(word);
            plain.push(' ');
        }
        plain.push('&');
    }
    plain
}

/// Whether a call waits, or watches a running process.
fn waits(name: &str, command: Option<&str>) -> bool {
    if let Some(command) = command {
        let watches = |part: &str| {
            matches!(program(part), "sleep" | "wait" | "watch" | "inotifywait" | "Start-Sleep")
                || ["tail -f", "tail -F", "--watch", "logs -f", "--follow", " watch"]
                    .iter()
                    .any(|sign| part.contains(sign))
        };
        return commands(command).take(16).any(watches);
    }
    let name = name.to_ascii_lowercase();
    ["output", "wait", "poll", "stdin", "sleep", "monitor", "status", "list_agents"]
        .iter()
        .any(|sign| name.contains(sign))
}

#[derive(Deserialize)]
struct EditInput {
    #[serde(alias = "path", alias = "filename", alias = "absolute_path", alias = "target_file")]
    file_path: Option<String>,
    #[serde(alias = "old_str", alias = "old_text", alias = "oldText", alias = "search")]
    old_string: Option<String>,
    #[serde(alias = "new_str", alias = "new_text", alias = "newText", alias = "replace")]
    new_string: Option<String>,
    #[serde(alias = "file_text", alias = "contents", alias = "text")]
    content: Option<String>,
}

impl Edit {
    fn of(call: &ToolCall, text: &str) -> Option<Self> {
        if text.contains("*** Begin Patch") {
            return Self::of_patch(text);
        }
        let input: EditInput = serde_json::from_str(text).ok()?;
        let file = hash_of(input.file_path.as_deref().or(call.title.as_deref())?);
        match (input.old_string, input.new_string, input.content) {
            (Some(old), Some(new), _) => Some(Self { file, old: Some(hash_of(old)), new: hash_of(new) }),
            (_, _, Some(content)) => Some(Self { file, old: None, new: hash_of(content) }),
            (_, _, None) => None,
        }
    }

    /// `*** Update File: a.rs`, then lines that begin with `-` and `+`.
    fn of_patch(text: &str) -> Option<Self> {
        let text = text.replace("\\n", "\n");
        let (mut file, mut old, mut new) = (None, Vec::new(), Vec::new());
        for line in text.lines() {
            if let Some(path) = line.split("*** Update File: ").nth(1) {
                file.get_or_insert_with(|| hash_of(path.trim()));
            } else if let Some(line) = line.strip_prefix('-') {
                old.push(line.to_owned());
            } else if let Some(line) = line.strip_prefix('+') {
                new.push(line.to_owned());
            }
        }
        Some(Self { file: file?, old: Some(hash_of(old)), new: hash_of(new) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_variants_are_normalized_to_one_command() {
        for other in ["cd /x && cargo test", "cargo test 2>&1", "cargo test 2>&1 | tail -20", "cargo  test | grep FAIL"]
        {
            assert_eq!(plain("cargo test"), plain(other), "{other}");
        }
        assert_ne!(plain("cargo test -p a"), plain("cargo test -p b"));
        assert_eq!(programs("cd a && git push -f origin"), ["git", "push"]);
        assert_eq!(programs("RUST_LOG=x cargo test a"), ["cargo", "test"]);
        for other in
            ["pip3 install a", "python3 -m pip install a", "timeout -k 5 60s pip install b", "sudo -E pip install c"]
        {
            assert_eq!(programs(other), ["pip", "install"], "{other}");
        }
        assert_eq!(programs("python3 -c \"import a; print(1 & 2)\""), programs("python3 -c 'import a'"));
        assert_eq!(programs(r"echo a\;b"), ["echo"]);
    }

    #[test]
    fn waiting_commands_and_tools_are_recognized() {
        for yes in ["sleep 30 && gh run view 1", "sleep 5; curl x", "tail -f log", "npm run test -- --watch"] {
            assert!(waits("Bash", Some(yes)), "{yes}");
        }
        for no in ["cargo test", "cat sleep.txt", "echo waiting"] {
            assert!(!waits("Bash", Some(no)), "{no}");
        }
        assert!(waits("BashOutput", None) && waits("write_stdin", None) && !waits("Read", None));
    }

    #[test]
    fn an_edit_and_its_reversal_are_recognized() {
        let call = ToolCall { title: Some("a.rs".into()), ..ToolCall::default() };
        let of = |text: &str| Edit::of(&call, text).unwrap();
        let one = of(r#"{"file_path":"a.rs","old_string":"x","new_string":"y"}"#);
        let back = of(r#"{"file_path":"a.rs","old_string":"y","new_string":"x"}"#);
        assert_eq!((one.file, one.old, Some(one.new)), (back.file, Some(back.new), back.old));
        let one = of("*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** End Patch");
        let back = of("\"*** Begin Patch\\n*** Update File: a.rs\\n@@\\n-y\\n+x\\n*** End Patch\"");
        assert_eq!((one.file, one.old, Some(one.new)), (back.file, Some(back.new), back.old));
        assert_eq!(Edit::of(&call, "not json"), None);
    }
}
