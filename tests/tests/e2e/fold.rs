//! Folding the log yields the live state: the same session and the same derived events.

use events::{Confidence, Payload, PromptOrigin, Timestamp, Topic, TurnId};
use projections::{SessionState, StatusRules, shorten::Shown, title};
use tests::{
    recording::Recording,
    transcript::{answer, prompt, session, uuid},
    world::{StoredSession, World},
};

/// A derived event without the fields assigned on writing.
type Derived = (Timestamp, Option<TurnId>, Payload);

/// Folds a session's log again and compares the result with the live one: the whole reducer except `transcripts` and
/// `health` (they describe files, which are not in the log), and the derived events in order.
fn compare(name: &str, kept: &StoredSession, now: Timestamp) -> Result<(), String> {
    let Some(first) = kept.events.first() else { return Ok(()) };
    let who = format!("{name}: session {}", kept.known.provider_session_id);
    for (index, event) in kept.events.iter().enumerate() {
        if event.sequence != index as u64 + 1 {
            return Err(format!("{who}: event {index} has sequence {}", event.sequence));
        }
    }
    let mut state =
        fresh(kept, if first.history { first.created_at.min(first.observed_at) } else { first.observed_at });
    let mut concluded: Vec<Derived> = Vec::new();
    for event in &kept.events {
        concluded.extend(state.fold(event).into_iter().map(|c| (c.at, c.turn_id, c.payload)));
    }
    concluded.extend(state.advance(now).into_iter().map(|c| (c.at, c.turn_id, c.payload)));
    let written: Vec<Derived> =
        kept.events.iter().filter(|e| e.derived).map(|e| (e.created_at, e.turn_id, e.payload.clone())).collect();
    for (index, pair) in written.iter().zip(&concluded).enumerate() {
        if pair.0 != pair.1 {
            return Err(format!("{who}: derived event {index}\n  live {:?}\n  fold {:?}", pair.0, pair.1));
        }
    }
    if written.len() != concluded.len() {
        let more = written.iter().skip(concluded.len()).chain(concluded.iter().skip(written.len())).next();
        return Err(format!(
            "{who}: {} derived events live, {} folded; the first more is {more:?}",
            written.len(),
            concluded.len()
        ));
    }
    state.view();
    let mut live = kept.state.clone();
    live.view();
    state.session.transcripts.clone_from(&live.session.transcripts);
    state.session.health = live.session.health;
    if state != live {
        let (live, fold) = (serde_json::to_value(&live).unwrap(), serde_json::to_value(&state).unwrap());
        return Err(format!("{who}:{}", differences("", &live, &fold)));
    }
    Ok(())
}

fn fresh(kept: &StoredSession, at: Timestamp) -> SessionState {
    SessionState::new(
        kept.known.id,
        kept.known.provider,
        Some(kept.known.provider_session_id.clone()),
        at,
        StatusRules::default(),
    )
}

fn differences(path: &str, live: &serde_json::Value, fold: &serde_json::Value) -> String {
    match (live, fold) {
        (serde_json::Value::Object(a), serde_json::Value::Object(b)) => a
            .iter()
            .filter_map(|(key, value)| Some(differences(&format!("{path}.{key}"), value, b.get(key)?)))
            .collect(),
        (a, b) if a == b => String::new(),
        (a, b) => format!("\n  {path}: live {a} fold {b}"),
    }
}

/// A log with one event per line, for failed comparisons.
fn show(kept: &StoredSession) -> String {
    let line = |e: &events::Event| {
        let text = e.text.as_deref().unwrap_or_default().chars().take(40).collect::<String>();
        let data = serde_json::to_string(&e.payload).unwrap();
        format!(
            "{:>4} {} {}{} {} {} {data:.160} {text:?}\n",
            e.sequence,
            &e.observed_at.to_string()[11..],
            if e.derived { "D " } else { "  " },
            e.payload.kind(),
            e.source,
            e.confidence
        )
    };
    kept.events.iter().map(line).collect()
}

fn play(name: &str) -> (Timestamp, Vec<StoredSession>) {
    let recording = Recording::load(name);
    let mut world = World::new(recording.about.started_at);
    world.play(&recording);
    let now = world.wall();
    (now, world.end().1)
}

/// Checks the past: the state computed from the log up to each change equals the state that the change recorded. Of
/// several changes at the same time the last counts.
fn check_the_past(name: &str, kept: &StoredSession) -> usize {
    let changes: Vec<_> = kept
        .events
        .iter()
        .filter_map(|event| {
            let Payload::StatusChanged(change) = &event.payload else { return None };
            Some((event.created_at, change.to))
        })
        .collect();
    let told_late = kept.events.iter().filter(|e| !e.derived).map(SessionState::moment_of);
    let told_late = !told_late.is_sorted();
    let mut checked = 0;
    for (index, (at, to)) in changes.iter().enumerate() {
        if told_late || changes.get(index + 1).is_some_and(|next| next.0 <= *at) {
            continue;
        }
        let mut then = fresh(kept, *at);
        for event in kept.events.iter().filter(|event| SessionState::moment_of(event) <= *at) {
            then.fold(event);
        }
        then.advance(*at);
        let (status, account) = then.account(*at);
        assert_eq!(status.state, *to, "{name}: at {at}\n{account:#?}\n{}", show(kept));
        assert_eq!(account.claims[0].state, *to, "{name}: at {at}");
        checked += 1;
    }
    checked
}

fn check(name: &str) {
    let (now, kept) = play(name);
    let checked: usize = kept.iter().map(|kept| check_the_past(name, kept)).sum();
    println!("{name}: {checked} past moments");
    assert!(kept.iter().any(|k| !k.events.is_empty()), "{name}: nothing was kept");
    let wrong: Vec<(String, &StoredSession)> =
        kept.iter().filter_map(|kept| Some((compare(name, kept, now).err()?, kept))).collect();
    for (_, kept) in &wrong {
        println!("{}", show(kept));
    }
    let wrong: Vec<String> = wrong.into_iter().map(|(what, _)| what).collect();
    assert!(wrong.is_empty(), "the fold of the log is not the live state\n{}", wrong.join("\n"));
}

/// Only the log decides: the time at which a reducer is created does not affect the result. (The program creates it
/// with the time of the first live record, and with the `created_at` of the first event when it folds the log again.)
#[test]
fn folding_does_not_depend_on_the_creation_time_of_the_reducer() {
    let (_, kept) = play("claude/S14-resume-fork");
    for kept in kept.iter().filter(|k| !k.events.is_empty()) {
        let fold = |at: Timestamp| {
            let mut state = fresh(kept, at);
            kept.events.iter().for_each(|event| drop(state.fold(event)));
            serde_json::to_value(state).unwrap()
        };
        let at = kept.events[0].observed_at;
        let (early, late) = (fold(at.plus_ms(-3_600_000)), fold(at.plus_ms(3_600_000)));
        assert!(early == late, "{}:{}", kept.known.provider_session_id, differences("", &early, &late));
    }
}

/// A batch may wait for a slow disk while a deadline passes; the conclusions drawn in that time must follow from the
/// log as well.
#[test]
fn folding_matches_live_state_if_a_batch_waited_past_a_deadline() {
    let mut world = World::new(1_795_149_430_665);
    let name = session(1);
    let path = world.home().join(format!(".claude/projects/-proj/{name}.jsonl"));
    world.run_to(1_000);
    world.append(&path, &(prompt(&name, &uuid(1, 1), "/", "go") + &answer(&name, &uuid(1, 2), "/", "done")), None);
    // After two minutes the session becomes idle; the user types a prompt shortly before.
    world.run_to(120_900);
    world.waiting = Some(Vec::new());
    world.append(&path, &prompt(&name, &uuid(1, 3), "/", "again"), None);
    world.run_to(121_500);
    world.let_go();
    let now = world.wall();
    let (_dir, kept) = world.end();
    println!("{}", show(&kept[0]));
    compare("made up", &kept[0], now).unwrap();
}

macro_rules! recordings {
    ($($test:ident $name:literal;)*) => {
        $(#[test]
        fn $test() {
            check($name);
        })*
    };
}

recordings! {
    claude_s01 "claude/S01-hello";
    claude_s03 "claude/S03-bash-approve";
    claude_s05 "claude/S05-long-quiet";
    claude_s07 "claude/S07-retries";
    claude_s09 "claude/S09-interrupt";
    claude_s10 "claude/S10-sigkill";
    claude_s11 "claude/S11-question";
    claude_s12 "claude/S12-subagent";
    claude_s13 "claude/S13-compact";
    claude_s14 "claude/S14-resume-fork";
    claude_s15 "claude/S15-edit-write";
    claude_s17 "claude/S17-parallel";
    claude_s18 "claude/S18-plan";
    claude_s24 "claude/S24-webfetch-mcp-elicitation";
    codex_s01 "codex/S01-hello";
    codex_s03 "codex/S03-approve";
    codex_s07a "codex/S07a-retries-then-ok";
    codex_s08 "codex/S08-auth-401";
    codex_s09 "codex/S09-interrupt";
    codex_s12 "codex/S12-subagent";
    codex_s13 "codex/S13-compact";
    codex_s14 "codex/S14-resume-fork";
    codex_s18 "codex/S18-plan";
    codex_s23 "codex/S23-steer-while-running";
    codex_a04 "codex/A04-daemon-tui-killed";
    gemini_s01 "gemini/S01-hello";
    gemini_s03 "gemini/S03-shell-approve";
    gemini_s05 "gemini/S05-long-quiet-command";
    gemini_s09 "gemini/S09-interrupt-stream";
    gemini_s12 "gemini/S12-subagent";
    gemini_s13 "gemini/S13-compress";
    gemini_s14b "gemini/S14b-resume-latest";
    gemini_s15 "gemini/S15-file-edit";
    gemini_s92 "gemini/S92-resume-legacy-json-with-0.61";
}

/// The title that follows from the events of a session: the last name it was given, otherwise the last prompt that is a
/// task in itself, otherwise the first prompt that names a subject. `None` if there is no such event.
fn told_title(kept: &StoredSession) -> Option<String> {
    let (mut given, mut told) = (None, None);
    for event in kept.events.iter().filter(|event| !event.derived) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "prompts and names are what titles are made of")]
        match &event.payload {
            Payload::Annotation(note) if note.topic == Topic::Title => given = Some(note.value.clone()),
            // A repeated prompt counts once; a prompt typed while the agent works belongs to that work.
            Payload::UserPrompt(prompt) if event.confidence != Confidence::Low => {
                let text = &Shown::of(event.text.as_deref().unwrap_or_default());
                match prompt.origin {
                    PromptOrigin::Human | PromptOrigin::Agent => {
                        told = title::task(text).or(told).or_else(|| title::intent(text));
                    }
                    PromptOrigin::Steering => told = told.or_else(|| title::intent(text)),
                    PromptOrigin::Wakeup | PromptOrigin::Command | PromptOrigin::Monitor => {}
                }
            }
            _ => {}
        }
    }
    given.or(told)
}

#[test]
fn recorded_sessions_are_titled_by_their_last_task() {
    let mut titles = Vec::new();
    for recording in [
        "claude/S12-subagent",
        "claude/S13-compact",
        "claude/S14-resume-fork",
        "codex/S14-resume-fork",
        "codex/S23-steer-while-running",
        "gemini/S14b-resume-latest",
        "opencode/S12-subagent",
        "pi/S02-tools-and-tree",
    ] {
        let recorded = Recording::load(recording);
        let mut world = World::new(recorded.about.started_at);
        world.play(&recorded);
        for kept in world.end().1 {
            let Some(told) = told_title(&kept) else { continue };
            let title = kept.state.session.title.clone().unwrap_or_default();
            assert_eq!(title, told, "{recording}: {}", kept.known.provider_session_id);
            titles.push(format!("{recording}: {title}"));
        }
    }
    println!("{titles:#?}");
    assert!(titles.len() >= 8, "{titles:#?}");
}
