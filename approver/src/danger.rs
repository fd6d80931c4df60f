//! Recognizes actions that an agent should never take without the user's consent, in any spelling: sending secrets
//! away, wiping data, persistence.
//!
//! Works on the commands that a line may run (`shell`), together with the input each gets from others. One sign is
//! enough, so nothing here may ever allow.

mod effects;
mod kinds;
mod secrets;

use std::path::{Path, PathBuf};

use effects::{deletes_elsewhere, takes_packages_elsewhere, takes_the_machine};
pub(crate) use kinds::Danger;

use crate::{
    facts::Facts,
    paths::lexical,
    request::PermissionRequest,
    shell::{Possible, PossibleCommand, PossibleCommands},
};

/// How many words of an unparsed text are tried as the program.
const MAX_STARTS: usize = 200;

/// A line that is being examined.
pub(crate) struct DangerScan<'a> {
    line: &'a PossibleCommands,
    facts: &'a dyn Facts,
    home: PathBuf,
    workspace: PathBuf,
    /// The directories to which relative paths may refer: the one in which the line begins, and those to which it
    /// changes.
    dirs: Vec<PathBuf>,
}

impl<'a> DangerScan<'a> {
    pub(crate) fn new(line: &'a PossibleCommands, request: &PermissionRequest, facts: &'a dyn Facts) -> Self {
        let home = facts.home().unwrap_or_else(|| "/root".into());
        let mut scan =
            Self { line, facts, home, workspace: request.workspace.clone(), dirs: vec![request.cwd.clone()] };
        for command in &line.all {
            if matches!(command.name().as_str(), "cd" | "pushd" | "chdir") {
                let to = command.texts().get(1).copied().unwrap_or("~").to_owned();
                let more: Vec<PathBuf> = scan.resolved(&to);
                scan.dirs.extend(more);
            }
        }
        scan
    }

    /// Whether one of a command's possible commands has this danger.
    pub(crate) fn shows(&self, danger: Danger, possible: &Possible) -> bool {
        if danger == Danger::ForkBomb {
            return self.line.multiplies;
        }
        possible.commands().any(|command| {
            // In an unparsed text, any word may be the program.
            let starts = if command.loose { command.words.len().min(MAX_STARTS) } else { 1 };
            (0..starts).any(|start| match start {
                0 => self.command(danger, command),
                _ => {
                    let words = command.words[start..].to_vec();
                    self.command(danger, &PossibleCommand { words, ..command.clone() })
                }
            })
        })
    }

    fn command(&self, danger: Danger, command: &PossibleCommand) -> bool {
        match danger {
            Danger::SecretsLeave => self.secrets_leave(command),
            Danger::Wipe => self.wipes(command),
            Danger::ForcePushDefaultBranch => self.overwrites_default_branch(command),
            Danger::RemoteScript => self.runs_what_was_fetched(command),
            Danger::RemoteShell => self.gives_a_shell(command),
            Danger::OwnSafety => self.decides_for_the_person(command),
            Danger::Persistence => self.persists(command),
            Danger::Traces => self.erases_traces(command),
            Danger::Privileges => takes_the_machine(command),
            Danger::RemoteResources => deletes_elsewhere(command),
            Danger::PackageSource => takes_packages_elsewhere(command),
            Danger::ForkBomb => false,
        }
    }

    /// Whether changing this file has this danger.
    pub(crate) fn edits(&self, danger: Danger, path: &Path) -> bool {
        let all = self.resolved(&path.to_string_lossy());
        all.iter().any(|path| match danger {
            Danger::OwnSafety => self.is_own(path),
            Danger::Persistence => self.runs_at_login(path),
            Danger::Traces => self.is_trace(path),
            Danger::SecretsLeave
            | Danger::Wipe
            | Danger::ForcePushDefaultBranch
            | Danger::RemoteScript
            | Danger::RemoteShell
            | Danger::Privileges
            | Danger::RemoteResources
            | Danger::PackageSource
            | Danger::ForkBomb => false,
        })
    }

    /// The paths to which a written path may lead.
    fn resolved(&self, written: &str) -> Vec<PathBuf> {
        let written = written.trim_end_matches('*');
        let path = match written.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with('/') => self.home.join(rest.trim_start_matches('/')),
            Some("root") => "/root".into(),
            Some(_) | None => PathBuf::from(written),
        };
        self.dirs.iter().map(|dir| lexical(&dir.join(&path))).collect()
    }
}
