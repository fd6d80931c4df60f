//! What a boundary forbids, and which commands and edits do it.
//!
//! A command is compared by its program, its subcommand and its operands, in the form in which receipts parse a line. If
//! it is not certain that a command does what is forbidden, it does not count.

use events::CheckClass;
use projections::receipt::ShellCommand;

/// Maximum number of parts of a path that is compared.
const PARTS: usize = 64;

/// What a person forbade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// To push; if given, only to this branch or remote.
    Push(Option<String>),
    ForcePush,
    /// To commit; if given, only to this branch.
    Commit(Option<String>),
    Amend,
    Rebase,
    Merge,
    /// To merge a pull request.
    MergeRequest,
    Delete(Files),
    Change(Files),
    Install(Packages),
    /// To deploy; if given, only to this environment.
    Deploy(Option<String>),
    Publish,
    Migrate,
    OpenRequest,
    /// To run a command that begins with these words.
    Run(Vec<String>),
}

/// The kind of an act, for permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Push,
    ForcePush,
    Commit,
    Amend,
    Rebase,
    Merge,
    Delete,
    Change,
    Install,
    Deploy,
    Publish,
    Migrate,
    OpenRequest,
    Run,
}

/// Files of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Files {
    All,
    /// A file, a directory or a pattern, as the person named it.
    Named(String),
}

/// Packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Packages {
    All,
    /// Packages that the project does not depend on yet.
    New,
    Named(String),
}

/// Why a command does what is forbidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sure {
    Yes,
    /// Only if its output says that it changed this branch.
    IfPrinted(String),
}

impl Act {
    /// Its kind.
    pub(super) const fn verb(&self) -> Verb {
        match self {
            Self::Push(_) => Verb::Push,
            Self::ForcePush => Verb::ForcePush,
            Self::Commit(_) => Verb::Commit,
            Self::Amend => Verb::Amend,
            Self::Rebase => Verb::Rebase,
            Self::Merge | Self::MergeRequest => Verb::Merge,
            Self::Delete(_) => Verb::Delete,
            Self::Change(_) => Verb::Change,
            Self::Install(_) => Verb::Install,
            Self::Deploy(_) => Verb::Deploy,
            Self::Publish => Verb::Publish,
            Self::Migrate => Verb::Migrate,
            Self::OpenRequest => Verb::OpenRequest,
            Self::Run(_) => Verb::Run,
        }
    }

    /// The branch, remote or environment to which it is limited.
    pub(super) fn target(&self) -> Option<&str> {
        if let Self::Push(to) | Self::Commit(to) | Self::Deploy(to) = self { to.as_deref() } else { None }
    }

    /// The files that it is about.
    pub(super) const fn files(&self) -> Option<&Files> {
        if let Self::Delete(files) | Self::Change(files) = self { Some(files) } else { None }
    }

    /// Whether a question or its answer, in lower case, may be about it.
    pub(super) fn is_named_in(&self, text: &str) -> bool {
        let words: &[&str] = match self.verb() {
            Verb::Push | Verb::ForcePush => &["push"],
            Verb::Commit | Verb::Amend => &["commit", "amend"],
            Verb::Rebase => &["rebas"],
            Verb::Merge => &["merg"],
            Verb::Delete => &["delet", "remov", "clean"],
            Verb::Install => &["install", "add", "depend", "package", "librar"],
            Verb::Deploy => &["deploy", "ship", "release", "roll out"],
            Verb::Publish => &["publish", "release"],
            Verb::Migrate => &["migrat", "database", "schema"],
            Verb::OpenRequest => &["pr", "pull request", "merge request"],
            // What is to change or to run may be named in any words.
            Verb::Change | Verb::Run => return true,
        };
        words.iter().any(|word| text.contains(word))
    }

    /// The prohibition in words: `do not push to main`.
    pub(crate) fn words(&self) -> String {
        let to = |to: &Option<String>| to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
        match self {
            Self::Push(branch) => format!("do not push{}", to(branch)),
            Self::ForcePush => "do not force-push".to_owned(),
            Self::Commit(branch) => format!("do not commit{}", to(branch)),
            Self::Amend => "do not amend commits".to_owned(),
            Self::Rebase => "do not rebase".to_owned(),
            Self::Merge => "do not merge".to_owned(),
            Self::MergeRequest => "do not merge the pull request".to_owned(),
            Self::Delete(Files::All) => "do not delete files".to_owned(),
            Self::Delete(Files::Named(file)) => format!("do not delete {file}"),
            Self::Change(Files::All) => "do not change files".to_owned(),
            Self::Change(Files::Named(file)) => format!("do not change {file}"),
            Self::Install(Packages::All) => "do not install packages".to_owned(),
            Self::Install(Packages::New) => "do not add dependencies".to_owned(),
            Self::Install(Packages::Named(name)) => format!("do not install {name}"),
            Self::Deploy(place) => format!("do not deploy{}", to(place)),
            Self::Publish => "do not publish".to_owned(),
            Self::Migrate => "do not run migrations".to_owned(),
            Self::OpenRequest => "do not open a pull request".to_owned(),
            Self::Run(words) => format!("do not run {}", words.join(" ")),
        }
    }

    /// Whether a command does it.
    pub(crate) fn is_done_by(&self, command: &ShellCommand, place: &Place) -> Option<Sure> {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        let git = Git::of(command.program(), &words, place);
        let of_git = |sub: &str| git.as_ref().filter(|git| git.sub == sub);
        let sure = |is_done: bool| is_done.then_some(Sure::Yes);
        match self {
            Self::Push(to) => {
                let git = of_git("push").filter(|git| git.pushes())?;
                match to {
                    None => Some(Sure::Yes),
                    Some(to) => git.pushes_to(to),
                }
            }
            Self::ForcePush => sure(of_git("push").is_some_and(|git| git.pushes() && git.forces())),
            Self::Commit(to) => {
                of_git("commit").filter(|git| git.commits())?;
                Some(to.as_ref().map_or(Sure::Yes, |to| Sure::IfPrinted(to.clone())))
            }
            Self::Amend => sure(of_git("commit").is_some_and(|git| git.commits() && git.has("--amend"))),
            Self::Rebase => sure(
                of_git("rebase").is_some_and(Git::rebases)
                    || of_git("pull").is_some_and(|git| git.has("--rebase") || git.has("-r")),
            ),
            Self::Merge => sure(
                command.class == Some(CheckClass::Merge)
                    && (command.program() != "git" || of_git("merge").is_some_and(|git| !git.has("--continue"))),
            ),
            Self::MergeRequest => sure(command.class == Some(CheckClass::Merge) && command.program() != "git"),
            Self::Delete(files) => sure(files.are_among(&deleted(command, git.as_ref()), place)),
            Self::Change(files) => {
                let mut changed = deleted(command, git.as_ref());
                changed.extend(written(command, git.as_ref()));
                sure(files.are_among(&changed, place))
            }
            Self::Install(packages) => sure(packages.are_installed_by(command, &words)),
            Self::Deploy(to) => {
                let deploys = command.class == Some(CheckClass::Deploy) && !publishes(command, &words);
                sure(deploys && to.as_ref().is_none_or(|to| names_place(&words, to)))
            }
            Self::Publish => sure(publishes(command, &words)),
            Self::Migrate => sure(migrates(command.program(), &words)),
            Self::OpenRequest => sure(opens_request(command.program(), &words)),
            Self::Run(forbidden) => {
                let is_program = forbidden.first().is_some_and(|program| program == command.program());
                let has_words = words.iter().skip(1).zip(forbidden.iter().skip(1)).filter(|(a, b)| a == b).count();
                sure(is_program && has_words + 1 == forbidden.len())
            }
        }
    }

    /// Whether an edit of a file does it.
    pub(crate) fn is_done_by_edit(&self, file: &str, place: &Place) -> bool {
        matches!(self, Self::Change(files) if files.are_among(&[file.to_owned()], place))
    }
}

/// Where a command runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// The directory in which the session began, as its parts; `None` if it is unknown.
    root: Option<Vec<String>>,
    /// The directory of the command: `None` if it is unknown.
    dir: Option<Vec<String>>,
}

impl Place {
    pub(crate) fn new(root: Option<&str>, cwd: Option<&str>) -> Self {
        let parts = |path: &str| path.starts_with('/').then(|| joined(&[], path)).flatten();
        let root = root.or(cwd).and_then(parts);
        // Without a report, both are the same directory.
        let dir = match cwd {
            Some(cwd) => parts(cwd),
            None => Some(root.clone().unwrap_or_default()),
        };
        Self { root, dir }
    }

    /// Follows a command that changes the directory for the later commands of its line.
    pub(crate) fn follow(&mut self, command: &ShellCommand) {
        if matches!(command.program(), "cd" | "pushd" | "popd") {
            let mut operands = command.words.iter().skip(1).filter(|word| *word != "--");
            self.dir = match (operands.next(), &self.dir) {
                (Some(to), Some(dir)) if command.program() != "popd" && !to.starts_with('-') => joined(dir, to),
                _ => None,
            };
        }
    }

    fn root(&self) -> &[String] {
        self.root.as_deref().unwrap_or_default()
    }

    /// The parts of a path below the directory of the session; `None` if it is elsewhere, or if this is not certain.
    fn inside(&self, path: &str) -> Option<Vec<String>> {
        // An absolute path shows nothing if the directory of the session is unknown.
        if self.root.is_none() && path.starts_with('/') {
            return None;
        }
        joined(self.dir.as_deref()?, path)?.strip_prefix(self.root()).map(<[String]>::to_vec)
    }

    /// Whether a directory is that of the session, or below it.
    fn is_own(&self, dir: Option<&str>) -> bool {
        match dir {
            Some(dir) => self.inside(dir).is_some(),
            None => self.dir.as_ref().is_some_and(|dir| dir.starts_with(self.root())),
        }
    }
}

/// A path from a directory, as its parts; `None` if it is not certain.
fn joined(dir: &[String], path: &str) -> Option<Vec<String>> {
    if path.is_empty() || path.starts_with('~') || path.contains(['$', '`', '\n']) {
        return None;
    }
    let mut parts = if path.starts_with('/') { Vec::new() } else { dir.to_vec() };
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part.to_owned()),
        }
    }
    (parts.len() <= PARTS).then_some(parts)
}

impl Files {
    /// Whether one of these paths is such a file, is below it, or contains it.
    fn are_among(&self, paths: &[String], place: &Place) -> bool {
        paths.iter().any(|path| self.contains(path, place))
    }

    fn contains(&self, path: &str, place: &Place) -> bool {
        let named = match self {
            Self::All => {
                return place.inside(path).is_some_and(|inside| inside.first().is_none_or(|part| part != ".git"));
            }
            Self::Named(named) => named,
        };
        if named.starts_with('/') {
            let whole = place.dir.as_ref().and_then(|dir| joined(dir, path));
            let (Some(whole), Some(named)) = (whole, joined(&[], named)) else { return false };
            return begins_with(&whole, &named);
        }
        let (Some(inside), Some(named)) = (place.inside(path), joined(&[], named)) else { return false };
        if named.is_empty() {
            return false;
        }
        // Only a file may be named by its last part: `api.rs` for `src/api.rs`. Directories and longer paths begin in the
        // workspace: `config` is not `docs/config`.
        let is_file = named.len() == 1 && named[0].contains(['.', '*']);
        let is_below = (0..inside.len()).any(|from| (from == 0 || is_file) && begins_with(&inside[from..], &named));
        // What happens to a directory happens to the files in it.
        is_below || !inside.is_empty() && named.len() > inside.len() && named.starts_with(&inside)
    }
}

/// Whether a path is the named one or below it.
fn begins_with(path: &[String], named: &[String]) -> bool {
    if let Some(at) = named.iter().position(|part| part == "**") {
        let (before, after) = (&named[..at], &named[at + 1..]);
        let Some(rest) = (path.len() >= at && begins_with(&path[..at], before)).then(|| &path[at..]) else {
            return false;
        };
        return !rest.is_empty() && (after.is_empty() || (0..rest.len()).any(|from| begins_with(&rest[from..], after)));
    }
    path.len() >= named.len() && path.iter().zip(named).all(|(part, named)| fits(part, named))
}

/// Whether a name fits a pattern with `*`; other signs of patterns stand for themselves.
pub(super) fn fits(name: &str, pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return name.ends_with(part);
        }
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// A call of git in the session's own repository.
struct Git<'a> {
    sub: &'a str,
    arguments: Vec<&'a str>,
}

impl<'a> Git<'a> {
    fn of(program: &str, words: &[&'a str], place: &Place) -> Option<Self> {
        if program != "git" {
            return None;
        }
        let (mut at, mut dir) = (1, None);
        while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
            match *word {
                "-C" => {
                    // Two of them add up.
                    if dir.is_some() {
                        return None;
                    }
                    dir = Some(*words.get(at + 1)?);
                    at += 2;
                }
                "-c" => at += 2,
                "--no-pager" | "-P" | "-p" | "--paginate" | "--no-optional-locks" | "--literal-pathspecs" => at += 1,
                // Another repository, or help.
                _ => return None,
            }
        }
        let sub = words.get(at).copied()?;
        let arguments = words[at + 1..].to_vec();
        let is_help = arguments.iter().any(|word| matches!(*word, "--help" | "-h"));
        (!is_help && place.is_own(dir)).then_some(Self { sub, arguments })
    }

    fn has(&self, option: &str) -> bool {
        self.arguments.iter().take_while(|word| **word != "--").any(|word| {
            *word == option
                || word.strip_prefix(option).is_some_and(|rest| option.starts_with("--") && rest.starts_with('='))
        })
    }

    /// Whether a letter is among the short options. The value of an option may look like one, so that a letter after
    /// `of_value` does not count.
    fn has_letter(&self, letter: char, of_value: &[char]) -> bool {
        self.arguments.iter().filter(|word| word.starts_with('-') && !word.starts_with("--")).any(|word| {
            let before = word.chars().skip(1).take_while(|c| !of_value.contains(c));
            before.into_iter().any(|c| c == letter)
        })
    }

    /// The arguments that are no options.
    fn operands(&self) -> Vec<&'a str> {
        let mut all = Vec::new();
        let mut rest = self.arguments.iter().copied();
        while let Some(word) = rest.next() {
            match word {
                "--" => all.extend(rest.by_ref()),
                "-o" | "--push-option" | "--receive-pack" | "--exec" | "--repo" => drop(rest.next()),
                word if word.starts_with('-') => {}
                word => all.push(word),
            }
        }
        all
    }

    fn pushes(&self) -> bool {
        !self.has("--dry-run") && !self.has_letter('n', &['o'])
    }

    fn forces(&self) -> bool {
        self.has("--force")
            || self.has("--force-with-lease")
            || self.has("--mirror")
            || self.has_letter('f', &['o'])
            || self.operands().iter().skip(1).any(|spec| spec.starts_with('+'))
    }

    /// Whether it pushes to a branch or remote.
    fn pushes_to(&self, to: &str) -> Option<Sure> {
        let operands = self.operands();
        let (remote, specs) = match operands.split_first() {
            Some((remote, specs)) => (Some(*remote), specs),
            None => (None, &[][..]),
        };
        if remote == Some(to) {
            return Some(Sure::Yes);
        }
        let branches: Vec<&str> = specs
            .iter()
            .map(|spec| spec.trim_start_matches('+'))
            .map(|spec| spec.rsplit(':').next().unwrap_or(spec))
            .map(|branch| branch.strip_prefix("refs/heads/").unwrap_or(branch))
            .collect();
        if branches.contains(&to) {
            Some(Sure::Yes)
        } else if branches.is_empty() || branches.contains(&"HEAD") {
            // The current branch, which only the output names.
            Some(Sure::IfPrinted(to.to_owned()))
        } else {
            None
        }
    }

    fn commits(&self) -> bool {
        !["--dry-run", "--short", "--porcelain", "--long"].iter().any(|option| self.has(option))
    }

    fn rebases(&self) -> bool {
        !["--abort", "--quit", "--continue", "--skip", "--edit-todo", "--show-current-patch"]
            .iter()
            .any(|option| self.has(option))
    }
}

/// The operands of a command that takes only options without values.
fn operands(command: &ShellCommand) -> Vec<String> {
    let mut only_operands = false;
    let is_operand = |word: &&String| {
        let is_end = *word == "--" && !only_operands;
        only_operands |= is_end;
        !is_end && (only_operands || !word.starts_with('-'))
    };
    command.words.iter().skip(1).filter(is_operand).cloned().collect()
}

/// The files that a command deletes or moves away.
fn deleted(command: &ShellCommand, git: Option<&Git<'_>>) -> Vec<String> {
    if command.words.iter().any(|word| word == "--help" || word == "--version") {
        return Vec::new();
    }
    match command.program() {
        "rm" | "unlink" | "rmdir" | "shred" | "trash" => operands(command),
        "git" => match git.filter(|git| git.sub == "rm" && !git.has("--dry-run") && !git.has("--cached")) {
            Some(git) if !git.has_letter('n', &[]) => git.operands().into_iter().map(str::to_owned).collect(),
            Some(_) | None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The files that a command writes, as far as its words name them.
fn written(command: &ShellCommand, git: Option<&Git<'_>>) -> Vec<String> {
    let words = || command.words.iter().skip(1);
    let mut all = command.writes.clone();
    match command.program() {
        "sed" | "gsed" => {
            let in_place = words().any(|word| {
                let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
                letters.is_some_and(|letters| letters.contains('i')) || word.starts_with("--in-place")
            });
            let has_script = words().any(|word| matches!(word.as_str(), "-e" | "-f" | "--expression" | "--file"));
            let files = operands(command);
            // Without `-e`, the first operand is the script. With it, an operand may be one.
            if in_place && !has_script {
                all.extend(files.into_iter().skip(1));
            } else if in_place {
                all.extend(files.into_iter().last());
            }
        }
        "perl" => {
            let in_place = words().any(|word| word.starts_with("-i") || word.starts_with("-pi"));
            if in_place {
                all.extend(operands(command).into_iter().skip(1));
            }
        }
        "tee" | "truncate" => all.extend(operands(command)),
        "mv" => all.extend(operands(command)),
        "cp" if operands(command).len() > 1 => all.extend(operands(command).into_iter().last()),
        "git" => match git {
            Some(git) if git.sub == "mv" => all.extend(git.operands().into_iter().map(str::to_owned)),
            Some(git) if git.sub == "restore" && !git.has("--staged") => {
                all.extend(git.operands().into_iter().map(str::to_owned));
            }
            Some(git) if git.sub == "checkout" => {
                let files = git.arguments.iter().skip_while(|word| **word != "--").skip(1);
                all.extend(files.map(|file| (*file).to_owned()));
            }
            Some(_) | None => {}
        },
        _ => {}
    }
    all
}

impl Packages {
    fn are_installed_by(&self, command: &ShellCommand, words: &[&str]) -> bool {
        let program = command.program();
        let names_target = matches!(program, "make" | "gmake" | "just" | "task" | "mage" | "invoke" | "ninja" | "doit");
        if command.class != Some(CheckClass::Install) || names_target {
            return false;
        }
        let fetches = matches!((program, words.get(1).copied()), ("cargo", Some("fetch" | "update")))
            || matches!((program, words.get(1).copied()), ("go", Some("mod")));
        let from_list = words.iter().any(|word| {
            matches!(*word, "-r" | "--requirement" | "-e" | "--editable" | "." | "sync" | "ci" | "--frozen-lockfile")
        });
        let packages = || words.iter().skip(2).filter(|word| !word.starts_with('-') && !word.contains(['/', '$']));
        match self {
            Self::All => !fetches,
            Self::New => {
                let of_system = matches!(program, "apt" | "apt-get" | "brew" | "dnf" | "yum" | "apk" | "gem")
                    || words.starts_with(&["cargo", "install"])
                    || words.starts_with(&["go", "install"])
                    || words.iter().any(|word| matches!(*word, "-g" | "--global"));
                !fetches && !from_list && !of_system && packages().next().is_some()
            }
            Self::Named(name) => packages().any(|word| {
                let bare = word.split(['@', '=', '<', '>', '[', '~', '^']).next().unwrap_or(word);
                bare.eq_ignore_ascii_case(name)
            }),
        }
    }
}

/// Whether a command publishes a package or a release, and does not deploy.
fn publishes(command: &ShellCommand, words: &[&str]) -> bool {
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let is_dry = words.iter().any(|word| word.starts_with("--dry-run") || matches!(*word, "--help" | "-h" | "--list"));
    let publishes = match (command.program(), word(1), word(2)) {
        ("cargo" | "npm" | "pnpm" | "yarn" | "bun" | "poetry" | "uv" | "lerna", "publish", _)
        | ("twine", "upload", _)
        | ("gem" | "docker" | "podman", "push", _)
        | ("mvn", "deploy", _)
        | ("gh", "release", "create")
        | ("goreleaser", "release", _) => true,
        ("make" | "just", target, _) => target == "publish" || target == "release",
        _ => false,
    };
    publishes && !is_dry
}

/// Whether the words of a command name an environment.
fn names_place(words: &[&str], place: &str) -> bool {
    let same = |name: &str| match place {
        "prod" | "production" => matches!(name, "prod" | "production"),
        "staging" | "stage" => matches!(name, "staging" | "stage"),
        place => name == place,
    };
    let parts = words.iter().skip(1).flat_map(|word| word.split([':', '=', '/', '-', '_', '.']));
    parts.into_iter().any(|part| same(&part.to_ascii_lowercase()))
}

fn migrates(program: &str, words: &[&str]) -> bool {
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let is_dry = words.iter().any(|word| {
        matches!(
            *word,
            "--help" | "-h" | "--plan" | "--check" | "--dry-run" | "--sql" | "--pretend" | "--fake" | "--list"
        )
    });
    let migrates = match (program, word(1), word(2)) {
        ("rails" | "rake" | "sequelize" | "sequelize-cli", task, _) => task == "db:migrate",
        ("alembic", "upgrade", _) | ("diesel", "migration", "run") | ("sqlx", "migrate", "run") => true,
        ("flask", "db", "upgrade") | ("mix", "ecto.migrate", _) | ("flyway", "migrate", _) => true,
        ("prisma", "migrate", "deploy" | "dev" | "reset") | ("prisma", "db", "push") => true,
        ("knex", "migrate:latest" | "migrate:up", _) | ("typeorm", "migration:run", _) => true,
        ("dbmate", "up" | "migrate", _) | ("liquibase", "update", _) => true,
        ("php", "artisan", "migrate") => true,
        ("npm" | "pnpm" | "yarn" | "bun", "run", task) => matches!(task, "migrate" | "db:migrate" | "migrations"),
        ("make" | "just", task, _) => matches!(task, "migrate" | "migrations"),
        (python, script, "migrate") if python.starts_with("python") => script.ends_with("manage.py"),
        ("manage.py", "migrate", _) => true,
        _ => false,
    };
    migrates && !is_dry
}

fn opens_request(program: &str, words: &[&str]) -> bool {
    let opens = match program {
        "gh" => words.get(1..3) == Some(&["pr", "create"]) || words.get(1..3) == Some(&["pr", "new"]),
        "glab" => words.get(1..3) == Some(&["mr", "create"]),
        "hub" => words.get(1) == Some(&"pull-request"),
        _ => false,
    };
    opens && !words.iter().any(|word| matches!(*word, "--dry-run" | "--help" | "-h" | "--web" | "-w"))
}
