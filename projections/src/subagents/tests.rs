use std::convert::Infallible;

use events::{TextRef, ToolOutcome};
use proptest::{collection::vec, prelude::*, sample::select};

use super::*;
use crate::CallResult;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(1_000_000 + ms)
}

fn call(sequence: u64, ms: i64, input: &str, result: &str) -> ConversationItem {
    let text = |text: &str| ItemText { text: text.into(), text_ref: None };
    ConversationItem {
        sequence,
        at: at(ms),
        turn_id: None,
        agent_id: None,
        body: ItemBody::ToolCall {
            call_id: sequence.to_string(),
            name: "Agent".into(),
            tool: ToolKind::Subagent,
            title: None,
            input: text(input),
            result: Some(CallResult {
                outcome: ToolOutcome::Ok,
                exit_code: None,
                duration_ms: None,
                text: text(result),
            }),
            subagents: Vec::new(),
        },
    }
}

fn child(number: u128, id: &str, ms: i64, prompt: &str) -> StartedSubagent {
    let subagent = Subagent {
        session_id: SessionId::from_bits(number),
        agent_type: None,
        title: None,
        state: State::Idle,
        turns: 1,
        started_at: at(ms),
        last_event_at: at(ms),
    };
    let prompt = ItemText { text: prompt.into(), text_ref: None };
    StartedSubagent { subagent, provider_session_id: Some(id.into()), prompt: Some(prompt) }
}

fn ids(children: &[Subagent]) -> Vec<SessionId> {
    children.iter().map(|child| child.session_id).collect()
}

/// The numbers of the sub-agents of each call, and of the remaining sub-agents.
fn folded(items: &mut [ConversationItem], children: Vec<StartedSubagent>) -> (Vec<Vec<u128>>, Vec<u128>) {
    let number = |id: &SessionId| (0..99).find(|n| SessionId::from_bits(*n) == *id).unwrap();
    let left = fold(items, children, |_| Ok::<_, Infallible>(None)).unwrap();
    let of_calls = items.iter().map(|item| match &item.body {
        ItemBody::ToolCall { subagents, .. } => ids(subagents).iter().map(number).collect(),
        _ => Vec::new(),
    });
    (of_calls.collect(), left.iter().map(|child| number(&child.subagent.session_id)).collect())
}

#[test]
fn a_subagent_is_matched_by_the_id_in_its_call_or_result() {
    let mut named = call(3, 30, "{}", "");
    named.agent_id = Some("gemini-child".into());
    let mut items = [
        call(1, 0, r#"{"prompt":"same"}"#, "agentId: a11a102d85b7f3f06 (for resuming)"),
        call(2, 10, r#"{"prompt":"same"}"#, r#"<task id="ses_dfb083033" state="completed">"#),
        named,
        // It waits for the first one.
        call(4, 40, r#"{"agent":"a11a102d85b7f3f06"}"#, ""),
    ];
    let children = vec![
        child(3, "gemini-child", 31, "other"),
        child(2, "ses_dfb083033", 11, "same"),
        child(1, "a11a102d85b7f3f06", 12, "same"),
    ];
    assert_eq!(folded(&mut items, children), (vec![vec![1], vec![2], vec![3], vec![]], vec![]));
}

#[test]
fn a_subagent_without_an_id_is_matched_by_agent_path_or_prompt() {
    let mut items = [
        call(1, 0, r#"{"task_name":"helper","message":"Count."}"#, r#"{"task_name":"/root/helper"}"#),
        call(2, 5_000, r#"{"description":"d","prompt":"Look  at\nnotes.txt"}"#, "Async agent launched"),
        call(3, 6_000, r#"{"prompt":"Look at notes.txt"}"#, "Async agent launched"),
    ];
    let mut helper = child(1, "01a1f741-8307", 100, "");
    helper.subagent.agent_type = Some("/root/helper".into());
    let children = vec![
        child(3, "unnamed-two", 6_050, "Look at notes.txt"),
        child(2, "unnamed-one", 5_100, "Look at notes.txt"),
        helper,
        // Started on the previous page, with the same prompt.
        child(4, "unnamed-before", -9_000, "Look at notes.txt"),
        child(5, "review-thread", 5_500, "Review the changes"),
    ];
    assert_eq!(folded(&mut items, children), (vec![vec![1], vec![2], vec![3]], vec![4, 5]));
}

#[test]
fn long_texts_are_compared_in_full() {
    let long = "Look at everything. ".repeat(100);
    let text_ref = Some(TextRef { hash: "h".into(), length: 2_000, stored: true });
    let mut items = [call(1, 0, "", "")];
    if let ItemBody::ToolCall { input, .. } = &mut items[0].body {
        *input = ItemText { text: "{\"prompt\":\"Look…\"}".into(), text_ref: text_ref.clone() };
    }
    let whole = |text: &ItemText| {
        let input = serde_json::json!({ "prompt": long }).to_string();
        Ok::<_, Infallible>(text.text_ref.as_ref().map(|text| if text.hash == "h" { input } else { long.clone() }))
    };
    let mut cut = child(1, "unnamed-one", 1, "Look…");
    cut.prompt.as_mut().unwrap().text_ref = text_ref.map(|text| TextRef { hash: "p".into(), ..text });
    assert_eq!(fold(&mut items, vec![cut], whole), Ok(Vec::new()));
}

#[test]
fn calls_of_other_tools_get_no_subagents() {
    let mut items = [call(1, 0, "", "see a11a102d85b7f3f06")];
    if let ItemBody::ToolCall { tool, .. } = &mut items[0].body {
        *tool = ToolKind::Execute;
    }
    assert_eq!(folded(&mut items, vec![child(1, "a11a102d85b7f3f06", 1, "")]), (vec![vec![]], vec![1]));
}

proptest! {
    /// Each sub-agent is in exactly one place.
    #[test]
    fn every_subagent_is_placed_exactly_once(
        calls in vec((0..5_i64, select(vec!["same", "other", "a-child-1", "a-child-2"])), 0..6),
        children in vec((0..5_i64, 0..3_u8, select(vec!["same", "other"])), 0..6),
    ) {
        let mut items: Vec<_> = (1..)
            .zip(&calls)
            .map(|(n, (ms, text))| call(n, ms * 3_000, &format!("{{\"prompt\":\"{text}\"}}"), text))
            .collect();
        let given: Vec<_> = (0..)
            .zip(&children)
            .map(|(n, (ms, id, prompt))| child(n, &format!("a-child-{id}"), ms * 3_000, prompt))
            .collect();
        let (of_calls, left) = folded(&mut items, given);
        let mut all: Vec<u128> = of_calls.into_iter().flatten().chain(left).collect();
        all.sort_unstable();
        prop_assert_eq!(all, (0..children.len() as u128).collect::<Vec<_>>());
    }
}
