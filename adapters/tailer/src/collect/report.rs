//! The files that cannot be read now: the reason, and when each is tried again.

use std::{collections::HashMap, sync::Arc, time::Duration};

use super::files::FileId;
use crate::{collect::control::UnreadPath, tail::disk::Stat};

/// Maximum number of errors kept with their message; the others are only counted.
const SHOWN: usize = 64;
/// First delay after a temporary error.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Longest delay after a temporary error.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A path that cannot be read.
#[derive(Debug)]
pub(super) struct ReadSetback {
    message: Option<String>,
    file: Option<FileId>,
    /// Its state at that time: it is tried again when the state differs.
    pub(super) seen: Option<Stat>,
    /// It is tried again at this time in any case.
    pub(super) retry_at: Option<Duration>,
    wait: Duration,
}

/// All errors, by path.
#[derive(Debug, Default)]
pub(super) struct Errors {
    setbacks: HashMap<Arc<str>, ReadSetback>,
    shown: usize,
    /// Counts changes, so that a report is made only if there is a new one.
    pub(super) version: u64,
}

impl Errors {
    pub(super) fn get(&self, path: &str) -> Option<&ReadSetback> {
        self.setbacks.get(path)
    }

    pub(super) fn len(&self) -> usize {
        self.setbacks.len()
    }

    /// Records an error. It is logged unless it is already known.
    pub(super) fn record(
        &mut self,
        path: &Arc<str>,
        file: Option<FileId>,
        message: String,
        passing: Option<Duration>,
        seen: Option<Stat>,
    ) {
        let old = self.setbacks.remove(path);
        let known = old.as_ref().is_some_and(|old| old.message.as_deref() == Some(&message));
        let wait = old.as_ref().map_or(FIRST_WAIT, |old| old.wait);
        self.shown -= usize::from(old.is_some_and(|old| old.message.is_some()));
        if !known {
            tracing::warn!("{message}");
            self.version += 1;
        }
        let show = self.shown < SHOWN;
        self.shown += usize::from(show);
        let setback =
            ReadSetback { message: show.then_some(message), file, seen, retry_at: passing.map(|now| now + wait), wait };
        self.setbacks.insert(Arc::clone(path), setback);
    }

    pub(super) fn clear(&mut self, path: &str) {
        if let Some(old) = self.setbacks.remove(path) {
            self.shown -= usize::from(old.message.is_some());
            self.version += 1;
        }
    }

    /// Forgets the errors directly in a directory that belong to no file of the table (such as a link to a directory)
    /// and that `keep` rejects.
    pub(super) fn retain_in(&mut self, directory: &str, keep: impl Fn(&str) -> bool) {
        let in_it = |path: &str| {
            path.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/')).is_some_and(|name| !name.contains('/'))
        };
        let over = |(path, setback): (&Arc<str>, &ReadSetback)| {
            (setback.file.is_none() && in_it(path) && !keep(path)).then(|| Arc::clone(path))
        };
        let over: Vec<_> = self.setbacks.iter().filter_map(over).collect();
        over.iter().for_each(|path| self.clear(path));
    }

    /// Files to try again now. Schedules the next try, whatever the outcome of this one.
    pub(super) fn due(&mut self, now: Duration) -> Vec<FileId> {
        let mut due = Vec::new();
        for setback in self.setbacks.values_mut().filter(|setback| setback.retry_at.is_some_and(|at| at <= now)) {
            setback.wait = (setback.wait * 2).min(LONGEST_WAIT);
            setback.retry_at = Some(now + setback.wait);
            due.extend(setback.file);
        }
        due
    }

    /// When the next file is tried again.
    pub(super) fn next_at(&self) -> Option<Duration> {
        self.setbacks.values().filter(|setback| setback.file.is_some()).filter_map(|setback| setback.retry_at).min()
    }

    pub(super) fn list(&self) -> Vec<UnreadPath> {
        let shown = |(path, setback): (&Arc<str>, &ReadSetback)| {
            let message = setback.message.clone()?;
            Some(UnreadPath { path: path.to_string(), message })
        };
        let mut list: Vec<_> = self.setbacks.iter().filter_map(shown).collect();
        list.sort_by(|a, b| a.path.cmp(&b.path));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_errors_are_retried_with_exponential_backoff() {
        let (mut errors, path) = (Errors::default(), Arc::from("/f"));
        let seconds = Duration::from_secs_f64;
        errors.record(&path, Some(7), "no".into(), Some(seconds(0.0)), None);
        assert_eq!(errors.next_at(), Some(seconds(0.5)));
        assert!(errors.due(seconds(0.4)).is_empty());
        assert_eq!(errors.due(seconds(0.5)), [7]);
        assert!(errors.due(seconds(0.5)).is_empty(), "it was handed out");
        let mut now = seconds(0.5);
        let waits = [1.0, 2.0, 4.0, 8.0, 10.0, 10.0].map(|wait| {
            let next = errors.next_at().unwrap();
            assert_eq!(next - now, seconds(wait));
            now = next;
            errors.due(now)
        });
        assert!(waits.iter().all(|due| *due == [7]));
        errors.clear("/f");
        assert_eq!((errors.len(), errors.list().len(), errors.next_at()), (0, 0, None));
    }

    #[test]
    fn tail_error_list_is_bounded_while_all_errors_are_counted() {
        let mut errors = Errors::default();
        for n in 0..1000 {
            errors.record(&Arc::from(format!("/{n}")), Some(n), "no".into(), None, None);
        }
        assert_eq!((errors.len(), errors.list().len()), (1000, SHOWN));
    }
}
