//! Fixed limits of a session.

/// Maximum size of a prompt, in bytes.
pub const PROMPT_BYTES: usize = 1 << 20;
/// Maximum size of a queued message, in bytes.
pub const QUEUED_BYTES: usize = 64 << 10;
/// Maximum number of queued messages.
pub const QUEUED_MESSAGES: usize = 50;
/// Maximum number of calls of one answer that are run. The others get an error as their result.
pub const CALLS_PER_ANSWER: usize = 32;
/// Maximum number of reads that run at once.
pub const PARALLEL_READS: usize = 8;
/// Maximum number of answers of a turn, unless its settings have another.
pub const ROUNDS_PER_TURN: u32 = 200;
/// Maximum number of times a request is repeated after a failure, unless the settings have another: with the waits in
/// between three to six minutes, since an incident of a provider lasts minutes.
pub const RETRIES: u32 = 12;
/// Maximum number of times a request is repeated because its stream stalled or failed for an unknown reason.
pub const STALL_RETRIES: u32 = 2;
/// Longest wait that a provider may ask for before the turn is paused instead, in milliseconds.
pub const RETRY_AFTER_MS: u64 = 10 * 60 * 1000;
/// Wait before entries are written again after the file could not be appended to, in milliseconds.
pub const DISK_RETRY_MS: u64 = 5000;
