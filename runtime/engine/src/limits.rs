//! Fixed limits of a session.

/// Maximum size of a prompt, in bytes.
pub const PROMPT_BYTES: usize = 1 << 20;
/// Maximum size of a queued message, in bytes.
pub const QUEUED_BYTES: usize = 64 << 10;
/// Maximum number of queued messages.
pub const QUEUED_MESSAGES: usize = 50;
/// Maximum number of calls run per answer. The others get an error as their result.
pub const CALLS_PER_ANSWER: usize = 32;
/// Maximum number of reads run in parallel.
pub const PARALLEL_READS: usize = 8;
/// Default maximum number of answers per turn.
pub const ROUNDS_PER_TURN: u32 = 200;
/// Default maximum number of retries after a failure: with the delays in between, three to six minutes, since an
/// incident at a provider lasts minutes.
pub const RETRIES: u32 = 12;
/// Maximum number of retries if the stream stalled or failed for an unknown reason.
pub const STALL_RETRIES: u32 = 2;
/// Longest delay a provider may ask for, in milliseconds; for a longer one the turn is paused.
pub const RETRY_AFTER_MS: u64 = 10 * 60 * 1000;
/// Delay before entries are written again after an append failed, in milliseconds.
pub const DISK_RETRY_MS: u64 = 5000;
