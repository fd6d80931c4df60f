//! Views that several commands share: permission requests, usage. `printing` writes their lines to the terminal.

pub(crate) mod request;
pub(crate) mod usage;
