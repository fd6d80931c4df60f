//! The to-do list of a session whose agent reports it change by change: `TaskCreate` and `TaskUpdate` of Claude Code.

use events::ToolCall;
use serde::{Deserialize, Serialize};

/// Maximum number of finished tasks whose ids are kept.
const CLOSED: usize = 500;

/// The tasks of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskList {
    created: u32,
    /// The ids of the tasks that are done or were removed.
    closed: Vec<String>,
}

impl TaskList {
    /// Whether no task was created.
    pub(crate) const fn is_empty(&self) -> bool {
        self.created == 0
    }

    /// Applies a call, and returns the number of tasks that are left; `None` if the call does not change the list.
    pub(super) fn called(&mut self, call: &ToolCall, input: &str) -> Option<u32> {
        #[derive(Deserialize)]
        struct Update {
            #[serde(rename = "taskId")]
            id: String,
            status: Option<String>,
        }
        match call.name.as_str() {
            "TaskCreate" => self.created = self.created.saturating_add(1),
            "TaskUpdate" => {
                let update: Update = serde_json::from_str(input).ok()?;
                let status = update.status?;
                self.closed.retain(|id| *id != update.id);
                if matches!(status.as_str(), "completed" | "deleted") && self.closed.len() < CLOSED {
                    self.closed.push(update.id);
                }
            }
            _ => return None,
        }
        let closed = u32::try_from(self.closed.len()).unwrap_or(u32::MAX);
        // Without its beginning, a session closes tasks that were not seen to be created.
        (self.created > 0).then(|| self.created.saturating_sub(closed))
    }
}
