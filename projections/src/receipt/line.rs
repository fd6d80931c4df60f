//! The commands of a shell line, and what the exit code of the line says about each of them.

use brush_parser::{Parser, ParserOptions, ast};
use serde::{Deserialize, Serialize};

/// Longest line that is parsed, bytes.
const LINE_BYTES: usize = 16 << 10;
/// Maximum number of groups, substitutions and keywords in a line that is parsed: the parser's effort may double with
/// each.
const OPENINGS: usize = 16;
/// The same for `case`, which costs more.
const CASES: usize = 4;
/// Maximum nesting of `sh -c`.
const SHELLS: usize = 2;
/// Maximum number of commands taken from a line.
const COMMANDS: usize = 40;
/// Maximum number of stages of a pipe that are examined.
const STAGES: usize = 12;

/// What the exit code of a line says about one of its commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitMeans {
    /// It is the command's own.
    #[default]
    Own,
    /// 0 means that the command succeeded; another code may be that of another command.
    SuccessOnly,
    /// Another code than 0 means that the command failed; 0 may be that of another command.
    FailureOnly,
    /// Nothing.
    Nothing,
}

impl ExitMeans {
    /// What the code of a line says about a command of which it has this meaning within a group of the line.
    const fn within(self, group: Self) -> Self {
        match (self, group) {
            (Self::Own, other) | (other, Self::Own) => other,
            (Self::SuccessOnly, Self::SuccessOnly) => Self::SuccessOnly,
            (Self::FailureOnly, Self::FailureOnly) => Self::FailureOnly,
            (Self::SuccessOnly, Self::FailureOnly)
            | (Self::FailureOnly, Self::SuccessOnly)
            | (Self::Nothing, _)
            | (_, Self::Nothing) => Self::Nothing,
        }
    }
}

/// A command of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineCommand {
    /// Its words without quotes.
    pub words: Vec<String>,
    /// The programs that its output is piped into, with their arguments.
    pub piped_into: Vec<Vec<String>>,
    /// Whether its input is the output of another command.
    pub is_filter: bool,
    /// Whether its output goes to a file.
    pub redirected: bool,
    /// The files that its redirections write.
    pub writes: Vec<String>,
    /// Whether the next command of its chain runs only if it succeeded.
    pub gates: bool,
    /// What the exit code of the line says about it.
    pub exit: ExitMeans,
    /// The chain of `&&` that it belongs to: a later command of the chain ran only if this one succeeded.
    pub chain: usize,
    /// Whether the line does not wait for it.
    pub background: bool,
    /// The variables that the line sets for it: `CI=1`.
    pub assigned: Vec<String>,
    /// The groups, loops and shells around it.
    pub around: Surroundings,
}

/// The groups, loops and shells around a command, with its own redirections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Whether the input is a pipe, a file, a here-document or a substitution.
    pub fed: bool,
    /// Whether the output goes to a pipe or a file.
    pub captured: bool,
    /// Whether a program around it ends it after some time: `timeout 60 bash -c '…'`.
    pub limited: bool,
    /// Whether it is part of a `while` or `until` loop that no counter, time or input ends.
    pub endless: bool,
}

/// The simple commands of a line, in order; `None` if it cannot be parsed.
#[must_use]
pub fn commands_of(line: &str) -> Option<Vec<LineCommand>> {
    if let Some(command) = single_command(line) {
        return Some(vec![command]);
    }
    let line = &Skeleton::of(line)?.parsable()?;
    let mut reader = LineReader::default();
    reader.text(line, ExitMeans::Own, 0)?;
    Some(reader.found)
}

/// The command of a line of plain words, which needs no parser.
fn single_command(line: &str) -> Option<LineCommand> {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '/' | ':' | '@' | ',' | '%' | '+');
    let words: Vec<String> = line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    if !line.chars().all(is_plain) || words.is_empty() || super::programs::script_of(&words).is_some() {
        return None;
    }
    // `set` changes nothing here, and keywords need other characters to be complete.
    let around = Surroundings { limited: super::programs::is_limited(&words), ..Surroundings::default() };
    Some(LineCommand { words, gates: true, chain: 1, around, ..LineCommand::default() })
}

/// The commands of a line that cannot be parsed, split at separators and blanks. Its exit code says nothing.
pub(super) fn unparsed(line: &str) -> Vec<LineCommand> {
    let part = |(chain, part): (usize, &str)| LineCommand {
        words: part.split_whitespace().map(|word| word.trim_matches(['\'', '"']).to_owned()).collect(),
        // Where its output went is not known.
        redirected: true,
        exit: ExitMeans::Nothing,
        chain,
        ..LineCommand::default()
    };
    let line = Skeleton::of(line).map(|skeleton| skeleton.text).unwrap_or_default();
    let parts = line.split([';', '&', '|', '\n']).enumerate().map(part);
    parts.filter(|part| !part.words.is_empty()).take(COMMANDS).collect()
}

#[derive(Default)]
struct LineReader {
    found: Vec<LineCommand>,
    chains: usize,
    /// Whether a failed command ends the line: `set -e`.
    exits_on_error: bool,
    /// Whether a pipe fails if one of its commands does: `set -o pipefail`.
    pipefail: bool,
    background: bool,
    /// Number of loops and conditions around the current command.
    bodies: usize,
    around: Surroundings,
}

impl LineReader {
    fn text(&mut self, line: &str, exit: ExitMeans, shells: usize) -> Option<()> {
        let options = ParserOptions::default();
        let program = Parser::new(std::io::Cursor::new(line), &options).parse_program().ok()?;
        let items: Vec<&ast::CompoundListItem> =
            program.complete_commands.iter().flat_map(|list| list.0.iter()).collect();
        self.items(&items, exit, shells);
        Some(())
    }

    fn list(&mut self, list: &ast::CompoundList, exit: ExitMeans, shells: usize) {
        self.items(&list.0.iter().collect::<Vec<_>>(), exit, shells);
    }

    /// Commands that run in sequence: the exit code is that of the last one.
    fn items(&mut self, items: &[&ast::CompoundListItem], exit: ExitMeans, shells: usize) {
        self.chains += 1;
        for (at, item) in items.iter().enumerate() {
            let ast::CompoundListItem(and_or, separator) = item;
            let background = self.background;
            self.background |= matches!(separator, ast::SeparatorOperator::Async);
            let is_last = at + 1 == items.len();
            // The shell does not exit if a part of `a && b` fails, except the last one.
            let exits = self.exits_on_error && and_or.additional.is_empty();
            let of_item = match (is_last, exits) {
                (true, _) => ExitMeans::Own,
                (false, true) => ExitMeans::SuccessOnly,
                (false, false) => ExitMeans::Nothing,
            };
            if !exits {
                self.chains += 1;
            }
            self.and_or(and_or, of_item.within(exit), shells);
            self.background = background;
        }
    }

    fn and_or(&mut self, list: &ast::AndOrList, exit: ExitMeans, shells: usize) {
        let all: Vec<(ast::PipelineOperator, &ast::Pipeline)> = list.into_iter().collect();
        let is_or = |operator: &ast::PipelineOperator| matches!(operator, ast::PipelineOperator::Or);
        // `cmd || exit 1` only repeats that it failed.
        let gives_up = |pipeline: &ast::Pipeline| {
            let words = pipeline.seq.first().map(words_of).unwrap_or_default();
            match words.first().map(String::as_str) {
                Some("exit" | "return") => words.get(1).is_some_and(|code| code != "0"),
                Some("false") => true,
                Some(_) | None => false,
            }
        };
        let ors: Vec<usize> = (1..all.len()).filter(|at| is_or(&all[*at].0)).collect();
        let only_gives_up =
            ors.iter().all(|at| gives_up(all[*at].1)) && ors.last().is_none_or(|at| at + 1 == all.len());
        let serious = all.iter().filter(|(_, pipeline)| !is_trivial(pipeline)).count();
        for (at, (_, pipeline)) in all.iter().enumerate() {
            let of_pipeline = if ors.is_empty() || only_gives_up {
                // A chain of `&&`: 0 means that all succeeded.
                if serious <= 1 || all.len() == 1 { ExitMeans::Own } else { ExitMeans::SuccessOnly }
            } else if all.len() == 2 && at == 0 {
                ExitMeans::FailureOnly
            } else {
                ExitMeans::Nothing
            };
            if at > 0 && is_or(&all[at].0) {
                self.chains += 1;
            }
            self.pipeline(pipeline, of_pipeline.within(exit), shells);
        }
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline, exit: ExitMeans, shells: usize) {
        let mut stages: Vec<Vec<String>> = pipeline.seq.iter().take(STAGES).map(words_of).collect();
        if pipeline.seq.len() > STAGES {
            // Filters that are not known.
            stages.push(vec!["?".to_owned()]);
        }
        for (at, command) in pipeline.seq.iter().enumerate().take(STAGES) {
            let is_last = at + 1 == pipeline.seq.len();
            let others_succeed = || stages.iter().enumerate().all(|(other, words)| other == at || never_fails(words));
            let of_command = match (pipeline.bang, is_last, self.pipefail) {
                (true, _, _) | (false, false, false) => ExitMeans::Nothing,
                (false, true, false) => ExitMeans::Own,
                (false, _, true) if others_succeed() => ExitMeans::Own,
                (false, _, true) => ExitMeans::SuccessOnly,
            };
            let piped_into = stages.get(at + 1..).unwrap_or_default().to_vec();
            let gates = !pipeline.bang && self.bodies == 0 && (is_last || self.pipefail);
            self.command(command, PipePlace { piped_into, is_filter: at > 0, gates }, of_command.within(exit), shells);
        }
    }

    fn command(&mut self, command: &ast::Command, place: PipePlace, exit: ExitMeans, shells: usize) {
        match command {
            ast::Command::Simple(_) => self.simple(command, place, exit, shells),
            ast::Command::Compound(compound, redirects) => {
                let around = self.around;
                let redirects = redirects.iter().flat_map(|list| &list.0);
                self.around = around.with(redirects, place.is_filter, !place.piped_into.is_empty());
                self.compound(compound, exit, shells);
                self.around = around;
            }
            // A function runs only where it is called.
            ast::Command::Function(_) | ast::Command::ExtendedTest(..) => {}
        }
    }

    fn compound(&mut self, compound: &ast::CompoundCommand, exit: ExitMeans, shells: usize) {
        match compound {
            ast::CompoundCommand::BraceGroup(group) => self.list(&group.list, exit, shells),
            ast::CompoundCommand::Subshell(group) => {
                // Its settings end with it.
                let settings = (self.exits_on_error, self.pipefail);
                self.list(&group.list, exit, shells);
                (self.exits_on_error, self.pipefail) = settings;
            }
            ast::CompoundCommand::ForClause(of) => self.body(&of.body.list, shells),
            ast::CompoundCommand::ArithmeticForClause(of) => self.body(&of.body.list, shells),
            ast::CompoundCommand::WhileClause(of) | ast::CompoundCommand::UntilClause(of) => {
                self.around.endless |= is_endless(of);
                self.body(&of.0, shells);
                self.body(&of.1.list, shells);
            }
            ast::CompoundCommand::IfClause(of) => {
                self.body(&of.condition, shells);
                self.body(&of.then, shells);
                of.elses.iter().flatten().for_each(|other| self.body(&other.body, shells));
            }
            ast::CompoundCommand::CaseClause(of) => {
                of.cases.iter().filter_map(|case| case.cmd.as_ref()).for_each(|case| self.body(case, shells));
            }
            ast::CompoundCommand::Arithmetic(_) | ast::CompoundCommand::Coprocess(_) => {}
        }
    }

    /// Commands that may run several times or not at all.
    fn body(&mut self, list: &ast::CompoundList, shells: usize) {
        self.bodies += 1;
        self.list(list, ExitMeans::Nothing, shells);
        self.bodies -= 1;
    }

    fn simple(&mut self, command: &ast::Command, place: PipePlace, exit: ExitMeans, shells: usize) {
        let words = words_of(command);
        if words.first().is_some_and(|word| word == "set") {
            for (at, word) in words.iter().enumerate().skip(1) {
                let is_flags = |sign: char| {
                    word.strip_prefix(sign).is_some_and(|flags| flags.contains('e') && !flags.starts_with('-'))
                };
                self.exits_on_error = !is_flags('+') && (self.exits_on_error || is_flags('-'));
                if word == "pipefail" {
                    self.pipefail = words.get(at - 1).is_none_or(|option| !option.starts_with('+'));
                }
            }
        }
        let PipePlace { piped_into, is_filter, gates } = place;
        let mut around = self.around.with(redirects_of(command), is_filter, !piped_into.is_empty());
        around.limited |= super::programs::is_limited(&words);
        around.fed |=
            items_of(command).any(|item| matches!(item, ast::CommandPrefixOrSuffixItem::ProcessSubstitution(..)));
        let script = super::programs::script_of(&words).filter(|_| shells < SHELLS);
        let script = script.and_then(|script| Skeleton::of(script)?.parsable());
        if let Some(script) = script {
            let settings = (self.exits_on_error, self.pipefail);
            (self.exits_on_error, self.pipefail) = (false, false);
            let outside = std::mem::replace(&mut self.around, around);
            let is_read = self.text(&script, exit, shells + 1).is_some();
            (self.exits_on_error, self.pipefail) = settings;
            self.around = outside;
            if is_read {
                return;
            }
        }
        if !words.is_empty() && self.found.len() < COMMANDS {
            let (chain, background) = (self.chains, self.background);
            let (redirected, assigned) = (redirects_of(command).any(writes_to_file), assigned_in(command));
            let writes = redirects_of(command).filter_map(written_file).collect();
            self.found.push(LineCommand {
                words,
                piped_into,
                is_filter,
                redirected,
                writes,
                gates,
                exit,
                chain,
                background,
                assigned,
                around,
            });
        }
    }
}

/// The place of a command in its pipe.
struct PipePlace {
    piped_into: Vec<Vec<String>>,
    is_filter: bool,
    gates: bool,
}

impl Surroundings {
    /// Adds redirections, and the pipes before and after.
    fn with<'a>(self, redirects: impl Iterator<Item = &'a ast::IoRedirect>, is_filter: bool, is_piped: bool) -> Self {
        let mut all = Self { fed: self.fed || is_filter, captured: self.captured || is_piped, ..self };
        for redirect in redirects {
            all.fed |= reads_input(redirect);
            all.captured |= writes_to_file(redirect);
        }
        all
    }
}

/// Whether no counter, time or input ends a loop, as far as its words show.
fn is_endless(of: &ast::WhileOrUntilClauseCommand) -> bool {
    let text = of.to_string();
    let bounds = |word: &str| {
        matches!(word, "-lt" | "-le" | "-gt" | "-ge" | "read" | "let" | "date" | "SECONDS" | "EPOCHSECONDS" | "shift")
    };
    !text.contains("((") && !text.split(|c: char| !(c.is_alphanumeric() || c == '-')).any(bounds)
}

/// The redirections of a simple command.
fn redirects_of(command: &ast::Command) -> impl Iterator<Item = &ast::IoRedirect> {
    items_of(command).filter_map(|item| match item {
        ast::CommandPrefixOrSuffixItem::IoRedirect(redirect) => Some(redirect),
        ast::CommandPrefixOrSuffixItem::Word(_)
        | ast::CommandPrefixOrSuffixItem::AssignmentWord(..)
        | ast::CommandPrefixOrSuffixItem::ProcessSubstitution(..) => None,
    })
}

/// The parts of a simple command before and after the name of its program.
fn items_of(command: &ast::Command) -> impl Iterator<Item = &ast::CommandPrefixOrSuffixItem> {
    let ast::Command::Simple(simple) = command else { return None.into_iter().flatten() };
    let before = simple.prefix.iter().flat_map(|prefix| prefix.0.iter());
    let after = simple.suffix.iter().flat_map(|suffix| suffix.0.iter());
    Some(before.chain(after)).into_iter().flatten()
}

/// The variables that are set before the program of a simple command.
fn assigned_in(command: &ast::Command) -> Vec<String> {
    let ast::Command::Simple(simple) = command else { return Vec::new() };
    let before = simple.prefix.iter().flat_map(|prefix| prefix.0.iter());
    let assigned = before.filter_map(|item| match item {
        ast::CommandPrefixOrSuffixItem::AssignmentWord(_, word) => Some(unquoted(&word.value)),
        ast::CommandPrefixOrSuffixItem::Word(_)
        | ast::CommandPrefixOrSuffixItem::IoRedirect(_)
        | ast::CommandPrefixOrSuffixItem::ProcessSubstitution(..) => None,
    });
    assigned.collect()
}

/// Whether a redirection replaces the standard input.
fn reads_input(redirect: &ast::IoRedirect) -> bool {
    let text = redirect.to_string();
    text.starts_with('<') || text.starts_with("0<")
}

/// Whether a redirection sends the standard output to a file.
fn writes_to_file(redirect: &ast::IoRedirect) -> bool {
    let text = redirect.to_string();
    let is_output = text.starts_with('>') || text.starts_with("1>") || text.starts_with("&>");
    is_output && !text.contains(">&") && !text.contains("/dev/std") && !text.contains("/dev/tty")
}

/// The file that a redirection writes.
fn written_file(redirect: &ast::IoRedirect) -> Option<String> {
    use ast::{IoFileRedirectKind as Kind, IoFileRedirectTarget as Target, IoRedirect};
    match redirect {
        IoRedirect::File(_, Kind::Write | Kind::Append | Kind::Clobber, Target::Filename(word))
        | IoRedirect::OutputAndError(word, _) => Some(unquoted(&word.value)),
        IoRedirect::File(..) | IoRedirect::HereDocument(..) | IoRedirect::HereString(..) => None,
    }
}

/// Whether a stage of a pipe practically never fails.
fn never_fails(words: &[String]) -> bool {
    matches!(words.first().map(String::as_str), Some("tail" | "tee" | "cat" | "sort" | "echo" | "printf"))
}

/// The words of a simple command without quotes; none for another command.
fn words_of(command: &ast::Command) -> Vec<String> {
    let ast::Command::Simple(simple) = command else { return Vec::new() };
    let name = simple.word_or_name.iter().map(|word| unquoted(&word.value));
    let rest = simple.suffix.iter().flat_map(|suffix| suffix.0.iter());
    let rest = rest.filter_map(|item| match item {
        ast::CommandPrefixOrSuffixItem::Word(word) => Some(unquoted(&word.value)),
        ast::CommandPrefixOrSuffixItem::AssignmentWord(_, word) => Some(unquoted(&word.value)),
        ast::CommandPrefixOrSuffixItem::IoRedirect(_) | ast::CommandPrefixOrSuffixItem::ProcessSubstitution(..) => None,
    });
    name.chain(rest).collect()
}

/// A word without its quotes. Substitutions stay as written.
fn unquoted(word: &str) -> String {
    let (mut out, mut quote) = (String::with_capacity(word.len()), None);
    let mut chars = word.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), close) if open == close => quote = None,
            (None | Some('"'), '\\') => out.extend(chars.next()),
            (None | Some(_), other) => out.push(other),
        }
    }
    out
}

/// Whether a pipeline practically never fails.
fn is_trivial(pipeline: &ast::Pipeline) -> bool {
    pipeline.seq.iter().all(|command| {
        let words = words_of(command);
        let word = |at: usize| words.get(at).map(String::as_str);
        match word(0) {
            // Assignments only.
            None => matches!(command, ast::Command::Simple(_)),
            Some(
                "cd" | "pushd" | "popd" | "export" | "unset" | "set" | "echo" | "printf" | "sleep" | "true" | ":"
                | "exit",
            ) => true,
            Some("git") => word(1) == Some("add"),
            Some(_) => false,
        }
    })
}

/// A line without comments and the bodies of here-documents, and how much effort its parsing may take.
struct Skeleton {
    text: String,
    openings: usize,
    cases: usize,
}

impl Skeleton {
    /// `None` for a line that is too long.
    fn of(line: &str) -> Option<Self> {
        if line.len() > LINE_BYTES {
            return None;
        }
        let mut scan = Scan { out: String::with_capacity(line.len()), ..Scan::default() };
        let mut rest = line.chars().peekable();
        while let Some(c) = rest.next() {
            scan.next(c, &mut rest);
        }
        scan.end_word();
        Some(Self { text: scan.out, openings: scan.openings, cases: scan.cases })
    }

    /// The text, unless parsing it could take very long.
    fn parsable(self) -> Option<String> {
        (self.openings <= OPENINGS && self.cases <= CASES).then_some(self.text)
    }
}

#[derive(Default)]
struct Scan {
    out: String,
    openings: usize,
    cases: usize,
    /// The open double quotes (`"`) and substitutions (`(`), innermost last.
    open: Vec<char>,
    /// The unquoted word so far.
    word: String,
    /// The delimiters of here-documents whose bodies begin on the next line.
    documents: Vec<String>,
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

impl Scan {
    fn next(&mut self, c: char, rest: &mut Rest<'_>) {
        let is_quoted = self.open.last() == Some(&'"');
        match c {
            '\\' => {
                self.out.push(c);
                self.out.extend(rest.next());
                self.word.push('?');
            }
            '\'' if !is_quoted => {
                self.word.push('?');
                self.out.push(c);
                for inner in rest.by_ref() {
                    self.out.push(inner);
                    if inner == '\'' {
                        break;
                    }
                }
            }
            '"' => {
                self.word.push('?');
                self.out.push(c);
                if is_quoted {
                    self.open.pop();
                } else {
                    self.open.push('"');
                }
            }
            '`' => {
                self.openings += 1;
                self.out.push(c);
            }
            '$' if rest.peek() == Some(&'(') => {
                self.out.push_str("$(");
                rest.next();
                self.openings += 1;
                self.open.push('(');
                self.word.clear();
            }
            _ if is_quoted => self.out.push(c),
            '#' if self.word.is_empty() && !self.out.ends_with(['$', '{']) => {
                while rest.next_if(|c| *c != '\n').is_some() {}
            }
            '<' if rest.peek() == Some(&'<') => self.document(rest),
            '\n' => {
                self.end_word();
                self.out.push(c);
                for delimiter in std::mem::take(&mut self.documents) {
                    skip_document(&delimiter, rest);
                }
            }
            '(' | '{' => {
                self.openings += 1;
                if c == '(' {
                    self.open.push('(');
                }
                self.word.clear();
                self.out.push(c);
            }
            ')' => {
                self.end_word();
                if self.open.last() == Some(&'(') {
                    self.open.pop();
                }
                self.out.push(c);
            }
            c if c.is_whitespace() || matches!(c, ';' | '&' | '|') => {
                self.end_word();
                self.out.push(c);
            }
            c => {
                self.word.push(c);
                self.out.push(c);
            }
        }
    }

    fn end_word(&mut self) {
        match self.word.as_str() {
            "case" => self.cases += 1,
            "if" | "elif" | "while" | "until" | "for" | "select" | "function" | "!" | "[[" | "time" => {
                self.openings += 1
            }
            _ => {}
        }
        self.word.clear();
    }

    /// `<<EOF`, `<<-'EOF'`; `<<<` is a text.
    fn document(&mut self, rest: &mut Rest<'_>) {
        rest.next();
        if rest.next_if_eq(&'<').is_some() {
            self.out.push_str("<<<");
            return;
        }
        let _ = rest.next_if_eq(&'-');
        while rest.next_if(|c| *c == ' ').is_some() {}
        let mut delimiter = String::new();
        while let Some(c) = rest.next_if(|c| !c.is_whitespace() && !matches!(c, ';' | '&' | '|' | ')' | '<' | '>')) {
            delimiter.push(c);
        }
        self.documents.push(delimiter.replace(['\'', '"', '\\'], ""));
        // Its place in the line is an empty input.
        self.out.push_str("</dev/null ");
    }
}

/// Skips the lines up to the delimiter and the delimiter itself.
fn skip_document(delimiter: &str, rest: &mut Rest<'_>) {
    while rest.peek().is_some() {
        let mut line = String::new();
        while let Some(c) = rest.next_if(|c| *c != '\n') {
            line.push(c);
        }
        if line.trim() == delimiter {
            return;
        }
        rest.next();
    }
}
