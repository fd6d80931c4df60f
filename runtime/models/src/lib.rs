//! Speaks the APIs of model vendors: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini.
//!
//! The messages are those of `session_tree` (pi's, version 3); there is no second form of them. [`Transcript`] encodes
//! each message once and builds the body of a request from what it has encoded, so that the bytes of a request are the
//! bytes of the one before with something appended. [`Decoder`] turns the bytes of an answer into [`StreamEvent`]s and
//! into the content of the message to store. Both are pure. [`transport`] sends requests and repeats them.
//!
//! What a vendor wants back unmodified (signatures, encrypted reasoning, blocks nobody here knows) is stored as it was
//! received and sent back byte for byte.
//!
//! Reads no clock, environment or file, and draws no random numbers: keys, proxies and jitter are handed in, as is the
//! file for encoded text that is too much for memory. Knows no tool and no session file.

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
