//! The thread that reads the screen. It owns the [`Observer`] and the [`HostLink`], so that neither a slow parser nor a
//! panic in it affects the thread that relays bytes.

mod activity;
mod handle;
mod onlookers;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use agents::Agent;
use crossbeam_channel::{Receiver, Sender, bounded, never, select};
use events::{Confidence, Provider, Reason, State, Timestamp};
use host_protocol::{
    claim::{HostEvent, ScreenClaim, TypingGate},
    frame::{Hello, HostRequest, PromptTyping},
    link::{HostLink, PendingRequest},
    screen::Size,
};

use processes::{has_children, wake::Wake};

use self::activity::ProgramActivity;
pub use self::handle::ScreenHandle;
use self::onlookers::Onlookers;
use super::{
    keys,
    press_answer::{AnswerStep, Answering, Press, Pressed},
    type_prompt::{PromptKeys, PromptStep, PromptTyped, Prompting},
};
use crate::{
    host::load_rules::LoadRules,
    screen::{Observer, ScreenRules},
};

/// Maximum number of messages queued for the thread.
const THINGS: usize = 8192;
/// Maximum number of output chunks among the queued messages; the rest is reserved for messages that must not be lost.
const CHUNKS: usize = 8000;
/// Maximum bytes of the program's output that are queued.
const BYTES: usize = 4 << 20;
/// Backlog in bytes above which output that only scrolls is skipped, except for its end.
const BACKLOG: usize = 64 << 10;
/// Maximum length in bytes of an escape sequence that is recognised across two chunks.
const BEGUN: usize = 32;
/// Output in bytes per iteration above which the thread pauses before the next.
const MUCH: usize = 16 << 10;
/// Pause after an iteration with much output.
const BREATH: Duration = Duration::from_millis(4);
/// Maximum number of buffers kept for reuse during a flood.
const SPENT: usize = 32;
/// Pause after an iteration with more output than the backlog, of which only the end is parsed.
const FLOOD_BREATH: Duration = Duration::from_millis(30);

/// A message to the thread that reads the screen.
pub enum ToScreen {
    /// The program wrote output.
    Output(Vec<u8>, Timestamp),
    /// The user typed.
    Input(Vec<u8>, Timestamp),
    /// The terminal has a new size.
    Resize(Size, Timestamp),
    /// Another program is in the foreground.
    Provider(Provider, Timestamp),
    /// The run was renamed.
    Rename(String),
    /// A terminal needs the current screen.
    Repaint(u64),
    /// Request for the bytes that undo the modes the program left on.
    Restore(Sender<Vec<u8>>),
    /// Send an event to the server.
    Event(Timestamp, HostEvent),
}

/// A message from the thread that reads the screen.
pub enum FromScreen {
    /// The current screen, for this terminal.
    Repaint(u64, Vec<u8>),
    /// The replies a terminal would have sent to the program.
    Replies(Vec<u8>),
    /// A dialog needs the user; the text is its subject.
    Attention(String),
    /// The server wants these bytes typed.
    Type(Vec<u8>, RequestReply),
    /// The bytes of a prompt, to be typed if nothing has changed.
    Prompt(PromptKeys),
    /// The server asks whether the user is at the terminal.
    Presence(RequestReply),
    /// The screen allows text, and the server asks whether the user is typing.
    Gate(RequestReply),
    /// The size the server requests; `None` follows the terminal that types.
    Resize(Option<Size>, RequestReply),
    /// The server wants these bytes written to the attached terminals.
    Announce(Vec<u8>),
    /// A dialog with this mark was announced.
    DialogShown(String),
    /// A key of an answer, to be pressed if nothing has changed.
    Press(Press),
}

/// Called with the answer to a request.
pub type RequestReply = Box<dyn FnOnce(Result<serde_json::Value, String>) + Send>;

/// Everything the thread starts with.
pub struct ScreenThreadConfig {
    /// Describes this host to the server.
    pub hello: Hello,
    /// The connection to the server.
    pub link: HostLink,
    /// The server's requests.
    pub requests: Receiver<PendingRequest>,
    /// The size of the screen.
    pub size: Size,
    /// The clock.
    pub clock: fn() -> Timestamp,
    /// Wakes the relay.
    pub wake: Wake,
}

impl ScreenHandle {
    /// Starts the thread. It sends its messages over `tell` and then wakes the relay.
    ///
    /// # Errors
    /// When the thread cannot be created.
    pub fn start(begin: ScreenThreadConfig, load: LoadRules, tell: Sender<FromScreen>) -> std::io::Result<Self> {
        let (to, incoming) = bounded(THINGS);
        let (end, ended) = bounded(1);
        let (used, spent) = bounded(SPENT);
        let (waiting, skipped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
        let (left, lost) = (Arc::clone(&waiting), Arc::clone(&skipped));
        std::thread::Builder::new().name("screen".into()).spawn(move || {
            let rules = load();
            let now = (begin.clock)();
            let observer = Observer::new(begin.size, begin.hello.provider, Arc::clone(&rules), now);
            let mut reading = ScreenThread {
                begin,
                rules,
                observer,
                tell,
                left,
                lost,
                used,
                approval: None,
                carried: Vec::new(),
                bytes: 0,
                parsed: 0,
                written_at: now,
                stood: None,
                activity: ProgramActivity::default(),
                onlookers: Onlookers::default(),
                answering: None,
                pressed: never(),
                prompting: None,
                typed: never(),
                step_at: None,
            };
            reading.run(&incoming);
            // Waits until all sent events are stored.
            drop(reading);
            end.try_send(()).ok();
        })?;
        Ok(Self { to, waiting, skipped, spent, ended })
    }
}

struct ScreenThread {
    begin: ScreenThreadConfig,
    rules: Arc<ScreenRules>,
    observer: Observer,
    tell: Sender<FromScreen>,
    left: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
    /// Returns buffers for reuse.
    used: Sender<Vec<u8>>,
    /// The subject of the approval announced last.
    approval: Option<Option<String>>,
    /// Chunks received but not parsed yet, and their size in bytes.
    carried: Vec<(Vec<u8>, Timestamp)>,
    bytes: usize,
    /// Bytes of output parsed so far, and the time of the program's last output.
    parsed: u64,
    written_at: Timestamp,
    /// The mark last sent to the relay.
    stood: Option<String>,
    /// The activity of a program that no rules cover.
    activity: ProgramActivity,
    /// Requests that wait for the screen to change.
    onlookers: Onlookers,
    /// The answer in progress with its reply callback, the channel for the outcome of its key, and the time of the next
    /// step.
    answering: Option<(Answering, RequestReply)>,
    pressed: Receiver<Pressed>,
    /// The text being typed with its reply callback, and the channel for the outcome of its bytes.
    prompting: Option<(Prompting, RequestReply)>,
    typed: Receiver<PromptTyped>,
    step_at: Option<Timestamp>,
}

impl ScreenThread {
    fn run(&mut self, incoming: &Receiver<ToScreen>) {
        let mut requests = self.begin.requests.clone();
        loop {
            let now = (self.begin.clock)();
            let (pressed, typed) = (self.pressed.clone(), self.typed.clone());
            let due = self
                .observer
                .next_deadline()
                .into_iter()
                .chain(self.step_at)
                .chain(self.activity.due(self.written_at))
                .chain(self.onlookers.due())
                .min()
                .map_or(Duration::from_secs(3600), |at| {
                    Duration::from_millis(u64::try_from(at.since_ms(now)).unwrap_or(0))
                });
            select! {
                recv(incoming) -> thing => match thing {
                    Ok(thing) => self.apply(thing),
                    Err(_) => return,
                },
                recv(requests) -> question => match question {
                    Ok(question) => self.answer(question),
                    Err(_) => requests = never(),
                },
                recv(pressed) -> pressed => self.pressed(pressed.ok()),
                recv(typed) -> typed => self.typed(typed.ok()),
                default(due) => {}
            }
            let begun = Instant::now();
            while let Ok(thing) = incoming.try_recv() {
                self.apply(thing);
            }
            let breath = if self.bytes > BACKLOG {
                FLOOD_BREATH
            } else if self.bytes > MUCH {
                BREATH
            } else {
                Duration::ZERO
            };
            self.parse();
            let now = (self.begin.clock)();
            self.guard(|observer| observer.advance(now));
            self.forward();
            self.show(now);
            self.report_activity(now);
            self.continue_answer();
            self.continue_prompt();
            if begun.elapsed() < breath {
                // Nothing is ever sent on this channel; this only waits.
                crossbeam_channel::after(breath).recv().ok();
            }
        }
    }

    fn apply(&mut self, thing: ToScreen) {
        match thing {
            ToScreen::Output(bytes, at) => {
                self.left.fetch_sub(bytes.len(), Ordering::Relaxed);
                self.bytes += bytes.len();
                self.parsed += bytes.len() as u64;
                self.written_at = at;
                self.carried.push((bytes, at));
            }
            ToScreen::Input(bytes, at) => {
                self.parse();
                self.guard(|observer| observer.input(&bytes, at));
            }
            ToScreen::Resize(size, at) => {
                self.parse();
                self.guard(|observer| observer.resize(size, at));
                self.begin.size = size;
                self.begin.hello.size = Some((size.rows, size.columns));
                self.begin.link.hello(self.begin.hello.clone());
            }
            ToScreen::Provider(provider, at) => {
                self.parse();
                self.guard(|observer| observer.set_provider(provider, at));
                if self.activity.end() {
                    self.begin.link.send_event(at, HostEvent::Withdrawn);
                }
                self.begin.hello.provider = provider;
                self.begin.link.hello(self.begin.hello.clone());
            }
            ToScreen::Rename(name) => {
                self.begin.hello.name = Some(name);
                self.begin.link.hello(self.begin.hello.clone());
            }
            ToScreen::Repaint(terminal) => {
                self.parse();
                let bytes = self.with_observer(Observer::repaint).unwrap_or_default();
                self.send(FromScreen::Repaint(terminal, bytes));
            }
            ToScreen::Restore(reply) => {
                self.parse();
                let bytes = self.with_observer(Observer::restore).unwrap_or_default();
                reply.try_send(bytes).ok();
            }
            ToScreen::Event(at, event) => {
                self.parse();
                self.forward();
                self.begin.link.send_event(at, event);
            }
        }
    }

    /// Passes the received output to the observer. In a flood, output that only scrolls is skipped.
    fn parse(&mut self) {
        let now = (self.begin.clock)();
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            self.parsed += lost;
            self.guard(|observer| observer.skipped(lost, now));
        }
        let mut behind = std::mem::take(&mut self.bytes);
        let flood = behind > BACKLOG;
        let mut begun = Vec::new();
        for (mut bytes, at) in std::mem::take(&mut self.carried) {
            let is_behind = behind > BACKLOG;
            behind -= bytes.len();
            // An escape sequence whose start was held back from a skipped chunk is completed here.
            bytes.splice(..0, begun.drain(..));
            let whole = bytes.len() - begun_sequence(&bytes);
            let left_out = is_behind
                && only_scrolls(&bytes[..whole])
                && self.with_observer(Observer::is_between_sequences).unwrap_or(false);
            if left_out {
                begun.extend_from_slice(&bytes[whole..]);
                self.guard(|observer| observer.skipped(whole as u64, at));
            } else {
                self.guard(|observer| observer.output(&bytes, at));
            }
            if flood {
                self.used.try_send(bytes).ok();
            }
        }
        if !begun.is_empty() {
            self.guard(|observer| observer.output(&begun, now));
        }
    }

    /// Sends the observer's events, replies and version.
    fn forward(&mut self) {
        let event = self.with_observer_mut(Observer::take_events).unwrap_or_default();
        for (at, event) in event {
            self.announce_approval(&event);
            self.announce_dialog(&event);
            self.begin.link.send_event(at, event);
        }
        let replies = self.with_observer_mut(Observer::take_replies).unwrap_or_default();
        if !replies.is_empty() {
            self.send(FromScreen::Replies(replies));
        }
        let version = self.observer.version();
        if version.is_some() && version != self.begin.hello.version.as_deref() {
            self.begin.hello.version = version.map(str::to_owned);
            self.begin.link.hello(self.begin.hello.clone());
        }
    }

    /// Reports the visible activity of a program whose screen no rules read: its state is unknown.
    fn report_activity(&mut self, now: Timestamp) {
        let is_read = Agent::of(self.begin.hello.provider).is_some_and(Agent::is_read);
        if is_read || self.begin.hello.provider == Provider::Capture || self.observer.has_claim() {
            self.activity.end();
            return;
        }
        let (written_at, pid) = ((self.parsed > 0).then_some(self.written_at), self.begin.hello.pid);
        let Some(words) = self.activity.look(written_at, now, || has_children(pid)) else { return };
        let claim = ScreenClaim {
            state: State::Unknown,
            reason: Some(Reason::NoEvidence),
            strength: Confidence::Low,
            words: words.to_owned(),
            dialog: None,
        };
        self.begin.link.send_event(now, HostEvent::Claim(claim));
    }

    /// Announces a dialog once each time it opens.
    fn announce_approval(&mut self, event: &HostEvent) {
        match event {
            HostEvent::Claim(claim) if claim.state == State::WaitingApproval => {
                let subject = claim.dialog.as_ref().and_then(|d| d.subject.clone().or_else(|| d.question.clone()));
                if self.approval.as_ref() != Some(&subject) {
                    self.send(FromScreen::Attention(subject.clone().unwrap_or_default()));
                    self.approval = Some(subject);
                }
            }
            HostEvent::Claim(_) | HostEvent::Withdrawn | HostEvent::Exited { .. } => self.approval = None,
            HostEvent::Notification { .. }
            | HostEvent::Bell
            | HostEvent::Answered { .. }
            | HostEvent::Prompt { .. }
            | HostEvent::Text { .. }
            | HostEvent::Alive
            | HostEvent::Gap { .. }
            | HostEvent::ModeGranted { .. }
            | HostEvent::CallDecided(_)
            | HostEvent::ReadsAllowed { .. }
            | HostEvent::Unknown => {}
        }
    }

    /// Tells the relay about a dialog before the server learns of it, because an answer from the server refers to its
    /// mark.
    fn announce_dialog(&mut self, event: &HostEvent) {
        let HostEvent::Claim(claim) = event else { return };
        let mark = claim.dialog.as_ref().and_then(|dialog| dialog.mark.clone());
        if let Some(mark) = mark.filter(|mark| self.stood.as_ref() != Some(mark)) {
            self.stood = Some(mark.clone());
            self.send(FromScreen::DialogShown(mark));
        }
    }

    /// Sends the changes of the screen to the waiting requests, once a synchronized update is complete.
    fn show(&mut self, now: Timestamp) {
        if self.onlookers.is_empty() {
            return;
        }
        let mut onlookers = std::mem::take(&mut self.onlookers);
        self.with_observer_mut(|observer| onlookers.show(observer, now));
        self.onlookers = onlookers;
    }

    /// Continues the answer in progress.
    fn continue_answer(&mut self) {
        let Some((mut answering, reply)) = self.answering.take() else { return };
        let (now, written_at) = ((self.begin.clock)(), self.written_at);
        let step = self.with_observer(|observer| answering.step(observer, written_at, now));
        self.apply_step(step, answering, reply);
    }

    /// Handles the outcome of a key; `None` if the relay is gone.
    fn pressed(&mut self, pressed: Option<Pressed>) {
        self.pressed = never();
        let Some((mut answering, reply)) = self.answering.take() else { return };
        let now = (self.begin.clock)();
        let pressed = pressed.unwrap_or(Pressed::No("the run is ending"));
        let step =
            self.with_observer(|observer| answering.pressed(&pressed, observer, now).unwrap_or(AnswerStep::Wait(now)));
        self.apply_step(step, answering, reply);
    }

    fn apply_step(&mut self, step: Option<AnswerStep>, answering: Answering, reply: RequestReply) {
        self.step_at = None;
        match step {
            None => reply(Err("reading the screen failed, and a key may have been pressed".into())),
            Some(AnswerStep::Done(answer)) => reply(answer.and_then(|answered| as_json(Some(answered)))),
            Some(AnswerStep::Wait(at)) => {
                self.step_at = Some(at);
                self.answering = Some((answering, reply));
            }
            Some(AnswerStep::Press { bytes }) => {
                let (pressed, came) = bounded(1);
                self.pressed = came;
                let mark = answering.mark().to_owned();
                self.answering = Some((answering, reply));
                self.send(FromScreen::Press(Press { mark, bytes, parsed: self.parsed, pressed }));
            }
        }
    }

    /// Continues typing the text.
    fn continue_prompt(&mut self) {
        let Some((mut prompting, reply)) = self.prompting.take() else { return };
        let now = (self.begin.clock)();
        let step = self.with_observer(|observer| prompting.step(observer, now));
        self.apply_prompt_step(step, prompting, reply);
    }

    /// Handles the outcome of typed bytes; `None` if the relay is gone.
    fn typed(&mut self, typed: Option<PromptTyped>) {
        self.typed = never();
        let Some((mut prompting, reply)) = self.prompting.take() else { return };
        let now = (self.begin.clock)();
        let step = prompting.typed(typed.unwrap_or(PromptTyped::No("the run is ending")), now);
        self.apply_prompt_step(Some(step.unwrap_or(PromptStep::Wait(now))), prompting, reply);
    }

    fn apply_prompt_step(&mut self, step: Option<PromptStep>, prompting: Prompting, reply: RequestReply) {
        self.step_at = None;
        match step {
            None => reply(as_json(Some(PromptTyping::NotSubmitted {
                why: "reading the screen failed, and the text may have been typed in part".to_owned(),
            }))),
            Some(PromptStep::Done(outcome)) => reply(outcome.and_then(|outcome| as_json(Some(outcome)))),
            Some(PromptStep::Wait(at)) => {
                self.step_at = Some(at);
                self.prompting = Some((prompting, reply));
            }
            Some(PromptStep::Type { bytes, after_text }) => {
                let (typed, came) = bounded(1);
                self.typed = came;
                self.prompting = Some((prompting, reply));
                self.send(FromScreen::Prompt(PromptKeys { bytes, parsed: self.parsed, after_text, typed }));
            }
        }
    }

    fn answer(&mut self, PendingRequest { ask, reply }: PendingRequest) {
        self.parse();
        let typed = match ask {
            HostRequest::Answer { mark, answer } => {
                if self.answering.is_some() {
                    return reply(Err("another answer to the dialog is in progress".into()));
                }
                if self.prompting.is_some() {
                    return reply(Err("a text is being typed".into()));
                }
                let now = (self.begin.clock)();
                self.answering = Some((Answering::new(mark, answer, now), reply));
                self.step_at = Some(now);
                return;
            }
            HostRequest::Session { command, .. } => {
                return reply(Err(format!(
                    "`{}` needs a session of capture's own agent; this run has a terminal",
                    command.name()
                )));
            }
            HostRequest::Grid { since, wait_ms } => {
                let now = (self.begin.clock)();
                self.onlookers.add(since, wait_ms, now, reply);
                return self.show(now);
            }
            HostRequest::Scrollback { before, count } => {
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                return reply(as_json(self.with_observer(|observer| observer.scrollback(before, count))));
            }
            HostRequest::Resize { size } => return self.send(FromScreen::Resize(size, reply)),
            HostRequest::Screen => return reply(as_json(self.with_observer(Observer::picture))),
            HostRequest::Explain => return reply(as_json(self.with_observer(Observer::explain))),
            HostRequest::Type { text, paste } => {
                let taken = paste && self.with_observer(Observer::accepts_pastes).unwrap_or(false);
                Ok(if taken { keys::paste(&text) } else { text.into_bytes() })
            }
            HostRequest::Announce { bytes } => {
                self.send(FromScreen::Announce(bytes.into_bytes()));
                return reply(Ok(serde_json::Value::Null));
            }
            HostRequest::Presence => return self.send(FromScreen::Presence(reply)),
            HostRequest::Gate => {
                return match self.typing_gate() {
                    Some(TypingGate::Open) => self.send(FromScreen::Gate(reply)),
                    closed => reply(as_json(closed)),
                };
            }
            HostRequest::Prompt { text, submit } => {
                if self.answering.is_some() || self.prompting.is_some() {
                    let gate = TypingGate::Busy { shows: "something else is being typed".into() };
                    return reply(as_json(Some(PromptTyping::Refused { gate })));
                }
                let now = (self.begin.clock)();
                self.prompting = Some((Prompting::new(text, submit, now), reply));
                return self.continue_prompt();
            }
            HostRequest::Keys { keys } => {
                let application = self.with_observer(Observer::application_cursor).unwrap_or(false);
                keys.iter().map(|key| keys::bytes(key, application)).collect::<Result<Vec<_>, _>>().map(|k| k.concat())
            }
            HostRequest::Interrupt => Ok(Agent::of(self.begin.hello.provider)
                .map_or(b"\x03".as_slice(), |agent| agent.interrupt_key)
                .to_vec()),
        };
        match typed {
            Ok(bytes) => self.send(FromScreen::Type(bytes, reply)),
            Err(why) => reply(Err(why)),
        }
    }

    fn typing_gate(&mut self) -> Option<TypingGate> {
        let now = (self.begin.clock)();
        self.with_observer(|observer| observer.typing_gate(now))
    }

    fn send(&self, screen_events: FromScreen) {
        // The relay receives these in every iteration; without a relay they are not needed.
        if self.tell.send(screen_events).is_ok() {
            self.begin.wake.wake();
        }
    }

    fn guard(&mut self, act: impl FnOnce(&mut Observer)) {
        self.with_observer_mut(act);
    }

    fn with_observer<T>(&mut self, act: impl FnOnce(&Observer) -> T) -> Option<T> {
        self.with_observer_mut(|observer| act(observer))
    }

    /// A panic loses the screen's contents and nothing else.
    fn with_observer_mut<T>(&mut self, act: impl FnOnce(&mut Observer) -> T) -> Option<T> {
        let observer = &mut self.observer;
        let result = catch_unwind(AssertUnwindSafe(|| act(observer)));
        if result.is_err() {
            tracing::error!("the screen reader panicked; restarting it with an empty screen");
            let now = (self.begin.clock)();
            let rules = Arc::clone(&self.rules);
            self.observer = Observer::new(self.begin.size, self.begin.hello.provider, rules, now);
            self.observer.skipped(1, now);
        }
        result.ok()
    }
}

fn as_json<T: serde::Serialize>(value: Option<T>) -> Result<serde_json::Value, String> {
    let value = value.ok_or(
        "cannot read the screen because of an internal error; see the log of the run in `runs` in the data directory",
    )?;
    serde_json::to_value(value).map_err(|error| error.to_string())
}

/// Whether the bytes only print, scroll and colour. Skipping them leaves the terminal's modes right, and the text they
/// print would have scrolled away.
fn only_scrolls(bytes: &[u8]) -> bool {
    memchr::memchr_iter(0x1b, bytes).all(|at| {
        let Some(parameters) = bytes[at + 1..].strip_prefix(b"[") else { return false };
        // A sequence that is cut off before its final byte may be anything.
        let end = parameters.iter().position(|b| !b.is_ascii_digit() && !matches!(b, b';' | b':'));
        end.is_some_and(|end| matches!(parameters[end], b'm' | b'K'))
    })
}

/// The number of bytes at the end that start a sequence which may only scroll or colour but is cut off before its final
/// byte.
fn begun_sequence(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(BEGUN)..];
    let Some(at) = memchr::memrchr(0x1b, tail) else { return 0 };
    let begun = match tail[at + 1..].split_first() {
        None => true,
        Some((b'[', parameters)) => parameters.iter().all(|b| b.is_ascii_digit() || matches!(b, b';' | b':')),
        Some(_) => false,
    };
    if begun { tail.len() - at } else { 0 }
}

#[cfg(test)]
mod tests;
