//! Full-text search: the index in `DATA/index`, the thread that feeds it, queries, snippets.
//!
//! The index is made from the store's committed events alone and can be removed at any time. It holds no text: hits lead
//! to events of the store, and snippets are made from those. The only crate that uses tantivy. It never writes to the
//! store, and ingest never waits for it. Nothing of a session that was removed is found or stays in the files (`feeder`).
//! Start at [`SearchIndex`]; what is searchable is decided in `document`, what a
//! word is in `tokens`.

mod document;
mod excluded;
mod feeder;
mod fields;
mod in_flight;
mod index;
mod merging;
mod on_demand_reader;
mod phrase;
mod private_directory;
mod query;
mod searcher;
mod snippet;
mod tokens;

pub use feeder::{Feeder, Pace, THREAD};
pub use index::SearchIndex;
pub use query::{Clock, ParsedQuery, QueryError};
pub use searcher::{SearchError, SearchRequest};
