//! OpenAI's Chat Completions, and the servers that imitate it.
//!
//! Sources: <https://platform.openai.com/docs/api-reference/chat>, the types of openai-python
//! (`src/openai/types/chat/`). `reasoning_content` and similar fields are used by DeepSeek, Kimi, llama.cpp and others,
//! `reasoning_details` by OpenRouter; their form in stored messages follows pi-ai 0.87.1
//! (`dist/api/openai-completions.js`).

pub(crate) mod decode;
pub(crate) mod encode;
