//! The limits: the cost of each part in isolation.

use std::{
    borrow::Cow,
    fmt,
    fs::File,
    hint::black_box,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::ws::{Message as Frame, Utf8Bytes, WebSocketUpgrade},
    routing::any,
};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use tokio::{runtime::Runtime, sync::broadcast};

use crate::socket::Socket;

/// The result of reading everything once.
pub(crate) struct Reading {
    pub(crate) lines: u64,
    /// Lines that do not match the types.
    pub(crate) bad: u64,
    /// Text decoded, bytes.
    pub(crate) text: u64,
    pub(crate) time: Duration,
    /// CPU time of the thread, seconds.
    pub(crate) cpu: f64,
}

/// Reads all files on one thread, splits lines and decodes them, including all message text.
pub(crate) fn read_all(files: &[PathBuf]) -> Reading {
    let mut reading = Reading { lines: 0, bad: 0, text: 0, time: Duration::ZERO, cpu: 0.0 };
    let mut buffer = vec![0; 256 << 10];
    let (start, cpu) = (Instant::now(), thread_cpu());
    for path in files {
        let shape = path.components().find_map(|c| match c.as_os_str().to_str()? {
            ".claude" => Some(Shape::Claude),
            ".codex" => Some(Shape::Codex),
            ".gemini" => Some(Shape::Gemini),
            _ => None,
        });
        let (shape, whole) = (shape.unwrap(), path.extension().is_some_and(|e| e == "json"));
        let mut file = File::open(path).unwrap();
        let (mut have, mut searched) = (0, 0);
        loop {
            if have == buffer.len() {
                buffer.resize(have * 2, 0);
            }
            let n = file.read(&mut buffer[have..]).unwrap();
            have += n;
            if whole {
                if n == 0 {
                    reading.take(shape, &buffer[..have]);
                    break;
                }
                continue;
            }
            let mut from = 0;
            for end in memchr::memchr_iter(b'\n', &buffer[searched..have]) {
                let end = searched + end;
                reading.take(shape, &buffer[from..end]);
                from = end + 1;
            }
            if n == 0 {
                break;
            }
            buffer.copy_within(from..have, 0);
            have -= from;
            searched = have;
        }
    }
    reading.time = start.elapsed();
    reading.cpu = thread_cpu() - cpu;
    reading
}

fn thread_cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[derive(Clone, Copy)]
enum Shape {
    Claude,
    Codex,
    Gemini,
}

impl Reading {
    fn take(&mut self, shape: Shape, line: &[u8]) {
        let text = match shape {
            Shape::Claude => serde_json::from_slice::<ClaudeLine<'_>>(line)
                .map(|line| black_box(&line).message.as_ref().map_or(0, |m| m.content.length())),
            Shape::Codex => serde_json::from_slice::<CodexLine<'_>>(line).map(|line| black_box(&line).payload.length()),
            Shape::Gemini => serde_json::from_slice::<GeminiRecord<'_>>(line).map(|line| black_box(&line).length()),
        };
        self.lines += 1;
        match text {
            Ok(text) => self.text += text as u64,
            Err(_) => self.bad += 1,
        }
    }
}

/// Text borrowed from the line, copied only if it contains escapes.
#[derive(Default)]
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reads;
        impl<'de> Visitor<'de> for Reads {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Reads)
    }
}

/// Text, or blocks of text.
#[derive(Default)]
enum Content<'a> {
    #[default]
    Nothing,
    Text(Text<'a>),
    Blocks(Vec<Block<'a>>),
}

impl Content<'_> {
    fn length(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Text(text) => text.0.len(),
            Self::Blocks(blocks) => blocks.iter().map(Block::length).sum(),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reads;
        impl<'de> Visitor<'de> for Reads {
            type Value = Content<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or blocks")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Text(Cow::Borrowed(text))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Text(Cow::Owned(text.to_owned()))))
            }
            fn visit_unit<E>(self) -> Result<Content<'de>, E> {
                Ok(Content::Nothing)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content<'de>, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(Content::Blocks(blocks))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Content::Nothing)
            }
        }
        deserializer.deserialize_any(Reads)
    }
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    _kind: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow, rename = "id")]
    _id: Option<Text<'a>>,
    #[serde(borrow, rename = "name")]
    _name: Option<Text<'a>>,
    #[serde(borrow, rename = "input")]
    _input: Option<&'a RawValue>,
    #[serde(borrow, rename = "tool_use_id")]
    _call: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Content<'a>,
}

fn length(text: Option<&Text<'_>>) -> usize {
    text.map_or(0, |text| text.0.len())
}

impl Block<'_> {
    fn length(&self) -> usize {
        length(self.text.as_ref()) + length(self.thinking.as_ref()) + self.content.length()
    }
}

#[derive(Deserialize)]
struct ClaudeLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, rename = "uuid")]
    _uuid: Option<Text<'a>>,
    #[serde(borrow, rename = "parentUuid")]
    _parent: Option<Text<'a>>,
    #[serde(borrow, rename = "sessionId")]
    session: Option<Text<'a>>,
    #[serde(borrow, rename = "timestamp")]
    _timestamp: Option<Text<'a>>,
    #[serde(borrow, rename = "cwd")]
    _cwd: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, rename = "id")]
    _id: Option<Text<'a>>,
    #[serde(borrow, rename = "role")]
    _role: Option<Text<'a>>,
    #[serde(borrow, rename = "model")]
    _model: Option<Text<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Content<'a>,
    #[serde(rename = "usage")]
    _usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(rename = "input_tokens")]
    _input: Option<u64>,
    #[serde(rename = "output_tokens")]
    _output: Option<u64>,
    #[serde(rename = "cache_read_input_tokens", alias = "cached_input_tokens")]
    _cached: Option<u64>,
    #[serde(rename = "cache_creation_input_tokens")]
    _written: Option<u64>,
}

#[derive(Deserialize)]
struct CodexLine<'a> {
    #[serde(borrow, rename = "timestamp")]
    _timestamp: Option<Text<'a>>,
    #[serde(borrow, rename = "type")]
    _kind: Option<Text<'a>>,
    #[serde(borrow)]
    payload: CodexPayload<'a>,
}

#[derive(Deserialize)]
struct CodexPayload<'a> {
    #[serde(borrow, rename = "type")]
    _kind: Option<Text<'a>>,
    #[serde(borrow, rename = "role")]
    _role: Option<Text<'a>>,
    #[serde(borrow, rename = "id")]
    _id: Option<Text<'a>>,
    #[serde(borrow, rename = "cwd")]
    _cwd: Option<Text<'a>>,
    #[serde(borrow, rename = "turn_id")]
    _turn: Option<Text<'a>>,
    #[serde(borrow, rename = "call_id")]
    _call: Option<Text<'a>>,
    #[serde(borrow, rename = "name")]
    _name: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<Text<'a>>,
    #[serde(borrow)]
    last_agent_message: Option<Text<'a>>,
    #[serde(borrow, default)]
    input: Content<'a>,
    #[serde(borrow, default)]
    output: Content<'a>,
    #[serde(borrow, default)]
    content: Content<'a>,
    #[serde(borrow, default)]
    summary: Content<'a>,
    #[serde(borrow)]
    item: Option<Block<'a>>,
    #[serde(rename = "info")]
    _info: Option<CodexUsage>,
}

#[derive(Deserialize)]
struct CodexUsage {
    #[serde(rename = "last_token_usage")]
    _last: Option<Tokens>,
}

impl CodexPayload<'_> {
    fn length(&self) -> usize {
        let texts = [&self.text, &self.message, &self.arguments, &self.last_agent_message];
        let contents = [&self.input, &self.output, &self.content, &self.summary];
        texts.iter().map(|text| length(text.as_ref())).sum::<usize>()
            + contents.iter().map(|c| c.length()).sum::<usize>()
            + self.item.as_ref().map_or(0, Block::length)
    }
}

#[derive(Deserialize)]
struct GeminiRecord<'a> {
    #[serde(borrow, rename = "id")]
    _id: Option<Text<'a>>,
    #[serde(borrow, rename = "type")]
    _kind: Option<Text<'a>>,
    #[serde(borrow, rename = "timestamp")]
    _timestamp: Option<Text<'a>>,
    #[serde(borrow, rename = "sessionId")]
    _session: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Content<'a>,
    #[serde(borrow, default)]
    thoughts: Vec<GeminiThought<'a>>,
    #[serde(borrow, default, rename = "toolCalls")]
    calls: Vec<GeminiCall<'a>>,
    #[serde(borrow, default)]
    messages: Vec<GeminiRecord<'a>>,
    #[serde(borrow, rename = "$set")]
    set: Option<Box<GeminiRecord<'a>>>,
}

#[derive(Deserialize)]
struct GeminiThought<'a> {
    #[serde(borrow)]
    subject: Option<Text<'a>>,
    #[serde(borrow)]
    description: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct GeminiCall<'a> {
    #[serde(borrow, rename = "id")]
    _id: Option<Text<'a>>,
    #[serde(borrow, rename = "name")]
    _name: Option<Text<'a>>,
    #[serde(borrow, rename = "status")]
    _status: Option<Text<'a>>,
    #[serde(borrow, rename = "args")]
    _args: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Vec<GeminiPart<'a>>,
}

#[derive(Deserialize)]
struct GeminiPart<'a> {
    #[serde(borrow, rename = "functionResponse")]
    answer: Option<GeminiAnswer<'a>>,
}

#[derive(Deserialize)]
struct GeminiAnswer<'a> {
    #[serde(borrow)]
    response: Option<GeminiOutput<'a>>,
}

#[derive(Deserialize)]
struct GeminiOutput<'a> {
    #[serde(borrow)]
    output: Option<Text<'a>>,
}

impl GeminiRecord<'_> {
    fn length(&self) -> usize {
        let thoughts =
            self.thoughts.iter().map(|t| length(t.subject.as_ref()) + length(t.description.as_ref())).sum::<usize>();
        let outputs =
            self.calls.iter().flat_map(|call| &call.result).filter_map(|part| part.answer.as_ref()?.response.as_ref());
        let set = self.set.as_ref().map_or(0, |set| set.length());
        self.content.length()
            + thoughts
            + outputs.map(|o| length(o.output.as_ref())).sum::<usize>()
            + set
            + self.messages.iter().map(Self::length).sum::<usize>()
    }
}

/// The minimal live path: a hint, a read, a typed decode, a WebSocket.
pub(crate) struct Composed {
    address: String,
    _watcher: RecommendedWatcher,
    _runtime: Runtime,
}

impl Composed {
    /// Follows one file.
    pub(crate) fn follow(path: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (told, _) = broadcast::channel::<Utf8Bytes>(64);
        let sender = told.clone();
        let route = any(move |upgrade: WebSocketUpgrade| async move {
            let mut events = sender.subscribe();
            upgrade.on_upgrade(|mut socket| async move {
                while let Ok(event) = events.recv().await {
                    if socket.send(Frame::Text(event)).await.is_err() {
                        break;
                    }
                }
            })
        });
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        runtime.spawn(async move {
            let listener = axum::serve::ListenerExt::tap_io(listener, |stream| stream.set_nodelay(true).unwrap());
            axum::serve(listener, Router::new().route("/ws", route)).await
        });
        let (followed, mut offset, mut buffer) = (path.to_owned(), std::fs::metadata(path).unwrap().len(), Vec::new());
        let look = move |event: notify::Result<notify::Event>| {
            if !event.is_ok_and(|event| event.kind.is_modify() && event.paths.contains(&followed)) {
                return;
            }
            let mut file = File::open(&followed).unwrap();
            file.seek(SeekFrom::Start(offset)).unwrap();
            buffer.clear();
            offset += file.read_to_end(&mut buffer).unwrap() as u64;
            for line in buffer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let line: ClaudeLine<'_> = serde_json::from_slice(line).unwrap();
                let ended =
                    line.message.as_ref().is_some_and(|m| m.stop_reason.as_ref().is_some_and(|s| s.0 == "end_turn"));
                let (session, kind) = (line.session.unwrap_or_default().0, line.kind.unwrap_or_default().0);
                let state = if ended { "waiting" } else { "running" };
                told.send(format!("{{\"type\":\"status\",\"data\":{{\"id\":\"{session}\",\"kind\":\"{kind}\",\"status\":{{\"state\":\"{state}\"}}}}}}").into()).ok();
            }
        };
        let mut watcher = notify::recommended_watcher(look).unwrap();
        watcher.watch(path.parent().unwrap(), RecursiveMode::NonRecursive).unwrap();
        Self { address, _watcher: watcher, _runtime: runtime }
    }

    pub(crate) fn subscribe(&self) -> Socket {
        Socket::connect(&self.address, "-", "/ws")
    }
}
