//! The first line of a file, in the format of both versions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::asciicast::event::CastVersion;

/// The first line of a file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CastHeader {
    /// Columns of the terminal.
    pub columns: u16,
    /// Rows of the terminal.
    pub rows: u16,
    /// When the recording started, in seconds since 1970.
    pub timestamp: Option<u64>,
    /// Longest pause in playback, seconds.
    pub idle_time_limit: Option<f64>,
    /// The recorded command.
    pub command: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Environment; `TERM` is `term.type` in version 3.
    pub env: BTreeMap<String, String>,
    /// Colours of the terminal.
    pub theme: Option<Theme>,
    /// Name and version of the terminal program; version 3 only.
    pub terminal: Option<String>,
    /// Tags; version 3 only.
    pub tags: Vec<String>,
    /// In capture's own recordings: the part of the recording that the file contains.
    pub part: Option<RecordingPart>,
}

/// The part of a recording that a file contains. Written under the key `capture`, which is capture's own; readers
/// ignore unknown keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingPart {
    /// The number of the part, from 1.
    pub part: u32,
    /// The time to which the times of this file are relative, milliseconds since 1970.
    pub started_at_ms: i64,
    /// Whether its first event draws the screen at the start of the part.
    #[serde(default)]
    pub repainted: bool,
}

/// Colours of a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Theme {
    /// Foreground, `#rrggbb`.
    pub fg: String,
    /// Background, `#rrggbb`.
    pub bg: String,
    /// 8 or 16 colours, joined by `:`.
    pub palette: String,
}

/// The line as stored in a file; [`CastHeader::parse`] and [`CastHeader::line`] handle the differences between the
/// versions.
#[derive(Serialize, Deserialize)]
struct HeaderWire {
    version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    width: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    height: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    term: Option<Term>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timestamp: Option<Seconds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idle_time_limit: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    env: Option<BTreeMap<String, Option<String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    theme: Option<Theme>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tags: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capture: Option<RecordingPart>,
}

#[derive(Serialize, Deserialize)]
struct Term {
    cols: u16,
    rows: u16,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    theme: Option<Theme>,
}

/// Whole seconds; some programs write fractions.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Seconds {
    Whole(u64),
    Fraction(f64),
}

impl CastHeader {
    /// Parses the first line of a file.
    pub(super) fn parse(line: &str) -> Result<(CastVersion, Self), String> {
        let wire: HeaderWire =
            serde_json::from_str(line).map_err(|error| format!("the asciicast header is not valid: {error}"))?;
        let version = match wire.version {
            2 => CastVersion::V2,
            3 => CastVersion::V3,
            other => return Err(format!("asciicast version {other} is not supported (expected 2 or 3)")),
        };
        let mut env: BTreeMap<String, String> =
            wire.env.into_iter().flatten().filter_map(|(name, value)| Some((name, value?))).collect();
        let (columns, rows, theme, terminal) = match (version, wire.term) {
            (CastVersion::V3, Some(term)) => {
                if let Some(kind) = term.kind {
                    env.insert("TERM".into(), kind);
                }
                (term.cols, term.rows, term.theme, term.version)
            }
            (CastVersion::V3, None) => return Err("the header has no `term`".into()),
            (CastVersion::V2, _) => match (wire.width, wire.height) {
                (Some(width), Some(height)) => (width, height, wire.theme, None),
                _ => return Err("the header has no `width` and `height`".into()),
            },
        };
        let timestamp = wire.timestamp.map(|seconds| match seconds {
            Seconds::Whole(seconds) => seconds,
            // Saturates: negative numbers become 0.
            Seconds::Fraction(seconds) => seconds as u64,
        });
        Ok((
            version,
            Self {
                columns,
                rows,
                timestamp,
                idle_time_limit: wire.idle_time_limit,
                command: wire.command,
                title: wire.title,
                env,
                theme,
                terminal,
                tags: wire.tags.unwrap_or_default(),
                part: wire.capture,
            },
        ))
    }

    /// The line in the format of this version, without the newline.
    pub(super) fn line(&self, version: CastVersion) -> String {
        let mut env = self.env.clone();
        // A player may refuse a terminal of size zero.
        let (columns, rows) = (self.columns.max(1), self.rows.max(1));
        let (number, size, term) = match version {
            CastVersion::V2 => (2, Some((columns, rows)), None),
            CastVersion::V3 => {
                let kind = env.remove("TERM");
                let (version, theme) = (self.terminal.clone(), self.theme.clone());
                (3, None, Some(Term { cols: columns, rows, kind, version, theme }))
            }
        };
        let wire = HeaderWire {
            version: number,
            width: size.map(|s| s.0),
            height: size.map(|s| s.1),
            theme: self.theme.clone().filter(|_| term.is_none()),
            tags: Some(self.tags.clone()).filter(|tags| term.is_some() && !tags.is_empty()),
            term,
            timestamp: self.timestamp.map(Seconds::Whole),
            idle_time_limit: self.idle_time_limit,
            command: self.command.clone(),
            title: self.title.clone(),
            env: (!env.is_empty()).then(|| env.into_iter().map(|(name, value)| (name, Some(value))).collect()),
            capture: self.part,
        };
        // Only strings and numbers, so the encoding cannot fail.
        serde_json::to_string(&wire).unwrap_or_default()
    }
}
