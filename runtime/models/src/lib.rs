//! Clients for the APIs of model vendors: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini.
//!
//! Messages are those of `session_tree` (pi's, version 3), without another representation. [`Transcript`] encodes each
//! message once and builds request bodies from the encoded messages, so that a request consists of the bytes of the
//! previous one with some appended. [`Decoder`] converts the bytes of an answer to [`StreamEvent`]s and to the content
//! of the message to store. Neither does I/O. [`transport`] sends requests.
//!
//! Data that vendors require unmodified (signatures, encrypted reasoning, blocks of unknown types) is stored as
//! received and sent back byte for byte.
//!
//! The crate reads no clock, environment or file, and generates no random numbers: the caller passes keys, proxies, and
//! the file for encoded text that exceeds the memory limit. It does not depend on tools or session files.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

mod body;
mod codec;
mod event;
mod failure;
mod marker;
mod message;
mod prefix;
mod request;
mod secret;
mod sse;
mod target;
mod transcript;
pub mod transport;
mod usage;

pub use body::{RequestBody, SpillFile};
pub use codec::{Decoder, Draft};
pub use event::{EndReason, StreamEvent};
pub use failure::{Failure, FailureKind, HttpAnswer};
pub use marker::{CacheTtl, MAX_MARKERS, Marker, MarkerError, MarkerPlace};
pub use prefix::Prefix;
pub use request::EncodedRequest;
pub use secret::Secret;
pub use sse::{SseError, SseEvent, SseReader};
pub use target::{Api, ChatOptions, REQUIRED_OUTPUT_TOKENS, Target, TargetError, Thinking};
pub use transcript::{BlockHash, BlockKind, ChainBlock, Transcript};
pub use usage::{CostUnits, Usage};
