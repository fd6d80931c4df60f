//! Our own agent with scripted models as strict as the vendors' APIs: one prompt in all four APIs, calls decided by
//! rules or by the user, a kill in the middle, limits, and the places in which its key must not appear.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Output, Stdio},
    time::Duration,
};

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::{
    eventually,
    models::{
        AnswerProgress, Api, Model,
        script::{Call, Part, Script, Step, call, hold, say},
    },
    program::Machine,
    terminal_user::{User, end_all, signal, state},
};

use super::PROGRAM;

/// Looks like a key; assembled at run time so that no file contains the whole key.
pub(super) fn key() -> String {
    ["sk-own-", "9f3kQ7vR2mXw8LpZ"].concat()
}

/// A machine on which our own agent uses a scripted model.
pub(super) struct House {
    pub(super) machine: Machine,
    pub(super) model: Model,
}

impl Drop for House {
    fn drop(&mut self) {
        end_all(&self.machine.data());
    }
}

impl House {
    pub(super) fn new(api: Api, script: Script) -> Self {
        Self::with(api, script, "")
    }

    /// With further settings in the configuration's table `[agent]`.
    pub(super) fn with(api: Api, script: Script, more: &str) -> Self {
        let model = Model::exact(api, script).unwrap();
        let machine = Machine::new(PROGRAM);
        let (name, version, id) = match api {
            Api::Anthropic => ("anthropic", "", "claude-sonnet-4-5"),
            Api::Responses => ("responses", "/v1", "gpt-5"),
            Api::Chat => ("chat", "/v1", "local"),
            Api::Gemini => ("gemini", "", "gemini-3-flash-preview"),
        };
        let provider = format!("api = \"{name}\"\nbase_url = \"{}{version}\"\nkey_env = \"OWN_AGENT\"", model.url());
        machine.configure(&format!(
            "autostart = false\n[agent]\nmodel = \"mine/{id}\"\npass = [\"OWN_AGENT\"]\n{more}\n[agent.providers.mine]\n{provider}\n"
        ));
        fs::write(machine.project().join("notes.txt"), "first line\nsecond line\n").unwrap();
        Self { machine, model }
    }

    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.machine.command(&[&["agent"], words].concat());
        command.env("OWN_AGENT", key()).current_dir(self.machine.project());
        command
    }

    /// Runs a prompt without a terminal.
    pub(super) fn run(&self, words: &[&str]) -> Run {
        Run::of(self.command(&[&["run"], words].concat()).output().unwrap())
    }

    /// Runs a prompt with a user at a terminal.
    pub(super) fn at_terminal(&self, words: &str) -> User {
        let script = format!("\"$PROGRAM\" agent run {words}");
        User::start_with(&self.machine, &script, &[("OWN_AGENT", key().as_str())])
    }

    /// The file of the only session.
    pub(super) fn file(&self) -> PathBuf {
        let only = |directory: PathBuf| {
            let mut all = fs::read_dir(directory).unwrap();
            let one = all.next().unwrap().unwrap().path();
            assert!(all.next().is_none(), "there is one");
            one
        };
        // First the directory of the working directory, then the session file in it.
        only(only(self.machine.data().join("agent/sessions")))
    }

    /// The entries of this type in the only session, as stored.
    pub(super) fn entries(&self, custom_type: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.file()).unwrap();
        let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        entries.filter(|entry| entry["customType"] == custom_type).collect()
    }

    pub(super) fn notes(&self) -> String {
        fs::read_to_string(self.machine.project().join("notes.txt")).unwrap()
    }

    /// Whether a command that the agent started is still running.
    pub(super) fn runs(&self, word: &str) -> bool {
        let project = self.machine.project().canonicalize().unwrap();
        fs::read_dir("/proc").unwrap().any(|entry| {
            let process = entry.unwrap().path();
            let words = fs::read(process.join("cmdline")).unwrap_or_default();
            let is_here = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == project);
            is_here && words.split(|byte| *byte == 0).any(|of| of == word.as_bytes())
        })
    }

    /// Asserts that the model refused no request and that the key is in no file.
    #[track_caller]
    pub(super) fn is_clean(&self) {
        assert_eq!(self.model.refusals(), [""; 0]);
        let mut open = vec![self.machine.data(), self.machine.project()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
                let mode = fs::symlink_metadata(&entry).unwrap().permissions().mode();
                assert!(!entry.starts_with(self.machine.data()) || mode & 0o077 == 0, "{} {mode:o}", entry.display());
                if entry.is_dir() {
                    open.push(entry);
                } else if entry.is_file() {
                    let bytes = fs::read(&entry).unwrap();
                    assert!(!String::from_utf8_lossy(&bytes).contains(&key()), "the key is in {}", entry.display());
                }
            }
        }
    }
}

/// The output of a prompt and its exit code.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

impl Run {
    #[track_caller]
    pub(super) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let run = Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) };
        assert!(!run.out.contains(&key()) && !run.err.contains(&key()), "{run:?}");
        run
    }
}

pub(super) fn tool(name: &str, input: Value) -> Call {
    Call::new(name, input)
}

pub(super) fn edit() -> Call {
    tool("edit", json!({ "path": "notes.txt", "edits": [{ "old": "second", "new": "2nd" }] }))
}

#[test]
fn a_prompt_with_reads_is_answered_in_all_four_apis() {
    for api in [Api::Anthropic, Api::Responses, Api::Chat, Api::Gemini] {
        let script = Script::default().lane(
            "notes",
            [
                Step::Answer(vec![
                    Part::Say("I look. ".to_owned()),
                    Part::Call(tool("read", json!({ "path": "notes.txt" }))),
                    Part::Call(tool("glob", json!({ "pattern": "*.txt" }))),
                ]),
                call(tool("grep", json!({ "pattern": "second" }))),
                say("There are two lines."),
            ],
        );
        let house = House::new(api, script);
        let run = house.run(&["How", "many", "notes?"]);
        assert_eq!((run.code, run.out.as_str()), (Some(0), "There are two lines.\n"), "{api:?} {run:?}");
        assert!(run.err.contains("no sandbox"), "{}", run.err);
        let results = house.model.results("notes").join("\n");
        assert!(results.contains("second line") && results.contains("notes.txt"), "{api:?} {results}");
        house.is_clean();
        // Each request has the figures of its caches.
        let session = house.file();
        let told = house.command(&["cache", session.to_str().unwrap(), "--json"]).output().unwrap();
        let told: Value = serde_json::from_slice(&told.stdout).unwrap();
        let requests = told["requests"].as_array().unwrap();
        assert_eq!(requests.len(), 3, "{told}");
        for request in requests {
            assert!(request["usage"]["output"].as_u64().unwrap() > 0, "{api:?} {request}");
        }
        let report = house.model.cache_report();
        let rate = told["hit_rate"].as_f64().unwrap();
        assert!((rate - report.hit_rate()).abs() < 1e-9, "{api:?} {rate} {report:?}");
        let text = house.command(&["cache", session.to_str().unwrap()]).output().unwrap();
        assert!(String::from_utf8(text.stdout).unwrap().starts_with("REQUEST"));
    }
}

#[test]
fn piped_input_is_added_to_the_prompt() {
    let house = House::new(Api::Anthropic, Script::default().lane("summarize", [say("A summary.")]));
    let mut command = house.command(&["run", "--json", "summarize this"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"what was piped\n").unwrap();
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(0), "{run:?}");
    let lines: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["type"] == "turn_ended" && line["data"]["outcome"] == "done"));
    assert!(fs::read_to_string(house.file()).unwrap().contains("what was piped"));
}

#[test]
fn only_reads_are_executed_without_a_user() {
    let script = Script::default().lane(
        "edit",
        [
            call(tool("read", json!({ "path": "notes.txt" }))),
            call(edit()),
            call(tool("bash", json!({ "command": "touch made" }))),
            call(tool("write", json!({ "path": "made", "content": "x" }))),
            call(tool("read", json!({ "path": "/etc/passwd" }))),
            say("I could not edit."),
        ],
    );
    let house = House::with(Api::Anthropic, script, "mode = \"accept-edits\"");
    let run = house.run(&["edit the notes"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "I could not edit.\n"), "{run:?}");
    assert_eq!(house.notes(), "first line\nsecond line\n");
    assert!(!house.machine.project().join("made").exists());
    let results = house.model.results("edit");
    assert_eq!(results.iter().filter(|result| result.contains("Nobody could be asked")).count(), 4, "{results:?}");
    house.is_clean();
}

#[test]
fn input_typed_before_a_permission_prompt_does_not_answer_it() {
    let command = "env > environment; echo ran >> count";
    let script = Script::default().lane(
        "edit",
        [
            call(tool("read", json!({ "path": "notes.txt" }))),
            Step::Answer(vec![Part::Until("typed".to_owned()), Part::Call(edit())]),
            call(edit()),
            call(tool("bash", json!({ "command": command }))),
            call(tool("ask", json!({ "question": "Which one?", "options": ["left", "right"] }))),
            say("It is done."),
        ],
    );
    let house = House::new(Api::Anthropic, script);
    let mut user = house.at_terminal("edit the notes");
    user.expect("no sandbox");
    user.expect("· read notes.txt");
    // Typed before the question, so it must not answer it.
    user.types("y\n");
    user.expect("y\r\n");
    house.model.tell("typed");
    user.expect("+2nd line");
    user.expect("or say what to do instead: ");
    user.types("n\n");
    user.expect("or say what to do instead: ");
    assert_eq!(house.notes(), "first line\nsecond line\n");
    user.types("y\n");
    // The results of earlier calls are printed before the next question.
    user.expect("· edit notes.txt");
    user.expect("echo ran >> count");
    user.expect("or say what to do instead: ");
    user.types("y\n");
    user.expect("· bash env > environment");
    user.expect("2. right");
    user.expect("Answer: ");
    user.types("2\n");
    let (_, status) = user.end();
    assert_eq!(status, 0);
    assert_eq!(house.notes(), "first line\n2nd line\n");
    assert_eq!(fs::read_to_string(house.machine.project().join("count")).unwrap(), "ran\n");
    let results = house.model.results("edit");
    assert!(results[1].contains("denied by the user") && results[4].contains("right"), "{results:?}");
    // The command had an environment without the key.
    assert!(fs::read_to_string(house.machine.project().join("environment")).unwrap().contains("PATH="));
    house.is_clean();
}

/// At a terminal a text is printed while it arrives, and once.
#[test]
fn a_terminal_shows_the_text_of_the_model_while_it_arrives() {
    let script = Script::default().lane(
        "explain",
        [
            Step::Answer(vec![
                Part::Say("I look at the notes. ".to_owned()),
                Part::Until("look".to_owned()),
                Part::Call(tool("read", json!({ "path": "notes.txt" }))),
            ]),
            hold("There are", "count", " two lines."),
        ],
    );
    let house = House::new(Api::Anthropic, script);
    let mut user = house.at_terminal("explain the notes");
    user.expect("I look at the notes.");
    house.model.tell("look");
    user.expect("\r\n· read notes.txt\r\n");
    user.expect("There are");
    house.model.tell("count");
    user.expect(" two lines.\r\n");
    let (all, status) = user.end();
    let all = String::from_utf8_lossy(&all).into_owned();
    assert!(status == 0 && all.matches("There are").count() == 1, "{all}");
}

/// An edit of `notes.txt` that changed after it was read.
#[test]
fn an_edit_that_cannot_apply_is_refused_without_a_prompt() {
    let write = |content: &str| call(tool("write", json!({ "path": "notes.txt", "content": content })));
    let script = Script::default().lane(
        "edit",
        [
            call(tool("read", json!({ "path": "notes.txt" }))),
            call(tool("bash", json!({ "command": "sed -i s/first/1st/ notes.txt" }))),
            call(edit()),
            call(edit()),
            call(tool("read", json!({ "path": "notes.txt" }))),
            // A write that changes nothing, and a tool that does not exist.
            write("1st line\n2nd line\n"),
            call(tool("skill", json!({ "name": "deploy" }))),
            say("It is done."),
        ],
    );
    let house = House::new(Api::Anthropic, script);
    let mut user = house.at_terminal("edit the notes");
    user.expect("sed -i");
    user.expect("or say what to do instead: ");
    user.types("y\n");
    user.expect("edit: notes.txt changed since it was read");
    // The model was told about the change, and the question for the next edit shows its diff.
    user.expect("+2nd line");
    user.expect("or say what to do instead: ");
    assert_eq!(house.notes(), "1st line\nsecond line\n");
    user.types("y\n");
    assert_eq!(user.end().1, 0);
    assert_eq!(house.notes(), "1st line\n2nd line\n");
    let results = house.model.results("edit");
    assert!(results[2].contains("nothing was written") && results[2].contains("+1st line"), "{results:?}");
    assert!(results[5].contains("already has this content"), "{results:?}");
    assert!(results[6].contains("unknown tool `skill`"), "{results:?}");
    let decided = house.entries("capture.decided");
    assert_eq!(decided.iter().filter(|entry| entry["data"]["verdict"] == "no_effect").count(), 2, "{decided:?}");
    house.is_clean();
}

#[test]
fn an_edit_probing_a_secret_file_needs_permission_and_changes_nothing() {
    let guess = || call(tool("edit", json!({ "path": ".env", "edits": [{ "old": "PASSWORD=guess", "new": "x" }] })));
    let script = Script::default().lane("edit", [guess(), guess(), say("It is done.")]);
    let house = House::new(Api::Anthropic, script);
    let env = house.machine.project().join(".env");
    fs::write(&env, "PASSWORD=other\n").unwrap();
    let mut user = house.at_terminal("edit it");
    user.expect("which would change nothing now");
    user.expect("or say what to do instead: ");
    user.types("leave that file alone\n");
    user.expect("which would change nothing now");
    user.expect("or say what to do instead: ");
    // While the question is open, the file changes so that the edit would apply: the user has not allowed that.
    fs::write(&env, "PASSWORD=guess\n").unwrap();
    user.types("y\n");
    assert_eq!(user.end().1, 0);
    assert_eq!(fs::read_to_string(&env).unwrap(), "PASSWORD=guess\n");
    let results = house.model.results("edit");
    assert!(results[0].contains("denied by the user: leave that file alone"), "{results:?}");
    assert!(results[1].contains("nothing was written"), "{results:?}");
}

#[test]
fn allowing_edits_for_the_session_excludes_protected_files() {
    let write = |path: &str| call(tool("write", json!({ "path": path, "content": "x\n" })));
    let again = tool("edit", json!({ "path": "notes.txt", "edits": [{ "old": "first", "new": "1st" }] }));
    let script = Script::default().lane(
        "edit",
        [
            call(tool("read", json!({ "path": "notes.txt" }))),
            call(edit()),
            call(again),
            write("new.txt"),
            write(".git/hooks/pre-commit"),
            write(".claude/settings.json"),
            write(".env"),
            call(tool("bash", json!({ "command": "touch made" }))),
            say("It is done."),
        ],
    );
    let house = House::new(Api::Anthropic, script);
    let mut user = house.at_terminal("edit the notes");
    user.expect("The agent wants to edit notes.txt (+1 \u{2212}1)");
    user.expect("session: also allows further edits of the workspace until this command ends");
    user.expect("Allow it? [y]es, [s]ession, [n]o, or say what to do instead: ");
    user.types("s\n");
    user.expect("· edit notes.txt");
    user.expect("· edit notes.txt");
    user.expect("· write new.txt");
    for named in ["write .git/hooks/pre-commit", "write .claude/settings.json", "write .env"] {
        user.expect(named);
        user.expect("Allow it? [y]es, [n]o, or say what to do instead: ");
        // The answer `s` is not offered here and must not be accepted as another one.
        user.types("s\n");
        user.expect("Type yes, no, or what to do instead: ");
        user.types("n\n");
    }
    user.expect("touch made");
    user.expect("or say what to do instead: ");
    user.types("n\n");
    assert_eq!(user.end().1, 0);
    assert_eq!(house.notes(), "1st line\n2nd line\n");
    let project = house.machine.project();
    let made =
        [".git/hooks/pre-commit", ".claude/settings.json", ".env", "made"].map(|name| project.join(name).exists());
    assert_eq!(made, [false; 4]);
    house.is_clean();
}

#[test]
fn a_permission_prompt_survives_ctrl_d_and_sigstop() {
    let script = Script::default().lane("work", [call(tool("bash", json!({ "command": "touch made" }))), say("Done.")]);
    let house = House::new(Api::Anthropic, script);
    let mut user = house.at_terminal("work");
    user.expect("or say what to do instead: ");
    user.types([4]);
    user.expect("\r\nType yes, no, or what to do instead; Ctrl-C ends the turn: ");
    let processes = user.processes();
    let agent = processes.iter().find(|process| process.command.contains("agent run")).unwrap().pid;
    signal(agent, Signal::STOP);
    eventually("it is stopped", || (state(agent) == Some('T')).then_some(()));
    signal(agent, Signal::CONT);
    user.expect("The agent wants to run a command");
    user.expect("command: touch made");
    user.expect("or say what to do instead: ");
    user.types("y\n");
    user.expect("Done.");
    assert_eq!(user.end().1, 0);
    assert!(house.machine.project().join("made").exists());
    house.is_clean();
}

#[test]
fn a_permission_prompt_without_a_server_names_the_matching_rule() {
    let script = Script::default().lane("work", [call(tool("bash", json!({ "command": "make test" }))), say("Done.")]);
    let house = House::new(Api::Anthropic, script);
    super::approvals::save_policy(
        &house.machine,
        "version = 1\n[[rule]]\nname = \"tests\"\ndecision = \"allow\"\ncommand = [\"make\", \"test\"]\n",
    );
    let mut user = house.at_terminal("work");
    user.expect("server: only reads run without asking)");
    user.expect("why you are asked: Your policy allows it (tests), but only the server applies such rules");
    user.expect("Allow it? [y]es, [n]o, or say what to do instead: ");
    user.types("n\n");
    assert_eq!(user.end().1, 0);
}

#[test]
fn the_first_line_reports_a_policy_that_is_not_in_force() {
    let script = Script::default()
        .lane("work", [call(tool("read", json!({ "path": "notes.txt" }))), say("Done.")])
        .lane("plan", [say("Planned.")]);
    let house = House::new(Api::Anthropic, script);
    let _server = house.machine.serve();
    super::approvals::save_policy(&house.machine, "version = 1\nnonsense = true\n");
    let mut user = house.at_terminal("work");
    // Lines are wrapped at the width of the terminal.
    user.expect("your policy is not in force:");
    user.expect("(policy not in force: you are asked about everything)");
    user.expect("why you are asked: Your policy is not in force");
    user.expect("Allow it? [y]es, [s]ession, [n]o, or say what to do instead: ");
    user.types("y\n");
    assert_eq!(user.end().1, 0);
    let run = house.run(&["--mode", "plan", "plan"]);
    assert!(
        run.err.contains(
            "plan (policy not in force: you are asked about each read, and all other calls are \
                              denied)"
        ),
        "{run:?}"
    );
}

#[test]
fn an_approved_edit_is_not_applied_if_the_file_changed_meanwhile() {
    let house = House::new(Api::Anthropic, Script::default().lane("edit", [call(edit()), say("It is done.")]));
    let mut user = house.at_terminal("edit the notes");
    user.expect("+2nd line");
    user.expect("or say what to do instead: ");
    // The edit would now change a different place.
    fs::write(house.machine.project().join("notes.txt"), "second line\nof another text\n").unwrap();
    user.types("y\n");
    assert_eq!(user.end().1, 0);
    assert_eq!(house.notes(), "second line\nof another text\n");
    let results = house.model.results("edit");
    assert!(results[0].contains("nothing was written"), "{results:?}");
}

#[test]
fn blank_lines_cannot_hide_part_of_a_command() {
    let blank = "\n".repeat(60);
    let command = format!("echo safe\n{blank}rm -rf ~/gone\n{blank}echo safe");
    let script =
        Script::default().lane("work", [call(tool("bash", json!({ "command": command }))), say("It is done.")]);
    let house = House::new(Api::Anthropic, script);
    let mut user = house.at_terminal("work");
    user.expect("run a command (123 lines, ");
    user.expect("[60 blank lines]");
    user.expect("look at line 62: rm -rf ~/gone: ");
    user.expect("or say what to do instead: ");
    user.types("n\n");
    assert_eq!(user.end().1, 0);
}

#[test]
fn the_base_url_variable_is_used_or_refused_if_invalid() {
    let house = House::new(Api::Anthropic, Script::default().lane("where", [say("Here.")]));
    house.machine.configure("autostart = false\n[agent]\nmodel = \"anthropic/claude-sonnet-4-5\"\n");
    let run = |address: &str, prompt: &str| {
        let mut command = house.command(&["run", prompt]);
        command.env("ANTHROPIC_API_KEY", key()).env("ANTHROPIC_BASE_URL", address);
        Run::of(command.output().unwrap())
    };
    let at_gateway = run(&house.model.url(), "where");
    assert_eq!((at_gateway.code, at_gateway.out.as_str()), (Some(0), "Here.\n"), "{at_gateway:?}");
    assert!(at_gateway.err.contains(&format!("at {} (ANTHROPIC_BASE_URL)", house.model.url())), "{at_gateway:?}");
    for address in ["http://gateway.test", "ftp://gateway.test", "gateway", "https://user:hunter2@gateway.test"] {
        let refused = run(address, "where");
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains("the variable ANTHROPIC_BASE_URL: "), "{refused:?}");
        assert!(!refused.err.contains("hunter2") && !refused.err.contains(&key()), "{refused:?}");
    }
    let mut doctor = house.machine.command(&["doctor"]);
    doctor.env("ANTHROPIC_API_KEY", key()).env("ANTHROPIC_BASE_URL", "http://gateway.test");
    let told = String::from_utf8(doctor.output().unwrap().stdout).unwrap();
    assert!(told.contains("the variable ANTHROPIC_BASE_URL: ") && told.contains("use https"), "{told}");
    house.is_clean();
}

#[test]
fn accept_edits_mode_allows_edits_but_asks_about_commands() {
    let script = Script::default().lane(
        "edit",
        [
            call(tool("read", json!({ "path": "notes.txt" }))),
            call(edit()),
            call(tool("bash", json!({ "command": "touch made" }))),
            say("never said"),
        ],
    );
    let house = House::new(Api::Anthropic, script);
    let mut user = house.at_terminal("--mode accept-edits edit the notes");
    // The edit was made without a question; the command requires one.
    user.expect("touch made");
    user.expect("or say what to do instead: ");
    assert_eq!(house.notes(), "first line\n2nd line\n");
    user.types([3]);
    assert_eq!(user.end().1, 130);
    assert!(!house.machine.project().join("made").exists());
    let granted = house.entries("capture.mode");
    assert!(granted.iter().any(|entry| entry["data"]["mode"] == "accept-edits"), "{granted:?}");
    house.is_clean();
}

#[test]
fn a_killed_session_continues_without_repeating_a_command() {
    let script = Script::default()
        .lane(
            "append",
            [call(tool("bash", json!({ "command": "echo ran >> count; exec sleep 7777" }))), say("never said")],
        )
        .lane("go on", [say("I went on.")]);
    let house = House::new(Api::Anthropic, script);
    let count = house.machine.project().join("count");
    let mut user = house.at_terminal("append a line");
    user.expect("or say what to do instead: ");
    user.types("y\n");
    eventually("the command runs", || fs::read_to_string(&count).ok().filter(|text| !text.is_empty()));
    let processes = user.processes();
    let agent = processes.iter().find(|process| process.command.contains("agent run")).unwrap();
    eventually("the command sleeps", || house.runs("7777").then_some(()));
    signal(agent.pid, Signal::KILL);
    assert_eq!(user.end().1, 137);
    eventually("the command ended with it", || (!house.runs("7777")).then_some(()));
    let run = house.run(&["--continue", "go on"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "I went on.\n"), "{run:?}");
    assert_eq!(fs::read_to_string(&count).unwrap(), "ran\n");
    let results = house.model.results("go on").join("\n");
    assert!(results.contains("may have taken effect"), "{results}");
    assert_eq!(house.entries("capture.started").len(), 1);
    assert_eq!(house.entries("capture.restored").len(), 1);
    house.is_clean();
    // The session's id is accepted as well.
    let id = house.entries("capture.frozen").len();
    assert_eq!(id, 1, "the prefix is stored once");
}

#[test]
fn a_prompt_stopped_by_a_limit_exits_with_3() {
    let reads =
        || Script::default().lane("read", vec![call(tool("read", json!({ "path": "notes.txt" }))), say("Done.")]);
    let house = House::new(Api::Anthropic, reads());
    let run = house.run(&["--max-turns", "1", "read it"]);
    assert_eq!((run.code, run.out.as_str()), (Some(3), ""), "{run:?}");
    assert!(run.err.contains("stopped after 1 answer of the model"), "{}", run.err);
    // The session continues where it stopped.
    let run = house.run(&["--continue", "--max-turns", "9", "read it"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "Done.\n"), "{run:?}");
    house.is_clean();

    let house = House::with(Api::Anthropic, reads(), "budget = { calls = 1 }");
    let run = house.run(&["read it"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.err.contains("the limit of tool calls is reached"), "{}", run.err);

    let house = House::new(Api::Anthropic, reads());
    let run = house.run(&["--max-cost", "0.000001", "read it"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.err.contains("the limit of costs is reached"), "{}", run.err);
    // The price of this model is unknown.
    let house = House::new(Api::Chat, reads());
    let run = house.run(&["--max-cost", "1", "read it"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.err.contains("price of the model is unknown"), "{}", run.err);
}

#[test]
fn invalid_or_forbidden_agent_runs_are_refused_with_the_reason() {
    let house = House::new(Api::Anthropic, Script::default());
    for (words, code, told) in [
        (&["--mode", "auto", "x"][..], 2, "sandbox"),
        (&["--mode", "accept-edits", "x"], 5, "must be a terminal, without --json"),
        (&["--model", "sonnet", "x"], 2, "PROVIDER/MODEL"),
        (&["--model", "anthropic/claude-sonnet-5", "x"], 2, "ANTHROPIC_API_KEY"),
        (&["--model", "other/x", "x"], 2, "`other` is not configured"),
        (&["--continue", "x"], 4, "capture's own agent has no session in "),
        (&["--session", "12345", "x"], 4, "no session `12345`"),
        (&[], 2, "no prompt"),
    ] {
        let run = house.run(words);
        assert_eq!(run.code, Some(code), "{words:?} {run:?}");
        assert!(run.err.contains(told), "{words:?} {}", run.err);
    }
    // An agent cannot start it.
    let run = house.machine.agents_shell("claude", "capture agent run x").output().unwrap();
    let run = Run::of(run);
    assert_eq!(run.code, Some(5), "{run:?}");
    assert!(run.err.contains("started by an agent"), "{}", run.err);
    assert_eq!(house.model.notes(), [], "no request was sent");
    let doctor = house.machine.command(&["doctor"]).output().unwrap();
    let doctor = String::from_utf8_lossy(&doctor.stdout);
    assert!(doctor.contains("agent sandbox"), "{doctor}");
    assert!(doctor.contains("the variable OWN_AGENT, which should contain the key, is not set here"), "{doctor}");
    house.machine.configure("agent = 7\n");
    assert_eq!(house.run(&["x"]).code, Some(2), "the configuration is wrong");
}

#[test]
fn the_server_records_sessions_of_our_own_agent() {
    let script =
        Script::default().lane("notes", [call(tool("read", json!({ "path": "notes.txt" }))), say("Two lines.")]);
    let house = House::new(Api::Anthropic, script);
    let server = house.machine.serve();
    let run = house.run(&["Read the notes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let text = fs::read_to_string(house.file()).unwrap();
    let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let id = header["id"].as_str().unwrap();
    server.caught_up(id, &house.file());
    let session = server.session(id);
    assert_eq!(session["provider"], "capture", "{session}");
    let events = server.events(session["id"].as_str().unwrap());
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["kind"].as_str()).collect();
    for kind in ["user.prompt", "tool.call", "tool.result"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    let ps = house.machine.command(&["ps", "--all", "--json"]).output().unwrap();
    assert!(String::from_utf8_lossy(&ps.stdout).contains(id), "{ps:?}");
}

#[test]
fn repository_instructions_are_sent_as_context_not_as_system_prompt() {
    let house = House::new(Api::Anthropic, Script::default().lane("notes", [say("Two lines.")]));
    let project = house.machine.project();
    fs::create_dir_all(project.join(".git")).unwrap();
    fs::create_dir_all(project.join("inner")).unwrap();
    let secret = ["ghp_", "16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    fs::write(project.join("AGENTS.md"), "Use tabs.").unwrap();
    fs::write(project.join("CLAUDE.md"), "Use spaces.").unwrap();
    fs::create_dir_all(project.join("inner/deep")).unwrap();
    fs::write(project.join("inner/deep/CLAUDE.md"), "Answer in French.").unwrap();
    std::os::unix::fs::symlink("/etc/hostname", project.join("inner/AGENTS.md")).unwrap();
    let mut command = house.command(&["run", "Read the notes"]);
    let run = Run::of(command.current_dir(project.join("inner/deep")).output().unwrap());
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("inner/AGENTS.md is not read"), "{}", run.err);
    let text = fs::read_to_string(house.file()).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let context = lines.iter().find(|line| line["customType"] == "capture.context").unwrap();
    let context = context["content"].as_str().unwrap();
    assert!(context.contains("Instructions of the repository in ") && context.contains("Use tabs."), "{context}");
    let system = lines.iter().find(|line| line["message"]["role"] == "system").unwrap().to_string();
    assert!(!system.contains("Use tabs."), "{system}");
    // With a secret in the file the tool would have to ask as well.
    fs::write(project.join("AGENTS.md"), format!("Use tabs. {secret}")).unwrap();
    let run = house.run(&["Read the notes"]);
    assert!(run.err.contains("proj/AGENTS.md is not read: it needs your permission"), "{}", run.err);
    house.is_clean();
}

#[test]
fn failed_requests_are_retried_as_configured_unless_retry_after_is_long() {
    let busy = |times| Step::Fail { status: 529, retry_after: None, times };
    let house = House::new(Api::Anthropic, Script::default().lane("read", [busy(1), say("Done.")]));
    let run = house.run(&["read"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "Done.\n"), "{run:?}");
    let house = House::with(Api::Anthropic, Script::default().lane("read", [busy(1), say("Done.")]), "retries = 0");
    let run = house.run(&["read"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!(house.model.notes().iter().filter(|note| note.did == AnswerProgress::Failed).count(), 1);
    // A wait longer than ten minutes counts as a pause, and print mode does not wait for pauses.
    let later = Step::Fail { status: 429, retry_after: Some(Duration::from_secs(3600)), times: 1 };
    let house = House::new(Api::Anthropic, Script::default().lane("read", [later, say("Done.")]));
    let run = house.run(&["read"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.err.contains("quota is used up for now"), "{}", run.err);
}

#[test]
fn a_request_rejected_as_invalid_is_saved_to_a_file() {
    let invalid = Step::Fail { status: 400, retry_after: None, times: 9 };
    let house = House::new(Api::Anthropic, Script::default().lane("read", [invalid]));
    let run = house.run(&["read the notes"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let (_, path) = run.err.split_once("the request is kept in ").unwrap();
    let body = fs::read_to_string(path.split(')').next().unwrap()).unwrap();
    let body: Value = serde_json::from_str(&body).unwrap();
    assert!(body["messages"].to_string().contains("read the notes"), "{body}");
    assert_eq!(house.model.notes().iter().filter(|note| note.did == AnswerProgress::Failed).count(), 1);
    house.is_clean();
}

#[test]
fn limits_are_printed_and_the_thinking_level_is_validated() {
    let script = || Script::default().lane("notes", [say("Two lines.")]);
    let house = House::with(Api::Anthropic, script(), "thinking = \"low\"\nbudget = { calls = 7 }");
    let run = house.run(&["--max-cost", "0.5", "--max-turns", "3", "--thinking", "high", "Read the notes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let limits = "at most 0.50 US dollars and 7 tool calls a session, at most 3 answers a prompt";
    assert!(run.err.contains(limits), "{}", run.err);
    let text = fs::read_to_string(house.file()).unwrap();
    assert!(text.contains(r#""type":"thinking_level_change""#) && text.contains(r#""thinkingLevel":"high""#), "{text}");
    // The model has no higher level.
    let run = house.run(&["--thinking", "max", "Read the notes"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("has no thinking level `max`; expected off, minimal, low, medium, high"), "{}", run.err);
    house.is_clean();
}

#[test]
fn an_unknown_price_is_stored_as_unknown_cost() {
    let script = || Script::default().lane("notes", [say("Two lines.")]);
    for (api, is_known) in [(Api::Anthropic, true), (Api::Chat, false)] {
        let house = House::new(api, script());
        assert_eq!(house.run(&["Read the notes"]).code, Some(0));
        let text = fs::read_to_string(house.file()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let answer = lines.into_iter().find(|line| line["message"]["role"] == "assistant").unwrap();
        let usage = &answer["message"]["usage"];
        assert_eq!(usage["costUnknown"] == true, !is_known, "{usage}");
        assert_eq!(usage["cost"]["total"].as_f64().unwrap() > 0.0, is_known, "{usage}");
    }
}

#[test]
fn a_session_file_outside_a_project_directory_is_found() {
    let script = Script::default().lane("notes", [say("Two lines.")]).lane("again", [say("Still two.")]);
    let house = House::new(Api::Anthropic, script);
    assert_eq!(house.run(&["Read the notes"]).code, Some(0));
    let file = house.file();
    let sessions = house.machine.data().join("agent/sessions");
    let moved = sessions.join(file.file_name().unwrap());
    fs::rename(&file, &moved).unwrap();
    fs::remove_dir(file.parent().unwrap()).unwrap();
    let id = file.file_stem().unwrap().to_str().unwrap().rsplit('_').next().unwrap().to_owned();
    for words in [&["--continue", "again"][..], &["--session", &id, "again"]] {
        let run = house.run(words);
        assert_eq!((run.code, run.out.as_str()), (Some(0), "Still two.\n"), "{run:?}");
    }
}
