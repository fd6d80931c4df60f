//! Whether a caller may change something.

use std::sync::Arc;

/// Returns why the caller may not change anything; `None` if it may.
#[derive(Clone)]
pub struct ControlCheck(Arc<dyn Fn() -> Option<String> + Send + Sync>);

impl ControlCheck {
    /// A check that is run when a tool that changes something is listed or called.
    #[must_use]
    pub fn new(check: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    pub(crate) fn refusal(&self) -> Option<String> {
        (self.0)()
    }
}
