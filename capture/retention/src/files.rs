//! Files of the data directory that contain traces of a session, other than the database and the index.

use std::{
    fs, io,
    io::{Read as _, Seek as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Component, Path, PathBuf},
};

use hooks::delivery::Spool;
use store::About;

use crate::backups;

/// Maximum number of bytes of a spool or log file that are searched.
const SEARCHED_MOST: u64 = 256 << 20;

/// Log files of a server started in the background.
const LOGS: [&str; 4] = ["serve.log", "serve.log.1", "serve.log.2", "serve.log.3"];

/// Why traces of a session are still in a file.
#[derive(Debug, thiserror::Error)]
#[error("cannot remove the data of a forgotten session from {path}: {source}")]
pub(crate) struct FileError {
    path: PathBuf,
    source: io::Error,
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> FileError {
    move |source| FileError { path: path.to_owned(), source }
}

/// The files that are deleted when these sessions are forgotten: recordings of their runs, deliveries, files of our own
/// agent, and all backups and damaged databases in the data directory, whichever sessions they contain.
pub(crate) fn of_sessions<'a>(data: &Path, sessions: impl Iterator<Item = &'a About>) -> Vec<PathBuf> {
    let sessions: Vec<&About> = sessions.collect();
    let names: Vec<&str> = sessions.iter().flat_map(|about| &about.names).map(String::as_str).collect();
    let mut files: Vec<PathBuf> = Vec::new();
    let runs: Vec<&str> = sessions.iter().flat_map(|about| &about.runs).map(String::as_str).collect();
    let is_of_run = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        runs.iter().any(|run| name.starts_with(run))
    };
    files.extend(entries(&data.join("recordings")).into_iter().filter(is_of_run));
    // The files of a run whose host is alive are in use; the host removes them itself.
    let alive: Vec<String> = host_protocol::runs::list(data).iter().map(|run| run.run.to_string()).collect();
    let is_alive = |file: &PathBuf| {
        alive.iter().any(|run| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(run)))
    };
    files.extend(entries(&host_protocol::runs::dir(data)).into_iter().filter(is_of_run).filter(|file| !is_alive(file)));
    files.extend(entries(Spool::of(data).dir()).into_iter().filter(|file| holds(file, &names)));
    let is_below =
        |file: &&PathBuf| file.starts_with(data) && !file.components().any(|part| part == Component::ParentDir);
    let own = sessions.iter().flat_map(|about| &about.files).filter(is_below);
    files.extend(own.cloned());
    files.extend(backups::within(data));
    for damaged in store::put_aside(data) {
        let logs = ["-wal", "-shm"].map(|suffix| {
            let mut name = damaged.clone().into_os_string();
            name.push(suffix);
            PathBuf::from(name)
        });
        files.extend(logs.into_iter().filter(|log| log.exists()));
        files.push(damaged);
    }
    files
}

/// Deletes those files, and removes the lines of the server's log that name the sessions.
pub(crate) fn remove(data: &Path, sessions: &[About]) -> Result<(), FileError> {
    for file in of_sessions(data, sessions.iter()) {
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&file)(error)),
            Ok(()) | Err(_) => {}
        }
    }
    backups::let_go(data).map_err(failed(data))?;
    let names: Vec<&str> = sessions.iter().flat_map(|about| &about.names).map(String::as_str).collect();
    LOGS.iter().map(|name| data.join(name)).try_for_each(|log| clear_lines(&log, &names).map_err(failed(&log)))
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Whether a file contains one of these words; false if it cannot be read.
fn holds(path: &Path, words: &[&str]) -> bool {
    let mut text = Vec::new();
    // Does not follow symbolic links.
    let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let read = fs::OpenOptions::new().read(true).custom_flags(flags).open(path);
    let read = read.and_then(|file| file.take(SEARCHED_MOST).read_to_end(&mut text));
    read.is_ok() && has_word(&text, words)
}

fn has_word(text: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| !word.is_empty() && text.windows(word.len()).any(|window| window == word.as_bytes()))
}

/// Removes the lines with these words from a file to which other processes append.
fn clear_lines(path: &Path, words: &[&str]) -> io::Result<()> {
    let mut file = match fs::OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let mut text = Vec::new();
    io::Read::by_ref(&mut file).take(SEARCHED_MOST).read_to_end(&mut text)?;
    if !has_word(&text, words) {
        return Ok(());
    }
    let kept: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').filter(|line| !has_word(line, words)).collect();
    // Other processes append at the end of the file, even after it moved.
    file.rewind()?;
    file.write_all(&kept.concat())?;
    let end = file.stream_position()?;
    file.set_len(end)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_and_log_lines_that_name_a_session_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path();
        for sub in ["recordings", "spool", "agent"] {
            fs::create_dir(data.join(sub)).unwrap();
        }
        let about = About {
            names: vec!["name-1".into()],
            runs: vec!["RUN1".into()],
            files: vec![
                data.join("agent/own.jsonl"),
                dir.path().with_extension("elsewhere"),
                data.join("agent/../capture.db"),
            ],
            ..About::default()
        };
        let goes = [
            "recordings/RUN1.cast",
            "recordings/RUN1.cast.1",
            "spool/a.json",
            "agent/own.jsonl",
            "capture.db.damaged-1",
        ];
        let stays = ["recordings/RUN2.cast", "spool/b.json", "capture.db", "serve.log"];
        for file in goes.iter().chain(&stays) {
            fs::write(data.join(file), if file.contains("/a.") { "{\"session_id\":\"name-1\"}" } else { "else\n" })
                .unwrap();
        }
        fs::write(data.join("serve.log"), "one\nabout name-1\ntwo\n").unwrap();
        remove(data, &[about]).unwrap();
        assert!(goes.iter().all(|file| !data.join(file).exists()));
        assert!(stays.iter().all(|file| data.join(file).exists()));
        assert_eq!(fs::read_to_string(data.join("serve.log")).unwrap(), "one\ntwo\n");
    }
}
