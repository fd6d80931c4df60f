use std::{
    convert::Infallible,
    pin::pin,
    task::{Poll, Waker},
};

use super::*;
use crate::{
    SessionDocument, Tree,
    branch_summary::{AbandonedBranch, Focus},
    context::Context,
    entry::Entry,
    json::Object,
};

/// Answers with a number and records the requests.
struct Echo(Vec<SummaryRequest>);

impl Summarizer for Echo {
    type Error = Infallible;

    async fn summarize(&mut self, request: SummaryRequest) -> Result<SummaryAnswer, Infallible> {
        self.0.push(request);
        let usage = Object::new().with("input", 2_u64).with("cost", Object::new().with("total", 1_u64));
        Ok(SummaryAnswer { text: format!("S{}", self.0.len()), stopped: AnswerEnd::Done, usage: Some(usage.into()) })
    }
}

fn done<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut std::task::Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

/// A tree with a single chain; each entry is given by its fields without id and parent.
fn tree(entries: &[&str]) -> Tree {
    let mut text = "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n".to_owned();
    for (index, entry) in entries.iter().enumerate() {
        let parent = if index == 0 { "null".to_owned() } else { format!("\"e{}\"", index - 1) };
        text += &format!("{{\"id\":\"e{index}\",\"parentId\":{parent},{entry}}}\n");
    }
    SessionDocument::read(text.as_bytes()).unwrap().into()
}

const USER: &str = r#""type":"message","message":{"role":"user","content":"do it now, all of it"}"#;
const CALL: &str = r#""type":"message","message":{"role":"assistant","content":[{"type":"text","text":"yes"},{"type":"toolCall","name":"edit","arguments":{"path":"a.rs","n":1}}]}"#;
const READ: &str = r#""type":"message","message":{"role":"assistant","content":[{"type":"toolCall","name":"read","arguments":{"path":"b.rs"}}]}"#;
const RESULT: &str =
    r#""type":"message","message":{"role":"toolResult","content":[{"type":"text","text":"ok, that is done"}]}"#;
const LABEL: &str = r#""type":"label","targetId":"e0","label":"L""#;

fn settings(keep_recent_tokens: u64) -> CompactionSettings {
    CompactionSettings { keep_recent_tokens, ..CompactionSettings::default() }
}

#[track_caller]
fn check(entries: &[&str], keep: u64, expected: Option<(&str, usize, usize)>) {
    let tree = tree(entries);
    let plan = CompactionPlan::of(&tree.leaf_path(), settings(keep));
    assert_eq!(
        plan.map(|p| (p.first_kept.to_owned(), p.history.len(), p.turn_prefix.len())),
        expected.map(|(id, h, p)| (id.to_owned(), h, p))
    );
}

#[test]
fn compaction_never_cuts_before_a_tool_result() {
    check(&[USER, CALL, RESULT, USER, CALL, RESULT], 1, Some(("e4", 3, 1)));
    check(&[USER, CALL, RESULT, USER, CALL, RESULT], 11, Some(("e4", 3, 1)));
    check(&[USER, CALL, RESULT, USER, CALL, RESULT], 12, Some(("e3", 3, 0)));
    // A label before the message stays with it. A label starts no turn, so pi considers the turn before it cut.
    check(&[USER, CALL, RESULT, LABEL, USER, CALL], 11, Some(("e3", 0, 3)));
    check(&[USER, CALL], 1000, None);
    check(&[], 1, None);
    check(&[USER, CALL, r#""type":"compaction","summary":"S","firstKeptEntryId":"e1""#], 1, None);
}

#[test]
fn a_second_compaction_starts_at_the_first_entry_the_previous_one_kept() {
    let compaction = r#""type":"compaction","summary":"S1","firstKeptEntryId":"e2","details":{"readFiles":["old"],"modifiedFiles":[]}"#;
    let tree = tree(&[USER, CALL, USER, READ, compaction, USER, CALL]);
    let plan = CompactionPlan::of(&tree.leaf_path(), settings(1)).unwrap();
    assert_eq!(plan.previous_summary, Some("S1"));
    assert_eq!((plan.first_kept, plan.history.len(), plan.turn_prefix.len()), ("e6", 2, 1));
    assert_eq!(plan.files.read, ["old", "b.rs"]);
    let (history, _) = plan.requests(Some("the tests"));
    let prompt = history.unwrap().prompt;
    assert!(prompt.contains("<previous-summary>\nS1\n</previous-summary>"), "{prompt}");
    assert!(prompt.ends_with("Additional focus: the tests"));
}

#[test]
fn a_split_turn_gets_a_separate_summary() {
    let tree = tree(&[USER, CALL, RESULT, USER, READ, RESULT, CALL]);
    let plan = CompactionPlan::of(&tree.leaf_path(), settings(1)).unwrap();
    let mut echo = Echo(Vec::new());
    let made = done(compact(&plan, None, &mut echo)).unwrap();
    assert_eq!(echo.0.len(), 2);
    assert_eq!(
        made.summary,
        "S1\n\n---\n\n**Turn Context (split turn):**\n\nS2\n\n<read-files>\nb.rs\n</read-files>\n\n<modified-files>\na.rs\n</modified-files>"
    );
    assert_eq!(made.usage.unwrap().to_text(), r#"{"input":4,"cost":{"total":2}}"#);
    assert_eq!(made.first_kept.as_deref(), Some("e6"));
    let (history, _) = plan.requests(None);
    assert!(history.unwrap().prompt.starts_with(
        "<conversation>\n[User]: do it now, all of it\n\n[Assistant]: yes\n\n\
         [Assistant tool calls]: edit(path=\"a.rs\", n=1)\n\n[Tool result]: ok, that is done\n</conversation>"
    ));
}

#[test]
fn an_incomplete_or_missing_summary_is_an_error() {
    let tree = tree(&[USER, CALL, USER, CALL]);
    let plan = CompactionPlan::of(&tree.leaf_path(), settings(1)).unwrap();
    let answer = |stopped| Some(SummaryAnswer { text: "half".into(), stopped, usage: None });
    let check = |stopped, error: SummaryError<Infallible>| {
        assert_eq!(plan.assemble(answer(stopped), answer(AnswerEnd::Done)), Err(error));
    };
    check(AnswerEnd::Length, SummaryError::Length);
    check(AnswerEnd::ToolCall, SummaryError::ToolCall);
    check(AnswerEnd::Aborted, SummaryError::Aborted);
    check(AnswerEnd::Failed("500".into()), SummaryError::Failed("500".into()));
    assert_eq!(plan.assemble::<Infallible>(None, answer(AnswerEnd::Done)), Err(SummaryError::Missing));
}

#[test]
fn context_tokens_are_the_last_reported_usage_plus_an_estimate() {
    let told = r#""type":"message","message":{"role":"assistant","content":[],"usage":{"totalTokens":100}}"#;
    let failed = r#""type":"message","message":{"role":"assistant","content":[],"stopReason":"error","usage":{"totalTokens":900}}"#;
    let check = |entries: &[&str], tokens: u64| {
        let tree = tree(entries);
        let path = tree.leaf_path();
        assert_eq!(context_tokens(&Context::of_path(&path), &path).tokens, tokens, "{entries:?}");
    };
    check(&[USER, told, USER], 105);
    check(&[USER, failed], 5);
    // Usage reported before an edit is outdated.
    check(&[USER, told, r#""type":"context_edit","targetId":"e0","replacement":{"content":"1234"}"#], 1);
    assert!(settings(1).is_due(90_000, 100_000));
    assert!(!settings(1).is_due(83_616, 100_000));
    assert!(!CompactionSettings { enabled: false, ..settings(1) }.is_due(u64::MAX, 1));
}

#[test]
fn a_long_tool_result_is_truncated_for_the_summarizer() {
    let message = Object::new().with("role", "toolResult").with("content", "é".repeat(2010));
    let text = flatten([&message]);
    assert!(text.ends_with("é\n\n[... 10 more characters truncated]"), "{}", &text[text.len() - 60..]);
}

#[test]
fn an_abandoned_branch_is_summarized_from_its_newest_entries() {
    let tree = tree(&[USER, CALL, RESULT, USER, CALL]);
    let leaving = AbandonedBranch::of(&tree, tree.leaf(), tree.entry("e0"));
    assert_eq!(leaving.entries.len(), 4);
    assert_eq!(leaving.common_ancestor.and_then(Entry::id), Some("e0"));
    let plan = leaving.plan(0);
    assert_eq!(plan.messages.len(), 3, "results are left out");
    assert_eq!(leaving.plan(1).messages.len(), 0);
    assert_eq!(leaving.plan(11).messages.len(), 1);
    assert!(leaving.plan(1).request(Focus::Usual).is_none());
    let request = plan.request(Focus::Also("names")).unwrap();
    assert!(request.prompt.ends_with("Additional focus: names"));
    let answer = SummaryAnswer { text: "it failed".into(), stopped: AnswerEnd::Done, usage: None };
    let made = plan.assemble::<Infallible>(answer).unwrap();
    assert!(made.summary.starts_with("The user explored a different conversation branch before returning here."));
    assert!(made.summary.ends_with("it failed\n\n<modified-files>\na.rs\n</modified-files>"));
    assert!(AbandonedBranch::of(&tree, None, tree.leaf()).entries.is_empty());
    assert_eq!(AbandonedBranch::of(&tree, tree.leaf(), None).entries.len(), 5);
}
