//! Usage that only the agents' own accounting contains: calls missing from the transcripts, such as those that generate
//! a title or compact a conversation, and the cost of a session.
//!
//! The sums of an account are compared with the calls of the sessions it covers: including their sub-agents, the
//! sessions of the same process, and those they were forked from. The excess of the sums is counted once, as an
//! additional report of the session in which they were reported. Their cost is spread over the calls. Sums below the
//! calls are ignored: the session continued after them, or they cover only part of it.

use std::collections::{BTreeMap, HashMap, HashSet};

use events::{AccountScope, Provider, SessionId, Timestamp};
use projections::Usage;
use store::{AccountedUse, CallFilter, ModelCall, ReadError, Reader, SessionFacts, SessionRow};

use crate::report::{Cost, PriceCache};

/// The additions of accounts to the calls.
#[derive(Debug, Default)]
pub(crate) struct Accounted {
    rates: HashMap<SessionRow, Vec<(String, Rate)>>,
    /// The excess of the sums over the calls.
    pub(crate) beside: Vec<BesideCalls>,
}

/// Usage of a session outside its known calls.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BesideCalls {
    pub(crate) session: SessionRow,
    pub(crate) at: Timestamp,
    pub(crate) model: String,
    pub(crate) usage: Usage,
    pub(crate) cost: Cost,
}

/// How to derive the cost of a call from the cost in an account.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rate {
    /// A factor on the cost according to the price table.
    OfPrice(f64),
    /// Billionths of a US dollar per unit of weight, for models without a price.
    OfWeight(f64),
}

/// The calls of a model that an account covers.
#[derive(Debug, Default)]
struct Known {
    usage: Usage,
    /// Billionths of a US dollar.
    cost: u64,
    unpriced: bool,
    /// The names that sessions use for the model.
    names: HashSet<(SessionRow, String)>,
}

/// The sums of a model.
#[derive(Debug)]
struct Sums<'a> {
    last: &'a AccountedUse,
    usage: Usage,
    cost: Option<u64>,
}

impl Accounted {
    /// Compares all accounts with the calls they cover.
    pub(crate) fn read(reader: &Reader, prices: &mut PriceCache<'_>) -> Result<Self, ReadError> {
        let accounts = reader.accounts()?;
        let mut accounted = Self::default();
        if accounts.is_empty() {
            return Ok(accounted);
        }
        let facts = reader.session_facts(CallFilter::ALL.since)?;
        let relatives = Relatives::of(&facts);
        for group in groups(&accounts, &relatives) {
            let mut known: BTreeMap<String, Known> = BTreeMap::new();
            for row in relatives.with(&group) {
                let filter = CallFilter { session: Some(row), ..CallFilter::ALL };
                reader.each_call(&filter, |call| add(&mut known, call, prices.cost(call)))?;
            }
            let told = group.iter().filter_map(|row| accounts.get(row)).flatten();
            accounted.compare(&sums(told), &known, prices);
        }
        Ok(accounted)
    }

    fn compare(
        &mut self,
        sums: &BTreeMap<String, Sums<'_>>,
        known: &BTreeMap<String, Known>,
        prices: &mut PriceCache<'_>,
    ) {
        // A model that occurs only in the calls may have another name in the account.
        let is_ambiguous =
            known.iter().any(|(name, known)| known.usage != Usage::default() && !sums.contains_key(name));
        let none = Known::default();
        for (name, sums) in sums {
            let calls = known.get(name);
            let Some(usage) = more(&sums.usage, &calls.unwrap_or(&none).usage) else { continue };
            if calls.is_none() && is_ambiguous {
                continue;
            }
            let calls = calls.unwrap_or(&none);
            let last = sums.last;
            let listed = prices.cost_of(&last.model, last.at, &usage);
            let rate = sums.cost.and_then(|cost| rate(cost, calls, &usage, listed));
            let cost = rate.map_or(listed, |rate| rate.applied(listed, &usage));
            if usage != Usage::default() {
                let (session, at, model) = (last.session, last.at, last.model.clone());
                self.beside.push(BesideCalls { session, at, model, usage, cost });
            }
            if let Some(rate) = rate {
                for (row, model) in &calls.names {
                    self.rates.entry(*row).or_default().push((model.clone(), rate));
                }
            }
        }
    }

    /// The cost of a call, according to the account if it contains one.
    pub(crate) fn cost(&self, call: &ModelCall<'_>, cost: Cost) -> Cost {
        let Some(rates) = self.rates.get(&call.session) else { return cost };
        let rate = rates.iter().find(|(model, _)| model == call.model);
        rate.map_or(cost, |(_, rate)| rate.applied(cost, &call.usage))
    }
}

impl Rate {
    fn applied(self, cost: Cost, usage: &Usage) -> Cost {
        Cost::Reported(match (self, cost) {
            (Self::OfPrice(factor), Cost::Reported(nano) | Cost::Computed(nano)) => nano_usd(float(nano) * factor),
            (Self::OfPrice(_), Cost::Unknown) => return Cost::Unknown,
            (Self::OfWeight(per_weight), _) => nano_usd(weight(usage) * per_weight),
        })
    }
}

/// The rate at which the calls and the usage outside of them add up to the cost in the account.
fn rate(cost: u64, calls: &Known, beside: &Usage, listed: Cost) -> Option<Rate> {
    let beside_cost = match listed {
        Cost::Reported(nano) | Cost::Computed(nano) => Some(nano),
        Cost::Unknown => None,
    };
    match beside_cost.filter(|_| !calls.unpriced) {
        Some(beside_cost) => {
            let listed = calls.cost.saturating_add(beside_cost);
            (listed > 0).then(|| Rate::OfPrice(float(cost) / float(listed)))
        }
        // If no call has a known cost, the cost is spread by weight; if only some have, there is no rate.
        None => {
            let weight = weight(&calls.usage) + weight(beside);
            (calls.cost == 0 && weight > 0.0).then(|| Rate::OfWeight(float(cost) / weight))
        }
    }
}

/// Tokens weighted by their usual cost relative to an input token.
fn weight(usage: &Usage) -> f64 {
    float(usage.input_tokens)
        + 5.0 * float(usage.output_tokens)
        + 0.1 * float(usage.cache_read_tokens)
        + 1.25 * float(usage.cache_write_tokens)
}

#[expect(clippy::cast_precision_loss, reason = "a share need not be exact to a billionth")]
const fn float(n: u64) -> f64 {
    n as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is too much is cut, and none is negative"
)]
fn nano_usd(nano: f64) -> u64 {
    nano.round() as u64
}

/// Groups the sessions whose accounts cover the same calls.
fn groups(accounts: &BTreeMap<SessionRow, Vec<AccountedUse>>, relatives: &Relatives<'_>) -> Vec<Vec<SessionRow>> {
    let mut groups: Vec<Vec<SessionRow>> = Vec::new();
    let mut of_process: HashMap<i64, usize> = HashMap::new();
    for (row, told) in accounts.iter().filter(|(row, _)| relatives.sessions.contains_key(row)) {
        let of_session = told.iter().filter(|sums| sums.scope == AccountScope::Session && sums.began_at != 0);
        let began: Vec<i64> = of_session.map(|sums| sums.began_at).collect();
        let mut own = vec![*row];
        let shared: HashSet<usize> = began.iter().filter_map(|at| of_process.get(at).copied()).collect();
        let index = shared.iter().min().copied().unwrap_or(groups.len());
        for other in shared {
            own.append(&mut groups[other]);
        }
        match groups.get_mut(index) {
            Some(group) => *group = own,
            None => groups.push(own),
        }
        for at in of_process.values_mut().filter(|at| groups.get(**at).is_some_and(Vec::is_empty)) {
            *at = index;
        }
        of_process.extend(began.into_iter().map(|at| (at, index)));
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// The relations between sessions.
struct Relatives<'a> {
    sessions: HashMap<SessionRow, &'a SessionFacts>,
    children: HashMap<SessionId, Vec<SessionRow>>,
    names: HashMap<(Provider, &'a str), SessionRow>,
}

impl<'a> Relatives<'a> {
    fn of(facts: &'a [SessionFacts]) -> Self {
        let mut children: HashMap<SessionId, Vec<SessionRow>> = HashMap::new();
        for session in facts {
            if let Some(parent) = session.parent {
                children.entry(parent).or_default().push(session.row);
            }
        }
        Self {
            sessions: facts.iter().map(|session| (session.row, session)).collect(),
            children,
            names: facts.iter().map(|s| ((s.provider, s.provider_session_id.as_str()), s.row)).collect(),
        }
    }

    /// The sessions, those they were forked from, and all their sub-agents.
    fn with(&self, group: &[SessionRow]) -> HashSet<SessionRow> {
        let mut found: HashSet<SessionRow> = group.iter().copied().collect();
        let mut open: Vec<SessionRow> = group.to_vec();
        while let Some(session) = open.pop().and_then(|row| self.sessions.get(&row)) {
            let children = self.children.get(&session.id).into_iter().flatten();
            let origin = session.forked_from.as_deref().and_then(|name| self.names.get(&(session.provider, name)));
            open.extend(children.chain(origin).filter(|row| found.insert(**row)));
        }
        found
    }
}

fn add(known: &mut BTreeMap<String, Known>, call: &ModelCall<'_>, cost: Cost) {
    let known = known.entry(prices::plain_name(call.model)).or_default();
    known.usage.add_all(&call.usage);
    match cost {
        Cost::Reported(nano) | Cost::Computed(nano) => known.cost = known.cost.saturating_add(nano),
        Cost::Unknown => known.unpriced = true,
    }
    if !known.names.iter().any(|(row, model)| *row == call.session && model == call.model) {
        known.names.insert((call.session, call.model.to_owned()));
    }
}

/// The highest sums by model: none of them covers more calls than were made.
fn sums<'a>(told: impl Iterator<Item = &'a AccountedUse>) -> BTreeMap<String, Sums<'a>> {
    let mut sums: BTreeMap<String, Sums<'a>> = BTreeMap::new();
    for told in told {
        let first = || Sums { last: told, usage: Usage::default(), cost: None };
        let sum = sums.entry(prices::plain_name(&told.model)).or_insert_with(first);
        if (told.at, told.session) >= (sum.last.at, sum.last.session) {
            sum.last = told;
        }
        sum.usage = each(&sum.usage, &told.usage, u64::max);
        sum.cost = sum.cost.max(told.cost_nano_usd);
    }
    sums
}

/// The excess of the sums over the calls; `None` if the sums are lower in any respect.
fn more(sums: &Usage, calls: &Usage) -> Option<Usage> {
    let kinds =
        |usage: &Usage| [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens];
    let covers = kinds(sums).iter().zip(kinds(calls)).all(|(sum, call)| *sum >= call);
    covers.then(|| each(sums, calls, u64::saturating_sub))
}

fn each(a: &Usage, b: &Usage, of: impl Fn(u64, u64) -> u64) -> Usage {
    Usage {
        input_tokens: of(a.input_tokens, b.input_tokens),
        output_tokens: of(a.output_tokens, b.output_tokens),
        cache_read_tokens: of(a.cache_read_tokens, b.cache_read_tokens),
        cache_write_tokens: of(a.cache_write_tokens, b.cache_write_tokens),
        cache_write_hour_tokens: of(a.cache_write_hour_tokens, b.cache_write_hour_tokens),
        thinking_tokens: of(a.thinking_tokens, b.thinking_tokens),
    }
}

#[cfg(test)]
mod tests;
