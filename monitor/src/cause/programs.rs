//! The programs that may wait without end, and the ones that end soon.

use projections::receipt::{base, subcommands};

use super::{
    Cause::{
        self, Debugger, Editor, Follow, HostKey, Interactive, Lock, Login, Pager, Password, Question, Server, WaitLoop,
        Watch,
    },
    has, plain_name,
};

/// How far the words of a command suffice to name its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// The command never ends by itself.
    Always,
    /// The command waits, or is still working: its words suffice if it has printed nothing, or nothing of its output is
    /// known.
    Silent,
    /// Only its output can show that it waits.
    Shown,
}

use Trust::{Always, Shown, Silent};

/// A line of the table. Each text is a list of words, separated by spaces.
#[derive(Debug)]
pub(super) struct Program {
    /// The names of programs, without directory and version.
    pub(super) names: &'static str,
    /// The subcommands, as alternatives separated by `|`. `_` stands for no subcommand, and `*` for any; an alternative
    /// `*` alone also stands for none. `-` means that all other words are options.
    pub(super) verbs: &'static str,
    /// Options of which one must be present; empty if none is needed.
    pub(super) needs: &'static str,
    /// Words of which none may be present.
    pub(super) stops: &'static str,
    /// How far these words suffice.
    pub(super) trust: Trust,
    /// The cause.
    pub(super) cause: Cause,
    /// A command that does not wait: `{command}` is the command, `{once}` the command without the options in `needs`,
    /// `{verb}` its subcommand. If it is empty, the advice of the cause applies.
    pub(super) unblock: &'static str,
}

const fn line(
    (names, verbs): (&'static str, &'static str),
    (needs, stops): (&'static str, &'static str),
    trust: Trust,
    cause: Cause,
    unblock: &'static str,
) -> Program {
    Program { names, verbs, needs, stops, trust, cause, unblock }
}

/// Starts a server in the background.
const BACKGROUND: &str = "{command} > server.log 2>&1 &";
/// Programs that run the scripts of a package.
const SCRIPTS: &str = "npm pnpm yarn bun";
/// Options of git that print little or nothing, or search for long.
const BRIEF: &str = "--no-pager -P -c -S* -G* -L* --grep* --ext-diff --textconv --outp* --no-patch --follow --quiet -q -s -n --max-count --exit-code --check --name-only \
                     --stat --shortstat --summary --raw delete expire -0* -1* -2* -3* -4* -5* -6* -7* -8* -9* -h --help";
/// Options of `git commit` with which it opens no editor.
const MESSAGE: &str = "-m --message -F --file -C --reuse-message --no-edit --fixup --squash --dry-run -p --patch \
                       --interactive -c -h --help";

/// The first line that describes a command counts.
#[rustfmt::skip]
pub(super) const PROGRAMS: &[Program] = &[
    // Watch mode.
    line(("vitest", "watch|dev"), ("", "-h --help --run --watch=false --no-watch"), Always, Watch, "npx vitest run"),
    line(("vitest", "*"), ("-w --watch", "-h --help run --run --watch=false --no-watch"), Always, Watch, "npx vitest run"),
    line(("vitest", "*"), ("", "-h --help -v --version run related list init bench --run --no-watch --watch=false --mergeReports"), Silent, Watch, "npx vitest run"),
    line(("jest", "*"), ("--watch --watchAll", "--watch=false --watchAll=false --ci -h --help"), Always, Watch, "{once}"),
    line(("react-scripts craco", "test"), ("", "--watch=false --watchAll=false --ci --help"), Silent, Watch, "CI=1 {command}"),
    line(("tsc vite webpack rollup esbuild sass postcss babel tsup mocha ava tailwindcss", "*"), ("-w --watch", "--watch=false -h --help"), Always, Watch, "{once}"),
    line(("node bun deno nest ng", "*"), ("--watch", "--watch=false --help"), Always, Watch, "{once}"),
    line(("cargo", "watch"), ("", "-h --help --version"), Always, Watch, "cargo test"),
    line(("nodemon ts-node-dev", "*"), ("", "-h --help -v --version"), Always, Watch, "node …"),
    line(("cargo-watch watchexec pytest-watch ptw", "*"), ("", "-h --help -V --version"), Always, Watch, ""),
    line(("tsx dotnet", "watch"), ("", "-h --help"), Always, Watch, ""),
    line(("gradle gradlew", "*"), ("-t --continuous", "--help"), Always, Watch, "{once}"),
    line(("watch", "*"), ("", "-g --chgexit -e --errexit -q --equexit -h --help -v --version"), Always, Watch, ""),
    line((SCRIPTS, "watch|run watch|test:watch|run test:watch|run dev:watch"), ("", "--"), Always, Watch, ""),
    line((SCRIPTS, "test|t|run test|run test:unit|run unit"), ("", ""), Shown, Watch, "CI=1 {command}"),

    // Servers.
    line((SCRIPTS, "dev|run dev|serve|run serve|develop|run develop|run start:dev|run storybook"), ("", "-- --help --if-present"), Always, Server, BACKGROUND),
    line((SCRIPTS, "start|run start|preview|run preview"), ("", ""), Shown, Server, BACKGROUND),
    line(("vite", "_|dev|serve|preview"), ("", "-h --help -v --version"), Always, Server, BACKGROUND),
    line(("next nuxt nuxi astro gatsby remix", "dev|develop|start|preview"), ("", "-h --help"), Always, Server, BACKGROUND),
    line(("ng vue-cli-service hugo jekyll mkdocs", "serve|server|s"), ("", "-h --help"), Always, Server, BACKGROUND),
    line(("webpack-dev-server http-server live-server json-server", "*"), ("", "-h --help -v --version"), Always, Server, BACKGROUND),
    line(("rails", "s|server"), ("", "-d --daemon -h --help"), Always, Server, "{command} -d"),
    line(("flask streamlit", "run"), ("", "--help"), Always, Server, BACKGROUND),
    line(("manage.py", "runserver"), ("", "--help -h"), Always, Server, BACKGROUND),
    line(("python", "manage.py runserver"), ("", "--help -h"), Always, Server, BACKGROUND),
    line(("http.server", "*"), ("", "-h --help"), Always, Server, BACKGROUND),
    line(("uvicorn gunicorn hypercorn daphne puma", "*"), ("", "-h --help -v --version --check-config --print-config -D --daemon"), Always, Server, BACKGROUND),
    line(("php", "artisan serve"), ("", "--help"), Always, Server, BACKGROUND),
    line(("php", "*"), ("-S", "-h --help"), Always, Server, BACKGROUND),
    line(("jupyter", "lab|notebook"), ("", "--help --version list stop"), Always, Server, BACKGROUND),
    line(("docker podman", "compose up -"), ("", "-d --detach --wait --no-start --abort-on-container-exit --abort-on-container-failure --exit-code-from -h --help"), Always, Server, "{command} -d"),
    line(("docker-compose", "up -"), ("", "-d --detach --wait --no-start --abort-on-container-exit --exit-code-from -h --help"), Always, Server, "{command} -d"),
    line(("kubectl oc", "port-forward|proxy"), ("", "-h --help"), Always, Server, "{command} &"),

    // Sources that are followed.
    line(("tail", "*"), ("-f -F --follow", "--pid --help --version"), Always, Follow, "{once}"),
    line(("journalctl", "*"), ("-f --follow", "-h --help --version"), Always, Follow, "{once} --no-pager -n 100"),
    line(("kubectl oc", "logs"), ("-f --follow", "-h --help --follow=false"), Always, Follow, "{once} --tail=100"),
    line(("docker podman", "logs|compose logs|container logs"), ("-f --follow", "--help --follow=false"), Always, Follow, "{once} --tail 100"),
    line(("docker-compose", "logs"), ("-f --follow", "--help --follow=false"), Always, Follow, "{once} --tail 100"),
    line(("kubectl oc", "get|events"), ("-w --watch --watch-only", "--help --watch=false"), Always, Follow, "{once}"),
    line(("docker podman", "stats|events"), ("", "--no-stream --until --help"), Always, Follow, "timeout 10 {command}"),
    line(("dmesg", "*"), ("-w --follow -W --follow-new", "-h --help"), Always, Follow, "{once}"),
    line(("inotifywait", "*"), ("-m --monitor", "-t --timeout -h --help"), Always, Follow, "{once} -t 60"),
    line(("less", "*"), ("+F", ""), Always, Follow, "tail -n 100 …"),
    line(("ping", "*"), ("", "-c -w -h -V"), Always, Follow, "{command} -c 3"),
    line(("redis-cli valkey-cli", "monitor|subscribe|psubscribe"), ("", "--help"), Always, Follow, "timeout 10 {command}"),

    // Editors.
    line(("git", "commit"), ("--amend", MESSAGE), Silent, Editor, "{command} --no-edit"),
    line(("git", "commit"), ("", MESSAGE), Silent, Editor, "{command} -m …"),
    line(("git", "rebase"), ("-i --interactive --edit-todo", "-c -h --help"), Silent, Editor, "GIT_SEQUENCE_EDITOR=: {command}"),
    line(("git", "rebase|merge|cherry-pick|revert"), ("--continue", "--no-edit -c -h --help"), Silent, Editor, "GIT_EDITOR=true {command}"),
    line(("git", "merge|pull"), ("", ""), Shown, Editor, "{command} --no-edit"),
    line(("git", "revert"), ("", "--no-edit -n --no-commit --abort --quit --skip -c -h --help"), Silent, Editor, "{command} --no-edit"),
    line(("git", "cherry-pick"), ("-e --edit", "-c -h --help"), Silent, Editor, "{once}"),
    line(("git", "tag"), ("-a --annotate -s --sign", "-m --message -F --file -d -l -v -c -h --help"), Silent, Editor, "{command} -m …"),
    line(("git", "config"), ("-e --edit", "-c -h --help"), Silent, Editor, "git config KEY VALUE"),
    line(("git", "*"), ("", ""), Shown, Editor, "GIT_EDITOR=true {command}"),
    line(("crontab", "*"), ("-e", "-l -r"), Always, Editor, "crontab FILE"),
    line(("visudo vipw vigr", "*"), ("", "-c --check -V --version -h --help"), Always, Editor, ""),
    line(("vi vim nvim view", "*"), ("", "-c -e -E -s -es -Es --headless --version --help -h +*"), Always, Editor, ""),
    line(("nano pico emacs joe micro", "*"), ("", "--batch -batch --script -script --version --help -h -V --eval --daemon"), Always, Editor, ""),
    line(("kubectl oc", "edit"), ("", "-h --help"), Silent, Editor, "kubectl patch …"),
    line(("systemctl", "edit"), ("", "--stdin -h --help"), Silent, Editor, "systemctl edit --stdin …"),
    line(("hg svn", "commit|ci"), ("", "-m --message -F --file -l --logfile --help -h"), Silent, Editor, "{command} -m …"),

    // Pagers.
    line(("git", "log|show|diff|blame|reflog"), ("", BRIEF), Silent, Pager, "git --no-pager {verb} …"),
    line(("git", "*"), ("", ""), Shown, Pager, "git --no-pager {verb} …"),
    line(("man", "*"), ("", "-k -f -w -W -K --where --path --apropos --whatis -P --pager --version --help"), Always, Pager, "{command} | cat"),
    line(("less more most", "*"), ("", "+* -V --version -F --help -? -E -e"), Always, Pager, "cat …"),
    line(("journalctl", "*"), ("", "-f --follow --no-pager -n --lines -q --vacuum-size --vacuum-time --disk-usage --list-boots --rotate --flush -h --help --version"), Silent, Pager, "{command} --no-pager"),
    line(("systemctl loginctl journalctl", "*"), ("", ""), Shown, Pager, "{command} --no-pager"),
    line(("less more most", "*"), ("", ""), Shown, Pager, "cat …"),
    line(("man gh aws psql mysql mariadb bat delta", "*"), ("", ""), Shown, Pager, "{command} | cat"),

    // Sign-in with a browser.
    line(("gh", "auth login|auth refresh"), ("", "--with-token -h --help"), Always, Login, "gh auth login --with-token < FILE"),
    line(("gcloud", "auth login|auth application-default"), ("", "--cred-file -h --help print-access-token revoke"), Always, Login, "gcloud auth activate-service-account --key-file=FILE"),
    line(("az", "login"), ("", "--service-principal --identity -i -u --username --federated-token -h --help"), Always, Login, "az login --service-principal …"),
    line(("aws", "sso login"), ("", "help"), Always, Login, ""),
    line((SCRIPTS, "login|adduser"), ("", "-h --help"), Silent, Login, "npm config set //registry.npmjs.org/:_authToken …"),
    line(("firebase vercel netlify heroku fly flyctl railway wrangler", "login|auth login|login:ci"), ("", "--token -h --help"), Silent, Login, ""),

    // Debuggers.
    line(("pdb ipdb pudb", "*"), ("", "-c -h --help"), Silent, Debugger, "python3 FILE"),
    line(("node", "inspect|debug"), ("", ""), Always, Debugger, "node FILE"),
    line(("node tsx ts-node", "*"), ("--inspect-brk --inspect-wait", ""), Always, Debugger, "{once}"),
    line(("gdb lldb", "*"), ("", "-batch --batch -b -x -ex --ex -o --command -h --help -v --version"), Silent, Debugger, "gdb -batch -ex run -ex bt --args …"),
    line(("gdb lldb", "*"), ("", ""), Shown, Debugger, "gdb -batch -ex run -ex bt --args …"),

    // Programs that read commands or text.
    line(("python ipython bpython node irb ghci lua R julia scala jshell iex erl", "-"), ("", "-*"), Always, Interactive, "{command} FILE"),
    line(("python ipython node irb", "*"), ("", ""), Shown, Interactive, "{command} FILE"),
    line(("bash sh zsh fish", "-"), ("", "-*"), Always, Interactive, "{command} -c …"),
    line(("psql", "*"), ("", "-c --command -f --file -l --list -V --version -? --help -W --password"), Silent, Interactive, "{command} -c …"),
    line(("mysql mariadb", "*"), ("", "-e --execute -p --password -V --version -? --help"), Silent, Interactive, "{command} -e …"),
    line(("redis-cli valkey-cli", "-"), ("", "-x --pipe --scan --stat --latency* --eval --bigkeys -v --version --help -r"), Always, Interactive, "{command} PING"),
    line(("sqlite", "_|* _"), ("", "-cmd -batch -version --version -help --help -init"), Always, Interactive, "{command} .tables"),
    line(("psql", "*"), ("", ""), Shown, Interactive, "{command} -c …"),
    line(("mysql mariadb", "*"), ("", ""), Shown, Interactive, "{command} -e …"),
    line(("sqlite", "*"), ("", ""), Shown, Interactive, "{command} .tables"),
    line(("mongo mongosh", "-"), ("", "--eval -f --file --version --help"), Silent, Interactive, "{command} --eval …"),
    line(("cat bc dc", "-"), ("", "--help --version -h"), Always, Interactive, "{command} FILE"),
    line(("read", "*"), ("", "-t -u"), Always, Interactive, "read -t 10 …"),
    line(("ftp telnet", "*"), ("", "-h --help"), Silent, Interactive, "curl …"),
    line(("sftp", "*"), ("", "-b -h"), Shown, Interactive, "sftp -b FILE …"),
    line(("rails", "c|console|dbconsole"), ("", "-h --help"), Silent, Interactive, "rails runner …"),
    line(("manage.py", "shell|dbshell"), ("", "-c --command -h --help"), Silent, Interactive, "{command} -c …"),
    line(("python", "manage.py shell|manage.py dbshell"), ("", "-c --command -h --help"), Silent, Interactive, "{command} -c …"),
    line(("php", "artisan tinker"), ("", "--execute"), Silent, Interactive, "{command} --execute=…"),

    // Questions, passwords, keys of hosts, and locks.
    line(("git", "add|checkout|reset|restore|commit|stash _|stash push|stash save"), ("-p --patch", "-c -m -h --help"), Silent, Question, "{once} FILE"),
    line(("npm pnpm yarn", "init _"), ("", "-y --yes -h --help"), Silent, Question, "{command} -y"),
    line(("npx", "*"), ("", ""), Shown, Question, "npx --yes …"),
    line(("npm", "*"), ("", ""), Shown, Question, "npm {verb} --yes …"),
    line(("apt apt-get dnf yum", "*"), ("", ""), Shown, Question, "{command} -y"),
    line(("pip conda mamba", "*"), ("", ""), Shown, Question, "{command} -y"),
    line(("terraform tofu", "apply|destroy"), ("", ""), Shown, Question, "{command} -auto-approve"),
    line(("gcloud", "*"), ("", ""), Shown, Question, "{command} --quiet"),
    line(("unzip", "*"), ("", ""), Shown, Question, "unzip -o …"),
    line(("rm", "*"), ("-i -I --interactive", "-f --force"), Silent, Question, "{once}"),
    line(("ssh-keygen", "*"), ("", ""), Shown, Question, "ssh-keygen -q -N '' -f FILE"),
    line(("ssh-keygen", "*"), ("", ""), Shown, Password, "ssh-keygen -q -N '' -f FILE"),
    line(("passwd", "*"), ("", "--stdin -l -u -d -S -e -h --help"), Silent, Password, "chpasswd < FILE"),
    line(("sudo", "*"), ("", ""), Shown, Password, "sudo -n …"),
    line(("ssh scp sftp", "*"), ("", ""), Shown, Password, "ssh -o BatchMode=yes …"),
    line(("ssh scp sftp git", "*"), ("", ""), Shown, HostKey, "ssh-keyscan HOST >> ~/.ssh/known_hosts"),
    line(("git", "*"), ("", ""), Shown, Password, "GIT_TERMINAL_PROMPT=0 {command}"),
    line(("gpg", "*"), ("", ""), Shown, Password, "gpg --batch --pinentry-mode loopback …"),
    line(("psql", "*"), ("", ""), Shown, Password, "psql -w …"),
    line(("apt apt-get", "*"), ("", ""), Shown, Lock, "{command} -o DPkg::Lock::Timeout=60"),
    line(("cargo", "*"), ("", ""), Shown, Lock, "CARGO_TARGET_DIR=target/other {command}"),
    line(("sleep", "infinity|inf"), ("", ""), Always, WaitLoop, "sleep 10"),
];

/// Whether a command ends soon, so that it is not the one that a line waits for.
pub(super) fn is_quick(words: &[String]) -> bool {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    match base(word(0)) {
        "" | "cd" | "pushd" | "popd" | "export" | "set" | "unset" | "shopt" | "echo" | "printf" | "true" | "false"
        | ":" | "mkdir" | "rmdir" | "rm" | "cp" | "mv" | "ln" | "ls" | "pwd" | "touch" | "chmod" | "chown"
        | "which" | "type" | "test" | "[" | "alias" | "umask" | "ulimit" | "date" | "whoami" | "id" | "uname"
        | "hostname" | "head" | "cat" | "tail" | "wc" | "cut" | "tr" | "jq" | "basename" | "dirname" | "realpath"
        | "readlink" | "stat" | "kill" | "pkill" | "killall" | "lsof" | "ps" | "pgrep" | "trap" | "exit" | "break"
        | "continue" | "return" | "local" | "declare" | "disown" | "fuser" => true,
        "command" => matches!(word(1), "-v" | "-V"),
        "nvm" => word(1) == "use",
        // Other scripts may do anything.
        "source" | "." => ["activate", "env", "nvm.sh", "profile", "rc"].iter().any(|end| word(1).ends_with(end)),
        "sleep" => word(1).parse::<f64>().is_ok_and(|seconds| seconds <= 60.0),
        "git" => matches!(
            subcommands(words)[0],
            "add" | "status" | "config" | "checkout" | "switch" | "init" | "rev-parse" | "mv" | "rm" | "restore"
        ),
        _ => false,
    }
}

/// Whether a filter reads its input to the end, so that the program before it never ends early.
pub(super) fn passes_all(filter: &[String]) -> bool {
    let has_any = |options: &str| filter.iter().skip(1).any(|word| has(options, word));
    match plain_name(filter.first().map_or("", String::as_str)) {
        "cat" | "tee" | "tr" | "cut" | "jq" | "ts" | "nl" | "sort" | "uniq" | "wc" => true,
        "tail" => !has_any("-f -F --follow"),
        "grep" | "egrep" | "fgrep" | "rg" => !has_any("-m -q --max-count --quiet"),
        _ => false,
    }
}
