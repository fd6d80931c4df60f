//! Properties that must be true for any bytes in any chunks.

use events::Provider;
use proptest::prelude::*;

use super::*;

fn observer(provider: Provider) -> Stage {
    Stage::sized(SIZE, provider, embedded())
}

/// Pieces of agents' output, whole and broken.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let whole = [
        "\x1b]0;✳ Claude Code\x07",
        "\x1b]0;◐ Claude Code\x07",
        "\x1b]2;✋  Action Required (x)\x1b\\",
        "\x1b]7501;state=working:app=codex\x1b\\",
        "\x1b]7501;state=blocked:app=codex:kind=permission\x1b\\",
        "\x1b[2J\x1b[H",
        "\x1b[?2026h",
        "\x1b[?2026l",
        "\x1b[?1049h",
        "\x1b[?1049l",
        " Do you want to proceed?\r\n ❯ 1. Yes\r\n   2. No\r\n\r\n Esc to cancel\r\n",
        "────────────────────────\r\n❯ \r\n────────────────────────\r\n  ? for shortcuts\r\n",
        "› 1. Yes (y)\r\n  2. No (esc)\r\n",
        "漢字\u{1f600}",
        "\x1b[6n\x1b[c",
        "\x07",
        "\x1b[3;9r",
        "\x1b[10S",
        "\x1b[5L",
        "\x1b[999;999H",
        "\x1b]9;note\x07",
        "\x1bP>|x\x1b\\",
        "plain text\r\n",
    ];
    prop_oneof![
        6 => prop::sample::select(whole.to_vec()).prop_map(|s| s.as_bytes().to_vec()),
        2 => prop::collection::vec(any::<u8>(), 0..40),
        1 => prop::sample::select(whole.to_vec()).prop_flat_map(|s| (0..s.len()).prop_map(move |n| s.as_bytes()[..n].to_vec())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_split_gives_the_same_picture_and_claim(
        pieces in prop::collection::vec(piece(), 1..30),
        cuts in prop::collection::vec(1_usize..60, 1..40),
        provider in prop::sample::select(vec![Provider::Claude, Provider::Codex, Provider::Gemini, Provider::Unknown]),
    ) {
        let bytes = pieces.concat();
        let (mut whole, mut split) = (observer(provider), observer(provider));
        whole.observer.output(&bytes, whole.at());
        let mut rest = &bytes[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (head, tail) = rest.split_at((*cut).min(rest.len()));
            split.observer.output(head, split.at());
            rest = tail;
        }
        let told: Vec<_> = [&mut whole, &mut split].map(|s| s.pass(10_000)).into();
        prop_assert_eq!(whole.observer.picture(), split.observer.picture());
        prop_assert_eq!(&told[0], &told[1]);
        prop_assert_eq!(whole.observer.restore(), split.observer.restore());
        prop_assert_eq!(whole.observer.take_replies(), split.observer.take_replies());
    }

    #[test]
    fn any_input_is_handled_without_a_panic_and_its_claim_explained(
        steps in prop::collection::vec((piece(), 0_i64..200, any::<u16>(), 0_u8..12), 1..40),
        provider in prop::sample::select(Provider::ALL.to_vec()),
    ) {
        let mut stage = observer(provider);
        for (bytes, wait, number, what) in steps {
            match what {
                0 => stage.observer.resize(Size { rows: number % 60, columns: number / 300 }, stage.at()),
                1 => stage.observer.skipped(number.into(), stage.at()),
                2 => stage.observer.input(&bytes, stage.at()),
                3 => stage.observer.set_provider(Provider::ALL[usize::from(number) % Provider::ALL.len()], stage.at()),
                _ => stage.observer.output(&bytes, stage.at()),
            }
            let told = stage.pass(wait);
            let claimed = told.iter().rev().find_map(|t| if let HostEvent::Claim(c) = t { Some(c.clone()) } else { None });
            let (picture, explained) = (stage.observer.picture(), stage.observer.explain());
            prop_assert_eq!(&picture.claim, &explained.claim);
            if let (Some(told), Some(now)) = (claimed, &picture.claim) {
                prop_assert_eq!((told.state, told.reason), (now.state, now.reason));
            }
            let chosen = explained.rules.iter().filter(|r| r.outcome == host_protocol::screen::RuleMatch::Chosen).count();
            prop_assert_eq!(chosen == 0, explained.kept || explained.claim.is_none());
            drop((stage.observer.repaint(), stage.observer.restore()));
        }
        prop_assert_eq!(stage.observer.explain().panics, 0);
    }
}
