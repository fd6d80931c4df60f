//! Plans a change of a settings file before touching anything, then applies it.

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

/// The change a user requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedChange {
    /// Have our entries for exactly these events.
    Install {
        /// The command they run.
        command: HookCommand,
        /// The events, from the catalogue.
        events: Vec<&'static str>,
    },
    /// Have none of our entries.
    Uninstall,
}

/// A planned change of one agent's settings.
#[derive(Debug)]
pub struct Plan {
    /// The agent.
    pub provider: Provider,
    /// The settings file as the agent names it; the file that is written may be the target of a link.
    pub path: PathBuf,
    /// Notes for the user to read before agreeing.
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
    /// The copy of the previous file, if there was one.
    pub backup: Option<PathBuf>,
}

impl Plan {
    /// Plans the change `wish` of the settings below `home`, without changing anything.
    ///
    /// # Errors
    /// If the file cannot be changed safely; the error names the position of the problem.
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
            // The written file must not be too large for removing the entries again.
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

    /// The file that would be written, with all links resolved.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.seen.path
    }

    /// The current content; `None` if there is no file.
    #[must_use]
    pub fn before(&self) -> Option<&[u8]> {
        self.seen.text()
    }

    /// The content after the change; `None` if there would be no file.
    #[must_use]
    pub fn after(&self) -> Option<&[u8]> {
        match &self.after {
            Without::Absent => None,
            Without::Bytes(bytes) => Some(bytes),
        }
    }

    /// Applies the plan, if the file is still unchanged since the plan was made.
    ///
    /// # Errors
    /// If the file changed in the meantime or cannot be written; in that case it is unchanged.
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
    // Some agents leave an empty file; it contains nothing that could be lost.
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let after = settings::install(text, provider, line, events).map_err(content)?;
    // Parses the result again to check that the inserted entries are found.
    if settings::install(&after, provider, line, events).map_err(content)? != after {
        return Err(Error::refused(&seen.path, "the entries could not be found again after inserting them"));
    }
    Ok(format!("{bom}{after}"))
}

/// The file without our entries: exactly the previous file, if nothing else has changed since.
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
