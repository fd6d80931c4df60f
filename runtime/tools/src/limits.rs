//! The limits of all tools.

use std::time::Duration;

/// Maximum size of a question with its options, in bytes.
pub const ASK_BYTES: usize = 4 * 1024;
/// Maximum number of options of a question.
pub const ASK_OPTIONS: usize = 4;

/// Maximum size of a command line, in bytes. Linux accepts no argument of 128 KiB or more (execve(2),
/// `MAX_ARG_STRLEN`).
pub const COMMAND_BYTES: usize = 100 * 1024;
/// Default time limit of a command, in seconds.
pub const TIMEOUT_S: u32 = 120;
/// Maximum time limit of a command, in seconds.
pub const TIMEOUT_MAX_S: u32 = 600;
/// Bytes shown from the start of an output.
pub const OUTPUT_HEAD_BYTES: usize = 10 * 1024;
/// Bytes shown from the end of an output.
pub const OUTPUT_TAIL_BYTES: usize = 20 * 1024;
/// Maximum size of the file of an output, in bytes.
pub const OUTPUT_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// How long output is read after the shell ended while another process still has its pipe open.
pub const DRAIN: Duration = Duration::from_millis(100);
/// Time for processes to end after TERM.
pub const TERM_GRACE: Duration = Duration::from_secs(2);
/// Maximum number of background commands.
pub const BACKGROUND: usize = 8;

/// Maximum number of replacements per edit.
pub const EDITS: usize = 100;
/// Maximum size of a file that is edited, written or searched, in bytes.
pub const FILE_BYTES: u64 = 10 * 1024 * 1024;
/// [`FILE_BYTES`] as a `usize`.
pub const FILE_BYTES_MEMORY: usize = 10 * 1024 * 1024;

/// Maximum length of an address, in bytes.
pub const URL_BYTES: usize = 8 * 1024;
/// Time limit of a fetch, including redirects.
pub const FETCH: Duration = Duration::from_secs(10);
/// Maximum size of a fetched body, in bytes.
pub const FETCH_BYTES: u64 = 2 * 1024 * 1024;
/// Maximum number of redirects, all to the same host.
pub const REDIRECTS: usize = 3;

/// Maximum length of a pattern, in bytes.
pub const PATTERN_BYTES: usize = 4 * 1024;
/// Maximum number of names returned by glob.
pub const GLOB_RESULTS: usize = 1_000;
/// Maximum number of directory entries visited by glob and grep.
pub const WALKED: usize = 100_000;
/// Maximum number of matches returned by grep.
pub const GREP_MATCHES: u32 = 250;
/// Maximum number of context lines on each side of a match.
pub const GREP_CONTEXT: u32 = 20;
/// Time limit of a search.
pub const GREP: Duration = Duration::from_secs(10);
/// Maximum size of a result that lists names or matches, in bytes.
pub const RESULT_BYTES: usize = 30 * 1024;

/// Maximum length of a path, in bytes (`PATH_MAX` of Linux).
pub const PATH_BYTES: usize = 4_096;
/// Maximum number of lines returned by read.
pub const READ_LINES: u64 = 2_000;
/// Maximum number of characters shown per line.
pub const LINE_CHARS: usize = 2_000;
/// Maximum size of the text returned by read, in bytes.
pub const READ_BYTES: usize = 50 * 1024;
/// Maximum number of bytes skipped to reach the first line to return.
pub const READ_SKIP_BYTES: u64 = 256 * 1024 * 1024;
/// Maximum size of an image, in bytes.
pub const IMAGE_BYTES: u64 = 5 * 1024 * 1024;

/// Maximum number of tasks on the to-do list.
pub const TODO_ITEMS: usize = 50;
/// Maximum number of characters of a task.
pub const TODO_CHARS: usize = 500;
