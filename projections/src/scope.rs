//! How far the edits of a session are from what the person named: facts about each request, without a judgement.
//!
//! A prompt names files, directories and identifiers. Each edit that was carried out has a distance from these names.
//! Only what the person wrote and which files the agent changed is compared: the module does not know what the person
//! meant. In doubt, a distance is unknown, and an edit counts as close.

use std::collections::{BTreeSet, VecDeque};

use events::{Event, EventId, Kind, Payload, PromptOrigin, ToolCall, ToolKind, ToolOutcome, TurnTrigger};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    shorten::{Shown, one_line},
    state::is_restated,
};

use self::names::{Name, NameKind, comparable, directory, is_continuation, is_manifest, names, parts, tested};

mod names;

/// Maximum number of requests kept; the oldest are dropped.
const ASKS: usize = 200;
/// Maximum number of files per request, and of remembered reads.
const FILES: usize = 64;
/// Maximum number of remembered names, with the words of prompts.
const KNOWN: usize = 1_024;
/// Maximum number of remembered calls without a result.
const OPEN: usize = 64;
/// Maximum number of remembered directories and subjects of named files.
const PLACES: usize = 256;
/// Longest path, characters.
const FILE_CHARS: usize = 200;
/// Longest prompt, characters.
const ASK_CHARS: usize = 200;
/// Number of edits far from the subject with which a session has left it.
const FAR_EDITS: u32 = 3;
/// Number of directories in which these edits are.
const FAR_DIRECTORIES: usize = 2;
/// Number of edits since the last one close to the subject.
const SINCE_CLOSE: u32 = 20;

/// The distance of an edit from what the person named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// The person named the file, or a directory of it.
    Named,
    /// In the directory of a named file, its test, a manifest, or an edit of a named identifier.
    Near,
    /// The agent read the file first, in the same turn.
    ReadFirst,
    /// None of these.
    Elsewhere,
}

/// What the person asked for in a session, and how far its edits are from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// The turns that a person's prompt opened, oldest first; at most the last 200.
    pub asks: Vec<Ask>,
    /// Where the session left its subject, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
    /// Number of earlier turns that are not in `asks`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub earlier: u32,
    #[serde(skip)]
    scope: Scope,
}

/// A turn that a person's prompt opened, with the work until the next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ask {
    /// The number of the turn in the session; 0 if unknown.
    pub turn: u32,
    /// The event of the prompt.
    pub event: EventId,
    /// The prompt in one line, shortened.
    pub prompt: String,
    /// The files, directories and identifiers that the person named, at most 12. Of names that may mean something
    /// else, only those that a changed file matched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<String>,
    /// The changed files in the order of their first change, at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ScopedFile>,
    /// Whether more files were changed than are listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_files: bool,
    /// Number of commands.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub commands: u32,
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScopedFile {
    /// The file, as the agent names it.
    pub file: String,
    /// Its distance at its closest edit; absent if the person named nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<Distance>,
    /// Number of edits.
    pub edits: u32,
    /// The event of the first edit.
    pub event: EventId,
}

/// The first of the edits with which a session left its subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Left {
    /// The number of the turn in the session; 0 if unknown.
    pub turn: u32,
    /// The event of the edit.
    pub event: EventId,
    /// Its sequence in the session.
    pub sequence: u64,
    /// The file.
    pub file: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// What is needed to compute distances.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Scope {
    cwd: Option<String>,
    turn: u32,
    /// Whether the last prompt waits for the number of its turn.
    is_unnumbered: bool,
    /// Whether the person named what the current request is about.
    is_known: bool,
    /// The names of all prompts, each with the event of its prompt.
    names: VecDeque<(EventId, Name)>,
    /// The directories of named files.
    directories: VecDeque<String>,
    /// The subjects of named files, and whether the file is a test.
    subjects: VecDeque<(String, bool)>,
    /// The files read in this turn.
    reads: VecDeque<String>,
    /// Calls without a result.
    open: VecDeque<OpenCall>,
    /// Number of edits since the last close one; `None` before the first close one.
    since_close: Option<u32>,
    streak: Streak,
    /// The files of the edits with which the session left its subject.
    far: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenCall {
    call_id: String,
    tool: ToolKind,
    event: EventId,
    sequence: u64,
    files: Vec<String>,
    /// Whether an edit contains an identifier that the person named.
    mentions: bool,
}

/// Edits in a row that are far from the subject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Streak {
    edits: u32,
    first: Option<Left>,
    /// Their files in the form that is compared.
    files: Vec<String>,
}

impl Drift {
    /// The kinds of events from which it is made.
    pub const KINDS: &[Kind] =
        &[Kind::SessionStarted, Kind::UserPrompt, Kind::TurnStarted, Kind::ToolCall, Kind::ToolResult];
    /// The kinds of these events that matter for later edits however old they are.
    pub const NAMING_KINDS: &[Kind] = &[Kind::SessionStarted, Kind::UserPrompt, Kind::TurnStarted];

    /// Applies the next event; of a prompt with its whole text. Other kinds of events change nothing.
    pub fn apply(&mut self, event: &Event) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "prompts and calls are what is compared")]
        match &event.payload {
            Payload::SessionStarted(started) if event.agent_id.is_none() => {
                let cwd = started.cwd.as_deref().filter(|cwd| cwd.len() > 1);
                self.scope.cwd = cwd.map(str::to_owned).or(self.scope.cwd.take());
            }
            Payload::UserPrompt(prompt) if event.agent_id.is_none() && !is_restated(event) => match prompt.origin {
                PromptOrigin::Human => self.asked(event, false),
                PromptOrigin::Steering => self.asked(event, true),
                PromptOrigin::Wakeup | PromptOrigin::Agent | PromptOrigin::Command | PromptOrigin::Monitor => {}
            },
            Payload::TurnStarted(started) => {
                self.scope.turn = started.number;
                self.scope.reads.clear();
                if self.scope.is_unnumbered && started.trigger == TurnTrigger::Prompt {
                    self.scope.is_unnumbered = false;
                    self.asks.iter_mut().rev().take(1).for_each(|ask| ask.turn = started.number);
                }
            }
            Payload::ToolCall(call) => self.called(call, event),
            Payload::ToolResult(result) if !result.detail => {
                let Some(place) = self.scope.open.iter().position(|open| open.call_id == result.call_id) else {
                    return;
                };
                let Some(open) = self.scope.open.remove(place) else { return };
                match (open.tool, result.outcome) {
                    (ToolKind::Edit, ToolOutcome::Ok) => self.edited(&open),
                    (_, ToolOutcome::Ok) => {
                        open.files.iter().for_each(|file| self.scope.read(file));
                    }
                    (_, ToolOutcome::Error | ToolOutcome::Denied | ToolOutcome::Blocked | ToolOutcome::Cancelled) => {}
                }
            }
            _ => {}
        }
    }

    fn asked(&mut self, event: &Event, steers: bool) {
        let text = Shown::of(event.text.as_deref().unwrap_or_default());
        let prompt = text.one_line(ASK_CHARS);
        let last = self.asks.last();
        // A prompt that was seen on the screen is reported again by the agent's file.
        let again = |last: &&Ask| last.prompt == prompt && last.files.is_empty() && last.commands == 0;
        if last.filter(again).is_some() {
            return;
        }
        if last.is_none() || !steers {
            if self.asks.len() == ASKS {
                self.asks.remove(0);
                self.earlier = self.earlier.saturating_add(1);
            }
            let (named, files) = (Vec::new(), Vec::new());
            let turn = self.scope.turn;
            self.asks.push(Ask { turn, event: event.id, prompt, named, files, more_files: false, commands: 0 });
            self.scope.is_unnumbered = true;
            self.scope.reads.clear();
        }
        let Some(ask) = self.asks.last_mut() else { return };
        let named = names(text.as_str(), self.scope.cwd.as_deref());
        let has_firm = named.iter().any(|name| name.is_firm);
        // A prompt that names nothing may begin another subject. A prompt that only says "continue" does not.
        if has_firm {
            self.scope.is_known = true;
        } else if !steers && !is_continuation(text.as_str()) {
            self.scope.is_known = false;
        }
        if !steers && !is_continuation(text.as_str()) || has_firm {
            self.scope.streak = Streak::default();
        }
        // The person asked for the files with which the session seemed to leave its subject.
        let is_far = |file: &String| {
            let parts = parts(file);
            named.iter().any(|name| name.matches(file, &parts))
        };
        if self.scope.far.iter().any(is_far) {
            self.left = None;
            self.scope.far.clear();
        }
        for name in named {
            if name.is_firm {
                note(&mut ask.named, &name.text);
                if name.kind == NameKind::Path {
                    self.scope.anchor(&name.key, false);
                }
            }
            self.scope.remember(ask.event, name);
        }
    }

    fn called(&mut self, call: &ToolCall, event: &Event) {
        self.scope.is_unnumbered = false;
        let (files, mentions) = match call.tool {
            ToolKind::Edit => {
                let files = call.edited_files().take(FILES).map(str::to_owned).collect();
                let text = event.text.as_deref().unwrap_or_default();
                (files, self.scope.names.iter().any(|(_, name)| name.is_in(text)))
            }
            ToolKind::Read => (call.title.iter().cloned().collect(), false),
            ToolKind::Execute => {
                if let Some(ask) = self.asks.last_mut() {
                    ask.commands = ask.commands.saturating_add(1);
                }
                return;
            }
            ToolKind::Fetch
            | ToolKind::Mcp
            | ToolKind::Plan
            | ToolKind::Question
            | ToolKind::Subagent
            | ToolKind::Other => return,
        };
        let (event, sequence) = (event.id, event.sequence);
        let open = OpenCall { call_id: call.call_id.clone(), tool: call.tool, event, sequence, files, mentions };
        // If a call id is reused, it refers to the last call.
        self.scope.open.retain(|one| one.call_id != open.call_id);
        bounded(&mut self.scope.open, OPEN, open);
    }

    fn edited(&mut self, call: &OpenCall) {
        if self.asks.is_empty() {
            return;
        }
        let mut closest: Option<Distance> = None;
        let (mut is_unknown, mut far) = (false, Vec::new());
        for file in &call.files {
            let key = comparable(file, self.scope.cwd.as_deref());
            let distance = self.distance(&key, call.mentions);
            is_unknown |= distance.is_none();
            closest = distance.into_iter().chain(closest).min();
            self.record(file, distance, call.event);
            if distance > Some(Distance::Near) {
                far.push((one_line(file, FILE_CHARS), key));
            }
        }
        let scope = &mut self.scope;
        if closest.is_some_and(|closest| closest <= Distance::Near) {
            scope.since_close = Some(0);
            scope.streak = Streak::default();
            return;
        }
        let Some((first, _)) = far.first().filter(|_| !is_unknown) else { return };
        scope.since_close = scope.since_close.map(|edits| edits.saturating_add(1));
        let (turn, event, sequence) = (scope.turn, call.event, call.sequence);
        scope.streak.first.get_or_insert_with(|| Left { turn, event, sequence, file: first.clone() });
        scope.streak.edits = scope.streak.edits.saturating_add(1);
        for (_, key) in far {
            if scope.streak.files.len() < FILES && !scope.streak.files.contains(&key) {
                scope.streak.files.push(key);
            }
        }
        let directories: BTreeSet<&str> = scope.streak.files.iter().map(|file| directory(file)).collect();
        if self.left.is_none()
            && scope.streak.edits >= FAR_EDITS
            && directories.len() >= FAR_DIRECTORIES
            && scope.since_close.is_none_or(|edits| edits >= SINCE_CLOSE)
        {
            self.left.clone_from(&scope.streak.first);
            scope.far.clone_from(&scope.streak.files);
        }
    }

    /// The distance of an edit of this file; `None` if it is unknown. A name that matches becomes certain.
    fn distance(&mut self, key: &str, mentions: bool) -> Option<Distance> {
        let current = self.asks.last().map(|ask| ask.event);
        let (mut is_named, parts) = (false, parts(key));
        for (event, name) in self.scope.names.iter_mut().filter(|(_, name)| name.matches(key, &parts)) {
            is_named = true;
            self.scope.is_known |= name.kind != NameKind::Word && Some(*event) == current;
            if !std::mem::replace(&mut name.is_firm, true)
                && let Some(ask) = self.asks.iter_mut().rev().find(|ask| ask.event == *event)
            {
                note(&mut ask.named, &name.text);
            }
        }
        if is_named {
            self.scope.anchor(key, true);
            return Some(Distance::Named);
        }
        if mentions || is_manifest(key) || self.scope.is_near(key) {
            return Some(Distance::Near).filter(|_| self.scope.has_names());
        }
        let is_read = self.scope.reads.iter().any(|read| read == key);
        self.scope.is_known.then_some(if is_read { Distance::ReadFirst } else { Distance::Elsewhere })
    }

    fn record(&mut self, file: &str, distance: Option<Distance>, event: EventId) {
        let Some(ask) = self.asks.last_mut() else { return };
        let file = one_line(file, FILE_CHARS);
        if let Some(known) = ask.files.iter_mut().find(|known| known.file == file) {
            known.edits = known.edits.saturating_add(1);
            known.distance = known.distance.into_iter().chain(distance).min();
        } else if ask.files.len() < FILES {
            ask.files.push(ScopedFile { file, distance, edits: 1, event });
        } else {
            ask.more_files = true;
        }
    }
}

impl Scope {
    /// Remembers the place of a named file: its directory and its tests are near.
    fn anchor(&mut self, key: &str, is_whole: bool) {
        let place = directory(key);
        // Of a name without a directory, the directory is unknown until a file matches.
        if (is_whole || !place.is_empty()) && !self.directories.iter().any(|known| known == place) {
            bounded(&mut self.directories, PLACES, place.to_owned());
        }
        let subject = tested(key);
        if !subject.0.is_empty() && !self.subjects.contains(&subject) {
            bounded(&mut self.subjects, PLACES, subject);
        }
    }

    /// Remembers a name. If there are too many, plain words are dropped first.
    fn remember(&mut self, event: EventId, name: Name) {
        let is_word = |(_, name): &(EventId, Name)| name.kind == NameKind::Word;
        if self.names.len() == KNOWN
            && let Some(word) = self.names.iter().position(is_word)
        {
            self.names.remove(word);
        }
        bounded(&mut self.names, KNOWN, (event, name));
    }

    /// Records a successful read.
    fn read(&mut self, file: &str) {
        let key = comparable(file, self.cwd.as_deref());
        if self.names.iter().any(|(_, name)| name.is_firm && name.kind == NameKind::Path && name.matches(&key, &[])) {
            self.anchor(&key, true);
        }
        if !self.reads.contains(&key) {
            bounded(&mut self.reads, FILES, key);
        }
    }

    fn is_near(&self, key: &str) -> bool {
        let place = directory(key);
        let is_same = |known: &String| known == place || !known.is_empty() && place.ends_with(known.as_str());
        let (about, is_test) = tested(key);
        self.directories.iter().any(is_same)
            || self.subjects.iter().any(|(known, known_test)| *known == about && (is_test || *known_test))
    }

    /// Whether the person named anything in this session.
    fn has_names(&self) -> bool {
        self.is_known || self.names.iter().any(|(_, name)| name.is_firm)
    }
}

fn note(named: &mut Vec<String>, name: &str) {
    if named.len() < names::NAMES && !named.iter().any(|known| known == name) {
        named.push(name.to_owned());
    }
}

fn bounded<T>(all: &mut VecDeque<T>, limit: usize, one: T) {
    if all.len() == limit {
        all.pop_front();
    }
    all.push_back(one);
}

#[cfg(test)]
mod tests;
