//! A8: the time the agent adds to a turn, compared with a client that only posts the same bodies and reads the answers.
//!
//! The time of a turn with a tool is measured at the model: from the last byte of an answer to the last byte of the
//! next request. The time of a turn without tools is measured by the client that sends the prompt.

use std::{
    io::Write,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::json;
use tests::models::Api;

use crate::{
    Bench, Outcome,
    canned::{Bare, Canned, Exchange, answer},
    place::Place,
    report::{Row, at_share, median, ms},
    rpc::Rpc,
};

/// How long a turn may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Bytes per token.
const TOKEN: usize = 4;

#[derive(Debug, Args)]
pub(crate) struct Overhead {
    /// Turns of each kind and size.
    #[arg(long, default_value_t = 50)]
    turns: usize,
    /// Tokens of the conversation in the second measurement.
    #[arg(long, default_value_t = 200_000)]
    large: usize,
    /// How often everything is repeated; the middle counts.
    #[arg(long, default_value_t = 3)]
    repeat: usize,
}

/// The times of turns with the agent and with the bare client, ms.
#[derive(Debug, Default)]
struct Taken {
    ours: Vec<f64>,
    bare: Vec<f64>,
}

pub(crate) fn overhead(bench: &Bench, asked: &Overhead) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    let sizes = [2_000, asked.large];
    let mut added = [0.0; 2];
    for (at, tokens) in sizes.into_iter().enumerate() {
        let mut taken = Taken::default();
        for _ in 0..asked.repeat {
            tool_turns(bench, asked.turns, tokens, &mut taken)?;
        }
        let (ours, bare) = (median(&taken.ours), median(&taken.bare));
        added[at] = ours - bare;
        let value = format!(
            "{ours:.2} ms p50 ({:.2} p90), bare {bare:.2} ms, {} turns",
            at_share(&taken.ours, 0.9),
            taken.ours.len()
        );
        let row = Row::new("A8", format!("a turn with a read, {} k tokens", tokens / 1000), value);
        rows.push(row.must("bare + 5 ms", ours <= bare + 5.0).stretch("bare + 2 ms", ours <= bare + 2.0));
    }
    rows.push(grown("a turn with a read", added));
    let place = Place::new(bench, Api::Anthropic, "http://127.0.0.1:9", "", "")?;
    if !Rpc::is_there(&place)? {
        rows.push(Row::new("A8", "a turn without tools", "not measured: the program has no `agent rpc`"));
        return Ok(rows);
    }
    for (at, tokens) in sizes.into_iter().enumerate() {
        let mut taken = Taken::default();
        for _ in 0..asked.repeat {
            plain_turns(bench, asked.turns, tokens, &mut taken)?;
        }
        let (ours, bare) = (median(&taken.ours), median(&taken.bare));
        added[at] = ours - bare;
        let value = format!(
            "{ours:.2} ms p50 ({:.2} p90), bare {bare:.2} ms, {} turns",
            at_share(&taken.ours, 0.9),
            taken.ours.len()
        );
        let row = Row::new("A8", format!("a turn without tools, {} k tokens", tokens / 1000), value);
        let is_near = |factor: f64| ours <= factor * bare + 1.0;
        rows.push(row.must("1.5 × bare + 1 ms", is_near(1.5)).stretch("1.15 × bare + 1 ms", is_near(1.15)));
    }
    rows.push(grown("a turn without tools", added));
    Ok(rows)
}

/// The time added to that of the bare client, in a large conversation compared with a small one.
fn grown(what: &str, [small, large]: [f64; 2]) -> Row {
    let share = large / small;
    let value = format!("{large:.2} ms against {small:.2} ms: {share:.2} ×");
    let row = Row::new("A8", format!("{what}: what is added, large against small"), value);
    row.must("1.3 ×", share <= 1.3).stretch("1.1 ×", share <= 1.1)
}

/// A text of about this many tokens.
fn text(tokens: usize) -> String {
    "The quick brown fox jumps over the lazy dog again. \n".repeat(tokens * TOKEN / 52)
}

/// Number of first turns that only warm up.
const WARM: usize = 3;

fn gaps(exchanges: &[Exchange]) -> Vec<f64> {
    let gap = |pair: &[Exchange]| Some(ms(pair[1].read - pair[0].answered?));
    exchanges.windows(2).skip(WARM).filter_map(gap).collect()
}

/// Turns with a read of ten lines.
fn tool_turns(bench: &Bench, turns: usize, tokens: usize, taken: &mut Taken) -> Outcome<()> {
    let told = |error: std::io::Error| error.to_string();
    let all = turns + WARM;
    let said = move |n: usize| {
        let read = json!({ "path": "lines.txt", "offset": 1 + n, "limit": 10 });
        if n < all { Some(answer(n, "", &[("read", read)])) } else { Some(answer(n, "Done.", &[])) }
    };
    let model = Canned::start(true, Box::new(said)).map_err(told)?;
    let place = Place::new(bench, Api::Anthropic, &model.url(), "", "")?;
    place.write("lines.txt", &"some words of a line\n".repeat(2000))?;
    let mut command = place.command(&["run", "go on"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(told)?;
    let mut input = child.stdin.take().ok_or("no standard input")?;
    input.write_all(text(tokens).as_bytes()).map_err(told)?;
    drop(input);
    let status = child.wait().map_err(told)?;
    let ours = model.exchanges();
    if !status.success() || ours.len() != all + 1 {
        return Err(format!("the agent ended with {status} after {} requests", ours.len()));
    }
    let twin = Canned::start(true, Box::new(said)).map_err(told)?;
    let mut bare = Bare::connect(&twin.url()).map_err(told)?;
    for exchange in &ours {
        bare.post(&exchange.path, &exchange.body).map_err(told)?;
    }
    taken.ours.extend(gaps(&ours));
    taken.bare.extend(gaps(&twin.exchanges()));
    Ok(())
}

/// Prompts answered at once, without tools.
fn plain_turns(bench: &Bench, turns: usize, tokens: usize, taken: &mut Taken) -> Outcome<()> {
    let told = |error: std::io::Error| error.to_string();
    let said: Arc<str> = Arc::from("An answer of some words, as models give it. ".repeat(10));
    let say = move |n: usize| Some(answer(n, &said, &[]));
    let model = Canned::start(true, Box::new(say.clone())).map_err(told)?;
    let place = Place::new(bench, Api::Anthropic, &model.url(), "", "")?;
    let mut rpc = Rpc::start(place.command(&["rpc"]))?;
    let mut times = Vec::new();
    for turn in 0..turns + WARM {
        let message = if turn == 0 { text(tokens) } else { format!("prompt {turn}") };
        let sent = rpc.send(&json!({ "type": "prompt", "message": message }))?;
        let (ended, _) = rpc.wait_for("agent_end", LIMIT)?;
        times.push(ms(ended - sent));
    }
    taken.ours.extend(times.into_iter().skip(WARM));
    let twin = Canned::start(true, Box::new(say)).map_err(told)?;
    let mut bare = Bare::connect(&twin.url()).map_err(told)?;
    for (at, exchange) in model.exchanges().iter().enumerate() {
        let began = Instant::now();
        bare.post(&exchange.path, &exchange.body).map_err(told)?;
        if at >= WARM {
            taken.bare.push(ms(began.elapsed()));
        }
    }
    Ok(())
}
