//! What a person forbids in a sentence.
//!
//! The grammar is closed: a sentence forbids something only if all its words up to the end of the clause are known, and
//! only if no condition that capture cannot check belongs to it.

use super::{
    acts::{Act, Files, Packages},
    reader::{CHANGES, FILLERS, Reader, lists},
    sentences::{Sentence, Token},
};

/// Maximum number of prohibitions of one sentence.
const ACTS: usize = 12;

/// Words of which every prohibition has one; most sentences are not parsed because of this.
const MAY_FORBID: &str = "\
    not|don't|dont|never|mustn't|shouldn't|no|without|stop|hold|refrain|ask|wait|check|let|confirm|consult|get|only|leave|\
    keep|hands|stay|read-only|readonly|read";

/// What begins a prohibition and is followed by a verb.
const FORBIDS: &str = "\
    do not|don't|dont|never|never ever|you must not|you mustn't|you must never|you should not|you shouldn't|\
    you should never|you may not|you are not to|you're not to|you are not allowed to|you're not allowed to|\
    you are never to|make sure you don't|make sure you do not|make sure that you don't|\
    make sure that you do not|make sure not to|make sure to not|make sure to never|be sure not to|\
    be careful not to|remember not to|ensure you don't|ensure that you don't|ensure that you do not|\
    i don't want you to|i do not want you to|do not ever|don't ever|do not attempt to|do not try to|\
    don't try to|don't attempt to|do not go and|don't go and|do not automatically|don't automatically";

/// What begins a prohibition and is followed by the form in `-ing` or a noun.
const FORBIDS_DOING: &str = "no|stop|hold off|hold off on|refrain from|absolutely no";

/// Words after what is forbidden that change nothing.
const TAILS: &str = "\
    yet|just yet|now|right now|for now|please|pls|at all|this time|today|at this point|at this stage|\
    under any circumstances|on your own|yourself|by yourself|either|again|ever|though|ok|okay|thanks|\
    thank you|automatically|directly|allowed|for the moment|so far|at the moment|anymore|any more|\
    in this repo|in this repository|in this project|in this session|in this branch|here|from here|\
    from this repo|from this branch|instead|for me|as well|too|without exception|period|whatsoever";

/// Words that make what is forbidden depend on something.
const CONDITIONS: &str =
    "if|unless|when|whenever|once|while|until|till|except|otherwise|depending|assuming|provided|besides|apart|case";

/// What stands before a word of the person, after which the person alone decides: `until I say so`.
const BY_PERSON: &str = "\
    i|i've|i'm|i'll|told|asked|i'd|me|my|further notice|instructed|explicitly|asking|permission|approval|\
    approved|confirmation|being asked|being told|checking with me|confirming|you hear from me|\
    you've asked me|you have asked me|you ask me|you are told|you're told|explicit";

/// What asks for the person's word.
const ASKS: &str = "\
    ask|ask me|ask first|ask me first|ask for permission|ask for my permission|ask for approval|\
    ask for my approval|check with me|check in with me|confirm with me|consult me|get my approval|get my ok|\
    get my okay|get my permission|wait for me|wait for my approval|wait for my ok|wait for my okay|\
    wait for my go-ahead|wait for my go ahead|wait for my review|wait for my confirmation|\
    wait for my permission|wait for my answer|wait for my feedback|wait for my signal|stop and ask|\
    stop and ask me|wait until i've reviewed|wait until i have reviewed|wait until i say so|let me review|\
    let me review it|let me review this|let me review the changes|let me review the diff|let me check|\
    let me check it|let me look|let me look at it|let me have a look|let me take a look|let me approve|\
    let me approve it|wait for an ok from me";

/// Words that may precede the name of a file.
const BEFORE_FILE: &str = "\
    the|any|my|our|your|file|files|anything|\
    everything|in|under|inside|within|below|of|directory|folder|code|any files|path|at";

/// Names of files without an extension.
const FILE_NAMES: &str = "\
    makefile|dockerfile|license|readme|gemfile|rakefile|procfile|justfile|changelog|jenkinsfile|vagrantfile|\
    codeowners";

/// Verbs with which an instruction begins.
const IMPERATIVES: &str = "\
    try|finish|continue|start|build|run|test|make|do|review|investigate|check|look|find|debug|explain|solve|\
    complete|stage|prepare|draft|analyze|analyse|get|read|go|keep|merge|rebase|commit|push|install|deploy|\
    release|plan|see|verify|reproduce|optimize|speed|show|document|resolve|address|handle|figure|bring|take|\
    switch|turn|reduce|tidy|search|carry";

impl Reader<'_> {
    fn fillers(&mut self) {
        for _ in 0..8 {
            let before = self.at;
            // `no` and `stop` also begin a prohibition.
            let is_verb = self.attempt(Self::beginning).is_some();
            self.at = before;
            if is_verb || !(self.eat(FILLERS) || self.eat_sign(&[',', ':', '—', '\n', '('])) {
                return;
            }
        }
    }

    /// The beginning of a prohibition; returns whether the form in `-ing` follows.
    fn beginning(&mut self) -> Option<Form> {
        let before = self.at;
        if self.eat(FORBIDS) {
            return Some(Form::Base);
        }
        if self.eat(FORBIDS_DOING) {
            let form = if self
                .tokens
                .get(before..self.at)
                .is_some_and(|words| matches!(words, [Token::Word(no, _)] if no == "no"))
            {
                Form::Noun
            } else {
                Form::Doing
            };
            let starts = self.at;
            let is_act = self.act(form).is_some();
            self.at = starts;
            return is_act.then_some(form);
        }
        None
    }

    /// One thing that may be forbidden, with its objects; several for several files.
    fn act(&mut self, form: Form) -> Option<Acts> {
        self.attempt(|reader| reader.act_now(form))
    }

    fn act_now(&mut self, form: Form) -> Option<Acts> {
        let starts = self.at;
        let is = |base: &str, doing: &str, nouns: &str, word: &str| match form {
            Form::Base => word == base,
            Form::Doing => word == doing,
            Form::Either => word == base || word == doing,
            Form::Noun => word == doing || lists(nouns, word),
        };
        if self.is_code() {
            let act = act_of_command(self.raw()?)?;
            self.at += 1;
            return Some(Acts::bare(act));
        }
        // `git push`, without backticks.
        self.eat("run git|run a git|do git|do a git|use git|git");
        let word = self.word().to_owned();
        let next = self.word_at(1).to_owned();
        let forces = matches!(next.as_str(), "push" | "pushing" | "pushes") && word == "force"
            || matches!(next.as_str(), "--force" | "-f") && matches!(word.as_str(), "push" | "pushing");
        if forces || matches!(word.as_str(), "force-push" | "forcepush" | "force-pushing" | "force-pushes") {
            self.at += if forces { 2 } else { 1 };
            self.object("");
            return Some(self.acts(starts, Act::ForcePush));
        }
        if is("push", "pushing", "pushes|push", &word) {
            self.at += 1;
            self.object("commit|commits|branch|branches|code|work");
            let targets = self.targets()?;
            let is_bare = self.at - starts == 1;
            return Some(Acts { acts: targets.into_iter().map(Act::Push).collect(), is_bare });
        }
        if is("commit", "committing", "commits|commit", &word) {
            self.at += 1;
            if self.eat("--amend") {
                return Some(self.acts(starts, Act::Amend));
            }
            self.object("code|work");
            let targets = self.targets()?;
            let is_bare = self.at - starts == 1;
            return Some(Acts { acts: targets.into_iter().map(Act::Commit).collect(), is_bare });
        }
        if is("amend", "amending", "amends", &word) {
            self.at += 1;
            self.object("commit|commits");
            return Some(self.acts(starts, Act::Amend));
        }
        if is("rebase", "rebasing", "rebases|rebase", &word) {
            self.at += 1;
            self.object("commit|commits|branch|branches");
            return Some(self.acts(starts, Act::Rebase));
        }
        if is("merge", "merging", "merges|merge", &word) {
            self.at += 1;
            let object = self.at;
            self.object("branch|branches|pr|prs|mr|mrs|pull|request|requests");
            let names_request = self.has_said(object, "pr|prs|mr|mrs|request|requests");
            return Some(self.acts(starts, if names_request { Act::MergeRequest } else { Act::Merge }));
        }
        if is("deploy", "deploying", "deploys|deployments|deployment|deploy", &word) {
            self.at += 1;
            self.object("app|site|code|version");
            let targets = self.targets()?;
            let is_bare = self.at - starts == 1;
            return Some(Acts { acts: targets.into_iter().map(Act::Deploy).collect(), is_bare });
        }
        if is("publish", "publishing", "", &word) || is("release", "releasing", "releases", &word) {
            self.at += 1;
            self.object("package|packages|crate|version|versions|release|releases|new");
            return Some(self.acts(starts, Act::Publish));
        }
        if is("migrate", "migrating", "", &word) {
            self.at += 1;
            self.object("database|db|schema");
            return Some(self.acts(starts, Act::Migrate));
        }
        if is("install", "installing", "installs", &word) {
            self.at += 1;
            return self.packages(starts);
        }
        if is("add", "adding", "", &word)
            || form == Form::Noun && matches!(word.as_str(), "new" | "additional" | "extra")
        {
            self.at += usize::from(matches!(word.as_str(), "add" | "adding"));
            self.eat_all("any|a|new|further|more|other|extra|additional|third-party|npm|external");
            let are_packages = self.eat("dependencies|dependency|packages|package|deps|libraries|crates");
            return are_packages.then(|| self.acts(starts, Act::Install(Packages::New)));
        }
        if is("run", "running", "", &word) || is("execute", "executing", "", &word) || is("use", "using", "", &word) {
            self.at += 1;
            if self.is_code() {
                let act = act_of_command(self.raw()?)?;
                self.at += 1;
                return Some(self.acts(starts, act));
            }
            self.eat_all("any|the|database|db|new|pending|schema|those|these|more");
            return self.eat("migrations|migration").then(|| self.acts(starts, Act::Migrate));
        }
        let makes = ["open", "create", "make", "submit", "raise", "file"].into_iter().zip([
            "opening",
            "creating",
            "making",
            "submitting",
            "raising",
            "filing",
        ]);
        for (base, doing) in makes {
            if is(base, doing, "", &word) {
                self.at += 1;
                return self.made(starts);
            }
        }
        if form == Form::Noun
            && let Some(acts) = self.attempt(|reader| reader.made(starts))
        {
            return Some(acts);
        }
        if is("delete", "deleting", "", &word) || is("remove", "removing", "", &word) {
            self.at += 1;
            let files = self.files("any files|any file|files|anything")?;
            return Some(Acts::of(files.into_iter().map(Act::Delete)));
        }
        if is("touch", "touching", "", &word) {
            self.at += 1;
            let files = self.files("any files|any file|anything|any code|any of the files")?;
            return Some(Acts::of(files.into_iter().map(Act::Change)));
        }
        let changes = [
            ("edit", "editing"),
            ("change", "changing"),
            ("modify", "modifying"),
            ("alter", "altering"),
            ("overwrite", "overwriting"),
            ("update", "updating"),
            ("rewrite", "rewriting"),
            ("write", "writing"),
        ];
        for (base, doing) in changes {
            if is(base, doing, "", &word) {
                self.at += 1;
                if base == "write" && !self.eat("to|into") {
                    return None;
                }
                let files = self.files("any files|any file|files|anything|any code|any source files")?;
                return Some(Acts::of(files.into_iter().map(Act::Change)));
            }
        }
        None
    }

    /// What is opened, created or made: a pull request, commits, changes.
    fn made(&mut self, starts: usize) -> Option<Acts> {
        self.eat_all("any|a|an|new|the|further|more|other|draft|github|additional|file|code");
        if self.eat("pr|prs|pull request|pull requests|mr|mrs|merge request|merge requests|pull-request") {
            self.eat("for this|for it|for that|from this branch");
            return Some(self.acts(starts, Act::OpenRequest));
        }
        if self.eat("commits|commit") {
            let targets = self.targets()?;
            let is_bare = self.at - starts == 1;
            return Some(Acts { acts: targets.into_iter().map(Act::Commit).collect(), is_bare });
        }
        let says_files = self.has_said(starts, "file|code|make|making");
        if self.eat("changes|edits|modifications") {
            if self.eat("to|in|inside|under|within") {
                let files = self.files("any files|any file|files|the code|the files")?;
                return Some(Acts::of(files.into_iter().map(Act::Change)));
            }
            return says_files.then(|| Acts::bare(Act::Change(Files::All)));
        }
        None
    }

    /// Packages to install.
    fn packages(&mut self, starts: usize) -> Option<Acts> {
        if self.is_code() {
            let name = self.raw()?.to_owned();
            self.at += 1;
            self.eat("package");
            let is_name = !name.contains(char::is_whitespace);
            return is_name.then(|| Acts::bare(Act::Install(Packages::Named(name))));
        }
        let is_new = self.eat_all("any|a|new|further|more|additional|extra|other|npm|system|third-party|the") > 0
            && self.has_said(starts, "new|further|more|additional|extra");
        let is_named =
            self.eat("anything|packages|package|dependencies|dependency|deps|libraries|software|tools|anything new");
        let is_last = self.is_at_end() || self.sign().is_some() || self.eat_ahead();
        (is_named || is_last && !is_new)
            .then(|| self.acts(starts, Act::Install(if is_new { Packages::New } else { Packages::All })))
    }

    /// Whether a tail or another act follows.
    fn eat_ahead(&mut self) -> bool {
        let before = self.at;
        let is_next = self.eat(TAILS) || self.eat("or|and|nor");
        self.at = before;
        is_next
    }

    /// Files that are named; `all` are the words for all files.
    fn files(&mut self, all: &str) -> Option<Vec<Files>> {
        let before = self.at;
        if self.eat(all) && !self.eat("in|inside|under|within|below|of") {
            let is_limited = matches!(
                self.word(),
                "but"
                    | "except"
                    | "outside"
                    | "besides"
                    | "other"
                    | "beyond"
                    | "apart"
                    | "that"
                    | "which"
                    | "else"
                    | "not"
            );
            return (!is_limited).then(|| vec![Files::All]);
        }
        let mut named = vec![Files::Named(self.file()?)];
        while named.len() < ACTS {
            let next = self.attempt(|reader| {
                let joins = reader.eat_sign(&[',']) | reader.eat("or|and|nor");
                if joins { reader.file() } else { None }
            });
            match next {
                Some(file) => named.push(Files::Named(file)),
                None => break,
            }
        }
        if self.at == before { None } else { Some(named) }
    }

    /// The name of a file or a directory.
    fn file(&mut self) -> Option<String> {
        self.attempt(|reader| {
            reader.eat_all(BEFORE_FILE);
            let raw = reader.raw()?.to_owned();
            let is_code = reader.is_code();
            reader.at += 1;
            let is_directory = reader.eat("directory|folder|dir|directories");
            reader.eat("file|files|itself");
            let path = raw.strip_prefix("./").unwrap_or(&raw);
            let is_name = path.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
            let is_known = is_path(path) || is_directory && is_name && !path.is_empty() && !is_common(path);
            (is_known && (is_code || !path.ends_with(')'))).then(|| path.to_owned())
        })
    }

    fn acts(&self, starts: usize, act: Act) -> Acts {
        Acts { acts: vec![act], is_bare: self.at - starts == 1 }
    }

    /// The words after what is forbidden, up to the end of the clause; `false` if one of them may change its meaning.
    fn tail(&mut self) -> bool {
        for _ in 0..TAILS.len() {
            if self.is_at_end() || self.sign().is_some_and(|sign| sign != '\n' && sign != '"') {
                return true;
            }
            let before = self.at;
            self.eat_sign(&['\n']);
            if self.eat(TAILS) {
                continue;
            }
            if self.eat("until|till|unless|before|without|until after|until such time as") {
                if !self.eat(BY_PERSON) {
                    return false;
                }
                // The rest of the clause belongs to the condition.
                while !self.is_at_end() && !matches!(self.sign(), Some(';' | '—' | '\n')) && self.word() != "but" {
                    if matches!(self.word(), "if" | "unless") {
                        return false;
                    }
                    self.at += 1;
                }
                return true;
            }
            let ends =
                ["and", "but", "so", "then", "because", "since", "as", "i'll", "i", "we", "let", "or", "nor", "just"];
            self.at = before;
            return ends.contains(&self.word()) || self.sign() == Some('\n');
        }
        false
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Base,
    Doing,
    Noun,
    Either,
}

/// What one verb forbids.
struct Acts {
    acts: Vec<Act>,
    /// Whether the verb has no object.
    is_bare: bool,
}

impl Acts {
    fn bare(act: Act) -> Self {
        Self { acts: vec![act], is_bare: true }
    }

    fn of(acts: impl Iterator<Item = Act>) -> Self {
        Self { acts: acts.collect(), is_bare: false }
    }
}

/// Directories that a person names without meaning a path.
fn is_common(name: &str) -> bool {
    matches!(
        name,
        "this"
            | "that"
            | "same"
            | "current"
            | "working"
            | "whole"
            | "entire"
            | "root"
            | "project"
            | "other"
            | "home"
            | "new"
    )
}

/// Whether a word is a path, a file name or a pattern.
fn is_path(word: &str) -> bool {
    let is_unusual = |c: char| c.is_whitespace() || c.is_control() || "$`@<>|;&\"'()=?!,".contains(c);
    if word.len() > 200 || word.contains("://") || word.starts_with(['-', '~']) || word.chars().any(is_unusual) {
        return false;
    }
    if word.matches("**").count() > 2 || !word.chars().any(char::is_alphanumeric) && !word.contains('*') {
        return false;
    }
    let last = word.rsplit('/').next().unwrap_or(word);
    let has_extension = last.rsplit_once('.').is_some_and(|(_, extension)| {
        (1..=10).contains(&extension.len())
            && extension.starts_with(|c: char| c.is_ascii_alphabetic())
            && extension.chars().all(|c| c.is_ascii_alphanumeric() || c == '*')
    });
    let is_pair = matches!(
        word.to_lowercase().as_str(),
        "and/or" | "either/or" | "yes/no" | "read/write" | "client/server" | "n/a" | "ci/cd" | "w/o" | "input/output"
    );
    let is_file_name = lists(FILE_NAMES, word.to_lowercase().as_str());
    !is_pair
        && (word.contains('/') && word != "/" || has_extension || word.contains('*') && word.len() > 1 || is_file_name)
}

/// What a command in backticks means.
fn act_of_command(command: &str) -> Option<Act> {
    let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    let is_plain = |word: &String| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=@+".contains(c));
    if words.is_empty() || words.len() > 8 || !words.iter().all(is_plain) {
        return None;
    }
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    Some(match texts.as_slice() {
        ["git", "push"] => Act::Push(None),
        ["git", "push", "--force" | "-f" | "--force-with-lease"] => Act::ForcePush,
        ["git", "commit"] => Act::Commit(None),
        ["git", "commit", "--amend"] => Act::Amend,
        ["git", "rebase"] => Act::Rebase,
        ["gh", "pr", "create"] => Act::OpenRequest,
        _ => Act::Run(words),
    })
}

/// What a sentence forbids.
pub(super) fn prohibitions(sentence: &Sentence) -> Vec<Act> {
    let tokens = &sentence.tokens;
    let may_forbid = |token: &Token| matches!(token, Token::Word(word, _) if lists(MAY_FORBID, word));
    if sentence.is_question || !tokens.iter().any(may_forbid) {
        return Vec::new();
    }
    if is_read_only(tokens) {
        return vec![Act::Change(Files::All)];
    }
    let mut all: Vec<Act> = Vec::new();
    let mut at = 0;
    while at < tokens.len() && all.len() < ACTS {
        let begins = at == 0 || starts_clause(tokens, at);
        let mut reader = Reader { tokens, at };
        let found = if begins { reader.attempt(|reader| clause(reader, at)) } else { None };
        let found = found.or_else(|| without(&mut reader, at));
        match found {
            Some(acts) if !depends(tokens, at, reader.at) => {
                all.extend(acts);
                at = reader.at.max(at + 1);
            }
            // What the sentence says depends on something.
            Some(_) => return Vec::new(),
            None => at += 1,
        }
    }
    all.truncate(ACTS);
    all
}

/// Whether a clause may begin at a token.
fn starts_clause(tokens: &[Token], at: usize) -> bool {
    let follows_subject = || {
        let from = tokens[..at]
            .iter()
            .rposition(|token| matches!(token, Token::Sign(';' | '—' | '\n')))
            .map_or(0, |at| at + 1);
        let subjects = ["we", "they", "people", "users", "developers", "i", "he", "she", "it", "who", "that", "you"];
        matches!(tokens.get(from), Some(Token::Word(word, _)) if subjects.contains(&word.as_str()))
    };
    match &tokens[at - 1] {
        Token::Sign(sign) => matches!(sign, ',' | ';' | ':' | '—' | '–' | '(' | '\n'),
        Token::Word(word, _) => match word.as_str() {
            "but" | "so" => true,
            "and" | "then" | "also" | "plus" => !follows_subject(),
            _ => false,
        },
        Token::Code(_) => false,
    }
}

/// A clause that forbids something.
fn clause(reader: &mut Reader<'_>, at: usize) -> Option<Vec<Act>> {
    reader.fillers();
    if let Some(form) = reader.attempt(Reader::beginning) {
        let acts = list(reader, form)?;
        // git prints it about a new repository.
        let is_printed = form == Form::Noun && acts == [Act::Commit(None)] && reader.word() == "yet";
        return (!is_printed && reader.tail()).then_some(acts);
    }
    if let Some(acts) = reader.attempt(asks_first) {
        return Some(acts);
    }
    if let Some(acts) = reader.attempt(only_on_word) {
        return Some(acts);
    }
    if let Some(acts) = reader.attempt(leaves_alone) {
        return Some(acts);
    }
    // `make no changes`
    let makes_none = reader.eat("make no") && at <= reader.at;
    if makes_none {
        let starts = reader.at - 2;
        let acts = reader.made(starts)?;
        return reader.tail().then_some(acts.acts);
    }
    None
}

/// Several acts: `commit, push or merge`.
fn list(reader: &mut Reader<'_>, form: Form) -> Option<Vec<Act>> {
    let first = reader.act(form)?;
    let (after_first, first_is_bare) = (reader.at, first.is_bare);
    let mut all = first.acts.clone();
    let (mut joined_by_or, mut joined_by_and, mut others_bare) = (false, false, first_is_bare);
    while all.len() < ACTS {
        let mut ends_list = (false, false);
        let next = reader.attempt(|reader| {
            let has_comma = reader.eat_sign(&[',']);
            ends_list = (reader.eat("or|nor"), false);
            ends_list.1 = !ends_list.0 && reader.eat("and");
            if !(has_comma || ends_list.0 || ends_list.1) {
                return None;
            }
            // `no commits, no pushes` are two clauses.
            reader.act(form)
        });
        let Some(next) = next else { break };
        joined_by_or |= ends_list.0;
        joined_by_and |= ends_list.1;
        if ends_list.1 && !others_bare {
            joined_by_or = false;
            joined_by_and = false;
            break;
        }
        others_bare &= next.is_bare;
        all.extend(next.acts);
    }
    if joined_by_or || joined_by_and {
        Some(all)
    } else {
        // `don't commit, push` may be an instruction to push.
        reader.at = after_first;
        Some(first.acts)
    }
}

/// `ask me before you push`, `before pushing, ask me`.
fn asks_first(reader: &mut Reader<'_>) -> Option<Vec<Act>> {
    if reader.eat("before") {
        reader.eat("you|ever");
        let acts = list(reader, Form::Either)?;
        reader.eat_sign(&[',']);
        reader.eat_all("please|always|first");
        return (reader.eat(ASKS) && (reader.is_at_end() || reader.tail())).then_some(acts);
    }
    reader.eat_all("always|please|make sure to|make sure you|you must|you should|be sure to|first");
    if !reader.eat(ASKS) {
        return None;
    }
    reader.eat_sign(&[',']);
    reader.eat_all("first|always|again");
    if !reader.eat("before") {
        return None;
    }
    reader.eat("you|you ever|ever");
    let acts = list(reader, Form::Either)?;
    reader.tail().then_some(acts)
}

/// `only push after I say so`, `push only when I tell you`.
fn only_on_word(reader: &mut Reader<'_>) -> Option<Vec<Act>> {
    let is_first = reader.eat("only");
    let acts = reader.act(Form::Base)?;
    if !is_first && !reader.eat("only") {
        return None;
    }
    if !reader.eat("after|when|if|once|whenever") || !reader.eat("i|i've|told|asked|i'm") {
        return None;
    }
    while !reader.is_at_end() && !matches!(reader.sign(), Some(';' | '—')) {
        reader.at += 1;
    }
    Some(acts.acts)
}

/// `leave src/ alone`, `keep your hands off src/`.
fn leaves_alone(reader: &mut Reader<'_>) -> Option<Vec<Act>> {
    const HANDS_OFF: &str = "\
        keep your hands off|hands off|stay out of|stay away from|keep out of|keep your hands off of|hands off of";
    let files = if reader.eat(HANDS_OFF) {
        reader.files("")?
    } else if reader.eat("leave|keep") {
        let files = reader.files("")?;
        if !reader.eat("alone|untouched|as is|as it is|as-is|unchanged|as they are") {
            return None;
        }
        files
    } else {
        return None;
    };
    reader.tail().then(|| files.into_iter().map(Act::Change).collect())
}

/// `fix it without pushing`: an instruction, and what it forbids.
fn without(reader: &mut Reader<'_>, at: usize) -> Option<Vec<Act>> {
    reader.at = at;
    let tokens = reader.tokens;
    if reader.word() != "without" || at == 0 {
        return None;
    }
    let mut start = Reader { tokens, at: 0 };
    start.eat_all(FILLERS);
    let first = start.word();
    if !(lists(IMPERATIVES, first) || lists(CHANGES, first)) {
        return None;
    }
    reader.at += 1;
    reader.eat("ever|actually");
    let acts = list(reader, Form::Doing)?;
    reader.tail().then_some(acts)
}

/// `read-only: no changes`, `this is a read-only task`.
fn is_read_only(tokens: &[Token]) -> bool {
    let mut reader = Reader { tokens, at: 0 };
    reader.eat_all(FILLERS);
    reader.eat("this is|this is a|it's|stay|work|treat this as|treat this as a|keep this");
    if !(reader.eat("read-only|readonly|read only")) {
        return false;
    }
    reader.eat("task|session|mode|review|question|request|investigation|analysis|work");
    reader.eat_sign(&[':', ',', '—', ';']);
    reader.eat_all(
        "please|no changes|no edits|do not change anything|don't change anything|no file changes|for now|only",
    );
    reader.is_at_end()
}

/// Whether a sentence makes a clause, whose tokens are given, depend on something.
fn depends(tokens: &[Token], from: usize, to: usize) -> bool {
    // Before the clause, only what belongs to it.
    let is_end =
        |token: &Token| matches!(token, Token::Sign(';')) || matches!(token, Token::Word(word, _) if word == "but");
    let first = tokens[..from].iter().rposition(is_end).map_or(0, |at| at + 1);
    let before = tokens[first..from].iter().enumerate().any(|(at, token)| match token {
        Token::Word(word, _) => {
            let follows = |distance: usize| Reader { tokens, at: first + at + distance }.word().to_owned();
            let when_done = matches!(follows(1).as_str(), "you're" | "you")
                && (1..4).any(|distance| matches!(follows(distance).as_str(), "done" | "finished" | "ready"));
            let depends = lists(CONDITIONS, word) && !matches!(word.as_str(), "besides" | "apart");
            depends && !when_done
        }
        Token::Code(_) | Token::Sign(_) => false,
    });
    let after = tokens.get(to..).unwrap_or_default().iter();
    let after = after.into_iter().any(|token| matches!(token, Token::Word(word, _) if lists(CONDITIONS, word)));
    before || after
}

/// Whether a sentence limits what the sentence before it forbids: `Unless the tests pass.`
pub(super) fn limits_the_last(sentence: &Sentence) -> bool {
    let reader = Reader { tokens: &sentence.tokens, at: 0 };
    matches!(reader.word(), "unless" | "except" | "until" | "till" | "otherwise")
        && !Reader { tokens: &sentence.tokens, at: 1 }.eat(BY_PERSON)
}
