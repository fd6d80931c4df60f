//! Tests the broker against a model of its environment, with events in any order: requests arrive and are replaced,
//! hooks connect early or late and disconnect, users and rules decide, commits succeed or fail. Each waiting hook gets
//! at most one answer, and only one that was committed for exactly its request.

use std::{collections::BTreeMap, path::PathBuf};

use api::approvals::{DecisionScope, PolicyDecision, Verdict};
use events::{
    ApprovalId, ApprovalKind, ApprovalRequested, Choice, Confidence, Dialog, Excerpt, Provider, Source, Timestamp,
};
use ingest::{Inputs, Undecided, channel};
use live_view::Who;
use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::json;
use store::Writer;
use tokio::task::JoinHandle;

use super::{
    accepted_answers::{why_not_allowed, wrong_answers},
    dialog::{is_cut_off, is_same, mark_of},
    grants::Grant,
    *,
};

/// Allows commands that begin with `ok`, denies those that begin with `no`, and asks for the rest.
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

    fn check_rule(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn save_rule(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(1_795_149_432_000 + ms)
}

fn delivery(n: u8) -> DeliveryId {
    DeliveryId::mint(at(i64::from(n)), [n; 10])
}

fn digest(n: u8) -> String {
    format!("digest of {n}")
}

fn approval(n: u8, command: &str, provider: Provider) -> Approval {
    let asked = ApprovalRequested {
        approval_id: format!("APPROVAL{n:04}").into(),
        about: Some(ApprovalKind::Command),
        tool: Some("Bash".into()),
        command: Some(command.into()),
        input: Some(json!({ "command": command }).to_string()),
        cwd: Some("/nowhere/at/all".into()),
        delivery: Some(delivery(n)),
        digest: Some(digest(n)),
        ..ApprovalRequested::default()
    };
    let of = (SessionId::from_bits(1), provider);
    Approval::of(&asked, of, None, (Source::Hook, Confidence::High), at(i64::from(n)))
}

/// Number of idle polling rounds after which the state counts as settled.
const QUIET_ROUNDS: usize = 32;

type Decided = Result<ApprovalView, Refusal>;

/// The broker and its environment.
struct BrokerFixture {
    broker: ApprovalBroker,
    inputs: Inputs,
    /// Inputs waiting to be committed.
    open: Vec<IngestInput>,
    approvals: BTreeMap<u8, Approval>,
    /// Committed verdicts, by approval.
    committed: BTreeMap<ApprovalId, bool>,
    /// Audit rows other than decisions, in order.
    recorded: Vec<&'static str>,
    /// Verdicts of users, by approval.
    people: Vec<(ApprovalId, bool)>,
    hooks: Vec<(u8, JoinHandle<Option<AgentAnswer>>)>,
    deciders: Vec<JoinHandle<Decided>>,
    _dir: tempfile::TempDir,
    _writer: Writer,
    runtime: tokio::runtime::Runtime,
}

impl BrokerFixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let writer = Writer::open(dir.path()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (sender, inputs) = channel(1_000);
        let parts = BrokerParts {
            inputs: sender.clone(),
            reader: writer.reader(),
            runs: Runs::new(sender, live_view::LiveView::new("test")),
            runtime: runtime.handle().clone(),
            judge: Arc::new(ByName),
            boundaries: BoundaryMode::Show,
        };
        let broker = ApprovalBroker::start(parts, &crate::supervisor::Supervisor::default());
        Self {
            broker,
            inputs,
            open: Vec::new(),
            approvals: BTreeMap::new(),
            committed: BTreeMap::new(),
            recorded: Vec::new(),
            people: Vec::new(),
            hooks: Vec::new(),
            deciders: Vec::new(),
            _dir: dir,
            _writer: writer,
            runtime,
        }
    }

    /// Runs everything until it waits for something outside the broker.
    fn settle(&mut self) {
        self.settle_while(|shared| shared.judging.is_idle() && shared.hashing.is_idle());
    }

    /// Like [`settle`](Self::settle) while no file can be hashed: anything that needs hashes waits too.
    fn settle_without_files(&mut self) {
        self.settle_while(|shared| shared.judging.is_idle());
    }

    /// Like [`settle`](Self::settle), but waits only until `is_idle` holds.
    fn settle_while(&mut self, is_idle: impl Fn(&BrokerState) -> bool) {
        let shared = &self.broker.shared;
        self.runtime.block_on(async {
            let mut quiet = 0;
            while quiet < QUIET_ROUNDS {
                tokio::task::yield_now().await;
                quiet = if shared.reading.is_idle() && is_idle(shared) { quiet + 1 } else { 0 };
            }
        });
        self.open.extend(self.inputs.try_iter());
    }

    fn ask(&mut self, n: u8, command: &str, provider: Provider) {
        let approval = self.approvals.entry(n).or_insert_with(|| approval(n, command, provider)).clone();
        if approval.state == ApprovalState::Pending {
            self.broker.changed(approval);
        }
    }

    fn wait(&mut self, n: u8, people: bool) {
        self.wait_with(n, people, digest(n));
    }

    fn wait_with(&mut self, n: u8, people: bool, digest: String) {
        let broker = self.broker.clone();
        let wait = HookWait { delivery: delivery(n), people, digest };
        self.hooks.push((n, self.runtime.spawn(async move { broker.answer_hook(wait, None).await })));
    }

    /// Disconnects a hook.
    fn leave(&mut self, at: usize) {
        self.hooks.remove(at).1.abort();
        self.settle();
    }

    /// Closes an approval because the agent continued without a prompt.
    fn close(&mut self, n: u8) {
        let Some(approval) = self.approvals.get_mut(&n).filter(|a| a.state == ApprovalState::Pending) else { return };
        approval.state = ApprovalState::AnsweredElsewhere;
        self.broker.changed(approval.clone());
    }

    fn person(&mut self, n: u8, allow: bool) {
        let Some(approval) = self.approvals.get(&n) else { return };
        let id = approval.id.clone();
        self.people.push((id.clone(), allow));
        let broker = self.broker.clone();
        self.deciders.push(self.runtime.spawn(async move { broker.decide(id.as_str(), decision(allow)).await }));
    }

    /// Commits the pending inputs, or drops all of them as a failed store would.
    fn commit(&mut self, works: bool) {
        self.settle();
        for input in std::mem::take(&mut self.open) {
            if !works {
                continue;
            }
            match input {
                IngestInput::Decide(decide) => {
                    let id = decide.resolved.approval_id.clone();
                    let approval = self.approvals.values_mut().find(|a| a.id == id).unwrap();
                    let outcome = if approval.state == ApprovalState::Pending {
                        let allow = decide.resolved.allowed.unwrap();
                        approval.state = if allow { ApprovalState::Allowed } else { ApprovalState::Denied };
                        approval.by = decide.resolved.by;
                        assert!(self.committed.insert(id, allow).is_none(), "decided once");
                        self.broker.changed(approval.clone());
                        Ok(approval.clone())
                    } else {
                        Err(Undecided::Closed(approval.state))
                    };
                    decide.reply.send(outcome).ok();
                }
                IngestInput::Record(record) => {
                    self.recorded.push(record.what.as_str());
                    record.done.send(()).ok();
                }
                _ => {}
            }
        }
        self.settle();
    }

    /// Checks that hooks received only answers that were committed for them.
    fn check(&mut self) {
        let (ended, waiting) = std::mem::take(&mut self.hooks).into_iter().partition(|(_, hook)| hook.is_finished());
        self.hooks = waiting;
        let ended: Vec<(u8, JoinHandle<Option<AgentAnswer>>)> = ended;
        for (n, hook) in ended {
            let Some(answer) = self.runtime.block_on(hook).unwrap() else { continue };
            let approval = &self.approvals[&n];
            assert_eq!(self.committed.get(&approval.id), Some(&answer.allow), "{answer:?} for {approval:?}");
            let command = approval.command.as_deref().unwrap();
            if answer.allow {
                let by_person = self.people.contains(&(approval.id.clone(), true));
                assert!(command.starts_with("ok") || by_person, "nobody allowed {command}");
            }
            if answer.rewrite.is_some() {
                assert_eq!(approval.provider, Provider::Claude, "only Claude Code takes another command");
            }
        }
    }

    /// The final answer to the last hook.
    #[track_caller]
    fn answer(&mut self) -> Option<AgentAnswer> {
        self.commit(true);
        self.commit(true);
        let (_, hook) = self.hooks.pop().unwrap();
        if hook.is_finished() { self.runtime.block_on(hook).unwrap() } else { None }
    }

    /// The outcome of the last user's decision, which must have arrived.
    #[track_caller]
    fn decided(&mut self) -> Decided {
        self.settle();
        let decider = self.deciders.pop().unwrap();
        assert!(decider.is_finished(), "nobody answers");
        self.runtime.block_on(decider).unwrap()
    }

    /// The number of decisions waiting to be committed.
    fn decisions(&mut self) -> usize {
        self.settle();
        self.open_decisions()
    }

    fn open_decisions(&self) -> usize {
        self.open.iter().filter(|input| matches!(input, IngestInput::Decide(_))).count()
    }

    /// The announcements for sessions: which approval, and whether a hook waits for the user.
    fn waits(&mut self) -> Vec<(ApprovalId, bool)> {
        self.settle();
        let waits = std::mem::take(&mut self.open).into_iter();
        waits
            .filter_map(|input| if let IngestInput::Waits(_, id, on) = input { Some((id, on)) } else { None })
            .collect()
    }
}

fn decision(allow: bool) -> Decision {
    Decision {
        verdict: if allow { Verdict::Allow } else { Verdict::Deny },
        message: None,
        scope: DecisionScope::Once,
        answers: None,
        revision: None,
        rule: false,
        who: Who::default(),
    }
}

#[track_caller]
fn conflict(decided: Decided, words: &str) {
    let is_told = match &decided {
        Err(Refusal::Conflict(why) | Refusal::Decided { why, .. }) => why.contains(words),
        _ => false,
    };
    assert!(is_told, "{decided:?}");
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
    fn a_hook_receives_only_answers_committed_for_its_request(steps in vec(any_step(), 1..60)) {
        let mut around = BrokerFixture::new();
        for step in steps {
            match step {
                Step::Ask(n, command, provider) => around.ask(n, command, provider),
                Step::Wait(n, people) => around.wait(n, people),
                Step::Gone(index) => if !around.hooks.is_empty() {
                    let gone = index.index(around.hooks.len());
                    around.leave(gone);
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

#[test]
fn a_rule_answers_whether_the_hook_or_the_request_comes_first() {
    for early in [false, true] {
        let mut around = BrokerFixture::new();
        if early {
            around.wait(1, false);
        }
        around.ask(1, "ok safe git status", Provider::Claude);
        if !early {
            around.wait(1, false);
        }
        let answer = around.answer().unwrap();
        assert_eq!((answer.allow, answer.rewrite.as_deref()), (true, Some("safe ok safe git status")));
    }
    // Without a commit there is no answer.
    let mut around = BrokerFixture::new();
    around.ask(1, "ok ls", Provider::Claude);
    around.wait(1, false);
    around.commit(false);
    assert_eq!(around.answer(), None);
}

#[test]
fn a_rule_never_allows_an_inexact_request() {
    for change in [
        |a: &mut Approval| a.exact = false,
        |a: &mut Approval| a.confidence = Confidence::Medium,
        |a: &mut Approval| a.kind = None,
        |a: &mut Approval| a.kind = Some(ApprovalKind::Question),
    ] {
        let mut around = BrokerFixture::new();
        let mut asked = approval(1, "ok ls", Provider::Claude);
        change(&mut asked);
        around.approvals.insert(1, asked);
        around.ask(1, "", Provider::Claude);
        around.wait(1, false);
        assert_eq!(around.answer(), None);
    }
    // Codex does not accept a rewritten command, so it asks the user.
    let mut around = BrokerFixture::new();
    around.ask(1, "ok safe git status", Provider::Codex);
    around.wait(1, false);
    assert_eq!(around.answer(), None);
}

#[test]
fn an_incomplete_request_is_left_to_the_agent_and_cannot_be_allowed() {
    for provider in [Provider::Claude, Provider::Codex, Provider::Qwen] {
        let mut around = BrokerFixture::new();
        let mut asked = approval(1, "ok ls", provider);
        let excerpt = Excerpt { beginning: "echo first".into(), end: "rm -rf ~".into(), bytes: 900_000 };
        (asked.command, asked.input, asked.exact, asked.excerpt) = (None, None, false, Some(Box::new(excerpt)));
        let view = around.broker.view(asked.clone());
        assert!(view.risk.is_some(), "the end of the command is examined");
        around.approvals.insert(1, asked);
        around.ask(1, "", provider);
        around.wait(1, true);
        // The hook is dismissed at once, so that the agent shows its own dialog.
        assert_eq!(around.answer(), None);
        around.person(1, true);
        conflict(around.decided(), "kept 18 of the 900000 bytes");
    }
    let mut around = BrokerFixture::new();
    let mut asked = approval(1, "API_KEY=[REDACTED] ./serve", Provider::Claude);
    (asked.masked, asked.exact) = (true, false);
    around.approvals.insert(1, asked);
    around.ask(1, "", Provider::Claude);
    around.wait(1, true);
    assert_eq!(around.answer(), None);
    around.person(1, true);
    conflict(around.decided(), "removed secrets from this request");
}

#[test]
fn a_truncated_driver_request_can_only_be_denied() {
    for allow in [true, false] {
        let mut around = BrokerFixture::new();
        let mut asked = approval(1, "ask", Provider::Claude);
        asked.source = Source::Protocol;
        asked.exact = false;
        asked.excerpt = Some(Box::new(Excerpt { beginning: "a".into(), end: "b".into(), bytes: 900_000 }));
        around.approvals.insert(1, asked);
        around.ask(1, "", Provider::Claude);
        around.wait(1, true);
        around.settle();
        around.person(1, allow);
        if allow {
            conflict(around.decided(), "of the 900000 bytes");
        } else {
            assert!(!around.answer().unwrap().allow);
        }
    }
}

#[test]
fn a_truncated_dialog_is_detected_unless_the_hook_reported_the_command() {
    let seen = |subject: &str, command: Option<&str>| {
        let mut asked = approval(1, "", Provider::Claude);
        (asked.command, asked.input) = (command.map(str::to_owned), None);
        asked.subject = Some(subject.into());
        is_cut_off(&asked)
    };
    assert!(seen("find . -name '*.rs' -newer Cargo…", None));
    assert!(!seen("find . -name '*.rs'", None));
    // The hook's report is complete, however much of it the screen shows.
    assert!(!seen("find . -name '*.rs' …", Some("find . -name '*.rs' -delete")));
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
    assert_eq!(is_same(&approval, &dialog), expected, "{command:?} {paths:?} {shown}");
}

#[test]
fn a_dialog_is_answered_only_if_it_shows_the_requests_command_or_path() {
    same(Some("touch x"), &[], "touch x", true);
    same(Some("touch x"), &[], "touch", false);
    same(Some("touch x y"), &[], "touch x", false);
    same(Some("touch x"), &[], "touch y", false);
    same(Some("touch x"), &[], "", false);
    // A long command may be wrapped and cut off.
    same(Some("find . -name '*.rs' -newer Cargo.toml -print"), &[], "find . -name '*.rs'\n -newer Cargo.toml…", true);
    same(Some("find . -name '*.rs' -newer Cargo.toml -print"), &[], "find . -name '*.py'\n -newer Cargo.toml…", false);
    same(None, &["/p/src/a.rs"], "src/a.rs", true);
    same(None, &["/p/src/a.rs"], "b.rs", false);
    same(None, &["/p/src/a.rs"], "", false);
}

#[test]
fn each_question_needs_exactly_one_answer() {
    let asks = |questions: &[&str]| {
        let questions: Vec<_> = questions.iter().map(|question| json!({ "question": question })).collect();
        let mut asked = approval(1, "", Provider::Claude);
        (asked.kind, asked.command) = (Some(ApprovalKind::Question), None);
        asked.input = Some(json!({ "questions": questions }).to_string());
        asked
    };
    assert!(why_not_allowed(&asks(&["Sure?", "Sure?"])).unwrap().contains("the same text"));
    let two = asks(&["Wipe?", "List?"]);
    assert_eq!(why_not_allowed(&two), None);
    let wrong = |given: &[&str]| {
        wrong_answers(&two, &given.iter().map(|question| ((*question).to_owned(), "Yes".to_owned())).collect())
    };
    assert_eq!(wrong(&["Wipe?", "List?"]), None);
    assert!(wrong(&["Wipe?"]).unwrap().contains("`List?` is not answered"));
    assert!(wrong(&["Wipe?", "List?", "Other?"]).unwrap().contains("has no question `Other?`"));
}

#[test]
fn a_question_worded_differently_on_screen_must_be_answered_there() {
    let mut asked = approval(1, "", Provider::Claude);
    (asked.kind, asked.command, asked.subject) = (Some(ApprovalKind::Question), None, Some("Which port?".into()));
    for subject in ["Port", "1. 8080", ""] {
        let (mark, about) = (Some("m".to_owned()), Some(ApprovalKind::Question));
        let dialog = Dialog { mark, about, subject: Some(subject.to_owned()), ..Dialog::default() };
        let why = mark_of(&dialog, &asked, true).unwrap_err();
        assert!(why.contains("does not show the text of this request") && why.contains("capture attach"), "{why}");
    }
}

#[test]
fn a_dialog_is_not_answered_while_another_request_is_pending() {
    let [edit, other] = [1, 2].map(|n| approval(n, "touch x", Provider::Claude));
    let (mark, subject) = (Some("m".to_owned()), Some("touch x".to_owned()));
    let dialog = Dialog { mark, subject, options: vec![Choice::default()], ..Dialog::default() };
    let mut around = BrokerFixture::new();
    around.approvals.extend([(1, edit.clone()), (2, other)]);
    around.ask(1, "", Provider::Claude);
    around.settle();
    let is_alone = |around: &BrokerFixture| around.broker.pending().is_alone(edit.session_id);
    assert!(is_alone(&around));
    assert_eq!(mark_of(&dialog, &edit, true), Ok("m".to_owned()));
    around.ask(2, "", Provider::Claude);
    around.settle();
    assert!(!is_alone(&around));
    let why = mark_of(&dialog, &edit, false).unwrap_err();
    assert!(why.contains("another request of this session is pending"), "{why}");
}

#[test]
fn a_decision_is_refused_if_a_marked_file_changed() {
    let dir = tempfile::tempdir().unwrap();
    let script: PathBuf = dir.path().join("run.sh");
    std::fs::write(&script, "one").unwrap();
    let mut around = BrokerFixture::new();
    let mut asked = approval(1, "sh run.sh", Provider::Claude);
    asked.cwd = Some(dir.path().to_str().unwrap().to_owned());
    around.approvals.insert(1, asked);
    around.ask(1, "", Provider::Claude);
    around.wait(1, true);
    around.settle();
    std::fs::write(&script, "two").unwrap();
    around.person(1, true);
    conflict(around.decided(), "run.sh changed");
    around.person(1, true);
    assert!(around.answer().unwrap().allow);
}

#[test]
fn only_one_of_two_concurrent_decisions_wins() {
    for (first, second) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut around = BrokerFixture::new();
        around.ask(1, "touch x", Provider::Claude);
        around.wait(1, true);
        around.settle();
        around.person(1, first);
        around.person(1, second);
        assert_eq!(around.decisions(), 1);
        // A third decision fails too, before the commit and after it.
        around.person(1, true);
        conflict(around.decided(), "another client is deciding");
        let allowed = around.answer().unwrap().allow;
        around.person(1, true);
        assert!(around.decided().is_err());
        let (one, other) = (around.decided(), around.decided());
        let (won, lost) = if one.is_ok() { (one, other) } else { (other, one) };
        assert_eq!(won.unwrap().approval.state == ApprovalState::Allowed, allowed);
        conflict(lost, "another client is deciding");
        assert_eq!(around.recorded, ["asked", "delivered"]);
    }
}

#[test]
fn a_rule_does_not_decide_while_a_user_decision_is_in_progress() {
    let mut around = BrokerFixture::new();
    around.ask(1, "ok ls", Provider::Claude);
    around.settle();
    // The rule is evaluated only after the user's decision is in progress.
    let policy = around.broker.shared.judging.occupy();
    around.wait(1, true);
    around.settle_while(|_| true);
    around.person(1, false);
    around.settle_while(|_| true);
    assert_eq!(around.open_decisions(), 1);
    drop(policy);
    assert_eq!(around.decisions(), 1);
    assert!(!around.answer().unwrap().allow);
    assert_eq!(around.recorded, ["delivered"]);
}

#[test]
fn a_client_that_leaves_before_the_claim_decides_nothing() {
    let mut around = BrokerFixture::new();
    around.ask(1, "touch x", Provider::Claude);
    around.wait(1, true);
    around.commit(true);
    let disk = around.broker.shared.hashing.occupy();
    around.person(1, true);
    around.settle_without_files();
    around.deciders.pop().unwrap().abort();
    drop(disk);
    assert_eq!(around.decisions(), 0);
    around.commit(true);
    assert_eq!(around.recorded, ["asked"]);
    // It can still be decided.
    around.person(1, false);
    assert!(!around.answer().unwrap().allow);
}

#[test]
fn a_claimed_decision_completes_after_its_client_leaves() {
    let mut around = BrokerFixture::new();
    around.ask(1, "touch x", Provider::Claude);
    around.wait(1, true);
    around.settle();
    around.person(1, true);
    assert_eq!(around.decisions(), 1);
    around.deciders.pop().unwrap().abort();
    assert!(around.answer().unwrap().allow);
    assert_eq!(around.recorded, ["asked", "delivered"]);
}

#[test]
fn a_hook_that_leaves_during_the_commit_is_recorded_as_undelivered() {
    let mut around = BrokerFixture::new();
    around.ask(1, "touch x", Provider::Claude);
    around.wait(1, true);
    around.settle();
    around.person(1, true);
    assert_eq!(around.decisions(), 1);
    around.leave(0);
    around.commit(true);
    around.commit(true);
    assert_eq!(around.recorded, ["asked", "undelivered"]);
    conflict(around.decided(), "stopped waiting before");
}

#[test]
fn a_hook_that_reconnects_during_the_commit_gets_the_answer() {
    for by_rule in [false, true] {
        let mut around = BrokerFixture::new();
        around.ask(1, if by_rule { "ok ls" } else { "touch x" }, Provider::Claude);
        around.wait(1, true);
        around.settle();
        around.person(1, true);
        assert_eq!(around.decisions(), 1);
        around.leave(0);
        // It does not wait for the user, but for the decision already made.
        around.wait(1, false);
        around.settle();
        assert!(around.answer().unwrap().allow);
    }
}

#[test]
fn an_answer_is_not_delivered_to_a_hook_with_another_digest() {
    let mut around = BrokerFixture::new();
    around.ask(1, "ok ls", Provider::Claude);
    around.wait_with(1, true, "digest of something else".into());
    assert_eq!(around.decisions(), 0, "no rule decides");
    around.person(1, true);
    conflict(around.decided(), "no hook waits for the answer");
    assert_eq!(around.answer(), None);
    // A hook that replaces another while the decision is being committed does not get its answer.
    around.wait(1, true);
    assert_eq!(around.decisions(), 1);
    around.wait_with(1, true, "digest of something else".into());
    around.settle();
    assert_eq!(around.answer(), None);
    assert_eq!(around.recorded, ["undelivered"]);
}

#[test]
fn a_stopping_broker_finishes_only_the_decision_in_progress() {
    let mut around = BrokerFixture::new();
    for n in [1, 2] {
        around.ask(n, "touch x", Provider::Claude);
        around.wait(n, true);
    }
    around.settle();
    around.person(1, true);
    assert_eq!(around.decisions(), 1);
    around.broker.stop();
    around.person(2, true);
    let refused = around.decided();
    assert_eq!(refused.err(), Some(Refusal::Unavailable));
    let (_, other) = around.hooks.pop().unwrap();
    assert_eq!(around.runtime.block_on(other).unwrap(), None);
    around.wait(3, true);
    assert_eq!(around.answer(), None, "no hook is taken in, and the first is answered by now");
    assert!(around.answer().unwrap().allow);
    assert!(around.decided().is_ok());
    assert_eq!(around.recorded, ["asked", "asked", "delivered"]);
    around.runtime.block_on(around.broker.stopped());
}

#[test]
fn a_decision_not_committed_before_shutdown_is_not_answered() {
    let mut around = BrokerFixture::new();
    around.ask(1, "touch x", Provider::Claude);
    around.wait(1, true);
    around.commit(true);
    around.person(1, true);
    assert_eq!(around.decisions(), 1);
    around.broker.stop();
    around.commit(false);
    around.runtime.block_on(around.broker.stopped());
    assert_eq!(around.decided().err(), Some(Refusal::Unavailable));
    assert_eq!(around.answer(), None);
    assert_eq!(around.recorded, ["asked"]);
}

#[test]
fn a_slow_disk_delays_only_decisions_that_need_file_hashes() {
    let mut around = BrokerFixture::new();
    let disk = around.broker.shared.hashing.occupy();
    around.ask(1, "touch x", Provider::Claude);
    around.ask(2, "ok ls", Provider::Claude);
    around.wait(1, true);
    around.settle_without_files();
    around.person(1, false);
    around.settle_without_files();
    assert_eq!(around.open.len(), 1, "a person denies");
    let (broker, filter) =
        (around.broker.clone(), ApprovalFilter { state: None, session: None, behind: None, limit: 9 });
    assert_eq!(around.runtime.block_on(async move { broker.list(filter).await }), Ok(vec![]));
    let view = around.broker.view(around.approvals[&2].clone());
    assert!(view.files.is_empty() && view.more_files, "nobody looked at its files yet");
    // A rule waits for the files.
    around.wait(2, false);
    around.settle_without_files();
    assert_eq!(around.open.len(), 1);
    drop(disk);
    assert!(around.answer().unwrap().allow);
    assert!(!around.answer().unwrap().allow);
}

#[test]
fn forgetting_a_session_drops_its_requests_and_grants() {
    let mut around = BrokerFixture::new();
    around.ask(1, "pwd", Provider::Codex);
    around.wait(1, true);
    around.settle();
    let asked = approval(1, "pwd", Provider::Codex);
    let grant = Grant::of(&asked, &[]).unwrap();
    around.broker.pending().grants.add(grant);
    // Whether it is pending, and whether the same request is allowed again.
    let known = |broker: &ApprovalBroker| {
        let pending = broker.pending();
        (pending.get(&asked.id).is_some(), pending.grants.allow(&asked, &[]))
    };
    around.broker.forget(&[SessionId::from_bits(2)]);
    assert_eq!(known(&around.broker), (true, true));
    around.broker.forget(&[SessionId::from_bits(1)]);
    assert_eq!(known(&around.broker), (false, false));
    around.settle();
    let (_, hook) = around.hooks.pop().unwrap();
    assert_eq!(around.runtime.block_on(hook).unwrap(), None, "the agent asks itself");
}

#[test]
fn sessions_show_that_a_hook_waits_for_a_person() {
    let mut around = BrokerFixture::new();
    // Claude Code shows its own dialog at the same time.
    around.ask(1, "touch x", Provider::Claude);
    around.wait(1, true);
    assert_eq!(around.waits(), []);
    around.ask(2, "touch x", Provider::Codex);
    around.wait(2, false);
    assert_eq!(around.waits(), [], "it waits for no person");
    around.ask(3, "touch x", Provider::Codex);
    around.wait(3, true);
    let id = approval(3, "", Provider::Codex).id;
    assert_eq!(around.waits(), [(id.clone(), true)]);
    // A replacement hook changes nothing.
    around.wait(3, true);
    assert_eq!(around.waits(), []);
    let last = around.hooks.len() - 1;
    around.leave(last);
    assert_eq!(around.waits(), [(id, false)]);
}

#[test]
fn after_a_restart_the_broker_reports_once_per_approval_whether_a_hook_waits() {
    for waits in [false, true] {
        let mut around = BrokerFixture::new();
        around.settle();
        let asked = approval(1, "touch x", Provider::Codex);
        around.broker.pending().open(&asked, pending::KnownSince::Start);
        if waits {
            around.wait(1, true);
        } else {
            around.broker.shared.waits_changed.notify_one();
        }
        assert_eq!(around.waits(), [(asked.id, waits)]);
        assert_eq!(around.waits(), []);
    }
}

#[test]
fn a_hook_beyond_the_limit_is_dismissed() {
    let mut around = BrokerFixture::new();
    for n in 0..=255 {
        around.wait(n, true);
    }
    around.settle();
    let one_more = HookWait { delivery: DeliveryId::mint(at(-1), [0; 10]), people: true, digest: String::new() };
    let broker = around.broker.clone();
    assert_eq!(around.runtime.block_on(async move { broker.answer_hook(one_more, None).await }), None);
    assert!(around.hooks.iter().all(|(_, hook)| !hook.is_finished()));
    // A hook that disconnects makes room at once.
    around.leave(7);
    around.ask(7, "ok ls", Provider::Claude);
    around.wait(7, false);
    assert!(around.answer().unwrap().allow);
}

#[test]
fn an_approval_view_omits_absent_fields_and_round_trips_through_json() {
    let approval = approval(1, "sh run.sh", Provider::Claude);
    let plain = ApprovalView {
        risk: None,
        approval: approval.clone(),
        answer: None,
        unanswerable: None,
        cannot_allow: None,
        files: Vec::new(),
        more_files: false,
        repeatable: false,
        policy: None,
        boundary: None,
        suggested_rule: None,
        revision: String::new(),
        same_as: Vec::new(),
    };
    let json = serde_json::to_value(&plain).unwrap();
    assert_eq!(json, serde_json::to_value(&approval).unwrap(), "what is absent is left out");
    assert_eq!(serde_json::from_value::<ApprovalView>(json).unwrap(), plain);
    let full = ApprovalView {
        answer: Some(DecidedVia::Hook),
        files: vec![FileView { path: "/p/run.sh".into(), size: Some(3), hash: None }],
        more_files: true,
        repeatable: true,
        policy: Some(PolicyView { decision: PolicyDecision::Ask, rule: "r".into(), reason: "so".into() }),
        suggested_rule: Some("[[rule]]".into()),
        ..plain
    };
    let text = serde_json::to_string(&full).unwrap();
    let added = "\"answer\":\"hook\",\"files\":[{\"path\":\"/p/run.sh\",\"size\":3}],\"more_files\":true,\
                 \"repeatable\":true,\"policy\":{\"decision\":\"ask\",\"rule\":\"r\",\"reason\":\"so\"},\"suggested_rule\":\"[[rule]]\"}";
    assert!(text.ends_with(added), "{text}");
    assert_eq!(serde_json::from_str::<ApprovalView>(&text).unwrap(), full);
}

impl BrokerFixture {
    /// Stores the session of the requests, with these prompts of the user.
    fn say(&mut self, prompts: &[&str]) {
        let (id, writer) = (SessionId::from_bits(1), &mut self._writer);
        writer.begin().unwrap();
        let row = writer.add_session(id, Provider::Claude, "s").unwrap();
        let mut session = projections::SessionState::new(id, Provider::Claude, None, at(0), Default::default()).session;
        session.began_in = Some("/nowhere/at/all".into());
        let json = serde_json::to_string(&session).unwrap();
        writer.put_session(row, at(0), &json, "{}").unwrap();
        for (number, prompt) in (1..).zip(prompts) {
            let event = events::Event {
                position: number,
                id: events::EventId::from_bits(u128::from(number)),
                session_id: id,
                sequence: number,
                provider: Provider::Claude,
                provider_session_id: "s".into(),
                source: Source::Transcript,
                created_at: at(0),
                observed_at: at(0),
                turn_id: None,
                parent_id: None,
                agent_id: None,
                confidence: Confidence::High,
                severity: None,
                derived: false,
                history: false,
                text: Some((*prompt).to_owned()),
                text_ref: None,
                payload: events::UserPrompt { stated: true, ..events::UserPrompt::default() }.into(),
                origin: events::Origin::Derived,
            };
            writer.append(row, &event, None).unwrap();
        }
        writer.commit().unwrap();
    }

    /// The answer to a hook, with the audit rows other than decisions.
    fn answer_to(&mut self, command: &str) -> (Option<bool>, Vec<&'static str>) {
        self.ask(1, command, Provider::Claude);
        self.wait(1, true);
        let answer = self.answer();
        (answer.map(|answer| answer.allow), std::mem::take(&mut self.recorded))
    }
}

#[test]
fn a_request_shows_the_words_that_forbid_it() {
    let mut around = BrokerFixture::new();
    around.say(&["Add the key ghp_x7Kd93LmQp2RtYv8WzAc5EfGh1Jk4NbS6uXo, but don't push."]);
    around.ask(1, "git push", Provider::Claude);
    let view = |around: &BrokerFixture, id: &ApprovalId| {
        let approval = around.approvals.values().find(|approval| approval.id == *id).unwrap();
        boundaries::broken_by(&around.broker.shared.reader, approval).unwrap()
    };
    let id = around.approvals[&1].id.clone();
    let boundary = view(&around, &id).unwrap();
    assert!(boundary.said.ends_with("but don't push.") && !boundary.said.contains("ghp_x7"), "{boundary:?}");
    assert_eq!((boundary.at, boundary.event), (at(0), events::EventId::from_bits(1)));
    around.ask(2, "git push --dry-run", Provider::Claude);
    let id = around.approvals[&2].id.clone();
    assert_eq!(view(&around, &id), None);
}

#[test]
fn a_boundary_denies_only_if_the_user_sets_it_and_never_allows() {
    // The words of `ByName` decide: a prompt about them forbids the same command under each of its verdicts.
    let prompts: [&[&str]; 4] = [
        &[],
        &["If it is late, don't run `ok go`. If it is early, don't run `no go` or `ask go`."],
        &["Don't run `ok go`. Don't run `no go`. Don't run `ask go`.", "now run `ok go`, run `no go` and run `ask go`"],
        &["Don't run `ok go`. Don't run `no go`. Don't run `ask go`."],
    ];
    let mut denied = 0;
    for mode in [BoundaryMode::Show, BoundaryMode::Deny] {
        for (said, prompts) in prompts.iter().enumerate() {
            for (command, by_policy) in [("ok go", Some(true)), ("no go", Some(false)), ("ask go", None)] {
                let mut around = BrokerFixture::new();
                around.say(prompts);
                around.broker.configure(mode);
                let (answer, _) = around.answer_to(command);
                assert!(answer == by_policy || answer == Some(false), "{mode:?} {said} {command}: {answer:?}");
                let denies = mode == BoundaryMode::Deny && said == 3;
                assert_eq!(answer, if denies { Some(false) } else { by_policy }, "{mode:?} {said} {command}");
                denied += usize::from(denies && by_policy != Some(false));
            }
        }
    }
    assert_eq!(denied, 2);
}

#[test]
fn a_boundary_denies_what_a_grant_would_allow_and_its_record_names_it() {
    let mut around = BrokerFixture::new();
    around.say(&["don't push"]);
    around.broker.configure(BoundaryMode::Deny);
    around.ask(1, "git push", Provider::Claude);
    let asked = around.approvals[&1].clone();
    let grant = Grant::of(&asked, &FileMarks::default()).unwrap();
    around.broker.pending().grants.add(grant);
    around.wait(1, true);
    around.settle();
    let decided = around.open.iter().find_map(|input| match input {
        IngestInput::Decide(decide) => Some((decide.resolved.clone(), decide.evidence.clone())),
        _ => None,
    });
    let (resolved, evidence) = decided.unwrap();
    assert_eq!((resolved.allowed, resolved.rule.as_deref()), (Some(false), Some("boundary")));
    assert_eq!(evidence["boundary"]["said"], "don't push");
    assert_eq!(evidence["boundary"]["event"], json!(events::EventId::from_bits(1)));
    let answer = around.answer().unwrap();
    assert!(answer.message.unwrap().contains("the user wrote “don't push”"));
}
