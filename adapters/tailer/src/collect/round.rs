//! One round of the collector.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    Collector, Stopped,
    files::{FileId, FileOwner, PendingCursor},
    queue::{Job, QueuedTail, ReadPriority},
};
use crate::{
    collect::{
        batch::Batch,
        control::{CollectorHealth, Progress, RootHealth},
    },
    tail::{FileFormat, Now, TailError, disk::Stat},
    watch::Mode,
};

/// A cursor that moved over lines without events is sent after this time.
const OWED_FOR: Duration = Duration::from_secs(2);
/// How long changes may leave a file's times unchanged.
pub(super) const RACY: Duration = Duration::from_secs(2);
/// Minimum time between two checks of everything after lost hints.
const EVERYTHING_GAP: Duration = Duration::from_millis(200);

/// Receives batches.
pub(super) type BatchSink<'a> = &'a mut dyn FnMut(Batch) -> Result<(), Stopped>;

impl Collector {
    /// Does all work that is due at `now` and returns the time of the next round (by the steady clock); a hint makes it
    /// earlier.
    ///
    /// # Errors
    /// If `sink` returns an error.
    pub fn round(&mut self, now: Now, sink: &mut dyn FnMut(Batch) -> Result<(), Stopped>) -> Result<Duration, Stopped> {
        let everything = self.apply_inbox(now);
        if now.steady >= self.due.quiet || everything {
            let all = everything || now.steady >= self.due.watched_directories;
            self.walk(now, all);
            if all {
                self.due.watched_directories = now.steady + self.config.watched_directories_poll;
            }
            if self.due.first_done {
                self.poll_quiet(now, everything);
            }
            self.release_cursors(now);
            self.due.quiet = now.steady + self.config.quiet_poll;
            if !self.due.first_done {
                // Initially it contained every cursor; the cursors of found files were moved to the table.
                self.unclaimed.shrink_to_fit();
            }
            self.due.first_done = true;
        }
        if now.steady >= self.due.hot || everything {
            self.poll_hot(now, sink)?;
            self.due.hot = now.steady + self.hot_poll();
        }
        for id in self.errors.due(now.steady) {
            if let Some(file) = self.files.get_mut(id) {
                file.again_at = Some(now.steady);
            }
            self.check(id, now);
        }
        self.read_dirty(now, sink)?;
        self.due.first_over |= self.due.first_done;
        self.shared.progress.is_counted.store(self.due.first_over, Ordering::Relaxed);
        self.close_some();
        self.add_watches();
        if self.config.workers == 0 {
            self.backfill(now, sink)?;
        }
        self.publish();
        Ok(self.next_at(now))
    }

    fn hot_poll(&self) -> Duration {
        match self.watch.mode() {
            Mode::Watching => self.config.hot_poll_watched,
            Mode::Polling(_) => self.config.hot_poll,
        }
    }

    /// Returns whether to check everything.
    fn apply_inbox(&mut self, now: Now) -> bool {
        let news = self.shared.inbox.drain();
        if let Some(paths) = news.ignore {
            self.set_ignored(paths, now);
        }
        for done in news.done {
            self.apply_finished(done, now);
        }
        if self.due.first_done {
            for path in &news.paths {
                self.check_path(path, now);
            }
        }
        self.due.everything_wanted |= news.everything;
        let everything = self.due.everything_wanted && now.steady >= self.due.everything;
        if everything {
            self.due.everything = now.steady + EVERYTHING_GAP;
            self.due.everything_wanted = false;
        }
        everything
    }

    /// Checks quiet files: some of those without hints, and fewer of the others, so that each is checked within
    /// [`watched_files_poll`](super::CollectorConfig::watched_files_poll).
    fn poll_quiet(&mut self, now: Now, all: bool) {
        let room = self.files.room();
        if all {
            return (0..room).for_each(|id| self.check_quiet(id, now));
        }
        if !self.tree.is_hinted() {
            let count = room.min(self.config.quiet_files as FileId);
            for n in 0..count {
                let id = (self.due.quiet_from + n) % room.max(1);
                let is_hinted = self.files.get_mut(id).is_some_and(|file| self.tree.is_hinted_at(file.place.path()));
                if !is_hinted {
                    self.check_quiet(id, now);
                }
            }
            self.due.quiet_from = (self.due.quiet_from + count) % room.max(1);
        }
        let turns = self.config.watched_files_poll.as_secs_f64() / self.config.quiet_poll.as_secs_f64();
        let count = (f64::from(room) / turns.max(1.0)).ceil() as FileId;
        for n in 0..count {
            self.check_quiet((self.due.sweep_from + n) % room.max(1), now);
        }
        self.due.sweep_from = (self.due.sweep_from + count) % room.max(1);
    }

    fn check_quiet(&mut self, id: FileId, now: Now) {
        if self.files.get_mut(id).is_some_and(|file| !file.gone && !file.hot) {
            self.check(id, now);
        }
    }

    fn poll_hot(&mut self, now: Now, sink: BatchSink<'_>) -> Result<(), Stopped> {
        let mut kept = Vec::with_capacity(self.hot.len());
        for id in std::mem::take(&mut self.hot) {
            self.check(id, now);
            let Some(file) = self.files.get_mut(id).filter(|file| file.hot) else {
                continue;
            };
            let owed = file.owed;
            let cool = now.steady >= file.hot_until && !file.dirty && file.again_at.is_none();
            file.hot = !cool || file.spec.live;
            if file.hot {
                kept.push(id);
            }
            match owed {
                PendingCursor::Lines(since) if now.steady.saturating_sub(since) >= OWED_FOR => {
                    self.flush_cursor(id, sink)?
                }
                PendingCursor::Lines(_) | PendingCursor::Stat if cool => self.flush_cursor(id, sink)?,
                PendingCursor::Lines(_) | PendingCursor::Stat | PendingCursor::Nothing => {}
            }
            if self.files.get_mut(id).is_some_and(|file| !file.hot) {
                self.close(id);
            }
        }
        kept.append(&mut self.hot);
        self.hot = kept;
        Ok(())
    }

    /// Checks whether a file needs to be read.
    pub(super) fn check(&mut self, id: FileId, now: Now) {
        let Some(file) = self.files.get_mut(id) else {
            return;
        };
        if file.ignored || matches!(file.slot, FileOwner::Away) {
            return;
        }
        match file.stat() {
            Ok(stat) => self.check_stat(id, stat, now),
            Err(source) => {
                let (path, offset) = (Arc::clone(file.place.path()), file.resume_offset());
                if self.errors.get(&path).is_none_or(|old| old.retry_at.is_none_or(|at| at <= now.steady)) {
                    self.set_back(id, &TailError::Io { path, offset, source }, None, now);
                }
            }
        }
    }

    /// Like [`Self::check`], with a state that was just read.
    pub(super) fn check_stat(&mut self, id: FileId, stat: Option<Stat>, now: Now) {
        let Some(file) = self.files.get_mut(id) else {
            return;
        };
        if file.ignored || file.dirty || matches!(file.slot, FileOwner::Away) {
            return;
        }
        let mut changed = file.differs(stat.as_ref());
        if file.again_at.is_some_and(|at| at <= now.steady) {
            file.again_at = None;
            changed = true;
        } else if file.troubled {
            let known = self.errors.get(file.place.path());
            match known.map(|known| (known.retry_at, known.seen)) {
                Some((Some(at), _)) if at > now.steady => return,
                Some((None, seen)) if seen == stat => return,
                Some(_) | None => changed = true,
            }
        } else if changed && self.due.first_done || file.spec.live {
            self.heat(id, now.steady);
        } else if let Some(stat) = &stat {
            let age = now.wall.as_millisecond() - stat.modified_ns / 1_000_000;
            if changed && (0..self.config.hot_for.as_millis() as i64).contains(&age) {
                self.heat(id, now.steady);
            }
        }
        if changed {
            self.wake(id, stat, now);
        }
    }

    fn heat(&mut self, id: FileId, steady: Duration) {
        let until = steady + self.config.hot_for;
        let Some(file) = self.files.get_mut(id) else {
            return;
        };
        file.hot_until = until;
        if !file.hot {
            file.hot = true;
            if self.hot.is_empty() {
                self.due.hot = self.due.hot.max(steady + self.hot_poll());
            }
            self.hot.push(id);
        }
    }

    /// Schedules a file for reading: in this round if it has little new content, otherwise in the queue.
    pub(super) fn wake(&mut self, id: FileId, stat: Option<Stat>, now: Now) {
        let first = !self.due.first_done;
        let Some(file) = self.files.get_mut(id) else {
            return;
        };
        let format = file.spec.format;
        let backlog = stat.map_or(0, |stat| format.lag(stat.size, file.resume_offset()));
        let much = match format {
            FileFormat::Lines => first || backlog > self.config.limits.batch_bytes,
            FileFormat::Rows(_) => first,
            // The amount of content is known only after decompression.
            FileFormat::Compressed => true,
            FileFormat::Whole => false,
        };
        let queued = much && stat.is_some();
        if !queued {
            file.dirty = true;
            if file.spec.live {
                self.dirty.push_front(id);
            } else {
                self.dirty.push_back(id);
            }
            return;
        }
        let (issues, live) = (file.issues, file.spec.live);
        self.files.measure(id, backlog, issues);
        let modified_ns = stat.map_or(0, |stat| stat.modified_ns);
        let age = now.wall.as_millisecond() - modified_ns / 1_000_000;
        let fresh = age < self.config.fresh_for.as_millis() as i64;
        let class = if live || (fresh && !first) {
            ReadPriority::Live
        } else if fresh {
            ReadPriority::Recent
        } else {
            ReadPriority::Rest
        };
        self.send_away(id, class, modified_ns, backlog, now);
    }

    fn send_away(&mut self, id: FileId, class: ReadPriority, modified_ns: i64, backlog: u64, now: Now) {
        let Some(file) = self.files.get_mut(id) else {
            return;
        };
        let provider = self.roots[usize::from(file.root)].provider;
        if let Err(error) = file.load_cursor(&*self.committed) {
            self.set_back(id, &error, None, now);
            return;
        }
        let is_new = matches!(file.slot, FileOwner::Fresh);
        let of_cursor = |cursor| QueuedTail::Cursor { place: file.place.clone(), provider, spec: file.spec, cursor };
        let waiting = match std::mem::replace(&mut file.slot, FileOwner::Away) {
            FileOwner::Fresh => of_cursor(None),
            FileOwner::Resting(cursor) => of_cursor(Some(cursor)),
            FileOwner::Open(tail) => QueuedTail::Tail(tail),
            committed @ FileOwner::Committed(_) => {
                file.slot = committed;
                return;
            }
            FileOwner::Away => return,
        };
        Progress::add(&self.shared.progress.files_total, 1);
        Progress::add(&self.shared.progress.bytes_total, backlog);
        self.queue.push(Job { file: id, class, modified_ns, waiting, expected: backlog, is_new });
    }

    /// Closes the files checked longest ago if too many are open.
    pub(super) fn close_some(&mut self) {
        let mut open: Vec<_> = Vec::new();
        for id in &self.hot {
            if let Some(file) = self.files.get_mut(*id).filter(|file| matches!(file.slot, FileOwner::Open(_))) {
                open.push((file.looked_at, *id));
            }
        }
        if open.len() > self.config.open_files {
            open.sort_unstable();
            for (_, id) in &open[..open.len() - self.config.open_files] {
                self.close(*id);
            }
        }
    }

    fn publish(&mut self) {
        let mut health = self.shared.health.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let errors = if self.due.reported == self.errors.version {
            std::mem::take(&mut health.errors)
        } else {
            self.errors.list()
        };
        self.due.reported = self.errors.version;
        let mut roots = std::mem::take(&mut health.roots);
        roots.clear();
        roots.extend(self.roots.iter().enumerate().map(|(index, root)| {
            let (files, lag_bytes) = self.files.of_root(index);
            RootHealth { provider: root.provider, files, lag_bytes }
        }));
        *health = CollectorHealth {
            files: self.files.len() as u64,
            active: self.hot.len() as u64,
            queued: self.queue.len() as u64,
            directories: self.tree.len() as u64,
            lag_bytes: self.files.lag(),
            issues: self.files.issues(),
            errors,
            errors_total: self.errors.len() as u64,
            watch: self.watch.mode().clone(),
            watched: self.watch.directories() as u64,
            roots,
        };
    }

    fn next_at(&self, now: Now) -> Duration {
        let busy =
            !self.dirty.is_empty() || self.tree.has_to_watch() || (self.config.workers == 0 && self.queue.len() > 0);
        if busy {
            return now.steady;
        }
        let mut next = self.due.quiet;
        if !self.hot.is_empty() {
            next = next.min(self.due.hot);
        }
        if self.due.everything_wanted {
            next = next.min(self.due.everything);
        }
        self.errors.next_at().map_or(next, |at| next.min(at))
    }
}
