//! Finds the commands in a text for a shell, whatever surrounds them.
//!
//! The policy's parser (crate `approver`) accepts a line only if it understands all of it, but the monitor also needs
//! the commands of other lines. So this parser refuses nothing: if a text is ambiguous, it reads more commands than a
//! shell would, but never fewer. It knows only the programs that run a text passed to them.

/// Maximum nesting of shells and substitutions that is read.
const DEPTH: u8 = 6;

/// The commands of a text.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// Pipelines: commands joined by `|`.
    pub(super) pipelines: Vec<Vec<Command>>,
    /// Texts that are the input of a command: here-documents and here-strings.
    pub(super) documents: Vec<String>,
    /// Whether commands are nested so deeply that some were not read.
    pub(super) is_too_deep: bool,
}

/// A command and its words.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Command {
    /// The words without their quotes; `$` stands for the output of a command.
    pub(super) words: Vec<String>,
    /// The commands whose output it reads by substitution: `$(…)`, `<(…)`.
    pub(super) substituted: Vec<Vec<String>>,
}

/// Whether a program is a shell.
pub(super) fn is_shell(program: &str) -> bool {
    matches!(program, "sh" | "bash" | "zsh" | "dash" | "ksh" | "ash" | "fish")
}

/// The commands of a text.
pub(super) fn script(text: &str) -> Script {
    let mut script = Script::default();
    read(text, 0, &mut script);
    script
}

fn read(text: &str, depth: u8, script: &mut Script) {
    if depth == DEPTH {
        script.is_too_deep = true;
        return;
    }
    let (mut documents, mut inner) = (Vec::new(), Vec::new());
    let first = script.pipelines.len();
    let text = text.replace("\\\r\n", "").replace("\\\n", "");
    let mut reader =
        ScriptReader { rest: &text, depth, pending: Vec::new(), documents: &mut documents, inner: &mut inner, script };
    reader.list(&[]);
    while !reader.rest.is_empty() {
        // A closing character without an opening one.
        reader.next();
        reader.list(&[]);
    }
    for one in inner {
        read(&one, depth + 1, script);
    }
    let runs_text = |command: &Command| {
        let is_sourced = command.words.first().is_some_and(|word| matches!(word.as_str(), "." | "source" | "eval"));
        is_sourced || command.words.iter().any(|word| is_shell(base(word)))
    };
    let runs_text = script.pipelines.get(first..).unwrap_or_default().iter().flatten().any(runs_text);
    for document in documents {
        if runs_text {
            read(&document, depth + 1, script);
        }
        script.documents.push(document);
    }
}

/// The name of a program without its directory.
pub(super) fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Words before a command that are not part of it.
const KEYWORDS: &[&str] = &["!", "{", "}", "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "esac"];

/// A here-document that begins after the end of the line.
struct PendingDocument {
    delimiter: String,
    may_be_indented: bool,
}

struct ScriptReader<'a, 's> {
    rest: &'a str,
    depth: u8,
    pending: Vec<PendingDocument>,
    documents: &'s mut Vec<String>,
    /// Texts that are passed to a shell as a word.
    inner: &'s mut Vec<String>,
    script: &'s mut Script,
}

#[derive(Default)]
struct ScriptWords {
    command: Command,
    word: String,
    /// Whether a word has begun: an empty quoted word counts.
    is_open: bool,
    /// Whether the word is the target of a redirection, which is not an argument.
    is_target: bool,
    /// Whether a part of the word was quoted.
    is_quoted: bool,
}

impl ScriptWords {
    fn push(&mut self, c: char) {
        self.word.push(c);
        self.is_open = true;
    }

    fn end_word(&mut self) {
        let (word, is_quoted) = (std::mem::take(&mut self.word), std::mem::take(&mut self.is_quoted));
        let (is_open, is_target) = (std::mem::take(&mut self.is_open), std::mem::take(&mut self.is_target));
        if !is_open {
            // A target may be separated from its operator by a space.
            self.is_target = is_target;
            return;
        }
        let is_first = self.command.words.is_empty();
        let is_assignment = is_first && !word.starts_with('-') && word.contains('=') && !is_unknown_name(&word);
        if is_target || is_assignment || is_first && !is_quoted && KEYWORDS.contains(&word.as_str()) {
            return;
        }
        let list = word.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).filter(|list| list.contains(','));
        match list {
            // `{rm,-rf,x}` is three words.
            Some(list) if is_first => self.command.words.extend(list.split(',').map(str::to_owned)),
            Some(_) | None => self.command.words.push(word),
        }
    }
}

/// Whether the text before the `=` of a word cannot be the name of a variable.
fn is_unknown_name(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default().trim_end_matches('+');
    let name = name.split('[').next().unwrap_or_default();
    name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl ScriptReader<'_, '_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn skip(&mut self, sign: &str) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Reads commands up to one of these characters, which is not consumed, or the end. Returns the named programs.
    fn list(&mut self, until: &[char]) -> Vec<Vec<String>> {
        let mut programs = Vec::new();
        let mut pipeline: Vec<Command> = Vec::new();
        let mut words = ScriptWords::default();
        let mut goes_on = false;
        let (mut parentheses, mut cases, mut is_next_pattern) = (0_u32, 0_u32, false);
        while let Some(c) = self.peek() {
            if until.contains(&c) && (c != ')' || parentheses == 0) {
                // After a pattern of `case` there is a `)` too.
                words.end_word();
                let begins_case = words.command.words.first().is_some_and(|word| word == "case");
                if c != ')' || !(begins_case || cases > 0 && is_next_pattern) {
                    break;
                }
                cases += u32::from(begins_case);
                parentheses += 1;
            }
            self.next();
            let begins = !words.is_open;
            match c {
                ' ' | '\t' => words.end_word(),
                '#' if begins => {
                    let end = self.rest.find(['\n', '\r']).unwrap_or(self.rest.len());
                    self.rest = &self.rest[end..];
                }
                '\n' | '\r' => {
                    let is_empty = words.command.words.is_empty() && !words.is_open && !words.is_target;
                    self.documents();
                    // After `|` the command continues on the next line.
                    if !(goes_on && is_empty) {
                        self.end_command(&mut words, &mut pipeline, &mut programs);
                        self.end_pipeline(&mut pipeline);
                        goes_on = false;
                    }
                }
                '|' if self.skip("|") => {
                    self.end_command(&mut words, &mut pipeline, &mut programs);
                    self.end_pipeline(&mut pipeline);
                    goes_on = false;
                }
                '|' => {
                    self.skip("&");
                    self.end_command(&mut words, &mut pipeline, &mut programs);
                    goes_on = true;
                }
                ';' | '&' | '(' | ')' => {
                    is_next_pattern = c == ';' && self.skip(";");
                    parentheses = match c {
                        '(' => parentheses + 1,
                        ')' => parentheses.saturating_sub(1),
                        _ => parentheses,
                    };
                    self.end_command(&mut words, &mut pipeline, &mut programs);
                    self.end_pipeline(&mut pipeline);
                    goes_on = false;
                }
                '<' | '>' if self.rest.starts_with('(') => self.substitution(&mut words),
                '<' if self.skip("<<") => {
                    // The following word is a text.
                    words.end_word();
                    let text = self.document_word();
                    self.documents.push(text);
                }
                '<' if self.skip("<") => {
                    let may_be_indented = self.skip("-");
                    words.end_word();
                    let delimiter = self.document_word();
                    self.pending.push(PendingDocument { delimiter, may_be_indented });
                }
                '<' | '>' => {
                    // The number of a file descriptor is not a word.
                    if words.word.bytes().all(|b| b.is_ascii_digit()) {
                        words.word.clear();
                        words.is_open = false;
                    }
                    words.end_word();
                    while self.skip(">") || self.skip("&") || self.skip("|") {}
                    words.is_target = true;
                }
                '`' => self.substituted('`', &mut words),
                '$' => self.dollar(&mut words),
                '\\' => {
                    if let Some(c) = self.next() {
                        words.is_quoted = true;
                        words.push(c);
                    }
                }
                '\'' => self.single_quotes(&mut words),
                '"' => self.double_quotes(&mut words),
                c => words.push(c),
            }
        }
        self.end_command(&mut words, &mut pipeline, &mut programs);
        self.end_pipeline(&mut pipeline);
        programs
    }

    fn end_command(&mut self, words: &mut ScriptWords, pipeline: &mut Vec<Command>, programs: &mut Vec<Vec<String>>) {
        words.end_word();
        let command = std::mem::take(words).command;
        if command.words.is_empty() && command.substituted.is_empty() {
            return;
        }
        // After the name of a function, its commands follow.
        for words in command.words.split(|word| word == "{") {
            let command = Command { words: words.to_vec(), substituted: command.substituted.clone() };
            programs.push(command.words.clone());
            self.texts_in(&command);
            pipeline.push(command);
        }
    }

    fn end_pipeline(&mut self, pipeline: &mut Vec<Command>) {
        if !pipeline.is_empty() {
            self.script.pipelines.push(std::mem::take(pipeline));
        }
    }

    /// Reads words that are run as commands: the word after `-c` of a shell, the words of `eval`.
    fn texts_in(&mut self, command: &Command) {
        let runs_text = |word: &str| is_shell(word) || matches!(word, "eval" | "su" | "ssh" | "trap" | "watch");
        let Some(place) = command.words.iter().position(|word| runs_text(base(word))) else { return };
        let Some((program, behind)) = command.words.get(place..).and_then(<[String]>::split_first) else { return };
        match base(program) {
            "eval" | "ssh" | "watch" => self.inner.push(behind.join(" ")),
            "trap" => self.inner.extend(behind.first().cloned()),
            _ => {
                let is_text = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
                if let Some(option) = behind.iter().position(is_text) {
                    let text = behind.iter().skip(option + 1).find(|word| !word.starts_with('-'));
                    self.inner.extend(text.cloned());
                }
            }
        }
    }

    /// The word after `<<` or `<<<`.
    fn document_word(&mut self) -> String {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        let mut words = ScriptWords::default();
        while let Some(c) = self.peek() {
            if c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '<' | '>') {
                break;
            }
            self.next();
            match c {
                '\'' => self.single_quotes(&mut words),
                '"' => self.double_quotes(&mut words),
                '\\' => words.word.extend(self.next()),
                '$' => self.dollar(&mut words),
                '`' => self.substituted('`', &mut words),
                c => words.push(c),
            }
        }
        words.word
    }

    /// Reads the here-documents whose line has ended. One without an end is read as commands.
    fn documents(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            let mut end = 0;
            let mut found = None;
            for line in self.rest.split_inclusive('\n') {
                let plain = line.trim_end_matches(['\n', '\r']);
                let plain = if pending.may_be_indented { plain.trim_start_matches('\t') } else { plain };
                if plain == pending.delimiter {
                    found = Some(line.len());
                    break;
                }
                end += line.len();
            }
            let Some(length) = found else { continue };
            self.documents.push(self.rest[..end].to_owned());
            self.rest = &self.rest[end + length..];
        }
    }

    /// `(…)` after `$`, `<` or `>`.
    fn substitution(&mut self, words: &mut ScriptWords) {
        self.next();
        self.substituted(')', words);
    }

    fn substituted(&mut self, end: char, words: &mut ScriptWords) {
        words.push('$');
        if self.depth + 1 >= DEPTH {
            self.script.is_too_deep = true;
            return;
        }
        self.depth += 1;
        let commands = self.list(&[end]);
        self.depth -= 1;
        self.next();
        words.command.substituted.extend(commands);
    }

    fn dollar(&mut self, words: &mut ScriptWords) {
        match self.peek() {
            Some('(') => self.substitution(words),
            Some('\'') => {
                self.next();
                self.c_quotes(words);
            }
            Some('"') => {
                self.next();
                self.double_quotes(words);
            }
            Some('{') => {
                self.next();
                words.push('$');
                words.push('{');
                while let Some(c) = self.peek() {
                    if matches!(c, '\n' | '\r') {
                        break;
                    }
                    self.next();
                    match c {
                        '}' => {
                            words.push('}');
                            break;
                        }
                        '$' => self.dollar(words),
                        '`' => self.substituted('`', words),
                        c => words.push(c),
                    }
                }
            }
            _ => words.push('$'),
        }
    }

    fn single_quotes(&mut self, words: &mut ScriptWords) {
        words.is_quoted = true;
        words.is_open = true;
        // Without a closing quote it is read as commands.
        if let Some((text, rest)) = self.rest.split_once('\'') {
            words.word.push_str(text);
            self.rest = rest;
        }
    }

    /// `$'…'`
    fn c_quotes(&mut self, words: &mut ScriptWords) {
        words.is_quoted = true;
        words.is_open = true;
        while let Some(c) = self.next() {
            match c {
                '\'' => return,
                '\\' => match self.next() {
                    Some('n') => words.word.push('\n'),
                    Some('t') => words.word.push('\t'),
                    Some('x') => self.code(words, 16, 2),
                    Some('u') => self.code(words, 16, 4),
                    Some('U') => self.code(words, 16, 8),
                    Some(digit @ '0'..='7') => {
                        let length = self.rest.bytes().take(2).take_while(|b| (b'0'..=b'7').contains(b)).count();
                        let (more, rest) = self.rest.split_at(length);
                        let code = u32::from_str_radix(&format!("{digit}{more}"), 8).ok().and_then(char::from_u32);
                        words.word.extend(code);
                        self.rest = rest;
                    }
                    Some(c) => words.word.push(c),
                    None => return,
                },
                c => words.word.push(c),
            }
        }
    }

    fn code(&mut self, words: &mut ScriptWords, radix: u32, most: usize) {
        let length = self.rest.bytes().take(most).take_while(|b| char::from(*b).is_digit(radix)).count();
        let (digits, rest) = self.rest.split_at(length);
        words.word.extend(u32::from_str_radix(digits, radix).ok().and_then(char::from_u32));
        self.rest = rest;
    }

    fn double_quotes(&mut self, words: &mut ScriptWords) {
        words.is_quoted = true;
        words.is_open = true;
        if !has_end(self.rest) {
            return;
        }
        while let Some(c) = self.next() {
            match c {
                '"' => return,
                '\\' => match self.next() {
                    Some(c @ ('"' | '\\' | '$' | '`')) => words.word.push(c),
                    Some(c) => words.word.extend(['\\', c]),
                    None => return,
                },
                '$' => self.dollar(words),
                '`' => self.substituted('`', words),
                c => words.word.push(c),
            }
        }
    }
}

/// Whether the text contains the closing double quote.
fn has_end(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return true,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
    false
}

/// The quoted texts of a program's source. Texts separated only by `,` are also returned as the words of a list:
/// `["rm", "-rf"]`.
pub(super) fn quoted_texts(source: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let (mut texts, mut lists): (Vec<String>, Vec<Vec<String>>) = (Vec::new(), Vec::new());
    let mut list: Vec<String> = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '\'', '`']) {
        let (between, behind) = rest.split_at(at);
        let quote = behind.chars().next().unwrap_or('"');
        if !between.trim().trim_matches(',').trim().is_empty() {
            lists.extend((list.len() > 1).then(|| std::mem::take(&mut list)));
            list.clear();
        }
        let behind = &behind[1..];
        let mut end = None;
        let mut is_escaped = false;
        for (place, c) in behind.char_indices() {
            if c == quote && !is_escaped {
                end = Some(place);
                break;
            }
            is_escaped = c == '\\' && !is_escaped;
        }
        let Some(end) = end else { break };
        let text = behind[..end].replace("\\n", "\n").replace(['\\'], "");
        list.push(text.clone());
        texts.push(text);
        rest = &behind[end + 1..];
    }
    lists.extend((list.len() > 1).then_some(list));
    (texts, lists)
}
