//! One case for each rule, and a check that the account and the decision never differ.

use proptest::prelude::*;

use super::*;
use crate::{
    conversation::{Conversation, Phase},
    rules::StatusRules,
    status::decide,
};

const NOW: Timestamp = Timestamp::from_millisecond(1_795_149_432_000);

fn held(source: Source, state: State, strength: Confidence, seconds_ago: i64) -> StandingClaim {
    let at = NOW.plus_ms(-1000 * seconds_ago);
    StandingClaim {
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
        shown: None,
        dialog: None,
        event: EventId::from_bits(1),
    }
}

fn told(conversation: &Conversation, held: &[StandingClaim], process: Process) -> Account {
    let case = StatusInputs {
        conversation,
        conversation_at: NOW.plus_ms(-5000),
        asleep_ms: 0,
        may_have_ended: false,
        claims: held,
        process,
        rules: StatusRules::default(),
    };
    let (account, status) = (account(&case, NOW), decide(&case, NOW));
    let deciding: Vec<_> = account.claims.iter().filter(|c| c.standing == ClaimStanding::Decides).collect();
    assert_eq!(deciding.len(), 1, "one claim decides: {account:#?}");
    assert_eq!((deciding[0].state, deciding[0].strength), (status.state, status.confidence));
    assert_eq!(account.claims[0].standing, ClaimStanding::Decides, "and it comes first");
    for claim in &account.claims {
        let agrees = matches!(claim.standing, ClaimStanding::Decides | ClaimStanding::Agrees);
        let counts = !matches!(claim.standing, ClaimStanding::NotYet | ClaimStanding::Over)
            && !matches!(process, Process::Gone { .. });
        assert!(!counts || agrees == (claim.state == status.state), "{claim:?} in {status:?}");
    }
    account
}

fn rule_of(held: &[StandingClaim]) -> DecidingRule {
    told(&Conversation::default(), held, Process::Unseen).rule
}

#[test]
fn every_deciding_rule_can_be_reported() {
    use Confidence::{High, Low, Medium};
    use Source::{Hook, Pty, Registry};
    use State::{Running, Waiting};
    assert_eq!(rule_of(&[]), DecidingRule::Alone);
    let registry = held(Registry, Running, High, 30);
    assert_eq!(rule_of(std::slice::from_ref(&registry)), DecidingRule::Strongest, "the conversation says less");
    assert_eq!(rule_of(&[registry.clone(), held(Pty, Waiting, Medium, 20)]), DecidingRule::Strongest);
    assert_eq!(rule_of(&[registry.clone(), held(Pty, Waiting, High, 20)]), DecidingRule::Closest);
    assert_eq!(rule_of(&[registry.clone(), held(Pty, Waiting, High, 0)]), DecidingRule::First);
    assert_eq!(rule_of(&[held(Hook, Running, High, 9), held(Hook, Waiting, High, 8)]), DecidingRule::Latest);
    let gone = Process::Gone { at: NOW, how: Reason::Killed };
    let account = told(&Conversation::default(), &[registry], gone);
    assert_eq!(account.rule, DecidingRule::ProcessGone);
    assert!(account.claims[1..].iter().all(|c| c.standing == ClaimStanding::Overruled));

    let talk = Conversation::default();
    let long_ago = NOW.plus_ms(-StatusRules::default().idle_after_ms);
    let case = StatusInputs {
        conversation: &talk,
        conversation_at: long_ago,
        asleep_ms: 0,
        may_have_ended: false,
        claims: &[],
        process: Process::Unseen,
        rules: StatusRules::default(),
    };
    assert_eq!(super::account(&case, NOW).rule, DecidingRule::Silence);
    let (state, _) = talk.verdict();
    assert_eq!(rule_of(&[held(Hook, state, Low, 3)]), DecidingRule::Unanimous);
    assert!(matches!(talk.phase, Phase::Silent));
}

#[test]
fn claims_not_yet_valid_or_expired_are_listed() {
    let later = StandingClaim {
        holds_from: Some(NOW.plus_ms(500)),
        ..held(Source::Hook, State::WaitingApproval, Confidence::High, 0)
    };
    let over = StandingClaim { valid_until: Some(NOW), ..held(Source::Telemetry, State::Running, Confidence::High, 9) };
    let account = told(&Conversation::default(), &[later, over], Process::Unseen);
    let standing: Vec<_> = account.claims.iter().map(|c| (c.source, c.standing)).collect();
    assert_eq!(
        standing,
        [
            (Source::Transcript, ClaimStanding::Decides),
            (Source::Hook, ClaimStanding::NotYet),
            (Source::Telemetry, ClaimStanding::Over)
        ]
    );
    assert_eq!(account.claims[1].from, Some(NOW.plus_ms(500)));
    assert_eq!(account.claims[2].until, Some(NOW));
}

fn any_held() -> impl Strategy<Value = StandingClaim> {
    let sources = [Source::Registry, Source::Hook, Source::Pty, Source::Telemetry, Source::Input];
    let states = [State::Running, State::Waiting, State::WaitingApproval, State::Idle, State::Unknown];
    let strengths = [Confidence::Low, Confidence::Medium, Confidence::High];
    let limits = (-2000_i64..2000, -2000_i64..2000, any::<bool>(), any::<bool>());
    (0..5_usize, 0..5_usize, 0..3_usize, 0..4_i64, limits).prop_map(move |(source, state, strength, ago, limits)| {
        let (until, from, ends, waits) = limits;
        StandingClaim {
            valid_until: ends.then(|| NOW.plus_ms(until)),
            holds_from: waits.then(|| NOW.plus_ms(from)),
            ..held(sources[source], states[state], strengths[strength], ago)
        }
    })
}

proptest! {
    #[test]
    fn the_account_agrees_with_the_decision_for_any_claims(held in proptest::collection::vec(any_held(), 0..6)) {
        let account = told(&Conversation::default(), &held, Process::Unseen);
        prop_assert_eq!(account.claims.len(), held.len() + 1, "no claim is left out, none is told twice");
    }
}
