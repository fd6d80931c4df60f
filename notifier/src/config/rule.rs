//! Rules: how notices are sent. A rule of the user overrides the defaults of the kind.

use events::FindingKind;
use serde::{Deserialize, Serialize};

use crate::{
    config::error::{ConfigError, range},
    notice::{Notice, Severity},
};

/// How prominently a message is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loudness {
    /// Not sent.
    Off,
    /// Shown without sound, if the channel supports that.
    Quiet,
    /// Shown with the channel's default.
    Normal,
    /// Stays until the user looks at it, if the channel supports that.
    Loud,
}

/// What happens to a notice while the user is at the terminal of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhilePresent {
    /// Wait; send it if the cause still holds when the user leaves the terminal.
    Wait,
    /// Drop it: the user saw it.
    Drop,
    /// Send it anyway.
    Tell,
}

/// A rule of the user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotifyRule {
    /// The kind of finding; `None` matches every kind.
    pub kind: Option<FindingKind>,
    /// The minimum severity.
    pub severity: Option<Severity>,
    /// The channels; `None` means all.
    pub channels: Option<Vec<String>>,
    /// How long the cause must exist before it is sent, milliseconds.
    pub debounce_ms: Option<u32>,
    /// The loudness.
    pub loudness: Option<Loudness>,
    /// Interval at which it is sent again while the cause exists, seconds; 0 means once.
    pub repeat_s: Option<u32>,
    /// Maximum number of repeats.
    pub repeats: Option<u32>,
    /// What happens to it while the user is at that terminal.
    pub while_present: Option<WhilePresent>,
}

/// How a notice is sent, after all rules are resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedRule {
    /// The loudness.
    pub loudness: Loudness,
    /// The channels, as indices into the settings.
    pub channels: Vec<usize>,
    /// How long the cause must exist before it is sent, milliseconds.
    pub debounce_ms: i64,
    /// Interval at which it is sent again, milliseconds.
    pub repeat_ms: Option<i64>,
    /// Maximum number of repeats.
    pub repeats: u32,
    /// What happens to it while the user is at that terminal.
    pub while_present: WhilePresent,
}

impl NotifyRule {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        range("rules.debounce_ms", self.debounce_ms.unwrap_or(0), 0, 3_600_000)?;
        let repeat_s = self.repeat_s.unwrap_or(0);
        range("rules.repeat_s", repeat_s, 0, 86_400)?;
        if repeat_s > 0 {
            range("rules.repeat_s", repeat_s, 10, 86_400)?;
        }
        range("rules.repeats", self.repeats.unwrap_or(0), 0, 100)
    }

    fn matches(&self, notice: &Notice) -> bool {
        self.kind.is_none_or(|kind| kind == notice.kind) && self.severity.is_none_or(|least| notice.severity >= least)
    }
}

/// The defaults of a kind: loudness, debounce, and behaviour while the user is present.
const fn usual(kind: FindingKind, severity: Severity) -> (Loudness, u32, WhilePresent) {
    match kind {
        FindingKind::Approval | FindingKind::RiskyApproval | FindingKind::Question | FindingKind::Boundary => {
            (Loudness::Loud, 300, WhilePresent::Wait)
        }
        // The end of a turn is often followed immediately by the next turn.
        FindingKind::Completion => (Loudness::Normal, 2_000, WhilePresent::Drop),
        FindingKind::Idle => (Loudness::Off, 0, WhilePresent::Drop),
        // A statement that is only out of date waits for the user.
        FindingKind::Claim if matches!(severity, Severity::Info) => (Loudness::Off, 0, WhilePresent::Drop),
        FindingKind::ApprovalBacklog
        | FindingKind::Stuck
        | FindingKind::Loop
        | FindingKind::RepeatedFailure
        | FindingKind::Auth
        | FindingKind::RateLimit
        | FindingKind::Quota
        | FindingKind::Network
        | FindingKind::MergeConflict
        | FindingKind::ContextFull
        | FindingKind::Crash
        | FindingKind::OpenWork
        | FindingKind::LongJob
        | FindingKind::SharedFiles
        | FindingKind::SharedQuota
        | FindingKind::SeveralBlocked
        | FindingKind::Claim
        | FindingKind::Provider => (Loudness::Normal, 1_000, WhilePresent::Wait),
    }
}

/// Applies the rules to a notice.
pub(crate) fn resolve(rules: &[NotifyRule], names: &[String], notice: &Notice) -> ResolvedRule {
    let none = NotifyRule::default();
    let rule = rules.iter().find(|rule| rule.matches(notice)).unwrap_or(&none);
    let (loudness, debounce_ms, while_present) = usual(notice.kind, notice.severity);
    let named = |name: &String| rule.channels.as_ref().is_none_or(|only| only.contains(name));
    ResolvedRule {
        loudness: rule.loudness.unwrap_or(loudness),
        channels: (0..names.len()).filter(|&at| named(&names[at])).collect(),
        debounce_ms: rule.debounce_ms.unwrap_or(debounce_ms).into(),
        repeat_ms: rule.repeat_s.filter(|s| *s > 0).map(|s| i64::from(s) * 1000),
        repeats: rule.repeats.unwrap_or(1),
        while_present: rule.while_present.unwrap_or(while_present),
    }
}
