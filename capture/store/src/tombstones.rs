//! The removed sessions, by hashes of their names, so that they are not read again while the agents' files remain.
//!
//! They are stored in the database, so that backups contain them, and in a file beside it, which outlives the database.
//! The file is written first: a session listed there but still in the database is removed when the store is opened.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use atomic_file::Durability;
use events::{Provider, Timestamp, id::Hex};
use rusqlite::{Connection, params};

use crate::text::unhex;

/// Name of the file beside the database that contains them.
pub const TOMBSTONES_FILE: &str = "removed-sessions";
/// Name prefix of a removed session's row.
pub(crate) const REMOVED: &str = "removed:";
/// Maximum number of pruned sessions that are remembered; older ones are read again if their files still exist.
/// Forgotten sessions are not limited.
const PRUNED_MOST: usize = 100_000;

/// The kind of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalKind {
    /// The user wants all traces removed.
    Forgotten,
    /// Removed to save space. Its decisions stay in the audit record, and so do the read positions of its files.
    Pruned,
}

/// A hash of a session's name.
pub(crate) type NameHash = [u8; 16];

/// The hash of a session's name.
fn hash_of(provider: Provider, provider_session_id: &str) -> NameHash {
    let mut hasher = blake3::Hasher::new_derive_key("capture 2026 the name of a removed session");
    hasher.update(&[provider.code()]).update(provider_session_id.as_bytes());
    let mut hash = [0; 16];
    hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    hash
}

/// The name of a removed session's row, replacing the agent's id.
#[must_use]
pub fn removed_name(provider: Provider, provider_session_id: &str) -> String {
    format!("{REMOVED}{}", Hex(&hash_of(provider, provider_session_id)))
}

/// Whether this is the name of a removed session's row.
pub(crate) fn is_removed_name(name: &str) -> bool {
    name.strip_prefix(REMOVED).is_some_and(|hash| unhex(hash).is_some())
}

/// The removed sessions.
#[derive(Debug, Default)]
pub(crate) struct Tombstones {
    path: PathBuf,
    hashes: HashMap<NameHash, RemovalKind>,
    /// In the order they were added.
    listed: Vec<(RemovalKind, NameHash)>,
    /// The list before the open transaction, if that adds entries.
    before: Option<Vec<(RemovalKind, NameHash)>>,
}

impl Tombstones {
    /// Loads the entries of the file and of the database.
    pub(crate) fn load(directory: &Path, connection: &Connection) -> rusqlite::Result<Self> {
        let mut tombstones = Self { path: directory.join(TOMBSTONES_FILE), ..Self::default() };
        match fs::read_to_string(&tombstones.path) {
            Ok(text) => text.lines().filter_map(parsed).for_each(|(kind, hash)| tombstones.insert(kind, hash)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::error!(path = %tombstones.path.display(), %error, "cannot read which sessions were removed");
            }
        }
        let mut statement = connection.prepare("SELECT hash, forgotten FROM removed ORDER BY at")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let kind = if row.get(1)? { RemovalKind::Forgotten } else { RemovalKind::Pruned };
            tombstones.insert(kind, crate::rows::bits(row.get_ref(0)?.as_blob()?));
        }
        Ok(tombstones)
    }

    /// Adds an entry. A forgotten session stays forgotten, even if another entry says that it was pruned.
    fn insert(&mut self, kind: RemovalKind, hash: NameHash) {
        match self.hashes.entry(hash) {
            Entry::Vacant(new) => {
                new.insert(kind);
                self.listed.push((kind, hash));
            }
            Entry::Occupied(mut known) if kind == RemovalKind::Forgotten => {
                if known.insert(kind) == RemovalKind::Pruned
                    && let Some(listed) = self.listed.iter_mut().find(|(_, listed)| *listed == hash)
                {
                    listed.0 = kind;
                }
            }
            Entry::Occupied(_) => {}
        }
    }

    /// Call after the transaction that added entries was committed.
    pub(crate) fn committed(&mut self) {
        self.before = None;
    }

    /// Call after the transaction that added entries was rolled back: their sessions were not removed.
    pub(crate) fn rolled_back(&mut self) {
        let Some(before) = self.before.take() else { return };
        self.hashes = before.iter().map(|(kind, hash)| (*hash, *kind)).collect();
        self.listed = before;
        if let Err(error) = self.write() {
            let path = self.path.display();
            tracing::error!(%path, %error, "sessions that could not be removed now are removed at the next start");
        }
    }

    /// Whether no session was removed.
    pub(crate) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The reason the session with this name was removed; `None` if it was not.
    pub(crate) fn of(&self, provider: Provider, provider_session_id: &str) -> Option<RemovalKind> {
        // No hashing if no session was ever removed.
        let hash = (!self.hashes.is_empty()).then(|| hash_of(provider, provider_session_id))?;
        self.hashes.get(&hash).copied()
    }

    /// Adds these sessions, to the file first.
    pub(crate) fn add<'a>(
        &mut self,
        connection: &Connection,
        kind: RemovalKind,
        names: impl Iterator<Item = (Provider, &'a str)>,
        at: Timestamp,
    ) -> io::Result<rusqlite::Result<()>> {
        let hashes: Vec<NameHash> = names.map(|(provider, name)| hash_of(provider, name)).collect();
        self.before.get_or_insert_with(|| self.listed.clone());
        for hash in &hashes {
            self.insert(kind, *hash);
        }
        self.bound();
        self.write()?;
        let insert = || {
            let sql = "INSERT INTO removed (hash, forgotten, at) VALUES (?1, ?2, ?3) \
                       ON CONFLICT (hash) DO UPDATE SET forgotten = max(forgotten, excluded.forgotten)";
            let mut statement = connection.prepare_cached(sql)?;
            for hash in &hashes {
                statement.execute(params![hash.as_slice(), kind == RemovalKind::Forgotten, at.as_millisecond()])?;
            }
            let mut statement = connection.prepare_cached(
                "DELETE FROM removed WHERE NOT forgotten AND hash NOT IN \
                 (SELECT hash FROM removed WHERE NOT forgotten ORDER BY at DESC LIMIT ?1)",
            )?;
            if self.listed.len() >= PRUNED_MOST {
                statement.execute([PRUNED_MOST as i64])?;
            }
            Ok(())
        };
        Ok(insert())
    }

    /// Drops the oldest pruned sessions beyond the limit.
    fn bound(&mut self) {
        let pruned = self.listed.iter().filter(|(kind, _)| *kind == RemovalKind::Pruned).count();
        let mut surplus = pruned.saturating_sub(PRUNED_MOST);
        let hashes = &mut self.hashes;
        self.listed.retain(|(kind, hash)| {
            let goes = *kind == RemovalKind::Pruned && surplus > 0;
            if goes {
                surplus -= 1;
                hashes.remove(hash);
            }
            !goes
        });
    }

    fn write(&self) -> io::Result<()> {
        let mut text = String::with_capacity(self.listed.len() * 35);
        for (kind, hash) in &self.listed {
            let kind = if *kind == RemovalKind::Forgotten { 'f' } else { 'p' };
            // Writing to a string cannot fail.
            writeln!(text, "{kind} {}", Hex(hash)).ok();
        }
        atomic_file::replace(&self.path, text.as_bytes(), Durability::Synced)
    }
}

/// Parses one line of the file.
fn parsed(line: &str) -> Option<(RemovalKind, NameHash)> {
    let (kind, hash) = line.split_once(' ')?;
    let kind = if kind == "p" { RemovalKind::Pruned } else { RemovalKind::Forgotten };
    Some((kind, unhex(hash)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tombstones_load_from_either_the_file_or_the_database() {
        let dir = tempfile::tempdir().unwrap();
        let mut connection = Connection::open_in_memory().unwrap();
        crate::schema::migrate(&mut connection).unwrap();
        let mut tombstones = Tombstones::load(dir.path(), &connection).unwrap();
        assert_eq!(tombstones.of(Provider::Claude, "a"), None);
        let names = [(Provider::Claude, "a"), (Provider::Codex, "b")];
        tombstones.add(&connection, RemovalKind::Forgotten, names.into_iter(), Timestamp::MIN).unwrap().unwrap();
        tombstones.committed();
        for reload in ["both", "database", "file"] {
            match reload {
                "database" => fs::remove_file(dir.path().join(TOMBSTONES_FILE)).unwrap(),
                "file" => {
                    tombstones.write().unwrap();
                    connection.execute("DELETE FROM removed", []).unwrap();
                }
                _ => {}
            }
            let loaded = Tombstones::load(dir.path(), &connection).unwrap();
            let found = [(Provider::Claude, "a"), (Provider::Codex, "b"), (Provider::Codex, "a")]
                .map(|(of, name)| loaded.of(of, name));
            let forgotten = Some(RemovalKind::Forgotten);
            assert_eq!(found, [forgotten, forgotten, None], "{reload}");
        }
        let text = fs::read_to_string(dir.path().join(TOMBSTONES_FILE)).unwrap();
        assert!(!text.contains("a\n") || text.lines().all(|line| parsed(line).is_some()), "{text}");
    }

    #[test]
    fn a_pruned_session_may_be_forgotten_later_and_never_the_other_way_round() {
        use RemovalKind::{Forgotten, Pruned};
        let dir = tempfile::tempdir().unwrap();
        let mut connection = Connection::open_in_memory().unwrap();
        crate::schema::migrate(&mut connection).unwrap();
        let mut tombstones = Tombstones::load(dir.path(), &connection).unwrap();
        for (kind, expected) in [(Pruned, Pruned), (Forgotten, Forgotten), (Pruned, Forgotten)] {
            let names = [(Provider::Claude, "a")];
            tombstones.add(&connection, kind, names.into_iter(), Timestamp::MIN).unwrap().unwrap();
            tombstones.committed();
            assert_eq!(tombstones.of(Provider::Claude, "a"), Some(expected));
            for without in [None, Some("removed-sessions")] {
                let other = tempfile::tempdir().unwrap();
                if without.is_none() {
                    fs::copy(dir.path().join(TOMBSTONES_FILE), other.path().join(TOMBSTONES_FILE)).unwrap();
                }
                let loaded = Tombstones::load(other.path(), &connection).unwrap();
                assert_eq!(loaded.of(Provider::Claude, "a"), Some(expected), "{without:?}");
            }
        }
    }

    #[test]
    fn a_rollback_discards_the_tombstones_of_its_transaction() {
        let dir = tempfile::tempdir().unwrap();
        let mut connection = Connection::open_in_memory().unwrap();
        crate::schema::migrate(&mut connection).unwrap();
        let mut tombstones = Tombstones::load(dir.path(), &connection).unwrap();
        for (name, is_kept) in [("kept", true), ("undone", false), ("kept", false)] {
            let transaction = connection.unchecked_transaction().unwrap();
            let names = [(Provider::Claude, name)];
            tombstones.add(&transaction, RemovalKind::Forgotten, names.into_iter(), Timestamp::MIN).unwrap().unwrap();
            if is_kept {
                transaction.commit().unwrap();
                tombstones.committed();
            } else {
                transaction.rollback().unwrap();
                tombstones.rolled_back();
            }
        }
        for tombstones in [tombstones, Tombstones::load(dir.path(), &connection).unwrap()] {
            let found = ["kept", "undone"].map(|name| tombstones.of(Provider::Claude, name).is_some());
            assert_eq!(found, [true, false]);
        }
    }

    #[test]
    fn names_of_removed_rows_are_distinguished_from_session_ids() {
        assert!(is_removed_name(&removed_name(Provider::Claude, "a")));
        assert!(!is_removed_name("removed:") && !is_removed_name("removed:zz") && !is_removed_name("a"));
    }
}
