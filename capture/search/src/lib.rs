//! Full-text search: the index in `DATA/index`, the thread that feeds it, queries, snippets.
//!
//! The index is built only from the store's committed events and can be deleted at any time. It contains no texts: hits
//! refer to events of the store, and snippets are made from those. This is the only crate that uses tantivy. It never
//! writes to the store, and ingest never waits for it. Texts of removed sessions are neither found nor left in the
//! files (`feeder`). Start at [`SearchIndex`]; `document` decides what is searchable, `tokens` defines words.

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
