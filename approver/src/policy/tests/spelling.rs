//! A rule that denies applies to the command, not to its spelling.

use super::*;

/// A policy that denies one command, and allows everything else of the program.
fn denies(command: &str) -> Policy {
    let words: Vec<String> = command.split(' ').map(|word| format!("{word:?}")).collect();
    let program = &words[0];
    policy(&format!(
        "[[rule]]\nname = \"no\"\ndecision = \"deny\"\ncommand = [{}]\n[[rule]]\nname = \"yes\"\ndecision = \"allow\"\ncommand = [{program}, \"...\"]\n",
        words.join(", ")
    ))
}

#[track_caller]
fn check(command: &str, denied: &[&str], others: &[&str]) {
    let policy = denies(command);
    let wrong: Vec<String> = denied
        .iter()
        .map(|text| (text, true))
        .chain(others.iter().map(|text| (text, false)))
        .filter(|(text, right)| {
            let decision = policy.decide(&request(text), &facts());
            (decision.verdict == Verdict::Deny) != *right
        })
        .map(|(text, right)| format!("{} {text}", if right { "not denied:" } else { "denied:" }))
        .collect();
    assert!(wrong.is_empty(), "deny {command}\n{}", wrong.join("\n"));
}

#[test]
fn options_match_in_any_order_and_grouping() {
    check(
        "rm -rf",
        &[
            "rm -rf build",
            "rm -fr build",
            "rm -r -f build",
            "rm -f -r build",
            "rm -rfv build",
            "rm -vfr build",
            "rm -R -f build",
            "rm --recursive --force build",
            "rm --recursive -f build",
            "rm --recurs --forc build",
            "rm build -rf",
            "rm build -r -f --",
            "rm -fR build",
            "rm -r build -f other",
            "rm -rf -- build",
            "/bin/rm -rf x",
            "rm '-rf' x",
            "rm -r\"f\" x",
            "rm -\\rf x",
            "rm $'-rf' x",
            "rm \\\n-rf x",
            "rm -{r,f} x",
        ],
        &["rm build", "rm -r build", "rm -f build", "rm -v x", "rm -- -rf", "rmdir -p x", "rm -i -r x", "ls -rf"],
    );
    check(
        "chmod -R 777",
        &["chmod -R 777 x", "chmod --recursive 777 x", "chmod -vR 777 x", "chmod 777 x -R", "chmod -c --recurs 777 x"],
        &["chmod 777 x", "chmod -R 755 x", "chmod -v 777 x"],
    );
    check(
        "curl --insecure",
        &["curl -k https://x.test", "curl --insecure x", "curl -sk x", "curl -Lsk x -o y", "curl x --insec"],
        &["curl x", "curl -o -k x", "curl -H -k x", "curl -sS x"],
    );
    check(
        "docker run --privileged",
        &[
            "docker run --privileged x",
            "docker run -it --privileged x",
            "docker -H tcp://x run --privileged y",
            "podman ps; docker run x --privileged",
        ],
        &["docker run x", "docker ps", "docker build --privileged .", "docker run --name --privileged x"],
    );
    check("frob -xf", &["frob -xf", "frob -xzf", "frob -fx", "frob -x -f"], &["frob -x", "frob xf"]);
}

#[test]
fn a_subcommand_is_recognized_only_in_its_position() {
    check(
        "git push",
        &[
            "git push",
            "git push origin main",
            "git -C x push",
            "git -c k=v push",
            "git --git-dir x push",
            "git --git-dir=x push",
            "git --no-pager push",
            "git -C a -C b -c x=y --bare push -f",
            "git -C push push",
            "git --work-tree push push",
            "git --exec-path=/x push",
            "git --namespace a push",
            "git -p push",
        ],
        &[
            "git stash push",
            "git branch --list push",
            "git log --grep push",
            "git diff push",
            "git rev-parse push",
            "echo do not git push",
            "# git push later\ngit status",
            "git status # then git push",
            "git -C push status",
            "git commit -m push",
            "git commit -m 'git push'",
            "git checkout -b push",
            "git tag push",
            "git log --format push",
            "git show push",
            "git add push",
            "ls git push",
            "grep git push",
            "git config alias.p push",
            "git remote show push",
            "git -c push status",
            "git log -- push",
            "git help push",
            "git stash push -m x",
            "echo 'git push'",
            "echo \"# git push\"",
            "git status\n# git push\n",
            "cat README.md # git push",
        ],
    );
    check(
        "cargo publish",
        &["cargo publish", "cargo +nightly publish --dry-run", "cargo -q publish", "cargo --color never publish"],
        &["cargo test publish", "cargo run --bin publish", "cargo build -p publish"],
    );
    check(
        "npm install",
        &["npm install x", "npm i x", "npm add x", "npm --prefix a install", "npm -C a i"],
        &["npm test install", "npm run install", "npm --prefix install test"],
    );
    check(
        "docker rm",
        &["docker rm x", "docker --context y rm -f x"],
        &["docker run --rm x", "docker run rm", "docker ps --filter rm"],
    );
    check(
        "kubectl delete",
        &["kubectl delete pod x", "kubectl -n a delete pod x", "kubectl --context c delete -f x"],
        &["kubectl get delete", "kubectl -n delete get pods"],
    );
}

#[test]
fn all_forms_of_an_option_match_the_same_rule() {
    check(
        "git push --force",
        &[
            "git push --force",
            "git push -f",
            "git push --force-with-lease",
            "git push --force-with-lease=main:abc",
            "git push --force-if-includes",
            "git push --forc",
            "git push --fo origin",
            "git push origin +main",
            "git push origin +HEAD:main",
            "git push -uf origin main",
            "git push origin main -f",
            "git push -qf",
            "git -C x push -f",
            "git push --mirror",
            "git push -f -- origin",
        ],
        &[
            "git push",
            "git push origin main",
            "git push -u origin f",
            "git push --follow-tags",
            "git push -n",
            "git push -o -f",
            "git push --tags",
            "git fetch --force",
            "git push origin --no-force",
        ],
    );
    check(
        "git push --delete",
        &["git push -d origin x", "git push origin :x", "git push --del origin x"],
        &["git push origin a:b", "git push origin x"],
    );
    check(
        "git commit --no-verify",
        &["git commit -n -m x", "git commit -anm x", "git commit --no-ver -m x"],
        &["git commit -m -n", "git commit -m x", "git commit -am n"],
    );
    check(
        "git branch -D",
        &["git branch -D x", "git branch -d -f x", "git branch --delete --force x"],
        &["git branch -d x", "git branch x"],
    );
    check(
        "git reset --hard",
        &["git reset --hard", "git reset --har HEAD~1", "git reset HEAD~1 --hard"],
        &["git reset --soft HEAD~1", "git reset"],
    );
}

#[test]
fn disguises_stay_denied() {
    let push = denies("git push");
    let mut missed = Vec::new();
    for text in [
        "sudo git push",
        "sudo -u me git push",
        "sudo -- git push",
        "doas git push",
        "env git push",
        "env -i X=1 git push",
        "env -u A git push",
        "env -S 'git push'",
        "X=1 git push",
        "X=1 Y='a b' git push",
        "nice git push",
        "nice -n 5 git push",
        "nice -5 git push",
        "timeout 5 git push",
        "timeout -s KILL 5s git push",
        "timeout -k 1 5 git push",
        "echo origin | xargs git push",
        "xargs -n1 git push < x",
        "xargs -I{} git push {}",
        "nohup git push &",
        "setsid git push",
        "stdbuf -oL git push",
        "ionice -c 2 git push",
        "command git push",
        "exec git push",
        "builtin command git push",
        "time git push",
        "time -p git push",
        "! git push",
        "watch git push",
        "watch -n 5 'git push'",
        "bash -c 'git push'",
        "sh -c 'git push'",
        "bash -lc 'git push'",
        "bash -e -c 'git push'",
        "bash -c 'bash -c \"git push\"'",
        "zsh -c 'ls; git push'",
        "bash -o pipefail -c 'git push'",
        "eval git push",
        "eval 'git push'",
        "eval \"git push\"",
        "find . -exec git push \\;",
        "find . -name x -exec git push {} +",
        "find . -execdir git push ';'",
        "echo $(git push)",
        "echo \"$(git push)\"",
        "echo `git push`",
        "x=$(git push)",
        "ls \"`git push`\"",
        "(git push)",
        "( cd x && git push )",
        "{ git push; }",
        "for i in 1 2; do git push; done",
        "while true; do git push; done",
        "until git push; do :; done",
        "if true; then git push; fi",
        "if git push; then :; fi",
        "case x in x) git push;; esac",
        "f() { git push; }; f",
        "function f { git push; }; f",
        "bash <<'EOF'\ngit push\nEOF",
        "sh <<EOF\ngit push\nEOF",
        "cat <<'EOF' | sh\ngit push\nEOF",
        "bash <<< 'git push'",
        "echo 'git push' | sh",
        "printf 'git push\\n' | bash -s",
        "/usr/bin/git push",
        "./git push",
        "../bin/git push",
        "g\"i\"t push",
        "g'i't pu\"sh\"",
        "gi\\t push",
        "\\git push",
        "'git' 'push'",
        "git pu\\sh",
        "$'git' $'push'",
        "git $'\\x70ush'",
        "git \\\n  push",
        "git\\\n push",
        "git\tpush",
        "git -c alias.x=push x",
        "git -c alias.x='push -f' x",
        "git -c alias.x='!git push' x",
        "git --exec-path=/tmp push",
        "git -c a=b -c alias.Up=push up",
        "x=push; git $x",
        "x=git; $x push",
        "x='git push'; $x",
        "for c in status push; do git $c; done",
        "git $(echo push)",
        "$(printf git) push",
        "git ${x:-push}",
        "git pu$@sh",
        "git${IFS}push",
        "{git,push}",
        "git {push,origin}",
        "GIT push",
        "Git push",
        "/usr/b?n/g?t push",
        "git status && git push",
        "git status; git push",
        "git status | git push",
        "git status || git push",
        "git status & git push",
        "git status\ngit push",
        "true && (true; { sudo -n env A=b timeout 3 git push; })",
        "git submodule foreach git push",
        "git submodule foreach 'git push'",
        "git bisect run git push",
        "git rebase -x 'git push' main",
        "diff <(git push) x",
        "tee >(git push)",
        "trap 'git push' EXIT",
        "ssh host git push",
        "ssh host 'cd x && git push'",
        "su -c 'git push'",
        "flock x git push",
        "flock x -c 'git push'",
        "script -c 'git push'",
        "docker exec c git push",
        "npm exec -- git push",
        "poetry run git push",
        "unknown-wrapper --opt git push",
        "[[ -n $(git push) ]]",
        "echo $(( $(git push) ))",
        "cat <<EOF\n$(git push)\nEOF",
        "git push )",
        "git push '",
        "coproc git push",
        "noglob git push",
        "busybox git push",
        "parallel git push ::: a",
    ] {
        if push.decide(&request(text), &facts()).verdict != Verdict::Deny {
            missed.push(text);
        }
    }
    assert!(missed.is_empty(), "{} not denied:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn a_denied_command_far_into_a_long_line_is_denied() {
    let push = denies("git push");
    for text in [
        format!("for c in {}push; do git $c; done", "status ".repeat(100)),
        format!("for c in {}push; do git $c; done", "status ".repeat(2000)),
        format!("{}git push", "ls; ".repeat(3000)),
        format!("find . {} -exec git push \\;", "-exec true \\; ".repeat(50)),
        format!("{}git push", "sudo ".repeat(50)),
        format!("{}git push", "eval ".repeat(50)),
        format!("git push {}", "x".repeat(100_000)),
    ] {
        assert_eq!(push.decide(&request(&text), &facts()).verdict, Verdict::Deny, "{text:.60}");
    }
}

#[test]
fn deeply_nested_commands_are_never_allowed() {
    let push = denies("git push");
    let pairs = [
        ("(", ")"),
        ("((", "))"),
        ("( ", " )"),
        ("$(", ")"),
        ("\"$(", ")\""),
        ("{ ", "; }"),
        ("`", "`"),
        ("if ", "; then x; fi"),
        ("while ", "; do x; done"),
        ("${x:-", "}"),
        ("! ", ""),
        ("<(", ")"),
        ("$((", "))"),
        ("case x in x) ", ";; esac"),
        ("f() { ", "; }"),
        ("[[ ( ", " ) ]]"),
        ("bash -c '", "'"),
        ("eval ", ""),
        ("nice ", ""),
        ("sudo ", ""),
        ("for i in 1 2 3 4 5 6 7 8 9; do ", "; done"),
        ("find . -exec ", " \\;"),
        ("xargs ", ""),
        ("x=\"$x\"; ", ""),
        ("{a,", "}"),
    ];
    for (open, close) in pairs {
        for count in [3, 6, 8, 12, 400, 3000] {
            for text in [open.repeat(count) + "git push", open.repeat(count) + "git push" + &close.repeat(count)] {
                assert_ne!(push.decide(&request(&text), &facts()).verdict, Verdict::Allow, "{count} {text:.20}");
            }
        }
    }
}
