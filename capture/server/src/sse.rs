//! Server-sent events. Each part is encoded when the connection can accept it, so a slow client slows only itself. A
//! client too slow for its queue gets a new snapshot.

use std::{pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_util::stream;
use tokio::time::sleep;

use crate::{answer, app::App, call::StreamHold, stream_format::StreamFormat, tail::Tail};

/// Size from which part of a batch is sent even if more of it is ready, bytes.
const PART_BYTES: usize = 64 << 10;

struct Open {
    app: App,
    tail: Tail,
    format: StreamFormat,
    hold: StreamHold,
    revoked: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.app.tally.streams.dec();
    }
}

/// Responds with the stream.
pub(crate) fn answer(app: App, tail: Tail, format: StreamFormat, hold: StreamHold) -> axum::response::Response {
    app.tally.streams.inc();
    let revoked = Box::pin(hold.revoked());
    let open = Open { app, tail, format, hold, revoked };
    answer::events(stream::unfold(open, |mut open| async move {
        let part = open.part().await?;
        Some((part, open))
    }))
}

impl Open {
    /// The next part; `None` ends the stream.
    async fn part(&mut self) -> Option<Bytes> {
        let app = Arc::clone(&self.app);
        loop {
            let item = tokio::select! {
                () = app.cancel.cancelled() => return None,
                () = &mut self.revoked => return None,
                item = self.tail.next() => item,
                () = sleep(app.limits.keepalive) => return Some(Bytes::from_static(b": still here\n\n")),
            };
            if self.hold.is_revoked() {
                return None;
            }
            let part = match item {
                Ok(item) => self.format.sse(&app, &item).await,
                Err(error) => Err(error),
            };
            match part {
                Ok(part) if part.is_empty() => {}
                Ok(part) if self.tail.is_batched() => return self.rest_of_batch(part).await,
                Ok(part) => return Some(part),
                Err(_) => return None,
            }
        }
    }

    /// This part together with the parts of its batch that are ready.
    async fn rest_of_batch(&mut self, first: Bytes) -> Option<Bytes> {
        let app = Arc::clone(&self.app);
        let mut parts = Vec::from(first);
        while parts.len() < PART_BYTES
            && let Some(item) = self.tail.ready()
        {
            parts.extend_from_slice(&self.format.sse(&app, &item).await.ok()?);
        }
        Some(parts.into())
    }
}
