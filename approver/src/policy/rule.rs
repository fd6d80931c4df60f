//! Matches one policy rule against one part of a request.
//!
//! A rule that allows matches only requests that are completely understood. A rule that denies or asks matches wherever
//! there is a sign of its conditions.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use events::Provider;
use globset::GlobMatcher;
use serde::Deserialize;

use super::pattern::CommandPattern;
use crate::{
    danger::{Danger, DangerScan},
    develop::{DevelopCommand, Work},
    facts::{Facts, FileContent},
    names::{is_protected, is_secret},
    paths::WorkingDir,
    request::{PermissionRequest, RequestKind, Verdict},
    search::{GrepFilter, RipgrepOptions, SearchReader, SearchScope},
    shell::{Possible, PossibleCommand, SimpleCommand, possible_commands},
    tools,
};

/// A policy rule, ready to be matched against requests.
#[derive(Debug, Clone)]
pub(super) struct PolicyRule {
    pub(super) name: String,
    pub(super) decision: Verdict,
    pub(super) reason: Option<String>,
    pub(super) agent: Option<Provider>,
    pub(super) kinds: Option<Vec<RequestKind>>,
    pub(super) tool: Option<GlobMatcher>,
    pub(super) command: Option<CommandPattern>,
    pub(super) paths: Option<Vec<GlobMatcher>>,
    pub(super) cwd: Option<GlobMatcher>,
    pub(super) domain: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) known: Option<KnownSafe>,
    pub(super) danger: Option<Danger>,
    pub(super) is_of_preset: bool,
}

/// Groups of safe actions a rule can allow by name (`known = …`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KnownSafe {
    /// A command that the tables of tools list as read-only.
    Command,
    /// Reading files of the workspace that are not secrets.
    Read,
    /// Changing files of the workspace that are neither secret nor control what runs.
    Edit,
    /// A command that builds, tests or checks the workspace, and so runs the repository's code.
    Build,
    /// A command that changes files or commits of the workspace.
    Change,
}

const NO_REWRITE: &str = "The command is safe only when rewritten, and this agent does not accept a rewritten command.";

impl KnownSafe {
    /// The actions in words.
    const fn words(self) -> &'static str {
        match self {
            Self::Command => "commands that are known to only read",
            Self::Read => "reads of workspace files that are not secrets",
            Self::Edit => "edits of workspace files that are not secret and do not control what runs",
            Self::Build => "builds, tests and checks of the workspace",
            Self::Change => "commands that change files or commits of the workspace",
        }
    }

    /// The kind of everyday work, if it is one.
    pub(super) const fn work(self) -> Option<Work> {
        match self {
            Self::Build => Some(Work::Builds),
            Self::Change => Some(Work::Changes),
            Self::Command | Self::Read | Self::Edit => None,
        }
    }
}

/// A part of a request that is judged on its own.
pub(super) enum RequestPart<'a> {
    /// One command of a parsed line.
    Command {
        command: &'a SimpleCommand,
        /// The directory in which it runs; or the reason why it cannot be determined, or why the line as a whole was
        /// not parsed.
        working_dir: Result<&'a WorkingDir, &'a str>,
        /// The judgement by the tables.
        known: Result<&'a tools::ReadOnlyCommand, &'a str>,
        /// The judgement as everyday work in the workspace.
        work: Result<&'a DevelopCommand, &'a str>,
    },
    /// A line that was not parsed: its text, and the reason.
    Text { text: &'a str, why: &'a str },
    /// A request other than a command.
    Other { working_dir: Result<&'a WorkingDir, &'a str> },
}

impl PolicyRule {
    /// The conditions of the rule, as text.
    pub(super) fn conditions(&self) -> String {
        let list = |globs: &[GlobMatcher]| {
            globs.iter().map(|glob| format!("`{}`", glob.glob())).collect::<Vec<_>>().join(" or ")
        };
        let mut subject = match (&self.command, self.known) {
            (Some(command), _) => format!("`{}`", command.text()),
            (None, Some(known)) => known.words().to_owned(),
            (None, None) if self.danger.is_some() => "signs of a danger".to_owned(),
            (None, None) => {
                let kinds = self.kinds.iter().flatten().map(|kind| kind.as_str());
                kinds.collect::<Vec<_>>().join(", ")
            }
        };
        let mut push = |text: String| {
            if !subject.is_empty() {
                subject.push(' ');
            }
            subject += &text;
        };
        if let Some(tool) = &self.tool {
            push(format!("by the tool `{}`", tool.glob()));
        }
        if let Some(domain) = &self.domain {
            push(format!("from {domain}"));
        }
        if let Some(paths) = &self.paths {
            push(format!("in {}", list(paths)));
        }
        let mut parts = vec![subject];
        parts.extend(self.cwd.as_ref().map(|cwd| format!("in `{}`", cwd.glob())));
        parts.extend(self.agent.map(|agent| format!("of {agent}")));
        parts.extend(self.labels.iter().map(|(key, value)| format!("with the label {key}={value}")));
        parts.retain(|part| !part.is_empty());
        parts.join(", ")
    }

    /// Whether the rule matches, and the reason.
    pub(super) fn matches(
        &self,
        request: &PermissionRequest,
        part: &RequestPart<'_>,
        facts: &dyn Facts,
    ) -> Result<String, String> {
        if self.agent.is_some_and(|agent| agent != request.agent) {
            return Err("The rule is for another agent.".into());
        }
        if self.kinds.as_ref().is_some_and(|kinds| !kinds.contains(&request.kind)) {
            return Err("The rule is for another kind of request.".into());
        }
        if let Some((key, _)) = self.labels.iter().find(|(key, value)| request.labels.get(*key) != Some(value)) {
            return Err(format!("Label `{key}` has a different value."));
        }
        if self.tool.as_ref().is_some_and(|tool| !request.tool.as_ref().is_some_and(|name| tool.is_match(name))) {
            return Err("The rule is for another tool.".into());
        }
        if let Some(cwd) = &self.cwd {
            self.here(cwd, request, part, facts)?;
        }
        match self.decision {
            Verdict::Allow => self.allows(request, part, facts)?,
            Verdict::Ask | Verdict::Deny => self.shows(request, part, facts)?,
        }
        Ok("All conditions of the rule hold.".into())
    }

    /// Whether the rule applies to the directory of the action: for a command, the directory in which the line would
    /// run it, even after a `cd`. For `deny` and `ask` a possible match is enough.
    fn here(
        &self,
        cwd: &GlobMatcher,
        request: &PermissionRequest,
        part: &RequestPart<'_>,
        facts: &dyn Facts,
    ) -> Result<(), String> {
        let began = || [Some(request.cwd.clone()), facts.canonical(&request.cwd)].into_iter().flatten();
        let working_dir = match part {
            RequestPart::Command { working_dir, .. } | RequestPart::Other { working_dir } => Some(*working_dir),
            RequestPart::Text { .. } => None,
        };
        let other = || Err("The rule is for another directory.".to_owned());
        if self.decision == Verdict::Allow {
            if !request.cwd_is_certain {
                return Err("capture is not certain of the working directory.".into());
            }
            let real = match working_dir {
                Some(Ok(working_dir)) => working_dir.runs_in().is_some_and(|dir| {
                    // The written directory may be a link; after a `cd` only the resolved one is known.
                    cwd.is_match(dir) || working_dir.bases.len() == 1 && began().any(|dir| cwd.is_match(dir))
                }),
                // Without a known directory, only the initial one is available.
                Some(Err(_)) | None => {
                    !matches!(part, RequestPart::Command { .. }) && began().any(|dir| cwd.is_match(dir))
                }
            };
            return if real { Ok(()) } else { other() };
        }
        let bases =
            working_dir.and_then(Result::ok).into_iter().flat_map(|working_dir| working_dir.bases.iter().cloned());
        if !request.cwd_is_certain || began().chain(bases).any(|dir| cwd.is_match(dir)) {
            return Ok(());
        }
        // A command that changes directories may change to any directory it names.
        let text = request.command.as_deref().unwrap_or_default();
        let seen = MentionedItems::new(request, &RequestPart::Text { text, why: "" }, facts);
        let goes = |word: &str| matches!(word, "cd" | "pushd" | "-C" | "--directory" | "chdir");
        let moves = seen.commands.iter().any(|command| command.texts().into_iter().any(goes));
        if moves && seen.paths.iter().any(|path| cwd.is_match(path)) { Ok(()) } else { other() }
    }

    fn allows(&self, request: &PermissionRequest, part: &RequestPart<'_>, facts: &dyn Facts) -> Result<(), String> {
        match part {
            RequestPart::Text { why, .. } => return Err((*why).to_owned()),
            RequestPart::Command { command, working_dir, known, work } => {
                let working_dir = working_dir.map_err(str::to_owned)?;
                if let Some(wanted) = self.known.and_then(KnownSafe::work) {
                    let work = work.map_err(str::to_owned)?;
                    if work.work != wanted {
                        return Err("The rule is for another kind of command.".into());
                    }
                    if work.rewrite.is_some() && !request.takes_rewrite {
                        return Err(NO_REWRITE.into());
                    }
                    if let Some(globs) = &self.paths {
                        every(globs, &work.paths, &working_dir.workspace)?;
                    }
                    return Ok(());
                }
                if let Some(pattern) = &self.command {
                    if command.words.iter().any(|word| word.glob) {
                        return Err("The command line has a pattern of file names.".into());
                    }
                    if !command.is_plain() {
                        return Err("The command has more than plain words: a variable, an assignment, input or a file to write.".into());
                    }
                    if !command.takes_pipe_for_data() {
                        return Err(
                            "The command may run what other commands print; a rule covers only the command itself."
                                .into(),
                        );
                    }
                    if !pattern.allows(&command.texts()) {
                        return Err("The command does not match this rule.".into());
                    }
                    runs(command, working_dir, facts)?;
                }
                if self.known.is_some() {
                    let known = known.map_err(str::to_owned)?;
                    if known.rewrite.is_some() && !request.takes_rewrite {
                        return Err(NO_REWRITE.into());
                    }
                }
                if let Some(globs) = &self.paths {
                    let known = known.map_err(str::to_owned)?;
                    if known.paths.is_empty() {
                        return Err("The command names no path.".into());
                    }
                    every(globs, &known.paths, &working_dir.workspace)?;
                }
            }
            RequestPart::Other { working_dir } => {
                if self.known.is_some() || self.paths.is_some() {
                    self.files(request, working_dir.map_err(str::to_owned)?, facts)?;
                }
                if let Some(domain) = &self.domain {
                    let url = request.url.as_deref().ok_or("The request names no URL.")?;
                    if !is_at(url, domain) {
                        return Err("The URL is for another host, or is not plain https.".into());
                    }
                }
            }
        }
        Ok(())
    }

    fn files(&self, request: &PermissionRequest, working_dir: &WorkingDir, facts: &dyn Facts) -> Result<(), String> {
        if request.paths.is_empty() {
            return Err("The request names no file.".into());
        }
        let edits = matches!(request.kind, RequestKind::Edit | RequestKind::Write);
        for path in &request.paths {
            let written = path.to_str().ok_or("A file name is not valid UTF-8.")?;
            working_dir.counts(written)?;
            if self.known.is_some() {
                if edits {
                    working_dir.editable(written, facts)?
                } else {
                    working_dir.readable(written, facts).map(|_| ())?
                }
            }
            if let Some(globs) = &self.paths {
                let from = working_dir.bases.first().ok_or("The working directory is unknown.")?;
                let real = facts.canonical(&from.join(path)).ok_or("Cannot resolve the path of a file.")?;
                let kept = |path: &Path| if edits { is_protected(path) } else { is_secret(path) };
                if kept(path) || kept(&real) || facts.is_private(&real) {
                    return Err(format!("`{written}` is protected: no path pattern can allow it."));
                }
                every(globs, &[real], &working_dir.workspace)?;
            }
            if !edits {
                reads(request, written, working_dir, facts)?;
            }
        }
        Ok(())
    }

    /// Whether there is a sign of every condition of the rule.
    fn shows(&self, request: &PermissionRequest, part: &RequestPart<'_>, facts: &dyn Facts) -> Result<(), String> {
        let seen = MentionedItems::new(request, part, facts);
        if self.command.as_ref().is_some_and(|pattern| !seen.commands.iter().any(|command| pattern.shows(command))) {
            return Err("The command does not match this rule.".into());
        }
        if let Some(danger) = self.danger {
            let found = match part {
                RequestPart::Command { command, .. } => {
                    DangerScan::new(&command.possible.line, request, facts).shows(danger, &command.possible)
                }
                RequestPart::Text { text, .. } => {
                    let possible = Possible::all(possible_commands(text));
                    DangerScan::new(&possible.line, request, facts).shows(danger, &possible)
                }
                RequestPart::Other { .. } => {
                    let nothing = Possible::default();
                    let scan = DangerScan::new(&nothing.line, request, facts);
                    matches!(request.kind, RequestKind::Edit | RequestKind::Write)
                        && request.paths.iter().any(|path| scan.edits(danger, path))
                }
            };
            if !found {
                return Err("The request shows no sign of this danger.".into());
            }
        }
        if let Some(globs) = &self.paths {
            let hit = |path: &PathBuf| globs.iter().any(|glob| glob.is_match(path));
            if !seen.paths.iter().any(hit) {
                return Err("The request names none of the rule's paths.".into());
            }
        }
        if let Some(domain) = &self.domain {
            let host = domain.strip_prefix("*.").unwrap_or(domain);
            let named = |text: &str| text.to_ascii_lowercase().contains(host);
            let words = seen.commands.iter().flat_map(PossibleCommand::mentioned);
            if !request.url.iter().map(String::as_str).chain(words).any(named) {
                return Err("The request names no URL of this domain.".into());
            }
        }
        Ok(())
    }
}

/// Everything a request mentions that a deny or ask rule can match.
struct MentionedItems {
    /// The commands that it may run.
    commands: Vec<PossibleCommand>,
    /// Everything that may be a path: as written, from the workspace, resolved.
    paths: Vec<PathBuf>,
}

impl MentionedItems {
    fn new(request: &PermissionRequest, part: &RequestPart<'_>, facts: &dyn Facts) -> Self {
        let mut seen = Self { commands: Vec::new(), paths: Vec::new() };
        match part {
            RequestPart::Command { command, .. } => seen.commands = command.possible.commands().cloned().collect(),
            RequestPart::Text { text, .. } => seen.commands = possible_commands(text).all,
            RequestPart::Other { .. } => {}
        }
        let written = request.paths.iter().cloned();
        let words: Vec<&str> = seen.commands.iter().flat_map(PossibleCommand::mentioned).collect();
        // `--file=x`
        let values = words.iter().filter_map(|word| Some(word.split_once('=')?.1.into()));
        // The paths found by the tables, with patterns expanded.
        let taken = match part {
            RequestPart::Command { known: Ok(known), .. } => known.paths.clone(),
            RequestPart::Command { .. } | RequestPart::Text { .. } | RequestPart::Other { .. } => Vec::new(),
        };
        let words = words.iter().map(PathBuf::from);
        for path in written.chain(taken).chain(words).chain(values).collect::<Vec<PathBuf>>() {
            let real = facts.canonical(&request.cwd.join(&path));
            let workspace = facts.canonical(&request.workspace);
            if let (Some(real), Some(workspace)) = (&real, &workspace) {
                seen.paths.extend(real.strip_prefix(workspace).ok().map(Path::to_owned));
            }
            seen.paths.extend(real);
            seen.paths.push(path);
        }
        seen
    }
}

/// Checks that the program is the bare name of one outside the workspace, or a builtin of the shell.
fn runs(command: &SimpleCommand, working_dir: &WorkingDir, facts: &dyn Facts) -> Result<(), String> {
    let Some(first) = command.words.first() else { return Err("The command is empty.".into()) };
    if first.bare && tools::tool(&first.text).is_some_and(|tool| tool.builtin) {
        return Ok(());
    }
    if command.words.iter().any(|word| word.zsh) {
        return Err("zsh may read one of the words of the command as a pattern.".into());
    }
    tools::resolved(first, working_dir, facts)
}

/// Checks which files a tool reads at a path: below a directory all files, unless the tool is known to read fewer.
fn reads(
    request: &PermissionRequest,
    written: &str,
    working_dir: &WorkingDir,
    facts: &dyn Facts,
) -> Result<(), String> {
    let from = working_dir.bases.first().ok_or("The working directory is unknown.")?;
    let real = facts.canonical(&from.join(written)).ok_or("Cannot resolve the path of a file.")?;
    if facts.is_directory(&real) {
        let Some(reader) = directory_reader(request) else { return Ok(()) };
        return working_dir
            .reaches_no_secret(&SearchScope { dir: real.clone(), cwd: real, reader, named: None }, facts);
    }
    working_dir.printable(&real, facts)?;
    // A name with brackets may be literal.
    let pattern = written.contains(['*', '?', '[', '{']) && facts.read(&real, 0) == FileContent::Missing;
    if pattern { Err(format!("The pattern `{written}` may match a secret.")) } else { Ok(()) }
}

/// How a tool reads a directory. `None` if it only lists names.
fn directory_reader(request: &PermissionRequest) -> Option<SearchReader> {
    match (request.agent, request.tool.as_deref()) {
        (Provider::Capture, Some("glob")) => None,
        (Provider::Capture, Some("grep")) => {
            // If a pattern may match hidden files, the tool reads all of them. No pattern makes it read ignored files.
            let hidden = request.glob.as_deref().is_some_and(|glob| {
                let glob = glob.strip_prefix("./").unwrap_or(glob);
                glob.split(['/', '{', ',']).any(|part| part.starts_with(['.', '[', '?', '\\']))
            });
            Some(SearchReader::Ripgrep(RipgrepOptions { hidden, binary: true, ..RipgrepOptions::default() }))
        }
        _ => Some(SearchReader::Everything(GrepFilter::default())),
    }
}

fn every(globs: &[GlobMatcher], paths: &[PathBuf], workspace: &Path) -> Result<(), String> {
    for path in paths {
        let inside = path.strip_prefix(workspace).unwrap_or(path);
        if !globs.iter().any(|glob| glob.is_match(inside) || glob.is_match(path)) {
            return Err(format!("`{}` matches none of the rule's paths.", path.display()));
        }
    }
    Ok(())
}

/// Whether an address is an https address of a host, without parts that could mislead.
fn is_at(address: &str, domain: &str) -> bool {
    let Ok(url) = url::Url::parse(address) else { return false };
    let plain = url.scheme() == "https"
        && url.username().is_empty()
        && url.password().is_none()
        && url.port().is_none()
        && !address.contains(['\\', '@', '\t', '\n', '\r'])
        && address.is_ascii();
    let Some(url::Host::Domain(host)) = url.host() else { return false };
    plain
        && match domain.strip_prefix("*.") {
            Some(above) => host.strip_suffix(above).is_some_and(|part| part.len() > 1 && part.ends_with('.')),
            None => host == domain,
        }
}
