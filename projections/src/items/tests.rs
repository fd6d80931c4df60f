use events::{
    ApprovalRequested, ApprovalResolved, AssistantDelta, AssistantMessage, Confidence, EventId, Origin, Provider,
    SessionId, Source, ToolCall, ToolResult, TurnCompleted, UserPrompt,
};
use proptest::prelude::*;

use super::*;

fn event(sequence: u64, payload: impl Into<Payload>, text: Option<&str>) -> Event {
    Event {
        position: sequence,
        id: EventId::from_bits(sequence.into()),
        session_id: SessionId::from_bits(1),
        sequence,
        provider: Provider::Claude,
        provider_session_id: "p".into(),
        source: Source::Transcript,
        created_at: Timestamp::from_millisecond(sequence as i64 * 1000),
        observed_at: Timestamp::from_millisecond(sequence as i64 * 1000),
        turn_id: None,
        parent_id: None,
        agent_id: None,
        confidence: Confidence::High,
        severity: None,
        text: text.map(str::to_owned),
        text_ref: None,
        payload: payload.into(),
        origin: Origin::Derived,
        derived: false,
        history: false,
    }
}

fn prompt() -> UserPrompt {
    UserPrompt::default()
}

fn message(id: &str) -> AssistantMessage {
    AssistantMessage { message_id: Some(id.into()), ..AssistantMessage::default() }
}

fn delta(id: &str, block: Block) -> AssistantDelta {
    AssistantDelta { message_id: Some(id.into()), block, ..AssistantDelta::default() }
}

fn call(id: &str) -> ToolCall {
    let (call_id, title) = (id.to_owned(), Some("ls".to_owned()));
    ToolCall { call_id, name: "Bash".into(), tool: ToolKind::Execute, title, ..ToolCall::default() }
}

fn result(id: &str) -> ToolResult {
    ToolResult { call_id: id.into(), exit_code: Some(0), ..ToolResult::default() }
}

fn items(events: &[Event]) -> Vec<ConversationItem> {
    let mut items = ConversationItems::default();
    events.iter().for_each(|event| items.apply(event));
    items.into_items(usize::MAX)
}

fn text(item: &ConversationItem) -> &str {
    match &item.body {
        ItemBody::Prompt { text, .. } | ItemBody::Message { text, .. } => &text.text,
        ItemBody::ToolCall { result: Some(result), .. } => &result.text.text,
        other => panic!("no text: {other:?}"),
    }
}

#[test]
fn later_events_are_merged_into_the_item_they_belong_to() {
    let approval_id: ApprovalId = EventId::from_bits(1).into();
    let request =
        ApprovalRequested { approval_id: approval_id.clone(), command: Some("ls".into()), ..Default::default() };
    let resolved =
        ApprovalResolved { approval_id, allowed: Some(true), by: Some(DecidedBy::Person), ..Default::default() };
    let found = items(&[
        event(1, prompt(), Some("list the files")),
        event(2, message("m1"), Some("I look.")),
        event(3, call("c1"), Some("{\"command\":\"ls\"}")),
        event(4, request, None),
        event(5, delta("m1", Block::Text), Some("Then I count.")),
        event(6, delta("m1", Block::Thinking), Some("hm")),
        event(7, resolved, None),
        event(9, result("c1"), Some("a\nb")),
        event(10, TurnCompleted { number: 1, ..TurnCompleted::default() }, None),
    ]);
    assert_eq!(found.iter().map(|item| item.sequence).collect::<Vec<_>>(), [1, 2, 3, 4, 10]);
    let ItemBody::Message { thinking, text, .. } = &found[1].body else { panic!() };
    assert_eq!((thinking.as_deref(), &*text.text), (Some("hm"), "I look.\nThen I count."));
    let ItemBody::ToolCall { name, title, input, result: Some(result), .. } = &found[2].body else { panic!() };
    assert_eq!((&**name, title.as_deref(), &*input.text), ("Bash", Some("ls"), "{\"command\":\"ls\"}"));
    assert_eq!((&*result.text.text, result.exit_code, result.duration_ms), ("a\nb", Some(0), Some(6_000)));
    let ItemBody::Approval { subject, state, by, closed_at, .. } = &found[3].body else { panic!() };
    assert_eq!((subject.as_deref(), *state, *by), (Some("ls"), ApprovalState::Allowed, Some(DecidedBy::Person)));
    assert_eq!(*closed_at, Some(Timestamp::from_millisecond(7_000)));
}

#[test]
fn several_results_of_a_call_are_one_item_with_the_first_text() {
    let details = ToolResult { detail: true, duration_ms: Some(12), ..result("c1") };
    let found = items(&[
        event(1, call("c1"), None),
        event(2, result("c1"), Some("first")),
        event(3, result("c1"), Some("second")),
        event(4, details, Some("third")),
    ]);
    assert_eq!(found.len(), 1);
    assert_eq!(text(&found[0]), "first");
    let ItemBody::ToolCall { result: Some(result), .. } = &found[0].body else { panic!() };
    assert_eq!(result.duration_ms, Some(12));
}

#[test]
fn a_result_without_its_call_is_not_lost() {
    let found = items(&[event(1, result("c1"), Some("out")), event(2, call("c1"), Some("in"))]);
    assert_eq!(found.len(), 1, "the call came behind its result");
    let ItemBody::ToolCall { name, input, result: Some(_), .. } = &found[0].body else { panic!() };
    assert_eq!((&**name, &*input.text), ("Bash", "in"));
    let details = ToolResult { detail: true, ..result("c2") };
    assert_eq!(items(&[event(1, details, Some("out"))]), [], "details alone say nothing");
}

#[test]
fn a_message_that_only_calls_tools_is_not_an_item() {
    assert_eq!(items(&[event(1, message("m1"), None), event(2, delta("m1", Block::Text), None)]), []);
}

proptest! {
    /// Pages of any size, put together, are the whole conversation, even if a result is on a later page than its call.
    #[test]
    fn concatenated_pages_equal_the_whole_conversation(kinds in prop::collection::vec((0..5u8, 0..6u8), 0..60), size in 1usize..9) {
        let events: Vec<Event> = kinds
            .iter()
            .enumerate()
            .map(|(index, (kind, id))| {
                let (sequence, id) = (index as u64 + 1, id.to_string());
                match kind {
                    0 => event(sequence, prompt(), Some("p")),
                    1 => event(sequence, message(&id), Some("m")),
                    2 => event(sequence, delta(&id, Block::Text), Some("d")),
                    3 => event(sequence, call(&id), Some("c")),
                    _ => event(sequence, result(&id), Some("r")),
                }
            })
            .collect();
        let whole = items(&events);
        prop_assert!(whole.windows(2).all(|pair| pair[0].sequence < pair[1].sequence));
        let (mut paged, mut after) = (Vec::new(), 0);
        loop {
            let mut page = ConversationItems::behind(after);
            events.iter().for_each(|event| page.apply(event));
            let more = page.len() > size;
            let page = page.into_items(size);
            after = page.last().map_or(after, |item| item.sequence);
            paged.extend(page);
            if !more {
                break;
            }
        }
        prop_assert_eq!(paged, whole);
    }
}

#[test]
fn an_answered_approval_is_closed_by_a_state_or_by_an_answer_alone() {
    for (state, allowed, expected) in [
        (None, Some(true), ApprovalState::Allowed),
        (None, Some(false), ApprovalState::Denied),
        (None, None, ApprovalState::AnsweredElsewhere),
        (Some(ApprovalState::Expired), None, ApprovalState::Expired),
    ] {
        let approval_id: ApprovalId = EventId::from_bits(1).into();
        let request = ApprovalRequested { approval_id: approval_id.clone(), ..Default::default() };
        let resolved = ApprovalResolved { approval_id: approval_id.clone(), state, allowed, ..Default::default() };
        // A repeated report without a state does not change the approval.
        let again = ApprovalResolved { approval_id, ..Default::default() };
        let found = items(&[event(1, request, None), event(2, resolved, None), event(3, again, None)]);
        let ItemBody::Approval { state, closed_at, .. } = &found[0].body else { panic!() };
        assert_eq!((*state, *closed_at), (expected, Some(Timestamp::from_millisecond(2_000))));
    }
}
