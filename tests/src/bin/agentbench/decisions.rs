//! A9: how long a decision without the user takes.
//!
//! For a decision by a rule of the server, the time is taken from the program's output: from the permission request to
//! the decision. A decision in process is too short for that, so answers with many reads are compared with answers with
//! one: the result is the time of one more read, including the read itself and everything recorded about it.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    time::Instant,
};

use clap::Args;
use serde_json::{Value, json};
use tests::models::Api;

use crate::{
    Bench, Outcome,
    canned::{Canned, answer},
    peers::text,
    place::Place,
    report::{Row, at_share, median, ms},
};

/// Calls in the larger answers; the agent runs up to 32 per answer.
const CALLS: usize = 31;
/// A policy that allows the command of this row.
const POLICY: &str = "version = 1\n[[rule]]\nname = \"named\"\ndecision = \"allow\"\ncommand = [\"true\", \"...\"]\n";

#[derive(Debug, Args)]
pub(crate) struct Decisions {
    /// Decisions of each kind.
    #[arg(long, default_value_t = 150)]
    n: usize,
}

pub(crate) fn decisions(bench: &Bench, asked: &Decisions) -> Outcome<Vec<Row>> {
    Ok(vec![by_rule(bench, asked.n)?, in_process(bench, asked.n / 3)?])
}

/// Commands that a rule of the policy allows, with a server.
fn by_rule(bench: &Bench, n: usize) -> Outcome<Row> {
    let told = |error: std::io::Error| error.to_string();
    let say = move |at: usize| {
        let command = json!({ "command": format!("true {at}") });
        Some(if at < n { answer(at, "", &[("bash", command)]) } else { answer(at, "Done.", &[]) })
    };
    let model = Canned::start(false, Box::new(say)).map_err(told)?;
    let place = Place::new(bench, Api::Anthropic, &model.url(), "", "")?;
    place.machine.policy(POLICY);
    let _server = place.machine.serve();
    let mut command = place.command(&["run", "--json", "go on"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(told)?;
    let output = child.stdout.take().ok_or("no standard output")?;
    let (mut times, mut since, mut verdicts) = (Vec::new(), None, Vec::new());
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        let now = Instant::now();
        let line: Value = serde_json::from_slice(&line).unwrap_or_default();
        match text(&line["type"]) {
            "entry" if line["data"]["customType"] == "capture.asked" => since = Some(now),
            "call_decided" => {
                verdicts.push(text(&line["data"]["decision"]["verdict"]).to_owned());
                times.extend(since.take().map(|since: Instant| ms(now - since)));
            }
            _ => {}
        }
    }
    child.wait().map_err(told)?;
    let what = "a decision by a rule, request to answer";
    let allowed = verdicts.iter().filter(|verdict| *verdict == "allow").count();
    if allowed < n {
        let value = format!("{allowed} of {n} allowed: {:?}", verdicts.first());
        return Ok(Row::new("A9", what, value).must("p50 3 ms, p99 15 ms", false));
    }
    let (p50, p99) = (median(&times), at_share(&times, 0.99));
    let row = Row::new("A9", what, format!("p50 {p50:.2} ms, p99 {p99:.2} ms, {} decisions", times.len()));
    let row = row.must("p50 3 ms, p99 15 ms", p50 <= 3.0 && p99 <= 15.0);
    Ok(row.stretch("p50 1.5 ms, p99 6 ms", p50 <= 1.5 && p99 <= 6.0))
}

/// Reads in the workspace, compared with as many calls that need no decision.
fn in_process(bench: &Bench, n: usize) -> Outcome<Row> {
    let read = |at: usize, call: usize| json!({ "path": "lines.txt", "offset": 1 + at * 40 + call, "limit": 1 });
    // Lists of different lengths, for the same reason as the different lines.
    let todo = |at: usize, call: usize| {
        let items = (0..=(at + call) % 8).map(|item| json!({ "text": format!("{at}.{call}.{item}"), "state": "done" }));
        json!({ "items": items.collect::<Vec<_>>() })
    };
    let reads = further(bench, n, "read", read)?;
    let todos = further(bench, n, "todo", todo)?;
    let each = reads - todos;
    let value = format!("{each:.3} ms: {reads:.3} ms for a further read, {todos:.3} ms for a further call of todo");
    let row = Row::new("A9", "a read of the workspace, decided in process and done, without what is written", value);
    Ok(row.must("0.2 ms", each <= 0.2))
}

/// The time of one further call in an answer, ms.
fn further(
    bench: &Bench,
    n: usize,
    tool: &'static str,
    input: impl Fn(usize, usize) -> Value + Copy + Send + Sync + 'static,
) -> Outcome<f64> {
    let of = |calls: usize| -> Outcome<f64> {
        let say = move |at: usize| {
            let calls: Vec<(&str, Value)> = (0..calls).map(|call| (tool, input(at, call))).collect();
            Some(if at < n { answer(at, "", &calls) } else { answer(at, "Done.", &[]) })
        };
        let model = Canned::start(false, Box::new(say)).map_err(|error| error.to_string())?;
        let place = Place::new(bench, Api::Anthropic, &model.url(), "", "")?;
        // Different lines: equal results count as a loop.
        let lines: String = (0..40 * (n + 1)).map(|number| format!("line {number}\n")).collect();
        place.write("lines.txt", &lines)?;
        place.run(&["go on"])?.done()?;
        let exchanges = model.exchanges();
        let gap = |pair: &[crate::canned::Exchange]| Some(ms(pair[1].read - pair[0].answered?));
        Ok(median(&exchanges.windows(2).filter_map(gap).collect::<Vec<_>>()))
    };
    Ok((of(CALLS)? - of(1)?) / (CALLS - 1) as f64)
}
