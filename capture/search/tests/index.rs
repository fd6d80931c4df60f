//! The index, fed from a store on disk.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "index/feeding.rs"]
mod feeding;
#[path = "index/forgetting.rs"]
mod forgetting;
#[path = "index/full_disk.rs"]
mod full_disk;
#[path = "index/kills.rs"]
mod kills;
#[path = "index/log.rs"]
mod log;
#[path = "index/searching.rs"]
mod searching;
