//! The sessions of a directory: finds them, lists them, and opens the last one.
//!
//! The caller chooses the directory; [`directory_name`] is pi's name for the sessions directory of a working directory.
//! Files that are not sessions are skipped.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    context::messages::text_of,
    document::{SessionDocument, SessionHeader},
    entry::{Entry, EntryBody},
    json::Json,
    session_error::SessionError,
    time::parse_iso,
    tree::Tree,
};

/// Bytes of a file that are searched for its header.
const HEADER_BYTES: u64 = 1024 * 1024;

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// The file.
    pub path: PathBuf,
    /// The session's id.
    pub id: String,
    /// Its working directory.
    pub cwd: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// The file it was forked from.
    pub parent_session: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub created_ms: Option<i64>,
    /// When its last message was written, in milliseconds since 1970.
    pub modified_ms: i64,
    /// Number of messages on all branches.
    pub messages: usize,
    /// The first text of the user.
    pub first_message: Option<String>,
}

/// pi's name for the sessions directory of a working directory. Not reversible: `a-b` and `a/b` have the same name.
#[must_use]
pub fn directory_name(cwd: &str) -> String {
    let rest = cwd.strip_prefix(['/', '\\']).unwrap_or(cwd);
    format!("--{}--", rest.replace(['/', '\\', ':'], "-"))
}

/// The sessions of a directory, most recently used first. With `cwd`, only those with this working directory.
///
/// # Errors
/// The directory cannot be read. A missing directory has no sessions.
pub fn list(directory: &Path, cwd: Option<&str>) -> Result<Vec<SessionInfo>, SessionError> {
    let mut all = Vec::new();
    for (path, changed) in files(directory)? {
        let Ok(bytes) = fs::read(&path) else { continue };
        let Ok(document) = SessionDocument::read(&bytes) else { continue };
        if cwd.is_none_or(|cwd| document.header.cwd() == Some(cwd)) {
            all.push(info(path, changed, document));
        }
    }
    all.sort_by_key(|info| std::cmp::Reverse(info.modified_ms));
    Ok(all)
}

/// The file of the most recently written session. With `cwd`, only one with this working directory.
///
/// # Errors
/// The directory cannot be read.
pub fn most_recent(directory: &Path, cwd: Option<&str>) -> Result<Option<PathBuf>, SessionError> {
    let mut all = files(directory)?;
    all.sort_by_key(|(_, changed)| std::cmp::Reverse(*changed));
    let fits = |path: &PathBuf| header(path).is_some_and(|h| cwd.is_none_or(|cwd| h.cwd() == Some(cwd)));
    Ok(all.into_iter().map(|(path, _)| path).find(fits))
}

/// Files that may be sessions, with their modification times.
fn files(directory: &Path) -> Result<Vec<(PathBuf, SystemTime)>, SessionError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(SessionError::io("list", directory)(error)),
    };
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let sessions = paths.filter(|path| path.extension().is_some_and(|e| e == "jsonl"));
    let mut all: Vec<_> = sessions.filter_map(|p| Some((p.metadata().ok()?.modified().ok()?, p))).collect();
    // Of files modified at the same time, the name with the later time comes first.
    all.sort_by(|a, b| b.1.cmp(&a.1));
    Ok(all.into_iter().map(|(changed, path)| (path, changed)).collect())
}

/// Reads only the header, from the start of the file.
fn header(path: &Path) -> Option<SessionHeader> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(HEADER_BYTES).read_to_end(&mut bytes).ok()?;
    SessionDocument::header_of(&bytes)
}

fn info(path: PathBuf, changed: SystemTime, document: SessionDocument) -> SessionInfo {
    let created_ms = document.header.timestamp().and_then(parse_iso);
    let title = document.title.clone().filter(|title| !title.is_empty());
    let tree = Tree::from(document);
    let messages = tree.entries().iter().filter(|entry| matches!(entry.body(), EntryBody::Message(_)));
    let said = tree.entries().iter().filter_map(activity_ms).filter(|ms| *ms > 0).max();
    let changed_ms = changed.duration_since(UNIX_EPOCH).ok().and_then(|d| i64::try_from(d.as_millis()).ok());
    SessionInfo {
        id: tree.header().id().to_owned(),
        cwd: tree.header().cwd().map(str::to_owned),
        name: tree.name().map(str::to_owned).or(title),
        parent_session: tree.header().parent_session().map(str::to_owned),
        created_ms,
        modified_ms: said.or(created_ms).or(changed_ms).unwrap_or_default(),
        messages: messages.count(),
        first_message: tree.entries().iter().find_map(user_text),
        path,
    }
}

fn activity_ms(entry: &Entry) -> Option<i64> {
    let message = entry.message().filter(|m| matches!(m.text("role"), Some("user" | "assistant")))?;
    message.get("content")?;
    match message.get("timestamp") {
        Some(at @ Json::Number(_)) => crate::time::of_json(Some(at)),
        Some(Json::Null | Json::Bool(_) | Json::String(_) | Json::Array(_) | Json::Object(_)) | None => entry.at_ms(),
    }
}

fn user_text(entry: &Entry) -> Option<String> {
    let message = entry.message().filter(|m| m.text("role") == Some("user"))?;
    Some(text_of(message.get("content")?, " ")).filter(|text| !text.is_empty())
}
