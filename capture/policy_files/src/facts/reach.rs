//! Finds the secrets that a program could read if it reads everything below a directory.
//!
//! `ignore`, ripgrep's own crate, decides with the same options which files ripgrep skips. For a program that reads
//! everything, the same walk skips nothing.

use std::path::{Path, PathBuf};

use approver::{
    Facts, FileContent, FileInspection, GitFile, GrepFilter, RipgrepOptions, SearchReader, SearchScope, SecretsBelow,
    is_secret, may_hold_secret,
};
use ignore::{
    DirEntry, Walk, WalkBuilder,
    overrides::OverrideBuilder,
    types::{Types, TypesBuilder},
};

use super::OnDisk;

/// Maximum number of entries below a directory that is searched for secrets.
const MAX_ENTRIES: usize = 1_000_000;
/// Maximum number of secrets reported.
const MAX_SECRETS: usize = 64;
/// Maximum number of git's files searched. With more files, it is unknown whether one contains a credential.
const MAX_GIT_FILES: usize = 4000;
/// Maximum number of files searched because of their name alone.
const MAX_SUSPECTS: usize = 400;
/// Maximum number of bytes read from all of these files together.
const MAX_SUSPECT_BYTES: usize = 8 * 1024 * 1024;
/// Maximum size of a file searched because of its name alone, bytes.
const MAX_SUSPECT: usize = 128 * 1024;
/// Maximum size of a searched file in a git directory, bytes; larger files count as secrets.
const MAX_GIT_FILE: usize = 1024 * 1024;
/// Number of bytes read to recognize a binary file: less than any reader reads at once.
const HEAD: usize = 8 * 1024;

/// The secrets within reach; not all of them if there are many.
pub(super) fn reached(disk: &OnDisk, search: &SearchScope) -> SecretsBelow {
    let Some(walk) = walk(search) else { return SecretsBelow::TooMuch };
    let mut found = Walked { disk, search, git: Vec::new(), secrets: Vec::new(), git_files: 0, suspects: 0, bytes: 0 };
    for (count, entry) in walk.enumerate() {
        if count > MAX_ENTRIES {
            return SecretsBelow::TooMuch;
        }
        // A program cannot read what this walk cannot read.
        let Ok(entry) = entry else { continue };
        if found.visit(&entry).is_none() {
            return SecretsBelow::TooMuch;
        }
        if found.secrets.len() >= MAX_SECRETS {
            break;
        }
    }
    if found.secrets.is_empty() { SecretsBelow::Nothing } else { SecretsBelow::Secrets(found.secrets) }
}

/// The walk of the program. `None` if its options cannot be interpreted.
fn walk(search: &SearchScope) -> Option<Walk> {
    let mut builder = WalkBuilder::new(&search.dir);
    builder.standard_filters(false).follow_links(false);
    match &search.reader {
        SearchReader::Everything(filter) => {
            let passed_over: Vec<String> = filter.exclude_dir.iter().filter(|glob| is_plain(glob)).cloned().collect();
            let root = search.dir.clone();
            builder.filter_entry(move |entry| {
                let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
                let name = entry.file_name().to_string_lossy();
                !is_dir
                    || entry.path() == root
                    || !is_store(entry.path()) && !passed_over.iter().any(|glob| matches(glob, &name))
            });
        }
        SearchReader::Ripgrep(options) => {
            ripgrep(&mut builder, options, &search.cwd)?;
            builder.filter_entry(|entry| !is_store(entry.path()));
        }
    }
    Some(builder.build())
}

fn ripgrep(builder: &mut WalkBuilder, options: &RipgrepOptions, cwd: &Path) -> Option<()> {
    builder
        .hidden(!options.hidden)
        .parents(!options.ignored_above)
        .ignore(!options.ignored)
        .git_ignore(!options.ignored_by_git)
        .git_exclude(!options.ignored_by_git)
        .require_git(true);
    if !options.ignored {
        builder.add_custom_ignore_filename(".rgignore");
    }
    let mut overrides = OverrideBuilder::new(cwd);
    for (glob, any_case) in &options.globs {
        overrides.case_insensitive(*any_case).ok()?.add(glob).ok()?;
    }
    builder.overrides(overrides.build().ok()?).types(types(options)?);
    Some(())
}

fn types(options: &RipgrepOptions) -> Option<Types> {
    let mut types = TypesBuilder::new();
    types.add_defaults();
    for name in &options.types {
        types.select(name);
    }
    for name in &options.types_not {
        types.negate(name);
    }
    types.build().ok()
}

/// Whether a file in a git directory, whatever the directory is called, contains a credential. `None` if the file is in
/// no git directory.
pub(super) fn in_git(disk: &OnDisk, path: &Path) -> Option<bool> {
    let git = path.ancestors().skip(1).find(|dir| is_git(dir))?;
    let file = GitFile::new(path.strip_prefix(git).ok()?);
    match disk.read(path, MAX_GIT_FILE) {
        _ if file == GitFile::Names => Some(false),
        FileContent::Missing => Some(false),
        FileContent::Unreadable => Some(true),
        FileContent::Bytes(bytes) => Some(file.holds_credential(&bytes)),
    }
}

/// Whether a directory is one in which git stores objects, compressed and by the thousand.
fn is_store(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let hash = name.len() == 2 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let Some(objects) = path.parent().filter(|_| hash || name == "pack") else { return false };
    objects.ends_with("objects") && objects.parent().is_some_and(is_git)
}

/// Whether a directory is a git directory, whatever it is called.
fn is_git(dir: &Path) -> bool {
    dir.join("HEAD").is_file() && dir.join("objects").is_dir() && dir.join("refs").is_dir()
}

struct Walked<'a> {
    disk: &'a OnDisk,
    search: &'a SearchScope,
    /// The git directories that enclose the current entry.
    git: Vec<PathBuf>,
    secrets: Vec<PathBuf>,
    git_files: usize,
    suspects: usize,
    bytes: usize,
}

impl Walked<'_> {
    /// Returns `None` if there is too much to examine.
    fn visit(&mut self, entry: &DirEntry) -> Option<()> {
        let (path, kind) = (entry.path(), entry.file_type()?);
        self.git.retain(|dir| path.starts_with(dir));
        if kind.is_dir() {
            if is_git(path) {
                self.git.push(path.to_owned());
            } else if entry.depth() == 0 {
                // The root may be inside a git directory.
                self.git.extend(path.ancestors().skip(1).find(|dir| is_git(dir)).map(Path::to_owned));
            }
        }
        if self.search.named.is_some_and(|named| entry.depth() > 0 && named.is_odd(path)) {
            self.secrets.push(path.to_owned());
        }
        if kind.is_dir() {
            return Some(());
        }
        if self.is_left_out(entry) {
            return Some(());
        }
        let named = self.search.named;
        if named.is_some_and(|named| named.links) && kind.is_symlink() {
            self.secrets.push(path.to_owned());
        }
        if !kind.is_file() || named.is_some_and(|named| !named.read) {
            return Some(());
        }
        let secret = match self.git.last() {
            Some(git) => {
                let inside = GitFile::new(path.strip_prefix(git).ok()?);
                self.git_file(path, inside)?
            }
            None => is_secret(path) && !self.is_binary(path) || may_hold_secret(path) && self.suspect(path),
        };
        if secret {
            self.secrets.push(path.to_owned());
        }
        Some(())
    }

    /// Whether grep's options exclude a file.
    fn is_left_out(&self, entry: &DirEntry) -> bool {
        let SearchReader::Everything(GrepFilter { include, exclude, .. }) = &self.search.reader else { return false };
        // A pattern that cannot be interpreted excludes nothing.
        let name = entry.file_name().to_string_lossy();
        let lower = name.to_lowercase();
        let included = |glob: &String| !is_plain(glob) || matches(&glob.to_lowercase(), &lower);
        let excluded = |glob: &String| is_plain(glob) && matches(glob, &name);
        !include.is_empty() && !include.iter().any(included) || exclude.iter().any(excluded)
    }

    fn git_file(&mut self, path: &Path, file: GitFile) -> Option<bool> {
        if file == GitFile::Names {
            return Some(false);
        }
        self.git_files += 1;
        if self.git_files > MAX_GIT_FILES {
            return None;
        }
        Some(match self.disk.read(path, MAX_GIT_FILE) {
            FileContent::Missing => false,
            FileContent::Unreadable => true,
            FileContent::Bytes(bytes) => file.holds_credential(&bytes) || secrets::holds_secret(&bytes),
        })
    }

    fn suspect(&mut self, path: &Path) -> bool {
        let size = path.metadata().map_or(0, |about| usize::try_from(about.len()).unwrap_or(usize::MAX));
        if self.suspects == MAX_SUSPECTS || size > MAX_SUSPECT || self.bytes + size > MAX_SUSPECT_BYTES {
            return false;
        }
        self.suspects += 1;
        self.bytes += size;
        self.disk.inspect_file(path, MAX_SUSPECT) == FileInspection::Secret
    }

    /// Whether ripgrep skips a file because it is binary.
    fn is_binary(&self, path: &Path) -> bool {
        use std::io::Read;
        let SearchReader::Ripgrep(RipgrepOptions { binary: false, .. }) = &self.search.reader else { return false };
        let mut head = Vec::new();
        let read = std::fs::File::open(path).and_then(|file| file.take(HEAD as u64).read_to_end(&mut head));
        // UTF-16 text is decoded first.
        let decoded = head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]);
        read.is_ok() && !decoded && head.contains(&0)
    }
}

/// Whether a grep pattern has the same meaning for [`matches`].
fn is_plain(glob: &str) -> bool {
    glob.chars().all(|c| c.is_ascii_alphanumeric() || "._-*".contains(c))
}

/// Whether a name matches a pattern in which only `*` is special.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, rest)) => name.strip_prefix(before).is_some_and(|name| {
            (0..=name.len()).filter(|at| name.is_char_boundary(*at)).any(|at| matches(rest, &name[at..]))
        }),
    }
}
