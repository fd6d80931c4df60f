//! Interprets settings without the code under test.

use jsonc_parser::{CollectOptions, ParseOptions, ast::Value, parse_to_ast};

/// A value with everything in the text: order, duplicate names, numbers as written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    Word(String),
    Text(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

impl Tree {
    pub(super) fn of(text: &str) -> Self {
        let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
        Self::from(&parsed.unwrap_or_else(|error| panic!("{error}:\n{text}")).value.unwrap())
    }
}

impl From<&Value<'_>> for Tree {
    fn from(value: &Value<'_>) -> Self {
        match value {
            Value::StringLit(text) => Self::Text(text.value.to_string()),
            Value::NumberLit(number) => Self::Word(number.value.into()),
            Value::BooleanLit(literal) => Self::Word(literal.value.to_string()),
            Value::NullKeyword(_) => Self::Word("null".into()),
            Value::Array(array) => Self::Array(array.elements.iter().map(Self::from).collect()),
            Value::Object(object) => {
                let member = |p: &jsonc_parser::ast::ObjectProp<'_>| (p.name.as_str().to_owned(), (&p.value).into());
                Self::Object(object.properties.iter().map(member).collect())
            }
        }
    }
}

fn command(tree: &Tree) -> Option<&str> {
    let Tree::Object(members) = tree else { return None };
    members.iter().find_map(|(name, value)| match value {
        Tree::Text(line) if name == "command" && line.ends_with(" # capture-hook") => Some(line.as_str()),
        _ => None,
    })
}

/// The events and commands of our entries.
pub(super) fn ours_in(tree: &Tree) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let members = |tree: &Tree| match tree {
        Tree::Object(members) => members.clone(),
        _ => Vec::new(),
    };
    let items = |tree: &Tree| match tree {
        Tree::Array(items) => items.clone(),
        _ => Vec::new(),
    };
    for (_, hooks) in members(tree).iter().filter(|(name, _)| name == "hooks") {
        for (event, groups) in members(hooks) {
            for group in items(&groups) {
                for (_, handlers) in members(&group).iter().filter(|(name, _)| name == "hooks") {
                    all.extend(items(handlers).iter().filter_map(command).map(|line| (event.clone(), line.to_owned())));
                }
            }
        }
    }
    all
}

/// The value without our entries, and without containers that become empty.
pub(super) fn without_ours(tree: Tree) -> Tree {
    let Tree::Object(members) = tree else { return tree };
    let rest = members.into_iter().filter_map(|(name, value)| match value {
        Tree::Object(events) if name == "hooks" => {
            let events: Vec<_> = events
                .into_iter()
                .filter_map(|(event, groups)| match groups {
                    Tree::Array(groups) => {
                        let groups: Vec<_> = groups.into_iter().filter_map(group).collect();
                        (!groups.is_empty()).then_some((event, Tree::Array(groups)))
                    }
                    other => Some((event, other)),
                })
                .collect();
            (!events.is_empty()).then_some((name, Tree::Object(events)))
        }
        other => Some((name, other)),
    });
    Tree::Object(rest.collect())
}

fn group(tree: Tree) -> Option<Tree> {
    let Tree::Object(members) = tree else { return Some(tree) };
    let had = members.len();
    let members: Vec<_> = members
        .into_iter()
        .filter_map(|(name, value)| match value {
            Tree::Array(handlers) if name == "hooks" => {
                let before = handlers.len();
                let rest: Vec<_> = handlers.into_iter().filter(|handler| command(handler).is_none()).collect();
                (before == 0 || had > 1 || !rest.is_empty()).then_some((name, Tree::Array(rest)))
            }
            other => Some((name, other)),
        })
        .collect();
    (had == 0 || !members.is_empty()).then_some(Tree::Object(members))
}

/// Whether `part` is a subsequence of `whole`.
pub(super) fn is_subsequence(part: &str, whole: &str) -> bool {
    let mut rest = whole.bytes();
    part.bytes().all(|wanted| rest.by_ref().any(|byte| byte == wanted))
}
