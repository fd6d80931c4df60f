//! Formats a model's Markdown as part of the page: headings, lists, tables, code, emphasis and links.
//!
//! Every element is created here. No attribute comes from a text, except the address of a link that is http, https or
//! mailto. The address follows the link, so that the text of a link cannot hide it. HTML in a text is shown as it was
//! written, and an image is shown as its description and its address, so nothing is loaded.

use std::fmt::Write as _;

use pulldown_cmark::{Event, HeadingLevel, LinkType, Options, Parser, Tag, TextMergeStream};

use super::Html;
use crate::unseen::is_unseen;

/// Longest text that is parsed as Markdown, bytes; a longer one is shown unchanged.
const MARKDOWN_BYTES: usize = 256 << 10;
/// Maximum nesting of elements; deeper ones are written without an element.
const DEPTH: usize = 24;
/// Schemes of addresses that become links.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

/// An open element, by how it is closed.
enum OpenElement {
    /// Nothing was opened.
    Nothing,
    /// This tag closes it.
    Closes(&'static str),
    /// A link to an address; its text begins at `words`.
    Link { address: String, is_followed: bool, words: usize },
}

impl Html<'_> {
    /// A text as Markdown; nothing if the text is empty.
    pub(super) fn markdown(&mut self, text: &str) {
        if text.len() > MARKDOWN_BYTES {
            return self.block("text", text);
        }
        if text.is_empty() {
            return;
        }
        // Secrets are searched for in the whole text first. The parts that Markdown produces are redacted again,
        // because characters written with a backslash or a number are joined there.
        let text = (self.options.redact)(text);
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
        let mut open: Vec<OpenElement> = Vec::new();
        let mut is_head = false;
        self.raw("<div class=\"md\">");
        for event in TextMergeStream::new(Parser::new_ext(&text, options)) {
            match event {
                Event::Start(tag) => {
                    is_head = matches!(tag, Tag::TableHead) || is_head && !matches!(tag, Tag::TableRow);
                    let opened = if open.len() < DEPTH { self.start(&tag, is_head) } else { OpenElement::Nothing };
                    open.push(opened);
                }
                Event::End(_) => match open.pop() {
                    Some(OpenElement::Closes(close)) => self.raw(close),
                    Some(OpenElement::Link { address, is_followed, words }) => {
                        self.end_link(&address, is_followed, words)
                    }
                    Some(OpenElement::Nothing) | None => {}
                },
                Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) | Event::FootnoteReference(text) => {
                    self.text(&text);
                }
                Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                    self.raw("<code>");
                    self.text(&text);
                    self.raw("</code>");
                }
                // Models use line breaks intentionally.
                Event::SoftBreak | Event::HardBreak => self.raw("<br>\n"),
                Event::Rule => self.raw("<hr>\n"),
                Event::TaskListMarker(is_done) => self.raw(if is_done { "☑ " } else { "☐ " }),
            }
        }
        self.raw("</div>\n");
    }

    /// The beginning of an element, in the head of a table or elsewhere.
    fn start(&mut self, tag: &Tag<'_>, is_head: bool) -> OpenElement {
        let (begin, end) = match tag {
            Tag::Paragraph => ("<p>", "</p>\n"),
            // The page has an h1, and items have h2.
            Tag::Heading { level: HeadingLevel::H1, .. } => ("<h3>", "</h3>\n"),
            Tag::Heading { level: HeadingLevel::H2, .. } => ("<h4>", "</h4>\n"),
            Tag::Heading { level: HeadingLevel::H3, .. } => ("<h5>", "</h5>\n"),
            Tag::Heading { .. } => ("<h6>", "</h6>\n"),
            Tag::BlockQuote(_) => ("<blockquote>", "</blockquote>\n"),
            Tag::CodeBlock(_) => ("<pre class=\"input\"><code>", "</code></pre>\n"),
            Tag::HtmlBlock | Tag::MetadataBlock(_) => ("<pre class=\"text\">", "</pre>\n"),
            Tag::List(None) | Tag::DefinitionList => ("<ul>", "</ul>\n"),
            Tag::List(Some(1)) => ("<ol>", "</ol>\n"),
            Tag::List(Some(first)) => {
                let _ = write!(self.out, "<ol start=\"{first}\">");
                return OpenElement::Closes("</ol>\n");
            }
            Tag::Item | Tag::FootnoteDefinition(_) | Tag::DefinitionListTitle | Tag::DefinitionListDefinition => {
                ("<li>", "</li>\n")
            }
            Tag::Table(_) => ("<div class=\"table\"><table>", "</table></div>\n"),
            Tag::TableHead | Tag::TableRow => ("<tr>", "</tr>\n"),
            Tag::TableCell if is_head => ("<th>", "</th>"),
            Tag::TableCell => ("<td>", "</td>"),
            Tag::Emphasis | Tag::Superscript | Tag::Subscript => ("<em>", "</em>"),
            Tag::Strong => ("<strong>", "</strong>"),
            Tag::Strikethrough => ("<del>", "</del>"),
            Tag::Link { link_type: LinkType::Email, dest_url, .. } => {
                return self.start_link(&format!("mailto:{dest_url}"), true);
            }
            Tag::Link { dest_url, .. } => return self.start_link(dest_url, true),
            Tag::Image { dest_url, .. } => return self.start_link(dest_url, false),
        };
        self.raw(begin);
        OpenElement::Closes(end)
    }

    fn start_link(&mut self, address: &str, is_link: bool) -> OpenElement {
        let redacted = (self.options.redact)(address);
        let has_scheme =
            SCHEMES.iter().any(|scheme| redacted.get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme)));
        // A bracket may belong to a redaction mark.
        let is_plain = !redacted.chars().any(|c| c == '[' || c.is_whitespace() || is_unseen(c));
        let is_followed = is_link && has_scheme && is_plain && redacted == address;
        if is_followed {
            self.raw("<a rel=\"noreferrer\" href=\"");
            self.redacted(&redacted);
            self.raw("\">");
        }
        OpenElement::Link { address: redacted, is_followed, words: self.out.len() }
    }

    fn end_link(&mut self, address: &str, is_followed: bool, words: usize) {
        let from = self.out.len();
        self.redacted(address);
        let shown = self.out.split_off(from);
        let words = self.out.get(words..).unwrap_or_default();
        let says_where = words == shown || shown.strip_prefix("mailto:") == Some(words);
        if is_followed {
            self.raw("</a>");
        }
        if !says_where && !shown.is_empty() {
            let _ = write!(self.out, " <span class=\"address\">({shown})</span>");
        }
    }
}
