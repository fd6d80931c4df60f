//! Linux: the TCP time limit for unacknowledged bytes.

use std::{io, os::fd::AsFd};

/// Has the kernel close a connection whose peer acknowledges nothing for `patience_ms`.
pub(crate) fn limit_unacknowledged(stream: impl AsFd, patience_ms: u32) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_tcp_user_timeout(stream, patience_ms)?)
}
