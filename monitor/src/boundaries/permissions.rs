//! What a person allows again in a sentence. The grammar is open: a sentence that may allow something does.

use super::{
    acts::Verb,
    reader::{CHANGES, FILLERS, Reader, lists},
    sentences::{Sentence, Token},
};

/// Where a permission may begin.
const ALLOWS: &str = "\
    and|then|to|now|can|may|should|please|ahead|or|just|also|must|could|would|will|let's|lets|yes|ok|okay|\
    finally|still|safely|so|next|first|only|you|always|do|it's|start|begin|sure|free|afterwards|actually|\
    immediately|go";

/// What a sentence allows.
#[derive(Debug, Default)]
pub(super) struct Permissions {
    /// The verbs, with their targets.
    pub(super) verbs: Vec<(Verb, Option<String>)>,
    /// Files that the person asks to change.
    pub(super) files: Vec<String>,
    /// Whether the person asks for changes of files.
    pub(super) changes: bool,
    /// Whether everything is allowed: `go ahead`.
    pub(super) all: bool,
}

/// What a sentence allows. If it may allow something, it does.
pub(super) fn permissions(sentence: &Sentence, is_whole_prompt: bool) -> Permissions {
    let mut found = Permissions { all: is_consent(sentence, is_whole_prompt), ..Permissions::default() };
    let tokens = &sentence.tokens;
    let mut reader = Reader { tokens, at: 0 };
    reader.eat_all(FILLERS);
    let asks = matches!(reader.word(), "can" | "could" | "would" | "will") && reader.word_at(1) == "you";
    if sentence.is_question && !asks {
        return found;
    }
    let mut start = 0;
    for at in 0..=tokens.len() {
        let is_end = match tokens.get(at) {
            None | Some(Token::Sign(',' | ';' | ':' | '—' | '–' | '(' | ')' | '\n')) => true,
            Some(Token::Word(word, _)) => word == "but",
            Some(Token::Code(_) | Token::Sign(_)) => false,
        };
        if is_end {
            part(&tokens[start..at], &mut found);
            start = at + 1;
        }
    }
    found
}

/// The permissions in a part of a sentence.
fn part(tokens: &[Token], found: &mut Permissions) {
    let (mut is_negated, mut has_subject, mut changes, mut needs_no_word) = (false, false, false, false);
    let mut first = Reader { tokens, at: 0 };
    first.eat_all(FILLERS);
    let first = first.at;
    for at in 0..tokens.len() {
        let mut reader = Reader { tokens, at };
        let word = reader.word().to_owned();
        match word.as_str() {
            "not" | "never" | "no" | "without" | "don't" | "dont" | "shouldn't" | "mustn't" | "can't" | "cannot"
            | "won't" | "didn't" => {
                is_negated = true;
            }
            "forget" | "hesitate" | "longer" => is_negated = false,
            // `you don't need to ask before pushing`
            "ask" if is_negated => (is_negated, needs_no_word) = (false, true),
            "i" | "i'll" | "i'm" | "i'd" | "we" | "we'll" | "they" | "he" | "she" | "ci" => has_subject = true,
            "you" => has_subject = false,
            _ => {}
        }
        let previous = at.checked_sub(1).map(|at| Reader { tokens, at }.word().to_owned()).unwrap_or_default();
        let is_allowed = at == first || lists(ALLOWS, &previous) || needs_no_word && previous == "before";
        if is_negated || has_subject || !is_allowed {
            continue;
        }
        if lists(CHANGES, word.as_str()) {
            changes = true;
        }
        for verb in verbs_of(&mut reader) {
            let target = reader.attempt(|reader| {
                reader.object("commit|commits|branch|code|work|pr");
                reader.to()
            });
            found.verbs.push((verb, target.flatten()));
        }
    }
    found.changes |= changes;
    if changes {
        let paths = tokens.iter().filter_map(|token| match token {
            Token::Word(_, raw) | Token::Code(raw) => Some(raw.strip_prefix("./").unwrap_or(raw)),
            Token::Sign(_) => None,
        });
        let is_name = |path: &&str| !path.is_empty() && path.len() <= 200;
        found.files.extend(paths.filter(is_name).map(str::to_owned));
    }
}

/// The acts that a word may name. Some acts include others.
fn verbs_of(reader: &mut Reader<'_>) -> Vec<Verb> {
    use Verb::{
        Amend, Change, Commit, Delete, Deploy, ForcePush, Install, Merge, Migrate, OpenRequest, Publish, Push, Rebase,
        Run,
    };
    let word = reader.word().to_owned();
    let next = reader.word_at(1).to_owned();
    let verbs = match (word.as_str(), next.as_str()) {
        ("force", "push") | ("push", "--force" | "-f") | ("force-push", _) => vec![ForcePush, Push],
        ("push" | "pushing", _) => vec![Push],
        ("commit" | "committing", _) => vec![Commit],
        ("amend", _) => vec![Amend, Commit],
        ("squash", _) => vec![Rebase, Amend, Commit],
        ("rebase" | "rebasing", _) => vec![Rebase],
        ("merge" | "merging", _) => vec![Merge],
        ("deploy" | "deploying", _) => vec![Deploy, Publish],
        ("publish" | "publishing" | "release" | "releasing", _) => vec![Publish, Deploy, Push, Commit],
        ("ship" | "land", _) => vec![Push, Commit, Merge, OpenRequest, Deploy, Publish],
        ("install" | "installing" | "add", _) => vec![Install],
        ("migrate", _) => vec![Migrate],
        ("open" | "create" | "make" | "submit" | "raise" | "file", _) => {
            let words: Vec<&str> = (1..6).map(|distance| reader.word_at(distance)).collect();
            let names = |names: &[&str]| words.iter().any(|word| names.contains(word));
            if names(&["pr", "mr", "pull", "request"]) {
                vec![OpenRequest, Push, Commit]
            } else if names(&["commit", "commits"]) {
                vec![Commit]
            } else if names(&["release"]) {
                vec![Publish]
            } else {
                Vec::new()
            }
        }
        ("pr", _) => vec![OpenRequest, Push, Commit],
        ("run" | "execute" | "use", _) => vec![Run, Migrate],
        ("delete" | "remove" | "clean" | "drop", _) => vec![Delete],
        ("edit" | "touch" | "change" | "modify" | "update" | "rewrite" | "overwrite", _) => {
            // Without a file, every file may be meant.
            let object = next.as_str();
            let is_open = matches!(
                object,
                "" | "it"
                    | "them"
                    | "that"
                    | "this"
                    | "anything"
                    | "everything"
                    | "files"
                    | "freely"
                    | "any"
                    | "those"
                    | "these"
                    | "now"
            );
            if is_open { vec![Change] } else { Vec::new() }
        }
        _ => Vec::new(),
    };
    let is_two = matches!((word.as_str(), next.as_str()), ("force", "push") | ("push", "--force" | "-f"));
    reader.at += if is_two { 2 } else { 1 };
    verbs
}

/// Whether a sentence only agrees: `yes`, `looks good, go ahead`, `never mind`.
fn is_consent(sentence: &Sentence, is_whole_prompt: bool) -> bool {
    const WORDS: &str = "\
        yes|y|yep|yeah|yup|ok|okay|sure|go|ahead|do|it|please|proceed|for|lgtm|approved|now|looks|look|good|\
        great|perfect|thanks|thank|you|fine|sounds|ship|that|alright|and|granted|permission|reviewed|i|i've|\
        have|to|me|all|done|can|with|this|the|then|both|everything";
    const AGREES: &str = "yes|y|yep|yeah|yup|ok|okay|sure|good|perfect|fine|great|do|done";
    const STARTS: &str = "ahead|proceed|lgtm|approved|granted|ship|go";
    const WITHDRAWS: &str = "\
        never mind|nevermind|scratch that|ignore that|forget that|i take that back|ignore what i said|\
        forget what i said|disregard that|disregard what i said";
    let mut reader = Reader { tokens: &sentence.tokens, at: 0 };
    reader.eat_all("ok|okay|actually|oh|please");
    reader.eat_sign(&[',']);
    if reader.eat(WITHDRAWS) {
        return true;
    }
    if sentence.is_question {
        return false;
    }
    let words = || {
        sentence.tokens.iter().filter_map(|token| match token {
            Token::Word(word, _) => Some(word.as_str()),
            Token::Code(_) => Some("`"),
            Token::Sign(_) => None,
        })
    };
    let has = |list: &str| words().any(|word| lists(list, word));
    words().all(|word| lists(WORDS, word)) && (has(STARTS) || is_whole_prompt && has(AGREES))
}
