//! asciicast, the recordings of asciinema, versions 2 and 3.
//!
//! A file is lines of JSON: a header, then events `[time, code, data]`. Version 2 counts the time
//! from the start of the recording, version 3 from the event before; version 3 keeps size and type
//! of the terminal in `term`. The formats are described at
//! <https://docs.asciinema.org/manual/asciicast/v2/> and `/v3/`; readers are asked to pass over
//! codes they do not know, so an `x` (exit) is written in both.
//!
//! [`Recorder`] writes a terminal's output to files as it comes, [`CastReader`] reads one file,
//! [`JoinedReader`] the parts of one recording, [`Encoder`] writes either version. What somebody types is
//! never recorded; `i` events of others' recordings are passed on by a conversion.

mod encode;
mod event;
mod header;
mod parts;
mod read;
mod recorder;
mod text;

#[cfg(test)]
mod tests;

pub use encode::Encoder;
pub use event::{CastEvent, CastVersion, EventCode};
pub use header::{CastHeader, RecordingPart, Theme};
pub use parts::{JoinedReader, part_path, parts};
pub use read::{CastReader, ReadError};
pub use recorder::{RecordError, RecordSettings, Recorder, Repaint};
