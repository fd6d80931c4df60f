//! The agent that writes these files.

use events::Provider;

pub(crate) const PROVIDER: Provider = Provider::Codex;
