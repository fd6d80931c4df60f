//! `capture hook`: what an agent's hooks call. It must cost the agent nothing: no command line
//! parser, no configuration, no waiting for the server, and no word on any output, whatever goes
//! wrong. The delivery is in the spool before the server is told of it.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use adapters::{
    delivery::{Agent, Delivery, PAYLOAD_BYTES, Spool},
    process::{RUN_VARIABLE, nearest_agent},
};
use events::{Provider, RunId};
use rustix::{
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt},
    rand::{GetRandomFlags, getrandom},
};
use serde_json::value::RawValue;

use crate::{clock, places};

/// The server has so long to take the call, and so long to answer it.
const WITHIN: Duration = Duration::from_millis(80);

/// The word it is called by.
pub const VERB: &str = "hook";

/// Delivers what stands on standard input. Never fails, as far as the agent can see.
#[must_use]
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    // Nobody is there to be told: the agent must not notice, and the server tells of hooks that stay away.
    deliver(arguments).ok();
    ExitCode::SUCCESS
}

fn deliver(mut arguments: impl Iterator<Item = OsString>) -> anyhow::Result<()> {
    let provider: Provider = arguments
        .next()
        .and_then(|word| word.into_string().ok())
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| anyhow::anyhow!("no provider"))?;
    let mut data: Option<PathBuf> = None;
    while let Some(word) = arguments.next() {
        if word == "--data-dir" {
            data = arguments.next().map(PathBuf::from);
        }
    }
    let data = places::data_dir(data.as_deref())?;
    let mut payload = String::new();
    io::stdin().lock().take(PAYLOAD_BYTES).read_to_string(&mut payload)?;
    let payload = RawValue::from_string(payload)?;
    let at = clock::now();
    let mut random = [0_u8; 10];
    getrandom(&mut random, GetRandomFlags::empty())?;
    let agent = rustix::process::getppid()
        .and_then(|parent| nearest_agent(parent.as_raw_nonzero().get().unsigned_abs()))
        .map(|(pid, start_ticks, shared)| Agent { pid, start_ticks, shared });
    let run = places::variable(RUN_VARIABLE).and_then(|run| run.to_str()?.parse().ok());
    let delivery = Delivery { id: RunId::mint(at, random), provider, at, agent, run, payload };
    Spool::of(&data).put(&delivery)?;
    tell(&data, delivery.id)?;
    Ok(())
}

/// Tells the server that there is a delivery; it finds it by itself otherwise, a little later.
fn tell(data: &Path, id: RunId) -> io::Result<()> {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // A server that does not come to accepting must not hold up the agent.
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(WITHIN))?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(WITHIN))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(data.join("capture.sock"))?)?;
    let mut stream = UnixStream::from(socket);
    let body = format!("{{\"id\":\"{id}\"}}");
    let request = format!(
        "POST /api/v1/deliveries HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    // The first bytes of the answer say that it was heard.
    let heard = stream.read(&mut [0; 64]);
    stream.shutdown(Shutdown::Both).ok();
    heard.map(|_| ())
}
