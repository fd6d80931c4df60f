use std::sync::Arc;

use events::{Event, Payload, Provider, UserPrompt};
use projections::{SessionState, StatusRules};
use store::Writer;

use super::*;

pub(crate) const DAY_MS: i64 = 86_400_000;
/// A time later than all stored events.
pub(crate) const NOW: Timestamp = Timestamp::from_millisecond(1_000 * DAY_MS);

/// A store with sessions, each with one event.
pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) writer: Writer,
    pub(crate) sessions: Vec<Session>,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let writer = Writer::open(dir.path()).unwrap();
        Self { dir, writer, sessions: Vec::new() }
    }

    /// Adds a session whose last event was this many days ago.
    pub(crate) fn add(&mut self, name: &str, days: i64, parent: Option<&str>, directory: &str) -> &mut Session {
        let at = NOW.plus_ms(-days * DAY_MS);
        let id = SessionId::mint(Timestamp::MIN, Provider::Claude, name);
        let mut state = SessionState::new(id, Provider::Claude, Some(Arc::from(name)), at, StatusRules::default());
        let session = &mut state.session;
        session.parent_session_id = parent.map(|name| SessionId::mint(Timestamp::MIN, Provider::Claude, name));
        session.began_in = Some(directory.to_owned());
        session.status.state = State::Idle;
        session.last_sequence = 1;
        let session = session.clone();
        self.writer.begin().unwrap();
        let row = self.writer.add_session(id, Provider::Claude, name).unwrap();
        self.writer.put_session(row, at, &json(&session), &json(&state)).unwrap();
        self.writer.append(row, &event(self.sessions.len() as u64 + 1, id, at), None).unwrap();
        self.writer.commit().unwrap();
        self.sessions.push(session);
        self.sessions.last_mut().unwrap()
    }

    /// The names of the sessions to remove, in order.
    fn go(&self, rules: &[PruneRule]) -> Vec<String> {
        let plan = Plan::of_rules(&self.writer.reader(), &self.sessions, rules, NOW).unwrap();
        let name = |about: &About| about.names.first().cloned().unwrap_or_default();
        plan.about().map(name).collect()
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

fn event(position: u64, session: SessionId, at: Timestamp) -> Event {
    Event {
        position,
        id: events::EventId::from_bits(position.into()),
        session_id: session,
        sequence: 1,
        provider: Provider::Claude,
        provider_session_id: "p".into(),
        source: events::Source::Transcript,
        created_at: at,
        observed_at: at,
        turn_id: None,
        parent_id: None,
        agent_id: None,
        confidence: events::Confidence::High,
        severity: None,
        text: Some("what was asked".into()),
        text_ref: None,
        payload: Payload::UserPrompt(UserPrompt::default()),
        origin: events::Origin::Derived,
        derived: false,
        history: false,
    }
}

fn older_than(days: i64) -> PruneRule {
    PruneRule { older_than_ms: Some(days * DAY_MS), ..PruneRule::default() }
}

#[test]
fn old_session_families_are_pruned_as_a_whole_and_oldest_first() {
    let mut world = World::new();
    world.add("young", 1, None, "/a");
    world.add("old", 40, None, "/a");
    world.add("oldest", 50, None, "/a");
    // A sub-agent that was active recently keeps its old parent; an old sub-agent is removed only with its parent.
    world.add("parent", 60, None, "/a");
    world.add("child", 2, Some("parent"), "/a");
    world.add("old parent", 45, None, "/a");
    world.add("old child", 70, Some("old parent"), "/a");
    world.add("orphan", 80, Some("nobody"), "/a");
    assert_eq!(world.go(&[older_than(30)]), ["orphan", "oldest", "old parent", "old child", "old"]);
    assert_eq!(world.go(&[older_than(55)]), ["orphan"]);
    assert_eq!(world.go(&[older_than(1_000)]), Vec::<String>::new());
}

#[test]
fn running_and_recently_ended_sessions_are_never_pruned() {
    let mut world = World::new();
    world.add("rests", 12, None, "/a");
    world.add("runs", 10, None, "/a").pid = Some(7);
    world.add("works", 10, None, "/a").status.state = State::WaitingApproval;
    let exited = world.add("exited", 10, None, "/a");
    (exited.pid, exited.status.state) = (Some(8), State::Exited);
    world.add("just now", 0, None, "/a");
    assert_eq!(world.go(&[PruneRule::default()]), ["rests", "exited"]);
}

#[test]
fn project_rules_apply_before_size_limits() {
    let mut world = World::new();
    world.add("a", 3, None, "/src/a/below");
    world.add("ab", 4, None, "/src/ab");
    world.add("b", 5, None, "/src/b");
    let of_a = PruneRule { project: Some("/src/a".into()), ..older_than(2) };
    assert_eq!(world.go(std::slice::from_ref(&of_a)), ["a"]);
    let used = world.writer.reader().used_bytes().unwrap();
    let size = |limit| PruneRule { larger_than_bytes: Some(limit), ..PruneRule::default() };
    assert_eq!(world.go(&[size(used)]), Vec::<String>::new());
    assert_eq!(world.go(&[size(used - 1)]), ["b"], "the oldest, until it is enough");
    assert_eq!(world.go(&[size(0)]), ["b", "ab", "a"]);
    let policy = PrunePolicy { all: size(used - 1), projects: vec![of_a, PruneRule::default()] };
    let rules = policy.rules();
    assert_eq!(rules.len(), 2, "a rule that asks for nothing is none");
    assert_eq!(world.go(&rules), ["a"], "what is removed for its age counts");
    assert!(PrunePolicy::default().rules().is_empty());
}

#[test]
fn a_session_is_forgotten_with_all_its_subagents() {
    let mut world = World::new();
    world.add("top", 1, None, "/a");
    world.add("child", 1, Some("top"), "/a");
    world.add("grandchild", 1, Some("child"), "/a");
    world.add("other", 1, None, "/a");
    let id = |name: &str| SessionId::mint(Timestamp::MIN, Provider::Claude, name);
    let family = |name: &str| {
        let plan = Plan::of_family(&world.writer.reader(), id(name)).unwrap();
        plan.map(|plan| plan.sessions.iter().map(|(session, _)| session.id).collect::<Vec<_>>())
    };
    let top = family("top").unwrap();
    assert_eq!((top[0], top.len()), (id("top"), 3), "itself first");
    assert_eq!(family("child"), Some(vec![id("child"), id("grandchild")]));
    assert_eq!(family("nobody"), None);
}

#[test]
fn a_pruned_session_is_forgotten_with_all_its_subagents() {
    let mut world = World::new();
    world.add("top", 1, None, "/a");
    world.add("child", 1, Some("top"), "/a");
    world.add("grandchild", 1, Some("child"), "/a");
    world.add("other", 1, None, "/a");
    let id = |name: &str| SessionId::mint(Timestamp::MIN, Provider::Claude, name);
    let prune = |world: &mut World, name: &str| {
        let known = world.writer.sessions().unwrap().into_iter().find(|known| known.id == id(name)).unwrap();
        let about = About::of(world.sessions.iter().find(|session| session.id == id(name)).unwrap());
        let removal = store::SessionRemoval { known: &known, kind: store::RemovalKind::Pruned, about: &about, at: NOW };
        world.writer.begin().unwrap();
        world.writer.remove_sessions(&[removal]).unwrap();
        world.writer.commit().unwrap();
    };
    // Prunes one family member after another: remaining and pruned members still belong together.
    for pruned in ["child", "top", "grandchild"] {
        prune(&mut world, pruned);
        for (of, expected) in [("top", vec!["top", "child", "grandchild"]), ("child", vec!["child", "grandchild"])] {
            let plan = Plan::of_family(&world.writer.reader(), id(of)).unwrap().unwrap();
            let mut names: Vec<String> = plan.about().map(|about| about.names[0].clone()).collect();
            assert_eq!(names[0], of, "itself first");
            names[1..].sort();
            assert_eq!(names, expected, "{of} when {pruned} was pruned");
        }
    }
    let plan = Plan::of_family(&world.writer.reader(), id("top")).unwrap().unwrap();
    assert!(plan.sessions.iter().all(|(session, _)| session.was_pruned && session.events == 0));
    assert_eq!(plan.sessions[0].0.last_event_at, NOW.plus_ms(-DAY_MS));
}
