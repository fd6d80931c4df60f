//! Answers to the server's commands.

use serde::Serialize;
use server::Refusal;

/// An answer to a command of the server.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn as_json(value: &impl Serialize) -> Result<String, Refusal> {
    serde_json::to_string(value).map_err(|error| Refusal::Failed(error.to_string()))
}
