//! Text piped into the program.

use std::{
    io::{self, IsTerminal, Read},
    os::unix::fs::FileTypeExt,
};

use session_setup::RunError;

/// Maximum size of a prompt including the piped text, bytes.
const PROMPT_BYTES: u64 = 1 << 20;

/// The text on standard input if it is a file, a pipe or a socket; `None` for a terminal or a device, and if it is only
/// white space.
///
/// # Errors
/// If the input cannot be read, is longer than 1 MiB, or is not UTF-8.
pub(super) fn piped_text() -> Result<Option<String>, RunError> {
    let stdin = io::stdin();
    let kind = crate::os::kind_of_stdin();
    if stdin.is_terminal() || !kind.is_ok_and(|kind| kind.is_file() || kind.is_fifo() || kind.is_socket()) {
        return Ok(None);
    }
    let mut text = String::new();
    let read = stdin.lock().take(PROMPT_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| RunError::Other(format!("cannot read standard input: {error}")))?;
    if text.len() as u64 > PROMPT_BYTES {
        return Err(RunError::Usage("standard input is longer than 1 MiB".to_owned()));
    }
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}
