//! The type of the function that loads a host's screen rules.

use std::sync::Arc;

use crate::screen::ScreenRules;

/// Reads the rules for screens; called on the thread that uses them.
pub type LoadRules = Box<dyn FnOnce() -> Arc<ScreenRules> + Send>;
