//! Finds, adds, updates and removes our handlers in the structure that the agents share, `{"hooks": {"<Event>":
//! [{"matcher"?, "hooks": [handler…]}]}}`. Operates on text.
//!
//! Claude Code 2.1.328, Codex 0.169 and Gemini CLI 0.61 read this structure. Our handlers form a separate group at the
//! end of each event: the other handlers keep their positions, so that Codex, which remembers trusted hooks by
//! position, does not ask about them again.

use events::Provider;
use jsonc_parser::{
    ast::{Array, Object, ObjectProp, Value},
    common::Ranged,
};

use super::{
    command::{is_ours, of_event, patience},
    text::{Container, JsonDialect, JsonForm, Problem, Style, insert, member, parse, remove, replace},
};
use crate::facts::facts;

const HOOKS: &str = "hooks";

/// Containers to keep when empty, because they already were empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeptContainers {
    hooks: bool,
    events: Vec<String>,
}

#[cfg(test)]
impl KeptContainers {
    pub(super) fn keeps_any(&self) -> bool {
        self.hooks || !self.events.is_empty()
    }
}

/// One of our handlers, and the path to it.
#[derive(Debug)]
struct FoundHandler<'o, 't> {
    /// Whether a later member of the same name overrides it.
    hidden: bool,
    hooks: (usize, &'o Object<'t>),
    event: (usize, &'o str, &'o Array<'t>),
    group: (usize, &'o Object<'t>),
    handlers: &'o Array<'t>,
    handler: (usize, &'o Object<'t>),
    command: &'o str,
}

/// The dialect of JSON an agent reads.
pub(super) fn dialect(provider: Provider) -> JsonDialect {
    if facts(provider).is_some_and(|hooks| !hooks.comments) { JsonDialect::Plain } else { JsonDialect::Commented }
}

/// The handler to install for an event.
fn handler(provider: Provider, command: &str, event: &str) -> Vec<(&'static str, JsonForm)> {
    let named = facts(provider).is_some_and(|hooks| hooks.named_entries);
    let name = named.then(|| ("name", JsonForm::Text(NAME.into())));
    let command = of_event(command, provider, event);
    let timeout = patience(provider, &command);
    [("type", JsonForm::Text("command".into())), ("command", JsonForm::Text(command))]
        .into_iter()
        .chain([("timeout", JsonForm::Number(timeout))])
        .chain(name)
        .collect()
}

/// The name of our entries, for agents whose entries have names.
pub(super) const NAME: &str = "capture";

/// The text with exactly one correct handler of ours for each of these events, and for no others.
pub(super) fn install(
    text: &str,
    provider: Provider,
    command: &str,
    events: &[&'static str],
) -> Result<String, Problem> {
    let dialect = dialect(provider);
    let wanted = |event: &str| handler(provider, command, event);
    let mut text = text.to_owned();
    refuse_other_shapes(&text, dialect, events)?;
    // One edit at a time, parsing again after each: the file is small, and spans are never stale.
    while let Some(next) = drop_stray(&text, dialect, events)? {
        text = next;
    }
    while let Some(next) = renew(&text, dialect, &wanted)? {
        text = next;
    }
    while let Some(next) = add(&text, dialect, events, &wanted)? {
        text = next;
    }
    Ok(text)
}

/// The text without our entries.
pub(super) fn strip(text: &str, dialect: JsonDialect, keep: &KeptContainers) -> Result<String, Problem> {
    let mut text = text.to_owned();
    loop {
        let root = parse(&text, dialect)?;
        let Some(next) = found(&root).last().map(|last| remove_handler(&text, &root, last, keep)) else { break };
        text = next;
    }
    Ok(text)
}

/// Whether it contains one of our entries.
pub(super) fn has_ours(text: &str, dialect: JsonDialect) -> Result<bool, Problem> {
    Ok(!found(&parse(text, dialect)?).is_empty())
}

/// Finds the containers to keep although they are empty.
pub(super) fn empty_containers(text: &str, dialect: JsonDialect) -> KeptContainers {
    let Ok(root) = parse(text, dialect) else { return KeptContainers::default() };
    let Some(Value::Object(hooks)) = member(&root, HOOKS).map(|property| &property.value) else {
        return KeptContainers::default();
    };
    let empty =
        |property: &&ObjectProp<'_>| matches!(&property.value, Value::Array(array) if array.elements.is_empty());
    KeptContainers {
        hooks: hooks.properties.is_empty(),
        events: hooks.properties.iter().filter(empty).map(|p| p.name.as_str().to_owned()).collect(),
    }
}

/// For each of our effective handlers: its event, its command, and whether it is correct apart from the command.
pub(super) fn ours(root: &Object<'_>, provider: Provider, events: &[&str]) -> Vec<(String, String, bool)> {
    found(root)
        .into_iter()
        .filter(|f| !is_stray(f, events))
        .map(|f| {
            let wanted = handler(provider, f.command, f.event.1);
            let same =
                wanted.iter().filter(|(name, _)| *name != "command").all(|(name, form)| has(f.handler.1, name, form));
            (f.event.1.to_owned(), f.command.to_owned(), same)
        })
        .collect()
}

/// The events that have an entry of ours, in any form.
pub(super) fn events_with_ours(root: &Object<'_>) -> Vec<String> {
    let mut events: Vec<_> = found(root).iter().map(|found| found.event.1.to_owned()).collect();
    events.dedup();
    events
}

/// Follows a path of names to a value.
pub(super) fn find_value<'o, 't>(root: &'o Object<'t>, path: &[&str]) -> Option<&'o Value<'t>> {
    let (last, way) = path.split_last()?;
    let mut object = root;
    for name in way {
        match &member(object, name)?.value {
            Value::Object(inner) => object = inner,
            Value::Array(_)
            | Value::StringLit(_)
            | Value::NumberLit(_)
            | Value::BooleanLit(_)
            | Value::NullKeyword(_) => return None,
        }
    }
    member(object, last).map(|property| &property.value)
}

fn refuse_other_shapes(text: &str, dialect: JsonDialect, events: &[&str]) -> Result<(), Problem> {
    let root = parse(text, dialect)?;
    let Some(property) = member(&root, HOOKS) else { return Ok(()) };
    let Value::Object(hooks) = &property.value else {
        return Err(Problem::at(text, property.value.range().start, "`hooks` is not an object"));
    };
    for event in events {
        if let Some(property) = member(hooks, event)
            && !matches!(property.value, Value::Array(_))
        {
            return Err(Problem::at(text, property.value.range().start, format!("`hooks.{event}` is not an array")));
        }
    }
    Ok(())
}

/// Removes one handler that is overridden, duplicated, for an unwanted event, or restricted by a matcher.
fn drop_stray(text: &str, dialect: JsonDialect, events: &[&str]) -> Result<Option<String>, Problem> {
    let root = parse(text, dialect)?;
    let all = found(&root);
    let stray = all.iter().enumerate().find(|(index, one)| {
        let doubled = || all[..*index].iter().any(|other| !is_stray(other, events) && other.event.1 == one.event.1);
        is_stray(one, events) || doubled()
    });
    Ok(stray.map(|(_, found)| remove_handler(text, &root, found, &KeptContainers::default())))
}

fn is_stray(found: &FoundHandler<'_, '_>, events: &[&str]) -> bool {
    let narrowed = member(found.group.1, "matcher").is_some_and(|matcher| match &matcher.value {
        Value::StringLit(text) => !matches!(&*text.value, "" | "*"),
        Value::NullKeyword(_) => false,
        Value::Object(_) | Value::Array(_) | Value::NumberLit(_) | Value::BooleanLit(_) => true,
    });
    found.hidden || narrowed || !events.contains(&found.event.1)
}

/// Corrects one member of one handler.
fn renew(
    text: &str,
    dialect: JsonDialect,
    wanted: &impl Fn(&str) -> Vec<(&'static str, JsonForm)>,
) -> Result<Option<String>, Problem> {
    let root = parse(text, dialect)?;
    for found in found(&root) {
        let handler = found.handler.1;
        let wanted = wanted(found.event.1);
        let Some((name, form)) = wanted.iter().find(|(name, form)| !has(handler, name, form)) else { continue };
        return Ok(Some(match member(handler, name) {
            Some(property) => replace(text, (&property.value).into(), &form.plain()),
            None => {
                let style = Style::of(text, &root);
                insert(text, &style, &handler.into(), &JsonForm::Named(name, Box::new(form.clone())))
            }
        }));
    }
    Ok(None)
}

fn has(handler: &Object<'_>, name: &str, form: &JsonForm) -> bool {
    member(handler, name).is_some_and(|property| match (&property.value, form) {
        (Value::StringLit(text), JsonForm::Text(wanted)) => text.value == wanted.as_str(),
        (Value::NumberLit(number), JsonForm::Number(wanted)) => number.value == wanted.to_string(),
        (
            Value::StringLit(_)
            | Value::NumberLit(_)
            | Value::BooleanLit(_)
            | Value::Object(_)
            | Value::Array(_)
            | Value::NullKeyword(_),
            JsonForm::Text(_) | JsonForm::Number(_) | JsonForm::Array(_) | JsonForm::Object(_) | JsonForm::Named(..),
        ) => false,
    })
}

/// Adds what is missing: `hooks` itself, or one event.
fn add(
    text: &str,
    dialect: JsonDialect,
    events: &[&'static str],
    wanted: &impl Fn(&str) -> Vec<(&'static str, JsonForm)>,
) -> Result<Option<String>, Problem> {
    let root = parse(text, dialect)?;
    let style = Style::of(text, &root);
    let group = |event| JsonForm::Object(vec![(HOOKS, JsonForm::Array(vec![JsonForm::Object(wanted(event))]))]);
    let Some(Value::Object(hooks)) = member(&root, HOOKS).map(|property| &property.value) else {
        let events = events.iter().map(|event| (*event, JsonForm::Array(vec![group(event)]))).collect();
        let item = JsonForm::Named(HOOKS, Box::new(JsonForm::Object(events)));
        return Ok(Some(insert(text, &style, &(&root).into(), &item)));
    };
    let there: Vec<&str> = found(&root).iter().map(|found| found.event.1).collect();
    let Some(missing) = events.iter().find(|event| !there.contains(event)) else { return Ok(None) };
    Ok(Some(match member(hooks, missing).map(|property| &property.value) {
        Some(Value::Array(array)) => insert(text, &style, &array.into(), &group(missing)),
        _ => {
            let item = JsonForm::Named(missing, Box::new(JsonForm::Array(vec![group(missing)])));
            insert(text, &style, &hooks.into(), &item)
        }
    }))
}

/// Removes a handler, and containers that contain nothing else.
fn remove_handler(text: &str, root: &Object<'_>, found: &FoundHandler<'_, '_>, keep: &KeptContainers) -> String {
    let (hooks_at, hooks) = found.hooks;
    let (event_at, event, groups) = found.event;
    let (group_at, group) = found.group;
    if found.handlers.elements.len() > 1 || group.properties.len() > 1 {
        return remove(text, &found.handlers.into(), found.handler.0);
    }
    if groups.elements.len() > 1 || keep.events.iter().any(|kept| kept == event) {
        return remove(text, &groups.into(), group_at);
    }
    if hooks.properties.len() > 1 || keep.hooks {
        return remove(text, &hooks.into(), event_at);
    }
    remove(text, &Container::from(root), hooks_at)
}

/// All our handlers, in order. Values of another form belong to others and are skipped.
fn found<'o, 't>(root: &'o Object<'t>) -> Vec<FoundHandler<'o, 't>> {
    let mut all = Vec::new();
    let objects = |(at, value): (usize, &'o Value<'t>)| value.as_object().map(|object| (at, object));
    for (hooks_at, property) in root.properties.iter().enumerate().filter(|(_, p)| p.name.as_str() == HOOKS) {
        let Some(hooks) = property.value.as_object() else { continue };
        for (event_at, event) in hooks.properties.iter().enumerate() {
            let Some(groups) = event.value.as_array() else { continue };
            let later = |in_object: &Object<'_>, at: usize, name: &str| {
                in_object.properties[at + 1..].iter().any(|p| p.name.as_str() == name)
            };
            let hidden = later(root, hooks_at, HOOKS) || later(hooks, event_at, event.name.as_str());
            for (group_at, group) in groups.elements.iter().enumerate().filter_map(objects) {
                let Some(handlers) = member(group, HOOKS).and_then(|p| p.value.as_array()) else { continue };
                for (handler_at, handler) in handlers.elements.iter().enumerate().filter_map(objects) {
                    let command = member(handler, "command").and_then(|p| p.value.as_string_lit());
                    let Some(command) = command.filter(|command| is_ours(&command.value)) else { continue };
                    all.push(FoundHandler {
                        hidden,
                        hooks: (hooks_at, hooks),
                        event: (event_at, event.name.as_str(), groups),
                        group: (group_at, group),
                        handlers,
                        handler: (handler_at, handler),
                        command: &command.value,
                    });
                }
            }
        }
    }
    all
}
