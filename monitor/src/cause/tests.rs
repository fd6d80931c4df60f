use proptest::prelude::*;

use super::{Cause, hang_cause};

/// The name of the cause.
fn named(command: &str, output: Option<&str>) -> Option<&'static str> {
    hang_cause(command, output, None).map(|found| found.cause.name())
}

/// Commands of which no output is known.
const BY_WORDS: &[(&str, &str)] = &[
    ("npx vitest", "watch"),
    ("vitest --watch", "watch"),
    ("cd web && npx vitest src/a.test.ts", "watch"),
    ("npx jest --watch", "watch"),
    ("yarn jest --watchAll src", "watch"),
    ("npx tsc -w", "watch"),
    ("npx tsc --noEmit --watch", "watch"),
    ("cargo watch -x test", "watch"),
    ("nodemon app.js", "watch"),
    ("npx nodemon --exec 'node app.js'", "watch"),
    ("node --watch app.js", "watch"),
    ("watch -n 5 kubectl get pods", "watch"),
    ("npm run test:watch", "watch"),
    ("./gradlew test --continuous", "watch"),
    ("git log", "pager"),
    ("git diff main", "pager"),
    ("git -C repo show HEAD", "pager"),
    ("man rsync", "pager"),
    ("less app.log", "pager"),
    ("journalctl -u nginx", "pager"),
    ("git commit", "editor"),
    ("git add -A && git commit -a", "editor"),
    ("git commit --amend", "editor"),
    ("git -C repo commit", "editor"),
    ("git rebase -i HEAD~3", "editor"),
    ("git rebase --continue", "editor"),
    ("git tag -a v1", "editor"),
    ("crontab -e", "editor"),
    ("sudo visudo", "editor"),
    ("vim src/main.rs", "editor"),
    ("nano notes.txt", "editor"),
    ("kubectl edit deployment web", "editor"),
    ("npm init", "question"),
    ("git add -p", "question"),
    ("passwd deploy", "password"),
    ("python3", "interactive"),
    ("/usr/bin/python3.12", "interactive"),
    ("node", "interactive"),
    ("psql -U app -h db shop", "interactive"),
    ("mysql -u root shop", "interactive"),
    ("redis-cli", "interactive"),
    ("sqlite3 app.db", "interactive"),
    ("irb", "interactive"),
    ("cat", "interactive"),
    ("cat > notes.txt", "interactive"),
    ("ftp ftp.example.org", "interactive"),
    ("read -p 'Continue?' answer", "interactive"),
    ("rails console", "interactive"),
    ("npm run dev", "server"),
    ("pnpm dev", "server"),
    ("cd web && npm run dev > dev.log 2>&1", "server"),
    ("npx vite --port 3000", "server"),
    ("npx next dev", "server"),
    ("bundle exec rails s", "server"),
    ("FLASK_APP=app.py flask run", "server"),
    ("python -m http.server 8000", "server"),
    ("python3 manage.py runserver 0.0.0.0:8000", "server"),
    ("uv run uvicorn app:main --reload", "server"),
    ("docker compose up", "server"),
    ("docker compose -f dev.yml up --build", "server"),
    ("source venv/bin/activate && flask run", "server"),
    ("if ! pgrep vite; then npm run dev; fi", "server"),
    ("npm run dev 2>&1 | tee dev.log", "server"),
    ("kubectl port-forward svc/web 8080:80", "server"),
    ("tail -f app.log", "follow"),
    ("tail -fn 100 app.log", "follow"),
    ("tail -f app.log | grep --line-buffered ERROR", "follow"),
    ("journalctl -fu nginx", "follow"),
    ("kubectl logs -f web-1", "follow"),
    ("docker logs -f web", "follow"),
    ("docker compose logs --follow web", "follow"),
    ("ping example.org", "follow"),
    ("bash -c 'tail -f app.log'", "follow"),
    ("while ! nc -z localhost 5432; do sleep 1; done", "wait_loop"),
    ("until curl -sf localhost:3000/health; do sleep 2; done; echo up", "wait_loop"),
    ("while true; do gh run view 5 | grep -q completed && break; sleep 30; done", "wait_loop"),
    ("sleep infinity", "wait_loop"),
    ("python3 -m pdb app.py", "debugger"),
    ("node inspect app.js", "debugger"),
    ("node --inspect-brk app.js", "debugger"),
    ("gdb ./server", "debugger"),
    ("gh auth login", "login"),
    ("gcloud auth login", "login"),
    ("az login", "login"),
];

/// Commands with the end of their output.
const BY_OUTPUT: &[(&str, &str, &str)] = &[
    (
        "npm test",
        " Test Files  1 passed (1)\n\n PASS  Waiting for file changes...\n       press h to show help, press q to quit\n",
        "watch",
    ),
    ("npx tsc -w", "[10:00:00] Found 0 errors. Watching for file changes.\n\n", "watch"),
    ("git log --stat", "commit 1234\nAuthor: A\n\n    change\n:", "pager"),
    ("gh pr list", "#1  change\n(END)", "pager"),
    ("systemctl status nginx", "active\nlines 1-23", "pager"),
    ("git merge topic", "hint: Waiting for your editor to close the file... ", "editor"),
    ("sudo make install", "[sudo] password for deploy: ", "password"),
    ("echo x | sudo tee /etc/motd", "[sudo] password for deploy: ", "password"),
    ("ssh web uptime", "deploy@web's password: ", "password"),
    ("ssh-add", "Enter passphrase for /home/deploy/.ssh/id_ed25519: ", "password"),
    ("git push", "Username for 'https://github.com': ", "password"),
    ("git pull --rebase && make", "Password for 'https://deploy@github.com': ", "password"),
    ("gpg -c notes.txt", "Enter passphrase: ", "password"),
    ("ssh web uptime", "Are you sure you want to continue connecting (yes/no/[fingerprint])? ", "host_key"),
    ("apt install sl", "After this operation, 1 kB will be used.\nDo you want to continue? [Y/n] ", "question"),
    ("npx cowsay hi", "Need to install the following packages:\ncowsay@1.6.0\nOk to proceed? (y) ", "question"),
    ("conda create -n a numpy", "Proceed ([y]/n)? ", "question"),
    ("pip uninstall requests", "Would remove:\n  /x\nProceed (Y/n)? ", "question"),
    ("terraform apply", "  Only 'yes' will be accepted to approve.\n\n  Enter a value: ", "question"),
    ("./deploy.sh", "Deploy to production? [y/N] ", "question"),
    (
        "npm create vite@latest",
        "? Select a framework: › - Use arrow-keys. Return to submit.\n❯   Vanilla\n    Vue\n",
        "question",
    ),
    ("python3 -i setup.py", "loaded\n>>> ", "interactive"),
    ("docker run -it postgres psql", "psql (16.1)\n\npostgres=# ", "interactive"),
    ("npm start", "> web@1.0.0 start\n> node app.js\n\nListening on port 3000\n", "server"),
    ("python app.py", " * Running on http://127.0.0.1:5000\nPress CTRL+C to quit\n", "server"),
    ("cargo build", "    Blocking waiting for file lock on build directory\n", "lock"),
    (
        "sudo apt-get install -y jq",
        "Waiting for cache lock: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4711 (apt)... 3s",
        "lock",
    ),
    (
        "npx nodemon app.js",
        "Error: listen EADDRINUSE: address already in use :::3000\n[nodemon] app crashed - waiting for file changes before starting...\n",
        "watch",
    ),
    ("node app.js", "Error: listen EADDRINUSE: address already in use :::3000\n", "port"),
    (
        "pip install requests",
        "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError: Failed to establish a new connection: [Errno -3] Temporary failure in name resolution'\n",
        "network",
    ),
    (
        "cargo fetch",
        "warning: spurious network error (3 tries remaining): [6] Could not resolve host: index.crates.io\n",
        "network",
    ),
    ("./sync.sh", "API rate limit exceeded, retrying in 900 s\n", "rate_limit"),
    ("pytest", "> /app/test_a.py(3)test_a()\n-> x = 1\n(Pdb) ", "debugger"),
    (
        "gh auth login --web",
        "! First copy your one-time code: AAAA-BBBB\nPress Enter to open https://github.com/login/device in your browser...",
        "login",
    ),
];

/// Commands that have no cause, or of which the cause is not certain.
const NONE: &[&str] = &[
    "npx vitest run",
    "npx vitest --run src",
    "CI=1 npx vitest",
    "export CI=1 && npx vitest",
    "env CI=true npx vitest",
    "npx vitest --watch=false",
    "npx vitest &",
    "npx vitest --version",
    "npx jest",
    "npx jest --watch=false",
    "npx tsc --noEmit",
    "npm test",
    "CI=1 npm test",
    "cargo test",
    "cargo build --release",
    "git commit -m 'watch mode: vitest --watch'",
    "git commit -am fix",
    "git commit -F message.txt",
    "git commit --amend --no-edit",
    "git commit -F - <<'EOF'\nnpx vitest\nEOF",
    "GIT_EDITOR=true git rebase --continue",
    "git -c core.editor=true commit",
    "GIT_SEQUENCE_EDITOR=: git rebase -i HEAD~3",
    "git rebase main",
    "git tag -a v1 -m one",
    "GIT_PAGER=cat git log",
    "git --no-pager log",
    "git log | cat",
    "git log > log.txt",
    "(git log; git diff) | head -50",
    "git log -5 --oneline",
    "git log -S needle",
    "git log -Sneedle",
    "git blame -L1,5 a.txt",
    "git reflog expire --all",
    "git diff --output=a.patch",
    "git stash show -p",
    "cat -n app.log",
    "wc -c app.log",
    "git -c core.pager=cat diff",
    "git log && cargo build",
    "man -k socket",
    "man rsync | col -b",
    "less app.log | head",
    "cat app.log | less",
    "journalctl --no-pager -u nginx",
    "journalctl -n 50 -u nginx",
    "crontab -l",
    "visudo -c",
    "vim -es -c ':wq' a.txt",
    "vim +PlugInstall +qall",
    "npm init -y",
    "yes | npm init",
    "yes | apt install sl",
    "apt-get install -y sl",
    "apt install sl",
    "python3 train.py",
    "python3 -c 'input()'",
    "python3 < script.py",
    "python3 - <<'EOF'\nprint(1)\nEOF",
    "echo 'select 1' | psql shop",
    "psql -c 'select 1' shop",
    "psql -f dump.sql shop",
    "mysql -e 'select 1'",
    "mysql -p shop",
    "mysql shop < dump.sql",
    "redis-cli -h cache ping",
    "redis-cli ping",
    "sqlite3 app.db '.tables'",
    "sqlite3 app.db < schema.sql",
    "cat app.log",
    "cat <<'EOF' > a.txt\nx\nEOF",
    "cat <(ls)",
    "xargs cat < files.txt",
    "read -t 5 answer",
    "read answer < answer.txt",
    "while read line; do sleep 1; done < list.txt",
    "npm run dev &",
    "npm run dev > dev.log 2>&1 & sleep 5; curl -s localhost:3000",
    "(npm run dev &) ; sleep 20",
    "nohup npm run dev > /dev/null 2>&1 &",
    "npm run dev -- --help",
    "npm run build && npm run dev",
    "npm run build",
    "vite build",
    "docker compose up -d",
    "docker compose up --abort-on-container-exit",
    "docker compose build",
    "python -m pytest",
    "timeout 5 tail -f app.log",
    "timeout 60 bash -c 'tail -f app.log'",
    "timeout 30 npm run dev",
    "setsid -f npm run dev",
    "docker exec -d web npm run dev",
    "sudo -b tail -f app.log",
    "docker compose up migrate",
    "source build.sh && npm run dev",
    "command npm ci && npm run dev",
    "TOKEN=$(vault login) npm run dev",
    "X=`make`; npm run dev",
    "npm run dev & wait",
    "npm run dev | head -20",
    "npm ci; npm run dev",
    "psql -qAtXc 'select 1'",
    "kubectl rollout status deployment/web",
    "gh run watch 5",
    "tail -f app.log | head -1",
    "tail -f app.log | grep -m1 ready",
    "tail -f app.log | sed '/ready/q'",
    "tail -n 100 app.log",
    "tail -f --pid=123 app.log",
    "kubectl logs web-1",
    "docker logs web",
    "ping -c 3 example.org",
    "sleep 600",
    "sleep 30 && gh run view 5",
    "for i in $(seq 30); do curl -sf localhost:3000 && break; sleep 1; done",
    "i=0; while ! nc -z localhost 80 && [ $i -lt 30 ]; do sleep 1; i=$((i+1)); done",
    "timeout 60 bash -c 'until nc -z localhost 80; do sleep 1; done'",
    "while true; do make; done",
    "until pg_isready; do sleep 1; done && cargo test",
    "(while true; do date; sleep 5; done) & cargo test",
    "python3 app.py --pdb",
    "gdb -batch -ex run ./server",
    "gh auth login --with-token < token.txt",
    "gh auth status",
    "az login --service-principal -u x -p y",
    "echo 'npm run dev'",
    "grep -r 'tail -f' docs",
    "bash -c 'echo vitest --watch'",
    "rg 'git commit' && make",
    "for f in *.py; do python $f; done",
    "if [ -f a ]; then npm run dev; else npm run build; fi",
    "curl localhost || npm run dev",
    "dev() { npm run dev; }",
    "echo $(cat)",
    "\"unclosed",
    "",
];

/// Commands with an output that shows no cause.
const NONE_BY_OUTPUT: &[(&str, &str)] = &[
    ("npx vitest", " RUN  v3.0.0\n\n ✓ src/a.test.ts (3 tests)\n ✓ src/b.test.ts"),
    ("git commit", "ruff.....Passed\npytest..."),
    ("git log --stat", "commit 1234\nAuthor: A\n\n    change\n"),
    ("cargo test", "key:\n:\n"),
    ("cargo test", "test a ... ok\nvalue:\n:"),
    ("psql shop", "INSERT 0 1\n"),
    ("make", "Checking password: ok\nCompiling a.c"),
    ("make", "[sudo] password for deploy: \nCompiling a.c\n"),
    ("pytest", "test_password: PASSED\n"),
    ("yes | apt install sl", "Do you want to continue? [Y/n] "),
    ("apt install sl < answers.txt", "Do you want to continue? [Y/n] "),
    ("apt install sl &", "Do you want to continue? [Y/n] "),
    ("timeout 20 ./deploy.sh", "Deploy to production? [y/N] "),
    ("apt-get install -y sl", "Do you want to continue? [Y/n] y\nGet:1 http://deb.example.org sl 5.02\n"),
    ("make", "usage: make [y/n] [options]\ncompiling"),
    ("cargo build", "    Blocking waiting for file lock on build directory\n   Compiling a v0.1.0\n"),
    ("node app.js", "port 3000 is in use, trying another one...\nrunning\n"),
    ("pip install requests", "Collecting requests\n  Downloading requests.whl (64 kB)\n"),
    ("curl https://example.org", "curl: (6) Could not resolve host: example.org\n"),
    ("cargo test", "test rate_limit ... ok\ntest too_many ... ok\n"),
    ("npm test", "Listening on port 3000\n"),
    ("cargo test", "running 3 tests\nhttp://localhost:3000\n"),
    ("npm run build", "transforming...\n"),
    ("python3 train.py", "epoch 1\nepoch 2\n"),
    ("python3 train.py", "loss > "),
    ("GIT_PAGER=cat git log", "commit 1\n:"),
];

#[test]
fn the_words_of_a_command_name_its_cause() {
    for output in [None, Some("")] {
        let wrong = BY_WORDS.iter().filter(|(command, cause)| named(command, output) != Some(*cause));
        let wrong: Vec<_> = wrong.map(|(command, cause)| (command, cause, named(command, output))).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

#[test]
fn the_end_of_the_output_names_the_cause() {
    let wrong = BY_OUTPUT.iter().filter(|(command, output, cause)| named(command, Some(output)) != Some(*cause));
    let wrong: Vec<_> = wrong.map(|(command, output, _)| (command, named(command, Some(output)))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_cause_is_named_without_certainty() {
    let all = NONE.iter().map(|command| (*command, None));
    let all = all.chain(NONE_BY_OUTPUT.iter().map(|(command, output)| (*command, Some(*output))));
    let wrong: Vec<_> = all.filter_map(|(command, output)| Some((command, named(command, output)?))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_cause_says_what_unblocks_it() {
    for (command, unblock) in [
        ("npx vitest", "`npx vitest run`"),
        ("npx jest --watch src", "`npx jest src`"),
        ("git commit -a", "`git commit -a -m …`"),
        ("git -C repo log", "`git --no-pager log …`"),
        ("tail -fn 100 app.log", "`tail -n 100 app.log`"),
        ("npm run dev", "`npm run dev > server.log 2>&1 &`"),
        ("docker compose up", "`docker compose up -d`"),
        ("while ! nc -z db 5432; do sleep 1; done", "limit it with `timeout 60 …`"),
    ] {
        assert_eq!(hang_cause(command, None, None).unwrap().unblock, unblock, "{command}");
    }
    let asks = hang_cause("sudo make", Some("[sudo] password for a: "), None).unwrap();
    assert_eq!((asks.unblock.as_str(), asks.is_shown), ("`sudo -n …`", true));
    let lock = hang_cause("apt-get upgrade", Some("Waiting for cache lock: held by process 4711 (apt)"), None).unwrap();
    assert_eq!(lock.waits, "waits for a lock that process 4711 holds");
}

#[test]
fn a_suggestion_contains_no_secret() {
    let command = "tail -f log --token=ghp_x7Kq2mZ9vB4nL1pR8sT5wY3cD6fG0hJ2aQeU";
    let unblock = hang_cause(command, None, None).unwrap().unblock;
    assert!(!unblock.contains("ghp_x7"), "{unblock}");
}

#[test]
fn long_and_nested_input_takes_little_time() {
    let deep = |open: &str, close: &str, n: usize| format!("{}tail -f a{}", open.repeat(n), close.repeat(n));
    let commands = [
        "a ".repeat(1 << 20),
        "a; ".repeat(1_300),
        "npx vitest -a ".repeat(290),
        deep("(", ")", 1_000),
        deep("$(", ")", 1_000),
        deep("while true; do ", "; done", 40),
        deep("if a; then ", "; fi", 100),
        deep("case a in a) ", ";; esac", 60),
        "'".repeat(4_000),
        "<<E ".repeat(1_000),
    ];
    let outputs = ["x".repeat(8 << 20), "\u{1b}[".repeat(1 << 20), "(".repeat(1 << 20), "é\n".repeat(1 << 20)];
    for command in &commands {
        for output in &outputs {
            // Exponential time would exceed the time limit of the test.
            assert_eq!(hang_cause(command, Some(output), Some(output)), None, "{:.40}", command);
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_examined_without_panic(
        command in "\\PC{0,200}",
        output in proptest::option::of("(?s).{0,200}"),
        screen in proptest::option::of("(?s).{0,200}"),
    ) {
        let _ = hang_cause(&command, output.as_deref(), screen.as_deref());
    }

    #[test]
    fn any_line_of_shell_words_is_examined_without_panic(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "vitest", "git", "commit", "tail", "-f", "|", "&&", ";", "&", "(", ")", "while", "do", "done", "sleep",
                "'", "\"", "$(", "<<E", "\n", "<", ">", "npx", "timeout", "5", "bash", "-c", "cat", "-", "--", "=",
            ]),
            0..40,
        ),
        output in prop::sample::select(vec!["", ":", "[y/N]", "(END)", ">>> ", "password:", "(", "[", ")y("]),
    ) {
        let _ = hang_cause(&words.join(" "), Some(output), None);
    }
}

#[test]
fn every_cause_has_a_name_and_words_of_its_own() {
    use Cause::*;
    let all = [
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
    ];
    let texts: std::collections::BTreeSet<&str> =
        all.iter().flat_map(|cause| [cause.name(), cause.waits(), cause.advice()]).collect();
    assert_eq!(texts.len(), 3 * all.len());
    assert!(BY_WORDS.len() + BY_OUTPUT.len() >= 60 && NONE.len() + NONE_BY_OUTPUT.len() >= 60);
}
