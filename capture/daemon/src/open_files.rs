//! How many files the server may have open: connections are files, and so are transcripts.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More open files than this are never needed; programs the server starts inherit the limit, and some look
/// through all of it.
const MOST: u64 = 16_384;

/// Raises the limit of open files of this process as far as it goes and makes sense; gives the limit.
pub fn raise_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(MOST, |maximum| maximum.min(MOST));
    let limit = match current {
        Some(current) if current < wanted => {
            match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
                Ok(()) => wanted,
                Err(error) => {
                    tracing::warn!(%error, current, "the limit of open files cannot be raised");
                    current
                }
            }
        }
        Some(current) => current,
        None => MOST,
    };
    usize::try_from(limit).unwrap_or(usize::MAX)
}
