//! Checks the repository's own configuration: every key must be known to run nothing.

use std::path::{Path, PathBuf};

use crate::{
    credential::has_credential,
    facts::{Facts, FileContent},
};

/// Longest configuration file that is read, bytes.
const MAX: usize = 256 * 1024;

/// Keys that are harmless, or overridden by the settings of the rewritten command. For a key with a name in its middle
/// (`branch.main.remote`), the name is omitted.
const HARMLESS: &[&str] = &[
    "core.repositoryformatversion",
    "core.filemode",
    "core.logallrefupdates",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.quotepath",
    "core.abbrev",
    "core.untrackedcache",
    "core.preloadindex",
    "core.hookspath",
    "core.longpaths",
    "core.protectntfs",
    "core.protecthfs",
    "core.commitgraph",
    "core.multipackindex",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.editor",
    "core.pager",
    "core.trustctime",
    "core.checkstat",
    "core.bigfilethreshold",
    "core.fscache",
    "core.sharedrepository",
    "index.version",
    "index.threads",
    "index.sparse",
    "index.skiphash",
    "feature.manyfiles",
    "extensions.objectformat",
    "extensions.refstorage",
    "extensions.worktreeconfig",
    "extensions.noop",
    "extensions.relativeworktrees",
    "remote.fetch",
    "remote.url",
    "remote.pushurl",
    "remote.push",
    "remote.tagopt",
    "remote.prune",
    "remote.prunetags",
    "remote.gh-resolved",
    "remote.skipdefaultupdate",
    "remote.mirror",
    "remote.pushdefault",
    "remote.followremotehead",
    "branch.remote",
    "branch.merge",
    "branch.rebase",
    "branch.pushremote",
    "branch.description",
    "branch.vscode-merge-base",
    "branch.gh-merge-base",
    "branch.github-pr-owner-number",
    "branch.autosetupmerge",
    "branch.autosetuprebase",
    "user.name",
    "user.email",
    "user.signingkey",
    "user.useconfigonly",
    "author.name",
    "author.email",
    "committer.name",
    "committer.email",
    "commit.gpgsign",
    "commit.template",
    "commit.verbose",
    "tag.gpgsign",
    "gpg.format",
    "init.defaultbranch",
    "pull.rebase",
    "pull.ff",
    "push.default",
    "push.autosetupremote",
    "push.followtags",
    "fetch.prune",
    "fetch.prunetags",
    "fetch.parallel",
    "fetch.writecommitgraph",
    "merge.conflictstyle",
    "merge.ff",
    "merge.renamelimit",
    "merge.log",
    "rebase.autostash",
    "rebase.autosquash",
    "rebase.updaterefs",
    "rerere.enabled",
    "rerere.autoupdate",
    "gc.auto",
    "gc.autodetach",
    "gc.writecommitgraph",
    "maintenance.auto",
    "maintenance.strategy",
    "receive.denycurrentbranch",
    "pack.threads",
    "pack.windowmemory",
    "color.ui",
    "color.diff",
    "color.status",
    "color.branch",
    "diff.renames",
    "diff.renamelimit",
    "diff.algorithm",
    "diff.colormoved",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "status.showuntrackedfiles",
    "status.branch",
    "status.short",
    "log.date",
    "log.decorate",
    "blame.date",
    "advice.detachedhead",
    "submodule.url",
    "submodule.active",
    "submodule.branch",
    "submodule.ignore",
    "submodule.path",
    "submodule.fetchjobs",
    "lfs.repositoryformatversion",
    "lfs.access",
    "gui.wmstate",
    "gui.geometry",
    "url.insteadof",
    "url.pushinsteadof",
];

/// Checks the configuration of the repository in which git would run. `tells`: the command prints the addresses of
/// remotes. Returns the git directory; for a linked worktree, its own.
///
/// # Errors
/// Names the setting that could run something, or says that this cannot be determined.
pub(super) fn check(cwd: &Path, workspace: &Path, tells: bool, facts: &dyn Facts) -> Result<PathBuf, String> {
    let Some(top) = cwd.ancestors().find(|dir| facts.read(&dir.join(".git"), MAX) != FileContent::Missing) else {
        // `diff` and `grep` would read files outside a repository, and follow links.
        return Err("Not inside a git repository: git could read any path.".into());
    };
    if cwd.components().any(|part| part.as_os_str() == ".git") {
        return Err("The command would run inside a git directory.".into());
    }
    if top != workspace {
        return Err(format!("The repository in `{}` is not the session's own.", top.display()));
    }
    let dot_git = top.join(".git");
    if facts.canonical(&dot_git).as_ref() != Some(&dot_git) {
        return Err("`.git` is a symbolic link.".into());
    }
    let mut files = Vec::new();
    let (own, common) = match facts.read(&dot_git, MAX) {
        FileContent::Unreadable | FileContent::Missing => {
            // It would name another repository, whose configuration would apply.
            if facts.read(&dot_git.join("commondir"), MAX) != FileContent::Missing {
                return Err("`.git/commondir` leads to another repository.".into());
            }
            (dot_git.clone(), dot_git)
        }
        FileContent::Bytes(bytes) => {
            let own = pointed(&bytes, "gitdir: ", top).and_then(|path| facts.canonical(&path));
            let own = own.ok_or("capture cannot determine where the repository is.")?;
            files.push(own.join("config.worktree"));
            no_links(&own, facts)?;
            let common = worktree(&own, &dot_git, facts)?;
            (own, common)
        }
    };
    no_links(&common, facts)?;
    if facts.read(&common.join("objects/info/alternates"), MAX) != FileContent::Missing {
        return Err("The repository borrows objects from another repository.".into());
    }
    files.extend([common.join("config"), common.join("config.worktree")]);
    for file in files {
        match facts.read(&file, MAX) {
            FileContent::Missing => {}
            FileContent::Unreadable => return Err(format!("`{}` cannot be read.", file.display())),
            FileContent::Bytes(bytes) => keys(&bytes, &file, tells)?,
        }
    }
    Ok(own)
}

/// The repository to which a linked worktree belongs. It must list the worktree; otherwise any directory could pretend
/// to be one.
fn worktree(own: &Path, dot_git: &Path, facts: &dyn Facts) -> Result<PathBuf, String> {
    let odd = || "`.git` is a file that names no worktree of a repository.".to_owned();
    let FileContent::Bytes(common) = facts.read(&own.join("commondir"), MAX) else { return Err(odd()) };
    let common = pointed(&common, "", own).and_then(|path| facts.canonical(&path)).ok_or_else(odd)?;
    let FileContent::Bytes(back) = facts.read(&own.join("gitdir"), MAX) else { return Err(odd()) };
    let back = pointed(&back, "", own).and_then(|path| facts.canonical(&path));
    let belongs = own.parent() == Some(&common.join("worktrees")) && back.as_deref() == Some(dot_git);
    if belongs { Ok(common) } else { Err(odd()) }
}

/// The parts of a git directory that git reads. A link would let it read, or write, elsewhere.
const PARTS: &[&str] = &[
    "objects",
    "objects/info",
    "objects/info/alternates",
    "objects/pack",
    "refs",
    "refs/heads",
    "refs/tags",
    "refs/remotes",
    "reftable",
    "packed-refs",
    "HEAD",
    "index",
    "logs",
    "logs/HEAD",
    "logs/refs",
    "modules",
    "worktrees",
    "info",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "info/sparse-checkout",
    "hooks",
    "shallow",
    "config",
    "config.worktree",
];

fn no_links(dir: &Path, facts: &dyn Facts) -> Result<(), String> {
    match PARTS.iter().map(|part| dir.join(part)).find(|part| facts.canonical(part).as_ref() != Some(part)) {
        Some(part) => Err(format!("`{}` is a symbolic link, or its path contains one.", part.display())),
        None => Ok(()),
    }
}

/// The path in a pointer file. git strips more than the last line break, so only plain characters are accepted.
fn pointed(bytes: &[u8], prefix: &str, from: &Path) -> Option<PathBuf> {
    let text = std::str::from_utf8(bytes).ok()?.strip_prefix(prefix)?;
    let path = text.strip_suffix('\n').unwrap_or(text);
    (!path.is_empty() && !path.contains(char::is_control)).then(|| from.join(path))
}

/// Checks the keys of a configuration. Lines in a form that git does not write are refused.
fn keys(bytes: &[u8], file: &Path, tells: bool) -> Result<(), String> {
    let bad = |line: usize| format!("Cannot parse line {line} of `{}`.", file.display());
    let text = std::str::from_utf8(bytes).map_err(|_| bad(0))?;
    let (mut section, mut heading_line) = (None, None);
    for (index, line) in text.split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line).trim_matches([' ', '\t']);
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(head) = line.strip_prefix('[') {
            section = Some(heading(head).ok_or_else(|| bad(index + 1))?);
            heading_line = Some(line);
            continue;
        }
        let section = section.as_deref().ok_or_else(|| bad(index + 1))?;
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let key = key.trim_matches([' ', '\t']);
        let plain = key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        // A value that continues on the next line would hide the next line.
        if key.is_empty() || !plain || value.ends_with('\\') {
            return Err(bad(index + 1));
        }
        let name = format!("{section}.{}", key.to_ascii_lowercase());
        if tells && (has_credential(line) || heading_line.is_some_and(has_credential)) {
            return Err(format!("An address in `{}` may contain a credential.", file.display()));
        }
        let runs = name.starts_with("submodule.") && value.trim_start().starts_with('!');
        let work_tree = name == "core.bare" && value.trim() == "false";
        if runs || !work_tree && !HARMLESS.contains(&name.as_str()) {
            return Err(format!("`{name}` in `{}` may run a program.", file.display()));
        }
    }
    Ok(())
}

/// `core]`, `remote "origin"]`: the section's name, without the subsection.
fn heading(head: &str) -> Option<String> {
    let head = head.strip_suffix(']')?;
    let (name, part) = match head.split_once(' ') {
        Some((name, part)) => (name, part.strip_prefix('"')?.strip_suffix('"')?),
        None => (head, ""),
    };
    let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    (plain && !part.contains(['"', ']', '\\'])).then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StubFacts;

    fn check_keys(text: &str) -> Result<(), String> {
        keys(text.as_bytes(), Path::new("config"), true)
    }

    #[test]
    fn settings_written_by_git_itself_are_accepted() {
        let text = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n[remote \"origin\"]\n\turl = https://x.test/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"feature/x\"]\n\tremote = origin\n\tmerge = refs/heads/x\n";
        assert_eq!(check_keys(text), Ok(()));
    }

    #[test]
    fn settings_that_may_run_a_program_are_named() {
        for (text, key) in [
            ("[filter \"x\"]\nclean = touch pwned\n", "filter.clean"),
            ("[include]\n\tpath = evil\n", "include.path"),
            ("[includeIf \"gitdir:x\"]\npath=evil\n", "includeif.path"),
            ("[alias]\nst = !touch\n", "alias.st"),
            ("[core]\nbare = true\n", "core.bare"),
            ("[core]\nworktree = /\n", "core.worktree"),
            ("[diff \"x\"]\ntextconv = touch\n", "diff.textconv"),
            ("[diff]\nexternal = touch\n", "diff.external"),
            ("[remote \"o\"]\npromisor = true\n", "remote.promisor"),
            ("[extensions]\npartialClone = o\n", "extensions.partialclone"),
            ("[hook \"x\"]\ncommand = touch\n", "hook.command"),
            ("[pretty]\noneline = %G?\n", "pretty.oneline"),
            ("[gpg]\nprogram = x\n", "gpg.program"),
        ] {
            assert!(check_keys(text).unwrap_err().contains(key), "{text}");
        }
    }

    #[test]
    fn unusual_config_syntax_is_refused() {
        for text in [
            "[core] fsmonitor = x\n",
            "x = y\n",
            "[core]\nabbrev = 7\\\n[filter \"x\"]\n",
            "[core\n",
            "[filter.x]\nclean = y\n",
            "[a \"b\\\"c\"]\n",
            "[core]\n\"a = b\n",
        ] {
            assert!(check_keys(text).is_err(), "{text}");
        }
    }

    #[test]
    fn remote_urls_with_credentials_are_detected() {
        for (url, told) in [
            ("https://x.test/a", true),
            ("git@x.test:a", true),
            ("ssh://git@x.test/a", true),
            ("https://me:key@x.test/a", false),
            ("https://key@x.test/", false),
        ] {
            assert_eq!(check_keys(&format!("[remote \"o\"]\nurl = {url}\n")).is_ok(), told, "{url}");
        }
    }

    #[test]
    fn only_the_workspace_repository_and_its_linked_worktree_are_accepted() {
        let facts = StubFacts::default().with_file("/w/.git/config", "").with_file("/w/sub/.git/config", "");
        assert_eq!(check(Path::new("/w/src"), Path::new("/w"), false, &facts).map(drop), Ok(()));
        assert!(check(Path::new("/w/sub"), Path::new("/w"), false, &facts).is_err());
        let linked = StubFacts::default()
            .with_file("/w/.git", "gitdir: /main/.git/worktrees/w\n")
            .with_file("/main/.git/worktrees/w/commondir", "../..\n")
            .with_file("/main/.git/worktrees/w/gitdir", "/w/.git\n")
            .with_file("/main/.git/config", "[core]\n\tfilemode = true\n");
        assert_eq!(check(Path::new("/w"), Path::new("/w"), false, &linked).map(drop), Ok(()));
        let posing = StubFacts::default()
            .with_file("/w/.git", "gitdir: /w/x\n")
            .with_file("/w/x/commondir", "../y\n")
            .with_file("/w/x/gitdir", "/w/.git\n");
        assert!(check(Path::new("/w"), Path::new("/w"), false, &posing).is_err());
        assert!(check(Path::new("/w"), Path::new("/w"), false, &StubFacts::default()).is_err(), "no repository");
    }

    #[test]
    fn a_git_directory_with_links_or_a_commondir_is_refused() {
        let here = |facts: &StubFacts| check(Path::new("/w"), Path::new("/w"), false, facts);
        let plain = StubFacts::default().with_file("/w/.git/config", "");
        assert_eq!(here(&plain).map(drop), Ok(()));
        assert!(here(&plain.clone().with_file("/w/.git/commondir", "../evil\n")).is_err());
        for part in ["objects", "objects/info", "refs", "packed-refs", "HEAD", "index", "logs", "modules", "config"] {
            assert!(here(&plain.clone().with_link(&format!("/w/.git/{part}"), "/elsewhere")).is_err(), "{part}");
        }
        assert!(check(Path::new("/w/.git/x"), Path::new("/w"), false, &plain).is_err());
    }

    #[test]
    fn git_pointer_files_with_carriage_returns_or_extra_lines_are_refused() {
        // git strips the `\r`, and would use another directory than the one that was checked.
        let linked = |dot_git: &str, common: &str| {
            StubFacts::default()
                .with_file("/w/.git", dot_git)
                .with_file("/main/.git/worktrees/w\r/commondir", "../..\n")
                .with_file("/main/.git/worktrees/w\r/gitdir", "/w/.git\n")
                .with_file("/main/.git/worktrees/w/commondir", common)
                .with_file("/main/.git/worktrees/w/gitdir", "/w/.git\n")
                .with_file("/main/.git/config", "")
                .with_file("/main/.git\r/config", "")
        };
        let here = |facts: &StubFacts| check(Path::new("/w"), Path::new("/w"), false, facts).is_ok();
        assert!(here(&linked("gitdir: /main/.git/worktrees/w\n", "../..\n")));
        assert!(!here(&linked("gitdir: /main/.git/worktrees/w\r\n", "../..\n")));
        assert!(!here(&linked("gitdir: /main/.git/worktrees/w\n", "../..\r\n")));
        assert!(!here(&linked("gitdir: /main/.git/worktrees/w\n", "../..\n\n")));
    }
}
