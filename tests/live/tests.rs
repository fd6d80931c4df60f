//! The parts of the harness for real agents that need no agent: the scripted models, and who judges.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod tests {
    mod exact;
    mod judge;
    mod models;
}
