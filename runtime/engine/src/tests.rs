//! Whole lives of sessions, with real files.

mod lives;
mod properties;
mod world;
