//! Names the reason why a command that still runs will not end by itself: it waits for a key, a password, a lock, or it
//! was never meant to end.
//!
//! The command line is parsed as for receipts ([`commands_of`]), never searched for substrings. A cause is named only if
//! the command can be the only reason: lines that run several long commands, run them in the background, limit their
//! time or feed their input have no cause, unless the end of the output shows a prompt. [`PROGRAMS`] describes the
//! command lines, and [`Sign`] the ends of outputs.

mod programs;
mod signs;
#[cfg(test)]
mod tests;

use projections::{
    receipt::{LineCommand, base, commands_of, subcommands, without_wrappers},
    shorten::one_line,
};

use programs::{PROGRAMS, Program, Trust, is_quick, passes_all};
use signs::Sign;

/// Longest command that is examined, bytes.
pub(crate) const COMMAND_BYTES: usize = 4 << 10;
/// Maximum number of joined letters (`-am`) of an option that must be present: longer words may be values or names.
const LETTERS: usize = 4;
/// Longest command in a suggestion, characters.
const SHOWN_CHARS: usize = 80;

/// The kinds of causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Watch,
    Pager,
    Editor,
    Password,
    HostKey,
    Question,
    Interactive,
    Server,
    Follow,
    Lock,
    Port,
    Network,
    RateLimit,
    WaitLoop,
    Debugger,
    Login,
}

impl Cause {
    /// Its short name.
    const fn name(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::Pager => "pager",
            Self::Editor => "editor",
            Self::Password => "password",
            Self::HostKey => "host_key",
            Self::Question => "question",
            Self::Interactive => "interactive",
            Self::Server => "server",
            Self::Follow => "follow",
            Self::Lock => "lock",
            Self::Port => "port",
            Self::Network => "network",
            Self::RateLimit => "rate_limit",
            Self::WaitLoop => "wait_loop",
            Self::Debugger => "debugger",
            Self::Login => "login",
        }
    }

    /// What a command waits for, as a clause after its name.
    const fn waits(self) -> &'static str {
        match self {
            Self::Watch => "waits for a key: it was started in watch mode",
            Self::Pager => "waits for a key: it shows its output in a pager",
            Self::Editor => "waits for an editor to be closed",
            Self::Password => "waits for a user name, password or passphrase",
            Self::HostKey => "waits for an answer: whether to trust the key of an SSH host",
            Self::Question => "waits for an answer to its question",
            Self::Interactive => "waits for input: it was started interactively",
            Self::Server => "does not end by itself: it is a server in the foreground",
            Self::Follow => "follows its source, and ends only if that ends",
            Self::Lock => "waits for a lock that another program holds",
            Self::Port => "waits because another program uses its port",
            Self::Network => "waits because the network fails, and retries",
            Self::RateLimit => "waits because a service limits its requests",
            Self::WaitLoop => "waits in a loop that has no limit",
            Self::Debugger => "waits at the prompt of a debugger",
            Self::Login => "waits for you to sign in with a browser",
        }
    }

    /// What unblocks a command for which the table has no line of its own.
    const fn advice(self) -> &'static str {
        match self {
            Self::Watch => "run it once, without watch mode",
            Self::Pager => "append `| cat`",
            Self::Editor => "pass the text as an option, or set `EDITOR=true`",
            Self::Password => "run it with `< /dev/null`, so that it fails instead of asking",
            Self::HostKey => "`ssh -o BatchMode=yes …`, after the key was added to `known_hosts`",
            Self::Question => "answer it with an option such as `--yes`",
            Self::Interactive => "pass a script or a command as an argument",
            Self::Server => "run it in the background",
            Self::Follow => "print the last lines without following",
            Self::Lock => "wait for the other program, or stop it",
            Self::Port => "stop the other program, or choose another port",
            Self::Network => "check the network, the proxy and DNS",
            Self::RateLimit => "wait, or send fewer requests",
            Self::WaitLoop => "limit it with `timeout 60 …`",
            Self::Debugger => "run it without the debugger",
            Self::Login => "sign in with a token",
        }
    }

    /// Environment variables with which a command does not wait for this reason.
    const fn prevented_by(self) -> &'static [&'static str] {
        match self {
            Self::Watch => &["CI"],
            Self::Pager => &[
                "PAGER",
                "GIT_PAGER",
                "MANPAGER",
                "LESS",
                "LESSOPEN",
                "GIT_EXTERNAL_DIFF",
                "SYSTEMD_PAGER",
                "AWS_PAGER",
                "GH_PAGER",
            ],
            Self::Editor => &["EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "KUBE_EDITOR"],
            Self::Question => &["CI", "DEBIAN_FRONTEND", "npm_config_yes", "NPM_CONFIG_YES"],
            Self::Password
            | Self::HostKey
            | Self::Interactive
            | Self::Server
            | Self::Follow
            | Self::Lock
            | Self::Port
            | Self::Network
            | Self::RateLimit
            | Self::WaitLoop
            | Self::Debugger
            | Self::Login => &[],
        }
    }

    /// Whether the program reads the answer from its input, so that it does not wait if the input is a pipe or a file.
    const fn reads_input(self) -> bool {
        matches!(self, Self::Question | Self::Interactive | Self::Debugger | Self::Watch)
    }
}

/// Why a command does not end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HangCause {
    pub(crate) cause: Cause,
    /// What the command waits for, as a clause after its name.
    pub waits: String,
    /// One line that would unblock it, without secrets.
    pub unblock: String,
    /// Whether the output shows it; otherwise the command line does.
    pub(crate) is_shown: bool,
    /// Whether the command may also be slow: nothing of its output is known.
    pub(crate) may_be_slow: bool,
}

impl HangCause {
    /// The short name of the cause: `watch`, `pager`, `host_key`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.cause.name()
    }

    /// What the command waits for, as a clause after its name: `probably waits for …` if it may also be slow.
    pub(crate) fn clause(&self) -> String {
        format!("{}{}", if self.may_be_slow { "probably " } else { "" }, self.waits)
    }
}

/// Why a command that has been running for a while does not end, if that is certain. `output` is the end of its output
/// so far, and `screen` the text of its terminal, if they are known.
#[must_use]
pub fn hang_cause(command: &str, output: Option<&str>, screen: Option<&str>) -> Option<HangCause> {
    if command.len() > COMMAND_BYTES {
        return None;
    }
    let commands = commands_of(command)?;
    let exports = commands.iter().filter(|command| command.words.first().is_some_and(|word| word == "export"));
    let exported: Vec<&str> = exports.flat_map(|command| &command.words).map(String::as_str).collect();
    let all = commands.iter().map(|of| Candidate::of(of, &exported));
    let slow: Vec<Candidate<'_>> = all.filter(Candidate::may_take_long).collect();
    // Substitutions may take long too. A loop that waits contains them as conditions.
    let substitutes = command.contains("$(") || command.contains('`');
    let named = by_words(&slow).filter(|(named, _)| named.cause == Cause::WaitLoop || !substitutes);
    let sign = output.and_then(signs::of_output).or_else(|| screen.and_then(signs::of_screen));
    // A command in the background may have written the text.
    let sign = sign.filter(|_| !commands.iter().any(|command| command.background));
    if let Some(shown) = sign.and_then(|sign| by_sign(sign, &slow, named.as_ref())) {
        return Some(shown);
    }
    let is_silent = [output, screen].into_iter().flatten().all(|text| text.trim().is_empty());
    named.filter(|(_, trust)| *trust == Trust::Always || is_silent).map(|(cause, _)| cause)
}

/// The cause that the words of a line name: it needs a single command that may take long, or a loop that waits.
fn by_words(slow: &[Candidate<'_>]) -> Option<(HangCause, Trust)> {
    let named = |cause: Cause, unblock, trust| HangCause {
        cause,
        waits: cause.waits().to_owned(),
        unblock,
        is_shown: false,
        may_be_slow: trust == Trust::Silent,
    };
    if slow.iter().any(|of| of.command.around.endless) {
        // Only the loop may take long, and no command in it may be the reason.
        let is_only = slow.iter().all(|of| of.command.around.endless && (of.is("sleep") || of.program().is_none()));
        let cause = Cause::WaitLoop;
        let waits = is_only && slow.iter().any(|of| of.is("sleep"));
        return waits.then(|| (named(cause, cause.advice().to_owned(), Trust::Always), Trust::Always));
    }
    let [only] = slow else { return None };
    let program = only.program().filter(|_| !only.command.around.fed)?;
    Some((named(program.cause, only.unblock(program), program.trust), program.trust))
}

/// The cause that the end of the output shows, unless the command contradicts it.
fn by_sign(sign: Sign, slow: &[Candidate<'_>], named: Option<&(HangCause, Trust)>) -> Option<HangCause> {
    let cause = sign.cause;
    let of_words = named.filter(|(_, trust)| *trust == Trust::Always).map(|(named, _)| named.cause);
    let is_log = matches!(cause, Cause::Server | Cause::Network | Cause::RateLimit | Cause::Port);
    match of_words {
        // Such a program prints texts of others, which may contain anything.
        Some(Cause::Follow) => return None,
        Some(Cause::Server | Cause::Watch | Cause::WaitLoop) if is_log => return None,
        Some(_) | None => {}
    }
    if cause.reads_input() && slow.iter().any(|of| of.command.around.fed) {
        return None;
    }
    let fits = |of: &&Candidate<'_>| {
        let is_prevented = cause == Cause::Pager && of.sets(cause.prevented_by());
        let is_known = sign.of.is_empty() || of.is_one_of(sign.of);
        !is_prevented && is_known && (!sign.is_weak || of.line_for(cause).is_some())
    };
    let of = slow.iter().find(fits)?;
    let unblock = of.line_for(cause).map_or_else(|| cause.advice().to_owned(), |program| of.unblock(program));
    let waits = match sign.holder {
        Some(pid) => format!("waits for a lock that process {pid} holds"),
        None => cause.waits().to_owned(),
    };
    Some(HangCause { cause, waits, unblock, is_shown: true, may_be_slow: false })
}

/// A command of a line, and the variables that the line sets for it.
struct Candidate<'a> {
    command: &'a LineCommand,
    /// The words of the program that it runs in the end, without wrappers.
    words: &'a [String],
    variables: Vec<&'a str>,
}

impl<'a> Candidate<'a> {
    fn of(command: &'a LineCommand, exported: &[&'a str]) -> Self {
        let words = without_wrappers(&command.words);
        let words = match words {
            // These also run the programs of packages.
            [runner, rest @ ..] if matches!(base(runner), "yarn" | "pnpm" | "bun") && is_known(rest) => rest,
            words => words,
        };
        let wrappers = command.words.len() - words.len();
        let assigned = command.assigned.iter().chain(command.words.iter().take(wrappers)).map(String::as_str);
        Self { command, words, variables: assigned.chain(exported.iter().copied()).collect() }
    }

    fn is(&self, name: &str) -> bool {
        self.words.first().is_some_and(|word| base(word) == name)
    }

    /// Whether the line waits for it, and it does not end soon.
    fn may_take_long(&self) -> bool {
        let LineCommand { background, is_filter, around, words, .. } = self.command;
        // The input of `xargs` is a list of arguments.
        let is_batch = words.first().is_some_and(|word| base(word) == "xargs");
        // `setsid -f`, `sudo -b` and `docker exec -d` do not wait for the command.
        let wrappers = words.iter().take(words.len() - self.words.len());
        let detaches = wrappers.filter(|word| has("-f --fork -b --background -d --detach", word)).count() > 0;
        let is_pass = *is_filter && passes_all(words);
        let is_pause = around.endless && self.is("sleep");
        let is_slow = is_pause || !is_quick(words) || self.program().is_some();
        is_slow && !background && !around.limited && !is_batch && !is_pass && !detaches
    }

    /// Whether the line sets one of these variables for it.
    fn sets(&self, names: &[&str]) -> bool {
        self.variables.iter().filter_map(|word| word.split_once('=')).any(|(name, _)| names.contains(&name))
    }

    /// Whether it runs one of these programs, directly or through a wrapper.
    fn is_one_of(&self, names: &str) -> bool {
        let is_one = |word: &String| names.split(' ').any(|name| name == plain_name(word));
        self.words.first().is_some_and(is_one) || self.command.words.first().is_some_and(is_one)
    }

    /// The line of the table that names its cause.
    fn program(&self) -> Option<&'static Program> {
        let around = self.command.around;
        // A filter that ends early also ends the program that writes to it.
        let is_cut = !self.command.piped_into.iter().all(|filter| passes_all(filter));
        self.lines().find(|program| {
            let cause = program.cause;
            let is_captured = cause == Cause::Pager && around.captured;
            let is_fed = cause.reads_input() && around.fed;
            let is_prevented = is_cut || is_captured || is_fed || self.sets(cause.prevented_by());
            program.trust != Trust::Shown && !is_prevented
        })
    }

    /// The line of the table with a suggestion for this cause.
    fn line_for(&self, cause: Cause) -> Option<&'static Program> {
        self.lines().find(|program| program.cause == cause)
    }

    fn lines(&self) -> impl Iterator<Item = &'static Program> {
        let (words, whole): (&[String], &[String]) = (self.words, &self.command.words);
        PROGRAMS.iter().filter(move |program| matches(program, words) || matches(program, whole))
    }

    fn unblock(&self, program: &Program) -> String {
        let words = &self.command.words;
        let joined = |words: Vec<String>| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let once = words.iter().filter_map(|word| without_option(program.needs, word));
        let line = program.unblock.replace("{once}", &joined(once.collect()));
        let line = line.replace("{verb}", subcommands(self.words)[0]).replace("{command}", &joined(words.clone()));
        // A command that does not fit is no suggestion.
        match one_line(&line, SHOWN_CHARS) {
            line if line.is_empty() || line.ends_with('…') && !program.unblock.ends_with('…') => {
                program.cause.advice().to_owned()
            }
            line => format!("`{line}`"),
        }
    }
}

/// A word as it is written in a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:@,%+=~^{}".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The name of a program without directory and version: `python` for `/usr/bin/python3.12`.
fn plain_name(word: &str) -> &str {
    base(word).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Whether the table has lines about the program of these words.
fn is_known(words: &[String]) -> bool {
    let name = words.first().map_or("", |word| plain_name(word));
    PROGRAMS.iter().any(|program| program.names.split(' ').any(|known| known == name))
}

/// Whether a line of the table describes these words.
fn matches(program: &Program, words: &[String]) -> bool {
    let Some((first, mut rest)) = words.split_first() else { return false };
    let name = plain_name(first);
    if !program.names.split(' ').any(|known| known == name) {
        return false;
    }
    if name == "git" && rest.first().is_some_and(|word| word == "-C") {
        rest = rest.get(2..).unwrap_or_default();
    }
    let mut verbs = subcommands(words);
    // The number of a port and an address are no subcommands.
    if verbs[0].starts_with(|c: char| c.is_ascii_digit()) || verbs[0] == "localhost" {
        verbs = [verbs[1], ""];
    }
    program.verbs.split('|').any(|form| describes(form, verbs, rest))
        && (program.needs.is_empty() || rest.iter().any(|word| has(program.needs, word)))
        && !rest.iter().any(|word| has_within(program.stops, word, usize::MAX))
}

/// Whether an alternative of the table describes the subcommands of these words.
fn describes(form: &str, verbs: [&str; 2], words: &[String]) -> bool {
    if form == "*" {
        return true;
    }
    let names: Vec<&str> = form.split(' ').filter(|name| *name != "-").collect();
    let last = names.last().and_then(|name| words.iter().position(|word| word == name));
    let is_bare = || words.iter().skip(last.map_or(0, |at| at + 1)).all(|word| word.starts_with('-'));
    let fits = names.iter().zip(verbs).all(|(name, verb)| is_verb(name, verb));
    fits && (!form.ends_with('-') || is_bare())
}

/// Whether a subcommand is the one that the table names: `_` stands for none, `*` for any.
fn is_verb(form: &str, verb: &str) -> bool {
    match form {
        "_" => verb.is_empty(),
        "*" => !verb.is_empty(),
        form => form == base(verb),
    }
}

/// Whether a word is one of `options`: equal, with a value after `=`, or among joined letters (`-am`). An option of the
/// table that ends with `*` stands for every word with the same beginning.
fn has(options: &str, word: &str) -> bool {
    has_within(options, word, LETTERS)
}

/// The same with at most this many joined letters.
fn has_within(options: &str, word: &str, letters: usize) -> bool {
    let names = options.split(' ').filter(|option| !option.is_empty());
    names.clone().any(|option| match option.strip_suffix('*') {
        Some(start) => word.starts_with(start),
        None => word.strip_prefix(option).is_some_and(|value| value.is_empty() || value.starts_with('=')),
    }) || joined_letter(options, word, letters).is_some()
}

/// The one-letter option of `options` among the joined letters of a word.
fn joined_letter(options: &str, word: &str, most: usize) -> Option<char> {
    let letters = word.strip_prefix('-').filter(|letters| letters.len() <= most)?;
    let is_letters = letters.bytes().all(|b| b.is_ascii_alphanumeric());
    let letter = |option: &str| {
        let mut letters = option.strip_prefix('-')?.chars();
        letters.next().filter(|_| letters.next().is_none())
    };
    options.split(' ').filter_map(letter).find(|letter| is_letters && letters.contains(*letter))
}

/// The word without these options; `None` if nothing is left.
fn without_option(options: &str, word: &str) -> Option<String> {
    match joined_letter(options, word, LETTERS).filter(|_| word.len() > 2) {
        Some(letter) => Some(word.replacen(letter, "", 1)),
        None => (!has(options, word)).then(|| word.to_owned()),
    }
}
