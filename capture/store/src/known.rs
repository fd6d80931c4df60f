//! Tracks which records the log contains, so that none is stored twice.
//!
//! An identity is a hash: in one sorted table each new identity would change a different page, so the cost of an event
//! would grow with the table. Instead, the new identities of a transaction form one row of `known_batches` and are also
//! held in memory. [`RUN_ROWS`] of them become a run: rows of `known_blocks`, each a block of sorted identities, which
//! never change again. Each run has a filter in memory, so that a new record, as almost all are, is recognized as new
//! without reading the database.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use rusqlite::{Connection, params};

use crate::session_row::SessionRow;

/// Number of recent identities that are turned into a run.
const RUN_ROWS: usize = if cfg!(test) { 64 } else { 65_536 };
/// Bytes of an entry of a batch or a block: an identity, then the row of its session, most significant byte first.
const ENTRY: usize = 24;
/// Bytes of the identity in an entry.
const IDENTITY: usize = 16;
/// Average number of identities in a block: about a page.
const BLOCK_ENTRIES: usize = 128;
/// Size of a filter, bits per identity: about one lookup in 500 is unnecessary.
const FILTER_BITS: usize = 16;
/// Bits of a filter block: a cache line.
const BLOCK_BITS: usize = 512;
const BLOCK_BYTES: usize = BLOCK_BITS / 8;
/// Number of bits that an identity sets in its block.
const HASHES: u32 = 6;

/// Hashes an identity, which is a hash already, by selecting some of its bits.
#[derive(Debug, Default, Clone, Copy)]
struct IdentityHasher(u64);

type IdentityHashes = BuildHasherDefault<IdentityHasher>;

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, identity: u128) {
        self.0 = identity as u64 ^ (identity >> 64) as u64;
    }
}

/// The records in the log.
#[derive(Debug, Default)]
pub(crate) struct KnownRecords {
    recent: HashMap<u128, SessionRow, IdentityHashes>,
    runs: Vec<Run>,
    /// Identities added by the open transaction.
    added: Vec<u128>,
    /// The recent identities before the open transaction turned them into a run.
    before: Option<HashMap<u128, SessionRow, IdentityHashes>>,
}

#[derive(Debug)]
struct Run {
    number: i64,
    /// Number of its blocks.
    blocks: u32,
    filter: Filter,
}

impl Run {
    /// The key of the block that contains an identity if the run does.
    fn key_of(&self, identity: u128) -> i64 {
        block_key(self.number, ((identity >> 64) * u128::from(self.blocks)) >> 64)
    }

    /// The session of a record if the run contains it.
    fn find(&self, connection: &Connection, identity: u128) -> rusqlite::Result<Option<SessionRow>> {
        let bytes = identity.to_be_bytes();
        let mut statement = connection.prepare_cached("SELECT entries FROM known_blocks WHERE key = ?1")?;
        let mut rows = statement.query([self.key_of(identity)])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let (block, _) = row.get_ref(0)?.as_blob()?.as_chunks::<ENTRY>();
        let found = block.binary_search_by(|entry| entry[..IDENTITY].cmp(&bytes)).ok();
        Ok(found.map(|at| entry(&block[at]).1))
    }
}

/// The key of a block of a run.
fn block_key(run: i64, block: u128) -> i64 {
    run << 32 | i64::try_from(block).unwrap_or(0)
}

fn entry(bytes: &[u8; ENTRY]) -> (u128, SessionRow) {
    let (identity, session) = bytes.split_at(IDENTITY);
    (bits(identity), SessionRow::of(i64::from_be_bytes(session.try_into().unwrap_or_default())))
}

/// The identities in a batch or a block, with the sessions of their records.
pub(crate) fn entries(bytes: &[u8]) -> impl Iterator<Item = (u128, SessionRow)> {
    bytes.as_chunks::<ENTRY>().0.iter().map(entry)
}

pub(crate) fn put_entry(entries: &mut Vec<u8>, identity: u128, session: SessionRow) {
    entries.extend_from_slice(&identity.to_be_bytes());
    entries.extend_from_slice(&session.number().to_be_bytes());
}

impl KnownRecords {
    /// Loads the recent identities and the filters of the runs. Rebuilds damaged filters.
    pub(crate) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let bytes: Option<i64> =
            connection.query_row("SELECT sum(length(entries)) FROM known_batches", [], |row| row.get(0))?;
        let rows = usize::try_from(bytes.unwrap_or(0) / ENTRY as i64).unwrap_or(0).min(2 * RUN_ROWS);
        let mut recent = HashMap::with_capacity_and_hasher(rows, Default::default());
        let mut statement = connection.prepare("SELECT entries FROM known_batches ORDER BY key")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            for (identity, session) in entries(row.get_ref(0)?.as_blob()?) {
                recent.entry(identity).or_insert(session);
            }
        }
        let mut runs = Vec::new();
        let mut statement = connection.prepare("SELECT run, rows, blocks, filter FROM known_runs ORDER BY run DESC")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (number, count, blocks): (_, i64, u32) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let filter = match Filter::from_bytes(row.get(3)?) {
                Some(filter) => filter,
                None => Filter::of_run(connection, number, usize::try_from(count).unwrap_or(0))?,
            };
            runs.push(Run { number, blocks, filter });
        }
        Ok(Self { recent, runs, added: Vec::new(), before: None })
    }

    /// The session of a record, if the record is known.
    pub(crate) fn find(&self, connection: &Connection, identity: u128) -> rusqlite::Result<Option<SessionRow>> {
        if let Some(session) = self.recent.get(&identity) {
            return Ok(Some(*session));
        }
        for run in self.runs.iter().filter(|run| run.filter.may_hold(identity)) {
            if let Some(session) = run.find(connection, identity)? {
                return Ok(Some(session));
            }
        }
        Ok(None)
    }

    /// Adds a record; false if it is already known. [`write`](Self::write) stores it.
    pub(crate) fn add(
        &mut self,
        connection: &Connection,
        identity: u128,
        session: SessionRow,
    ) -> rusqlite::Result<bool> {
        if self.find(connection, identity)?.is_some() {
            return Ok(false);
        }
        self.recent.insert(identity, session);
        self.added.push(identity);
        Ok(true)
    }

    /// Stores the additions of the open transaction, or turns all recent identities into a run if there are enough.
    /// Must be called at the end of a transaction, before its commit.
    pub(crate) fn write(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if self.recent.len() >= RUN_ROWS {
            return self.make_run(connection);
        }
        if self.added.is_empty() {
            return Ok(());
        }
        let mut entries = Vec::with_capacity(self.added.len() * ENTRY);
        for identity in &self.added {
            if let Some(session) = self.recent.get(identity) {
                put_entry(&mut entries, *identity, *session);
            }
        }
        connection.prepare_cached("INSERT INTO known_batches (entries) VALUES (?1)")?.execute([entries])?;
        Ok(())
    }

    fn make_run(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut sorted: Vec<(u128, SessionRow)> =
            self.recent.iter().map(|(identity, session)| (*identity, *session)).collect();
        sorted.sort_unstable_by_key(|(identity, _)| *identity);
        let mut filter = Filter::for_rows(sorted.len());
        sorted.iter().for_each(|(identity, _)| filter.insert(*identity));
        let blocks = u32::try_from(sorted.len().div_ceil(BLOCK_ENTRIES)).unwrap_or(u32::MAX);
        connection
            .prepare_cached("INSERT INTO known_runs (rows, filter, blocks) VALUES (?1, ?2, ?3)")?
            .execute(params![sorted.len() as i64, filter.0, blocks])?;
        let run = Run { number: connection.last_insert_rowid(), blocks, filter };
        let mut insert = connection.prepare_cached("INSERT INTO known_blocks (key, entries) VALUES (?1, ?2)")?;
        for block in sorted.chunk_by(|(one, _), (next, _)| run.key_of(*one) == run.key_of(*next)) {
            let mut entries = Vec::with_capacity(block.len() * ENTRY);
            block.iter().for_each(|(identity, session)| put_entry(&mut entries, *identity, *session));
            let key = block.first().map(|(identity, _)| run.key_of(*identity));
            insert.execute(params![key, entries])?;
        }
        connection.prepare_cached("DELETE FROM known_batches")?.execute([])?;
        self.before = Some(std::mem::take(&mut self.recent));
        // Newest first: records are usually repeated soon.
        self.runs.insert(0, run);
        Ok(())
    }

    /// Call after the transaction was committed.
    pub(crate) fn committed(&mut self) {
        self.added.clear();
        self.before = None;
    }

    /// Call after the transaction was rolled back.
    pub(crate) fn rolled_back(&mut self) {
        if let Some(before) = self.before.take() {
            self.runs.remove(0);
            self.recent = before;
        }
        for identity in self.added.drain(..) {
            self.recent.remove(&identity);
        }
    }
}

fn bits(bytes: &[u8]) -> u128 {
    u128::from_be_bytes(crate::rows::bits(bytes))
}

/// A Bloom filter made of cache-line blocks: reports that an identity is not in a run, or that it may be.
///
/// Its bytes are stored, so their meaning must never change; therefore it does not come from a library.
#[derive(Debug)]
struct Filter(Vec<u8>);

impl Filter {
    fn for_rows(rows: usize) -> Self {
        Self(vec![0; (rows * FILTER_BITS).div_ceil(BLOCK_BITS).max(1) * BLOCK_BYTES])
    }

    /// `None` if the bytes are damaged.
    fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        (!bytes.is_empty() && bytes.len().is_multiple_of(BLOCK_BYTES)).then_some(Self(bytes))
    }

    /// Rebuilds and stores the filter of a run.
    fn of_run(connection: &Connection, run: i64, rows: usize) -> rusqlite::Result<Self> {
        let mut filter = Self::for_rows(rows);
        let mut statement = connection.prepare("SELECT entries FROM known_blocks WHERE key >= ?1 AND key < ?2")?;
        let mut blocks = statement.query([block_key(run, 0), block_key(run + 1, 0)])?;
        while let Some(row) = blocks.next()? {
            entries(row.get_ref(0)?.as_blob()?).for_each(|(identity, _)| filter.insert(identity));
        }
        connection.execute("UPDATE known_runs SET filter = ?2 WHERE run = ?1", params![run, filter.0])?;
        Ok(filter)
    }

    fn insert(&mut self, identity: u128) {
        let block = self.block_of(identity);
        for bit in bits_of(identity) {
            if let Some(byte) = self.0.get_mut(block + bit / 8) {
                *byte |= 1 << (bit % 8);
            }
        }
    }

    fn may_hold(&self, identity: u128) -> bool {
        let block = self.block_of(identity);
        bits_of(identity).all(|bit| self.0.get(block + bit / 8).is_none_or(|byte| byte & (1 << (bit % 8)) != 0))
    }

    /// The offset of an identity's block, from its upper half.
    fn block_of(&self, identity: u128) -> usize {
        let blocks = (self.0.len() / BLOCK_BYTES) as u128;
        (((identity >> 64) * blocks) >> 64) as usize * BLOCK_BYTES
    }
}

/// The bits of an identity in its block, from its lower half.
fn bits_of(identity: u128) -> impl Iterator<Item = usize> {
    (0..HASHES).map(move |n| (identity >> (n * BLOCK_BITS.ilog2())) as usize % BLOCK_BITS)
}

#[cfg(test)]
mod tests;
