//! Which session a prompt belongs to.

use std::path::{Path, PathBuf};

use session_tree::{Session, Stamp, sessions};

use crate::{RunError, SessionChoice, sessions_dir};

/// Begins a session.
pub(crate) fn create(data: &Path, cwd: &str, parent: Option<&str>, stamp: Stamp) -> Session {
    Session::create(&directory_of(data, cwd), cwd, parent, stamp)
}

/// Opens the session that was chosen, or begins one.
pub(crate) fn open(data: &Path, cwd: &str, choice: &SessionChoice, stamp: Stamp) -> Result<Session, RunError> {
    let session = match choice {
        SessionChoice::New => return Ok(create(data, cwd, None, stamp)),
        SessionChoice::Last => Session::open(&last(data, cwd)?, cwd, stamp),
        SessionChoice::Named(given) => Session::open(&find(data, given)?, cwd, stamp),
    }?;
    // The tools work where the session works, whatever directory this is called from.
    let of_session = session.tree().header().cwd().unwrap_or(cwd);
    if of_session != cwd {
        return Err(RunError::Usage(format!("the session works in {of_session}; run this command there")));
    }
    Ok(session)
}

/// Where the sessions of a working directory are: as pi has them, in a directory of their own.
fn directory_of(data: &Path, cwd: &str) -> PathBuf {
    sessions_dir(data).join(sessions::directory_name(cwd))
}

/// The file of the session of a directory that was written last.
pub(crate) fn last(data: &Path, cwd: &str) -> Result<PathBuf, RunError> {
    let in_its_own = sessions::most_recent(&directory_of(data, cwd), Some(cwd))?;
    let beside = sessions::most_recent(&sessions_dir(data), Some(cwd))?;
    let changed = |path: &PathBuf| path.metadata().and_then(|found| found.modified()).ok();
    let found = in_its_own.into_iter().chain(beside).max_by_key(changed);
    found.ok_or_else(|| RunError::NotFound(format!("no session of our own agent has worked in {cwd} yet")))
}

/// Whether a session is meant by what was given, or several are.
pub(crate) fn is_known(data: &Path, given: &str) -> bool {
    !matches!(find(data, given), Err(RunError::NotFound(_)))
}

/// The file of a session: by its path, its id, or a part of the id that only one has.
pub(crate) fn find(data: &Path, given: &str) -> Result<PathBuf, RunError> {
    if given.ends_with(".jsonl") {
        return Ok(PathBuf::from(given));
    }
    // Somebody may have put one beside the directories.
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
            Err(RunError::Usage(format!("several sessions have `{given}` in their ids; give more of it")))
        }
        (None, _) => {
            let hint = "expected an id, or at least 3 characters from its start or end";
            Err(RunError::NotFound(format!("no session `{given}` of our own agent; {hint}")))
        }
    }
}
