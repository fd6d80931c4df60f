//! Test-fix loops: a test fails, files are edited, the same test runs again.

use std::collections::HashMap;

use events::{Event, Kind, Payload, ToolKind, ToolOutcome};

/// Words of a command that runs tests.
const TEST_WORDS: &[&str] = &[
    "cypress",
    "ctest",
    "jest",
    "mocha",
    "nextest",
    "phpunit",
    "playwright",
    "pytest",
    "rspec",
    "test",
    "tests",
    "tox",
    "unittest",
    "vitest",
];
/// Most open calls and failed commands that are remembered.
const REMEMBERED: usize = 256;

/// Counts the loops of a session.
#[derive(Debug, Default)]
pub(crate) struct TestLoops {
    /// Tests that run, by their call.
    running: HashMap<String, String>,
    /// Tests that failed, and whether files were edited since.
    failed: HashMap<String, bool>,
    /// Loops so far.
    pub(crate) count: u64,
}

impl TestLoops {
    /// The kinds of events that are looked at.
    pub(crate) const KINDS: &[Kind] = &[Kind::ToolCall, Kind::ToolResult];

    pub(crate) fn apply(&mut self, event: &Event) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "calls and their results are all that counts")]
        match &event.payload {
            Payload::ToolCall(call) => match (call.tool, &call.title) {
                (ToolKind::Edit, _) => self.failed.values_mut().for_each(|edited| *edited = true),
                (ToolKind::Execute, Some(command)) if is_test(command) => {
                    if self.failed.get(command) == Some(&true) {
                        self.count += 1;
                    }
                    if self.running.len() < REMEMBERED {
                        self.running.insert(call.call_id.clone(), command.clone());
                    }
                }
                _ => {}
            },
            Payload::ToolResult(result) if !result.detail => {
                let Some(command) = self.running.remove(&result.call_id) else { return };
                let has_failed = result.outcome == ToolOutcome::Error || result.exit_code.is_some_and(|code| code != 0);
                if !has_failed {
                    self.failed.remove(&command);
                } else if self.failed.len() < REMEMBERED {
                    self.failed.insert(command, false);
                }
            }
            _ => {}
        }
    }
}

fn is_test(command: &str) -> bool {
    let mut words = command.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| TEST_WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use events::{Confidence, EventId, Origin, Provider, SessionId, Source, Timestamp, ToolCall, ToolResult};

    use super::*;

    fn apply(loops: &mut TestLoops, payload: Payload) {
        loops.apply(&Event {
            position: 1,
            id: EventId::from_bits(1),
            session_id: SessionId::from_bits(1),
            sequence: 1,
            provider: Provider::Claude,
            provider_session_id: "p".into(),
            source: Source::Transcript,
            created_at: Timestamp::MIN,
            observed_at: Timestamp::MIN,
            turn_id: None,
            parent_id: None,
            agent_id: None,
            confidence: Confidence::High,
            severity: None,
            text: None,
            text_ref: None,
            payload,
            origin: Origin::Derived,
            derived: false,
            history: false,
        });
    }

    fn call(loops: &mut TestLoops, id: &str, tool: ToolKind, title: &str) {
        let call = ToolCall { call_id: id.into(), tool, title: Some(title.into()), ..ToolCall::default() };
        apply(loops, call.into());
    }

    fn result(loops: &mut TestLoops, id: &str, outcome: ToolOutcome, exit_code: Option<i32>) {
        apply(loops, ToolResult { call_id: id.into(), outcome, exit_code, ..ToolResult::default() }.into());
    }

    #[test]
    fn a_loop_is_a_failed_test_an_edit_and_the_same_test() {
        let mut loops = TestLoops::default();
        let test = "cargo test -p a";
        for (id, edits, code) in
            [("1", false, 101), ("2", false, 101), ("3", true, 101), ("4", true, 0), ("5", true, 0)]
        {
            if edits {
                call(&mut loops, "e", ToolKind::Edit, "src/lib.rs");
            }
            call(&mut loops, id, ToolKind::Execute, test);
            result(&mut loops, id, ToolOutcome::Ok, Some(code));
        }
        assert_eq!(loops.count, 2, "without an edit, or after success, it does not count");
        call(&mut loops, "6", ToolKind::Execute, "ls latest");
        result(&mut loops, "6", ToolOutcome::Error, None);
        call(&mut loops, "e", ToolKind::Edit, "src/lib.rs");
        call(&mut loops, "7", ToolKind::Execute, "ls latest");
        assert_eq!(loops.count, 2, "not a test");
    }

    #[test]
    fn commands_that_run_tests() {
        for command in ["npm test", "python3 -m pytest -q", "go test ./...", "cargo nextest run", "make check; ./test"]
        {
            assert!(is_test(command), "{command}");
        }
        for command in ["ls", "cat latest.txt", "git attest"] {
            assert!(!is_test(command), "{command}");
        }
    }
}
