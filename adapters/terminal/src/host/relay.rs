//! The thread that relays bytes between the program's terminal and the users' terminals.
//!
//! Bytes have priority: the program's output is written to the terminals before it is copied to the threads that read
//! the screen and record, and the relay never waits for these threads. Output that the typing terminal does not accept
//! at once is queued, and the program's output is read until the queue is full; then the program blocks as it would on
//! that terminal itself. All queues are bounded.

use std::{
    collections::VecDeque,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixListener,
    },
    time::{Duration, Instant},
};

use crossbeam_channel::Receiver;
use events::{Provider, Timestamp};
use host_protocol::runs::Description;
use processes::wake::WakeReceiver;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, kill_process_group},
    termios::Winsize,
};
use status_question::StatusQuestions;

mod bytes;
mod finish;
mod program;
mod status_question;
mod terminals;

use super::{
    child::{ChildEvent, Exit},
    guest::{Guest, Role},
    observe::{FromScreen, RequestReply, ScreenHandle, ToScreen},
    pty::Pty,
    signals::Signals,
    sink::Recorder,
    wire::{Notify, Spec},
};

/// Maximum number of bytes read from the pty per iteration.
const CHUNK: usize = 64 << 10;
/// Maximum number of bytes queued to be typed into the program.
const TYPED: usize = 64 << 10;
/// Delay before a program that was asked to end is killed.
const KILL_AFTER: Duration = Duration::from_secs(5);
/// Silence after the program's end at which reading its terminal stops.
const QUIET: Duration = Duration::from_millis(100);
/// Maximum time the terminal is read after the program's end.
const DRAIN: Duration = Duration::from_secs(1);
/// Maximum wait after the program's end for a user's terminal that accepts no output.
const STALLED: Duration = Duration::from_secs(60);
/// Interval between checks of the foreground program while there is output.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Silence of the program required before an announcement is inserted into its output.
const BETWEEN: Duration = Duration::from_millis(20);
/// Maximum time a terminal waits for a redraw of the screen.
const PAINT: Duration = Duration::from_millis(500);
/// Maximum number of attached terminals.
pub(super) const GUESTS: usize = 16;

/// The source of a ready descriptor.
#[derive(Debug, Clone, Copy)]
enum ReadySource {
    Master,
    Woken,
    Signals,
    Listener,
    Control(u64),
    Input(u64),
    Output(u64),
}

/// Relays bytes until the program has ended.
pub struct Relay {
    /// The run.
    pub spec: Spec,
    /// The clock.
    pub clock: fn() -> Timestamp,
    /// Changes a description of the run before it is written to the disk.
    pub written: fn(&mut Description),
    /// The program's terminal.
    pub pty: Pty,
    /// The program's process ID, which is also its process group.
    pub program: Pid,
    /// Events of the program's process.
    pub child_events: Receiver<ChildEvent>,
    /// Woken by child events and by messages from the screen thread.
    pub woken: WakeReceiver,
    /// Signals sent to this process.
    pub signals: Signals,
    /// The socket for attaching terminals.
    pub listener: Option<UnixListener>,
    /// The attached terminals.
    pub guests: Vec<Guest>,
    /// The thread that reads the screen.
    pub screen: ScreenHandle,
    /// Messages from the screen thread.
    pub screen_events: Receiver<FromScreen>,
    /// The recording.
    pub recorder: Option<Recorder>,
    /// The size of the program's terminal.
    pub size: Winsize,
    /// The agent in the foreground.
    pub provider: Provider,
    /// State used only by the loop.
    pub state: Loop,
}

/// The loop's state.
pub struct Loop {
    pub(super) buffer: Box<[u8]>,
    pub(super) keys: Keyboard,
    pub(super) next_guest: u64,
    last_output: Instant,
    look_at: Option<Instant>,
    looked: Instant,
    kill_at: Option<Instant>,
    stopped: bool,
    exited: Option<(Exit, Instant)>,
    drained: bool,
    /// Whether the end must not wait for terminals.
    abandoned: bool,
    reading: Duration,
    announcement: Option<Vec<u8>>,
    /// Bytes of the program's output passed on so far.
    passed: u64,
    /// When the user last typed.
    typed: Option<Instant>,
    /// When a key was last pressed at a terminal.
    pressed: Option<Instant>,
    /// Whether the typing terminal has the focus, as reported by the terminal.
    focused: Option<bool>,
    /// The dialog reported last, and the process group in the foreground at that time.
    stood: Option<(String, Option<i32>)>,
    /// When a text was typed whose Enter is still to come, and the process group in the foreground at that time.
    prompted: Option<(Instant, Option<i32>)>,
    /// Queries that the host answers itself.
    status_questions: StatusQuestions,
}

/// Typed bytes that were not written yet.
#[derive(Default)]
pub(super) struct Keyboard {
    waiting: VecDeque<u8>,
    queued: u64,
    written: u64,
    /// Replies to send once everything up to a position was written.
    replies: VecDeque<(u64, usize, RequestReply)>,
}

impl Keyboard {
    fn room(&self) -> usize {
        TYPED.saturating_sub(self.waiting.len())
    }

    fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend(bytes);
        self.queued += bytes.len() as u64;
    }

    fn wrote(&mut self, count: usize) {
        self.waiting.drain(..count);
        self.written += count as u64;
        while let Some((upto, _, _)) = self.replies.front()
            && *upto <= self.written
        {
            if let Some((_, bytes, reply)) = self.replies.pop_front() {
                reply(Ok(serde_json::json!({ "bytes": bytes })));
            }
        }
    }
}

impl Loop {
    /// The state before the first iteration.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            buffer: vec![0; CHUNK].into_boxed_slice(),
            keys: Keyboard::default(),
            next_guest: 1,
            last_output: now,
            look_at: None,
            looked: now,
            kill_at: None,
            stopped: false,
            exited: None,
            drained: false,
            abandoned: false,
            reading: Duration::ZERO,
            announcement: None,
            passed: 0,
            typed: None,
            pressed: None,
            focused: None,
            stood: None,
            prompted: None,
            status_questions: StatusQuestions::default(),
        }
    }
}

impl Relay {
    /// Relays bytes until the program has ended and all its output was passed on. Returns how it ended.
    pub fn run(&mut self) -> Exit {
        let mut before = Instant::now();
        loop {
            let now = Instant::now();
            if let Some(exit) = self.is_over(now, now - before) {
                return exit;
            }
            before = now;
            let deadline = self.on_time(now);
            let ready = self.wait(deadline.map(|at| at.saturating_duration_since(now)));
            for (of, flags) in ready {
                self.act(of, flags);
            }
            self.apply_child_events();
            self.apply_screen_events();
            self.request_paint(now);
        }
    }

    /// Requests the current screen for terminals that need it. A terminal whose request is not answered in time
    /// continues without it, because it blocks the program.
    fn request_paint(&mut self, now: Instant) {
        let gone = self.screen.is_gone();
        for guest in &mut self.guests {
            if guest.wants_paint() && (gone || self.screen.try_send(ToScreen::Repaint(guest.id))) {
                guest.paint_asked(now);
            }
            if guest.waits_for_paint().is_some_and(|since| gone || now.saturating_duration_since(since) > PAINT) {
                guest.painted(&[]);
            }
        }
    }

    /// Whether the program has ended and its output was read and shown, or the waits for these have expired.
    fn is_over(&mut self, now: Instant, since: Duration) -> Option<Exit> {
        let (exit, ended) = self.state.exited?;
        let held_up = self.is_held_up();
        if !held_up {
            self.state.reading += since.min(QUIET);
        }
        let quiet = !held_up && now.saturating_duration_since(self.state.last_output.max(ended)) >= QUIET;
        let shown = !self.guests.iter().any(|g| g.live && g.role == Role::Writer && !g.is_flushed() && !g.suspended);
        let over = self.state.abandoned
            || (self.state.drained && shown)
            || quiet
            || self.state.reading >= DRAIN
            || now - ended >= STALLED;
        over.then_some(exit)
    }

    fn may_read_program(&self) -> bool {
        !self.state.drained && self.guests.iter().all(Guest::accepts_output)
    }

    /// Whether a terminal has not accepted all of the program's output.
    fn is_held_up(&self) -> bool {
        !self.guests.iter().all(Guest::keeps_up)
    }

    /// Performs due actions and returns the time of the next one.
    fn on_time(&mut self, now: Instant) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        let mut at = |when: Instant| next = Some(next.map_or(when, |n| n.min(when)));
        if let Some(kill_at) = self.state.kill_at {
            if now >= kill_at {
                self.state.kill_at = None;
                if let Some(group) = self.pty.foreground().filter(|group| *group != self.program) {
                    kill_process_group(group, Signal::KILL).ok();
                }
                kill_process_group(self.program, Signal::KILL).ok();
            } else {
                at(kill_at);
            }
        }
        if let Some((_, ended)) = self.state.exited {
            at(if self.is_held_up() { now } else { self.state.last_output.max(ended) } + QUIET);
        }
        if let Some(look_at) = self.state.look_at {
            if now >= look_at {
                self.check_foreground(now);
            } else {
                at(look_at);
            }
        }
        if self.state.announcement.is_some() {
            let quiet_at = self.state.last_output + BETWEEN;
            let whole = self.guests.iter().all(Guest::is_flushed);
            if now >= quiet_at && whole {
                self.announce();
            } else {
                at(quiet_at.max(now + BETWEEN));
            }
        }
        // If the screen thread has no room for a request now, try again later.
        if self.guests.iter().any(|g| g.wants_paint() || g.waits_for_paint().is_some()) {
            at(now + BETWEEN);
        }
        next
    }

    /// Waits until a descriptor is ready; returns the ready ones.
    fn wait(&self, timeout: Option<Duration>) -> Vec<(ReadySource, PollFlags)> {
        let mut wanted: Vec<(ReadySource, BorrowedFd<'_>, PollFlags)> = vec![
            (ReadySource::Woken, self.woken.as_fd(), PollFlags::IN),
            (ReadySource::Signals, self.signals.as_fd(), PollFlags::IN),
        ];
        let mut program = PollFlags::empty();
        program.set(PollFlags::IN, self.may_read_program());
        program.set(PollFlags::OUT, !self.state.keys.waiting.is_empty() && self.state.exited.is_none());
        wanted.push((ReadySource::Master, self.pty.as_fd(), program));
        if let Some(listener) = self.listener.as_ref().filter(|_| self.guests.len() < GUESTS) {
            wanted.push((ReadySource::Listener, listener.as_fd(), PollFlags::IN));
        }
        for guest in &self.guests {
            wanted.push((ReadySource::Control(guest.id), guest.control.as_fd(), PollFlags::IN));
            if let (Some(output), false) = (&guest.output, guest.is_flushed() || guest.suspended) {
                wanted.push((ReadySource::Output(guest.id), output.as_fd(), PollFlags::OUT));
            }
            // Input typed after the program's end belongs to the next reader of the terminal.
            let typing = guest.may_read() && self.state.keys.room() > 0 && self.state.exited.is_none();
            if let (Some(input), true) = (&guest.input, typing) {
                wanted.push((ReadySource::Input(guest.id), input.as_fd(), PollFlags::IN));
            }
        }
        // A descriptor polled without flags would still report its hangup, repeatedly.
        wanted.retain(|(_, _, flags)| !flags.is_empty());
        let mut fds: Vec<PollFd<'_>> =
            wanted.iter().map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        let timeout = timeout
            .map(|t| Timespec { tv_sec: t.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: t.subsec_nanos().into() });
        if poll(&mut fds, timeout.as_ref()).is_err() {
            return Vec::new();
        }
        let ready = wanted.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        let mut ready: Vec<(ReadySource, PollFlags)> = ready.map(|((of, _, _), fd)| (*of, fd.revents())).collect();
        // Bytes have priority, and writing output makes room for reading more.
        ready.sort_by_key(|(of, _)| match of {
            ReadySource::Output(_) => 0,
            ReadySource::Master => 1,
            ReadySource::Woken
            | ReadySource::Signals
            | ReadySource::Listener
            | ReadySource::Control(_)
            | ReadySource::Input(_) => 2,
        });
        ready
    }

    fn act(&mut self, of: ReadySource, flags: PollFlags) {
        match of {
            ReadySource::Master => {
                if flags.contains(PollFlags::OUT) {
                    self.type_on();
                }
                if flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                    self.read_program();
                }
            }
            ReadySource::Woken => self.woken.drain(),
            ReadySource::Signals => {
                // A request to end the host is meant for the program.
                if !self.signals.received().is_empty() {
                    self.end_program();
                }
            }
            ReadySource::Listener => self.accept_visitor(),
            ReadySource::Control(id) => self.read_messages(id),
            ReadySource::Input(id) => self.read_terminal(id),
            ReadySource::Output(id) => {
                if self.guests.iter_mut().find(|g| g.id == id).is_some_and(|guest| guest.flush().is_err()) {
                    self.terminal_gone(id);
                }
            }
        }
    }

    fn apply_screen_events(&mut self) {
        while let Ok(screen_events) = self.screen_events.try_recv() {
            match screen_events {
                FromScreen::Repaint(id, bytes) => {
                    let Some(guest) = self.guests.iter_mut().find(|g| g.id == id) else { continue };
                    guest.painted(&bytes);
                    if guest.flush().is_err() {
                        self.terminal_gone(id);
                    }
                }
                FromScreen::Replies(bytes) => {
                    // An attached terminal replies itself.
                    if !self.guests.iter().any(|g| g.live && g.role == Role::Writer) {
                        self.reply(&bytes);
                    }
                }
                FromScreen::Attention(subject) => {
                    self.state.announcement = self.spec.notify.map(|notify| announcement(notify, &subject));
                }
                FromScreen::Type(bytes, reply) => self.type_for(&bytes, reply),
                FromScreen::Prompt(keys) => self.type_prompt(&keys),
                FromScreen::Announce(bytes) => self.state.announcement = Some(bytes),
                FromScreen::Resize(size, reply) => self.resize_for(size, reply),
                FromScreen::Presence(reply) => {
                    let presence = self.presence();
                    reply(serde_json::to_value(presence).map_err(|error| error.to_string()));
                }
                FromScreen::Gate(reply) => {
                    let gate = super::type_prompt::gate(self.state.typed.map(|at| at.elapsed()));
                    reply(serde_json::to_value(gate).map_err(|error| error.to_string()));
                }
                FromScreen::DialogShown(mark) => {
                    self.state.stood = Some((mark, self.pty.foreground().map(|group| group.as_raw_nonzero().get())));
                }
                FromScreen::Press(press) => self.press(&press),
            }
        }
    }

    fn announce(&mut self) {
        let Some(bytes) = self.state.announcement.take() else { return };
        for guest in self.guests.iter_mut().filter(|g| g.live && !g.suspended) {
            // A terminal that is gone is noticed at the program's next output.
            guest.write_output(&bytes).ok();
        }
    }
}

/// The bytes that make a terminal alert its user.
fn announcement(notify: Notify, subject: &str) -> Vec<u8> {
    match notify {
        Notify::Bell => b"\x07".to_vec(),
        Notify::Osc9 => {
            // Remove control characters so that an agent's text cannot end the sequence.
            let subject: String = subject.chars().filter(|c| !c.is_control()).take(200).collect();
            let about = if subject.is_empty() { subject } else { format!(": {subject}") };
            format!("\x1b]9;capture: permission needed{about}\x07").into_bytes()
        }
    }
}
