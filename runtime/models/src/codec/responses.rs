//! OpenAI's Responses, without state at the vendor (`store: false`).
//!
//! Sources: <https://platform.openai.com/docs/api-reference/responses>, …/docs/guides/reasoning (encrypted reasoning
//! items), …/docs/guides/prompt-caching; the types of openai-python (`src/openai/types/responses/`). The form of items
//! in stored messages follows pi-ai 0.87.1 (`dist/api/openai-responses-shared.js`).

pub(crate) mod decode;
pub(crate) mod encode;
