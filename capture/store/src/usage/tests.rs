use super::*;

/// The stored values of a call, without its session: time, model, tokens, cost, whether it is the first report.
type Stored = (i64, String, Usage, Option<u64>, bool);

fn stored(reader: &Reader, filter: &CallFilter) -> Vec<Stored> {
    let mut calls = Vec::new();
    let each = |call: &ModelCall<'_>| {
        let model = call.model.to_owned();
        calls.push((call.at.as_millisecond(), model, call.usage, call.cost_nano_usd, call.is_first));
    };
    reader.each_call(filter, each).unwrap();
    calls
}

fn opened() -> (tempfile::TempDir, Writer) {
    let dir = tempfile::tempdir().unwrap();
    let writer = Writer::open(dir.path()).unwrap();
    (dir, writer)
}

fn session(writer: &mut Writer, name: &str, last_event_at: i64, view: &str) -> (SessionId, SessionRow) {
    let id = SessionId::mint(Timestamp::from_millisecond(5), Provider::Codex, name);
    writer.begin().unwrap();
    let row = writer.add_session(id, Provider::Codex, name).unwrap();
    writer.put_session(row, Timestamp::from_millisecond(last_event_at), view, "{}").unwrap();
    writer.commit().unwrap();
    (id, row)
}

fn add(writer: &mut Writer, row: SessionRow, position: u64, at: i64, usage: &UsageReported, is_first: bool) {
    let at = Timestamp::from_millisecond(at);
    writer.begin().unwrap();
    writer.add_usage(row, &UsageEntry { provider: Provider::Codex, position, at, usage, is_first }).unwrap();
    writer.commit().unwrap();
}

#[test]
fn calls_are_read_by_period_and_session() {
    let (_dir, mut writer) = opened();
    let (_, old) = session(&mut writer, "old", 100, "{}");
    let (_, new) = session(&mut writer, "new", 900, "{}");
    let spent = |tokens| UsageReported { model: Some("m".into()), output_tokens: tokens, ..UsageReported::default() };
    add(&mut writer, old, 1, 100, &spent(1), true);
    add(&mut writer, new, 2, 150, &spent(2), true);
    add(&mut writer, new, 3, 800, &UsageReported { cost_nano_usd: Some(7), thinking_tokens: 2, ..spent(4) }, false);
    let reader = writer.reader();
    let outputs = |filter: CallFilter| -> Vec<u64> {
        stored(&reader, &filter).iter().map(|(_, _, usage, ..)| usage.output_tokens).collect()
    };
    let at = Timestamp::from_millisecond;
    assert_eq!(outputs(CallFilter::ALL), [1, 2, 4]);
    assert_eq!(outputs(CallFilter { since: at(101), ..CallFilter::ALL }), [2, 4]);
    assert_eq!(outputs(CallFilter { since: at(100), until: at(800), session: None }), [1, 2]);
    assert_eq!(outputs(CallFilter { session: Some(new), ..CallFilter::ALL }), [2, 4]);
    assert_eq!(outputs(CallFilter { session: Some(new), since: at(151), ..CallFilter::ALL }), [4]);
    let last = Usage { output_tokens: 4, thinking_tokens: 2, ..Usage::default() };
    assert_eq!(stored(&reader, &CallFilter::ALL)[2], (800, "m".to_owned(), last, Some(7), false));
}

#[test]
fn session_facts_are_read_from_the_stored_views() {
    let (_dir, mut writer) = opened();
    let (parent, _) = session(&mut writer, "a", 5, r#"{"title":"T","cwd":"/now","began_in":"/p","turns":1}"#);
    session(&mut writer, "b", 9, &format!(r#"{{"cwd":"/q","parent_session_id":"{parent}"}}"#));
    session(&mut writer, "c", 9, "damaged");
    let facts = writer.reader().session_facts(Timestamp::MIN).unwrap();
    let of = |index: usize| (facts[index].title.as_deref(), facts[index].directory.as_deref(), facts[index].parent);
    assert_eq!(of(0), (Some("T"), Some("/p"), None));
    assert_eq!(of(1), (None, Some("/q"), Some(parent)));
    assert_eq!(of(2), (None, None, None));
    assert_eq!(writer.reader().session_facts(Timestamp::from_millisecond(6)).unwrap().len(), 2);
}

#[test]
fn quotas_are_stored_apart_from_tokens() {
    let (_dir, mut writer) = opened();
    let (_, row) = session(&mut writer, "s", 5, "{}");
    let quota = |used_permille| QuotaReported {
        name: "primary".into(),
        window_minutes: Some(300),
        used_permille,
        resets_at: Some(Timestamp::from_millisecond(90)),
    };
    let told = |used| UsageReported { quotas: vec![quota(used)], ..UsageReported::default() };
    add(&mut writer, row, 1, 10, &told(100), true);
    add(&mut writer, row, 2, 10, &told(100), true);
    add(&mut writer, row, 3, 20, &told(250), true);
    let reader = writer.reader();
    let at = Timestamp::from_millisecond;
    let used = |at, used_permille| QuotaUse { provider: Provider::Codex, at, quota: quota(used_permille) };
    assert_eq!(reader.quotas().unwrap(), [used(at(20), 250)]);
    assert_eq!(stored(&reader, &CallFilter::ALL), []);
}

#[test]
fn rebuilding_a_database_derives_model_calls_from_the_event_log() {
    let dir = tempfile::tempdir().unwrap();
    let writer = Writer::open(dir.path()).unwrap();
    let log = writer.connection();
    log.execute(
        "INSERT INTO sessions (id, provider, provider_session_id, last_event_at) VALUES (?1, 1, 's', 9)",
        [SessionId::mint(Timestamp::MIN, Provider::Claude, "s").to_bytes().as_slice()],
    )
    .unwrap();
    let events = [
        (17, r#"{"message_id":"a","model":"m","input_tokens":3,"output_tokens":1,"cache_read_tokens":9}"#),
        (17, r#"{"message_id":"a","model":"m","output_tokens":4}"#),
        (17, r#"{"output_tokens":18446744073709551615,"cache_write_tokens":-1}"#),
        (17, "damaged"),
        // A report of quotas counts as a call only if it also has tokens.
        (17, r#"{"quotas":[{"name":"primary","used_permille":5}]}"#),
        (17, r#"{"message_id":"q","output_tokens":2,"quotas":[{"name":"primary","used_permille":5}]}"#),
        (5, r#"{"origin":"human"}"#),
    ];
    for (position, (kind, data)) in events.into_iter().enumerate() {
        let position = position as i64 + 1;
        let sql = "INSERT INTO events (position, session, sequence, id, kind, source, marks, created_at, \
                   observed_at, data) VALUES (?1, 1, ?1, x'00', ?2, 1, 0, ?1 * 10, 0, ?3)";
        log.execute(sql, params![position, kind, data]).unwrap();
    }
    log.execute_batch(include_str!("../usage_from_log.sql")).unwrap();
    let first = Usage { input_tokens: 3, output_tokens: 1, cache_read_tokens: 9, ..Usage::default() };
    let grown = Usage { output_tokens: 4, ..Usage::default() };
    let most = Usage { output_tokens: MOST_TOKENS, ..Usage::default() };
    let with_quota = Usage { output_tokens: 2, ..Usage::default() };
    let expected: [Stored; 4] = [
        (10, "m".into(), first, None, true),
        (20, "m".into(), grown, None, false),
        (30, String::new(), most, None, true),
        (60, String::new(), with_quota, None, true),
    ];
    assert_eq!(stored(&writer.reader(), &CallFilter::ALL), expected);
}
