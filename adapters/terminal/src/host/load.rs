//! How a host gets the rules of screens.

use crate::screen::ScreenRules;
use std::sync::Arc;

/// Reads the rules for screens; called on the thread that needs them.
pub type LoadRules = Box<dyn FnOnce() -> Arc<ScreenRules> + Send>;
