//! A1: a script of many answers with reads, edits, commands, questions and mistakes, in all four APIs, with a server
//! that refuses what the vendor refuses.

use std::{collections::BTreeMap, fs, path::Path};

use clap::Args;
use serde_json::{Value, json};
use tests::models::{
    Api, Model,
    script::{Call, Part, Script, Step},
};

use crate::{
    Bench, Outcome,
    place::{ANSWER, APIS, MAY_I, Place, api_name},
    report::Row,
};

/// Answers of the model to one prompt.
const ANSWERS: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct Turns {
    /// The APIs; all of them when none is given.
    #[arg(long, value_delimiter = ',', value_parser = super::api)]
    api: Vec<Api>,
    /// Answers of the model.
    #[arg(long, default_value_t = 50)]
    n: usize,
    /// Refuse what the vendor refuses. Without it nothing is checked.
    #[arg(long)]
    strict: bool,
}

impl Turns {
    /// Two prompts in each API.
    pub(crate) fn few() -> Self {
        Self { api: Vec::new(), n: 2 * ANSWERS, strict: true }
    }
}

pub(crate) fn turns(bench: &Bench, asked: &Turns) -> Outcome<Vec<Row>> {
    let apis = if asked.api.is_empty() { &APIS[..] } else { &asked.api };
    let prompts = asked.n.div_ceil(ANSWERS);
    let mut rows = Vec::new();
    for api in apis {
        let script = (0..prompts).fold(Script::default(), |script, part| script.lane(&word(part), answers(part)));
        let model = if asked.strict { Model::exact(*api, script) } else { Model::start(*api, script) };
        let model = model.map_err(|error| error.to_string())?;
        let place = Place::new(bench, *api, &model.url(), "", "")?;
        prepare(&place, prompts)?;
        let mut trouble = Vec::new();
        for part in 0..prompts {
            let more = if part == 0 { "" } else { "--continue " };
            let mut user = place.at_terminal(&format!("{more}--mode accept-edits do {}", word(part)));
            let (shown, status) = user.answers(&[(MAY_I, "y\n"), (ANSWER, "2\n")]);
            if status != 0 {
                trouble.push(format!("part {part} ended with {status}: {}", String::from_utf8_lossy(&shown)));
            }
        }
        let refused = model.refusals();
        let requests = model.cache_report().requests;
        let files = files(&place.machine.project())?;
        let differing: Vec<String> = differing(&files, &expected(prompts));
        for problem in trouble.iter().chain(&refused).chain(&differing) {
            eprintln!("{}: {problem}", api_name(*api));
        }
        let value = format!("{requests} requests, {} refused, {} files differ", refused.len(), differing.len());
        let is_met = trouble.is_empty() && refused.is_empty() && differing.is_empty();
        let what = format!("{} answers in {prompts} prompts, {}", prompts * ANSWERS, api_name(*api));
        rows.push(Row::new("A1", what, value).must("0 refused, files as scripted", is_met));
    }
    Ok(rows)
}

fn word(part: usize) -> String {
    format!("stage-{part:03}")
}

fn tool(name: &str, input: Value) -> Part {
    Part::Call(Call::new(name, input))
}

fn said(text: &str) -> Part {
    Part::Say(text.to_owned())
}

fn edit(old: &str, new: &str) -> Part {
    tool("edit", json!({ "path": "notes.txt", "edits": [{ "old": old, "new": new }] }))
}

/// The answers of the model to one prompt.
fn answers(part: usize) -> Vec<Step> {
    let read = |path: &str| tool("read", json!({ "path": path }));
    let (todo, done) = (|n| format!("todo {part}.{n};"), |n| format!("done {part}.{n};"));
    vec![
        Step::Answer(vec![
            Part::Think(format!("First I look, part {part}.")),
            said("I look around. "),
            read("notes.txt"),
            read("src/main.py"),
            tool("glob", json!({ "pattern": format!("made/{part}*") })),
        ]),
        Step::Answer(vec![tool(
            "todo",
            json!({ "items": [{ "text": format!("part {part}"), "state": "in_progress" }] }),
        )]),
        Step::Answer(vec![said("An edit."), edit(&todo(1), &done(1))]),
        Step::Answer(vec![tool("bash", json!({ "command": format!("echo ran {part} >> log.txt; tail -n1 log.txt") }))]),
        Step::Answer(vec![tool(
            "write",
            json!({ "path": format!("made/{part}.txt"), "content": format!("part {part}\nümläut ☃\n") }),
        )]),
        // No text matches.
        Step::Answer(vec![
            Part::Think("Perhaps it says so.".to_owned()),
            edit(&format!("never there {part}"), "x"),
            tool("read", json!({ "path": "notes.txt", "lines": part })),
        ]),
        Step::Answer(vec![
            read(&format!("made/{part}.txt")),
            edit(&todo(2), &done(2)),
            tool("grep", json!({ "pattern": format!("done {part}") })),
            tool("mcp", json!({ "action": "search", "tool": format!("part {part}") })),
        ]),
        Step::Answer(vec![tool(
            "ask",
            json!({ "question": format!("Which way, {part}?"), "options": ["left", "right"] }),
        )]),
        Step::Answer(vec![said("It fails. "), tool("bash", json!({ "command": format!("echo part {part}; exit 3") }))]),
        Step::Answer(vec![Part::Think("That is all.".to_owned()), said(&format!("Part {part} is done."))]),
    ]
}

fn prepare(place: &Place, prompts: usize) -> Outcome<()> {
    fs::create_dir(place.machine.project().join("src")).map_err(|error| error.to_string())?;
    place.write("src/main.py", MAIN)?;
    place.write("notes.txt", &notes(prompts, "todo"))
}

const MAIN: &str = "def main():\n    print(\"hello\")\n";

fn notes(prompts: usize, state: &str) -> String {
    (0..prompts).map(|part| format!("{state} {part}.1;\n{state} {part}.2;\n")).collect()
}

/// The expected files of the project at the end.
fn expected(prompts: usize) -> BTreeMap<String, String> {
    let mut files = BTreeMap::from([
        ("src/main.py".to_owned(), MAIN.to_owned()),
        ("notes.txt".to_owned(), notes(prompts, "done")),
        ("log.txt".to_owned(), (0..prompts).map(|part| format!("ran {part}\n")).collect()),
    ]);
    for part in 0..prompts {
        files.insert(format!("made/{part}.txt"), format!("part {part}\nümläut ☃\n"));
    }
    files
}

/// All files below a directory, keyed by path.
fn files(root: &Path) -> Outcome<BTreeMap<String, String>> {
    let (mut files, mut open) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).map_err(|error| error.to_string())? {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let bytes = fs::read(&path).map_err(|error| error.to_string())?;
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            files.insert(name, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    Ok(files)
}

fn differing(files: &BTreeMap<String, String>, expected: &BTreeMap<String, String>) -> Vec<String> {
    let names = files.keys().chain(expected.keys().filter(|name| !files.contains_key(*name)));
    let differ = |name: &&String| files.get(*name) != expected.get(*name);
    names.filter(differ).map(|name| format!("{name} is {:?}", files.get(name))).collect()
}
