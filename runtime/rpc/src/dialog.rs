//! Questions to the client: `extension_ui_request` and `extension_ui_response` of pi (`docs/rpc-extension-ui.md`).

use session_tree::{Json, Object};

/// A question that the client shows to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dialog {
    /// Yes or no; answered with `confirmed`.
    Confirm {
        /// One line.
        title: String,
        /// Several lines.
        message: String,
    },
    /// One of several; answered with `value`.
    Select {
        /// One line.
        title: String,
        /// The answers to choose from.
        options: Vec<String>,
    },
    /// A text; answered with `value`.
    Input {
        /// One line.
        title: String,
    },
}

/// The answer of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialogAnswer {
    /// A text, or the chosen answer.
    Value(String),
    /// Yes or no.
    Confirmed(bool),
    /// The user closed the question.
    Cancelled,
}

impl Dialog {
    /// The line of the request. `timeout_ms`: how long to wait for the answer.
    #[must_use]
    pub fn to_line(&self, id: &str, timeout_ms: u64) -> String {
        let request = Object::new().with("type", "extension_ui_request").with("id", id);
        let request = match self {
            Self::Confirm { title, message } => {
                request.with("method", "confirm").with("title", title.as_str()).with("message", message.as_str())
            }
            Self::Select { title, options } => {
                let options: Vec<Json> = options.iter().map(|option| Json::from(option.as_str())).collect();
                request.with("method", "select").with("title", title.as_str()).with("options", options)
            }
            Self::Input { title } => request.with("method", "input").with("title", title.as_str()),
        };
        request.with("timeout", timeout_ms).to_text()
    }
}

impl DialogAnswer {
    /// Parses `value`, `confirmed` or `cancelled`; `None` if none is present.
    pub(crate) fn of(fields: &Object) -> Option<Self> {
        if fields.get("cancelled") == Some(&Json::Bool(true)) {
            return Some(Self::Cancelled);
        }
        match fields.get("confirmed") {
            Some(Json::Bool(yes)) => Some(Self::Confirmed(*yes)),
            Some(Json::Null | Json::Number(_) | Json::String(_) | Json::Array(_) | Json::Object(_)) | None => {
                fields.text("value").map(|value| Self::Value(value.to_owned()))
            }
        }
    }
}
