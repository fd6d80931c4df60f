//! Gemini's streamGenerateContent.
//!
//! Sources: <https://ai.google.dev/api/generate-content>, <https://ai.google.dev/gemini-api/docs/thought-signatures>,
//! …/docs/thinking, …/docs/caching; the types of python-genai (`google/genai/types.py`). The form of parts in stored
//! messages follows pi-ai 0.87.1 (`dist/api/google-shared.js`).

pub(crate) mod decode;
pub(crate) mod encode;
