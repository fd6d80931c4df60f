//! What several commands show the same way: permission requests, usage. How a line reaches the terminal is
//! `printing`'s.

pub(crate) mod request;
pub(crate) mod usage;
