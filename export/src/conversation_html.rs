//! Writes a conversation as one self-contained HTML page, piece by piece.
//!
//! Tool calls and sub-agents are folded, edits are shown as diffs, every item has an anchor (`#e12`, by its sequence;
//! in a sub-agent `#sID-e12`), and there is a search box. The page makes no requests: style and script are part of it,
//! and a policy in its head lets the browser run only these, by their hashes.
//!
//! The content of the session is untrusted and appears in the page only as text. Every text passes the caller's
//! function ([`HtmlOptions::redact`]) and then `Html::text`, which escapes every character with a meaning in HTML. Text
//! of a model is formatted from its Markdown (`markdown`), with elements created here. The script never creates HTML
//! from a text. The page of a session tree ([`crate::tree_html`]) has the same policy.

mod markdown;

use std::fmt::Write as _;

use events::{SessionId, Timestamp, ToolKind, ToolOutcome};
use projections::{CallResult, ConversationItem, ItemBody, Session, Subagent, shorten::verbatim_line};

use crate::{
    conversation::{
        FORGOTTEN, approval_words, attachment_words, ended, head_of, prompt_words, subagent_facts, turn_end,
        without_colours,
    },
    edits::FileEdits,
    tree_html::policy_of,
    unseen::push_escaped,
};

const STYLE: &str = include_str!("conversation_html/style.css");
const SCRIPT: &str = include_str!("conversation_html/script.js");
/// Longest title of a call, characters.
const TITLE_CHARS: usize = 300;

/// How a page is formatted.
#[derive(Clone, Copy)]
pub struct HtmlOptions<'a> {
    /// Removes everything from a text that must not leave the machine.
    pub redact: &'a dyn Fn(&str) -> String,
    /// Formats a time.
    pub time: &'a dyn Fn(Timestamp) -> String,
    /// The sub-agent whose items are written; `None` for the session itself.
    pub subagent: Option<SessionId>,
}

/// The beginning of the page: the description of the session, and the search box.
#[must_use]
pub fn begin(session: &Session, options: HtmlOptions<'_>) -> String {
    let title = verbatim_line(session.title.as_deref().unwrap_or("Untitled session"), TITLE_CHARS);
    let mut html = Html::new(options);
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"");
    html.raw(&policy_of(SCRIPT, STYLE));
    html.raw("\">\n<meta name=\"referrer\" content=\"no-referrer\">\n");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    html.text(&title);
    html.raw("</title>\n<style>");
    html.raw(STYLE);
    html.raw("</style>\n</head>\n<body>\n<header>\n<h1>");
    html.text(&title);
    html.raw("</h1>\n<p>");
    let [about, when] = head_of(session, options.time);
    html.text(&about);
    html.raw("<br>");
    html.text(&when);
    html.raw("</p>\n</header>\n<form role=\"search\"><input id=\"query\" type=\"search\" placeholder=\"Search\" aria-label=\"Search\">\n");
    html.raw("<output id=\"found\"></output>\n<button id=\"fold\" type=\"button\">Unfold all</button></form>\n");
    html.raw("<main>\n");
    html.out
}

/// One item; empty if there is nothing to read.
#[must_use]
pub fn item(item: &ConversationItem, options: HtmlOptions<'_>) -> String {
    let mut html = Html::new(options);
    match &item.body {
        ItemBody::Prompt { origin, text, attachments } => {
            html.open(item, "prompt", prompt_words(*origin));
            html.block("text", &text.text);
            if *attachments > 0 {
                html.block("note", &attachment_words(*attachments));
            }
        }
        ItemBody::Message { thinking, text, .. } => {
            let thinking = thinking.as_deref().filter(|thinking| !thinking.is_empty());
            if thinking.is_none() && text.is_empty() {
                return String::new();
            }
            // A message that contains only thinking is shown as a line, like a call.
            let (class, heading) = if text.is_empty() { ("call", "") } else { ("message", "Answer") };
            html.open(item, class, heading);
            if let Some(thinking) = thinking {
                html.raw("<details><summary>Thinking</summary>");
                html.markdown(thinking);
                html.raw("</details>\n");
            }
            html.markdown(&text.text);
        }
        // The caller writes sub-agents.
        ItemBody::Subagent(_) => return String::new(),
        ItemBody::ToolCall { name, tool, title, input, result, .. } => {
            html.open(item, if result.as_ref().is_some_and(failed) { "call failed" } else { "call" }, "");
            html.raw("<details><summary><b>");
            html.text(if name.is_empty() { "(a call that capture did not see)" } else { name });
            html.raw("</b> <code>");
            html.text(&verbatim_line(title.as_deref().unwrap_or_default(), TITLE_CHARS));
            html.raw("</code> <span>");
            html.text(&result.as_ref().map_or_else(|| "no result".to_owned(), ended));
            html.raw("</span></summary>\n");
            if *tool != ToolKind::Edit || !html.edits(&input.text) {
                html.block("input", &input.text);
            }
            if let Some(result) = result {
                html.block("output", &without_colours(&result.text.text));
            }
            html.raw("</details>\n");
        }
        ItemBody::Approval { subject, state, by, .. } => {
            html.open(item, "approval", "Permission request");
            html.block("input", subject.as_deref().unwrap_or_default());
            html.block("note", &approval_words(*state, *by));
        }
        ItemBody::Question { text, options: offered, answer } => {
            html.open(item, "question", "Question");
            html.block("text", &text.text);
            for option in offered {
                html.block("note", option);
            }
            if let Some(answer) = answer {
                html.block("text", &answer.text);
            }
        }
        ItemBody::Error { class, text, .. } => {
            html.open(item, "error", &format!("Error ({class})"));
            html.block("text", &text.text);
        }
        ItemBody::Compaction { text, .. } => {
            html.open(item, "compaction", "The context was compacted");
            html.markdown(&text.text);
        }
        ItemBody::TurnEnd { outcome, number, duration_ms } => {
            html.open(item, "end", &turn_end(*number, *outcome, *duration_ms));
        }
    }
    html.raw("</article>\n");
    html.out
}

/// The beginning of a sub-agent: the following items are folded until [`end_subagent`].
#[must_use]
pub fn begin_subagent(subagent: &Subagent, options: HtmlOptions<'_>) -> String {
    let mut html = Html::new(options);
    let _ = write!(html.out, "<details class=\"subagent\" id=\"s{}\"><summary><b>Sub-agent</b> ", subagent.session_id);
    html.text(&subagent_facts(subagent).join(" · "));
    html.raw("</summary>\n");
    html.out
}

/// A line that replaces a sub-agent's work if it was forgotten during the export.
#[must_use]
pub fn subagent_forgotten() -> String {
    format!("<p class=\"note\">{FORGOTTEN}</p>\n")
}

/// The end of a sub-agent.
#[must_use]
pub const fn end_subagent() -> &'static str {
    "</details>\n"
}

/// The end of the page.
#[must_use]
pub fn end() -> String {
    format!("</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n")
}

fn failed(result: &CallResult) -> bool {
    result.outcome != ToolOutcome::Ok
}

/// A piece of the page.
struct Html<'a> {
    out: String,
    options: HtmlOptions<'a>,
}

impl<'a> Html<'a> {
    const fn new(options: HtmlOptions<'a>) -> Self {
        Self { out: String::new(), options }
    }

    /// Appends HTML that this module creates.
    fn raw(&mut self, html: &str) {
        self.out.push_str(html);
    }

    /// Appends an untrusted text: redacted, and with characters that have a meaning in HTML escaped. Unprintable
    /// characters are shown by their numbers.
    fn text(&mut self, text: &str) {
        let text = (self.options.redact)(text);
        self.redacted(&text);
    }

    fn redacted(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.raw("&amp;"),
                '<' => self.raw("&lt;"),
                '>' => self.raw("&gt;"),
                '"' => self.raw("&quot;"),
                '\'' => self.raw("&#39;"),
                '\n' => self.out.push(c),
                '\r' => {}
                c => push_escaped(c, &mut self.out),
            }
        }
    }

    /// The beginning of an item, with its anchor, its heading and its time.
    fn open(&mut self, item: &ConversationItem, class: &str, heading: &str) {
        let of = self.options.subagent.map_or_else(String::new, |id| format!("s{id}-"));
        let _ =
            write!(self.out, "<article id=\"{of}e{0}\" class=\"{class}\"><h2><a href=\"#{of}e{0}\">", item.sequence);
        self.text(heading);
        self.raw(" <time>");
        self.text(&(self.options.time)(item.at));
        self.raw("</time></a>");
        let is_told = matches!(&item.body, ItemBody::ToolCall { subagents, .. } if !subagents.is_empty());
        if let Some(agent) = item.agent_id.as_ref().filter(|_| !is_told) {
            self.raw(" sub-agent ");
            self.text(agent);
        }
        self.raw("</h2>\n");
    }

    /// A block of text; nothing if the text is empty.
    fn block(&mut self, class: &str, text: &str) {
        if !text.is_empty() {
            let _ = write!(self.out, "<pre class=\"{class}\">");
            self.text(text);
            self.raw("</pre>\n");
        }
    }

    /// Appends the edits in a tool's input as diffs; returns false if there are none.
    fn edits(&mut self, input: &str) -> bool {
        // Secrets are searched for in whole texts, not in lines.
        let options = self.options;
        let redact = |text: &str| (options.redact)(text);
        let edits = match FileEdits::of(input) {
            Some(FileEdits::Replaced { path, texts }) => {
                let texts = texts.iter().map(|(old, new)| (redact(old), redact(new))).collect();
                FileEdits::Replaced { path, texts }
            }
            Some(FileEdits::Patch(patch)) => FileEdits::Patch(redact(&patch)),
            None => return false,
        };
        if let FileEdits::Replaced { path: Some(path), .. } = &edits {
            self.block("note", path);
        }
        self.raw("<pre class=\"diff\">");
        for line in edits.lines() {
            let class = match line.as_bytes().first() {
                Some(b'-') => "old",
                Some(b'+') => "new",
                Some(_) | None => "same",
            };
            let _ = write!(self.out, "<span class=\"{class}\">");
            self.redacted(&line);
            self.raw("</span>\n");
        }
        self.raw("</pre>\n");
        true
    }
}

#[cfg(test)]
mod tests;
