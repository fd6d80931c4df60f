//! Commands that wipe data, run downloaded code, overwrite branches or erase traces.

use std::path::{Path, PathBuf};

use super::{DangerScan, secrets::is_network};
use crate::{
    facts::FileContent,
    programs::Invocation,
    shell::{PossibleCommand, PossibleRedirect},
};

/// Directories of the system.
const SYSTEM: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/usr",
    "/var",
    "/Applications",
    "/Library",
    "/System",
    "/Users",
    "/private",
    "/usr/bin",
    "/usr/lib",
    "/usr/local",
    "/usr/share",
    "/var/lib",
];

/// Directories in a home that contain the user's own files.
const OWN: &[&str] = &[
    "Desktop",
    "Documents",
    "Downloads",
    "Library",
    "Movies",
    "Music",
    "Pictures",
    "Videos",
    ".config",
    ".gnupg",
    ".local",
    ".ssh",
    ".aws",
    ".kube",
    ".password-store",
    ".mozilla",
    ".thunderbird",
];

/// Files in a home that shells, sessions and programs run without being asked.
const AT_LOGIN: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".inputrc",
    ".pam_environment",
    ".gitconfig",
    ".config/git",
    ".config/fish",
    ".config/autostart",
    ".config/systemd",
    ".config/environment.d",
    ".local/share/systemd",
    "Library/LaunchAgents",
    "Library/LaunchDaemons",
    ".ssh/authorized_keys",
    ".ssh/authorized_keys2",
    ".ssh/config",
    ".ssh/rc",
    ".ssh/environment",
    ".vimrc",
    ".tmux.conf",
];

const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash"];
const INTERPRETERS: &[&str] = &[
    "python",
    "python2",
    "python3",
    "node",
    "nodejs",
    "perl",
    "ruby",
    "php",
    "lua",
    "deno",
    "bun",
    "osascript",
    "pwsh",
    "powershell",
    "tclsh",
    "Rscript",
];
const FETCHERS: &[&str] = &[
    "curl", "wget", "fetch", "http", "https", "xh", "aria2c", "nc", "ncat", "netcat", "telnet", "ftp", "lftp", "curlie",
];
const CONNECTORS: &[&str] = &["nc", "ncat", "netcat", "telnet", "socat"];

impl DangerScan<'_> {
    /// The files that a command writes or removes, as written.
    pub(super) fn written(&self, command: &PossibleCommand) -> Vec<String> {
        let (name, words) = (command.name(), command.texts());
        let mut all: Vec<String> = command
            .redirects
            .iter()
            .filter_map(|redirect| match redirect {
                PossibleRedirect::Write(file) => Some(file.clone()),
                PossibleRedirect::Read(_) => None,
            })
            .collect();
        let operands = || {
            words
                .get(1..)
                .unwrap_or_default()
                .iter()
                .filter(|word| !word.starts_with('-'))
                .map(|word| (*word).to_owned())
        };
        let behind = |options: &[&str]| {
            let pairs = words.windows(2).filter(|pair| options.contains(&pair[0])).map(|pair| pair[1].to_owned());
            let joined =
                words.iter().filter_map(|word| word.split_once('=')).filter(|(option, _)| options.contains(option));
            pairs.chain(joined.map(|(_, value)| value.to_owned())).collect::<Vec<_>>()
        };
        match name.as_str() {
            "tee" | "touch" | "truncate" | "rm" | "unlink" | "shred" | "mkdir" | "rmdir" | "chmod" | "chown"
            | "chattr" => all.extend(operands()),
            "cp" | "mv" | "ln" | "install" | "rsync" | "scp" | "link" => {
                all.extend(operands().next_back());
                all.extend(behind(&["-t", "--target-directory"]));
                if name == "mv" {
                    all.extend(operands());
                }
                // `cp x.service DIR`
                let dirs = all.clone();
                for dir in dirs {
                    all.extend(operands().filter_map(|file| {
                        Some(format!("{}/{}", dir.trim_end_matches('/'), Path::new(&file).file_name()?.to_str()?))
                    }));
                }
            }
            "sed" | "gsed" | "perl"
                if words.iter().any(|word| {
                    word.starts_with("-i") || *word == "--in-place" || word.starts_with("-pi") || *word == "-ni"
                }) =>
            {
                all.extend(operands());
            }
            "dd" => all.extend(words.iter().filter_map(|word| word.strip_prefix("of=")).map(str::to_owned)),
            "curl" => all.extend(behind(&["-o", "--output"])),
            "wget" => all.extend(behind(&["-O", "--output-document"])),
            _ => {}
        }
        all
    }

    /// The targets that a command would erase: its operands, and names that it gets from other commands.
    fn targets(&self, command: &PossibleCommand) -> Vec<String> {
        let mut all: Vec<String> =
            command.texts().into_iter().skip(1).filter(|word| !word.starts_with('-')).map(str::to_owned).collect();
        all.extend(command.input.iter().flat_map(|text| text.split_whitespace()).map(str::to_owned));
        for from in command.from.iter().filter_map(|index| self.line.all.get(*index)) {
            if matches!(from.name().as_str(), "echo" | "printf" | "find" | "ls") {
                all.extend(from.texts().into_iter().skip(1).filter(|word| !word.starts_with('-')).map(str::to_owned));
            }
        }
        all
    }

    /// Whether erasing this would erase a home, the system, or the whole workspace.
    fn is_vital(&self, written: &str) -> bool {
        if written.is_empty() || written.starts_with('$') {
            return false;
        }
        self.resolved(written).iter().any(|path| {
            let own = path.strip_prefix(&self.home).is_ok_and(|inside| OWN.iter().any(|own| inside == Path::new(own)));
            let git = path.file_name().is_some_and(|name| name == ".git");
            SYSTEM.iter().any(|dir| path == Path::new(dir))
                || self.home.starts_with(path)
                || path != &self.workspace && self.workspace.starts_with(path)
                || path.parent() == Some(Path::new("/home"))
                || path.parent() == Some(Path::new("/Users"))
                || own
                || git
        })
    }

    pub(super) fn wipes(&self, command: &PossibleCommand) -> bool {
        let (name, words) = (command.name(), command.texts());
        let operands: Vec<&str> = words.iter().skip(1).copied().collect();
        let parsed = Invocation::parse(&name, &operands);
        let recursive = parsed.options.contains("-r") || parsed.options.contains("-R");
        let vital = |texts: &[String]| texts.iter().any(|text| self.is_vital(text));
        let device = |file: &str| {
            let disk = ["sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "md", "loop"];
            file.strip_prefix("/dev/").is_some_and(|name| disk.iter().any(|start| name.starts_with(start)))
        };
        if self.written(command).iter().any(|file| device(file)) {
            return true;
        }
        match name.as_str() {
            "rm" => {
                let targets = self.targets(command);
                let all = targets
                    .iter()
                    .any(|target| self.resolved(target).contains(&self.workspace) && !target.starts_with('$'));
                recursive && (all || vital(&targets))
            }
            "rmdir" | "unlink" => vital(&self.targets(command)),
            "find" | "gfind" => {
                let starts: Vec<String> = words
                    .iter()
                    .skip(1)
                    .take_while(|word| !word.starts_with(['-', '(', '!']))
                    .map(|word| (*word).to_owned())
                    .collect();
                let removes = |word: &&str| matches!(*word, "-delete" | "rm" | "shred" | "unlink");
                words.iter().any(removes) && vital(&starts)
            }
            "mv" => operands.iter().filter(|word| !word.starts_with('-')).rev().skip(1).any(|word| self.is_vital(word)),
            "shred" | "wipefs" | "blkdiscard" | "mke2fs" | "srm" | "hdparm" => {
                operands.iter().any(|word| *word != "--help" && *word != "--version")
            }
            "chmod" | "chown" | "chgrp" => {
                recursive && operands.iter().any(|word| self.is_vital(word) && !word.ends_with(".git"))
            }
            "rsync" => {
                words.iter().any(|word| word.starts_with("--del"))
                    && operands.last().is_some_and(|word| self.is_vital(word))
            }
            "diskutil" => words.iter().any(|word| word.to_ascii_lowercase().starts_with("erase")),
            "format" => false,
            _ => name == "mkfs" || name.starts_with("mkfs.") || name.starts_with("newfs"),
        }
    }

    pub(super) fn overwrites_default_branch(&self, command: &PossibleCommand) -> bool {
        const DEFAULTS: &[&str] = &["main", "master", "trunk", "default", "production", "prod", "HEAD:main"];
        if command.name() != "git" {
            return false;
        }
        let words = command.texts();
        let parsed = Invocation::parse("git", &words[1..]);
        if parsed.subcommand.as_deref() != Some("push") {
            return false;
        }
        let has = |option: &str| parsed.options.contains(option);
        let (forced, deletes) = (has("--force"), has("--delete"));
        let branches: Vec<&str> = parsed.operands.iter().skip(1).map(String::as_str).collect();
        if !forced && !deletes {
            return false;
        }
        if has("--all") || words.contains(&"--mirror") {
            return true;
        }
        let current = || match self.facts.read(&self.workspace.join(".git/HEAD"), 1024) {
            FileContent::Bytes(bytes) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                text.trim().strip_prefix("ref: refs/heads/").map(str::to_owned)
            }
            FileContent::Missing | FileContent::Unreadable => None,
        };
        let moves = self.line.all.iter().any(|command| {
            command.name() == "git" && command.texts().iter().any(|word| matches!(*word, "checkout" | "switch"))
        });
        let known = |branch: &str| DEFAULTS.contains(&branch.trim_start_matches("refs/heads/"));
        let is_default = |branch: &str| match branch {
            "HEAD" | "@" => moves || current().is_none_or(|branch| known(&branch)),
            branch => known(branch),
        };
        if branches.is_empty() {
            return forced && !words.contains(&"--tags") && is_default("HEAD");
        }
        branches.iter().any(|refspec| {
            let plain = refspec.trim_start_matches('+');
            let to = plain.rsplit_once(':').map_or(plain, |(_, to)| to);
            let applies = forced_by(&words, refspec)
                || deletes
                    && (plain.starts_with(':')
                        || words.iter().any(|word| matches!(*word, "--delete" | "-d" | "--prune")));
            applies && is_default(to)
        })
    }

    pub(super) fn runs_what_was_fetched(&self, command: &PossibleCommand) -> bool {
        let (name, words) = (command.name(), command.texts());
        let is_shell = SHELLS.contains(&name.as_str());
        let interprets = is_shell || INTERPRETERS.contains(&name.as_str()) || name.starts_with("python3.");
        let operands: Vec<&str> = words.iter().skip(1).copied().filter(|word| !word.starts_with('-')).collect();
        let inline = |word: &&str| {
            matches!(*word, "-c" | "-e" | "-m" | "-p" | "-n" | "-ne" | "-pe" | "-lc" | "-ec" | "-E" | "--eval")
        };
        let reads_input = interprets
            && !words.iter().any(inline)
            && (operands.is_empty()
                || operands == ["-"]
                || is_shell && words.iter().any(|word| word.starts_with("-s"))
                || operands.first() == Some(&"/dev/stdin"));
        if reads_input && command.from.iter().any(|from| self.is_fetched(*from, 0)) {
            return true;
        }
        let takes = interprets || matches!(name.as_str(), "eval" | "source" | "." | "exec");
        if takes && command.within.iter().any(|from| self.is_fetched(*from, 0)) {
            return true;
        }
        // A program whose name is printed by fetched content, or a file that was fetched.
        let script = if takes { operands.first().copied() } else { words.first().copied() };
        let Some(script) = script.filter(|script| takes || script.contains('/')) else { return false };
        let same = |file: &str| {
            Path::new(file).file_name().is_some()
                && self.resolved(file).iter().any(|path| self.resolved(script).contains(path))
        };
        self.line.all.iter().any(|other| {
            let fetches = FETCHERS.contains(&other.name().as_str());
            let given = other.from.iter().any(|from| self.is_fetched(*from, 0));
            let saved = other
                .texts()
                .into_iter()
                .skip(1)
                .filter(|word| word.contains("://"))
                .filter_map(|url| url.rsplit('/').next());
            (fetches || given) && self.written(other).iter().any(|file| same(file))
                || fetches && saved.into_iter().any(|file| !file.is_empty() && same(file))
        })
    }

    /// Whether the output of a command was fetched, or was decoded from another form.
    fn is_fetched(&self, index: usize, depth: usize) -> bool {
        let Some(command) = self.line.all.get(index) else { return false };
        let words = command.texts();
        let has = |options: &[&str]| words.iter().any(|word| options.contains(word));
        let decodes = match command.name().as_str() {
            "base64" | "base32" => has(&["-d", "--decode", "-D", "-di"]),
            "xxd" => words.iter().any(|word| word.starts_with("-r")),
            "openssl" => has(&["-d"]),
            name => FETCHERS.contains(&name),
        };
        let network = command
            .redirects
            .iter()
            .any(|redirect| matches!(redirect, PossibleRedirect::Read(file) if is_network(file.as_str())));
        decodes
            || network
            || depth < 8
                && command
                    .from
                    .iter()
                    .chain(&command.within)
                    .any(|from| *from != index && self.is_fetched(*from, depth + 1))
    }

    pub(super) fn gives_a_shell(&self, command: &PossibleCommand) -> bool {
        let (name, words) = (command.name(), command.texts());
        if command.redirects.iter().any(|redirect| match redirect {
            PossibleRedirect::Read(file) | PossibleRedirect::Write(file) => is_network(file),
        }) {
            return true;
        }
        let is_shell = |name: &str| SHELLS.contains(&name);
        let from_shell =
            || command.from.iter().filter_map(|from| self.line.all.get(*from)).any(|from| is_shell(&from.name()));
        let from_network = || {
            command
                .from
                .iter()
                .filter_map(|from| self.line.all.get(*from))
                .any(|from| CONNECTORS.contains(&from.name().as_str()))
        };
        match name.as_str() {
            "nc" | "ncat" | "netcat" => {
                let runs = |word: &&str| {
                    matches!(*word, "-e" | "-c" | "--exec" | "--sh-exec" | "--lua-exec")
                        || word.starts_with('-') && !word.starts_with("--") && word.ends_with('e')
                };
                words.iter().any(runs) || from_shell()
            }
            "telnet" | "openssl" => from_shell(),
            "socat" => words.iter().any(|word| {
                let lower = word.to_ascii_lowercase();
                lower.starts_with("exec:") || lower.starts_with("system:") || lower.contains(",exec")
            }),
            "ssh" | "autossh" => words.iter().any(|word| word.starts_with("-R")),
            "ngrok" | "cloudflared" | "localtunnel" | "bore" | "chisel" => words.len() > 1,
            _ if is_shell(&name) => from_network(),
            _ if INTERPRETERS.contains(&name.as_str()) || name.starts_with("python3.") => words.iter().any(|word| {
                let code = word.to_ascii_lowercase();
                code.contains("socket")
                    && ["/bin/sh", "/bin/bash", "subprocess", "dup2", "pty", "exec", "spawn"]
                        .iter()
                        .any(|sign| code.contains(sign))
            }),
            _ => false,
        }
    }

    pub(super) fn decides_for_the_person(&self, command: &PossibleCommand) -> bool {
        if self.written(command).iter().any(|file| self.resolved(file).iter().any(|path| self.is_own(path))) {
            return true;
        }
        if command.name() != "capture" {
            return false;
        }
        let words = command.texts();
        let operands: Vec<&str> = words.iter().skip(1).copied().filter(|word| !word.starts_with('-')).collect();
        match operands.as_slice() {
            [
                "approve" | "deny" | "uninstall" | "setup" | "stop" | "serve" | "web" | "retention" | "forget"
                | "prune" | "send" | "queue" | "kill",
                ..,
            ] => true,
            ["policy", action, ..] => !matches!(*action, "test" | "check" | "explain" | "show"),
            ["hooks", action, ..] => *action != "status",
            ["config", action, ..] => matches!(*action, "edit" | "set" | "unset" | "init"),
            ["service" | "server", action, ..] => !matches!(*action, "status" | "logs"),
            _ => false,
        }
    }

    /// Whether a file belongs to capture.
    pub(super) fn is_own(&self, path: &Path) -> bool {
        const DIRS: &[&str] =
            &[".config/capture", ".local/share/capture", ".local/state/capture", "Library/Application Support/capture"];
        self.facts.is_private(path) || DIRS.iter().any(|dir| path.starts_with(self.home.join(dir)))
    }

    pub(super) fn persists(&self, command: &PossibleCommand) -> bool {
        let (name, words) = (command.name(), command.texts());
        let has = |options: &[&str]| words.iter().any(|word| options.contains(word));
        if self.written(command).iter().any(|file| self.resolved(file).iter().any(|path| self.runs_at_login(path))) {
            return true;
        }
        match name.as_str() {
            "crontab" => !matches!(&words[1..], ["-l"] | ["--help"] | ["-V"]),
            "at" | "batch" => !has(&["-l", "-V"]),
            "systemctl" => has(&["enable", "link", "reenable", "edit", "set-default"]),
            "launchctl" => has(&["load", "bootstrap", "enable", "submit", "kickstart"]),
            "update-rc.d" | "chkconfig" | "visudo" | "ssh-copy-id" | "usermod" | "gpasswd" | "chsh" | "chpasswd" => {
                words.len() > 1 || name == "visudo"
            }
            "git" => {
                let parsed = Invocation::parse("git", &words[1..]);
                let global = has(&["--global", "--system"]);
                let runs = |key: &String| {
                    let key = key.to_ascii_lowercase();
                    let known = [
                        "core.hookspath",
                        "core.sshcommand",
                        "core.pager",
                        "core.editor",
                        "core.fsmonitor",
                        "core.askpass",
                        "core.attributesfile",
                        "init.templatedir",
                        "diff.external",
                        "sequence.editor",
                        "gpg.program",
                        "credential.helper",
                        "include.path",
                        "uploadpack.packobjectshook",
                    ];
                    known.contains(&key.as_str())
                        || [
                            "alias.",
                            "url.",
                            "filter.",
                            "includeif.",
                            "credential.",
                            "pager.",
                            "protocol.",
                            "gpg.",
                            "difftool.",
                            "mergetool.",
                            "diff.",
                            "merge.",
                        ]
                        .iter()
                        .any(|start| key.starts_with(start))
                };
                let keys = parsed.operands.iter().filter(|word| !matches!(word.as_str(), "set" | "unset"));
                parsed.subcommand.as_deref() == Some("config")
                    && global
                    && !has(&["--get", "--list", "-l", "--unset"])
                    && keys.clone().any(runs)
                    && keys.count() > 1
            }
            _ => false,
        }
    }

    /// Whether a file is run at every login or start.
    pub(super) fn runs_at_login(&self, path: &Path) -> bool {
        // Path prefixes.
        const STARTS: &[&str] = &[
            "/etc/cron",
            "/etc/anacrontab",
            "/etc/at.",
            "/etc/profile",
            "/etc/bash",
            "/etc/zsh",
            "/etc/environment",
            "/etc/systemd/",
            "/etc/init",
            "/etc/rc",
            "/etc/sudoers",
            "/etc/pam",
            "/etc/ld.so",
            "/etc/passwd",
            "/etc/group",
            "/etc/shadow",
            "/etc/ssh/",
            "/etc/xdg/autostart",
            "/etc/udev/",
            "/etc/gitconfig",
            "/usr/lib/systemd/",
            "/lib/systemd/",
            "/var/spool/cron",
            "/Library/LaunchAgents",
            "/Library/LaunchDaemons",
        ];
        let homes: Vec<PathBuf> = vec![self.home.clone(), "/root".into()];
        let in_home = |file: &&str| homes.iter().any(|home| path.starts_with(home.join(file)));
        let inside = path.starts_with(&self.workspace);
        !inside
            && (AT_LOGIN.iter().any(in_home) || STARTS.iter().any(|start| path.to_string_lossy().starts_with(start)))
    }

    pub(super) fn erases_traces(&self, command: &PossibleCommand) -> bool {
        let (name, words) = (command.name(), command.texts());
        let has = |options: &[&str]| words.iter().any(|word| options.contains(word));
        let assigned = command
            .assignments
            .iter()
            .any(|(name, _)| matches!(name.as_str(), "HISTFILE" | "HISTSIZE" | "HISTFILESIZE" | "HISTCONTROL"));
        if assigned
            || self.written(command).iter().any(|file| self.resolved(file).iter().any(|path| self.is_trace(path)))
        {
            return true;
        }
        match name.as_str() {
            "history" => words.iter().any(|word| word.starts_with('-') && word.contains(['c', 'w', 'd'])),
            "unset" | "export" | "declare" | "typeset" => {
                words.iter().any(|word| word.starts_with("HISTFILE") || word.starts_with("HISTSIZE"))
            }
            "set" => has(&["history"]) && has(&["+o"]),
            "journalctl" => words.iter().any(|word| word.starts_with("--vacuum") || *word == "--rotate"),
            "auditctl" => has(&["-e", "-D"]),
            "systemctl" | "service" => {
                has(&["stop", "disable", "mask"])
                    && has(&["auditd", "rsyslog", "syslog", "systemd-journald", "auditd.service", "rsyslog.service"])
            }
            "wevtutil" | "logrotate" => words.len() > 1,
            _ => false,
        }
    }

    /// Whether a file is a history or a log of the system.
    pub(super) fn is_trace(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let history = name.starts_with('.') && name.ends_with("_history") || name == "fish_history";
        let outside = !path.starts_with(&self.workspace);
        outside && (history || path.starts_with("/var/log"))
    }
}

/// Whether a refspec is pushed by force.
fn forced_by(words: &[&str], refspec: &str) -> bool {
    let named = Invocation::parse(
        "git",
        &words.iter().skip(1).copied().filter(|word| !word.starts_with('+')).collect::<Vec<_>>(),
    );
    refspec.starts_with('+') || named.options.contains("--force")
}

pub(super) fn takes_the_machine(command: &PossibleCommand) -> bool {
    let (name, words) = (command.name(), command.texts());
    let has = |options: &[&str]| words.iter().any(|word| options.contains(word));
    match name.as_str() {
        "docker" | "podman" | "nerdctl" => {
            let parsed = Invocation::parse(&name, &words[1..]);
            let runs = matches!(parsed.subcommand.as_deref(), Some("run" | "create" | "exec" | "container"));
            let mounts_root = |(option, value): &(String, String)| match option.as_str() {
                "--volume" => value.starts_with("/:") || value.starts_with("/etc:") || value.starts_with("/root:"),
                "--mount" => value.split(',').any(|part| matches!(part, "source=/" | "src=/")),
                "--pid" | "--cap-add" => matches!(value.as_str(), "host" | "ALL" | "SYS_ADMIN"),
                _ => false,
            };
            runs && (parsed.options.iter().any(|option| option.starts_with("--privileged"))
                || parsed.values.iter().any(mounts_root))
        }
        "nsenter" | "insmod" | "modprobe" | "kexec" | "setenforce" | "visudo" => words.len() > 1 || name == "visudo",
        "sysctl" => has(&["-w", "--write", "-p"]) || words.iter().any(|word| word.contains('=')),
        "ufw" => has(&["disable", "reset"]),
        "iptables" | "ip6tables" | "nft" | "pfctl" => has(&["-F", "--flush", "-X", "flush", "-d"]),
        "spctl" | "csrutil" => has(&["--master-disable", "disable"]),
        "chmod" => words.iter().skip(1).any(|word| {
            let octal = word.len() >= 4
                && word.bytes().all(|b| (b'0'..=b'7').contains(&b))
                && matches!(word.trim_start_matches('0').as_bytes(), [b'2' | b'4' | b'6' | b'7', _, _, _]);
            let symbolic = !word.starts_with('-')
                && word.contains(['+', '='])
                && word.rsplit(['+', '=']).next().is_some_and(|bits| {
                    bits.len() < 5 && bits.contains('s') && bits.chars().all(|c| "rwxXst".contains(c))
                });
            octal || symbolic
        }),
        _ => {
            let kernel = |redirect: &PossibleRedirect| matches!(redirect, PossibleRedirect::Write(file) if file.starts_with("/proc/") || file.starts_with("/sys/"));
            command.redirects.iter().any(kernel)
        }
    }
}

pub(super) fn deletes_elsewhere(command: &PossibleCommand) -> bool {
    let (name, words) = (command.name(), command.texts());
    let parsed = Invocation::parse(&name, words.get(1..).unwrap_or_default());
    let has = |options: &[&str]| words.iter().any(|word| options.contains(word));
    let subcommand = parsed.subcommand.as_deref().unwrap_or_default();
    let starts = |texts: &[&str]| words.iter().skip(1).any(|word| texts.iter().any(|text| word.starts_with(text)));
    match name.as_str() {
        "kubectl" | "oc" | "k3s" => {
            matches!(subcommand, "delete" | "drain") || has(&["delete"]) && subcommand == "kubectl"
        }
        "helm" => matches!(subcommand, "uninstall" | "delete" | "del" | "un"),
        "terraform" | "tofu" | "terragrunt" => {
            matches!(subcommand, "destroy" | "run-all") && !has(&["plan"])
                || subcommand == "apply"
                    && has(&["-auto-approve", "--auto-approve", "-destroy", "--destroy", "-auto-approve=true"])
                || subcommand == "state" && has(&["rm"])
        }
        "pulumi" | "cdk" | "cdktf" | "sls" | "serverless" | "eksctl" | "kind" | "doctl" => {
            has(&["destroy", "delete", "remove", "rm"])
        }
        "aws" => {
            starts(&["delete-", "terminate-", "deregister-", "purge-"])
                || has(&["rb"])
                || has(&["rm"]) && has(&["--recursive"])
        }
        "gcloud" | "az" | "linode-cli" | "hcloud" | "scw" => has(&["delete", "purge", "destroy"]),
        "gsutil" => has(&["rm", "rb"]),
        "gh" | "glab" => {
            has(&["delete", "archive"]) && has(&["repo", "release", "project", "secret", "variable", "org"])
                || has(&["DELETE"])
        }
        "heroku" | "flyctl" | "fly" | "vercel" | "netlify" | "railway" | "firebase" => starts(&[
            "apps:destroy",
            "destroy",
            "remove",
            "pg:reset",
            "addons:destroy",
            "sites:delete",
            "delete",
            "firestore:delete",
        ]),
        "dropdb" | "dropuser" => true,
        "psql" | "mysql" | "mariadb" | "sqlcmd" | "clickhouse-client" | "cockroach" | "mongosh" | "mongo"
        | "duckdb" => {
            let text =
                format!("{} {}", words.join(" "), command.input.as_deref().unwrap_or_default()).to_ascii_uppercase();
            ["DROP DATABASE", "DROP TABLE", "DROP SCHEMA", "TRUNCATE ", "DROPDATABASE", "DELETE FROM"]
                .iter()
                .any(|sign| text.contains(sign))
        }
        "redis-cli" | "valkey-cli" => {
            words.iter().any(|word| matches!(word.to_ascii_lowercase().as_str(), "flushall" | "flushdb"))
        }
        _ => false,
    }
}

pub(super) fn takes_packages_elsewhere(command: &PossibleCommand) -> bool {
    const USUAL: &[&str] = &[
        "registry.npmjs.org",
        "registry.yarnpkg.com",
        "pypi.org",
        "files.pythonhosted.org",
        "crates.io",
        "index.crates.io",
        "rubygems.org",
        "proxy.golang.org",
    ];
    let (name, words) = (command.name(), command.texts());
    let usual = |address: &str| {
        let rest = address.strip_prefix("https://").unwrap_or_default();
        let host = rest.split(['/', '?', '#', ':']).next().unwrap_or_default();
        USUAL.contains(&host) && !rest.contains('@')
    };
    let value = |options: &[&str]| {
        let pairs = words.windows(2).filter(|pair| options.contains(&pair[0])).map(|pair| pair[1]);
        let joined =
            words.iter().filter_map(|word| word.split_once('=')).filter(|(option, _)| options.contains(option));
        pairs.chain(joined.map(|(_, value)| value)).any(|value| !usual(value))
    };
    match name.as_str() {
        "npm" | "pnpm" | "yarn" | "bun" => {
            let sets = words.contains(&"config") && words.contains(&"set")
                || words.contains(&"set") && words.get(1) == Some(&"set");
            let key = |word: &&str| {
                let lower = word.to_ascii_lowercase();
                lower.starts_with("registry")
                    || lower.ends_with(":registry")
                    || lower.contains("registry=")
                    || lower.contains(":_auth")
                    || lower.starts_with("_auth")
                    || lower.contains("npmregistryserver")
                    || matches!(lower.as_str(), "script-shell" | "ignore-scripts")
            };
            let other = words.iter().skip(1).any(|word| word.contains("://") || !word.contains('.'))
                && !words.iter().any(|word| usual(word));
            sets && words.iter().any(key) && other || value(&["--registry"])
        }
        "pip" | "pip3" | "uv" | "pipx" | "poetry" | "pdm" | "python" | "python3" => {
            let pip = name != "python" && name != "python3" || words.contains(&"pip");
            let sets = words.contains(&"config")
                && words.contains(&"set")
                && words.iter().any(|word| {
                    word.contains("index-url") || word.contains("trusted-host") || word.contains("find-links")
                });
            pip && (sets
                || value(&[
                    "--index-url",
                    "-i",
                    "--extra-index-url",
                    "--index",
                    "--default-index",
                    "--trusted-host",
                    "--find-links",
                ]))
        }
        "gem" => {
            words.contains(&"sources") && (words.contains(&"-a") || words.contains(&"--add")) || value(&["--source"])
        }
        "go" => {
            words.contains(&"env")
                && words.iter().any(|word| {
                    word.starts_with("GOPROXY")
                        || word.starts_with("GONOSUM")
                        || word.starts_with("GOFLAGS")
                        || word.starts_with("GOSUMDB")
                })
        }
        _ => command.assignments.iter().any(|(name, value)| {
            matches!(
                name.as_str(),
                "GOPROXY"
                    | "PIP_INDEX_URL"
                    | "PIP_EXTRA_INDEX_URL"
                    | "NPM_CONFIG_REGISTRY"
                    | "npm_config_registry"
                    | "UV_INDEX_URL"
            ) && !usual(value)
        }),
    }
}
