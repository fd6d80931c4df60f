//! Source code in a terminal: comments, strings, numbers and keywords in colour.
//!
//! A lexer for lines, not a parser: what it takes for the wrong thing has the wrong colour, and nothing else happens. Only
//! colours are added; every character stays.

use std::path::Path;

use anstyle::Style;

use crate::terminal::style;

/// Colour of keywords.
const KEYWORD: Style = style::MAGENTA;
/// Colour of strings.
const STRING: Style = style::YELLOW;
/// Colour of numbers.
const NUMBER: Style = style::CYAN;
/// Colour of comments.
const COMMENT: Style = style::DIM;

/// What the lexer must know of a language.
#[derive(Debug)]
struct Language {
    extensions: &'static [&'static str],
    /// What a comment that reaches to the end of the line begins with.
    comment: Option<&'static str>,
    /// What a comment over several lines begins and ends with.
    block: Option<(&'static str, &'static str)>,
    /// What a string begins and ends with.
    quotes: &'static [char],
    keywords: &'static [&'static str],
}

const C_COMMENTS: Option<(&str, &str)> = Some(("/*", "*/"));

static LANGUAGES: &[Language] = &[
    Language {
        extensions: &["rs"],
        comment: Some("//"),
        block: C_COMMENTS,
        // A single quote may begin a lifetime.
        quotes: &['"'],
        keywords: &[
            "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern", "false",
            "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return",
            "self", "Self", "static", "struct", "super", "trait", "true", "type", "unsafe", "use", "where", "while",
        ],
    },
    Language {
        extensions: &["py", "pyi"],
        comment: Some("#"),
        block: None,
        quotes: &['"', '\''],
        keywords: &[
            "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
            "except", "False", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "None",
            "nonlocal", "not", "or", "pass", "raise", "return", "True", "try", "while", "with", "yield",
        ],
    },
    Language {
        extensions: &["js", "mjs", "cjs", "jsx", "ts", "tsx", "mts", "cts"],
        comment: Some("//"),
        block: C_COMMENTS,
        quotes: &['"', '\'', '`'],
        keywords: &[
            "as",
            "async",
            "await",
            "break",
            "case",
            "catch",
            "class",
            "const",
            "continue",
            "default",
            "delete",
            "do",
            "else",
            "enum",
            "export",
            "extends",
            "false",
            "finally",
            "for",
            "from",
            "function",
            "if",
            "implements",
            "import",
            "in",
            "instanceof",
            "interface",
            "let",
            "new",
            "null",
            "of",
            "return",
            "static",
            "super",
            "switch",
            "this",
            "throw",
            "true",
            "try",
            "type",
            "typeof",
            "undefined",
            "var",
            "void",
            "while",
            "yield",
        ],
    },
    Language {
        extensions: &["go"],
        comment: Some("//"),
        block: C_COMMENTS,
        quotes: &['"', '\'', '`'],
        keywords: &[
            "break",
            "case",
            "chan",
            "const",
            "continue",
            "default",
            "defer",
            "else",
            "fallthrough",
            "false",
            "for",
            "func",
            "go",
            "goto",
            "if",
            "import",
            "interface",
            "map",
            "nil",
            "package",
            "range",
            "return",
            "select",
            "struct",
            "switch",
            "true",
            "type",
            "var",
        ],
    },
    Language {
        extensions: &["c", "h", "cc", "cpp", "cxx", "hh", "hpp", "java", "kt", "cs"],
        comment: Some("//"),
        block: C_COMMENTS,
        quotes: &['"', '\''],
        keywords: &[
            "abstract",
            "auto",
            "bool",
            "boolean",
            "break",
            "case",
            "catch",
            "char",
            "class",
            "const",
            "constexpr",
            "continue",
            "default",
            "delete",
            "do",
            "double",
            "else",
            "enum",
            "extends",
            "extern",
            "false",
            "final",
            "finally",
            "float",
            "for",
            "fun",
            "goto",
            "if",
            "implements",
            "import",
            "int",
            "interface",
            "long",
            "namespace",
            "new",
            "null",
            "nullptr",
            "override",
            "package",
            "private",
            "protected",
            "public",
            "return",
            "short",
            "signed",
            "sizeof",
            "static",
            "struct",
            "super",
            "switch",
            "template",
            "this",
            "throw",
            "throws",
            "true",
            "try",
            "typedef",
            "typename",
            "union",
            "unsigned",
            "using",
            "val",
            "var",
            "virtual",
            "void",
            "volatile",
            "when",
            "while",
        ],
    },
    Language {
        extensions: &["sh", "bash", "zsh", "fish"],
        comment: Some("#"),
        block: None,
        quotes: &['"', '\''],
        keywords: &[
            "break", "case", "continue", "do", "done", "elif", "else", "esac", "exit", "export", "fi", "for",
            "function", "if", "in", "local", "return", "set", "shift", "then", "trap", "unset", "until", "while",
        ],
    },
    Language {
        extensions: &["json", "jsonc", "jsonl"],
        comment: Some("//"),
        block: C_COMMENTS,
        quotes: &['"'],
        keywords: &["true", "false", "null"],
    },
    Language {
        extensions: &["yaml", "yml", "toml", "ini", "cfg"],
        comment: Some("#"),
        block: None,
        quotes: &['"', '\''],
        keywords: &["true", "false", "null", "yes", "no", "on", "off"],
    },
    Language {
        extensions: &["html", "htm", "xml", "svg", "vue"],
        comment: None,
        block: Some(("<!--", "-->")),
        quotes: &['"'],
        keywords: &[],
    },
    Language {
        extensions: &["css", "scss", "less"],
        comment: None,
        block: C_COMMENTS,
        quotes: &['"', '\''],
        keywords: &["important", "import", "media", "supports"],
    },
];

/// Colours the lines of a file, one after another.
#[derive(Debug)]
pub(crate) struct Painter {
    language: Option<&'static Language>,
    /// Whether a comment goes on from the line before.
    is_in_comment: bool,
}

impl Painter {
    /// For a file of this name; of a language that is not known, lines have their base colour only.
    pub(crate) fn of(path: &str) -> Self {
        let extension = Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let language = LANGUAGES.iter().find(|language| language.extensions.contains(&extension));
        Self { language, is_in_comment: false }
    }

    /// Whether it knows the language.
    pub(crate) fn knows(&self) -> bool {
        self.language.is_some()
    }

    /// The line in colours; what has none of its own has the base colour.
    pub(crate) fn line(&mut self, line: &str, base: Style) -> String {
        let Some(language) = self.language else { return style::coloured(line, base) };
        let mut out = String::with_capacity(line.len() + 64);
        let (mut rest, mut plain) = (line, 0);
        let mut before = None;
        while let Some(first) = rest[plain..].chars().next() {
            let here = &rest[plain..];
            let (length, style) = self.token(language, here, first, before);
            before = here[..length].chars().next_back();
            match style {
                None => plain += length,
                Some(style) => {
                    put(&mut out, &rest[..plain], base);
                    put(&mut out, &here[..length], style);
                    (rest, plain) = (&here[length..], 0);
                }
            }
        }
        put(&mut out, rest, base);
        out
    }

    /// The length and colour of what begins here; `before` is the character in front of it.
    fn token(&mut self, language: &Language, here: &str, first: char, before: Option<char>) -> (usize, Option<Style>) {
        if let Some((begin, end)) = language.block
            && (self.is_in_comment || here.starts_with(begin))
        {
            let from = if self.is_in_comment { 0 } else { begin.len() };
            let found = here[from..].find(end).map(|at| from + at + end.len());
            self.is_in_comment = found.is_none();
            return (found.unwrap_or(here.len()), Some(COMMENT));
        }
        // `$#` and `a#b` begin no comment.
        let stands_alone = before.is_none_or(char::is_whitespace);
        if language.comment.is_some_and(|mark| here.starts_with(mark) && (mark != "#" || stands_alone)) {
            return (here.len(), Some(COMMENT));
        }
        if language.quotes.contains(&first) {
            return (string(here, first), Some(STRING));
        }
        let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
        if first.is_ascii_digit() {
            let end = here.find(|c: char| !is_of_word(c) && c != '.').unwrap_or(here.len());
            return (end, Some(NUMBER));
        }
        if is_of_word(first) {
            let end = here.find(|c: char| !is_of_word(c)).unwrap_or(here.len());
            return (end, language.keywords.contains(&&here[..end]).then_some(KEYWORD));
        }
        (first.len_utf8(), None)
    }
}

/// The length of a string: to its closing quote, or to the end of the line.
fn string(here: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in here.char_indices().skip(1) {
        if !is_escaped && c == quote {
            return at + c.len_utf8();
        }
        is_escaped = !is_escaped && c == '\\';
    }
    here.len()
}

fn put(out: &mut String, text: &str, style: Style) {
    if !text.is_empty() {
        *out += &style::coloured(text, style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tokens with the initial of their colour: keyword, string, number, comment.
    #[track_caller]
    fn check(path: &str, lines: &[(&str, &str)]) {
        let mut painter = Painter::of(path);
        for (line, expected) in lines {
            let mut marked = painter.line(line, Style::new());
            for (style, initial) in [(KEYWORD, 'k'), (STRING, 's'), (NUMBER, 'n'), (COMMENT, 'c')] {
                marked = marked.replace(&style.to_string(), &format!("{initial}<"));
            }
            assert_eq!(marked.replace("\x1b[0m", ">"), *expected, "{path}: {line}");
        }
    }

    #[test]
    fn words_strings_numbers_and_comments_have_their_colours() {
        check(
            "/srv/src/a.rs",
            &[
                ("pub fn size<'a>(x: &'a str) -> u8 { 0x1f }", "k<pub> k<fn> size<'a>(x: &'a str) -> u8 { n<0x1f> }"),
                (r#"let s = "a \" // b"; // fn"#, r#"k<let> s = s<"a \" // b">; c<// fn>"#),
                ("/* one", "c</* one>"),
                ("fn two", "c<fn two>"),
                ("*/ fn three", "c<*/> k<fn> three"),
                ("let ünïcode_fn = \"ü", "k<let> ünïcode_fn = s<\"ü>"),
            ],
        );
        check("a.py", &[("def f(x='#'):  # why", "k<def> f(x=s<'#'>):  c<# why>")]);
        check("a.sh", &[("if [ $# -gt 1 ]; then", "k<if> [ $# -gt n<1> ]; k<then>")]);
        check("a.json", &[(r#"{"a": [1.5, null]}"#, r#"{s<"a">: [n<1.5>, k<null>]}"#)]);
        check("a.html", &[("<a href=\"x\"><!-- y", "<a href=s<\"x\">>c<<!-- y>")]);
        check("Makefile", &[("all: # x", "all: # x")]);
    }

    #[test]
    fn every_character_stays() {
        for path in ["a.rs", "a.py", "a.ts", "a.go", "a.c", "a.sh", "a.json", "a.toml", "a.html", "a.css", "a"] {
            let mut painter = Painter::of(path);
            for line in ["", "\"", "'", "`", "/*", "*/ /*x*/ é\"\\", "#", "// \"", "\\", "0", "a0.0.", "日本 = \"語\""]
            {
                let mut plain = painter.line(line, style::GREEN);
                while let Some(at) = plain.find("\x1b[") {
                    let end = at + plain[at..].find('m').unwrap();
                    plain.replace_range(at..=end, "");
                }
                assert_eq!(plain, line, "{path}");
            }
        }
    }

    #[test]
    fn no_extension_is_listed_twice() {
        let mut all: Vec<&str> = LANGUAGES.iter().flat_map(|language| language.extensions).copied().collect();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
