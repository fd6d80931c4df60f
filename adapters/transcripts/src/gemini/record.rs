//! The records of Gemini's chat files, borrowed from the file's bytes.
//!
//! Only used fields are named. Values with a variable form (`content`, `thoughts`, `args`) stay raw until they are
//! needed; so does `resultDisplay`, because the cell grids of shell commands repeat the output at ten times its size.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

pub(super) use agents::borrowed::Text;
use agents::borrowed::escapes::unescaped;

/// One line of a chat file: a header, a message, a `$set` or a `$rewindTo`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChatLine<'a> {
    #[serde(borrow)]
    pub(super) session_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) start_time: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) directories: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) summary: Option<&'a RawValue>,
    #[serde(borrow, rename = "$set")]
    pub(super) set: Option<Set<'a>>,
    #[serde(borrow, rename = "$rewindTo")]
    pub(super) rewind_to: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) timestamp: Option<Text<'a>>,
    #[serde(borrow, rename = "type")]
    pub(super) kind_of_message: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) display_content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) thoughts: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "each")]
    pub(super) tool_calls: Option<Vec<ToolCall<'a>>>,
}

/// The fields changed by a `$set` record.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Set<'a> {
    #[serde(borrow)]
    pub(super) session_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) last_updated: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) summary: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "each")]
    pub(super) messages: Option<Vec<ChatMessage<'a>>>,
}

/// One message, as in a separate line, in `$set.messages` and in a legacy file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChatMessage<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) timestamp: Option<Text<'a>>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) display_content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) thoughts: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "each")]
    pub(super) tool_calls: Option<Vec<ToolCall<'a>>>,
}

/// A legacy chat file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChatDocument<'a> {
    #[serde(borrow)]
    pub(super) session_id: Text<'a>,
    #[serde(borrow)]
    pub(super) start_time: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) summary: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "each")]
    pub(super) messages: Option<Vec<ChatMessage<'a>>>,
}

/// The elements of a list that can be parsed; a damaged one does not affect the others.
fn each<'de, D: Deserializer<'de>, T: Deserialize<'de>>(list: D) -> Result<Option<Vec<T>>, D::Error> {
    let list = Option::<Vec<&'de RawValue>>::deserialize(list)?;
    Ok(list.map(|list| list.into_iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect()))
}

/// The readable part of a line that does not fit [`ChatLine`], so that the line is preserved.
#[derive(Debug, Deserialize)]
pub(super) struct UnknownChatLine<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<&'a RawValue>,
}

/// One tool call with its result; written once, when its whole batch is done.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolCall<'a> {
    /// Empty if the call has no id.
    #[serde(borrow, default)]
    pub(crate) id: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) name: Text<'a>,
    #[serde(borrow)]
    pub(crate) args: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) result: Output<'a>,
    #[serde(borrow)]
    pub(crate) status: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) agent_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) result_display: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) description: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) display_name: Option<Text<'a>>,
}

/// The tool's output to the model: the texts of its `functionResponse` parts.
#[derive(Debug, Default)]
pub(crate) struct Output<'a>(pub(crate) Vec<Cow<'a, str>>);

/// Tokens of one response. `input` includes `cached` but not `tool`, the prompt of a tool run by the API itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GeminiTokens {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cached: u64,
    pub(super) thoughts: u64,
    pub(super) tool: u64,
}

/// One thought of the model.
#[derive(Debug, Deserialize)]
pub(super) struct Thought<'a> {
    #[serde(borrow)]
    pub(super) subject: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) description: Option<&'a RawValue>,
}

/// One part of a message's content.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContentPart<'a> {
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) thought: Truth,
    pub(super) function_response: Option<IgnoredAny>,
    pub(super) inline_data: Option<IgnoredAny>,
    pub(super) file_data: Option<IgnoredAny>,
}

/// Whether a value is the literal `true`.
#[derive(Debug, Default)]
pub(crate) struct Truth(pub(crate) bool);

impl<'de> Deserialize<'de> for Truth {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(d)?;
        Ok(Self(raw.get() == "true"))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Output<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct OutputVisitor;
        impl<'de> Visitor<'de> for OutputVisitor {
            type Value = Output<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Output::default())
            }
            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Output::default())
            }
            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Output::default())
            }
            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Output::default())
            }
            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Output::default())
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Output(vec![Cow::Borrowed(text)]))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Output(vec![Cow::Owned(text.to_owned())]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
                let mut texts = Vec::new();
                while let Some(Output(more)) = parts.next_element()? {
                    if texts.is_empty() { texts = more } else { texts.extend(more) }
                }
                Ok(Output(texts))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
                let mut texts = Vec::new();
                while let Some(Text(name)) = fields.next_key()? {
                    match &*name {
                        "functionResponse" | "response" => {
                            let Output(more) = fields.next_value()?;
                            texts.extend(more);
                        }
                        "output" | "error" | "text" | "content" | "message" => {
                            let raw: &RawValue = fields.next_value()?;
                            match unescaped(raw) {
                                Some(text) => texts.push(text),
                                None => texts.extend(within(raw)),
                            }
                        }
                        _ => {
                            fields.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(Output(texts))
            }
        }
        d.deserialize_any(OutputVisitor)
    }
}

/// The texts in an output that is not a string (content of an MCP tool).
fn within(raw: &RawValue) -> Vec<Cow<'_, str>> {
    serde_json::from_str::<Output<'_>>(raw.get()).map_or_else(|_| Vec::new(), |o| o.0)
}
