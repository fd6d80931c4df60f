//! The end of a run, in order: the terminals are restored, the recording and the server are notified, the launcher may
//! exit, and only then are the remaining threads awaited.

use std::time::Duration;

use host_protocol::{claim::HostEvent, runs};

use super::{Relay, terminals::flush};
use crate::host::{child::Exit, observe::ToScreen, wire::FromHost};

/// Maximum time for queued output to reach the terminals.
const FLUSH: Duration = Duration::from_secs(2);
/// Maximum time for the server to store the end of the run.
const DELIVER: Duration = Duration::from_secs(3);

impl Relay {
    /// Ends the run.
    pub fn finish(mut self, exit: Exit) {
        // A program that exited without a signal leaves its terminal as it intends, as it would outside a run.
        let restore = if exit.signal.is_some() { self.restore_bytes() } else { Vec::new() };
        for guest in self.guests.iter_mut().filter(|g| g.live && g.saved.is_some()) {
            guest.queue(&restore);
        }
        flush(&mut self.guests, FLUSH);
        let at = (self.clock)();
        self.send_to_screen(ToScreen::Event(at, HostEvent::Exited { code: exit.code, signal: exit.signal }));
        if let Some(recorder) = self.recorder.take() {
            recorder.end(at, Some(i32::from(exit.shell_code())));
        }
        self.listener = None;
        runs::remove(&self.spec.data, self.spec.run);
        let Self { guests, pty, screen, screen_events, .. } = self;
        for guest in &guests {
            guest.control.send(&FromHost::Exited(exit)).ok();
        }
        drop(guests);
        // Closing it signals a hangup to processes that still have the program's terminal open.
        drop(pty);
        drop(screen_events);
        screen.end(DELIVER);
    }
}
