//! Scripted models: servers on loopback that implement the vendors' APIs, for the real agents and for tests.
//! [`Model::start`] starts one; agents are configured with [`Model::url`].
//!
//! A [`Script`] determines the answers from the contents of the conversation, so a repeated request gets the same
//! answer. The protocols are in [`anthropic`], [`responses`], `chat` and [`gemini`]; each knows the format of its
//! conversations and of streamed answers. Requests beside the conversation (titles, counts, summaries) are answered
//! without advancing the script.
//!
//! A model uses nothing but the agent's requests. A model started with [`Model::exact`] is as strict as the vendor
//! ([`strict`]) and simulates the vendor's caches ([`cache`]), whose tokens it reports. A deliberate error in a step is
//! a [`fault`].

pub mod anthropic;
pub mod cache;
mod chat;
pub mod fault;
pub mod gemini;
pub mod responses;
pub mod script;
pub mod signature;
pub mod strict;
mod wire;

use std::{
    collections::{BTreeSet, HashMap},
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use events::Timestamp;
use serde_json::Value;

use self::{
    cache::{CacheReport, CacheUsage, Caches},
    fault::Fault,
    script::{Call, Chosen, ConversationPart, Part, Script},
    wire::{Connection, Request},
};

/// The interval in which a waiting thread checks whether the client is still connected.
const LOOK: Duration = Duration::from_millis(20);

/// The implemented protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions.
    Chat,
    /// Gemini's generateContent.
    Gemini,
}

/// The kind of a request.
#[derive(Debug)]
enum ModelRequest {
    /// Asks the model to continue a conversation.
    Turn(Vec<ConversationPart>),
    /// A request beside the conversation, whose answer is streamed or sent at once.
    Side { streamed: bool },
    /// A request with only one possible answer.
    Fixed(u16, Value),
}

/// A vendor's protocol.
trait Protocol: Sync {
    /// Classifies a request.
    fn asked(&self, request: &Request) -> ModelRequest;
    /// A call in the form this conversation requires.
    fn call(&self, _: &Request, call: &Call) -> Call {
        call.clone()
    }
    /// The encoder for a streamed answer that reports these tokens.
    fn speech(&self, request: &Request, usage: Option<CacheUsage>) -> Box<dyn Speech>;
    /// The text of the answer to a request beside the conversation.
    fn aside(&self) -> &'static str;
    /// An answer that is not streamed.
    fn whole(&self, request: &Request, text: &str) -> Value;
    /// The body of an error.
    fn failure(&self, status: u16) -> Value;
    /// A message that keeps a connection alive and has no content.
    fn ping(&self) -> &'static str {
        ": keep-alive\n\n"
    }
    /// An error in a stream.
    fn stream_failure(&self) -> String {
        format!("data: {}\n\n", self.failure(503))
    }
}

/// A streamed answer: each method returns the server-sent events to write next.
trait Speech {
    fn begin(&mut self) -> String;
    fn think(&mut self, text: &str) -> String;
    fn text(&mut self, delta: &str) -> String;
    fn call(&mut self, call: &Call) -> String;
    fn end(&mut self) -> String;
}

impl Api {
    fn protocol(self) -> &'static dyn Protocol {
        match self {
            Self::Anthropic => &anthropic::Messages,
            Self::Responses => &responses::Responses,
            Self::Chat => &chat::Completions,
            Self::Gemini => &gemini::Gemini,
        }
    }
}

/// The progress of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerProgress {
    /// The request was read.
    Asked,
    /// The first bytes went out.
    Began,
    /// The last bytes went out.
    Ended,
    /// An error was sent instead.
    Failed,
    /// The agent hung up before the end.
    Gone,
}

/// An event with its time and its lane and step of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The time, by the wall clock.
    pub at: Timestamp,
    /// The lane; `aside` for a request beside the conversation, empty if no lane matches.
    pub lane: String,
    /// The number of the step in the lane.
    pub step: usize,
    /// The kind of event.
    pub did: AnswerProgress,
}

#[derive(Debug, Default)]
struct ModelLog {
    notes: Vec<Note>,
    /// The results of tools in the latest conversation of each lane.
    results: HashMap<String, Vec<String>>,
    open: BTreeSet<String>,
    /// The reasons of refused requests.
    refused: Vec<String>,
    /// How often each failing step has failed.
    failed: HashMap<(usize, usize), u32>,
    stopped: bool,
}

#[derive(Debug)]
struct ModelState {
    api: Api,
    script: Script,
    /// The vendor's caches and their time in milliseconds, if the model is exact.
    caches: Option<Mutex<(Caches, u64)>>,
    told: Mutex<ModelLog>,
    changed: Condvar,
}

/// A running model. Dropping it stops it.
#[derive(Debug)]
pub struct Model {
    address: SocketAddr,
    shared: Arc<ModelState>,
    listening: Option<JoinHandle<()>>,
}

impl Model {
    /// Starts a model on a free loopback port.
    ///
    /// # Errors
    /// If no port or no thread is available.
    pub fn start(api: Api, script: Script) -> io::Result<Self> {
        Self::begin(api, script, None)
    }

    /// Starts a model that refuses what the vendor refuses and reports the tokens of the vendor's caches. Its time
    /// advances only by [`Model::pass`].
    ///
    /// # Errors
    /// If no port or no thread is available.
    pub fn exact(api: Api, script: Script) -> io::Result<Self> {
        Self::begin(api, script, Some(Mutex::new((Caches::new(api), 0))))
    }

    fn begin(api: Api, script: Script, caches: Option<Mutex<(Caches, u64)>>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(ModelState { api, script, caches, told: Mutex::default(), changed: Condvar::new() });
        let serving = Arc::clone(&shared);
        let listening = std::thread::Builder::new().name("model".to_owned()).spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if serving.told().stopped {
                    return;
                }
                let serving = Arc::clone(&serving);
                // The thread ends on its own: each connection serves one request, and no client outlives the model.
                std::thread::spawn(move || serving.serve(stream));
            }
        })?;
        Ok(Self { address, shared, listening: Some(listening) })
    }

    /// `127.0.0.1:PORT`
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The base URL for agents.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Releases all current and future answers that wait for this word.
    pub fn tell(&self, word: &str) {
        self.shared.told().open.insert(word.to_owned());
        self.shared.changed.notify_all();
    }

    /// Advances the time of the caches.
    pub fn pass(&self, time: Duration) {
        if let Some(caches) = &self.shared.caches {
            lock(caches).1 += u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        }
    }

    /// The activity of the caches so far; empty if the model is not exact.
    #[must_use]
    pub fn cache_report(&self) -> CacheReport {
        self.shared.caches.as_ref().map(|caches| lock(caches).0.report()).unwrap_or_default()
    }

    /// The reasons of refused requests, in order.
    #[must_use]
    pub fn refusals(&self) -> Vec<String> {
        self.shared.told().refused.clone()
    }

    /// The events so far, in order.
    #[must_use]
    pub fn notes(&self) -> Vec<Note> {
        self.shared.told().notes.clone()
    }

    /// The results of tools in the latest conversation of a lane, as the model received them, in order.
    #[must_use]
    pub fn results(&self, lane: &str) -> Vec<String> {
        self.shared.told().results.get(lane).cloned().unwrap_or_default()
    }

    /// When this event first happened.
    #[must_use]
    pub fn when(&self, lane: &str, step: usize, did: AnswerProgress) -> Option<Timestamp> {
        let told = self.shared.told();
        told.notes.iter().find(|n| n.lane == lane && n.step == step && n.did == did).map(|n| n.at)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.shared.told().stopped = true;
        self.shared.changed.notify_all();
        // Wakes the listening thread.
        TcpStream::connect(self.address).ok();
        if let Some(listening) = self.listening.take() {
            listening.join().ok();
        }
    }
}

/// The position of an answer in the script.
#[derive(Debug, Clone)]
struct ScriptPosition {
    lane: String,
    step: usize,
}

impl ModelState {
    fn told(&self) -> MutexGuard<'_, ModelLog> {
        lock(&self.told)
    }

    fn note(&self, place: &ScriptPosition, did: AnswerProgress) {
        let note = Note { at: home::clock::now(), lane: place.lane.clone(), step: place.step, did };
        self.told().notes.push(note);
    }

    fn serve(&self, stream: TcpStream) {
        let Ok(mut connection) = Connection::new(stream) else { return };
        // A client that hangs up before the request is complete has sent no request.
        let Ok(request) = connection.read() else { return };
        let protocol = self.api.protocol();
        if self.caches.is_some()
            && request.method == "POST"
            && let Err(refusal) = strict::check(self.api, &request.bytes)
        {
            self.told().refused.push(refusal.message.clone());
            let mut body = protocol.failure(refusal.status);
            body["error"]["message"] = refusal.message.into();
            connection.whole(refusal.status, &[], &body).ok();
            return;
        }
        let aside = ScriptPosition { lane: "aside".to_owned(), step: 0 };
        let (place, answered) = match protocol.asked(&request) {
            ModelRequest::Fixed(status, body) => (aside, connection.whole(status, &[], &body)),
            ModelRequest::Side { streamed } => {
                self.note(&aside, AnswerProgress::Asked);
                let answered = if streamed {
                    self.speak(&mut connection, &request, &aside, &[Part::Say(protocol.aside().to_owned())])
                } else {
                    connection.whole(200, &[], &protocol.whole(&request, protocol.aside()))
                };
                (aside, answered)
            }
            ModelRequest::Turn(heard) => self.turn(&mut connection, &request, &heard),
        };
        if answered.is_err() {
            self.note(&place, AnswerProgress::Gone);
        }
    }

    fn turn(
        &self,
        connection: &mut Connection,
        request: &Request,
        heard: &[ConversationPart],
    ) -> (ScriptPosition, io::Result<()>) {
        let chosen = {
            let failed = &mut self.told().failed;
            self.script.choose(heard, |lane, step, times| {
                let count = failed.entry((lane, step)).or_default();
                *count += 1;
                *count <= times
            })
        };
        let place = |lane: &str, step| ScriptPosition { lane: lane.to_owned(), step };
        match chosen {
            Chosen::Unscripted => {
                let place = place("", 0);
                self.note(&place, AnswerProgress::Asked);
                let spoken = self.speak(connection, request, &place, &[Part::Say("(not in the script)".to_owned())]);
                (place, spoken)
            }
            Chosen::Answer { lane, step, parts } => {
                let place = place(lane, step);
                self.told().results.insert(lane.to_owned(), results(heard));
                self.note(&place, AnswerProgress::Asked);
                let spoken = self.speak(connection, request, &place, parts);
                (place, spoken)
            }
            Chosen::Fail { lane, step, status, retry_after } => {
                let place = place(lane, step);
                self.note(&place, AnswerProgress::Failed);
                let headers: Vec<String> =
                    retry_after.iter().map(|after| format!("retry-after: {}", after.as_secs())).collect();
                let body = self.api.protocol().failure(status);
                (place, connection.whole(status, &headers, &body))
            }
            Chosen::Faulty { lane, step, fault } => {
                let place = place(lane, step);
                self.note(&place, AnswerProgress::Failed);
                let spoken = self.go_wrong(connection, request, fault);
                (place, spoken)
            }
        }
    }

    fn speak(
        &self,
        connection: &mut Connection,
        request: &Request,
        place: &ScriptPosition,
        parts: &[Part],
    ) -> io::Result<()> {
        let protocol = self.api.protocol();
        let mut speech = protocol.speech(request, self.usage(request));
        connection.stream()?;
        connection.chunk(&speech.begin())?;
        self.note(place, AnswerProgress::Began);
        for part in parts {
            match part {
                Part::Think(text) => connection.chunk(&speech.think(text))?,
                Part::Say(text) => {
                    for delta in words(text) {
                        connection.chunk(&speech.text(delta))?;
                    }
                }
                Part::Slowly { text, pause } => {
                    for delta in words(text) {
                        connection.chunk(&speech.text(delta))?;
                        self.wait(connection, Some(*pause), |_| false)?;
                    }
                }
                Part::Until(word) => self.wait(connection, None, |told| told.open.contains(word))?,
                Part::Call(call) => connection.chunk(&speech.call(&protocol.call(request, call)))?,
            }
        }
        connection.chunk(&speech.end())?;
        // Recorded before the last chunk, so that it precedes all effects of the answer.
        self.note(place, AnswerProgress::Ended);
        connection.end()
    }

    /// The tokens of a request, if the model is exact.
    fn usage(&self, request: &Request) -> Option<CacheUsage> {
        let mut caches = lock(self.caches.as_ref()?);
        let named = request.body["model"].as_str().map(str::to_owned);
        let model = named.unwrap_or_else(|| gemini::model(request));
        let now = caches.1;
        Some(caches.0.serve(&model, &request.bytes, now))
    }

    fn go_wrong(&self, connection: &mut Connection, request: &Request, fault: &Fault) -> io::Result<()> {
        let protocol = self.api.protocol();
        let mut speech = protocol.speech(request, self.usage(request));
        let words = |speech: &mut Box<dyn Speech>| speech.begin() + &speech.text("Some ") + &speech.text("words. ");
        let call = Call::new("bash", serde_json::json!({ "command": "echo it is not complete" }));
        if *fault == Fault::Html {
            return connection.page("<html><body>Please sign in</body></html>");
        }
        connection.stream()?;
        match fault {
            Fault::Html => Ok(()),
            Fault::CutAfter(bytes) => {
                let whole = words(&mut speech) + &speech.end();
                connection.chunk(&whole[..whole.floor_char_boundary(*bytes)])
            }
            Fault::Stall => {
                connection.chunk(&words(&mut speech))?;
                self.wait(connection, None, |_| false)
            }
            Fault::PingOnly | Fault::PingsAfterWords => {
                if *fault == Fault::PingsAfterWords {
                    connection.chunk(&words(&mut speech))?;
                }
                while !self.told().stopped {
                    connection.chunk(protocol.ping())?;
                    self.wait(connection, Some(LOOK), |_| false)?;
                }
                Ok(())
            }
            Fault::ErrorInStream => {
                connection.chunk(&words(&mut speech))?;
                connection.chunk(&protocol.stream_failure())?;
                connection.end()
            }
            Fault::Drip(pause) => {
                let whole = words(&mut speech) + &speech.end();
                for at in 0..whole.len() {
                    connection.chunk(&whole[at..=at])?;
                    self.wait(connection, Some(*pause), |_| false)?;
                }
                connection.end()
            }
            Fault::HalfInput => {
                // The last three letters of the input are missing wherever it is sent.
                let whole = words(&mut speech) + &speech.call(&call) + &speech.end();
                connection.chunk(&whole.replace("not complete\\\"}", "not comp"))?;
                connection.end()
            }
            Fault::SameIds => {
                let call = Call { id: Some("call_same".to_owned()), ..call };
                let whole = words(&mut speech) + &speech.call(&call) + &speech.call(&call) + &speech.end();
                connection.chunk(&whole)?;
                connection.end()
            }
            Fault::Flood(bytes) => {
                connection.chunk(&speech.begin())?;
                let (piece, mut sent) = ("a".repeat(64 << 10), 0);
                while sent < *bytes {
                    connection.chunk(&speech.text(&piece))?;
                    sent += piece.len();
                }
                connection.chunk(&speech.end())?;
                connection.end()
            }
        }
    }

    /// Waits until a condition holds or the time has passed; an error if the agent hung up.
    fn wait(&self, connection: &Connection, limit: Option<Duration>, so: impl Fn(&ModelLog) -> bool) -> io::Result<()> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        let mut told = self.told();
        loop {
            let left = deadline.map_or(LOOK, |deadline| deadline.saturating_duration_since(Instant::now()).min(LOOK));
            if so(&told) || told.stopped || left.is_zero() {
                return Ok(());
            }
            told = self.changed.wait_timeout(told, left).unwrap_or_else(std::sync::PoisonError::into_inner).0;
            if connection.is_gone() {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The results of tools in the whole conversation, not only since the last prompt, because agents insert prompts of
/// their own.
fn results(heard: &[ConversationPart]) -> Vec<String> {
    let result = |heard: &ConversationPart| match heard {
        ConversationPart::Result(text) => Some(text.clone()),
        ConversationPart::Prompt(_) => None,
    };
    heard.iter().filter_map(result).collect()
}

/// The text of a JSON string, or the JSON of any other value.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Splits a text into pieces that end at word boundaries.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// An id unique in this process.
fn new_id(kind: &str) -> String {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    format!("{kind}_scripted{:08}", NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}
