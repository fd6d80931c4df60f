//! What a compaction keeps: the place of the cut, and the record that the program writes itself.
//!
//! A compaction replaces the beginning of the conversation by one text. Its first part, the record, is copied from the
//! session's entries: the user's messages, the to-do list, the files, the commands that fail and the calls that were
//! denied. It covers the whole session each time, so that it survives any number of compactions. The second part is the
//! model's summary ([`order`]).

use std::{collections::HashMap, fmt::Write as _};

use session_tree::{
    Entry, Json, Object, Tree,
    compaction::{CompactionPlan, CompactionSettings, SECTIONS},
    context::text_of,
};

use crate::{
    entries::{Decided, OWN_KEY, RuntimeEntry},
    input::CallVerdict,
    recorded::calls_of,
};

pub(crate) use session_tree::compaction::SYSTEM;

/// Tokens at the end of the conversation that are kept, unless the window is small.
const KEPT_TOKENS: u64 = 20_000;
/// Tokens reserved for the next prompt and its answer.
const RESERVED_TOKENS: u64 = 16_384;
/// Characters of the user's newest messages that are copied whole, per token that is kept.
const WHOLE_CHARS: u64 = 4;
/// Characters copied of each older message.
const OLD_CHARS: usize = 500;
/// Number of failing commands and of denied calls that are listed.
const LISTED: usize = 10;
/// Lines copied of the output of a failing command.
const OUTPUT_LINES: usize = 20;
/// Characters copied of a line of the record.
const LINE_CHARS: usize = 300;

/// What a compaction will keep.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactionCut {
    /// The first entry that is kept.
    pub first_kept: String,
    /// The estimated number of tokens in the context.
    pub tokens_before: u64,
    /// The record.
    pub record: String,
    /// The files read and modified.
    pub details: Json,
    /// The conversation up to the cut as one text, for a model that has not cached it.
    pub flattened: String,
}

/// The share of the context from which it is compacted, in tokens.
#[must_use]
pub const fn threshold(window: u64) -> u64 {
    let share = window / 100 * 15;
    let reserved = if share > RESERVED_TOKENS { share } else { RESERVED_TOKENS };
    window - if reserved > window / 2 { window / 2 } else { reserved }
}

/// The number of tokens at the end of the conversation that are kept.
#[must_use]
pub const fn kept_tokens(window: Option<u64>) -> u64 {
    match window {
        Some(window) if window / 5 < KEPT_TOKENS => window / 5,
        Some(_) | None => KEPT_TOKENS,
    }
}

/// The cut of a session whose tree is [whole](session_tree::Session::whole_tree). `None` if the conversation is not
/// longer than the part that is kept.
#[must_use]
pub fn cut(tree: &Tree, kept_tokens: u64) -> Option<CompactionCut> {
    let settings = CompactionSettings { keep_recent_tokens: kept_tokens, ..CompactionSettings::default() };
    let path = tree.leaf_path();
    let mut plan = CompactionPlan::of(&path, settings)?;
    // One summary covers all that is replaced, also the beginning of a turn.
    let prefix = std::mem::take(&mut plan.turn_prefix);
    plan.history.extend(prefix);
    let (read, modified) = plan.files.lists();
    let replaced = path.iter().take_while(|entry| entry.id() != Some(plan.first_kept));
    let whole_chars = usize::try_from(kept_tokens.saturating_mul(WHOLE_CHARS)).unwrap_or(usize::MAX);
    let record = record(&replaced.copied().collect::<Vec<_>>(), whole_chars, &read, &modified);
    let flattened = plan.requests(None).0.map(|request| request.prompt).unwrap_or_default();
    let list = |files: &[String]| Json::Array(files.iter().map(|file| Json::String(file.clone())).collect());
    let details = Object::new().with("readFiles", list(&read)).with("modifiedFiles", list(&modified));
    Some(CompactionCut {
        first_kept: plan.first_kept.to_owned(),
        tokens_before: plan.tokens_before,
        record,
        details: details.into(),
        flattened,
    })
}

/// The order to the model that has the conversation before it. `focus` is the user's wish; `again` says that the model
/// called a tool instead.
#[must_use]
pub(crate) fn order(focus: Option<&str>, again: bool) -> String {
    let mut text = String::from(
        "[Written by the program, not by the user. The context is almost full. The conversation above, except its last \
         messages, will be replaced by the summary that you write now, and by a record that the program keeps: the \
         user's messages, the to-do list, the files, the failing commands, the denied calls. Write what you need \
         besides to continue the work without the messages above. ",
    );
    if again {
        text += "Your last answer was no summary. ";
    }
    text += "Answer with the text only, and call no tool. Decided plans stay decided. Use exactly this form:\n\n";
    text += SECTIONS;
    if let Some(focus) = focus.filter(|focus| !focus.is_empty()) {
        let _ = write!(text, "\n\nThe user asks for this in the summary: {focus}");
    }
    text + "]"
}

/// The text that replaces the conversation.
#[must_use]
pub(crate) fn summary(cut: &CompactionCut, written: &str) -> String {
    format!("{}\n\n{}", cut.record, written.trim())
}

/// The record of the entries that are replaced.
fn record(replaced: &[&Entry], whole_chars: usize, read: &[String], modified: &[String]) -> String {
    let mut text = String::from("Record kept by the program; its quotations are verbatim.\n");
    let mut section = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            let _ = write!(text, "\n## {title}\n{}\n", lines.join("\n"));
        }
    };
    section("The user's messages", user_messages(replaced, whole_chars));
    section("To-do list", todo_list(replaced));
    section("Files modified", modified.iter().map(|file| format!("- {file}")).collect());
    section("Files only read", read.iter().map(|file| format!("- {file}")).collect());
    section("Commands that failed when they last ran", failing_commands(replaced));
    section("Denied calls", denied_calls(replaced));
    text.trim_end().to_owned()
}

/// The messages of people and programs: the newest ones whole, of older ones the beginnings, as long as these have no
/// more than half as many characters together.
fn user_messages(replaced: &[&Entry], whole_chars: usize) -> Vec<String> {
    let sent = replaced.iter().filter(|entry| entry.role() == Some("user"));
    let text = |entry: &&Entry| entry.message()?.get("content").map(|content| text_of(content, "\n"));
    let all: Vec<String> = sent.filter_map(text).collect();
    let (mut left, mut left_of_old) = (whole_chars, whole_chars / 2);
    let mut lines: Vec<String> = Vec::with_capacity(all.len());
    for (number, text) in all.iter().enumerate().rev() {
        let length = text.chars().count();
        let shown = if length <= left {
            left -= length;
            text.trim().to_owned()
        } else if left_of_old == 0 {
            lines.push(format!("(The first {} messages are only in the session's file.)", number + 1));
            break;
        } else {
            left = 0;
            left_of_old = left_of_old.saturating_sub(length.min(OLD_CHARS));
            let start: String = text.chars().take(OLD_CHARS).collect();
            let more = length.saturating_sub(OLD_CHARS);
            if more == 0 { start } else { format!("{} [{more} more characters]", start.trim()) }
        };
        lines.push(format!("{}. {shown}", number + 1));
    }
    lines.reverse();
    lines
}

fn calls<'a>(replaced: &'a [&'a Entry]) -> impl DoubleEndedIterator<Item = &'a Object> {
    replaced.iter().filter_map(|entry| entry.message()).flat_map(|message| calls_of(message).collect::<Vec<_>>())
}

fn argument<'a>(call: &'a Object, name: &str) -> Option<&'a str> {
    call.get("arguments")?.as_object()?.text(name)
}

/// The items of the last call of `todo`.
fn todo_list(replaced: &[&Entry]) -> Vec<String> {
    let last = calls(replaced).rfind(|call| call.text("name") == Some("todo"));
    let items = last.and_then(|call| call.get("arguments")?.as_object()?.get("items")?.as_array());
    let line = |item: &Object| Some(format!("- [{}] {}", item.text("state").unwrap_or("?"), item.text("text")?));
    items.unwrap_or_default().iter().filter_map(Json::as_object).filter_map(line).collect()
}

/// The commands whose last run failed, with the end of their output.
fn failing_commands(replaced: &[&Entry]) -> Vec<String> {
    let is_bash = |call: &&Object| call.text("name") == Some("bash");
    let command = |call: &'_ Object| Some((call.text("id")?.to_owned(), argument(call, "command")?.to_owned()));
    let commands: HashMap<String, String> = calls(replaced).filter(is_bash).filter_map(command).collect();
    let mut failing: Vec<(&str, u32, String)> = Vec::new();
    for message in replaced.iter().filter_map(|entry| entry.message()) {
        let (Some("toolResult"), Some(id)) = (message.text("role"), message.text("toolCallId")) else { continue };
        let Some(command) = commands.get(id) else { continue };
        let before = failing.iter().position(|(known, ..)| known == command).map(|at| failing.remove(at));
        if message.get("isError") == Some(&Json::Bool(true)) {
            let output = message.get("content").map(|content| text_of(content, "\n")).unwrap_or_default();
            failing.push((command, before.map_or(1, |(_, times, _)| times + 1), output));
        }
    }
    let shown = |(command, times, output): &(&str, u32, String)| {
        let lines: Vec<&str> = output.lines().collect();
        let end = &lines[lines.len().saturating_sub(OUTPUT_LINES)..];
        let end: Vec<String> = end.iter().map(|line| format!("  {}", line_of(line))).collect();
        let often = if *times > 1 { format!(" ({times} times)") } else { String::new() };
        format!("- `{}`{often}:\n{}", line_of(command), end.join("\n"))
    };
    let from = failing.len().saturating_sub(LISTED);
    failing[from..].iter().map(shown).collect()
}

/// The calls that were denied, with the reasons.
fn denied_calls(replaced: &[&Entry]) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in replaced {
        let Some(decided) = Decided::of(entry).filter(|decided| decided.decision.verdict == CallVerdict::Deny) else {
            continue;
        };
        let of_answer = |message: &&Object| {
            let origin = message.get(OWN_KEY).and_then(crate::entries::from_json::<crate::entries::AnswerOrigin>);
            origin.is_some_and(|origin| origin.request == decided.call.request)
        };
        let answer = replaced.iter().filter_map(|entry| entry.message()).find(of_answer);
        let call = answer.and_then(|answer| calls_of(answer).nth(usize::try_from(decided.call.index).ok()?));
        let what = call.map_or_else(String::new, |call| {
            let subject = ["command", "path", "url"].iter().find_map(|name| argument(call, name)).unwrap_or_default();
            format!("{} `{}`", call.text("name").unwrap_or_default(), line_of(subject))
        });
        let reason = decided.decision.reason.map(|reason| format!(": {}", line_of(&reason))).unwrap_or_default();
        lines.push(format!("- {what}, by {}{reason}", decided.decision.by));
    }
    let from = lines.len().saturating_sub(LISTED);
    lines.split_off(from)
}

/// A text in one line, shortened.
fn line_of(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
