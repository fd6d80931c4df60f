//! Hook deliveries, and the turns they should report.

use hooks::delivery::Delivery;
use serde_json::value::RawValue;

use super::*;

fn delivery(seconds: f64, payload: &str) -> IngestInput {
    let delivery = Delivery {
        id: DeliveryId::mint(at(seconds), [seconds as u8; 10]),
        provider: Provider::Claude,
        source: Source::Hook,
        at: at(seconds),
        agent: None,
        run: None,
        search_path: None,
        redacted_from: None,
        payload: RawValue::from_string(payload.into()).unwrap(),
    };
    IngestInput::Delivery(Box::new(HookInput::new(delivery, at(seconds), Box::new(|_| ()))))
}

#[test]
fn turns_without_hook_deliveries_count_as_silence_until_one_arrives() {
    let mut world = World::new();
    let silent = |world: &World, seconds| world.gauges.heard.of(Provider::Claude).silent_since(None, at(seconds));
    world.file(&path_of("old"), vec![prompt("old", "p0", 0.0)], true, false);
    world.until(1.0);
    assert_eq!(silent(&world, 200.0), None, "history is not a sign of life");
    world.until(2.0);
    world.live("s", vec![prompt("s", "p1", 2.0)]);
    world.until(3.0);
    assert_eq!(silent(&world, 200.0), Some(at(2.0)));

    world.take(delivery(150.0, "\"nobody understands this\""));
    world.until(151.0);
    assert_eq!(silent(&world, 200.0), None, "what arrives arrives, understood or not");
    let heard = world.gauges.heard.of(Provider::Claude);
    assert_eq!((heard.deliveries, heard.last_delivery), (1, Some(at(150.0))));
}

#[test]
fn the_end_of_an_unknown_session_creates_no_session() {
    let payload =
        |name: &str| format!(r#"{{"hook_event_name":"{name}","session_id":"s","cwd":"/p","reason":"other"}}"#);
    let mut world = World::new();
    world.take(delivery(1.0, &payload("SessionEnd")));
    world.until(2.0);
    assert!(!world.knows("s"));
    world.take(delivery(3.0, &payload("SessionStart")));
    world.take(delivery(4.0, &payload("SessionEnd")));
    world.until(5.0);
    assert!(world.knows("s"));
    world.assert_sound();
}

/// Claude Code before 2.0 calls no hook when it asks for permission.
#[test]
fn a_running_tool_has_low_confidence_if_hooks_report_no_dialogs() {
    let payload =
        r#"{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":{"command":"ls"}}"#;
    for (version, confidence) in
        [(Some("1.0.100"), Confidence::Low), (Some("2.1.328"), Confidence::Medium), (None, Confidence::Medium)]
    {
        let mut world = World::new();
        let began = SessionStarted { cli_version: version.map(str::to_owned), ..SessionStarted::default() };
        world.live("s", vec![started("s", 1.0, began), prompt("s", "go", 1.0), call("s", "c", 2.0)]);
        world.until(2.0);
        world.take(delivery(2.0, payload));
        world.until(3.0);
        let status = world.session("s").status;
        assert_eq!((status.state, status.reason), (State::Running, Some(Reason::Tool)));
        assert_eq!(status.confidence, confidence, "{version:?}");
        world.assert_sound();
    }
}
