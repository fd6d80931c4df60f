//! One event of a recording.

/// The version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CastVersion {
    /// Supported by every player.
    V2,
    /// Supported by asciinema 3 and players since 2025.
    V3,
}

/// An event of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CastEvent {
    /// Microseconds since the start of the recording.
    pub at_us: u64,
    /// The kind of event.
    pub code: EventCode,
    /// Its data: text for output, `80x24` for a resize, a label for a marker, the status for an exit.
    pub data: String,
}

/// The kind of event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventCode {
    /// `o`: text was sent to the terminal.
    Output,
    /// `i`: the user typed. Never written by [`Recorder`](super::Recorder).
    Input,
    /// `r`: the terminal was resized.
    Resize,
    /// `m`: a marker.
    Marker,
    /// `x`: the program ended.
    Exit,
    /// A code of another program, copied unchanged.
    Other(String),
}

impl EventCode {
    /// The code as written in the file.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Output => "o",
            Self::Input => "i",
            Self::Resize => "r",
            Self::Marker => "m",
            Self::Exit => "x",
            Self::Other(code) => code,
        }
    }
}

impl From<&str> for EventCode {
    fn from(code: &str) -> Self {
        match code {
            "o" => Self::Output,
            "i" => Self::Input,
            "r" => Self::Resize,
            "m" => Self::Marker,
            "x" => Self::Exit,
            other => Self::Other(other.to_owned()),
        }
    }
}
