//! WebSockets: one task per client sends frames and reads the client's few messages.
//!
//! A client that does not accept its frames in time is closed with 1013 and the position to resume from; one that sends
//! too much with 1009, invalid text with 1007, binary with 1003. Access was checked before the upgrade, as for every
//! request.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use api::steering::{SessionInputRequest, SessionInputTaken};
use axum::{
    body::Bytes,
    extract::ws::{CloseCode, CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code},
    response::Response,
};
use futures_util::{SinkExt, StreamExt, task::AtomicWaker};
use live_view::Interest;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_tungstenite::tungstenite;

use crate::{
    app::App,
    call::StreamHold,
    compat::CompatStream,
    error::ApiError,
    handlers::{steering, streams::batch},
    line_stream::{LineStream, PIECE_BYTES},
    lookup::{id_of, ids_of},
    stream_format::StreamFormat,
    tail::{Item, Resume, Tail},
};

/// Maximum number of messages written before a flush.
const BATCH: usize = 64;
/// Number of batches after which the client's messages, the keepalive and a server stop are checked even if more frames
/// are ready.
const BATCHES_IN_A_ROW: u32 = 16;
/// Number of keepalive intervals without an answer after which a client counts as gone.
const SILENCE: u32 = 3;
/// Maximum time between two `sent` lines of a line stream.
const SENT_EVERY: Duration = Duration::from_secs(5);

/// Answers an upgrade and starts a task for the connection.
pub(crate) fn answer(
    app: &App,
    upgrade: WebSocketUpgrade,
    tail: Tail,
    lines: Option<LineStream>,
    control: Result<(), ApiError>,
    hold: StreamHold,
) -> Response {
    let client = SocketClient {
        app: Arc::clone(app),
        tail: if lines.is_some() { tail.requests_first() } else { tail },
        lines,
        format: StreamFormat::frames(),
        compat_sessions: Vec::new(),
        control,
        resume_at: None,
        out: Vec::new(),
        positions: Vec::new(),
        hold,
    };
    app.tally.websockets.inc();
    let tasks = app.tasks.clone();
    upgrade
        .read_buffer_size(4 << 10)
        .write_buffer_size(16 << 10)
        .max_message_size(app.limits.message_bytes)
        .max_frame_size(app.limits.message_bytes)
        .on_failed_upgrade(|cause| tracing::debug!(%cause, "cannot upgrade a connection to a WebSocket"))
        .on_upgrade(move |socket| {
            let app = Arc::clone(&client.app);
            tasks.track_future(async move { app.attend(client.run(socket)).await })
        })
}

/// Why a conversation ends.
enum End {
    /// The client left, or the connection broke.
    Gone,
    /// The server closes, with a code and a reason.
    Close(CloseCode, String),
}

/// The events a connection waits for.
enum Event {
    /// An item to send.
    Item(Result<Item, ApiError>),
    /// The server is stopping.
    Stop,
    /// The client sent a message, or left.
    Message(Option<Result<Message, axum::Error>>),
    /// A keepalive message is due.
    Tick,
}

/// Whether anything besides frames has news. Polling the socket for each frame would cost as much as the frame.
#[derive(Debug)]
struct Aside {
    has_news: AtomicBool,
    task: AtomicWaker,
}

impl Default for Aside {
    fn default() -> Self {
        Self { has_news: AtomicBool::new(true), task: AtomicWaker::new() }
    }
}

impl Aside {
    /// Resets the flag and returns it; the task is woken on the next news.
    fn arrived(&self, cx: &Context<'_>) -> bool {
        self.task.register(cx.waker());
        self.has_news.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Aside {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_news.store(true, Ordering::Release);
        self.task.wake();
    }
}

struct SocketClient {
    app: App,
    tail: Tail,
    /// Sends several messages at once as lines of a compressed stream, if requested.
    lines: Option<LineStream>,
    format: StreamFormat,
    /// Sessions requested in the format of older clients.
    compat_sessions: Vec<events::SessionId>,
    /// Whether the client may send input to sessions, as determined at the upgrade.
    control: Result<(), ApiError>,
    /// The position up to which everything was sent; `None` before the first snapshot.
    resume_at: Option<u64>,
    /// Reusable buffers for messages being sent, and for the position from which a client with all of them can resume.
    out: Vec<Utf8Bytes>,
    positions: Vec<u64>,
    hold: StreamHold,
}

impl Drop for SocketClient {
    fn drop(&mut self) {
        self.app.tally.websockets.dec();
    }
}

impl SocketClient {
    async fn run(mut self, mut socket: WebSocket) {
        let end = self.converse(&mut socket).await;
        let _ = timeout(self.app.limits.shutdown, self.part(socket, end)).await;
    }

    async fn converse(&mut self, socket: &mut WebSocket) -> End {
        let app = Arc::clone(&self.app);
        let (mut cancelled, mut revoked) = (pin!(app.cancel.cancelled()), pin!(self.hold.revoked()));
        let every = if self.lines.is_some() { app.limits.keepalive.min(SENT_EVERY) } else { app.limits.keepalive };
        let mut keepalive = interval_at(Instant::now() + every, every);
        keepalive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ticks = app.limits.keepalive.as_millis().div_ceil(every.as_millis().max(1));
        let most_silent = SILENCE.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX));
        let (mut silent, mut in_a_row) = (0, 0);
        let news = Arc::new(Aside::default());
        let waker = Waker::from(Arc::clone(&news));
        loop {
            let event = {
                let mut item = pin!(self.tail.next());
                poll_fn(|cx| {
                    // Frames come first, with a regular turn for the rest.
                    if in_a_row < BATCHES_IN_A_ROW
                        && let Poll::Ready(item) = item.as_mut().poll(cx)
                    {
                        return Poll::Ready(Event::Item(item));
                    }
                    let aside = if news.arrived(cx) {
                        let cx = &mut Context::from_waker(&waker);
                        // The reason for the end is determined below.
                        let ends = cancelled.as_mut().poll(cx).is_ready() || revoked.as_mut().poll(cx).is_ready();
                        if ends {
                            Poll::Ready(Event::Stop)
                        } else if let Poll::Ready(message) = socket.poll_next_unpin(cx) {
                            Poll::Ready(Event::Message(message))
                        } else {
                            keepalive.poll_tick(cx).map(|_| Event::Tick)
                        }
                    } else {
                        Poll::Pending
                    };
                    match aside {
                        Poll::Pending if in_a_row >= BATCHES_IN_A_ROW => item.as_mut().poll(cx).map(Event::Item),
                        Poll::Pending => Poll::Pending,
                        Poll::Ready(event) => {
                            // There may be more.
                            news.wake_by_ref();
                            Poll::Ready(event)
                        }
                    }
                })
                .await
            };
            in_a_row = if matches!(event, Event::Item(_)) { (in_a_row + 1) % (BATCHES_IN_A_ROW + 1) } else { 0 };
            if self.hold.is_revoked() {
                return End::Close(close_code::POLICY, "the device was revoked".into());
            }
            let step = match event {
                Event::Item(item) => self.send(socket, item).await,
                Event::Stop => Err(End::Close(close_code::AWAY, "the server is stopping".into())),
                Event::Message(message) => {
                    silent = 0;
                    self.receive(socket, message).await
                }
                Event::Tick => {
                    silent += 1;
                    if silent > most_silent {
                        Err(End::Gone)
                    } else {
                        let ping = Message::Ping(Bytes::new());
                        let line = self.packed(std::iter::empty(), self.resume_at);
                        write(socket, app.limits.write, line.into_iter().chain([ping]), || ()).await
                    }
                }
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    /// Closes the connection with a reason, and reads what the client still sends until it has closed too, so that the
    /// system does not discard our last messages.
    async fn part(&self, mut socket: WebSocket, end: End) {
        let messages = match end {
            End::Gone => socket.flush().await,
            End::Close(code, reason) => {
                let reason = if code == close_code::AGAIN { self.where_to_resume(&reason) } else { reason };
                socket.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await
            }
        };
        if messages.is_ok() {
            while let Some(Ok(_)) = socket.next().await {}
        }
    }

    /// Sends an item and everything else that is ready.
    async fn send(&mut self, socket: &mut WebSocket, item: Result<Item, ApiError>) -> Result<(), End> {
        let unreadable = || End::Close(close_code::ERROR, "cannot read the event log".into());
        let mut item = item.map_err(|_| unreadable())?;
        let mut position = self.resume_at.unwrap_or_default();
        let mut bytes = 0;
        let all_sent = loop {
            match &item {
                Item::Snapshot(snapshot) => position = snapshot.as_of,
                Item::Frame(frame) => position = position.max(frame.position.unwrap_or_default()),
                Item::TooSlow => return Err(too_slow()),
            }
            let before = self.out.len();
            self.format.messages(&self.app, &item, &mut self.out).await.map_err(|_| unreadable())?;
            bytes += self.out.iter().skip(before).map(|message| message.len()).sum::<usize>();
            self.positions.resize(self.out.len(), position);
            let is_full = if self.lines.is_some() { bytes >= PIECE_BYTES } else { self.out.len() >= BATCH };
            if is_full {
                break self.tail.is_drained();
            }
            match self.tail.ready() {
                Some(next) => item = next,
                None => break self.tail.is_drained(),
            }
        };
        if self.lines.is_some() {
            let out = std::mem::take(&mut self.out);
            self.positions.clear();
            let message = self.packed(out.into_iter(), all_sent.then_some(position));
            write(socket, self.app.limits.write, message, || ()).await?;
            if all_sent {
                self.resume_at = Some(position);
            }
            return Ok(());
        }
        let messages = self.out.drain(..).map(Message::Text);
        let mut positions = self.positions.drain(..);
        let sent = || self.resume_at = positions.next().or(self.resume_at);
        write(socket, self.app.limits.write, messages, sent).await
    }

    async fn receive(
        &mut self,
        socket: &mut WebSocket,
        message: Option<Result<Message, axum::Error>>,
    ) -> Result<(), End> {
        match message {
            None => Err(End::Gone),
            Some(Err(error)) => Err(end_of(error)),
            Some(Ok(Message::Text(text))) => {
                let answer = match self.listen(&text).await {
                    Ok(None) => return Ok(()),
                    Ok(Some((kind, data))) => self.message(kind, &data),
                    Err(error) => self.message("error", &json_of(&error.body_of().error)),
                };
                let answer = match self.packed(std::iter::once(answer.as_str().into()), None) {
                    Some(line) => line,
                    None => Message::text(answer),
                };
                write(socket, self.app.limits.write, [answer], || ()).await
            }
            Some(Ok(Message::Binary(_))) => Err(End::Close(
                close_code::UNSUPPORTED,
                "only text messages are \
                accepted"
                    .into(),
            )),
            Some(Ok(Message::Close(_))) => Err(End::Gone),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
        }
    }

    /// Packs these lines into one message, if this is a line stream.
    fn packed(&mut self, lines: impl Iterator<Item = Utf8Bytes>, position: Option<u64>) -> Option<Message> {
        let (epoch, at) = (self.app.live_view.epoch(), self.app.now());
        self.lines.as_mut().and_then(|stream| stream.pack(lines, epoch, at, position).ok())
    }

    /// A message that is not a frame.
    fn message(&self, kind: &str, data: &str) -> String {
        let epoch = self.app.live_view.epoch().json();
        format!("{{\"type\":\"{kind}\",\"epoch\":{epoch},\"data\":{data}}}")
    }

    /// Carries out a message of the client; returns the kind and data of the answer.
    async fn listen(&mut self, text: &str) -> Result<Option<(&'static str, String)>, ApiError> {
        #[derive(Deserialize)]
        struct Words {
            /// Input for a session, as in `POST /api/v1/sessions/{id}/input`.
            input: Option<SessionInputRequest>,
            /// The session for the input, and an id that the answer repeats.
            session: Option<String>,
            id: Option<Box<RawValue>>,
            subscribe: Option<Vec<String>>,
            /// Sessions whose events are sent from now on, or from `after`, in addition to the states of all sessions.
            events: Option<Vec<String>>,
            after: Option<u64>,
            epoch: Option<String>,
            /// How long frames are collected from now on.
            batch_ms: Option<u64>,
            #[serde(rename = "type")]
            name: Option<String>,
            #[serde(rename = "sessionId")]
            compat_session: Option<String>,
        }
        let words: Words = serde_json::from_str(text).map_err(ApiError::body)?;
        if let Some(input) = words.input {
            let answer = self.input(words.session, input).await;
            let id = words.id.as_deref().map_or("null", RawValue::get);
            return Ok(Some(match answer {
                Ok(taken) => ("input", format!("{{\"id\":{id},\"answer\":{}}}", json_of(&taken))),
                Err(error) => ("input", format!("{{\"id\":{id},\"error\":{}}}", json_of(&error.body_of().error))),
            }));
        }
        let batch = words.batch_ms.map(|batch_ms| batch(Some(batch_ms))).transpose()?;
        if let Some(batch) = batch {
            self.tail.set_batch(batch);
        }
        if let Some(names) = words.events {
            let ids = ids_of(&self.app, names.iter().map(String::as_str)).await?;
            let resume = words.after.or(self.resume_at).map(|after| Resume { after, epoch: words.epoch });
            self.tail.turn_to(Interest::StatesAndEventsOf(ids), resume);
            return Ok(None);
        }
        if batch.is_some() && words.subscribe.is_none() {
            return Ok(None);
        }
        if let Some(names) = words.subscribe {
            let ids = ids_of(&self.app, names.iter().map(String::as_str)).await?;
            let subscribed = format!("{{\"sessions\":{}}}", json_of(&ids));
            let interest = if ids.is_empty() { Interest::All } else { Interest::Sessions(ids) };
            let resume = words.after.map(|after| Resume { after, epoch: words.epoch });
            self.format = StreamFormat::frames();
            self.compat_sessions.clear();
            self.tail = Tail::new(&self.app, interest, resume);
            return Ok(Some(("subscribed", subscribed)));
        }
        match (words.name.as_deref(), words.compat_session) {
            (Some("subscribe-stream"), Some(session)) => {
                let ids = ids_of(&self.app, std::iter::once(session.as_str())).await?;
                self.compat_sessions
                    .extend(ids.into_iter().filter(|id| !self.compat_sessions.contains(id)).collect::<Vec<_>>());
                self.format = StreamFormat::Compat(CompatStream::of_sessions());
                self.tail = Tail::new(&self.app, Interest::Sessions(self.compat_sessions.clone()), None);
                Ok(None)
            }
            _ => Err(ApiError::body(
                "expected {\"subscribe\":[\"session-id\"]}, {\"events\":[\"session-id\"]} or {\"input\":{...},\"session\":\"id\"}",
            )),
        }
    }

    /// Sends input to a session.
    async fn input(&self, session: Option<String>, input: SessionInputRequest) -> Result<SessionInputTaken, ApiError> {
        self.control.clone()?;
        let session = session.ok_or_else(|| ApiError::body("`session` is missing"))?;
        let session = id_of(&self.app, &session).await?;
        // Do not wait for a prompt here, because frames would wait too.
        let is_typed = input.action.is_none() && input.text.is_some();
        let input = SessionInputRequest { timeout_ms: is_typed.then_some(0), ..input };
        steering::apply(&self.app, session, input).await
    }

    /// The close reason for a client that is too slow, with the position to resume from. A reason may have at most 123
    /// bytes.
    fn where_to_resume(&self, reason: &str) -> String {
        let epoch = self.app.live_view.epoch().text();
        let Some(after) = self.resume_at else { return reason.to_owned() };
        let full = format!("{reason}; resume with ?after={after}&epoch={epoch}");
        if full.len() <= 123 { full } else { reason.to_owned() }
    }
}

fn json_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}

/// Writes messages and flushes once; `sent` is called for each message written. A client that accepts nothing for
/// `patience` is too slow.
async fn write(
    socket: &mut WebSocket,
    patience: Duration,
    messages: impl IntoIterator<Item = Message>,
    mut sent: impl FnMut(),
) -> Result<(), End> {
    let mut writing = pin!(async {
        for message in messages {
            socket.feed(message).await?;
            sent();
        }
        socket.flush().await
    });
    // A client that keeps up needs no timer.
    let written = match poll_fn(|cx| Poll::Ready(writing.as_mut().poll(cx))).await {
        Poll::Ready(written) => written,
        Poll::Pending => timeout(patience, writing).await.map_err(|_| too_slow())?,
    };
    written.map_err(end_of)
}

fn too_slow() -> End {
    End::Close(close_code::AGAIN, "the client reads too slowly".into())
}

fn end_of(error: axum::Error) -> End {
    let Ok(error) = error.into_inner().downcast::<tungstenite::Error>() else { return End::Gone };
    #[expect(clippy::wildcard_enum_match_arm, reason = "not our enum, and it grows")]
    match *error {
        tungstenite::Error::Capacity(_) => End::Close(close_code::SIZE, "the message is too long".into()),
        tungstenite::Error::Utf8(_) => End::Close(close_code::INVALID, "the text is not UTF-8".into()),
        tungstenite::Error::Protocol(_) => End::Close(close_code::PROTOCOL, "protocol error".into()),
        _ => End::Gone,
    }
}
