//! The index on disk: opening, checking against the store, committing, replacing.
//!
//! A commit records the log and the position it extends to. So nothing is lost or duplicated when the process dies:
//! events after the last commit are read from the store again. An index that is damaged, of another version or of
//! another log is removed and rebuilt.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use api::search::{IndexState, IndexStatus};
use crossbeam_channel::{Receiver, Sender, bounded};
use events::SessionId;
use serde::{Deserialize, Serialize};
use store::{ReadError, Reader};
use tantivy::{
    Index, IndexSettings, TantivyError,
    directory::error::{OpenDirectoryError, OpenReadError, OpenWriteError},
};

use crate::{
    feeder::{Feeder, Pace},
    fields::{Fields, VERSION},
    on_demand_reader::OnDemandReader,
    private_directory::PrivateDirectory,
    tokens::{self, CodeTokenizer},
};

/// Longest wait of a search for the index to open after a start.
const OPENS_WITHIN: Duration = Duration::from_secs(1);

/// The record in a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    version: u32,
    /// The id of the log that the position refers to, hexadecimal.
    log: String,
    /// Position up to which the log is searchable.
    pub(crate) position: u64,
}

impl Mark {
    pub(crate) fn new(log: [u8; 16], position: u64) -> Self {
        Self { version: VERSION, log: format!("{:032x}", u128::from_be_bytes(log)), position }
    }

    /// Whether a commit belongs to this log and this version.
    fn fits(&self, log: [u8; 16]) -> bool {
        *self == Self { position: self.position, ..Self::new(log, 0) }
    }
}

/// Why the index cannot be used now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IndexError {
    #[error(transparent)]
    Tantivy(#[from] TantivyError),
    #[error(transparent)]
    Store(#[from] ReadError),
    #[error("cannot {what} the directory {path}: {source}")]
    Directory { what: &'static str, path: PathBuf, source: io::Error },
}

/// An open index.
#[derive(Clone)]
pub(crate) struct OpenIndex {
    pub(crate) index: Index,
    pub(crate) reader: Arc<OnDemandReader>,
    pub(crate) fields: Fields,
    pub(crate) log: [u8; 16],
}

impl OpenIndex {
    /// Number of texts in the last commit; 0 if it cannot be read.
    fn texts(&self) -> u64 {
        let parts = self.index.searchable_segment_metas().unwrap_or_default();
        parts.iter().map(|part| u64::from(part.num_docs())).sum()
    }
}

/// The index of one store. Clones share it.
#[derive(Clone)]
pub struct SearchIndex(pub(crate) Arc<IndexParts>);

impl std::fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SearchIndex").field(&self.0.directory).finish()
    }
}

pub(crate) struct IndexParts {
    pub(crate) directory: PathBuf,
    open: RwLock<Option<OpenIndex>>,
    /// Whether the feeder has not tried to open it yet.
    is_opening: AtomicBool,
    /// Position up to which the log is searchable.
    pub(crate) indexed: AtomicU64,
    /// The last position known to be committed.
    pub(crate) committed: AtomicU64,
    pub(crate) is_ready: AtomicBool,
    /// Number of texts and size of the files in bytes after the last commit. Cached, because they are requested often
    /// and an index may have a thousand files.
    texts: AtomicU64,
    bytes: AtomicU64,
    /// Notified whenever `indexed` grows.
    grown: (Mutex<()>, Condvar),
    trouble: Mutex<Option<String>>,
    wake: Sender<()>,
    pub(crate) orders: Orders,
}

/// Orders to the feeder.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    pub(crate) stop: AtomicBool,
    pub(crate) rebuild: AtomicBool,
    /// A search waits for committed texts.
    pub(crate) flush: AtomicBool,
    /// A search failed: the files may be damaged.
    pub(crate) check: AtomicBool,
    pub(crate) erase: Mutex<EraseOrders>,
}

/// Sessions whose texts must be removed.
#[derive(Debug, Default)]
pub(crate) struct EraseOrders {
    pub(crate) sessions: Vec<SessionId>,
    /// Number of orders given, and of those completed.
    pub(crate) given: u64,
    pub(crate) done: u64,
}

impl SearchIndex {
    /// Creates the index of a store in its own directory, and the feeder that opens it, which needs its own thread.
    /// Must be called before the store is written to, so that an index that is ahead of the store is detected.
    #[must_use]
    pub fn open(directory: PathBuf, store: Reader) -> (Self, Feeder) {
        Self::open_at_pace(directory, store, Pace::default())
    }

    /// Like [`open`](Self::open), with another [`Pace`].
    #[must_use]
    pub fn open_at_pace(directory: PathBuf, store: Reader, pace: Pace) -> (Self, Feeder) {
        let (wake, woken) = bounded(1);
        let shared = Arc::new(IndexParts {
            directory,
            open: RwLock::default(),
            is_opening: AtomicBool::new(true),
            indexed: AtomicU64::new(0),
            committed: AtomicU64::new(0),
            is_ready: AtomicBool::new(false),
            texts: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            grown: Default::default(),
            trouble: Mutex::default(),
            wake,
            orders: Orders::default(),
        });
        let feeder = Feeder::new(Arc::clone(&shared), store, woken, pace);
        (Self(shared), feeder)
    }

    /// Notifies the feeder that the store has committed up to this position.
    pub fn committed(&self, position: u64) {
        self.0.committed.fetch_max(position, Ordering::Relaxed);
        self.0.wake();
    }

    /// Removes and rebuilds the index.
    pub fn rebuild(&self) {
        let guard = self.0.grown.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.orders.rebuild.store(true, Ordering::Relaxed);
        self.0.indexed.store(0, Ordering::Relaxed);
        drop(guard);
        self.0.wake();
    }

    /// Removes the texts of removed sessions from the index and its files. Returns false on a timeout or failure: then
    /// the caller must repeat the order.
    #[must_use]
    pub fn erase_sessions(&self, ids: &[SessionId], within: Duration) -> bool {
        let number = {
            let mut orders = self.0.erase_orders();
            orders.sessions.extend(ids);
            orders.given += 1;
            orders.given
        };
        self.0.wake();
        let (lock, grown) = &self.0.grown;
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = |(): &mut ()| self.0.erase_orders().done < number;
        let waited = grown.wait_timeout_while(guard, within, is_open);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Stops the feeder.
    pub fn stop(&self) {
        self.0.orders.stop.store(true, Ordering::Relaxed);
        self.0.wake();
    }

    /// The position up to which the log is searchable, and the last committed position.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let indexed = self.0.indexed.load(Ordering::Relaxed);
        (indexed, self.0.committed.load(Ordering::Relaxed).max(indexed))
    }

    /// Waits until the store's commits are searchable, unless a backlog is being read.
    pub fn catch_up(&self, position: u64, within: Duration) {
        if self.0.is_ready.load(Ordering::Relaxed) && self.0.indexed.load(Ordering::Relaxed) < position {
            self.0.orders.flush.store(true, Ordering::Relaxed);
            self.committed(position);
            let _in_time = self.wait_for(position, within);
        }
    }

    /// Waits until the log is searchable up to a position; false on a timeout.
    #[must_use]
    pub fn wait_for(&self, position: u64, within: Duration) -> bool {
        let (lock, grown) = &self.0.grown;
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let is_behind = |(): &mut ()| self.0.indexed.load(Ordering::Relaxed) < position;
        let waited = grown.wait_timeout_while(guard, within, is_behind);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// The state of the index.
    #[must_use]
    pub fn status(&self) -> IndexStatus {
        let (indexed, total) = self.progress();
        let trouble = self.0.trouble().clone();
        let state = match &trouble {
            Some(_) => IndexState::Paused,
            None if self.0.orders.rebuild.load(Ordering::Relaxed) => IndexState::Building,
            None if self.0.is_ready.load(Ordering::Relaxed) => IndexState::Ready,
            None => IndexState::Building,
        };
        let [texts, bytes] = [&self.0.texts, &self.0.bytes].map(|size| size.load(Ordering::Relaxed));
        IndexStatus { state, indexed, total, texts, bytes, trouble }
    }
}

impl IndexParts {
    /// Measures the size of the index.
    pub(crate) fn measure(&self, open: &OpenIndex) {
        let files = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let bytes = files.filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum();
        self.texts.store(open.texts(), Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn wake(&self) {
        // One pending wake-up is enough.
        self.wake.try_send(()).ok();
    }

    /// Sets the position up to which the log is searchable.
    pub(crate) fn set_indexed(&self, position: u64) {
        let _guard = self.grown.0.lock().unwrap_or_else(PoisonError::into_inner);
        if self.orders.rebuild.load(Ordering::Relaxed) {
            // The index is about to be removed.
            return;
        }
        self.indexed.store(position, Ordering::Relaxed);
        self.grown.1.notify_all();
    }

    pub(crate) fn erase_orders(&self) -> MutexGuard<'_, EraseOrders> {
        self.orders.erase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the orders up to this one as completed.
    pub(crate) fn set_erased(&self, number: u64) {
        let _guard = self.grown.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.erase_orders().done = number;
        self.grown.1.notify_all();
    }

    /// Records that the feeder opened the index or failed to.
    pub(crate) fn set_opened(&self) {
        if self.is_opening.load(Ordering::Relaxed) {
            let _guard = self.grown.0.lock().unwrap_or_else(PoisonError::into_inner);
            self.is_opening.store(false, Ordering::Relaxed);
            self.grown.1.notify_all();
        }
    }

    /// The index, if it is open. After a start this waits for it to open.
    pub(crate) fn opened(&self) -> Option<OpenIndex> {
        if self.is_opening.load(Ordering::Relaxed) {
            let (lock, grown) = &self.grown;
            let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
            drop(grown.wait_timeout_while(guard, OPENS_WITHIN, |()| self.is_opening.load(Ordering::Relaxed)));
        }
        self.open.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_open(&self, open: Option<OpenIndex>) {
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = open;
    }

    pub(crate) fn trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The channel that wakes the feeder.
pub(crate) type Woken = Receiver<()>;

/// Opens the index in `directory`; replaces an unusable one by an empty one. Also returns the position of its last
/// commit.
pub(crate) fn open(directory: &Path, log: [u8; 16]) -> Result<(OpenIndex, u64), IndexError> {
    match try_open(directory, log) {
        Ok(opened) => Ok(opened),
        Err(Unusable::ForNow(error)) => Err(error.into()),
        Err(Unusable::ForGood(why)) => {
            if directory.exists() {
                tracing::info!(why, "the search index is being rebuilt");
            }
            create(directory, log).map(|open| (open, 0))
        }
    }
}

/// Why an index cannot be opened.
enum Unusable {
    /// The files may be intact.
    ForNow(TantivyError),
    /// The index is damaged or belongs to another version or log.
    ForGood(String),
}

impl From<TantivyError> for Unusable {
    fn from(error: TantivyError) -> Self {
        if is_of_the_system(&error) { Self::ForNow(error) } else { Self::ForGood(error.to_string()) }
    }
}

/// Whether an error is unrelated to the files' content: the disk is full, or too many files are open.
pub(crate) fn is_of_the_system(error: &TantivyError) -> bool {
    let of_io = |error: &io::Error| error.raw_os_error().is_some() && error.kind() != io::ErrorKind::NotFound;
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others are about what is in the files")]
    match error {
        TantivyError::IoError(error) => of_io(error),
        TantivyError::OpenReadError(OpenReadError::IoError { io_error, .. })
        | TantivyError::OpenWriteError(OpenWriteError::IoError { io_error, .. })
        | TantivyError::OpenDirectoryError(OpenDirectoryError::IoError { io_error, .. }) => of_io(io_error),
        TantivyError::LockFailure(..) | TantivyError::SystemError(_) => true,
        _ => false,
    }
}

fn try_open(directory: &Path, log: [u8; 16]) -> Result<(OpenIndex, u64), Unusable> {
    let files = PrivateDirectory::open(directory).map_err(TantivyError::from)?;
    let index = Index::open(files)?;
    let fields = Fields::new();
    if index.schema() != fields.schema {
        return Err(Unusable::ForGood("its fields differ from those of this version".into()));
    }
    let payload = index.load_metas()?.payload.unwrap_or_default();
    let mark: Mark = serde_json::from_str(&payload)
        .map_err(|error| Unusable::ForGood(format!("its version mark cannot be read: {error}")))?;
    if !mark.fits(log) {
        return Err(Unusable::ForGood("it belongs to another version or another log".into()));
    }
    remove_leftovers(directory);
    Ok((opened(index, fields, log)?, mark.position))
}

/// Removes temporary files left by a killed process.
fn remove_leftovers(directory: &Path) {
    for file in fs::read_dir(directory).into_iter().flatten().flatten() {
        if file.file_name().to_string_lossy().starts_with(".tmp") {
            fs::remove_file(file.path()).ok();
        }
    }
}

/// Replaces the content of the directory by an empty index.
pub(crate) fn create(directory: &Path, log: [u8; 16]) -> Result<OpenIndex, IndexError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let failed = |what| move |source| IndexError::Directory { what, path: directory.to_owned(), source };
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("remove")(error)),
        Ok(()) | Err(_) => {}
    }
    // Not recursively: a removed data directory would exist again, without its database.
    fs::DirBuilder::new().mode(0o700).create(directory).map_err(failed("create"))?;
    let fields = Fields::new();
    let files = PrivateDirectory::open(directory).map_err(TantivyError::from)?;
    let settings = IndexSettings { docstore_compress_dedicated_thread: false, ..IndexSettings::default() };
    let index = Index::create(files, fields.schema.clone(), settings)?;
    Ok(opened(index, fields, log)?)
}

fn opened(index: Index, fields: Fields, log: [u8; 16]) -> Result<OpenIndex, TantivyError> {
    index.tokenizers().register(tokens::NAME, CodeTokenizer);
    let reader = Arc::new(OnDemandReader::checked(&index)?);
    Ok(OpenIndex { index, reader, fields, log })
}
