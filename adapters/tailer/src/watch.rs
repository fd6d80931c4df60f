//! Hints from the operating system that something changed in a directory.
//!
//! A hint only means "check": it can be late, duplicated, lost or spurious, and the poll in [`crate::collect`] finds
//! every change anyway. Directories are watched one by one, not recursively: only directories with sessions use a watch
//! (inotify limits them per user), links are never followed, and the caller limits the number. Hints about reads are
//! dropped here, because our own reads would otherwise wake us endlessly.

use std::{
    io,
    path::{Path, PathBuf},
};

use notify::{ErrorKind, Event, EventKind, RecursiveMode, Watcher};

#[cfg(test)]
mod tests;

/// The target of a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// This file or directory.
    Path(PathBuf),
    /// Everything, because hints were lost.
    Everything,
}

/// How changes are noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// By hints, with polling as a fallback.
    Watching,
    /// Only by polling, and the reason.
    Polling(&'static str),
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Watching => f.write_str("watching"),
            Self::Polling(why) => write!(f, "polling: {why}"),
        }
    }
}

const NO_WATCHES: &str = "no inotify watches left (fs.inotify.max_user_watches)";
const NO_INSTANCES: &str = "no inotify instances or files left (fs.inotify.max_user_instances, ulimit -n)";
const NO_WATCHER: &str = "this system does not report file changes";
const SWITCHED_OFF: &str = "watching is switched off";

/// The watched directories.
pub struct Watch {
    watcher: Option<Box<dyn Watcher + Send>>,
    mode: Mode,
    directories: usize,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("mode", &self.mode).field("directories", &self.directories).finish()
    }
}

impl Watch {
    /// Starts without directories. `tell` is called on a separate thread and must not block. If watching is not
    /// possible, the mode contains the reason.
    #[must_use]
    pub fn start(tell: impl Fn(Hint) + Send + 'static) -> Self {
        let handler = move |event: notify::Result<Event>| forward(event, &tell);
        let config = notify::Config::default().with_follow_symlinks(false);
        match notify::RecommendedWatcher::new(handler, config) {
            Ok(watcher) => Self::with(Box::new(watcher)),
            Err(error) => Self { watcher: None, mode: Mode::Polling(reason(&error)), directories: 0 },
        }
    }

    /// Watches nothing, as configured.
    #[must_use]
    pub fn off() -> Self {
        Self { watcher: None, mode: Mode::Polling(SWITCHED_OFF), directories: 0 }
    }

    /// Uses this watcher.
    pub(crate) fn with(watcher: Box<dyn Watcher + Send>) -> Self {
        Self { watcher: Some(watcher), mode: Mode::Watching, directories: 0 }
    }

    /// Watches a directory, but not its subdirectories. Returns whether it is watched. If the system has no watches
    /// left, watching ends altogether, and the mode contains the reason.
    pub fn add(&mut self, directory: &Path) -> bool {
        let Some(watcher) = &mut self.watcher else {
            return false;
        };
        match watcher.watch(directory, RecursiveMode::NonRecursive) {
            Ok(()) => {
                self.directories += 1;
                true
            }
            Err(error) if is_exhausted(&error) => {
                // With hints for only some directories the latency of a file would be unpredictable, and other programs
                // may need the watches.
                self.watcher = None;
                self.directories = 0;
                self.mode = Mode::Polling(reason(&error));
                false
            }
            Err(error) => {
                tracing::debug!(directory = %directory.display(), %error, "not watched");
                false
            }
        }
    }

    /// Stops watching a directory.
    pub fn remove(&mut self, directory: &Path) {
        if let Some(watcher) = &mut self.watcher {
            self.directories = self.directories.saturating_sub(1);
            // Fails if the directory is gone; the watch then ended with it.
            let _ = watcher.unwatch(directory);
        }
    }

    /// How changes are noticed.
    #[must_use]
    pub fn mode(&self) -> &Mode {
        &self.mode
    }

    /// Directories watched.
    #[must_use]
    pub fn directories(&self) -> usize {
        self.directories
    }
}

/// Maximum number of directories to watch: an eighth of the user's watches, and no more than was measured.
#[must_use]
pub fn most_directories() -> usize {
    const LEAST: usize = 1024;
    const MOST: usize = 16_384;
    crate::os::allowed_watches().map_or(LEAST, |allowed| (allowed / 8).clamp(LEAST, MOST))
}

fn forward(event: notify::Result<Event>, tell: &impl Fn(Hint)) {
    let Ok(event) = event else {
        return tell(Hint::Everything);
    };
    if event.need_rescan() || matches!(event.kind, EventKind::Other | EventKind::Any) {
        return tell(Hint::Everything);
    }
    match event.kind {
        EventKind::Access(_) => {}
        EventKind::Any | EventKind::Other | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) => {
            event.paths.into_iter().for_each(|path| tell(Hint::Path(path)));
        }
    }
}

fn is_exhausted(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        ErrorKind::Io(error) => is_out_of_files(error),
        ErrorKind::Generic(_) | ErrorKind::PathNotFound | ErrorKind::WatchNotFound | ErrorKind::InvalidConfig(_) => {
            false
        }
    }
}

fn is_out_of_files(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let code = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE, Errno::NOSPC].iter().any(|errno| code == Some(errno.raw_os_error()))
}

fn reason(error: &notify::Error) -> &'static str {
    match &error.kind {
        ErrorKind::MaxFilesWatch => NO_WATCHES,
        ErrorKind::Io(error) if is_out_of_files(error) => NO_INSTANCES,
        ErrorKind::Io(_)
        | ErrorKind::Generic(_)
        | ErrorKind::PathNotFound
        | ErrorKind::WatchNotFound
        | ErrorKind::InvalidConfig(_) => NO_WATCHER,
    }
}
