use events::{
    Confidence, Origin, Provider, SessionId, SessionStarted, Source, Timestamp, ToolResult, TurnStarted, UserPrompt,
};
use proptest::prelude::*;

use super::*;

const CWD: &str = "/home/ada/work/app";

/// A session from lines: `> prompt`, `+ steering prompt`, `~` (a turn without a prompt), `r file`, `e file...`,
/// `! file` (a refused edit), `? file` (an edit without a result), `x command`, `i file identifier` (an edit with this
/// text). `e*20 file` repeats a step.
struct Script {
    drift: Drift,
    sequence: u64,
    turn: u32,
}

impl Script {
    fn new() -> Self {
        let mut script = Self { drift: Drift::default(), sequence: 0, turn: 0 };
        script.event(SessionStarted { cwd: Some(CWD.into()), ..SessionStarted::default() }, None);
        script
    }

    fn event(&mut self, payload: impl Into<Payload>, text: Option<&str>) {
        self.sequence += 1;
        self.drift.apply(&event(self.sequence, payload.into(), text));
    }

    fn call(&mut self, tool: ToolKind, files: &[&str], text: Option<&str>, outcome: Option<ToolOutcome>) {
        let call_id = format!("c{}", self.sequence);
        let title = Some(files.join(", "));
        let files = files.iter().filter(|_| files.len() > 1).map(|file| (*file).to_owned()).collect();
        self.event(ToolCall { call_id: call_id.clone(), tool, title, files, ..ToolCall::default() }, text);
        if let Some(outcome) = outcome {
            self.event(ToolResult { call_id, outcome, ..ToolResult::default() }, None);
        }
    }

    fn line(&mut self, line: &str) {
        let (step, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (step, times) = step.split_once('*').map_or((step, 1), |(step, times)| (step, times.parse().unwrap()));
        let words: Vec<&str> = rest.split(' ').collect();
        for n in 0..times {
            // `#` is the number of the repetition.
            let numbered: Vec<String> = words.iter().map(|word| word.replace('#', &n.to_string())).collect();
            let files: Vec<&str> = numbered.iter().map(String::as_str).collect();
            match step {
                ">" => {
                    self.turn += 1;
                    self.event(UserPrompt::default(), Some(rest));
                    self.event(TurnStarted { trigger: TurnTrigger::Prompt, number: self.turn }, None);
                }
                "+" => self.event(UserPrompt { origin: PromptOrigin::Steering, ..UserPrompt::default() }, Some(rest)),
                "~" => {
                    self.turn += 1;
                    self.event(TurnStarted { trigger: TurnTrigger::Wakeup, number: self.turn }, None);
                }
                "r" => self.call(ToolKind::Read, &files, None, Some(ToolOutcome::Ok)),
                "e" => self.call(ToolKind::Edit, &files, None, Some(ToolOutcome::Ok)),
                "!" => self.call(ToolKind::Edit, &files, None, Some(ToolOutcome::Denied)),
                "?" => self.call(ToolKind::Edit, &files, None, None),
                "i" => self.call(ToolKind::Edit, &files[..1], Some(files[1]), Some(ToolOutcome::Ok)),
                "x" => self.call(ToolKind::Execute, &[rest], None, Some(ToolOutcome::Ok)),
                _ => panic!("{line}"),
            }
        }
    }

    fn of(lines: &[&str]) -> Drift {
        let mut script = Self::new();
        lines.iter().for_each(|line| script.line(line));
        script.drift
    }
}

fn event(sequence: u64, payload: Payload, text: Option<&str>) -> Event {
    Event {
        position: sequence,
        id: EventId::from_bits(sequence.into()),
        session_id: SessionId::from_bits(1),
        sequence,
        provider: Provider::Claude,
        provider_session_id: "p".into(),
        source: Source::Transcript,
        created_at: Timestamp::MIN,
        observed_at: Timestamp::MIN,
        turn_id: None,
        parent_id: None,
        agent_id: None,
        confidence: Confidence::High,
        severity: None,
        text: text.map(str::to_owned),
        text_ref: None,
        payload,
        origin: Origin::Derived,
        derived: false,
        history: false,
    }
}

#[test]
fn a_prompt_names_paths_files_identifiers_and_directories() {
    // Names that are certain, then names that count once a changed file matches them.
    const CASES: &[(&str, &[&str], &[&str])] = &[
        ("Fix src/parser.rs", &["src/parser.rs"], &[]),
        ("fix the bug in parser.rs.", &["parser.rs"], &[]),
        ("look at (src/lib.rs:12:5), please", &["src/lib.rs"], &[]),
        ("see src/lib.rs:10-20 and src/a.rs#L3", &["src/lib.rs", "src/a.rs"], &[]),
        ("@src/app.tsx is broken", &["src/app.tsx"], &[]),
        ("\"web/main.ts\"'s imports", &["web/main.ts"], &[]),
        ("change /home/ada/work/app/src/a.rs", &["/home/ada/work/app/src/a.rs"], &[]),
        ("change ./scripts/run.sh and Cargo.toml", &["./scripts/run.sh", "Cargo.toml"], &[]),
        ("windows: src\\win\\pipe.rs", &["src\\win\\pipe.rs"], &[]),
        ("everything in crates/parser/", &["crates/parser/"], &[]),
        ("all of src/**/*.rs", &["src/**/*.rs"], &[]),
        ("edit .gitignore", &[".gitignore"], &[]),
        ("the parser crate is slow", &[], &["parser"]),
        ("tidy up the directory docs", &[], &["docs"]),
        ("follow docs/plan.md", &[], &["docs/plan.md"]),
        ("follow NOTES.md", &[], &["NOTES.md"]),
        ("rename `parse_line` to `read_line`", &[], &["parse_line", "read_line"]),
        ("`Parser::parse()` panics", &[], &["Parser::parse"]),
        ("`src/deep.rs` panics", &["src/deep.rs"], &[]),
        ("look at crates/store", &[], &["crates/store"]),
        ("read and/or write", &[], &["and/or"]),
        ("see https://example.com/a/b.rs", &[], &[]),
        ("like github.com/rust-lang/rust.rs", &[], &[]),
        ("upgrade to node.js 22.1 or v1.2.3", &[], &[]),
        ("e.g. the speed, i.e. 3.5 s", &[], &[]),
        ("run `cargo test -p a` and `ls`", &[], &[]),
        ("1/2 of it", &[], &[]),
        ("make it faster", &[], &[]),
        ("```\nat src/x.js:3\n```\nfix this", &[], &["src/x.js"]),
        ("src/a.rs src/a.rs a.rs", &["src/a.rs", "a.rs"], &[]),
        ("", &[], &[]),
    ];
    for (prompt, firm, weak) in CASES {
        let names = names(prompt, Some(CWD));
        let of = |is_firm: bool| {
            let names = names.iter().filter(|name| name.kind != NameKind::Word && name.is_firm == is_firm);
            names.map(|name| name.text.as_str()).collect::<Vec<_>>()
        };
        assert_eq!((of(true).as_slice(), of(false).as_slice()), (*firm, *weak), "{prompt}");
    }
    let many: String = (0..100).map(|n| format!("src/f{n}.rs ")).collect();
    assert_eq!(names(&many, None).len(), names::NAMES);
}

#[test]
fn an_edit_has_a_distance_from_the_names() {
    use Distance::{Elsewhere, Named, Near, ReadFirst};
    // The distance of the last changed file.
    let cases: &[(&[&str], Option<Distance>)] = &[
        (&["> fix src/parser.rs", "e src/parser.rs"], Some(Named)),
        (&["> fix src/parser.rs", "e /home/ada/work/app/src/parser.rs"], Some(Named)),
        (&["> fix src/parser.rs", "e /home/ada/trees/b/src/parser.rs"], Some(Named)),
        (&["> fix /home/ada/work/app/src/parser.rs", "e src/parser.rs"], Some(Named)),
        (&["> fix Parser.RS", "e src/parser.rs"], Some(Named)),
        (&["> fix src\\parser.rs", "e src/parser.rs"], Some(Named)),
        (&["> fix crates/parser/", "e crates/parser/src/deep/a.rs"], Some(Named)),
        (&["> fix src/**/*.rs", "e src/deep/a.rs"], Some(Named)),
        (&["> fix the parser crate", "e crates/parser/src/a.rs"], Some(Named)),
        (&["> fix `parse_line`", "e src/parse_line.rs"], Some(Named)),
        (&["> fix `ParseLine::new`", "e src/parse_line.rs"], Some(Named)),
        (&["> fix the parser", "e src/parser.rs"], Some(Named)),
        (&["> fix the parsers", "e src/parser.rs"], Some(Named)),
        (&["> fix src/a.rs", "e src/a.rs", "> now the lexer", "e lib/lexer.rs"], Some(Named)),
        (&["> fix src/a.rs", "> make it faster", "e src/a.rs"], Some(Named)),
        (&["> fix it", "+ I mean src/a.rs", "e src/a.rs"], Some(Named)),
        (&["> fix src/parser.rs", "e src/lexer.rs"], Some(Near)),
        (&["> fix parser.rs", "r src/parser.rs", "e src/lexer.rs"], Some(Near)),
        (&["> fix parser.rs", "e src/parser.rs", "e src/lexer.rs"], Some(Near)),
        (&["> fix src/parser.rs", "e tests/parser.rs"], Some(Near)),
        (&["> fix src/parser.rs", "e src/parser/tests.rs"], Some(Near)),
        (&["> fix pkg/parser.go", "e other/parser_test.go"], Some(Near)),
        (&["> fix app/user.ts", "e spec/user.spec.ts"], Some(Near)),
        (&["> fix app/user.tsx", "e app/__tests__/user.test.tsx"], Some(Near)),
        (&["> fix app/user.py", "e tests/test_user.py"], Some(Near)),
        (&["> fix lib/user.ex", "e test/user_test.exs"], Some(Near)),
        (&["> fix main/User.java", "e unit/UserTest.java"], Some(Near)),
        (&["> fix tests/parser.rs", "e lib/parser.rs"], Some(Near)),
        (&["> fix src/parser.rs", "e Cargo.toml"], Some(Near)),
        (&["> fix src/parser.rs", "e crates/a/Cargo.lock"], Some(Near)),
        (&["> fix src/a.ts", "e package.json"], Some(Near)),
        (&["> fix src/a.go", "e vendor/go.sum"], Some(Near)),
        (&["> fix src/a.rs and `parse_line`", "i lib/b.rs parse_line(x)"], Some(Near)),
        (&["> fix src/parser.rs", "r lib/b.rs", "e lib/b.rs"], Some(ReadFirst)),
        (&["> fix src/parser.rs", "r lib/b.rs", "~", "e lib/b.rs"], Some(Elsewhere)),
        (&["> fix src/parser.rs", "r lib/c.rs", "e lib/b.rs"], Some(Elsewhere)),
        (&["> fix src/parser.rs", "e lib/parser.rs"], Some(Elsewhere)),
        (&["> fix src/parser.rs", "e lib/myparser.rs"], Some(Elsewhere)),
        (&["> fix src/parser.rs", "e src/deep/b.rs"], Some(Elsewhere)),
        (&["> fix src/parser.rs", "e src/a.rs", "> go on", "e lib/b.rs"], Some(Elsewhere)),
        (&["> make it faster", "e lib/b.rs"], None),
        (&["> make it faster", "e Cargo.toml"], None),
        (&["> follow docs/plan.md", "r docs/plan.md", "e lib/b.rs"], None),
        (&["> read and/or write", "e lib/b.rs"], None),
        (&["> fix src/a.rs", "e src/a.rs", "> make the start faster", "e lib/b.rs"], None),
    ];
    for (lines, expected) in cases {
        let drift = Script::of(lines);
        let file = drift.asks.last().unwrap().files.last().unwrap();
        assert_eq!(file.distance, *expected, "{lines:?}: {file:?}");
    }
}

#[test]
fn only_edits_that_were_carried_out_are_listed_once_per_file() {
    let drift = Script::of(&[
        "e early.rs",
        "> fix src/a.rs and `run_it`",
        "! src/b.rs",
        "? src/c.rs",
        "e src/a.rs lib/d.rs",
        "e src/a.rs",
        "x cargo test",
        "~",
        "x cargo test",
        "> thanks",
    ]);
    let [ask, thanks] = drift.asks.as_slice() else { panic!("{drift:?}") };
    assert_eq!((ask.turn, ask.commands, thanks.turn), (1, 2, 3));
    assert_eq!(
        (ask.prompt.as_str(), ask.named.as_slice()),
        ("fix src/a.rs and `run_it`", ["src/a.rs".into()].as_slice())
    );
    let files: Vec<_> = ask.files.iter().map(|file| (file.file.as_str(), file.edits, file.distance)).collect();
    assert_eq!(files, [("src/a.rs", 2, Some(Distance::Named)), ("lib/d.rs", 1, Some(Distance::Elsewhere))]);
    assert_eq!(drift.left, None);
}

/// Sessions that leave their subject: the turn and the file.
const LEAVE: &[(&[&str], u32, &str)] = &[
    (&["> fix src/a.rs", "e x/1.rs", "e x/2.rs", "e y/3.rs"], 1, "x/1.rs"),
    (&["> fix src/a.rs", "r x/1.rs", "e x/1.rs", "r y/1.rs", "e y/1.rs", "e y/2.rs"], 1, "x/1.rs"),
    (&["> fix src/a.rs", "r src/a.rs", "e x/1.rs", "e y/2.rs", "e z/3.rs"], 1, "x/1.rs"),
    (&["> fix src/a.rs", "e src/a.rs", "e*10 x/#.rs", "e*10 y/#.rs"], 1, "x/0.rs"),
    (&["> fix src/a.rs", "e src/a.rs", "> go on", "e*10 x/#.rs", "e*10 y/#.rs"], 2, "x/0.rs"),
    (&["> fix src/a.rs", "e src/a.rs", "e*5 x/#.rs", "~", "e*20 y/#.rs"], 1, "x/0.rs"),
    (&["> fix src/a.rs", "e src/a.rs", "~", "e*20 y/#.rs", "e z/1.rs"], 2, "y/0.rs"),
    (&["> hello", "> fix the parser crate", "e parser/a.rs", "e*19 x/#.rs", "e y/1.rs"], 2, "x/0.rs"),
    (&["> fix `run_it`", "e lib/run_it.rs", "e lib/a.rs", "e*19 x/#.rs", "e y/1.rs"], 1, "x/0.rs"),
    (&["> fix src/a.rs", "e src/a.rs", "> fix src/b.rs", "e src/b.rs", "e*30 x#/a.rs"], 2, "x0/a.rs"),
    (&["> fix src/", "! src/a.rs", "e x/1.rs", "e x/1.rs", "e y/1.rs"], 1, "x/1.rs"),
    (&["> fix src/a.rs", "e x/1.rs y/1.rs", "e x/1.rs", "e x/2.rs", "> and now?", "e src/a.rs"], 1, "x/1.rs"),
];

#[test]
fn a_session_leaves_its_subject_with_the_first_of_several_far_edits() {
    for (lines, turn, file) in LEAVE {
        let drift = Script::of(lines);
        let left = drift.left.unwrap_or_else(|| panic!("{lines:?}: {:#?}", drift.asks));
        assert_eq!((left.turn, left.file.as_str()), (*turn, *file), "{lines:?}");
    }
    assert_eq!(LEAVE.len(), 12);
}

/// Sessions that seem to leave their subject.
const STAY: &[&[&str]] = &[
    // Many files in one directory.
    &["> refactor src/a.rs", "e*40 src/#.rs"],
    &["> refactor src/a.rs", "e*40 lib/#.rs"],
    &["> move everything out of src/old/", "e*40 src/old/deep#/a.rs"],
    &["> refactor the parser crate", "e*40 crates/parser/m#/a.rs"],
    &["> rewrite src/**/*.ts", "e*40 src/m#/a.ts"],
    // Test twins.
    &["> fix src/a.rs", "e tests/a.rs", "e src/a/tests.rs", "e spec/a_test.rs", "e x/1.rs", "e y/1.rs", "e z/1.rs"],
    &["> fix app/user.ts", "e*30 spec#/user.spec.ts"],
    // Manifests.
    &["> fix src/a.rs", "e*30 m#/Cargo.toml"],
    &["> upgrade package.json", "e*30 p#/package.json", "e x/1.ts", "e y/1.ts", "e z/1.ts"],
    // The user changed the subject.
    &["> fix src/a.rs", "e src/a.rs", "> now fix x/1.rs and y/1.rs", "e*15 x/#.rs", "e*15 y/#.rs"],
    &["> fix src/a.rs", "e src/a.rs", "> make the start faster", "e*30 m#/a.rs"],
    &["> fix src/a.rs", "e src/a.rs", "e*9 m#/a.rs", "> continue, but faster this time", "e*30 n#/a.rs"],
    &["> fix src/a.rs", "e src/a.rs", "+ also x/1.rs and y/1.rs", "e*15 x/#.rs", "e*15 y/#.rs"],
    &["> fix src/a.rs", "e x/1.rs", "e x/2.rs", "e y/3.rs", "> good, x/1.rs was needed"],
    &["> fix src/a.rs", "e web/1.rs", "e web/2.rs", "e y/3.rs", "> keep the changes in directory web"],
    // Nothing, or nothing certain, was named.
    &["> make it faster", "e*30 m#/a.rs"],
    &["> implement the plan in docs/plan.md", "r docs/plan.md", "e*30 m#/a.rs"],
    &["> rename `parse_line` everywhere", "e*30 m#/a.rs"],
    &["> make read and/or write faster", "e*30 m#/a.rs"],
    &["> see https://example.com/a/b.rs", "e*30 m#/a.rs"],
    // Returns to the subject in time, or too few edits.
    &["> fix src/a.rs", "e src/a.rs", "e*19 m#/a.rs", "e src/a.rs", "e*19 n#/a.rs"],
    &["> fix src/a.rs", "e x/1.rs", "e y/1.rs"],
    &["> fix src/a.rs", "! x/1.rs", "! y/1.rs", "? z/1.rs", "e z/2.rs", "e z/3.rs"],
    // An identifier that is renamed everywhere.
    &["> fix src/a.rs: rename `parse_line`", "i*30 m#/a.rs parse_line"],
];

#[test]
fn a_session_that_only_seems_to_leave_its_subject_does_not() {
    for lines in STAY {
        let drift = Script::of(lines);
        assert_eq!(drift.left, None, "{lines:?}");
    }
    assert_eq!(STAY.len(), 24);
}

#[test]
fn secrets_are_removed_from_prompts_names_and_files() {
    let secret = ["ghp_", "x7Kd93LmQp2RtYv8", "WzAc5EfGh1Jk4NbS6uXo"].concat();
    let lines = [format!("> use {secret} in src/{secret}.rs and `{secret}`"), format!("e src/{secret}.rs")];
    let drift = Script::of(&[&lines[0], &lines[1]]);
    let json = serde_json::to_string(&drift).unwrap();
    assert!(json.contains("redacted") && !json.contains("x7Kd93"), "{json}");
}

proptest! {
    #[test]
    fn no_events_panic_or_exceed_the_bounds(
        steps in prop::collection::vec((0_u8..8, "[ -~àß\u{0}\\n`/.]{0,40}", 0_u8..20), 0..400),
        repeats in 1_usize..4,
    ) {
        let mut script = Script::new();
        for (kind, text, n) in steps.iter().cycle().take(steps.len() * repeats) {
            let number = script.sequence;
            let path = format!("{text}/d{n}/f{number}.rs");
            match kind {
                0 => script.event(UserPrompt::default(), Some(&format!("{text} {path}"))),
                1 => script.event(TurnStarted { trigger: TurnTrigger::Prompt, number: u32::from(*n) }, None),
                2 => script.call(ToolKind::Read, &[&path], None, Some(ToolOutcome::Ok)),
                3 => script.call(ToolKind::Edit, &[&path], Some(text), None),
                4 => script.event(UserPrompt { origin: PromptOrigin::Steering, ..UserPrompt::default() }, Some(text)),
                _ => script.call(ToolKind::Edit, &[&path, text], Some(text), Some(ToolOutcome::Ok)),
            }
        }
        let drift = &script.drift;
        prop_assert!(drift.asks.len() <= ASKS);
        prop_assert!(drift.asks.iter().all(|ask| ask.files.len() <= FILES && ask.named.len() <= names::NAMES));
        let scope = &drift.scope;
        prop_assert!(scope.names.len() <= KNOWN && scope.open.len() <= OPEN && scope.reads.len() <= FILES);
        prop_assert!(scope.directories.len() <= PLACES && scope.subjects.len() <= PLACES);
        prop_assert!(scope.streak.files.len() <= FILES && scope.far.len() <= FILES);
    }
}

#[test]
fn the_newest_requests_are_kept() {
    let mut script = Script::new();
    for n in 0..250 {
        script.line(&format!("> fix src/f{n}.rs"));
        script.line("e*2 src/f.rs");
    }
    script.line("e*70 src/g#.rs");
    let drift = script.drift;
    assert_eq!((drift.asks.len(), drift.earlier, drift.asks[0].turn), (ASKS, 50, 51));
    let last = drift.asks.last().unwrap();
    assert_eq!((last.files.len(), last.more_files), (FILES, true));
}
