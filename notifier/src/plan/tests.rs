use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
};

use proptest::prelude::*;

use super::*;
use crate::config::{ChannelSettings, Hours, NotifyRule, Quiet};

/// A notice of one session; its text follows from cause and kind.
pub(crate) fn notice(cause: &str, kind: &str) -> Notice {
    Notice {
        cause: cause.to_owned(),
        kind: kind.parse().unwrap(),
        severity: Severity::Warning,
        session: "s1".to_owned(),
        session_label: "api".to_owned(),
        project: "shop".to_owned(),
        title: "Bash asks for permission".to_owned(),
        body: format!("Bash: cargo test {cause}"),
        url: None,
        run: None,
        buttons: None,
        at: Timestamp::MIN,
    }
}

fn settings(channels: &[&str]) -> NotifySettings {
    NotifySettings {
        channels: channels.iter().map(|n| ChannelSettings::Desktop { name: (*n).to_owned() }).collect(),
        ..NotifySettings::default()
    }
}

fn at(ms: i64) -> LocalTime {
    LocalTime::utc(Timestamp::from_millisecond(ms))
}

/// A planner with a user who is away until the test changes that.
struct PlannerFixture {
    planner: Planner,
    there: Cell<bool>,
}

impl PlannerFixture {
    fn new(settings: NotifySettings) -> Self {
        settings.check().unwrap();
        Self { planner: Planner::new(settings, []), there: Cell::new(false) }
    }

    fn submit(&mut self, ms: i64, cause: &str, kind: &str) -> NoticeOutcome {
        self.planner.submit(notice(cause, kind), at(ms))
    }

    /// The messages sent at a time, as `form:cause,cause`.
    fn due(&mut self, ms: i64) -> Vec<String> {
        let there = self.there.get();
        let told = |_: &Notice| if there { Presence::AtTerminal } else { Presence::Away };
        let messages = self.planner.due(at(ms), &told);
        messages.iter().map(|m| format!("{:?}:{}", m.form, m.causes().join(","))).collect()
    }

    fn deadline(&self) -> Option<i64> {
        self.planner.next_deadline().map(Timestamp::as_millisecond)
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn an_approval_is_notified_once_after_its_debounce() {
    let mut desk = PlannerFixture::new(settings(&["d"]));
    assert_eq!(desk.submit(1000, "a", "approval"), NoticeOutcome::New);
    assert_eq!(desk.submit(1100, "a", "approval"), NoticeOutcome::Renewed);
    assert_eq!(desk.deadline(), Some(1300));
    assert_eq!(desk.due(1299), NOTHING);
    assert_eq!(desk.due(1300), ["Single:a"]);
    assert_eq!(desk.submit(1400, "a", "approval"), NoticeOutcome::Known);
    assert_eq!((desk.due(99_000), desk.deadline()), (vec![], None));
    desk.planner.withdraw("a");
    assert_eq!(desk.submit(100_000, "a", "approval"), NoticeOutcome::New);
    assert_eq!(desk.due(100_300), ["Single:a"]);
}

#[test]
fn a_notice_withdrawn_within_its_debounce_is_not_sent() {
    let mut desk = PlannerFixture::new(settings(&["d"]));
    desk.submit(0, "a", "approval");
    desk.planner.withdraw("a");
    assert_eq!((desk.due(10_000), desk.deadline()), (vec![], None));
}

#[test]
fn causes_notified_before_a_restart_are_not_notified_again() {
    let mut planner = Planner::new(settings(&["d"]), ["a".to_owned()]);
    assert_eq!(planner.submit(notice("a", "approval"), at(0)), NoticeOutcome::Known);
    assert_eq!(planner.submit(notice("b", "approval"), at(0)), NoticeOutcome::New);
}

#[test]
fn notices_that_are_disabled_or_have_no_channel_are_rejected() {
    let mut desk = PlannerFixture::new(settings(&["d"]));
    assert_eq!(desk.submit(0, "a", "idle"), NoticeOutcome::Off);
    let rules = vec![NotifyRule { channels: Some(vec![]), ..NotifyRule::default() }];
    assert_eq!(
        PlannerFixture::new(NotifySettings { rules, ..settings(&["d"]) }).submit(0, "a", "approval"),
        NoticeOutcome::Off
    );
    assert_eq!(
        PlannerFixture::new(NotifySettings { enabled: false, ..settings(&["d"]) }).submit(0, "a", "approval"),
        NoticeOutcome::Off
    );
}

#[test]
fn notices_wait_or_are_dropped_while_the_user_is_at_the_terminal() {
    let mut desk = PlannerFixture::new(settings(&["d"]));
    desk.there.set(true);
    desk.submit(0, "a", "approval");
    desk.submit(0, "b", "completion");
    assert_eq!(desk.due(2_000), NOTHING);
    assert_eq!(desk.deadline(), Some(3_000));
    desk.there.set(false);
    assert_eq!(desk.due(3_000), ["Single:a"]);
    assert_eq!(desk.submit(4_000, "b", "completion"), NoticeOutcome::Known);
}

#[test]
fn simultaneous_or_closely_spaced_notices_are_grouped() {
    let mut desk = PlannerFixture::new(settings(&["d"]));
    for cause in ["a", "b", "c", "d"] {
        desk.submit(0, cause, "approval");
    }
    assert_eq!(desk.due(300), ["Group:a,b,c,d"]);
    let mut desk = PlannerFixture::new(settings(&["d"]));
    for (ms, cause) in [(0, "a"), (100, "b"), (200, "c"), (350, "d"), (20_000, "e")] {
        desk.submit(ms, cause, "approval");
    }
    assert_eq!(desk.due(300), ["Single:a"]);
    assert_eq!(desk.due(400), ["Single:b"]);
    assert_eq!(desk.due(500), NOTHING);
    assert_eq!(desk.deadline(), Some(650));
    assert_eq!(desk.due(650), NOTHING);
    assert_eq!(desk.deadline(), Some(700));
    assert_eq!(desk.due(700), ["Group:c,d"]);
    assert_eq!(desk.due(20_300), ["Single:e"]);
}

#[test]
fn notices_above_the_rate_limit_are_grouped_and_sent_later() {
    let mut desk = PlannerFixture::new(NotifySettings { per_minute: 1, group_at: 100, ..settings(&["d"]) });
    desk.submit(0, "a", "approval");
    assert_eq!(desk.due(300), ["Single:a"]);
    desk.submit(1_000, "b", "approval");
    desk.submit(30_000, "c", "approval");
    assert_eq!(desk.due(1_300), NOTHING);
    assert_eq!(desk.due(31_000), NOTHING);
    assert_eq!(desk.deadline(), Some(60_300));
    assert_eq!(desk.due(60_300), ["Group:b,c"]);
}

fn at_night() -> NotifySettings {
    let quiet = Quiet { hours: vec![Hours::parse("22:00-07:00").unwrap()], urgent_breaks_through: true };
    NotifySettings { quiet, ..settings(&["d"]) }
}

#[test]
fn quiet_hours_hold_notices_back_and_end_with_one_digest() {
    let hour = 3_600_000;
    let mut desk = PlannerFixture::new(at_night());
    desk.submit(23 * hour, "a", "approval");
    desk.submit(24 * hour, "b", "stuck");
    desk.submit(25 * hour, "c", "approval");
    let mut urgent = notice("u", "approval");
    urgent.severity = Severity::Urgent;
    desk.planner.submit(urgent, at(25 * hour));
    assert_eq!(desk.due(26 * hour), ["Single:u"]);
    assert_eq!(desk.deadline(), Some(31 * hour));
    desk.planner.withdraw("b");
    assert_eq!(desk.due(31 * hour - 1), NOTHING);
    assert_eq!(desk.due(31 * hour), ["Digest:a,c"]);
    assert_eq!(desk.deadline(), None);
}

#[test]
fn a_rule_can_repeat_a_notification_a_limited_number_of_times() {
    let rules = vec![NotifyRule { repeat_s: Some(60), repeats: Some(2), ..NotifyRule::default() }];
    let mut desk = PlannerFixture::new(NotifySettings { rules, ..settings(&["d"]) });
    desk.submit(0, "a", "approval");
    assert_eq!(desk.due(300), ["Single:a"]);
    assert_eq!(desk.due(60_299), NOTHING);
    assert_eq!(desk.due(60_300), ["Repeat(1):a"]);
    assert_eq!(desk.due(120_300), ["Repeat(2):a"]);
    assert_eq!((desk.due(999_999), desk.deadline()), (vec![], None));
}

#[test]
fn message_texts_are_escaped_and_unsafe_links_removed() {
    let mut planner = Planner::new(settings(&["d"]), []);
    let mut bad = notice("a\u{1b}", "approval");
    bad.title = "\u{202e}x\ny".into();
    bad.body = "\u{1b}]52;c;\u{7}".into();
    bad.url = Some("javascript:x".into());
    planner.submit(bad, at(0));
    let message = &planner.due(at(300), &|_| Presence::Unknown)[0];
    assert_eq!(message.title, "api (shop): \\u{202e}x y");
    assert_eq!((message.body.as_str(), message.url()), ("\\u{1b}]52;c;\\u{7}", None));
    assert_eq!(message.causes(), ["a\u{1b}"]);
}

/// One step of a test.
#[derive(Debug, Clone)]
enum Step {
    Take(u8, usize),
    Withdraw(u8),
    Pass(i64),
    /// Advances to the next deadline.
    Wake,
    There(bool),
}

const KINDS: [&str; 4] = ["approval", "completion", "stuck", "idle"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..12_u8, 0..KINDS.len()).prop_map(|(c, k)| Step::Take(c, k)),
        2 => (0..12_u8).prop_map(Step::Withdraw),
        3 => (0..4_000_i64).prop_map(Step::Pass),
        1 => (0..7_200_000_i64).prop_map(Step::Pass),
        4 => Just(Step::Wake),
        1 => any::<bool>().prop_map(Step::There),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #[test]
    fn any_input_keeps_the_rate_limit_quiet_hours_and_debounce(steps in steps(), per_minute in 1..6_u32, night in any::<bool>()) {
        let quiet = if night { at_night().quiet } else { Quiet::default() };
        let mut planner = Planner::new(NotifySettings { per_minute, quiet: quiet.clone(), ..settings(&["d", "e"]) }, []);
        let (mut now, mut there) = (20 * 3_600_000_i64, false);
        // For each existing cause, when it was raised, and on which channels it was sent since.
        let mut raised: BTreeMap<String, (i64, BTreeSet<String>)> = BTreeMap::new();
        let mut sent: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        let mut all = steps;
        // In the end the user is away and the quiet hours are over.
        all.extend([Step::There(false), Step::Pass(12 * 3_600_000)]);
        all.extend(std::iter::repeat_n(Step::Wake, 80));
        for step in all {
            match step {
                Step::Take(cause, kind) => {
                    let cause = cause.to_string();
                    let taken = planner.submit(notice(&cause, KINDS[kind]), at(now));
                    if taken == NoticeOutcome::New {
                        prop_assert!(raised.insert(cause, (now, BTreeSet::new())).is_none());
                    } else if taken == NoticeOutcome::Off {
                        raised.remove(&cause);
                    }
                }
                Step::Withdraw(cause) => {
                    planner.withdraw(&cause.to_string());
                    raised.remove(&cause.to_string());
                }
                Step::Pass(ms) => now += ms,
                Step::Wake => now = planner.next_deadline().map_or(now, |at| at.as_millisecond().max(now)),
                Step::There(is) => there = is,
            }
            let presence = |_: &Notice| if there { Presence::AtTerminal } else { Presence::Away };
            for message in planner.due(at(now), &presence) {
                prop_assert!(!there, "told while the user was there");
                prop_assert!(quiet.until(at(now)).is_none(), "told in quiet hours");
                let times = sent.entry(message.channel.clone()).or_default();
                times.push(now);
                let minute = times.iter().filter(|t| now - **t < 60_000).count();
                prop_assert!(minute <= per_minute as usize, "{} in a minute", minute);
                prop_assert!(message.notices.len() == 1 || message.form != MessageForm::Single);
                for cause in message.causes() {
                    let told = raised.get_mut(&cause);
                    prop_assert!(told.is_some(), "{} was withdrawn", cause);
                    let (since, channels) = told.unwrap();
                    prop_assert!(now - *since >= 300, "{} within its debounce", cause);
                    prop_assert!(channels.insert(message.channel.clone()), "{} twice", cause);
                }
            }
            // A cause that was dropped because the user was present no longer exists.
            if there {
                raised.retain(|cause, (_, told)| !told.is_empty() || planner.open.contains_key(cause));
            }
            if let Some(deadline) = planner.next_deadline() {
                prop_assert!(deadline.as_millisecond() > now, "a deadline in the past");
            }
        }
        prop_assert_eq!(planner.waiting(), 0);
        for (cause, (_, channels)) in raised {
            prop_assert_eq!(channels.len(), 2, "{} was lost", cause);
        }
    }
}
