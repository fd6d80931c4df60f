//! Decides which messages for the model are accepted.

use session_tree::{Json, Object};

use crate::{
    input::UserMessage,
    limits::{PROMPT_BYTES, QUEUED_BYTES, QUEUED_MESSAGES},
    recorded::RecordedSession,
};

/// Maximum number of images per message.
const IMAGES: usize = 20;
/// Maximum size of an image in base64, in bytes: 5 MiB when decoded.
const IMAGE_BYTES: usize = (5 << 20) / 3 * 4 + 4;

/// Why a prompt is refused; `None` if it is accepted.
pub(crate) fn refuse_prompt(message: &UserMessage) -> Option<String> {
    refuse(message, PROMPT_BYTES)
}

/// Why a message cannot be queued; `None` if it can.
pub(crate) fn refuse_queued(message: &UserMessage, recorded: &RecordedSession, waiting: usize) -> Option<String> {
    if recorded.queue.len() + waiting >= QUEUED_MESSAGES {
        return Some(format!("the queue is full: {QUEUED_MESSAGES} messages wait"));
    }
    if recorded.queue.iter().any(|queued| queued.message.id == message.id) {
        return Some(format!("a message with the id `{}` is already waiting", message.id));
    }
    refuse(message, QUEUED_BYTES)
}

fn refuse(message: &UserMessage, limit: usize) -> Option<String> {
    let too_long = |bytes: usize| Some(format!("the text has {bytes} bytes; the maximum is {limit}"));
    let blocks = match &message.content {
        Json::String(text) if text.trim().is_empty() => return Some("the message is empty".to_owned()),
        Json::String(text) if text.len() > limit => return too_long(text.len()),
        Json::String(_) => return None,
        Json::Array(blocks) => blocks,
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_) => {
            return Some("the content must be a string or an array of content blocks".to_owned());
        }
    };
    let (mut bytes, mut images) = (0, 0);
    for block in blocks.iter().map(|block| block.as_object()) {
        let of_type = |name: &str| block.filter(|block| block.text("type") == Some(name));
        if let Some(text) = of_type("text").and_then(|block| block.text("text")) {
            bytes += text.len();
        } else if let Some(data) = of_type("image").and_then(|block: &Object| block.text("data")) {
            images += 1;
            if data.len() > IMAGE_BYTES {
                return Some("an image is larger than 5 MiB".to_owned());
            }
        } else {
            return Some("content blocks must be of the type `text` or `image`".to_owned());
        }
    }
    if images > IMAGES {
        return Some(format!("{images} images; the maximum is {IMAGES}"));
    }
    if bytes > limit {
        return too_long(bytes);
    }
    (bytes == 0 && images == 0).then(|| "the message is empty".to_owned())
}
