//! Facts that only several sessions together show: they edit the same file, a quota stops several, several wait.

use std::collections::{BTreeMap, BTreeSet};

use events::{ErrorClass, Finding, FindingKind, Payload, SessionId, SessionStarted, StartKind, Timestamp};
use monitor::{DetectorLimits, Monitor};

use crate::{
    healthy,
    script::{End, Script},
    stage::{Line, START, Stage},
};

use FindingKind::{SeveralBlocked, SharedFiles, SharedQuota};

const SHARED: [FindingKind; 3] = [SharedFiles, SharedQuota, SeveralBlocked];

/// Several sessions and one monitor.
pub(crate) struct Several {
    monitor: Option<Monitor>,
    stages: BTreeMap<String, Stage>,
}

impl Several {
    /// Plays the lines of the sessions in order of time, then advances the time to `until` (ms).
    pub(crate) fn played(sessions: &[(&str, &Script)], until: i64) -> Self {
        let mut several = Self { monitor: Some(Monitor::new(DetectorLimits::default())), stages: BTreeMap::new() };
        let mut lines: Vec<(&str, &Line)> =
            sessions.iter().flat_map(|(name, script)| script.lines.iter().map(|line| (*name, line))).collect();
        lines.sort_by_key(|(_, line)| line.at);
        for (name, line) in lines {
            several.on(name, |stage| stage.say(line));
        }
        let names: Vec<String> = several.stages.keys().cloned().collect();
        for name in names {
            several.on(&name, |stage| stage.until(until));
        }
        several
    }

    fn on(&mut self, name: &str, act: impl FnOnce(&mut Stage)) {
        let monitor = self.monitor.take().unwrap();
        let mut stage = match self.stages.remove(name) {
            Some(stage) => stage.monitored_by(monitor),
            None => Stage::of(monitor, name),
        };
        act(&mut stage);
        let spare = Monitor::new(DetectorLimits::default());
        self.monitor = Some(std::mem::replace(&mut stage.monitor, spare));
        self.stages.insert(name.to_owned(), stage);
    }

    /// The changes of findings over several sessions, in order.
    fn told(&self) -> Vec<(Timestamp, Finding)> {
        let mut told: Vec<_> = self.stages.values().flat_map(|stage| stage.told.iter().cloned()).collect();
        told.retain(|(_, finding)| SHARED.contains(&finding.kind));
        told.sort_by_key(|(at, _)| *at);
        told
    }

    /// The kinds of all findings.
    pub(crate) fn kinds(&self) -> BTreeSet<FindingKind> {
        self.stages.values().flat_map(|stage| &stage.told).map(|(_, finding)| finding.kind).collect()
    }

    /// Each change as text: when (s), in which session, kind and state.
    fn words(&self) -> Vec<String> {
        let told = self.told();
        let words = told.iter().map(|(at, finding)| {
            let seconds = at.since_ms(START) / 1_000;
            let name = self.stages.keys().find(|name| id(name) == finding.session_id).unwrap();
            format!("{seconds} {name} {} {} {}", finding.kind, finding.state, finding.count)
        });
        words.collect()
    }
}

fn id(name: &str) -> SessionId {
    SessionId::mint(START, events::Provider::Claude, name)
}

/// A session that started to work at this second.
fn at_work(second: i64) -> Script {
    let mut s = Script::new(1);
    s.at = second * 1_000;
    s.prompt("make it work");
    s.wait(1);
    s
}

#[test]
fn two_active_sessions_editing_one_file_raise_one_finding() {
    let (mut a, mut b) = (at_work(0), at_work(10));
    a.edit("/p/src/main.rs", "a", "b");
    b.wait(20);
    b.edit("/p/src/other.rs", "a", "b");
    b.edit("/p/src/main.rs", "b", "c");
    a.wait(60);
    a.edit("/p/src/main.rs", "c", "d");
    a.wait(100);
    a.answer("done");
    b.wait(300);
    b.answer("done");
    let several = Several::played(&[("a", &a), ("b", &b)], 900_000);
    let told = several.told();
    let (_, first) = &told[0];
    assert_eq!(first.session_id, id("b"));
    assert_eq!(first.what, "two sessions edit the same file: /p/src/main.rs");
    assert!(first.why.ends_with("and both are working") && first.why.contains("claude (session "), "{}", first.why);
    assert_eq!((first.subject.as_deref(), first.evidence.len()), (Some("/p/src/main.rs"), 2));
    let (_, last) = told.last().unwrap();
    assert_eq!(last.resolution.as_deref(), Some("a session that edited the file has ended its turn"));
    assert!(told.iter().all(|(_, finding)| finding.id == first.id), "{:#?}", several.words());
}

#[test]
fn every_file_of_a_patch_is_checked_for_shared_edits() {
    let (mut a, mut b) = (at_work(0), at_work(10));
    a.edit("/p/src/main.rs", "a", "b");
    b.wait(20);
    b.patch(&["/p/src/lib.rs", "src/main.rs", "/p/src/main.rs"]);
    let told = Several::played(&[("a", &a), ("b", &b)], 900_000).told();
    assert_eq!(told[0].1.what, "two sessions edit the same file: /p/src/main.rs");
    let (mut a, mut b) = (at_work(0), at_work(10));
    a.patch(&["/p/src/a.rs", "/p/src/b.rs"]);
    b.wait(20);
    b.patch(&["/p/src/c.rs", "/p/src/d.rs"]);
    assert_eq!(Several::played(&[("a", &a), ("b", &b)], 900_000).words(), [""; 0]);
}

#[test]
fn edits_one_after_the_other_are_not_a_conflict() {
    // The first session has ended its turn when the second edits.
    let (mut a, mut b) = (at_work(0), at_work(100));
    a.edit("/p/src/main.rs", "a", "b");
    a.answer("done");
    b.edit("/p/src/main.rs", "b", "c");
    b.answer("done");
    assert_eq!(Several::played(&[("a", &a), ("b", &b)], 900_000).words(), [""; 0]);
    // The first edit was long before.
    let (mut a, mut b) = (at_work(0), at_work(0));
    a.edit("/p/src/main.rs", "a", "b");
    b.wait(700);
    b.edit("/p/src/main.rs", "b", "c");
    assert_eq!(Several::played(&[("a", &a), ("b", &b)], 2_000_000).words(), [""; 0]);
    // Different files.
    let (mut a, mut b) = (at_work(0), at_work(0));
    a.edit("/p/one/main.rs", "a", "b");
    b.edit("/p/two/main.rs", "a", "b");
    assert_eq!(Several::played(&[("a", &a), ("b", &b)], 900_000).words(), [""; 0]);
    // An edit that failed.
    let (mut a, mut b) = (at_work(0), at_work(0));
    a.edit("/p/main.rs", "a", "b");
    let call = b.call("Edit", events::ToolKind::Edit, "/p/main.rs", "{}");
    b.returns(&call, End::Failed(1), "no such text");
    assert_eq!(Several::played(&[("a", &a), ("b", &b)], 900_000).words(), [""; 0]);
}

#[test]
fn relative_paths_are_resolved_against_the_session_directory() {
    let in_directory = |cwd: &str| {
        let mut s = Script::new(1);
        s.put(Line::new(0, SessionStarted { cwd: Some(cwd.into()), ..SessionStarted::default() }));
        s.prompt("go");
        s
    };
    let shared = |a: &str, b: &str| {
        let (mut a, mut b) = (in_directory(a), in_directory(b));
        a.edit("src/main.rs", "a", "b");
        b.edit("/p/src/main.rs", "a", "b");
        !Several::played(&[("a", &a), ("b", &b)], 10_000).words().is_empty()
    };
    assert!(shared("/p", "/q"));
    assert!(!shared("/p/worktree", "/p"));
}

#[test]
fn a_session_and_its_subagents_raise_no_shared_findings() {
    let parent_session_id = Some(id("a"));
    let mut child = Script::new(1);
    let started = SessionStarted { how: StartKind::Subagent, parent_session_id, ..SessionStarted::default() };
    child.put(Line::new(0, started.clone()));
    child.prompt("do a part of it");
    let mut other = Script::new(1);
    other.put(Line::new(0, started));
    other.prompt("do another part of it");
    let mut a = at_work(0);
    for s in [&mut a, &mut child, &mut other] {
        s.edit("/p/main.rs", "a", "b");
        s.request("rm x");
    }
    let several = Several::played(&[("a", &a), ("b", &child), ("c", &other)], 900_000);
    assert_eq!(several.words(), [""; 0]);
}

#[test]
fn a_quota_that_stops_two_sessions_raises_one_shared_finding() {
    let stopped = |second: i64| {
        let mut s = at_work(second);
        s.fails(ErrorClass::Quota, "usage_limit", "You have reached your usage limit.");
        s
    };
    let (a, mut b) = (stopped(0), stopped(600));
    let several = Several::played(&[("a", &a), ("b", &b)], 700_000);
    let (_, finding) = &several.told()[0];
    assert_eq!(finding.session_id, id("b"));
    assert_eq!(finding.what, "2 sessions of claude are stopped by a quota or a rate limit");
    b.wait(3_000);
    b.prompt("go on");
    b.answer("done");
    let several = Several::played(&[("a", &a), ("b", &b)], 9_000_000);
    let told = several.told();
    assert_eq!(told.len(), 2, "{:?}", several.words());
    assert_eq!(told[1].1.resolution.as_deref(), Some("fewer than two sessions are stopped"));
    // The next day's stop is a separate one.
    let several = Several::played(&[("a", &stopped(0)), ("b", &stopped(86_400))], 90_000_000);
    assert_eq!(several.words(), [""; 0]);
    let several = Several::played(&[("a", &stopped(0))], 90_000_000);
    assert_eq!(several.words(), [""; 0]);
}

#[test]
fn three_sessions_waiting_for_long_raise_one_finding() {
    let asking = |second: i64| {
        let mut s = at_work(second);
        s.request("rm -r build");
        s
    };
    let (a, b, c) = (asking(0), asking(10), asking(20));
    let all: [(&str, &Script); 3] = [("a", &a), ("b", &b), ("c", &c)];
    let several = Several::played(&all, 600_000);
    let told = several.told();
    assert_eq!(told.len(), 1, "{:?}", several.words());
    assert_eq!((told[0].1.what.as_str(), told[0].1.session_id), ("3 sessions wait for you", id("a")));
    assert!((80..90).contains(&(told[0].0.since_ms(START) / 1_000)), "{:?}", several.words());
    assert_eq!(Several::played(&all[..2], 600_000).words(), [""; 0], "two are not several");
    // One request was answered immediately.
    let mut quick = at_work(20);
    quick.approval("rm -r build", 5, 1, "");
    assert_eq!(Several::played(&[("a", &a), ("b", &b), ("c", &quick)], 70_000).words(), [""; 0]);
    let mut later = c;
    later.wait(200);
    later.answer("I did without.");
    let several = Several::played(&[("a", &a), ("b", &b), ("c", &later)], 600_000);
    assert_eq!(several.told().last().unwrap().1.resolution.as_deref(), Some("fewer sessions wait"));
}

/// Simultaneous healthy sessions in separate projects edit no file of each other.
#[test]
fn concurrent_healthy_sessions_in_separate_projects_share_nothing() {
    let mut several = Several { monitor: Some(Monitor::new(DetectorLimits::default())), stages: BTreeMap::new() };
    let mut lines: Vec<(String, Line)> = Vec::new();
    for seed in 0..24 {
        for mut line in healthy::made(seed) {
            if let Payload::SessionStarted(started) = &mut line.payload {
                started.cwd = Some(format!("/p{seed}"));
            }
            lines.push((format!("s{seed}"), line));
        }
    }
    lines.sort_by_key(|(_, line)| line.at);
    for (name, line) in &lines {
        several.on(name, |stage| stage.say(line));
    }
    let shared: Vec<String> = several.words().into_iter().filter(|words| !words.contains("several_blocked")).collect();
    assert_eq!(shared, [""; 0], "{} events", lines.len());
}
