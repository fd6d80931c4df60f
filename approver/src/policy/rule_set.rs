//! The rules in force.

use crate::policy::{preset::Preset, rule::PolicyRule};

/// The rules in force.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The user's, then those of the preset below them. The first that matches counts.
    pub(super) own: Vec<PolicyRule>,
    /// The preset that the user's file names.
    pub(super) chosen: Option<Preset>,
    /// Those of repositories, which only deny or ask.
    pub(super) repositories: Vec<Vec<PolicyRule>>,
}
