//! Plans a change of a settings file before anything is touched, then applies it.

use std::path::{Path, PathBuf};

use events::{Provider, Timestamp};

use super::{
    backup::{Backups, Without},
    byte_order::{BOM, split},
    file::{self, SettingsFile},
    settings::{self, dialect},
    status,
};
use crate::{command::HookCommand, error::Error, facts::place, file::LARGEST};

/// The change a user wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedChange {
    /// Our entries for these events and no others.
    Install {
        /// What they run.
        command: HookCommand,
        /// The events, of the catalogue.
        events: Vec<&'static str>,
    },
    /// None of ours.
    Uninstall,
}

/// A change of one agent's settings that has not happened yet.
#[derive(Debug)]
pub struct Plan {
    /// The agent.
    pub provider: Provider,
    /// The settings file as the agent names it; what is written may stand behind a link.
    pub path: PathBuf,
    /// What a person should know before they agree.
    pub notes: Vec<String>,
    seen: SettingsFile,
    after: Without,
    without: Without,
    backups: Backups,
    install: bool,
}

/// The result of an applied plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedPlan {
    /// The copy of what was there before, if something was.
    pub backup: Option<PathBuf>,
}

impl Plan {
    /// Plans what `wish` makes of the settings below `home`, and changes nothing.
    ///
    /// # Errors
    /// When the file cannot be changed safely; the error says where it is wrong.
    pub fn new(provider: Provider, home: &Path, data: &Path, wish: &RequestedChange) -> Result<Self, Error> {
        let path = place(provider, home).ok_or(Error::NoHooks(provider))?;
        let seen = file::read_settings(&path)?;
        let backups = Backups::of(data, provider, &seen.path);
        let without = without(&seen, provider, &backups)?;
        let (after, install, notes) = match wish {
            RequestedChange::Install { command, events } => {
                let line = command.line(provider)?;
                let after = install(&seen, provider, &line, events)?;
                let mut notes = status::hindrances(provider, home, after.as_bytes());
                if seen.text() != Some(after.as_bytes()) {
                    notes.extend(status::remarks(provider, home));
                    notes.extend(status::what_next(provider).map(str::to_owned));
                }
                (Without::Bytes(after.into_bytes()), true, notes)
            }
            RequestedChange::Uninstall => (without.clone(), false, Vec::new()),
        };
        let plan = Self { provider, path, notes, seen, after, without, backups, install };
        if plan.changes() {
            plan.seen.writable(provider)?;
            // What is written must not be too large to be taken out again.
            if plan.after().is_some_and(|bytes| bytes.len() as u64 > LARGEST) {
                return Err(Error::refused(
                    plan.target(),
                    format!("the changed file would be larger than the limit, {LARGEST} bytes"),
                ));
            }
        }
        Ok(plan)
    }

    /// Whether anything would change.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.before() != self.after()
    }

    /// The file that would be written, behind all links.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.seen.path
    }

    /// What is there; `None` when there is no file.
    #[must_use]
    pub fn before(&self) -> Option<&[u8]> {
        self.seen.text()
    }

    /// What would be there; `None` when there would be no file.
    #[must_use]
    pub fn after(&self) -> Option<&[u8]> {
        match &self.after {
            Without::Absent => None,
            Without::Bytes(bytes) => Some(bytes),
        }
    }

    /// Applies the plan, if the file is still what it was when the plan was made.
    ///
    /// # Errors
    /// When the file changed meanwhile, or cannot be written; then it is as it was.
    pub fn apply(self, now: Timestamp) -> Result<AppliedPlan, Error> {
        if !self.changes() {
            return Ok(AppliedPlan { backup: None });
        }
        let backup = self.before().map(|bytes| self.backups.copy(bytes, now)).transpose()?;
        match &self.after {
            Without::Absent => self.seen.remove()?,
            Without::Bytes(bytes) => {
                if self.install {
                    self.backups.record_installed(bytes, &self.without)?;
                }
                self.seen.replace(bytes)?;
            }
        }
        if !self.install {
            self.backups.forget_installed();
        }
        Ok(AppliedPlan { backup })
    }
}

impl SettingsFile {
    fn text(&self) -> Option<&[u8]> {
        self.content.as_ref().map(|content| content.bytes.as_slice())
    }
}

fn install(seen: &SettingsFile, provider: Provider, line: &str, events: &[&'static str]) -> Result<String, Error> {
    let (bom, text) = seen.text().map_or(Ok(("", "")), |bytes| split(&seen.path, bytes))?;
    let content = |problem| Error::content(&seen.path, problem);
    // An empty file is what some agents leave; it holds nothing that could be lost.
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let after = settings::install(text, provider, line, events).map_err(content)?;
    // Whoever edits must be able to read it again, and find what was put in.
    if settings::install(&after, provider, line, events).map_err(content)? != after {
        return Err(Error::refused(&seen.path, "the entries could not be found again after inserting them"));
    }
    Ok(format!("{bom}{after}"))
}

/// The file without us: exactly what was there before, when nothing else changed since.
fn without(seen: &SettingsFile, provider: Provider, backups: &Backups) -> Result<Without, Error> {
    let Some(bytes) = seen.text() else { return Ok(Without::Absent) };
    let (bom, text) = split(&seen.path, bytes)?;
    let content = |problem| Error::content(&seen.path, problem);
    let dialect = dialect(provider);
    if text.trim().is_empty() || !settings::has_ours(text, dialect).map_err(content)? {
        return Ok(Without::Bytes(bytes.to_vec()));
    }
    let noted = backups.without(bytes);
    if let Some((without, true)) = noted {
        return Ok(without);
    }
    let before = match &noted {
        Some((Without::Bytes(before), _)) => std::str::from_utf8(before).unwrap_or_default(),
        Some((Without::Absent, _)) | None => "",
    };
    let keep = settings::empty_containers(before.strip_prefix(BOM).unwrap_or(before), dialect);
    let stripped = settings::strip(text, dialect, &keep).map_err(content)?;
    if matches!(noted, Some((Without::Absent, _))) && stripped.trim() == "{}" {
        return Ok(Without::Absent);
    }
    Ok(Without::Bytes(format!("{bom}{stripped}").into_bytes()))
}
