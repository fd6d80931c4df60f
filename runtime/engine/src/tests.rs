//! Complete sessions, with real files.

mod compaction;
mod lives;
mod properties;
mod setbacks;
mod world;
