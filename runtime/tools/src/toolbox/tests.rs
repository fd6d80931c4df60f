use std::{collections::BTreeMap, fs, net::SocketAddr, os::unix::fs::MetadataExt, os::unix::fs::symlink};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::tool::Tool;
use crate::{limits, result::Content, seen::SeenFiles};

/// Resolves no names.
#[derive(Debug)]
struct NoNames;

impl Lookup for NoNames {
    fn addresses(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

const KEY: &str = "AKIAQ3EGUVT5XB2N7WKM";
const TEXT: &str = "one\ntwo\n    three  \n";

/// A directory that is recreated at the same path, with a session's tools in it.
struct Place {
    dir: tempfile::TempDir,
    tools: Tools,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tools = Self::tools(dir.path());
        Self { dir, tools }
    }

    fn tools(dir: &Path) -> Tools {
        for below in ["work", "outside"] {
            fs::create_dir_all(dir.join(below)).unwrap();
        }
        let work = dir.join("work");
        let settings = Settings {
            cwd: work.clone(),
            workspace: work,
            outputs: dir.join("outputs"),
            environment: Vec::new(),
            pass: Vec::new(),
            host: vec!["/nonexistent/host".into()],
            allow_hosts: Vec::new(),
            lookup: Arc::new(NoNames),
        };
        Tools::new(settings).unwrap()
    }

    /// Resets it to the initial state.
    fn again(&mut self) {
        for entry in fs::read_dir(self.dir.path()).unwrap() {
            fs::remove_dir_all(entry.unwrap().path()).unwrap();
        }
        self.tools = Self::tools(self.dir.path());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("work").join(name)
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    fn run(&self, call: &Call, intent: &Intent) -> ToolResult {
        without_times(self.tools.run("c1", call, intent, &Cancel::new().unwrap()))
    }

    /// Performs a call and ignores its result.
    fn does(&self, tool: &str, arguments: Value) {
        let call = call(tool, &arguments);
        self.run(&call, &self.tools.intent(&call).unwrap());
    }

    /// The files the model has seen.
    fn knows(&self) -> SeenFiles {
        self.tools.files.seen().clone()
    }

    /// Everything on the disk: kind and mode, links, content.
    fn disk(&self) -> BTreeMap<PathBuf, (u32, u64, Vec<u8>)> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.dir.path().to_owned()];
        while let Some(at) = left.pop() {
            let about = fs::symlink_metadata(&at).unwrap();
            let content = if about.is_dir() {
                left.extend(fs::read_dir(&at).unwrap().map(|entry| entry.unwrap().path()));
                Vec::new()
            } else if about.is_symlink() {
                fs::read_link(&at).unwrap().into_os_string().into_encoded_bytes()
            } else if about.len() > limits::FILE_BYTES {
                about.len().to_le_bytes().to_vec()
            } else {
                fs::read(&at).unwrap()
            };
            found.insert(at, (about.mode(), if about.is_dir() { 0 } else { about.nlink() }, content));
        }
        found
    }
}

fn call(tool: &str, arguments: &Value) -> Call {
    Call::parse(tool, &arguments.to_string()).unwrap()
}

/// A result without the parts that differ between two equal runs.
fn without_times(mut result: ToolResult) -> ToolResult {
    if let Some(seen) = &mut result.details.seen {
        seen.modified_us = 0;
    }
    result
}

/// States of a file: setup before the call's intent is computed, and changes after it.
type State = (&'static str, fn(&Place), fn(&Place));

const STATES: [State; 20] = [
    ("never read", |place| place.put("a", TEXT), |_| {}),
    ("read", |place| read(place, TEXT), |_| {}),
    (
        "read in part",
        |place| {
            place.put("a", TEXT);
            place.does("read", json!({"path": "a", "limit": 1}));
        },
        |_| {},
    ),
    ("changed since it was read", |place| read(place, TEXT), |place| place.put("a", "one\n2\n    three  \n")),
    ("changed long since", |place| read(place, TEXT), |place| place.put("a", "one\nlong line\n".repeat(900))),
    ("changed, and the call has happened", |place| read(place, TEXT), |place| place.put("a", "1\ntwo\n    three  \n")),
    (
        "changed since another process read it",
        |place| {
            read(place, TEXT);
            let seen = place.knows();
            place.tools.forget_seen();
            for file in seen.files() {
                place.tools.restore(file);
            }
        },
        |place| place.put("a", "one\nother\n"),
    ),
    ("written by us", |place| place.does("write", json!({"path": "a", "content": TEXT})), |_| {}),
    (
        "edited by us",
        |place| {
            place.put("a", TEXT);
            place.does("edit", json!({"path": "a", "edits": [{"old": "two", "new": "2"}]}));
        },
        |_| {},
    ),
    ("deleted", |place| read(place, TEXT), |place| fs::remove_file(place.path("a")).unwrap()),
    ("empty", |place| place.put("a", ""), |_| {}),
    ("binary", |place| place.put("a", b"one\ntwo\0"), |_| {}),
    ("binary since it was read", |place| read(place, TEXT), |place| place.put("a", b"one\ntwo\0")),
    (
        "a link since it was looked at",
        |place| read(place, TEXT),
        |place| {
            place.put("b", TEXT);
            fs::remove_file(place.path("a")).unwrap();
            symlink(place.path("b"), place.path("a")).unwrap();
        },
    ),
    (
        "a link",
        |place| {
            place.put("b", TEXT);
            symlink(place.path("b"), place.path("a")).unwrap();
            place.does("read", json!({"path": "a"}));
        },
        |_| {},
    ),
    (
        "hard links",
        |place| {
            read(place, TEXT);
            fs::hard_link(place.path("a"), place.path("b")).unwrap();
        },
        |_| {},
    ),
    (
        "a directory since it was looked at",
        |place| read(place, TEXT),
        |place| {
            fs::remove_file(place.path("a")).unwrap();
            fs::create_dir(place.path("a")).unwrap();
        },
    ),
    (
        "too large",
        |place| {
            place.put("a", TEXT);
            let file = fs::File::options().append(true).open(place.path("a")).unwrap();
            file.set_len(limits::FILE_BYTES + 1).unwrap();
        },
        |_| {},
    ),
    ("a secret", |place| read(place, &format!("one\naws_access_key_id = {KEY}\ntwo\n")), |_| {}),
    ("absent", |_| {}, |_| {}),
];

fn read(place: &Place, content: &str) {
    place.put("a", content);
    place.does("read", json!({"path": "a"}));
}

/// Calls of every tool.
fn calls() -> Vec<Call> {
    let edit = |old: &str, new: &str| ("edit", json!({"path": "a", "edits": [{"old": old, "new": new}]}));
    let write = |content: &str| ("write", json!({"path": "a", "content": content}));
    let calls = [
        edit("one", "1"),
        edit("one", "one and more"),
        edit("nothing like it", "x"),
        edit("o", "0"),
        edit("2", "two"),
        edit("two \n    three", "two\n    3"),
        edit("two", "two\n[redacted:key]"),
        edit("two\n", "[redacted:key]\n"),
        edit("two", "tw\u{202e}o"),
        ("edit", json!({"path": "a", "edits": [{"old": "one", "new": "1"}, {"old": "one\ntwo", "new": "12"}]})),
        ("edit", json!({"path": "a", "edits": [{"old": "o", "new": "0", "all": true}]})),
        write(TEXT),
        write("another\n"),
        write(""),
        write("x = [redacted:key]\n"),
        ("write", json!({"path": "new/dir/b", "content": "x"})),
        ("write", json!({"path": "../outside/b", "content": "x"})),
        ("read", json!({"path": "a"})),
        ("read", json!({"path": "a", "offset": 2, "limit": 1})),
        ("glob", json!({"pattern": "*"})),
        ("grep", json!({"pattern": "one"})),
        ("bash", json!({"command": "echo a"})),
        ("fetch", json!({"url": "https://nowhere.test/"})),
        ("ask", json!({"question": "Which?"})),
        ("todo", json!({"items": [{"text": "a", "state": "done"}]})),
        ("process", json!({"action": "list"})),
        ("process", json!({"action": "stop", "id": "p1"})),
    ];
    calls.iter().map(|(tool, arguments)| call(tool, arguments)).collect()
}

/// The result of a call, the files the model has seen, and the disk.
type Outcome = (ToolResult, SeenFiles, BTreeMap<PathBuf, (u32, u64, Vec<u8>)>);

#[test]
fn a_preview_does_not_change_the_result_of_a_call() {
    let mut place = Place::new();
    let called: std::collections::BTreeSet<Tool> = calls().iter().map(Call::tool).collect();
    assert_eq!(called.len(), Tool::ALL.len(), "a tool is missing here");
    for (state, before, after) in STATES {
        for call in calls() {
            let told = format!("{state}: {call:?}");
            // Sets up the file for the call; `None` if computing the intent already fails.
            let set_up = |place: &mut Place| {
                place.again();
                before(place);
                let intent = place.tools.intent(&call);
                after(place);
                intent.ok()
            };
            let outcome = |place: &Place, result| -> Outcome { (result, place.knows().without_times(), place.disk()) };
            let Some(intent) = set_up(&mut place) else { continue };
            let disk = place.disk();
            let result = place.run(&call, &intent);
            let plain = outcome(&place, result);

            set_up(&mut place);
            let knows = place.knows();
            let previews: Vec<Option<Preview>> = (0..3).map(|_| place.tools.preview(&call, &intent)).collect();
            assert!(previews.iter().all(|preview| *preview == previews[0]), "{told}");
            assert_eq!((place.knows(), place.disk()), (knows, disk.clone()), "{told}");
            let result = place.run(&call, &intent);
            assert_eq!(outcome(&place, result), plain, "{told}");

            let (result, _, written) = &plain;
            let preview = previews.into_iter().next().unwrap();
            match &preview {
                Some(Preview::WouldChange(diff)) => {
                    assert!(!result.is_error && *written != disk && !diff.is_empty(), "{told}")
                }
                Some(Preview::NoChange(why)) => assert!(!result.is_error && *why == result.joined_text(), "{told}"),
                Some(Preview::Refused(why)) => assert!(result.is_error && *why == result.joined_text(), "{told}"),
                None => assert!(!matches!(call, Call::Edit(_) | Call::Write(_)), "{told}"),
            }
            set_up(&mut place);
            let undecided = without_times(place.tools.run_without_effect(&call, &intent));
            if preview.is_some_and(|preview| preview.is_without_effect()) {
                assert_eq!(*written, disk, "{told}");
                assert_eq!(outcome(&place, undecided), plain, "{told}");
            } else {
                // No one has approved a change.
                assert!(undecided.is_error, "{told}");
                assert_eq!(place.disk(), disk, "{told}");
            }
        }
    }
}

#[test]
fn a_preview_shows_control_characters_but_masks_existing_secrets() {
    let place = Place::new();
    place.put("a", format!("aws_access_key_id = {KEY}\ntwo\n"));
    let call = call("edit", &json!({"path": "a", "edits": [{"old": "two", "new": "t\u{202e}w\u{1b}[2Ko"}]}));
    let preview = place.tools.preview(&call, &place.tools.intent(&call).unwrap());
    let Some(Preview::WouldChange(diff)) = preview else { panic!("{preview:?}") };
    assert!(diff.contains("+t\u{202e}w\u{1b}[2Ko\n") && diff.contains("[redacted:") && !diff.contains(KEY), "{diff:?}");
}

#[test]
fn a_preview_shows_all_new_text_unmasked() {
    let place = Place::new();
    // Text that looks like a secret may be code.
    let code = "API_KEY=$(touch${IFS}made;echo${IFS}k3yAb9Xq)\nclient_secret: \"$(id)aB3dE5gH7\"\n";
    let long = format!("{}touch made\n", "#\n".repeat(90_000));
    for content in [code, long.as_str()] {
        let call = call("write", &json!({"path": "run.sh", "content": content}));
        let preview = place.tools.preview(&call, &place.tools.intent(&call).unwrap());
        let Some(Preview::WouldChange(diff)) = preview else { panic!("{preview:?}") };
        let written: String =
            diff.lines().filter_map(|line| line.strip_prefix('+')).skip(1).flat_map(|line| [line, "\n"]).collect();
        assert_eq!(written, content);
    }
    // Existing lines have their secrets masked.
    place.put("b", format!("aws_access_key_id = {KEY}\none\n"));
    let call = call("edit", &json!({"path": "b", "edits": [{"old": "one", "new": "two"}]}));
    let preview = place.tools.preview(&call, &place.tools.intent(&call).unwrap());
    let Some(Preview::WouldChange(diff)) = preview else { panic!("{preview:?}") };
    assert!(diff.contains("+two\n") && diff.contains("[redacted:") && !diff.contains(KEY), "{diff}");
}

#[test]
fn a_file_name_with_line_breaks_is_one_line_in_a_preview() {
    let place = Place::new();
    let name = "a\n-nothing\n+harmless\r";
    for content in ["", "x\n"] {
        let call = call("write", &json!({"path": name, "content": content}));
        let preview = place.tools.preview(&call, &place.tools.intent(&call).unwrap());
        let Some(Preview::WouldChange(diff)) = preview else { panic!("{preview:?}") };
        let lines: Vec<&str> = diff.lines().take(2).collect();
        assert_eq!(lines, ["--- /dev/null", r"+++ a\n-nothing\n+harmless\r"], "{diff:?}");
    }
}

#[test]
fn a_preview_refuses_an_edit_above_the_file_size_limit() {
    let place = Place::new();
    place.put("a", format!("one\n{}", "x".repeat(limits::FILE_BYTES_MEMORY - 4)));
    let call = call("edit", &json!({"path": "a", "edits": [{"old": "one\n", "new": "and one\n"}]}));
    let intent = place.tools.intent(&call).unwrap();
    let preview = place.tools.preview(&call, &intent);
    let result = place.run(&call, &intent);
    assert!(result.is_error && result.joined_text().contains("the limit is"), "{result:?}");
    assert_eq!(preview, Some(Preview::Refused(result.joined_text())));
}

#[test]
fn only_todo_and_process_calls_are_session_intents() {
    let place = Place::new();
    place.put("a", TEXT);
    let notes = |tool: Tool| matches!(tool, Tool::Todo | Tool::Process);
    for call in calls() {
        let kind = place.tools.intent(&call).unwrap().kind;
        assert_eq!(kind == IntentKind::Session, notes(call.tool()), "{call:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Previews between any calls have no observable effect.
    #[test]
    fn previews_between_any_calls_have_no_effect(steps in prop::collection::vec((0..3_usize, any::<prop::sample::Index>()), 1..12)) {
        let (mut place, calls) = (Place::new(), calls());
        let contents = [TEXT, "one\n2\n    three  \n", "1\ntwo\n    three  \n", "", "one\ntwo\0"];
        let mut told = [false, true].map(|is_previewed| {
            place.again();
            let mut results = Vec::new();
            for (what, which) in &steps {
                if *what == 0 {
                    place.put("a", which.get(&contents));
                    continue;
                }
                let call = which.get(&calls);
                let Ok(intent) = place.tools.intent(call) else { continue };
                if is_previewed {
                    drop(place.tools.preview(call, &intent));
                }
                let mut result = place.run(call, &intent);
                if call.tool() == Tool::Glob {
                    // The newest file comes first; whether two are equally new depends on the clock.
                    for content in &mut result.content {
                        if let Content::Text(text) = content {
                            let mut lines: Vec<&str> = text.lines().collect();
                            lines.sort_unstable();
                            *text = lines.join("\n");
                        }
                    }
                }
                results.push(result);
            }
            (results, place.knows().without_times(), place.disk())
        });
        let [plain, previewed] = &mut told;
        prop_assert_eq!(plain, previewed);
    }
}
