use events::{PromptOrigin, State};
use projections::ItemText;

use super::*;

fn id(n: u128) -> SessionId {
    SessionId::from_bits(n)
}

fn at() -> Timestamp {
    Timestamp::from_millisecond(0)
}

fn item_of(sequence: u64, body: ItemBody) -> ConversationItem {
    ConversationItem { sequence, at: at(), turn_id: None, agent_id: None, body }
}

fn says(sequence: u64) -> ConversationItem {
    let text = ItemText { text: format!("prompt {sequence}"), text_ref: None };
    item_of(sequence, ItemBody::Prompt { origin: PromptOrigin::Human, text, attachments: 0 })
}

fn starts(sequence: u64, child: u128) -> ConversationItem {
    let subagent = Subagent {
        session_id: id(child),
        agent_type: None,
        title: None,
        state: State::Idle,
        turns: 1,
        started_at: at(),
        last_event_at: at(),
    };
    item_of(sequence, ItemBody::Subagent(subagent))
}

/// A server's pages of conversations, one item each. `None` means that the server no longer has the session.
fn pages(of: &[(u128, &[Option<ConversationItem>])]) -> impl Fn(SessionId, &ConversationQuery) -> Page {
    move |session, query| {
        let items = of.iter().find(|(n, _)| id(*n) == session).map_or(&[][..], |(_, items)| items);
        let place = query.cursor.unwrap_or(0);
        match items.get(usize::try_from(place).unwrap()) {
            Some(Some(item)) => {
                let has_more = place + 1 < items.len() as u64;
                let next_cursor = has_more.then(|| (place + 1).to_string());
                Ok(ConversationPage { as_of: 9, items: vec![item.clone()], next_cursor })
            }
            Some(None) | None => Err(ClientError::Refused {
                status: 404,
                code: "not_found".into(),
                message: format!("no session `{session}`"),
                hint: None,
            }),
        }
    }
}

type Page = Result<ConversationPage, ClientError>;

/// The output for a session: items as their sequences, sub-agents in parentheses.
fn written(of: &[(u128, &[Option<ConversationItem>])]) -> Result<String, SessionExportError> {
    let mut out = String::new();
    let mut take = |part: ConversationPart<'_>| {
        out += &match part {
            ConversationPart::Item(item) => format!("{} ", item.sequence),
            ConversationPart::SubagentBegins(_) => "( ".to_owned(),
            ConversationPart::SubagentForgotten => "forgotten ".to_owned(),
            ConversationPart::SubagentEnds => ") ".to_owned(),
        };
        Ok(())
    };
    parts::<SessionExportError>(&pages(of), id(1), Subagents::Unfolded, &mut take)?;
    Ok(out.trim_end().to_owned())
}

#[test]
fn a_subagent_forgotten_during_the_export_leaves_a_notice() {
    let parent = [Some(says(1)), Some(starts(2, 7)), Some(says(3))];
    let child = [Some(says(11)), Some(says(12))];
    assert_eq!(written(&[(1, &parent), (7, &child)]).unwrap(), "1 2 ( 11 12 ) 3");
    assert_eq!(written(&[(1, &parent)]).unwrap(), "1 2 ( forgotten ) 3", "before it is read");
    let child = [Some(says(11)), None];
    assert_eq!(written(&[(1, &parent), (7, &child)]).unwrap(), "1 2 ( 11 forgotten ) 3", "while it is read");
    let inner = [Some(starts(21, 8)), Some(says(22))];
    assert_eq!(written(&[(1, &parent), (7, &inner)]).unwrap(), "1 2 ( 21 ( forgotten ) 22 ) 3", "below another");
}

#[test]
fn exporting_a_session_that_is_forgotten_meanwhile_fails() {
    let error = written(&[(1, &[Some(says(1)), None])]).unwrap_err();
    assert_eq!(error.to_string(), format!("no session `{}`", id(1)));
}

#[test]
fn every_format_has_a_notice_for_a_forgotten_subagent() {
    assert!(subagent_forgotten().contains("forgotten") && subagent_forgotten().ends_with("\n\n"));
    assert!(conversation_html::subagent_forgotten().contains("forgotten"));
}
