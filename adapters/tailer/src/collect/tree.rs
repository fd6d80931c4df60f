//! Finds directories and files below the roots.
//!
//! A directory is listed when its ctime changed, and once more a little later if the change was so recent that the next
//! one might not change the ctime. No program can set a ctime.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustix::fs::{Dir, FileType};

use super::{
    Collector,
    files::{FileEntry, FileId},
    queue,
};
use crate::{
    collect::directories::Directory,
    tail::{
        FileFormat, Now,
        disk::{self, OpenError, PathKind, ReadRefusal, RootedPath, Stat},
    },
    watch::Mode,
};

/// Deepest nesting of directories below a root; no provider goes deeper.
const DEEPEST: usize = 12;
/// A directory that changed this short a time before its listing is listed again later.
const RACY: Duration = Duration::from_secs(2);
/// Maximum number of directories passed to the watcher in one round; each costs a round trip.
const WATCHES_A_TURN: usize = 32;

/// The content of a directory.
struct Listing {
    directory: Dir,
    names: Vec<(String, FileType)>,
}

impl Collector {
    /// Checks every directory, and lists those that changed; without `all`, only directories without hints.
    pub(super) fn walk(&mut self, now: Now, all: bool) {
        self.find_roots(now);
        self.check_directories(0, all, now);
        if !self.due.first_done {
            self.plan_watches();
        }
    }

    fn find_roots(&mut self, now: Now) {
        for number in 0..self.roots.len() {
            let Some(path) = self.roots[number].dir.to_str().map(|path| path.trim_end_matches('/')) else {
                let path: Arc<str> = Arc::from(self.roots[number].dir.to_string_lossy());
                let message = format!("{path} is not read: its path is not valid UTF-8");
                self.errors.record(&path, None, message, None, None);
                continue;
            };
            if self.tree.index.contains_key(path) || !Path::new(path).is_dir() {
                continue;
            }
            let path: Arc<str> = Arc::from(path);
            let at = self.tree.add(Arc::clone(&path), number as u16);
            self.check_directories(at, true, now);
            self.claim_missing(number as u16, &path, now);
        }
    }

    /// Reports the files below a root that no longer exist, although they have cursors.
    fn claim_missing(&mut self, root: u16, dir: &str, now: Now) {
        let below = |path: &String| path.strip_prefix(dir)?.strip_prefix('/').map(str::to_owned);
        let missing: Vec<_> = self.unclaimed.keys().filter_map(|path| Some((path.clone(), below(path)?))).collect();
        for (path, relative) in missing {
            let Some(spec) = self.roots[usize::from(root)].recognize.file(Path::new(&relative)) else {
                continue;
            };
            let mut file = FileEntry::new(RootedPath::new(dir, &relative), root, spec, self.unclaimed.remove(&path));
            file.ignored = queue::is_ignored(&self.ignored, Path::new(&path));
            let id = self.files.add(file);
            self.check(id, now);
        }
    }

    /// Checks the directories from this index on, including those found on the way.
    fn check_directories(&mut self, from: usize, all: bool, now: Now) {
        let mut at = from;
        while let Some(directory) = self.tree.directories.get(at) {
            let due = directory.again_at.is_some_and(|again| again <= now.steady) || directory.listed_ns.is_none();
            if !all && directory.is_hinted() && !due || self.check_directory(at, now) {
                at += 1;
            }
        }
    }

    /// Lists a directory if it changed. Returns `false` if it disappeared, and another directory now has its index.
    fn check_directory(&mut self, at: usize, now: Now) -> bool {
        let directory = &self.tree.directories[at];
        let is_root = self.roots[usize::from(directory.root)].dir == Path::new(&*directory.path);
        let stat = if is_root {
            rustix::fs::stat(&*directory.path).map(|stat| Some(Stat::from(stat))).unwrap_or(None)
        } else {
            disk::stat_path(&directory.path).unwrap_or(None)
        };
        let Some(stat) = stat.filter(|stat| stat.kind == PathKind::Directory) else {
            self.drop_directory(at);
            return false;
        };
        let same = directory.key == stat.key && directory.listed_ns == Some(stat.changed_ns);
        if !same || directory.again_at.is_some_and(|again| again <= now.steady) {
            self.list_directory(at, stat, now);
        }
        true
    }

    /// Removes a directory. The poll finds that its files disappeared.
    fn drop_directory(&mut self, at: usize) {
        let removed = self.tree.remove(at);
        if removed.watched {
            self.watch.remove(Path::new(&*removed.path));
        }
        self.errors.clear(&removed.path);
    }

    fn list_directory(&mut self, at: usize, stat: Stat, now: Now) {
        let directory = &mut self.tree.directories[at];
        let known = directory.listed_ns.is_some();
        let replaced = known && directory.key != stat.key;
        let age_ms = now.wall.as_millisecond() - stat.changed_ns / 1_000_000;
        let racy =
            known && directory.listed_ns != Some(stat.changed_ns) || age_ms.unsigned_abs() < RACY.as_millis() as u64;
        directory.key = stat.key;
        directory.listed_ns = Some(stat.changed_ns);
        directory.again_at = racy.then(|| now.steady + RACY);
        let (path, root) = (Arc::clone(&directory.path), directory.root);
        if replaced && directory.watched {
            directory.watched = false;
            self.watch.remove(Path::new(&*path));
        }
        if self.due.first_done {
            // Watched before it is listed, so that later files cause a hint or are listed.
            self.watch_directory(at);
        }
        let top = self.roots[usize::from(root)].dir.to_str().unwrap_or_default().trim_end_matches('/').to_owned();
        let relative = path[top.len()..].trim_start_matches('/');
        match entries(&top, relative) {
            Ok(listing) => {
                self.errors.clear(&path);
                self.add_entries(&top, relative, root, &listing, now);
            }
            Err(OpenError::Gone) => self.tree.directories[at].listed_ns = None,
            Err(error) => {
                self.tree.directories[at].listed_ns = None;
                let message = match error {
                    OpenError::Refused(reason) => format!("{path} is not read: {reason}"),
                    OpenError::Io(error) => format!("cannot list {path}: {error}"),
                    OpenError::Gone => return,
                };
                self.errors.record(&path, None, message, None, None);
            }
        }
    }

    fn add_entries(&mut self, top: &str, relative: &str, root: u16, listing: &Listing, now: Now) {
        let mut below = String::with_capacity(relative.len() + 64);
        let mut full = String::with_capacity(top.len() + relative.len() + 64);
        let mut refused = Vec::new();
        for (name, kind) in &listing.names {
            below.clear();
            if !relative.is_empty() {
                below.extend([relative, "/"]);
            }
            below.push_str(name);
            full.clear();
            full.extend([top, "/", &below]);
            let stat = || disk::stat_in(listing.directory.fd().ok()?, name);
            // Some file systems do not report the type of a name.
            let kind = if *kind == FileType::Unknown {
                stat().map_or(PathKind::Special, |stat| stat.kind)
            } else {
                PathKind::from(*kind)
            };
            match kind {
                PathKind::Directory => self.add_directory(&full, &below, root),
                PathKind::File | PathKind::Special => self.add_file(top, &full, &below, root, &stat, now),
                PathKind::Symlink => {
                    self.add_file(top, &full, &below, root, &stat, now);
                    refused.extend(self.refuse_link(&full, &below, root));
                }
            }
        }
        let directory = if relative.is_empty() { top.to_owned() } else { format!("{top}/{relative}") };
        let index = &self.tree.index;
        self.errors.retain_in(&directory, |path| index.contains_key(path) || refused.iter().any(|one| one == path));
    }

    fn add_directory(&mut self, full: &str, below: &str, root: u16) {
        let known = self.tree.index.contains_key(full);
        if !known
            && below.split('/').count() <= DEEPEST
            && self.roots[usize::from(root)].recognize.enter(Path::new(below))
        {
            self.tree.add(Arc::from(full), root);
        }
    }

    /// Refuses a link in place of a directory of sessions, and reports it.
    fn refuse_link(&mut self, full: &str, below: &str, root: u16) -> Option<String> {
        if !self.roots[usize::from(root)].recognize.enter(Path::new(below)) || !Path::new(full).is_dir() {
            return None;
        }
        let message = format!("{full} is not read: {}", ReadRefusal::Symlink);
        self.errors.record(&Arc::from(full), None, message, None, None);
        Some(full.to_owned())
    }

    fn add_file(&mut self, top: &str, full: &str, below: &str, root: u16, stat: &dyn Fn() -> Option<Stat>, now: Now) {
        let id = match self.files.find(full) {
            Some(id) if self.files.get_mut(id).is_some_and(|file| !file.gone) => return,
            Some(id) => id,
            None => {
                let Some(spec) = self.roots[usize::from(root)].recognize.file(Path::new(below)) else {
                    return;
                };
                let mut file = FileEntry::new(RootedPath::new(top, below), root, spec, self.unclaimed.remove(full));
                file.ignored = queue::is_ignored(&self.ignored, Path::new(full));
                self.files.add(file)
            }
        };
        match self.files.get_mut(id).map(|file| file.spec.format) {
            // The size from the listing does not include the database's log.
            Some(FileFormat::Rows(_)) => self.check(id, now),
            Some(FileFormat::Lines | FileFormat::Compressed | FileFormat::Whole) | None => {
                self.check_stat(id, stat(), now)
            }
        }
    }

    /// Checks a path from a hint, of any type.
    pub(super) fn check_path(&mut self, path: &Path, now: Now) {
        let Some(text) = path.to_str() else { return };
        let database = || self.files.find(text.strip_suffix(disk::WRITE_AHEAD_LOG)?);
        if let Some(id) = self.files.find(text).or_else(database) {
            self.queue.lift(id, now.wall.as_millisecond().saturating_mul(1_000_000));
            return self.check(id, now);
        }
        // Everything new below the nearest known directory is found by listing it.
        let mut above = Some(path);
        while let Some(directory) = above {
            if let Some(at) = directory.to_str().and_then(|text| self.tree.index.get(text).copied()) {
                let first_new = self.tree.directories.len();
                if directory == path || self.is_of_interest(at, path) {
                    if directory != path {
                        self.tree.directories[at].listed_ns = None;
                    }
                    if self.check_directory(at, now) {
                        self.check_directories(first_new, true, now);
                    } else {
                        self.files.below(directory).into_iter().for_each(|file| self.check(file, now));
                    }
                }
                return;
            }
            above = directory.parent();
        }
    }

    fn is_of_interest(&self, directory: usize, path: &Path) -> bool {
        let root = &self.roots[usize::from(self.tree.directories[directory].root)];
        let Ok(relative) = path.strip_prefix(&root.dir) else {
            return false;
        };
        root.recognize.file(relative).is_some() || (root.recognize.enter(relative) && path.is_dir())
    }

    /// Plans the directories to watch after the first walk: the roots, then the most recently changed ones.
    fn plan_watches(&mut self) {
        let mut order: Vec<_> = (0..self.tree.directories.len()).collect();
        order.sort_by_cached_key(|at| {
            let directory = &self.tree.directories[*at];
            let is_root = self.roots.iter().any(|root| root.dir == Path::new(&*directory.path));
            (!is_root, std::cmp::Reverse(directory.listed_ns))
        });
        order.truncate(self.config.watches);
        self.tree.to_watch = order.iter().map(|at| Arc::clone(&self.tree.directories[*at].path)).collect();
    }

    /// Watches some of the planned directories.
    pub(super) fn add_watches(&mut self) {
        for _ in 0..WATCHES_A_TURN {
            let Some(path) = self.tree.to_watch.pop_front() else {
                return;
            };
            if let Some(at) = self.tree.index.get(&path).copied() {
                self.watch_directory(at);
                // Changes between its listing and now caused no hint.
                self.tree.directories[at].again_at.get_or_insert(Duration::ZERO);
            }
        }
    }

    fn watch_directory(&mut self, at: usize) {
        if self.tree.directories[at].watched || *self.watch.mode() != Mode::Watching {
            return;
        }
        if self.watch.directories() >= self.config.watches {
            self.unwatch_one();
        }
        let path = Arc::clone(&self.tree.directories[at].path);
        let watched = self.watch.add(Path::new(&*path));
        self.tree.directories[at].watched = watched;
        self.tree.directories[at].local = watched && crate::os::is_local(Path::new(&*path));
        if *self.watch.mode() != Mode::Watching {
            tracing::warn!("file changes are noticed later than usual: {}", self.watch.mode());
            self.tree.to_watch.clear();
            self.tree.directories.iter_mut().for_each(|directory| directory.watched = false);
        }
    }

    /// Stops watching the directory that changed longest ago.
    fn unwatch_one(&mut self) {
        let roots = &self.roots;
        let is_root = |directory: &Directory| roots.iter().any(|root| root.dir == Path::new(&*directory.path));
        let candidates = self.tree.directories.iter_mut().filter(|directory| directory.watched && !is_root(directory));
        if let Some(oldest) = candidates.min_by_key(|directory| directory.listed_ns) {
            oldest.watched = false;
            self.watch.remove(Path::new(&*oldest.path));
        }
    }

    /// Applies a new list of ignored paths.
    pub(super) fn set_ignored(&mut self, paths: Vec<PathBuf>, now: Now) {
        self.ignored = Arc::from(paths);
        self.queue.ignore(Arc::clone(&self.ignored));
        for id in 0..self.files.room() as FileId {
            let Some(file) = self.files.get_mut(id) else {
                continue;
            };
            let ignored = queue::is_ignored(&self.ignored, Path::new(&**file.place.path()));
            let back = file.ignored && !ignored;
            file.ignored = ignored;
            if ignored {
                file.dirty = false;
                self.close(id);
            } else if back {
                self.check(id, now);
            }
        }
    }
}

/// Lists a directory without following links in its path.
fn entries(root: &str, relative: &str) -> Result<Listing, OpenError> {
    let io = |errno: rustix::io::Errno| OpenError::Io(errno.into());
    let mut directory = Dir::new(disk::open_directory(root, relative)?).map_err(io)?;
    let mut names = Vec::new();
    while let Some(entry) = directory.read() {
        let entry = entry.map_err(io)?;
        match entry.file_name().to_str() {
            Ok("." | "..") => {}
            Ok(name) => names.push((name.to_owned(), entry.file_type())),
            Err(_) => tracing::debug!(directory = relative, "skipping a file whose name is not valid UTF-8"),
        }
    }
    Ok(Listing { directory, names })
}
