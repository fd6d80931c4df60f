//! Which view of a run's terminal may resize it.

use std::collections::HashMap;

use events::RunId;

/// Which view may resize the terminal of a run.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    pub(crate) held: HashMap<RunId, Lease>,
    pub(crate) views: u64,
}

/// The view that has the lease of a run, and for whom.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) view: u64,
    pub(crate) by: String,
}
