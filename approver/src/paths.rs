//! Which files may be read or changed unasked: those inside the workspace that are no secret and do
//! not decide what runs later. The lists are data, `secrets.toml`.

use std::{
    path::{Component, Path, PathBuf},
    sync::LazyLock,
};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;

use crate::{Below, Content, Facts, Request};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lists {
    secret: Vec<String>,
    protected: Vec<String>,
}

struct Sets {
    secret: GlobSet,
    protected: GlobSet,
}

#[expect(clippy::panic, reason = "the list is part of the program, and a test reads it")]
static SETS: LazyLock<Sets> = LazyLock::new(|| {
    let lists: Lists =
        toml::from_str(include_str!("../secrets.toml")).unwrap_or_else(|error| panic!("secrets.toml: {error}"));
    let set = |globs: &[String]| {
        let mut set = GlobSetBuilder::new();
        for glob in globs {
            let glob = GlobBuilder::new(glob).case_insensitive(true).literal_separator(true).build();
            set.add(glob.unwrap_or_else(|error| panic!("secrets.toml: {error}")));
        }
        set.build().unwrap_or_else(|error| panic!("secrets.toml: {error}"))
    };
    Sets { secret: set(&lists.secret), protected: set(&lists.protected) }
});

/// Whether a path is on the list of secrets.
#[must_use]
pub fn is_secret(path: &Path) -> bool {
    SETS.secret.is_match(path)
}

/// Whether a path is on the list of what decides what runs later, or of secrets.
#[must_use]
pub fn is_protected(path: &Path) -> bool {
    SETS.protected.is_match(path) || is_secret(path)
}

/// Where a command runs, and what it may touch.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The session's workspace, links resolved.
    pub(crate) workspace: PathBuf,
    /// Where relative paths count from: one directory, or those before and after a `cd`.
    pub(crate) bases: Vec<PathBuf>,
    /// Whether it is known that it runs there.
    pub(crate) certain: bool,
}

impl Place {
    /// The place of a request.
    ///
    /// # Errors
    /// A sentence, when the directories cannot be told or are too wide to be a workspace.
    pub(crate) fn new(request: &Request, facts: &dyn Facts) -> Result<Self, String> {
        let told = |path: &Path| path.is_absolute().then(|| facts.canonical(path)).flatten();
        let workspace = told(&request.workspace).ok_or("It cannot be told where the workspace is.")?;
        let cwd = told(&request.cwd).ok_or("It cannot be told in which directory it would run.")?;
        if workspace.parent().is_none() || facts.home().is_some_and(|home| home.starts_with(&workspace)) {
            return Err("The workspace is the home directory or holds it, so being inside it means nothing.".into());
        }
        if facts.is_private(&workspace) || is_secret(&workspace) {
            return Err("The workspace is a private place.".into());
        }
        Ok(Self { workspace, bases: vec![cwd], certain: request.cwd_is_certain })
    }

    /// The place after `cd`, when that stays inside.
    pub(crate) fn moved(&self, dir: &str, facts: &dyn Facts) -> Result<Self, String> {
        // Shells take `link/..` for where the link stands, the kernel for where it leads.
        if Path::new(dir).components().any(|part| part == Component::ParentDir) {
            return Err("A `cd` with `..` is not followed.".into());
        }
        // `cd -`, `cd +1` go where one has been; a `~` leads home.
        if dir.is_empty() || dir.starts_with(['-', '+', '~']) {
            return Err(format!("`cd {dir}` is not followed."));
        }
        let mut bases = self.bases.clone();
        for base in &self.bases {
            bases.push(self.inside(&base.join(dir), dir, facts)?);
        }
        Ok(Self { workspace: self.workspace.clone(), bases, certain: self.certain })
    }

    /// The directory in which it runs, when that is known.
    pub(crate) fn runs_in(&self) -> Option<&Path> {
        self.bases.last().filter(|_| self.certain).map(PathBuf::as_path)
    }

    /// Whether what is written may be read, wherever it counts from; the resolved paths.
    pub(crate) fn readable(&self, written: &str, facts: &dyn Facts) -> Result<Vec<PathBuf>, String> {
        if written == "/dev/null" {
            return Ok(Vec::new());
        }
        self.counts(written)?;
        self.bases
            .iter()
            .map(|base| {
                let path = self.inside(&base.join(written), written, facts)?;
                let secret = is_secret(Path::new(written)) || is_secret(&path) || facts.is_private(&path);
                if secret { Err(format!("`{written}` may hold secrets.")) } else { Ok(path) }
            })
            .collect()
    }

    /// Whether what is written may be changed.
    pub(crate) fn editable(&self, written: &str, facts: &dyn Facts) -> Result<(), String> {
        for path in self.readable(written, facts)? {
            if path == self.workspace || is_protected(Path::new(written)) || is_protected(&path) {
                return Err(format!("`{written}` decides what runs later."));
            }
        }
        if written == "/dev/null" { Err("`/dev/null` is no file of the workspace.".into()) } else { Ok(()) }
    }

    /// Whether all below what was resolved may be read. Of what a reader passes over by itself
    /// (`visible`), hidden secrets do not count, unless an ignore file brings them back.
    pub(crate) fn readable_below(&self, dirs: &[PathBuf], visible: bool, facts: &dyn Facts) -> Result<(), String> {
        for dir in dirs {
            // What reads everything reads the addresses of remotes, too.
            match facts.read(&dir.join(".git/config"), 256 * 1024) {
                Content::Bytes(bytes) if !visible && crate::git::holds_credential(&bytes) => {
                    return Err("`.git/config` holds a credential and would be read.".into());
                }
                Content::Missing | Content::Unreadable | Content::Bytes(_) => {}
            }
            match facts.secrets_below(dir) {
                Below::Nothing => {}
                Below::TooMuch => {
                    return Err(format!("There is too much below `{}` to know that no secret is.", dir.display()));
                }
                Below::Secrets(found) => {
                    let hidden = |path: &Path| is_hidden(path.strip_prefix(dir).unwrap_or(path));
                    let seen = |path: &&PathBuf| !visible || !hidden(path) || self.brought_back(path, facts);
                    if let Some(secret) = found.iter().find(seen) {
                        return Err(format!("`{}` may hold secrets and would be read.", secret.display()));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether an ignore file at or above a path has an exception, which makes ripgrep read what is
    /// hidden.
    fn brought_back(&self, path: &Path, facts: &dyn Facts) -> bool {
        let dirs = path.ancestors().skip(1).take_while(|dir| dir.starts_with(&self.workspace));
        let names = [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"];
        let mut files = dirs.flat_map(|dir| names.map(|name| dir.join(name)));
        files.any(|file| match facts.read(&file, 256 * 1024) {
            Content::Missing => false,
            Content::Unreadable => true,
            Content::Bytes(bytes) => bytes.split(|b| *b == b'\n').any(|line| line.starts_with(b"!")),
        })
    }

    /// Whether it is known from where a path counts.
    ///
    /// # Errors
    /// A sentence that says why not.
    pub(crate) fn counts(&self, written: &str) -> Result<(), String> {
        // Some tools expand it by themselves.
        if written.starts_with('~') {
            return Err(format!("`{written}` begins with a home directory (`~`)."));
        }
        if !self.certain && !Path::new(written).is_absolute() {
            return Err(format!("It is not known in which directory it would run, so `{written}` may be anywhere."));
        }
        Ok(())
    }

    fn inside(&self, path: &Path, written: &str, facts: &dyn Facts) -> Result<PathBuf, String> {
        let path = facts.canonical(path).ok_or_else(|| format!("It cannot be told what `{written}` is."))?;
        if path.starts_with(&self.workspace) { Ok(path) } else { Err(format!("`{written}` is outside the workspace.")) }
    }
}

fn is_hidden(path: &Path) -> bool {
    path.components().any(|part| match part {
        Component::Normal(name) => name.as_encoded_bytes().starts_with(b"."),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_however_they_are_written() {
        for path in [
            ".env",
            "a/.env.local",
            "./.ENV",
            "/home/dev/.ssh/id_ed25519",
            "id_rsa",
            "server.pem",
            "x/../.aws/config",
            "/proc/self/environ",
            "prod.tfstate",
            ".netrc",
            "a/credentials.json",
            ".bash_history",
            "config/secrets.yml",
        ] {
            assert!(is_secret(Path::new(path)), "{path}");
        }
        for path in ["src/main.rs", "README.md", "environment.md", "docs/keys.md", "src/secret_list.rs", "identity.rs"]
        {
            assert!(!is_secret(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn what_decides_what_runs_later_is_protected() {
        for path in [".git/config", "sub/.git/hooks/x", ".claude/settings.json", "AGENTS.md", ".github/workflows/a.yml"]
        {
            assert!(is_protected(Path::new(path)), "{path}");
        }
        for path in [
            ".github/ISSUE_TEMPLATE.md",
            "QWEN.md",
            ".qwen/settings.json",
            ".junie/guidelines.md",
            ".factory/x",
            ".trae/rules/x",
            ".amazonq/x",
            "AGENT.md",
            "WARP.md",
            ".goosehints",
            ".rules",
            ".travis.yml",
            "Jenkinsfile",
            "azure-pipelines.yml",
            ".buildkite/x.yml",
            ".forgejo/workflows/a.yml",
            ".gitea/workflows/a.yml",
            ".woodpecker.yml",
            ".gdbinit",
            ".lldbinit",
            ".config/mise/config.toml",
            ".prototools",
            ".pnpmfile.cjs",
            "sitecustomize.py",
            ".lfsconfig",
            ".helix/config.toml",
            ".emacs.d/init.el",
            "node_modules/.bin/tsc",
            ".venv/bin/python",
            "a/venv/lib/x.py",
            "env/bin/activate.fish",
        ] {
            assert!(is_protected(Path::new(path)), "{path}");
        }
        for path in ["Cargo.toml", "src/main.rs", "docs/rules.md", "src/environment.rs"] {
            assert!(!is_protected(Path::new(path)), "{path}");
        }
    }
}
