//! JSON-RPC as used by Codex and ACP: one message per line.

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use agents::borrowed::Text;

/// The error code for an unknown request.
const UNKNOWN_METHOD: i64 = -32_601;

/// A message of any kind.
#[derive(Debug, Deserialize)]
pub(super) struct RpcMessage<'a> {
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub method: Option<Text<'a>>,
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

/// The kind of a message.
#[derive(Debug)]
pub(super) enum RpcMessageKind<'a> {
    /// A request to be answered under this id.
    Request { id: &'a RawValue, method: &'a str, params: Option<&'a RawValue> },
    /// A notification.
    Notice { method: &'a str, params: Option<&'a RawValue> },
    /// A result for one of our requests.
    Result { id: u64, result: &'a RawValue },
    /// An error for one of our requests.
    Error { id: u64, words: String },
    /// None of these.
    Strange,
}

impl<'a> RpcMessage<'a> {
    pub(super) fn sort(&'a self) -> RpcMessageKind<'a> {
        let number = |id: &RawValue| id.get().parse::<u64>().ok();
        match (self.id, &self.method, self.result, self.error) {
            // An id of `null` is not valid: such a message cannot be answered.
            (Some(id), Some(method), None, None) if id.get() != "null" => {
                RpcMessageKind::Request { id, method, params: self.params }
            }
            (None, Some(method), None, None) => RpcMessageKind::Notice { method, params: self.params },
            (Some(id), None, Some(result), None) => {
                number(id).map_or(RpcMessageKind::Strange, |id| RpcMessageKind::Result { id, result })
            }
            (Some(id), None, _, Some(error)) => {
                number(id).map_or(RpcMessageKind::Strange, |id| RpcMessageKind::Error { id, words: words(error) })
            }
            _ => RpcMessageKind::Strange,
        }
    }
}

/// The message of an error.
fn words(error: &RawValue) -> String {
    #[derive(Deserialize)]
    struct RpcError<'a> {
        #[serde(borrow)]
        message: Text<'a>,
    }
    serde_json::from_str::<RpcError<'_>>(error.get())
        .map_or_else(|_| error.get().to_owned(), |told| told.message.into_string())
}

/// Whether messages contain the version of JSON-RPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RpcDialect {
    /// Messages contain it (ACP).
    Versioned,
    /// Messages omit it (Codex).
    Bare,
}

impl RpcDialect {
    fn line(self, mut message: Value) -> String {
        if self == Self::Versioned {
            message["jsonrpc"] = "2.0".into();
        }
        message.to_string()
    }

    pub(super) fn request(self, id: u64, method: &str, params: &Value) -> String {
        self.line(json!({ "id": id, "method": method, "params": params }))
    }

    pub(super) fn notice(self, method: &str, params: Option<Value>) -> String {
        let mut message = json!({ "method": method });
        if let Some(params) = params {
            message["params"] = params;
        }
        self.line(message)
    }

    /// The answer to a request of the agent; its id is returned as written.
    pub(super) fn result(self, id: &str, result: &Value) -> String {
        let version = if self == Self::Versioned { "\"jsonrpc\":\"2.0\"," } else { "" };
        format!("{{{version}\"id\":{id},\"result\":{result}}}")
    }

    /// The protocol's error for an unknown request.
    pub(super) fn unknown(self, id: &str, method: &str) -> String {
        let version = if self == Self::Versioned { "\"jsonrpc\":\"2.0\"," } else { "" };
        let error = json!({ "code": UNKNOWN_METHOD, "message": format!("{method} is not supported") });
        format!("{{{version}\"id\":{id},\"error\":{error}}}")
    }
}
