//! Parses a file of screen rules, checks names and compiles expressions. Errors name file, line and column.
//!
//! The format is documented in `adapters/terminal/rules/README.md`.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use events::{
    ApprovalKind, ChoiceAnswer, Confidence, Provider, Reason, State,
    fault::{Notation, in_words},
};
use regex::Regex;
use semver::VersionReq;
use serde::Deserialize;
use toml::Spanned;

use crate::screen::error::RuleError;

/// Maximum size of a compiled expression, in bytes: far more than a rule needs.
const MAX_EXPRESSION: usize = 1 << 20;

/// Maximum length of a chain of `like` references between dialogs.
const MAX_LIKES: usize = 8;

/// Regions that every screen has.
pub(crate) const BUILT_IN: [&str; 4] = ["title", "osc_state", "screen", "cursor"];

/// An expression, compiled on first use: a run needs the rules of only one agent.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) text: String,
    regex: OnceLock<Option<Regex>>,
}

impl Expression {
    /// The compiled expression. `None` if it is invalid, which the check of a user's file and the tests of the built-in
    /// files rule out.
    pub(crate) fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| compile(&self.text).ok()).as_ref()
    }
}

fn compile(text: &str) -> Result<Regex, regex::Error> {
    regex::RegexBuilder::new(text).size_limit(MAX_EXPRESSION).build()
}

/// One file of rules.
#[derive(Debug, Clone)]
pub(crate) struct RuleFile {
    pub(crate) name: String,
    pub(crate) provider: Provider,
    pub(crate) versions: VersionReq,
    pub(crate) version: Option<Pattern>,
    /// Finds the input line of a prompt.
    pub(crate) prompt: Option<Pattern>,
    pub(crate) regions: BTreeMap<String, Cut>,
    pub(crate) rules: Vec<ScreenRule>,
}

/// How a region is cut from the screen.
#[derive(Debug, Clone)]
pub(crate) enum Cut {
    /// The last non-blank lines.
    Last(usize),
    /// The lowest rows, blank or not, above the blank end of the screen.
    Bottom(usize),
    /// From the last line matching the first expression to the end, or to the next line matching the second.
    From(Arc<Expression>, Option<Arc<Expression>>),
    /// The match of an expression over several lines.
    Find(Arc<Expression>),
    /// The non-blank lines directly above another region.
    Above(RegionRef, usize),
}

/// A reference to a region, and its position in the file.
#[derive(Debug, Clone)]
pub(crate) struct RegionRef {
    pub(crate) name: String,
    /// Byte offset in the file, for error messages.
    pub(crate) at: usize,
}

/// An expression and the region it is matched against.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    pub(crate) place: RegionRef,
    /// Shared, to keep the caches of the compiled expression.
    pub(crate) regex: Arc<Expression>,
}

/// One rule.
#[derive(Debug, Clone)]
pub(crate) struct ScreenRule {
    pub(crate) name: String,
    pub(crate) priority: i64,
    pub(crate) state: State,
    pub(crate) reason: Option<Reason>,
    pub(crate) strength: Confidence,
    pub(crate) debounce_ms: i64,
    pub(crate) still_ms: i64,
    pub(crate) hold_ms: i64,
    pub(crate) keep_ms: i64,
    pub(crate) then: Option<Then>,
    pub(crate) all: Vec<Pattern>,
    pub(crate) any: Vec<Pattern>,
    pub(crate) none: Vec<Pattern>,
    pub(crate) dialog: Option<DialogRule>,
}

/// The state that follows when a rule no longer matches and no other does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Then {
    pub(crate) state: State,
    pub(crate) reason: Option<Reason>,
    pub(crate) after_ms: i64,
}

/// How a dialog is read.
#[derive(Debug, Clone)]
pub(crate) struct DialogRule {
    pub(crate) about: Option<ApprovalKind>,
    /// Tried in order; the text is the first group of the first match.
    pub(crate) question: Vec<Pattern>,
    /// Like `question`.
    pub(crate) subject: Vec<Pattern>,
    /// Matches one option: groups `label`, `cursor`, `digit`, `key`.
    pub(crate) options: Option<Pattern>,
    /// The dialog's own description of its keys: each must match before a key is pressed.
    pub(crate) names: Vec<Pattern>,
    /// Whether pressing a digit answers immediately.
    pub(crate) digits_answer: bool,
    /// Whether the options are side by side: a different background marks the cursor, which ← and → move.
    pub(crate) row: bool,
    /// The whole dialog, for its mark.
    pub(crate) whole: Option<RegionRef>,
    /// Whether lines below an option may belong to it.
    pub(crate) wraps: bool,
    /// The meaning of an option, by its label.
    pub(crate) answers: Vec<(ChoiceAnswer, Arc<Expression>)>,
    /// The agent versions in which capture may answer it with keys; empty if it may not.
    pub(crate) tested: Arc<[VersionReq]>,
    /// The key that denies regardless of the cursor.
    pub(crate) deny_key: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileForm {
    provider: Spanned<String>,
    versions: Option<Spanned<String>>,
    #[serde(default)]
    tested: Vec<Spanned<String>>,
    version: Option<PatternForm>,
    prompt: Option<PatternForm>,
    #[serde(default)]
    regions: BTreeMap<String, Spanned<RegionForm>>,
    #[serde(default)]
    dialogs: BTreeMap<String, DialogForm>,
    #[serde(default)]
    rules: Vec<RuleForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegionForm {
    last: Option<usize>,
    bottom: Option<usize>,
    from: Option<Spanned<String>>,
    to: Option<Spanned<String>>,
    find: Option<Spanned<String>>,
    above: Option<Spanned<String>>,
    lines: Option<usize>,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct PatternForm {
    r#in: Spanned<String>,
    has: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleForm {
    name: Spanned<String>,
    priority: i64,
    state: Spanned<String>,
    reason: Option<Spanned<String>>,
    strength: Option<Spanned<String>>,
    #[serde(default)]
    debounce_ms: u32,
    #[serde(default)]
    still_ms: u32,
    #[serde(default)]
    hold_ms: u32,
    #[serde(default)]
    keep_ms: u32,
    then: Option<ThenForm>,
    #[serde(default)]
    all: Vec<PatternForm>,
    #[serde(default)]
    any: Vec<PatternForm>,
    #[serde(default)]
    none: Vec<PatternForm>,
    dialog: Option<Spanned<DialogForm>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThenForm {
    state: Spanned<String>,
    reason: Option<Spanned<String>>,
    #[serde(default)]
    after_ms: u32,
}

#[derive(Deserialize, Clone, Default)]
#[serde(deny_unknown_fields)]
struct DialogForm {
    like: Option<Spanned<String>>,
    about: Option<Spanned<String>>,
    #[serde(default)]
    question: Vec<PatternForm>,
    #[serde(default)]
    subject: Vec<PatternForm>,
    options: Option<PatternForm>,
    #[serde(default)]
    names: Vec<PatternForm>,
    digits_answer: Option<bool>,
    row: Option<bool>,
    whole: Option<Spanned<String>>,
    wraps: Option<bool>,
    answers: Option<AnswersForm>,
    answerable: Option<bool>,
    deny_key: Option<Spanned<String>>,
}

#[derive(Deserialize, Clone, Default)]
#[serde(deny_unknown_fields, default)]
struct AnswersForm {
    allow_once: Vec<Spanned<String>>,
    allow_always: Vec<Spanned<String>>,
    deny: Vec<Spanned<String>>,
}

/// Reads a file. Only with `compile` are its expressions compiled and invalid ones reported. `tested` lists the
/// versions in which answering dialogs by keys was tested, for a file that names none.
pub(crate) fn read(name: &str, text: &str, compile: bool, tested: &[&str]) -> Result<RuleFile, RuleError> {
    let form: FileForm = toml::from_str(text)
        .map_err(|e| wrong(name, text, e.span().map_or(0, |span| span.start), in_words(e.message(), Notation::Toml)))?;
    let tested: Result<_, _> = tested.iter().map(|range| VersionReq::parse(range)).collect();
    let tested = tested.map_err(|error| wrong(name, text, 0, error.to_string()))?;
    RuleParser { name, text, compile, tested }.file(form)
}

/// An error at a byte offset of a file.
pub(crate) fn wrong(name: &str, text: &str, at: usize, what: String) -> RuleError {
    let before = text.get(..at).unwrap_or(text);
    RuleError::Wrong {
        file: name.to_owned(),
        line: before.matches('\n').count() + 1,
        column: before.chars().rev().take_while(|c| *c != '\n').count() + 1,
        what,
    }
}

struct RuleParser<'a> {
    name: &'a str,
    text: &'a str,
    compile: bool,
    /// The agent versions in which answering dialogs by keys was tested.
    tested: Arc<[VersionReq]>,
}

impl RuleParser<'_> {
    fn wrong<T>(&self, at: usize, what: impl Into<String>) -> Result<T, RuleError> {
        Err(wrong(self.name, self.text, at, what.into()))
    }

    fn word<T: std::str::FromStr<Err = String>>(&self, word: &Spanned<String>) -> Result<T, RuleError> {
        word.get_ref().parse().or_else(|e: String| self.wrong(word.span().start, e))
    }

    fn words<T: std::str::FromStr<Err = String>>(
        &self,
        word: Option<&Spanned<String>>,
    ) -> Result<Option<T>, RuleError> {
        word.map(|w| self.word(w)).transpose()
    }

    fn regex(&self, text: &Spanned<String>) -> Result<Arc<Expression>, RuleError> {
        let expression = Expression { text: text.get_ref().clone(), regex: OnceLock::new() };
        if self.compile {
            let regex = compile(text.get_ref()).or_else(|e| self.wrong(text.span().start, e.to_string()))?;
            drop(expression.regex.set(Some(regex)));
        }
        Ok(Arc::new(expression))
    }

    fn pattern(&self, form: &PatternForm) -> Result<Pattern, RuleError> {
        Ok(Pattern { place: place(&form.r#in), regex: self.regex(&form.has)? })
    }

    fn patterns(&self, forms: &[PatternForm]) -> Result<Vec<Pattern>, RuleError> {
        forms.iter().map(|f| self.pattern(f)).collect()
    }

    fn range(&self, text: &Spanned<String>) -> Result<VersionReq, RuleError> {
        VersionReq::parse(text.get_ref()).or_else(|e| self.wrong(text.span().start, e.to_string()))
    }

    fn file(&mut self, form: FileForm) -> Result<RuleFile, RuleError> {
        let versions = form.versions.as_ref().map_or(Ok(VersionReq::STAR), |text| self.range(text))?;
        if !form.tested.is_empty() {
            self.tested = form.tested.iter().map(|text| self.range(text)).collect::<Result<_, _>>()?;
        }
        let mut regions = BTreeMap::new();
        for (name, region) in &form.regions {
            if BUILT_IN.contains(&name.as_str()) {
                return self.wrong(region.span().start, format!("`{name}` is the name of a built-in region"));
            }
            regions.insert(name.clone(), self.cut(region)?);
        }
        let mut rules: Vec<ScreenRule> = Vec::new();
        for rule in &form.rules {
            if rules.iter().any(|r| r.name == *rule.name.get_ref()) {
                return self.wrong(rule.name.span().start, format!("`{}` is defined twice", rule.name.get_ref()));
            }
            rules.push(self.rule(rule, &form.dialogs)?);
        }
        for dialog in form.dialogs.values() {
            self.dialog(dialog)?;
        }
        Ok(RuleFile {
            name: self.name.to_owned(),
            provider: self.word(&form.provider)?,
            versions,
            version: form.version.as_ref().map(|p| self.pattern(p)).transpose()?,
            prompt: form.prompt.as_ref().map(|p| self.pattern(p)).transpose()?,
            regions,
            rules,
        })
    }

    fn cut(&self, region: &Spanned<RegionForm>) -> Result<Cut, RuleError> {
        let at = region.span().start;
        match region.get_ref() {
            RegionForm { last: Some(n), bottom: None, from: None, to: None, find: None, above: None, lines: None } => {
                Ok(Cut::Last(*n))
            }
            RegionForm { last: None, bottom: Some(n), from: None, to: None, find: None, above: None, lines: None } => {
                Ok(Cut::Bottom(*n))
            }
            RegionForm { last: None, bottom: None, from: Some(from), to, find: None, above: None, lines: None } => {
                let to = to.as_ref().map(|t| self.regex(t)).transpose()?;
                Ok(Cut::From(self.regex(from)?, to))
            }
            RegionForm {
                last: None,
                bottom: None,
                from: None,
                to: None,
                find: Some(find),
                above: None,
                lines: None,
            } => Ok(Cut::Find(self.regex(find)?)),
            RegionForm { last: None, bottom: None, from: None, to: None, find: None, above: Some(above), lines } => {
                Ok(Cut::Above(place(above), lines.unwrap_or(1)))
            }
            RegionForm { .. } => self.wrong(
                at,
                "expected a region of the form `last = lines`, `bottom = rows`, `from = expression` (and `to`), \
                 `find = expression`, `above = region` (and `lines`)",
            ),
        }
    }

    fn rule(&self, form: &RuleForm, dialogs: &BTreeMap<String, DialogForm>) -> Result<ScreenRule, RuleError> {
        if form.all.is_empty() && form.any.is_empty() {
            return self.wrong(form.name.span().start, "a rule needs something that must match: `all` or `any`");
        }
        let dialog = match &form.dialog {
            Some(dialog) => Some(self.dialog(&self.inherit(dialog.get_ref(), dialogs, 0)?)?),
            None => None,
        };
        if let (Some(read), Some(form)) = (&dialog, &form.dialog)
            && !read.tested.is_empty()
            && (read.whole.is_none() || read.answers.is_empty() || read.options.is_none())
        {
            return self.wrong(form.span().start, "an answerable dialog needs `whole`, `options` and `answers`");
        }
        let then = match &form.then {
            Some(then) => {
                let (state, reason) = self.status(&then.state, then.reason.as_ref())?;
                Some(Then { state, reason, after_ms: then.after_ms.into() })
            }
            None => None,
        };
        let (state, reason) = self.status(&form.state, form.reason.as_ref())?;
        Ok(ScreenRule {
            name: form.name.get_ref().clone(),
            priority: form.priority,
            state,
            reason,
            strength: self.words(form.strength.as_ref())?.unwrap_or(Confidence::High),
            debounce_ms: form.debounce_ms.into(),
            still_ms: form.still_ms.into(),
            hold_ms: form.hold_ms.into(),
            keep_ms: form.keep_ms.into(),
            then,
            all: self.patterns(&form.all)?,
            any: self.patterns(&form.any)?,
            none: self.patterns(&form.none)?,
            dialog,
        })
    }

    /// A state and a reason that it can have.
    fn status(
        &self,
        state: &Spanned<String>,
        reason: Option<&Spanned<String>>,
    ) -> Result<(State, Option<Reason>), RuleError> {
        let of: State = self.word(state)?;
        let Some(reason) = reason else { return Ok((of, None)) };
        let why: Reason = self.word(reason)?;
        if !why.facts().uses.iter().any(|of_reason| of_reason.state == of) {
            return self.wrong(reason.span().start, format!("a session is never `{of}` because of `{why}`"));
        }
        Ok((of, Some(why)))
    }

    /// Fills in the settings a dialog does not define from the dialog it is `like`.
    fn inherit(
        &self,
        own: &DialogForm,
        dialogs: &BTreeMap<String, DialogForm>,
        depth: usize,
    ) -> Result<DialogForm, RuleError> {
        let Some(like) = &own.like else { return Ok(own.clone()) };
        let Some(base) = dialogs.get(like.get_ref()).filter(|_| depth < MAX_LIKES) else {
            return self.wrong(like.span().start, format!("unknown dialog `{}`", like.get_ref()));
        };
        let base = self.inherit(base, dialogs, depth + 1)?;
        let or =
            |own: &Vec<PatternForm>, base: &Vec<PatternForm>| if own.is_empty() { base.clone() } else { own.clone() };
        Ok(DialogForm {
            like: None,
            about: own.about.clone().or_else(|| base.about.clone()),
            question: or(&own.question, &base.question),
            subject: or(&own.subject, &base.subject),
            options: own.options.clone().or_else(|| base.options.clone()),
            names: or(&own.names, &base.names),
            digits_answer: own.digits_answer.or(base.digits_answer),
            row: own.row.or(base.row),
            whole: own.whole.clone().or_else(|| base.whole.clone()),
            wraps: own.wraps.or(base.wraps),
            answers: own.answers.clone().or_else(|| base.answers.clone()),
            answerable: own.answerable.or(base.answerable),
            deny_key: own.deny_key.clone().or_else(|| base.deny_key.clone()),
        })
    }

    fn dialog(&self, form: &DialogForm) -> Result<DialogRule, RuleError> {
        let options = form.options.as_ref().map(|p| self.pattern(p)).transpose()?;
        if let (Some(pattern), Some(form)) = (&options, &form.options)
            && self.compile
            && !pattern.regex.regex().is_some_and(|regex| regex.capture_names().any(|name| name == Some("label")))
        {
            return self.wrong(form.has.span().start, "the expression for options needs a group named `label`");
        }
        Ok(DialogRule {
            about: self.words(form.about.as_ref())?,
            question: self.patterns(&form.question)?,
            subject: self.patterns(&form.subject)?,
            options,
            names: self.patterns(&form.names)?,
            digits_answer: form.digits_answer.unwrap_or(true),
            row: form.row.unwrap_or(false),
            whole: form.whole.as_ref().map(place),
            wraps: form.wraps.unwrap_or(false),
            answers: form.answers.as_ref().map_or(Ok(Vec::new()), |answers| self.answers(answers))?,
            tested: if form.answerable == Some(true) { Arc::clone(&self.tested) } else { Arc::default() },
            deny_key: form.deny_key.as_ref().map(|key| self.deny_key(key)).transpose()?,
        })
    }

    fn answers(&self, form: &AnswersForm) -> Result<Vec<(ChoiceAnswer, Arc<Expression>)>, RuleError> {
        let of = |answer, texts: &[Spanned<String>]| {
            texts.iter().map(|text| Ok((answer, self.regex(text)?))).collect::<Result<Vec<_>, RuleError>>()
        };
        let mut answers = of(ChoiceAnswer::AllowOnce, &form.allow_once)?;
        answers.extend(of(ChoiceAnswer::AllowAlways, &form.allow_always)?);
        answers.extend(of(ChoiceAnswer::Deny, &form.deny)?);
        Ok(answers)
    }

    /// Digits and letters stand for different options in different dialogs; only a key that is never an option's
    /// shortcut may deny.
    fn deny_key(&self, key: &Spanned<String>) -> Result<String, RuleError> {
        if key.get_ref() != "esc" {
            return self.wrong(key.span().start, "the key that denies must be `esc`");
        }
        Ok(key.get_ref().clone())
    }
}

fn place(name: &Spanned<String>) -> RegionRef {
    RegionRef { name: name.get_ref().clone(), at: name.span().start }
}
