//! Determines the actions of a code-mode script. Current models call one tool, `exec`, with JavaScript in which the
//! real tools are functions: `await tools.exec_command({"cmd":"ls"})`. This is not an interpreter: it scans the
//! script's words and literals, and omits anything it cannot see (a command assembled from variables).

use events::ToolKind;

use super::patch::{self, Patch};

/// The visible actions of a script.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Script {
    /// The kind of its most significant action.
    pub(super) tool: ToolKind,
    /// Its first command, or the one that requests more rights; else its patch, or its tool.
    pub(super) title: Option<String>,
    /// The files of its patch, if it edits several.
    pub(super) files: Vec<String>,
    /// Whether it requests more rights.
    pub(super) escalated: bool,
}

/// Scans a script.
pub(super) fn scan(source: &str) -> Script {
    let mut seen = ScriptScan::default();
    let mut before = [ScriptToken::Mark(b';'), ScriptToken::Mark(b';')];
    for token in (CodexTokens { source, at: 0 }) {
        match (before, token) {
            ([ScriptToken::Word("tools"), ScriptToken::Mark(b'.')], ScriptToken::Word(name)) => seen.call(name),
            ([ScriptToken::Word(key) | ScriptToken::Text(key), ScriptToken::Mark(b':')], ScriptToken::Text(value)) => {
                seen.field(key, value)
            }
            (
                [
                    ScriptToken::Word("with_escalated_permissions") | ScriptToken::Text("with_escalated_permissions"),
                    ScriptToken::Mark(b':'),
                ],
                ScriptToken::Word("true"),
            ) => {
                seen.escalate();
            }
            (_, ScriptToken::Text(value)) if value.starts_with("*** Begin Patch") && seen.patch.is_none() => {
                seen.patch = Some(Patch::of(&unquote(value)));
            }
            _ => {}
        }
        before = [before[1], token];
    }
    seen.finish(source)
}

#[derive(Default)]
struct ScriptScan<'s> {
    runs: bool,
    edits: bool,
    other: Option<&'s str>,
    first: Option<&'s str>,
    last: Option<&'s str>,
    asking: Option<&'s str>,
    escalated: bool,
    patch: Option<Patch>,
}

impl<'s> ScriptScan<'s> {
    fn call(&mut self, name: &'s str) {
        match name {
            "exec_command" | "shell" | "shell_command" | "write_stdin" => self.runs = true,
            "apply_patch" => self.edits = true,
            other => self.other = self.other.or(Some(other)),
        }
    }

    fn field(&mut self, key: &str, value: &'s str) {
        match (key, value) {
            ("cmd" | "command", value) => {
                self.first = self.first.or(Some(value));
                self.last = Some(value);
            }
            ("sandbox_permissions", "require_escalated") => self.escalate(),
            _ => {}
        }
    }

    fn escalate(&mut self) {
        self.escalated = true;
        self.asking = self.asking.or(self.last);
    }

    fn finish(self, source: &str) -> Script {
        let command = self.asking.or(self.first).and_then(|text| patch::title(&unquote(text)));
        let mut files = Vec::new();
        let (tool, title) = if self.runs {
            (ToolKind::Execute, command)
        } else if self.edits {
            let patch = self.patch.unwrap_or_default();
            files = patch.files;
            (ToolKind::Edit, patch.title)
        } else if let Some(name) = self.other {
            (kind(name), Some(full_name(name)))
        } else {
            (ToolKind::Other, None)
        };
        Script { tool, title: title.or_else(|| patch::title(source)), files, escalated: self.escalated }
    }
}

/// The kind of a tool with this name.
pub(super) fn kind(name: &str) -> ToolKind {
    match name {
        "exec_command" | "shell" | "shell_command" | "local_shell" | "container.exec" | "write_stdin"
        | "unified_exec" => ToolKind::Execute,
        "apply_patch" => ToolKind::Edit,
        "view_image" | "read_file" | "list_dir" | "grep_files" | "tool_search" => ToolKind::Read,
        "web_search" | "web_search_call" | "web_fetch" => ToolKind::Fetch,
        "request_user_input" => ToolKind::Question,
        "spawn_agent"
        | "wait_agent"
        | "send_input"
        | "send_message"
        | "followup_task"
        | "resume_agent"
        | "interrupt_agent"
        | "close_agent"
        | "spawn_agents_on_csv" => ToolKind::Subagent,
        name if name.starts_with("mcp__") => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}

/// `mcp__server__tool` as `server.tool`; other names unchanged.
pub(super) fn full_name(name: &str) -> String {
    match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        Some((server, tool)) => format!("{server}.{tool}"),
        None => name.to_owned(),
    }
}

#[derive(Clone, Copy, Debug)]
enum ScriptToken<'s> {
    Word(&'s str),
    /// The content of a string literal, as written.
    Text(&'s str),
    Mark(u8),
}

/// The words, string literals and punctuation of a script; white space and comments are skipped.
struct CodexTokens<'s> {
    source: &'s str,
    at: usize,
}

impl<'s> Iterator for CodexTokens<'s> {
    type Item = ScriptToken<'s>;

    fn next(&mut self) -> Option<ScriptToken<'s>> {
        let bytes = self.source.as_bytes();
        loop {
            let from = self.at;
            let byte = *bytes.get(from)?;
            self.at += 1;
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {}
                b'/' if bytes.get(self.at) == Some(&b'/') => self.pass(b"\n"),
                b'/' if bytes.get(self.at) == Some(&b'*') => self.pass(b"*/"),
                b'"' | b'\'' | b'`' => return Some(ScriptToken::Text(self.literal(byte))),
                byte if is_word(byte) => {
                    while bytes.get(self.at).copied().is_some_and(is_word) {
                        self.at += 1;
                    }
                    return Some(ScriptToken::Word(self.source.get(from..self.at).unwrap_or_default()));
                }
                mark => return Some(ScriptToken::Mark(mark)),
            }
        }
    }
}

impl<'s> CodexTokens<'s> {
    fn pass(&mut self, end: &[u8]) {
        let rest = &self.source.as_bytes()[self.at..];
        self.at += memchr::memmem::find(rest, end).map_or(rest.len(), |found| found + end.len());
    }

    /// The content of the literal that begins here; up to the end of the script if it is unterminated.
    fn literal(&mut self, quote: u8) -> &'s str {
        let from = self.at;
        let bytes = self.source.as_bytes();
        while let Some(found) = memchr::memchr2(quote, b'\\', &bytes[self.at..]) {
            let here = self.at + found;
            if bytes[here] == quote {
                self.at = here + 1;
                return self.source.get(from..here).unwrap_or_default();
            }
            self.at = (here + 2).min(bytes.len());
        }
        self.at = bytes.len();
        self.source.get(from..).unwrap_or_default()
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// Decodes the content of a JavaScript string literal.
fn unquote(literal: &str) -> String {
    let mut text = String::with_capacity(literal.len());
    let mut chars = literal.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('u') => text.push(unit(&mut chars)),
            Some('\n') | None => {}
            Some(other) => text.push(other),
        }
    }
    text
}

/// The character of `\u….`; surrogate pairs are not combined.
fn unit(chars: &mut std::str::Chars<'_>) -> char {
    let hex = match chars.as_str().strip_prefix('{').and_then(|rest| rest.split_once('}')) {
        Some((hex, rest)) => {
            *chars = rest.chars();
            hex
        }
        None => {
            let (hex, rest) = chars.as_str().split_at_checked(4).unwrap_or_default();
            *chars = rest.chars();
            hex
        }
    };
    u32::from_str_radix(hex, 16).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}
