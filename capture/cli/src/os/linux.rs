//! Linux: `/proc/self`, terminal modes, displays.

use std::{
    fs::{self, FileType},
    io,
};

use rustix::termios::{InputModes, LocalModes, OutputModes};

/// Input modes for upper-case terminals.
pub(crate) const OLD_INPUT: InputModes = InputModes::IUCLC;
/// Output modes for upper-case terminals.
pub(crate) const OLD_OUTPUT: OutputModes = OutputModes::OLCUC;
/// Local modes for upper-case terminals.
pub(crate) const OLD_LOCAL: LocalModes = LocalModes::XCASE;
/// Whether every login has a display, so that no environment variable needs to name one.
pub(crate) const ALWAYS_HAS_DISPLAY: bool = false;

/// The type of the file on standard input, according to `/proc`.
pub(crate) fn kind_of_stdin() -> io::Result<FileType> {
    fs::metadata("/proc/self/fd/0").map(|found| found.file_type())
}
