//! A file that has been malformed for a while.

use std::time::Duration;

/// Since when a file has been malformed, and whether that was reported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Broken {
    pub(super) since: Duration,
    pub(super) said: bool,
}
