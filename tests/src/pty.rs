//! A user's terminal: what a person sees and types, for the real program.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus, Stdio},
};

use rustix::{
    fs::OFlags,
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Termios, Winsize, tcgetattr, tcsetwinsize},
};

use crate::{PATIENCE, eventually, within};

/// A terminal of 24 rows and 80 columns.
#[derive(Debug)]
pub struct Terminal {
    screen: File,
    slave: OwnedFd,
    before: String,
    /// Everything that was written to it.
    pub seen: Vec<u8>,
}

impl Default for Terminal {
    fn default() -> Self {
        Self::new()
    }
}

impl Terminal {
    /// A new terminal.
    #[must_use]
    pub fn new() -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let screen = openpt(flags).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let slave = ioctl_tiocgptpeer(&screen, flags).unwrap();
        rustix::fs::fcntl_setfl(&screen, OFlags::NONBLOCK).unwrap();
        let before = describe(&tcgetattr(&slave).unwrap());
        let terminal = Self { screen: File::from(screen), slave, before, seen: Vec::new() };
        terminal.resize(24, 80);
        terminal
    }

    /// Gives it another size.
    pub fn resize(&self, rows: u16, columns: u16) {
        tcsetwinsize(&self.slave, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    }

    /// Starts a command in it, as the leader of a session of its own.
    #[must_use]
    pub fn start(&self, command: &Command) -> Child {
        let mut session = Command::new("setsid");
        session.arg("--ctty").stdin(Stdio::from(self.slave.try_clone().unwrap()));
        self.put(&mut session, command);
        session.spawn().unwrap()
    }

    /// The same, but for its standard input, and with no controlling terminal.
    #[must_use]
    pub fn without_input(&self, command: &Command) -> Command {
        let mut session = Command::new("setsid");
        self.put(&mut session, command);
        session
    }

    fn put(&self, session: &mut Command, command: &Command) {
        session.arg(command.get_program()).args(command.get_args());
        session.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(dir) = command.get_current_dir() {
            session.current_dir(dir);
        }
        session
            .stdout(Stdio::from(self.slave.try_clone().unwrap()))
            .stderr(Stdio::from(self.slave.try_clone().unwrap()));
    }

    /// Reads what is there now.
    pub fn look(&mut self) -> &[u8] {
        let mut bytes = [0; 65536];
        while let Ok(read @ 1..) = self.screen.read(&mut bytes) {
            self.seen.extend_from_slice(&bytes[..read]);
        }
        &self.seen
    }

    /// Waits until this was written.
    ///
    /// # Panics
    /// When it was not within [`PATIENCE`].
    #[track_caller]
    pub fn until(&mut self, text: &str) {
        let found =
            within(PATIENCE, || self.look().windows(text.len()).any(|part| part == text.as_bytes()).then_some(()));
        assert!(found.is_some(), "no {text:?} in {:?}", String::from_utf8_lossy(&self.seen));
    }

    /// Types.
    pub fn send(&mut self, text: &str) {
        self.screen.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until a process ended, reading meanwhile.
    pub fn wait(&mut self, child: &mut Child) -> ExitStatus {
        let status = eventually("the program ends", || {
            self.look();
            child.try_wait().unwrap()
        });
        self.look();
        status
    }

    /// Whether it is set as it was when it was new.
    #[must_use]
    pub fn is_as_before(&self) -> bool {
        describe(&tcgetattr(&self.slave).unwrap()) == self.before
    }
}

fn describe(settings: &Termios) -> String {
    format!("{settings:?}")
}
