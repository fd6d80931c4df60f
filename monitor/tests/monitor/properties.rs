//! Invariants.

use std::collections::BTreeMap;

use events::{Event, Finding, FindingId, Timestamp};
use monitor::{DetectorLimits, Monitor};
use proptest::prelude::*;

use crate::{healthy, livelocks, script::Script, stage::Stage};

/// The log of a session with many problems, and its reported findings.
fn troubled(seed: u64) -> Stage {
    let mut lines = healthy::made(seed);
    lines.truncate(400);
    let from = lines.last().map_or(0, |line| line.at);
    let mut s = Script::new(seed);
    s.at = from + 1_000;
    s.lines.clear();
    s.prompt("and now");
    for pick in 0..4 {
        let (_, round) = livelocks::SHAPES[((seed + pick * 7) % livelocks::SHAPES.len() as u64) as usize];
        for n in 0..12 {
            round(&mut s, n);
        }
    }
    s.request("rm -rf /");
    s.wait(2_000);
    s.killed();
    lines.extend(s.lines);
    let mut stage = Stage::new();
    stage.looks = false;
    stage.play(&lines);
    let end = lines.last().map_or(0, |line| line.at);
    stage.until(end + 100_000);
    stage
}

/// Applies a log again; between two events time advances in steps of this many ms, or not at all.
fn fed(monitor: &mut Monitor, log: &[Event], step: Option<i64>, end: Timestamp) -> Vec<Finding> {
    let mut told = Vec::new();
    let mut now = log.first().map_or(Timestamp::MIN, |event| event.observed_at);
    for event in log {
        if let Some(step) = step {
            while now.plus_ms(step) < event.observed_at {
                now = now.plus_ms(step);
                told.extend(monitor.advance(now));
            }
        }
        told.extend(monitor.apply(event));
        now = now.max(event.observed_at);
    }
    told.extend(monitor.advance(end));
    told
}

fn end_of(stage: &Stage) -> Timestamp {
    stage
        .told
        .iter()
        .map(|(at, _)| *at)
        .chain(stage.log.iter().map(|event| event.observed_at))
        .max()
        .unwrap()
        .plus_ms(100_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn findings_do_not_depend_on_how_time_is_advanced(seed in 0_u64..1_000_000, step in 200_i64..4_000_000) {
        let stage = troubled(seed);
        let end = end_of(&stage);
        let at_once = fed(&mut Monitor::new(DetectorLimits::default()), &stage.log, None, end);
        let in_steps = fed(&mut Monitor::new(DetectorLimits::default()), &stage.log, Some(step), end);
        prop_assert_eq!(&at_once, &in_steps);
        prop_assert!(!at_once.is_empty());
    }

    #[test]
    fn each_cause_has_at_most_one_open_finding(seed in 0_u64..1_000_000) {
        let stage = troubled(seed);
        let mut open: BTreeMap<String, FindingId> = BTreeMap::new();
        for (_, finding) in &stage.told {
            if finding.is_open() {
                let other = open.insert(finding.key.clone(), finding.id.clone());
                prop_assert!(other.is_none_or(|other| other == finding.id), "{}", finding.key);
            } else {
                prop_assert_eq!(open.remove(&finding.key), Some(finding.id.clone()));
            }
            prop_assert!(finding.first_at <= finding.last_at && finding.evidence.len() <= 16);
        }
    }

    #[test]
    fn a_restart_at_any_event_reopens_no_earlier_finding(seed in 0_u64..1_000_000, cut in 0.1_f64..1.0, again in 1_usize..300) {
        let stage = troubled(seed);
        let end = end_of(&stage);
        let whole = fed(&mut Monitor::new(DetectorLimits::default()), &stage.log, None, end);
        let cut = ((stage.log.len() as f64 * cut) as usize).clamp(1, stage.log.len() - 1);
        let mut before = Monitor::new(DetectorLimits::default());
        let at = stage.log[cut].observed_at;
        let before_restart = stage.log[cut - 1].observed_at;
        let told = fed(&mut before, &stage.log[..cut], None, before_restart);
        let mut after = Monitor::new(DetectorLimits::default());
        let mut newest: BTreeMap<&FindingId, &Finding> = BTreeMap::new();
        for finding in &told {
            newest.insert(&finding.id, finding);
        }
        after.restore(newest.into_values().filter(|finding| finding.is_open()).cloned(), stage.log[cut - 1].position);
        let from = cut.saturating_sub(again);
        let more = fed(&mut after, &stage.log[from..], None, end);
        let opened = |all: &[Finding]| all.iter().filter(|f| f.is_open()).map(|f| f.id.clone()).collect::<std::collections::BTreeSet<_>>();
        let before_ids = opened(&told);
        // Open findings continue under their ids, and nothing from before the restart is reopened.
        for finding in more.iter().filter(|f| f.is_open() && !before_ids.contains(&f.id)) {
            prop_assert!(finding.last_at >= before_restart, "{finding:?} before {at}");
        }
        // Less is remembered after a restart, so a loop may be found later, but none is found twice.
        let both = before_ids.union(&opened(&more)).count();
        prop_assert!(both <= opened(&whole).len() + 3, "{both} with a restart, {} without", opened(&whole).len());
    }
}

#[test]
fn memory_is_bounded() {
    let mut worst = 0;
    let mut monitor = Monitor::new(DetectorLimits { sessions: 8, ..DetectorLimits::default() });
    for n in 0..40 {
        let mut stage = Stage::of(monitor, &format!("session {n}"));
        stage.looks = false;
        let mut lines = healthy::made(n);
        lines.truncate(1_500);
        for line in &lines {
            stage.say(line);
        }
        let mut s = Script::new(n);
        s.at = lines.last().map_or(0, |line| line.at);
        s.lines.clear();
        s.prompt("flood");
        for n in 0..300 {
            s.request(&format!("echo {n}"));
            s.call("Bash", events::ToolKind::Execute, &format!("echo {n}"), "{}");
        }
        stage.play(&s.lines);
        worst = worst.max(stage.monitor.memory_size());
        assert!(stage.monitor.sessions() <= 8);
        monitor = stage.monitor;
    }
    println!("MEMORY at most {worst} things remembered of 8 sessions");
    assert!(worst <= 8 * 500, "{worst}");
}
