//! OpenAI's Chat Completions, and the servers that imitate it.
//!
//! Sources: <https://platform.openai.com/docs/api-reference/chat>, the types of openai-python
//! (`src/openai/types/chat/`). `reasoning_content` and its like are of DeepSeek, Kimi, llama.cpp and others,
//! `reasoning_details` of OpenRouter; how they are kept in stored messages follows pi-ai 0.87.1
//! (`dist/api/openai-completions.js`).

pub(crate) mod decode;
pub(crate) mod encode;
