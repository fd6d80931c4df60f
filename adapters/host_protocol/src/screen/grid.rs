//! A screen as rows of coloured text, for clients that display it: first the whole screen, then the changed rows. Also
//! the lines that scrolled off the screen.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Text in one style: the text, its colours, and its attributes as a sum of [`SpanFlags`]. On the wire an array of four:
/// `[text, foreground, background, attributes]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span(pub String, pub Option<SpanColor>, pub Option<SpanColor>, pub u8);

/// The attributes of text, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SpanFlags {
    /// Bold.
    Bold = 1,
    /// Dim.
    Dim = 2,
    /// Italic.
    Italic = 4,
    /// Underlined.
    Underline = 8,
    /// With foreground and background exchanged.
    Inverse = 16,
}

/// A colour other than the terminal's default: an index into the palette of 256 colours, or `#rrggbb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanColor {
    /// An index into the palette.
    Index(u8),
    /// Red, green and blue.
    Rgb(u8, u8, u8),
}

impl Serialize for SpanColor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Index(index) => serializer.serialize_u8(*index),
            Self::Rgb(red, green, blue) => serializer.collect_str(&format_args!("#{red:02x}{green:02x}{blue:02x}")),
        }
    }
}

impl<'de> Deserialize<'de> for SpanColor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Index(u8),
            Text(String),
        }
        match Either::deserialize(deserializer)? {
            Either::Index(index) => Ok(Self::Index(index)),
            Either::Text(text) => {
                let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6);
                let value = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                let value = value.ok_or_else(|| D::Error::custom("expected a number or #rrggbb"))?;
                let [_, red, green, blue] = value.to_be_bytes();
                Ok(Self::Rgb(red, green, blue))
            }
        }
    }
}

impl JsonSchema for SpanColor {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TerminalColor".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "description": "A number of the palette of 256 colours, or `#rrggbb`.",
            "anyOf": [{ "type": "integer", "minimum": 0, "maximum": 255 }, { "type": "string" }],
        })
    }
}

/// The cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TerminalCursor")]
pub struct GridCursor {
    /// Its row, from 0.
    pub row: u16,
    /// Its column, from 0.
    #[serde(rename = "col")]
    pub column: u16,
    /// Whether it is shown.
    pub visible: bool,
}

/// The screen, or its changes since a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TerminalGrid")]
pub struct GridUpdate {
    /// Grows with every change.
    pub rev: u64,
    /// Columns.
    #[serde(rename = "cols")]
    pub columns: u16,
    /// Rows.
    pub rows: u16,
    /// The cursor.
    pub cursor: GridCursor,
    /// Whether the alternate screen is shown, which has no scrolled-off lines.
    pub alternate: bool,
    /// The title.
    pub title: Option<String>,
    /// Number of lines that scrolled off the screen so far.
    pub scrolled: u64,
    /// Bytes that were not read since the screen was last redrawn: it may be wrong.
    pub skipped_bytes: u64,
    /// The rows that changed, by their number from 0; trailing blanks are left out.
    pub lines: BTreeMap<u16, Vec<Span>>,
}

/// Lines that scrolled off the screen, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TerminalScrollback")]
pub struct Scrollback {
    /// The number of the first line; the first that ever scrolled off is 0.
    pub from: u64,
    /// The number of the oldest line that is kept.
    pub oldest: u64,
    /// The lines.
    pub lines: Vec<Vec<Span>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_round_trip_through_their_json_form() {
        for (color, json) in [(SpanColor::Index(7), "7"), (SpanColor::Rgb(255, 0, 16), "\"#ff0010\"")] {
            assert_eq!(serde_json::to_string(&color).unwrap(), json);
            assert_eq!(serde_json::from_str::<SpanColor>(json).unwrap(), color);
        }
        for wrong in ["256", "\"ff0010\"", "\"#ff00\"", "\"#gg0010\"", "null"] {
            assert!(serde_json::from_str::<SpanColor>(wrong).is_err(), "{wrong}");
        }
    }
}
