//! The agents, and the sources of information about a session.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal / $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant,)* }

        impl $name {
            /// Every value, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The one spelling used on every interface.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The number used in the store; its meaning never changes.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self { $(Self::$variant => $code,)* }
            }

            /// The value with this code, if there is one.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($text => Ok(Self::$variant),)*
                    other => Err(format!(
                        concat!("`{}` is not a ", stringify!($name), " (one of {})"),
                        other.chars().take(64).collect::<String>(),
                        Self::ALL.iter().map(|v| v.as_str()).collect::<Vec<_>>().join(", ")
                    )),
                }
            }
        }
    };
}
pub(crate) use names;

names! {
    /// The agent a session belongs to.
    Provider {
        /// Not known yet.
        Unknown = "unknown" / 0,
        /// Claude Code.
        Claude = "claude" / 1,
        /// OpenAI Codex CLI.
        Codex = "codex" / 2,
        /// Google Gemini CLI.
        Gemini = "gemini" / 3,
        /// pi and oh-my-pi.
        Pi = "pi" / 4,
        /// capture's own runtime.
        Capture = "capture" / 5,
        /// Qwen Code.
        Qwen = "qwen" / 6,
        /// opencode.
        Opencode = "opencode" / 7,
        /// aider.
        Aider = "aider" / 8,
        /// Crush.
        Crush = "crush" / 9,
        /// goose.
        Goose = "goose" / 10,
        /// Amp.
        Amp = "amp" / 11,
    }
}

names! {
    /// The source of an event or a claim.
    Source {
        /// A transcript file.
        Transcript = "transcript" / 1,
        /// A live registry file that the agent writes about itself.
        Registry = "registry" / 2,
        /// A hook the agent ran.
        Hook = "hook" / 3,
        /// OpenTelemetry the agent sent.
        Telemetry = "telemetry" / 4,
        /// The terminal of a run.
        Pty = "pty" / 5,
        /// Keys a person typed into a run.
        Input = "input" / 6,
        /// The process table.
        Process = "process" / 7,
        /// A protocol the agent speaks.
        Protocol = "protocol" / 8,
        /// capture's own runtime, or capture itself.
        Runtime = "runtime" / 9,
    }
}
