//! Every kind of finding has a script that raises it: the compiler demands one for a new kind.

use events::{ErrorClass, FindingKind, ToolKind, UserPrompt};

use crate::{
    script::{End, Script},
    stage::Line,
    together::Several,
};

/// The scripts of the sessions that raise the kind, and how long the last one stays silent afterwards, s.
fn example(kind: FindingKind) -> (Vec<Script>, i64) {
    let mut s = Script::new(1);
    s.prompt("make it work");
    s.wait(1);
    let mut silent = 60;
    let mut sessions = 1;
    match kind {
        FindingKind::Approval => drop(s.request("npm test")),
        FindingKind::RiskyApproval => drop(s.request("git push --force origin main")),
        FindingKind::ApprovalBacklog => {
            s.request("npm test");
            silent = 700;
        }
        FindingKind::Question => drop(s.call("AskUserQuestion", ToolKind::Question, "Which?", "{}")),
        FindingKind::Stuck => {
            s.say("hm");
            silent = 900;
        }
        FindingKind::Loop => {
            for _ in 0..20 {
                s.run("./look", 2, End::Ok, "nothing");
            }
        }
        FindingKind::RepeatedFailure => {
            for _ in 0..10 {
                s.run("make", 2, End::Failed(2), "error: no rule");
            }
        }
        FindingKind::Auth => s.fails(ErrorClass::Auth, "401", "Invalid API key"),
        FindingKind::RateLimit => s.fails(ErrorClass::RateLimit, "429", "rate_limit_error"),
        FindingKind::Quota | FindingKind::SharedQuota => {
            s.fails(ErrorClass::Quota, "usage_limit_exceeded", "You've hit your usage limit.");
            sessions = 2;
        }
        FindingKind::Network => s.fails(ErrorClass::Network, "", "fetch failed"),
        FindingKind::Provider => s.fails(ErrorClass::Other, "500", "internal error"),
        FindingKind::MergeConflict => {
            s.run("git rebase main", 2, End::Failed(1), "CONFLICT (content): Merge conflict in a.rs");
        }
        FindingKind::ContextFull => {
            s.context = 169_000;
            s.read("big.txt", End::Ok, &"x".repeat(60_000));
            s.answer("read");
        }
        FindingKind::Crash => {
            s.call("Bash", ToolKind::Execute, "make", "{}");
            s.killed();
        }
        FindingKind::OpenWork => {
            s.run("pytest", 5, End::Failed(1), "1 failed, 3 passed in 0.1s");
            s.answer("one test fails");
            s.leave();
        }
        FindingKind::Completion => s.answer("done"),
        FindingKind::LongJob => {
            s.run("cargo build --release", 2_700, End::Ok, "Finished in 45m 00s");
            s.answer("built");
        }
        FindingKind::Idle => {
            s.answer("done");
            silent = 2_000;
        }
        FindingKind::SharedFiles => {
            s.edit("/p/src/main.rs", "a", "b");
            sessions = 2;
        }
        FindingKind::SeveralBlocked => {
            s.request("npm test");
            (sessions, silent) = (3, 700);
        }
        FindingKind::Claim => {
            s.run("pytest", 5, End::Failed(1), "1 failed, 3 passed in 0.1s");
            s.answer("All tests pass.");
        }
        FindingKind::Boundary => {
            s.put(Line::new(0, UserPrompt { stated: true, ..UserPrompt::default() }).text("don't push"));
            s.run("git push", 2, End::Ok, "main -> main");
        }
    }
    (vec![s; sessions], silent)
}

#[test]
fn every_kind_is_raised_by_a_detector() {
    for &kind in FindingKind::ALL {
        let (scripts, silent) = example(kind);
        let until = scripts[0].at + silent * 1_000;
        let sessions: Vec<(&str, &Script)> = ["a", "b", "c"].into_iter().zip(&scripts).collect();
        let raised = Several::played(&sessions, until).kinds();
        assert!(raised.contains(&kind), "{kind} is not among {raised:?}");
    }
}
