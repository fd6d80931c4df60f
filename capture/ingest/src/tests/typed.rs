//! Prompts that capture types for rules, as agents record them.

use events::{PromptId, QueuedBy, QueuedState};
use projections::Prompt;

use super::*;

const RULE: &str = "Stop and write down\nwhat you tried.";

impl World {
    /// Stores that the queue is about to type a prompt.
    fn types(&mut self, session: &str, by: QueuedBy, text: &str, n: u8) {
        let session_id = self.id(session);
        let now = Timestamp::from_millisecond(self.now.load(Ordering::Relaxed));
        let prompt = Prompt {
            id: PromptId::mint(now, [n; 10]),
            session_id,
            state: QueuedState::Delivering,
            by,
            text: text.into(),
            redacted: false,
            why: None,
            queued_at: now,
            ended_at: None,
        };
        let what = DerivedKind::Prompt(Box::new(prompt));
        self.take(IngestInput::Derived(DerivedRecord::new(session_id, what)));
        self.commit();
    }

    /// The origin of each prompt of a session, and whether it is stated.
    fn origins(&self, session: &str) -> Vec<(PromptOrigin, bool)> {
        let events = self.read().events(self.id(session), 0, 1_000, &[]).unwrap();
        let origin = |event: &Event| match &event.payload {
            Payload::UserPrompt(prompt) => Some((prompt.origin, prompt.stated)),
            _ => None,
        };
        events.iter().filter_map(origin).collect()
    }
}

fn typed(session: &str, record: &str, seconds: f64, origin: PromptOrigin, text: Option<&str>) -> NewEvent {
    let prompt = UserPrompt { origin, ..UserPrompt::default() };
    NewEvent { text: text.map(str::to_owned), ..new(session, record, 0, seconds, prompt) }
}

#[test]
fn a_prompt_typed_for_a_rule_is_recorded_with_the_origin_monitor() {
    let recorded = [
        (PromptOrigin::Human, Some(RULE.to_owned())),
        (PromptOrigin::Steering, Some("Stop and write down what you tried.".into())),
        // With context that the agent adds, and joined with another prompt.
        (PromptOrigin::Human, Some(format!("# Context\n\nsrc/a.rs is open\n\n{RULE}"))),
        (PromptOrigin::Human, Some(format!("{RULE}\nAnd hurry."))),
        // Text so long that the event contains only parts of it.
        (PromptOrigin::Human, Some(format!("{}\n{RULE}", "x ".repeat(20_000)))),
        // Only observed at the terminal.
        (PromptOrigin::Human, None),
    ];
    for (n, provider) in Provider::ALL.iter().enumerate() {
        for (origin, text) in &recorded {
            let mut world = World::new();
            let of = |event: NewEvent| NewEvent { provider: *provider, ..event };
            world.live("s", vec![of(prompt("s", "fix the tests", 1.0)), of(answer("s", "done", 2.0))]);
            world.until(3.0);
            world.types("s", QueuedBy::Monitor, RULE, n as u8);
            // Also if capture is restarted in between.
            world.start();
            world.live("s", vec![of(typed("s", "typed", 4.0, *origin, text.as_deref()))]);
            world.live("s", vec![of(answer("s", "done again", 5.0))]);
            world.commit();
            assert_eq!(world.origins("s")[1], (PromptOrigin::Monitor, true), "{provider} {origin} {text:?}");
            let session = world.session("s");
            assert_eq!(session.summary.last_prompt.as_deref(), Some("fix the tests"), "the user's last prompt");
            assert_eq!(session.title.as_deref(), Some("Fix the tests"));
            assert!(world.told("s").contains(&"(turn 2 by monitor)".to_owned()), "{:?}", world.told("s"));
            // The same words again are the user's.
            world.live("s", vec![of(typed("s", "again", 6.0, PromptOrigin::Human, Some(RULE)))]);
            world.commit();
            assert_eq!(world.origins("s")[2], (PromptOrigin::Human, false), "{provider} {origin} {text:?}");
        }
    }
}

#[test]
fn other_prompts_keep_their_origin_while_a_prompt_for_a_rule_is_expected() {
    let mut world = World::new();
    world.live("s", vec![prompt("s", "fix the tests", 1.0), answer("s", "done", 2.0)]);
    world.until(3.0);
    world.types("s", QueuedBy::Person, RULE, 1);
    world.live("s", vec![typed("s", "queued", 4.0, PromptOrigin::Human, Some(RULE))]);
    world.types("s", QueuedBy::Monitor, "go on", 2);
    world.live(
        "s",
        vec![
            typed("s", "other", 5.0, PromptOrigin::Human, Some("go on with the second file")),
            typed("s", "task", 6.0, PromptOrigin::Agent, Some("go on")),
            typed("s", "rule", 7.0, PromptOrigin::Human, Some("go on")),
        ],
    );
    world.until(8.0);
    // Hours later the words are the user's, even if the agent never recorded the rule's prompt.
    world.types("s", QueuedBy::Monitor, "go on", 3);
    world.live("s", vec![typed("s", "late", 10_000.0, PromptOrigin::Human, Some("go on"))]);
    world.commit();
    let origins: Vec<PromptOrigin> = world.origins("s").into_iter().skip(1).map(|(origin, _)| origin).collect();
    use PromptOrigin::{Agent, Human, Monitor};
    assert_eq!(origins, [Human, Human, Agent, Monitor, Human]);
}
