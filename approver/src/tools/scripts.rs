//! Judges option values and operands, and the small languages among them (sed, awk, jq, formats).

/// The syntax a value or an operand must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// Any text.
    Text,
    /// Letters, digits and `_ . , : + - / % @ =`.
    Word,
    /// Digits, optionally with a sign before and a unit after.
    Number,
    /// Digits; at most a million.
    Count,
    /// A delay of at most ten minutes.
    Seconds,
    /// A file that is read.
    Path,
    /// A revision or a path of git.
    Rev,
    /// One of these words.
    OneOf(Vec<String>),
    /// A script of sed that only prints or changes its input.
    Sed,
    /// A program of awk that only prints fields.
    Awk,
    /// A filter of jq that only selects.
    Jq,
    /// A format of date.
    Date,
    /// A format of `git log` that verifies no signature.
    Pretty,
    /// A format or a sorting of references that verifies no signature.
    Refs,
    /// Lines, optionally with their file: `-L` of git.
    Lines,
    /// A key of git's configuration whose value is not a secret.
    Key,
    /// A file or directory of the workspace that is read, not printed.
    Source,
    /// A file of the workspace that is changed or created.
    Edit,
    /// A directory that is created, or a file that is built.
    Made,
    /// A file, or a directory of build output, that is removed.
    Removed,
    /// The name of a script or target that consists only of usual words.
    Script,
    /// An argument passed on: nothing outside the workspace, and no secret.
    Argument,
    /// A branch, a tag or a commit.
    Branch,
    /// A branch, but not a path.
    BranchOnly,
    /// A name, for instance of a remote repository, but not an address or a path.
    Remote,
    /// Environments of a test runner, separated by commas, all of them usual.
    Environments,
}

/// The words that names of scripts and targets may consist of.
const SCRIPTS: &[&str] = &[
    "all",
    "api",
    "app",
    "assemble",
    "audit",
    "backend",
    "bench",
    "build",
    "bundle",
    "cache",
    "check",
    "checkstyle",
    "ci",
    "clean",
    "cli",
    "client",
    "clippy",
    "codegen",
    "compile",
    "core",
    "cov",
    "coverage",
    "css",
    "debug",
    "default",
    "dev",
    "doc",
    "docs",
    "e2e",
    "eslint",
    "fast",
    "fix",
    "fmt",
    "format",
    "frontend",
    "full",
    "generate",
    "help",
    "html",
    "int",
    "integration",
    "jar",
    "jest",
    "js",
    "jacoco",
    "lib",
    "lint",
    "linter",
    "local",
    "main",
    "mypy",
    "mvn",
    "no",
    "package",
    "prettier",
    "prod",
    "production",
    "pytest",
    "quick",
    "release-build",
    "report",
    "ruff",
    "rust",
    "server",
    "slow",
    "smoke",
    "snapshot",
    "spec",
    "spotless",
    "stylelint",
    "start",
    "static",
    "storybook",
    "style",
    "test",
    "tests",
    "testclasses",
    "tsc",
    "ts",
    "type",
    "typecheck",
    "types",
    "ui",
    "unit",
    "validate",
    "verify",
    "vet",
    "vite",
    "vitest",
    "watch",
    "web",
    "classes",
    "apply",
    "spotlessapply",
    "spotlesscheck",
    "dependencies",
    "tasks",
    "typescript",
    "python",
    "go",
    "headless",
    "nowatch",
    "once",
    "run",
];

fn is_script(name: &str) -> bool {
    let usual = |part: &str| {
        SCRIPTS.contains(&part) || part.len() < 3 && part.bytes().all(|b| b.is_ascii_digit()) && !part.is_empty()
    };
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix(':').unwrap_or(&name);
    // `testClasses` of Gradle is a single word in the list.
    !name.is_empty()
        && name.split([':', '-', '_', '.', '/']).all(usual)
        && name.split([':', '-', '_', '.', '/']).any(|part| {
            !matches!(part, "start" | "run" | "dev" | "server" | "prod" | "production" | "apply") || name == part
        })
}

/// Whether a name is a usual environment of a test runner: `py311`, `py312-django`, `lint`.
fn is_environment(name: &str) -> bool {
    let is_python = |part: &str| {
        let version = part.strip_prefix("pypy").or_else(|| part.strip_prefix("py"));
        version.is_some_and(|version| version.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
    };
    let (python, rest): (Vec<&str>, Vec<&str>) = name.split('-').partition(|part| is_python(part));
    is_script(&rest.join("-")) || rest.is_empty() && !python.is_empty()
}

/// Whether a value is an address, or a package that is fetched by its name.
fn is_address(value: &str) -> bool {
    const FETCHED: &[&str] = &["npm:", "jsr:", "git+", "git@", "github:", "gitlab:", "file:", "http:", "https:"];
    let lower = value.to_ascii_lowercase();
    // `MODULE@VERSION` of Go.
    let is_module = lower.split_once('@').is_some_and(|(name, _)| name.contains('/') && name.contains('.'));
    is_module || lower.contains("://") || FETCHED.iter().any(|prefix| lower.starts_with(prefix))
}

/// Whether an argument passed to a program names nothing outside the workspace and no secret.
fn is_argument(value: &str) -> bool {
    let parts = value.split(['=', ',', ':']).filter(|part| !part.is_empty());
    let outside = |part: &str| {
        let bare = part.trim_start_matches('-');
        bare.starts_with(['/', '~']) || bare.split('/').any(|step| step == "..") || part.starts_with('@')
    };
    let secret = |part: &str| {
        crate::names::is_secret(std::path::Path::new(part))
            || crate::names::is_secret_directory(std::path::Path::new(part))
    };
    parts.clone().all(|part| !outside(part) && !secret(part)) && !secret(value) && !is_address(value)
}

pub(super) fn is_branch(value: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./~^@{}#".contains(c);
    !value.is_empty() && !value.starts_with(['-', '+', '/', '.']) && value.chars().all(plain) && !value.contains("..")
}

impl ValueKind {
    /// Parses the name used in the tables.
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "text" => Self::Text,
            "word" => Self::Word,
            "number" => Self::Number,
            "count" => Self::Count,
            "seconds" => Self::Seconds,
            "path" => Self::Path,
            "lines" => Self::Lines,
            "rev" => Self::Rev,
            "sed" => Self::Sed,
            "awk" => Self::Awk,
            "jq" => Self::Jq,
            "date" => Self::Date,
            "pretty" => Self::Pretty,
            "refs" => Self::Refs,
            "key" => Self::Key,
            "source" => Self::Source,
            "edit" => Self::Edit,
            "made" | "built" => Self::Made,
            "removed" => Self::Removed,
            "script" => Self::Script,
            "argument" => Self::Argument,
            "branch" => Self::Branch,
            "branch only" => Self::BranchOnly,
            "remote" | "name" => Self::Remote,
            "environments" => Self::Environments,
            words => Self::OneOf(words.strip_prefix("one of ")?.split(' ').map(str::to_owned).collect()),
        })
    }

    pub(super) const fn is_path(&self) -> bool {
        matches!(self, Self::Path)
    }

    /// Whether a value that is not a path is of this kind.
    pub(super) fn accepts(&self, value: &str) -> bool {
        match self {
            Self::Text => true,
            Self::Word => !value.is_empty() && value.chars().all(is_word) && !is_address(value),
            Self::Number => is_number(value),
            Self::Count => value.len() < 8 && value.parse::<u32>().is_ok_and(|count| count <= 1_000_000),
            Self::Seconds => {
                let value = value.strip_suffix('s').unwrap_or(value);
                let plain = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit() || b == b'.');
                plain && value.parse::<f64>().is_ok_and(|seconds| seconds <= 600.0)
            }
            Self::Path | Self::Rev | Self::Lines => false,
            Self::Source | Self::Edit | Self::Made | Self::Removed | Self::BranchOnly => false,
            Self::Script => is_script(value),
            Self::Environments => value.split(',').all(is_environment),
            Self::Argument => is_argument(value),
            Self::Branch => is_branch(value),
            Self::Remote => {
                let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
                !value.is_empty() && !value.starts_with('-') && value.chars().all(plain)
            }
            Self::OneOf(words) => words.iter().any(|word| word == value),
            Self::Sed => {
                let flat = without_braces(value);
                flat.split(';').all(is_sed) && flat.matches(';').count() < 10
            }
            Self::Awk => is_awk(value),
            Self::Jq => is_jq(value),
            Self::Date => value.starts_with('+'),
            Self::Pretty => is_pretty(value),
            Self::Refs => !value.contains("signature") && !value.contains("contents") && !value.contains("raw"),
            Self::Key => {
                let key = value.to_ascii_lowercase();
                let plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
                let named = |section: &str, keys: &[&str]| {
                    let rest = key.strip_prefix(section).and_then(|rest| rest.rsplit_once('.'));
                    rest.is_some_and(|(name, key)| plain(name) && keys.contains(&key))
                };
                let known = [
                    "user.name",
                    "user.email",
                    "init.defaultbranch",
                    "core.autocrlf",
                    "core.filemode",
                    "core.ignorecase",
                    "core.eol",
                    "core.hookspath",
                    "pull.rebase",
                    "push.default",
                ];
                known.contains(&key.as_str())
                    || named("remote.", &["url", "fetch"])
                    || named("branch.", &["remote", "merge"])
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ',' | ':' | '+' | '-' | '/' | '%' | '@' | '=')
}

fn is_number(value: &str) -> bool {
    let digits = value.strip_prefix(['+', '-']).unwrap_or(value);
    let unit = digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    digits.starts_with(|c: char| c.is_ascii_digit()) && unit.len() < 3 && unit.chars().all(|c| c.is_ascii_alphabetic())
}

/// A cursor over a script.
struct ScriptCursor<'a>(&'a str);

impl ScriptCursor<'_> {
    fn eat(&mut self, text: &str) -> bool {
        match self.0.strip_prefix(text) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn blanks(&mut self) {
        self.0 = self.0.trim_start_matches(' ');
    }

    /// Skips characters of this kind; returns whether there were any.
    fn run(&mut self, of: impl Fn(char) -> bool) -> bool {
        let rest = self.0.trim_start_matches(of);
        let some = rest.len() < self.0.len();
        self.0 = rest;
        some
    }

    /// Skips text up to a delimiter without a backslash before it.
    fn until(&mut self, delimiter: char) -> bool {
        let mut escaped = false;
        for (at, c) in self.0.char_indices() {
            if !escaped && c == delimiter {
                self.0 = &self.0[at + 1..];
                return true;
            }
            escaped = !escaped && c == '\\';
        }
        false
    }

    /// Skips `/regex/`. sed would not end it at a delimiter in brackets, so such delimiters are refused.
    fn regex(&mut self) -> bool {
        let before = self.0;
        if !self.eat("/") || !self.until('/') {
            return false;
        }
        let body = &before[1..before.len() - self.0.len() - 1];
        !body.is_empty() && is_closed(body)
    }
}

/// Whether the brackets in a regular expression are closed, so that it ends where it seems to.
fn is_closed(body: &str) -> bool {
    let body = body.replace("\\\\", "").replace("\\[", "").replace("\\]", "");
    let (mut open, mut since) = (false, 0);
    for c in body.chars() {
        match (open, c) {
            (false, '[') => (open, since) = (true, 0),
            // `[]` and `[^]` do not close.
            (true, ']') if since > 0 => open = false,
            (true, '^') if since == 0 => {}
            (true, '[') => return false,
            _ => since += 1,
        }
    }
    !open
}

/// `5{p;q}` as `5p`: commands in braces that only print, skip or quit.
fn without_braces(script: &str) -> String {
    let flat = || {
        let (before, rest) = script.split_once('{')?;
        let (body, tail) = rest.split_once('}')?;
        let plain = body.split(';').all(|command| matches!(command.trim(), "p" | "d" | "q" | "=" | ""));
        (plain && !body.trim().is_empty()).then(|| format!("{before}p{tail}"))
    };
    flat().unwrap_or_else(|| script.to_owned())
}

/// `10,40p`, `$=`, `/x/,/y/d`, `5q`, `s/a/b/g`.
fn is_sed(command: &str) -> bool {
    let mut script = ScriptCursor(command);
    script.blanks();
    if address(&mut script) && script.eat(",") && !address(&mut script) {
        // `2,+3p`, `2,~4p`
        let relative = script.eat("+") || script.eat("~");
        if !relative || !script.run(|c| c.is_ascii_digit()) {
            return false;
        }
    }
    script.blanks();
    script.eat("!");
    script.blanks();
    let known = if script.eat("s") {
        let before = script.0;
        script.eat("/") && script.until('/') && {
            let body = &before[1..before.len() - script.0.len() - 1];
            let closed = !body.is_empty() && is_closed(body);
            closed && script.until('/') && {
                script.run(|c| matches!(c, 'g' | 'p' | 'i' | 'I') || c.is_ascii_digit());
                true
            }
        }
    } else {
        script.run_one(&['p', 'd', 'q', '='])
    };
    script.blanks();
    known && script.0.is_empty()
}

impl ScriptCursor<'_> {
    fn run_one(&mut self, of: &[char]) -> bool {
        match self.0.strip_prefix(of) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }
}

fn address(script: &mut ScriptCursor<'_>) -> bool {
    if script.eat("$") {
        return true;
    }
    if script.0.starts_with('/') {
        return script.regex() && {
            script.eat("I");
            true
        };
    }
    script.run(|c| c.is_ascii_digit())
}

/// `{print $1, $NF}`, with `/regex/` or `NR==5` before it.
fn is_awk(program: &str) -> bool {
    let mut script = ScriptCursor(program);
    script.blanks();
    if script.0.starts_with('/') {
        if !script.regex() {
            return false;
        }
    } else if script.0.starts_with("NR") || script.0.starts_with("NF") || script.0.starts_with('$') {
        if !condition(&mut script) {
            return false;
        }
        script.blanks();
        while script.eat("&&") || script.eat("||") {
            script.blanks();
            if !condition(&mut script) {
                return false;
            }
            script.blanks();
        }
    }
    script.blanks();
    if script.0.is_empty() {
        return !program.trim().is_empty();
    }
    if !script.eat("{") {
        return false;
    }
    script.blanks();
    if !script.eat("print") {
        return false;
    }
    loop {
        script.blanks();
        if script.eat("}") {
            break;
        }
        script.eat(",");
        script.blanks();
        if !field(&mut script) && !string(&mut script) {
            return false;
        }
    }
    script.blanks();
    script.0.is_empty()
}

fn condition(script: &mut ScriptCursor<'_>) -> bool {
    if !field(script) {
        return false;
    }
    script.blanks();
    let compared = ["==", "!=", ">=", "<=", ">", "<", "%"].iter().any(|op| script.eat(op));
    script.blanks();
    !compared || script.run(|c| c.is_ascii_digit()) || string(script)
}

fn field(script: &mut ScriptCursor<'_>) -> bool {
    if script.eat("$") {
        return script.eat("NF") || script.run(|c| c.is_ascii_digit());
    }
    ["NR", "NF", "FNR"].iter().any(|name| script.eat(name))
}

fn string(script: &mut ScriptCursor<'_>) -> bool {
    script.eat("\"") && {
        script.run(|c| c != '"' && c != '\\');
        while script.eat("\\") {
            if !(script.eat("t") || script.eat("n")) {
                return false;
            }
            script.run(|c| c != '"' && c != '\\');
        }
        script.eat("\"")
    }
}

/// Functions of jq that use only their input.
const JQ: &[&str] = &[
    "keys",
    "length",
    "type",
    "not",
    "first",
    "last",
    "add",
    "sort",
    "unique",
    "reverse",
    "flatten",
    "tostring",
    "tonumber",
    "values",
    "to_entries",
    "from_entries",
    "map",
    "select",
    "has",
    "test",
    "startswith",
    "endswith",
    "contains",
    "join",
    "split",
    "sort_by",
    "group_by",
    "unique_by",
    "min",
    "max",
    "any",
    "all",
    "and",
    "or",
    "true",
    "false",
    "null",
    "empty",
    "ascii_downcase",
    "ascii_upcase",
    "keys_unsorted",
    "index",
    "if",
    "then",
    "else",
    "end",
];

/// Maximum number of steps that may each enlarge their input: `+`, `,`, `..`.
const JQ_STEPS: usize = 10;

fn is_jq(filter: &str) -> bool {
    // Twenty doublings fill a disk.
    let steps = filter.matches(['+', ',']).count() + 4 * filter.matches("..").count();
    if steps > JQ_STEPS {
        return false;
    }
    let mut script = ScriptCursor(filter);
    while let Some(c) = script.0.chars().next() {
        if c == '"' {
            // An interpolation contains a filter again.
            script.eat("\"");
            script.run(|c| c != '"' && c != '\\');
            if !script.eat("\"") {
                return false;
            }
        } else if c == '.' {
            script.run(|c| c == '.' || c.is_ascii_alphanumeric() || c == '_');
        } else if c.is_ascii_alphabetic() || c == '_' {
            let (before, passed) = (script.0, filter[..filter.len() - script.0.len()].trim_end());
            script.run(|c| c.is_ascii_alphanumeric() || c == '_');
            let word = &before[..before.len() - script.0.len()];
            // A key of an object under construction; in brackets it would be the start of a slice.
            let key = passed.ends_with('{') && script.0.trim_start().starts_with(':');
            if !JQ.contains(&word) && !key {
                return false;
            }
        } else if !script.run(|c| c.is_ascii_digit() || " []{}()|,:?=!<>+-/%".contains(c)) {
            return false;
        }
    }
    !filter.is_empty()
}

fn is_pretty(format: &str) -> bool {
    let named = ["oneline", "short", "medium", "full", "fuller", "reference", "raw", "email"].contains(&format);
    if named {
        return true;
    }
    let mut rest = format;
    if !format.is_empty() && !format.starts_with("format:") && !format.starts_with("tformat:") && !format.contains('%')
    {
        return false;
    }
    while let Some(at) = rest.find('%') {
        let placeholder = rest[at + 1..].trim_start_matches(['+', '-', ' ']);
        let magic = placeholder.len() < rest.len() - at - 1;
        // `%G?` runs the program that verifies signatures. After a magic sign, git treats the next `%` as the start of
        // a placeholder.
        if placeholder.starts_with('G') || magic && placeholder.starts_with('%') {
            return false;
        }
        rest = placeholder.strip_prefix('%').unwrap_or(placeholder);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sort: &ValueKind, good: &[&str], bad: &[&str]) {
        for script in good {
            assert!(sort.accepts(script), "{script:?} is a {sort:?}");
        }
        for script in bad {
            assert!(!sort.accepts(script), "{script:?} was accepted as {sort:?}");
        }
    }

    #[test]
    fn only_sed_scripts_that_print_delete_or_substitute_are_accepted() {
        check(
            &ValueKind::Sed,
            &[
                "10,40p",
                "1,5p",
                "$p",
                "5q",
                "/x/p",
                "/a/,/b/d",
                "$=",
                "s/a/b/",
                "s/a/b/g",
                "s/[0-9]*//gp",
                "1d;$d",
                "2,+3p",
                "s/\\/x/y/",
                "/a\\/b/p",
                "1!d",
            ],
            &[
                "",
                "1e touch pwned",
                "e",
                "s/.*/touch pwned/e",
                "s/a/b/w pwned",
                "w pwned",
                "1w pwned",
                "r /etc/passwd",
                "s/a/b/ge",
                "s/[/]/;e;/",
                "s/[]/]/e/",
                "s|a|b|e",
                "a\\",
                "1,5!{e}",
                "{w x}",
                "{p",
                "1{p}e",
                "1{p}w x",
                "p;e",
                "s/a/b/m",
                "y/a/b/",
                "W x",
                "Q;e id",
                "s/x/y/;w f",
                "s/[[:x/]e/p",
            ],
        );
    }

    #[test]
    fn only_awk_scripts_that_filter_and_print_are_accepted() {
        check(
            &ValueKind::Awk,
            &[
                "{print $1}",
                "{print $1, $NF}",
                "{ print NR \": \" $0 }",
                "NR==5",
                "NR>3 {print $2}",
                "/x/ {print}",
                "$1 == \"a\" {print $2}",
                "/x/",
            ],
            &[
                "",
                "BEGIN{system(\"x\")}",
                "{print > \"x\"}",
                "{print $1 > \"x\"}",
                "{print $1 | \"sh\"}",
                "BEGIN{\"x\"|getline}",
                "{print $1}; {x}",
                "{print system(\"x\")}",
                "{print $(system(\"x\"))}",
                "@load \"x\"",
                "{print \"a\\\"; system(1)\"}",
                "NR==1{system(\"x\")}",
            ],
        );
    }

    #[test]
    fn only_jq_filters_that_select_data_are_accepted() {
        check(
            &ValueKind::Jq,
            &[
                ".",
                ".a.b[0]",
                ".[] | .name",
                "keys",
                ".scripts | keys",
                ".[\"a b\"]",
                "map(.x) | length",
                "{a: .b}",
                ".a // \"x\"",
            ],
            &[
                "",
                "env",
                "$ENV",
                "env.HOME",
                "input",
                "include \"x\"; .",
                "import \"x\" as y; .",
                "\"\\(env)\"",
                "$__loc__",
                "debug",
                "getpath",
                "@sh",
                "\"x\" * 1000000000",
                "range(1e9)",
                ".+.|.+.|.+.|.+.|.+.|.+.|.+.|.+.|.+.|.+.|.+.",
                "[..]|[..]|[..]",
            ],
        );
    }

    #[test]
    fn seconds_and_counts_are_bounded() {
        check(&ValueKind::Seconds, &["5", "0.5", "600", "30s"], &["601", "1h", "10m", "inf", "-1", "", "1e9", "nan"]);
        check(&ValueKind::Count, &["1", "1000000"], &["1000001", "0.000001", "1e9", "-1", "", "99999999999999"]);
    }

    #[test]
    fn git_log_formats_that_verify_signatures_are_refused() {
        check(
            &ValueKind::Pretty,
            &["oneline", "%h %s", "format:%H%n%an", "%C(red)%h%C(reset) 100%%G", "%h%x09%ad"],
            &["%G?", "format:%h %G?", "%-G?", "%+GS", "mine", "% GK"],
        );
    }
}
