//! Finds every command that a line may run, for rules that deny or ask.
//!
//! Nothing here decides that a line is safe. Wrappers are unwrapped, scripts in words and here-documents are parsed,
//! loops and functions are entered. For a text that cannot be parsed, all its words count.

use std::{collections::BTreeMap, sync::Arc};

use brush_parser::{
    Parser, ParserOptions, ast,
    word::{Parameter, ParameterExpr, SpecialParameter, TildeExpr, WordPiece, WordPieceWithSource},
};

use crate::programs::{self, Wrapper, base_name};

/// Longest line that is parsed here, bytes.
const MAX_BYTES: usize = 32 * 1024;
/// Maximum number of commands that are examined.
const MAX_COMMANDS: usize = 1000;
/// Maximum nesting of scripts in scripts.
const MAX_DEPTH: usize = 8;
/// Maximum number of openings of groups, substitutions and loops in a line.
const MAX_OPENINGS: usize = 60;
/// Maximum number of simultaneously open groups: the parser's effort doubles with each.
const MAX_OPEN: usize = 8;
/// Maximum nesting of commands that run commands.
const MAX_WRAPPED: usize = 12;
/// Maximum number of values of a loop's variable, and of commands of one `find`.
const MAX_VALUES: usize = 256;
/// Maximum number of words of a program that runs others that may be the program.
const MAX_STARTS: usize = 12;

/// A word whose text may be only partly known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PossibleWord {
    /// The text without quotes. An unknown variable remains as `$NAME`, a home directory as `~`.
    pub(crate) text: String,
    /// Whether the program receives exactly this text.
    pub(crate) exact: bool,
}

/// The target of a redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PossibleRedirect {
    /// From a file.
    Read(String),
    /// Into a file.
    Write(String),
}

/// A command that a line may run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PossibleCommand {
    /// Its words.
    pub(crate) words: Vec<PossibleWord>,
    /// Whether the first word is certainly the program. Otherwise any word may be.
    pub(crate) certain: bool,
    /// Whether these are all words of a text that could not be parsed completely.
    pub(crate) loose: bool,
    /// Variables that are set for the command, or by it.
    pub(crate) assignments: Vec<(String, String)>,
    pub(crate) redirects: Vec<PossibleRedirect>,
    /// Indices of the commands whose output is its input.
    pub(crate) from: Vec<usize>,
    /// Indices of the commands whose output is part of its words.
    pub(crate) within: Vec<usize>,
    /// Text that is its input.
    pub(crate) input: Option<String>,
}

impl PossibleCommand {
    /// The texts of its words.
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.words.iter().map(|word| word.text.as_str()).collect()
    }

    /// Every text in the command that may name something: words, files, values of variables.
    pub(crate) fn mentioned(&self) -> impl Iterator<Item = &str> {
        let files = self.redirects.iter().map(|redirect| match redirect {
            PossibleRedirect::Read(file) | PossibleRedirect::Write(file) => file.as_str(),
        });
        let values = self.assignments.iter().map(|(_, value)| value.as_str());
        self.words.iter().map(|word| word.text.as_str()).chain(files).chain(values)
    }

    /// The name of its program, without a directory.
    pub(crate) fn name(&self) -> String {
        self.words.first().map(|word| base_name(&word.text)).unwrap_or_default()
    }
}

/// The commands of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PossibleCommands {
    pub(crate) all: Vec<PossibleCommand>,
    /// Whether a function of the line calls itself in the background or through a pipe.
    pub(crate) multiplies: bool,
}

/// The commands that a text may run.
pub(crate) fn find(text: &str) -> PossibleCommands {
    let mut finder = Finder::new();
    finder.text(text, &[]);
    finder.ended(text);
    finder.found
}

/// The commands that a parsed line may run, by its simple commands.
pub(super) struct FoundCommands {
    pub(super) all: Arc<PossibleCommands>,
    by: BTreeMap<usize, Vec<usize>>,
    /// The commands that represent those beyond the limit.
    rest: Vec<usize>,
}

impl FoundCommands {
    /// The commands that a simple command of the line may run.
    pub(super) fn of(&self, command: &ast::SimpleCommand) -> Vec<usize> {
        let mut all = self.by.get(&std::ptr::from_ref(command).addr()).cloned().unwrap_or_default();
        all.extend(&self.rest);
        all
    }
}

/// The commands that a parsed line may run.
pub(super) fn of_program(program: &ast::Program, text: &str) -> FoundCommands {
    let mut finder = Finder::new();
    for list in &program.complete_commands {
        finder.list(&list.0, &[]);
    }
    let rest = finder.ended(text);
    FoundCommands { all: Arc::new(finder.found), by: finder.by, rest }
}

struct Finder {
    options: ParserOptions,
    found: PossibleCommands,
    /// The values of variables, and the commands whose output they are.
    variables: BTreeMap<String, (String, Vec<usize>)>,
    depth: usize,
    /// Number of commands around the current one.
    wrapped: usize,
    /// The commands found for each simple command, by its address.
    by: BTreeMap<usize, Vec<usize>>,
}

/// The parts of a word.
#[derive(Default)]
struct Unquoted {
    words: Vec<PossibleWord>,
    open: Option<PossibleWord>,
    /// The command lines that are substituted in it.
    scripts: Vec<String>,
    /// The commands whose output is the value of its variables.
    from: Vec<usize>,
}

impl Unquoted {
    fn push(&mut self, text: &str, exact: bool) {
        let word = self.open.get_or_insert_with(|| PossibleWord { text: String::new(), exact: true });
        word.text.push_str(text);
        word.exact &= exact;
    }

    /// Adds a text that is split at blanks.
    fn split(&mut self, text: &str, exact: bool) {
        for (index, part) in text.split([' ', '\t', '\n']).enumerate() {
            if index > 0 {
                self.words.extend(self.open.take());
            }
            if !part.is_empty() {
                self.push(part, exact);
            }
        }
    }
}

impl Finder {
    fn new() -> Self {
        Self {
            options: ParserOptions::default(),
            found: PossibleCommands::default(),
            variables: BTreeMap::new(),
            depth: 0,
            wrapped: 0,
            by: BTreeMap::new(),
        }
    }

    /// Reads a command line; returns the commands whose output is its output.
    fn text(&mut self, text: &str, from: &[usize]) -> Vec<usize> {
        if self.depth >= MAX_DEPTH || self.found.all.len() >= MAX_COMMANDS {
            return self.words_only(text, from);
        }
        let Some(program) = self.parse(text) else { return self.words_only(text, from) };
        // Each command of a line is added once more for the commands around it.
        self.depth += 1;
        let all = program.complete_commands.iter().flat_map(|list| self.list(&list.0, from)).collect();
        self.depth -= 1;
        all
    }

    fn parse(&self, text: &str) -> Option<ast::Program> {
        if text.len() > MAX_BYTES || nests_too_deep(text) {
            return None;
        }
        Parser::new(std::io::Cursor::new(text), &self.options).parse_program().ok()
    }

    /// Handles a text that cannot be parsed: all its words, in order, as one command.
    fn words_only(&mut self, text: &str, from: &[usize]) -> Vec<usize> {
        let text = without_comments(text);
        let joined = text.replace(['\'', '"', '\\'], "");
        let word = |text: String| PossibleWord { text, exact: false };
        [text.as_str(), &joined]
            .map(|text| {
                let words = split(text).into_iter().map(word).collect();
                self.add(PossibleCommand { words, loose: true, from: from.to_vec(), ..PossibleCommand::default() })
            })
            .into()
    }

    /// If the limit was reached, adds the line as a list of its words.
    fn ended(&mut self, text: &str) -> Vec<usize> {
        if self.found.all.len() < MAX_COMMANDS { Vec::new() } else { self.words_only(text, &[]) }
    }

    fn add(&mut self, command: PossibleCommand) -> usize {
        self.found.all.push(command);
        self.found.all.len() - 1
    }

    fn list(&mut self, list: &[ast::CompoundListItem], from: &[usize]) -> Vec<usize> {
        let mut all = Vec::new();
        for ast::CompoundListItem(and_or, _) in list {
            all.extend(self.pipeline(&and_or.first, from));
            for ast::AndOr::And(pipeline) | ast::AndOr::Or(pipeline) in &and_or.additional {
                all.extend(self.pipeline(pipeline, from));
            }
        }
        all
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline, from: &[usize]) -> Vec<usize> {
        let mut input = from.to_vec();
        let mut last = Vec::new();
        for command in &pipeline.seq {
            last = self.command(command, &input);
            input.extend(&last);
        }
        last
    }

    fn command(&mut self, command: &ast::Command, from: &[usize]) -> Vec<usize> {
        if self.found.all.len() >= MAX_COMMANDS {
            return Vec::new();
        }
        match command {
            ast::Command::Simple(simple) => self.simple(simple, from),
            ast::Command::Compound(compound, redirects) => {
                let from = self.around(redirects.as_ref(), from);
                self.compound(compound, &from)
            }
            ast::Command::Function(function) => {
                self.found.multiplies |= multiplies(function);
                self.compound(&function.body.0, from)
            }
            ast::Command::ExtendedTest(test, _) => {
                let text = test.to_string();
                for script in substitutions(&text) {
                    self.text(&script, &[]);
                }
                Vec::new()
            }
        }
    }

    /// The redirections around a group, as a separate command whose output is the input of the group.
    fn around(&mut self, redirects: Option<&ast::RedirectList>, from: &[usize]) -> Vec<usize> {
        let mut command = PossibleCommand { certain: true, from: from.to_vec(), ..PossibleCommand::default() };
        for redirect in redirects.into_iter().flat_map(|list| &list.0) {
            self.redirect(redirect, &mut command);
        }
        if command.redirects.is_empty() && command.input.is_none() && command.from.len() == from.len() {
            return from.to_vec();
        }
        let index = self.add(command);
        let mut all = from.to_vec();
        all.push(index);
        all
    }

    fn compound(&mut self, compound: &ast::CompoundCommand, from: &[usize]) -> Vec<usize> {
        use ast::CompoundCommand as Compound;
        match compound {
            Compound::BraceGroup(group) => self.list(&group.list.0, from),
            Compound::Subshell(group) => self.list(&group.list.0, from),
            Compound::ForClause(clause) => {
                let (mut words, mut values) = (Vec::new(), Vec::new());
                for word in clause.values.iter().flatten() {
                    let (more, from) = self.words(word);
                    words.extend(more);
                    values.extend(from);
                }
                let mut seen = std::collections::BTreeSet::new();
                words.retain(|word| seen.insert(word.text.clone()));
                let before = self.variables.get(&clause.variable_name).cloned();
                let mut all = Vec::new();
                for word in words.iter().take(MAX_VALUES) {
                    self.variables.insert(clause.variable_name.clone(), (word.text.clone(), values.clone()));
                    all.extend(self.list(&clause.body.list.0, from));
                }
                if words.is_empty() {
                    all.extend(self.list(&clause.body.list.0, from));
                }
                match before {
                    Some(value) => self.variables.insert(clause.variable_name.clone(), value),
                    None => self.variables.remove(&clause.variable_name),
                };
                all
            }
            Compound::ArithmeticForClause(clause) => self.list(&clause.body.list.0, from),
            Compound::WhileClause(clause) | Compound::UntilClause(clause) => {
                let mut all = self.list(&clause.0.0, from);
                all.extend(self.list(&clause.1.list.0, from));
                all
            }
            Compound::IfClause(clause) => {
                let mut all = self.list(&clause.condition.0, from);
                all.extend(self.list(&clause.then.0, from));
                for branch in clause.elses.iter().flatten() {
                    if let Some(condition) = &branch.condition {
                        all.extend(self.list(&condition.0, from));
                    }
                    all.extend(self.list(&branch.body.0, from));
                }
                all
            }
            Compound::CaseClause(clause) => {
                let (_, mut all) = self.words(&clause.value);
                for case in clause.cases.iter().filter_map(|case| case.cmd.as_ref()) {
                    all.extend(self.list(&case.0, from));
                }
                all
            }
            Compound::Coprocess(process) => self.command(&process.body, from),
            Compound::Arithmetic(arithmetic) => {
                for script in substitutions(&arithmetic.expr.value) {
                    self.text(&script, &[]);
                }
                Vec::new()
            }
        }
    }

    fn simple(&mut self, simple: &ast::SimpleCommand, from: &[usize]) -> Vec<usize> {
        let first = self.found.all.len();
        let all = self.one(simple, from);
        self.by.entry(std::ptr::from_ref(simple).addr()).or_default().extend(first..self.found.all.len());
        all
    }

    fn one(&mut self, simple: &ast::SimpleCommand, from: &[usize]) -> Vec<usize> {
        let mut command = PossibleCommand { certain: true, from: from.to_vec(), ..PossibleCommand::default() };
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.item(item, true, &mut command);
        }
        if let Some(word) = &simple.word_or_name {
            let (words, within) = self.words(word);
            command.words.extend(words);
            command.within.extend(within);
        }
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, false, &mut command);
        }
        if command.words.is_empty() {
            for (name, value) in &command.assignments {
                self.variables.insert(name.clone(), (value.clone(), command.within.clone()));
            }
        }
        self.run(command)
    }

    fn item(&mut self, item: &ast::CommandPrefixOrSuffixItem, prefix: bool, command: &mut PossibleCommand) {
        match item {
            ast::CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect, command),
            ast::CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) if prefix => {
                let (words, within) = self.words(word);
                command.within.extend(within);
                let text = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
                let value = text.split_once('=').map_or("", |(_, value)| value).to_owned();
                let name = match &assignment.name {
                    ast::AssignmentName::VariableName(name) => name.clone(),
                    ast::AssignmentName::ArrayElementName(name, _) => name.clone(),
                };
                command.assignments.push((name, value));
            }
            ast::CommandPrefixOrSuffixItem::Word(word) | ast::CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                let (words, within) = self.words(word);
                command.words.extend(words);
                command.within.extend(within);
            }
            ast::CommandPrefixOrSuffixItem::ProcessSubstitution(kind, group) => {
                let from: &[usize] = match kind {
                    ast::ProcessSubstitutionKind::Read => &[],
                    ast::ProcessSubstitutionKind::Write => &command.from.clone(),
                };
                let made = self.list(&group.list.0, from);
                command.within.extend(made);
                command.words.push(PossibleWord { text: "/dev/fd/63".into(), exact: false });
            }
        }
    }

    fn redirect(&mut self, redirect: &ast::IoRedirect, command: &mut PossibleCommand) {
        use ast::{IoFileRedirectKind as Kind, IoFileRedirectTarget as Target, IoRedirect as Io};
        match redirect {
            Io::File(_, kind, Target::Filename(word) | Target::Duplicate(word)) => {
                let (words, from) = self.words(word);
                command.from.extend(from);
                let texts = words.into_iter().map(|word| word.text);
                let of = match kind {
                    Kind::Read | Kind::DuplicateInput => PossibleRedirect::Read,
                    Kind::Write | Kind::Append | Kind::Clobber | Kind::ReadAndWrite | Kind::DuplicateOutput => {
                        PossibleRedirect::Write
                    }
                };
                command.redirects.extend(texts.map(of));
            }
            Io::File(_, _, Target::ProcessSubstitution(_, group)) => {
                let made = self.list(&group.list.0, &command.from.clone());
                command.from.extend(made);
            }
            Io::File(_, _, Target::Fd(_)) => {}
            Io::OutputAndError(word, _) => {
                let (words, _) = self.words(word);
                command.redirects.extend(words.into_iter().map(|word| PossibleRedirect::Write(word.text)));
            }
            Io::HereDocument(_, document) => {
                if document.requires_expansion {
                    for script in substitutions(&document.doc.value) {
                        let made = self.text(&script, &[]);
                        command.from.extend(made);
                    }
                }
                command.input = Some(document.doc.value.clone());
            }
            Io::HereString(_, word) => {
                let (words, from) = self.words(word);
                command.from.extend(from);
                command.input = Some(words.into_iter().map(|word| word.text).collect::<Vec<_>>().join(" "));
            }
        }
    }

    /// Adds a command, with all commands it runs.
    fn run(&mut self, mut command: PossibleCommand) -> Vec<usize> {
        if matches!(command.name().as_str(), "read" | "mapfile" | "readarray") {
            for word in command.words.iter().skip(1).filter(|word| !word.text.starts_with('-')) {
                let value = format!("${}", word.text);
                self.variables.insert(word.text.clone(), (value, command.from.clone()));
            }
        }
        if self.found.all.len() >= MAX_COMMANDS {
            return Vec::new();
        }
        let name = command.name();
        command.certain = programs::is_known(&name) || crate::tools::tool(&name).is_some();
        let inner = if self.wrapped < MAX_WRAPPED {
            self.inner(&name, &command)
        } else {
            // Beyond this depth, any word may be the program.
            command.certain = false;
            Vec::new()
        };
        self.wrapped += 1;
        let index = self.add(command.clone());
        let mut all = vec![index];
        // The inner command inherits the input, variables and redirections.
        for inner in inner {
            match inner {
                Inner::Words(words) => {
                    let mut within = command.within.clone();
                    if matches!(name.as_str(), "find" | "gfind" | "xargs" | "parallel") {
                        within.push(index);
                        within.extend(&command.from);
                    }
                    all.extend(self.run(PossibleCommand { words, within, ..command.clone() }));
                }
                Inner::Text(text) => all.extend(self.text(&text, &command.from)),
            }
        }
        self.wrapped -= 1;
        all
    }

    fn inner(&self, name: &str, command: &PossibleCommand) -> Vec<Inner> {
        let words = command.words.get(1..).unwrap_or_default();
        if self.depth > MAX_DEPTH {
            return Vec::new();
        }
        let mut all = Vec::new();
        if let Some(wrapper) = programs::wrapper(name) {
            self.wrapped(wrapper, words, command, &mut all);
        }
        match name {
            "find" | "gfind" => all.extend(executed(words)),
            "git" => all.extend(by_git(words)),
            // `npm exec -- x`, `poetry run x`, `docker exec c x`
            "npm" | "pnpm" | "yarn" | "bun" | "poetry" | "uv" | "pipenv" | "bundle" | "mise" | "direnv" | "docker"
            | "podman" | "kubectl" | "conda" | "rustup" => {
                let runs = |word: &PossibleWord| matches!(word.text.as_str(), "exec" | "x" | "run" | "dlx");
                if let Some(at) = words.iter().position(runs) {
                    let rest = &words[at + 1..];
                    all.extend((0..rest.len()).map(|start| Inner::Words(rest[start..].to_vec())).take(MAX_STARTS));
                }
            }
            _ => {}
        }
        all
    }

    fn wrapped(&self, wrapper: &Wrapper, words: &[PossibleWord], command: &PossibleCommand, all: &mut Vec<Inner>) {
        let mut rest = words;
        let mut scripts = false;
        while let [word, behind @ ..] = rest {
            let text = word.text.as_str();
            if text == "--" {
                rest = behind;
                break;
            }
            if text.len() < 2 || !text.starts_with(['-', '+']) {
                break;
            }
            let bundled = |option: &String| {
                option.len() == 2
                    && !text.starts_with("--")
                    && option[1..].chars().all(|letter| text[1..].contains(letter))
            };
            let attached = wrapper.text.iter().find_map(|option| text.strip_prefix(&format!("{option}=")));
            if let Some(script) = attached {
                all.push(Inner::Text(script.to_owned()));
                rest = behind;
            } else if wrapper.text.iter().any(|option| option == text || bundled(option)) {
                scripts = true;
                // `bash -c 'x'`; in `bash -c -x 'x'` the script is a later word.
                if wrapper.shell {
                    rest = behind;
                    continue;
                }
                all.extend(behind.first().map(|word| Inner::Text(word.text.clone())));
                rest = behind.get(1..).unwrap_or_default();
            } else if wrapper.values.iter().any(|option| option == text) {
                rest = behind.get(1..).unwrap_or_default();
            } else {
                rest = behind;
            }
        }
        if wrapper.shell {
            if scripts {
                all.extend(rest.first().map(|word| Inner::Text(word.text.clone())));
            }
            all.extend(command.input.clone().map(Inner::Text));
            // `echo 'x' | sh`
            for from in command.from.iter().filter_map(|from| self.found.all.get(*from)) {
                match from.name().as_str() {
                    "echo" | "printf" => all.push(Inner::Text(from.texts()[1..].join(" ").replace("\\n", "\n"))),
                    _ => all.extend(from.input.clone().map(Inner::Text)),
                }
            }
            return;
        }
        rest = rest.get(wrapper.skip..).unwrap_or_default();
        // `flock FILE -c 'x'`
        if let [option, script, ..] = rest
            && wrapper.text.contains(&option.text)
        {
            all.push(Inner::Text(script.text.clone()));
        }
        if wrapper.assignments {
            let assigns = |word: &&PossibleWord| word.text.contains('=') && !word.text.starts_with(['-', '/', '.']);
            rest = &rest[rest.iter().take_while(assigns).count()..];
        }
        if wrapper.joined {
            let text = rest.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
            all.push(Inner::Text(text));
        } else if !rest.is_empty() {
            all.push(Inner::Words(rest.to_vec()));
        }
    }

    /// A word without its quotes, possibly expanded to several; and the commands whose output it contains.
    fn words(&mut self, word: &ast::Word) -> (Vec<PossibleWord>, Vec<usize>) {
        let Ok(pieces) = brush_parser::word::parse(&word.value, &self.options) else {
            return (vec![PossibleWord { text: word.value.replace(['\'', '"', '\\'], ""), exact: false }], Vec::new());
        };
        let mut made = Unquoted::default();
        for piece in &pieces {
            self.piece(piece, false, &mut made);
        }
        let Unquoted { mut words, open, scripts, mut from } = made;
        words.extend(open);
        let words = words.into_iter().flat_map(|word| braces(&word)).collect();
        for script in &scripts {
            from.extend(self.text(script, &[]));
        }
        (words, from)
    }

    fn piece(&self, piece: &WordPieceWithSource, quoted: bool, made: &mut Unquoted) {
        match &piece.piece {
            WordPiece::Text(text) | WordPiece::SingleQuotedText(text) => made.push(text, true),
            WordPiece::AnsiCQuotedText(text) => made.push(&ansi(text), true),
            WordPiece::EscapeSequence(text) => {
                let text = text.strip_prefix('\\').unwrap_or(text);
                made.push(if text == "\n" { "" } else { text }, true);
            }
            WordPiece::DoubleQuotedSequence(pieces) | WordPiece::GettextDoubleQuotedSequence(pieces) => {
                made.push("", true);
                for piece in pieces {
                    self.piece(piece, true, made);
                }
            }
            WordPiece::TildeExpansion(TildeExpr::Home) => made.push("~", true),
            WordPiece::TildeExpansion(TildeExpr::UserHome(user)) => made.push(&format!("~{user}"), true),
            WordPiece::TildeExpansion(_) => made.push("~+", false),
            WordPiece::ParameterExpansion(expression) => self.expansion(expression, quoted, made),
            WordPiece::CommandSubstitution(script) => self.substituted(script.clone(), quoted, made),
            WordPiece::BackquotedCommandSubstitution(script) => {
                self.substituted(script.replace("\\`", "`"), quoted, made);
            }
            WordPiece::ArithmeticExpression(expression) => {
                made.scripts.extend(substitutions(&expression.value));
                made.push("0", false);
            }
        }
    }

    /// Adds the output of a substitution: for `echo` and `printf`, their words.
    #[expect(clippy::wildcard_enum_match_arm, reason = "of the parser's many forms only these are known")]
    fn substituted(&self, script: String, quoted: bool, made: &mut Unquoted) {
        let said = self.parse(&script).and_then(|program| {
            let [list] = program.complete_commands.as_slice() else { return None };
            let [ast::CompoundListItem(and_or, _)] = list.0.as_slice() else { return None };
            let [ast::Command::Simple(simple)] = and_or.first.seq.as_slice() else { return None };
            let name = simple.word_or_name.as_ref()?;
            let plain = and_or.additional.is_empty() && matches!(name.value.as_str(), "echo" | "printf");
            let words = simple.suffix.iter().flat_map(|suffix| &suffix.0).map(|item| match item {
                ast::CommandPrefixOrSuffixItem::Word(word) => Some(word.value.replace(['\'', '"', '\\'], "")),
                _ => None,
            });
            if plain { words.collect::<Option<Vec<_>>>().map(|words| words.join(" ")) } else { None }
        });
        match said {
            Some(text) if quoted => made.push(&text, false),
            Some(text) => made.split(&text, false),
            None => made.push("$()", false),
        }
        made.scripts.push(script);
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "of the parser's many forms only these are known")]
    fn expansion(&self, expression: &ParameterExpr, quoted: bool, made: &mut Unquoted) {
        let (parameter, default) = match expression {
            ParameterExpr::Parameter { parameter, .. } => (parameter, None),
            ParameterExpr::UseDefaultValues { parameter, default_value, .. }
            | ParameterExpr::AssignDefaultValues { parameter, default_value, .. } => {
                (parameter, default_value.as_ref())
            }
            other => {
                let text = format!("{other:?}");
                made.scripts.extend(substitutions(&text));
                return made.push("$", false);
            }
        };
        if let Some(default) = default {
            made.scripts.extend(substitutions(default));
        }
        let text = match parameter {
            Parameter::Named(name) if name == "IFS" => " ".to_owned(),
            Parameter::Named(name) => match self.variables.get(name) {
                Some((value, from)) => {
                    made.from.extend(from);
                    value.clone()
                }
                None if name == "HOME" => "~".to_owned(),
                None => default.cloned().unwrap_or_else(|| format!("${name}")),
            },
            // Empty, because a command line has no arguments.
            Parameter::Positional(_) | Parameter::Special(SpecialParameter::AllPositionalParameters { .. }) => {
                default.cloned().unwrap_or_default()
            }
            other => format!("{other}"),
        };
        if quoted { made.push(&text, false) } else { made.split(&text, false) }
    }
}

/// A command or text that a command runs.
enum Inner {
    Words(Vec<PossibleWord>),
    Text(String),
}

/// The commands after `-exec`.
fn executed(words: &[PossibleWord]) -> Vec<Inner> {
    let runs = |word: &PossibleWord| matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    let starts = words.iter().enumerate().filter(|(_, word)| runs(word)).map(|(at, _)| at + 1);
    let ends = |word: &&PossibleWord| word.text != ";" && word.text != "+";
    starts
        .take(MAX_VALUES)
        .map(|start| Inner::Words(words[start..].iter().take_while(ends).cloned().collect()))
        .collect()
}

/// The commands that git runs: aliases that the line itself defines, commands for each submodule or commit.
fn by_git(words: &[PossibleWord]) -> Vec<Inner> {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let mut all = Vec::new();
    let called = crate::programs::Invocation::parse("git", &texts);
    for (option, value) in called.values.iter().filter(|(option, _)| option == "-c" || option == "--config-env") {
        let (key, value) = value.split_once('=').unwrap_or((value, ""));
        let alias = key.to_ascii_lowercase().strip_prefix("alias.").map(str::to_owned);
        if let Some(alias) =
            alias.filter(|alias| called.subcommand.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(alias)))
        {
            let at = texts.iter().position(|text| text.eq_ignore_ascii_case(&alias)).unwrap_or(texts.len());
            let rest = texts.get(at + 1..).unwrap_or_default().join(" ");
            all.push(Inner::Text(match value.strip_prefix('!') {
                Some(script) => format!("{script} {rest}"),
                None if option == "-c" => format!("git {value} {rest}"),
                None => format!("git {rest}"),
            }));
        } else if let Some(script) = value.strip_prefix('!') {
            all.push(Inner::Text(script.to_owned()));
        }
    }
    match called.subcommand.as_deref() {
        Some("submodule" | "bisect" | "for-each-repo") => {
            let runs = |text: &&str| matches!(*text, "foreach" | "run");
            if let Some(at) = texts.iter().position(runs) {
                all.push(Inner::Text(texts[at + 1..].join(" ")));
                all.push(Inner::Words(words[at + 1..].to_vec()));
            }
        }
        Some("rebase" | "difftool" | "filter-branch") => {
            all.extend(texts.iter().filter(|text| text.contains(' ')).map(|text| Inner::Text((*text).to_owned())));
            all.extend(
                called.values.iter().filter(|(name, _)| name == "--exec").map(|(_, text)| Inner::Text(text.clone())),
            );
        }
        _ => {}
    }
    all
}

/// The words of `{a,b}`.
fn braces(word: &PossibleWord) -> Vec<PossibleWord> {
    let parts = || {
        let (before, rest) = word.text.split_once('{')?;
        let (body, after) = rest.split_once('}')?;
        let plain = body.contains(',') && !body.contains('{') && !before.ends_with('$');
        plain.then(|| body.split(',').map(|part| format!("{before}{part}{after}")).collect::<Vec<_>>())
    };
    match parts() {
        Some(texts) => texts.into_iter().map(|text| PossibleWord { text, exact: false }).collect(),
        None => vec![word.clone()],
    }
}

/// Decodes the escapes in `$'…'`.
fn ansi(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(letter) = rest.chars().next() else { break };
        let digits = |radix: u32, skip: usize, most: usize| {
            let body = rest.get(skip..).unwrap_or_default();
            let count = body.chars().take(most).take_while(|c| c.is_digit(radix)).count();
            let value = u32::from_str_radix(&body[..count], radix).ok()?;
            Some((char::from_u32(value)?, skip + count))
        };
        let (c, used) = match letter {
            'n' => ('\n', 1),
            't' => ('\t', 1),
            'r' => ('\r', 1),
            'x' => digits(16, 1, 2).unwrap_or(('x', 1)),
            'u' => digits(16, 1, 4).unwrap_or(('u', 1)),
            'U' => digits(16, 1, 8).unwrap_or(('U', 1)),
            '0'..='7' => digits(8, 0, 3).unwrap_or((letter, 1)),
            other => (other, other.len_utf8()),
        };
        out.push(c);
        rest = &rest[used..];
    }
    out.push_str(rest);
    out
}

/// The command lines in `$(…)` and backquotes of a text that is expanded.
fn substitutions(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (at, _) in text.match_indices("$(") {
        let body = &text[at + 2..];
        let mut depth = 1_usize;
        let end = body.char_indices().find(|(_, c)| {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        all.push(end.map_or(body, |(end, _)| &body[..end]).to_owned());
    }
    all.extend(text.split('`').skip(1).step_by(2).map(str::to_owned));
    all
}

/// Whether the parser would need too much time or stack for a text.
pub(super) fn nests_too_deep(text: &str) -> bool {
    openings(text) > MAX_OPENINGS || open_at_once(text) > MAX_OPEN
}

/// Upper bound of the number of groups, substitutions and loops that a text opens.
fn openings(text: &str) -> usize {
    let words = text.split(|c: char| !c.is_ascii_alphabetic());
    let keywords = words.filter(|word| matches!(*word, "if" | "while" | "until" | "for" | "case" | "select"));
    text.matches(['(', '{', '`', '!']).count() + keywords.count()
}

/// The largest number of simultaneously open parentheses and braces.
fn open_at_once(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for c in text.chars() {
        match c {
            '(' | '{' => open += 1,
            ')' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// Whether a function calls itself more than once.
fn multiplies(function: &ast::FunctionDefinition) -> bool {
    let body = function.body.to_string();
    let name = &function.fname.value;
    let apart = |c: char| c.is_whitespace() || matches!(c, '|' | '&' | ';' | '{' | '}' | '(' | ')');
    let calls = body.split(apart).filter(|word| *word == name).count();
    calls > 1 || calls == 1 && body.contains('&')
}

/// A text without its comments.
fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let (mut quote, mut before) = (None, ' ');
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '#') if before.is_whitespace() || matches!(before, ';' | '&' | '|' | '(' | ')') => {
                if chars.any(|c| c == '\n') {
                    out.push('\n');
                }
                before = '\n';
                continue;
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
        out.push(c);
        before = c;
    }
    out
}

/// All words of an unparsed text.
fn split(text: &str) -> Vec<String> {
    let apart = |c: char| !(c.is_ascii_alphanumeric() || "_./:=+@%-~*".contains(c)) && c.is_ascii();
    text.split(apart).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}
