//! Test-fix loops: a test fails, files are edited, the same test runs again.

use std::collections::VecDeque;

use events::{ToolCall, ToolKind, ToolOutcome, ToolResult};
use serde::{Deserialize, Serialize};

use crate::runs_tests;

/// Maximum number of remembered calls without a result, and of remembered failed commands; the oldest are dropped.
const REMEMBERED: usize = 32;

/// Detects the loops of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TestLoops {
    /// Running tests: their call, and a hash of their command.
    running: VecDeque<(String, u64)>,
    /// Failed tests: a hash of their command, and whether files were edited since.
    failed: VecDeque<(u64, bool)>,
}

impl TestLoops {
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty() && self.failed.is_empty()
    }

    /// Records a tool call; returns whether it closes a loop.
    pub(crate) fn called(&mut self, call: &ToolCall) -> bool {
        match (call.tool, &call.title) {
            (ToolKind::Edit, _) => {
                self.failed.iter_mut().for_each(|(_, edited)| *edited = true);
                false
            }
            (ToolKind::Execute, Some(command)) if runs_tests(command) => {
                let command = hash(command);
                remember(&mut self.running, (call.call_id.clone(), command));
                self.failed.contains(&(command, true))
            }
            (_, _) => false,
        }
    }

    /// Records the result of a tool.
    pub(crate) fn returned(&mut self, result: &ToolResult) {
        let Some(place) = self.running.iter().position(|(call, _)| *call == result.call_id) else { return };
        let Some((_, command)) = self.running.remove(place) else { return };
        self.failed.retain(|(failed, _)| *failed != command);
        if result.outcome == ToolOutcome::Error || result.exit_code.is_some_and(|code| code != 0) {
            remember(&mut self.failed, (command, false));
        }
    }
}

fn remember<T>(all: &mut VecDeque<T>, one: T) {
    if all.len() == REMEMBERED {
        all.pop_front();
    }
    all.push_back(one);
}

/// FNV-1a: the same in every version, because it is stored.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(loops: &mut TestLoops, id: &str, tool: ToolKind, title: &str) -> bool {
        loops.called(&ToolCall { call_id: id.into(), tool, title: Some(title.into()), ..ToolCall::default() })
    }

    fn result(loops: &mut TestLoops, id: &str, outcome: ToolOutcome, exit_code: Option<i32>) {
        loops.returned(&ToolResult { call_id: id.into(), outcome, exit_code, ..ToolResult::default() });
    }

    #[test]
    fn a_loop_is_a_failed_test_an_edit_and_the_same_test() {
        let mut loops = TestLoops::default();
        let test = "cargo test -p a";
        let runs = [
            // edits, whether it closes a loop, exit code
            (false, false, 101),
            (false, false, 101),
            (true, true, 101),
            (true, true, 0),
            (true, false, 0),
        ];
        for (number, (edits, closes, code)) in runs.into_iter().enumerate() {
            if edits {
                assert!(!call(&mut loops, "e", ToolKind::Edit, "src/lib.rs"));
            }
            let id = number.to_string();
            assert_eq!(call(&mut loops, &id, ToolKind::Execute, test), closes, "{number}");
            // Storing and restoring the state between two calls loses nothing.
            loops = serde_json::from_str(&serde_json::to_string(&loops).unwrap()).unwrap();
            result(&mut loops, &id, ToolOutcome::Ok, Some(code));
        }
        assert!(loops.is_empty());
        call(&mut loops, "6", ToolKind::Execute, "ls latest");
        result(&mut loops, "6", ToolOutcome::Error, None);
        call(&mut loops, "e", ToolKind::Edit, "src/lib.rs");
        assert!(!call(&mut loops, "7", ToolKind::Execute, "ls latest"), "not a test");
    }

    #[test]
    fn the_number_of_remembered_test_runs_is_bounded() {
        let mut loops = TestLoops::default();
        for n in 0..3 * REMEMBERED {
            call(&mut loops, &format!("lost {n}"), ToolKind::Execute, "npm test");
            call(&mut loops, &n.to_string(), ToolKind::Execute, &format!("npm test {n}"));
            result(&mut loops, &n.to_string(), ToolOutcome::Error, None);
        }
        assert_eq!((loops.running.len(), loops.failed.len()), (REMEMBERED - 1, REMEMBERED));
        call(&mut loops, "e", ToolKind::Edit, "a");
        assert!(call(&mut loops, "x", ToolKind::Execute, &format!("npm test {}", 3 * REMEMBERED - 1)));
        assert!(!call(&mut loops, "y", ToolKind::Execute, "npm test 0"), "long ago");
    }
}
