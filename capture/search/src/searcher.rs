//! Runs a query: finds texts in the index, reads them from the store, and makes snippets.

use std::{
    borrow::Cow,
    collections::HashMap,
    ops::Bound,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::Ordering,
    time::Instant,
};

use api::search::{SearchHit, SearchPage, SearchQuery, SearchSort, SourceRange, TextKind};
use events::{Event, Origin, SessionId};
use store::{ReadError, Reader};
use tantivy::{
    Order, Searcher, TantivyError, Term,
    collector::{Count, TopDocs},
    query::{
        AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, FuzzyTermQuery, Occur, PhrasePrefixQuery, PhraseQuery,
        Query as IndexQuery, RangeQuery, TermQuery,
    },
    schema::IndexRecordOption,
};

use crate::{
    document::text_of,
    excluded::Excluded,
    fields::{Fields, PART, POSITION, TIME, TURN},
    index::{OpenIndex, SearchIndex},
    phrase::PhraseSearch,
    query::{Clock, Condition, Field, Node, ParsedQuery, directory},
    snippet::{first_match, snippet},
    tokens::{self, floor},
};

/// Default number of hits per page.
const LIMIT: usize = 20;
/// Maximum number of hits that can be paged through.
const HITS: usize = 10_000;
/// Weight of a word spelled as in the query, relative to its parts in sequence.
const SPELLING: f32 = 2.0;
/// Maximum number of words that a prefix in a phrase may expand to.
const EXPANSIONS: u32 = 2_000;
/// In longer texts, secrets are searched only this far around the match, bytes on each side.
const AROUND_BYTES: usize = 32 << 10;

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// A parameter is invalid.
    #[error("{name}: {reason}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// The error in its value.
        reason: String,
    },
    /// There is no index yet; it is being built.
    #[error("the search index is not ready yet; retry in a moment")]
    NotReady,
    /// The index cannot be read. It is checked, and rebuilt if it is damaged.
    #[error("cannot search: {0}")]
    Index(String),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] ReadError),
}

/// A parsed search request.
#[derive(Debug, Clone)]
pub struct SearchRequest {
    query: ParsedQuery,
    sort: SearchSort,
    limit: usize,
    offset: usize,
    /// Only events up to this position, so that pages are consistent.
    until: Option<u64>,
}

impl SearchRequest {
    /// Parses the parameters of a search; `session` is the session they name.
    ///
    /// # Errors
    /// When a parameter is invalid.
    pub fn new(parameters: &SearchQuery, session: Option<SessionId>, clock: &Clock) -> Result<Self, SearchError> {
        let bad = |name, reason| SearchError::Parameter { name, reason };
        let text = parameters.q.as_deref().unwrap_or_default();
        let query = ParsedQuery::parse(text, clock).map_err(|error| bad("q", error.to_string()))?;
        let mut nodes = Vec::new();
        if query.0 != Node::All {
            nodes.push(query.0);
        }
        let exact = |field, value: &str| Node::Leaf(field, Condition::Exact(value.to_owned()));
        let any = |nodes: Vec<Node>| (!nodes.is_empty()).then_some(Node::Or(nodes));
        nodes.extend(session.map(|id| exact(Field::Session, &id.to_string().to_lowercase())));
        nodes.extend(any(parameters.agent.0.iter().map(|agent| exact(Field::Agent, agent.as_str())).collect()));
        nodes.extend(any(parameters.kind.0.iter().map(|kind| exact(Field::Kind, kind.as_str())).collect()));
        for (name, field, value) in
            [("tool", Field::Tool, &parameters.tool), ("project", Field::Project, &parameters.project)]
        {
            let Some(value) = value else { continue };
            let (parts, whole) = tokens::parts(value);
            if parts.is_empty() {
                return Err(bad(name, "expected letters or digits".into()));
            }
            nodes.push(Node::Leaf(field, Condition::Words { parts, whole }));
        }
        if let Some(cwd) = &parameters.cwd {
            if !cwd.starts_with('/') {
                return Err(bad("cwd", "expected an absolute path".into()));
            }
            nodes.push(exact(Field::Cwd, &directory(cwd)));
        }
        if parameters.since.is_some() || parameters.until.is_some() {
            let from = parameters.since.map_or(i64::MIN, events::Timestamp::as_millisecond);
            let to = parameters.until.map_or(i64::MAX, events::Timestamp::as_millisecond);
            nodes.push(Node::Leaf(Field::Time, Condition::During(from..to)));
        }
        if nodes.is_empty() && text.trim().is_empty() {
            return Err(bad("q", "expected something to search for".into()));
        }
        let (offset, until) = match &parameters.cursor {
            None => (0, None),
            Some(cursor) => {
                let parts = cursor.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                let (offset, until) = parts.ok_or_else(|| bad("cursor", "not the `next_cursor` of a page".into()))?;
                (offset, Some(until))
            }
        };
        if offset >= HITS {
            return Err(bad("cursor", format!("at most {HITS} hits can be listed; narrow the search")));
        }
        let sort = parameters.sort.unwrap_or_default();
        let limit = parameters.limit.map_or(LIMIT, |limit| limit.get());
        let query = ParsedQuery(if nodes.is_empty() { Node::All } else { Node::And(nodes) });
        Ok(Self { query, sort, limit, offset, until })
    }
}

/// The location of a hit.
struct FoundText {
    position: u64,
    kind: TextKind,
    turn: Option<u32>,
    score: f32,
}

/// The texts of one page, plus one more.
struct FoundPage {
    texts: Vec<FoundText>,
    matches: u64,
    is_lower_bound: bool,
}

impl SearchIndex {
    /// Searches. Blocks; `redact` removes the secrets from a text.
    ///
    /// # Errors
    /// When there is no index, or the index or the store cannot be read.
    pub fn search(
        &self,
        request: &SearchRequest,
        store: &Reader,
        redact: &dyn Fn(&str) -> Cow<'_, str>,
    ) -> Result<SearchPage, SearchError> {
        let began = Instant::now();
        let open = self.0.opened().ok_or(SearchError::NotReady)?;
        let (indexed, total) = self.progress();
        // Read before the index is opened. In the other order, a session whose erasure finishes in between would not be
        // excluded, although the opened index may still contain its texts.
        let node = without(&request.query.0, &store.erasing_ids()?);
        // Damaged files may make tantivy panic.
        let found = catch_unwind(AssertUnwindSafe(|| {
            let (searcher, was_opened) = open.reader.searcher(&open.index)?;
            if was_opened {
                // Wakes the feeder, which closes the segments after some time without searches.
                self.0.wake();
            }
            find(&open, &searcher, request, &node)
        }));
        let FoundPage { texts, matches, is_lower_bound } = match found {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return Err(self.damaged(error.to_string())),
            Err(_) => return Err(self.damaged("a part of it is damaged".into())),
        };
        let more = texts.len() > request.limit;
        let last = request.offset + request.limit;
        let as_of = request.until.unwrap_or(indexed);
        let next_cursor = (more && last < HITS).then(|| format!("{last}.{as_of}"));
        let mut titles = HashMap::new();
        let mut hits = Vec::with_capacity(texts.len());
        for found in texts.into_iter().take(request.limit) {
            hits.extend(hit(&found, &request.query, store, redact, &mut titles)?);
        }
        let took_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let at_least = is_lower_bound;
        Ok(SearchPage { hits, matches, at_least, indexed, total, took_us, next_cursor })
    }

    /// Orders a check of the index files after a failed search.
    fn damaged(&self, why: String) -> SearchError {
        tracing::warn!(why, "a search failed; checking the search index");
        self.0.orders.check.store(true, Ordering::Relaxed);
        self.0.wake();
        SearchError::Index(why)
    }
}

/// A query that excludes removed sessions whose texts may still be in the index, also from counting.
fn without(node: &Node, removed: &[SessionId]) -> Node {
    let is_of = |id: &SessionId| Node::Leaf(Field::Session, Condition::Exact(id.to_string().to_lowercase()));
    let left_out = removed.iter().map(|id| Node::Not(Box::new(is_of(id))));
    if removed.is_empty() { node.clone() } else { Node::And(std::iter::once(node.clone()).chain(left_out).collect()) }
}

/// Finds the texts of one page plus one more, and the total number.
fn find(
    open: &OpenIndex,
    searcher: &Searcher,
    request: &SearchRequest,
    node: &Node,
) -> Result<FoundPage, TantivyError> {
    let by_time = request.sort == SearchSort::Time;
    let until = request.until.map(|until| {
        let last = Term::from_field_u64(open.fields.position, until);
        unscored(RangeQuery::new(Bound::Unbounded, Bound::Included(last)))
    });
    let wanted = request.limit + 1;
    let (found, matches, is_lower_bound) = if let Some((parts, whole, rest)) = phrase_of(node) {
        let filters = rest.into_iter().map(|node| clause(&open.fields, node));
        let filters: Vec<_> = filters.chain(until.map(|until| (Occur::Must, until))).collect();
        let search = PhraseSearch {
            field: open.fields.text,
            parts,
            whole: whole.map(|whole| (whole, SPELLING)),
            filter: (!filters.is_empty()).then(|| all_of(filters)),
            by_time,
        };
        let mut found = search.first(searcher, request.offset + wanted)?;
        found.first.drain(..request.offset.min(found.first.len()));
        (found.first, found.matches, found.is_lower_bound)
    } else {
        let mut query = build(&open.fields, node);
        if let Some(until) = until {
            query = Box::new(BooleanQuery::intersection(vec![query, until]));
        }
        let top = TopDocs::with_limit(wanted).and_offset(request.offset);
        let (found, matches) = if by_time {
            let top = top.order_by_fast_field::<i64>(TIME, Order::Desc);
            let (found, count) = searcher.search(&*query, &(top, Count))?;
            (found.into_iter().map(|(_, address)| (0.0, address)).collect(), count)
        } else if request.until.is_none() && is_of_words(node) {
            // The best texts are found without examining all, and counting computes no scores.
            (searcher.search(&*query, &top.order_by_score())?, query.count(searcher)?)
        } else {
            searcher.search(&*query, &(top.order_by_score(), Count))?
        };
        (found, matches as u64, false)
    };
    let mut texts = Vec::with_capacity(found.len());
    for (score, address) in found {
        let columns = searcher.segment_reader(address.segment_ord).fast_fields();
        let number = |name| columns.u64(name).map(|column| column.first(address.doc_id));
        let kind = number(PART)?.and_then(TextKind::from_code);
        let turn = number(TURN)?.and_then(|turn| u32::try_from(turn).ok());
        let score = if by_time { 0.0 } else { score };
        texts.extend(number(POSITION)?.zip(kind).map(|(position, kind)| FoundText { position, kind, turn, score }));
    }
    Ok(FoundPage { texts, matches, is_lower_bound })
}

/// The phrase of a query whose score depends on that phrase alone, its spelling as one word, and the other required
/// conditions.
fn phrase_of(node: &Node) -> Option<(&[String], Option<&str>, Vec<&Node>)> {
    let mut rest = required(node);
    let is_phrase =
        |node: &&Node| matches!(node, Node::Leaf(Field::Text, Condition::Words { parts, .. }) if parts.len() > 1);
    let Node::Leaf(_, Condition::Words { parts, whole }) = rest.remove(rest.iter().position(is_phrase)?) else {
        return None;
    };
    (!rest.iter().any(|node| has_score(node))).then_some((parts.as_slice(), whole.as_deref(), rest))
}

/// The conditions that must all match.
fn required(node: &Node) -> Vec<&Node> {
    match node {
        Node::And(nodes) => nodes.iter().flat_map(required).collect(),
        Node::All | Node::Leaf(..) | Node::Or(_) | Node::Not(_) => vec![node],
    }
}

/// Whether a part of a query affects the order of its matches.
fn has_score(node: &Node) -> bool {
    match node {
        Node::Leaf(field, _) => *field == Field::Text,
        Node::And(nodes) | Node::Or(nodes) => nodes.iter().any(has_score),
        Node::All | Node::Not(_) => false,
    }
}

/// Whether a query consists only of words.
fn is_of_words(node: &Node) -> bool {
    match node {
        Node::Leaf(Field::Text, Condition::Words { parts, .. }) => parts.len() == 1,
        Node::And(nodes) | Node::Or(nodes) => nodes.iter().all(is_of_words),
        Node::All | Node::Not(_) | Node::Leaf(..) => false,
    }
}

/// Reads a hit; `None` if the store no longer contains the event.
fn hit(
    found: &FoundText,
    query: &ParsedQuery,
    store: &Reader,
    redact: &dyn Fn(&str) -> Cow<'_, str>,
    titles: &mut HashMap<SessionId, Option<String>>,
) -> Result<Option<SearchHit>, ReadError> {
    let Some(event) = store.event_at(found.position)? else { return Ok(None) };
    let title = match titles.get(&event.session_id) {
        Some(title) => title.clone(),
        None => {
            let title = store.title(event.session_id)?;
            let title = title.map(|title| redact(&title).into_owned());
            titles.insert(event.session_id, title.clone());
            title
        }
    };
    let conditions = query.shown_conditions();
    let text = text_of(&event, found.kind, store)?;
    let clean = redact(around_match(&text, &conditions));
    Ok(Some(SearchHit {
        session_id: event.session_id,
        title,
        agent: event.provider,
        kind: found.kind,
        at: event.created_at,
        id: event.id,
        position: event.position,
        sequence: event.sequence,
        turn_id: event.turn_id,
        turn: found.turn,
        source: source_of(&event),
        score: found.score,
        snippet: snippet(&clean, &conditions),
    }))
}

fn source_of(event: &Event) -> Option<SourceRange> {
    match &event.origin {
        Origin::File { path, offset, length, .. } => {
            Some(SourceRange { path: path.to_string(), offset: *offset, length: *length })
        }
        Origin::Delivery { .. } | Origin::Derived => None,
    }
}

/// The text, or the surroundings of the first match in a long one: enough that no secret in the shown part is cut off.
fn around_match<'a>(text: &'a str, conditions: &[&Condition]) -> &'a str {
    if text.len() <= 2 * AROUND_BYTES {
        return text;
    }
    let at = first_match(text, conditions).unwrap_or_default();
    text.get(floor(text, at.saturating_sub(AROUND_BYTES))..floor(text, at + AROUND_BYTES)).unwrap_or_default()
}

fn unscored(query: impl IndexQuery) -> Box<dyn IndexQuery> {
    Box::new(ConstScoreQuery::new(Box::new(query), 0.0))
}

/// Converts a query tree to a query of the index.
fn build(fields: &Fields, node: &Node) -> Box<dyn IndexQuery> {
    match node {
        Node::All => unscored(AllQuery),
        Node::Leaf(field, condition) => leaf(fields, *field, condition),
        Node::Or(nodes) => Box::new(BooleanQuery::union(nodes.iter().map(|node| build(fields, node)).collect())),
        Node::And(nodes) => all_of(nodes.iter().map(|node| clause(fields, node)).collect()),
        Node::Not(inner) => Box::new(BooleanQuery::new(vec![
            (Occur::Must, unscored(AllQuery)),
            (Occur::MustNot, excluded(fields, inner)),
        ])),
    }
}

fn clause(fields: &Fields, node: &Node) -> (Occur, Box<dyn IndexQuery>) {
    match node {
        Node::Not(inner) => (Occur::MustNot, excluded(fields, inner)),
        Node::All | Node::Leaf(..) | Node::And(_) | Node::Or(_) => (Occur::Must, build(fields, node)),
    }
}

fn all_of(mut clauses: Vec<(Occur, Box<dyn IndexQuery>)>) -> Box<dyn IndexQuery> {
    if clauses.iter().all(|(occur, _)| *occur == Occur::MustNot) {
        clauses.push((Occur::Must, unscored(AllQuery)));
    }
    Box::new(BooleanQuery::new(clauses))
}

fn excluded(fields: &Fields, node: &Node) -> Box<dyn IndexQuery> {
    Box::new(Excluded(build(fields, node)))
}

fn leaf(fields: &Fields, field: Field, condition: &Condition) -> Box<dyn IndexQuery> {
    let of = match (field, condition) {
        (Field::Text, _) => fields.text,
        (Field::Session, _) => fields.session,
        (Field::Agent, _) => fields.agent,
        (Field::Kind, _) => fields.kind,
        (Field::Tool, _) => fields.tool,
        (Field::Time, _) => fields.time,
        (Field::Cwd, Condition::Exact(_)) => fields.below,
        (Field::Cwd, _) => fields.cwd,
        (Field::Project, _) => fields.project,
        (Field::Model, _) => fields.model,
        (Field::Outcome, _) => fields.outcome,
        (Field::File, _) => fields.file,
    };
    let term = |text: &str| Term::from_field_text(of, text);
    let terms = |parts: &[String]| parts.iter().map(|part| term(part)).collect::<Vec<_>>();
    let option = if field == Field::Text { IndexRecordOption::WithFreqs } else { IndexRecordOption::Basic };
    let query: Box<dyn IndexQuery> = match condition {
        Condition::Words { parts, whole } => match (parts.as_slice(), whole) {
            ([part], _) => Box::new(TermQuery::new(term(part), option)),
            (parts, None) => Box::new(PhraseQuery::new(terms(parts))),
            (parts, Some(whole)) => {
                let spelled = BoostQuery::new(Box::new(TermQuery::new(term(whole), option)), SPELLING);
                Box::new(BooleanQuery::new(vec![
                    (Occur::Must, Box::new(PhraseQuery::new(terms(parts)))),
                    (Occur::Should, Box::new(spelled)),
                ]))
            }
        },
        Condition::Prefix(parts) => match parts.as_slice() {
            [part] => Box::new(FuzzyTermQuery::new_prefix(term(part), 0, true)),
            parts => {
                let mut query = PhrasePrefixQuery::new(terms(parts));
                query.set_max_expansions(EXPANSIONS);
                Box::new(query)
            }
        },
        Condition::Fuzzy { word, distance } => Box::new(FuzzyTermQuery::new(term(word), *distance, true)),
        Condition::Begins(value) => Box::new(FuzzyTermQuery::new_prefix(term(value), 0, true)),
        Condition::Exact(value) => Box::new(TermQuery::new(term(value), option)),
        Condition::During(range) => {
            let at = |ms| Term::from_field_i64(of, ms);
            let from = if range.start == i64::MIN { Bound::Unbounded } else { Bound::Included(at(range.start)) };
            let to = if range.end == i64::MAX { Bound::Unbounded } else { Bound::Excluded(at(range.end)) };
            match (&from, &to) {
                (Bound::Unbounded, Bound::Unbounded) => Box::new(AllQuery),
                _ => Box::new(RangeQuery::new(from, to)),
            }
        }
    };
    if field == Field::Text { query } else { Box::new(ConstScoreQuery::new(query, 0.0)) }
}
