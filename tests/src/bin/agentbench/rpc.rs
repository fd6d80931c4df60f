//! Drives `capture agent rpc` over its pipes.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{Outcome, peers::end, place::Place};

/// A process that speaks pi's RPC. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Rpc {
    child: Child,
    input: ChildStdin,
    lines: Receiver<(Instant, Value)>,
}

impl Rpc {
    /// Whether the program has the subcommand.
    pub(crate) fn is_there(place: &Place) -> Outcome<bool> {
        let output = place.machine.command(&["agent", "rpc", "--help"]).output().map_err(|error| error.to_string())?;
        Ok(output.status.success())
    }

    pub(crate) fn start(mut command: Command) -> Outcome<Self> {
        let told = |error: std::io::Error| error.to_string();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(told)?;
        let input = child.stdin.take().ok_or("no standard input")?;
        let output = child.stdout.take().ok_or("no standard output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                let now = Instant::now();
                let Ok(line) = serde_json::from_slice(&line) else { continue };
                if sender.send((now, line)).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, input, lines })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a command; returns the time.
    pub(crate) fn send(&mut self, command: &Value) -> Outcome<Instant> {
        let now = Instant::now();
        let line = format!("{command}\n");
        self.input.write_all(line.as_bytes()).and_then(|()| self.input.flush()).map_err(|error| error.to_string())?;
        Ok(now)
    }

    /// Waits for the next line of this type; returns it and its time. Earlier lines are dropped.
    pub(crate) fn wait_for(&mut self, kind: &str, limit: Duration) -> Outcome<(Instant, Value)> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let (at, line) = self.lines.recv_timeout(left).map_err(|error| format!("waiting for `{kind}`: {error}"))?;
            if line["type"] == kind {
                return Ok((at, line));
            }
            if line["type"] == "response" && line["success"] == false {
                return Err(line.to_string());
            }
        }
    }
}

impl Drop for Rpc {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}
