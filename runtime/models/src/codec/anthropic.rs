//! Anthropic's Messages.
//!
//! Sources: <https://platform.claude.com/docs/en/api/messages>, …/build-with-claude/streaming, …/extended-thinking,
//! …/prompt-caching; the types of anthropic-sdk-python (`src/anthropic/types/`).

pub(crate) mod decode;
pub(crate) mod encode;
