//! Finds statements about checks in an agent's last message: "all 297 tests pass", "committed and pushed".
//!
//! The grammar is closed and English. A sentence that hedges, negates, plans, asks or speaks of other people's work
//! states nothing, and neither do code blocks, block quotes and quoted words. A sentence that discloses a gap ("not run
//! again since the last edit") counts as a disclosure about its subject.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use events::{CheckClass, ClaimSubject};
use regex::{Captures, Regex, RegexBuilder};

use crate::receipt;

/// Maximum number of lines read, from the end.
const LINES: usize = 400;
/// Longest line read, bytes.
const LINE_BYTES: usize = 2_000;
/// Size of the cache of each pattern; by default it may grow to 2 MB.
const CACHE_BYTES: usize = 128 << 10;

/// What an agent says was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) about: ClaimSubject,
    /// The number of tests it names.
    pub(super) tests: Option<u32>,
    /// The sentence as written, without markup.
    pub(super) sentence: String,
    /// Whether it does not name the tests: "everything passes".
    pub(super) is_loose: bool,
}

/// What a message states, and which subjects it discloses gaps about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Statements {
    pub(super) made: Vec<Statement>,
    pub(super) disclosed: Vec<ClaimSubject>,
    /// Whether a sentence reports a failure that is still there.
    pub(super) reports_failure: bool,
}

/// A subject and the sentences that state its success. `mentions` finds every sentence about the subject.
struct Pattern {
    about: ClaimSubject,
    states: Regex,
    mentions: Regex,
}

struct Grammar {
    /// Words of which every statement contains one.
    words: AhoCorasick,
    /// "0 failures", "without errors": good news in negative words.
    clean: Regex,
    /// Words that look like a hedge and are none: "3 skipped" after a number that passed, "without it", "your fork".
    harmless: Regex,
    /// "still passes": good news.
    still: Regex,
    /// "They pass", "All sixteen pass": about the tests of a sentence before it.
    they_pass: Regex,
    /// Words for tests.
    tests: Regex,
    /// Separates the clauses of a sentence that state something each.
    clause: Regex,
    /// Words that make a clause state nothing.
    unsure: Regex,
    /// Words that disclose a gap.
    discloses: Regex,
    /// "Everything passes".
    loose: Regex,
    /// "2 tests fail": a failure.
    fails: Regex,
    /// "Fixed the failing test": a failure that is over.
    repaired: Regex,
    /// "10 of 12", "39/41".
    share: Regex,
    /// Words about what programs commit: transactions.
    transactional: Regex,
    /// Words about what programs push, publish and merge: events, values.
    technical: Regex,
    /// A heading or an introduction of things that are not done.
    planned: Regex,
    /// "They were not run again": a gap about whatever was stated.
    reruns: Regex,
    quoted: Regex,
    number: Regex,
    patterns: Vec<Pattern>,
}

static GRAMMAR: LazyLock<Option<Grammar>> = LazyLock::new(|| Grammar::new().ok());

/// Stands for inline code that is not a check.
const CODE: &str = "«code»";
/// Stands for a quotation.
const QUOTE: &str = "«quote»";
/// Stands for the absence of failures.
const CLEAN: &str = "«clean»";
/// Stands for the absence of type errors.
const TYPES_CLEAN: &str = "types «clean»";
/// Stands for the absence of warnings of a linter.
const LINT_CLEAN: &str = "lint «clean»";

/// Compiles a pattern. Its word boundaries are those of ASCII, which are much faster.
fn regex(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&pattern.replace(r"\b", r"(?-u:\b)")).dfa_size_limit(CACHE_BYTES).build()
}

impl Grammar {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        // What may stand between a subject and "pass".
        let filler = r"(?:[\s,:–—✅✓✔()/\-]|\d[\d,]*|are|is|all|now|also|again|have|has|and|run|ran|in|of|the|project|suite|currently|completely|successfully|they|it|too|for|which|both|existing|them|doctests|integration|unit|tests|shows?|reports?|«clean»|«code»)*";
        let passes = r"(?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?|succeeding)\b";
        let good = r"(?:pass(?:es|ed|ing)?\b|clean(?:ly)?\b|green\b|succeed(?:s|ed)?\b|successful(?:ly)?\b|happy\b|satisfied\b|quiet\b|silent\b|fine\b|goes? through\b|went through\b|works\b|«clean»|✅|✓|✔)";
        // What a tool does before it is good: "reports no problems".
        let tool = r"(?:['’]s\s+(?:verdict|output|report|result))?(?:\s*:)?(?:\s+(?:is|are|now|also|all|checks?|has|reports?|runs?|shows?|finds?|found|gives?|prints?|comes back|came back|ended|completes?|completed|exits?|finished))*\s*[:–—]?\s*";
        // Who did it, or nothing: the sentence begins with the verb.
        let by_agent = r"(?:^|[,;:–—✅✓✔]\s*|\b(?:i(?:['’]ve)?|we(?:['’]ve)?|and|then|changes?|everything|work|it|fix|fixes|all|files|code|commits?|branch)\s+)(?:(?:have|has|are|is|was|were|been|now|also|all|both|just|successfully)\s+)*";
        let was = r"\b(?:is|are|has been|have been|was|were|got)\s+(?:(?:now|also|all|both)\s+)*";
        let end = r"(?:$|[,.;:–—()✅✓✔]|and\b";
        let pattern = |about, states: String, mentions: &str| -> Result<Pattern, regex::Error> {
            Ok(Pattern { about, states: regex(&states)?, mentions: regex(mentions)? })
        };
        Ok(Self {
            words: AhoCorasick::builder().ascii_case_insensitive(true).build([
                "pass", "green", "succe", "clean", "✅", "✓", "✔", "type", "compil", "build", "commit", "pushed",
                "merged", "deployed", "published", "done", "complete", "finished", "checked off", "lint", "clippy", "ruff",
                "0 fail", "no fail", "zero fail", "no error", "0 error", "zero error", "mypy", "tsc", "pyright", "ticked off",
                "nothing to", "finds nothing", "found nothing", "reports nothing", "works",
            ])?,
            clean: regex(
                r"\bnone\s+failed\b|\b(?:finds?|found|has|had|reports?)\s+nothing(?:\s+(?:more\s+)?to\s+(?:complain\s+about|say|report|fix))?(?:\s+(?:any\s?more|now))?\s*(?:$|,)|\b(?:(?:with|and)\s+)?(?:0|zero|no|without(?:\s+any)?)\s+(?:(?:test|type|typescript|mypy|lint|clippy|eslint|new|compile|compilation|build|remaining)\s+)?(?:fail(?:ures?|ed|ing|s)?|errors?|errored|warnings?|issues?|regressions?|problems?|complaints?|violations?|offenses?|diagnostics|findings)\b(?:\s*(?:,|or|and)\s*(?:(?:0|zero|no)\s+)?(?:fail(?:ures?|ed|ing|s)?|errors?|errored|warnings?|issues?|skipped|ignored)\b)*",
            )?,
            harmless: regex(
                r"\bnext\.(js)\b|,?\s*(?:and\s+)?\b\d+\s+(?:skipped|ignored|pending)\b|\bwithout (?:it|them|that)\b|,?\s*\bincluding\s+(?:the|those|all)\b.*$|\byour( (?:fork|branch|repo|repository|remote|commits?|changes)\b)",
            )?,
            still: regex(r"\bstill\s+(pass|compil|build|green|clean|succe|type|work)")?,
            they_pass: regex(
                r"^(?:they|both|all(?:\s+of\s+them|\s+\d+|\s+(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty))?)\s+(?:now\s+|all\s+)*pass(?:ed)?$",
            )?,
            tests: regex(r"\b(?:tests?|specs?|test cases|suite)\b")?,
            clause: regex(r"\s[–—]\s|;\s+|,\s+so\s+|,\s+with\s+|,?\s+and\s+(?:we|you)\s+")?,
            unsure: regex(
                r"(?:n't|n’t|'ll|’ll|\?$)|❌|✗|✘|\b(?:exception of|ignoring|excluding|excluded|besides|goal|target state|wish|mistake|sorry|criteria|criterion|in theory|in my head|by inspection|to my knowledge|as far as i|after merging|on merge|old version|yesterday['’]s|automatically|untested)\b|\b(?:not|no|never|without|neither|nor|none|nothing|nobody|should|would|could|can|cannot|may|might|must|will|shall|if|when|whenever|once|until|unless|before|assuming|provided|expect(?:s|ed)?|ensur(?:e|es|ed|ing)|make sure|makes sure|verif(?:y|ies)|confirm that|so that|in order to|needs?|needed|want(?:s|ed)?|please|let me|let's|let us|let’s|going to|plan(?:s|ned)?|next|later|try|tries|trying|attempt(?:s|ed|ing)?|probably|likely|presumably|apparently|according|seems?|appears?|hopefully|believe|think|suspect|assume|except|other|apart from|aside from|but|however|although|though|still|yet|fail(?:s|ed|ing|ures?)?|errors?|broken|flaky|skip(?:s|ped)?|partial(?:ly)?|some|most|almost|mostly|many|only|rest|previous(?:ly)?|earlier|last time|already|had|used to|your|their|his|upstream|ci|pipeline|actions|workflow|example|instance|such as|unverified|claims?|claimed|says?|said|reports? that|reported|pre-existing|baseline|ready to|to (?:run|commit|push|merge|deploy|build|test|make|get|have|keep)|make|makes|keep|keeps|get|gets|wait|waits|waiting|remaining|todo|pending|subagent|sub-agent|helper|agent)\b",
            )?,
            discloses: regex(
                r"(?:n't|n’t|\bnot|\bnever|\bunable to|\bcannot)\b.{0,30}\b(?:re-?run|re-?ran|run|ran|running|test(?:ed)?|verif(?:y|ied)|check(?:ed)?|commit(?:ted)?|push(?:ed)?|build|built|compiled?|deploy(?:ed)?|merged?|pass(?:es|ed)?|since)\b|\b(?:flaky|timed out|bypass(?:ed|ing)?|no-verify|skipp(?:ed|ing)|before (?:the|my|that|this)\b.{0,30}\b(?:edit|change|rename|fix|refactor|commit|step)|since the (?:last|final|latest)|predates?|(?:earlier|previous|last) (?:test )?run|pre-existing|not yet)\b",
            )?,
            loose: regex(
                r"^(?:(?:now|and)\s+)?(?:everything|all checks|all of it|test results?\s*:?\s*all|all)\s+(?:is\s+|are\s+|now\s+)*(?:pass(?:es|ed|ing)?|green)$",
            )?,
            fails: regex(
                r"\b(?:still|now|which|that|tests?|specs?|suites?|one|two|three|four|five|\d+|hook|commit|push|build|lint|check|they|these|it)\s+(?:\w+\s+)?(?:fail(?:s|ed|ing|ures?)?|broken|red)\b|\btests?\s+(?:don['’]t|do not|doesn['’]t)\b|(?::|→|\|)\s*(?:❌|✗|fail(?:s|ed|ing)?\b)|❌|\b(?:failures?|failing tests?)\s+(?:in|is|are|of|on)\b|\b(?:is|are)\s+(?:still\s+|also\s+)?(?:broken|failing|red)\b",
            )?,
            repaired: regex(
                r"\b(?:fix(?:ed|es)?|repaired|resolved|previously|formerly|originally|before|had|was|were|used to|no longer|now\s+(?:pass|work|succeed|fixed)|including)\b",
            )?,
            share: regex(r"\b(\d[\d,]*)\s*(?:/|(?:out\s+)?of(?:\s+the)?)\s*(\d[\d,]*)\b")?,
            transactional: regex(r"\b(?:transactions?|offsets?|rows?|records?|database|db|atomically|batch(?:es)?)\b")?,
            technical: regex(
                r"\b(?:transactions?|offsets?|events?|messages?|kafka|queues?|bus|topics?|rows?|records?|config(?:uration)?s?\s+files?|values?|settings|zones?|manifest|arrays?|objects?|dicts?|dictionary|styles?|defaults?|options?|batch(?:es)?|cells?|columns?|headers?|intervals?|ranges?|icons?|notifications?|articles?|feeds?|posts?|comments?|orders?)\b",
            )?,
            planned: regex(
                r"\b(?:next|to[ -]?dos?|still to do|remain(?:s|ing)|left to do|criteria|criterion|definition of done|done when|counts as done|checklist|goals?|target state|wish(?:es)?|requirements?|before (?:the )?(?:release|merg|ship)|workflow|pipeline|ci jobs?|jobs|states|new values|options|plan|planned|how to|follow-?ups?|expected|should)\b",
            )?,
            reruns: regex(
                r"(?:n't|n’t|\bnot|\bnever)\b.{0,40}\b(?:re-?run|rerun|re-?ran|run again|run since|tested since|re-?tested|re-?checked|re-?verified|not since)\b|\bnot since\b|\b(?:untested|unverified|unchecked)\b|\b(?:afterwards?|after that|subsequent(?:ly)?|since then)\b.{0,60}\b(?:chang|edit|renam|touch|updat|adjust|tweak)\w*|\b(?:later|subsequent)\s+(?:\w+\s+){0,2}(?:change|edit|rename|tweak|commit)\b",
            )?,
            quoted: regex(r#""[^"\n]{1,200}"|“[^”\n]{1,200}”|‘[^’\n]{2,200}’"#)?,
            number: regex(
                r"\b(\d[\d,]{0,8})(?:\s*/\s*\d[\d,]{0,8}|\s+(?:out\s+)?of\s+\d[\d,]{0,8})?\s+(?:[a-z-]+\s+){0,2}(?:tests?|specs?|examples|passed|passing|pass)\b",
            )?,
            patterns: vec![
                pattern(
                    ClaimSubject::Tests,
                    format!(
                        r"\b(?:tests|test suite|test cases|specs|suite|(?:every|each|the|regression)\s+(?:(?:[\w-]+)\s+)?(?:test|spec)|vitest|jest|mocha|pytest|rspec|phpunit|ctest|nextest|ava|bats|minitest|exunit)\b{filler}{passes}|\b\d[\d,]*\s*(?:/\s*\d[\d,]*\s*)?(?:tests\s+)?(?:passed|passing|pass)\b|\b(?:passed|passing)\s+(?:all\s+)?\d[\d,]*\s+tests\b|\b\d[\d,]*\s+(?:tests|examples|specs|scenarios)\s*,?\s*«clean»|\beverything(?:['’]s|\s+is)\s+green\b|«tests»{tool}{good}|\btests?\s*:?\s*[✅✓✔]|[✅✓✔]\s*(?:all\s+)?tests\s*$|\btests\s*:?\s*«clean»"
                    ),
                    r"\b(?:tests?|specs?|suite|passing|passed)\b|«tests»",
                )?,
                pattern(
                    ClaimSubject::Build,
                    format!(
                        r"\b(?:project|code|crate|workspace|app|application|everything|it|solution|package|site|examples|image|bundle|frontend|backend|server|client|library)\s+(?:now\s+|also\s+|all\s+)*(?:builds?|compiles?|compiled)\b(?:\s+(?:cleanly|successfully|fine|and\b.*|in\b.*))?\s*(?:«clean»)?|\b(?:build|compilation)\b{filler}{good}|\bcompiles\s+(?:cleanly|successfully|«clean»)|\bthe\s+(?:[\w.«»-]+\s+){{1,2}}(?:builds|compiles)\s*(?:$|[.,;])|\bbuilds\s+go\s+through\b|«build»{tool}{good}"
                    ),
                    r"\b(?:builds?|built|compil\w*)\b|«build»",
                )?,
                pattern(
                    ClaimSubject::Types,
                    format!(
                        r"\b(?:type[ -]?check(?:s|ing|er)?|types|mypy|tsc|pyright|dialyzer|sorbet)\b(?:\s+--\w+)?{tool}{good}|\b(?:project|code|package|crate|module|library|app|workspace|everything|it)\s+(?:now\s+)?type-?checks\b|«types»{tool}{good}"
                    ),
                    r"\b(?:type[ -]?check\w*|types|typing|mypy|tsc)\b|«types»",
                )?,
                pattern(
                    ClaimSubject::Lint,
                    format!(
                        r"\b(?:lint(?:er|ing|ers)?|clippy|eslint|rubocop|credo|ruff|golangci-lint|flake8|pylint)\b{tool}{good}|\blints\s+clean\b|«lint»{tool}{good}"
                    ),
                    r"\b(?:lint\w*|clippy|eslint|rubocop|credo|ruff)\b|«lint»",
                )?,
                pattern(
                    ClaimSubject::Commit,
                    format!(
                        r"(?:{by_agent}|{was})committed\b\s*{end}|«|(?:as|in|on|with|it|them|the|all|everything|changes|successfully|locally|under)\b|to\s+(?:the\s+)?(?:main|master|git|branch|repo|repository|«code»))|\b(?:created|made)\s+(?:a|the|one)\s+commit\b|\bcommit\s+«code»\s+(?:created|made)\b"
                    ),
                    r"\b(?:commit(?:s|ted|ting)?|uncommitted)\b",
                )?,
                pattern(
                    ClaimSubject::Push,
                    format!(
                        r"(?:{by_agent}|{was})(?:force-)?pushed\b(?:\s+(?:it|them|everything|all|the|both|changes|commits?|branch|successfully|«code»))*\s*{end}|with\b|to\s+(?:the\s+)?(?:origin|remote|fork|github|gitlab|main|master|branch|repo|repository|«code»))"
                    ),
                    r"\b(?:push(?:ed|es|ing)?|unpushed)\b",
                )?,
                pattern(
                    ClaimSubject::Merge,
                    format!(
                        r"{by_agent}(?:squash-|rebase-)?merged\b(?:\s+(?:it|the|this|pr|pull|request|branch|«code»|successfully|#?\d+))*\s*{end}|(?:in)?to\s+(?:main|master|develop|«code»))|{was}(?:squash-|rebase-)?merged\s+into\s+(?:main|master|develop|trunk)\b|«code»\s+{was}merged\s+into\s+«code»|(?:\b(?:pr|pull request)\s+(?:«code»\s+|#?\d+\s+)?|#\d+\s+)(?:is\s+|was\s+|has been\s+|now\s+)*(?:squash-|rebase-)?merged\b"
                    ),
                    r"\bmerg(?:e|es|ed|ing)\b",
                )?,
                pattern(
                    ClaimSubject::Deploy,
                    format!(
                        r"{by_agent}(?:deployed|published)\b(?:\s+(?:it|the|app|site|version|successfully|«code»|v?\d[\d.]*))*\s*{end}|to\s+(?:production|staging|prod|npm|pypi|crates\.io|«code»))|{was}(?:re)?(?:deployed|published)\b"
                    ),
                    r"\b(?:deploy\w*|publish\w*)\b",
                )?,
                pattern(
                    ClaimSubject::Todo,
                    r"\b(?:all|every|both)\s+(?:of\s+)?(?:the\s+)?(?:(?:\d+|two|three|four|five|six|seven|eight|nine|ten)\s+)?(?:todos?|to-dos?|to-do items|todo items|tasks?|items?|steps?)\b(?:\s+(?:on|in|of)\s+(?:the|my)\s+(?:to-do\s+|todo\s+)?(?:list|plan))?(?:\s+(?:is|are|has|have|been|were|now))*\s*(?:done|completed?|finished|checked off|ticked off)\b".to_owned(),
                    r"\b(?:todos?|to-dos?|tasks|items|steps)\b",
                )?,
            ],
        })
    }

    fn read(&self, text: &str) -> Statements {
        let mut found = Statements::default();
        let sentences = sentences(text, &self.planned);
        for (at, sentence) in
            sentences.iter().enumerate().filter(|(_, sentence)| self.words.is_match(sentence.as_str()))
        {
            let plain = self.plain(sentence);
            if self.they_pass.is_match(&plain) && self.tests.is_match(&sentences[at.saturating_sub(1)].to_lowercase()) {
                let sentence = without_markup(sentence, None);
                let statement = Statement { about: ClaimSubject::Tests, tests: None, sentence, is_loose: false };
                if found.made.iter().all(|made| made.about != ClaimSubject::Tests) {
                    found.made.push(statement);
                }
                continue;
            }
            for clause in
                self.clause.split(&plain).filter(|clause| !self.unsure.is_match(clause) && !self.is_part(clause))
            {
                let is_of_program = |about| match about {
                    ClaimSubject::Commit => self.transactional.is_match(clause),
                    ClaimSubject::Push | ClaimSubject::Merge | ClaimSubject::Deploy => self.technical.is_match(clause),
                    ClaimSubject::Tests
                    | ClaimSubject::Build
                    | ClaimSubject::Types
                    | ClaimSubject::Lint
                    | ClaimSubject::Todo => false,
                };
                for pattern in self.patterns.iter().filter(|pattern| pattern.states.is_match(clause)) {
                    if is_of_program(pattern.about) {
                        continue;
                    }
                    let tests = (pattern.about == ClaimSubject::Tests).then(|| self.number_of(clause)).flatten();
                    let sentence = without_markup(sentence, None);
                    let statement = Statement { about: pattern.about, tests, sentence, is_loose: false };
                    match found.made.iter_mut().find(|made| made.about == pattern.about) {
                        // Of several statements, the first that names a number counts.
                        Some(made) if made.tests.is_none() && tests.is_some() => *made = statement,
                        Some(_) => {}
                        None => found.made.push(statement),
                    }
                }
            }
        }
        let is_loose = |sentence: &&String| {
            let plain = self.plain(sentence);
            self.loose.is_match(&plain) && !self.unsure.is_match(&plain)
        };
        if found.made.iter().all(|made| made.about != ClaimSubject::Tests)
            && let Some(sentence) = sentences.iter().find(is_loose)
        {
            let sentence = without_markup(sentence, None);
            found.made.push(Statement { about: ClaimSubject::Tests, tests: None, sentence, is_loose: true });
        }
        let reports = |sentence: &String| {
            let plain = self.plain(sentence);
            self.fails.is_match(&plain) && !self.repaired.is_match(&plain)
        };
        found.reports_failure = !found.made.is_empty() && sentences.iter().any(reports);
        for pattern in &self.patterns {
            if found.made.iter().any(|made| made.about == pattern.about)
                && sentences.iter().any(|sentence| self.discloses(sentence, pattern))
            {
                found.disclosed.push(pattern.about);
            }
        }
        found
    }

    /// Whether a clause speaks of a part of the tests: "10 of 12 tests pass".
    fn is_part(&self, clause: &str) -> bool {
        self.share.captures_iter(clause).any(|share| {
            let number =
                |at: usize| share.get(at).and_then(|number| number.as_str().replace(',', "").parse::<u32>().ok());
            matches!((number(1), number(2)), (Some(part), Some(all)) if part < all)
        })
    }

    /// Whether a sentence discloses a gap about the subject of a pattern.
    fn discloses(&self, sentence: &str, pattern: &Pattern) -> bool {
        let plain = self.plain(sentence);
        self.reruns.is_match(&plain) || pattern.mentions.is_match(&plain) && self.discloses.is_match(&plain)
    }

    /// A sentence in lower case, with marks for code, quotations and good news in negative words.
    fn plain(&self, sentence: &str) -> String {
        let plain = without_markup(sentence, Some(self)).to_lowercase();
        let plain = self.quoted.replace_all(&plain, QUOTE);
        let is_clean = |found: &Captures<'_>| match &found[0] {
            found if [" type", "mypy"].iter().any(|word| found.contains(word)) => TYPES_CLEAN,
            found if ["lint", "clippy"].iter().any(|word| found.contains(word)) => LINT_CLEAN,
            _ => CLEAN,
        };
        let plain = self.clean.replace_all(&plain, is_clean);
        let plain = self.harmless.replace_all(&plain, "$1$2");
        self.still.replace_all(&plain, "$1").into_owned()
    }

    fn number_of(&self, plain: &str) -> Option<u32> {
        let mut numbers = self.number.captures_iter(plain).filter_map(|found| found.get(1));
        let only = numbers.next()?;
        // Several numbers are those of several suites.
        numbers.next().is_none().then(|| only.as_str().replace(',', "").parse().ok()).flatten()
    }
}

/// What a message states about checks.
pub(super) fn statements(text: &str) -> Statements {
    match &*GRAMMAR {
        Some(grammar) if grammar.words.is_match(text) => grammar.read(text),
        Some(_) | None => Statements::default(),
    }
}

/// The sentences of a message, without code blocks, block quotes and lists of what is not done.
fn sentences(text: &str, planned: &Regex) -> Vec<String> {
    let mut fence: Option<&str> = None;
    // Whether the last heading or introduction announces what is not done, and whether a list has begun after it.
    let (mut is_planned, mut in_list, mut after_blank) = (false, false, false);
    let mut out = Vec::new();
    let skipped = text.lines().count().saturating_sub(LINES);
    for line in text.lines().skip(skipped) {
        let line = line.trim();
        let line = &line[..line.floor_char_boundary(LINE_BYTES)];
        let mark = ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => {
                fence = Some(mark);
                continue;
            }
            (Some(open), mark) => {
                if mark == Some(open) {
                    fence = None;
                }
                continue;
            }
            (None, None) => {}
        }
        let item = line.trim_start_matches(['-', '*', '+', ' ']);
        let is_unchecked = ["[ ]", "⬜", "☐", "◻"].iter().any(|mark| item.starts_with(mark));
        let is_item = line.starts_with(['-', '*', '+', '•', '|']) && !line.starts_with("**") || is_list_number(line);
        let is_heading = line.starts_with('#') || line.ends_with(':') || line.ends_with(":**") || is_bold(line);
        if is_heading && !is_item {
            (is_planned, in_list) = (planned.is_match(&line.to_lowercase()), false);
        } else if is_planned && !is_item && !line.is_empty() && (in_list || after_blank) {
            // A paragraph after the list.
            is_planned = false;
        }
        in_list |= is_item;
        after_blank = line.is_empty();
        if is_planned {
            continue;
        }
        if line.is_empty() || line.starts_with(['>', '$']) || is_unchecked {
            continue;
        }
        let mut from = 0;
        let mut in_code = false;
        let bytes = line.as_bytes();
        for (at, byte) in line.bytes().enumerate() {
            in_code ^= byte == b'`';
            let ends = matches!(byte, b'.' | b'!' | b'?') && !in_code;
            // A full stop within a number or a file name is followed by no blank.
            if ends && bytes.get(at + 1).is_none_or(|next| matches!(next, b' ' | b'*' | b'_' | b')')) {
                out.push(line[from..=at].to_owned());
                from = at + 1;
            }
        }
        out.push(line[from..].to_owned());
    }
    out.retain(|sentence| sentence.chars().any(char::is_alphabetic));
    out
}

/// A sentence without Markdown. With a grammar, inline code is replaced by the kind of check it is.
fn without_markup(sentence: &str, grammar: Option<&Grammar>) -> String {
    let mut out = String::with_capacity(sentence.len());
    for (at, part) in sentence.split('`').enumerate() {
        let is_code = at % 2 == 1;
        match (is_code, grammar) {
            (true, Some(_)) => out.push_str(kind_of_code(part)),
            (true, None) | (false, _) => out.push_str(&part.replace("**", "").replace("__", "").replace('|', " ")),
        }
    }
    // The hashes of a heading, but not that of `#512`.
    let hashes = out.trim_start_matches('#');
    let out = if hashes.starts_with(' ') { hashes } else { out.as_str() };
    let out = out.trim_start_matches(|c: char| {
        matches!(c, '-' | '*' | '+' | '•' | ' ') || c.is_ascii_digit() && is_list_number(out)
    });
    out.trim_start_matches(['.', ')', ' ']).trim_end_matches(['.', '!', ';', ' ', '*', '_']).trim().to_owned()
}

/// Whether a line consists of bold text, as a heading.
fn is_bold(line: &str) -> bool {
    line.len() > 4 && line.starts_with("**") && line.ends_with("**") && line.matches("**").count() == 2
}

/// Whether a line begins with the number of a list item: `3. `.
fn is_list_number(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.starts_with(". ") || rest.starts_with(") ")
}

fn kind_of_code(code: &str) -> &'static str {
    match receipt::class_of_line(code) {
        Some(CheckClass::Tests) => "«tests»",
        Some(CheckClass::Build) => "«build»",
        Some(CheckClass::Types) => "«types»",
        Some(CheckClass::Lint) => "«lint»",
        Some(
            CheckClass::Format
            | CheckClass::Commit
            | CheckClass::Push
            | CheckClass::Merge
            | CheckClass::Deploy
            | CheckClass::Install,
        )
        | None => CODE,
    }
}
