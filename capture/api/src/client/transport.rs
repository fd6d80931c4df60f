//! Sends requests to the server with ureq: over the server's Unix socket, or over TCP if requested.
//!
//! Before any byte of a request is sent, above all the token, every connection proves which process it reached: the
//! kernel names the process that listens on a Unix socket, and `/proc` the process that listens on a TCP port.

use std::{
    fmt,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::Mutex,
    time::Duration,
};

use processes::listener_of_tcp;
use ureq::{
    Error, Timeout,
    config::Config,
    http::Uri,
    unversioned::{
        resolver::{ResolvedSocketAddrs, Resolver},
        transport::{Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport},
    },
};

/// Time limit for the server to accept a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// The address of a server, and the process it must be.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub(super) address: Address,
    /// The server's process, whose start time was already compared.
    pub(super) pid: u32,
}

/// The two kinds of addresses.
#[derive(Debug, Clone)]
pub(super) enum Address {
    /// The server's Unix socket.
    Unix(PathBuf),
    /// The server's TCP port on this machine.
    Tcp(SocketAddr),
}

impl Route {
    /// Opens a connection to the verified process.
    ///
    /// # Errors
    /// If no process listens there, or the wrong process or user does.
    pub(super) fn open(&self) -> io::Result<Stream> {
        match &self.address {
            Address::Unix(path) => {
                let (stream, listener) = processes::local_socket::connect(path, CONNECT_WITHIN)?;
                if listener.pid != self.pid {
                    return Err(not_the_server(&path.display(), listener.pid, self.pid));
                }
                Ok(Stream::Unix(stream))
            }
            Address::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, CONNECT_WITHIN)?;
                // Checked after connecting: the process that owns the port now also owns the other end of the
                // connection.
                if !listener_of_tcp(*address, self.pid) {
                    return Err(not_the_server(address, 0, self.pid));
                }
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }
}

fn not_the_server(place: &dyn fmt::Display, found: u32, wanted: u32) -> io::Error {
    let found = if found == 0 { "another process".to_owned() } else { format!("process {found}") };
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{found} listens on {place} instead of the server (process {wanted}); nothing was sent to it"),
    )
}

/// A connection.
#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn set_timeout(&self, direction: Direction, within: Option<Duration>) -> io::Result<()> {
        match (self, direction) {
            (Self::Unix(stream), Direction::Read) => stream.set_read_timeout(within),
            (Self::Unix(stream), Direction::Write) => stream.set_write_timeout(within),
            (Self::Tcp(stream), Direction::Read) => stream.set_read_timeout(within),
            (Self::Tcp(stream), Direction::Write) => stream.set_write_timeout(within),
        }
    }

    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_nonblocking(on),
            Self::Tcp(stream) => stream.set_nonblocking(on),
        }
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => (&mut &*stream).read(buffer),
            Self::Tcp(stream) => (&mut &*stream).read(buffer),
        }
    }

    fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(stream) => (&mut &*stream).write_all(bytes),
            Self::Tcp(stream) => (&mut &*stream).write_all(bytes),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Read,
    Write,
}

/// Opens ureq's connections to a route.
pub(super) struct RouteConnector {
    route: Route,
    /// The connection used to find the server, reused for the first request.
    first: Mutex<Option<Stream>>,
}

impl RouteConnector {
    pub(super) fn new(route: Route, first: Stream) -> Self {
        Self { route, first: Mutex::new(Some(first)) }
    }
}

impl fmt::Debug for RouteConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.route.fmt(f)
    }
}

impl Connector<()> for RouteConnector {
    type Out = StreamTransport;

    fn connect(&self, details: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<Self::Out>, Error> {
        let first = self.first.lock().map_or(None, |mut first| first.take());
        let stream = match first {
            Some(stream) => stream,
            None => self.route.open()?,
        };
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(StreamTransport { stream, buffers, set: [None, None] }))
    }
}

/// One connection as ureq uses it.
pub(super) struct StreamTransport {
    stream: Stream,
    buffers: LazyBuffers,
    /// The socket's current timeouts for reading and writing.
    set: [Option<Duration>; 2],
}

impl fmt::Debug for StreamTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stream.fmt(f)
    }
}

impl StreamTransport {
    /// Sets the time limit of the next call; makes a system call only if the limit changes.
    fn bound(&mut self, direction: Direction, timeout: NextTimeout) -> Result<(), Error> {
        let within = timeout.not_zero().map(|within| *within);
        let set = &mut self.set[direction as usize];
        if *set != within {
            self.stream.set_timeout(direction, within)?;
            *set = within;
        }
        Ok(())
    }
}

fn timed_out(error: io::Error, reason: Timeout) -> Error {
    let late = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
    if late { Error::Timeout(reason) } else { error.into() }
}

impl Transport for StreamTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let timeout = timeout.for_write();
        self.bound(Direction::Write, timeout)?;
        let output = &self.buffers.output()[..amount];
        match self.stream.write_all(output) {
            // The server refused the request before reading the whole body; its response contains the reason.
            Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => Ok(()),
            written => written.map_err(|error| timed_out(error, timeout.reason)),
        }
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let timeout = timeout.for_read();
        self.bound(Direction::Read, timeout)?;
        let input = self.buffers.input_append_buf();
        let amount = loop {
            match self.stream.read(input) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(|error| timed_out(error, timeout.reason))?,
            }
        };
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    /// An idle connection is open if reading from it would block.
    fn is_open(&mut self) -> bool {
        if self.stream.set_nonblocking(true).is_err() {
            return false;
        }
        let waits = matches!(self.stream.read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        self.stream.set_nonblocking(false).is_ok() && waits
    }
}

/// Resolves no names, because the route contains the address.
#[derive(Debug)]
pub(super) struct NoResolver;

impl Resolver for NoResolver {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let mut addresses = self.empty();
        addresses.push((Ipv4Addr::LOCALHOST, 0).into());
        Ok(addresses)
    }
}
