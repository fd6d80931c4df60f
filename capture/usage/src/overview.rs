//! The activity of all sessions over a period, for charts.

use std::collections::{BTreeMap, HashMap};

use api::overview::{
    ApprovalWaits, DayFindings, DaySplit, Lane, LaneMark, LaneMarkKind, LaneSegment, Overview, ToolWaits, WaitBucket,
};
use events::{
    ApprovalState, Confidence, DecidedBy, Event, Finding, Kind, Payload, Reason, SessionId, State, Timestamp,
};
use jiff::tz::TimeZone;
use projections::Approval;
use store::{Entity, EntityFilter, ReadError, Reader};

/// A longer wait for the user means that the user is away.
const AWAY_MS: i64 = 30 * 60_000;
/// Number of rows read at a time.
const PAGE: usize = 1_000;
/// Maximum number of status changes examined per session; only the last ones count.
const CHANGES: usize = 5_000;
/// Minimum number of lanes kept while the latest ones are selected.
const LANES: usize = 512;
/// The upper ends of the wait buckets, seconds: each about three times the previous one.
const BUCKETS: [u32; 10] = [1, 3, 10, 30, 60, 180, 600, 1_800, 3_600, 14_400];

/// Selects the period.
#[derive(Debug, Clone)]
pub struct OverviewRequest {
    /// Beginning of the period.
    pub since: Timestamp,
    /// End of the period.
    pub until: Timestamp,
    /// The time zone of the days.
    pub zone: TimeZone,
    /// Maximum number of lanes. The most recently active sessions get one.
    pub limit: usize,
}

/// Computes the overview of a period.
///
/// # Errors
/// When the store cannot be read.
pub fn overview(reader: &Reader, request: &OverviewRequest) -> Result<Overview, ReadError> {
    let &OverviewRequest { since, until, ref zone, limit } = request;
    let facts = reader.session_facts(since)?;
    // A sub-agent's work is part of its parent's turn.
    let tops: Vec<_> = facts.iter().filter(|session| session.parent.is_none()).collect();
    let approvals: Vec<Approval> = opened_since(reader, since, |approval: &Approval| approval.opened_at)?;
    let approvals: Vec<Approval> = approvals.into_iter().filter(|approval| approval.opened_at < until).collect();
    let findings: Vec<Finding> = opened_since(reader, since, |finding: &Finding| finding.first_at)?;
    let findings: Vec<Finding> = findings.into_iter().filter(|finding| finding.first_at < until).collect();

    let mut marks: HashMap<SessionId, Vec<LaneMark>> = HashMap::new();
    for Approval { session_id, opened_at, id, .. } in &approvals {
        let mark = LaneMark { at: *opened_at, kind: LaneMarkKind::Approval, approval: Some(id.clone()), finding: None };
        marks.entry(*session_id).or_default().push(mark);
    }
    for Finding { session_id, first_at, id, .. } in &findings {
        let mark = LaneMark { at: *first_at, kind: LaneMarkKind::Finding, approval: None, finding: Some(id.clone()) };
        marks.entry(*session_id).or_default().push(mark);
    }
    let mut days = Days::new(zone.clone());
    let mut lanes = Vec::new();
    let mut more_lanes = 0;
    for session in tops {
        let changes = reader.last_events(session.id, CHANGES, &[Kind::StatusChanged])?;
        let stretches = stretches(&changes, since, until);
        let mut marks = marks.remove(&session.id).unwrap_or_default();
        if stretches.iter().all(|stretch| is_rest(stretch.state)) && marks.is_empty() {
            continue;
        }
        let tools = reader.tool_times(session.id, since, until)?;
        with_tools(&stretches, &tools).iter().for_each(|stretch| days.add(stretch));
        marks.sort_by_key(|mark| mark.at);
        lanes.push(Lane {
            session_id: session.id,
            provider: session.provider,
            title: session.title.clone(),
            segments: segments(&stretches),
            marks,
        });
        if lanes.len() >= limit.saturating_mul(2).max(LANES) {
            more_lanes += latest(&mut lanes, limit, until);
        }
    }
    more_lanes += latest(&mut lanes, limit, until);
    Ok(Overview {
        as_of: reader.position()?,
        since,
        until,
        days: days.split(since, until),
        approval_waits: waits(&approvals),
        findings: findings_by_day(&findings, zone),
        lanes,
        more_lanes,
    })
}

/// Keeps at most `limit` lanes, those active last: first those of sessions that are active at the end, then the others,
/// each ordered by latest activity. Returns the number of dropped lanes.
fn latest(lanes: &mut Vec<Lane>, limit: usize, until: Timestamp) -> u64 {
    lanes.sort_by_cached_key(|lane| (std::cmp::Reverse(activity(lane, until)), lane.session_id));
    let dropped = lanes.len().saturating_sub(limit);
    lanes.truncate(limit);
    dropped as u64
}

/// Whether a session is active at the end, and the time of its last activity: the last change of an active session, or
/// the end of another session's activity.
fn activity(lane: &Lane, until: Timestamp) -> (bool, Option<Timestamp>) {
    let is_live = lane.segments.last().is_some_and(|last| last.until == until && !is_rest(last.state));
    let active = lane.segments.iter().rev().find(|segment| !is_rest(segment.state));
    let segment = active.map(|segment| if is_live { segment.from } else { segment.until });
    let mark = lane.marks.iter().map(|mark| mark.at).max();
    (is_live, segment.max(mark))
}

/// Whether a state means inactivity.
fn is_rest(state: State) -> bool {
    match state {
        State::Idle | State::Exited | State::Unknown => true,
        State::Running | State::Waiting | State::WaitingApproval => false,
    }
}

/// The entities that began since a time, newest first.
fn opened_since<T: Entity + Clone>(
    reader: &Reader,
    since: Timestamp,
    began_at: impl Fn(&T) -> Timestamp,
) -> Result<Vec<T>, ReadError>
where
    T::Id: Clone,
{
    let mut all: Vec<T> = Vec::new();
    let mut filter = EntityFilter { states: None, session: None, behind: None, limit: PAGE };
    loop {
        let page: Vec<T> = reader.entities(&filter)?;
        let last = page.last().map(|item| (began_at(item), item.id().clone()));
        let more = page.len() == PAGE && last.as_ref().is_some_and(|(at, _)| *at >= since);
        all.extend(page.into_iter().filter(|item| began_at(item) >= since));
        if !more {
            return Ok(all);
        }
        filter.behind = last;
    }
}

/// A state with its reason over a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    state: State,
    reason: Option<Reason>,
    confidence: Confidence,
    from: Timestamp,
    until: Timestamp,
    /// When the state began, which may be before the requested period.
    since: Timestamp,
}

/// The states of a session between two times, from its status changes.
fn stretches(changes: &[Event], since: Timestamp, until: Timestamp) -> Vec<Stretch> {
    let mut sorted: Vec<(Timestamp, State, Option<Reason>, Confidence)> = changes
        .iter()
        .filter_map(|event| {
            if let Payload::StatusChanged(change) = &event.payload {
                Some((event.created_at, change.to, change.reason, event.confidence))
            } else {
                None
            }
        })
        .collect();
    // By the time of the evidence: a change reported later may have happened earlier.
    sorted.sort_by_key(|(at, ..)| *at);
    let ends = sorted.iter().skip(1).map(|(at, ..)| *at).chain([until]);
    let mut began: Option<(State, Timestamp)> = None;
    let mut stretches = Vec::new();
    for ((at, state, reason, confidence), end) in sorted.iter().copied().zip(ends) {
        let state_since = began.filter(|(before, _)| *before == state).map_or(at, |(_, since)| since);
        began = Some((state, state_since));
        let (from, end) = (at.max(since), end.min(until));
        if from < end {
            stretches.push(Stretch { state, reason, confidence, from, until: end, since: state_since });
        }
    }
    stretches
}

/// Splits the stretches in which an agent ran by whether its tools ran. Few agents report running tools, but the calls
/// show it. A call that did not return counts until the agent stopped running.
fn with_tools(stretches: &[Stretch], tools: &[(Timestamp, Option<Timestamp>)]) -> Vec<Stretch> {
    let mut tools: Vec<_> = tools.to_vec();
    tools.sort_unstable();
    let mut divided = Vec::new();
    for stretch in stretches {
        if stretch.state != State::Running || stretch.reason == Some(Reason::Tool) {
            divided.push(*stretch);
            continue;
        }
        let mut at = stretch.from;
        for &(called, returned) in &tools {
            let returned = match returned {
                Some(returned) => returned.min(stretch.until),
                None if called >= stretch.from => stretch.until,
                None => continue,
            };
            let began = called.max(at);
            if began < returned {
                divided.push(Stretch { from: at, until: began, ..*stretch });
                divided.push(Stretch { from: began, until: returned, reason: Some(Reason::Tool), ..*stretch });
                at = returned;
            }
        }
        divided.push(Stretch { from: at, ..*stretch });
    }
    divided.retain(|stretch| stretch.from < stretch.until);
    divided
}

/// Converts stretches to segments: one as long as state and confidence stay the same.
fn segments(stretches: &[Stretch]) -> Vec<LaneSegment> {
    let mut segments: Vec<LaneSegment> = Vec::new();
    for &Stretch { state, confidence, from, until, .. } in stretches {
        match segments.last_mut() {
            Some(last) if (last.state, last.confidence, last.until) == (state, confidence, from) => last.until = until,
            _ => segments.push(LaneSegment { state, from, until, confidence }),
        }
    }
    segments
}

/// How the time of a stretch was spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spent {
    Agent,
    Tool,
    Waiting,
}

fn spent(stretch: &Stretch) -> Option<Spent> {
    match (stretch.state, stretch.reason) {
        (State::Running, Some(Reason::Tool)) => Some(Spent::Tool),
        (State::Running, _) => Some(Spent::Agent),
        (State::Waiting | State::WaitingApproval, _) => Some(Spent::Waiting),
        (State::Idle | State::Exited | State::Unknown, _) => None,
    }
}

/// Sums per day, ms.
struct Days {
    zone: TimeZone,
    days: BTreeMap<String, [i64; 3]>,
}

impl Days {
    fn new(zone: TimeZone) -> Self {
        Self { zone, days: BTreeMap::new() }
    }

    fn add(&mut self, stretch: &Stretch) {
        let Some(spent) = spent(stretch) else { return };
        let mut until = stretch.until;
        if spent == Spent::Waiting {
            until = until.min(stretch.since.plus_ms(AWAY_MS));
        }
        let mut from = stretch.from;
        while from < until {
            let Some((day, end)) = day_of(from, &self.zone) else { return };
            let part = until.min(end);
            self.days.entry(day).or_default()[spent as usize] += part.since_ms(from);
            from = part;
        }
    }

    /// All days of a period, including those without activity.
    fn split(mut self, since: Timestamp, until: Timestamp) -> Vec<DaySplit> {
        let mut at = since;
        while at < until {
            let Some((day, end)) = day_of(at, &self.zone) else { break };
            self.days.entry(day).or_default();
            at = end;
        }
        let seconds = |ms: i64| u64::try_from(ms / 1_000).unwrap_or_default();
        let split = |(day, [agent, tool, waiting]): (String, [i64; 3])| DaySplit {
            day,
            agent_s: seconds(agent),
            tool_s: seconds(tool),
            waiting_s: seconds(waiting),
        };
        self.days.into_iter().map(split).collect()
    }
}

/// The day of a time, and the end of that day.
fn day_of(at: Timestamp, zone: &TimeZone) -> Option<(String, Timestamp)> {
    let date = jiff::Timestamp::from_millisecond(at.as_millisecond()).ok()?.to_zoned(zone.clone()).date();
    let end = date.tomorrow().ok()?.to_zoned(zone.clone()).ok()?.timestamp().as_millisecond();
    Some((date.to_string(), Timestamp::from_millisecond(end)))
}

fn findings_by_day(findings: &[Finding], zone: &TimeZone) -> Vec<DayFindings> {
    let mut counts: BTreeMap<(String, &'static str), DayFindings> = BTreeMap::new();
    for Finding { kind, first_at, .. } in findings {
        let Some((day, _)) = day_of(*first_at, zone) else { continue };
        let row = counts.entry((day.clone(), kind.as_str())).or_insert(DayFindings { day, kind: *kind, count: 0 });
        row.count += 1;
    }
    counts.into_values().collect()
}

/// Who closed a request.
enum EndedBy {
    Person,
    Rule,
    Nobody,
}

fn ended_by(approval: &Approval) -> EndedBy {
    match (approval.by, approval.state) {
        (Some(DecidedBy::Policy | DecidedBy::Grant), _) => EndedBy::Rule,
        (Some(DecidedBy::Person), _) => EndedBy::Person,
        (None, ApprovalState::Expired | ApprovalState::Withdrawn) => EndedBy::Nobody,
        // Answered in the agent's own dialog.
        (None, _) => EndedBy::Person,
    }
}

fn waits(approvals: &[Approval]) -> ApprovalWaits {
    let ends = BUCKETS.iter().copied().map(Some).chain([None]);
    let mut buckets: Vec<WaitBucket> = ends.map(|up_to_s| WaitBucket { up_to_s, ..WaitBucket::default() }).collect();
    let mut all = Vec::new();
    let mut by_tool: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for approval in approvals {
        let Some(waited_ms) = approval.waited_ms else { continue };
        let fits = |bucket: &&mut WaitBucket| bucket.up_to_s.is_none_or(|up_to| waited_ms <= u64::from(up_to) * 1_000);
        let Some(bucket) = buckets.iter_mut().find(fits) else { continue };
        match ended_by(approval) {
            EndedBy::Person => {
                bucket.person += 1;
                all.push(waited_ms);
                by_tool.entry(approval.tool.as_deref().unwrap_or("(unknown)")).or_default().push(waited_ms);
            }
            EndedBy::Rule => bucket.rule += 1,
            EndedBy::Nobody => bucket.expired += 1,
        }
    }
    let seconds = |ms: u64| ms as f64 / 1_000.0;
    let mut tools: Vec<ToolWaits> = by_tool
        .into_iter()
        .map(|(tool, mut times)| ToolWaits {
            tool: tool.to_owned(),
            count: times.len() as u64,
            p50_s: seconds(crate::quality::rank(&mut times, 50)),
            p90_s: seconds(crate::quality::rank(&mut times, 90)),
        })
        .collect();
    tools.sort_by_key(|tool| std::cmp::Reverse(tool.count));
    let mut percentile = |percent| (!all.is_empty()).then(|| seconds(crate::quality::rank(&mut all, percent)));
    ApprovalWaits { p50_s: percentile(50), p90_s: percentile(90), buckets, by_tool: tools }
}

#[cfg(test)]
mod tests;
