//! The files, directories and identifiers that a prompt names, and how they match a path.

use std::path::Path;

/// Maximum number of names read from a prompt.
pub(super) const NAMES: usize = 12;
/// Maximum number of plain words read from a prompt.
const WORDS: usize = 32;
/// Length of a prompt that is searched for names, bytes.
const PROMPT_BYTES: usize = 64 << 10;
/// Longest name, bytes.
const NAME_BYTES: usize = 200;

/// The kind of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    /// A file or a directory, from its last component up: `parser.rs`, `src/parser`.
    Path,
    /// An identifier: `parse_line`, `Parser::parse`.
    Identifier,
    /// A plain word. It matches a file or a directory of that name, but does not state what the prompt is about.
    Word,
}

/// A name in a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    /// The name as the person wrote it.
    pub text: String,
    /// The name in the form that is compared: see [`comparable`]; for an identifier, its parts.
    pub key: String,
    pub kind: NameKind,
    /// Whether the person certainly named a file to change. Other names count once a changed file matches them:
    /// `and/or` looks like a path, and a document may only be the description of the task.
    pub is_firm: bool,
}

impl Name {
    /// Whether this is the name of the file or of one of its directories; `file` is [`comparable`], and `parts` are its
    /// [`parts`].
    pub(super) fn matches(&self, file: &str, parts: &[String]) -> bool {
        match self.kind {
            NameKind::Path => {
                let is_at = |at: usize| file.as_bytes().get(at + self.key.len()).is_none_or(|next| *next == b'/');
                file.match_indices(self.key.as_str()).any(|(at, _)| is_at(at))
            }
            NameKind::Identifier => self.key.split(' ').any(|key| parts.iter().any(|part| part == key)),
            NameKind::Word => parts.iter().any(|part| singular(part) == singular(&self.key)),
        }
    }

    /// Whether the text of an edit contains this identifier.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.kind == NameKind::Identifier && self.text.len() >= 4 && text.contains(&self.text)
    }
}

/// A path in the form that is compared: lowercase, with `/` before each component, relative to the session's directory
/// if it is inside. Empty if nothing remains.
pub(super) fn comparable(path: &str, cwd: Option<&str>) -> String {
    let path = path.trim();
    let inside = cwd.and_then(|cwd| Path::new(path).strip_prefix(cwd).ok()).and_then(Path::to_str);
    let mut out = String::with_capacity(path.len() + 1);
    for part in inside.unwrap_or(path).split(['/', '\\']) {
        if !matches!(part, "" | "." | ".." | "~") {
            out.push('/');
            out.extend(part.chars().flat_map(char::to_lowercase));
        }
    }
    out
}

/// The directory of a comparable path.
pub(super) fn directory(file: &str) -> &str {
    file.rfind('/').map_or("", |end| &file[..end])
}

fn file_name(file: &str) -> &str {
    file.rfind('/').map_or(file, |end| &file[end + 1..])
}

/// The directories of a comparable path and the name of its file without extensions, each without punctuation.
pub(super) fn parts(file: &str) -> Vec<String> {
    let last = file_name(file);
    let stem = last.split('.').find(|part| !part.is_empty()).unwrap_or(last);
    directory(file).split('/').filter(|part| !part.is_empty()).chain([stem]).map(squashed).collect()
}

fn squashed(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn singular(word: &str) -> &str {
    word.strip_suffix('s').filter(|rest| rest.len() > 2).unwrap_or(word)
}

/// What a file is about, without the marks of a test, and whether it is a test: `/tests/parser_test.rs` is a test of
/// `parser`, `/src/parser/tests.rs` too.
pub(super) fn tested(file: &str) -> (String, bool) {
    const MARKS: &[&str] = &["test", "tests", "spec", "specs"];
    const DIRECTORIES: &[&str] = &["test", "tests", "spec", "specs", "__tests__", "__snapshots__"];
    let name = file_name(file);
    let mut is_test = directory(file).split('/').any(|part| DIRECTORIES.contains(&part));
    let mut parts: Vec<&str> = name.split(['.', '_', '-']).filter(|part| !part.is_empty()).collect();
    if let Some(dot) = name.rfind('.').filter(|dot| *dot > 0 && parts.len() > 1) {
        // Extensions, including that of a snapshot.
        parts.truncate(name[..dot].split(['.', '_', '-']).filter(|part| !part.is_empty()).count());
        if name.ends_with(".snap") {
            parts.pop();
        }
    }
    let all = parts.len();
    parts.retain(|part| !MARKS.contains(part));
    is_test |= parts.len() < all;
    let mut about = squashed(&parts.concat());
    // `ParserTest.java`, in lower case.
    if let [only] = parts.as_slice()
        && let Some(base) = MARKS.iter().find_map(|mark| only.strip_suffix(mark)).filter(|base| base.len() > 2)
        && !matches!(*only, "latest" | "contest" | "protest" | "attest" | "greatest" | "fastest" | "manifest")
    {
        (about, is_test) = (squashed(base), true);
    }
    if matches!(about.as_str(), "" | "mod" | "index") {
        about = directory(file).rsplit('/').find(|part| !DIRECTORIES.contains(part)).map(squashed).unwrap_or_default();
    }
    (about, is_test)
}

/// Whether a file is the manifest of a package, or its lock file.
pub(super) fn is_manifest(file: &str) -> bool {
    const NAMES: &[&str] = &[
        "build.gradle",
        "build.gradle.kts",
        "bun.lock",
        "bun.lockb",
        "cargo.lock",
        "cargo.toml",
        "cmakelists.txt",
        "composer.json",
        "composer.lock",
        "deno.json",
        "deno.lock",
        "flake.lock",
        "flake.nix",
        "gemfile",
        "gemfile.lock",
        "go.mod",
        "go.sum",
        "go.work",
        "gradle.lockfile",
        "mix.exs",
        "mix.lock",
        "npm-shrinkwrap.json",
        "package-lock.json",
        "package.json",
        "package.resolved",
        "package.swift",
        "pdm.lock",
        "pipfile",
        "pipfile.lock",
        "pnpm-lock.yaml",
        "pnpm-workspace.yaml",
        "podfile",
        "podfile.lock",
        "poetry.lock",
        "pom.xml",
        "pubspec.lock",
        "pubspec.yaml",
        "pyproject.toml",
        "settings.gradle",
        "setup.cfg",
        "setup.py",
        "uv.lock",
        "yarn.lock",
    ];
    let name = file_name(file);
    NAMES.contains(&name)
        || name.starts_with("requirements") && name.ends_with(".txt")
        || [".csproj", ".sln", ".gemspec", ".cabal"].iter().any(|end| name.ends_with(end))
}

/// Whether a prompt only asks the agent to continue.
pub(super) fn is_continuation(prompt: &str) -> bool {
    const WORDS: &[&str] = &[
        "again", "ahead", "and", "carry", "continue", "do", "finish", "go", "good", "great", "it", "keep", "lgtm",
        "more", "next", "now", "ok", "okay", "on", "please", "proceed", "really", "resume", "retry", "sure", "thanks",
        "that", "then", "with", "working", "y", "yes", "going", "yep", "just", "try",
    ];
    prompt.len() < 200
        && prompt
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .all(|word| WORDS.contains(&word.to_lowercase().as_str()))
}

/// The names in a prompt: paths, identifiers and directories, at most [`NAMES`], then plain words.
pub(super) fn names(prompt: &str, cwd: Option<&str>) -> Vec<Name> {
    let prompt = &prompt[..prompt.floor_char_boundary(PROMPT_BYTES)];
    let (mut names, mut words): (Vec<Name>, Vec<Name>) = (Vec::new(), Vec::new());
    let add = |to: &mut Vec<Name>, limit: usize, name: Option<Name>| {
        let Some(name) = name else { return };
        let known = to.iter_mut().find(|one| one.key == name.key && one.kind == name.kind);
        if let Some(known) = known {
            known.is_firm |= name.is_firm;
        } else if to.len() < limit {
            to.push(name);
        }
    };
    let mut is_quoted = false;
    for line in prompt.lines() {
        if line.trim_start().starts_with("```") {
            is_quoted = !is_quoted;
            continue;
        }
        // Every second piece is between backticks.
        for (n, piece) in line.split('`').enumerate() {
            let is_code = n % 2 == 1 && !is_quoted;
            let tokens: Vec<&str> = piece.split_whitespace().collect();
            for (at, token) in tokens.iter().enumerate() {
                let token = trimmed(token);
                let mut name = path_of(token, cwd);
                // Names in quoted code and logs are often not what is to be changed.
                if let Some(name) = &mut name {
                    name.is_firm &= !is_quoted;
                }
                if name.is_none() && is_code && tokens.len() == 1 {
                    name = identifier_of(token);
                }
                if name.is_none() && !is_quoted {
                    let next = tokens.get(at + 1).is_some_and(|next| is_place(trimmed(next)));
                    let last = at.checked_sub(1).and_then(|at| tokens.get(at)).is_some_and(|last| is_place(last));
                    if next || last {
                        name = directory_of(token);
                    }
                }
                if name.is_none() && !is_quoted {
                    add(&mut words, WORDS, word_of(token));
                }
                add(&mut names, NAMES, name);
            }
        }
    }
    names.extend(words);
    names
}

/// A word without the punctuation around it, and without a line number.
fn trimmed(token: &str) -> &str {
    let is_around = |c: char| "\"'“”‘’«»()[]{}<>,;:!?*".contains(c);
    let token = token.strip_suffix("'s").or_else(|| token.strip_suffix("’s")).unwrap_or(token);
    let token = token.trim_matches(is_around).trim_start_matches('@').trim_end_matches(['.', '…']);
    let token = token.trim_matches(is_around);
    let token = token.split_once("#L").map_or(token, |(path, _)| path);
    let mut token = token;
    while let Some((path, line)) = token.rsplit_once(':')
        && !line.is_empty()
        && line.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
    {
        token = path;
    }
    token
}

/// Whether a word announces a directory: `the parser crate`, `in the directory docs`.
fn is_place(word: &str) -> bool {
    const PLACES: &[&str] = &["crate", "dir", "directory", "folder", "module", "package", "subdirectory"];
    PLACES.contains(&word.to_lowercase().as_str())
}

fn path_of(token: &str, cwd: Option<&str>) -> Option<Name> {
    let is_odd = |c: char| c.is_control() || "|=;$\"'<>(){},".contains(c);
    if token.len() > NAME_BYTES || token.contains("://") || token.contains(is_odd) || token.contains("::") {
        return None;
    }
    // Of a pattern, the directory counts.
    let (path, is_pattern) = token.find('*').map_or((token, false), |at| (&token[..at], true));
    let path = if is_pattern { path.rfind(['/', '\\']).map_or("", |end| &path[..=end]) } else { path };
    let key = comparable(path, cwd);
    let last = file_name(&key);
    let has_slash = path.contains('/') || path.contains('\\') && !path.contains("\\n");
    let is_words = key.split('/').skip(1).all(|part| part.contains(char::is_alphabetic));
    if key.is_empty() || !is_words || has_slash && is_host(&key, path) {
        return None;
    }
    let of = |is_firm| Some(Name { text: token.to_owned(), key: key.clone(), kind: NameKind::Path, is_firm });
    match extension(last) {
        Some(extension) if has_slash => of(!is_document(extension)),
        Some(extension) if SOURCES.contains(&extension) && !is_product(last) => of(true),
        Some(extension) if is_document(extension) => of(false),
        _ if matches!(last, "makefile" | "dockerfile" | "justfile" | "rakefile" | "gemfile" | "jenkinsfile") => {
            of(path != last)
        }
        _ if last.starts_with('.') && last.len() > 2 && !has_slash => of(true),
        // `src/parser/` is a directory; `and/or` may be one.
        _ if has_slash => of(path.ends_with(['/', '\\']) && key.len() > 1),
        _ => None,
    }
}

/// Whether a path begins with the name of a host: `github.com/a/b`.
fn is_host(key: &str, path: &str) -> bool {
    let first = key[1..].split('/').next().unwrap_or_default();
    !path.starts_with(['.', '/', '~'])
        && [".com", ".org", ".io", ".dev", ".net", ".rs"].iter().any(|end| first.ends_with(end))
        && key.matches('/').count() > 1
}

/// The extension of a file's name, if it looks like one: not `3.5`, `v1.2` or `e.g`.
fn extension(name: &str) -> Option<&str> {
    let (stem, extension) = name.rsplit_once('.')?;
    let looks = extension.len() <= 10
        && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && extension.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
    (looks && !stem.is_empty() && !matches!(name, "e.g" | "i.e")).then_some(extension)
}

fn is_document(extension: &str) -> bool {
    const DOCUMENTS: &[&str] = &["md", "mdx", "txt", "rst", "adoc", "pdf", "png", "jpg", "jpeg", "gif", "log", "csv"];
    DOCUMENTS.contains(&extension)
}

/// Extensions that make a word without a directory the name of a file.
const SOURCES: &[&str] = &[
    "bash", "c", "cc", "cfg", "cjs", "clj", "conf", "cpp", "cs", "css", "cts", "cxx", "dart", "eex", "elm", "erl",
    "ex", "exs", "fs", "go", "gradle", "graphql", "h", "heex", "hpp", "hs", "html", "ini", "ipynb", "java", "jl", "js",
    "json", "jsx", "kt", "kts", "less", "lock", "lua", "m", "mjs", "ml", "mod", "mts", "nix", "php", "pl", "proto",
    "ps1", "py", "pyi", "rb", "rs", "sass", "scala", "scss", "sh", "sql", "sum", "svelte", "svg", "swift", "tf",
    "toml", "ts", "tsx", "vue", "xml", "yaml", "yml", "zig",
];

/// Whether a word with an extension is the name of a product.
fn is_product(name: &str) -> bool {
    const PRODUCTS: &[&str] = &[
        "node", "next", "vue", "nuxt", "three", "d3", "express", "react", "chart", "ember", "backbone", "alpine", "p5",
        "discord", "moment",
    ];
    name.strip_suffix(".js").is_some_and(|stem| PRODUCTS.contains(&stem))
}

fn identifier_of(token: &str) -> Option<Name> {
    let is_identifier = (3..=NAME_BYTES).contains(&token.len())
        && token.chars().all(|c| c.is_alphanumeric() || "_-:.#?!".contains(c))
        && token.contains(char::is_alphabetic)
        && !token.starts_with('-');
    let parts: Vec<_> = token.split([':', '.', '#']).map(squashed).filter(|part| part.len() > 2).collect();
    (is_identifier && !parts.is_empty()).then(|| Name {
        text: token.to_owned(),
        key: parts.join(" "),
        kind: NameKind::Identifier,
        is_firm: false,
    })
}

fn directory_of(token: &str) -> Option<Name> {
    let word = word_of(token)?;
    let key = format!("/{}", token.to_lowercase());
    Some(Name { key, kind: NameKind::Path, ..word })
}

fn word_of(token: &str) -> Option<Name> {
    const STOP: &[&str] = &[
        "add",
        "all",
        "and",
        "any",
        "are",
        "but",
        "can",
        "change",
        "code",
        "directory",
        "does",
        "file",
        "files",
        "fix",
        "folder",
        "for",
        "from",
        "has",
        "have",
        "into",
        "make",
        "module",
        "new",
        "not",
        "now",
        "our",
        "package",
        "please",
        "same",
        "should",
        "that",
        "the",
        "then",
        "there",
        "these",
        "this",
        "those",
        "use",
        "was",
        "what",
        "when",
        "where",
        "which",
        "why",
        "will",
        "with",
        "work",
        "you",
        "your",
        "crate",
        "dir",
        "other",
        "another",
        "whole",
        "each",
        "every",
        "its",
        "one",
        "right",
        "wrong",
        "current",
    ];
    let is_word = token.len() <= 60
        && token.chars().count() > 2
        && token.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    let key = squashed(token);
    (is_word && key.len() > 2 && !STOP.contains(&key.as_str())).then(|| Name {
        text: token.to_owned(),
        key,
        kind: NameKind::Word,
        is_firm: false,
    })
}
