//! The ends of outputs and screens that show what a program waits for.
//!
//! A prompt is the last line, and the cursor remains on it: a text that ends with a line break has none. A message is
//! one of the last lines.

use super::Cause;
use crate::text::{head, tail};

/// Bytes at the end of a text that are examined.
const END_BYTES: usize = 4 << 10;
/// Number of last lines that are examined.
const LINES: usize = 12;
/// Number of last lines in which a message counts.
const RECENT: usize = 6;
/// Longest prompt, bytes.
const PROMPT_BYTES: usize = 240;

/// What the end of a text shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sign {
    pub(super) cause: Cause,
    /// The programs that print such a text, separated by spaces; empty if any program with it waits.
    pub(super) of: &'static str,
    /// Whether it counts only for a program that the table names with this cause.
    pub(super) is_weak: bool,
    /// The process that holds the lock.
    pub(super) holder: Option<u32>,
}

impl Sign {
    const fn new(cause: Cause) -> Self {
        Self { cause, of: "", is_weak: false, holder: None }
    }

    const fn of(cause: Cause, of: &'static str) -> Self {
        Self { of, ..Self::new(cause) }
    }
}

/// The programs that show their output in a pager.
const PAGED: &str = "git man less more most systemctl journalctl loginctl gh aws psql mysql mariadb bat delta";
/// The programs that open an editor.
const EDITS: &str = "git vi vim nvim view nano pico crontab visudo vipw vigr kubectl systemctl hg svn";

/// The sign at the end of an output.
pub(super) fn of_output(text: &str) -> Option<Sign> {
    sign(text, !text.ends_with('\n'))
}

/// The sign at the end of a screen, whose last lines may be empty.
pub(super) fn of_screen(text: &str) -> Option<Sign> {
    sign(text, true)
}

fn sign(text: &str, has_prompt: bool) -> Option<Sign> {
    let text = without_escapes(tail(text, END_BYTES)).to_lowercase();
    // A program that reports its progress overwrites its line.
    let lines = text.lines().map(|line| line.trim_end().rsplit('\r').next().unwrap_or_default().trim());
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let lines = lines.get(lines.len().saturating_sub(LINES)..)?;
    let last = *lines.last()?;
    let recent = lines.get(lines.len().saturating_sub(RECENT)..)?;
    let prompt = || (has_prompt && last.len() <= PROMPT_BYTES).then(|| prompt(last)).flatten();
    prompt().or_else(|| drawn(lines, last)).or_else(|| message(recent, last))
}

/// The text without the escape sequences of terminals.
fn without_escapes(text: &str) -> String {
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text.chars());
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => match rest.next() {
                Some('[') => {
                    let mut is_first = true;
                    let end = rest.find(|c| {
                        let ends = ('@'..='~').contains(c);
                        is_first &= ends || *c == '1';
                        ends
                    });
                    // The cursor moves to the first column.
                    plain.extend(end.filter(|c| *c == 'G' && is_first).map(|_| '\r'));
                }
                Some(']') => drop(rest.find(|c| matches!(c, '\u{7}' | '\u{1b}'))),
                Some('(' | ')') => drop(rest.next()),
                Some(_) | None => {}
            },
            '\u{8}' => drop(plain.pop()),
            c => plain.push(c),
        }
    }
    plain
}

/// The question or the prompt on the last line.
fn prompt(last: &str) -> Option<Sign> {
    if last.contains("continue connecting (yes/no") || last.starts_with("please type 'yes', 'no' or the fingerprint") {
        return Some(Sign::new(Cause::HostKey));
    }
    if matches!(last, "(pdb)" | "(pdb++)" | "ipdb>" | "(gdb)" | "(lldb)" | "debug>" | "(rdbg)" | "(byebug)") {
        return Some(Sign::new(Cause::Debugger));
    }
    let is_psql = ["=#", "=>", "=*#", "=*>"].iter().any(|end| last.ends_with(end)) && !last.contains(' ');
    let reads = match last {
        ">>>" | "sqlite>" | "mysql>" | "ftp>" | "sftp>" | "telnet>" | "ghci>" | "scala>" | "jshell>" => Some(""),
        ">" => Some("node deno irb R"),
        "not connected>" => Some("redis-cli valkey-cli"),
        _ if last.starts_with("mariadb [") && last.ends_with("]>") => Some(""),
        _ if last.starts_with("irb(") && last.ends_with('>') => Some(""),
        _ if last.starts_with("in [") && last.ends_with("]:") => Some("ipython python jupyter manage.py"),
        _ if last.ends_with('>') && last.contains(':') && !last.contains(' ') => Some("redis-cli valkey-cli"),
        _ if is_psql => Some(""),
        _ => None,
    };
    if let Some(of) = reads {
        return Some(Sign::of(Cause::Interactive, of));
    }
    if is_paged(last) {
        return Some(Sign::new(Cause::Pager));
    }
    if last == ":" || last.starts_with("lines ") && last.contains('-') && last.split(' ').count() == 2 {
        return Some(Sign::of(Cause::Pager, PAGED));
    }
    if last.starts_with("choose 1-") && last.ends_with("]:") {
        return Some(Sign::of(Cause::Editor, EDITS));
    }
    let secrets = ["password", "passphrase", "pin:", "verification code", "username for", "user name"];
    if last.ends_with(':') && secrets.iter().any(|word| last.contains(word)) {
        return Some(Sign::new(Cause::Password));
    }
    question(last)
}

fn is_paged(last: &str) -> bool {
    last == "(end)"
        || last.ends_with(" (end)")
        || last.starts_with("--more--")
        || last.starts_with("manual page ") && last.contains("press h for help")
}

fn question(last: &str) -> Option<Sign> {
    let asks = is_choice(last, '(', ')') || is_choice(last, '[', ']');
    let keys = ["press enter to continue", "press any key to continue", "press return to continue"];
    let words = ["[y]es, [n]o", "(y/i/n/o/d/z)", "return to submit", "use arrow-keys", "use arrow keys"];
    if asks || keys.iter().chain(&words).any(|sign| last.contains(sign)) {
        return Some(Sign::new(Cause::Question));
    }
    let starts = |starts: &[&str]| starts.iter().any(|start| last.starts_with(start));
    if last.ends_with('?') && starts(&["rm: ", "cp: ", "mv: "]) {
        return Some(Sign::of(Cause::Question, "rm cp mv"));
    }
    if last == "enter a value:" {
        return Some(Sign::of(Cause::Question, "terraform tofu"));
    }
    if starts(&["package name: (", "package name (", "entry point: (", "entry point (", "question name ("]) {
        return Some(Sign::of(Cause::Question, "npm pnpm yarn"));
    }
    starts(&["enter file in which to save the key"]).then_some(Sign::of(Cause::Question, "ssh-keygen"))
}

/// Whether a line ends with a choice between yes and no: `[y/N]`, `([y]/n)?`, `(yes/no/[fingerprint])?`, `? (y)`.
fn is_choice(last: &str, open: char, close: char) -> bool {
    let Some((before, rest)) = last.rsplit_once(open) else { return false };
    let Some((inside, after)) = rest.rsplit_once(close) else { return false };
    let after = after.trim_matches(|c: char| c.is_whitespace() || "?:›»>…".contains(c));
    let choices: Vec<&str> =
        inside.split(['/', ',', '|']).map(|one| one.trim().trim_matches(['[', ']', '(', ')'])).collect();
    let is_key = |one: &&str| one.len() <= 2 || matches!(*one, "yes" | "no" | "all" | "none" | "quit" | "always");
    let has = |words: [&str; 2]| choices.iter().any(|one| words.contains(one));
    let is_default = choices.len() == 1 && has(["y", "yes"]) && last.contains('?');
    let is_pair = has(["y", "yes"]) && has(["n", "no"]) && choices.iter().all(is_key);
    !before.trim().is_empty() && matches!(after, "" | "y" | "n" | "yes" | "no") && (is_default || is_pair)
}

/// What a program draws over several lines: an editor, or a form.
fn drawn(lines: &[&str], last: &str) -> Option<Sign> {
    let any = |sign: &str| lines.iter().any(|line| line.contains(sign));
    if last.ends_with("waiting for your editor to close the file...") {
        return Some(Sign::new(Cause::Editor));
    }
    let is_status = last.starts_with('"') && (last.contains("l, ") || last.contains("[new]"));
    if last.starts_with("-- insert --") || is_status || any("^g help") && any("^x exit") {
        return Some(Sign::of(Cause::Editor, EDITS));
    }
    if any("<ok>") && any("passphrase") {
        return Some(Sign::new(Cause::Password));
    }
    let is_list = any("use arrow-keys. return to submit") || any("use arrow keys)") || any("↑/↓ to navigate");
    is_list.then_some(Sign::new(Cause::Question))
}

/// What the last lines report.
fn message(recent: &[&str], last: &str) -> Option<Sign> {
    let any = |signs: &[&str]| recent.iter().any(|line| signs.iter().any(|sign| line.contains(sign)));
    let in_last = |signs: &[&str]| signs.iter().any(|sign| last.contains(sign));
    const LOCKS: &[&str] = &[
        "blocking waiting for file lock",
        "waiting for cache lock",
        "waiting for the other yarn instance",
        "acquiring state lock",
        "waiting for another flutter command",
        "is running. waiting for it to complete",
        "index.lock': file exists",
    ];
    if in_last(LOCKS) {
        return Some(Sign { holder: process_in(last), ..Sign::new(Cause::Lock) });
    }
    const LOGINS: &[&str] = &[
        "one-time code",
        "go to the following link in your browser",
        "devicelogin and enter the code",
        "/device and enter the code",
        "open the following url in your browser",
        "to authenticate your account at",
        "press enter to open",
        "waiting for authentication",
    ];
    if any(LOGINS) {
        return Some(Sign::new(Cause::Login));
    }
    let is_moved = any(&["trying another", "using available port", "instead"]);
    if !is_moved && any(&["eaddrinuse", "address already in use", "port is already allocated"]) {
        return Some(Sign::new(Cause::Port));
    }
    const WATCHES: &[&str] = &[
        "press h to show help, press q to quit",
        "waiting for file changes",
        "watching for file changes",
        "[nodemon] watching",
        "waiting for changes before restart",
        "press w to show more",
        "› press q to quit watch mode",
        "[running 'cargo",
    ];
    if any(WATCHES) {
        return Some(Sign::new(Cause::Watch));
    }
    const FAILURES: &[&str] = &[
        "could not resolve host",
        "couldn't resolve host",
        "temporary failure in name resolution",
        "temporary failure resolving",
        "name or service not known",
        "network is unreachable",
        "connection timed out",
        "failed to establish a new connection",
        "failed to connect to",
        "eai_again",
        "enotfound",
    ];
    let retries = any(&["retry", "tries remaining", "trying again", "attempt "]);
    if retries && any(FAILURES) || any(&["spurious network error"]) {
        return Some(Sign::new(Cause::Network));
    }
    let waits = any(&["retry", "waiting", "sleeping", "reset", "backoff", "try again"]);
    if waits && any(&["rate limit", "too many requests", "ratelimit"]) {
        return Some(Sign::new(Cause::RateLimit));
    }
    const SERVES: &[&str] = &[
        "serving http on ",
        "press ctrl-c to stop",
        "press ctrl+c to stop",
        "use ctrl-c to stop",
        "press ctrl+c to quit",
        "press ctrl-c to shutdown server",
        "quit the server with control-c",
        "press h + enter to show help",
    ];
    if any(SERVES) {
        return Some(Sign::new(Cause::Server));
    }
    let listens = any(&["listening on", "listening at", "server running at", "http://localhost:", "http://127.0.0.1:"]);
    listens.then_some(Sign { is_weak: true, ..Sign::new(Cause::Server) })
}

/// The process that a line names: `held by process 4711 (apt)`, `(pid=4711)`.
fn process_in(line: &str) -> Option<u32> {
    let after = |sign: &str| line.split_once(sign).map(|(_, rest)| rest.trim_start());
    let rest = ["process ", "pid=", "pid "].iter().find_map(|sign| after(sign))?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    head(rest, digits).parse().ok()
}
