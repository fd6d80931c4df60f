//! Recognizes chat files below the Gemini home, and the files that record their working directory.
//!
//! Paths are relative to the directory that contains `tmp/` (`~/.gemini`, or `$GEMINI_CLI_HOME/.gemini`). Pure: this
//! module does not access the disk.

use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use std::collections::HashMap;

/// A chat file, identified by its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatFile {
    /// `tmp/<slug>/chats/session-<minute>-<8 of the id>.jsonl`
    Session {
        /// The project's directory below `tmp/`.
        slug: String,
    },
    /// `tmp/<slug>/chats/<session id of the parent>/<session id>.jsonl`
    Subagent {
        /// The project's directory below `tmp/`.
        slug: String,
        /// The provider's id of the sub-agent's parent session.
        parent: String,
        /// The provider's id of this session.
        session: String,
    },
    /// `tmp/<slug>/chats/session-<minute>-<8 of the id>.json`, rewritten as a whole (up to 0.38.2). Outdated once the
    /// file named by [`supersedes`] exists.
    Legacy {
        /// The project's directory below `tmp/`: a name, or the SHA-256 of its path (0.24.5).
        slug: String,
    },
}

/// The chat file that a path relative to the Gemini home names; `None` for all other files (`logs.json`,
/// `checkpoint-*.json`, `*.unreadable-<ms>`, `*.tmp-<pid>`).
#[must_use]
pub fn recognize(relative: &Path) -> Option<ChatFile> {
    let mut parts = Vec::with_capacity(5);
    for part in relative.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::ParentDir => return None,
        }
    }
    match parts[..] {
        ["tmp", slug, "chats", file] => {
            let name = file.strip_prefix("session-")?;
            if name.strip_suffix(".jsonl").is_some_and(|n| !n.is_empty()) {
                Some(ChatFile::Session { slug: slug.to_owned() })
            } else if name.strip_suffix(".json").is_some_and(|n| !n.is_empty()) {
                Some(ChatFile::Legacy { slug: slug.to_owned() })
            } else {
                None
            }
        }
        ["tmp", slug, "chats", parent, file] => {
            let session = file.strip_suffix(".jsonl").filter(|s| !s.is_empty())?;
            Some(ChatFile::Subagent { slug: slug.to_owned(), parent: parent.to_owned(), session: session.to_owned() })
        }
        _ => None,
    }
}

/// The file whose existence makes a legacy chat file outdated: the same name with `.jsonl`. `None` if `path` is not the
/// name of a legacy chat file (S92: 0.61.0 resumes `X.json` by copying its content into `X.jsonl` and does not delete
/// `X.json`).
#[must_use]
pub fn supersedes(path: &Path) -> Option<PathBuf> {
    (path.extension()? == "json").then(|| path.with_extension("jsonl"))
}

/// The files that record the working directory of a chat file, best first, relative to the Gemini home: the project's
/// own file, and the list of all projects.
#[must_use]
pub fn cwd_files(relative: &Path) -> Option<[PathBuf; 2]> {
    let (ChatFile::Session { slug } | ChatFile::Subagent { slug, .. } | ChatFile::Legacy { slug }) =
        recognize(relative)?;
    Some([PathBuf::from("tmp").join(slug).join(".project_root"), PathBuf::from("projects.json")])
}

/// The working directory recorded in `.project_root`.
#[must_use]
pub fn cwd_from_project_root(content: &str) -> Option<String> {
    let line = content.lines().next()?.trim();
    line.starts_with('/').then(|| line.to_owned())
}

/// The working directory of a project's directory according to `projects.json`.
#[must_use]
pub fn cwd_from_projects(content: &str, slug: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Projects {
        projects: HashMap<String, String>,
    }
    let known: Projects = serde_json::from_str(content).ok()?;
    known.projects.into_iter().filter(|(_, s)| s == slug).map(|(root, _)| root).min()
}

/// Whether a chat file belongs to the project in a directory, for files where only the path shows this: versions up to
/// 0.2x name the project's directory after the SHA-256 of the working directory (0.10.0, 0.24.5).
#[must_use]
pub fn is_of_directory(path: &Path, directory: &Path) -> bool {
    let folder =
        path.ancestors().find(|dir| dir.file_name().is_some_and(|name| name == "chats")).and_then(Path::parent);
    let Some(slug) = folder.and_then(Path::file_name).and_then(|name| name.to_str()) else { return false };
    let (Some(directory), 64) = (directory.to_str(), slug.len()) else { return false };
    let hash = hmac_sha256::Hash::hash(directory.as_bytes());
    hash.iter().zip(slug.as_bytes().chunks(2)).all(|(byte, digits)| {
        std::str::from_utf8(digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok()) == Some(*byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_folder_is_matched_by_the_hash_of_its_directory() {
        let path = |slug: &str| format!("/h/.gemini/tmp/{slug}/chats/session-2025-11-20T04-38-10828683.json");
        // printf %s /home/me/project | sha256sum
        let slug = "225df3094012a213addf6b7d1c3b643daff302a33347426db49b5872e519e971";
        assert!(is_of_directory(Path::new(&path(slug)), Path::new("/home/me/project")));
        for (slug, directory) in [(slug, "/home/me/other"), (&slug[1..], "/home/me/project"), ("project", "/project")] {
            assert!(!is_of_directory(Path::new(&path(slug)), Path::new(directory)), "{slug} {directory}");
        }
        assert!(!is_of_directory(Path::new("/chats"), Path::new("/home/me/project")));
        assert!(!is_of_directory(Path::new(&path(&"é".repeat(32))), Path::new("/home/me/project")));
    }

    #[test]
    fn chat_files_are_recognized_by_path() {
        let slug = || "proj".to_owned();
        let check = |path: &str, expected: Option<ChatFile>| assert_eq!(recognize(Path::new(path)), expected, "{path}");
        check("tmp/proj/chats/session-2026-11-20T04-38-10828683.jsonl", Some(ChatFile::Session { slug: slug() }));
        check("tmp/proj/chats/session-2026-11-20T04-38-10828683.json", Some(ChatFile::Legacy { slug: slug() }));
        check(
            "tmp/proj/chats/df13ceb6-0e35-4c9f-9a26-9edffeca6c94/08986023-93ba-4389-b7ce-5c0d8d19e23e.jsonl",
            Some(ChatFile::Subagent {
                slug: slug(),
                parent: "df13ceb6-0e35-4c9f-9a26-9edffeca6c94".into(),
                session: "08986023-93ba-4389-b7ce-5c0d8d19e23e".into(),
            }),
        );
        for other in [
            "tmp/proj/logs.json",
            "tmp/proj/checkpoint-mytag.json",
            "tmp/proj/chats/session-2026-11-20T04-38-10828683.jsonl.unreadable-1795149528930",
            "tmp/proj/chats/session-2026-11-20T04-38-10828683.jsonl.tmp-4711",
            "tmp/proj/chats/session-.jsonl",
            "tmp/proj/chats/../../session-x.jsonl",
            "/tmp/proj/chats/session-x.jsonl",
            "history/proj/chats/session-x.jsonl",
            "",
        ] {
            check(other, None);
        }
    }

    #[test]
    fn the_working_directory_is_read_from_files_beside_the_chats() {
        let files = cwd_files(Path::new("tmp/proj/chats/session-x.jsonl"));
        assert_eq!(files, Some(["tmp/proj/.project_root".into(), "projects.json".into()]));
        assert_eq!(cwd_files(Path::new("tmp/proj/logs.json")), None);
        assert_eq!(cwd_from_project_root("/home/dev/proj"), Some("/home/dev/proj".into()));
        assert_eq!(cwd_from_project_root(""), None);
        let projects = r#"{"projects":{"/home/dev/a":"a","/home/dev/proj":"proj"}}"#;
        assert_eq!(cwd_from_projects(projects, "proj"), Some("/home/dev/proj".into()));
        assert_eq!(cwd_from_projects(projects, "x"), None);
        assert_eq!(cwd_from_projects("[]", "x"), None);
    }

    #[test]
    fn a_legacy_json_file_is_superseded_by_its_jsonl_file() {
        let next = supersedes(Path::new("tmp/p/chats/session-a.json"));
        assert_eq!(next, Some("tmp/p/chats/session-a.jsonl".into()));
        assert_eq!(supersedes(Path::new("tmp/p/chats/session-a.jsonl")), None);
    }
}
