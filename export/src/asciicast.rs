//! asciicast, the recordings of asciinema, versions 2 and 3.
//!
//! A file consists of lines of JSON: a header, then events `[time, code, data]`. In version 2 the time is relative to
//! the start of the recording, in version 3 to the previous event; version 3 stores size and type of the terminal in
//! `term`. The formats are described at <https://docs.asciinema.org/manual/asciicast/v2/> and `/v3/`. Readers must
//! ignore unknown codes, so an `x` (exit) is written in both versions.
//!
//! [`Recorder`] writes a terminal's output to files while it arrives, [`CastReader`] reads one file, [`JoinedReader`]
//! reads the parts of one recording, and [`Encoder`] writes either version. The user's input is never recorded; a
//! conversion copies the `i` events of other programs' recordings.

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
