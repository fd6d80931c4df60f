//! The server's environment variables, which do not depend on the process that starts the server.
//!
//! Variables determine what a server reads and trusts: the locations of the configuration, the policy and the agents'
//! files, and the PATH on which commands are found. The user sets them, by running `capture serve` or the first command
//! that starts a server for a data directory, and they are recorded there. A server started later by a command, perhaps
//! an agent's command, gets only the recorded variables.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use agents::agent::ALL;
use anyhow::Context as _;
use events::Timestamp;
use processes::descends_from_agent;
use serde::{Deserialize, Serialize};

use crate::{
    clock,
    endpoint::{read_if_there, write_private},
    paths,
};

/// The variables that affect a server, and those that name the agents' homes. A background server's environment
/// contains no others.
const VARIABLES: [&str; 16] = [
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "TZ",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CAPTURE_LOG",
];

/// The PATH of a server if none was recorded.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The error for an action that an agent, or a process it started, may not perform.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refused(String);

/// A server's environment variables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// When it was recorded; `None` if it was not.
    recorded_at: Option<Timestamp>,
    variables: BTreeMap<String, String>,
}

/// The file of a data directory in which the environment is recorded.
#[must_use]
pub fn file(data: &Path) -> PathBuf {
    data.join("environment.json")
}

impl Environment {
    /// The environment of this process.
    #[must_use]
    pub fn of_process() -> Self {
        let variable = |name: &str| Some((name.to_owned(), paths::variable(name)?.to_str()?.to_owned()));
        let names = VARIABLES.into_iter().chain(ALL.iter().map(|agent| agent.home.variable));
        Self { recorded_at: None, variables: names.filter_map(variable).collect() }
    }

    /// The environment of this user's account, independent of this process's environment.
    ///
    /// # Errors
    /// If the account has no home directory.
    fn of_account() -> anyhow::Result<Self> {
        let user = nix::unistd::User::from_uid(nix::unistd::Uid::effective())
            .ok()
            .flatten()
            .context("the account database does not know this user")?;
        let home = user.dir.to_str().context("the home directory of this account is not UTF-8")?.to_owned();
        let mut variables = BTreeMap::from([
            ("HOME".to_owned(), home),
            ("PATH".to_owned(), DEFAULT_PATH.to_owned()),
            ("USER".to_owned(), user.name.clone()),
            ("LOGNAME".to_owned(), user.name),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ]);
        let runtime = format!("/run/user/{}", user.uid);
        if Path::new(&runtime).is_dir() {
            variables.insert("XDG_RUNTIME_DIR".into(), runtime);
        }
        Ok(Self { recorded_at: None, variables })
    }

    /// The environment recorded for a data directory; `None` if there is none.
    ///
    /// # Errors
    /// If the record cannot be read or is damaged.
    pub fn recorded(data: &Path) -> anyhow::Result<Option<Self>> {
        let path = file(data);
        let Some(text) = read_if_there(&path)? else { return Ok(None) };
        serde_json::from_str(&text)
            .map(Some)
            .with_context(|| format!("{} is damaged; remove it and run `capture serve`", path.display()))
    }

    /// The environment for a server that this process is about to start in the background: the recorded one; otherwise
    /// the user's own; or, if an agent started this process, the account's.
    ///
    /// # Errors
    /// If an agent started this process, no server was ever started for this data directory, and the directory is not
    /// the account's own.
    pub fn of_background(data: &Path) -> anyhow::Result<Self> {
        if let Some(recorded) = Self::recorded(data)? {
            return Ok(recorded);
        }
        if !descends_from_agent(std::process::id()) {
            return Ok(Self::of_process());
        }
        let account = Self::of_account()?;
        if account.data_dir().as_deref() == Some(data) {
            return Ok(account);
        }
        Err(Refused(format!(
            "processes started by an agent cannot start a server for {0}; first run `capture serve --data-dir {0}` in \
             a terminal that no agent started",
            data.display()
        ))
        .into())
    }

    /// Checks that a server may run with the environment of this process.
    ///
    /// # Errors
    /// If an agent started this process and its environment differs from the recorded one, or the record cannot be
    /// read.
    pub fn check(data: &Path) -> anyhow::Result<()> {
        if !descends_from_agent(std::process::id())
            || Self::of_background(data)?.variables == Self::of_process().variables
        {
            return Ok(());
        }
        Err(Refused(
            "processes started by an agent cannot start a server with a different environment; `capture ps` starts \
             one with the recorded environment"
                .into(),
        )
        .into())
    }

    /// Records the environment of this process if the user started the server in the foreground or for the first time.
    /// Call this only while the data directory is locked.
    ///
    /// # Errors
    /// If the record cannot be read or written.
    pub fn record_own(data: &Path, background: bool) -> anyhow::Result<()> {
        if descends_from_agent(std::process::id()) {
            return Ok(());
        }
        let (own, recorded) = (Self::of_process(), Self::recorded(data)?);
        let settled = recorded.is_some_and(|recorded| background || recorded.variables == own.variables);
        if settled { Ok(()) } else { own.record(data) }
    }

    fn record(&self, data: &Path) -> anyhow::Result<()> {
        let recorded = Self { recorded_at: Some(clock::now()), ..self.clone() };
        write_private(&file(data), serde_json::to_string_pretty(&recorded)?.as_bytes())
    }

    /// The variables with their names.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn variable(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// The data directory according to these variables alone.
    fn data_dir(&self) -> Option<PathBuf> {
        paths::data_dir_in(&|name| self.variable(name)).ok()
    }

    /// The directory of the configuration and policy.
    ///
    /// # Errors
    /// If neither XDG_CONFIG_HOME nor HOME is set.
    pub fn config_dir(&self) -> anyhow::Result<PathBuf> {
        paths::config_dir_in(&|name| self.variable(name))
    }
}
