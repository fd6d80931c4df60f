use events::{QuotaReported, UsageReported};
use store::{UsageEntry, Writer};

use super::*;

pub(crate) const OPUS: &str = "claude-opus-5-5";

/// A store with sessions and calls.
pub(crate) struct World {
    _dir: tempfile::TempDir,
    writer: Writer,
    position: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let writer = Writer::open(dir.path()).unwrap();
        Self { _dir: dir, writer, position: 0 }
    }

    pub(crate) fn session(
        &mut self,
        provider: Provider,
        name: &str,
        directory: &str,
        parent: Option<SessionId>,
    ) -> SessionId {
        let id = SessionId::mint(Timestamp::from_millisecond(5), provider, name);
        let parent = parent.map_or_else(|| "null".to_owned(), |id| format!("\"{id}\""));
        let view = format!(r#"{{"title":"{name}","began_in":"{directory}","parent_session_id":{parent}}}"#);
        self.put(id, provider, name, &view);
        id
    }

    /// A session that continues another one.
    pub(crate) fn fork(&mut self, provider: Provider, name: &str, from: &str) -> SessionId {
        let id = SessionId::mint(Timestamp::from_millisecond(5), provider, name);
        self.put(id, provider, name, &format!(r#"{{"title":"{name}","forked_from":"{from}"}}"#));
        id
    }

    fn put(&mut self, id: SessionId, provider: Provider, name: &str, view: &str) {
        self.writer.begin().unwrap();
        let row = self.writer.add_session(id, provider, name).unwrap();
        self.writer.put_session(row, at("2030-01-01T00:00:00Z"), view, "{}").unwrap();
        self.writer.commit().unwrap();
    }

    pub(crate) fn call(&mut self, id: SessionId, time: &str, usage: &UsageReported) {
        let session = self.writer.sessions().unwrap().into_iter().find(|session| session.id == id).unwrap();
        self.position += 1;
        let (provider, position, at) = (session.provider, self.position, at(time));
        self.writer.begin().unwrap();
        self.writer.add_usage(session.row, &UsageEntry { provider, position, at, usage, is_first: true }).unwrap();
        self.writer.commit().unwrap();
    }

    pub(crate) fn report(&self, request: &UsageRequest) -> UsageReport {
        report(&self.writer.reader(), request, &Prices::shipped().unwrap()).unwrap()
    }
}

pub(crate) fn at(time: &str) -> Timestamp {
    Timestamp::parse(time).unwrap()
}

pub(crate) fn by(by: UsageBy) -> UsageRequest {
    UsageRequest { by, of: SessionPeriod::default(), model: None, zone: TimeZone::UTC, limit: 100 }
}

/// A request for the models of a period.
pub(crate) fn of(of: SessionPeriod) -> UsageRequest {
    UsageRequest { of, ..by(UsageBy::Model) }
}

pub(crate) fn spent(model: &str, output_tokens: u64) -> UsageReported {
    UsageReported { model: Some(model.into()), output_tokens, ..UsageReported::default() }
}

/// Names of rows with their output tokens and cost.
pub(crate) fn rows(report: &UsageReport) -> Vec<(String, u64, Option<f64>)> {
    let name = |row: &UsageRow| {
        let provider = row.provider.map(|provider| provider.to_string());
        let names = [row.day.clone(), row.title.clone(), row.model.clone(), row.project.clone(), provider];
        names.into_iter().flatten().next().unwrap_or_default()
    };
    report.usage.iter().map(|row| (name(row), row.sums.tokens.output_tokens, row.sums.cost_usd)).collect()
}

fn world() -> (World, SessionId, SessionId) {
    let mut world = World::new();
    let a = world.session(Provider::Claude, "a", "/src/one", None);
    let child = world.session(Provider::Claude, "child", "/src/one", Some(a));
    let b = world.session(Provider::Codex, "b", "/src/two", None);
    world.call(a, "2026-11-01T23:30:00Z", &spent(OPUS, 1_000_000));
    world.call(a, "2026-11-02T12:00:00Z", &spent(OPUS, 500_000));
    world.call(child, "2026-11-02T12:01:00Z", &spent("claude-haiku-4-5-20251001", 1_000_000));
    world.call(b, "2026-11-03T00:00:00Z", &spent("mystery", 7));
    (world, a, b)
}

#[test]
fn a_report_has_rows_for_the_requested_grouping() {
    let (world, ..) = world();
    let of = |kind| rows(&world.report(&by(kind)));
    let row = |name: &str, tokens, cost| (name.to_owned(), tokens, cost);
    assert_eq!(
        of(UsageBy::Day),
        [
            row("2026-11-01", 1_000_000, Some(20.0)),
            row("2026-11-02", 1_500_000, Some(15.0)),
            row("2026-11-03", 7, None)
        ]
    );
    assert_eq!(of(UsageBy::Project), [row("/src/one", 2_500_000, Some(35.0)), row("/src/two", 7, None)]);
    assert_eq!(of(UsageBy::Agent), [row("claude", 2_500_000, Some(35.0)), row("codex", 7, None)]);
    assert_eq!(
        of(UsageBy::Model),
        [
            row(OPUS, 1_500_000, Some(30.0)),
            row("claude-haiku-4-5-20251001", 1_000_000, Some(5.0)),
            row("mystery", 7, None)
        ]
    );
    let report = world.report(&by(UsageBy::Session));
    assert_eq!(rows(&report), [row("a", 1_500_000, Some(30.0)), row("child", 1_000_000, Some(5.0)), row("b", 7, None)]);
    let below = report.usage[0].subagents.unwrap();
    assert_eq!((below.tokens.output_tokens, below.cost_usd, below.calls), (1_000_000, Some(5.0), 1));
    assert_eq!((report.usage[1].subagents, report.usage[1].parent_session_id), (None, report.usage[0].session_id));
    // A sub-agent counts once in the total.
    assert_eq!((report.total.tokens.output_tokens, report.total.cost_usd), (2_500_007, Some(35.0)));
    assert_eq!(
        (report.total.calls, report.total.unpriced_calls, &*report.unpriced_models),
        (4, 1, &["mystery".into()][..])
    );
}

#[test]
fn calls_are_assigned_to_days_of_the_requested_time_zone() {
    let (world, ..) = world();
    let zone = |hours| UsageRequest { zone: TimeZone::fixed(jiff::tz::offset(hours)), ..by(UsageBy::Day) };
    let days = |hours| -> Vec<(String, u64)> {
        rows(&world.report(&zone(hours))).into_iter().map(|(day, tokens, _)| (day, tokens)).collect()
    };
    assert_eq!(days(1), [("2026-11-02".into(), 2_500_000), ("2026-11-03".into(), 7)]);
    assert_eq!(days(-1), [("2026-11-01".into(), 1_000_000), ("2026-11-02".into(), 1_500_007)]);
}

#[test]
fn weeks_begin_on_monday_and_months_on_their_first_day() {
    let mut world = World::new();
    let id = world.session(Provider::Claude, "a", "/src/one", None);
    // Sunday, Monday, Sunday, and the first of the next month, which is a Tuesday.
    for time in ["2026-11-22T23:59:59Z", "2026-11-23T00:00:00Z", "2026-11-29T12:00:00Z", "2026-12-01T00:00:00Z"] {
        world.call(id, time, &spent(OPUS, 1));
    }
    let periods = |kind| -> Vec<(String, u64)> {
        let report = world.report(&by(kind));
        report.usage.into_iter().map(|row| (row.period.unwrap(), row.sums.tokens.output_tokens)).collect()
    };
    let row = |name: &str, tokens| (name.to_owned(), tokens);
    assert_eq!(periods(UsageBy::Week), [row("2026-11-16", 1), row("2026-11-23", 2), row("2026-11-30", 1)]);
    assert_eq!(periods(UsageBy::Month), [row("2026-11", 3), row("2026-12", 1)]);
    let newest = world.report(&UsageRequest { limit: 1, ..by(UsageBy::Month) });
    assert_eq!((newest.usage[0].period.as_deref(), newest.more_rows), (Some("2026-12"), 1));
}

#[test]
fn blocks_begin_with_the_hour_of_their_first_call_and_last_five_hours() {
    let mut world = World::new();
    let [a, b] = ["a", "b"].map(|name| world.session(Provider::Claude, name, "/src/one", None));
    for (id, time) in [
        (a, "2026-11-23T08:40:00Z"),
        // Another session, in between.
        (b, "2026-11-23T10:00:00Z"),
        (a, "2026-11-23T12:59:59Z"),
        // Five hours after 08:00, not after 08:40.
        (a, "2026-11-23T13:00:00Z"),
        (a, "2026-11-23T13:05:00Z"),
        // More than five hours after the previous call.
        (b, "2026-11-23T23:30:00Z"),
    ] {
        world.call(id, time, &spent(OPUS, 1));
    }
    let report = world.report(&by(UsageBy::Block));
    let blocks: Vec<(&str, u64, u64)> = report
        .usage
        .iter()
        .map(|row| (row.period.as_deref().unwrap(), row.sums.tokens.output_tokens, row.sums.calls))
        .collect();
    assert_eq!(
        blocks,
        [("2026-11-23T08:00:00.000Z", 3, 3), ("2026-11-23T13:00:00.000Z", 2, 2), ("2026-11-23T23:00:00.000Z", 1, 1)]
    );
    assert_eq!(report.total.calls, 6);
}

#[test]
fn sessions_are_sorted_by_cost_including_subagents_then_by_tokens() {
    let mut world = World::new();
    let cheap = world.session(Provider::Claude, "cheap", "/src/one", None);
    let child = world.session(Provider::Claude, "child", "/src/one", Some(cheap));
    let dear = world.session(Provider::Claude, "dear", "/src/one", None);
    let unpriced = world.session(Provider::Codex, "unpriced", "/src/one", None);
    world.call(cheap, "2026-11-23T08:00:00Z", &spent(OPUS, 1_000));
    world.call(child, "2026-11-23T08:00:00Z", &spent(OPUS, 9_000));
    world.call(dear, "2026-11-23T08:00:00Z", &spent(OPUS, 5_000));
    world.call(unpriced, "2026-11-23T08:00:00Z", &spent("mystery", 99_000));
    let titles: Vec<String> =
        world.report(&by(UsageBy::Session)).usage.into_iter().filter_map(|row| row.title).collect();
    assert_eq!(titles, ["cheap", "child", "dear", "unpriced"], "cost with sub-agents, then tokens");
}

#[test]
fn a_report_is_limited_to_a_period_sessions_agents_and_projects() {
    let (world, a, b) = world();
    let total = |request: UsageRequest| world.report(&request).total.tokens.output_tokens;
    let all = SessionPeriod::default();
    let noon = Some(at("2026-11-02T12:00:00Z"));
    assert_eq!(total(of(SessionPeriod { since: noon, ..all.clone() })), 1_500_007);
    assert_eq!(total(of(SessionPeriod { until: noon, ..all.clone() })), 1_000_000);
    assert_eq!(total(of(SessionPeriod { session: Some(a), ..all.clone() })), 2_500_000, "with its sub-agent");
    assert_eq!(total(of(SessionPeriod { session: Some(b), ..all.clone() })), 7);
    assert_eq!(total(of(SessionPeriod { agents: vec![Provider::Codex], ..all.clone() })), 7);
    let report = world.report(&of(SessionPeriod { since: noon, ..all.clone() }));
    assert_eq!((report.since, report.until), (noon, None));
    for (project, tokens) in [("one", 2_500_000), ("/src", 2_500_007), ("/src/two", 7), ("src", 0), ("/sr", 0)] {
        assert_eq!(total(of(SessionPeriod { project: Some(project.into()), ..all.clone() })), tokens, "{project}");
    }
    let days = world.report(&UsageRequest { limit: 1, ..by(UsageBy::Day) });
    assert_eq!((rows(&days)[0].0.as_str(), days.more_rows), ("2026-11-03", 2), "the last days");
    let one = world.report(&UsageRequest { model: Some("mystery".into()), ..by(UsageBy::Day) });
    assert_eq!(rows(&one), [("2026-11-03".to_owned(), 7, None)], "the days of one model");
    assert_eq!((one.total.calls, one.total.tokens.output_tokens), (1, 7));
    let models = world.report(&UsageRequest { limit: 1, ..of(all) });
    assert_eq!((rows(&models)[0].0.as_str(), models.more_rows), (OPUS, 2), "what cost most");
}

#[test]
fn a_reported_cost_takes_precedence_over_the_price_table() {
    let mut world = World::new();
    let id = world.session(Provider::Claude, "s", "/p", None);
    world.call(id, "2026-11-01T00:00:00Z", &UsageReported { cost_nano_usd: Some(250_000_000), ..spent("mystery", 9) });
    world.call(id, "2026-11-01T00:00:01Z", &UsageReported { cost_nano_usd: Some(0), ..spent(OPUS, 1_000_000) });
    let total = world.report(&by(UsageBy::Day)).total;
    assert_eq!((total.cost_usd, total.reported_cost_usd, total.unpriced_calls), (Some(0.25), 0.25, 0));
    world.call(id, "2026-11-01T00:00:02Z", &spent(OPUS, 100_000));
    let total = world.report(&by(UsageBy::Day)).total;
    assert_eq!((total.cost_usd, total.reported_cost_usd), (Some(2.25), 0.25));
}

#[test]
fn the_cache_hit_rate_is_the_cached_share_of_the_input() {
    let mut world = World::new();
    let id = world.session(Provider::Claude, "s", "/p", None);
    assert_eq!(world.report(&by(UsageBy::Session)).total.cache_hit_rate, None);
    let usage = UsageReported {
        input_tokens: 10,
        cache_read_tokens: 75,
        cache_write_tokens: 15,
        cache_write_hour_tokens: 5,
        ..spent(OPUS, 1)
    };
    world.call(id, "2026-11-01T00:00:00Z", &usage);
    let row = world.report(&by(UsageBy::Session)).usage.remove(0);
    assert_eq!((row.sums.cache_hit_rate, row.sums.tokens.cache_write_hour_tokens), (Some(0.75), 5));
}

#[test]
fn a_report_includes_the_quotas_of_the_selected_agents() {
    let mut world = World::new();
    let id = world.session(Provider::Codex, "s", "/p", None);
    let quota = QuotaReported { name: "primary".into(), used_permille: 915, ..QuotaReported::default() };
    world.call(id, "2026-11-01T00:00:00Z", &UsageReported { quotas: vec![quota], ..UsageReported::default() });
    let quotas = world.report(&by(UsageBy::Day)).quotas;
    assert_eq!((quotas.len(), quotas[0].used_percent, quotas[0].used_up_at), (1, 91.5, None));
    let claude = of(SessionPeriod { agents: vec![Provider::Claude], ..SessionPeriod::default() });
    assert!(world.report(&claude).quotas.is_empty());
}

#[test]
fn a_session_that_is_its_own_parent_does_not_loop_forever() {
    let mut world = World::new();
    let own = SessionId::mint(Timestamp::from_millisecond(5), Provider::Claude, "s");
    let id = world.session(Provider::Claude, "s", "/p", Some(own));
    assert_eq!(id, own);
    world.call(id, "2026-11-01T00:00:00Z", &spent(OPUS, 1));
    assert_eq!(world.report(&of(SessionPeriod { session: Some(id), ..SessionPeriod::default() })).total.calls, 1);
}
