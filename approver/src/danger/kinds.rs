//! The kinds of danger that a rule can name (`danger = …`).

use serde::Deserialize;

/// A dangerous effect, for rules that deny or ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Danger {
    /// Keys, passwords or the environment are sent to another machine.
    SecretsLeave,
    /// A home, a disk, the system or `.git` is erased.
    Wipe,
    /// The default branch of a remote repository is overwritten or deleted.
    ForcePushDefaultBranch,
    /// Content that was just fetched or decoded is run.
    RemoteScript,
    /// Another machine gets a shell on this one.
    RemoteShell,
    /// capture's decisions, policy, hooks or data are changed.
    OwnSafety,
    /// Something runs later, or at every login.
    Persistence,
    /// Histories and logs are erased.
    Traces,
    /// A container, a set-user bit or the kernel gives full permissions.
    Privileges,
    /// Data in clusters, clouds, databases or remote repositories is lost.
    RemoteResources,
    /// Packages come from, or credentials go to, an unusual registry.
    PackageSource,
    /// Processes are started without limit.
    ForkBomb,
}
