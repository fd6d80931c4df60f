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

/// Most messages queued for the thread.
const THINGS: usize = 8192;
/// Most chunks of the program's output among the queued messages; the rest is room for what must not be lost.
const CHUNKS: usize = 8000;
/// Most bytes of the program's output that are queued.
const BYTES: usize = 4 << 20;
/// Backlog above which output that only scrolls by is not parsed, except for the end, bytes.
const BACKLOG: usize = 64 << 10;
/// Longest sequence of which it is seen that its end is in the next chunk, bytes.
const BEGUN: usize = 32;
/// Bytes in one turn above which the thread pauses before the next.
const MUCH: usize = 16 << 10;
/// Pause after a turn with much output.
const BREATH: Duration = Duration::from_millis(4);
/// Most buffers kept to be filled again during a flood.
const SPENT: usize = 32;
/// Pause after a turn with more output than the backlog, of which only the end is parsed.
const FLOOD_BREATH: Duration = Duration::from_millis(30);

/// A message to the thread that reads the screen.
pub enum ToScreen {
    /// The program wrote.
    Output(Vec<u8>, Timestamp),
    /// Somebody typed.
    Input(Vec<u8>, Timestamp),
    /// The terminal has another size.
    Resize(Size, Timestamp),
    /// Another program is in the foreground.
    Provider(Provider, Timestamp),
    /// The run has another name.
    Rename(String),
    /// A terminal needs the current screen.
    Repaint(u64),
    /// What undoes the modes the program left on.
    Restore(Sender<Vec<u8>>),
    /// Send an event to the server.
    Event(Timestamp, HostEvent),
}

/// A message from the thread that reads the screen.
pub enum FromScreen {
    /// The current screen, for this terminal.
    Repaint(u64, Vec<u8>),
    /// What a terminal would have answered the program.
    Replies(Vec<u8>),
    /// A dialog that needs the user, about this.
    Attention(String),
    /// The server wants this typed.
    Type(Vec<u8>, RequestReply),
    /// The bytes of a prompt, to be typed if nothing changed.
    Prompt(PromptKeys),
    /// The server wants to know whether somebody is there.
    Presence(RequestReply),
    /// The screen allows text, and the server wants to know whether somebody else is typing.
    Gate(RequestReply),
    /// The server wants the terminal to have this size, or that of the terminal that types.
    Resize(Option<Size>, RequestReply),
    /// The server wants this written to those who look on.
    Announce(Vec<u8>),
    /// A dialog with this mark was announced.
    DialogShown(String),
    /// A key of an answer, to be pressed if nothing changed.
    Press(Press),
}

/// Called with the answer to a request.
pub type RequestReply = Box<dyn FnOnce(Result<serde_json::Value, String>) + Send>;

/// Everything the thread starts with.
pub struct ScreenThreadConfig {
    /// Who we are.
    pub hello: Hello,
    /// The connection to the server.
    pub link: HostLink,
    /// What it asks.
    pub requests: Receiver<PendingRequest>,
    /// The size of the screen.
    pub size: Size,
    /// The clock.
    pub clock: fn() -> Timestamp,
    /// Wakes the relay.
    pub wake: Wake,
}

impl ScreenHandle {
    /// Starts the thread. It tells over the channel and then wakes the relay.
    ///
    /// # Errors
    /// When it cannot be made.
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
            // Waits until what was told is stored.
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
    /// Takes buffers back.
    used: Sender<Vec<u8>>,
    /// The dialog that was announced.
    approval: Option<Option<String>>,
    /// Chunks drained and not parsed yet, and their bytes.
    carried: Vec<(Vec<u8>, Timestamp)>,
    bytes: usize,
    /// Bytes of output parsed so far, and when the program last wrote.
    parsed: u64,
    written_at: Timestamp,
    /// The mark last sent to the relay.
    stood: Option<String>,
    /// What an unknown program does.
    activity: ProgramActivity,
    /// Who waits for the screen to change.
    onlookers: Onlookers,
    /// The answer that is being given, who wants to know of it, what comes of its key, and when it
    /// goes on.
    answering: Option<(Answering, RequestReply)>,
    pressed: Receiver<Pressed>,
    /// The text that is being typed, who wants to know of it, and what comes of its bytes.
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
                // Nobody sends on this channel: it is a wait.
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

    /// Gives what was drained to the observer. Under a flood, what only scrolls by is left out.
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
            // What was begun by bytes that were left out is looked at as a whole.
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

    /// Sends the observer's events, replies and version on.
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

    /// Reports of a program whose screen no rule reads what can be seen of it: its state is not known.
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

    /// Announces a dialog once for each time it opens.
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

    /// Lets the relay know of a dialog, before it is told: whoever answers it knows it from there.
    fn announce_dialog(&mut self, event: &HostEvent) {
        let HostEvent::Claim(claim) = event else { return };
        let mark = claim.dialog.as_ref().and_then(|dialog| dialog.mark.clone());
        if let Some(mark) = mark.filter(|mark| self.stood.as_ref() != Some(mark)) {
            self.stood = Some(mark.clone());
            self.send(FromScreen::DialogShown(mark));
        }
    }

    /// Tells those who wait for it what changed of the screen, once it is whole.
    fn show(&mut self, now: Timestamp) {
        if self.onlookers.is_empty() {
            return;
        }
        let mut onlookers = std::mem::take(&mut self.onlookers);
        self.with_observer_mut(|observer| onlookers.show(observer, now));
        self.onlookers = onlookers;
    }

    /// Goes on with the answer that is being given.
    fn continue_answer(&mut self) {
        let Some((mut answering, reply)) = self.answering.take() else { return };
        let (now, written_at) = ((self.begin.clock)(), self.written_at);
        let step = self.with_observer(|observer| answering.step(observer, written_at, now));
        self.apply_step(step, answering, reply);
    }

    /// The outcome of a key; `None` when the relay is gone.
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

    /// Goes on with the text that is being typed.
    fn continue_prompt(&mut self) {
        let Some((mut prompting, reply)) = self.prompting.take() else { return };
        let now = (self.begin.clock)();
        let step = self.with_observer(|observer| prompting.step(observer, now));
        self.apply_prompt_step(step, prompting, reply);
    }

    /// The outcome of bytes of a text; `None` when the relay is gone.
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
        // The relay takes news at every turn; when it is gone nobody needs them.
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

    /// A panic costs what was known of the screen, nothing else.
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
        "cannot read the screen: an internal error; the log of the run, in `runs` in the data directory, says more",
    )?;
    serde_json::to_value(value).map_err(|error| error.to_string())
}

/// Whether bytes do nothing to a terminal but print, scroll and colour: without them the screen
/// still has its modes, and what is on it was going to scroll away.
fn only_scrolls(bytes: &[u8]) -> bool {
    memchr::memchr_iter(0x1b, bytes).all(|at| {
        let Some(parameters) = bytes[at + 1..].strip_prefix(b"[") else { return false };
        // Cut off before it says what it is, it may be anything.
        let end = parameters.iter().position(|b| !b.is_ascii_digit() && !matches!(b, b';' | b':'));
        end.is_some_and(|end| matches!(parameters[end], b'm' | b'K'))
    })
}

/// How many bytes at the end begin a sequence that may only scroll or colour and is cut off before it says so.
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
