//! The environment of commands: what programs need, and nothing that opens something.

use std::ffi::{OsStr, OsString};

/// Variables that are passed on. Toolchains are found by them; none of them holds a secret by its purpose.
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
/// What is set whatever the environment says: there is nobody to page, to answer git, or to see colours.
const SET: [(&str, &str); 5] =
    [("TERM", "dumb"), ("NO_COLOR", "1"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];
/// Ends of names that say that a value is a secret.
const SECRET: [&str; 8] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS", "CREDENTIAL", "AUTH"];

/// The environment for commands, from that of this process. `more` are further names that the user wants passed on;
/// what looks like a secret or is ours is not passed on even then.
pub(crate) fn for_commands(own: &[(OsString, OsString)], more: &[String]) -> Vec<(OsString, OsString)> {
    let wanted = |name: &OsStr| {
        name.to_str().is_some_and(|name| {
            let listed = PASSED.contains(&name) || name.starts_with("LC_") || more.iter().any(|one| one == name);
            listed && !is_secret(name) && !name.starts_with("CAPTURE_")
        })
    };
    let set = |name: &OsStr| SET.iter().any(|(own, _)| *own == name);
    let passed = own.iter().filter(|(name, _)| wanted(name) && !set(name)).cloned();
    let fixed = SET.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let mut all: Vec<(OsString, OsString)> = passed.chain(fixed).collect();
    all.sort();
    all
}

/// Whether a name says that the value is a secret.
fn is_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    SECRET.iter().any(|word| upper == *word || upper.strip_suffix(word).is_some_and(|rest| rest.ends_with('_')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_passed_on() {
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
}
