//! How a host gets the rules of screens.

use std::sync::Arc;

use crate::screen::ScreenRules;

/// Reads the rules for screens; called on the thread that needs them.
pub type LoadRules = Box<dyn FnOnce() -> Arc<ScreenRules> + Send>;
