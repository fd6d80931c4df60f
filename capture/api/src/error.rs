//! The errors of the interface: a status, a stable code, and a message for users.

use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! error_codes {
    ($($(#[doc = $about:literal])+ $name:ident = $text:literal, $status:ident;)*) => {
        /// The kind of an error, for programs. Codes are stable; messages are not.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $($(#[doc = $about])+ $name,)*
        }

        impl ErrorCode {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The code in JSON.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The HTTP status of the error.
            #[must_use]
            pub const fn status(self) -> StatusCode {
                match self { $(Self::$name => StatusCode::$status,)* }
            }

            /// The meaning of the code, in a sentence.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$name => concat!($($about),+).trim_ascii(),)* }
            }
        }
    };
}

error_codes! {
    /// The session was merged into another; `Location` names it.
    Merged = "merged", PERMANENT_REDIRECT;
    /// The request target is not a path.
    BadTarget = "bad_target", BAD_REQUEST;
    /// A query parameter or a part of the path is not valid; the message names it.
    BadParameter = "bad_parameter", BAD_REQUEST;
    /// The body is not valid; the message says where.
    BadBody = "bad_body", BAD_REQUEST;
    /// The token or the cookie of a device is missing or wrong.
    Unauthorized = "unauthorized", UNAUTHORIZED;
    /// The `Host` header does not name this server.
    WrongHost = "wrong_host", FORBIDDEN;
    /// A web page of another origin sent the request, or may have sent it. Changes by a device need the server's own
    /// `Origin` and the header `X-Capture: 1`.
    ForeignOrigin = "foreign_origin", FORBIDDEN;
    /// A web page of another network sent the request.
    PrivateNetwork = "private_network", FORBIDDEN;
    /// The token or the device does not permit this route.
    WrongScope = "wrong_scope", FORBIDDEN;
    /// The device needs a second code from the terminal for this route.
    StepUpRequired = "step_up_required", FORBIDDEN;
    /// The code is wrong.
    WrongCode = "wrong_code", FORBIDDEN;
    /// The caller is an agent, was started by one, or cannot be examined.
    AgentsPeer = "agents_peer", FORBIDDEN;
    /// The route is available on the Unix socket only.
    UnixOnly = "unix_only", FORBIDDEN;
    /// The route or the object does not exist.
    NotFound = "not_found", NOT_FOUND;
    /// The path does not accept this method; `Allow` names the methods it accepts.
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED;
    /// The request, or the state it waited for, did not arrive in time.
    Timeout = "timeout", REQUEST_TIMEOUT;
    /// The request conflicts with the current state; the message explains how.
    Conflict = "conflict", CONFLICT;
    /// A shortened id matches several objects.
    Ambiguous = "ambiguous", CONFLICT;
    /// The code has expired or was used.
    CodeExpired = "code_expired", GONE;
    /// The body has no `Content-Length`.
    LengthRequired = "length_required", LENGTH_REQUIRED;
    /// The body is too long.
    BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE;
    /// The body is not declared as JSON.
    NotJson = "not_json", UNSUPPORTED_MEDIA_TYPE;
    /// The body is declared neither as OTLP/JSON nor as OTLP/protobuf.
    NotOtlp = "not_otlp", UNSUPPORTED_MEDIA_TYPE;
    /// The body has an unsupported `Content-Encoding`.
    UnknownCoding = "unknown_coding", UNSUPPORTED_MEDIA_TYPE;
    /// The route requires an `Upgrade`.
    UpgradeRequired = "upgrade_required", UPGRADE_REQUIRED;
    /// The WebSocket version is not supported.
    WebSocketVersion = "websocket_version", UPGRADE_REQUIRED;
    /// The client sent too many wrong tokens or codes.
    TooManyWrongTokens = "too_many_wrong_tokens", TOO_MANY_REQUESTS;
    /// The ingest queue is full; send the request again later.
    Busy = "busy", TOO_MANY_REQUESTS;
    /// The server failed; its log says why.
    Internal = "internal", INTERNAL_SERVER_ERROR;
    /// Temporarily unavailable; retry.
    Unavailable = "unavailable", SERVICE_UNAVAILABLE;
    /// Too many streams are open.
    TooManyStreams = "too_many_streams", SERVICE_UNAVAILABLE;
}

/// The body of every answer that reports an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorText,
}

/// An error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorText {
    /// What went wrong, for programs: one of the codes listed with each route.
    pub code: String,
    /// What went wrong, for people.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// More about the error, for programs. If a permission request was already decided: who decided, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
}
