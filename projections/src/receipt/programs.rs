//! Which programs check, build, install or publish.

use std::{collections::HashSet, sync::LazyLock};

use super::CheckClass;

/// The name of a program without its directory.
#[must_use]
pub fn base(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    name.strip_suffix(".exe").or_else(|| name.strip_suffix(".cmd")).unwrap_or(name)
}

/// The script of `sh -c SCRIPT`.
pub(super) fn script_of<W: AsRef<str>>(words: &[W]) -> Option<&str> {
    let words = without_wrappers(words);
    let shell = base(words.first()?.as_ref());
    if !matches!(shell, "sh" | "bash" | "zsh" | "dash") {
        return None;
    }
    let is_c = |word: &W| {
        let word = word.as_ref();
        word.starts_with('-') && !word.starts_with("--") && word.ends_with('c')
    };
    let at = words.iter().skip(1).position(is_c)?;
    words.get(at + 2).map(AsRef::as_ref)
}

/// The words of the program that a command runs in the end: without `sudo`, `timeout 60`, `npx`, `uv run` and the like.
#[must_use]
pub fn without_wrappers<W: AsRef<str>>(words: &[W]) -> &[W] {
    let mut rest = words;
    for _ in 0..8 {
        let word = |at: usize| rest.get(at).map_or("", AsRef::as_ref);
        let skipped = match (base(word(0)), word(1)) {
            (
                "sudo" | "nice" | "nohup" | "command" | "exec" | "time" | "stdbuf" | "ionice" | "xvfb-run" | "setsid",
                _,
            ) => past_options(rest, 1, &["-u", "-g", "-n", "-c", "-o", "-e", "-i"]),
            ("env", _) => {
                let mut at = past_options(rest, 1, &["-u", "-C"]);
                while rest.get(at).is_some_and(|word| word.as_ref().contains('=')) {
                    at += 1;
                }
                at
            }
            // The first word is the duration.
            ("timeout" | "gtimeout", _) => past_options(rest, 1, &["-k", "-s", "--signal", "--kill-after"]) + 1,
            // It shortens the output of the command behind it.
            ("rtk", "test" | "lint" | "err" | "proxy") if rest.len() > 2 => 2,
            ("rtk", _) => past_options(rest, 1, &[]),
            ("npx" | "bunx" | "uvx" | "unbuffer" | "corepack", _) => past_options(rest, 1, &["-p", "--package"]),
            ("pnpm" | "yarn" | "npm" | "bun" | "mise" | "pipx", "exec" | "dlx" | "x") => {
                past_options(rest, 2, &["-p", "--package"])
            }
            ("uv" | "poetry" | "pipenv" | "pdm" | "hatch" | "rye", "run") => {
                past_options(rest, 2, &["--with", "-p", "--python", "--project", "--group", "--extra", "--env-file"])
            }
            ("bundle" | "rbenv" | "pyenv" | "asdf", "exec") => past_options(rest, 2, &[]),
            // The first word is the directory.
            ("direnv", "exec") => past_options(rest, 2, &[]) + 1,
            ("docker" | "podman", "exec") => {
                past_options(rest, 2, &["-e", "-u", "-w", "--env", "--user", "--workdir"]) + 1
            }
            ("docker-compose", "exec" | "run") => past_options(rest, 2, &["-e", "-u", "-w"]) + 1,
            ("docker", "compose") if matches!(word(2), "exec" | "run") => {
                past_options(rest, 3, &["-e", "-u", "-w"]) + 1
            }
            ("pipx", "run") | ("coverage", "run") => past_options(rest, 2, &[]),
            ("xargs" | "flock" | "taskset", _) => past_options(rest, 1, &["-n", "-I", "-P", "-L", "-c"]),
            (python, _) if python.starts_with("python") || python == "py" => {
                match rest.iter().take(4).position(|word| word.as_ref() == "-m") {
                    Some(at) => at + 1,
                    None => return rest,
                }
            }
            _ => return rest,
        };
        match rest.get(skipped..) {
            Some(inner) if !inner.is_empty() => rest = inner,
            Some(_) | None => return rest,
        }
    }
    rest
}

/// Whether a program before the one that a command runs in the end stops it after some time.
pub(super) fn is_limited<W: AsRef<str>>(words: &[W]) -> bool {
    let wrappers = words.len() - without_wrappers(words).len();
    words.iter().take(wrappers).any(|word| matches!(base(word.as_ref()), "timeout" | "gtimeout"))
}

/// The place of the first word from `at` on that is no option, and no toolchain (`+nightly`); `valued` are options with
/// a value of their own.
fn past_options<W: AsRef<str>>(words: &[W], mut at: usize, valued: &[&str]) -> usize {
    while let Some(word) = words.get(at).map(AsRef::as_ref).filter(|word| word.starts_with(['-', '+'])) {
        at += 1;
        if word == "--" {
            break;
        }
        at += usize::from(valued.contains(&word));
    }
    at
}

/// Options of package managers and build tools that are followed by a value.
const VALUED: &[&str] = &[
    "-C",
    "-c",
    "-n",
    "-pl",
    "--namespace",
    "--context",
    "--kubeconfig",
    "-f",
    "-F",
    "-w",
    "-p",
    "-j",
    "--prefix",
    "--workspace",
    "--filter",
    "--dir",
    "--cwd",
    "--directory",
    "--file",
    "--manifest-path",
    "--package",
    "--color",
    "--config",
    "--project",
    "--git-dir",
    "--work-tree",
];

/// The first words after a program that are no options: its subcommands.
#[must_use]
pub fn subcommands<W: AsRef<str>>(words: &[W]) -> [&str; 2] {
    let first = past_options(words, 1, VALUED);
    let second = past_options(words, first + 1, VALUED);
    [first, second].map(|at| words.get(at).map_or("", AsRef::as_ref))
}

/// Whether the options of a command make it only print, list or watch.
fn only_asks<W: AsRef<str>>(program: &str, words: &[W]) -> bool {
    let options = || words.iter().skip(1).map(AsRef::as_ref);
    let has = |option: &str| options().any(|word| word == option);
    // An option of git is followed by texts that may look like one.
    if program == "git" {
        return words.iter().skip(1).take(2).any(|word| matches!(word.as_ref(), "--help" | "--version" | "-h"));
    }
    const PRINT: &[&str] = &[
        "--help",
        "--version",
        "--collect-only",
        "--co",
        "--list",
        "--list-tests",
        "--listTests",
        "-list",
        "--syntax-check",
        "--init",
        "--showConfig",
        "--just-print",
        "--watch",
        "--watchAll",
        "--ui",
        "-DskipTests",
    ];
    let prints = options().any(|word| PRINT.contains(&word) || word.starts_with("--dry-run"));
    let of_program = match program {
        "make" | "gmake" => has("-n"),
        "ctest" => has("-N"),
        "tsc" => has("-w") || has("-v"),
        "gcc" | "g++" | "clang" | "clang++" => has("-v") && words.len() == 2,
        "go" => has("-c"),
        "gh" => has("--auto"),
        _ => false,
    };
    prints || of_program || words.len() == 2 && has("-h")
}

/// Classifies a command by its words; `None` if it checks and publishes nothing.
pub(super) fn class_of<W: AsRef<str>>(words: &[W]) -> Option<CheckClass> {
    let words = without_wrappers(words);
    let program = words.first()?.as_ref();
    let [sub, next] = subcommands(words);
    let has = |option: &str| words.iter().skip(1).any(|word| word.as_ref() == option);
    // Its options last, because most commands are of no class.
    class_by_name(words, program, [sub, next], &has).filter(|_| !only_asks(base(program), words))
}

/// The class of a command by its program and its subcommands.
fn class_by_name<W: AsRef<str>>(
    words: &[W],
    program: &str,
    [sub, next]: [&str; 2],
    has: &impl Fn(&str) -> bool,
) -> Option<CheckClass> {
    use CheckClass::{Build, Commit, Deploy, Format, Install, Lint, Merge, Push, Tests, Types};
    Some(match (base(program), sub) {
        ("git", "commit") if !has("--dry-run") => Commit,
        ("git", "push") if !has("--dry-run") && !has("-n") => Push,
        ("git", "merge") if !has("--abort") && !has("--quit") && !has("--squash") && !has("--no-commit") => Merge,
        ("gh", "pr") if next == "merge" => Merge,
        ("glab", "mr") if next == "merge" => Merge,

        ("cargo", "nextest") if !matches!(next, "run" | "r") => return None,
        ("cargo" | "cross", "test" | "t" | "nextest" | "llvm-cov" | "tarpaulin") if !has("--no-run") => Tests,
        ("cargo", "miri" | "xtask" | "hack" | "insta") if next == "test" => Tests,
        ("cargo", "build" | "b" | "rustc" | "bench" | "doc") => Build,
        ("cargo", "test" | "t" | "nextest") if has("--no-run") => Build,
        ("cargo", "check" | "c") => Types,
        ("cargo", "clippy" | "deny" | "audit" | "machete") => Lint,
        ("cargo", "fmt") => Format,
        ("cargo", "publish") => Deploy,
        ("cargo", "install" | "add" | "fetch" | "update") => Install,

        ("go", "test") => Tests,
        ("go", "build") => Build,
        ("go", "vet") => Lint,
        ("go", "fmt") => Format,
        ("go", "get" | "install") => Install,
        ("go", "mod") if matches!(next, "download" | "tidy") && !has("-diff") => Install,

        ("npm" | "pnpm" | "yarn" | "bun" | "deno" | "ni" | "nr" | "lerna" | "turbo" | "nx" | "rush", _) => {
            return package_manager(base(program), sub, next);
        }

        ("vitest" | "playwright" | "cypress", "list") => return None,
        (
            "pytest" | "py.test" | "jest" | "vitest" | "mocha" | "rspec" | "phpunit" | "ctest" | "tox" | "nox"
            | "nextest" | "unittest" | "ava" | "cypress" | "gotestsum" | "bats" | "pest" | "behat" | "karma" | "prove"
            | "busted" | "ginkgo" | "cargo-nextest" | "karate" | "minitest" | "nose2" | "trial" | "tap" | "uvu" | "c8"
            | "nyc",
            _,
        ) => Tests,
        ("playwright" | "wtr" | "web-test-runner" | "ng", "test") => Tests,
        ("node", _) if has("--test") => Tests,
        ("node", _) if has("--run") => {
            let task = words.iter().skip_while(|word| word.as_ref() != "--run").nth(1);
            return package_manager("npm", "run", task.map_or("", AsRef::as_ref));
        }
        ("mise", "run" | "r") => return package_manager("npm", "run", next),
        ("mix", "test" | "test.watch" | "coveralls") => Tests,
        ("mix", "compile" | "release") => Build,
        ("mix", "format") => Format,
        ("mix", "credo") => Lint,
        ("mix", "dialyzer") => Types,
        ("mix", "deps.get") => Install,
        ("rails" | "rake", "test" | "spec" | "test:all" | "test:system") => Tests,
        ("dotnet", "test") => Tests,
        ("dotnet", "build" | "publish") => Build,
        ("dotnet", "format") => Format,
        ("dotnet", "restore" | "add") => Install,
        (
            "swift" | "zig" | "cabal" | "stack" | "dart" | "flutter" | "bazel" | "bazelisk" | "buck2" | "pants" | "sbt"
            | "lein" | "meson",
            "test",
        ) => Tests,
        ("zig", "build") if next == "test" => Tests,
        ("swift" | "zig" | "cabal" | "stack" | "flutter" | "bazel" | "bazelisk" | "buck2", "build") => Build,
        ("dart" | "flutter", "analyze") => Lint,
        ("dart", "format") => Format,
        ("dart" | "flutter", "pub") => Install,
        ("sbt", "compile" | "package") => Build,
        ("mvn" | "mvnw", "test" | "verify" | "integration-test") => Tests,
        ("mvn" | "mvnw", "compile" | "package" | "install") => Build,
        ("mvn", "deploy") => Deploy,
        ("mvn" | "mvnw", "clean") => return maven_goal(next),
        ("gradle" | "gradlew", task) => return gradle_task(task, next),
        ("make" | "gmake" | "just" | "task" | "mage" | "invoke" | "ninja" | "doit", _) => {
            return targets_class(base(program), words);
        }
        ("cmake", _) if has("--build") => Build,
        (
            "webpack" | "rollup" | "esbuild" | "parcel" | "xcodebuild" | "msbuild" | "gcc" | "g++" | "clang"
            | "clang++" | "rustc" | "javac" | "meson" | "trunk" | "wasm-pack" | "maturin" | "tsup",
            _,
        ) => Build,
        ("vite" | "next" | "nuxt" | "ng" | "astro" | "docker" | "podman" | "hugo" | "remix", "build") => Build,
        (
            "tsc" | "vue-tsc" | "mypy" | "pyright" | "basedpyright" | "flow" | "svelte-check" | "srb" | "ty" | "pyre",
            _,
        ) => Types,
        (
            "eslint" | "flake8" | "pylint" | "golangci-lint" | "rubocop" | "shellcheck" | "stylelint" | "oxlint"
            | "ktlint" | "swiftlint" | "hadolint" | "yamllint" | "markdownlint" | "markdownlint-cli2" | "staticcheck"
            | "clippy-driver" | "phpstan" | "psalm" | "standard" | "xo" | "actionlint" | "tflint" | "bandit",
            _,
        ) => Lint,
        ("ruff", "format") => Format,
        ("ruff", "check" | "") => Lint,
        ("biome", "format") => Format,
        ("biome", "lint" | "check" | "ci") => Lint,
        ("next", "lint") => Lint,
        ("pre-commit" | "prek", "run") => Lint,
        (
            "prettier" | "black" | "gofmt" | "goimports" | "isort" | "rustfmt" | "dprint" | "clang-format"
            | "swiftformat" | "stylua",
            _,
        ) => Format,
        ("pip" | "pip3", "install") => Install,
        ("uv", "sync" | "add") => Install,
        ("uv", "pip") if next == "install" => Install,
        ("poetry" | "pdm" | "rye" | "pipenv", "install" | "add" | "sync") => Install,
        ("apt" | "apt-get" | "brew" | "gem" | "dnf" | "yum" | "conda" | "mamba", "install") => Install,
        ("apk" | "composer" | "bundle", "add" | "install" | "require") => Install,
        (
            "kubectl" | "terraform" | "tofu" | "pulumi" | "cdk" | "helm" | "fly" | "flyctl" | "vercel" | "netlify"
            | "wrangler" | "serverless" | "sls" | "firebase" | "gcloud" | "eb" | "twine" | "heroku"
            | "ansible-playbook" | "render" | "railway" | "surge",
            _,
        ) => return (deploys(base(program), sub, next) && !has("--check")).then_some(Deploy),
        ("gem", "push") | ("docker", "push") => Deploy,
        // A script of the project, run by a shell or by itself.
        ("sh" | "bash" | "zsh" | "dash", file) => return script_class(file, base(file)),
        (script, _) => return script_class(program, script),
    })
}

/// A script of the project: `./test.sh`, `scripts/run_tests`, `bin/check`.
fn script_class(program: &str, name: &str) -> Option<CheckClass> {
    let is_script = program.contains('/') || name.contains('.');
    let name = name.split('.').next().unwrap_or(name);
    match name {
        "test" | "tests" | "run_tests" | "run-tests" | "runtests" | "test_all" | "test-all" if is_script => {
            Some(CheckClass::Tests)
        }
        "build" if is_script => Some(CheckClass::Build),
        "lint" if is_script => Some(CheckClass::Lint),
        "deploy" if is_script => Some(CheckClass::Deploy),
        _ => None,
    }
}

fn package_manager(program: &str, sub: &str, next: &str) -> Option<CheckClass> {
    let task = match (program, sub) {
        ("npm" | "pnpm" | "yarn" | "bun" | "turbo" | "nx" | "lerna" | "deno", "run" | "run-script" | "task") => next,
        ("deno", "check") => return Some(CheckClass::Types),
        ("deno", "lint") => return Some(CheckClass::Lint),
        ("deno", "fmt") => return Some(CheckClass::Format),
        ("npm" | "pnpm" | "yarn" | "bun", "i" | "install" | "ci" | "add") => return Some(CheckClass::Install),
        ("yarn", "") => return Some(CheckClass::Install),
        ("npm" | "pnpm" | "yarn" | "bun", "publish") => return Some(CheckClass::Deploy),
        (_, task) => task,
    };
    // `nx run web:test`
    let task = if matches!(program, "nx") { task.rsplit(':').next().unwrap_or(task) } else { task };
    let (head, rest) = task.split_once([':', '-', '.']).unwrap_or((task, ""));
    if rest == "watch" || rest.ends_with(":watch") {
        return None;
    }
    match (head, rest) {
        ("t" | "test" | "tests" | "spec" | "e2e" | "vitest" | "jest", "ui") => None,
        ("t" | "test" | "tests" | "spec" | "e2e" | "vitest" | "jest", _) => Some(CheckClass::Tests),
        ("build" | "compile" | "bundle", _) => Some(CheckClass::Build),
        ("typecheck" | "types" | "tsc" | "type" | "check", "" | "types" | "check" | "ts" | "type")
            if head != "check" || !rest.is_empty() =>
        {
            Some(CheckClass::Types)
        }
        ("lint" | "eslint" | "stylelint", _) => Some(CheckClass::Lint),
        ("format" | "fmt" | "prettier", _) => Some(CheckClass::Format),
        ("verify" | "check", "") => Some(CheckClass::Tests),
        ("deploy", _) => Some(CheckClass::Deploy),
        _ => None,
    }
}

fn maven_goal(goal: &str) -> Option<CheckClass> {
    match goal {
        "test" | "verify" => Some(CheckClass::Tests),
        "install" | "package" | "compile" => Some(CheckClass::Build),
        _ => None,
    }
}

fn gradle_task(task: &str, next: &str) -> Option<CheckClass> {
    let name = |task: &str| task.rsplit(':').next().unwrap_or(task).to_ascii_lowercase();
    let task = if name(task) == "clean" { name(next) } else { name(task) };
    match task.as_str() {
        "check" => Some(CheckClass::Tests),
        task if task.ends_with("test") || task.starts_with("test") => Some(CheckClass::Tests),
        task if task.starts_with("assemble") || task.starts_with("build") || task.starts_with("compile") => {
            Some(CheckClass::Build)
        }
        task if task.contains("lint") => Some(CheckClass::Lint),
        _ => None,
    }
}

/// The class of the targets of a makefile: tests first.
fn targets_class<W: AsRef<str>>(program: &str, words: &[W]) -> Option<CheckClass> {
    let targets = words.iter().skip(1).map(AsRef::as_ref).filter(|word| !word.starts_with('-') && !word.contains('='));
    let classes: Vec<CheckClass> = targets.clone().filter_map(|target| target_class(program, target)).collect();
    match targets.count() {
        0 => target_class(program, ""),
        _ if classes.contains(&CheckClass::Tests) => Some(CheckClass::Tests),
        _ => classes.first().copied(),
    }
}

/// The class of a target of a makefile.
fn target_class(program: &str, target: &str) -> Option<CheckClass> {
    let (head, _) = target.split_once(['-', '_', ':']).unwrap_or((target, ""));
    Some(match head {
        "test" | "tests" | "check" | "verify" | "t" | "unittest" | "spec" | "ci" => CheckClass::Tests,
        "lint" | "clippy" | "vet" => CheckClass::Lint,
        "fmt" | "format" => CheckClass::Format,
        "typecheck" | "types" | "mypy" => CheckClass::Types,
        "install" | "deps" | "setup" => CheckClass::Install,
        "deploy" | "publish" => CheckClass::Deploy,
        "all" | "build" | "compile" | "bundle" => CheckClass::Build,
        // The first target of a makefile builds.
        "" if matches!(program, "make" | "gmake" | "ninja") => CheckClass::Build,
        _ => return None,
    })
}

fn deploys(program: &str, sub: &str, next: &str) -> bool {
    match (program, sub) {
        ("kubectl" | "terraform" | "tofu", "apply")
        | ("pulumi", "up")
        | ("helm", "install" | "upgrade")
        | ("twine", "upload")
        | ("render" | "railway", "up" | "deploy")
        | ("fly" | "flyctl" | "netlify" | "wrangler" | "serverless" | "sls" | "firebase" | "cdk" | "eb", "deploy")
        | ("wrangler", "publish")
        | ("vercel", "" | "deploy")
        | ("surge", _)
        | ("ansible-playbook", _) => true,
        ("gcloud", "app" | "run" | "functions") => next == "deploy",
        _ => false,
    }
}

/// Whether a command shows what other programs printed before: its output is no evidence of a run.
pub(super) fn shows_files<W: AsRef<str>>(words: &[W]) -> bool {
    let words = without_wrappers(words);
    let [sub, next] = subcommands(words);
    match (words.first().map_or("", |word| base(word.as_ref())), sub) {
        (
            "cat" | "bat" | "head" | "tail" | "less" | "more" | "grep" | "egrep" | "zgrep" | "zcat" | "rg" | "ag"
            | "sed" | "awk" | "jq" | "curl" | "wget" | "diff" | "journalctl" | "strings" | "tac" | "tmux" | "screen"
            | "Get-Content" | "type",
            _,
        ) => true,
        ("git", sub) => matches!(sub, "log" | "show" | "diff" | "blame" | "grep"),
        ("gh" | "glab", sub) => sub != "pr" || next != "merge",
        ("docker" | "podman" | "kubectl" | "heroku" | "fly" | "flyctl" | "docker-compose", "logs") => true,
        ("docker", "compose") => next == "logs",
        (python, _) if python.starts_with("python") => words.iter().any(|word| word.as_ref() == "-c"),
        _ => false,
    }
}

/// Whether a command runs no check whose result it could print.
pub(super) fn only_shows<W: AsRef<str>>(words: &[W]) -> bool {
    if shows_files(words) {
        return true;
    }
    let words = without_wrappers(words);
    let [sub, _] = subcommands(words);
    match (words.first().map_or("", |word| base(word.as_ref())), sub) {
        (
            "echo" | "printf" | "ls" | "find" | "fd" | "tree" | "wc" | "sort" | "uniq" | "cut" | "tr" | "tee" | "cd"
            | "xxd" | "column" | "ps" | "sleep" | "true" | "test" | "[" | "pwd" | "date" | "rm" | "mkdir" | "cp" | "mv"
            | "touch" | "chmod" | "wait" | "kill" | "export" | "source" | "." | "set" | "unset" | "which" | "pushd"
            | "popd",
            _,
        ) => true,
        ("git", sub) => matches!(sub, "status" | "stash" | "reflog" | "branch" | "fetch" | "add" | "checkout"),
        ("docker" | "podman" | "kubectl" | "docker-compose", "ps" | "get") => true,
        _ => false,
    }
}

/// Whether a line may contain a command of a class, by its words alone. Most lines are not parsed because of this.
pub(super) fn may_check(line: &str) -> bool {
    /// Maximum number of words of a part that may precede the program: assignments, keywords.
    const BEFORE: usize = 6;
    line.split([';', '&', '|', '(', ')', '{', '`', '\n']).any(|part| {
        let words: Vec<&str> = part.split_whitespace().map(|word| word.trim_matches(['\'', '"'])).collect();
        let mut assigns = false;
        for at in 0..words.len().min(BEFORE) {
            let word = words[at];
            if class_of(&words[at..]).is_some() || matches!(base(word), "sh" | "bash" | "zsh" | "dash") {
                return true;
            }
            // A value in quotes may have several words.
            assigns |= word.contains('=');
            let is_keyword = matches!(word, "then" | "do" | "else" | "if" | "while" | "until" | "!" | "eval");
            if !assigns && !is_keyword {
                return false;
            }
        }
        false
    })
}

/// The commands of a line by its words alone, without a parser: parts of quoted texts are among them.
pub(super) fn roughly(line: &str) -> impl Iterator<Item = Vec<&str>> {
    /// Number of words that decide what a command does.
    const WORDS: usize = 12;
    line.split([';', '&', '|', '(', ')', '{', '`', '\n']).filter_map(|part| {
        let words = part.split_whitespace().map(|word| word.trim_matches(['\'', '"']));
        let words: Vec<&str> = words.skip_while(|word| is_assignment(word)).take(WORDS).collect();
        // `2>&1` is cut in two.
        let is_rest = words.first().is_none_or(|word| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'>'));
        (!is_rest).then_some(words)
    })
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
}

/// Whether a command runs a task that the project defines.
pub(super) fn runs_a_task<W: AsRef<str>>(words: &[W]) -> bool {
    let words = without_wrappers(words);
    let program = words.first().map_or("", |word| word.as_ref());
    let program_name = base(program);
    runs_tasks(program_name) || matches!(program_name, "mvnw" | "tox" | "nox") || program.contains('/')
}

/// Whether a program runs tasks or scripts that the project defines.
fn runs_tasks(program: &str) -> bool {
    is_task_runner(program) || matches!(program, "npm" | "pnpm" | "yarn" | "bun" | "sh" | "bash")
}

/// Whether a program runs tasks that may consist of others: one that builds may also test.
fn is_task_runner(program: &str) -> bool {
    matches!(
        program,
        "make"
            | "gmake"
            | "just"
            | "task"
            | "mage"
            | "invoke"
            | "doit"
            | "rake"
            | "gradle"
            | "gradlew"
            | "mvn"
            | "nx"
            | "turbo"
            | "mise"
    )
}

/// Whether a program runs what its arguments or files of the project name.
fn runs_what_it_is_told(program: &str) -> bool {
    program.starts_with("python")
        || runs_tasks(program)
        || matches!(
            program,
            "node"
                | "deno"
                | "tsx"
                | "ts-node"
                | "ruby"
                | "perl"
                | "php"
                | "lua"
                | "elixir"
                | "iex"
                | "java"
                | "zsh"
                | "dash"
                | "fish"
                | "pwsh"
                | "powershell"
                | "npx"
                | "bunx"
                | "lerna"
                | "ninja"
                | "mix"
                | "cargo"
                | "go"
                | "dotnet"
                | "swift"
                | "bazel"
                | "zig"
                | "stack"
                | "cabal"
                | "uv"
                | "poetry"
                | "rails"
                | "docker"
                | "podman"
                | "docker-compose"
                | "kubectl"
                | "ssh"
                | "nix"
                | "nix-shell"
                | "devbox"
                | "act"
                | "entr"
                | "watchexec"
                | "script"
                | "eval"
                | "parallel"
                | "claude"
                | "codex"
                | "gemini"
        )
}

/// Whether a command that is no check may run checks without showing their results.
pub(super) fn is_opaque<W: AsRef<str>>(words: &[W]) -> bool {
    let words = without_wrappers(words);
    let Some(program) = words.first().map(AsRef::as_ref) else { return false };
    let [sub, next] = subcommands(words);
    let has = |options: &[&str]| words.iter().skip(1).any(|word| options.contains(&word.as_ref()));
    if words.len() == 1 && !program.contains('/') || has(&["--version", "--help"]) {
        return false;
    }
    match (base(program), sub) {
        // A program of the system, named by its path.
        _ if ["/bin/", "/usr/", "/opt/", "/sbin/"].iter().any(|folder| program.starts_with(folder))
            && !runs_what_it_is_told(base(program)) =>
        {
            false
        }
        ("node" | "ruby" | "perl" | "php" | "deno" | "bun", _) if has(&["-e", "-p", "-c", "--check", "-r"]) => false,
        ("npm" | "pnpm" | "yarn" | "bun", sub) => {
            matches!(sub, "run" | "run-script" | "exec" | "start" | "x" | "dlx")
                || program == "yarn" && !matches!(sub, "why" | "list" | "info" | "config" | "add" | "remove")
        }
        ("cargo", sub) => matches!(sub, "run" | "r" | "xtask" | "make" | "watch" | "hack" | "release"),
        ("go", sub) => matches!(sub, "run" | "generate" | "tool"),
        ("dotnet" | "swift" | "zig" | "stack" | "cabal" | "bazel", sub) => matches!(sub, "run" | "exec" | "script"),
        ("uv" | "poetry", sub) => sub == "run",
        ("rails", sub) => matches!(sub, "runner" | "r"),
        ("mix", sub) => !["ecto.", "phx.", "deps", "hex", "help", "archive", "local", "clean", "new", "xref"]
            .iter()
            .any(|known| sub.starts_with(known)),
        ("docker" | "podman", sub) => {
            matches!(sub, "run" | "exec" | "start") || sub == "compose" && matches!(next, "up" | "run" | "exec")
        }
        ("docker-compose", sub) => matches!(sub, "up" | "run" | "exec"),
        ("kubectl", sub) => matches!(sub, "exec" | "run"),
        (program_name, _) => program.contains('/') || runs_what_it_is_told(program_name),
    }
}

/// Whether a command that builds or checks may also run tests, as the lifecycles of build tools do.
pub(super) fn may_test(command: &str) -> bool {
    roughly(command).any(|words| {
        let words = without_wrappers(&words);
        let program = words.first().map_or("", |word| *word);
        program.contains('/')
            || is_task_runner(base(program))
            || matches!(
                base(program),
                "mvnw"
                    | "moon"
                    | "lerna"
                    | "rush"
                    | "xcodebuild"
                    | "sbt"
                    | "bazel"
                    | "bazelisk"
                    | "buck2"
                    | "pants"
                    | "inv"
                    | "docker"
                    | "podman"
                    | "tox"
                    | "nox"
                    | "pre-commit"
                    | "prek"
                    | "meson"
                    | "ninja"
            )
            || words.iter().skip(1).filter(|word| matches!(**word, "build" | "test" | "lint" | "check")).count() > 1
    })
}

/// What a command that is no check may do that capture does not see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unseen {
    Nothing,
    /// It may commit, push, merge or deploy.
    Publishes,
    /// It may run any check.
    Anything,
}

/// What a command that is no check, and not opaque, may do unseen. Only the programs of these lists are known.
pub(super) fn unseen<W: AsRef<str>>(words: &[W]) -> Unseen {
    let words = without_wrappers(words);
    let Some(program) = words.first().map(AsRef::as_ref) else { return Unseen::Nothing };
    if RUN_NO_CHECK.contains(base(program)) {
        return Unseen::Nothing;
    }
    let [sub, next] = subcommands(words);
    let has = |options: &[&str]| words.iter().skip(1).any(|word| options.contains(&word.as_ref()));
    if has(&["--version", "--help", "-V"]) {
        return Unseen::Nothing;
    }
    match (base(program), sub) {
        ("git", "") => Unseen::Nothing,
        ("git", sub) if GIT_SHOWS.contains(&sub) => Unseen::Nothing,
        ("git", _) => Unseen::Publishes,
        ("gh" | "glab", "pr" | "mr" | "issue" | "run" | "repo" | "release" | "workflow" | "search" | "gist")
            if matches!(
                next,
                "view" | "list" | "diff" | "checks" | "status" | "watch" | "clone" | "checkout" | "download"
            ) =>
        {
            Unseen::Nothing
        }
        ("gh" | "glab", "auth" | "status" | "search" | "config") => Unseen::Nothing,
        ("npm" | "pnpm" | "yarn" | "bun", "version") => Unseen::Publishes,
        (_, sub) if sub.contains("publish") || next.contains("publish") => Unseen::Publishes,
        ("npm" | "pnpm" | "yarn" | "bun", sub) if !PACKAGE_COMMANDS.contains(&sub) => Unseen::Anything,
        ("npm" | "pnpm" | "yarn" | "bun" | "cargo" | "go" | "pip" | "pip3" | "uv" | "poetry" | "mix" | "dotnet", _)
            if !matches!(sub, "run" | "exec") =>
        {
            // Their other subcommands that run checks are classified or opaque.
            Unseen::Nothing
        }
        ("docker" | "podman" | "docker-compose", "push" | "stack" | "buildx" | "service") => Unseen::Publishes,
        ("docker" | "podman" | "docker-compose", "build" | "compose" | "bake") => Unseen::Anything,
        ("docker" | "podman" | "docker-compose", _) => Unseen::Nothing,
        (name, sub)
            if PUBLISHES.contains(&name)
                && !matches!(sub, "lint" | "test" | "check" | "validate" | "build" | "verify") =>
        {
            Unseen::Publishes
        }
        _ => Unseen::Anything,
    }
}

/// Subcommands of package managers for JavaScript that run nothing of the project, except hooks of installations.
const PACKAGE_COMMANDS: &[&str] = &[
    "",
    "install",
    "i",
    "ci",
    "add",
    "remove",
    "rm",
    "uninstall",
    "un",
    "ls",
    "list",
    "ll",
    "outdated",
    "audit",
    "view",
    "info",
    "show",
    "why",
    "config",
    "init",
    "link",
    "unlink",
    "login",
    "logout",
    "whoami",
    "root",
    "bin",
    "prefix",
    "prune",
    "dedupe",
    "update",
    "up",
    "upgrade",
    "fund",
    "search",
    "cache",
    "store",
    "import",
    "create",
    "set",
    "get",
    "help",
    "ping",
    "doctor",
    "explain",
    "pkg",
    "fetch",
    "dist-tag",
    "owner",
    "token",
    "version",
    "workspaces",
    "licenses",
    "pm",
    "env",
    "patch",
];

/// Subcommands of git that neither commit nor push.
const GIT_SHOWS: &[&str] = &[
    "status",
    "log",
    "show",
    "diff",
    "add",
    "branch",
    "checkout",
    "switch",
    "restore",
    "stash",
    "fetch",
    "clone",
    "init",
    "config",
    "remote",
    "reset",
    "rm",
    "mv",
    "clean",
    "blame",
    "grep",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "rev-parse",
    "rev-list",
    "reflog",
    "describe",
    "tag",
    "worktree",
    "bisect",
    "shortlog",
    "cat-file",
    "check-ignore",
    "merge-base",
    "for-each-ref",
    "symbolic-ref",
    "apply",
    "name-rev",
    "count-objects",
    "gc",
    "fsck",
    "archive",
    "sparse-checkout",
    "notes",
    "var",
    "help",
    "version",
    "show-ref",
    "diff-tree",
    "hash-object",
    "whatchanged",
    "commit",
    "push",
    "merge",
];

/// Programs that may commit, push, merge or deploy, and run no checks.
const PUBLISHES: &[&str] = &[
    "gh",
    "glab",
    "hub",
    "tea",
    "jj",
    "hg",
    "sl",
    "svn",
    "gt",
    "cz",
    "gitmoji",
    "aws",
    "az",
    "gcloud",
    "kubectl",
    "helm",
    "terraform",
    "tofu",
    "pulumi",
    "rsync",
    "scp",
    "sftp",
    "ftp",
    "sam",
    "sst",
    "cap",
    "kamal",
    "argocd",
    "supabase",
    "nomad",
    "colmena",
    "deployctl",
    "clasp",
    "convex",
    "gh-pages",
    "semantic-release",
    "changeset",
    "vsce",
    "twine",
    "fly",
    "flyctl",
    "vercel",
    "netlify",
    "wrangler",
    "serverless",
    "sls",
    "firebase",
    "eb",
    "heroku",
    "render",
    "railway",
    "surge",
    "cdk",
    "ansible",
    "ansible-playbook",
    "nixos-rebuild",
    "systemctl",
    "service",
    "doctl",
    "oc",
    "skaffold",
    "copilot",
];

/// Programs that run no checks, commit nothing and publish nothing.
static RUN_NO_CHECK: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    HashSet::from([
        // Files and directories
        "ls",
        "ll",
        "cat",
        "bat",
        "head",
        "tail",
        "less",
        "more",
        "wc",
        "find",
        "fd",
        "tree",
        "stat",
        "file",
        "du",
        "df",
        "cp",
        "mv",
        "rm",
        "rmdir",
        "mkdir",
        "touch",
        "ln",
        "chmod",
        "chown",
        "realpath",
        "readlink",
        "basename",
        "dirname",
        "mktemp",
        "cmp",
        "diff",
        "patch",
        "tar",
        "zip",
        "unzip",
        "gzip",
        "gunzip",
        "zstd",
        "xz",
        "dd",
        "split",
        "shasum",
        "sha256sum",
        "md5sum",
        "md5",
        "base64",
        "xxd",
        "hexdump",
        "od",
        "strings",
        "install",
        "truncate",
        "sync",
        "tac",
        "rev",
        "fold",
        "nl",
        // Texts
        "grep",
        "egrep",
        "fgrep",
        "rg",
        "ag",
        "ack",
        "sed",
        "awk",
        "gawk",
        "cut",
        "tr",
        "sort",
        "uniq",
        "paste",
        "join",
        "comm",
        "tee",
        "jq",
        "yq",
        "column",
        "fmt",
        "expand",
        "iconv",
        "envsubst",
        "xmllint",
        "pandoc",
        "sponge",
        "seq",
        "printf",
        "echo",
        // The shell
        "cd",
        "pwd",
        "pushd",
        "popd",
        "export",
        "unset",
        "set",
        "source",
        ".",
        "true",
        "false",
        "test",
        "[",
        "[[",
        "exit",
        "return",
        "sleep",
        "wait",
        "kill",
        "pkill",
        "killall",
        "trap",
        "alias",
        "type",
        "which",
        "whereis",
        "command",
        "read",
        "local",
        "declare",
        "let",
        ":",
        "history",
        "jobs",
        "fg",
        "bg",
        "disown",
        "ulimit",
        "umask",
        "shopt",
        "if",
        "then",
        "else",
        "fi",
        "for",
        "do",
        "done",
        "while",
        "until",
        "case",
        "esac",
        "in",
        "function",
        "break",
        "continue",
        "date",
        "time",
        "yes",
        "clear",
        "nohup",
        // The system
        "ps",
        "top",
        "htop",
        "free",
        "uptime",
        "uname",
        "whoami",
        "id",
        "hostname",
        "env",
        "printenv",
        "lsof",
        "ss",
        "netstat",
        "ping",
        "dig",
        "nslookup",
        "host",
        "ip",
        "ifconfig",
        "curl",
        "wget",
        "nc",
        "journalctl",
        "dmesg",
        "crontab",
        "tmux",
        "screen",
        "open",
        "xdg-open",
        "pbcopy",
        "pbpaste",
        "say",
        "osascript",
        "defaults",
        "locale",
        "nproc",
        "lscpu",
        "mount",
        "stty",
        "tput",
        // Packages and versions
        "apt",
        "apt-get",
        "apt-cache",
        "dpkg",
        "brew",
        "dnf",
        "yum",
        "apk",
        "pacman",
        "snap",
        "gem",
        "pip",
        "pip3",
        "nvm",
        "fnm",
        "volta",
        "rustup",
        "pyenv",
        "rbenv",
        "asdf",
        "mise",
        "sdk",
        "conda",
        "mamba",
        "composer",
        "bundle",
        "corepack",
        "virtualenv",
        // Databases and data
        "sqlite3",
        "redis-cli",
        "createdb",
        "dropdb",
        "pg_isready",
        "bd",
    ])
});
