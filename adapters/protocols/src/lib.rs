//! Protocols of agents that run without a terminal: Claude Code's stream-json, Codex' app-server, and ACP as spoken by
//! Gemini CLI. No screen, no terminal.
//!
//! A [`Codec`] does no I/O: it decodes a line of the agent to its [`Meaning`], and builds the lines that start, prompt,
//! interrupt and answer. It makes no decisions: it passes on a permission request with all its bytes
//! ([`PermissionRequest`]), and builds the answer from a decision of the caller. Unknown messages are preserved as
//! unrecognized; an unknown request is answered with the protocol's own error, which is never an approval. Permanent
//! grants of the agent ("for this session", "always") are never given, since they would outlive the decision.
//!
//! [`conversation`] contains the deliveries, [`program`] the process of the agent, [`runtime`] the requests of the
//! built-in agent.
//!
//! Formats: recorded from Claude Code 2.1.328, Codex 0.169.0 and Gemini CLI 0.61.0 (`fixtures/protocol`).

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod acp;
pub mod app_server;
mod codec;
pub mod codex_daemon;
pub mod conversation;
mod os;
pub mod program;
mod rpc;
pub mod runtime;
pub mod stream_json;
pub mod telemetry;

use agents::{
    Agent, AgentAnswer,
    agent::{Drive, Protocol},
};
use events::Provider;
use hooks::delivery::permission::is_only_a_command;

pub use codec::{Codec, Meaning, PermissionRequest, TurnEnd};

/// Maximum length of a line read from an agent, in bytes.
pub const LINE_BYTES: usize = 32 << 20;

/// How an agent is driven; `None` if it speaks no known protocol.
#[must_use]
pub fn drive(provider: Provider) -> Option<&'static Drive> {
    Agent::of(provider)?.drive.as_ref()
}

/// The codec of a protocol, for an agent in this working directory.
#[must_use]
pub fn codec(protocol: Protocol, cwd: &str) -> Box<dyn Codec> {
    match protocol {
        Protocol::StreamJson => Box::new(stream_json::StreamJson::default()),
        Protocol::AppServer => Box::new(app_server::AppServer::new(cwd)),
        Protocol::Acp => Box::new(acp::Acp::new(cwd)),
    }
}

/// Whether an agent's protocol can express this decision on a request for this tool and input.
#[must_use]
pub fn can_express(provider: Provider, tool: Option<&str>, input: Option<&str>, given: &AgentAnswer) -> bool {
    if is_own(provider) {
        return runtime::can_express(tool, input, given);
    }
    drive(provider).is_some_and(|drive| match drive.protocol {
        Protocol::StreamJson => stream_json::can_express(tool, input, given),
        Protocol::AppServer => app_server::can_express(input, given),
        Protocol::Acp => acp::can_express(input, given),
    })
}

/// Whether a request asks only to run its command.
#[must_use]
pub fn is_plain(provider: Provider, input: &str) -> bool {
    if is_own(provider) {
        return runtime::is_plain(input);
    }
    drive(provider).is_some_and(|drive| match drive.protocol {
        Protocol::StreamJson => is_only_a_command(provider, input),
        Protocol::AppServer => app_server::is_plain(input),
        Protocol::Acp => acp::is_plain(input),
    })
}

/// Whether it is the built-in agent: it accepts a replacement for the command it asked for, and runs commands with
/// bash.
#[must_use]
pub const fn is_own(provider: Provider) -> bool {
    matches!(provider, Provider::Capture)
}

/// Splits an agent's output into lines.
#[derive(Debug, Default)]
pub struct LineSplitter {
    half: Vec<u8>,
    /// Whether the current line is too long and is skipped to its end.
    skips: bool,
}

/// One line of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentLine {
    /// A line, without its newline.
    Whole(String),
    /// A line that is not UTF-8, or longer than [`LINE_BYTES`].
    Damaged,
}

impl LineSplitter {
    /// Appends bytes and returns the lines they complete.
    pub fn push(&mut self, mut bytes: &[u8]) -> Vec<AgentLine> {
        let mut lines = Vec::new();
        while let Some(at) = memchr::memchr(b'\n', bytes) {
            let (head, rest) = bytes.split_at(at);
            bytes = rest.get(1..).unwrap_or_default();
            self.buffer(head);
            let skipped = std::mem::take(&mut self.skips);
            let line = std::mem::take(&mut self.half);
            let text = String::from_utf8(line).ok().filter(|_| !skipped);
            match text {
                Some(text) if text.trim().is_empty() => {}
                Some(text) => lines.push(AgentLine::Whole(text)),
                None => lines.push(AgentLine::Damaged),
            }
        }
        self.buffer(bytes);
        lines
    }

    fn buffer(&mut self, bytes: &[u8]) {
        if self.half.len() + bytes.len() > LINE_BYTES {
            self.skips = true;
        }
        if self.skips {
            self.half.clear();
        } else {
            self.half.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests;
