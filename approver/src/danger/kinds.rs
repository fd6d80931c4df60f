//! The kinds of danger that a rule can name (`danger = …`).

use serde::Deserialize;

/// An effect by which a rule can deny or ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Danger {
    /// Keys, passwords or the environment go to another machine.
    SecretsLeave,
    /// A home, a disk, the system or `.git` is erased.
    Wipe,
    /// The default branch of a remote repository is overwritten or deleted.
    ForcePushDefaultBranch,
    /// What was just fetched or decoded runs.
    RemoteScript,
    /// Another machine gets a shell here.
    RemoteShell,
    /// capture's decisions, policy, hooks or data.
    OwnSafety,
    /// Something runs later, or at every login.
    Persistence,
    /// Histories and logs are erased.
    Traces,
    /// A container, a set-user bit or the kernel gives all rights.
    Privileges,
    /// Clusters, clouds, databases and repositories elsewhere lose something.
    RemoteResources,
    /// Packages come from, or credentials go to, an unusual registry.
    PackageSource,
    /// Processes without end.
    ForkBomb,
}
