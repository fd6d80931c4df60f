//! A user at a terminal: a new pseudo-terminal with a shell as the leader of its session, which runs a command. The
//! user types, reads, changes the size, and closes the terminal.
//!
//! The leader is `sh`, like a user's shell: a program that leads a session itself would be treated differently from
//! other programs (the kernel hangs up the terminal when the leader ends). After the command the leader writes `END`
//! and the status, so that the output before is known to be complete; nothing here waits for silence. Needs `setsid` of
//! util-linux.

use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, Winsize, tcgetattr, tcsetattr, tcsetwinsize},
};

use crate::{PATIENCE, program::Machine, within};

/// The leader writes this before the status of the command.
const END: &str = "\x1eended with ";

/// Words of the leader's command line, which distinguish it from the processes it started. Traps with an empty action:
/// the leader survives typed signals, while its children have the default handlers.
const LEADER_WORDS: [&str; 2] = ["trap : HUP INT QUIT TERM;", "sleep 8888"];
const LEADER: &str = "trap : HUP INT QUIT TERM; eval \"$SCRIPT\"; printf '\\036ended with %s\\036' $?; exec sleep 8888";

/// A terminal with a user.
#[derive(Debug)]
pub struct User {
    master: OwnedFd,
    leader: Child,
    dir: PathBuf,
    /// The whole output of the terminal.
    shown: Vec<u8>,
    /// How much of the output [`expect`](Self::expect) has already searched.
    looked: usize,
    before: String,
}

/// A process on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The process id.
    pub pid: i32,
    /// The arguments, joined by spaces.
    pub command: String,
}

impl User {
    /// Opens a terminal of 80 columns and 24 rows and runs a shell script in it. In the script `$PROGRAM` is the
    /// program; the working directory is the project's.
    #[must_use]
    pub fn start(machine: &Machine, script: &str) -> Self {
        Self::start_with(machine, script, &[])
    }

    /// Like [`start`](Self::start), with further environment variables.
    #[must_use]
    pub fn start_with(machine: &Machine, script: &str, more: &[(&str, &str)]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
        // Unusual settings: only code that saved them can restore them.
        let mut termios = tcgetattr(&slave).unwrap();
        termios.special_codes[SpecialCodeIndex::VERASE] = 8;
        termios.local_modes.remove(LocalModes::ECHOCTL | LocalModes::ECHOE);
        tcsetattr(&slave, OptionalActions::Now, &termios).unwrap();
        set_size(&master, 80, 24);
        let before = told(&tcgetattr(&master).unwrap());
        let template = machine.command(&[]);
        let mut command = Command::new("setsid");
        command.args(["--ctty", "sh", "-c", LEADER]).env_clear().current_dir(machine.project());
        for (name, value) in template.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.env("TERM", "xterm-256color").env("PROGRAM", template.get_program()).env("SCRIPT", script);
        command.envs(more.iter().copied());
        let end = |slave: &OwnedFd| Stdio::from(slave.try_clone().unwrap());
        let leader = command.stdin(end(&slave)).stdout(end(&slave)).stderr(Stdio::from(slave)).spawn();
        let leader = leader.unwrap_or_else(|error| panic!("setsid of util-linux is needed: {error}"));
        rustix::fs::fcntl_setfl(&master, OFlags::NONBLOCK).unwrap();
        Self { master, leader, dir: machine.data(), shown: Vec::new(), looked: 0, before }
    }

    /// Types bytes.
    pub fn types(&mut self, bytes: impl AsRef<[u8]>) {
        let mut rest = bytes.as_ref();
        let deadline = Instant::now() + PATIENCE;
        while !rest.is_empty() {
            assert!(Instant::now() < deadline, "the terminal takes no input");
            match rustix::io::write(&self.master, rest) {
                Ok(taken) => rest = &rest[taken..],
                // Echoed input fills the other direction.
                Err(rustix::io::Errno::AGAIN) => self.read_for(Duration::from_millis(20)),
                Err(error) => panic!("typing: {error}"),
            }
        }
    }

    /// Reads until this text is shown after the previously expected one; returns the text up to it.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> String {
        let found = self.look_for(text.as_bytes());
        let Some(at) = found else {
            panic!("{text:?} was not shown but {:?}", String::from_utf8_lossy(tail(&self.shown[self.looked..])));
        };
        let before = String::from_utf8_lossy(&self.shown[self.looked..at]).into_owned();
        self.looked = at + text.len();
        before
    }

    /// Waits until the command has ended; returns all output and the status.
    #[track_caller]
    pub fn end(&mut self) -> (Vec<u8>, i32) {
        self.looked = self.looked.min(self.shown.len());
        let Some(at) = self.look_for(END.as_bytes()) else {
            panic!(
                "the command did not end; shown at last: {:?}; running: {:?}",
                String::from_utf8_lossy(tail(&self.shown)),
                self.processes()
            );
        };
        self.looked = at + END.len();
        let status = self.expect("\x1e");
        (self.shown[..at].to_vec(), status.parse().unwrap())
    }

    /// Answers these questions whenever one is shown, until the command has ended; returns all output and the status.
    #[track_caller]
    pub fn answers(&mut self, questions: &[(&str, &str)]) -> (Vec<u8>, i32) {
        let mut deadline = Instant::now() + PATIENCE;
        loop {
            if self.answers_shown(questions, Duration::from_millis(50)) {
                deadline = Instant::now() + PATIENCE;
            } else if position(&self.shown[self.looked..], END.as_bytes()).is_some() || Instant::now() >= deadline {
                return self.end();
            }
        }
    }

    /// Answers the first of these questions that is shown, or reads for up to this time; returns whether there was one.
    pub fn answers_shown(&mut self, questions: &[(&str, &str)], patience: Duration) -> bool {
        let rest = &self.shown[self.looked..];
        let asked = questions.iter().filter_map(|one| Some((position(rest, one.0.as_bytes())?, one)));
        if let Some((at, (question, answer))) = asked.min_by_key(|(at, _)| *at) {
            self.looked += at + question.len();
            self.types(answer);
            return true;
        }
        if position(rest, END.as_bytes()).is_none() {
            self.read_for(patience);
        }
        false
    }

    /// Reads until this many bytes were shown in total.
    #[track_caller]
    pub fn read_up_to(&mut self, bytes: usize) {
        let deadline = Instant::now() + PATIENCE * 3;
        while self.shown.len() < bytes {
            assert!(Instant::now() < deadline, "{} of {bytes} bytes were shown", self.shown.len());
            self.read_for(Duration::from_millis(50));
        }
    }

    /// Reads and discards the available output, for tests that need only its amount; returns the amount.
    pub fn skip(&mut self) -> usize {
        self.read_for(Duration::from_millis(50));
        let shown = self.shown.len();
        self.shown.clear();
        self.looked = 0;
        shown
    }

    /// Waits up to `patience` for output, and discards it.
    pub fn looks_on(&mut self, patience: Duration) {
        self.read_for(patience);
        self.shown.clear();
        self.looked = 0;
    }

    /// The output that was not yet expected.
    pub fn rest(&mut self) -> String {
        self.read_for(Duration::ZERO);
        String::from_utf8_lossy(&self.shown[self.looked..]).into_owned()
    }

    /// Resizes the terminal.
    pub fn resize(&self, columns: u16, rows: u16) {
        set_size(&self.master, columns, rows);
    }

    /// The settings of the terminal as text.
    #[must_use]
    pub fn settings(&self) -> String {
        told(&tcgetattr(&self.master).unwrap())
    }

    /// The settings at the start.
    #[must_use]
    pub fn settings_before(&self) -> &str {
        &self.before
    }

    /// Whether the terminal edits typed lines, that is, whether it is not raw.
    #[must_use]
    pub fn is_cooked(&self) -> bool {
        tcgetattr(&self.master).unwrap().local_modes.contains(LocalModes::ICANON)
    }

    /// Waits until a program has made the terminal raw.
    #[track_caller]
    pub fn is_raw_soon(&mut self) {
        crate::eventually("the terminal is raw", || (!self.is_cooked()).then_some(()));
    }

    /// The processes on this machine.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        processes(&self.dir)
    }

    /// Closes the terminal under all processes that use it, and ends the leader.
    pub fn walks_away(self) {}

    fn look_for(&mut self, text: &[u8]) -> Option<usize> {
        let deadline = Instant::now() + PATIENCE;
        let mut from = self.looked;
        loop {
            if let Some(at) = position(&self.shown[from..], text) {
                return Some(from + at);
            }
            from = self.shown.len().saturating_sub(text.len()).max(self.looked);
            if Instant::now() >= deadline {
                return None;
            }
            self.read_for(Duration::from_millis(50));
        }
    }

    /// Reads the available output, waiting up to this time for some.
    fn read_for(&mut self, patience: Duration) {
        let wait = Timespec::try_from(patience).unwrap();
        poll(&mut [PollFd::new(&self.master, PollFlags::IN)], Some(&wait)).ok();
        let mut buffer = vec![0; 1 << 16];
        // EIO: no process has the terminal open.
        while let Ok(length @ 1..) = rustix::io::read(&self.master, &mut buffer) {
            self.shown.extend_from_slice(&buffer[..length]);
            if self.shown.len() % (1 << 20) < length {
                return;
            }
        }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.leader.kill().ok();
        self.leader.wait().ok();
    }
}

/// The processes started on a machine except the session leaders, recognized by the data directory in their
/// environment.
#[must_use]
pub fn processes(data: &Path) -> Vec<Process> {
    let mark = format!("CAPTURE_DATA_DIR={}", data.display());
    let mut found: Vec<Process> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            // A background server has no such variable, but the directory as an argument.
            let named = words.split(|b| *b == 0).any(|word| word == data.as_os_str().as_encoded_bytes());
            if !named && !environment.split(|b| *b == 0).any(|variable| variable == mark.as_bytes()) {
                return None;
            }
            let command = String::from_utf8_lossy(&words).trim_end_matches('\0').replace('\0', " ");
            let leads = LEADER_WORDS.iter().any(|words| command.contains(words));
            (!command.is_empty() && !leads).then_some(Process { pid, command })
        })
        .collect();
    found.sort_by_key(|process| process.pid);
    found
}

/// Ends all processes started on a machine.
pub fn end_all(data: &Path) {
    within(PATIENCE, || {
        let left = processes(data);
        for process in &left {
            signal(process.pid, Signal::KILL);
        }
        left.is_empty().then_some(())
    });
}

/// Sends a signal; does nothing if the process has ended.
pub fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).ok();
}

/// A field of `/proc/<pid>/status`, as a number; `None` if the process has ended.
#[must_use]
pub fn status_number(pid: i32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The state of a process, as the letter in `/proc/<pid>/stat`: `T` is stopped.
#[must_use]
pub fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// The first position of a text.
fn position(within: &[u8], text: &[u8]) -> Option<usize> {
    within.windows(text.len()).position(|window| window == text)
}

/// The last 2,000 bytes.
fn tail(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.len().saturating_sub(2000)..]
}

fn set_size(master: &OwnedFd, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).unwrap();
}

fn told(termios: &Termios) -> String {
    format!(
        "{:?} {:?} {:?} {:?} {:?}",
        termios.input_modes, termios.output_modes, termios.control_modes, termios.local_modes, termios.special_codes
    )
}
