//! Reads a policy file: TOML; unknown keys are errors.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use events::Provider;
use globset::{Glob, GlobBuilder, GlobMatcher};
use serde::{
    Deserialize, Deserializer,
    de::{
        Error as _, MapAccess, SeqAccess, Visitor,
        value::{SeqAccessDeserializer, StrDeserializer},
    },
};
use toml::Spanned;

use super::{
    pattern::CommandPattern,
    rule::{KnownSafe, PolicyRule},
};
use crate::{
    danger::Danger,
    policy::{preset::Preset, rule_set::Policy},
    request::{RequestKind, Verdict},
    toml_words::TomlFault,
};

/// A policy file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}:{column}: {message}", path.display())]
pub struct PolicyError {
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1, in characters.
    pub column: usize,
    /// The error message.
    pub message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    version: Spanned<i64>,
    preset: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "rule_tables")]
    rule: Vec<Spanned<RawRule>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    name: String,
    #[serde(deserialize_with = "decision")]
    decision: Verdict,
    reason: Option<String>,
    #[serde(default, deserialize_with = "agent")]
    agent: Option<Provider>,
    #[serde(default, deserialize_with = "kinds")]
    kind: Option<Vec<RequestKind>>,
    tool: Option<String>,
    #[serde(default, deserialize_with = "words")]
    command: Option<Vec<String>>,
    paths: Option<Vec<String>>,
    cwd: Option<String>,
    domain: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    known: Option<KnownSafe>,
    danger: Option<Danger>,
}

/// The agent of a rule.
fn agent<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Provider>, D::Error> {
    struct Name;

    impl<'de> Visitor<'de> for Name {
        type Value = Provider;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the name of one agent, such as \"claude\"")
        }

        fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Provider, E> {
            Provider::deserialize(StrDeserializer::new(name))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Provider, A::Error> {
            Err(A::Error::custom("`agent` must be the name of one agent, such as \"claude\", not a list"))
        }
    }

    value.deserialize_any(Name).map(Some)
}

/// The kinds of a rule: one, or a list of them.
fn kinds<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Vec<RequestKind>>, D::Error> {
    struct Kinds;

    fn one<E: serde::de::Error>(name: &str) -> Result<RequestKind, E> {
        RequestKind::deserialize(StrDeserializer::<E>::new(name)).map_err(|_| {
            E::custom(format!(
                "`kind` must be command, read, edit, write, mcp, fetch, plan, question or trust, or a list of them, not \
                 `{name}`"
            ))
        })
    }

    impl<'de> Visitor<'de> for Kinds {
        type Value = Vec<RequestKind>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a kind of request, such as \"command\", or a list of them")
        }

        fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Self::Value, E> {
            one(name).map(|kind| vec![kind])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<Self::Value, A::Error> {
            let names: Vec<String> = Vec::deserialize(SeqAccessDeserializer::new(names))?;
            names.iter().map(|name| one(name)).collect()
        }
    }

    value.deserialize_any(Kinds).map(Some)
}

/// The decision of a rule.
fn decision<'de, D: Deserializer<'de>>(value: D) -> Result<Verdict, D::Error> {
    let given = String::deserialize(value)?;
    let known = StrDeserializer::<D::Error>::new(&given);
    Verdict::deserialize(known)
        .map_err(|_| D::Error::custom(format!("`decision` must be allow, ask or deny, not `{given}`")))
}

/// The words of a command.
fn words<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Vec<String>>, D::Error> {
    struct Words;

    impl<'de> Visitor<'de> for Words {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of words, such as [\"git\", \"push\"]")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<Self::Value, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(words))
        }
    }

    value.deserialize_any(Words).map(Some)
}

/// The rules: an array of tables.
fn rule_tables<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<Spanned<RawRule>>, D::Error> {
    struct Tables;

    impl<'de> Visitor<'de> for Tables {
        type Value = Vec<Spanned<RawRule>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array of tables: `[[rule]]`")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, tables: A) -> Result<Self::Value, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(tables))
        }

        fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
            Err(A::Error::custom("write `[[rule]]`, not `[rule]`"))
        }
    }

    value.deserialize_any(Tables)
}

/// The author of a policy.
#[derive(Clone, Copy)]
enum PolicyOwner {
    Preset(Preset),
    User,
    Repository,
}

pub(super) fn preset(preset: Preset) -> Result<Policy, PolicyError> {
    let path = PathBuf::from(format!("{preset}.toml"));
    let (own, _) = rules(preset.text(), &path, PolicyOwner::Preset(preset))?;
    Ok(Policy { own, repositories: Vec::new(), preset: None })
}

pub(super) fn user(text: &str, path: &Path) -> Result<Policy, PolicyError> {
    let (own, preset) = rules(text, path, PolicyOwner::User)?;
    Ok(Policy { own, repositories: Vec::new(), preset })
}

pub(super) fn repository(text: &str, path: &Path) -> Result<Vec<PolicyRule>, PolicyError> {
    Ok(rules(text, path, PolicyOwner::Repository)?.0)
}

/// The rules of a file followed by the rules of its preset, and the preset.
fn rules(text: &str, path: &Path, whose: PolicyOwner) -> Result<(Vec<PolicyRule>, Option<Preset>), PolicyError> {
    let placed = |TomlFault { line, column, message }| PolicyError { path: path.to_owned(), line, column, message };
    let fail = |at: usize, message: String| placed(TomlFault::at(text, at, message));
    let file: PolicyFile = toml::from_str(text).map_err(|error| {
        let fault = TomlFault::of(text, &error);
        match error.message() {
            "missing field `version`" => {
                let message = "`version` is missing; begin the file with `version = 1`".into();
                placed(TomlFault { message, ..fault })
            }
            _ => placed(fault),
        }
    })?;
    let version = *file.version.get_ref();
    if version != 1 {
        return Err(fail(file.version.span().start, format!("version {version} is not supported (expected 1)")));
    }
    let mut all = Vec::<PolicyRule>::new();
    for raw in file.rule {
        let at = raw.span().start;
        let rule = compile(raw.into_inner(), whose).map_err(|message| fail(at, message))?;
        if all.iter().any(|other| other.name == rule.name) {
            return Err(fail(at, format!("two rules are named `{}`", rule.name)));
        }
        all.push(rule);
    }
    let mut chosen = None;
    if let Some(name) = file.preset {
        let at = name.span().start;
        if matches!(whose, PolicyOwner::Repository) {
            return Err(fail(at, "a repository's policy cannot choose a preset".into()));
        }
        let below: Preset = name.get_ref().parse().map_err(|error| fail(at, error))?;
        all.extend(preset(below)?.own);
        chosen = Some(below);
    }
    // A preset's denials come first, whatever it allows.
    if matches!(whose, PolicyOwner::Preset(_)) {
        all.sort_by_key(|rule| rule.danger.is_none());
    }
    Ok((all, chosen))
}

fn compile(raw: RawRule, whose: PolicyOwner) -> Result<PolicyRule, String> {
    let mut kinds = raw.kind;
    let mut only = |implied: &[RequestKind], key: &str| match &kinds {
        None => {
            kinds = Some(implied.to_vec());
            Ok(())
        }
        Some(given) if given.iter().all(|kind| implied.contains(kind)) => Ok(()),
        Some(_) => Err(format!("rule `{}`: `{key}` cannot be used with this `kind`", raw.name)),
    };
    if raw.command.is_some() {
        only(&[RequestKind::Command], "command")?;
    }
    match raw.known {
        None => {}
        Some(KnownSafe::Command | KnownSafe::Build | KnownSafe::Change) => only(&[RequestKind::Command], "known")?,
        Some(KnownSafe::Read) => only(&[RequestKind::Read], "known")?,
        Some(KnownSafe::Edit) => only(&[RequestKind::Edit, RequestKind::Write], "known")?,
    }
    let allows = raw.decision == Verdict::Allow;
    if raw.danger.is_some() {
        only(&[RequestKind::Command, RequestKind::Edit, RequestKind::Write], "danger")?;
        if allows {
            return Err(format!("rule `{}`: `danger` is only allowed in rules that deny or ask", raw.name));
        }
    }
    if raw.domain.is_some() && allows {
        only(&[RequestKind::Fetch], "domain")?;
    }
    if allows {
        if matches!(whose, PolicyOwner::Repository) {
            return Err(format!("rule `{}`: a repository can only deny or ask", raw.name));
        }
        for kind in kinds.as_deref().unwrap_or_default() {
            let (enough, condition) = match kind {
                RequestKind::Command => (raw.command.is_some() || raw.known.is_some(), "`command` or `known`"),
                RequestKind::Read | RequestKind::Edit | RequestKind::Write => {
                    (raw.paths.is_some() || raw.known.is_some(), "`paths` or `known`")
                }
                RequestKind::Fetch => (raw.domain.is_some(), "`domain`"),
                RequestKind::Mcp => (raw.tool.is_some(), "`tool`"),
                RequestKind::Plan | RequestKind::Question => (true, ""),
                RequestKind::Trust => (raw.cwd.is_some(), "`cwd`"),
            };
            if !enough {
                return Err(format!("rule `{}` would allow too much: limit it with {condition}", raw.name));
            }
        }
        if kinds.as_ref().is_none_or(Vec::is_empty) {
            return Err(format!(
                "rule `{}` allows everything: add at least one of `kind`, `command`, `paths`, `domain`, `tool`",
                raw.name
            ));
        }
    } else if raw.known.is_some() {
        return Err(format!("rule `{}`: `known` is only allowed in rules that allow", raw.name));
    }
    let name = match whose {
        PolicyOwner::Preset(preset) => format!("{preset}/{}", raw.name),
        PolicyOwner::Repository => format!("repository/{}", raw.name),
        PolicyOwner::User => raw.name,
    };
    let globs = |globs: Vec<String>| globs.iter().map(|text| glob(text, allows)).collect::<Result<Vec<_>, _>>();
    Ok(PolicyRule {
        command: raw
            .command
            .map(|words| CommandPattern::new(&words))
            .transpose()
            .map_err(|e| format!("rule `{name}`: {e}"))?,
        paths: raw.paths.map(globs).transpose()?,
        cwd: raw.cwd.map(|text| glob(&text, allows)).transpose()?,
        tool: raw.tool.map(|text| glob(&text, allows)).transpose()?,
        domain: raw.domain.map(domain).transpose()?,
        decision: raw.decision,
        reason: raw.reason,
        agent: raw.agent,
        kinds,
        labels: raw.labels,
        known: raw.known,
        danger: raw.danger,
        is_of_preset: matches!(whose, PolicyOwner::Preset(_)),
        name,
    })
}

/// A glob; rules that deny or ask match it case-insensitively.
fn glob(text: &str, exact: bool) -> Result<GlobMatcher, String> {
    let glob: Result<Glob, _> = GlobBuilder::new(text).literal_separator(true).case_insensitive(!exact).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| format!("`{text}` is not a glob: {error}"))
}

fn domain(text: String) -> Result<String, String> {
    let host = text.strip_prefix("*.").unwrap_or(&text);
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let is = host.contains('.') && host.chars().all(plain) && !host.starts_with('.') && !host.ends_with('.');
    let number = host.chars().all(|c| c.is_ascii_digit() || c == '.');
    if is && !number {
        Ok(text)
    } else {
        Err(format!("expected a lowercase host such as `docs.rs` or `*.docs.rs`, got `{text}`"))
    }
}
