use events::{ApprovalRequested, EventId, Origin, Provider, Source, StatusChanged};

use super::*;

const MINUTE: i64 = 60_000;

fn at(minute: i64) -> Timestamp {
    Timestamp::from_millisecond(minute * MINUTE)
}

fn changed(minute: i64, to: State, reason: Option<Reason>) -> Event {
    let payload = StatusChanged { from: None, to, reason, activity: None, evidence: Vec::new() };
    Event {
        position: minute.unsigned_abs() + 1,
        id: EventId::from_bits(minute.unsigned_abs().into()),
        session_id: SessionId::from_bits(1),
        sequence: minute.unsigned_abs() + 1,
        provider: Provider::Claude,
        provider_session_id: "s".into(),
        source: Source::Transcript,
        created_at: at(minute),
        observed_at: at(minute),
        turn_id: None,
        parent_id: None,
        agent_id: None,
        confidence: Confidence::High,
        severity: None,
        text: None,
        text_ref: None,
        payload: payload.into(),
        origin: Origin::Derived,
        derived: true,
        history: false,
    }
}

#[test]
fn segments_merge_equal_states_and_end_with_the_period() {
    let changes = [
        changed(0, State::Running, Some(Reason::Thinking)),
        changed(10, State::Running, Some(Reason::Tool)),
        changed(30, State::Waiting, None),
        // Reported late.
        changed(20, State::WaitingApproval, Some(Reason::Tool)),
    ];
    let found = stretches(&changes, at(5), at(40));
    let segments: Vec<_> = segments(&found).iter().map(|s| (s.state, s.from, s.until)).collect();
    assert_eq!(
        segments,
        [(State::Running, at(5), at(20)), (State::WaitingApproval, at(20), at(30)), (State::Waiting, at(30), at(40)),]
    );
    assert!(stretches(&changes, at(50), at(60)).iter().all(|s| s.state == State::Waiting), "it goes on");
    assert!(stretches(&[], at(0), at(9)).is_empty());
}

#[test]
fn waiting_time_counts_only_up_to_half_an_hour() {
    let zone = TimeZone::UTC;
    let day = 24 * 60;
    let changes = [
        changed(day - 10, State::Running, Some(Reason::Thinking)),
        changed(day + 5, State::Running, Some(Reason::Tool)),
        changed(day + 6, State::Waiting, None),
    ];
    let mut days = Days::new(zone);
    for stretch in stretches(&changes, at(0), at(3 * day)) {
        days.add(&stretch);
    }
    let split = days.split(at(0), at(3 * day));
    let figures: Vec<_> = split.iter().map(|d| (d.day.as_str(), d.agent_s, d.tool_s, d.waiting_s)).collect();
    assert_eq!(figures, [("1970-01-01", 600, 0, 0), ("1970-01-02", 300, 60, 1_800), ("1970-01-03", 0, 0, 0)]);
}

#[test]
fn tool_time_is_the_time_of_tool_calls_while_the_agent_was_running() {
    let changes = [
        changed(0, State::Running, Some(Reason::Thinking)),
        changed(20, State::WaitingApproval, Some(Reason::Tool)),
        changed(30, State::Running, Some(Reason::Thinking)),
        changed(40, State::Waiting, None),
    ];
    // Two at once; one that waits for an approval; one that never returned.
    let tools =
        [(at(2), Some(at(5))), (at(3), Some(at(6))), (at(18), Some(at(32))), (at(38), None), (at(41), Some(at(42)))];
    let divided = with_tools(&stretches(&changes, at(1), at(60)), &tools);
    let ran: Vec<_> = divided.iter().filter(|s| spent(s) == Some(Spent::Tool)).map(|s| (s.from, s.until)).collect();
    assert_eq!(ran, [(at(2), at(5)), (at(5), at(6)), (at(18), at(20)), (at(30), at(32)), (at(38), at(40))]);
    let mut end = at(1);
    for stretch in divided {
        assert_eq!(std::mem::replace(&mut end, stretch.until), stretch.from, "nothing is lost or doubled");
    }
    assert_eq!(end, at(60));
}

#[test]
fn day_boundaries_follow_the_time_zone_across_dst() {
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    // The clocks went back on 2026-10-25, so the day had 25 hours.
    let begin = Timestamp::parse("2026-10-24T22:00:00Z").unwrap();
    let (day, end) = day_of(begin, &berlin).unwrap();
    assert_eq!((day.as_str(), end.since_ms(begin)), ("2026-10-25", 25 * 60 * MINUTE));
}

fn approval(tool: &str, waited_ms: u64, by: Option<DecidedBy>, state: ApprovalState) -> Approval {
    let asked = ApprovalRequested { tool: Some(tool.into()), ..ApprovalRequested::default() };
    let session = (SessionId::from_bits(1), Provider::Claude);
    let open = Approval::of(&asked, session, None, (Source::Hook, Confidence::High), at(0));
    Approval { waited_ms: Some(waited_ms), by, state, ..open }
}

#[test]
fn approval_waits_are_counted_by_who_decided() {
    use ApprovalState::{Allowed, AnsweredElsewhere, Expired, Pending};
    let mut all = vec![
        approval("Bash", 500, Some(DecidedBy::Policy), Allowed),
        approval("Bash", 1_000, Some(DecidedBy::Person), Allowed),
        approval("Bash", 1_001, None, AnsweredElsewhere),
        approval("Edit", 20_000_000, Some(DecidedBy::Person), Allowed),
        approval("Edit", 60_000, None, Expired),
    ];
    all.push(Approval { waited_ms: None, ..approval("Bash", 0, None, Pending) });
    let waits = waits(&all);
    let bucket = |up_to_s| *waits.buckets.iter().find(|bucket| bucket.up_to_s == up_to_s).unwrap();
    assert_eq!((bucket(Some(1)).rule, bucket(Some(1)).person), (1, 1));
    assert_eq!((bucket(Some(3)).person, bucket(Some(60)).expired, bucket(None).person), (1, 1, 1));
    let total: u64 = waits.buckets.iter().map(|b| b.person + b.rule + b.expired).sum();
    assert_eq!(total, 5);
    assert_eq!((waits.p50_s, waits.p90_s), (Some(1.001), Some(20_000.0)));
    let tools: Vec<_> = waits.by_tool.iter().map(|tool| (tool.tool.as_str(), tool.count)).collect();
    assert_eq!(tools, [("Bash", 2), ("Edit", 1)]);
    assert_eq!(super::waits(&[]).p50_s, None);
}

#[test]
fn only_sessions_with_activity_in_the_period_get_a_lane() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = store::Writer::open(dir.path()).unwrap();
    let mut sessions = Vec::new();
    writer.begin().unwrap();
    for name in ["busy", "quiet"] {
        let id = SessionId::mint(at(1), Provider::Claude, name);
        let row = writer.add_session(id, Provider::Claude, name).unwrap();
        writer.put_session(row, at(200), r#"{"title":"T"}"#, "{}").unwrap();
        sessions.push((id, row));
    }
    let (busy, row) = sessions[0];
    let event = Event { session_id: busy, ..changed(10, State::Running, None) };
    writer.append(row, &event, None).unwrap();
    writer.commit().unwrap();
    let request = |limit| OverviewRequest { since: at(0), until: at(60), zone: TimeZone::UTC, limit };
    let found = overview(&writer.reader(), &request(10)).unwrap();
    assert_eq!(found.lanes.len(), 1, "a session in which nothing went on has no lane");
    assert_eq!((found.lanes[0].session_id, found.lanes[0].segments.len()), (busy, 1));
    assert_eq!((found.days.len(), found.days[0].agent_s), (1, 50 * 60));
    let none = overview(&writer.reader(), &request(0)).unwrap();
    assert_eq!((none.lanes.len(), none.more_lanes), (0, 1));
}

#[test]
fn the_lane_limit_keeps_live_sessions_first_then_the_latest() {
    let end = at(1_000);
    let lane = |bits: u128, segments: &[(State, i64, i64)]| Lane {
        session_id: SessionId::from_bits(bits),
        provider: Provider::Claude,
        title: None,
        segments: segments
            .iter()
            .map(|&(state, from, until)| LaneSegment {
                state,
                from: at(from),
                until: at(until),
                confidence: Confidence::High,
            })
            .collect(),
        marks: Vec::new(),
    };
    let marked = |bits, minute| Lane {
        marks: vec![LaneMark { at: at(minute), kind: LaneMarkKind::Finding, approval: None, finding: None }],
        ..lane(bits, &[(State::Exited, 0, 1_000)])
    };
    // Much earlier, in the order in which a store returns sessions.
    let mut old: Vec<Lane> = (0..300)
        .map(|n| lane(n, &[(State::Running, n as i64, n as i64 + 1), (State::Exited, n as i64 + 1, 1_000)]))
        .collect();
    let later = [
        lane(1_001, &[(State::Running, 500, 990), (State::Exited, 990, 1_000)]),
        // It has been waiting for a long time and is still active.
        lane(1_002, &[(State::Running, 1, 2), (State::WaitingApproval, 2, 1_000)]),
        lane(1_003, &[(State::Running, 400, 1_000)]),
        marked(1_004, 980),
    ];
    old.extend(later);
    for limit in [4, 10] {
        let mut lanes = old.clone();
        assert_eq!(latest(&mut lanes, limit, end), 304 - limit as u64);
        let ids: Vec<u128> = lanes.iter().map(|lane| lane.session_id.bits()).collect();
        assert_eq!(ids[..4], [1_003, 1_002, 1_001, 1_004], "the live ones, then the latest");
        assert!(ids[4..].iter().copied().eq((0..300).rev().take(limit - 4)));
    }
}
