//! Makes a recording: runs a real agent in a terminal within the user's terminal, forwards all bytes and stores them
//! with their time. The user declares the truth during the recording ([`truth`]).

use std::{
    fs::{self, File},
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::ExitStatusExt,
    },
    path::Path,
    process::{Command, Stdio},
};

use events::{Provider, Reason, State};
use rustix::{
    event::{PollFd, PollFlags, poll},
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{OptionalActions, Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize},
};
use serde_json::{Value, json};

/// The input for a recording.
#[derive(Debug, Clone)]
pub struct Recorded<'a> {
    /// The agent.
    pub provider: Provider,
    /// A folder that does not exist yet, named after the scenario.
    pub dir: &'a Path,
    /// The program and its arguments.
    pub command: &'a [String],
}

/// The user's terminal, raw while bytes are forwarded; dropping this restores it.
struct Raw(Termios);

impl Raw {
    fn new() -> Option<Self> {
        let before = tcgetattr(io::stdin()).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw).ok()?;
        Some(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        tcsetattr(io::stdin(), OptionalActions::Now, &self.0).ok();
    }
}

/// Runs the program and records it until it ends; returns its status. Needs `setsid` of util-linux.
///
/// # Errors
/// If the folder exists already, or something cannot be started or written.
pub fn record(what: &Recorded) -> io::Result<i32> {
    fs::create_dir_all(what.dir.parent().unwrap_or(Path::new(".")))?;
    fs::create_dir(what.dir)?;
    let size = tcgetwinsize(io::stdin()).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
    let size = size.unwrap_or(Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 });
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    tcsetwinsize(&master, size)?;
    let slave = ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    let started = home::clock::now().as_millisecond();
    let about = json!({
        "format": 1, "provider": what.provider, "scenario": what.dir.file_name().map(|n| n.to_string_lossy()),
        "columns": size.ws_col, "rows": size.ws_row, "runs": 1, "started_at": started, "needs_pty": true,
    });
    fs::write(what.dir.join("recording.json"), serde_json::to_string_pretty(&about)? + "\n")?;
    File::create(what.dir.join("truth.jsonl"))?;
    let mut timeline = Timeline { started, file: File::create(what.dir.join("timeline.jsonl"))? };
    let mut command = Command::new("setsid");
    command.arg("--ctty").args(what.command);
    command.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(Stdio::from(slave));
    timeline.line("spawn", None, json!({}))?;
    let mut child = command.spawn()?;
    // The command owns copies of the terminal's other end; with them the terminal would never close.
    drop(command);
    let raw = Raw::new();
    pass(&master, &mut timeline)?;
    drop(raw);
    drop(master);
    let status = child.wait()?;
    let code = status.code().or_else(|| status.signal().map(|signal| -signal)).unwrap_or(1);
    timeline.line("exit", None, json!({ "code": code }))?;
    append_truth(what.dir, timeline.now(), State::Exited, None)?;
    Ok(code)
}

/// Declares the truth from now on in a running recording.
///
/// # Errors
/// If the folder is not a recording, or cannot be written.
pub fn truth(dir: &Path, state: State, reason: Option<Reason>) -> io::Result<()> {
    let about: Value = serde_json::from_str(&fs::read_to_string(dir.join("recording.json"))?)?;
    let started = about["started_at"].as_i64().ok_or_else(|| io::Error::other("recording.json has no started_at"))?;
    append_truth(dir, (home::clock::now().as_millisecond() - started) as f64 / 1000.0, state, reason)
}

fn append_truth(dir: &Path, at: f64, state: State, reason: Option<Reason>) -> io::Result<()> {
    let mut line = json!({ "at": at, "state": state });
    if let Some(reason) = reason {
        line["reason"] = json!(reason);
    }
    writeln!(File::options().append(true).create(true).open(dir.join("truth.jsonl"))?, "{line}")
}

struct Timeline {
    started: i64,
    file: File,
}

impl Timeline {
    fn now(&self) -> f64 {
        (home::clock::now().as_millisecond() - self.started) as f64 / 1000.0
    }

    fn line(&mut self, op: &str, data: Option<&str>, mut line: Value) -> io::Result<()> {
        line["at"] = json!(self.now());
        line["op"] = json!(op);
        line["run"] = json!(0);
        if let Some(data) = data {
            line["data"] = json!(data);
        }
        writeln!(self.file, "{line}")
    }

    /// Writes bytes as text; an incomplete character at the end stays in `rest` for the next call.
    fn bytes(&mut self, op: &str, rest: &mut Vec<u8>, bytes: &[u8]) -> io::Result<()> {
        rest.extend_from_slice(bytes);
        let keep = match std::str::from_utf8(rest) {
            Err(error) if error.error_len().is_none() => rest.len() - error.valid_up_to(),
            Ok(_) | Err(_) => 0,
        };
        let half = rest.split_off(rest.len() - keep);
        if !rest.is_empty() {
            self.line(op, Some(&String::from_utf8_lossy(rest)), json!({}))?;
        }
        *rest = half;
        Ok(())
    }
}

/// Forwards bytes in both directions until no process has the terminal open.
fn pass(master: &OwnedFd, timeline: &mut Timeline) -> io::Result<()> {
    let (stdin, mut stdout) = (io::stdin(), io::stdout());
    let (mut typed, mut shown) = (Vec::new(), Vec::new());
    let mut buffer = vec![0; 1 << 16];
    let mut listens = true;
    loop {
        let mut watched = vec![PollFd::new(master, PollFlags::IN)];
        if listens {
            watched.push(PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN));
        }
        match poll(&mut watched, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = watched.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready[0] {
            // EIO: no process has the terminal open.
            let Ok(length @ 1..) = rustix::io::read(master, &mut buffer) else { return Ok(()) };
            stdout.write_all(&buffer[..length])?;
            stdout.flush()?;
            timeline.bytes("out", &mut shown, &buffer[..length])?;
        }
        if ready.get(1) == Some(&true) {
            match rustix::io::read(&stdin, &mut buffer) {
                Ok(length @ 1..) => {
                    timeline.bytes("in", &mut typed, &buffer[..length])?;
                    let mut rest = &buffer[..length];
                    while !rest.is_empty() {
                        rest = &rest[rustix::io::write(master, rest)?..];
                    }
                }
                Ok(0) | Err(_) => listens = false,
            }
        }
    }
}
