//! Settings that no user would write: random values in random layouts.

use proptest::{collection::vec, prelude::*};

use super::*;

/// A value, and random numbers for its layout.
#[derive(Debug, Clone)]
enum Made {
    Word(&'static str),
    Array(Vec<Made>),
    Object(Vec<(String, Made)>),
}

fn any_value() -> impl Strategy<Value = Made> {
    let word = prop::sample::select(vec![
        "null",
        "true",
        "-0",
        "1e400",
        "12345678901234567890",
        "\"\"",
        "\"// no\"",
        "\"/* \\\" */\"",
        "\"é \\ud83d\\ude80\"",
        "\"a,]}\"",
    ]);
    word.prop_map(Made::Word).prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Made::Array),
            vec(inner, 0..3).prop_map(|values| named(&["hooks", "command", "Stop"], values)),
        ]
    })
}

fn named(names: &[&str], values: Vec<Made>) -> Made {
    Made::Object(names.iter().map(|name| (*name).to_owned()).zip(values).collect())
}

fn any_group() -> impl Strategy<Value = Made> {
    let handlers = vec(
        prop_oneof![
            Just(named(&["type", "command"], vec![Made::Word("\"command\""), Made::Word("\"theirs # hook\"")])),
            any_value(),
        ],
        0..3,
    );
    (handlers, any::<bool>()).prop_map(|(handlers, matcher)| {
        let mut members = vec![("hooks".to_owned(), Made::Array(handlers))];
        if matcher {
            members.insert(0, ("matcher".to_owned(), Made::Word("\"Bash\"")));
        }
        Made::Object(members)
    })
}

fn any_settings() -> impl Strategy<Value = Made> {
    let groups = vec(prop_oneof![3 => any_group(), 1 => any_value()], 0..3).prop_map(Made::Array);
    let events = prop::sample::subsequence(vec!["Stop", "Other", "PreToolUse", "SessionEnd"], 0..=4);
    let hooks = (events, vec(groups, 4)).prop_map(|(events, groups)| named(&events, groups));
    (vec(any_value(), 0..3), prop::option::of(hooks), 0..3_usize).prop_map(|(values, hooks, at)| {
        let mut members: Vec<_> = ["a", "b", "c"].map(str::to_owned).into_iter().zip(values).collect();
        if let Some(hooks) = hooks {
            members.insert(at.min(members.len()), ("hooks".to_owned(), hooks));
        }
        Made::Object(members)
    })
}

struct Layout<'d> {
    dice: std::iter::Cycle<std::slice::Iter<'d, u8>>,
    spaces: &'static [&'static str],
    trailing: bool,
    out: String,
}

/// Whitespace a user might write between two tokens.
const WILD: &[&str] = &["", " ", "\n", "\n\t", "  \n    ", " /* , ] */ ", "// it's \" [\n", " // x\n  ", "/**//**/"];
const PLAIN: &[&str] = &["", " ", "\n", "\n  ", "\t"];
const CRLF: &[&str] = &["\r\n", "\r\n  ", " // x\r\n", " "];

impl Layout<'_> {
    fn roll(&mut self) -> usize {
        usize::from(*self.dice.next().unwrap())
    }

    fn space(&mut self) {
        let space = self.spaces[self.roll() % self.spaces.len()];
        self.out += space;
    }

    fn value(&mut self, value: &Made) {
        match value {
            Made::Word(word) => self.out += word,
            Made::Array(items) => {
                let items: Vec<_> = items.iter().map(|item| (None, item)).collect();
                self.block(['[', ']'], &items);
            }
            Made::Object(members) => {
                let members: Vec<_> = members.iter().map(|(name, value)| (Some(name.as_str()), value)).collect();
                self.block(['{', '}'], &members);
            }
        }
    }

    fn block(&mut self, [open, close]: [char; 2], members: &[(Option<&str>, &Made)]) {
        self.out.push(open);
        for (index, (name, value)) in members.iter().enumerate() {
            self.space();
            if let Some(name) = name {
                self.out += &format!("\"{name}\"");
                self.space();
                self.out.push(':');
                self.space();
            }
            self.value(value);
            self.space();
            if index + 1 < members.len() || self.trailing && self.roll().is_multiple_of(2) {
                self.out.push(',');
                self.space();
            }
        }
        self.out.push(close);
    }
}

fn lay_out(made: &Made, dice: &[u8], spaces: &'static [&'static str], trailing: bool) -> String {
    let mut layout = Layout { dice: dice.iter().cycle(), spaces, trailing, out: String::new() };
    layout.space();
    layout.value(made);
    layout.space();
    layout.out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, ..ProptestConfig::default() })]

    #[test]
    fn install_and_uninstall_restore_any_settings_text(made in any_settings(), dice in vec(any::<u8>(), 1..64), kind in 0..5_usize) {
        let (provider, spaces, trailing) = match kind {
            0 => (Provider::Claude, WILD, true),
            1 => (Provider::Gemini, WILD, false),
            2 => (Provider::Claude, CRLF, true),
            3 => (Provider::Gemini, PLAIN, true),
            _ => (Provider::Codex, PLAIN, false),
        };
        let text = lay_out(&made, &dice, spaces, trailing);
        let keep = settings::empty_containers(&text, settings::dialect(provider));
        let line = command(PROGRAM).line(provider).unwrap();
        let installed = settings::install(&text, provider, &line, &catalogue(provider)).unwrap();
        prop_assert_eq!(without_ours(Tree::of(&installed)), without_ours(Tree::of(&text)), "{}", installed);
        prop_assert!(is_subsequence(&text, &installed), "{}", installed);
        prop_assert_eq!(ours_in(&Tree::of(&installed)).len(), catalogue(provider).len());
        prop_assert_eq!(&settings::install(&installed, provider, &line, &catalogue(provider)).unwrap(), &installed);
        let stripped = settings::strip(&installed, settings::dialect(provider), &keep).unwrap();
        prop_assert_eq!(stripped, text, "{}", installed);
    }
}
