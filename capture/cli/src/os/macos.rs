//! macOS: terminal modes, displays.

use std::{
    fs::{File, FileType},
    io,
    os::fd::AsFd,
};

use rustix::termios::{InputModes, LocalModes, OutputModes};

/// Input modes for upper-case terminals: none.
pub(crate) const OLD_INPUT: InputModes = InputModes::empty();
/// Output modes for upper-case terminals: none.
pub(crate) const OLD_OUTPUT: OutputModes = OutputModes::empty();
/// Local modes for upper-case terminals: none.
pub(crate) const OLD_LOCAL: LocalModes = LocalModes::empty();
/// Whether every login has a display, so that no environment variable needs to name one.
pub(crate) const ALWAYS_HAS_DISPLAY: bool = true;

/// The type of the file on standard input.
pub(crate) fn kind_of_stdin() -> io::Result<FileType> {
    File::from(io::stdin().as_fd().try_clone_to_owned()?).metadata().map(|found| found.file_type())
}
