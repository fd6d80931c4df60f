//! The desk against a model of all that may happen around it, in any order: requests come and are
//! swapped for others, hooks come early, late and go away, people and rules decide, the store commits
//! or does not. Whoever waits hears at most one word, and only one that was committed for just what it
//! asked.

use std::{collections::BTreeMap, path::PathBuf};

use events::{ApprovalRequested, Choice, Provider, Timestamp};
use proptest::{collection::vec, prelude::*, sample::Index};
use server::Who;
use store::Writer;

use super::*;
use crate::ingest::{Inputs, channel};

/// Allows what begins with `ok`, denies what begins with `no`, asks for the rest.
struct ByName;

impl Judge for ByName {
    fn judge(&self, approval: &Approval, _: Option<&Session>) -> Judged {
        let command = approval.command.as_deref().unwrap_or_default();
        let allow = match command.get(..2) {
            Some("ok") => Some(true),
            Some("no") => Some(false),
            _ => None,
        };
        let rewrite = command.contains("safe").then(|| format!("safe {command}"));
        Judged { allow, rewrite, rule: "by name".into(), reason: "its name".into() }
    }

    fn rule_for(&self, _: &Approval, _: Option<&Session>) -> Option<String> {
        None
    }
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(1_795_149_432_000 + ms)
}

fn delivery(n: u8) -> RunId {
    RunId::mint(at(i64::from(n)), [n; 10])
}

fn digest(n: u8) -> String {
    format!("digest of {n}")
}

fn approval(n: u8, command: &str, provider: Provider) -> Approval {
    let asked = ApprovalRequested {
        approval_id: format!("APPROVAL{n:04}"),
        about: Some(ApprovalKind::Command),
        tool: Some("Bash".into()),
        command: Some(command.into()),
        input: Some(json!({ "command": command }).to_string()),
        cwd: Some("/nowhere/at/all".into()),
        delivery: Some(delivery(n).to_string()),
        digest: Some(digest(n)),
        ..ApprovalRequested::default()
    };
    let of = (SessionId::from_bits(1), provider);
    Approval::of(&asked, of, None, (Source::Hook, Confidence::High), at(i64::from(n)))
}

/// The desk, and what is around it.
struct Around {
    desk: Desk,
    inbox: Receiver<Told>,
    inputs: Inputs,
    /// What is waiting to be committed.
    open: Vec<Input>,
    approvals: BTreeMap<u8, Approval>,
    /// Verdicts that were committed, by approval.
    committed: BTreeMap<String, bool>,
    /// Verdicts of people, by approval.
    people: Vec<(String, bool)>,
    hooks: Vec<(u8, oneshot::Receiver<Option<String>>)>,
    said: Vec<oneshot::Receiver<Result<String, Refusal>>>,
    _dir: tempfile::TempDir,
    _writer: Writer,
    _runtime: tokio::runtime::Runtime,
}

impl Around {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let writer = Writer::open(dir.path()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (sender, inputs) = channel(1_000);
        let (approvals, waiting) = Approvals::new();
        let parts = Parts {
            inputs: sender.clone(),
            reader: writer.reader(),
            runs: Runs::new(sender),
            runtime: runtime.handle().clone(),
            judge: Arc::new(ByName),
        };
        Self {
            desk: Desk::new(parts, approvals),
            inbox: waiting.inbox,
            inputs,
            open: Vec::new(),
            approvals: BTreeMap::new(),
            committed: BTreeMap::new(),
            people: Vec::new(),
            hooks: Vec::new(),
            said: Vec::new(),
            _dir: dir,
            _writer: writer,
            _runtime: runtime,
        }
    }

    /// The desk takes what it was told.
    fn settle(&mut self) {
        while let Ok(told) = self.inbox.try_recv() {
            self.desk.take(told);
        }
        self.open.extend(self.inputs.try_iter());
    }

    fn ask(&mut self, n: u8, command: &str, provider: Provider) {
        let approval = self.approvals.entry(n).or_insert_with(|| approval(n, command, provider)).clone();
        if approval.state == ApprovalState::Pending {
            self.desk.take(Told::Changed(Box::new(approval)));
        }
    }

    fn wait(&mut self, n: u8, people: bool) {
        let (reply, hook) = oneshot::channel();
        self.desk.take(Told::Hold(Held { delivery: delivery(n), people, digest: digest(n), reply }));
        self.hooks.push((n, hook));
    }

    /// The agent went on by itself.
    fn close(&mut self, n: u8) {
        let Some(approval) = self.approvals.get_mut(&n).filter(|a| a.state == ApprovalState::Pending) else { return };
        approval.state = ApprovalState::AnsweredElsewhere;
        let approval = approval.clone();
        self.desk.take(Told::Changed(Box::new(approval)));
    }

    fn person(&mut self, n: u8, allow: bool) {
        let Some(approval) = self.approvals.get(&n) else { return };
        let decision = Decision {
            verdict: if allow { Verdict::Allow } else { Verdict::Deny },
            message: None,
            scope: DecisionScope::Once,
            answers: None,
            who: Who { pid: None, uid: None, address: None },
        };
        let (reply, said) = oneshot::channel();
        self.people.push((approval.id.clone(), allow));
        let ask = ApprovalAsk::Decide(approval.id.clone(), Box::new(decision));
        self.desk.take(Told::Asked { ask, reply });
        self.said.push(said);
    }

    /// The store commits what is open, or all of it fails and is gone.
    fn commit(&mut self, works: bool) {
        self.settle();
        for input in std::mem::take(&mut self.open) {
            if !works {
                continue;
            }
            match input {
                Input::Decide(decide) => {
                    let id = decide.resolved.approval_id.clone();
                    let approval = self.approvals.values_mut().find(|a| a.id == id).unwrap();
                    let outcome = if approval.state == ApprovalState::Pending {
                        let allow = decide.resolved.allowed.unwrap();
                        approval.state = if allow { ApprovalState::Allowed } else { ApprovalState::Denied };
                        approval.by = decide.resolved.by;
                        assert!(self.committed.insert(id, allow).is_none(), "decided once");
                        self.desk.take(Told::Changed(Box::new(approval.clone())));
                        Ok(approval.clone())
                    } else {
                        Err(Undecided::Closed(approval.state))
                    };
                    (decide.done)(outcome);
                }
                Input::Record(record) => (record.done)(),
                _ => {}
            }
        }
        self.settle();
    }

    /// What hooks were told is what was committed for them.
    fn check(&mut self) {
        for (n, hook) in &mut self.hooks {
            let Ok(Some(text)) = hook.try_recv() else { continue };
            let told: Answer = serde_json::from_str(&text).unwrap();
            let approval = &self.approvals[n];
            assert_eq!(self.committed.get(&approval.id), Some(&told.allow), "{text} for {approval:?}");
            let command = approval.command.as_deref().unwrap();
            if told.allow {
                let by_person = self.people.contains(&(approval.id.clone(), true));
                assert!(command.starts_with("ok") || by_person, "nobody allowed {command}");
            }
            if told.rewrite.is_some() {
                assert_eq!(approval.provider, Provider::Claude, "only Claude Code takes another command");
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Ask(u8, &'static str, Provider),
    Wait(u8, bool),
    Gone(Index),
    Close(u8),
    Person(u8, bool),
    Commit(bool),
}

fn any_step() -> impl Strategy<Value = Step> {
    let n = || 0..6_u8;
    let command = prop::sample::select(vec!["ok ls", "ok safe git status", "no rm", "touch x", "make"]);
    let provider = prop::sample::select(vec![Provider::Claude, Provider::Codex]);
    prop_oneof![
        4 => (n(), command, provider).prop_map(|(n, command, provider)| Step::Ask(n, command, provider)),
        4 => (n(), any::<bool>()).prop_map(|(n, people)| Step::Wait(n, people)),
        1 => any::<Index>().prop_map(Step::Gone),
        2 => n().prop_map(Step::Close),
        3 => (n(), any::<bool>()).prop_map(|(n, allow)| Step::Person(n, allow)),
        4 => prop::bool::weighted(0.9).prop_map(Step::Commit),
    ]
}

proptest! {
    #[test]
    fn nobody_hears_a_word_that_was_not_committed_for_just_what_it_asked(steps in vec(any_step(), 1..60)) {
        let mut around = Around::new();
        for step in steps {
            match step {
                Step::Ask(n, command, provider) => around.ask(n, command, provider),
                Step::Wait(n, people) => around.wait(n, people),
                Step::Gone(index) => if !around.hooks.is_empty() {
                    let gone = index.index(around.hooks.len());
                    around.hooks.remove(gone);
                },
                Step::Close(n) => around.close(n),
                Step::Person(n, allow) => around.person(n, allow),
                Step::Commit(works) => around.commit(works),
            }
            around.settle();
            around.check();
        }
        around.commit(true);
        around.check();
    }
}

/// What a hook that waits is told, in the end.
#[track_caller]
fn told(around: &mut Around) -> Option<Answer> {
    around.commit(true);
    around.commit(true);
    let (_, mut hook) = around.hooks.pop().unwrap();
    hook.try_recv().ok().flatten().map(|text| serde_json::from_str(&text).unwrap())
}

#[test]
fn rules_answer_whoever_waits_in_either_order() {
    for early in [false, true] {
        let mut around = Around::new();
        if early {
            around.wait(1, false);
        }
        around.ask(1, "ok safe git status", Provider::Claude);
        if !early {
            around.wait(1, false);
        }
        let answer = told(&mut around).unwrap();
        assert_eq!((answer.allow, answer.rewrite.as_deref()), (true, Some("safe ok safe git status")));
    }
    // Nothing is said where nothing is committed.
    let mut around = Around::new();
    around.ask(1, "ok ls", Provider::Claude);
    around.wait(1, false);
    around.commit(false);
    assert!(around.hooks[0].1.try_recv().is_err());
}

#[test]
fn what_is_not_exact_is_never_allowed_by_a_rule() {
    for change in [
        |a: &mut Approval| a.exact = false,
        |a: &mut Approval| a.confidence = Confidence::Medium,
        |a: &mut Approval| a.kind = None,
        |a: &mut Approval| a.kind = Some(ApprovalKind::Question),
    ] {
        let mut around = Around::new();
        let mut asked = approval(1, "ok ls", Provider::Claude);
        change(&mut asked);
        around.approvals.insert(1, asked);
        around.ask(1, "", Provider::Claude);
        around.wait(1, false);
        assert_eq!(told(&mut around), None);
    }
    // Codex takes no other command, so it asks its user.
    let mut around = Around::new();
    around.ask(1, "ok safe git status", Provider::Codex);
    around.wait(1, false);
    assert_eq!(told(&mut around), None);
}

#[track_caller]
fn same(command: Option<&str>, paths: &[&str], shown: &str, expected: bool) {
    let asked = ApprovalRequested {
        about: Some(if paths.is_empty() { ApprovalKind::Command } else { ApprovalKind::Write }),
        command: command.map(str::to_owned),
        paths: paths.iter().map(|p| (*p).to_owned()).collect(),
        ..ApprovalRequested::default()
    };
    let of = (SessionId::from_bits(1), Provider::Claude);
    let approval = Approval::of(&asked, of, None, (Source::Hook, Confidence::High), at(0));
    let about = Some(if paths.is_empty() { ApprovalKind::Command } else { ApprovalKind::Edit });
    let dialog = Dialog { about, subject: Some(shown.into()), options: vec![Choice::default()], ..Dialog::default() };
    assert_eq!(is_same(&approval, &dialog, true), expected, "{command:?} {paths:?} {shown}");
    assert!(expected || !is_same(&approval, &dialog, false));
}

#[test]
fn a_dialog_is_answered_only_when_it_asks_the_same() {
    same(Some("touch x"), &[], "touch x", true);
    same(Some("touch x"), &[], "touch", false);
    same(Some("touch x y"), &[], "touch x", false);
    same(Some("touch x"), &[], "touch y", false);
    same(Some("touch x"), &[], "", false);
    // A long one may be broken into lines and cut.
    same(Some("find . -name '*.rs' -newer Cargo.toml -print"), &[], "find . -name '*.rs'\n -newer Cargo.toml…", true);
    same(Some("find . -name '*.rs' -newer Cargo.toml -print"), &[], "find . -name '*.py'\n -newer Cargo.toml…", false);
    let long = approval(1, "find . -name '*.rs' -newer Cargo.toml -print", Provider::Claude);
    let cut = Dialog { subject: Some("find . -name '*.rs' -newer Cargo…".into()), ..Dialog::default() };
    assert!(is_same(&long, &cut, true));
    assert!(!is_same(&long, &cut, false), "another request may begin like it");
    same(None, &["/p/src/a.rs"], "src/a.rs", true);
    same(None, &["/p/src/a.rs"], "b.rs", false);
    same(None, &["/p/src/a.rs"], "", false);
}

#[test]
fn files_that_are_marked_are_part_of_the_decision() {
    let dir = tempfile::tempdir().unwrap();
    let script: PathBuf = dir.path().join("run.sh");
    std::fs::write(&script, "one").unwrap();
    let mut around = Around::new();
    let mut asked = approval(1, "sh run.sh", Provider::Claude);
    asked.cwd = Some(dir.path().to_str().unwrap().to_owned());
    around.approvals.insert(1, asked);
    around.ask(1, "", Provider::Claude);
    around.wait(1, true);
    std::fs::write(&script, "two").unwrap();
    around.person(1, true);
    let refused = around.said.pop().unwrap().try_recv().unwrap().unwrap_err();
    assert!(matches!(&refused, Refusal::Conflict(why) if why.contains("run.sh changed")), "{refused}");
    around.person(1, true);
    assert!(told(&mut around).unwrap().allow);
}
