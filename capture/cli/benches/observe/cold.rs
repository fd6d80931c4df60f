//! G2 and G7: a first start without full text, until all history is committed, and its peak memory.

use std::{fs, path::Path};

use events::{Payload, ToolResult};
use store::Reader;

use crate::{
    corpus::{Files, Manifest, World, cores},
    figures::{Better, Goal, Report, median, rounded},
    limit::read_all,
    program::{ChildDirs, Program},
};

const ROUNDS: usize = 3;

pub(crate) fn measure(world: &mut World, report: &mut Report) {
    let Files { paths, bytes } = world.files();
    let mb = bytes as f64 / 1e6;
    // This warms the page cache.
    let first = read_all(&paths);
    println!(
        "reference: {} lines, {} MB of text, {} lines not understood",
        first.lines,
        first.text / 1_000_000,
        first.bad
    );
    let mut limits = [Vec::new(), Vec::new(), Vec::new()];
    let mut ours = [Vec::new(), Vec::new(), Vec::new()];
    let mut peaks = Vec::new();
    let config = world.without_search();
    for round in 0..ROUNDS {
        let limit = read_all(&paths);
        let data = world.dir();
        let program = Program::start(&ChildDirs { config: &config, ..world.place(&data) });
        let settled = program.settled();
        let time = (settled.at - program.started_at).as_secs_f64();
        let (cpu, peak, threads) = (program.cpu(), program.memory("VmHWM"), program.threads());
        println!(
            "    {mb:.0} MB in {time:.2} s, {cpu:.2} s of CPU, {} events, {} commits, peak {peak:.0} MB, store {:.0} MB; reference {:.2} s, {:.2} s of CPU; load {}",
            settled.events,
            program.metric("capture_ingest_commits_total"),
            size(&data),
            limit.time.as_secs_f64(),
            limit.cpu,
            crate::figures::load()
        );
        let busiest: Vec<String> = threads.iter().take(4).map(|(name, cpu)| format!("{name} {cpu:.2} s")).collect();
        println!("    of that: {}", busiest.join(", "));
        limits[0].push(mb / limit.time.as_secs_f64());
        limits[1].push(mb / limit.cpu);
        limits[2].push(mb / limit.cpu);
        ours[0].push(mb / time);
        // The shortest time the current program could need on this number of cores.
        let floor = threads.first().map_or(0.0, |(_, cpu)| *cpu).max(cpu / cores() as f64);
        ours[1].push(mb / floor);
        ours[2].push(mb / cpu);
        peaks.push(peak);
        if let (0, Some(manifest)) = (round, &world.manifest) {
            count(&data, manifest);
        }
        program.stop();
        fs::remove_dir_all(data).unwrap();
    }
    let of = |figures: &[Vec<f64>; 3], index: usize| median(figures[index].clone());
    for (index, what) in [
        (0, "cold ingest"),
        (1, "cold ingest, at best if nothing else ran, by CPU time"),
        (2, "cold ingest, per second of CPU"),
    ] {
        let ratios = ours[index].iter().zip(&limits[index]).map(|(a, b)| 100.0 * a / b).collect();
        report.goal(Goal {
            name: "G2",
            what,
            limit: format!("{} MB/s", rounded(of(&limits, index))),
            figure: format!("{} MB/s", rounded(of(&ours, index))),
            value: median(ratios),
            unit: " %",
            must: (index == 0).then_some(45.0),
            stretch: (index == 0).then_some(55.0),
            better: Better::More,
        });
    }
    report.goal(Goal {
        name: "G7",
        what: "peak RSS of it",
        limit: "-".into(),
        figure: format!("worst of {ROUNDS}"),
        value: peaks.into_iter().fold(0.0, f64::max),
        unit: " MB",
        must: Some(120.0),
        stretch: Some(100.0),
        better: Better::Less,
    });
}

/// The size of the database and its log, MB.
fn size(data: &Path) -> f64 {
    let of = |name: &str| fs::metadata(data.join(name)).map_or(0, |m| m.len()) as f64 / 1e6;
    of("capture.db") + of("capture.db-wal")
}

/// Compares the counts in the store with the manifest.
fn count(data: &Path, manifest: &Manifest) {
    const PAGE: usize = 10_000;
    let reader = Reader::new(data.join("capture.db"));
    let mut found = Manifest { sessions: reader.session_count().unwrap(), ..Manifest::default() };
    let mut after = 0;
    loop {
        let page = reader.log(after, PAGE, None).unwrap();
        let Some(last) = page.last() else { break };
        after = last.position;
        for event in &page {
            #[expect(clippy::wildcard_enum_match_arm, reason = "the rest is not counted")]
            match &event.payload {
                Payload::UserPrompt(_) => found.msg_user += 1,
                Payload::ToolCall(_) => found.tool_calls += 1,
                Payload::ToolResult(ToolResult { detail: false, .. }) => found.tool_results += 1,
                Payload::AssistantMessage(message) => found.msg_assistant_blocks += u64::from(message.blocks),
                Payload::AssistantDelta(delta) => found.msg_assistant_blocks += u64::from(delta.blocks),
                _ => {}
            }
        }
    }
    for (what, found, expected) in [
        ("sessions", found.sessions, manifest.sessions + manifest.subagents_claude),
        ("prompts", found.msg_user, manifest.msg_user),
        ("blocks of the model", found.msg_assistant_blocks, manifest.msg_assistant_blocks),
        ("tool calls", found.tool_calls, manifest.tool_calls),
        ("tool results", found.tool_results, manifest.tool_results),
    ] {
        let verdict = if found == expected { "right" } else { "WRONG" };
        println!("    {what}: {found} of {expected}, {verdict}");
    }
}
