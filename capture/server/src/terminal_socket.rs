//! The terminal of a run, for a remote view: sends rows of coloured text as they change, and types the view's input.
//!
//! The server asks the run's host for the changes since the last answer, so that a slow view gets fewer and larger
//! changes and none of them are queued. Viewing changes nothing: a view can type only with the scope `control`, and can
//! resize the terminal only while it has the lease, which one view of a run can have at a time.

use std::{pin::pin, sync::Arc, time::Duration};

use api::runs::{GridUpdate, Input, Scrollback, Size};
use axum::{
    body::Bytes,
    extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code},
    response::Response,
};
use devices::SignedIn;
use events::RunId;
use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use http::HeaderMap;
use live_view::{Refusal, RunTarget, locks::lock};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};

use crate::{app::App, call::StreamHold, connection::Connection, error::ApiError, leases::Lease};

/// Minimum time between two updates: at most 30 per second.
const FRAME: Duration = Duration::from_millis(33);
/// How long the host waits for a change before it answers that there was none, ms.
const WAIT_MS: u32 = 2_500;
/// Maximum number of scrollback lines in an answer.
const SCROLLBACK: u32 = 1_000;
/// Number of unanswered keepalive messages after which a view counts as gone.
const SILENCE: u32 = 3;

/// The run of a view, and the view's client.
pub(crate) struct TerminalView {
    pub(crate) app: App,
    pub(crate) run: RunId,
    pub(crate) target: RunTarget,
    pub(crate) device: Option<SignedIn>,
    pub(crate) headers: HeaderMap,
    pub(crate) connection: Arc<Connection>,
    pub(crate) hold: StreamHold,
}

/// A message to the view.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ToView<'a> {
    Grid(&'a GridUpdate),
    Scrollback(&'a Scrollback),
    Done,
    Refused { code: &'a str, message: &'a str },
    Lease { held: bool, by: Option<&'a str> },
    Closed { why: &'a str },
}

/// A message from the view.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum FromView {
    /// Types a text unchanged.
    Input {
        text: String,
        /// Whether to type even if a dialog is open.
        #[serde(default)]
        force: bool,
    },
    /// Presses keys.
    Keys { keys: Vec<String> },
    /// Pastes a text without pressing Enter.
    Paste {
        text: String,
        #[serde(default)]
        force: bool,
    },
    /// Requests lines that scrolled off.
    Scrollback { before: u64, count: u32 },
    /// Acquires the lease or, with `false`, releases it.
    Lease {
        #[serde(default = "yes")]
        take: bool,
    },
    /// Resizes the terminal; needs the lease.
    Resize { cols: u16, rows: u16 },
}

const fn yes() -> bool {
    true
}

/// Answers an upgrade and starts a task for the view.
pub(crate) fn answer(view: TerminalView, upgrade: WebSocketUpgrade) -> Response {
    let app = Arc::clone(&view.app);
    app.tally.websockets.inc();
    let tasks = app.tasks.clone();
    upgrade
        .max_message_size(app.limits.message_bytes)
        .max_frame_size(app.limits.message_bytes)
        .on_failed_upgrade(|cause| tracing::debug!(%cause, "cannot upgrade a connection to a WebSocket"))
        .on_upgrade(move |socket| {
            let app = Arc::clone(&view.app);
            tasks.track_future(async move { app.attend(OpenView::new(view).run(socket)).await })
        })
}

struct OpenView {
    view: TerminalView,
    number: u64,
    /// Whether the view may act; `None` until this is looked up.
    may_act: Option<Result<(), ApiError>>,
}

impl Drop for OpenView {
    fn drop(&mut self) {
        self.view.app.tally.websockets.dec();
    }
}

/// Why a view ends.
enum ViewEnd {
    /// The client left, or the connection broke.
    Gone,
    /// The server closes, with a code and a reason.
    Close(u16, String),
}

/// The pending request to the host.
type Pending = BoxFuture<'static, Result<GridUpdate, Refusal>>;

impl OpenView {
    fn new(view: TerminalView) -> Self {
        let mut leases = lock(&view.app.leases);
        leases.views += 1;
        let number = leases.views;
        drop(leases);
        Self { view, number, may_act: None }
    }

    async fn run(mut self, mut socket: WebSocket) {
        let end = self.converse(&mut socket).await;
        if self.give_back() {
            // The terminal returns to the size of the controlling terminal; the answer does not matter.
            self.view.app.control.resize(self.view.target.clone(), None).await.ok();
        }
        if let ViewEnd::Close(code, why) = end {
            let closing = async {
                send(&mut socket, &ToView::Closed { why: &why }, self.view.app.limits.write).await.ok();
                // A close reason may have at most 123 bytes.
                let reason = why.get(..123).unwrap_or(&why).to_owned();
                socket.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await.ok();
                while let Some(Ok(_)) = socket.next().await {}
            };
            let _ = timeout(self.view.app.limits.shutdown, closing).await;
        }
    }

    async fn converse(&mut self, socket: &mut WebSocket) -> ViewEnd {
        let app = Arc::clone(&self.view.app);
        let every = app.limits.keepalive;
        let mut keepalive = interval_at(Instant::now() + every, every);
        keepalive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut revoked = pin!(self.view.hold.revoked());
        let (mut rev, mut silent, mut next_at) = (0, 0, Instant::now());
        let mut pending: Pending = self.ask(rev, next_at);
        loop {
            let step = tokio::select! {
                () = &mut revoked => return ViewEnd::Close(close_code::POLICY, "the device was revoked".into()),
                () = app.cancel.cancelled() => return ViewEnd::Close(close_code::AWAY, "the server is stopping".into()),
                update = &mut pending => match update {
                    Ok(update) => {
                        let is_news = update.rev != rev;
                        rev = update.rev;
                        let sent = if is_news { self.send(socket, &ToView::Grid(&update)).await } else { Ok(()) };
                        next_at = (next_at + FRAME).max(Instant::now());
                        pending = self.ask(rev, next_at);
                        sent
                    }
                    Err(refusal) => Err(ViewEnd::Close(close_code::NORMAL, ApiError::from(refusal).into_message())),
                },
                message = socket.next() => {
                    silent = 0;
                    match message {
                        Some(Ok(Message::Text(_))) if self.view.hold.is_revoked() => Ok(()),
                        Some(Ok(Message::Text(text))) => self.receive(socket, &text).await,
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
                        Some(Ok(Message::Binary(_))) => {
                            Err(ViewEnd::Close(close_code::UNSUPPORTED, "only text messages are accepted".into()))
                        }
                        Some(Ok(Message::Close(_)) | Err(_)) | None => Err(ViewEnd::Gone),
                    }
                }
                _ = keepalive.tick() => {
                    silent += 1;
                    if silent > SILENCE { Err(ViewEnd::Gone) } else { ping(socket, app.limits.write).await }
                }
            };
            if let Err(end) = step {
                return end;
            }
            if self.view.hold.is_revoked() {
                return ViewEnd::Close(close_code::POLICY, "the device was revoked".into());
            }
        }
    }

    /// Requests the changes since a revision from the host, not before a time.
    fn ask(&self, rev: u64, not_before: Instant) -> Pending {
        let (app, target) = (Arc::clone(&self.view.app), self.view.target.clone());
        async move {
            sleep_until(not_before).await;
            app.control.grid(target, rev, WAIT_MS).await
        }
        .boxed()
    }

    async fn receive(&mut self, socket: &mut WebSocket, text: &str) -> Result<(), ViewEnd> {
        let done = match serde_json::from_str::<FromView>(text) {
            Ok(FromView::Scrollback { before, count }) => {
                let app = &self.view.app;
                let lines = app.ask(app.control.scrollback(self.view.target.clone(), before, count.min(SCROLLBACK)));
                match lines.await {
                    Ok(lines) => return self.send(socket, &ToView::Scrollback(&lines)).await,
                    Err(error) => Err(error),
                }
            }
            Ok(FromView::Lease { take }) => {
                let changed = if take {
                    self.may_act().map(|()| self.take())
                } else {
                    self.let_go().await;
                    Ok(())
                };
                match changed {
                    Ok(()) => return self.send_lease(socket).await,
                    Err(error) => Err(error),
                }
            }
            Ok(FromView::Resize { cols, rows }) => self.resize(cols, rows).await,
            Ok(FromView::Input { text, force }) => self.type_characters(text, force).await,
            Ok(FromView::Paste { text, force }) => {
                self.type_characters(text.trim_end_matches(['\n', '\r']).to_owned(), force).await
            }
            Ok(FromView::Keys { keys }) => self.press(keys).await,
            Err(error) => Err(ApiError::body(api::body::fault(&error))),
        };
        match done {
            Ok(()) => self.send(socket, &ToView::Done).await,
            Err(error) => {
                let code = error.code.as_str();
                self.send(socket, &ToView::Refused { code, message: &error.into_message() }).await
            }
        }
    }

    /// Whether the view may act. Checked on the first attempt, because finding the peer's process is slow.
    fn may_act(&mut self) -> Result<(), ApiError> {
        let TerminalView { app, device, headers, connection, .. } = &self.view;
        let look = || app.gate.check_control(device.as_ref(), headers, &connection.transport);
        self.may_act.get_or_insert_with(look).clone()
    }

    /// Types the input of the view's user.
    async fn type_characters(&mut self, text: String, force: bool) -> Result<(), ApiError> {
        self.may_act()?;
        let app = &self.view.app;
        app.ask(app.control.type_characters(self.view.target.clone(), text, force)).await
    }

    async fn press(&mut self, keys: Vec<String>) -> Result<(), ApiError> {
        self.may_act()?;
        let input = Input { keys: Some(keys), ..Input::default() };
        self.view.app.send_input(self.view.target.clone(), input).await.map(drop)
    }

    async fn resize(&mut self, cols: u16, rows: u16) -> Result<(), ApiError> {
        self.may_act()?;
        if !self.has_lease() {
            return Err(ApiError::new(api::ErrorCode::Conflict, "take the lease before you resize the terminal"));
        }
        let app = &self.view.app;
        let size = Size { rows, columns: cols };
        app.ask(app.control.resize(self.view.target.clone(), Some(size))).await
    }

    fn has_lease(&self) -> bool {
        lock(&self.view.app.leases).held.get(&self.view.run).is_some_and(|lease| lease.view == self.number)
    }

    /// Acquires the lease unless another view has it.
    fn take(&self) {
        let by = self.view.device.as_ref().map_or_else(|| "a token".to_owned(), |device| device.device.name.clone());
        let view = self.number;
        lock(&self.view.app.leases).held.entry(self.view.run).or_insert(Lease { view, by });
    }

    /// Releases the lease; returns whether the view had it.
    fn give_back(&self) -> bool {
        let had = self.has_lease();
        if had {
            lock(&self.view.app.leases).held.remove(&self.view.run);
        }
        had
    }

    async fn let_go(&self) {
        if self.give_back() {
            let app = &self.view.app;
            app.ask(app.control.resize(self.view.target.clone(), None)).await.ok();
        }
    }

    async fn send_lease(&self, socket: &mut WebSocket) -> Result<(), ViewEnd> {
        let (held, by) = {
            let leases = lock(&self.view.app.leases);
            let lease = leases.held.get(&self.view.run);
            (lease.is_some_and(|lease| lease.view == self.number), lease.map(|lease| lease.by.clone()))
        };
        self.send(socket, &ToView::Lease { held, by: by.as_deref() }).await
    }

    async fn send(&self, socket: &mut WebSocket, message: &ToView<'_>) -> Result<(), ViewEnd> {
        send(socket, message, self.view.app.limits.write).await
    }
}

/// Sends a message. A view that accepts nothing for `patience` is too slow.
async fn send(socket: &mut WebSocket, message: &ToView<'_>, patience: Duration) -> Result<(), ViewEnd> {
    let Ok(text) = serde_json::to_string(message) else { return Ok(()) };
    write(socket, Message::text(text), patience).await
}

async fn ping(socket: &mut WebSocket, patience: Duration) -> Result<(), ViewEnd> {
    write(socket, Message::Ping(Bytes::new()), patience).await
}

async fn write(socket: &mut WebSocket, message: Message, patience: Duration) -> Result<(), ViewEnd> {
    match timeout(patience, socket.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(ViewEnd::Gone),
        Err(_) => Err(ViewEnd::Close(close_code::AGAIN, "the client reads too slowly".into())),
    }
}
