//! The rules in force.

use crate::policy::rule::PolicyRule;

/// The rules in force.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The user's, then those of the preset below them. The first that matches counts.
    pub(super) own: Vec<PolicyRule>,
    /// Those of repositories, which only deny or ask.
    pub(super) repositories: Vec<Vec<PolicyRule>>,
}
