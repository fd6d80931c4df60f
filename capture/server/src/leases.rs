//! The leases that allow a view to resize a run's terminal.

use std::collections::HashMap;

use events::RunId;

/// The view that may resize the terminal of each run.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    pub(crate) held: HashMap<RunId, Lease>,
    pub(crate) views: u64,
}

/// The view that has the lease of a run, and its user.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) view: u64,
    pub(crate) by: String,
}
