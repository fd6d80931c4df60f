//! Tokens and costs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use api::usage::{UsageBy, UsageReport, UsageRow, UsageSums};
use events::{Provider, SessionId, Timestamp};
use jiff::{civil::Date, tz::TimeZone};
use prices::{CallTokens, ModelPrices, Prices};
use projections::Usage;
use store::{CallFilter, ModelCall, ReadError, Reader, SessionFacts, SessionRow};

use crate::{
    SessionPeriod,
    accounts::{Accounted, BesideCalls},
    quotas,
};

/// Selects the tokens to sum up.
#[derive(Debug, Clone)]
pub struct UsageRequest {
    /// The meaning of a row.
    pub by: UsageBy,
    /// The sessions and the period; a session includes its sub-agents.
    pub of: SessionPeriod,
    /// Only calls of this model.
    pub model: Option<String>,
    /// The time zone of the days.
    pub zone: TimeZone,
    /// Maximum number of rows.
    pub limit: usize,
}

/// Sums up the usage of sessions.
///
/// # Errors
/// When the store cannot be read.
pub fn report(reader: &Reader, request: &UsageRequest, prices: &Prices) -> Result<UsageReport, ReadError> {
    let (since, until) = request.of.bounds();
    let facts = reader.session_facts(since)?;
    let family = request.of.session.map(|id| family(&facts, id));
    let sessions: HashMap<SessionRow, &SessionFacts> = facts
        .iter()
        .filter(|session| family.as_ref().is_none_or(|family| family.contains(&session.id)))
        .filter(|session| request.of.has(session))
        .map(|session| (session.row, session))
        .collect();
    let mut cache = PriceCache::new(prices);
    let accounted = Accounted::read(reader, &mut cache)?;
    let beside = accounted.beside.clone();
    let (rows, total, unpriced) = (Rows::default(), Sum::default(), BTreeSet::new());
    let mut count = Count { request, prices: cache, accounted, rows, total, unpriced };
    let mut last: Option<(SessionRow, Option<&SessionFacts>)> = None;
    let mut each = |call: &ModelCall<'_>| {
        // The calls of a session are adjacent.
        let session = match last {
            Some((row, session)) if row == call.session => session,
            Some(_) | None => sessions.get(&call.session).copied(),
        };
        last = Some((call.session, session));
        if let Some(session) = session {
            count.add(session, call);
        }
    };
    if family.is_some() {
        for row in sessions.keys() {
            reader.each_call(&CallFilter { since, until, session: Some(*row) }, &mut each)?;
        }
    } else {
        reader.each_call(&CallFilter { since, until, session: None }, &mut each)?;
    }
    for beside in beside.iter().filter(|beside| beside.at >= since && beside.at < until) {
        if let Some(session) = sessions.get(&beside.session) {
            count.add_beside(session, beside);
        }
    }
    let quotas = quotas::views(reader, request)?;
    Ok(count.finished(&sessions, quotas, prices))
}

/// A session and all its direct and indirect sub-agents.
fn family(facts: &[SessionFacts], id: SessionId) -> HashSet<SessionId> {
    let mut family = HashSet::from([id]);
    loop {
        let children = facts.iter().filter(|session| session.parent.is_some_and(|parent| family.contains(&parent)));
        let new: Vec<SessionId> = children.map(|child| child.id).filter(|id| !family.contains(id)).collect();
        if new.is_empty() {
            return family;
        }
        family.extend(new);
    }
}

/// The cost of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cost {
    /// Reported by the agent.
    Reported(u64),
    /// Computed from the price table.
    Computed(u64),
    /// Unknown, because the model has no price.
    Unknown,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    tokens: Usage,
    calls: u64,
    priced: bool,
    cost: u64,
    reported: u64,
    unpriced: u64,
}

impl Sum {
    fn add(&mut self, call: &ModelCall<'_>, cost: Cost) {
        self.tokens.add_all(&call.usage);
        self.calls += u64::from(call.is_first);
        match cost {
            Cost::Reported(nano_usd) => {
                self.priced = true;
                self.cost = self.cost.saturating_add(nano_usd);
                self.reported = self.reported.saturating_add(nano_usd);
            }
            Cost::Computed(nano_usd) => {
                self.priced = true;
                self.cost = self.cost.saturating_add(nano_usd);
            }
            Cost::Unknown => self.unpriced += u64::from(call.is_first),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.tokens.add_all(&other.tokens);
        self.calls += other.calls;
        self.priced |= other.priced;
        self.cost = self.cost.saturating_add(other.cost);
        self.reported = self.reported.saturating_add(other.reported);
        self.unpriced += other.unpriced;
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate, and money in floating point as JSON has it")]
    fn sums(&self) -> UsageSums {
        let usd = |nano: u64| nano as f64 / 1e9;
        let tokens = self.tokens;
        let input = tokens.input_tokens + tokens.cache_read_tokens + tokens.cache_write_tokens;
        UsageSums {
            tokens,
            calls: self.calls,
            cost_usd: self.priced.then(|| usd(self.cost)),
            reported_cost_usd: usd(self.reported),
            unpriced_calls: self.unpriced,
            cache_hit_rate: (input > 0).then(|| tokens.cache_read_tokens as f64 / input as f64),
        }
    }

    /// The sort key of rows.
    fn weight(&self) -> (u64, u64) {
        let Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, .. } = self.tokens;
        let all = [input_tokens, output_tokens, cache_read_tokens, cache_write_tokens];
        (self.cost, all.into_iter().fold(0, u64::saturating_add))
    }
}

/// The calls of a minute.
#[derive(Debug, Clone, Copy)]
struct MinuteSum {
    /// The times of the first and the last call, ms.
    first: i64,
    last: i64,
    sum: Sum,
}

/// Length of a block, and of a gap between calls after which a new block begins, ms.
const BLOCK_MS: i64 = 5 * HOUR_MS;
const HOUR_MS: i64 = 3_600_000;
const MINUTE_MS: i64 = 60_000;

/// The five-hour blocks by start time, ms.
fn blocks(minutes: &BTreeMap<i64, MinuteSum>) -> Vec<(i64, Sum)> {
    let mut blocks: Vec<(i64, Sum)> = Vec::new();
    let mut last = i64::MIN;
    for minute in minutes.values() {
        let is_within = blocks.last().is_some_and(|(start, _)| minute.first < start.saturating_add(BLOCK_MS))
            && minute.first.saturating_sub(last) <= BLOCK_MS;
        match blocks.last_mut().filter(|_| is_within) {
            Some((_, sum)) => sum.merge(&minute.sum),
            None => blocks.push((minute.first.div_euclid(HOUR_MS) * HOUR_MS, minute.sum)),
        }
        last = minute.last;
    }
    blocks
}

/// The sums of the rows.
#[derive(Debug, Default)]
struct Rows {
    /// Days, or the first days of weeks and months.
    days: BTreeMap<Date, Sum>,
    /// Sums by minute since 1970, from which blocks are built.
    minutes: BTreeMap<i64, MinuteSum>,
    projects: HashMap<Option<String>, Sum>,
    models: HashMap<Provider, BTreeMap<String, Sum>>,
    sessions: HashMap<SessionRow, Sum>,
    agents: HashMap<Provider, Sum>,
    /// The day of the last call, with its first and last millisecond.
    day: Option<(Date, i64, i64)>,
}

impl Rows {
    fn of(&mut self, request: &UsageRequest, session: &SessionFacts, call: &ModelCall<'_>) -> Option<&mut Sum> {
        Some(match request.by {
            UsageBy::Day | UsageBy::Week | UsageBy::Month => {
                let date = self.date(call.at, &request.zone)?;
                let begins = match request.by {
                    UsageBy::Week => {
                        let since_monday = date.weekday().to_monday_zero_offset();
                        date.checked_sub(jiff::Span::new().days(since_monday)).ok()?
                    }
                    UsageBy::Month => date.first_of_month(),
                    UsageBy::Day
                    | UsageBy::Block
                    | UsageBy::Project
                    | UsageBy::Model
                    | UsageBy::Session
                    | UsageBy::Agent => date,
                };
                self.days.entry(begins).or_default()
            }
            UsageBy::Block => {
                let at = call.at.as_millisecond();
                let minute = self.minutes.entry(at.div_euclid(MINUTE_MS));
                let new = MinuteSum { first: at, last: at, sum: Sum::default() };
                let minute = minute.or_insert(new);
                (minute.first, minute.last) = (minute.first.min(at), minute.last.max(at));
                &mut minute.sum
            }
            UsageBy::Project => {
                if !self.projects.contains_key(&session.directory) {
                    self.projects.insert(session.directory.clone(), Sum::default());
                }
                self.projects.get_mut(&session.directory)?
            }
            UsageBy::Model => {
                let models = self.models.entry(session.provider).or_default();
                if !models.contains_key(call.model) {
                    models.insert(call.model.to_owned(), Sum::default());
                }
                models.get_mut(call.model)?
            }
            UsageBy::Session => self.sessions.entry(session.row).or_default(),
            UsageBy::Agent => self.agents.entry(session.provider).or_default(),
        })
    }

    fn date(&mut self, at: Timestamp, zone: &TimeZone) -> Option<Date> {
        let at = at.as_millisecond();
        if let Some((date, first, last)) = self.day
            && (first..=last).contains(&at)
        {
            return Some(date);
        }
        let date = jiff::Timestamp::from_millisecond(at).ok()?.to_zoned(zone.clone()).date();
        let start = |date: Date| Some(date.to_zoned(zone.clone()).ok()?.timestamp().as_millisecond());
        let next = date.tomorrow().ok().and_then(start);
        self.day = start(date).zip(next).map(|(first, next)| (date, first, next - 1));
        Some(date)
    }
}

/// A cache of models' prices; most calls use the same model as the previous call.
pub(crate) struct PriceCache<'a> {
    prices: &'a Prices,
    known: HashMap<String, Option<ModelPrices<'a>>>,
    last: Option<(String, Option<ModelPrices<'a>>)>,
}

impl<'a> PriceCache<'a> {
    fn new(prices: &'a Prices) -> Self {
        Self { prices, known: HashMap::new(), last: None }
    }

    fn of(&mut self, model: &str) -> Option<ModelPrices<'a>> {
        if let Some((last, found)) = &self.last
            && last == model
        {
            return *found;
        }
        let found = match self.known.get(model) {
            Some(found) => *found,
            None => {
                let found = self.prices.of(model);
                self.known.insert(model.to_owned(), found);
                found
            }
        };
        self.last = Some((model.to_owned(), found));
        found
    }

    pub(crate) fn cost(&mut self, call: &ModelCall<'_>) -> Cost {
        match call.cost_nano_usd {
            Some(nano_usd) => Cost::Reported(nano_usd),
            None => self.cost_of(call.model, call.at, &call.usage),
        }
    }

    /// The cost according to the price table.
    pub(crate) fn cost_of(&mut self, model: &str, at: Timestamp, usage: &Usage) -> Cost {
        let tokens = CallTokens {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cache_read: usage.cache_read_tokens,
            cache_write: usage.cache_write_tokens,
            cache_write_hour: usage.cache_write_hour_tokens,
            thinking: usage.thinking_tokens,
        };
        if tokens == CallTokens::default() {
            return Cost::Computed(0);
        }
        let prices = self.of(model);
        prices
            .and_then(|prices| prices.cost_nano_usd(at.as_millisecond(), &tokens))
            .map_or(Cost::Unknown, Cost::Computed)
    }
}

struct Count<'a> {
    request: &'a UsageRequest,
    prices: PriceCache<'a>,
    accounted: Accounted,
    rows: Rows,
    total: Sum,
    /// The models without a known price.
    unpriced: BTreeSet<String>,
}

impl Count<'_> {
    fn add(&mut self, session: &SessionFacts, call: &ModelCall<'_>) {
        let cost = self.accounted.cost(call, self.prices.cost(call));
        self.add_at(session, call, cost);
    }

    /// Adds a session's usage outside its calls, which counts as one more call if it includes input tokens.
    fn add_beside(&mut self, session: &SessionFacts, beside: &BesideCalls) {
        let usage = beside.usage;
        let is_first = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens > 0;
        let (session_row, at, model) = (beside.session, beside.at, beside.model.as_str());
        let call = ModelCall { session: session_row, at, model, usage, cost_nano_usd: None, is_first };
        self.add_at(session, &call, beside.cost);
    }

    fn add_at(&mut self, session: &SessionFacts, call: &ModelCall<'_>, cost: Cost) {
        if self.request.model.as_ref().is_some_and(|model| model != call.model) {
            return;
        }
        if cost == Cost::Unknown && !self.unpriced.contains(call.model) {
            self.unpriced.insert(call.model.to_owned());
        }
        self.total.add(call, cost);
        if let Some(sum) = self.rows.of(self.request, session, call) {
            sum.add(call, cost);
        }
    }

    fn finished(
        self,
        sessions: &HashMap<SessionRow, &SessionFacts>,
        quotas: Vec<api::usage::QuotaView>,
        prices: &Prices,
    ) -> UsageReport {
        let Self { request, rows, total, unpriced, .. } = self;
        let mut weighed: Vec<((u64, u64), UsageRow)> = Vec::new();
        let mut push = |sum: &Sum, row: UsageRow| weighed.push((sum.weight(), UsageRow { sums: sum.sums(), ..row }));
        for (date, sum) in &rows.days {
            let row = match request.by {
                UsageBy::Week => UsageRow { period: Some(date.to_string()), ..empty() },
                UsageBy::Month => UsageRow { period: Some(date.strftime("%Y-%m").to_string()), ..empty() },
                UsageBy::Day
                | UsageBy::Block
                | UsageBy::Project
                | UsageBy::Model
                | UsageBy::Session
                | UsageBy::Agent => UsageRow { day: Some(date.to_string()), ..empty() },
            };
            push(sum, row);
        }
        for (start, sum) in blocks(&rows.minutes) {
            let start = Timestamp::from_millisecond(start).to_string();
            push(&sum, UsageRow { period: Some(start), ..empty() });
        }
        for (directory, sum) in &rows.projects {
            push(sum, UsageRow { project: Some(directory.clone().unwrap_or_default()), ..empty() });
        }
        for (provider, models) in &rows.models {
            for (model, sum) in models {
                let model = (!model.is_empty()).then(|| model.clone());
                push(sum, UsageRow { provider: Some(*provider), model, ..empty() });
            }
        }
        for (provider, sum) in &rows.agents {
            push(sum, UsageRow { provider: Some(*provider), ..empty() });
        }
        let below = subagents(&rows.sessions, sessions);
        // A parent whose sub-agents did all the work also gets a row.
        let parents = below.keys().filter_map(|id| sessions.values().find(|session| session.id == *id));
        let listed: HashSet<SessionRow> = rows.sessions.keys().copied().chain(parents.map(|s| s.row)).collect();
        for row in &listed {
            let Some(session) = sessions.get(row) else { continue };
            let sum = rows.sessions.get(row).copied().unwrap_or_default();
            // Its place also depends on its sub-agents' usage, which is shown with it.
            let mut whole = sum;
            if let Some(below) = below.get(&session.id) {
                whole.merge(below);
            }
            weighed.push((
                whole.weight(),
                UsageRow {
                    sums: sum.sums(),
                    session_id: Some(session.id),
                    parent_session_id: session.parent,
                    title: session.title.clone(),
                    project: session.directory.clone(),
                    provider: Some(session.provider),
                    subagents: below.get(&session.id).map(Sum::sums),
                    ..empty()
                },
            ));
        }
        if !request.by.is_time() {
            let name = |row: &UsageRow| (row.provider, row.model.clone(), row.project.clone(), row.session_id);
            weighed.sort_by(|(a, a_row), (b, b_row)| b.cmp(a).then_with(|| name(a_row).cmp(&name(b_row))));
        }
        let mut usage: Vec<UsageRow> = weighed.into_iter().map(|(_, row)| row).collect();
        let more_rows = usage.len().saturating_sub(request.limit);
        if request.by.is_time() {
            usage.drain(..more_rows);
        } else {
            usage.truncate(request.limit);
        }
        UsageReport {
            by: request.by,
            since: request.of.since,
            until: request.of.until,
            total: total.sums(),
            usage,
            more_rows: more_rows as u64,
            unpriced_models: unpriced.into_iter().collect(),
            prices_date: prices.date().to_owned(),
            quotas,
        }
    }
}

/// For each session with sub-agents, the sums of all its sub-agents.
fn subagents(
    sums: &HashMap<SessionRow, Sum>,
    sessions: &HashMap<SessionRow, &SessionFacts>,
) -> HashMap<SessionId, Sum> {
    let parents: HashMap<SessionId, SessionId> =
        sessions.values().filter_map(|session| Some((session.id, session.parent?))).collect();
    let mut below: HashMap<SessionId, Sum> = HashMap::new();
    for (row, sum) in sums {
        let mut parent = sessions.get(row).and_then(|session| session.parent);
        // Sessions that name each other as parents would loop forever.
        let mut seen = HashSet::new();
        while let Some(id) = parent.filter(|id| seen.insert(*id)) {
            below.entry(id).or_default().merge(sum);
            parent = parents.get(&id).copied();
        }
    }
    below
}

const fn empty() -> UsageRow {
    UsageRow {
        day: None,
        period: None,
        project: None,
        session_id: None,
        parent_session_id: None,
        title: None,
        provider: None,
        model: None,
        sums: UsageSums {
            tokens: Usage {
                input_tokens: 0,
                output_tokens: 0,
                cache_read_tokens: 0,
                cache_write_tokens: 0,
                cache_write_hour_tokens: 0,
                thinking_tokens: 0,
            },
            calls: 0,
            cost_usd: None,
            reported_cost_usd: 0.0,
            unpriced_calls: 0,
            cache_hit_rate: None,
        },
        subagents: None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
