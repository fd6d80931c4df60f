//! Reduces the syntax tree of a line to the supported forms.
//!
//! A variable is known only if the line itself assigns it, once, before it is used.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use brush_parser::{Parser, ParserOptions, ast};

use super::{
    environment,
    possible::{self, FoundCommands},
    raw,
    words::{Values, unquote},
};
use crate::shell::command::{
    Assignment, CommandLine, LineNode, MAX_COMMANDS, Output, Possible, Separator, ShellWord, SimpleCommand, Value,
};

/// Parses a line; one `bash -c` around it is removed.
///
/// # Errors
/// A sentence that names the part that is not understood.
pub(crate) fn understand(text: &str) -> Result<CommandLine, String> {
    let line = parse(text)?;
    let Some((wrapper, inner)) = unwrap(&line) else { return Ok(line) };
    let mut inner = parse(&inner)?;
    if unwrap(&inner).is_some() {
        return Err("The command line runs a shell within a shell.".into());
    }
    // Rules that match the shell also match all commands it runs.
    let shell = line.commands.iter().flat_map(|command| command.possible.commands()).next().cloned();
    for command in &mut inner.commands {
        let mut all = (*command.possible.line).clone();
        command.possible.own.push(all.all.len());
        all.all.extend(shell.clone());
        command.possible.line = Arc::new(all);
    }
    Ok(CommandLine { wrapper: Some(wrapper), ..inner })
}

/// The words before the last one of `bash -c WORD`, and the last word, if the line consists only of this command.
fn unwrap(line: &CommandLine) -> Option<(Vec<ShellWord>, String)> {
    let [command] = line.commands.as_slice() else { return None };
    let SimpleCommand { words, assignments, redirects, outputs, input: None, document: false, .. } = command else {
        return None;
    };
    let [shell, option, inner] = words.as_slice() else { return None };
    let name = shell.text.strip_prefix("/usr/bin/").or(shell.text.strip_prefix("/bin/")).unwrap_or(&shell.text);
    let alone = matches!(&line.tree, LineNode::List(all) if matches!(all.as_slice(), [(LineNode::Command(_), _)]));
    let wraps = shell.bare
        && matches!(name, "bash" | "sh" | "zsh")
        && matches!(option.text.as_str(), "-c" | "-lc")
        && alone
        && redirects.is_empty()
        && outputs.is_empty()
        && assignments.is_empty()
        && inner.is_exact();
    wraps.then(|| (vec![shell.clone(), option.clone()], inner.text.clone()))
}

fn parse(text: &str) -> Result<CommandLine, String> {
    let clean = raw::check(text)?;
    let options = ParserOptions::default();
    let program = Parser::new(std::io::Cursor::new(&clean.text), &options)
        .parse_program()
        .map_err(|_| "The command line cannot be parsed.".to_owned())?;
    let mut reader = LineReader {
        options,
        found: possible::of_program(&program, &clean.text),
        commands: Vec::new(),
        variables: BTreeMap::new(),
        assigned: BTreeSet::new(),
        documents: clean.documents.into_iter().collect(),
        piped: Vec::new(),
    };
    let mut all = Vec::new();
    for list in &program.complete_commands {
        if let Some((_, then)) = all.last_mut() {
            *then = Separator::Next;
        }
        reader.list(&list.0, &mut all)?;
    }
    if reader.commands.is_empty() {
        return Err("The command line is empty.".into());
    }
    if !reader.documents.is_empty() {
        return Err("capture cannot parse a here-document.".into());
    }
    Ok(CommandLine { commands: reader.commands, tree: LineNode::List(all), wrapper: None })
}

struct LineReader {
    options: ParserOptions,
    found: FoundCommands,
    commands: Vec<SimpleCommand>,
    /// The current values of variables.
    variables: BTreeMap<String, Value>,
    /// All variables that the line assigns.
    assigned: BTreeSet<String>,
    /// The bodies of here-documents that have not been reached yet.
    documents: std::collections::VecDeque<String>,
    /// The commands before the current one in its pipe, and in the pipes around it.
    piped: Vec<Option<Vec<usize>>>,
}

impl Values for LineReader {
    fn variable(&mut self, name: &str, quoted: bool) -> Result<Value, String> {
        if let Some(value) = self.variables.get(name) {
            return Ok(value.clone());
        }
        match name {
            "HOME" => Ok(Value::Home),
            "PWD" => Ok(Value::Directory),
            // Their values reveal no secrets.
            _ if quoted && environment::is_told(name) => Ok(Value::Unknown),
            _ => Err(format!("The command line has a variable whose value capture cannot determine (`{name}`).")),
        }
    }

    fn substitution(&mut self, script: &str, quoted: bool) -> Result<Value, String> {
        let clean = raw::check(script)?;
        let program = Parser::new(std::io::Cursor::new(&clean.text), &self.options)
            .parse_program()
            .map_err(|_| "The command line cannot be parsed.".to_owned())?;
        let [list] = program.complete_commands.as_slice() else {
            return Err("The command line has a command substitution with several lines.".into());
        };
        let [ast::CompoundListItem(and_or, ast::SeparatorOperator::Sequence)] = list.0.as_slice() else {
            return Err("The command line has a command substitution with several commands.".into());
        };
        if !and_or.additional.is_empty() {
            return Err("The command line has a command substitution with several commands.".into());
        }
        match script.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["git", "rev-parse", "--show-toplevel"] => return Ok(Value::Toplevel),
            ["pwd"] => return Ok(Value::Directory),
            _ => {}
        }
        let outer = std::mem::replace(&mut self.found, possible::of_program(&program, &clean.text));
        let first = self.commands.len();
        let made = self.pipeline(&and_or.first);
        self.found = outer;
        let simple = match made? {
            LineNode::Command(_) => true,
            LineNode::Pipe(stages) => stages.iter().all(|stage| matches!(stage, LineNode::Command(_))),
            LineNode::Text(_) | LineNode::List(_) | LineNode::Group { .. } => false,
        };
        if !simple {
            return Err("The command line has a command substitution that is not a single pipeline.".into());
        }
        let all: Vec<usize> = (first..self.commands.len()).collect();
        // Unquoted, the words of the output would be expanded as patterns of file names. The output of these commands
        // contains no patterns; names listed by other commands are checked later.
        let tells = |command: &SimpleCommand| {
            let name = command.words.first().map_or("", |word| word.text.as_str());
            matches!(name, "wc" | "date" | "nproc" | "uname" | "whoami" | "hostname" | "id")
        };
        let last = self.commands.last().is_some_and(tells);
        Ok(if quoted || last { Value::Unknown } else { Value::Printed(all) })
    }
}

impl LineReader {
    fn word(&mut self, word: &ast::Word) -> Result<ShellWord, String> {
        let options = self.options.clone();
        unquote(&word.value, &options, self)
    }

    /// A word that is a plain text.
    fn text(&mut self, word: &ast::Word) -> Result<ShellWord, String> {
        let word = self.word(word)?;
        if word.is_exact() && !word.zsh { Ok(word) } else { Err(format!("The word `{}` is not plain text.", word.raw)) }
    }

    fn list(&mut self, list: &[ast::CompoundListItem], all: &mut Vec<(LineNode, Separator)>) -> Result<(), String> {
        let last = list.len().saturating_sub(1);
        for (index, ast::CompoundListItem(and_or, separator)) in list.iter().enumerate() {
            match separator {
                ast::SeparatorOperator::Sequence => {}
                ast::SeparatorOperator::Async => {
                    return Err("The command line runs a command in the background.".into());
                }
            }
            let first = self.pipeline(&and_or.first)?;
            self.assigns(&first, and_or.additional.is_empty())?;
            all.push((first, Separator::End));
            for more in &and_or.additional {
                let (then, next) = match more {
                    ast::AndOr::And(next) => (Separator::And, next),
                    ast::AndOr::Or(next) => (Separator::Or, next),
                };
                self.join(all, then);
                let next = self.pipeline(next)?;
                self.assigns(&next, false)?;
                all.push((next, Separator::End));
            }
            if index < last {
                self.join(all, Separator::Next);
            }
        }
        Ok(())
    }

    fn join(&mut self, all: &mut [(LineNode, Separator)], then: Separator) {
        if let Some((node, last)) = all.last_mut() {
            *last = then;
            if let Some(command) = last_command(node).and_then(|index| self.commands.get_mut(index)) {
                command.then = then;
            }
        }
    }

    /// Records the assignments of a command that does nothing else.
    fn assigns(&mut self, node: &LineNode, surely: bool) -> Result<(), String> {
        let LineNode::Command(index) = node else { return Ok(()) };
        let Some(command) = self.commands.get(*index).filter(|command| command.words.is_empty()) else { return Ok(()) };
        if !surely || command.assignments.is_empty() {
            return Err("The command line has an assignment that is not allowed.".into());
        }
        for Assignment { name, value } in command.assignments.clone() {
            self.bind(&name, Value::OneOf(vec![value]))?;
        }
        Ok(())
    }

    /// Assigns a value to a variable.
    ///
    /// # Errors
    /// If the variable already has a value, or controls shells and programs.
    fn bind(&mut self, name: &str, value: Value) -> Result<(), String> {
        if !environment::is_free(name) {
            return Err(format!("The variable `{name}` may change what runs."));
        }
        if !self.assigned.insert(name.to_owned()) {
            return Err(format!("The variable `{name}` is assigned more than once."));
        }
        self.variables.insert(name.to_owned(), value);
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline) -> Result<LineNode, String> {
        let mut stages = Vec::new();
        let mut before: Option<Vec<usize>> = Some(Vec::new());
        let last = pipeline.seq.len().saturating_sub(1);
        for (index, command) in pipeline.seq.iter().enumerate() {
            if index > 0 {
                self.piped.push(before.clone());
            }
            let node = self.command(command);
            if index > 0 {
                self.piped.pop();
            }
            let node = node?;
            match (&node, &mut before) {
                (LineNode::Command(at), Some(before)) => before.push(*at),
                _ => before = None,
            }
            if let Some(command) = last_command(&node).and_then(|at| self.commands.get_mut(at)).filter(|_| index < last)
            {
                command.then = Separator::Pipe;
            }
            stages.push(node);
        }
        let node = match stages.len() {
            1 => stages.remove(0),
            _ => LineNode::Pipe(stages),
        };
        let mut words = String::new();
        if pipeline.bang {
            words.push_str("! ");
        }
        if pipeline.timed.is_some() {
            words.push_str("time ");
        }
        if words.is_empty() {
            return Ok(node);
        }
        Ok(LineNode::Group { parts: vec![LineNode::Text(words), node], subshell: false, loops: false })
    }

    fn command(&mut self, command: &ast::Command) -> Result<LineNode, String> {
        match command {
            ast::Command::Simple(simple) => {
                let simple = self.simple(simple)?;
                self.push(simple)
            }
            ast::Command::Compound(compound, redirects) => self.compound(compound, redirects.as_ref()),
            ast::Command::Function(_) => Err("The command line defines a function.".into()),
            ast::Command::ExtendedTest(test, None) => self.extended(&test.expr).and_then(|words| {
                let Some(words) = words else { return Err("This form of `[[` is not known to be safe.".into()) };
                let command = SimpleCommand { words, document: true, ..SimpleCommand::default() };
                self.push(command)
            }),
            ast::Command::ExtendedTest(_, Some(_)) => Err("The command line has `[[` with a redirection.".into()),
        }
    }

    fn push(&mut self, command: SimpleCommand) -> Result<LineNode, String> {
        if self.commands.len() == MAX_COMMANDS {
            return Err(format!("The command line has more than {MAX_COMMANDS} commands."));
        }
        self.commands.push(command);
        Ok(LineNode::Command(self.commands.len() - 1))
    }

    /// The words of `[[`, as words of `test`. Patterns are accepted only if they are plain text.
    #[expect(clippy::wildcard_enum_match_arm, reason = "of the parser's many forms only these are known")]
    fn extended(&mut self, test: &ast::ExtendedTestExpr) -> Result<Option<Vec<ShellWord>>, String> {
        use ast::{BinaryPredicate as Binary, ExtendedTestExpr as Test, UnaryPredicate as Unary};
        let words = match test {
            Test::Not(inner) => {
                let Some(words) = self.extended(inner)? else { return Ok(None) };
                return Ok(Some(words));
            }
            Test::Parenthesized(inner) => return self.extended(inner),
            Test::UnaryTest(predicate, word) => {
                let option = match predicate {
                    Unary::FileExists => "-e",
                    Unary::FileExistsAndIsDir => "-d",
                    Unary::FileExistsAndIsRegularFile => "-f",
                    Unary::FileExistsAndIsSymlink => "-h",
                    Unary::FileExistsAndIsReadable => "-r",
                    Unary::FileExistsAndIsNotZeroLength => "-s",
                    Unary::FileExistsAndIsWritable => "-w",
                    Unary::FileExistsAndIsExecutable => "-x",
                    Unary::StringHasZeroLength => "-z",
                    Unary::StringHasNonZeroLength => "-n",
                    _ => return Ok(None),
                };
                vec![ShellWord::plain(option), self.word(word)?]
            }
            Test::BinaryTest(predicate, left, right) => {
                let operator = match predicate {
                    Binary::StringExactlyMatchesPattern | Binary::StringExactlyMatchesString => "=",
                    Binary::StringDoesNotExactlyMatchPattern | Binary::StringDoesNotExactlyMatchString => "!=",
                    Binary::LeftFileIsNewerOrExistsWhenRightDoesNot => "-nt",
                    Binary::LeftFileIsOlderOrDoesNotExistWhenRightDoes => "-ot",
                    _ => return Ok(None),
                };
                let (left, mut right) = (self.word(left)?, self.word(right)?);
                // It is compared with text here, not with files.
                right.glob = false;
                vec![left, ShellWord::plain(operator), right]
            }
            Test::And(..) | Test::Or(..) => return Ok(None),
        };
        // `test` and `[[` interpret the words differently; only the common part is checked.
        let mut all = vec![ShellWord::plain("test")];
        all.extend(words);
        Ok(Some(all))
    }

    fn body(&mut self, list: &ast::CompoundList) -> Result<LineNode, String> {
        let before = self.variables.clone();
        let mut all = Vec::new();
        self.list(&list.0, &mut all)?;
        self.variables = before;
        if let Some((_, then)) = all.last_mut() {
            *then = Separator::Next;
        }
        Ok(LineNode::List(all))
    }

    fn compound(
        &mut self,
        compound: &ast::CompoundCommand,
        redirects: Option<&ast::RedirectList>,
    ) -> Result<LineNode, String> {
        use ast::CompoundCommand as Compound;
        let text = |text: &str| LineNode::Text(text.to_owned());
        let around = redirects.map(|redirects| self.around(redirects)).transpose()?;
        if let Some((from, _)) = &around {
            self.piped.push(from.clone());
        }
        let made: Result<(Vec<LineNode>, bool, bool), String> = (|| {
            Ok(match compound {
                Compound::BraceGroup(group) => {
                    let before = self.variables.clone();
                    let body = self.body(&group.list)?;
                    self.variables = before;
                    (vec![text("{ "), body, text("}")], false, false)
                }
                Compound::Subshell(group) => (vec![text("( "), self.body(&group.list)?, text(")")], true, false),
                Compound::ForClause(clause) => {
                    let Some(words) = &clause.values else {
                        return Err("The command line has a loop over its arguments.".into());
                    };
                    let words = words.iter().map(|word| self.word(word)).collect::<Result<Vec<_>, _>>()?;
                    let written = words.iter().map(|word| word.raw.as_str()).collect::<Vec<_>>().join(" ");
                    let before = self.variables.clone();
                    self.bind(&clause.variable_name, Value::OneOf(words))?;
                    let body = self.body(&clause.body.list)?;
                    self.variables = before;
                    let head = format!("for {} in {written}; do ", clause.variable_name);
                    (vec![text(&head), body, text("done")], false, true)
                }
                Compound::WhileClause(clause) | Compound::UntilClause(clause) => {
                    let word = if matches!(compound, Compound::WhileClause(_)) { "while " } else { "until " };
                    let before = self.variables.clone();
                    let mut parts = vec![text(word)];
                    match self.reads(&clause.0)? {
                        Some(written) => parts.push(text(&format!("{written}; "))),
                        None => parts.push(self.body(&clause.0)?),
                    }
                    parts.push(text("do "));
                    parts.push(self.body(&clause.1.list)?);
                    parts.push(text("done"));
                    self.variables = before;
                    (parts, false, true)
                }
                Compound::IfClause(clause) => {
                    let mut parts = vec![text("if "), self.body(&clause.condition)?, text("then ")];
                    parts.push(self.body(&clause.then)?);
                    for branch in clause.elses.iter().flatten() {
                        match &branch.condition {
                            Some(condition) => {
                                parts.push(text("elif "));
                                parts.push(self.body(condition)?);
                                parts.push(text("then "));
                            }
                            None => parts.push(text("else ")),
                        }
                        parts.push(self.body(&branch.body)?);
                    }
                    parts.push(text("fi"));
                    (parts, false, false)
                }
                Compound::Arithmetic(_) | Compound::ArithmeticForClause(_) => {
                    return Err("The command line has arithmetic.".into());
                }
                Compound::CaseClause(_) => return Err("The command line has a `case`.".into()),
                Compound::Coprocess(_) => return Err("The command line has a coprocess.".into()),
            })
        })();
        if around.is_some() {
            self.piped.pop();
        }
        let (mut parts, subshell, loops) = made?;
        parts.extend(around.map(|(_, written)| LineNode::Text(written)));
        Ok(LineNode::Group { parts, subshell, loops })
    }

    /// The redirections of a group: the input of its commands, and the redirections as written. A file to read is
    /// treated as the input of a separate command.
    fn around(&mut self, redirects: &ast::RedirectList) -> Result<(Option<Vec<usize>>, String), String> {
        let mut command = SimpleCommand::default();
        for redirect in &redirects.0 {
            self.redirect(redirect, &mut command)?;
        }
        if command.document || !command.outputs.is_empty() {
            return Err("The command line has a redirection of a group.".into());
        }
        let mut written = String::new();
        let mut from = self.piped.last().cloned().flatten();
        if let Some(input) = &command.input {
            written.push_str(&format!(" < {}", input.raw));
            let mut cat = ShellWord::plain("cat");
            cat.raw = String::new();
            let read = SimpleCommand { words: vec![cat, input.clone()], document: true, ..SimpleCommand::default() };
            let LineNode::Command(at) = self.push(read)? else { return Err("Internal error: no command.".into()) };
            from = Some(vec![at]);
        }
        for redirect in &command.redirects {
            written.push(' ');
            written.push_str(redirect);
        }
        Ok((from, written))
    }

    /// `read -r LINE` as the condition of a loop, as written. The variable then has each line as its value.
    #[expect(clippy::wildcard_enum_match_arm, reason = "of the parser's many forms only these are known")]
    fn reads(&mut self, list: &ast::CompoundList) -> Result<Option<String>, String> {
        let [ast::CompoundListItem(and_or, ast::SeparatorOperator::Sequence)] = list.0.as_slice() else {
            return Ok(None);
        };
        let (true, [ast::Command::Simple(simple)]) =
            (and_or.additional.is_empty() && !and_or.first.bang, and_or.first.seq.as_slice())
        else {
            return Ok(None);
        };
        if simple.word_or_name.as_ref().is_none_or(|word| word.value != "read") {
            return Ok(None);
        }
        let odd = || Err("This form of `read` is not known to be safe.".to_owned());
        let mut written = Vec::new();
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                // Applies only to `read`: a line is not split.
                ast::CommandPrefixOrSuffixItem::AssignmentWord(_, word) if word.value == "IFS=" => {
                    written.push("IFS=".to_owned());
                }
                _ => return odd(),
            }
        }
        written.push("read".to_owned());
        let (mut names, mut literal, mut separated) = (Vec::new(), false, false);
        let mut items = simple.suffix.iter().flat_map(|suffix| &suffix.0);
        while let Some(item) = items.next() {
            let ast::CommandPrefixOrSuffixItem::Word(word) = item else { return odd() };
            written.push(word.value.clone());
            match word.value.as_str() {
                "-r" => literal = true,
                "-d" | "-rd" | "-r -d" => {
                    literal |= word.value == "-rd";
                    separated = true;
                    match items.next() {
                        Some(ast::CommandPrefixOrSuffixItem::Word(word))
                            if matches!(word.value.as_str(), "''" | "\"\"") =>
                        {
                            written.push(word.value.clone());
                        }
                        _ => return odd(),
                    }
                }
                name if is_name(name) => names.push(name.to_owned()),
                _ => return odd(),
            }
        }
        let whole = names.len() == 1 && literal;
        let value = match self.piped.last() {
            Some(Some(from)) if whole && !from.is_empty() => Value::Line(from.clone()),
            _ => Value::Unknown,
        };
        let _ = separated;
        if names.is_empty() {
            return odd();
        }
        for name in names {
            self.bind(&name, value.clone())?;
        }
        Ok(Some(written.join(" ")))
    }

    fn simple(&mut self, command: &ast::SimpleCommand) -> Result<SimpleCommand, String> {
        let mut simple = SimpleCommand {
            possible: Possible { line: Arc::clone(&self.found.all), own: self.found.of(command) },
            piped: self.piped.last().cloned().unwrap_or(Some(Vec::new())),
            ..SimpleCommand::default()
        };
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                ast::CommandPrefixOrSuffixItem::IoRedirect(_) => {
                    return Err("The command line has a redirection before the command.".into());
                }
                ast::CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => {
                    let assigned = self.assignment(assignment)?;
                    simple.assignments.push(assigned);
                }
                ast::CommandPrefixOrSuffixItem::Word(_) | ast::CommandPrefixOrSuffixItem::ProcessSubstitution(..) => {
                    return Err("The command line has a word before the command.".into());
                }
            }
        }
        if let Some(word) = &command.word_or_name {
            let word = self.word(word)?;
            simple.words.push(word);
        }
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            match item {
                ast::CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect, &mut simple)?,
                // The parser treats `export a=b` as a word, not as an assignment.
                ast::CommandPrefixOrSuffixItem::Word(word)
                | ast::CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                    let word = self.word(word)?;
                    simple.words.push(word);
                }
                ast::CommandPrefixOrSuffixItem::ProcessSubstitution(..) => {
                    return Err("The command line has a process substitution.".into());
                }
            }
        }
        if simple.words.is_empty() && simple.assignments.is_empty() {
            return Err("The command line contains an empty command.".into());
        }
        Ok(simple)
    }

    fn assignment(&mut self, assignment: &ast::Assignment) -> Result<Assignment, String> {
        let (ast::AssignmentName::VariableName(name), ast::AssignmentValue::Scalar(word), false) =
            (&assignment.name, &assignment.value, assignment.append)
        else {
            return Err("The command line has an assignment that is not of the form `NAME=VALUE`.".into());
        };
        let value = self.word(word)?;
        if value.glob || value.zsh {
            return Err(format!("The value of the variable `{name}` may be read as a pattern."));
        }
        Ok(Assignment { name: name.clone(), value })
    }

    fn redirect(&mut self, redirect: &ast::IoRedirect, simple: &mut SimpleCommand) -> Result<(), String> {
        use ast::{IoFileRedirectKind as Kind, IoFileRedirectTarget as Target, IoRedirect as Io};
        let odd = || Err("capture cannot parse a redirection of the command line.".to_owned());
        match redirect {
            Io::File(None | Some(0), Kind::Read, Target::Filename(word)) => {
                let Ok(word) = self.text(word) else {
                    return Err("capture cannot check from which file the command line reads input.".into());
                };
                if simple.input.is_some() || simple.document || word.text.is_empty() {
                    return Err("capture cannot check from which file the command line reads input.".into());
                }
                simple.input = Some(word);
            }
            Io::File(fd, kind @ (Kind::Write | Kind::Append), Target::Filename(word)) => {
                let word = self.word(word)?;
                let append = matches!(kind, Kind::Append);
                match (fd, word.text.as_str(), word.bare, append) {
                    (None | Some(1), "/dev/null", true, false) => simple.redirects.push(">/dev/null"),
                    (Some(2), "/dev/null", true, false) => simple.redirects.push("2>/dev/null"),
                    (None | Some(1 | 2), ..) => {
                        let operator = match (fd, append) {
                            (Some(2), true) => "2>>",
                            (Some(2), false) => "2>",
                            (_, true) => ">>",
                            (_, false) => ">",
                        };
                        self.writes(operator, word, simple);
                    }
                    _ => return odd(),
                }
            }
            Io::OutputAndError(word, false) => {
                let word = self.word(word)?;
                if word.text == "/dev/null" && word.bare {
                    simple.redirects.extend([">/dev/null", "2>&1"]);
                } else {
                    self.writes("&>", word, simple);
                }
            }
            Io::File(Some(2), Kind::DuplicateOutput, target) if is_stream(target, "1") => simple.redirects.push("2>&1"),
            Io::File(None | Some(1), Kind::DuplicateOutput, target) if is_stream(target, "2") => {
                simple.redirects.push(">&2");
            }
            Io::HereDocument(None | Some(0), document) => {
                // The scan and the parser must agree on the end of the document.
                if simple.input.is_some() || self.documents.pop_front().as_ref() != Some(&document.doc.value) {
                    return Err("capture cannot parse a here-document.".into());
                }
                simple.document = true;
            }
            Io::HereString(None | Some(0), word) => {
                let word = self.word(word)?;
                if simple.input.is_some() || !word.is_exact() {
                    return Err("The command line has a here-string that is not plain text.".into());
                }
                simple.document = true;
            }
            Io::File(..) | Io::OutputAndError(..) | Io::HereDocument(..) | Io::HereString(..) => return odd(),
        }
        Ok(())
    }

    fn writes(&self, operator: &'static str, file: ShellWord, simple: &mut SimpleCommand) {
        // The targets of the streams depend on the order of redirections, which is not kept.
        simple.document |= !simple.redirects.is_empty();
        simple.outputs.push(Output { operator, file });
    }
}

fn is_stream(target: &ast::IoFileRedirectTarget, number: &str) -> bool {
    match target {
        ast::IoFileRedirectTarget::Fd(fd) => fd.to_string() == number,
        ast::IoFileRedirectTarget::Duplicate(word) => word.value == number,
        ast::IoFileRedirectTarget::Filename(_) | ast::IoFileRedirectTarget::ProcessSubstitution(..) => false,
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The last command in a node that is not a group.
fn last_command(node: &LineNode) -> Option<usize> {
    match node {
        LineNode::Command(index) => Some(*index),
        LineNode::Pipe(all) => all.last().and_then(last_command),
        LineNode::Text(_) | LineNode::List(_) | LineNode::Group { .. } => None,
    }
}
