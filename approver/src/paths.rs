//! Decides where a command runs, and which files may be read or changed without asking: files inside the workspace that
//! are not secrets and do not control what runs later (see `names`).

use std::path::{Component, Path, PathBuf};

use crate::{
    facts::{Facts, FileEntry, FileInspection, SecretsBelow},
    names::{is_protected, is_secret, is_secret_directory, runs_later},
    request::PermissionRequest,
    search::SearchScope,
};

/// Directories that builds, tests and installations create, and can create again.
const BUILT: &[&str] = &[
    "target",
    "dist",
    "build",
    "out",
    "node_modules",
    ".next",
    ".nuxt",
    ".output",
    ".svelte-kit",
    ".turbo",
    ".parcel-cache",
    ".vite",
    "coverage",
    "htmlcov",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".tox",
    ".nox",
    ".eggs",
    "tmp",
    ".cache",
    "_build",
    "obj",
    "storybook-static",
    "test-results",
    "playwright-report",
    ".nyc_output",
    "cmake-build-debug",
    "cmake-build-release",
    "DerivedData",
    ".gradle",
];

/// Whether a path is a directory that a build creates again.
pub(crate) fn is_built(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| BUILT.contains(&name))
}

/// The directory in which a command runs, and the workspace it may touch.
#[derive(Debug, Clone)]
pub(crate) struct WorkingDir {
    /// The session's workspace, with links resolved.
    pub(crate) workspace: PathBuf,
    /// The directories to which relative paths may refer: one directory, or those before and after a `cd`.
    pub(crate) bases: Vec<PathBuf>,
    /// Whether it is certain that the command runs there.
    pub(crate) certain: bool,
    /// Whether the command certainly runs in the last of `bases`.
    pub(crate) certain_place: bool,
}

impl WorkingDir {
    /// The working directory of a request.
    ///
    /// # Errors
    /// A sentence, if the directories cannot be determined or are too wide to be a workspace.
    pub(crate) fn new(request: &PermissionRequest, facts: &dyn Facts) -> Result<Self, String> {
        let told = |path: &Path| path.is_absolute().then(|| facts.canonical(path)).flatten();
        let workspace = told(&request.workspace).ok_or("Cannot resolve the path of the workspace.")?;
        let cwd = told(&request.cwd).ok_or("Cannot resolve the path of the working directory.")?;
        if workspace.parent().is_none() || facts.home().is_some_and(|home| home.starts_with(&workspace)) {
            return Err("The workspace is the home directory or contains it.".into());
        }
        if facts.is_private(&workspace) || is_secret_directory(&workspace) {
            return Err("The workspace is one of capture's private directories.".into());
        }
        Ok(Self { workspace, bases: vec![cwd], certain: request.cwd_is_certain, certain_place: true })
    }

    /// The working directory after `cd`, if that is inside the workspace.
    pub(crate) fn moved(&self, dir: &str, facts: &dyn Facts) -> Result<Self, String> {
        // In `link/..`, shells use the directory that contains the link, the kernel the link's target.
        if Path::new(dir).components().any(|part| part == Component::ParentDir) {
            return Err("capture does not follow a `cd` with `..`.".into());
        }
        // `cd -` and `cd +1` go to earlier directories; a `~` leads to a home.
        if dir.is_empty() || dir.starts_with(['-', '+', '~']) {
            return Err(format!("capture cannot follow `cd {dir}`."));
        }
        let mut bases = self.bases.clone();
        for base in &self.bases {
            bases.push(self.inside(&base.join(dir), dir, facts)?);
        }
        Ok(Self { workspace: self.workspace.clone(), bases, certain: self.certain, certain_place: self.certain_place })
    }

    /// The working directory of a program that changes its directory itself, if that is inside the workspace.
    pub(crate) fn within(&self, dir: &str, facts: &dyn Facts) -> Result<Self, String> {
        let moved = self.moved(dir, facts)?;
        let bases = moved.bases.get(self.bases.len()..).unwrap_or_default().to_vec();
        Ok(Self { bases, ..moved })
    }

    /// The directory in which the command runs, if it is known.
    pub(crate) fn runs_in(&self) -> Option<&Path> {
        self.bases.last().filter(|_| self.certain && self.certain_place).map(PathBuf::as_path)
    }

    /// Checks that a path may be read, from each directory to which it may refer. Returns the resolved paths.
    pub(crate) fn readable(&self, written: &str, facts: &dyn Facts) -> Result<Vec<PathBuf>, String> {
        if written == "/dev/null" {
            return Ok(Vec::new());
        }
        self.counts(written)?;
        self.bases
            .iter()
            .map(|base| {
                let path = self.inside(&base.join(written), written, facts)?;
                let written_path = Path::new(written);
                let secret = if facts.is_directory(&path) {
                    is_secret_directory(&path) || is_secret_directory(written_path)
                } else {
                    is_secret(&path) || is_secret(written_path)
                };
                if secret || facts.is_private(&path) {
                    Err(format!("`{written}` may contain secrets."))
                } else {
                    Ok(path)
                }
            })
            .collect()
    }

    /// Checks that the names, sizes and times of a path may be printed: it is inside the workspace and not private.
    /// Returns the resolved paths.
    pub(crate) fn nameable(&self, written: &str, facts: &dyn Facts) -> Result<Vec<PathBuf>, String> {
        self.counts(written)?;
        let inside = |base: &PathBuf| match self.inside(&base.join(written), written, facts)? {
            path if facts.is_private(&path) => Err(format!("`{written}` may contain secrets.")),
            path => Ok(path),
        };
        if written == "/dev/null" { Ok(Vec::new()) } else { self.bases.iter().map(inside).collect() }
    }

    /// Checks that a file may be printed: it contains no text that looks like a secret. Not for directories.
    ///
    /// # Errors
    /// A sentence with the reason why it may not be printed.
    pub(crate) fn printable(&self, path: &Path, facts: &dyn Facts) -> Result<(), String> {
        match facts.inspect(path) {
            FileInspection::NoFile | FileInspection::Plain => Ok(()),
            FileInspection::Secret => Err(format!("`{}` contains what looks like a secret.", path.display())),
            FileInspection::Unknown => Err(format!("`{}` is too large to search for secrets.", path.display())),
        }
    }

    /// Checks that a path may be changed.
    pub(crate) fn editable(&self, written: &str, facts: &dyn Facts) -> Result<(), String> {
        if written == "/dev/null" {
            return Err("`/dev/null` is not a file of the workspace.".into());
        }
        for path in self.readable(written, facts)? {
            let inside = path.strip_prefix(&self.workspace).unwrap_or(&path);
            if inside.as_os_str().is_empty() || runs_later(inside) {
                return Err(format!("`{written}` controls what runs later."));
            }
            match facts.entry(&path) {
                FileEntry::Missing => {}
                FileEntry::File { executable: true, .. } => return Err(format!("`{written}` is an executable file.")),
                FileEntry::File { links: 0 | 1, .. } => {}
                FileEntry::File { .. } => {
                    return Err(format!(
                        "`{written}` has a second name (hard link), which may be outside the \
                        workspace."
                    ));
                }
                FileEntry::Other => return Err(format!("`{written}` is not a file.")),
            }
            // A write through a link would change another file than the named one.
            if !self.bases.iter().any(|base| self.names_directly(&lexical(&base.join(written)), inside, facts)) {
                return Err(format!("`{written}` leads through a symbolic link to `{}`.", path.display()));
            }
        }
        Ok(())
    }

    /// Checks that a directory or a build may be created at a path: it is inside the workspace, not a secret, and not a
    /// file that programs read by default.
    ///
    /// # Errors
    /// A sentence with the reason why it may not be created.
    pub(crate) fn makeable(&self, written: &str, facts: &dyn Facts) -> Result<Vec<PathBuf>, String> {
        let paths = self.readable(written, facts)?;
        for path in &paths {
            let inside = path.strip_prefix(&self.workspace).unwrap_or(path);
            if inside.as_os_str().is_empty() || is_protected(inside) || is_protected(&inside.join("x")) {
                return Err(format!("Programs read `{written}` automatically."));
            }
        }
        Ok(paths)
    }

    /// Checks that a path may be removed: a file that may be edited, or a directory of build output.
    ///
    /// # Errors
    /// A sentence with the reason why it may not be removed.
    pub(crate) fn removable(&self, written: &str, facts: &dyn Facts) -> Result<Vec<PathBuf>, String> {
        // A trailing slash would follow a link.
        let plain = written.trim_end_matches('/');
        let paths = self.nameable(plain, facts)?;
        for path in &paths {
            let inside = path.strip_prefix(&self.workspace).unwrap_or(path);
            let direct = self.bases.iter().any(|base| self.names_directly(&lexical(&base.join(plain)), inside, facts));
            let built = is_built(inside) && direct && !inside.components().any(|part| part.as_os_str() == ".git");
            if !built {
                self.editable(plain, facts)?;
            }
        }
        Ok(paths)
    }

    /// Whether a path leads to a file of the workspace without a link below its top.
    fn names_directly(&self, written: &Path, inside: &Path, facts: &dyn Facts) -> bool {
        let top = written.ancestors().find(|dir| facts.canonical(dir).as_ref() == Some(&self.workspace));
        top.and_then(|top| written.strip_prefix(top).ok()) == Some(inside)
    }

    /// Checks that a program that reads below directories reaches no secret.
    ///
    /// # Errors
    /// A sentence that names the secret, or says that this cannot be determined.
    pub(crate) fn reaches_no_secret(&self, search: &SearchScope, facts: &dyn Facts) -> Result<(), String> {
        match facts.reached(search) {
            SecretsBelow::Nothing => Ok(()),
            SecretsBelow::TooMuch => {
                Err(format!("`{}` contains too many files to check for secrets.", search.dir.display()))
            }
            SecretsBelow::Secrets(found) => match found.first() {
                Some(secret) => Err(format!("`{}` may contain secrets and would be read.", secret.display())),
                None => Ok(()),
            },
        }
    }

    /// Checks that the directory to which a path refers is known.
    ///
    /// # Errors
    /// A sentence with the reason why it is not.
    pub(crate) fn counts(&self, written: &str) -> Result<(), String> {
        // Some tools expand it themselves.
        if written.starts_with('~') {
            return Err(format!("`{written}` begins with a home directory (`~`)."));
        }
        if !self.certain && !Path::new(written).is_absolute() {
            return Err(format!("capture does not know the working directory, so `{written}` could be anywhere."));
        }
        Ok(())
    }

    fn inside(&self, path: &Path, written: &str, facts: &dyn Facts) -> Result<PathBuf, String> {
        let path = facts.canonical(path).ok_or_else(|| format!("Cannot resolve `{written}`."))?;
        if path.starts_with(&self.workspace) { Ok(path) } else { Err(format!("`{written}` is outside the workspace.")) }
    }
}

/// The path without `.` and `..`. Links are not followed.
pub(crate) fn lexical(path: &Path) -> PathBuf {
    let mut done = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                done.pop();
            }
            Component::RootDir | Component::Prefix(_) | Component::Normal(_) => done.push(part),
        }
    }
    done
}
