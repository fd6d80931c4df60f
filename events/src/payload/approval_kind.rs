//! The kinds of approvals.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::provider::names;

names! {
    /// The subject of an approval.
    ApprovalKind {
        /// A command.
        Command = "command" / 1,
        /// An edit of files.
        Edit = "edit" / 2,
        /// A plan.
        Plan = "plan" / 3,
        /// A call of an MCP tool.
        Mcp = "mcp" / 4,
        /// A fetch from the network.
        Fetch = "fetch" / 5,
        /// Trust in a folder, a hook or a key.
        Trust = "trust" / 6,
        /// Writing a whole file.
        Write = "write" / 7,
        /// A question to the user.
        Question = "question" / 8,
        /// Reading a file.
        Read = "read" / 9,
    }
}
