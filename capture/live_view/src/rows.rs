//! The rows of the live view, in the order of lists.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    hash::Hash,
    ops::{Bound, RangeBounds},
    sync::{
        Arc, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use api::part::IdPart;
use events::{Provider, SessionId, State, Timestamp};

use crate::{
    entry::SessionEntry,
    locks::{read, write},
};

/// Maximum number of rows examined under one lock, which limits how long a writer waits.
const PART: usize = 512;
/// Minimum number of characters of the end of an agent's id that name a session.
const PART_OF_END: usize = 6;
/// Number of changes remembered for concurrent list reads.
const RECENT: usize = 4096;

/// Number of inactive rows that keep their JSON; the JSON of older ones is read from the store.
pub(crate) const HOT_ROWS: usize = 1_024;

/// Place in the order of lists: newest last event first.
pub type Key = (Reverse<Timestamp>, SessionId);

/// Selects and limits rows. Rows of merged sessions are never included.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    /// Only rows in one of these states; empty means any.
    pub states: Vec<State>,
    /// Only rows of these agents; empty means any.
    pub providers: Vec<Provider>,
    /// Only rows in this directory.
    pub cwd: Option<String>,
    /// Only sub-agents of this session, or sessions that continue its history.
    pub relative_of: Option<Relative>,
    /// Only active rows.
    pub active: bool,
    /// Only rows after this place.
    pub after: Option<Key>,
    /// Maximum number of rows.
    pub limit: usize,
}

/// The session that others descend from.
#[derive(Debug, Clone)]
pub struct Relative {
    /// capture's id.
    pub id: SessionId,
    /// The agent's own id of the session.
    pub provider_session_id: Option<Arc<str>>,
}

impl SessionFilter {
    fn wants(&self, entry: &SessionEntry) -> bool {
        entry.merged_into.is_none()
            && (self.states.is_empty() || self.states.contains(&entry.state))
            && (self.providers.is_empty() || self.providers.contains(&entry.provider))
            && self.cwd.as_deref().is_none_or(|cwd| entry.cwd.as_deref() == Some(cwd))
    }
}

impl SessionEntry {
    /// The sort key of the session in lists.
    #[must_use]
    pub fn key(&self) -> Key {
        (Reverse(self.last_event_at), self.id)
    }
}

type Ordered = BTreeMap<Key, Arc<SessionEntry>>;

#[derive(Debug, Default)]
pub(crate) struct Rows {
    inner: RwLock<Inner>,
    changes: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    by_id: HashMap<SessionId, Arc<SessionEntry>>,
    by_provider_id: HashMap<Arc<str>, SessionId>,
    /// Working directories: rows share these strings, because many sessions run in few directories.
    directories: HashSet<Arc<str>>,
    /// Number of directories when unused ones were last dropped.
    directories_kept: usize,
    /// The sub-agents of each session.
    by_parent: HashMap<SessionId, BTreeSet<SessionId>>,
    /// The sessions that continue another session's history, by the agent's own id of that session.
    by_origin: HashMap<Arc<str>, BTreeSet<SessionId>>,
    all: Ordered,
    active: Ordered,
    /// Inactive rows with JSON; the oldest of these lose it.
    hot: BTreeSet<Key>,
    counts: HashMap<(Provider, State), u64>,
    /// Recently put rows, the latest one last.
    recent: VecDeque<SessionId>,
    puts: u64,
}

impl Inner {
    /// Makes a row share the strings of other rows.
    fn share_texts(&mut self, entry: &mut SessionEntry) {
        if let Some(name) = &mut entry.provider_session_id
            && let Some((known, _)) = self.by_provider_id.get_key_value(name)
        {
            *name = Arc::clone(known);
        }
        let Some(cwd) = &mut entry.cwd else { return };
        if let Some(known) = self.directories.get(cwd) {
            *cwd = Arc::clone(known);
            return;
        }
        if self.directories.len() >= 2 * self.directories_kept.max(64) {
            self.directories.retain(|known| Arc::strong_count(known) > 1);
            self.directories_kept = self.directories.len();
        }
        self.directories.insert(Arc::clone(cwd));
    }

    fn take_out(&mut self, id: SessionId) -> Option<Arc<SessionEntry>> {
        let old = self.by_id.remove(&id)?;
        self.all.remove(&old.key());
        self.active.remove(&old.key());
        self.hot.remove(&old.key());
        if let Some(count) = self.counts.get_mut(&(old.provider, old.state)) {
            *count -= 1;
        }
        if let Some(parent) = old.parent {
            leave(&mut self.by_parent, &parent, id);
        }
        if let Some(origin) = &old.forked_from {
            leave(&mut self.by_origin, origin, id);
        }
        Some(old)
    }

    /// Drops the JSON of the oldest inactive rows, if there are too many.
    fn cool(&mut self) {
        while self.hot.len() > HOT_ROWS {
            let Some(oldest) = self.hot.pop_last() else { return };
            let Some(row) = self.all.get_mut(&oldest) else { continue };
            let cold = Arc::new(SessionEntry { json: None, ..SessionEntry::clone(row) });
            *row = Arc::clone(&cold);
            self.by_id.insert(cold.id, cold);
        }
    }

    fn order(&self, query: &SessionFilter) -> &Ordered {
        if query.active { &self.active } else { &self.all }
    }
}

fn leave<K: Eq + Hash>(groups: &mut HashMap<K, BTreeSet<SessionId>>, of: &K, id: SessionId) {
    let Some(group) = groups.get_mut(of) else { return };
    group.remove(&id);
    if group.is_empty() {
        groups.remove(of);
    }
}

impl Rows {
    pub(crate) fn put(&self, mut entry: SessionEntry) {
        let mut inner = write(&self.inner);
        inner.share_texts(&mut entry);
        let entry = Arc::new(entry);
        let old = inner.take_out(entry.id);
        let key = entry.key();
        *inner.counts.entry((entry.provider, entry.state)).or_default() += 1;
        if entry.active {
            inner.active.insert(key, Arc::clone(&entry));
        } else if entry.json.is_some() {
            inner.hot.insert(key);
        }
        inner.all.insert(key, Arc::clone(&entry));
        if let Some(parent) = entry.parent {
            inner.by_parent.entry(parent).or_default().insert(entry.id);
        }
        if let Some(origin) = &entry.forked_from {
            inner.by_origin.entry(Arc::clone(origin)).or_default().insert(entry.id);
        }
        if let Some(name) = &entry.provider_session_id {
            // If two sessions have the same name, the one that was not merged owns it.
            let same = old.as_ref().is_some_and(|old| old.provider_session_id.as_ref() == Some(name));
            if !same && (entry.merged_into.is_none() || !inner.by_provider_id.contains_key(name)) {
                inner.by_provider_id.insert(Arc::clone(name), entry.id);
            }
        }
        if inner.recent.len() == RECENT {
            inner.recent.pop_front();
        }
        inner.recent.push_back(entry.id);
        inner.puts += 1;
        inner.by_id.insert(entry.id, entry);
        inner.cool();
        drop(inner);
        self.changes.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn remove(&self, id: SessionId) {
        let mut inner = write(&self.inner);
        if let Some(name) = inner.take_out(id).and_then(|old| old.provider_session_id.clone())
            && inner.by_provider_id.get(&name) == Some(&id)
        {
            inner.by_provider_id.remove(&name);
        }
        drop(inner);
        self.changes.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn get(&self, id: SessionId) -> Option<Arc<SessionEntry>> {
        read(&self.inner).by_id.get(&id).cloned()
    }

    pub(crate) fn children(&self, parent: SessionId) -> Vec<Arc<SessionEntry>> {
        let inner = read(&self.inner);
        let children = inner.by_parent.get(&parent).into_iter().flatten();
        children.filter_map(|id| inner.by_id.get(id)).filter(|row| row.merged_into.is_none()).cloned().collect()
    }

    pub(crate) fn any_active(&self, wanted: impl Fn(&SessionEntry) -> bool) -> bool {
        read(&self.inner).active.values().any(|entry| wanted(entry))
    }

    pub(crate) fn find(&self, provider_session_id: &str) -> Option<SessionId> {
        read(&self.inner).by_provider_id.get(provider_session_id).copied()
    }

    pub(crate) fn fitting(&self, part: &IdPart, name: &str) -> Vec<Arc<SessionEntry>> {
        let fits = |entry: &SessionEntry| {
            let agents_id = entry.provider_session_id.as_deref();
            let is_part = |id: &str| id.starts_with(name) || name.len() >= PART_OF_END && id.ends_with(name);
            part.fits(&entry.id.to_string()) || agents_id.is_some_and(is_part)
        };
        // Copied part by part, as in lists: a writer waits for at most one part.
        let mut fitting = Vec::new();
        let mut from = Bound::Unbounded;
        loop {
            let inner = read(&self.inner);
            let page: Vec<(Key, Arc<SessionEntry>)> = inner
                .all
                .range((from, Bound::Unbounded))
                .take(PART)
                .map(|(key, row)| (*key, Arc::clone(row)))
                .collect();
            drop(inner);
            let Some((last, _)) = page.last() else { return fitting };
            from = Bound::Excluded(*last);
            fitting.extend(page.into_iter().map(|(_, row)| row).filter(|row| fits(row)));
        }
    }

    pub(crate) fn len(&self) -> usize {
        read(&self.inner).by_id.len()
    }

    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    pub(crate) fn counts(&self) -> crate::SessionCounts {
        let counts = read(&self.inner).counts.clone();
        let mut counts: crate::SessionCounts =
            counts.into_iter().map(|((provider, state), n)| (provider, state, n)).collect();
        counts.sort_by_key(|(provider, state, _)| (*provider, *state));
        counts
    }

    /// Reads part by part, so that no writer waits long. Rows put during the read may have moved from the unread into
    /// the read part; these are examined again.
    pub(crate) fn list(&self, query: &SessionFilter) -> (Vec<Arc<SessionEntry>>, bool) {
        if let Some(relative) = &query.relative_of {
            return self.relatives(relative, query);
        }
        let mut found: Vec<Arc<SessionEntry>> = Vec::new();
        let mut from = query.after.map_or(Bound::Unbounded, Bound::Excluded);
        let started = read(&self.inner).puts;
        loop {
            let inner = read(&self.inner);
            let mut looked_at = 0;
            for (key, entry) in inner.order(query).range((from, Bound::Unbounded)).take(PART) {
                looked_at += 1;
                from = Bound::Excluded(*key);
                if query.wants(entry) {
                    found.push(Arc::clone(entry));
                }
            }
            let at_the_end = looked_at < PART;
            if at_the_end || found.len() > query.limit {
                let until = if at_the_end { Bound::Unbounded } else { from };
                inner.look_again(query, started, until, &mut found);
                break;
            }
        }
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        (found, more)
    }
}

impl Rows {
    /// The relatives of a session, which are few.
    fn relatives(&self, of: &Relative, query: &SessionFilter) -> (Vec<Arc<SessionEntry>>, bool) {
        let inner = read(&self.inner);
        let children = inner.by_parent.get(&of.id);
        let forks = of.provider_session_id.as_ref().and_then(|name| inner.by_origin.get(name));
        let ids: BTreeSet<SessionId> = children.into_iter().chain(forks).flatten().copied().collect();
        let rows = ids.iter().filter_map(|id| inner.by_id.get(id));
        let is_behind = |row: &SessionEntry| query.after.is_none_or(|after| row.key() > after);
        let wanted = rows.filter(|row| query.wants(row) && is_behind(row) && (row.active || !query.active));
        let mut found: Vec<Arc<SessionEntry>> = wanted.cloned().collect();
        drop(inner);
        found.sort_unstable_by_key(|row| row.key());
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        (found, more)
    }
}

impl Inner {
    /// Updates the result with the rows put since `started`, up to the point that was read.
    fn look_again(&self, query: &SessionFilter, started: u64, until: Bound<Key>, found: &mut Vec<Arc<SessionEntry>>) {
        let changed = usize::try_from(self.puts - started).unwrap_or(usize::MAX);
        if changed == 0 {
            return;
        }
        let from = query.after.map_or(Bound::Unbounded, Bound::Excluded);
        if changed > self.recent.len() {
            *found = self
                .order(query)
                .range((from, Bound::Unbounded))
                .map(|(_, entry)| entry)
                .filter(|entry| query.wants(entry))
                .take(query.limit + 1)
                .cloned()
                .collect();
            return;
        }
        let changed: HashSet<SessionId> = self.recent.iter().rev().take(changed).copied().collect();
        found.retain(|entry| !changed.contains(&entry.id));
        let read = (
            from,
            match until {
                Bound::Excluded(last) => Bound::Included(last),
                Bound::Included(_) | Bound::Unbounded => Bound::Unbounded,
            },
        );
        let moved = changed
            .iter()
            .filter_map(|id| self.by_id.get(id))
            .filter(|entry| read.contains(&entry.key()) && query.wants(entry) && (entry.active || !query.active));
        found.extend(moved.cloned());
        found.sort_unstable_by_key(|entry| entry.key());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u128, at: i64, state: State) -> SessionEntry {
        SessionEntry {
            id: SessionId::from_bits(id),
            provider: Provider::Claude,
            provider_session_id: Some(format!("p{id}").into()),
            state,
            run_id: None,
            parent: None,
            forked_from: None,
            merged_into: None,
            cwd: Some("/w".into()),
            started_at: Timestamp::from_millisecond(0),
            last_event_at: Timestamp::from_millisecond(at),
            active: state != State::Exited,
            json: None,
        }
    }

    fn ids(rows: &Rows, query: &SessionFilter) -> (Vec<u128>, bool) {
        let (found, more) = rows.list(query);
        (found.iter().map(|e| e.id.bits()).collect(), more)
    }

    #[test]
    fn relatives_are_sub_agents_and_forks_whatever_their_state() {
        let rows = Rows::default();
        rows.put(entry(1, 1, State::Running));
        rows.put(SessionEntry { parent: Some(SessionId::from_bits(1)), ..entry(2, 2, State::Exited) });
        rows.put(SessionEntry { forked_from: Some("p1".into()), ..entry(3, 3, State::Waiting) });
        rows.put(entry(4, 4, State::Running));
        let of = |limit, active| SessionFilter {
            relative_of: Some(Relative { id: SessionId::from_bits(1), provider_session_id: Some("p1".into()) }),
            active,
            limit,
            ..SessionFilter::default()
        };
        assert_eq!(ids(&rows, &of(10, false)), (vec![3, 2], false));
        assert_eq!(ids(&rows, &of(10, true)), (vec![3], false));
        assert_eq!(ids(&rows, &of(1, false)), (vec![3], true));
        let behind = SessionFilter { after: rows.get(SessionId::from_bits(3)).map(|row| row.key()), ..of(10, false) };
        assert_eq!(ids(&rows, &behind), (vec![2], false));
        // Rows that now have another origin or were removed are no longer listed.
        rows.put(entry(3, 5, State::Waiting));
        rows.remove(SessionId::from_bits(2));
        assert_eq!(ids(&rows, &of(10, false)), (vec![], false));
    }

    #[test]
    fn rows_share_strings_and_unused_ones_are_freed() {
        let rows = Rows::default();
        let row = |id: u128| rows.get(SessionId::from_bits(id)).unwrap();
        rows.put(entry(1, 1, State::Idle));
        let name = row(1).provider_session_id.clone().unwrap();
        rows.put(entry(1, 2, State::Idle));
        rows.put(entry(2, 3, State::Idle));
        assert!(Arc::ptr_eq(&name, row(1).provider_session_id.as_ref().unwrap()));
        assert!(Arc::ptr_eq(row(1).cwd.as_ref().unwrap(), row(2).cwd.as_ref().unwrap()));
        for at in 0..1_000 {
            rows.put(SessionEntry { cwd: Some(format!("/w/{at}").into()), ..entry(3, at, State::Idle) });
        }
        let kept = read(&rows.inner).directories.len();
        assert!((2..=128).contains(&kept), "{kept} directories of 3 rows");
    }

    #[test]
    fn rows_are_paged_newest_first() {
        let rows = Rows::default();
        for id in 1..=2000 {
            rows.put(entry(id, id as i64 / 2, State::Running));
        }
        let mut query = SessionFilter { limit: 700, ..SessionFilter::default() };
        let mut seen = Vec::new();
        loop {
            let (page, more) = rows.list(&query);
            query.after = page.last().map(|e| e.key());
            seen.extend(page.iter().map(|e| e.id.bits()));
            if !more {
                break;
            }
        }
        assert_eq!(seen.len(), 2000);
        let mut sorted = seen.clone();
        sorted.sort_by_key(|id| (Reverse(*id as i64 / 2), *id));
        assert_eq!(seen, sorted);
    }

    #[test]
    fn rows_are_filtered_by_state_provider_and_directory() {
        let rows = Rows::default();
        rows.put(entry(1, 1, State::Running));
        rows.put(entry(2, 2, State::Exited));
        rows.put(SessionEntry { cwd: Some("/x".into()), provider: Provider::Codex, ..entry(3, 3, State::Waiting) });
        rows.put(SessionEntry { merged_into: Some(SessionId::from_bits(1)), ..entry(4, 4, State::Running) });
        let all = SessionFilter { limit: 10, ..SessionFilter::default() };
        assert_eq!(ids(&rows, &all).0, [3, 2, 1]);
        assert_eq!(ids(&rows, &SessionFilter { active: true, ..all.clone() }).0, [3, 1]);
        assert_eq!(ids(&rows, &SessionFilter { states: vec![State::Exited], ..all.clone() }).0, [2]);
        assert_eq!(ids(&rows, &SessionFilter { providers: vec![Provider::Codex], ..all.clone() }).0, [3]);
        assert_eq!(ids(&rows, &SessionFilter { cwd: Some("/w".into()), ..all.clone() }).0, [2, 1]);
        assert_eq!(ids(&rows, &SessionFilter { limit: 2, ..all.clone() }), (vec![3, 2], true));
        assert_eq!(ids(&rows, &SessionFilter { limit: 3, ..all }), (vec![3, 2, 1], false));
    }

    #[test]
    fn only_the_newest_and_active_rows_keep_their_json() {
        let rows = Rows::default();
        let json = || Some(crate::Json::of(&"a session").unwrap());
        rows.put(SessionEntry { json: json(), ..entry(1, 1, State::Running) });
        for id in 2..=HOT_ROWS as u128 + 12 {
            rows.put(SessionEntry { json: json(), ..entry(id, id as i64, State::Exited) });
        }
        let hot = |id| rows.get(SessionId::from_bits(id)).unwrap().json.is_some();
        assert!(hot(1), "it is active");
        assert!((2..=12).all(|id| !hot(id)) && (13..=HOT_ROWS as u128 + 12).all(hot));
        let all = SessionFilter { limit: 10_000, ..SessionFilter::default() };
        assert_eq!(rows.list(&all).0.iter().filter(|row| row.json.is_some()).count(), HOT_ROWS + 1);
        rows.put(SessionEntry { json: json(), ..entry(2, i64::MAX, State::Exited) });
        assert!(hot(2) && !hot(13));
    }

    #[test]
    fn a_row_can_be_moved_and_removed() {
        let rows = Rows::default();
        rows.put(entry(1, 1, State::Running));
        rows.put(entry(2, 2, State::Running));
        rows.put(entry(1, 3, State::Exited));
        let all = SessionFilter { limit: 10, ..SessionFilter::default() };
        assert_eq!(ids(&rows, &all).0, [1, 2]);
        assert_eq!(ids(&rows, &SessionFilter { active: true, ..all.clone() }).0, [2]);
        assert_eq!(rows.find("p1"), Some(SessionId::from_bits(1)));
        rows.remove(SessionId::from_bits(1));
        assert_eq!(ids(&rows, &all).0, [2]);
        assert_eq!(rows.find("p1"), None);
        let counts: Vec<_> = rows.counts().into_iter().filter(|(.., n)| *n > 0).collect();
        assert_eq!(counts, [(Provider::Claude, State::Running, 1)]);
    }

    #[test]
    fn a_list_read_during_updates_has_each_row_once() {
        const ROWS: u128 = 3000;
        let rows = Rows::default();
        for id in 1..=ROWS {
            rows.put(entry(id, id as i64 * 10, State::Running));
        }
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut n: u128 = 1;
                while !done.load(Ordering::Relaxed) {
                    // Moves rows to places all over the list, not only to its front.
                    n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) % (1 << 64);
                    rows.put(entry((n >> 33) % ROWS + 1, ((n >> 20) % 30_000) as i64, State::Running));
                }
            });
            for _ in 0..200 {
                let (found, more) = rows.list(&SessionFilter { limit: 10_000, ..SessionFilter::default() });
                let ids: HashSet<_> = found.iter().map(|entry| entry.id).collect();
                let sorted = found.is_sorted_by_key(|entry| entry.key());
                assert_eq!((found.len(), ids.len(), more, sorted), (ROWS as usize, ROWS as usize, false, true));
            }
            done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn after_a_merge_the_name_finds_the_surviving_session() {
        let rows = Rows::default();
        rows.put(entry(1, 1, State::Running));
        let name: Arc<str> = "p1".into();
        let merged = SessionEntry {
            provider_session_id: Some(Arc::clone(&name)),
            merged_into: Some(SessionId::from_bits(1)),
            ..entry(2, 2, State::Running)
        };
        rows.put(merged);
        assert_eq!(rows.find("p1"), Some(SessionId::from_bits(1)));
    }
}
