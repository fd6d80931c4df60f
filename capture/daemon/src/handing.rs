//! From the runtime's side to ingest, and answers back to the server.

use std::time::Duration;

use crossbeam_channel::{Sender, TrySendError};
use serde::Serialize;
use server::Refusal;

use crate::ingest::Input;

/// Ingest is asked again this often while it takes nothing.
const AGAIN: Duration = Duration::from_millis(5);

/// Hands something to ingest without holding a thread of the runtime; false when ingest is gone.
pub async fn give(inputs: &Sender<Input>, mut input: Input) -> bool {
    loop {
        match inputs.try_send(input) {
            Ok(()) => return true,
            Err(TrySendError::Full(back)) => {
                input = back;
                tokio::time::sleep(AGAIN).await;
            }
            Err(TrySendError::Disconnected(_)) => return false,
        }
    }
}

/// An answer to a command of the server.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn as_json(value: &impl Serialize) -> Result<String, Refusal> {
    serde_json::to_string(value).map_err(|error| Refusal::Failed(error.to_string()))
}
