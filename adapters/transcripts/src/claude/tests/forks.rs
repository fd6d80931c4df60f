//! Files that begin with copies of another file's lines, and files that only look so.

use events::Kind;

use super::*;

const PARENT: &str = "102dab90-8bed-471c-a3c3-ed02ea809bc2";
const ROOT: &str = "00000000-aaaa-4bbb-8ccc-000000000000";

/// A line of the file of `OWN`: `by` is the session in which its process started, `of` the session a branch copied it
/// from.
fn line(uuid: &str, what: &str, by: Option<&str>, of: Option<&str>) -> String {
    let by = by.map(|id| format!(",\"session_id\":\"{id}\"")).unwrap_or_default();
    let of = of
        .map(|id| format!(",\"forkedFrom\":{{\"sessionId\":\"{id}\",\"messageUuid\":\"{uuid}\"}}"))
        .unwrap_or_default();
    let rest = match what.split_once(' ') {
        Some(("prompt", text)) => format!(r#""type":"user","message":{{"role":"user","content":"{text}"}}"#),
        Some(("answer", text)) => format!(
            r#""type":"assistant","message":{{"id":"m{uuid}","content":[{{"type":"text","text":"{text}"}}],"stop_reason":"end_turn"}}"#
        ),
        _ => r#""type":"system","subtype":"turn_duration""#.into(),
    };
    format!(
        r#"{{"parentUuid":null,{rest},"uuid":"{uuid}","timestamp":"2026-11-20T04:40:37.097Z","sessionId":"{OWN}","cwd":"/p"{by}{of}}}"#
    ) + "\n"
}

/// The sessions of the records: `session uuid`, with `own` for the file's session. Starts are left out.
fn owners(out: &Decoded) -> Vec<String> {
    let mut said = Vec::new();
    for event in &out.events {
        let session = match &*event.provider_session_id {
            OWN => "own",
            PARENT => "parent",
            ROOT => "root",
            other => other,
        };
        match &event.payload {
            Payload::UserPrompt(_) | Payload::AssistantMessage(_) => {
                said.push(format!("{session}: {}", event.text.as_deref().unwrap_or("-")))
            }
            Payload::Signal(_) => said.push(format!("{session}: end")),
            Payload::SessionForked(fork) => {
                said.push(format!("{session} from {}", if fork.from == PARENT { "parent" } else { &fork.from }))
            }
            _ => {}
        }
    }
    said
}

#[track_caller]
fn check(lines: &[String], cuts: &[usize], expected: &[&str]) {
    let bytes = lines.concat();
    for restart in [false, true] {
        let out = in_reads(&transcript(OWN), bytes.as_bytes(), cuts, restart);
        assert_eq!(owners(&out), expected, "cut behind {cuts:?}, restart {restart}");
        assert_eq!(out.issues, 0);
    }
}

fn forked() -> Vec<String> {
    vec![
        line("1", "prompt one", None, None),
        line("2", "answer yes", Some(PARENT), None),
        line("3", "end", None, None),
        line("4", "prompt two", None, None),
        line("5", "answer si", Some(PARENT), None),
        line("6", "end", None, None),
        line("7", "prompt mine", None, None),
        line("8", "answer ok", Some(OWN), None),
        line("9", "end", None, None),
        line("10", "prompt more", None, None),
    ]
}

const FORKED: [&str; 11] = [
    "own from parent",
    "parent: one",
    "parent: yes",
    "parent: end",
    "parent: two",
    "parent: si",
    "parent: end",
    "own: mine",
    "own: ok",
    "own: end",
    "own: more",
];

#[test]
fn copied_records_of_a_fork_belong_to_their_original_session() {
    check(&forked(), &[], &FORKED);
    // Reads that end where a record determines the session.
    for cut in [1, 2, 4, 5, 7, 8, 9] {
        check(&forked(), &[cut], &FORKED);
    }
    // A fork's file is created with its first prompt: a read that ends after the prompt can determine its session.
    check(&forked(), &[6], &FORKED);
    check(&forked()[..7], &[], &FORKED[..8]);
}

#[test]
fn a_read_ending_after_a_copied_prompt_attributes_it_to_the_fork() {
    // Nothing in the line distinguishes the two cases. Once the record is stored, its session is known.
    let mut expected = FORKED.to_vec();
    expected[4] = "own: two";
    check(&forked(), &[3], &expected);
}

#[test]
fn copied_records_of_a_branch_belong_to_their_original_session() {
    let of = Some(PARENT);
    let lines = [
        line("1", "prompt one", None, of),
        line("2", "answer yes", Some(ROOT), of),
        line("3", "end", None, of),
        line("4", "prompt two", None, of),
        line("5", "answer si", Some(PARENT), of),
        line("6", "end", None, of),
        // The process keeps the session it started with.
        line("7", "prompt mine", None, None),
        line("8", "answer ok", Some(PARENT), None),
        line("9", "end", None, None),
    ];
    let expected = [
        "own from parent",
        "root: one",
        "root: yes",
        "root: end",
        "parent: two",
        "parent: si",
        "parent: end",
        "own: mine",
        "own: ok",
        "own: end",
    ];
    check(&lines, &[], &expected);
    for cut in [1, 2, 4, 5, 6, 7] {
        check(&lines, &[cut], &expected);
    }
    // A prompt that no line follows yet is attributed like the ones before it, never to the branch.
    let mut ends_early = expected;
    ends_early[4] = "root: two";
    check(&lines, &[3], &ends_early);
    let mut first = expected;
    first[1] = "parent: one";
    check(&lines, &[0], &first);
    check(&lines[..1], &[], &["own from parent", "parent: one"]);
}

#[test]
fn a_session_started_by_clear_is_not_a_fork() {
    // The process keeps the session it started with, in a separate file.
    let lines = [
        line("1", "prompt <local-command-caveat>The command below", None, None),
        line("2", "prompt <command-name>/clear</command-name>", None, None),
        line("3", "prompt one", None, None),
        line("4", "answer yes", Some(PARENT), None),
        line("5", "end", None, None),
        line("6", "prompt two", None, None),
        line("7", "answer si", Some(OWN), None),
    ];
    let expected = ["own: one", "own: yes", "own: end", "own: two", "own: si"];
    check(&lines, &[], &expected);
    for cut in 0..lines.len() {
        check(&lines, &[cut], &expected);
    }
}

#[test]
fn a_session_resumed_inside_another_process_keeps_its_records() {
    // `/resume` inside a process: it writes into an old file under the session it started with.
    let lines = [
        line("1", "prompt one", None, None),
        line("2", "answer yes", Some(OWN), None),
        line("3", "prompt two", None, None),
        line("4", "answer si", Some(PARENT), None),
        line("5", "end", None, None),
    ];
    let expected = ["own: one", "own: yes", "own: two", "own: si", "own: end"];
    for cut in 0..lines.len() {
        check(&lines, &[cut], &expected);
    }
}

#[test]
fn records_without_session_ids_belong_to_the_session_of_their_file() {
    let lines = [
        line("1", "prompt one", None, None),
        line("2", "answer yes", None, None),
        line("3", "prompt two", None, None),
        line("4", "prompt really", None, None),
        line("5", "answer si", None, None),
        line("6", "prompt three", None, None),
    ];
    let expected = ["own: one", "own: yes", "own: two", "own: really", "own: si", "own: three"];
    check(&lines, &[], &expected);
    for cut in 0..lines.len() {
        check(&lines, &[cut], &expected);
    }
    // Nor do system lines: the prompt comes before the lines that follow it.
    let lines =
        [line("1", "prompt one", None, None), line("2", "end", None, None), line("3", "prompt two", None, None)];
    check(&lines, &[], &["own: one", "own: end", "own: two"]);
}

#[test]
fn recorded_forks_and_branches_attribute_records_to_their_sessions() {
    // One session that was resumed twice, forked, rewound, branched, cleared, renamed and continued.
    let files = recorded("S14-resume-fork");
    let short = |id: &str| id.split('-').next().unwrap().to_owned();
    let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, bytes) in &files {
        let own = short(path.rsplit('/').next().unwrap());
        let list = said.entry(own).or_default();
        for event in decode(path, bytes).events {
            match event.payload.kind() {
                Kind::UserPrompt | Kind::AssistantMessage => {
                    list.push(format!("{} {}", short(&event.provider_session_id), event.text.unwrap_or_default()))
                }
                Kind::SessionForked => list.push(format!(
                    "{} {}",
                    short(&event.provider_session_id),
                    show(&event).split(" at ").next().unwrap()
                )),
                _ => {}
            }
        }
    }
    let of = |own: &str| said[own].iter().map(String::as_str).collect::<Vec<_>>();
    let first = ["102dab90 Turn one", "102dab90 Reply 1.", "102dab90 Turn two after resume", "102dab90 Reply 2."];
    assert_eq!(of("102dab90"), first);
    let fork = [
        &["d083ef00 session.forked from 102dab90-8bed-471c-a3c3-ed02ea809bc2"][..],
        &first,
        &[
            "d083ef00 Turn three in the fork",
            "d083ef00 Reply 3.",
            "d083ef00 Turn after rewind",
            // Emitted for the line that the prompt follows, and for the one that marks the rewind.
            "d083ef00 session.forked from d083ef00-e654-41eb-90c5-ea9943d25aa0",
            "d083ef00 session.forked from d083ef00-e654-41eb-90c5-ea9943d25aa0",
            "d083ef00 Reply 4.",
        ],
    ]
    .concat();
    let mut seen = of("d083ef00");
    // The rewind is written when the next prompt is submitted, in no fixed order.
    let mut expected = fork.clone();
    seen.sort_unstable();
    expected.sort_unstable();
    assert_eq!(seen, expected);
    let branch = [
        &["389cf738 session.forked from d083ef00-e654-41eb-90c5-ea9943d25aa0"][..],
        &first,
        &["d083ef00 Turn after rewind", "d083ef00 Reply 4.", "389cf738 Turn in the branch", "389cf738 Reply 5."],
    ]
    .concat();
    assert_eq!(of("389cf738"), branch);
    assert_eq!(
        of("e1a54033"),
        ["e1a54033 Turn after clear", "e1a54033 Reply 6.", "e1a54033 Turn after continue", "e1a54033 Reply 7."]
    );
}

#[test]
fn headless_sessions_are_detected_from_the_entrypoint() {
    let of = |entrypoint: &str, uuid: &str| {
        let line = line(uuid, "prompt go", Some(OWN), None);
        line.replace(r#""cwd":"/p""#, &format!(r#""cwd":"/p","entrypoint":"{entrypoint}""#))
    };
    let told = |lines: &[String]| -> Vec<Option<bool>> {
        let out = decode(&transcript(OWN), lines.concat().as_bytes());
        let starts = out.events.iter().filter_map(|event| match &event.payload {
            Payload::SessionStarted(started) => Some(started.headless),
            _ => None,
        });
        starts.collect()
    };
    for (entrypoint, headless) in [("cli", false), ("claude-vscode", false), ("sdk-cli", true), ("sdk-py", true)] {
        assert_eq!(told(&[of(entrypoint, "1"), of(entrypoint, "2")]), [Some(headless)], "{entrypoint}");
    }
    // A person continues a session that a program started.
    assert_eq!(told(&[of("sdk-cli", "1"), of("cli", "2"), of("cli", "3")]), [Some(true), Some(false)]);
    assert_eq!(told(&[line("1", "prompt go", Some(OWN), None)]), [None]);
}

/// The text of the first prompt that each rewind takes back.
fn taken_back(out: &Decoded) -> Vec<String> {
    let rewinds = out.events.iter().filter_map(|event| match &event.payload {
        Payload::SessionForked(fork) if fork.from == OWN => fork.taken_back,
        _ => None,
    });
    let prompt_of = |turn: events::TurnId| {
        let prompt = out.events.iter().find(|event| events::TurnId::from(event.identity.event_id()) == turn);
        prompt.and_then(|prompt| prompt.text.clone()).expect("it is a prompt of the file")
    };
    rewinds.map(prompt_of).collect()
}

#[test]
fn a_prompt_after_an_earlier_line_rewinds_the_prompts_after_it() {
    let behind = |parent: &str, uuid: &str, what: &str| {
        line(uuid, what, Some(OWN), None).replace(r#""parentUuid":null"#, &format!(r#""parentUuid":"{parent}""#))
    };
    let lines = [
        line("1", "prompt one", Some(OWN), None),
        behind("1", "2", "answer yes"),
        behind("2", "3", "prompt two"),
        behind("3", "4", "answer si"),
        behind("4", "5", "prompt three"),
        // Goes back to before the second one.
        behind("2", "6", "prompt other"),
        behind("6", "7", "answer ok"),
        behind("7", "8", "prompt more"),
        // Stopped before the answer arrived, then typed with different words.
        behind("7", "9", "prompt much more"),
        behind("9", "10", "answer well"),
    ];
    let bytes = lines.concat();
    for restart in [false, true] {
        for cut in 0..lines.len() {
            let out = in_reads(&transcript(OWN), bytes.as_bytes(), &[cut], restart);
            assert_eq!(taken_back(&out), ["two", "more"], "cut behind {cut}, restart {restart}");
        }
    }
    // If lines do not name the line they follow, no rewind can be detected.
    let unknown = [line("1", "prompt one", Some(OWN), None), line("2", "prompt two", Some(OWN), None)].concat();
    assert!(taken_back(&decode(&transcript(OWN), unknown.as_bytes())).is_empty());
}
