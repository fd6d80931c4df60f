//! Loads the policy in force: the user's file, and the rules of the session's repository.
//!
//! Anyone who can write the policy file decides what agents may do without asking. A file is therefore used only if
//! this user alone can write it and it is outside the workspace it applies to. If it cannot be used, every request is
//! left to a person. `approver` defines the meaning of rules; [`facts`] looks up what it needs. This crate does not
//! read the environment: the creator of [`OnDisk`] passes the PATH.

pub mod facts;

use std::{
    io::Read,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use approver::{Facts, PermissionRequest, Policy, PolicyError, Preset, Verdict};
use atomic_file::Durability;
use rustix::fs::OFlags;

pub use facts::OnDisk;

/// Maximum size of a policy file, bytes.
const MAX: u64 = 1024 * 1024;

/// The path of a repository's own rules, relative to its top directory.
pub const REPOSITORY_FILE: &str = ".capture/policy.toml";

/// The rules that apply if the user has no policy file.
pub const WITHOUT_FILE: &str = "capture's own agent reads the workspace without asking; you decide everything else";

/// Why a policy file is not in force.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The file cannot be read.
    #[error("cannot read {}: {}", .0.display(), .1)]
    Unreadable(PathBuf, std::io::Error),
    /// The file is not a regular file.
    #[error("{} is not a regular file", .0.display())]
    NoFile(PathBuf),
    /// The file is too large.
    #[error("{} is larger than 1 MiB", .0.display())]
    TooLarge(PathBuf),
    /// The file, or a directory above it, belongs to another user.
    #[error("{} belongs to another user", .0.display())]
    NotOurs(PathBuf),
    /// The file, or a directory above it, is writable by others.
    #[error("{path} can be written by others; run `chmod go-w {path}`", path = .0.display())]
    WritableByOthers(PathBuf),
    /// The file is inside the workspace it applies to.
    #[error("the workspace contains the policy {}, so agents could edit it", .0.display())]
    InWorkspace(PathBuf),
    /// The file's content is invalid.
    #[error("{0}")]
    Broken(PolicyError),
}

/// The policy in force, and why the intended one is not in force.
#[derive(Debug)]
pub struct InForce {
    /// Leaves every request to a person if `refused` is set.
    pub policy: Policy,
    /// Why the intended policy is not in force; the caller must show this to the user.
    pub refused: Option<Refused>,
}

/// The policy in force for a session: the policy in `file`, made stricter by the repository in `workspace`.
#[must_use]
pub fn in_force(file: &Path, workspace: &Path) -> InForce {
    match load(file, Some(workspace)) {
        Ok(policy) => InForce { policy, refused: None },
        Err(refused) => InForce { policy: Policy::preset(Preset::AskEverything), refused: Some(refused) },
    }
}

/// Reads the user's policy; without a file, every request is left to a person. With a workspace, the rules of its
/// repository are added.
///
/// # Errors
/// If the file, or the repository's, cannot be put in force.
pub fn load(file: &Path, workspace: Option<&Path>) -> Result<Policy, Refused> {
    let policy = match text(file)? {
        Some(text) => Policy::parse(&text, file).map_err(Refused::Broken)?,
        None => Policy::preset(Preset::AskEverything),
    };
    // Last, because the other errors apply in every workspace.
    if let Some(workspace) = workspace {
        refuse_inside(file, workspace)?;
    }
    match workspace {
        Some(workspace) => with_repository(policy, workspace),
        None => Ok(policy),
    }
}

/// The rules that, appended to the user's policy, would allow exactly this request again. `None` if no rule can: for
/// instance for a secret, for a file that decides what runs later, or if another rule decides first.
#[must_use]
pub fn rule_for(file: &Path, request: &PermissionRequest, facts: &dyn Facts) -> Option<String> {
    refuse_inside(file, &request.workspace).ok()?;
    let rule = approver::rule_for(request)?;
    let policy = Policy::parse(&appended(file, &rule).ok()?, file).ok()?;
    let policy = with_repository(policy, &request.workspace).ok()?;
    (policy.decide(request, facts).verdict == Verdict::Allow).then_some(rule)
}

/// Adds the rules of the repository in a workspace, which can only make the policy stricter.
///
/// # Errors
/// If the repository has rules that cannot be read or are invalid: ignoring them would be less strict.
pub fn with_repository(policy: Policy, workspace: &Path) -> Result<Policy, Refused> {
    let path = workspace.join(REPOSITORY_FILE);
    match read(&path, OFlags::NOFOLLOW)? {
        Some((text, _)) => policy.with_repository(&text, &path).map_err(Refused::Broken),
        None => Ok(policy),
    }
}

/// The text of a new policy file.
pub const STARTER: &str = r#"# What agents may do without asking you. `capture policy explain COMMAND` says what each rule does.
version = 1

# The preset applies when none of your rules matches: "ask-everything", "denials", "read-only", "workspace-edits" or "develop".
# "develop" allows everyday work; builds and tests run the repository's code. Without a preset agents ask you
# about everything; only capture's agent runs commands that just read the workspace.
# preset = "read-only"

# The first rule that matches decides; if none matches, you are asked. If a line has several commands, the
# strictest decision counts.
#
# [[rule]]
# name = "tests"
# decision = "allow"                          # or "deny", "ask"
# command = ["cargo", "nextest", "run", "..."] # "*" is any one word, a last "..." any further words
# cwd = "/home/me/project"
#
# [[rule]]
# name = "no push"
# decision = "deny"
# command = ["git", "push"]
# reason = "I push myself."
"#;

/// Why a rule was not added to the user's policy.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The file cannot be put in force.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The policy would be invalid with the rule.
    #[error("{0}")]
    Invalid(PolicyError),
    /// The file cannot be written.
    #[error("cannot write {}: {}", .0.display(), .1)]
    Unwritable(PathBuf, std::io::Error),
}

/// Atomically appends a rule to the user's policy; returns the file that was written. If the file is a link, its target
/// is replaced.
///
/// # Errors
/// If the file is not trusted, would be invalid with the rule, or cannot be written.
pub fn append(file: &Path, rule: &str) -> Result<PathBuf, AppendError> {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let unwritable = |error| AppendError::Unwritable(file.clone(), error);
    if let Some(dir) = file.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(unwritable)?;
    }
    let after = appended(&file, rule)?;
    atomic_file::replace(&file, after.as_bytes(), Durability::Synced).map_err(unwritable)?;
    Ok(file)
}

/// The user's policy with a rule appended.
///
/// # Errors
/// If the file is not trusted, or would be invalid with the rule.
pub fn appended(file: &Path, rule: &str) -> Result<String, AppendError> {
    let before = text(file)?.unwrap_or_else(|| STARTER.to_owned());
    let after = format!("{}\n\n{}\n", before.trim_end(), rule.trim());
    Policy::parse(&after, file).map_err(AppendError::Invalid)?;
    Ok(after)
}

/// Refuses a policy file that the workspace contains.
fn refuse_inside(file: &Path, workspace: &Path) -> Result<(), Refused> {
    let Ok(real) = file.canonicalize() else { return Ok(()) };
    let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
    let is_inside = real.starts_with(&workspace) || file.starts_with(&workspace);
    if is_inside { Err(Refused::InWorkspace(file.to_owned())) } else { Ok(()) }
}

/// The text of the user's policy, if it is trusted. `None` if there is no file.
fn text(file: &Path) -> Result<Option<String>, Refused> {
    let Some((text, owner)) = read(file, OFlags::empty())? else { return Ok(None) };
    // Users keep such files in a repository of their own, through a link.
    let real = file.canonicalize().map_err(|error| Refused::Unreadable(file.to_owned(), error))?;
    believable(&real, &owner)?;
    for path in [file, &real] {
        let path = std::path::absolute(path).map_err(|error| Refused::Unreadable(path.to_owned(), error))?;
        for (above, dir) in path.ancestors().skip(1).enumerate() {
            let told = dir.metadata().map_err(|error| Refused::Unreadable(dir.to_owned(), error))?;
            if above == 0 { believable(dir, &told)? } else { on_the_way(dir, &told)? }
        }
    }
    Ok(Some(text))
}

fn believable(path: &Path, told: &std::fs::Metadata) -> Result<(), Refused> {
    let us = rustix::process::geteuid().as_raw();
    if told.uid() != us {
        return Err(Refused::NotOurs(path.to_owned()));
    }
    if told.mode() & 0o022 != 0 {
        return Err(Refused::WritableByOthers(path.to_owned()));
    }
    Ok(())
}

/// Anyone who can write a parent directory could replace what is below it. In a sticky directory, only an entry's owner
/// can.
fn on_the_way(path: &Path, told: &std::fs::Metadata) -> Result<(), Refused> {
    const STICKY: u32 = 0o1000;
    let us = rustix::process::geteuid().as_raw();
    if told.uid() != us && told.uid() != 0 {
        return Err(Refused::NotOurs(path.to_owned()));
    }
    if told.mode() & 0o022 != 0 && told.mode() & STICKY == 0 {
        return Err(Refused::WritableByOthers(path.to_owned()));
    }
    Ok(())
}

fn read(path: &Path, flags: OFlags) -> Result<Option<(String, std::fs::Metadata)>, Refused> {
    let fail = |error| Refused::Unreadable(path.to_owned(), error);
    let flags = (flags | OFlags::NONBLOCK).bits().cast_signed();
    let file = match std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // A dangling link was meant to be a file.
            return if path.is_symlink() { Err(fail(error)) } else { Ok(None) };
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    let told = file.metadata().map_err(fail)?;
    if !told.is_file() {
        return Err(Refused::NoFile(path.to_owned()));
    }
    if told.len() > MAX {
        return Err(Refused::TooLarge(path.to_owned()));
    }
    let mut text = String::new();
    file.take(MAX).read_to_string(&mut text).map_err(fail)?;
    Ok(Some((text, told)))
}

/// The workspace of a directory: the top of its repository, or the directory itself.
#[must_use]
pub fn workspace_of(dir: &Path) -> PathBuf {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    dir.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok()).unwrap_or(&dir).to_owned()
}

#[cfg(test)]
mod disclosure;
#[cfg(test)]
mod tests;
