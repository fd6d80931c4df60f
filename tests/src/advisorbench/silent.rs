//! Sessions that contain no false statement and no breach: nothing may be raised.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Figures, is_accusing};
use crate::{eventually, program::Machine};
use api::health::Sources;

/// Reads the agents' files below a directory, which is laid out like a home (`.claude/projects/…`, `.codex/sessions/…`,
/// `.gemini/tmp/…`), and counts the accusations.
///
/// # Panics
/// If a file or an answer cannot be read.
#[must_use]
pub fn read(machine: &Machine, home: &Path) -> Figures {
    copy(home, &machine.home());
    let server = machine.serve();
    eventually("the files are read", || {
        let health = server.client.json("/api/v1/health/sources")?;
        let sources: Sources = serde_json::from_value(health).ok()?;
        let files: u64 = sources.sources.iter().map(|source| source.files).sum();
        (files > 0 && sources.sources.iter().all(|source| source.reading.is_none())).then_some(())
    });
    let (mut cursor, mut turns, mut wrong) = (String::new(), 0, Vec::new());
    loop {
        let page = server.client.json(&format!("/api/v1/sessions?active=all&limit=200{cursor}")).unwrap();
        for session in page["sessions"].as_array().unwrap() {
            let id = session["id"].as_str().unwrap();
            let check = server.client.json(&format!("/api/v1/sessions/{id}/check?last=1000")).unwrap();
            for turn in check["turns"].as_array().unwrap() {
                turns += 1;
                let claims = turn["receipt"]["claims"].as_array().into_iter().flatten();
                let accusing = claims.filter(|claim| is_accusing(claim));
                wrong.extend(accusing.map(|claim| format!("{id} turn {}: {claim}", turn["number"])));
            }
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let lines = vec![format!("turns: {turns}"), format!("accusations: {}", wrong.len())];
    Figures { lines, wrong }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let path: PathBuf = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            fs::create_dir_all(&to).unwrap();
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}
