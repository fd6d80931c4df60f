//! A body that reads its spilled parts while it is sent.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::task::JoinHandle;

use crate::{RequestBody, body::BodyPart};

/// A body that is being sent.
#[derive(Debug)]
pub(super) struct SendingBody {
    parts: VecDeque<BodyPart>,
    /// The part being read.
    reading: Option<JoinHandle<io::Result<Bytes>>>,
    /// Number of bytes still to send.
    left: u64,
}

impl SendingBody {
    pub(super) fn new(body: &RequestBody) -> Self {
        Self { left: body.len() as u64, parts: body.clone().into_parts().collect(), reading: None }
    }

    fn sent(&mut self, bytes: Bytes) -> Frame<Bytes> {
        self.left = self.left.saturating_sub(bytes.len() as u64);
        Frame::data(bytes)
    }
}

impl Body for SendingBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if self.reading.is_none() {
            match self.parts.pop_front() {
                None => return Poll::Ready(None),
                Some(BodyPart::Held(bytes)) => return Poll::Ready(Some(Ok(self.sent(bytes)))),
                Some(part @ BodyPart::Spilled { .. }) => {
                    self.reading = Some(tokio::task::spawn_blocking(move || part.read()));
                }
            }
        }
        let Some(reading) = &mut self.reading else { return Poll::Ready(None) };
        let Poll::Ready(read) = Pin::new(reading).poll(context) else { return Poll::Pending };
        self.reading = None;
        let read = read.map_err(io::Error::other).and_then(|read| read);
        Poll::Ready(Some(read.map(|bytes| self.sent(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
