//! The files a request refers to: scripts it runs, files it changes. To allow a request is to allow it with these
//! contents: if a file has changed since the request, the user must review the request again.

use std::{
    fs::OpenOptions,
    io::Read,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use approver::is_secret;
use projections::Approval;

use super::FileView;

/// Maximum number of files that are examined.
const FILES: usize = 64;
/// Maximum number of directory changes that are followed.
const MOVES: usize = 3;
/// Size of the largest file that is hashed, bytes; a larger one is identified by its size alone.
const LARGEST: u64 = 4 << 20;

/// The files of a request.
pub(super) type FileMarks = Arc<Vec<FileMark>>;

/// A file as it was when it was examined.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct FileMark {
    /// The path.
    pub path: PathBuf,
    /// Size in bytes; absent if the file does not exist.
    pub size: Option<u64>,
    /// The BLAKE3 hash of the content; absent if the file is too large, secret or unreadable.
    pub hash: Option<String>,
    /// Values that are not shown but detect changes: the hash, the inode and the time of the last change.
    own: (Option<[u8; 32]>, u64, i64, i64),
}

impl From<&FileMark> for FileView {
    fn from(mark: &FileMark) -> Self {
        Self { path: mark.path.to_string_lossy().into_owned(), size: mark.size, hash: mark.hash.clone() }
    }
}

/// The current state of a request's files.
#[must_use]
pub(super) fn marks(approval: &Approval) -> Vec<FileMark> {
    let Some(cwd) = approval.cwd.as_deref().map(Path::new).filter(|cwd| cwd.is_absolute()) else { return Vec::new() };
    // Any word of a command may be a file it runs, or part of one. Including too many files is harmless.
    let command = approval.command.as_deref().unwrap_or_default();
    let words = named_by(command);
    let bases = bases(cwd, command);
    let named = words.iter().flat_map(|word| bases.iter().map(move |base| (base.join(word), false)));
    let wanted = approval.paths.iter().map(|path| (cwd.join(path), true));
    let mut marks: Vec<FileMark> = Vec::new();
    for (path, always) in wanted.chain(named) {
        if marks.len() == FILES {
            break;
        }
        if marks.iter().any(|mark| mark.path == path) {
            continue;
        }
        let mark = mark(path);
        if always || mark.size.is_some() {
            marks.push(mark);
        }
    }
    marks
}

fn mark(path: PathBuf) -> FileMark {
    let nothing = |path| FileMark { path, size: None, hash: None, own: (None, 0, 0, 0) };
    // Only regular files are opened: opening a device may have side effects.
    if !std::fs::metadata(&path).is_ok_and(|about| about.is_file()) {
        return nothing(path);
    }
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(&path) else { return nothing(path) };
    let Some(about) = file.metadata().ok().filter(std::fs::Metadata::is_file) else { return nothing(path) };
    let mut bytes = Vec::new();
    let small = about.len() <= LARGEST && file.take(LARGEST + 1).read_to_end(&mut bytes).is_ok();
    let hash = small.then(|| blake3::hash(&bytes));
    // The hash of a secret is not shown.
    let shown = hash.filter(|_| !is_secret(&path)).map(|hash| hash.to_hex().to_string());
    let own = (hash.map(Into::into), about.ino(), about.ctime(), about.ctime_nsec());
    FileMark { path, size: Some(about.len()), hash: shown, own }
}

/// Whether a request may run or change files beyond these.
pub(super) fn has_more_files(approval: &Approval, files: &[FileMark]) -> bool {
    let command = approval.command.as_deref().unwrap_or_default();
    let moves = moves(command);
    files.len() >= FILES || approver::may_expand(command) || moves.len() > MOVES || moves.contains(&None)
}

/// The directories in which a command may look for its files: its start directory and those it changes to.
fn bases(cwd: &Path, command: &str) -> Vec<PathBuf> {
    let mut bases = vec![cwd.to_owned()];
    for to in moves(command).into_iter().flatten().take(MOVES) {
        let further: Vec<_> = bases.iter().map(|base| base.join(&to)).filter(|dir| dir.is_dir()).collect();
        bases.extend(further);
    }
    bases
}

/// The directories a command changes to, in order; `None` for a change to an unknown directory.
fn moves(command: &str) -> Vec<Option<String>> {
    let mut moves = Vec::new();
    let pieces = pieces(command, 0);
    for (at, piece) in pieces.iter().enumerate() {
        let Some(word) = piece else { continue };
        let next = pieces.get(at + 1).cloned().flatten();
        match word.as_str() {
            "cd" | "chdir" => moves.push(next.filter(|next| !next.starts_with('-'))),
            "pushd" | "popd" => moves.push(None),
            "-C" | "--directory" | "--chdir" | "--cwd" | "--prefix" | "--cd" => moves.extend(next.map(Some)),
            word => {
                let attached = ["--directory=", "--chdir=", "--cwd=", "--prefix=", "--cd=", "-C"];
                let to = attached.iter().find_map(|option| word.strip_prefix(option));
                moves.extend(to.map(|to| Some(to.to_owned())));
            }
        }
    }
    moves
}

/// The possible file names in a command: its words as parsed by a shell, values attached to options, and the parts
/// between characters at which programs split arguments.
fn named_by(command: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        if !name.is_empty() && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    };
    for word in pieces(command, 0).into_iter().flatten() {
        add(&word);
        if let Some((at, _)) = word.char_indices().nth(2).filter(|_| word.starts_with('-')) {
            add(&word[at..]);
        }
        for marks in [&['='][..], &['=', ','], &['=', ',', ':', '@', '+']] {
            word.split(marks).for_each(&mut add);
        }
    }
    // A shell would not run a command with unclosed quotes, but another program may parse it differently.
    command.split(|c: char| c.is_whitespace() || "'\"`;|&<>()=,".contains(c)).for_each(add);
    names
}

/// Maximum depth of commands nested within words that is examined.
const DEPTH: usize = 3;

/// The unquoted words of a command, without expansion; `None` marks the end of a command. A word that contains several
/// words, such as the argument of `sh -c`, is followed by those words.
fn pieces(command: &str, depth: usize) -> Vec<Option<String>> {
    let mut pieces = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    let end = |word: &mut Option<String>, pieces: &mut Vec<Option<String>>| {
        let Some(word) = word.take() else { return };
        let inner = if depth < DEPTH && word.contains(char::is_whitespace) {
            self::pieces(&word, depth + 1)
        } else {
            Vec::new()
        };
        pieces.push(Some(word));
        pieces.extend(inner);
    };
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ';' | '|' | '&' | '(' | ')' | '`' | '\n') => {
                end(&mut word, &mut pieces);
                pieces.push(None);
            }
            (None, c) if c.is_whitespace() || matches!(c, '<' | '>') => end(&mut word, &mut pieces),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    end(&mut word, &mut pieces);
    pieces
}

#[cfg(test)]
mod tests;
