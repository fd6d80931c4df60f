//! Linux: `/proc/self`, modes of terminals, displays.

use std::{
    fs::{self, FileType},
    io,
};

use rustix::termios::{InputModes, LocalModes, OutputModes};

/// Input modes of old terminals.
pub(crate) const OLD_INPUT: InputModes = InputModes::IUCLC;
/// Output modes of old terminals.
pub(crate) const OLD_OUTPUT: OutputModes = OutputModes::OLCUC;
/// Local modes of old terminals.
pub(crate) const OLD_LOCAL: LocalModes = LocalModes::XCASE;
/// Whether every login has a display, without a variable that names it.
pub(crate) const ALWAYS_HAS_DISPLAY: bool = false;

/// The kind of file that standard input is: the process's own table of open files says so.
pub(crate) fn kind_of_stdin() -> io::Result<FileType> {
    fs::metadata("/proc/self/fd/0").map(|found| found.file_type())
}
