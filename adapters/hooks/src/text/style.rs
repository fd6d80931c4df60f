//! Detects how a JSON file is formatted, so that inserted text looks the same.

use jsonc_parser::ast::Object;

use crate::text::span::{Container, TextSpan};

/// The layout of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Style {
    /// The line end.
    pub(super) newline: &'static str,
    /// One level of indentation.
    pub(super) unit: String,
    /// Whether members are on separate lines by default.
    pub(super) lines: bool,
    /// The space after a colon, and after a comma that does not end a line.
    pub(super) gap: &'static str,
}

/// A value to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonForm {
    /// A text.
    Text(String),
    /// A number.
    Number(u64),
    /// Members in order.
    Array(Vec<JsonForm>),
    /// Named members in order.
    Object(Vec<(&'static str, JsonForm)>),
    /// A member with its name, to insert into an object.
    Named(&'static str, Box<JsonForm>),
}

impl Style {
    /// Detects the style of a text.
    pub(crate) fn of(text: &str, root: &Object<'_>) -> Self {
        let newline = match text.find('\n') {
            Some(at) if text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        };
        let container = Container::from(root);
        let (lines, unit) = match container.members.first() {
            None => (true, "  ".to_owned()),
            Some(first) => match own_line(text, container.span, *first) {
                None => (false, "  ".to_owned()),
                Some(indent) => {
                    let outer = line_indent(text, container.span.start);
                    (true, indent.strip_prefix(outer).unwrap_or(indent).to_owned())
                }
            },
        };
        let tight = root.properties.first().is_some_and(|first| {
            let name = TextSpan::from(&first.name).end;
            text[name..TextSpan::from(&first.value).start].ends_with(':')
        });
        Self { newline, unit, lines, gap: if tight { "" } else { " " } }
    }

    /// Whether the members of this container are on separate lines.
    pub(super) fn in_lines(&self, text: &str, container: &Container) -> bool {
        container.members.last().map_or(self.lines, |last| own_line(text, container.span, *last).is_some())
    }

    /// The indentation of this container's members.
    pub(super) fn indent_in(&self, text: &str, container: &Container) -> String {
        container
            .members
            .last()
            .and_then(|last| own_line(text, container.span, *last))
            .map_or_else(|| format!("{}{}", line_indent(text, container.span.start), self.unit), str::to_owned)
    }
}

impl JsonForm {
    /// The text of the value; `indent` is that of the line it begins on, `None` writes one line.
    pub(super) fn render(&self, style: &Style, indent: Option<&str>) -> String {
        let mut out = String::new();
        self.write(style, indent, &mut out);
        out
    }

    /// The text of a value without members.
    pub(crate) fn plain(&self) -> String {
        self.render(&Style { newline: "\n", unit: String::new(), lines: false, gap: " " }, None)
    }

    fn write(&self, style: &Style, indent: Option<&str>, out: &mut String) {
        match self {
            Self::Text(text) => *out += &serde_json::Value::from(text.as_str()).to_string(),
            Self::Number(number) => *out += &number.to_string(),
            Self::Named(name, value) => named(name, value, style, indent, out),
            Self::Array(items) => block(('[', ']'), items, style, indent, out, |item, indent, out| {
                item.write(style, indent, out);
            }),
            Self::Object(members) => block(('{', '}'), members, style, indent, out, |(name, value), indent, out| {
                named(name, value, style, indent, out);
            }),
        }
    }
}

fn named(name: &str, value: &JsonForm, style: &Style, indent: Option<&str>, out: &mut String) {
    *out += &serde_json::Value::from(name).to_string();
    out.push(':');
    *out += style.gap;
    value.write(style, indent, out);
}

fn block<T>(
    (open, close): (char, char),
    items: &[T],
    style: &Style,
    indent: Option<&str>,
    out: &mut String,
    write: impl Fn(&T, Option<&str>, &mut String),
) {
    let inner = indent.map(|indent| format!("{indent}{}", style.unit));
    out.push(open);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        match &inner {
            Some(inner) => {
                *out += style.newline;
                *out += inner;
            }
            None if index > 0 => *out += style.gap,
            None => {}
        }
        write(item, inner.as_deref(), out);
    }
    if let Some(indent) = indent {
        *out += style.newline;
        *out += indent;
    }
    out.push(close);
}

/// The indentation of a member that begins a line; `None` for other members.
fn own_line(text: &str, container: TextSpan, member: TextSpan) -> Option<&str> {
    let before = &text[container.start + 1..member.start];
    let line = &before[before.rfind('\n')? + 1..];
    line.chars().all(|c| c == ' ' || c == '\t').then_some(line)
}

/// The indentation of the line at this offset.
pub(super) fn line_indent(text: &str, offset: usize) -> &str {
    let line = &text[text[..offset].rfind('\n').map_or(0, |at| at + 1)..offset];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}
