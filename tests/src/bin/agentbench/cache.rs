//! A2, A3, A4: how much was read from the vendor's cache compared with the best possible, and whether every miss is
//! explained.

use std::{fs, path::PathBuf, time::Duration};

use clap::Args;
use serde_json::{Value, json};
use tests::models::{
    Api, Model,
    cache::CacheReport,
    script::{Call, Part, Script, Step, call, say},
};

use crate::{
    Bench, Outcome,
    place::{APIS, Place, api_name},
    report::Row,
};

/// Simulated time between two prompts; it keeps the requests below the vendor's limit per machine and minute.
const BETWEEN: Duration = Duration::from_secs(15);
/// Longer than the lifetime of a cache entry.
const LONG: Duration = Duration::from_secs(6 * 60);

#[derive(Debug, Args)]
pub(crate) struct Cache {
    /// The APIs; all of them when none is given.
    #[arg(long, value_delimiter = ',', value_parser = super::api)]
    api: Vec<Api>,
    /// Prompts of a long session (A2).
    #[arg(long, value_name = "N")]
    turns: Option<usize>,
    /// Answers to each of these prompts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Restarts of a session (A3).
    #[arg(long, value_name = "N")]
    resume: Option<usize>,
    /// Run another version in every second restart: a copy of the program whose built-in system prompt differs.
    #[arg(long)]
    upgrade: bool,
    /// Another version to use for that.
    #[arg(long, value_name = "PROGRAM")]
    other: Option<PathBuf>,
    /// A second session in another directory (A4).
    #[arg(long)]
    second_session: bool,
    /// Another model in the middle (A4).
    #[arg(long)]
    model_switch: bool,
    /// Requests that fail and are repeated (A4).
    #[arg(long)]
    retry: bool,
    /// An answer with this many reads (A4).
    #[arg(long, value_name = "N")]
    parallel: Option<usize>,
    /// A vendor that drops everything before its time (A4).
    #[arg(long)]
    dropped: bool,
    /// More requests a minute than go to one machine of the vendor, where it has several (A4).
    #[arg(long)]
    rate: bool,
}

impl Cache {
    fn is_empty(&self) -> bool {
        self.turns.is_none() && self.resume.is_none() && self.parallel.is_none() && !self.has_flag()
    }

    fn has_flag(&self) -> bool {
        [self.second_session, self.model_switch, self.retry, self.dropped, self.rate].contains(&true)
    }
}

pub(crate) fn cache(bench: &Bench, asked: &Cache) -> Outcome<Vec<Row>> {
    let all = asked.is_empty();
    let apis = if asked.api.is_empty() { &APIS[..] } else { &asked.api };
    let mut rows = Vec::new();
    if let Some(turns) = asked.turns.or(all.then_some(50)) {
        for &api in apis {
            rows.push(long(bench, api, turns, asked.rounds)?);
        }
    }
    if let Some(restarts) = asked.resume.or(all.then_some(10)) {
        for &api in apis {
            rows.push(resumed(bench, api, restarts, None)?);
            if asked.upgrade || all {
                let other = match &asked.other {
                    Some(other) => other.clone(),
                    None => bench.another_version()?,
                };
                rows.push(resumed(bench, api, restarts, Some(&other))?);
            }
        }
    }
    for &api in apis {
        if asked.second_session || all {
            rows.push(second_session(bench, api)?);
        }
        if asked.model_switch || all {
            rows.push(model_switch(bench, api)?);
        }
        if asked.retry || all {
            rows.push(retry(bench, api)?);
        }
        if let Some(reads) = asked.parallel.or(all.then_some(24)) {
            rows.push(parallel(bench, api, reads)?);
        }
        if asked.dropped || all {
            rows.push(dropped(bench, api)?);
        }
        if (asked.rate || all) && api != Api::Anthropic {
            rows.push(rate(bench, api)?);
        }
    }
    Ok(rows)
}

/// A model and an agent that uses it, with a file of 2,000 lines of 40 bytes.
struct Setting {
    model: Model,
    place: Place,
}

impl Setting {
    fn new(bench: &Bench, api: Api, script: Script) -> Outcome<Self> {
        let model = Model::exact(api, script).map_err(|error| error.to_string())?;
        let place = Place::new(bench, api, &model.url(), "", "")?;
        let lines: String = (0..2000).map(|n| format!("{n:05} the quick brown fox jumps over it\n")).collect();
        place.write("lines.txt", &lines)?;
        Ok(Self { model, place })
    }

    /// Sends a prompt; returns the activity of the caches during it.
    fn prompt(&self, words: &[&str]) -> Outcome<CacheReport> {
        let before = self.model.cache_report();
        self.place.run(words)?.done()?;
        self.model.pass(BETWEEN);
        Ok(since(self.model.cache_report(), before))
    }

    /// The causes of misses by request, from `capture agent cache`.
    fn causes(&self) -> Outcome<Vec<(u64, String)>> {
        let table = self.place.cache_table()?;
        let requests = table["requests"].as_array().cloned().unwrap_or_default();
        let cause =
            |(at, request): (usize, &Value)| Some((at as u64 + 1, request["cause"]["cause"].as_str()?.to_owned()));
        Ok(requests.iter().enumerate().filter_map(cause).collect())
    }

    fn is_accepted(&self) -> Outcome<()> {
        let refused = self.model.refusals();
        if refused.is_empty() { Ok(()) } else { Err(format!("refused: {refused:?}")) }
    }
}

fn since(now: CacheReport, before: CacheReport) -> CacheReport {
    CacheReport {
        requests: now.requests - before.requests,
        total: now.total - before.total,
        read: now.read - before.read,
        best: now.best - before.best,
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

fn read(from: usize, lines: usize) -> Call {
    Call::new("read", json!({ "path": "lines.txt", "offset": from, "limit": lines }))
}

/// A2: prompts with several answers, about 1,000 tokens each.
fn long(bench: &Bench, api: Api, turns: usize, rounds: usize) -> Outcome<Row> {
    let lines = 4000 / 45 / (rounds.max(2) - 1);
    let mut script = Script::default();
    for turn in 0..turns {
        let mut steps: Vec<Step> =
            (1..rounds).map(|round| call(read(1 + (turn * rounds + round) * 7 % 1900, lines))).collect();
        steps.push(say(&format!("That was turn {turn}.")));
        script = script.lane(&format!("turn-{turn:04}"), steps);
    }
    let setting = Setting::new(bench, api, script)?;
    for turn in 0..turns {
        let prompt = format!("turn-{turn:04}");
        let words = ["--continue", &prompt];
        setting.prompt(&words[usize::from(turn == 0)..])?;
    }
    setting.is_accepted()?;
    let report = setting.model.cache_report();
    let told = setting.place.cache_table()?["hit_rate"].as_f64().unwrap_or_default();
    let causes = setting.causes()?;
    let (best, hit) = (report.of_best(), report.hit_rate());
    let is_told = (told - hit).abs() < 1e-9;
    let value = format!(
        "{} of the best, {} of all input; {} requests, {} k tokens; {} misses told{}",
        percent(best),
        percent(hit),
        report.requests,
        report.total / 1000,
        causes.len(),
        if is_told { String::new() } else { format!("; told was {}", percent(told)) }
    );
    let what = format!("{turns} prompts of {rounds} answers, {}", api_name(api));
    let row = Row::new("A2", what, value).must("98 % of the best, 90 %", best >= 0.98 && hit >= 0.9 && is_told);
    Ok(row.stretch("99.5 %", best >= 0.995))
}

/// A3: a session that is resumed repeatedly.
fn resumed(bench: &Bench, api: Api, restarts: usize, other: Option<&PathBuf>) -> Outcome<Row> {
    let script = Script::default()
        .lane("begin", vec![call(read(1, 80)), call(read(100, 80)), say("Begun.")])
        .lane("again", vec![say("Here I am again.")]);
    let setting = Setting::new(bench, api, script)?;
    setting.prompt(&["begin"])?;
    let mut worst: f64 = 1.0;
    for restart in 0..restarts {
        let prompt = format!("again {restart}");
        let report = match other.filter(|_| restart % 2 == 0) {
            None => setting.prompt(&["--continue", &prompt])?,
            Some(other) => {
                let before = setting.model.cache_report();
                let mut command = std::process::Command::new(other);
                let template = setting.place.command(&["run", "--continue", &prompt]);
                command.args(template.get_args()).env_clear().current_dir(setting.place.machine.project());
                command.envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
                let output = command.output().map_err(|error| error.to_string())?;
                if !output.status.success() {
                    return Err(format!("{}: {output:?}", other.display()));
                }
                setting.model.pass(BETWEEN);
                since(setting.model.cache_report(), before)
            }
        };
        if report.requests != 1 || report.best == 0 {
            return Err(format!("a restart made {report:?}"));
        }
        worst = worst.min(report.of_best());
    }
    setting.is_accepted()?;
    let version = if other.is_some() { ", another version in between" } else { "" };
    let what = format!("{restarts} restarts{version}, {}", api_name(api));
    let row = Row::new("A3", what, format!("{} of the best at worst", percent(worst)));
    Ok(row.must("98 %", worst >= 0.98).stretch("100 %", worst >= 1.0))
}

/// A4: a second session of the same version starts with a warm cache.
fn second_session(bench: &Bench, api: Api) -> Outcome<Row> {
    let script = Script::default().lane("hello", vec![call(read(1, 60)), say("Hello.")]);
    let setting = Setting::new(bench, api, script)?;
    setting.prompt(&["hello"])?;
    // The second session shares no messages with the first.
    let elsewhere = setting.place.machine.home().join("elsewhere");
    fs::create_dir(&elsewhere).map_err(|error| error.to_string())?;
    fs::copy(setting.place.machine.project().join("lines.txt"), elsewhere.join("lines.txt"))
        .map_err(|error| error.to_string())?;
    let before = setting.model.cache_report();
    let output = setting.place.command(&["run", "hello"]).current_dir(&elsewhere).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("the second session: {output:?}"));
    }
    setting.is_accepted()?;
    let report = since(setting.model.cache_report(), before);
    // Only of the first request; the second one reads at least as much again.
    let files = setting.place.sessions();
    let mut first = 0;
    for file in &files {
        let entries = crate::place::entries(file)?;
        let is_second = entries.first().is_some_and(|header| header["cwd"] == elsewhere.to_str().unwrap_or_default());
        let ended =
            entries.iter().find(|entry| entry["customType"] == "capture.request" && entry["data"]["phase"] == "ended");
        if let (true, Some(ended)) = (is_second, ended) {
            first = ended["data"]["usage"]["cacheRead"].as_u64().unwrap_or_default();
        }
    }
    let what = format!("the first request of a second session, {}", api_name(api));
    let value = format!("{first} tokens read; {} of the best", percent(report.of_best()));
    Ok(Row::new("A4", what, value).must("more than 0 read", first > 0))
}

fn other_model(api: Api) -> &'static str {
    match api {
        Api::Anthropic => "mine/claude-opus-4-1",
        Api::Responses => "mine/gpt-5-mini",
        Api::Chat => "mine/other",
        Api::Gemini => "mine/gemini-3-flash",
    }
}

fn explained(what: String, causes: &[(u64, String)], expected: &[(u64, &str)]) -> Row {
    let told: Vec<(u64, &str)> = causes.iter().map(|(at, cause)| (*at, cause.as_str())).collect();
    let name = |list: &[(u64, &str)]| {
        let each: Vec<String> = list.iter().map(|(at, cause)| format!("request {at}: {cause}")).collect();
        if each.is_empty() { "none".to_owned() } else { each.join(", ") }
    };
    Row::new("A4", what, format!("misses told: {}", name(&told))).must(name(expected), told == expected)
}

/// A4: another model has a separate cache.
fn model_switch(bench: &Bench, api: Api) -> Outcome<Row> {
    let script = Script::default()
        .lane("begin", vec![call(read(1, 200)), say("Begun.")])
        .lane("again", vec![call(read(300, 40)), say("Here I am again.")]);
    let setting = Setting::new(bench, api, script)?;
    setting.prompt(&["begin"])?;
    setting.prompt(&["--continue", "--model", other_model(api), "again"])?;
    setting.is_accepted()?;
    Ok(explained(format!("another model, {}", api_name(api)), &setting.causes()?, &[(3, "model_changed")]))
}

/// A4: a failed request that is repeated reads as much as the first attempt would have.
fn retry(bench: &Bench, api: Api) -> Outcome<Row> {
    let script = Script::default().lane(
        "begin",
        vec![
            call(read(1, 200)),
            Step::Fail { status: 503, retry_after: None, times: 2 },
            call(read(300, 40)),
            say("Begun."),
        ],
    );
    let setting = Setting::new(bench, api, script)?;
    setting.prompt(&["begin"])?;
    setting.is_accepted()?;
    let report = setting.model.cache_report();
    let causes = setting.causes()?;
    let what = format!("two failures of a request, {}", api_name(api));
    let value = format!("{} of the best; misses told: {}", percent(report.of_best()), causes.len());
    Ok(Row::new("A4", what, value).must("98 % of the best, none told", report.of_best() >= 0.98 && causes.is_empty()))
}

/// A4: more results than the vendor's lookback covers.
fn parallel(bench: &Bench, api: Api, reads: usize) -> Outcome<Row> {
    let many = (0..reads).map(|n| Part::Call(read(1 + n * 10, 10))).collect();
    let script = Script::default()
        .lane("begin", vec![call(read(1, 200)), Step::Answer(many), call(read(300, 10)), say("Begun.")])
        .lane("again", vec![say("Here I am again.")]);
    let setting = Setting::new(bench, api, script)?;
    setting.prompt(&["begin"])?;
    setting.prompt(&["--continue", "again"])?;
    setting.is_accepted()?;
    let (report, causes) = (setting.model.cache_report(), setting.causes()?);
    let what = format!("{reads} reads in one answer, {}", api_name(api));
    let value = format!("{} of the best; misses told: {}", percent(report.of_best()), causes.len());
    Ok(Row::new("A4", what, value).must("98 % of the best, none told", report.of_best() >= 0.98 && causes.is_empty()))
}

/// A4: the vendor drops all entries before their documented lifetime ends.
fn dropped(bench: &Bench, api: Api) -> Outcome<Row> {
    let script = Script::default()
        .lane("begin", vec![call(read(1, 200)), say("Begun.")])
        .lane("again", vec![say("Here I am again.")]);
    let setting = Setting::new(bench, api, script)?;
    setting.prompt(&["begin"])?;
    setting.model.pass(LONG);
    setting.prompt(&["--continue", "again"])?;
    setting.is_accepted()?;
    let what = format!("everything was dropped early, {}", api_name(api));
    Ok(explained(what, &setting.causes()?, &[(3, "evicted_by_vendor")]))
}

/// A4: more requests in a minute than one machine serves, so the vendor routes some to a machine without the session.
fn rate(bench: &Bench, api: Api) -> Outcome<Row> {
    let mut steps: Vec<Step> = (0..19).map(|n| call(read(1 + n * 50, 50))).collect();
    steps.push(say("Done."));
    let setting = Setting::new(bench, api, Script::default().lane("begin", steps))?;
    setting.prompt(&["begin"])?;
    setting.is_accepted()?;
    let what = format!("20 requests in a minute, {}", api_name(api));
    Ok(explained(what, &setting.causes()?, &[(16, "routed_elsewhere")]))
}
