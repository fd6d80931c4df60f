//! Properties for any events in any order.

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

fn any_id() -> impl Strategy<Value = String> {
    select(vec!["c1", "c2", "c3"]).prop_map(str::to_owned)
}

fn any_claim() -> impl Strategy<Value = Claim> {
    let outcome = select(TurnOutcome::ALL);
    prop_oneof![
        6 => (select(State::ALL), prop_oneof![3 => Just(None), 1 => select(Reason::ALL).prop_map(Some)]).prop_map(|(state, reason)| Claim::State { state, reason }),
        3 => (outcome, 0..2_u32).prop_map(|(outcome, pending_subagents)| Claim::TurnEnded { outcome, pending_subagents }),
        2 => (1..3_u32).prop_map(|pid| Claim::ProcessAlive { pid, start_ticks: 7 }),
        2 => (1..3_u32, any::<bool>()).prop_map(|(pid, clean)| Claim::ProcessGone { pid, clean }),
        2 => Just(Claim::Withdrawn),
    ]
}

fn any_payload() -> impl Strategy<Value = Payload> {
    let stop = || prop_oneof![Just(None), select(Stop::ALL).prop_map(Some)];
    prop_oneof![
        4 => select(PromptOrigin::ALL).prop_map(|origin| UserPrompt { origin, ..UserPrompt::default() }.into()),
        4 => (any_id(), stop()).prop_map(|(id, stop)| AssistantMessage { message_id: Some(id), stop, ..AssistantMessage::default() }.into()),
        2 => (any_id(), stop(), select(Block::ALL)).prop_map(|(id, stop, block)| AssistantDelta { message_id: Some(id), block, stop, blocks: 1 }.into()),
        4 => (any_id(), select(ToolKind::ALL), any::<bool>(), any::<bool>())
            .prop_map(|(id, tool, may_ask, background)| ToolCall { may_ask, background, ..tool_call(&id, tool, "do it") }.into()),
        4 => (any_id(), select(ToolOutcome::ALL), any::<bool>()).prop_map(|(call_id, outcome, detail)| ToolResult { call_id, outcome, detail, ..ToolResult::default() }.into()),
        2 => any_id().prop_map(|id| QuestionAsked { call_id: Some(id), options: Vec::new() }.into()),
        1 => any_id().prop_map(|id| QuestionAnswered { call_id: Some(id) }.into()),
        2 => (select(ErrorClass::ALL), any::<bool>(), any::<bool>())
            .prop_map(|(class, ends_turn, retrying)| ErrorReported { class, ends_turn, retrying, ..ErrorReported::default() }.into()),
        8 => (any_claim(), select(Confidence::ALL), prop_oneof![4 => Just(None), 1 => (0.0..200.0).prop_map(|s| Some(at(s)))], prop_oneof![4 => Just(None), 1 => (0.0..200.0).prop_map(|s| Some(at(s)))])
            .prop_map(|(claim, strength, valid_until, holds_from)| Signal { dialog: None, key: None, holds_from, claim, strength, valid_until, words: None }.into()),
        2 => (any_id(), select(vec!["rm x", "ls"]), any::<bool>()).prop_map(|(id, command, keyed)| ApprovalRequested {
            approval_id: id.into(),
            command: Some(command.into()),
            key: keyed.then(|| "k".to_owned()),
            ..ApprovalRequested::default()
        }.into()),
        1 => (any_id(), any::<bool>()).prop_map(|(id, allowed)| ApprovalResolved { approval_id: id.into(), allowed: Some(allowed), ..ApprovalResolved::default() }.into()),
        1 => (any::<u64>(), prop_oneof![Just(None), any_id().prop_map(Some)]).prop_map(|(n, message_id)| UsageReported { message_id, output_tokens: n, ..UsageReported::default() }.into()),
        1 => Just(ContextCompacted::default().into()),
        1 => Just(Heartbeat {}.into()),
        1 => Just(SessionStarted::default().into()),
        1 => Just(SessionExited::default().into()),
        1 => (select(Topic::ALL), ".{0,8}").prop_map(|(topic, value)| Annotation { topic, value }.into()),
        1 => Just(Unrecognized::default().into()),
    ]
}

fn any_said() -> impl Strategy<Value = TestEvent> {
    let agent = prop_oneof![4 => Just(None), 1 => select(vec!["a1", "a2"]).prop_map(|a| Some(a.to_owned()))];
    let source = prop_oneof![4 => Just(Source::Transcript), 2 => Just(Source::Registry), 1 => select(Source::ALL)];
    let confidence = prop_oneof![6 => Just(Confidence::High), 1 => select(Confidence::ALL)];
    let text = prop_oneof![Just(None), ".{0,12}".prop_map(Some)];
    let created = prop_oneof![4 => Just(None), 1 => (0.0..200.0).prop_map(Some)];
    (any_payload(), source, agent, confidence, text, created).prop_map(
        |(payload, source, agent, confidence, text, created)| TestEvent {
            payload,
            source,
            text,
            agent,
            confidence,
            created,
            history: created.is_some(),
        },
    )
}

/// Steps of the clock close to every limit of the rules, and far beyond.
fn any_gap() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => select(vec![0.0, 0.001, 0.1, 0.399, 0.4, 1.0, 1.499, 1.5, 3.0, 5.0]),
        2 => select(vec![29.999, 30.0, 119.999, 120.0, 600.0, 601.0]),
        1 => 0.0..2_000.0,
    ]
}

/// A script: each event follows some time after the previous one, and sometimes only time passes.
fn any_script() -> impl Strategy<Value = Vec<Step>> {
    vec((any_gap(), prop_oneof![4 => any_said().prop_map(Some), 1 => Just(None)]), 0..40).prop_map(|steps| {
        let mut now = 0.0;
        steps
            .into_iter()
            .map(|(gap, said)| {
                now += gap;
                match said {
                    Some(said) => on(now, said),
                    None => until(now),
                }
            })
            .collect()
    })
}

/// Like [`any_script`], without history, which is dated before the live clock.
fn any_live_script() -> impl Strategy<Value = Vec<Step>> {
    any_script().prop_map(|script| {
        let live = |step| match step {
            Step::Event(seconds, said) => on(seconds, TestEvent { created: None, ..said }),
            Step::Until(seconds) => until(seconds),
        };
        script.into_iter().map(live).collect()
    })
}

/// The content of a file before capture started: read at once, in the order of its times.
fn any_history() -> impl Strategy<Value = Vec<Step>> {
    vec((any_gap(), any_said()), 0..20).prop_map(|said| {
        let mut created = -5_000.0;
        let long_ago = |(gap, said): (f64, TestEvent)| {
            created = f64::min(created + gap, 0.0);
            on(0.0, said.long_ago(created))
        };
        said.into_iter().map(long_ago).collect()
    })
}

fn end_of(script: &[Step]) -> f64 {
    script.last().map_or(0.0, |step| match step {
        Step::Event(seconds, _) | Step::Until(seconds) => *seconds,
    })
}

/// Advances the time deadline by deadline, as ingest does.
fn by_deadlines(state: &mut SessionState, now: Timestamp) -> Result<Vec<Conclusion>, TestCaseError> {
    let mut out = Vec::new();
    let mut rounds = 0;
    while let Some(due) = state.next_deadline().filter(|due| *due <= now) {
        rounds += 1;
        prop_assert!(rounds < 100, "the clock of a session must not spin: {due:?} is due again and again");
        out.extend(state.advance(due));
    }
    Ok(out)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn after_an_advance_nothing_is_due(script in any_script(), more in any_gap()) {
        let mut tape = Tape::new();
        for step in &script {
            tape.play(step);
            if let Step::Until(now) = step {
                prop_assert!(tape.state.next_deadline().is_none_or(|due| due > at(*now)));
            }
        }
        let now = at(end_of(&script) + more);
        tape.state.advance(now);
        prop_assert!(tape.state.next_deadline().is_none_or(|due| due > now));
        prop_assert_eq!(tape.state.advance(now), []);
    }

    #[test]
    fn advancing_in_small_steps_equals_one_large_step(script in any_script(), gaps in vec(any_gap(), 0..12)) {
        let (mut stepped, mut by_deadline) = (Tape::played(&script), Tape::played(&script));
        let mut big = stepped.clone();
        let mut now = end_of(&script);
        for gap in gaps.into_iter().chain([0.0]) {
            now += gap;
            stepped.play(&until(now));
        }
        big.play(&until(now));
        prop_assert_eq!(stepped.transitions(), big.transitions());
        prop_assert_eq!(&stepped.state, &big.state);
        let rest = by_deadlines(&mut by_deadline.state, at(now))?;
        by_deadline.conclusions.extend(rest);
        prop_assert_eq!(by_deadline.transitions(), big.transitions());
        prop_assert_eq!(by_deadline.state, big.state);
    }

    #[test]
    fn time_that_passes_between_events_makes_no_difference(script in any_live_script()) {
        let mut live = Tape::new();
        let mut before = 0.0;
        for step in &script {
            let now = end_of(std::slice::from_ref(step));
            for part in [0.3, 0.7, 1.0] {
                let upto = before + (now - before) * part;
                live.play(&until(upto));
            }
            before = now;
            live.play(step);
        }
        let replayed = Tape::played(&script);
        prop_assert_eq!(live.transitions(), replayed.transitions());
        prop_assert_eq!(live.state, replayed.state);
    }

    #[test]
    fn replaying_the_log_reproduces_the_live_state(history in any_history(), script in any_live_script()) {
        let script = [history, script].concat();
        // The log contains the events and the conclusions; folding it draws the same conclusions again.
        let mut live = Tape::new();
        let mut log = Vec::new();
        for step in &script {
            let concluded = match step {
                Step::Event(seconds, said) => {
                    let event = live.event(*seconds, said);
                    log.push(event.clone());
                    live.state.fold(&event)
                }
                Step::Until(seconds) => live.state.advance(at(*seconds)),
            };
            for conclusion in concluded {
                live.state.session.last_sequence += 1;
                let mut event = live.event(0.0, &said(conclusion.payload.clone()));
                event.created_at = conclusion.at;
                event.sequence = live.state.session.last_sequence;
                event.derived = true;
                log.push(event);
                live.conclusions.push(conclusion);
            }
        }
        let end = at(end_of(&script));
        live.conclusions.extend(live.state.advance(end));
        let mut again = Tape::new();
        for event in &log {
            let concluded = again.state.fold(event);
            again.conclusions.extend(concluded);
        }
        again.conclusions.extend(again.state.advance(end));
        prop_assert_eq!(again.transitions(), live.transitions());
        again.state.session.last_sequence = live.state.session.last_sequence;
        prop_assert_eq!(again.state, live.state);
    }

    #[test]
    fn a_state_restored_from_a_snapshot_continues_identically(script in any_script(), cut: prop::sample::Index) {
        let cut = if script.is_empty() { 0 } else { cut.index(script.len()) };
        let mut through = Tape::played(&script);
        let mut resumed = Tape::played(&script[..cut]);
        let json = serde_json::to_string(&resumed.state).unwrap();
        resumed.state = serde_json::from_str(&json).unwrap();
        script[cut..].iter().for_each(|step| resumed.play(step));
        prop_assert_eq!(resumed.transitions(), through.transitions());
        prop_assert_eq!(&resumed.state, &through.state);
        prop_assert_eq!(resumed.state.view(), through.state.view());
    }

    #[test]
    fn the_status_is_always_explained(script in any_script()) {
        let mut tape = Tape::new();
        for step in &script {
            tape.play(step);
            if tape.conclusions.is_empty() {
                continue;
            }
            let logged = tape.conclusions.iter().rev().find_map(|c| match &c.payload {
                Payload::StatusChanged(to) => Some(to.clone()),
                _ => None,
            });
            let told = tape.state.session.status.clone();
            let seen = tape.state.view().status.clone();
            prop_assert!(!seen.evidence.is_empty());
            prop_assert_eq!((seen.state, seen.reason), (told.state, told.reason), "what is shown is what was logged");
            let logged = logged.unwrap();
            prop_assert_eq!(seen.state, logged.to);
            prop_assert!(!logged.evidence.is_empty());
            prop_assert!(seen.state == State::Running || seen.reason == logged.reason);
            prop_assert!(tape.state.session.status.since <= tape.state.clock);
        }
    }

    /// Every change by time alone is a deadline: between two deadlines nothing changes.
    #[test]
    fn nothing_changes_between_deadlines(script in any_script(), gap in any_gap()) {
        let tape = Tape::played(&script);
        prop_assume!(!tape.conclusions.is_empty());
        let now = at(end_of(&script) + gap);
        let mut state = tape.state;
        state.advance(now);
        let shown = (state.session.status.state, state.session.status.reason);
        prop_assert_eq!(status::verdict(&state.case(), now), shown);
    }

    #[test]
    fn turns_are_opened_and_closed_one_after_another(script in any_script()) {
        let tape = Tape::played(&script);
        let mut open: Option<(u32, TurnId)> = None;
        let mut last = 0;
        for conclusion in &tape.conclusions {
            match &conclusion.payload {
                Payload::TurnStarted(turn) => {
                    prop_assert_eq!(open, None, "one at a time");
                    last += 1;
                    prop_assert_eq!(turn.number, last);
                    open = Some((turn.number, conclusion.turn_id.unwrap()));
                }
                Payload::TurnCompleted(turn) => {
                    prop_assert_eq!(Some((turn.number, conclusion.turn_id.unwrap())), open.take());
                    let kept = conclusion.turn.as_ref().unwrap();
                    prop_assert_eq!(kept.number, turn.number);
                    prop_assert!(kept.completed_at >= Some(kept.started_at));
                }
                _ => {}
            }
        }
        prop_assert_eq!(tape.state.open_turn().map(|t| (t.number, t.id)), open);
        prop_assert_eq!(tape.state.session.turns, last);
    }

    #[test]
    fn times_of_conclusions_never_go_back(script in any_live_script()) {
        let tape = Tape::played(&script);
        prop_assert!(tape.conclusions.is_sorted_by_key(|c| c.at));
    }

    #[test]
    fn turn_of_predicts_whether_an_event_opens_a_turn(script in any_script()) {
        let mut tape = Tape::new();
        for step in &script {
            if let Step::Event(seconds, said) = step {
                let event = tape.event(*seconds, said);
                let told = tape.state.turn_of(&event);
                let started = tape.state.fold(&event).iter().any(|c| c.turn_id == Some(event.id.into()) && matches!(c.payload, Payload::TurnStarted(_)));
                prop_assert_eq!(started, told == Some(event.id.into()), "{:?}", event);
            } else {
                tape.play(step);
            }
        }
    }

    #[test]
    fn an_exited_session_has_no_open_turn(script in any_script()) {
        let mut tape = Tape::new();
        for step in &script {
            tape.play(step);
            if matches!(tape.state.process, Process::Gone { .. }) {
                let session = tape.state.view();
                prop_assert_eq!((session.status.state, &session.turn, session.pid), (State::Exited, &None, None));
            }
        }
    }
}
