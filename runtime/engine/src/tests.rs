//! Complete sessions, with real files.

mod lives;
mod properties;
mod setbacks;
mod world;
