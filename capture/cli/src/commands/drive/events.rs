//! The events of a conversation, each source on a thread of its own: the agent, its standard error, the user, signals.

use std::{
    io::{BufRead, Read},
    os::unix::net::UnixStream,
    time::Instant,
};

use client::delivery::DecisionOutcome;
use crossbeam_channel::{Receiver, Sender};
use host_protocol::link::PendingRequest;
use protocols::{AgentLine, LineSplitter};
use rustix::{
    event::{PollFd, PollFlags, poll},
    process::Signal,
};
use terminal::host::signals::Signals;

use super::output::OutputWriter;

/// What is heard.
pub(super) enum DriverEvent {
    /// The agent wrote a line.
    Line(AgentLine),
    /// It will write no more.
    Closed,
    /// The outcome of waiting for the decision on this request.
    Waited(String, DecisionOutcome),
    /// The user typed a line, which was read then.
    Typed(String, Instant),
    /// Somebody wants us to stop.
    Signal(Signal),
    /// The server wants something.
    Request(PendingRequest),
}

/// Reads what the agent writes. The conversation ends when it does.
pub(super) fn listen(mut output: UnixStream, events: &Sender<DriverEvent>) {
    let (mut lines, mut bytes) = (LineSplitter::default(), vec![0_u8; 64 << 10]);
    while let Ok(read @ 1..) = output.read(&mut bytes) {
        for line in lines.push(&bytes[..read]) {
            if events.send(DriverEvent::Line(line)).is_err() {
                return;
            }
        }
    }
    events.send(DriverEvent::Closed).ok();
}

/// Passes on what it complains of: its standard error is not ours.
pub(super) fn forward_errors(error: UnixStream, output: &OutputWriter) {
    let mut error = std::io::BufReader::new(error);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut error).take(64 << 10).read_until(b'\n', &mut line) {
        let text = String::from_utf8_lossy(&line);
        output.write_error_line(text.trim_end());
        line.clear();
    }
}

/// Reads what the user types.
pub(super) fn listen_to_user(events: &Sender<DriverEvent>) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        if events.send(DriverEvent::Typed(line, Instant::now())).is_err() {
            return;
        }
    }
}

/// Takes requests of the server.
pub(super) fn listen_to_server(requests: Receiver<PendingRequest>, events: &Sender<DriverEvent>) {
    for request in requests {
        if events.send(DriverEvent::Request(request)).is_err() {
            return;
        }
    }
}

/// Takes signals from now on.
pub(super) fn listen_to_signals(events: Sender<DriverEvent>) -> anyhow::Result<()> {
    let mut signals = Signals::watch(&[Signal::INT, Signal::TERM, Signal::HUP])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        loop {
            let mut wanted = [PollFd::new(&signals, PollFlags::IN)];
            if poll(&mut wanted, None).is_err() {
                continue;
            }
            for signal in signals.received() {
                if events.send(DriverEvent::Signal(signal)).is_err() {
                    return;
                }
            }
        }
    })?;
    Ok(())
}
