//! `capture run` as a user at a terminal sees it: everything must be the same as without capture.
//!
//! Where possible both are compared: a script runs once as it is and once with `$RUN` set to `capture run --`, on
//! terminals of the same kind ([`TerminalMachine::both`]).

mod attach;
mod bytes;
pub(super) mod dialogs;
mod ending;
mod job_control;
mod server;
mod streams;

use std::{
    process::{Command, Output},
    sync::mpsc,
    thread,
};

use tests::{
    PATIENCE, eventually,
    program::Machine,
    terminal_user::{Process, User, end_all, processes},
};

/// A machine on which no command starts a server, and whose processes are ended with the test.
struct TerminalMachine {
    machine: Machine,
}

impl TerminalMachine {
    fn new() -> Self {
        let machine = Machine::new(super::PROGRAM);
        machine.configure("autostart = false\n");
        Self { machine }
    }

    fn user(&self, script: &str) -> User {
        User::start(&self.machine, script)
    }

    /// A program under capture, started by `sh`.
    fn run(&self, script: &str) -> User {
        User::start_with(&self.machine, "$PROGRAM run -- sh -c \"$INNER\"", &[("INNER", script)])
    }

    /// Runs a script with and without capture and compares the output and the exit status; returns both.
    #[track_caller]
    fn both(&self, script: &str) -> (String, i32) {
        let alone = User::start_with(&self.machine, script, &[("RUN", "")]).end();
        let run = format!("{} run --", super::PROGRAM);
        let mut user = User::start_with(&self.machine, script, &[("RUN", &run)]);
        let captured = user.end();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if captured.0.len() + alone.0.len() > 100_000 {
            // Too long to print.
            let differs = captured.0.iter().zip(&alone.0).position(|(a, b)| a != b);
            assert_eq!((captured.0.len(), differs), (alone.0.len(), None), "{script}");
            assert_eq!(captured.1, alone.1, "{script}");
        }
        assert_eq!((text(&captured.0), captured.1), (text(&alone.0), alone.1), "captured, then alone: {script}");
        assert!(captured.0 == alone.0, "{script}: {:?} is not {:?}", captured.0, alone.0);
        assert_eq!(user.settings(), user.settings_before(), "{script}");
        (text(&captured.0), captured.1)
    }

    /// The output and status of a command without a terminal; the command must end in time.
    #[track_caller]
    fn output(&self, command: &mut Command) -> Output {
        let data = self.machine.data();
        let (ended, waits) = mpsc::channel::<()>();
        let watch = thread::spawn(move || {
            // Nothing is ever sent; the sender is dropped when the command has ended.
            let late = waits.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout);
            if late {
                end_all(&data);
            }
            late
        });
        let output = command.output().unwrap();
        drop(ended);
        assert!(!watch.join().unwrap(), "{command:?} did not end in time");
        output
    }

    fn processes(&self) -> Vec<Process> {
        processes(&self.machine.data())
    }

    /// The launcher of the only run.
    #[track_caller]
    fn launcher(&self) -> i32 {
        self.only("launcher", |command| command.contains(" run ") && command.starts_with(super::PROGRAM))
    }

    /// The host of the only run.
    #[track_caller]
    fn host(&self) -> i32 {
        self.only("host", |command| command.contains(" run-host"))
    }

    /// The only process with a matching command line.
    #[track_caller]
    fn only(&self, what: &str, is: impl Fn(&str) -> bool) -> i32 {
        // A shell that has just forked appears twice for a moment.
        eventually(what, || {
            let found: Vec<Process> = self.processes().into_iter().filter(|process| is(&process.command)).collect();
            <[Process; 1]>::try_from(found).ok().map(|[process]| process.pid)
        })
    }

    /// Waits until all processes of a run have ended.
    #[track_caller]
    fn is_deserted_soon(&self, user: &User) {
        let gone = tests::within(PATIENCE, || user.processes().is_empty().then_some(()));
        assert!(gone.is_some(), "still there: {:?}", user.processes());
    }
}

impl Drop for TerminalMachine {
    fn drop(&mut self) {
        end_all(&self.machine.data());
    }
}
