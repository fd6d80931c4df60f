//! Reads the files that have new content, and sends their events.

use std::{sync::Arc, time::Duration};

use events::Timestamp;

use super::{
    Collector, Stopped,
    files::{FileId, FileOwner, PendingCursor},
    queue::{self, BatchOutcome, Job, QueuedTail},
    round::{BatchSink, RACY},
};
use crate::{
    collect::{batch::Batch, finished_job::FinishedJob},
    tail::{FileFormat, Now, Tail, TailError, TailRead, disk::Stat},
};

/// A cursor that moved this far over lines without events is sent immediately.
const OWED_BYTES: u64 = 256 * 1024;
/// Age after which a read is assumed to be committed, unless something is wrong.
const COMMITTED_AFTER: Duration = Duration::from_secs(5);
/// Maximum number of cursors compared with the committed ones in one round.
const RELEASED_AT_ONCE: usize = 4096;
/// Maximum number of files remembered after they disappeared, in case they return.
const GONE: usize = 4096;

/// A new file that was written this long ago existed before it was found, ms.
const LATELY_MS: i64 = 60_000;
/// An agent that has just started writes its first records within this time, ms.
const FIRST_RECORDS_MS: i64 = 2_000;

/// Whether a new file was written before it was found because it was moved or copied here: neither the file nor a
/// record in it is from the last minute. A copy is as new as the moment of copying, but its records are not. If all
/// records have one old time, the agent may have just started with a wrong clock.
pub(super) fn is_past(look: &TailRead, now: Now) -> bool {
    let is_old = |at: Timestamp| now.wall.since_ms(at) > LATELY_MS;
    let times = || look.events.iter().filter_map(|event| event.created_at);
    let is_moved = look.modified_at.is_some_and(is_old);
    match (times().min(), times().max()) {
        (Some(first), Some(last)) => is_old(last) && (is_moved || last.since_ms(first) > FIRST_RECORDS_MS),
        _ => is_moved,
    }
}

impl Collector {
    pub(super) fn read_dirty(&mut self, now: Now, sink: BatchSink<'_>) -> Result<(), Stopped> {
        for (count, id) in std::mem::take(&mut self.dirty).into_iter().enumerate() {
            // Each file may stay open until the next check, and there may be very many.
            if count > 0 && count % self.config.open_files.max(1) == 0 {
                self.close_some();
            }
            // Workers block until their results are collected, and the files of this loop may be many and large.
            for done in self.shared.inbox.take_results() {
                self.apply_finished(done, now);
            }
            if self.files.get_mut(id).is_some_and(|file| std::mem::take(&mut file.dirty)) {
                self.read(id, now, sink)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, id: FileId, now: Now, sink: BatchSink<'_>) -> Result<(), Stopped> {
        let Some(file) = self.files.get_mut(id) else {
            return Ok(());
        };
        let provider = self.roots[usize::from(file.root)].provider;
        if let Err(error) = file.load_cursor(&*self.committed) {
            self.set_back(id, &error, None, now);
            return Ok(());
        }
        let Some(mut tail) = file.take_tail(provider) else {
            return Ok(());
        };
        let is_new = tail.cursor().generation == 0;
        let before = tail.cursor().offset;
        let result = tail.read(&mut self.reader, now);
        self.store_tail(id, tail, now);
        let look = match result {
            Ok(look) => look,
            Err(error) => {
                let stat = self.files.get_mut(id).and_then(|file| file.stat().ok().flatten());
                self.set_back(id, &error, stat, now);
                return Ok(());
            }
        };
        self.clear_trouble(id);
        let Some(file) = self.files.get_mut(id) else {
            return Ok(());
        };
        if is_new {
            file.past = is_past(&look, now);
        }
        let wait = if file.spec.format == FileFormat::Whole { Duration::ZERO } else { RACY };
        file.again_at = look.unsettled.then(|| now.steady + wait);
        let offset = file.summary().map_or(0, |cursor| cursor.offset);
        file.owed = match file.owed {
            PendingCursor::Lines(since) => PendingCursor::Lines(since),
            PendingCursor::Stat | PendingCursor::Nothing if look.moved => PendingCursor::Lines(now.steady),
            PendingCursor::Stat | PendingCursor::Nothing => PendingCursor::Stat,
        };
        let more = look.more;
        if !look.events.is_empty() || look.vanished || offset.saturating_sub(before) >= OWED_BYTES {
            self.deliver(id, look, sink)?;
        }
        if more {
            self.read_on(id, now);
        } else if let Some(file) = self.files.get_mut(id) {
            file.past = false;
        }
        if self.files.get_mut(id).is_some_and(|file| !file.hot && file.owed != PendingCursor::Nothing) {
            self.flush_cursor(id, sink)?;
        }
        self.forget_gone(id);
        Ok(())
    }

    /// Puts a tail back into the table, and records its state.
    fn store_tail(&mut self, id: FileId, tail: Box<Tail>, now: Now) {
        let cursor = tail.cursor();
        let (size, offset, issues) = (cursor.size, cursor.offset, cursor.issues);
        let Some(format) = self.files.get_mut(id).map(|file| file.spec.format) else {
            return;
        };
        self.files.measure(id, format.lag(size, offset), issues);
        let Some(file) = self.files.get_mut(id) else {
            return;
        };
        file.gone = tail.is_gone();
        file.looked_at = now.steady;
        file.slot = FileOwner::Open(tail);
        if !file.hot || file.gone || file.ignored {
            self.close(id);
        }
    }

    /// Closes a file, unless its first pass is incomplete.
    pub(super) fn close(&mut self, id: FileId) {
        let Some(file) = self.files.get_mut(id) else { return };
        file.close();
        if matches!(file.slot, FileOwner::Resting(_)) {
            self.closed.push_back(id);
        }
    }

    /// Replaces the cursors of files that were closed a while ago by summaries, if the whole cursors are committed.
    /// Does nothing while history is read, because the latest cursors are then not committed yet.
    pub(super) fn release_cursors(&mut self, now: Now) {
        if self.queue.len() > 0 {
            return;
        }
        for _ in 0..self.closed.len().min(RELEASED_AT_ONCE) {
            let Some(id) = self.closed.pop_front() else { return };
            // A reopened file is added again when it is closed; the others must not wait for it.
            let file = self.files.get_mut(id).filter(|file| matches!(file.slot, FileOwner::Resting(_)));
            let Some(file) = file else { continue };
            if file.looked_at + COMMITTED_AFTER > now.steady {
                self.closed.push_front(id);
                return;
            }
            if let Err(error) = file.release_cursor(&*self.committed) {
                tracing::debug!(path = &**file.place.path(), %error, "cannot compare a cursor with the committed one");
                self.closed.push_back(id);
                return;
            }
        }
        if self.closed.is_empty() {
            self.closed.shrink_to_fit();
        }
    }

    fn read_on(&mut self, id: FileId, now: Now) {
        let Some(file) = self.files.get_mut(id) else {
            return;
        };
        let stat = file.stat().ok().flatten();
        self.wake(id, stat, now);
    }

    pub(super) fn flush_cursor(&mut self, id: FileId, sink: BatchSink<'_>) -> Result<(), Stopped> {
        self.deliver(id, TailRead::default(), sink)
    }

    fn deliver(&mut self, id: FileId, look: TailRead, sink: BatchSink<'_>) -> Result<(), Stopped> {
        let Some(file) = self.files.get_mut(id) else {
            return Ok(());
        };
        file.owed = PendingCursor::Nothing;
        let Some(mut cursor) = file.cursor().cloned() else {
            return Ok(());
        };
        cursor.path = file.place.path().to_string();
        let provider = self.roots[usize::from(file.root)].provider;
        let TailRead { events, vanished, modified_at, .. } = look;
        let history = !self.due.first_over || file.past;
        sink(Batch { cursor, provider, events, vanished, modified_at, backfill: false, history })
    }

    /// A file that disappeared becomes quiet. The files gone longest are forgotten.
    fn forget_gone(&mut self, id: FileId) {
        let Some(file) = self.files.get_mut(id).filter(|file| file.gone) else {
            return;
        };
        file.hot = false;
        file.again_at = None;
        self.hot.retain(|hot| *hot != id);
        self.gone.push_back(id);
        if self.gone.len() > GONE
            && let Some(oldest) = self.gone.pop_front()
            && self.files.get_mut(oldest).is_some_and(|file| file.gone && !file.dirty)
        {
            self.files.remove(oldest);
        }
    }

    pub(super) fn set_back(&mut self, id: FileId, error: &TailError, seen: Option<Stat>, now: Now) {
        let Some(file) = self.files.get_mut(id) else {
            return;
        };
        file.troubled = true;
        let path = Arc::clone(file.place.path());
        let passing = error.is_passing().then_some(now.steady);
        self.errors.record(&path, Some(id), error.to_string(), passing, seen);
    }

    fn clear_trouble(&mut self, id: FileId) {
        if let Some(file) = self.files.get_mut(id).filter(|file| file.troubled) {
            file.troubled = false;
            let path = Arc::clone(file.place.path());
            self.errors.clear(&path);
        }
    }

    /// Stores a file that the queue returned.
    pub(super) fn apply_finished(&mut self, done: FinishedJob, now: Now) {
        let FinishedJob { file: id, tail, error } = done;
        self.store_tail(id, tail, now);
        let Some(file) = self.files.get_mut(id) else {
            return;
        };
        file.owed = PendingCursor::Nothing;
        match error {
            Some(error) => {
                let stat = file.stat().ok().flatten();
                self.set_back(id, &error, stat, now);
            }
            None => {
                let changed_ms = file.summary().map_or(0, |cursor| cursor.changed_ns / 1_000_000);
                let age_ms = now.wall.as_millisecond() - changed_ms;
                let racy = age_ms.unsigned_abs() < RACY.as_millis() as u64;
                file.again_at = racy.then(|| now.steady + RACY);
                self.clear_trouble(id);
                self.check(id, now);
                self.forget_gone(id);
            }
        }
    }

    /// Reads one batch of history if there are no workers.
    pub(super) fn backfill(&mut self, now: Now, sink: BatchSink<'_>) -> Result<(), Stopped> {
        let Some(job) = self.queue.pop() else {
            return Ok(());
        };
        let Job { file, class, modified_ns, mut expected, is_new, .. } = job;
        let mut tail = job.tail();
        let progress = Arc::clone(&self.shared.progress);
        match queue::step(&mut tail, &mut self.reader, now, (class, is_new), &mut expected, &progress, sink)? {
            BatchOutcome::More => {
                self.queue.push(Job { file, class, modified_ns, waiting: QueuedTail::Tail(tail), expected, is_new })
            }
            BatchOutcome::Done(error) => {
                queue::finish(&progress, expected);
                self.apply_finished(FinishedJob { file, tail, error }, now);
            }
        }
        Ok(())
    }
}
