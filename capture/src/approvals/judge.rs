//! What a rule says of a request.

use projections::{Approval, Session};

/// Decides by rules. Whatever is not known for certain is asked.
pub trait Judge: Send + Sync {
    /// What the rules say of this request of this session.
    fn judge(&self, approval: &Approval, session: Option<&Session>) -> Judged;

    /// The rule that would allow just this again, to be reviewed and saved by the user.
    fn rule_for(&self, approval: &Approval, session: Option<&Session>) -> Option<String>;
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Allowed or denied; `None` when a person is to be asked.
    pub allow: Option<bool>,
    /// The command to run in place of the one that was asked for.
    pub rewrite: Option<String>,
    /// The rule.
    pub rule: String,
    /// Why, in one sentence.
    pub reason: String,
}

/// STUB
pub struct AskEverything;

impl Judge for AskEverything {
    fn judge(&self, _: &Approval, _: Option<&Session>) -> Judged {
        Judged { allow: None, rewrite: None, rule: "default".into(), reason: "stub".into() }
    }

    fn rule_for(&self, _: &Approval, _: Option<&Session>) -> Option<String> {
        None
    }
}
