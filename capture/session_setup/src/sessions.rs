//! Finds the session for a prompt.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use session_tree::{DocumentIssue, Entry, Session, SessionDocument, SessionError, SessionHeader, Stamp, sessions};

use crate::{RunError, SessionChoice, sessions_dir};

/// Maximum number of errors shown for a session's file.
const SHOWN_ISSUES: usize = 3;

/// Creates a session.
pub(crate) fn create(data: &Path, cwd: &str, parent: Option<&str>, stamp: Stamp) -> Session {
    Session::create(&directory_of(data, cwd), cwd, parent, stamp)
}

/// Opens the chosen session, or creates one.
pub(crate) fn open(
    data: &Path,
    cwd: &str,
    choice: &SessionChoice,
    stamp: Stamp,
    warn: fn(&str),
) -> Result<Session, RunError> {
    let opened = match choice {
        SessionChoice::New => return Ok(create(data, cwd, None, stamp)),
        SessionChoice::Last => Session::open(&last(data, cwd)?, cwd, stamp),
        SessionChoice::Named(given) => Session::open(&find(data, given)?, cwd, stamp),
    };
    let mut session = opened.map_err(|error| match error {
        SessionError::Locked { path } => RunError::Refused(runs_elsewhere(&path, choice)),
        SessionError::Io { .. }
        | SessionError::Refused { .. }
        | SessionError::Changed { .. }
        | SessionError::Gone { .. }
        | SessionError::Tree(_) => error.into(),
    })?;
    // The tools use the session's working directory, whatever the current directory is.
    let of_session = session.tree().header().cwd().unwrap_or(cwd);
    if of_session != cwd {
        return Err(RunError::Usage(format!("the session works in {of_session}; run this command there")));
    }
    for line in problems(&mut session, stamp)? {
        warn(&line);
    }
    Ok(session)
}

/// The error for a session that another process has open.
fn runs_elsewhere(path: &Path, choice: &SessionChoice) -> String {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let id = name.rsplit('_').next().unwrap_or_default();
    let option = if *choice == SessionChoice::Last { "--continue" } else { "--session" };
    format!("session {id} runs in another process; wait until it ends, or omit {option} to start a new session")
}

/// The problems of a session's file, as lines for the user. If the last entries do not belong to the session, it
/// continues from the last entry that does: otherwise the model would lose the conversation.
fn problems(session: &mut Session, stamp: Stamp) -> Result<Vec<String>, RunError> {
    let path = session.path().display().to_string();
    let issues = session.issues();
    let line = |issue: &DocumentIssue| format!("{path}, line {}: {}", issue.position.line, issue.reason);
    let mut lines: Vec<String> = issues.iter().take(SHOWN_ISSUES).map(line).collect();
    if issues.len() > SHOWN_ISSUES {
        lines.push(format!("{path}: and {} more lines with errors", issues.len() - SHOWN_ISSUES));
    }
    let tree = session.tree();
    let has_messages = |leaf: &Entry| tree.path(Some(leaf)).iter().any(|entry| is_said(entry));
    let Some(leaf) = tree.leaf().filter(|leaf| !has_messages(leaf)) else { return Ok(lines) };
    let last = tree.entries().iter().rev().find(|entry| entry.id().is_some() && is_said(entry) && has_messages(entry));
    // Entries after the last message belong to it as well: settings, ends of requests and turns.
    let last = last.map(|last| {
        let follows =
            |entry: &&Entry| entry.id().is_some() && tree.path(Some(entry)).iter().any(|e| e.key() == last.key());
        tree.entries().iter().rev().find(follows).unwrap_or(last)
    });
    let Some(last) = last.and_then(Entry::id).map(str::to_owned) else { return Ok(lines) };
    let stray = leaf.id().map_or_else(|| "without an id".to_owned(), |id| format!("`{id}`"));
    lines.push(format!(
        "{path}: the last entry, {stray}, does not continue the conversation before it; the session continues from \
         the entry `{last}`, and the file keeps both"
    ));
    session.branch(&last, stamp)?;
    Ok(lines)
}

/// Whether an entry is a message of the conversation.
fn is_said(entry: &Entry) -> bool {
    matches!(entry.role(), Some("user" | "assistant" | "toolResult"))
}

/// The id of the session at the root of a chain of forks: their requests start with the same bytes, so they share a
/// cache. A missing or damaged parent ends the chain.
pub(crate) fn root_of(header: &SessionHeader, id: &str) -> String {
    const DEPTH: usize = 16;
    let (mut root, mut parent) = (id.to_owned(), header.parent_session().map(PathBuf::from));
    for _ in 0..DEPTH {
        let Some(found) = parent.take().and_then(|path| header_of(&path)) else { break };
        found.id().clone_into(&mut root);
        parent = found.parent_session().map(PathBuf::from);
    }
    root
}

/// The header of a session's file, which is its first line.
fn header_of(path: &Path) -> Option<SessionHeader> {
    const LONGEST: u64 = 64 * 1024;
    let mut line = String::new();
    BufReader::new(File::open(path).ok()?.take(LONGEST)).read_line(&mut line).ok()?;
    Some(SessionDocument::read(line.as_bytes()).ok()?.header)
}

/// The directory for the sessions of a working directory, named as in pi.
fn directory_of(data: &Path, cwd: &str) -> PathBuf {
    sessions_dir(data).join(sessions::directory_name(cwd))
}

/// The file of the most recently written session of a working directory.
pub(crate) fn last(data: &Path, cwd: &str) -> Result<PathBuf, RunError> {
    let in_its_own = sessions::most_recent(&directory_of(data, cwd), Some(cwd))?;
    let beside = sessions::most_recent(&sessions_dir(data), Some(cwd))?;
    let changed = |path: &PathBuf| path.metadata().and_then(|found| found.modified()).ok();
    let found = in_its_own.into_iter().chain(beside).max_by_key(changed);
    found.ok_or_else(|| RunError::NotFound(format!("capture's own agent has no session in {cwd} yet")))
}

/// Whether a session matches, possibly several.
pub(crate) fn is_known(data: &Path, given: &str) -> bool {
    !matches!(find(data, given), Err(RunError::NotFound(_)))
}

/// The file of a session: by its path, its id, or a unique part of the id.
pub(crate) fn find(data: &Path, given: &str) -> Result<PathBuf, RunError> {
    if given.ends_with(".jsonl") {
        return Ok(PathBuf::from(given));
    }
    // A user may have put a session beside the directories.
    let mut all = sessions::list(&sessions_dir(data), None)?;
    let beside = std::fs::read_dir(sessions_dir(data)).into_iter().flatten().flatten().map(|entry| entry.path());
    for directory in beside.filter(|path| path.is_dir()) {
        all.extend(sessions::list(&directory, None)?);
    }
    let fits = |id: &str| id == given || given.len() >= 3 && (id.starts_with(given) || id.ends_with(given));
    let mut found = all.into_iter().filter(|info| fits(&info.id));
    match (found.next(), found.next()) {
        (Some(info), None) => Ok(info.path),
        (Some(_), Some(_)) => {
            Err(RunError::Usage(format!("several session ids match `{given}`; give more characters")))
        }
        (None, _) => {
            let hint = "expected an id, or at least 3 characters from its start or end";
            Err(RunError::NotFound(format!("capture's own agent has no session `{given}`; {hint}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use session_tree::{NewEntry, Object};

    use super::*;

    fn stamp(random: u128) -> Stamp {
        Stamp { now_ms: 1_700_000_000_000, random }
    }

    /// A session with a question and an answer, followed by more entries.
    fn session(behind: &str) -> (tempfile::TempDir, PathBuf) {
        let data = tempfile::tempdir().unwrap();
        let mut session = create(data.path(), "/w", None, stamp(1));
        for (n, role) in (2..).zip(["user", "assistant"]) {
            let message = Object::new().with("role", role).with("content", "text");
            session.append(NewEntry::Message(message), stamp(n)).unwrap();
        }
        let custom = NewEntry::Custom { custom_type: "capture.task".to_owned(), data: None };
        session.append(custom, stamp(9)).unwrap();
        let path = session.path().to_owned();
        drop(session);
        fs::File::options().append(true).open(&path).unwrap().write_all(behind.as_bytes()).unwrap();
        (data, path)
    }

    #[test]
    fn invalid_lines_in_a_session_file_are_reported_and_history_is_kept() {
        for (behind, told) in [
            ("x", "cut off"),
            ("x\n", "not valid JSON"),
            ("{}\n", "without an id"),
            ("[1]\n", "not a JSON object"),
            ("{\"type\":\"note\",\"id\":\"zz\",\"parentId\":null}\n", "`zz`, does not continue"),
            ("{\"type\":\"note\",\"id\":\"zz\",\"parentId\":\"gone\"}\n", "a parent that does not exist"),
        ] {
            let (data, path) = session(behind);
            let mut opened = Session::open(&path, "/w", stamp(50)).unwrap();
            let lines = problems(&mut opened, stamp(51)).unwrap();
            assert!(lines.iter().any(|line| line.contains(told)), "{behind:?}: {lines:?}");
            assert!(lines.iter().all(|line| line.contains(".jsonl")), "{lines:?}");
            let said = |session: &Session| session.tree().leaf_path().iter().filter(|entry| is_said(entry)).count();
            assert_eq!(said(&opened), 2, "{behind:?}");
            drop(opened);
            // The next process reads the repaired file and continues from the same position.
            let again = open(data.path(), "/w", &SessionChoice::Last, stamp(52), |_| ()).unwrap();
            assert_eq!(said(&again), 2, "{behind:?}");
        }
    }

    #[test]
    fn opening_a_session_held_by_another_process_says_what_to_do() {
        let (data, path) = session("");
        let _held = Session::open(&path, "/w", stamp(50)).unwrap();
        let id = path.file_stem().unwrap().to_str().unwrap().rsplit('_').next().unwrap().to_owned();
        for (choice, option) in [(SessionChoice::Last, "--continue"), (SessionChoice::Named(id.clone()), "--session")] {
            let refused = open(data.path(), "/w", &choice, stamp(51), |_| ()).err().unwrap().to_string();
            let told = "runs in another process; wait until it ends, or omit";
            assert_eq!(refused, format!("session {id} {told} {option} to start a new session"));
        }
    }

    #[test]
    fn forks_share_the_cache_of_the_session_they_come_from() {
        let (_data, path) = session("");
        let first = Session::open(&path, "/w", stamp(50)).unwrap();
        let id = first.tree().header().id().to_owned();
        let leaf = first.tree().leaf_id().unwrap().to_owned();
        let second = first.branched(&leaf, stamp(60)).unwrap();
        let third = second.branched(&leaf, stamp(70)).unwrap();
        for session in [&first, &second, &third] {
            let header = session.tree().header();
            assert_eq!(root_of(header, header.id()), id);
        }
        // Without its parent, a fork has a separate cache.
        fs::remove_file(second.path()).unwrap();
        let header = third.tree().header();
        assert_eq!(root_of(header, header.id()), header.id());
    }

    #[test]
    fn an_intact_session_file_reports_no_problems() {
        let (_data, path) = session("");
        let before = fs::read(&path).unwrap();
        let mut opened = Session::open(&path, "/w", stamp(50)).unwrap();
        assert_eq!(problems(&mut opened, stamp(51)).unwrap(), Vec::<String>::new());
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}
