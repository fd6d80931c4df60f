//! The limits of all tools.

use std::time::Duration;

/// Most bytes of a question with its options.
pub const ASK_BYTES: usize = 4 * 1024;
/// Most options of a question.
pub const ASK_OPTIONS: usize = 4;

/// Most bytes of a command line. Linux takes no single argument of 128 KiB or more (execve(2), `MAX_ARG_STRLEN`).
pub const COMMAND_BYTES: usize = 100 * 1024;
/// Time limit of a command that names none, seconds.
pub const TIMEOUT_S: u32 = 120;
/// Longest time limit of a command, seconds.
pub const TIMEOUT_MAX_S: u32 = 600;
/// Bytes shown of the beginning of an output.
pub const OUTPUT_HEAD_BYTES: usize = 10 * 1024;
/// Bytes shown of the end of an output.
pub const OUTPUT_TAIL_BYTES: usize = 20 * 1024;
/// Most bytes of an output that are written to its file.
pub const OUTPUT_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// How long output is read after the shell ended, while something else still holds its pipe.
pub const DRAIN: Duration = Duration::from_millis(100);
/// How long processes have to end after TERM.
pub const TERM_GRACE: Duration = Duration::from_secs(2);
/// Most commands that run in the background.
pub const BACKGROUND: usize = 8;

/// Most replacements of one edit.
pub const EDITS: usize = 100;
/// Most bytes of a file that is edited, written or searched.
pub const FILE_BYTES: u64 = 10 * 1024 * 1024;
/// The same as a size in memory.
pub const FILE_BYTES_MEMORY: usize = 10 * 1024 * 1024;

/// Longest address, bytes.
pub const URL_BYTES: usize = 8 * 1024;
/// Time limit of a fetch with its redirects.
pub const FETCH: Duration = Duration::from_secs(10);
/// Most bytes of a fetched body.
pub const FETCH_BYTES: u64 = 2 * 1024 * 1024;
/// Most redirects, all to the same host.
pub const REDIRECTS: usize = 3;

/// Longest pattern, bytes.
pub const PATTERN_BYTES: usize = 4 * 1024;
/// Most names returned by glob.
pub const GLOB_RESULTS: usize = 1_000;
/// Most directory entries looked at by glob and grep.
pub const WALKED: usize = 100_000;
/// Most matches returned by grep.
pub const GREP_MATCHES: u32 = 250;
/// Most lines of context on each side of a match.
pub const GREP_CONTEXT: u32 = 20;
/// Time limit of a search.
pub const GREP: Duration = Duration::from_secs(10);
/// Most bytes of a result that lists names or matches.
pub const RESULT_BYTES: usize = 30 * 1024;

/// Longest path, bytes (`PATH_MAX` of Linux).
pub const PATH_BYTES: usize = 4_096;
/// Most lines returned by read.
pub const READ_LINES: u64 = 2_000;
/// Most characters shown of a line.
pub const LINE_CHARS: usize = 2_000;
/// Most bytes of text returned by read.
pub const READ_BYTES: usize = 50 * 1024;
/// Most bytes passed over to reach the first line to return.
pub const READ_SKIP_BYTES: u64 = 256 * 1024 * 1024;
/// Most bytes of an image.
pub const IMAGE_BYTES: u64 = 5 * 1024 * 1024;

/// Most tasks on the list.
pub const TODO_ITEMS: usize = 50;
/// Most characters of a task.
pub const TODO_CHARS: usize = 500;
