//! Listens on the TCP port and the Unix socket, serves their connections, and shuts them down.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::response::IntoResponse;
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use live_view::{LiveView, Peer};
use store::Reader;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, UnixStream},
    sync::Semaphore,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use crate::{
    Config, Exposure, Health,
    address::url_of,
    app::{App, Parts},
    clients::{Clients, TransportKind},
    connection::{Connection, Transport},
    error::ApiError,
    header_timer::HeaderTimer,
    peer::{Client, TcpUser},
    router::router,
    unix::{self, Socket, SocketError},
};

/// Minimum header buffer size that hyper accepts, bytes.
const MIN_HEADER_BYTES: usize = 8 << 10;
/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 100;
/// Maximum number of connections of our own user over the limit that get an error response at the same time; all others
/// are closed without a response.
const REFUSALS: usize = 32;
/// Pause after the system refused to accept a connection (out of file descriptors).
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Why the server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address can be reached from other machines, and the user did not ask for that.
    #[error("{address} is not a loopback address; pass --expose to let other machines connect")]
    Exposed {
        /// The address.
        address: SocketAddr,
    },
    /// The port cannot be opened.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The Unix socket cannot be opened.
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// A running server. It runs until its token is cancelled.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    socket: Option<PathBuf>,
    tasks: tokio_util::task::TaskTracker,
    roots: Vec<(&'static str, tokio::task::JoinHandle<()>)>,
}

impl Serving {
    /// The TCP address on which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL `http://ADDRESS`.
    #[must_use]
    pub fn url(&self) -> String {
        url_of(self.address)
    }

    /// The Unix socket on which the server listens.
    #[must_use]
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Returns the tasks that end only when the token is cancelled, with their names, for supervision.
    pub fn root_tasks(&mut self) -> Vec<(&'static str, tokio::task::JoinHandle<()>)> {
        std::mem::take(&mut self.roots)
    }

    /// After the token was cancelled, waits until all tasks have ended.
    pub async fn stopped(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Starts to serve. Everything it starts ends when the token is cancelled.
///
/// # Errors
/// If the address is not allowed, or the port or socket cannot be opened.
pub async fn serve(
    config: Config,
    live_view: LiveView,
    reader: Reader,
    health: Health,
    cancel: CancellationToken,
) -> Result<Serving, ServeError> {
    let (listen, exposure, limits) = (config.listen, config.exposure, config.limits);
    match exposure {
        Exposure::Loopback if !listen.ip().is_loopback() => {
            return Err(ServeError::Exposed { address: listen });
        }
        Exposure::Loopback | Exposure::Network => {}
    }
    let failed = |source| ServeError::Bind { address: listen, source };
    let tcp = TcpListener::bind(listen).await.map_err(failed)?;
    let address = tcp.local_addr().map_err(failed)?;
    let unix = config.socket.as_deref().map(Socket::open).transpose()?;
    let socket = unix.as_ref().map(|unix| unix.path().to_owned());

    let app = Parts::new(live_view, reader, health, &config, address, cancel);
    let entrance = Acceptor {
        address,
        router: router(&app),
        clients: Clients::new(limits.clients),
        tcp_user: config.tcp_user,
        refusals: Arc::new(Semaphore::new(REFUSALS)),
        app: Arc::clone(&app),
    };
    let mut roots = vec![
        ("streams", app.tasks.spawn(app.live_view.clone().relay_frames(app.cancel.clone()))),
        ("tcp", app.tasks.spawn(entrance.clone().tcp(tcp))),
    ];
    if let Some(unix) = unix {
        roots.push(("unix", app.tasks.spawn(entrance.unix(unix))));
    }
    Ok(Serving { address, socket, tasks: app.tasks.clone(), roots })
}

#[derive(Clone)]
struct Acceptor {
    address: SocketAddr,
    clients: Arc<Clients>,
    tcp_user: Option<TcpUser>,
    refusals: Arc<Semaphore>,
    app: App,
    router: axum::Router,
}

impl Acceptor {
    async fn tcp(self, listener: TcpListener) {
        loop {
            let accepted = tokio::select! {
                () = self.app.cancel.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, from)) => {
                    prepare(&stream, self.app.limits.write);
                    let to = stream.local_addr().unwrap_or(self.address);
                    let client = Client::of_tcp(from, to, unix::own_uid(), self.tcp_user.as_ref());
                    self.admit(stream, Transport::Tcp(from, to, client));
                }
                Err(cause) => self.rest(&cause).await,
            }
        }
    }

    async fn unix(self, socket: Socket) {
        loop {
            let accepted = tokio::select! {
                () = self.app.cancel.cancelled() => return,
                accepted = socket.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => match peer(&stream) {
                    Ok(peer) if may_enter(peer, unix::own_uid()) => self.admit(stream, Transport::Unix(peer)),
                    Ok(peer) => tracing::warn!(
                        uid = peer.uid,
                        "refused a connection from another user on the Unix \
                        socket"
                    ),
                    Err(cause) => {
                        tracing::warn!(%cause, "refused a connection without peer credentials on the Unix socket")
                    }
                },
                Err(cause) => self.rest(&cause).await,
            }
        }
    }

    /// Serves a connection, or refuses it if its client has too many.
    fn admit<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(&self, io: I, transport: Transport) {
        let app = Arc::clone(&self.app);
        let client = transport.client();
        let (kind, read) = match transport {
            Transport::Unix(_) => (TransportKind::Unix, app.limits.read),
            Transport::Tcp(..) if client == Client::Own => (TransportKind::Tcp, app.limits.read),
            Transport::Tcp(..) => (TransportKind::Tcp, app.limits.read.min(app.limits.clients.others_read)),
        };
        if let Some(admission) = self.clients.admit(client, kind) {
            let from = Arc::new(Connection { transport, admission: Some(Arc::new(admission)) });
            let router = self.router.clone();
            self.app.tasks.spawn(async move {
                app.tally.connections.inc();
                serve_connection(io, &router, from, &app, read).await;
                app.tally.connections.dec();
            });
            return;
        }
        app.tally.connections_refused.inc();
        if client != Client::Own {
            return;
        }
        if let Ok(permit) = Arc::clone(&self.refusals).try_acquire_owned() {
            self.app.tasks.spawn(async move {
                let full = service_fn(|_| async {
                    Ok::<_, Infallible>(ApiError::unavailable("too many connections").into_response())
                });
                let mut http = http1::Builder::new();
                http.keep_alive(false);
                let telling = http.serve_connection(TokioIo::new(io), full);
                tokio::select! {
                    () = app.cancel.cancelled() => {}
                    _ = timeout(app.limits.read, telling) => {}
                }
                drop(permit);
            });
        }
    }

    async fn rest(&self, cause: &io::Error) {
        tracing::warn!(%cause, "cannot accept a connection");
        tokio::select! {
            () = self.app.cancel.cancelled() => {}
            () = sleep(ACCEPT_REST) => {}
        }
    }
}

/// Serves one connection until it ends; at shutdown, until its current request is answered.
async fn serve_connection<I>(io: I, router: &axum::Router, from: Arc<Connection>, app: &App, read: Duration)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request: Request<Incoming>| {
        let mut request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(Arc::clone(&from));
        router.clone().call(request)
    });
    let mut http = http1::Builder::new();
    http.timer(HeaderTimer::default())
        .header_read_timeout(read)
        .max_buf_size(app.limits.header_bytes.max(MIN_HEADER_BYTES))
        .max_headers(MAX_HEADERS);
    let mut connection = pin!(http.serve_connection(TokioIo::new(io), service).with_upgrades());
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = app.cancel.cancelled() => {
            connection.as_mut().graceful_shutdown();
            match timeout(app.limits.shutdown, connection).await {
                Ok(ended) => ended,
                Err(_) => return,
            }
        }
    };
    if let Err(cause) = ended {
        tracing::debug!(%cause, "a connection failed");
    }
}

/// Sends small responses immediately, and lets the kernel disconnect a client that does not read.
fn prepare(stream: &TcpStream, patience: Duration) {
    let patience_ms = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
    let done = stream.set_nodelay(true).and_then(|()| crate::os::limit_unacknowledged(stream, patience_ms));
    if let Err(cause) = done {
        tracing::debug!(%cause, "cannot set a socket option");
    }
}

fn peer(stream: &UnixStream) -> io::Result<Peer> {
    let credentials = stream.peer_cred()?;
    Ok(Peer { uid: credentials.uid(), pid: credentials.pid() })
}

/// Accepts only our own user's connections, whatever the permissions of the directory and socket.
fn may_enter(peer: Peer, own_uid: u32) -> bool {
    peer.uid == own_uid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_of_another_user_is_refused() {
        assert!(may_enter(Peer { uid: 1000, pid: None }, 1000));
        assert!(!may_enter(Peer { uid: 1001, pid: Some(1) }, 1000));
        assert!(!may_enter(Peer { uid: 0, pid: Some(1) }, 1000));
    }
}
