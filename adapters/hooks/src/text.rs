//! Edits handwritten JSON in place: text is inserted and removed, and the rest stays byte for byte.
//!
//! There are two edits, and the second undoes the first: [`insert`] adds a member at the end of an object or array,
//! [`remove`] removes a member. They operate on text and spans and are independent of hooks. Comments stay in place, a
//! trailing comma is preserved, and inserted text is formatted like its neighbours ([`style`]).
//!
//! `jsonc-parser` parses the text and returns the span of every value.

mod span;
mod style;

use jsonc_parser::{
    ParseOptions,
    ast::{Object, ObjectProp, Value},
    common::Ranged,
};

pub(super) use self::style::{JsonForm, Style};
pub(super) use span::{Container, TextSpan};

/// The dialect of JSON an agent accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonDialect {
    /// Standard JSON.
    Plain,
    /// With comments, and with trailing commas.
    Commented,
}

/// The position and description of a problem in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) what: String,
}

impl Problem {
    /// The problem with the text at `offset`.
    pub(super) fn at(text: &str, offset: usize, what: impl Into<String>) -> Self {
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            what: what.into(),
        }
    }
}

/// Parses a text whose top level must be an object.
pub(super) fn parse(text: &str, dialect: JsonDialect) -> Result<Object<'_>, Problem> {
    let lenient = dialect == JsonDialect::Commented;
    let options = ParseOptions {
        allow_comments: lenient,
        allow_trailing_commas: lenient,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = jsonc_parser::parse_to_ast(text, &jsonc_parser::CollectOptions::default(), &options)
        .map_err(|error| Problem::at(text, error.range().start, format!("not valid JSON: {}", error.kind())))?;
    match parsed.value {
        Some(Value::Object(object)) => Ok(object),
        Some(other) => Err(Problem::at(text, other.range().start, "the top level is not an object")),
        None => Err(Problem::at(text, text.len(), "not valid JSON: the file has no value")),
    }
}

/// The effective member with this name: the last one, as in every agent's parser.
pub(super) fn member<'o, 't>(object: &'o Object<'t>, name: &str) -> Option<&'o ObjectProp<'t>> {
    object.properties.iter().rev().find(|property| property.name.as_str() == name)
}

/// Inserts a member after the last one and the comments following it.
pub(super) fn insert(text: &str, style: &Style, into: &Container, item: &JsonForm) -> String {
    let close = into.span.end - 1;
    let from = into.members.last().map_or(into.span.start + 1, |last| last.end);
    let gap = Gap::of(text, from, close);
    let at = gap.comments.last().map(|c| c.end).into_iter().chain(gap.comma.map(|c| c + 1)).max().unwrap_or(from);
    let lines = style.in_lines(text, into) || gap.ends_in_line_comment;
    let indent = style.indent_in(text, into);
    let rendered = item.render(style, lines.then_some(indent.as_str()));
    let lead = if lines {
        format!("{}{indent}", style.newline)
    } else if into.members.is_empty() {
        String::new()
    } else {
        style.gap.to_owned()
    };
    let mut out = String::with_capacity(text.len() + rendered.len() + 64);
    out += &text[..from];
    if !into.members.is_empty() && gap.comma.is_none() {
        out.push(',');
    }
    out += &text[from..at];
    out += &lead;
    out += &rendered;
    if gap.comma.is_some() {
        out.push(',');
    }
    let rest = &text[at..close];
    if into.members.is_empty() && lines && !rest.contains('\n') {
        // The closing bracket goes on its own line.
        out += style.newline;
        out += style::line_indent(text, into.span.start);
    } else {
        out += rest;
    }
    out += &text[close..];
    out
}

/// Removes a member, with its comma and the space before it.
pub(super) fn remove(text: &str, from: &Container, index: usize) -> String {
    let close = from.span.end - 1;
    let member = from.members[index];
    let before = if index == 0 { from.span.start + 1 } else { from.members[index - 1].end };
    let after = from.members.get(index + 1).map_or(close, |next| next.start);
    let following = Gap::of(text, member.end, after);
    let preceding = Gap::of(text, before, member.start);

    // The space before it is removed, unless its line end is needed to terminate a comment.
    let mut start = before + text[before..member.start].trim_end().len();
    let mut end = member.end;
    let comma = match following.comma {
        Some(comma) if text[end..comma].trim().is_empty() => {
            end = comma + 1;
            None
        }
        Some(comma) => Some(comma),
        None => preceding.comma.filter(|_| index > 0),
    };
    let rest = &text[end..];
    let ends_its_line = rest[..rest.len() - rest.trim_start().len()].contains('\n');
    if preceding.ends_in_line_comment && !ends_its_line {
        start = member.start;
    } else if index == 0 && start == member.start {
        end += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }
    if from.members.len() == 1 && text[before..start].trim().is_empty() && text[end..close].trim().is_empty() {
        (start, end) = (before, close);
    }
    let mut cuts = vec![TextSpan { start, end }];
    cuts.extend(comma.map(|at| TextSpan { start: at, end: at + 1 }));
    cuts.sort_unstable_by_key(|cut| cut.start);
    let mut out = String::with_capacity(text.len());
    let mut kept = 0;
    for cut in cuts {
        out += &text[kept..cut.start];
        kept = cut.end;
    }
    out + &text[kept..]
}

/// Replaces a span by other text.
pub(super) fn replace(text: &str, span: TextSpan, with: &str) -> String {
    format!("{}{with}{}", &text[..span.start], &text[span.end..])
}

/// The text between two members: space, comments, at most one comma.
#[derive(Debug, Default)]
struct Gap {
    comma: Option<usize>,
    comments: Vec<TextSpan>,
    /// Whether the following text must begin a new line.
    ends_in_line_comment: bool,
}

impl Gap {
    fn of(text: &str, from: usize, to: usize) -> Self {
        let mut gap = Self::default();
        let mut at = from;
        while at < to {
            let rest = &text[at..to];
            let length = if rest.starts_with("//") {
                rest.find(['\n', '\r']).unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else {
                if rest.starts_with(',') {
                    gap.comma = Some(at);
                    gap.ends_in_line_comment = false;
                }
                at += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            };
            gap.ends_in_line_comment = rest.starts_with("//");
            gap.comments.push(TextSpan { start: at, end: at + length });
            at += length;
        }
        gap
    }
}
