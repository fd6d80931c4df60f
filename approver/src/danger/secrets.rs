//! Secrets that leave the machine: one command reads a secret, and another sends its input.

use std::path::Path;

use super::DangerScan;
use crate::{
    names::{is_secret, is_secret_directory},
    shell::{PossibleCommand, PossibleRedirect},
};

/// Programs that send their arguments or input to another machine.
const SENDERS: &[&str] = &[
    "curl",
    "wget",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "scp",
    "rsync",
    "sftp",
    "ftp",
    "lftp",
    "tftp",
    "ssh",
    "telnet",
    "http",
    "https",
    "xh",
    "curlie",
    "aws",
    "gsutil",
    "gcloud",
    "az",
    "s3cmd",
    "rclone",
    "mail",
    "mailx",
    "sendmail",
    "mutt",
    "swaks",
    "ping",
    "ping6",
    "dig",
    "nslookup",
    "host",
    "drill",
    "openssl",
    "croc",
    "wormhole",
    "magic-wormhole",
    "gh",
    "glab",
    "websocat",
    "mosquitto_pub",
    "kcat",
    "finger",
    "whois",
    "logger",
];

/// Options whose value is a key or a file that is used and not sent.
const USED: &[&str] = &[
    "-i",
    "--key",
    "--cert",
    "-E",
    "--cacert",
    "--capath",
    "--netrc-file",
    "-o",
    "--output",
    "-O",
    "--output-document",
    "-D",
    "--dump-header",
    "-c",
    "--cookie-jar",
    "--private-key",
    "--ca-certificate",
    "--certificate",
    "-P",
    "--directory-prefix",
    "--identity-file",
    "--keyfile",
];

/// Maximum number of files through which a secret is followed in a line.
const MAX_STEPS: usize = 6;

impl DangerScan<'_> {
    pub(super) fn secrets_leave(&self, command: &PossibleCommand) -> bool {
        let name = command.name();
        let into_network = command
            .redirects
            .iter()
            .any(|redirect| matches!(redirect, PossibleRedirect::Write(file) if is_network(file.as_str())));
        if !into_network && !is_sender(&name, command) {
            return false;
        }
        let given = command.from.iter().chain(&command.within).any(|index| self.holds_secret(*index, 0));
        given || self.names_secret(&name, command) || self.reads_tainted(command)
    }

    /// Whether a sending program names a secret itself.
    fn names_secret(&self, name: &str, command: &PossibleCommand) -> bool {
        let reads = command
            .redirects
            .iter()
            .any(|redirect| matches!(redirect, PossibleRedirect::Read(file) if self.is_secret_file(file)));
        if reads {
            return true;
        }
        // The arguments of these programs are run on the other machine, or are names.
        if matches!(
            name,
            "ssh"
                | "telnet"
                | "ping"
                | "dig"
                | "nslookup"
                | "host"
                | "socat"
                | "nc"
                | "ncat"
                | "netcat"
                | "whois"
                | "openssl"
        ) {
            return false;
        }
        self.sent_files(command).iter().any(|file| self.is_secret_file(file))
    }

    /// The files that a program would send.
    fn sent_files(&self, command: &PossibleCommand) -> Vec<String> {
        let words = command.texts();
        let mut all = Vec::new();
        let mut rest = words.iter().skip(1);
        while let Some(word) = rest.next() {
            if USED.contains(word) {
                rest.next();
                continue;
            }
            if USED.iter().any(|option| option.starts_with("--") && word.starts_with(&format!("{option}="))) {
                continue;
            }
            let mut texts = vec![*word];
            // `-F f=@x;type=y`, `--post-file=x`, `-d@x`
            texts.extend(word.split(['=', ';', '@', '<']));
            texts.extend(["-d", "-F", "-T", "-K"].iter().filter_map(|option| word.strip_prefix(option)));
            all.extend(texts.into_iter().map(str::to_owned));
        }
        all
    }

    /// Whether the output of a command of the line contains a secret.
    fn holds_secret(&self, index: usize, depth: usize) -> bool {
        let Some(command) = self.line.all.get(index) else { return false };
        if depth > MAX_STEPS {
            return false;
        }
        // The output only shows the size or kind.
        if matches!(command.name().as_str(), "wc" | "ls" | "stat" | "du" | "test" | "[") {
            return false;
        }
        self.reads_secret(command)
            || self.reads_tainted(command)
            || command
                .from
                .iter()
                .chain(&command.within)
                .any(|from| *from != index && self.holds_secret(*from, depth + 1))
    }

    /// Whether a command reads a secret.
    pub(super) fn reads_secret(&self, command: &PossibleCommand) -> bool {
        let (name, words) = (command.name(), command.texts());
        let has = |options: &[&str]| words.iter().any(|word| options.iter().any(|option| word.starts_with(option)));
        match name.as_str() {
            "env" => !words.iter().skip(1).any(|word| !word.contains('=') && !word.starts_with('-')),
            "printenv" | "export" | "set" | "declare" | "typeset" if words.len() < 3 => true,
            "gpg" | "gpg2" => has(&["--export-secret"]),
            "security" => has(&["find-generic-password", "find-internet-password", "dump-keychain", "export"]),
            "pass" | "op" | "bw" | "secret-tool" | "vault" | "keyring" => words.len() > 1,
            "gh" | "gcloud" | "az" => has(&["token", "print-access-token", "get-access-token"]),
            "kubectl" => has(&["secret"]),
            "ps" => has(&["e", "-e"]) && words.iter().any(|word| word.contains("eww") || word.contains("auxe")),
            _ => {
                let files = command.redirects.iter().filter_map(|redirect| match redirect {
                    PossibleRedirect::Read(file) => Some(file.as_str()),
                    PossibleRedirect::Write(_) => None,
                });
                words.iter().skip(1).copied().chain(files).any(|word| self.is_secret_file(word))
            }
        }
    }

    /// Whether a command reads a file into which another command of the line wrote a secret.
    fn reads_tainted(&self, command: &PossibleCommand) -> bool {
        let read: Vec<String> = self
            .sent_files(command)
            .into_iter()
            .chain(command.redirects.iter().filter_map(|redirect| match redirect {
                PossibleRedirect::Read(file) => Some(file.clone()),
                PossibleRedirect::Write(_) => None,
            }))
            .filter(|file| !file.is_empty() && !file.starts_with('-'))
            .collect();
        self.line.all.iter().filter(|other| !std::ptr::eq(*other, command)).any(|other| {
            let given = self.reads_secret(other)
                || other.from.iter().any(|from| self.line.all.get(*from).is_some_and(|from| self.reads_secret(from)));
            given && self.written(other).iter().any(|file| read.contains(file))
        })
    }

    pub(super) fn is_secret_file(&self, written: &str) -> bool {
        if written.is_empty() || written.contains("://") || written.starts_with("$(") {
            return false;
        }
        let pattern = written.trim_end_matches('*').trim_end_matches('/');
        let system = |path: &Path| {
            let text = path.to_string_lossy();
            matches!(&*text, "/etc/shadow" | "/etc/gshadow" | "/etc/sudoers")
                || text.starts_with("/proc/") && text.ends_with("/environ")
        };
        self.resolved(pattern).iter().any(|path| {
            path.starts_with("/")
                && (is_secret(path) || is_secret_directory(path) || system(path) || self.facts.is_private(path))
        }) || is_secret(Path::new(pattern))
    }
}

fn is_sender(name: &str, command: &PossibleCommand) -> bool {
    let has = |words: &[&str]| command.texts().iter().any(|word| words.contains(word));
    match name {
        "gh" | "glab" => has(&["gist", "release", "api", "issue", "pr", "snippet"]),
        "aws" => has(&["s3", "s3api", "put-object", "sns", "sqs", "publish"]),
        "gcloud" => has(&["storage", "scp"]),
        "az" => has(&["storage"]),
        "openssl" => has(&["s_client"]),
        _ => SENDERS.contains(&name),
    }
}

pub(super) fn is_network(file: &str) -> bool {
    file.starts_with("/dev/tcp/") || file.starts_with("/dev/udp/")
}
