//! Full-text search as a part of the service: the index beside the store, its thread, clients' queries, and its health.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use ::search::{Clock, Feeder, SearchError, SearchIndex, SearchRequest};
use api::{
    health::SourceHealth,
    search::{IndexState, IndexStatus, SearchPage, SearchQuery},
};
use events::SessionId;
use home::{clock, config::SearchSettings};
use jiff::tz::TimeZone;
use live_view::{Refusal, metrics::encode_metric};
use prometheus_client::{
    collector::Collector, encoding::DescriptorEncoder, metrics::gauge::ConstGauge, registry::Registry,
};
use store::Reader;
use tokio::sync::Semaphore;

use crate::supervisor::Supervisor;

/// Name of the thread that feeds the index.
pub use ::search::THREAD;

/// Name of the index directory within the data directory.
const DIRECTORY: &str = "index";
/// Name of the source in health reports.
pub const SOURCE: &str = "search";
/// Maximum number of concurrent searches; others wait.
const SEARCHES: usize = 2;

/// Longest wait until the latest commits are searchable.
const CATCH_UP: Duration = Duration::from_millis(100);

/// The index of the service. Clones share the state.
#[derive(Debug, Clone)]
pub struct Search {
    /// `None` if search is turned off.
    index: Option<SearchIndex>,
    store: Reader,
    at_once: Arc<Semaphore>,
}

/// The feeder of an index, whose thread is not started yet.
#[derive(Debug)]
pub struct UnfedSearch(Option<Feeder>);

impl Search {
    /// Opens the index, unless it is turned off; must be called before ingest begins to write.
    #[must_use]
    pub fn open(data: &Path, store: Reader, settings: &SearchSettings) -> (Self, UnfedSearch) {
        let opened = settings.enabled.then(|| SearchIndex::open(data.join(DIRECTORY), store.clone()));
        let (index, feeder) = opened.unzip();
        (Self { index, store, at_once: Arc::new(Semaphore::new(SEARCHES)) }, UnfedSearch(feeder))
    }

    /// The index; `None` if search is turned off.
    #[must_use]
    pub fn index(&self) -> Option<SearchIndex> {
        self.index.clone()
    }

    /// Notifies the index that the store has committed up to this position.
    pub fn committed(&self, position: u64) {
        if let Some(index) = &self.index {
            index.committed(position);
        }
    }

    /// Stops the thread.
    pub fn stop(&self) {
        if let Some(index) = &self.index {
            index.stop();
        }
    }

    /// Searches the texts of all sessions, or of one.
    ///
    /// # Errors
    /// When a parameter is invalid, or the index or the store cannot be read.
    pub async fn texts(&self, query: SearchQuery, session: Option<SessionId>) -> Result<SearchPage, Refusal> {
        let clock = Clock { now: clock::now(), zone: TimeZone::system() };
        let request = SearchRequest::new(&query, session, &clock).map_err(refused)?;
        let store = self.store.clone();
        self.blocking(move |index| {
            let end = store.position().map_err(|error| refused(error.into()))?;
            index.catch_up(end, CATCH_UP);
            index.search(&request, &store, &redact::text).map_err(refused)
        })
        .await
    }

    /// The state of the index.
    ///
    /// # Errors
    /// When search is turned off, or the service is stopping.
    pub async fn status(&self) -> Result<IndexStatus, Refusal> {
        self.blocking(|index| Ok(index.status())).await
    }

    /// Deletes the index and rebuilds it.
    ///
    /// # Errors
    /// As [`Search::status`].
    pub async fn rebuild(&self) -> Result<IndexStatus, Refusal> {
        self.blocking(|index| {
            index.rebuild();
            Ok(index.status())
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        task: impl FnOnce(&SearchIndex) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let off = || Refusal::Conflict("search is turned off: `search.enabled = false` in the configuration".into());
        let index = self.index.clone().ok_or_else(off)?;
        let permit = Arc::clone(&self.at_once).acquire_owned().await.map_err(|_| Refusal::Unavailable)?;
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            task(&index)
        });
        done.await.unwrap_or_else(|error| Err(Refusal::Failed(error.to_string())))
    }

    /// The health of the index.
    pub(crate) fn health(&self) -> SourceHealth {
        let row = SourceHealth::active(SOURCE.into());
        let Some(index) = &self.index else {
            return SourceHealth { active: false, detail: Some("turned off".into()), ..row };
        };
        let IndexStatus { state, indexed, total, texts, bytes, trouble } = index.status();
        let megabytes = bytes / 1_000_000;
        let detail = match state {
            IndexState::Ready => format!("{texts} texts, {megabytes} MB"),
            IndexState::Building => format!("building the index: {indexed} of {total} events"),
            IndexState::Paused => format!("paused at {indexed} of {total} events"),
        };
        SourceHealth {
            active: state != IndexState::Paused,
            detail: Some(detail),
            trouble: trouble.map(|why| format!("new texts are not searchable: {why}; trying again")),
            ..row
        }
    }

    /// Registers the metrics of the index.
    pub(crate) fn register(&self, metrics: &mut Registry) {
        if let Some(index) = &self.index {
            metrics.register_collector(Box::new(IndexCollector(index.clone())));
        }
    }
}

impl UnfedSearch {
    /// Starts the thread that feeds the index.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(self, supervisor: &Supervisor) -> anyhow::Result<()> {
        let Some(mut feeder) = self.0 else { return Ok(()) };
        // Uncommitted texts are read from the store again.
        supervisor.spawn_restarting(THREAD, move || feeder.run())
    }
}

fn refused(error: SearchError) -> Refusal {
    match error {
        SearchError::Parameter { name, reason } => Refusal::Invalid { name, reason },
        SearchError::NotReady => Refusal::Unavailable,
        SearchError::Index(_) | SearchError::Store(_) => Refusal::Failed(error.to_string()),
    }
}

/// Exports the state of the index as metrics.
#[derive(Debug)]
struct IndexCollector(SearchIndex);

impl Collector for IndexCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = self.0.status();
        for (name, help, value) in [
            ("capture_search_position", "Position up to which texts are searchable.", status.indexed),
            ("capture_search_texts", "Searchable texts.", status.texts),
            ("capture_search_bytes", "Size of the search index.", status.bytes),
        ] {
            encode_metric(&mut encoder, name, help, &ConstGauge::new(value))?;
        }
        Ok(())
    }
}
