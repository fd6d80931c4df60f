//! Protocols of agents that run without a terminal: Claude Code's stream-json, Codex' app-server, and ACP as Gemini CLI
//! speaks it. No screen, no terminal.
//!
//! A [`Codec`] is pure: a line of the agent in, what it means out ([`Meaning`]), and the lines that
//! begin, prompt, interrupt and answer. It decides nothing: a request for permission is handed on with
//! every byte of it ([`PermissionRequest`]), and its answer is made of a decision somebody else took. What nobody
//! understands is kept as unrecognized; a request nobody understands is answered with the protocol's
//! own error, which is never a yes. A grant of the agent's own ("for this session", "always") is never
//! given: it would outlive the decision.
//!
//! [`conversation`] is what is delivered of it, [`program`] the process of the agent, [`runtime`] what our own agent
//! asks for.
//!
//! Shapes: recorded from Claude Code 2.1.328, Codex 0.169.0 and Gemini CLI 0.61.0
//! (`fixtures/protocol`).

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

/// Longest line read from an agent, bytes.
pub const LINE_BYTES: usize = 32 << 20;

/// How an agent is driven; `None` where it speaks no protocol that is known here.
#[must_use]
pub fn drive(provider: Provider) -> Option<&'static Drive> {
    Agent::of(provider)?.drive.as_ref()
}

/// The codec of a protocol, for an agent that works in this directory.
#[must_use]
pub fn codec(protocol: Protocol, cwd: &str) -> Box<dyn Codec> {
    match protocol {
        Protocol::StreamJson => Box::new(stream_json::StreamJson::default()),
        Protocol::AppServer => Box::new(app_server::AppServer::new(cwd)),
        Protocol::Acp => Box::new(acp::Acp::new(cwd)),
    }
}

/// Whether an agent's protocol can express this decision on a request for this tool and
/// input.
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

/// Whether a request asks for nothing but to run its command.
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

/// Whether it is our own agent: it takes another command in place of the one it asked for, and runs commands with
/// bash.
#[must_use]
pub const fn is_own(provider: Provider) -> bool {
    matches!(provider, Provider::Capture)
}

/// Cuts what an agent writes into lines.
#[derive(Debug, Default)]
pub struct LineSplitter {
    half: Vec<u8>,
    /// Whether the current line is too long and is skipped to its end.
    skips: bool,
}

/// One line of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentLine {
    /// A line, without its end.
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
