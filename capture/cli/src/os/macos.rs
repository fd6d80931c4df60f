//! macOS: modes of terminals, displays.

use std::{
    fs::{File, FileType},
    io,
    os::fd::AsFd,
};

use rustix::termios::{InputModes, LocalModes, OutputModes};

/// Input modes of old terminals: none.
pub(crate) const OLD_INPUT: InputModes = InputModes::empty();
/// Output modes of old terminals: none.
pub(crate) const OLD_OUTPUT: OutputModes = OutputModes::empty();
/// Local modes of old terminals: none.
pub(crate) const OLD_LOCAL: LocalModes = LocalModes::empty();
/// Whether every login has a display, without a variable that names it.
pub(crate) const ALWAYS_HAS_DISPLAY: bool = true;

/// The kind of file that standard input is.
pub(crate) fn kind_of_stdin() -> io::Result<FileType> {
    File::from(io::stdin().as_fd().try_clone_to_owned()?).metadata().map(|found| found.file_type())
}
