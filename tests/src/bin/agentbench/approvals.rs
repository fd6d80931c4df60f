//! A7: how each tool is decided in each mode and by whom, and that nothing runs without being allowed.
//!
//! Every cell of the table is one call of the model. The decision is read from the session's file; whether the call ran
//! is checked on the disk.

use std::{fs, net::TcpListener, os::unix::fs::symlink};

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use tests::{
    models::{
        Api, Model,
        script::{Call, Part, Script, Step, call, say},
    },
    program::Server,
    recording::fixtures,
};

use crate::{
    Bench, Outcome,
    peers::text,
    place::{ANSWER, MAY_I, Place},
    report::Row,
};

/// The prompt, which also selects the lane of the script.
const WORK: &str = "work-on-it";
/// Number of calls per answer.
const CALLS: usize = 30;

#[derive(Debug, Args)]
pub(crate) struct Approvals {
    /// Only with a server, or only without one.
    #[arg(long, value_name = "yes|no")]
    server: Option<String>,
    /// Print every cell that differs.
    #[arg(long)]
    verbose: bool,
}

/// The behaviour of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Person {
    /// Allows everything.
    Allows,
    /// Allows nothing.
    Denies,
    /// Does not answer.
    Absent,
}

/// The implemented modes; `auto` is refused.
const MODES: [&str; 3] = ["plan", "ask", "accept-edits"];

/// What decides a call without a matching policy rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Runs at once.
    Free,
    /// Asked in every mode.
    Asked,
    /// Asked, but denied in the mode `plan`.
    Changes,
    /// Like `Changes`, but run at once in the mode `accept-edits`.
    Edits,
}

/// A call, its expected class, and the file that proves that it ran.
struct Case {
    name: &'static str,
    call: Call,
    class: Class,
    made: Option<&'static str>,
    /// Whether the policies of this table name the call.
    is_named: bool,
}

fn cases(outside: &str, url: &str) -> Vec<Case> {
    let case = |name, tool: &str, input: Value, class, made| Case {
        name,
        call: Call::new(tool, input),
        class,
        made,
        is_named: false,
    };
    let mut cases = vec![
        case("read", "read", json!({ "path": "notes.txt" }), Class::Free, None),
        case("read a secret", "read", json!({ "path": ".env" }), Class::Asked, None),
        case("read outside", "read", json!({ "path": format!("{outside}/notes.txt") }), Class::Asked, None),
        case("glob", "glob", json!({ "pattern": "*.txt", "path": "plain" }), Class::Free, None),
        case("grep", "grep", json!({ "pattern": "line", "path": "notes.txt" }), Class::Free, None),
        case("grep where a secret is", "grep", json!({ "pattern": "line", "path": "keys" }), Class::Asked, None),
        case("todo", "todo", json!({ "items": [{ "text": "work", "state": "done" }] }), Class::Free, None),
        case("process", "process", json!({ "action": "list" }), Class::Free, None),
        case(
            "edit",
            "edit",
            json!({ "path": "edited.txt", "edits": [{ "old": "before", "new": "after" }] }),
            Class::Edits,
            Some("edited.txt"),
        ),
        case("write", "write", json!({ "path": "written.txt", "content": "after" }), Class::Edits, Some("written.txt")),
        case(
            "write what runs later",
            "write",
            json!({ "path": ".git/hooks/pre-commit", "content": "after" }),
            Class::Changes,
            Some(".git/hooks/pre-commit"),
        ),
        case(
            "write outside",
            "write",
            json!({ "path": format!("{outside}/written.txt"), "content": "after" }),
            Class::Changes,
            Some("../home/elsewhere/written.txt"),
        ),
        case("bash", "bash", json!({ "command": "echo after > ran.txt" }), Class::Changes, Some("ran.txt")),
        case("fetch", "fetch", json!({ "url": url }), Class::Changes, None),
        case("ask", "ask", json!({ "question": "Which?", "options": ["left", "right"] }), Class::Asked, None),
    ];
    let mut named =
        case("bash of a rule", "bash", json!({ "command": "touch named.txt" }), Class::Changes, Some("named.txt"));
    named.is_named = true;
    cases.push(named);
    cases
}

/// The decision of the policy for `touch named.txt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    None,
    Allow,
    Deny,
}

const RULES: [Rule; 3] = [Rule::None, Rule::Allow, Rule::Deny];

impl Rule {
    fn policy(self) -> Option<String> {
        let decision = match self {
            Self::None => return None,
            Self::Allow => "allow",
            Self::Deny => "deny",
        };
        Some(format!(
            "version = 1\n[[rule]]\nname = \"named\"\ndecision = \"{decision}\"\ncommand = [\"touch\", \"...\"]\n"
        ))
    }
}

/// The expected cell of the table: the verdict and whether the call runs.
fn expected(case: &Case, mode: &str, person: Person, rule: Rule, server: bool) -> &'static str {
    let by_person = match person {
        Person::Allows => "allow",
        Person::Denies => "deny",
        Person::Absent => "unanswered",
    };
    if case.is_named && rule == Rule::Deny {
        return "deny";
    }
    match case.class {
        Class::Free => "allow",
        Class::Asked if case.name == "ask" && person == Person::Denies => "allow",
        Class::Asked => by_person,
        Class::Changes | Class::Edits if mode == "plan" => "deny",
        Class::Edits if mode == "accept-edits" => "allow",
        // Without a server a rule that allows a command only leads to a question.
        Class::Changes if case.is_named && rule == Rule::Allow && server => "allow",
        Class::Changes | Class::Edits => by_person,
    }
}

pub(crate) fn approvals(bench: &Bench, asked: &Approvals) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for server in [false, true] {
        if asked.server.as_deref().is_some_and(|only| (only == "yes") != server) {
            continue;
        }
        let mut sum = Cells::default();
        for mode in MODES {
            for person in [Person::Allows, Person::Denies, Person::Absent] {
                for rule in RULES {
                    sum.add(table(bench, mode, person, rule, server)?);
                }
            }
        }
        sum.differing.extend(auto(bench)?);
        if asked.verbose || !sum.differing.is_empty() {
            sum.differing.iter().for_each(|cell| eprintln!("{cell}"));
        }
        let with = if server { "with a server" } else { "without a server" };
        let value = format!("{} of {} cells as decided; {}", sum.cells - sum.differing.len(), sum.cells, sum.audit());
        let is_met = sum.differing.is_empty() && sum.audits_failed == 0;
        rows.push(Row::new("A7", format!("tools × modes × people × rules, {with}"), value).must("all", is_met));
        rows.push(bypasses(bench, server)?);
    }
    Ok(rows)
}

#[derive(Debug, Default)]
struct Cells {
    cells: usize,
    differing: Vec<String>,
    audits: usize,
    audits_failed: usize,
}

impl Cells {
    fn add(&mut self, other: Self) {
        self.cells += other.cells;
        self.differing.extend(other.differing);
        self.audits += other.audits;
        self.audits_failed += other.audits_failed;
    }

    fn audit(&self) -> String {
        if self.audits == 0 {
            return "no audit record without a server".to_owned();
        }
        format!("audit record verified {} of {} times", self.audits - self.audits_failed, self.audits)
    }
}

/// The mode that requires a sandbox.
fn auto(bench: &Bench) -> Outcome<Option<String>> {
    let place = Place::new(bench, Api::Anthropic, "http://127.0.0.1:9", "", "")?;
    let ran = place.run(&["--mode", "auto", WORK])?;
    let is_refused = ran.code == Some(2) && ran.err.contains("sandbox") && place.sessions().is_empty();
    Ok((!is_refused).then(|| format!("--mode auto: {ran:?}")))
}

/// Runs the calls one after another in one session.
fn table(bench: &Bench, mode: &str, person: Person, rule: Rule, server: bool) -> Outcome<Cells> {
    // A port without a listener: a fetch fails, but it still counts as run.
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let url = format!("http://{}/page", nobody.map_err(|error| error.to_string())?);
    // The directory is known only once the machine exists.
    let place = Place::new(bench, Api::Anthropic, "http://127.0.0.1:9", "", "")?;
    let cases = cases(&place.machine.home().join("elsewhere").to_string_lossy(), &url);
    let mut steps: Vec<Step> = cases.iter().map(|case| call(case.call.clone())).collect();
    steps.push(say("That is all."));
    let model = Model::exact(Api::Anthropic, Script::default().lane(WORK, steps)).map_err(|error| error.to_string())?;
    let ready = prepared(place, &model, rule.policy().as_deref())?;
    let running = server.then(|| ready.machine.serve());
    let wait = if person == Person::Absent { "--wait 1 " } else { "" };
    let mut user = ready.at_terminal(&format!("{wait}--mode {mode} {WORK}"));
    let words = match person {
        Person::Allows => Some("y\n"),
        Person::Denies => Some("n\n"),
        Person::Absent => None,
    };
    let answers: Vec<(&str, &str)> = words.into_iter().flat_map(|word| [(MAY_I, word), (ANSWER, "1\n")]).collect();
    let (shown, status) = user.answers(&answers);
    if status != 0 {
        return Err(format!("{mode} {person:?} {rule:?}: ended with {status}: {}", String::from_utf8_lossy(&shown)));
    }
    let mut cells = Cells::default();
    let entries = ready.entries()?;
    let of = |kind: &'static str| entries.iter().filter(move |entry| entry["customType"] == kind);
    let decided: Vec<&str> = of("capture.decided").map(|entry| text(&entry["data"]["verdict"])).collect();
    let place_of = format!("{mode} {person:?} {rule:?} server {server}");
    if decided.len() != cases.len() {
        return Err(format!("{place_of}: {} decisions: {decided:?}", decided.len()));
    }
    for (case, verdict) in cases.iter().zip(decided) {
        cells.cells += 1;
        let expected = expected(case, mode, person, rule, server);
        let is_done = case.made.is_some_and(|file| is_made(&ready, file));
        if verdict != expected || case.made.is_some() && is_done != (expected == "allow") {
            cells.differing.push(format!("{place_of}: {}: {verdict}, done {is_done}, expected {expected}", case.name));
        }
    }
    if !model.refusals().is_empty() {
        cells.differing.push(format!("{place_of}: refused {:?}", model.refusals()));
    }
    verify(&ready, running.as_ref(), &mut cells)?;
    Ok(cells)
}

/// Creates all files that the calls need.
fn prepared(place: Place, model: &Model, policy: Option<&str>) -> Outcome<Place> {
    place.point_to(Api::Anthropic, &model.url(), "", "");
    let told = |error: std::io::Error| error.to_string();
    fs::create_dir_all(place.machine.project().join(".git/hooks")).map_err(told)?;
    fs::create_dir_all(place.machine.project().join("plain")).map_err(told)?;
    fs::create_dir_all(place.machine.home().join("elsewhere")).map_err(told)?;
    fs::write(place.machine.home().join("elsewhere/notes.txt"), "outside\n").map_err(told)?;
    place.write(".env", "TOKEN=not-a-real-one\n")?;
    // A search reads no hidden files, so `.env` is no secret for it.
    fs::create_dir_all(place.machine.project().join("keys")).map_err(told)?;
    place.write("keys/id_rsa", "a line\n")?;
    place.write("notes.txt", "a line\n")?;
    place.write("edited.txt", "before\n")?;
    if let Some(policy) = policy {
        place.machine.policy(policy);
    }
    Ok(place)
}

/// Whether a file has the content that its call writes.
fn is_made(place: &Place, file: &str) -> bool {
    if file == "named.txt" { place.machine.project().join(file).exists() } else { place.text(file).contains("after") }
}

/// Verifies the audit record, if a server wrote one.
fn verify(place: &Place, server: Option<&Server>, cells: &mut Cells) -> Outcome<()> {
    if server.is_none() {
        return Ok(());
    }
    let output = place.machine.command(&["audit", "verify"]).output().map_err(|error| error.to_string())?;
    cells.audits += 1;
    if !output.status.success() {
        cells.audits_failed += 1;
        eprintln!("capture audit verify: {output:?}");
    }
    Ok(())
}

#[derive(Deserialize)]
struct Listed {
    id: String,
    cmd: String,
}

/// The command of a call with the id `REQUEST.INDEX`.
fn commanded(chunk: &[Listed], call: &str) -> String {
    let numbers: Vec<usize> = call.split('.').filter_map(|number| number.parse().ok()).collect();
    let at = numbers.first().map_or(0, |request| (request - 1) * CALLS) + numbers.get(1).copied().unwrap_or_default();
    chunk.get(at).map_or_else(|| call.to_owned(), |one| format!("{} `{}`", one.id, one.cmd))
}

/// Files that some of the command lines read or depend on.
const REACHED_FOR: [&str; 7] = [
    "config/server.pem",
    ".azure/accessTokens.json",
    ".docker/config.json",
    ".mcp-auth/tokens.json",
    ".git/config.worktree",
    "rust-toolchain.toml",
    "package.json",
];

/// Links in the project: one leads out of the project, one to a secret. Commands that follow links are dangerous only
/// if these exist.
const LINKS: [(&str, &str); 2] = [("link-out", "/etc"), ("link-env", ".env")];

/// Command lines that look harmless but are not, with a policy that allows commands that only read.
fn bypasses(bench: &Bench, server: bool) -> Outcome<Row> {
    let list = fixtures().join("approver/bypass.jsonl");
    let list = fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    let listed: Vec<Listed> =
        list.lines().map(serde_json::from_str).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let mut ran = Vec::new();
    let mut results = 0;
    for chunk in listed.chunks(CALLS * 4) {
        let answers = chunk.chunks(CALLS).map(|calls| {
            let bash = |one: &Listed| Part::Call(Call::new("bash", json!({ "command": one.cmd })));
            Step::Answer(calls.iter().map(bash).collect())
        });
        let script = Script::default().lane(WORK, answers.chain([say("That is all.")]));
        let model = Model::start(Api::Anthropic, script).map_err(|error| error.to_string())?;
        let place = Place::new(bench, Api::Anthropic, &model.url(), "", "")?;
        let place = prepared(place, &model, Some("version = 1\npreset = \"workspace-edits\"\n"))?;
        for file in REACHED_FOR {
            let path = place.machine.project().join(file);
            fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(|error| error.to_string())?;
            place.write(file, "KEY=x\n")?;
        }
        for (link, to) in LINKS {
            symlink(to, place.machine.project().join(link)).map_err(|error| error.to_string())?;
        }
        let running = server.then(|| place.machine.serve());
        let mut user = place.at_terminal(&format!("--mode accept-edits {WORK}"));
        let (shown, status) = user.answers(&[(MAY_I, "n\n")]);
        if status != 0 {
            return Err(format!("bypasses: ended with {status}: {}", String::from_utf8_lossy(&shown)));
        }
        let mut asked = String::new();
        for entry in place.entries()? {
            results += usize::from(entry["message"]["role"] == "toolResult");
            match text(&entry["customType"]) {
                "capture.decided" => asked = entry["data"].to_string(),
                // The entry with the decision directly precedes this one.
                "capture.started" => ran.push(format!("{} by {asked}", commanded(chunk, text(&entry["data"]["call"])))),
                _ => {}
            }
        }
        drop(running);
    }
    if !ran.is_empty() {
        eprintln!("run: {}", ran.join("\n"));
    }
    let with = if server { "with a server" } else { "without a server" };
    let value = format!("{} of {results} run without a person's yes", ran.len());
    let row = Row::new("A7", format!("{} known bypasses, preset workspace-edits, {with}", listed.len()), value);
    Ok(row.must("0", ran.is_empty() && results == listed.len()))
}
