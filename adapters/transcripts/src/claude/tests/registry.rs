//! The live registry.

use std::path::Path;

use super::*;
use crate::claude::registry::RegistryDecoder;

const PARTS: &str = r#""cwd":"/p","startedAt":1795149531870,"procStart":"76968","version":"2.1.328","kind":"interactive","name":"p-cb","nameSource":"derived""#;

/// The content of the file: the session and the fields of the status.
fn entry(session: &str, rest: &str) -> String {
    format!(r#"{{"pid":821,"sessionId":"{session}",{PARTS}{rest}}}"#)
}

fn status(word: &str, at: i64) -> String {
    let (status, waiting) = word
        .split_once(": ")
        .map_or((word, String::new()), |(status, what)| (status, format!(r#","waitingFor":"{what}""#)));
    entry("s1", &format!(r#","status":"{status}"{waiting},"updatedAt":{at},"statusUpdatedAt":{at}"#))
}

/// Decodes each content of the file in turn; an empty one means that the file is gone.
fn seen(contents: &[String], restart: bool) -> Vec<NewEvent> {
    let mut out = output("/h/.claude/sessions/821.json");
    let mut decoder = RegistryDecoder::new(None);
    for content in contents {
        if restart {
            decoder = RegistryDecoder::new(decoder.state().as_deref());
        }
        if content.is_empty() {
            decoder.removed(SEEN_AT, &mut out);
        } else {
            give(&mut decoder, content.as_bytes(), 0, &mut out);
        }
    }
    assert_eq!(out.issues, 0);
    out.events
}

#[track_caller]
fn check(contents: &[String], expected: &[&str]) {
    for restart in [false, true] {
        let events = seen(contents, restart);
        let shown: Vec<String> = events.iter().map(|e| format!("{} {}", e.provider_session_id, show(e))).collect();
        assert_eq!(shown, expected);
        assert!(events.iter().all(|e| e.source == Source::Registry || matches!(e.payload, Payload::Unrecognized(_))));
    }
}

const STARTED: [&str; 2] = ["s1 session.started unknown /p - 2.1.328 - -", "s1 signal alive 821 76968"];

#[test]
fn registry_statuses_map_to_claims() {
    for (word, claim) in [
        ("idle", "waiting -"),
        ("busy", "running -"),
        ("shell", "waiting background"),
        ("waiting: permission prompt", "waiting_approval -"),
        ("waiting: sandbox request", "waiting_approval -"),
        ("waiting: worker request", "waiting_approval -"),
        ("waiting: input needed", "waiting question"),
        ("waiting: goal proposal", "waiting question"),
        ("waiting: dialog open", "waiting -"),
        ("waiting: something new", "waiting -"),
        ("waiting", "waiting -"),
    ] {
        check(&[status(word, 5)], &[&STARTED[..], &[&format!("s1 signal {claim}")]].concat());
        let events = seen(&[status(word, 5)], false);
        let Payload::Signal(signal) = &events[2].payload else { panic!("{:?}", events[2]) };
        assert_eq!((signal.words.as_deref(), signal.strength), (Some(word), events::Confidence::High));
        assert_eq!(events[2].created_at, Some(Timestamp::from_millisecond(5)));
    }
    check(&[status("dreaming", 5)], &[&STARTED[..], &["s1 unrecognized registry/dreaming"]].concat());
    check(&[entry("s1", "")], &STARTED);
}

#[test]
fn only_status_changes_emit_events() {
    let contents = [
        entry("s1", ""),
        status("idle", 5),
        status("idle", 6),
        status("busy", 7),
        status("waiting: permission prompt", 8),
        status("busy", 9),
        status("busy", 9),
    ];
    check(
        &contents,
        &[
            &STARTED[..],
            &["s1 signal waiting -", "s1 signal running -", "s1 signal waiting_approval -", "s1 signal running -"],
        ]
        .concat(),
    );
    let events = seen(&contents, false);
    let mut identities: Vec<_> = events.iter().map(|e| e.identity).collect();
    identities.sort_unstable();
    identities.dedup();
    assert_eq!(identities.len(), events.len(), "the same word at another time is another claim");
}

#[test]
fn a_user_given_session_name_becomes_the_title() {
    let named = |name: &str| entry("s1", "").replace("p-cb", name).replace("derived", "user");
    check(
        &[entry("s1", ""), named("lab"), named("lab"), named("other")],
        &[&STARTED[..], &["s1 annotation title: lab", "s1 annotation title: other"]].concat(),
    );
}

/// The registry of a process, as in fixtures/recordings/claude/S14-resume-fork: `/branch` and `/clear` switch it to
/// another session, each with a moment of `busy`.
#[test]
fn a_busy_status_right_after_a_session_switch_takes_effect_with_a_delay() {
    let recording =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recordings/claude/S14-resume-fork/timeline.jsonl");
    let lines = std::fs::read_to_string(recording).unwrap();
    let contents: Vec<String> = lines
        .lines()
        .filter(|line| line.contains("sessions/29602.json") && line.contains(r#""op":"write""#))
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["data"].as_str().unwrap().to_owned())
        .collect();
    let running = seen(&contents, true).into_iter().filter_map(|event| match event.payload {
        Payload::Signal(signal) if signal.words.as_deref() == Some("busy") => {
            Some((event.provider_session_id.to_string()[..4].to_owned(), signal.holds_from.is_some()))
        }
        _ => None,
    });
    let expected = [("d083", 3, 0), ("389c", 3, 1), ("e1a5", 3, 1)];
    let running: Vec<_> = running.collect();
    for (session, all, held) in expected {
        let of_session: Vec<bool> = running.iter().filter(|(id, _)| id == session).map(|(_, held)| *held).collect();
        assert_eq!((of_session.len(), of_session.iter().filter(|held| **held).count()), (all, held), "{session}");
        assert!(held == 0 || of_session[0], "the first, when it moved");
    }
}

#[test]
fn a_process_that_switches_sessions_ends_one_and_starts_the_other() {
    let second = entry("s2", r#","status":"idle","updatedAt":9,"statusUpdatedAt":9"#);
    check(
        &[status("busy", 5), second.clone(), String::new()],
        &[
            &STARTED[..],
            &[
                "s1 signal running -",
                "s1 signal gone 821 clean",
                "s2 session.started unknown /p - 2.1.328 - -",
                "s2 signal alive 821 76968",
                "s2 signal waiting -",
                "s2 signal withdrawn",
            ],
        ]
        .concat(),
    );
    // Switching back is an event again.
    let events = seen(&[status("busy", 5), second, status("busy", 11)], false);
    let shown: Vec<String> = events[7..].iter().map(|e| format!("{} {}", e.provider_session_id, show(e))).collect();
    assert_eq!(shown, ["s2 signal gone 821 clean", STARTED[0], STARTED[1], "s1 signal running -"]);
    let alive: Vec<_> = events.iter().filter(|e| show(e).starts_with("signal alive")).map(|e| e.identity).collect();
    assert!(alive[0] != alive[2], "taken up again");
}

#[test]
fn a_reused_pid_with_a_new_start_time_starts_the_session_again() {
    let other = status("idle", 9).replace("76968", "99999").replace("1795149531870", "1795149999999");
    let events = seen(&[status("idle", 5), other], false);
    let shown: Vec<String> = events[3..].iter().map(show).collect();
    assert_eq!(shown, ["session.started unknown /p - 2.1.328 - -", "signal alive 821 99999", "signal waiting -"]);
}

#[test]
fn a_removed_registry_file_withdraws_the_claim_once() {
    check(
        &[status("idle", 5), String::new(), String::new()],
        &[&STARTED[..], &["s1 signal waiting -", "s1 signal withdrawn"]].concat(),
    );
    check(&[String::new()], &[]);
    // A missing start time is unknown.
    let old = status("idle", 5).replace(r#""procStart":"76968","#, "");
    assert_eq!(show(&seen(&[old], false)[1]), "signal alive 821 0");
}

#[test]
fn a_truncated_registry_file_is_an_issue() {
    let mut out = output("/h/.claude/sessions/821.json");
    let mut decoder = RegistryDecoder::new(None);
    give(&mut decoder, &status("busy", 5).as_bytes()[..40], 0, &mut out);
    assert_eq!(out.issues, 1);
    assert_eq!(decoder.session(), None);
}

#[test]
fn permission_dialogs_of_older_versions_take_effect_with_a_delay() {
    let from = |version: &str| {
        let asks = status("waiting: permission prompt", 5).replace("2.1.328", version);
        let asked = seen(&[asks], false).pop().unwrap();
        let Payload::Signal(signal) = asked.payload else { panic!("{asked:?}") };
        signal.holds_from
    };
    assert!(from("2.1.200").is_some());
    assert_eq!([from("2.1.328"), from("2.2.0")], [None, None]);
}
