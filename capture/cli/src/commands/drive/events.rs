//! The events of a conversation. Each source has its own thread: the agent, its standard error, the user, signals.

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

/// An event of the conversation.
pub(super) enum DriverEvent {
    /// The agent wrote a line.
    Line(AgentLine),
    /// The agent closed its output.
    Closed,
    /// The outcome of waiting for the decision on this request.
    Waited(String, DecisionOutcome),
    /// The user typed a line, which was read at this time.
    Typed(String, Instant),
    /// A signal asks us to stop.
    Signal(Signal),
    /// The server sent a request.
    Request(PendingRequest),
}

/// Reads the agent's output. The conversation ends with it.
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

/// Forwards the agent's standard error, which is separate from ours.
pub(super) fn forward_errors(error: UnixStream, output: &OutputWriter) {
    let mut error = std::io::BufReader::new(error);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut error).take(64 << 10).read_until(b'\n', &mut line) {
        let text = String::from_utf8_lossy(&line);
        output.write_error_line(text.trim_end());
        line.clear();
    }
}

/// Reads the user's input.
pub(super) fn listen_to_user(events: &Sender<DriverEvent>) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        if events.send(DriverEvent::Typed(line, Instant::now())).is_err() {
            return;
        }
    }
}

/// Receives requests of the server.
pub(super) fn listen_to_server(requests: Receiver<PendingRequest>, events: &Sender<DriverEvent>) {
    for request in requests {
        if events.send(DriverEvent::Request(request)).is_err() {
            return;
        }
    }
}

/// Installs the signal handlers and forwards signals as events.
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
