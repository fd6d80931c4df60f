//! The environment of commands: the variables programs need, without credentials.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
};

/// Variables that are passed on. Toolchains need them; none of them is meant to contain a secret.
const PASSED: [&str; 46] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "HOSTNAME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUSTFLAGS",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "GOFLAGS",
    "GOPROXY",
    "JAVA_HOME",
    "MAVEN_OPTS",
    "GRADLE_USER_HOME",
    "ANDROID_HOME",
    "NVM_DIR",
    "NODE_PATH",
    "VOLTA_HOME",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "RBENV_ROOT",
    "GEM_HOME",
    "PKG_CONFIG_PATH",
    "CC",
    "CXX",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
/// Variables that are always set: commands have no pager, no one to answer git's prompts, and no colour output.
const SET: [(&str, &str); 5] =
    [("TERM", "dumb"), ("NO_COLOR", "1"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];
/// Suffixes of names of secrets.
const SECRET: [&str; 8] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS", "CREDENTIAL", "AUTH"];

/// Suffixes of Java property names of secrets.
const SECRET_PROPERTY: [&str; 4] = ["password", "passwd", "token", "secret"];

/// The environment for commands, derived from that of this process. `more` are further names the user wants to pass;
/// names that look like secrets and this program's own variables are not passed even then. Passwords are removed from
/// variables not named in `more`.
pub(crate) fn for_commands(own: &[(OsString, OsString)], more: &[String]) -> Vec<(OsString, OsString)> {
    let wanted = |name: &OsStr| {
        name.to_str().is_some_and(|name| {
            let listed = PASSED.contains(&name) || name.starts_with("LC_") || more.iter().any(|one| one == name);
            listed && !is_secret(name) && !name.starts_with("CAPTURE_")
        })
    };
    let set = |name: &OsStr| SET.iter().any(|(own, _)| *own == name);
    let passed = own.iter().filter(|(name, _)| wanted(name) && !set(name)).filter_map(|(name, value)| {
        let is_named = more.iter().any(|one| name == one.as_str());
        let value = if is_named { Some(value.clone()) } else { without_passwords(value) };
        Some((name.clone(), value?))
    });
    let fixed = SET.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let mut all: Vec<(OsString, OsString)> = passed.chain(fixed).collect();
    all.sort();
    all
}

/// Variables set by shells, so that no command misses them.
const OF_SHELL: [&str; 14] = [
    "PWD", "OLDPWD", "SHLVL", "PPID", "UID", "EUID", "IFS", "OPTARG", "OPTIND", "LINENO", "RANDOM", "SECONDS",
    "COLUMNS", "LINES",
];

/// A variable of this process that commands do not get, and whether it can be passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Withheld {
    pub(crate) name: String,
    pub(crate) can_be_named: bool,
}

/// The names of variables that commands do not get, without this program's and the shell's own.
pub(crate) fn withheld(own: &[(OsString, OsString)], more: &[String]) -> Vec<Withheld> {
    let passed = for_commands(own, more);
    let of = |(name, value): &(OsString, OsString)| {
        let is_missing = !value.is_empty() && passed.iter().all(|(other, _)| other != name);
        let is_ours = |name: &str| name.starts_with("CAPTURE_") || name.starts_with("BASH") || OF_SHELL.contains(&name);
        let name = name.to_str().filter(|name| is_missing && is_name(name) && !is_ours(name))?;
        Some(Withheld { name: name.to_owned(), can_be_named: !is_secret(name) })
    };
    own.iter().filter_map(of).collect()
}

fn is_name(name: &str) -> bool {
    name.len() >= 3 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Messages of commands that miss a variable without naming it, and the variables.
const SYMPTOMS: [(&str, &[&str]); 4] = [
    ("(publickey", &["SSH_AUTH_SOCK"]),
    ("authentication agent", &["SSH_AUTH_SOCK"]),
    ("Could not resolve host", &["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY"]),
    ("docker.sock", &["DOCKER_HOST"]),
];

/// The text before and after the name of a variable reported as not set.
const REPORTS: [(&str, &str); 9] = [
    ("", ": unbound variable"),
    ("", ": parameter not set"),
    ("", ": parameter null or not set"),
    ("", " is not set"),
    ("", " is unset"),
    ("", " not found in the environment"),
    ("", " environment variable"),
    ("environment variable ", ""),
    ("KeyError: '", "'"),
];

/// The variables that a failed command may have missed: the command expands them, or its output names them. In the
/// output, a name of one word counts only if it is reported as not set, since it may be an ordinary word.
pub(crate) fn missed<'a>(withheld: &'a [Withheld], command: &str, printed: &str) -> Vec<&'a Withheld> {
    let is_expanded = |name: &str| {
        let expands = |before: &str| ["$", "${", "${#", "${!"].iter().any(|sign| before.ends_with(sign));
        places(command, name).any(|(before, _)| expands(before))
    };
    let is_printed = |name: &str| {
        let is_report = |before: &str, behind: &str| {
            REPORTS.iter().any(|(first, last)| before.ends_with(first) && behind.starts_with(last))
        };
        places(printed, name).any(|(before, behind)| name.contains('_') || is_report(before, behind))
    };
    let shows = |name: &str| SYMPTOMS.iter().any(|(text, names)| names.contains(&name) && printed.contains(text));
    let may_miss = |name: &str| is_expanded(name) || is_printed(name) || shows(name);
    withheld.iter().filter(|one| may_miss(&one.name)).collect()
}

/// The occurrences of a name as a whole word: the text before and the text after it.
fn places<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    let around = move |(at, _): (usize, &str)| (&text[..at], &text[at + name.len()..]);
    text.match_indices(name)
        .map(around)
        .filter(move |(before, behind)| !is_part(before.chars().next_back()) && !is_part(behind.chars().next()))
}

/// Programs whose exit code 1 is a result: no match, or a difference.
const ANSWERING: [&str; 14] =
    ["grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "pgrep", "diff", "cmp", "comm", "test", "[", "which"];

/// Whether exit code 1 of a command is a result and not a failure, according to the last program it runs.
pub(crate) fn answers_no(command: &str) -> bool {
    let last = command.trim_end().rsplit(['|', ';', '&', '\n']).next().unwrap_or_default();
    let mut words = last.split_whitespace().filter(|word| !word.contains('=') && *word != "!");
    let program = words.next().map(|word| word.rsplit('/').next().unwrap_or(word));
    match program {
        Some("git") => words.any(|word| matches!(word, "grep" | "diff")),
        Some(program) => ANSWERING.contains(&program),
        None => false,
    }
}

/// A value with users and passwords removed from the addresses in it; `None` if it contains a password that cannot be
/// removed. An address without its user still names the intended host: without the variable, Go would ask a public
/// proxy for private modules.
fn without_passwords(value: &OsStr) -> Option<OsString> {
    let bytes = value.as_bytes();
    let has_secret_property = bytes.split(u8::is_ascii_whitespace).any(|word| {
        let name = word.strip_prefix(b"-D").and_then(|property| property.split(|byte| *byte == b'=').next());
        name.is_some_and(|name| {
            let lower = name.to_ascii_lowercase();
            SECRET_PROPERTY.iter().any(|end| lower.ends_with(end.as_bytes()))
        })
    });
    if has_secret_property {
        return None;
    }
    let mut kept = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(3).position(|window| window == b"://") {
        let (before, after) = rest.split_at(at + 3);
        kept.extend_from_slice(before);
        let scheme = before[..at].rsplit(|byte| !byte.is_ascii_alphanumeric() && !b"+-.".contains(byte)).next();
        let length = scheme.map_or(0, <[u8]>::len);
        let is_address = length > 0 && !before[..at - length].ends_with(b"/");
        let end = after.iter().position(|byte| b"/?#,|\"' \t\n".contains(byte)).unwrap_or(after.len());
        let user = after[..end].iter().rposition(|byte| *byte == b'@').filter(|_| is_address);
        rest = &after[user.map_or(0, |at| at + 1)..];
    }
    kept.extend_from_slice(rest);
    Some(OsString::from_vec(kept))
}

/// Whether a name is that of a secret.
fn is_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    SECRET.iter().any(|word| upper == *word || upper.strip_suffix(word).is_some_and(|rest| rest.ends_with('_')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_variables_without_secrets_are_passed_to_commands() {
        let own: Vec<(OsString, OsString)> = [
            ("PATH", "/bin"),
            ("HOME", "/h"),
            ("LC_ALL", "C"),
            ("TERM", "xterm"),
            ("ANTHROPIC_API_KEY", "k"),
            ("GITHUB_TOKEN", "t"),
            ("CAPTURE_DATA", "d"),
            ("BASH_ENV", "/x"),
            ("LD_PRELOAD", "/x"),
            ("MY_VAR", "1"),
            ("MY_SECRET", "s"),
            ("SSH_AUTH_SOCK", "/s"),
            ("BASH_FUNC_ls%%", "() { :; }"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .into();
        let more = ["MY_VAR", "MY_SECRET", "CAPTURE_DATA", "GITHUB_TOKEN"].map(str::to_owned);
        let names: Vec<String> =
            for_commands(&own, &more).iter().map(|(name, _)| name.to_str().unwrap().to_owned()).collect();
        assert_eq!(
            names,
            ["GIT_PAGER", "GIT_TERMINAL_PROMPT", "HOME", "LC_ALL", "MY_VAR", "NO_COLOR", "PAGER", "PATH", "TERM"]
        );
        assert!(for_commands(&own, &[]).contains(&("TERM".into(), "dumb".into())));
        assert!(PASSED.iter().all(|name| !is_secret(name)));
    }

    #[test]
    fn withheld_variables_that_a_command_needs_are_detected() {
        let own: Vec<(OsString, OsString)> = [
            ("PATH", "/bin"),
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("DATABASE_URL", "postgres://me:hunter2@db/x"),
            ("GITHUB_TOKEN", "t"),
            ("HTTPS_PROXY", "http://p:3128"),
            ("CAPTURE_DATA_DIR", "/d"),
            ("EDITOR", "vi"),
            ("PWD", "/w"),
            ("OLDPWD", "/"),
            ("SHLVL", "1"),
            ("_", "/bin/capture"),
            ("EMPTY_ONE", ""),
            ("TERM", "xterm"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .into();
        let all = withheld(&own, &[]);
        let names = |command: &str, printed: &str| -> Vec<(String, bool)> {
            missed(&all, command, printed).into_iter().map(|one| (one.name.clone(), one.can_be_named)).collect()
        };
        let one = |name: &str, can_be_named| vec![(name.to_owned(), can_be_named)];
        assert_eq!(names("./migrate", "KeyError: 'DATABASE_URL'"), one("DATABASE_URL", true));
        assert_eq!(names("psql \"$DATABASE_URL\"", "connection refused"), one("DATABASE_URL", true));
        assert_eq!(names("gh pr list", "set the GITHUB_TOKEN environment variable"), one("GITHUB_TOKEN", false));
        assert_eq!(names("git push", "git@h: Permission denied (publickey)."), one("SSH_AUTH_SOCK", true));
        assert_eq!(names("curl x", "curl: (6) Could not resolve host: x"), one("HTTPS_PROXY", true));
        // A word is a variable only if it is reported as one.
        assert_eq!(names("make", "EDITOR support is off; the EDITOR of the paper"), []);
        assert_eq!(names("echo EDITOR > a; grep -rn DATABASE_URL src", ""), []);
        assert_eq!(names("cat $DATABASE_URLS ${DATABASE_URL2} {DATABASE_URL}", ""), []);
        for command in ["$EDITOR a", "\"${EDITOR}\" a", "${EDITOR:-vi} a", "a \"x$EDITOR\""] {
            assert_eq!(names(command, ""), one("EDITOR", true), "{command}");
        }
        for printed in [
            "sh: 1: EDITOR: parameter not set",
            "bash: EDITOR: unbound variable",
            "KeyError: 'EDITOR'",
            "error: EDITOR is not set",
            "set the EDITOR environment variable",
            "missing environment variable EDITOR",
        ] {
            assert_eq!(names("./run", printed), one("EDITOR", true), "{printed}");
        }
        assert_eq!(names("cd $OLDPWD && ls $PWD; echo $SHLVL", "PWD is not set"), []);
        assert_eq!(names("make", "MY_DATABASE_URL2 and DATABASE_URLS, PATH, CAPTURE_DATA_DIR, EMPTY_ONE, TERM"), []);
        // A variable that is passed is not missing.
        assert!(withheld(&own, &["DATABASE_URL".to_owned()]).iter().all(|one| one.name != "DATABASE_URL"));
    }

    #[test]
    fn commands_whose_exit_status_1_means_no_match_are_recognized() {
        for command in [
            "grep -rn X src",
            "cat a | /usr/bin/grep -c X",
            "cd x && diff a b",
            "LC_ALL=C grep X a",
            "git grep X",
            "git diff --exit-code",
            "[ -f a ]",
            "make; test -e out",
        ] {
            assert!(answers_no(command), "{command}");
        }
        for command in ["make", "grep X a | psql", "./grep-all", "git push", "diff a b; ./run", ""] {
            assert!(!answers_no(command), "{command}");
        }
    }

    #[test]
    fn passwords_in_urls_are_removed_from_passed_variables() {
        let passed = |name: &str, value: &[u8], more: &[String]| {
            let own = [(name.into(), OsStr::from_bytes(value).to_owned())];
            let found = for_commands(&own, more).into_iter().find(|(found, _)| found == name);
            found.map(|(_, value)| value.into_vec())
        };
        for (name, value, wanted) in [
            ("GOPROXY", "https://proxy.example,direct", Some("https://proxy.example,direct")),
            ("GOPROXY", "https://me:pass@proxy.example/x,direct", Some("https://proxy.example/x,direct")),
            ("GOPROXY", "https://a.example|http://token@b.example", Some("https://a.example|http://b.example")),
            // Go parses the user up to the last `@` before the path.
            ("GOPROXY", "https://me:p@ss@proxy.example/a@v1", Some("https://proxy.example/a@v1")),
            ("GOFLAGS", "-modcacherw", Some("-modcacherw")),
            ("MAVEN_OPTS", "-Xmx2g -Dhttp.proxyHost=p", Some("-Xmx2g -Dhttp.proxyHost=p")),
            ("MAVEN_OPTS", "-Xmx2g -Dhttp.proxyPassword=s", None),
            ("PATH", "/a://b@c:/bin", Some("/a://b@c:/bin")),
        ] {
            let found = passed(name, value.as_bytes(), &[]);
            assert_eq!(found.as_deref(), wanted.map(str::as_bytes), "{name}={value}");
        }
        let bytes = passed("GOPROXY", b"https://me:p\xff@proxy.example", &[]);
        assert_eq!(bytes.as_deref(), Some(&b"https://proxy.example"[..]));
        // A variable named by the user is passed unchanged.
        let named = passed("GOPROXY", b"https://me:pass@p.example", &["GOPROXY".to_owned()]);
        assert_eq!(named.as_deref(), Some(&b"https://me:pass@p.example"[..]));
    }
}
