//! Trigger words, and the detector each one starts. One pass finds them all.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::{
    call, command, printed,
    rules::{KeyRule, RulesError},
    unescaped,
};

/// The detector that a trigger word starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detector {
    /// The rules with the word as a keyword: a range of `Triggers::rules`.
    Rules(usize, usize),
    /// The name of a setting around the word.
    Name,
    /// An address: `://`.
    Address,
    /// A block: `-----BEGIN `.
    Block,
    /// The body of a key, without its first line.
    Body,
    /// A web token: `eyJ`.
    WebToken,
    /// The token after a scheme: `Bearer `.
    Scheme,
    /// A header `Authorization`.
    Authorization,
    /// A header `Cookie`.
    Cookie,
    /// A command.
    Command,
    /// A line of `.pgpass`.
    Pgpass,
    /// Text piped into a program.
    Piped,
    /// The quoted text after the word.
    Quoted,
    /// A user and a password after the word.
    Pair,
    /// The arguments of a call.
    Call,
    /// The output of a command.
    Printed,
    /// Rows under columns.
    Rows,
    /// The values of a Kubernetes Secret.
    Manifest,
    /// The surroundings of an escape.
    Escape,
}

const NAMES: &[&str] = &[
    "pass",
    "pwd",
    "psw",
    "_pw",
    "pw=",
    "pw:",
    "secret",
    "token",
    "key",
    "auth",
    "cred",
    "creds",
    "sig",
    "salt",
    "hmac",
    "dsn",
    "otp",
    "jwt",
    "webhook",
    "connectionstring",
    "pepper",
    "csrf",
    "xsrf",
    "mnemonic",
    "passwort",
    "seed",
    "masterauth",
    "pin",
    "psk",
    "sessid",
    "sessionid",
    "sid=",
    "_session=",
    "_pat",
    "pat=",
    "_cookie",
    "code=",
];

/// The automaton of all trigger words.
#[derive(Debug)]
pub(crate) struct Triggers {
    automaton: AhoCorasick,
    /// The detector of each word, and the word itself if its case matters.
    looks: Vec<(Detector, Option<Box<[u8]>>)>,
    /// Indices of rules, by word.
    pub(crate) rules: Vec<usize>,
}

impl Triggers {
    pub(crate) fn new(rules: &[KeyRule]) -> Result<Self, RulesError> {
        let mut by_word: std::collections::BTreeMap<&str, Vec<usize>> = std::collections::BTreeMap::new();
        for (i, rule) in rules.iter().enumerate() {
            for word in &rule.keywords {
                by_word.entry(word).or_default().push(i);
            }
        }
        let mut words: Vec<&str> = Vec::new();
        let mut looks = Vec::new();
        let mut flat = Vec::new();
        for (word, of_word) in by_word {
            words.push(word);
            looks.push((Detector::Rules(flat.len(), flat.len() + of_word.len()), None));
            flat.extend(of_word);
        }
        // The second element is whether the case of the word matters.
        let calls: Vec<&str> = call::words().collect();
        let printing: Vec<&str> = printed::words().collect();
        let own: &[(Detector, bool, &[&str])] = &[
            (Detector::Call, false, &calls),
            (Detector::Printed, false, &printing),
            (Detector::Rows, false, &["values"]),
            (
                Detector::Manifest,
                true,
                &["kind: Secret", "\"kind\":\"Secret\"", "\"kind\": \"Secret\"", "\\\"kind\\\":\\\"Secret\\\""],
            ),
            (Detector::Escape, false, unescaped::WORDS),
            (Detector::Name, false, NAMES),
            (Detector::Address, false, &["://"]),
            (Detector::Block, true, &["-----BEGIN ", "-----END "]),
            (
                Detector::Body,
                true,
                &["b3BlbnNzaC1rZXktdjEA", "MIIEvQIBADAN", "MIIEpAIBAA", "MIIEowIBAA", "MIIJKQIBAA", "MIIJQwIBADAN"],
            ),
            (Detector::WebToken, true, &["eyJ"]),
            (Detector::Scheme, false, &["bearer ", "basic ", "token "]),
            (Detector::Authorization, false, &["authorization"]),
            (Detector::Cookie, false, &["cookie", "cookies", "curl -b", "--cookie"]),
            (Detector::Command, false, command::WORDS),
            (Detector::Pgpass, false, &[":5432:", ":*:", ":5433:", ":6432:", ":6543:", ":26257:", ":5439:"]),
            (
                Detector::Piped,
                true,
                &[
                    "sudo -S",
                    "sudo --stdin",
                    "chpasswd",
                    "--password-stdin",
                    "passwd --stdin",
                    "cryptsetup",
                    "kinit",
                    "secret put ",
                    "secret create ",
                    "secret set ",
                ],
            ),
            (
                Detector::Pair,
                false,
                &[
                    "login: ",
                    "logins: ",
                    "credentials: ",
                    "creds: ",
                    "login with ",
                    "log in with ",
                    "log in as ",
                    "sign in with ",
                ],
            ),
            (
                Detector::Quoted,
                false,
                &[
                    "identified by ",
                    "identified with mysql_native_password by ",
                    "with password ",
                    "password_hash by ",
                    "convertto-securestring ",
                ],
            ),
        ];
        for (look, exact, of_look) in own {
            for word in *of_look {
                words.push(word);
                looks.push((*look, exact.then(|| word.as_bytes().into())));
            }
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&words)?;
        Ok(Self { automaton, looks, rules: flat })
    }

    /// Calls `found` for every trigger word in the bytes, with its detector, start and end, in the order of the ends.
    pub(crate) fn each(&self, bytes: &[u8], mut found: impl FnMut(Detector, usize, usize)) {
        for hit in self.automaton.find_overlapping_iter(bytes) {
            let (look, exact) = &self.looks[hit.pattern().as_usize()];
            if exact.as_deref().is_none_or(|word| *word == bytes[hit.range()]) {
                found(*look, hit.start(), hit.end());
            }
        }
    }
}
