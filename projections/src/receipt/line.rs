//! The commands of a shell line, and what the exit code of the line says about each of them.

use brush_parser::{Parser, ParserOptions, ast};
use serde::{Deserialize, Serialize};

/// Longest line that is parsed, bytes.
const LINE_BYTES: usize = 16 << 10;
/// Maximum number of openings of groups and substitutions in a line that is parsed: the parser's effort may double with
/// each.
const OPENINGS: usize = 24;
/// Maximum number of simultaneously open groups.
const OPEN: usize = 5;
/// Maximum nesting of `sh -c`.
const SHELLS: usize = 2;
/// Maximum number of commands taken from a line.
const COMMANDS: usize = 40;

/// What the exit code of a line says about one of its commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ExitMeans {
    /// It is the command's own.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineCommand {
    /// Its words without quotes.
    pub(super) words: Vec<String>,
    /// The programs that its output is piped into, with their arguments.
    pub(super) piped_into: Vec<Vec<String>>,
    /// What the exit code of the line says about it.
    pub(super) exit: ExitMeans,
    /// The chain of `&&` that it belongs to: a later command of the chain ran only if this one succeeded.
    pub(super) chain: usize,
    /// Whether the line does not wait for it.
    pub(super) background: bool,
}

/// The simple commands of a line, in order; `None` if it cannot be parsed.
pub(super) fn commands_of(line: &str) -> Option<Vec<LineCommand>> {
    let mut reader = LineReader::default();
    reader.text(line, ExitMeans::Own, 0)?;
    Some(reader.found)
}

/// The commands of a line that cannot be parsed, split at separators and blanks. Its exit code says nothing.
pub(super) fn unparsed(line: &str) -> Vec<LineCommand> {
    let part = |(chain, part): (usize, &str)| LineCommand {
        words: part.split_whitespace().map(|word| word.trim_matches(['\'', '"']).to_owned()).collect(),
        piped_into: Vec::new(),
        exit: ExitMeans::Nothing,
        chain,
        background: false,
    };
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
}

impl LineReader {
    fn text(&mut self, line: &str, exit: ExitMeans, shells: usize) -> Option<()> {
        if line.len() > LINE_BYTES || nests_too_deep(line) {
            return None;
        }
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
            let of_item = match (is_last, self.exits_on_error) {
                (true, _) => ExitMeans::Own,
                (false, true) => ExitMeans::SuccessOnly,
                (false, false) => ExitMeans::Nothing,
            };
            if !self.exits_on_error {
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
        for (at, command) in pipeline.seq.iter().enumerate() {
            let is_last = at + 1 == pipeline.seq.len();
            let of_command = match (pipeline.bang, is_last || self.pipefail) {
                (false, true) => ExitMeans::Own,
                (true, _) | (_, false) => ExitMeans::Nothing,
            };
            let piped_into = pipeline.seq.iter().skip(at + 1).map(words_of).collect();
            self.command(command, piped_into, of_command.within(exit), shells);
        }
    }

    fn command(&mut self, command: &ast::Command, piped_into: Vec<Vec<String>>, exit: ExitMeans, shells: usize) {
        match command {
            ast::Command::Simple(_) => self.simple(words_of(command), piped_into, exit, shells),
            ast::Command::Compound(compound, _) => match compound {
                ast::CompoundCommand::BraceGroup(group) => self.list(&group.list, exit, shells),
                ast::CompoundCommand::Subshell(group) => self.list(&group.list, exit, shells),
                ast::CompoundCommand::ForClause(of) => self.list(&of.body.list, ExitMeans::Nothing, shells),
                ast::CompoundCommand::ArithmeticForClause(of) => self.list(&of.body.list, ExitMeans::Nothing, shells),
                ast::CompoundCommand::WhileClause(of) | ast::CompoundCommand::UntilClause(of) => {
                    self.list(&of.0, ExitMeans::Nothing, shells);
                    self.list(&of.1.list, ExitMeans::Nothing, shells);
                }
                ast::CompoundCommand::IfClause(of) => {
                    self.list(&of.condition, ExitMeans::Nothing, shells);
                    self.list(&of.then, ExitMeans::Nothing, shells);
                    for other in of.elses.iter().flatten() {
                        self.list(&other.body, ExitMeans::Nothing, shells);
                    }
                }
                ast::CompoundCommand::CaseClause(of) => {
                    for case in of.cases.iter().filter_map(|case| case.cmd.as_ref()) {
                        self.list(case, ExitMeans::Nothing, shells);
                    }
                }
                ast::CompoundCommand::Arithmetic(_) | ast::CompoundCommand::Coprocess(_) => {}
            },
            // A function runs only where it is called.
            ast::Command::Function(_) | ast::Command::ExtendedTest(..) => {}
        }
    }

    fn simple(&mut self, words: Vec<String>, piped_into: Vec<Vec<String>>, exit: ExitMeans, shells: usize) {
        if words.first().is_some_and(|word| word == "set") {
            for word in &words {
                self.exits_on_error |= word.starts_with('-') && !word.starts_with("--") && word.contains('e');
                self.pipefail |= word == "pipefail";
            }
        }
        let script = super::programs::script_of(&words).filter(|_| shells < SHELLS).map(str::to_owned);
        if let Some(script) = script
            && self.text(&script, exit, shells + 1).is_some()
        {
            return;
        }
        if !words.is_empty() && self.found.len() < COMMANDS {
            let (chain, background) = (self.chains, self.background);
            self.found.push(LineCommand { words, piped_into, exit, chain, background });
        }
    }
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

/// Whether a pipeline practically never fails, or only prepares the next command.
fn is_trivial(pipeline: &ast::Pipeline) -> bool {
    pipeline.seq.iter().all(|command| {
        let words = words_of(command);
        let word = |at: usize| words.get(at).map(String::as_str);
        match word(0) {
            // Assignments only.
            None => matches!(command, ast::Command::Simple(_)),
            Some(
                "cd" | "pushd" | "popd" | "source" | "." | "export" | "unset" | "set" | "echo" | "printf" | "pwd"
                | "mkdir" | "sleep" | "true" | ":" | "ls" | "cat" | "which" | "date" | "nvm" | "wait" | "exit" | "tail"
                | "head" | "tee",
            ) => true,
            Some("git") => matches!(word(1), Some("add" | "status" | "diff" | "log" | "branch" | "fetch" | "show")),
            Some(_) => false,
        }
    })
}

/// Whether parsing a line could take very long.
fn nests_too_deep(line: &str) -> bool {
    let (mut open, mut most, mut openings) = (0_usize, 0, 0);
    let (mut quote, mut in_backticks, mut before) = (None, false, ' ');
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let opens = match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => {
                quote = None;
                false
            }
            // A text in single quotes contains nothing.
            (Some('\''), _) => false,
            (_, '\\') => {
                let _ = chars.next();
                false
            }
            (None, '\'' | '"') => {
                quote = Some(c);
                false
            }
            (_, '`') => {
                in_backticks = !in_backticks;
                openings += usize::from(in_backticks);
                false
            }
            (None, '(' | '{') => true,
            // In double quotes, only substitutions.
            (Some(_), '(' | '{') => before == '$',
            (_, ')' | '}') => {
                open = open.saturating_sub(1);
                false
            }
            _ => false,
        };
        if opens {
            openings += 1;
            open += 1;
            most = most.max(open);
        }
        before = c;
    }
    openings > OPENINGS || most > OPEN
}
