//! A14: pi opens every session file written by our agent, and would send the same messages to its model.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use clap::Args;
use serde_json::Value;
use session_tree::{Session, Tree, context::Context};
use tests::models::{
    Api, Model,
    script::{Script, say},
};

use crate::{
    Bench, Outcome, kill,
    peers::{self, Installed, Who, text},
    place::{APIS, Place},
    report::Row,
    turns,
};

/// Prints the context of each file named on standard input.
const SCRIPT: &str = r#"
import { createInterface } from "node:readline";
const { SessionManager } = await import(process.argv[2]);
for await (const file of createInterface({ input: process.stdin })) {
  let told;
  try { told = { file, messages: SessionManager.open(file).buildSessionContext().messages }; }
  catch (error) { told = { file, error: String(error) }; }
  process.stdout.write(JSON.stringify(told) + "\n");
}
"#;

#[derive(Debug, Args)]
pub(crate) struct Pi {
    /// A directory of session files, as `--keep` of another run makes it. Without one some are made.
    #[arg(long, value_name = "DIR")]
    sessions: Option<PathBuf>,
    #[command(flatten)]
    peers: Installed,
}

pub(crate) fn pi(bench: &Bench, asked: &Pi) -> Outcome<Vec<Row>> {
    let found = asked.peers.found()?;
    let Some((_, program)) = found.iter().find(|(who, _)| *who == Who::Pi) else {
        return Err("pi is not installed: name its program with --pi, and node 22 with --node".to_owned());
    };
    let directory = match &asked.sessions {
        Some(directory) => directory.clone(),
        None => made(bench)?,
    };
    let mut files: Vec<PathBuf> = fs::read_dir(&directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    files.sort();
    let contexts = contexts(bench, program, &files)?;
    let (mut differing, mut messages) = (0, 0);
    for (file, theirs) in files.iter().zip(&contexts) {
        let ours = context(file)?;
        messages += ours.len();
        if theirs["messages"].as_array() != Some(&ours) {
            differing += 1;
            let none = Vec::new();
            let list = theirs["messages"].as_array().unwrap_or(&none);
            let at = ours.iter().zip(list).take_while(|(ours, theirs)| ours == theirs).count();
            let (ours, theirs) = (ours.get(at), list.get(at).or(theirs.get("error")));
            eprintln!("{}: message {at} is {ours:?}, in pi {theirs:?}", file.display());
        }
    }
    let version = peers::version(program, bench.scratch.path());
    let value = format!("{} of {} files, {messages} messages", files.len() - differing, files.len());
    let what = format!("the same context in pi {version}");
    let mut rows = vec![Row::new("A14", what, value).must("all", differing == 0 && !files.is_empty())];
    rows.push(goes_on(bench, program, &files)?);
    Ok(rows)
}

/// Creates sessions of all four APIs, and of agents that were killed.
fn made(bench: &Bench) -> Outcome<PathBuf> {
    let directory = bench.scratch.path().join("sessions");
    let bench = bench.keeping(&directory)?;
    turns::turns(&bench, &turns::Turns::few())?;
    kill::kill(&bench, &kill::Kill::few())?;
    Ok(directory)
}

/// The messages of a file as our own reader returns them.
fn context(file: &Path) -> Outcome<Vec<Value>> {
    let document = Session::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let tree: Tree = document.into();
    let context = Context::of(&tree, tree.leaf());
    let messages = context.messages().map(|message| serde_json::from_str(&message.to_text()));
    messages.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

/// The messages as pi returns them.
fn contexts(bench: &Bench, program: &[PathBuf], files: &[PathBuf]) -> Outcome<Vec<Value>> {
    let told = |error: std::io::Error| error.to_string();
    let (library, node) = match program {
        [node, script] => (script.with_file_name("index.js"), node.clone()),
        [script] => (script.with_file_name("index.js"), PathBuf::from("node")),
        _ => return Err("pi is a script for node".to_owned()),
    };
    let script = bench.scratch.path().join("contexts.mjs");
    fs::write(&script, SCRIPT).map_err(told)?;
    let mut command = Command::new(node);
    command.arg(&script).arg(&library).env("HOME", bench.scratch.path());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(told)?;
    let mut input = child.stdin.take().ok_or("no standard input")?;
    let names: String = files.iter().map(|file| format!("{}\n", file.display())).collect();
    let writing = std::thread::spawn(move || input.write_all(names.as_bytes()));
    let output = child.wait_with_output().map_err(told)?;
    writing.join().map_err(|_| "the thread that writes failed")?.map_err(told)?;
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let contexts: Vec<Value> =
        lines.lines().map(serde_json::from_str).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    if contexts.len() == files.len() { Ok(contexts) } else { Err(format!("pi read {} files", contexts.len())) }
}

/// A copy of the session with another working directory: pi asks about a directory that does not exist.
fn moved(file: &Path, place: &Place) -> Outcome<String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let (first, rest) = text.split_once('\n').ok_or("an empty session")?;
    let mut header: Value = serde_json::from_str(first).map_err(|error| error.to_string())?;
    header["cwd"] = place.machine.project().to_string_lossy().into();
    Ok(format!("{header}\n{rest}"))
}

/// pi itself resumes and continues sessions.
fn goes_on(bench: &Bench, program: &[PathBuf], files: &[PathBuf]) -> Outcome<Row> {
    let mut done = 0;
    let tried = files.len().min(APIS.len() * 2);
    for file in files.iter().step_by((files.len() / tried.max(1)).max(1)).take(tried) {
        let script = Script::default().lane("taken up by pi", [say("I went on.")]);
        let model = Model::start(Api::Anthropic, script).map_err(|error| error.to_string())?;
        let place = Place::new(bench, Api::Anthropic, &model.url(), "", "")?;
        let copy = place.machine.home().join("session.jsonl");
        fs::write(&copy, moved(file, &place)?).map_err(|error| error.to_string())?;
        let mut command = peers::prompted(Who::Pi, program, &place, &model.url(), "taken up by pi")?;
        command.arg("--session").arg(&copy).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = command.output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout);
        if output.status.success() && said.contains("I went on.") {
            done += 1;
        } else {
            eprintln!("{}: pi said {output:?}", file.display());
        }
        let last = fs::read_to_string(&copy).unwrap_or_default().lines().last().map(str::to_owned);
        let last: Value = last.and_then(|line| serde_json::from_str(&line).ok()).unwrap_or_default();
        if text(&last["message"]["role"]) != "assistant" {
            eprintln!("{}: pi wrote {last}", file.display());
        }
    }
    let row = Row::new("A14", "taken up by pi, answered", format!("{done} of {tried} files"));
    Ok(row.must("all", done == tried && tried > 0))
}
