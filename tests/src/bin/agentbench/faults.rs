//! A6: servers that answer incorrectly, slowly or not at all, once or every time.

use std::{
    fs::File,
    io::Read,
    process::Stdio,
    time::{Duration, Instant},
};

use clap::Args;
use tests::{
    models::{
        Api, Model,
        fault::Fault,
        script::{Script, Step, say},
    },
    within,
};

use crate::{
    Bench, Outcome,
    place::{APIS, Place, api_name},
    report::Row,
};

/// The configured limit for a pause within an answer.
const IDLE_S: u64 = 2;
/// The limit for the time before an answer, which is the agent's default.
const FIRST: Duration = Duration::from_secs(120);
/// Allowance for starting and for all work except waiting.
const WORK: Duration = Duration::from_secs(2);
/// Tolerance for exceeding a limit.
const LATE: Duration = Duration::from_secs(1);
/// Effectively always.
const EVERY_TIME: u32 = 99;
/// Number of processes at once. Most of them wait, so it exceeds the number of processors.
const AT_ONCE: usize = 24;

#[derive(Debug, Args)]
pub(crate) struct Faults {
    /// Only the faults whose name holds this.
    #[arg(long, default_value = "", hide_default_value = true)]
    only: String,
    /// The APIs; all of them when none is given.
    #[arg(long, value_delimiter = ',', value_parser = super::api)]
    api: Vec<Api>,
    /// Print every outcome.
    #[arg(long)]
    verbose: bool,
}

/// A fault of a server.
#[derive(Debug, Clone)]
struct Case {
    name: String,
    api: Api,
    step: Step,
    /// How long the agent may take.
    limit: Duration,
    /// The answer expected after a successful recovery.
    recovers: Option<&'static str>,
}

/// The outcome of a case.
#[derive(Debug)]
struct Ended {
    name: String,
    took: Duration,
    is_hung: bool,
    is_panicked: bool,
    is_lost: bool,
    /// Any other deviation.
    wrong: Option<String>,
}

pub(crate) fn faults(bench: &Bench, asked: &Faults) -> Outcome<Vec<Row>> {
    let apis = if asked.api.is_empty() { &APIS[..] } else { &asked.api };
    let mut cases: Vec<Case> = apis.iter().flat_map(|api| cases(*api)).collect();
    cases.retain(|case| case.name.contains(&asked.only));
    let ended = bench.each(AT_ONCE, &cases, |case| play(bench, case));
    let (mut hung, mut panicked, mut lost, mut wrong) = (0, 0, 0, 0);
    let mut slowest = (0.0_f64, String::new());
    for outcome in ended {
        let outcome = outcome?;
        hung += u32::from(outcome.is_hung);
        panicked += u32::from(outcome.is_panicked);
        lost += u32::from(outcome.is_lost);
        wrong += u32::from(outcome.wrong.is_some());
        if outcome.took.as_secs_f64() > slowest.0 {
            slowest = (outcome.took.as_secs_f64(), outcome.name.clone());
        }
        if asked.verbose || outcome.is_hung || outcome.is_panicked || outcome.is_lost || outcome.wrong.is_some() {
            eprintln!("{outcome:?}");
        }
    }
    let value = format!(
        "{} cases: {hung} hung, {panicked} panicked, {lost} messages lost, {wrong} ended otherwise than expected; \
         longest {:.0} s ({})",
        cases.len(),
        slowest.0,
        slowest.1
    );
    let is_met = hung + panicked + lost + wrong == 0;
    Ok(vec![Row::new("A6", "faults of servers", value).must("all 0", is_met)])
}

fn cases(api: Api) -> Vec<Case> {
    let idle = Duration::from_secs(IDLE_S);
    let mut cases = Vec::new();
    let mut add = |name: &str, step: Step, limit: Duration, recovers: Option<&'static str>| {
        cases.push(Case { name: format!("{} {name}", api_name(api)), api, step, limit, recovers });
    };
    // The waits before retries: at most half a second for the first, doubled each time, up to a minute.
    let waits = |times: u32| (0..times).map(|n| Duration::from_millis(500 << n).min(Duration::from_secs(60))).sum();
    let (one, two, eight): (Duration, Duration, Duration) = (waits(1), waits(2), waits(8));
    let once = |fault: Fault| Step::Faulty { fault, times: 1 };
    let always = |fault: Fault| Step::Faulty { fault, times: EVERY_TIME };
    const WELL: Option<&str> = Some("Recovered.\n");
    for bytes in [0, 1, 50, 300] {
        add(&format!("cut after {bytes}"), once(Fault::CutAfter(bytes)), one, WELL);
    }
    add("cut every time", always(Fault::CutAfter(50)), eight, None);
    add("stall", once(Fault::Stall), one + idle, WELL);
    add("stall every time", always(Fault::Stall), two + idle * 3, None);
    add("pings after words", once(Fault::PingsAfterWords), one + idle, WELL);
    add("pings only", once(Fault::PingOnly), one + FIRST, WELL);
    add("pings only every time", always(Fault::PingOnly), two + FIRST * 3, None);
    add("error in the stream", once(Fault::ErrorInStream), one, WELL);
    add("error in the stream every time", always(Fault::ErrorInStream), eight, None);
    add("a page of HTML", once(Fault::Html), one, WELL);
    add("a page of HTML every time", always(Fault::Html), eight, None);
    let drip = Duration::from_micros(100);
    add("a byte at a time", once(Fault::Drip(drip)), Duration::from_secs(10), Some("Some words. \n"));
    add("half of a call", once(Fault::HalfInput), two, WELL);
    add("two calls with one id", once(Fault::SameIds), two, None);
    add("an answer of 64 MiB", once(Fault::Flood(64 << 20)), Duration::from_secs(90), None);
    for (status, after) in [(429, None), (429, Some(1)), (500, None), (503, None), (529, None)] {
        let retry_after = after.map(Duration::from_secs);
        let name = format!("{status}{}", if after.is_some() { " with a time" } else { "" });
        let wait = retry_after.unwrap_or(one);
        add(&name, Step::Fail { status, retry_after, times: 1 }, wait, WELL);
        let all = retry_after.map_or(eight, |after| after * 8);
        add(&format!("{name} every time"), Step::Fail { status, retry_after, times: EVERY_TIME }, all, None);
    }
    for status in [400, 401, 403, 404, 413] {
        let step = Step::Fail { status, retry_after: None, times: EVERY_TIME };
        add(&format!("{status} every time"), step, Duration::ZERO, None);
    }
    cases
}

fn play(bench: &Bench, case: &Case) -> Outcome<Ended> {
    let script = Script::default()
        .lane("first-prompt", vec![case.step.clone(), say("Recovered.")])
        .lane("second-prompt", vec![say("The second answer.")]);
    let model = Model::exact(case.api, script).map_err(|error| error.to_string())?;
    let place = Place::new(bench, case.api, &model.url(), "", &format!("idle_s = {IDLE_S}"))?;
    let limit = case.limit + WORK;
    let (code, out, err, took) = run(&place, &["run", "first-prompt, with words of the user"], limit + LATE)?;
    let entries = place.entries()?;
    let is_kept = entries.iter().any(|entry| {
        entry["message"]["role"] == "user" && entry["message"].to_string().contains("with words of the user")
    });
    let mut wrong = match (case.recovers, code) {
        (Some(expected), Some(0)) if out == expected => None,
        (None, Some(0 | 1 | 3)) => None,
        (_, None) => None,
        _ => Some(format!("exit {code:?}, `{}`, `{err}`", out.get(..200).unwrap_or(&out))),
    };
    // The session continues.
    let (next, said, told, _) = run(&place, &["run", "--continue", "second-prompt"], Duration::from_secs(30))?;
    if (next, said.as_str()) != (Some(0), "The second answer.\n") {
        wrong.get_or_insert(format!("the next prompt: exit {next:?}, `{said}`, `{told}`"));
    }
    if !model.refusals().is_empty() {
        wrong.get_or_insert(format!("refused: {:?}", model.refusals()));
    }
    Ok(Ended {
        name: case.name.clone(),
        took,
        is_hung: code.is_none(),
        is_panicked: err.contains("panicked") || told.contains("panicked"),
        is_lost: !is_kept,
        wrong,
    })
}

/// Runs the agent; the code is `None` if it did not end in time and was killed.
fn run(place: &Place, words: &[&str], limit: Duration) -> Outcome<(Option<i32>, String, String, Duration)> {
    let told = |error: std::io::Error| error.to_string();
    let dir = tempfile::tempdir().map_err(told)?;
    let file = |name: &str| File::create(dir.path().join(name)).map_err(told);
    let mut command = place.command(words);
    command.stdout(Stdio::from(file("out")?)).stderr(Stdio::from(file("err")?));
    let began = Instant::now();
    let mut child = command.spawn().map_err(told)?;
    let status = within(limit, || child.try_wait().ok().flatten());
    let took = began.elapsed();
    if status.is_none() {
        child.kill().map_err(told)?;
        child.wait().map_err(told)?;
    }
    let text = |name: &str| {
        let mut bytes = Vec::new();
        // A missing file counts as empty output.
        File::open(dir.path().join(name)).and_then(|mut file| file.read_to_end(&mut bytes)).ok();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Ok((status.and_then(|status| status.code()), text("out"), text("err"), took))
}
