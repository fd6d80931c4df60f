//! A11: the memory of an agent with all its processes after a long turn, and of an additional session.

use std::{
    process::Child,
    time::{Duration, Instant},
};

use clap::Args;
use tests::{
    models::{
        AnswerProgress, Model,
        script::{Part, Script, Step, call},
    },
    within,
};

use crate::{
    Bench, Outcome,
    peers::{Installed, Who, end, prompted, pss_kib, tree, version},
    place::Place,
    report::Row,
};

/// How long a script may take.
const LIMIT: Duration = Duration::from_secs(300);
/// The prompt, which also selects the lane of the script.
const WORK: &str = "work-on-it";
/// How long the processes may settle while the last answer is held back.
const REST: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct Memory {
    /// Answers of the model, each with a read.
    #[arg(long, default_value_t = 50)]
    turns: usize,
    /// Sessions at once, of which the second and each further are counted.
    #[arg(long, default_value_t = 4)]
    sessions: usize,
    #[command(flatten)]
    peers: Installed,
}

/// A session that has finished its turns and waits for the last answer.
struct Running {
    child: Child,
    _place: Place,
    _model: Model,
}

impl Drop for Running {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

pub(crate) fn memory(bench: &Bench, asked: &Memory) -> Outcome<Vec<Row>> {
    let mut agents = vec![(Who::Ours, vec![bench.binary.clone()])];
    agents.extend(asked.peers.found()?);
    let mut figures = Vec::new();
    for (who, program) in &agents {
        let mut sessions = Vec::new();
        let mut kib = Vec::new();
        for _ in 0..asked.sessions.max(1) {
            sessions.push(begin(bench, *who, program, asked.turns)?);
            let pids: Vec<u32> = sessions.iter().flat_map(|session| tree(session.child.id())).collect();
            kib.push(pss_kib(&pids));
        }
        figures.push(kib);
    }
    let mb = |kib: u64| kib as f64 / 1024.0;
    let further = |kib: &[u64]| match kib {
        [first, .., last] => (mb(*last) - mb(*first)) / (kib.len() - 1) as f64,
        _ => 0.0,
    };
    let ours = mb(figures[0][0]);
    let smallest = |who: Who| {
        let at = agents.iter().position(|(of, _)| *of == who)?;
        Some(ours / mb(figures[at][0]))
    };
    let home = bench.scratch.path();
    let mut rows = Vec::new();
    for ((who, program), kib) in agents.iter().zip(&figures) {
        let what = format!("PSS of the tree after {} answers, {} {}", asked.turns, who.name(), version(program, home));
        let value = format!("{:.1} MB; {:.1} MB for each further session", mb(kib[0]), further(kib));
        let row = Row::new("A11", what, value);
        if *who != Who::Ours {
            rows.push(row);
            continue;
        }
        let shares: Vec<(Who, f64)> =
            [Who::Codex, Who::Pi].into_iter().filter_map(|who| Some((who, smallest(who)?))).collect();
        let told: Vec<String> = shares.iter().map(|(who, share)| format!("{} {share:.2}", who.name())).collect();
        let is_met = shares.iter().all(|(_, share)| *share <= 0.35) && further(kib) <= 4.0;
        let row = if shares.is_empty() {
            row
        } else {
            row.must(format!("0.35 × of codex and pi ({}), 4 MB", told.join(", ")), is_met)
        };
        rows.push(row.stretch("20 MB, 1.5 MB", ours <= 20.0 && further(kib) <= 1.5));
    }
    Ok(rows)
}

fn begin(bench: &Bench, who: Who, program: &[std::path::PathBuf], turns: usize) -> Outcome<Running> {
    let told = |error: std::io::Error| error.to_string();
    // The script needs the project, which is known only once the machine exists.
    let machine = Place::new(bench, who.api(), "http://127.0.0.1:9", "", "")?;
    let project = machine.machine.project();
    let lines: String = (0..2000).map(|n| format!("{n:05} the quick brown fox jumps over it\n")).collect();
    machine.write("lines.txt", &lines)?;
    let mut steps: Vec<Step> = (0..turns).map(|n| call(who.read(&project, 1 + n * 20, 25))).collect();
    steps.push(Step::Answer(vec![Part::Until("never".to_owned()), Part::Say("Done.".to_owned())]));
    let model = Model::start(who.api(), Script::default().lane(WORK, steps)).map_err(told)?;
    machine.point_to(who.api(), &model.url(), "", "");
    let mut child = prompted(who, program, &machine, &model.url(), WORK)?.spawn().map_err(told)?;
    let asked = || model.when(WORK, turns, AnswerProgress::Asked);
    let reached = within(LIMIT, || {
        let is_over = child.try_wait().ok().flatten().is_some();
        (asked().is_some() || is_over).then(|| asked().is_some())
    });
    if reached != Some(true) {
        let notes = model.notes().len();
        end(&mut child);
        return Err(format!("{} did not get through the script: {notes} notes", who.name()));
    }
    let deadline = Instant::now() + REST;
    within(REST, || (Instant::now() >= deadline).then_some(()));
    Ok(Running { child, _place: machine, _model: model })
}
