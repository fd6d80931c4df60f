//! WebSockets. One task per client: frames out, a few words in.
//!
//! A client that does not take its frames in time is closed with 1013 and told where to resume;
//! one that sends too much with 1009, bad text with 1007, binary with 1003. Who may connect was
//! decided before the upgrade, as for every request.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, atomic::Ordering},
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{Instant, MissedTickBehavior, interval_at, timeout},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Message, Utf8Bytes,
        handshake::derive_accept_key,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

use crate::{
    api::streams::ids_of,
    app::App,
    board::Interest,
    body::Body,
    call::{Answer, Call},
    clients::StreamSlot,
    dialect::Dialect,
    error::ApiError,
    older::Older,
    tail::{Item, Resume, Tail},
    woken::Woken,
};

/// Messages written before one flush.
const BATCH: usize = 64;
/// Missed signs of life before a client counts as gone.
const SILENCE: u32 = 3;

/// Answers an upgrade and leaves the rest to a task.
pub(crate) fn answer(app: &App, call: &mut Call, interest: Interest, resume: Option<Resume>) -> Answer {
    let accept = handshake(&call.parts.headers)?;
    let upgrade = call.parts.extensions.remove::<OnUpgrade>().ok_or_else(not_an_upgrade)?;
    let slot = call.stream()?;
    let client = Client {
        app: Arc::clone(app),
        tail: Tail::new(app, interest, resume),
        dialect: Dialect::frames(),
        older: Vec::new(),
        resume_at: 0,
        out: Vec::new(),
        positions: Vec::new(),
        _slot: slot,
    };
    app.tally.websockets.fetch_add(1, Ordering::Relaxed);
    app.tasks.spawn(async move {
        match upgrade.await {
            Ok(upgraded) => client.run(upgraded).await,
            Err(cause) => tracing::debug!(%cause, "a WebSocket upgrade came to nothing"),
        }
    });
    let mut response = Response::new(Body::Whole(Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response)
}

fn handshake(headers: &HeaderMap) -> Result<HeaderValue, ApiError> {
    let has = |name: header::HeaderName, word: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|value| value.trim().eq_ignore_ascii_case(word))
    };
    if !has(header::CONNECTION, "upgrade") || !has(header::UPGRADE, "websocket") {
        return Err(not_an_upgrade());
    }
    if !has(header::SEC_WEBSOCKET_VERSION, "13") {
        return Err(ApiError::new(
            StatusCode::UPGRADE_REQUIRED,
            "websocket_version",
            "WebSocket version 13 is spoken here",
        )
        .header(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")));
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).ok_or_else(not_an_upgrade)?;
    HeaderValue::try_from(derive_accept_key(key.as_bytes())).map_err(|cause| ApiError::internal(&cause))
}

fn not_an_upgrade() -> ApiError {
    ApiError::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", "this route is a WebSocket")
        .header(header::UPGRADE, HeaderValue::from_static("websocket"))
}

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Why a conversation ends.
enum End {
    /// The client left, or the connection broke.
    Gone,
    /// We close, with a code and a reason.
    Close(CloseCode, String),
}

/// What happens beside the frames.
enum Aside {
    /// The server stops.
    Stop,
    /// The client said something, or went.
    Said(Option<Result<Message, tungstenite::Error>>),
    /// Time for a sign of life.
    Tick,
}

struct Client {
    app: App,
    tail: Tail,
    dialect: Dialect,
    /// Sessions asked for in older words.
    older: Vec<events::SessionId>,
    /// The last position sent.
    resume_at: u64,
    /// Room for messages on their way, and for the position a client that has it can resume from.
    out: Vec<Utf8Bytes>,
    positions: Vec<u64>,
    _slot: Option<StreamSlot>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.app.tally.websockets.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Client {
    async fn run(mut self, upgraded: Upgraded) {
        let config = WebSocketConfig::default()
            .read_buffer_size(4 << 10)
            .write_buffer_size(16 << 10)
            .max_message_size(Some(self.app.limits.message_bytes))
            .max_frame_size(Some(self.app.limits.message_bytes));
        let mut socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
        let end = self.converse(&mut socket).await;
        let _ = timeout(self.app.limits.shutdown, self.part(socket, end)).await;
    }

    async fn converse(&mut self, socket: &mut Socket) -> End {
        let app = Arc::clone(&self.app);
        let mut cancelled = pin!(app.cancel.cancelled());
        let every = app.limits.keepalive;
        let mut keepalive = interval_at(Instant::now() + every, every);
        keepalive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (woken, mut silent) = (Woken::new(), 0);
        loop {
            let aside = poll_fn(|cx| {
                woken.poll(cx, |cx| {
                    if cancelled.as_mut().poll(cx).is_ready() {
                        return Poll::Ready(Aside::Stop);
                    }
                    if let Poll::Ready(said) = socket.poll_next_unpin(cx) {
                        return Poll::Ready(Aside::Said(said));
                    }
                    keepalive.poll_tick(cx).map(|_| Aside::Tick)
                })
            });
            let step = tokio::select! {
                biased;
                aside = aside => match aside {
                    Aside::Stop => Err(End::Close(CloseCode::Away, "capture is stopping".into())),
                    Aside::Said(said) => {
                        silent = 0;
                        self.receive(socket, said).await
                    }
                    Aside::Tick => {
                        silent += 1;
                        if silent > SILENCE {
                            Err(End::Gone)
                        } else {
                            write(socket, app.limits.write, [Message::Ping(Bytes::new())], || ()).await
                        }
                    }
                },
                item = self.tail.next() => self.send(socket, item).await,
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    /// Closes: says why, ends our side and takes what the client still sends, so that the system
    /// does not throw away what we said last.
    async fn part(&self, mut socket: Socket, end: End) {
        let said = match end {
            End::Gone => socket.flush().await,
            End::Close(code, reason) => {
                let reason = if code == CloseCode::Again { self.where_to_resume(&reason) } else { reason };
                socket.close(Some(CloseFrame { code, reason: reason.into() })).await
            }
        };
        let mut io = socket.into_inner();
        let mut rest = [0; 1024];
        if said.is_ok() && io.shutdown().await.is_ok() {
            while io.read(&mut rest).await.is_ok_and(|n| n > 0) {}
        }
    }

    /// Sends an item and whatever else is ready.
    async fn send(&mut self, socket: &mut Socket, item: Result<Item, ApiError>) -> Result<(), End> {
        let unreadable = || End::Close(CloseCode::Error, "the log cannot be read".into());
        let mut item = item.map_err(|_| unreadable())?;
        let mut position = self.resume_at;
        loop {
            match &item {
                Item::Snapshot(snapshot) => position = snapshot.as_of,
                Item::Frame(frame) => position = position.max(frame.position.unwrap_or_default()),
                Item::TooSlow => return Err(too_slow()),
            }
            self.dialect.messages(&self.app, &item, &mut self.out).await.map_err(|_| unreadable())?;
            self.positions.resize(self.out.len(), position);
            if self.out.len() >= BATCH {
                break;
            }
            match self.tail.ready() {
                Some(next) => item = next,
                None => break,
            }
        }
        let messages = self.out.drain(..).map(Message::Text);
        let mut positions = self.positions.drain(..);
        let sent = || self.resume_at = positions.next().unwrap_or(self.resume_at);
        write(socket, self.app.limits.write, messages, sent).await
    }

    async fn receive(
        &mut self,
        socket: &mut Socket,
        message: Option<Result<Message, tungstenite::Error>>,
    ) -> Result<(), End> {
        match message {
            None => Err(End::Gone),
            Some(Err(error)) => Err(end_of(&error)),
            Some(Ok(Message::Text(text))) => {
                if let Err(error) = self.listen(&text).await {
                    let epoch = self.app.board.epoch().json();
                    let error = error.to_json();
                    // {"error":X} becomes {"type":"error","epoch":E,"data":X}
                    let data = error.strip_prefix("{\"error\":").and_then(|e| e.strip_suffix('}'));
                    let answer =
                        format!("{{\"type\":\"error\",\"epoch\":{epoch},\"data\":{}}}", data.unwrap_or("null"));
                    write(socket, self.app.limits.write, [Message::text(answer)], || ()).await?;
                }
                Ok(())
            }
            Some(Ok(Message::Binary(_))) => Err(End::Close(CloseCode::Unsupported, "text only".into())),
            Some(Ok(Message::Close(_))) => Err(End::Gone),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(()),
        }
    }

    /// Does what the client says.
    async fn listen(&mut self, text: &str) -> Result<(), ApiError> {
        #[derive(Deserialize)]
        struct Words {
            subscribe: Option<Vec<String>>,
            after: Option<u64>,
            epoch: Option<String>,
            #[serde(rename = "type")]
            name: Option<String>,
            #[serde(rename = "sessionId")]
            session: Option<String>,
        }
        let words: Words = serde_json::from_str(text).map_err(ApiError::body)?;
        if let Some(names) = words.subscribe {
            let ids = ids_of(&self.app, names.iter().map(String::as_str)).await?;
            let interest = if ids.is_empty() { Interest::All } else { Interest::Sessions(ids) };
            let resume = words.after.map(|after| Resume { after, epoch: words.epoch });
            self.dialect = Dialect::frames();
            self.older.clear();
            self.tail = Tail::new(&self.app, interest, resume);
            return Ok(());
        }
        match (words.name.as_deref(), words.session) {
            (Some("subscribe-stream"), Some(session)) => {
                let ids = ids_of(&self.app, std::iter::once(session.as_str())).await?;
                self.older.extend(ids.into_iter().filter(|id| !self.older.contains(id)).collect::<Vec<_>>());
                self.dialect = Dialect::Older(Older::of_sessions());
                self.tail = Tail::new(&self.app, Interest::Sessions(self.older.clone()), None);
                Ok(())
            }
            _ => Err(ApiError::body("say {\"subscribe\":[\"session-id\"]}")),
        }
    }

    /// Tells a client that is sent away as too slow where to go on. A reason has 123 bytes.
    fn where_to_resume(&self, reason: &str) -> String {
        let epoch = self.app.board.epoch().text();
        let full = format!("{reason}; resume with ?after={}&epoch={epoch}", self.resume_at);
        if full.len() <= 123 { full } else { reason.to_owned() }
    }
}

/// Writes messages and flushes once; `sent` is called for each that is on its way. A client that
/// takes nothing for `patience` is too slow.
async fn write(
    socket: &mut Socket,
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
    // A client that keeps up costs no timer.
    let written = match poll_fn(|cx| Poll::Ready(writing.as_mut().poll(cx))).await {
        Poll::Ready(written) => written,
        Poll::Pending => timeout(patience, writing).await.map_err(|_| too_slow())?,
    };
    written.map_err(|error| end_of(&error))
}

fn too_slow() -> End {
    End::Close(CloseCode::Again, "too slow".into())
}

fn end_of(error: &tungstenite::Error) -> End {
    #[expect(clippy::wildcard_enum_match_arm, reason = "not our enum, and it grows")]
    match error {
        tungstenite::Error::Capacity(_) => End::Close(CloseCode::Size, "the message is too long".into()),
        tungstenite::Error::Utf8(_) => End::Close(CloseCode::Invalid, "the text is not UTF-8".into()),
        tungstenite::Error::Protocol(_) => End::Close(CloseCode::Protocol, "not spoken as agreed".into()),
        _ => End::Gone,
    }
}
