//! One case for each rule, and that the account and the decision never differ.

use proptest::prelude::*;

use super::*;
use crate::{
    rules::Rules,
    status::decide,
    talk::{Phase, Talk},
};

const NOW: Timestamp = Timestamp::from_millisecond(1_795_149_432_000);

fn held(source: Source, state: State, strength: Confidence, seconds_ago: i64) -> Held {
    let at = NOW.plus_ms(-1000 * seconds_ago);
    Held {
        source,
        agent: None,
        state,
        reason: None,
        strength,
        at,
        valid_until: None,
        holds_from: None,
        said_at: None,
        key: None,
        words: format!("{source} says {state}"),
        subject: None,
        dialog: None,
        event: EventId::from_bits(1),
    }
}

fn told(talk: &Talk, held: &[Held], process: Process) -> Account {
    let case = Case { talk, talk_at: NOW.plus_ms(-5000), held, process, rules: Rules::default() };
    let (account, status) = (account(&case, NOW), decide(&case, NOW));
    let deciding: Vec<_> = account.claims.iter().filter(|c| c.standing == Standing::Decides).collect();
    assert_eq!(deciding.len(), 1, "one claim decides: {account:#?}");
    assert_eq!((deciding[0].state, deciding[0].strength), (status.state, status.confidence));
    assert_eq!(account.claims[0].standing, Standing::Decides, "and it comes first");
    for claim in &account.claims {
        let agrees = matches!(claim.standing, Standing::Decides | Standing::Agrees);
        let counts =
            !matches!(claim.standing, Standing::NotYet | Standing::Over) && !matches!(process, Process::Gone { .. });
        assert!(!counts || agrees == (claim.state == status.state), "{claim:?} in {status:?}");
    }
    account
}

fn rule_of(held: &[Held]) -> Rule {
    told(&Talk::default(), held, Process::Unseen).rule
}

#[test]
fn every_rule_is_named() {
    use Confidence::{High, Low, Medium};
    use Source::{Hook, Pty, Registry};
    use State::{Running, Waiting};
    assert_eq!(rule_of(&[]), Rule::Alone);
    let registry = held(Registry, Running, High, 30);
    assert_eq!(rule_of(std::slice::from_ref(&registry)), Rule::Strongest, "the conversation says less");
    assert_eq!(rule_of(&[registry.clone(), held(Pty, Waiting, Medium, 20)]), Rule::Strongest);
    assert_eq!(rule_of(&[registry.clone(), held(Pty, Waiting, High, 20)]), Rule::Closest);
    assert_eq!(rule_of(&[registry.clone(), held(Pty, Waiting, High, 0)]), Rule::First);
    assert_eq!(rule_of(&[held(Hook, Running, High, 9), held(Hook, Waiting, High, 8)]), Rule::Latest);
    let gone = Process::Gone { at: NOW, how: Reason::Killed };
    let account = told(&Talk::default(), &[registry], gone);
    assert_eq!(account.rule, Rule::ProcessGone);
    assert!(account.claims[1..].iter().all(|c| c.standing == Standing::Overruled));

    let talk = Talk::default();
    let long_ago = NOW.plus_ms(-Rules::default().idle_after_ms);
    let case = Case { talk: &talk, talk_at: long_ago, held: &[], process: Process::Unseen, rules: Rules::default() };
    assert_eq!(super::account(&case, NOW).rule, Rule::Silence);
    let (state, _) = talk.verdict();
    assert_eq!(rule_of(&[held(Hook, state, Low, 3)]), Rule::Unanimous);
    assert!(matches!(talk.phase, Phase::Silent));
}

#[test]
fn what_does_not_count_is_told_too() {
    let later =
        Held { holds_from: Some(NOW.plus_ms(500)), ..held(Source::Hook, State::WaitingApproval, Confidence::High, 0) };
    let over = Held { valid_until: Some(NOW), ..held(Source::Telemetry, State::Running, Confidence::High, 9) };
    let account = told(&Talk::default(), &[later, over], Process::Unseen);
    let standing: Vec<_> = account.claims.iter().map(|c| (c.source, c.standing)).collect();
    assert_eq!(
        standing,
        [
            (Source::Transcript, Standing::Decides),
            (Source::Hook, Standing::NotYet),
            (Source::Telemetry, Standing::Over)
        ]
    );
    assert_eq!(account.claims[1].from, Some(NOW.plus_ms(500)));
    assert_eq!(account.claims[2].until, Some(NOW));
}

fn any_held() -> impl Strategy<Value = Held> {
    let sources = [Source::Registry, Source::Hook, Source::Pty, Source::Telemetry, Source::Input];
    let states = [State::Running, State::Waiting, State::WaitingApproval, State::Idle, State::Unknown];
    let strengths = [Confidence::Low, Confidence::Medium, Confidence::High];
    let limits = (-2000_i64..2000, -2000_i64..2000, any::<bool>(), any::<bool>());
    (0..5_usize, 0..5_usize, 0..3_usize, 0..4_i64, limits).prop_map(move |(source, state, strength, ago, limits)| {
        let (until, from, ends, waits) = limits;
        Held {
            valid_until: ends.then(|| NOW.plus_ms(until)),
            holds_from: waits.then(|| NOW.plus_ms(from)),
            ..held(sources[source], states[state], strengths[strength], ago)
        }
    })
}

proptest! {
    #[test]
    fn the_account_is_that_of_the_decision(held in proptest::collection::vec(any_held(), 0..6)) {
        let account = told(&Talk::default(), &held, Process::Unseen);
        prop_assert_eq!(account.claims.len(), held.len() + 1, "no claim is left out, none is told twice");
    }
}
