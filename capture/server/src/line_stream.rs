//! The compressed form of a WebSocket stream, for remote clients: binary messages that are pieces of one gzip stream.
//! Its text has one JSON message per line. Each piece ends with a line `sent`, which contains the server's time and, if
//! no further messages wait, the position to resume from. A client can therefore tell how old its data is.

use std::io::{self, Write};

use axum::{
    body::Bytes,
    extract::ws::{Message, Utf8Bytes},
};
use events::Timestamp;
use flate2::{Compression, write::GzEncoder};
use live_view::Epoch;
use tokio::sync::OwnedSemaphorePermit;

/// Size of text from which a piece is sent even if more is ready, bytes. A slow client needs a few seconds for a
/// compressed piece of this size, well below the time limit for slow clients.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// One stream of lines.
pub(crate) struct LineStream {
    /// `None` if there was no permit for compression; lines are then sent as plain text.
    encoder: Option<(GzEncoder<Vec<u8>>, OwnedSemaphorePermit)>,
}

impl LineStream {
    /// A stream that compresses if it has a permit.
    pub(crate) fn new(place: Option<OwnedSemaphorePermit>) -> Self {
        Self { encoder: place.map(|place| (GzEncoder::new(Vec::new(), Compression::fast()), place)) }
    }

    /// A message with these lines and the line `sent`. `position` is where to resume from, if everything before it was
    /// sent.
    ///
    /// # Errors
    /// Never fails, because it compresses into memory.
    pub(crate) fn pack(
        &mut self,
        lines: impl Iterator<Item = Utf8Bytes>,
        epoch: &Epoch,
        at: Timestamp,
        position: Option<u64>,
    ) -> io::Result<Message> {
        let mut text = String::new();
        for line in lines {
            text.push_str(&line);
            text.push('\n');
        }
        let position = position.map(|position| format!(",\"position\":{position}")).unwrap_or_default();
        text.push_str(&format!("{{\"type\":\"sent\",\"epoch\":{},\"at\":\"{at}\"{position}}}\n", epoch.json()));
        let Some((encoder, _)) = &mut self.encoder else { return Ok(Message::Text(text.into())) };
        encoder.write_all(text.as_bytes())?;
        encoder.flush()?;
        Ok(Message::Binary(Bytes::from(std::mem::take(encoder.get_mut()))))
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read, sync::Arc};

    use flate2::read::GzDecoder;
    use tokio::sync::Semaphore;

    use super::*;

    #[test]
    fn each_compressed_piece_is_readable_on_arrival() {
        let place = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let (mut stream, epoch) = (LineStream::new(Some(place)), Epoch::new("e"));
        let (mut packed, mut text) = (Vec::new(), String::new());
        for n in 0..3 {
            let line = Utf8Bytes::from(format!("{{\"type\":\"status\",\"n\":{n}}}"));
            let piece =
                stream.pack([line.clone()].into_iter(), &epoch, Timestamp::from_millisecond(0), Some(n)).unwrap();
            packed.extend_from_slice(&piece.into_data());
            text.push_str(&format!(
                "{line}\n{{\"type\":\"sent\",\"epoch\":\"e\",\"at\":\"1970-01-01T00:00:00.000Z\",\"position\":{n}}}\n"
            ));
            let mut read = vec![0; text.len()];
            GzDecoder::new(packed.as_slice()).read_exact(&mut read).unwrap();
            assert_eq!(String::from_utf8(read).unwrap(), text, "without the pieces that follow");
        }
    }

    #[test]
    fn without_a_permit_the_lines_are_not_compressed() {
        let mut stream = LineStream::new(None);
        let line = Utf8Bytes::from_static("{}");
        let message = stream
            .pack([line].into_iter(), &Epoch::new("e"), Timestamp::from_millisecond(0), None)
            .unwrap()
            .into_text()
            .unwrap();
        assert_eq!(message.as_str(), "{}\n{\"type\":\"sent\",\"epoch\":\"e\",\"at\":\"1970-01-01T00:00:00.000Z\"}\n");
    }
}
