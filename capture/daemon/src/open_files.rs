//! Raises the limit of open files, which connections and transcripts count towards.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Highest limit that is requested: more is never needed, programs that the server starts inherit the limit, and some
/// of them iterate over all of it.
const MOST: u64 = 16_384;

/// Raises this process's limit of open files, up to the hard limit and `MOST`; returns the limit.
pub fn raise_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(MOST, |maximum| maximum.min(MOST));
    let limit = match current {
        Some(current) if current < wanted => {
            match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
                Ok(()) => wanted,
                Err(error) => {
                    tracing::warn!(%error, current, "cannot raise the limit of open files");
                    current
                }
            }
        }
        Some(current) => current,
        None => MOST,
    };
    usize::try_from(limit).unwrap_or(usize::MAX)
}
