//! Tests of those parts of the live harness that need no real agent: the scripted models and the judge of statuses.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod tests {
    mod exact;
    mod judge;
    mod models;
}
