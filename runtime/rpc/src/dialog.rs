//! What is asked of the client: `extension_ui_request` and `extension_ui_response` of pi (`docs/rpc-extension-ui.md`).

use session_tree::{Json, Object};

/// A question that the client shows to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dialog {
    /// Yes or no; answered with `confirmed`.
    Confirm {
        /// One line.
        title: String,
        /// Lines.
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
    /// A text, or the answer that was chosen.
    Value(String),
    /// Yes or no.
    Confirmed(bool),
    /// The person closed the question.
    Cancelled,
}

impl Dialog {
    /// The line that asks. `timeout_ms`: how long the answer is waited for.
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
    /// Reads `value`, `confirmed` or `cancelled`; nothing when none is there.
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
