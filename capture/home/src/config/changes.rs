//! Determines which settings a change of the configuration file affects, and when they take effect.

use std::time::Duration;

use super::Setting;

/// Interval at which a running server checks the file.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);

/// When a changed setting takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakesEffect {
    /// At the next command, because each command reads it.
    NextCommand,
    /// Soon, because the running server applies it.
    Soon,
    /// After a restart, because the server reads it when it starts.
    AfterRestart,
}

/// When a change of a setting takes effect. All settings of a table behave the same.
#[must_use]
pub fn takes_effect(setting: &Setting) -> TakesEffect {
    let is_in = |keys: &[&str]| keys.iter().any(|key| setting.is_in(key));
    if is_in(&["autostart", "pager"]) {
        TakesEffect::NextCommand
    } else if is_in(&["actions", "approvals", "monitor", "notify"]) {
        TakesEffect::Soon
    } else {
        TakesEffect::AfterRestart
    }
}

/// The settings that differ, with their new values. A setting that no longer exists has its old value.
#[must_use]
pub fn changed(before: &[Setting], after: &[Setting]) -> Vec<Setting> {
    let value = |all: &[Setting], key: &str| all.iter().find(|setting| setting.key == key).map(|s| s.value.clone());
    let differs = |setting: &&Setting| value(before, &setting.key).as_ref() != Some(&setting.value);
    let is_gone = |setting: &&Setting| value(after, &setting.key).is_none();
    after.iter().filter(differs).chain(before.iter().filter(is_gone)).cloned().collect()
}

#[cfg(test)]
mod tests;
