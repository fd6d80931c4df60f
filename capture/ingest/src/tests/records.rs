//! Processing of records.

use tokio::sync::oneshot::error::TryRecvError;

use super::*;

#[test]
fn a_turn_is_recorded_with_its_messages_tools_and_status() {
    let mut world = World::new();
    world.live("s", vec![prompt("s", "go", 1.0)]);
    world.live(
        "s",
        vec![
            block("s", "r1", 2.0, "m1", Some("I look"), Stop::ToolUse),
            call("s", "r2", 2.0),
            result("s", "r3", "r2", 3.0),
            answer("s", "ok", 4.0),
        ],
    );
    world.commit();
    assert_eq!(
        world.told("s"),
        [
            "user.prompt \"go\"",
            "(turn 1 by prompt)",
            "(running thinking)",
            "message of 1 \"I look\"",
            "tool.call",
            "tool.result \"done\"",
            "message of 1 \"ok\"",
            "(turn 1 completed)",
            "(waiting turn_complete)",
        ]
    );
    let log = world.log();
    let turn = log[0].turn_id;
    assert!(turn.is_some());
    assert!(
        log.iter().filter(|e| !e.derived || e.payload.kind() != Kind::StatusChanged).all(|e| e.turn_id == turn),
        "all of it belongs to the turn"
    );
    assert_eq!(log[0].session_id, SessionId::mint(at(1.0), Provider::Claude, "s"));
    world.until(200.0);
    assert_eq!(world.status("s"), "idle quiet");
    world.assert_sound();
}

#[test]
fn titles_and_turns_are_derived_from_complete_texts() {
    let mut world = World::new();
    let reminder = format!("<system-reminder>{}</system-reminder>\n", "Mind the style guide. ".repeat(40));
    let asked = format!("{reminder}Port the billing service to Rust. {}", "Keep its tests. ".repeat(60));
    let answered: String = (0..400).map(|n| format!("word{n} ")).collect();
    world.live("s", vec![saying(&asked, prompt("s", "p", 1.0)), saying(&answered, answer("s", "a", 2.0))]);
    let enormous = format!("Write the release notes of version two. {}", "x".repeat(store::TEXT_CAP_BYTES));
    world.live("big", vec![saying(&enormous, prompt("big", "p2", 3.0))]);
    world.commit();
    let check = |world: &World| {
        let session = world.session("s");
        assert_eq!(session.title.as_deref(), Some("Port the billing service to Rust"));
        let first: String = asked.chars().take(399).collect();
        assert_eq!(session.summary.last_prompt, Some(format!("{}…", first.replace('\n', " "))));
        let turn = world.read().turns(world.id("s"), 0, 10).unwrap().remove(0);
        assert_eq!(turn.prompt, session.summary.last_prompt);
        let (head, tail) = turn.text.as_deref().unwrap().split_once('…').unwrap();
        assert!(answered.starts_with(head) && answered.trim().ends_with(tail));
        assert!(head.len() > 700 && tail.len() > 200, "{} and {}", head.len(), tail.len());
        // If long texts are not stored, only the part in the event is available.
        assert_eq!(world.session("big").title.as_deref(), Some("Write the release notes of version two"));
    };
    check(&world);
    world.assert_sound();
    // As after a power failure: the log is folded into the sessions again.
    world.start();
    world.until(3.0);
    check(&world);
    world.assert_sound();
}

#[test]
fn blocks_of_one_message_are_one_event_within_a_batch() {
    let mut world = World::new();
    let said = |record: &str, text| block("s", record, 1.0, "m", text, Stop::ToolUse);
    world.live(
        "s",
        vec![said("a", Some("I look")), call("s", "a2", 1.0), said("b", None), call("s", "b2", 1.0), said("c", None)],
    );
    world.live("s", vec![said("d", None), said("e", Some("and more"))]);
    world.commit();
    let told: Vec<String> = world.told("s").into_iter().filter(|t| t.contains(" of ")).collect();
    assert_eq!(told, ["message of 3 \"I look\"", "delta of 1 text", "delta of 1 text \"and more\""]);
    let log = world.log();
    let Payload::AssistantMessage(message) = &log[0].payload else { panic!("{:?}", log[0]) };
    assert_eq!((message.blocks, message.tool_calls, message.stop), (3, 2, Some(Stop::ToolUse)));
    world.assert_sound();
    // The merged blocks are known: reading them again adds nothing.
    world.live(
        "s",
        vec![said("a", Some("I look")), said("b", None), said("c", None), said("d", None), said("e", Some("and more"))],
    );
    world.commit();
    assert_eq!(world.log().len(), log.len());
    assert_eq!(world.repeated(), 5);
    world.assert_sound();
}

#[test]
fn two_text_blocks_of_one_message_are_both_stored() {
    let mut world = World::new();
    let said = |record: &str, text, stop| block("s", record, 1.0, "m", Some(text), stop);
    world
        .live("s", vec![prompt("s", "go", 0.0), said("a", "first", Stop::ToolUse), said("b", "second", Stop::ToolUse)]);
    world.commit();
    let told: Vec<String> = world.told("s").into_iter().filter(|t| t.contains(" of ")).collect();
    assert_eq!(told, ["message of 1 \"first\"", "delta of 1 text \"second\""]);
    world.assert_sound();
}

#[test]
fn a_later_block_with_a_stop_reason_ends_the_turn() {
    // The first block did not say why the model stopped.
    let mut world = World::new();
    let mut first = block("s", "a", 1.0, "m", Some("done"), Stop::EndTurn);
    if let Payload::AssistantMessage(message) = &mut first.payload {
        message.stop = None;
    }
    world.live("s", vec![prompt("s", "go", 0.0), first, block("s", "b", 1.0, "m", None, Stop::EndTurn)]);
    world.commit();
    assert_eq!(world.status("s"), "waiting turn_complete");
    world.assert_sound();
}

#[test]
fn messages_of_different_sessions_do_not_mix() {
    let mut world = World::new();
    let said = |session, record: &str, text| block(session, record, 1.0, "m", text, Stop::ToolUse);
    world.live(
        "s",
        vec![said("s", "a", Some("one")), said("t", "b", Some("two")), said("s", "c", None), said("t", "d", None)],
    );
    world.commit();
    let blocks = |session| world.told(session).into_iter().filter(|t| t.contains(" of ")).collect::<Vec<_>>();
    assert_eq!(blocks("s"), ["message of 1 \"one\"", "delta of 1 text"]);
    assert_eq!(blocks("t"), ["message of 2 \"two\""]);
    world.assert_sound();
}

#[test]
fn a_repeated_record_is_dropped_and_counted() {
    let mut world = World::new();
    let file = || vec![prompt("s", "go", 1.0), answer("s", "ok", 2.0), tokens("s", "m-ok", 2.0, 5)];
    world.past("s", file());
    world.commit();
    let before = (world.log(), world.session("s").usage);
    assert_eq!(world.repeated(), 0);
    // The file is read again from its start, before and after a restart.
    world.past("s", file());
    world.commit();
    assert_eq!(world.repeated(), 3);
    world.start();
    world.past("s", file());
    world.commit();
    assert_eq!(world.repeated(), 6);
    assert_eq!((world.log(), world.session("s").usage), before);
    assert_eq!(world.read().session_usage(world.id("s")).unwrap()[0].2.output_tokens, 5);
    world.assert_sound();
}

#[test]
fn usage_of_a_growing_response_is_counted_once() {
    let grow = [2, 40, 40, 90];
    let spent = |world: &World| {
        let stored = world.read().session_usage(world.id("s")).unwrap();
        (world.session("s").usage.output_tokens, stored.iter().map(|(_, _, usage)| usage.output_tokens).sum::<u64>())
    };
    // In one batch, in one batch per line, and with power failures in between.
    for cut in [false, true] {
        let mut world = World::new();
        world.live("s", vec![prompt("s", "go", 0.0), tokens("s", "m0", 0.5, 5)]);
        for tokens_now in grow {
            world.live("s", vec![tokens("s", "m", 1.0, tokens_now)]);
            world.commit();
            if cut {
                world.start();
            }
        }
        assert_eq!(spent(&world), (95, 95));
        assert_eq!(world.session("s").summary.recent, None, "one turn");
        let log = world.log().len();
        // The file is read again, a fork repeats it, and a copy contains only its first or last line.
        world.past("s", [5].map(|n| tokens("s", "m0", 0.5, n)).into());
        world.past("s", grow.map(|n| tokens("s", "m", 1.0, n)).into());
        world.past("fork", grow.map(|n| tokens("fork", "m", 1.0, n)).into());
        world.past("fork", vec![tokens("fork", "m", 1.0, 2), tokens("fork", "m", 1.0, 90)]);
        world.commit();
        assert_eq!(spent(&world), (95, 95));
        assert_eq!(world.log().len(), log);
        world.assert_sound();
    }
    // The copy is read first; the original has lower and higher counts.
    let mut world = World::new();
    world.past("fork", vec![tokens("fork", "m", 1.0, 40)]);
    world.past("s", grow.map(|n| tokens("s", "m", 1.0, n)).into());
    world.commit();
    assert_eq!(world.read().usage().unwrap().iter().map(|(_, _, usage)| usage.output_tokens).sum::<u64>(), 90);
    world.assert_sound();
}

#[test]
fn records_without_a_timestamp_use_that_of_their_file() {
    let timeless = |record: &str| NewEvent { created_at: None, observed_at: at(9_000.0), ..prompt("s", record, 0.0) };
    let read = |events: Vec<NewEvent>, modified: Option<f64>| {
        let mut world = World::new();
        world.until(9_000.0);
        let cursor = Cursor { path: path_of("s"), offset: 100, size: 100, caught_up: true, ..Cursor::default() };
        world.take(IngestInput::Batch(Box::new(PreparedBatch::new(Batch {
            cursor,
            provider: Provider::Claude,
            events,
            vanished: false,
            modified_at: modified.map(at),
            backfill: true,
            history: true,
        }))));
        world.until(9_000.0);
        world.assert_sound();
        let session = world.session("s");
        [session.started_at, session.last_event_at]
    };
    assert_eq!(read(vec![timeless("a"), timeless("b")], Some(50.0)), [at(50.0), at(50.0)]);
    assert_eq!(read(vec![timeless("a"), timeless("b")], None), [at(9_000.0), at(9_000.0)]);
    // A file's time may lie in the future, and a record's time takes precedence over the file's.
    assert_eq!(read(vec![timeless("a")], Some(90_000.0)), [at(9_000.0), at(9_000.0)]);
    assert_eq!(read(vec![timeless("a"), answer("s", "ok", 7.0)], Some(50.0)), [at(7.0), at(7.0)]);
}

/// The events of a transcript from the foreign fixtures.
fn foreign(session: &str) -> Vec<NewEvent> {
    use tailer::decode::{Decoded, Decoder, Record, feed};
    let file = format!("../../fixtures/foreign/claude/resumed/{session}.jsonl");
    let bytes = std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let mut out = Decoded::new(Provider::Claude, Arc::from(path_of(session)), 1);
    let mut decoder = transcripts::claude::transcript::TranscriptDecoder::new(&path_of(session), None);
    for line in bytes.split(|byte| *byte == b'\n') {
        feed(&mut decoder, Record { bytes: line, offset: 0, observed_at: at(0.0) }, &mut out);
    }
    decoder.pause(&mut out);
    out.events
}

#[test]
fn a_resumed_session_and_its_original_may_be_read_in_any_order() {
    let (original, resumed) = ("93a9705e-bc6a-406d-8dce-8acc014dedbd", "789e105f-ae33-486d-9271-0696266f072d");
    let mut stand = Vec::new();
    for order in [[original, resumed], [resumed, original]] {
        let mut world = World::new();
        for session in order {
            world.past(session, foreign(session));
        }
        world.commit();
        world.until(1.0);
        let of = |session: &str| {
            let s = world.session(session);
            let days = [s.started_at, s.last_event_at].map(|at| at.to_string()[..16].to_owned());
            (days, s.turns, s.forked_from, s.usage.output_tokens, s.status.state)
        };
        stand.push([of(original), of(resumed)]);
        world.assert_sound();
    }
    let began = "2025-07-19T22:21".to_owned();
    let [first, second] = &stand[0];
    assert_eq!(first.0, [began.clone(), began]);
    assert_eq!((first.1, &first.2, first.3, first.4), (1, &None, 5, State::Idle));
    assert_eq!(second.0[1], "2025-07-19T22:32");
    assert_eq!((second.1, second.2.as_deref(), second.3, second.4), (1, Some(original), 95, State::Idle));
    assert_eq!(stand[0], stand[1]);
}

#[test]
fn identical_records_without_an_id_are_separate_events() {
    let mut world = World::new();
    let note = |repeat| NewEvent { repeat, ..new("s", "n", 0, 1.0, events::Heartbeat {}) };
    world.live("s", vec![note(Repeat::Next), note(Repeat::Next)]);
    world.live("s", vec![note(Repeat::Next)]);
    world.commit();
    assert_eq!(world.told("s").iter().filter(|t| *t == "heartbeat").count(), 3);
    // The first pass over a file numbers them itself, and those are known.
    let numbered: Vec<NewEvent> = (0..4)
        .map(|n| NewEvent { identity: note(Repeat::Unique).identity.occurrence(n), ..note(Repeat::Unique) })
        .collect();
    world.live("s", numbered);
    world.commit();
    assert_eq!(world.told("s").iter().filter(|t| *t == "heartbeat").count(), 4);
    assert_eq!(world.repeated(), 3);
    world.assert_sound();
}

#[test]
fn a_session_that_repeats_anothers_records_is_its_fork() {
    let mut world = World::new();
    world.past("parent", vec![prompt("parent", "one", 1.0), answer("parent", "yes", 2.0)]);
    world.past("child", vec![prompt("child", "one", 1.0), answer("child", "yes", 2.0), prompt("child", "mine", 9.0)]);
    world.live("child", vec![prompt("child", "one", 1.0), answer("child", "ok", 10.0)]);
    world.commit();
    let forks: Vec<String> = world.told("child").into_iter().filter(|t| t.starts_with("forked")).collect();
    assert_eq!(forks, ["forked from parent"], "once");
    assert_eq!(world.session("child").forked_from.as_deref(), Some("parent"));
    assert_eq!(world.told("parent").len(), 6, "the parent is as it was");
    assert_eq!(world.session("child").turns, 1, "its history is the parent's up to there");
    world.assert_sound();
}

#[test]
fn long_texts_are_stored_separately() {
    let mut world = World::new();
    let long = "a line of output\n".repeat(1_000);
    world.live("s", vec![saying(&long, prompt("s", "p", 1.0)), saying(&long, answer("s", "a", 2.0))]);
    world.commit();
    let log = world.log();
    let kept = log[0].text_ref.clone().unwrap();
    assert_eq!(kept.length, long.len() as u64);
    assert!(log[0].text.as_ref().unwrap().len() < 1_000);
    assert_eq!(world.read().text(&kept.hash).unwrap(), Some(long));
    world.assert_sound();
}

#[test]
fn a_turn_includes_usage_reported_after_its_end() {
    let mut world = World::new();
    let mut last = block("s", "b", 2.1, "m-ok", Some("and more"), Stop::EndTurn);
    last.identity = last.identity.occurrence(1);
    world.live("s", vec![prompt("s", "go", 1.0), answer("s", "ok", 2.0), tokens("s", "m-ok", 2.0, 42)]);
    world.live("s", vec![last]);
    world.commit();
    let turn = world.read().turns(world.id("s"), 0, 9).unwrap().pop().unwrap();
    assert_eq!((turn.number, turn.outcome, turn.usage.output_tokens), (1, Some(TurnOutcome::Completed), 42));
    assert_eq!(turn.text.as_deref(), Some("ok\nand more"));
    world.assert_sound();
}

#[test]
fn a_parents_status_reflects_its_subagent() {
    let mut world = World::new();
    world.live("s", vec![prompt("s", "go", 1.0), answer("s", "they work", 2.0)]);
    world.live("helper", vec![started("helper", 1.5, helper_of("s")), prompt("helper", "task", 2.5)]);
    world.commit();
    assert_eq!(world.session("helper").parent_session_id, Some(world.id("s")));
    assert_eq!(world.status("s"), "running subagents");
    world.live("helper", vec![claims("helper", "asks", 3.0, State::WaitingApproval)]);
    world.commit();
    assert_eq!(world.status("s"), "waiting_approval tool", "its dialog is its parent's too");
    world.live("helper", vec![claims("helper", "works", 4.0, State::Running)]);
    world.live("helper", vec![answer("helper", "done", 5.0), claims("helper", "rests", 5.0, State::Waiting)]);
    world.commit();
    assert_eq!(world.status("s"), "waiting turn_complete");
    assert_eq!(world.told("s").iter().filter(|t| t.starts_with("sub-agent")).count(), 4, "told when it changed");
    world.assert_sound();
}

#[test]
fn a_parent_known_only_from_a_past_subagent_starts_at_its_time() {
    let mut world = World::new();
    let begins = SessionStarted { cwd: Some("/p".into()), ..helper_of("s") };
    world.past("helper", vec![started("helper", 2.0, begins), prompt("helper", "task", 2.5)]);
    world.commit();
    world.until(5_000.0);
    let parent = world.session("s");
    assert_eq!(parent.cwd.as_deref(), Some("/p"));
    assert_eq!((parent.started_at, parent.last_event_at), (at(2.0), at(2.0)));
    assert_eq!(world.status("s"), "idle quiet");
    world.assert_sound();
}

#[test]
fn a_subagent_may_be_stored_before_its_parent() {
    let mut world = World::new();
    world.past(
        "helper",
        vec![started("helper", 2.0, helper_of("s")), prompt("helper", "task", 2.5), answer("helper", "done", 3.0)],
    );
    world.commit();
    assert_eq!(world.status("s"), "unknown no_evidence", "of the parent nothing is known yet");
    assert_eq!(world.session("helper").parent_session_id, Some(world.id("s")));
    world.past("s", vec![prompt("s", "go", 1.0), answer("s", "ok", 4.0)]);
    world.commit();
    assert_eq!(world.told("s")[..3], ["user.prompt \"go\"", "(turn 1 by prompt)", "(running thinking)"]);
    assert!(!world.told("s").iter().any(|t| t.starts_with("sub-agent")), "history of helpers is not told again");
    world.assert_sound();
}

#[test]
fn capture_is_turned_off_and_on() {
    let mut world = World::new();
    world.live("s", vec![prompt("s", "one", 1.0)]);
    world.commit();
    let (id, mut replies) = (world.id("s"), Vec::new());
    let mut set = |id, on| {
        let (reply, answer) = ChangeReply::new();
        replies.push(answer);
        IngestInput::SetCapture(id, on, reply)
    };
    world.take(set(id, false));
    let (on, strange) = (set(id, true), set(SessionId::from_bits(7), true));
    assert_eq!(replies[0].try_recv().unwrap_err(), TryRecvError::Empty, "not before it is stored");
    world.commit();
    world.live("s", vec![prompt("s", "two", 2.0)]);
    world.commit();
    world.start();
    world.live("s", vec![prompt("s", "three", 3.0)]);
    world.take(on);
    world.live("s", vec![prompt("s", "four", 4.0)]);
    world.take(strange);
    world.commit();
    let told: Vec<String> = world.told("s").into_iter().filter(|t| !t.starts_with('(')).collect();
    assert_eq!(told, ["user.prompt \"one\"", "capture: off", "capture: on", "user.prompt \"four\""]);
    let replies: Vec<bool> = replies.iter_mut().map(|reply| reply.try_recv().unwrap().unwrap()).collect();
    assert_eq!(replies, [true, true, false]);
    world.assert_sound();
}

#[test]
fn a_session_in_an_ignored_directory_is_not_stored() {
    let mut world = World::new();
    let here = |session: &str, cwd: &str| {
        started(session, 1.0, SessionStarted { cwd: Some(cwd.into()), ..SessionStarted::default() })
    };
    world.live("s", vec![here("s", "/secret/plans"), prompt("s", "one", 1.0)]);
    world.live("t", vec![here("t", "/secretary"), prompt("t", "one t", 1.0)]);
    world.commit();
    assert_eq!(world.told("s"), [""; 0]);
    assert_eq!(world.told("t").len(), 5);
}

#[test]
fn history_uses_its_event_times_even_when_read_in_parts() {
    let mut world = World::new();
    world.until(9_000.0);
    let path = path_of("s");
    let file = |n: usize| -> Vec<NewEvent> {
        let all = [
            prompt("s", "one", 1.0),
            call("s", "r", 2.0),
            result("s", "r2", "r", 700.0),
            answer("s", "yes", 701.0),
            prompt("s", "two", 702.0),
            answer("s", "si", 703.0),
        ];
        all.into_iter().map(|e| NewEvent { observed_at: at(9_000.0), ..e }).skip(n * 2).take(2).collect()
    };
    for part in 0..3 {
        world.file(&path, file(part), true, part < 2);
        world.until(9_000.0);
    }
    let parts = world.told("s");
    let ended: Vec<_> =
        world.read().turns(world.id("s"), 0, 9).unwrap().iter().map(|t| (t.started_at, t.completed_at)).collect();
    assert_eq!(ended, [(at(1.0), Some(at(701.0))), (at(702.0), Some(at(703.0)))]);
    world.assert_sound();
    let mut whole = World::new();
    whole.until(9_000.0);
    whole.past("s", (0..3).flat_map(file).collect());
    whole.until(9_000.0);
    assert_eq!(parts, whole.told("s"));
    assert_eq!(whole.status("s"), "idle quiet");
    // A file that vanishes before its end does not keep the clock stopped.
    let mut world = World::new();
    world.until(9_000.0);
    world.file(&path, file(0), true, true);
    world.until(9_000.0);
    assert_eq!(world.status("s"), "running tool");
    let cursor = Cursor { path, ..Cursor::default() };
    world.take(IngestInput::Batch(Box::new(PreparedBatch::new(Batch {
        cursor,
        provider: Provider::Claude,
        events: vec![],
        vanished: true,
        modified_at: None,
        backfill: true,
        history: true,
    }))));
    world.until(9_000.0);
    assert_eq!(world.status("s"), "unknown lost");
}

#[test]
fn history_read_after_the_registry_keeps_its_timestamps() {
    let mut world = World::new();
    world.until(9_000.0);
    let old = |events: Vec<NewEvent>| {
        events.into_iter().map(|e| NewEvent { observed_at: at(9_000.0), ..e }).collect::<Vec<_>>()
    };
    world.file("/h/.claude/sessions/821.json", old(vec![claims("s", "idle", 800.0, State::Waiting)]), true, false);
    world.until(9_000.0);
    world.past("s", old(vec![prompt("s", "go", 1.0), answer("s", "ok", 2.0)]));
    world.until(9_000.0);
    let turn = world.read().turns(world.id("s"), 0, 9).unwrap().pop().unwrap();
    assert_eq!((turn.started_at, turn.completed_at), (at(1.0), Some(at(2.0))));
    assert_eq!(world.session("s").last_user_prompt_at, Some(at(1.0)));
    assert_eq!(world.status("s"), "waiting turn_complete");
    world.assert_sound();
}

#[test]
fn a_file_offset_is_committed_together_with_its_records() {
    let mut world = World::new();
    world.file(&path_of("s"), vec![prompt("s", "go", 1.0)], true, true);
    world.commit();
    let session = world.session("s");
    assert_eq!((session.transcripts.len(), session.transcripts[0].offset, session.transcripts[0].size), (1, 100, 200));
    assert_eq!(session.health, projections::SessionHealth::Behind);
    world.past("s", vec![answer("s", "ok", 2.0)]);
    // Uncommitted records have no cursor either.
    world.start();
    let offset = |world: &World| {
        world
            .ingest
            .as_ref()
            .unwrap()
            .transaction
            .writer
            .reader()
            .cursors()
            .unwrap()
            .iter()
            .map(|c| c.offset)
            .collect::<Vec<_>>()
    };
    assert_eq!(offset(&world), [100]);
    assert_eq!(world.told("s").len(), 3);
    world.offsets.insert(path_of("s"), 100);
    world.past("s", vec![answer("s", "ok", 2.0)]);
    world.commit();
    assert_eq!(offset(&world), [200]);
    assert_eq!(world.session("s").health, projections::SessionHealth::Ok);
    world.assert_sound();
}

#[test]
fn the_live_view_shows_only_committed_sessions() {
    let mut world = World::new();
    world.live("s", vec![prompt("s", "go", 1.0)]);
    assert!(world.live_view.is_empty());
    world.commit();
    assert_eq!((world.live_view.len(), world.live_view.position()), (1, world.log().len() as u64));
    world.start();
    assert_eq!((world.live_view.len(), world.live_view.position()), (1, world.log().len() as u64));
}

#[test]
fn a_thinking_block_is_stored_as_a_delta_and_not_as_a_message() {
    let mut world = World::new();
    let thinking = |record: &str| {
        new(
            "s",
            record,
            0,
            1.0,
            events::AssistantDelta { message_id: Some("m".into()), block: Block::Thinking, stop: None, blocks: 1 },
        )
    };
    world
        .live("s", vec![prompt("s", "go", 0.0), thinking("t"), block("s", "a", 1.0, "m", Some("done"), Stop::EndTurn)]);
    world.commit();
    let told: Vec<String> = world.told("s").into_iter().filter(|t| t.contains(" of ")).collect();
    assert_eq!(told, ["delta of 1 thinking", "message of 1 \"done\""]);
    assert_eq!(world.status("s"), "waiting turn_complete");
    world.assert_sound();
}

#[test]
fn a_status_is_never_in_the_future_after_the_clock_is_set_back() {
    let mut world = World::new();
    world.live("s", vec![prompt("s", "a", 1.0)]);
    world.commit();
    assert_eq!(world.session("s").status.since, at(1.0));
    world.set_back_to.store(at(-3_600.0).as_millisecond(), Ordering::Relaxed);
    world.live("s", vec![call("s", "b", 2.0)]);
    world.commit();
    assert_eq!(world.session("s").status.since, at(-3_600.0));
}

#[test]
fn outdated_session_rows_are_written_without_further_input() {
    let mut world = World::new();
    world.live("s", vec![prompt("s", "go", 1.0)]);
    world.commit();
    let (reader, id) = (world.read(), world.id("s"));
    let (handle, inputs) = channel(INPUTS);
    let mut ingest = IngestLoop::new(world.ingest.take().unwrap(), inputs);
    let thread = std::thread::spawn(move || ingest.run());
    let cursor = Cursor { path: path_of("s"), offset: 200, size: 200, caught_up: true, ..Cursor::default() };
    let batch = Batch {
        cursor: Cursor { generation: 1, provider_session_id: Some("s".into()), ..cursor },
        provider: Provider::Claude,
        events: vec![call("s", "c", 2.0)],
        vanished: false,
        modified_at: None,
        backfill: false,
        history: false,
    };
    handle.send(IngestInput::Batch(Box::new(PreparedBatch::new(batch)))).unwrap();
    let begun = Instant::now();
    let is_written = || {
        let last = reader.last_events(id, 1, &[]).unwrap().pop().unwrap();
        last.sequence > 3 && reader.session(id).unwrap().unwrap().last_sequence == last.sequence
    };
    while !is_written() {
        assert!(begun.elapsed() < Duration::from_secs(15), "the row stays behind");
        std::thread::park_timeout(Duration::from_millis(50));
    }
    // The thread may have ended before the send returns.
    handle.send(IngestInput::Stop).ok();
    thread.join().unwrap();
}

#[test]
fn a_start_after_an_orderly_shutdown_rereads_no_history() {
    let mut world = World::new();
    world.past("s", vec![prompt("s", "go", 1.0), call("s", "c", 2.0)]);
    let (handle, inputs) = channel(INPUTS);
    let mut ingest = IngestLoop::new(world.ingest.take().unwrap(), inputs);
    handle.send(IngestInput::Stop).unwrap();
    ingest.run();
    drop(ingest);
    world.start();
    let writer = &world.ingest().transaction.writer;
    assert_eq!(writer.settled().unwrap(), writer.position().unwrap());
    assert_eq!(writer.unsettled().unwrap(), []);
}

#[test]
fn the_end_of_an_import_does_not_make_the_loop_spin_while_a_transaction_is_open() {
    let mut world = World::new();
    world.past("s", vec![prompt("s", "go", 1.0)]);
    let ingest = world.ingest();
    assert!(ingest.transaction.is_open());
    ingest.import_ended = Some(std::time::Instant::now());
    // Without an input, a wait of zero must lead to a commit.
    let wait = ingest.next_wait().unwrap();
    assert!(!wait.is_zero() || ingest.transaction.is_due());
}
