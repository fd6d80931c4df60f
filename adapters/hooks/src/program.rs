//! Determines which version of an agent is on the PATH.
//!
//! Cheap sources come first: npm's `package.json` beside the program, and the file name chosen by Claude Code's own
//! installer. Only if neither has the version, the program is run with `--version`: in `/`, with little of the caller's
//! environment, and with a time limit. This module does not interpret versions.

use std::{
    ffi::{OsStr, OsString},
    io::Read,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use agents::Agent;
use events::Provider;
use rustix::process::{Pid, Signal, kill_process_group};
use semver::Version;

/// Time limit of `--version`. Gemini CLI takes seconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(15);

/// Maximum number of bytes read from a program's output and from a `package.json`.
const LARGEST: u64 = 256 * 1024;

/// Maximum number of levels from a program up to its `package.json`: `bin/claude.exe`, `dist/src/index.js`.
const LEVELS: usize = 4;

/// Where to search for agents, and how to start them.
#[derive(Debug, Clone)]
pub struct ProgramSearch {
    /// The directories, as in `PATH`.
    pub path: OsString,
    /// The environment of a program run for its version, without `PATH`.
    pub environment: Vec<(OsString, OsString)>,
    /// Time limit for the program's answer.
    pub patience: Duration,
}

/// An agent's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The path as found on the PATH.
    pub program: PathBuf,
    /// Its version.
    pub version: Version,
}

/// Why a version is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionUnknown {
    /// There is no such program.
    #[error("`{name}` is not on the PATH")]
    NotOnPath {
        /// Its name.
        name: &'static str,
    },
    /// It could not be started.
    #[error("{} could not be started: {why}", .program.display())]
    CannotStart {
        /// The program.
        program: PathBuf,
        /// The error of the system.
        why: String,
    },
    /// It did not answer in time.
    #[error("`{} --version` did not answer within {seconds} s", .program.display())]
    TimedOut {
        /// The program.
        program: PathBuf,
        /// The time limit, in seconds.
        seconds: u64,
    },
    /// No file beside it has the version, and the program must not be run.
    #[error("no file next to {} contains the version", .program.display())]
    NotInFiles {
        /// The program.
        program: PathBuf,
    },
    /// Its output contains no version.
    #[error("`{} --version` printed no version: {answer:?}", .program.display())]
    Unreadable {
        /// The program.
        program: PathBuf,
        /// The start of its output.
        answer: String,
    },
}

impl ProgramSearch {
    /// A search with the default timeout.
    #[must_use]
    pub fn new(path: OsString, environment: Vec<(OsString, OsString)>) -> Self {
        Self { path, environment, patience: PATIENCE }
    }

    /// Finds an agent's program on the PATH, and its version.
    ///
    /// # Errors
    /// If the program is not found, or does not print its version.
    pub fn installed(&self, provider: Provider) -> Result<Installed, VersionUnknown> {
        let program = self.program(provider)?;
        let version = match version_beside(provider, &program) {
            Some(version) => version,
            None => self.run_version(provider, &program)?,
        };
        Ok(Installed { program, version })
    }

    /// Like `installed`, but reads only files and runs nothing. For callers not started by the user, since anyone able
    /// to replace the program could get it run.
    ///
    /// # Errors
    /// If the program is not found, or no file has its version.
    pub fn installed_by_files(&self, provider: Provider) -> Result<Installed, VersionUnknown> {
        let program = self.program(provider)?;
        match version_beside(provider, &program) {
            Some(version) => Ok(Installed { program, version }),
            None => Err(VersionUnknown::NotInFiles { program }),
        }
    }

    fn program(&self, provider: Provider) -> Result<PathBuf, VersionUnknown> {
        let name = Agent::of(provider).and_then(|agent| agent.programs.first()).map_or(provider.as_str(), |name| name);
        // The contents of a relative directory depend on the working directory.
        let dirs = std::env::split_paths(&self.path).filter(|dir| dir.is_absolute());
        processes::find_program(dirs, OsStr::new(name)).map_err(|_| VersionUnknown::NotOnPath { name })
    }

    /// Runs the program with `--version`.
    fn run_version(&self, provider: Provider, program: &Path) -> Result<Version, VersionUnknown> {
        let cannot =
            |error: std::io::Error| VersionUnknown::CannotStart { program: program.to_owned(), why: error.to_string() };
        let mut child = Command::new(program)
            .arg("--version")
            .env_clear()
            .env("PATH", &self.path)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("DISABLE_AUTOUPDATER", "1")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(cannot)?;
        let group = Pid::from_child(&child);
        let (answered, answer) = crossbeam_channel::bounded(1);
        if let Some(out) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                out.take(LARGEST).read_to_end(&mut bytes).ok();
                answered.send(bytes).ok();
            });
        }
        let answer = answer.recv_timeout(self.patience);
        // Also ends processes it started; the group may already be gone.
        kill_process_group(group, Signal::KILL).ok();
        child.wait().ok();
        let Ok(answer) = answer else {
            return Err(VersionUnknown::TimedOut { program: program.to_owned(), seconds: self.patience.as_secs() });
        };
        let answer = String::from_utf8_lossy(&answer);
        version_in(provider, &answer).ok_or_else(|| VersionUnknown::Unreadable {
            program: program.to_owned(),
            answer: answer.trim().chars().take(60).collect(),
        })
    }
}

/// Parses the output of `--version`: "2.1.330 (Claude Code)", "codex-cli 0.169.0", "0.61.0", possibly after warnings.
/// Nothing else is accepted.
fn version_in(provider: Provider, answer: &str) -> Option<Version> {
    let printed = Agent::of(provider)?.version.printed.as_ref()?;
    let of_line = |line| Version::parse(printed.in_line(line)?).ok();
    answer.lines().rev().find_map(of_line)
}

/// The version according to the files around the program.
fn version_beside(provider: Provider, program: &Path) -> Option<Version> {
    let real = program.canonicalize().ok()?;
    let sources = &Agent::of(provider)?.version;
    if sources.directory.is_some_and(|end| real.parent().is_some_and(|dir| dir.ends_with(end)))
        && let Some(version) = real.file_name().and_then(OsStr::to_str).and_then(|name| Version::parse(name).ok())
    {
        return Some(version);
    }
    let package = sources.package?;
    let above = real.ancestors().skip(1).take(LEVELS);
    above.filter_map(|dir| package_version(&dir.join("package.json"), package)).next()
}

/// The version in a `package.json`, if it is of this package.
fn package_version(file: &Path, package: &str) -> Option<Version> {
    let small = std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.len() <= LARGEST);
    let text = small.then(|| std::fs::read(file).ok()).flatten()?;
    let described: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let version = || Version::parse(described["version"].as_str()?).ok();
    (described["name"] == package).then(version).flatten()
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use super::*;

    struct ProgramFixture {
        dir: tempfile::TempDir,
        search: ProgramSearch,
    }

    impl ProgramFixture {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir(dir.path().join("bin")).unwrap();
            let path = format!("relative:{}:/usr/bin:/bin", dir.path().join("bin").display());
            let search =
                ProgramSearch { patience: Duration::from_secs(10), ..ProgramSearch::new(path.into(), Vec::new()) };
            Self { dir, search }
        }

        fn script(&self, name: &str, script: &str) -> PathBuf {
            let path = self.dir.path().join("bin").join(name);
            let beside = path.with_extension("new");
            fs::write(&beside, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&beside, fs::Permissions::from_mode(0o755)).unwrap();
            fs::rename(beside, &path).unwrap();
            path
        }

        fn version(&self, provider: Provider) -> Result<String, VersionUnknown> {
            self.search.installed(provider).map(|installed| installed.version.to_string())
        }
    }

    #[test]
    fn version_is_parsed_from_the_programs_output() {
        let here = ProgramFixture::new();
        let name = "claude";
        assert_eq!(here.version(Provider::Claude), Err(VersionUnknown::NotOnPath { name }));
        let says = |provider: Provider, text: &str| {
            here.script(provider.as_str(), &format!("[ \"$*\" = --version ] && printf '%s\\n' '{text}'"));
            here.version(provider).ok()
        };
        let is = |version: &str| Some(version.to_owned());
        assert_eq!(says(Provider::Claude, "2.0.60 (Claude Code)"), is("2.0.60"));
        assert_eq!(says(Provider::Codex, "WARNING: something 1.2.3\ncodex-cli 0.169.0"), is("0.169.0"));
        assert_eq!(says(Provider::Codex, "codex-cli 0.130.0-alpha.1"), is("0.130.0-alpha.1"));
        assert_eq!(says(Provider::Gemini, "0.61.0"), is("0.61.0"));
        for garbage in
            ["", "2.0.60", "two (Claude Code)", "claude 2.0.60", "2.0 (Claude Code)", "v2.0.60 (Claude Code)"]
        {
            assert_eq!(says(Provider::Claude, garbage), None, "{garbage}");
        }
        here.script("claude", "echo what");
        let error = here.version(Provider::Claude).unwrap_err().to_string();
        assert!(error.ends_with("bin/claude --version` printed no version: \"what\""), "{error}");
    }

    #[test]
    fn a_version_query_that_hangs_times_out_and_its_children_are_killed() {
        let mut here = ProgramFixture::new();
        here.search.patience = Duration::from_millis(100);
        let pid = here.dir.path().join("pid");
        here.script("claude", &format!("sleep 1000 & echo $! > '{0}.new'; mv '{0}.new' '{0}'; wait", pid.display()));
        let error = loop {
            let error = here.version(Provider::Claude).unwrap_err();
            if pid.exists() {
                break error;
            }
        };
        assert!(matches!(error, VersionUnknown::TimedOut { .. }), "{error}");
        let pid: u32 = fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        while processes::is_alive(pid, 0) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_program_that_cannot_start_is_reported() {
        let here = ProgramFixture::new();
        here.script("claude", "");
        fs::write(here.dir.path().join("bin/claude"), "#!/no/such/interpreter\n").unwrap();
        assert!(matches!(here.version(Provider::Claude), Err(VersionUnknown::CannotStart { .. })));
    }

    #[test]
    fn version_is_read_from_package_files_before_running_the_program() {
        let here = ProgramFixture::new();
        let at = |below: &str| here.dir.path().join(below);
        let package = at("lib/node_modules/@google/gemini-cli");
        fs::create_dir_all(package.join("bundle")).unwrap();
        let describe = |name: &str, version: &str| {
            fs::write(package.join("package.json"), format!(r#"{{"name": "{name}", "version": "{version}"}}"#))
                .unwrap();
        };
        describe("@google/gemini-cli", "0.30.0");
        fs::rename(here.script("gemini", "echo 0.1.0"), package.join("bundle/gemini.js")).unwrap();
        symlink(package.join("bundle/gemini.js"), at("bin/gemini")).unwrap();
        assert_eq!(here.version(Provider::Gemini).unwrap(), "0.30.0");
        describe("another", "0.30.0");
        assert_eq!(here.version(Provider::Gemini).unwrap(), "0.1.0", "it says so itself");
        describe("@google/gemini-cli", "new");
        assert_eq!(here.version(Provider::Gemini).unwrap(), "0.1.0");

        fs::create_dir_all(at("share/claude/versions")).unwrap();
        let installed = at("share/claude/versions/2.1.200");
        fs::rename(here.script("claude", "exit 1"), &installed).unwrap();
        symlink(&installed, at("bin/claude")).unwrap();
        assert_eq!(here.version(Provider::Claude).unwrap(), "2.1.200");
    }

    #[test]
    fn reading_the_version_from_files_does_not_run_the_program() {
        let here = ProgramFixture::new();
        let at = |below: &str| here.dir.path().join(below);
        let read = || here.search.installed_by_files(Provider::Claude);
        assert!(matches!(read(), Err(VersionUnknown::NotOnPath { .. })));
        here.script("claude", &format!("touch '{}'; echo '2.1.330 (Claude Code)'", at("ran").display()));
        assert!(matches!(read(), Err(VersionUnknown::NotInFiles { .. })));
        assert!(!at("ran").exists());
        let described = r#"{"name": "@anthropic-ai/claude-code", "version": "2.0.60"}"#;
        fs::write(at("package.json"), described).unwrap();
        assert_eq!(read().unwrap().version, Version::new(2, 0, 60));
    }
}
