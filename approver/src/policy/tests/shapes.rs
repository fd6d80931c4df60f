//! Harmless lines in other forms than a plain command are understood, and dangerous ones are not allowed because of the
//! form.

use super::*;

fn workspace() -> StubFacts {
    let mut facts = facts();
    for name in [
        "xargs",
        "nice",
        "sort",
        "head",
        "tail",
        "stat",
        "sed",
        "awk",
        "uniq",
        "basename",
        "env",
        "stdbuf",
        "ionice",
        "file",
        "sha256sum",
        "cut",
        "tr",
        "date",
        "sleep",
    ] {
        facts.programs.insert(name.into(), format!("/usr/bin/{name}").into());
    }
    facts
        .with_file("/home/dev/w/.git/config", "[core]\n\tfilemode = true\n")
        .with_file("/home/dev/w/src/a.rs", "fn main() {}\n")
        .with_file("/home/dev/w/src/b.rs", "")
        .with_file("/home/dev/w/docs/a.md", "hi\n")
        .with_file("/home/dev/w/package.json", "{}")
        .with_file("/home/dev/w/README.md", "")
}

fn verdicts(facts: &StubFacts, right: Verdict, texts: &[&str]) {
    let policy = Policy::preset(Preset::ReadOnly);
    let facts = StubFacts { files: facts.files.clone(), ..facts.clone() };
    let wrong: Vec<String> =
        texts
            .iter()
            .map(|text| (text, policy.decide(&request(text), &facts)))
            .filter(|(_, decision)| {
                if right == Verdict::Allow { decision.verdict != right } else { decision.verdict == Verdict::Allow }
            })
            .map(|(text, decision)| format!("{text:?}: {} {}", decision.verdict, decision.reason))
            .collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn harmless_shell_constructs_are_allowed() {
    // `out` leads outside, so no link may be among the listed files.
    let facts = StubFacts { links: BTreeMap::new(), ..workspace() };
    verdicts(
        &facts,
        Verdict::Allow,
        &[
            "for f in src/*.rs; do wc -l \"$f\"; done",
            "for i in 1 2 3; do echo $i; done",
            "for f in src/a.rs docs/a.md; do echo \"== $f\"; head -5 \"$f\"; done",
            "for f in src/*.rs\ndo\n\twc -l \"$f\"\ndone",
            "for d in src docs; do ls $d | head -3; done",
            "for d in src docs; do (cd \"$d\" && ls); done",
            "for f in $(find src -name '*.rs'); do wc -l $f; done",
            "for a in src docs; do for b in a.rs a.md; do cat \"$a/$b\"; done; done",
            "find . -name '*.rs' -print0 | xargs -0 grep -n main",
            "find . -name '*.rs' | xargs wc -l",
            "find . -type f | xargs -n 1 basename",
            "find src -type f | head -5 | xargs -I{} wc -l {}",
            "find . -name '*.md' -o -name '*.rs' | xargs cat",
            "find . \\( -name '*.md' -o -name '*.rs' \\) -type f | sort | xargs head -2",
            "rg -l main src | xargs wc -l",
            "rg --files src | xargs wc -l",
            "grep -rl main src | xargs sed -n 1,5p",
            "ls | xargs stat",
            "find src -type f -exec wc -l {} +",
            "find . -name '*.rs' -exec grep -l main {} \\;",
            "find src -type f -exec head -3 {} \\; -print",
            "find . -name '*.md' -type f -exec cat {} +",
            "find src -name '*.rs' | while read -r f; do wc -l \"$f\"; done",
            "find src -name '*.rs' -print0 | while IFS= read -r -d '' f; do head -1 \"$f\"; done",
            "cat docs/a.md | while read -r l; do echo \"$l\"; done",
            "while read -r a b; do echo \"$b\"; done < docs/a.md",
            "while IFS= read -r line; do printf '%s\\n' \"$line\"; done < README.md",
            "ls src\n\nls docs\n",
            "ls src # entry points\n# and\nls docs",
            "grep -rn main src   # don't look elsewhere",
            "FOO=1 ls src",
            "FOO=true BAR= ls src",
            "LANG=C grep -c hi docs/a.md",
            "LC_ALL=en_US.UTF-8 sort docs/a.md",
            "NO_COLOR=1 ls",
            "TZ=Europe/Berlin date",
            "env LC_ALL=C sort docs/a.md",
            "[[ -f package.json ]] && cat package.json",
            "[[ -d src ]]; echo $?",
            "if [[ ! -f x ]]; then echo no; fi",
            "if [ -f package.json ]; then cat package.json; else echo none; fi",
            "if grep -q hi docs/a.md; then echo yes; elif ls; then echo no; fi",
            "cd \"$(git rev-parse --show-toplevel)\" && ls",
            "cd $(git rev-parse --show-toplevel) && cat README.md",
            "ls \"$(git rev-parse --show-toplevel)/src\"",
            "echo \"$(pwd)\"",
            "echo $HOME",
            "echo \"$PWD\"",
            "echo \"home: $HOME, path: ${PATH}\"",
            "ls \"$PWD/src\"",
            "ls $PWD",
            "echo \"$(ls src | wc -l) files\"",
            "echo $(ls src | wc -l)",
            "time ls src",
            "time -p ls src",
            "nice ls",
            "nice -n 10 ls src",
            "timeout 10 ls",
            "timeout 5s grep -rn main src",
            "timeout 10 git status",
            "command ls src",
            "stdbuf -oL ls",
            "{ ls src; ls docs; }",
            "(ls src; ls docs)",
            "(cd src && ls)",
            "( ls src ) | wc -l",
            "{ ls src; ls docs; } | sort",
            "! grep -q foo docs/a.md",
            "! ls nothing 2>/dev/null",
            "cat <<'EOF'\nhello $x `y`\nEOF",
            "cat <<EOF\nhello\nEOF\nls",
            "wc -l <<< 'a b'",
            "cd src\nls",
            "cd src; ls",
            "n=3; echo $n",
            "dir=src; ls \"$dir\"",
            "f=src/a.rs\nwc -l $f\nhead -3 $f",
            "count=$(ls src | wc -l); echo \"$count\"",
            "ls src &>/dev/null && echo yes",
            "echo problem >&2",
            "ls \\\n  -la \\\n  src",
            "ls -la &&\n  cat README.md |\n  head -3",
            "bash -lc 'for f in src/*.rs; do wc -l \"$f\"; done'",
            "until [ -f README.md ]; do sleep 1; done",
            "for f in ./src/*.rs; do wc -l \"$f\"; done",
            "for x in a b; do [ \"$x\" = a ] && echo \"$x\"; done",
            "[ -n \"$HOME\" ] && echo set",
        ],
    );
}

#[test]
fn unsafe_commands_in_shell_constructs_are_not_allowed() {
    let facts = workspace()
        .with_file("/home/dev/w/.env", "KEY=x")
        .with_file("/home/dev/w/src/-e", "")
        .with_file("/home/dev/w/odd/a b.rs", "")
        .with_link("/home/dev/w/docs/link.md", "/home/dev/w/.env");
    verdicts(
        &facts,
        Verdict::Ask,
        &[
            "for f in .env; do cat \"$f\"; done",
            "for f in README.md .env; do cat $f; done",
            "for f in /etc/passwd; do cat $f; done",
            "for f in '-rf'; do rm $f; done",
            "for c in ls touch; do $c x; done",
            "for f in README.md; do cat $f; f=.env; done",
            "for f in a; do cat \".e${g}nv\"; done",
            "for p in en; do cat .${p}v; done",
            "for f in src/*.rs; do touch \"$f\"; done",
            "for f in *; do cat \"$f\"; done",
            "for f in docs/*; do cat $f; done",
            "for i in 1; do ls; done > pwned",
            "for i in $(touch pwned); do ls; done",
            "for f in $(cat list); do cat \"$f\"; done",
            "for x in 'a b'; do cat $x; done",
            "for f in a; do cd ..; cat README.md; done",
            "for d in src ..; do (cd $d && ls); done",
            "for PATH in .; do ls; done",
            "for f in a; do ls; done; cat $f",
            "find . -print0 | xargs -0 cat",
            "find . -type f -print0 | xargs -0 grep KEY",
            "find docs | xargs cat",
            "find odd -type f | xargs cat",
            "find src | xargs stat",
            "find . -name '.env' | xargs cat",
            "find . -name '*' | xargs cat",
            "find . -name '*.rs' -o -type f | xargs cat",
            "find . ! -name '*.rs' | xargs cat",
            "find / -name '*.rs' | xargs cat",
            "find .. -name '*.rs' | xargs wc -l",
            "find . -name '*.rs' | xargs rm",
            "find . -name '*.rs' | xargs touch",
            "find . -name '*.rs' | xargs sh -c 'cat .env'",
            "find . -name '*.rs' | xargs uniq",
            "find . -name '*.rs' | xargs -I{} sh -c 'cat {}'",
            "find . -name '*.rs' | xargs -I% cat .env",
            "find . -name '*.rs' | xargs grep -r KEY",
            "find . -type d | xargs grep -r KEY",
            "find . -name '*.rs' -printf '.env\\n' | xargs cat",
            "find src -name '*.rs' | sed 's/.*/.env/' | xargs cat",
            "find src -name '*.rs' | head -c 3 | xargs cat",
            "find src -name '*.rs' | grep -o e | xargs cat",
            "find . -name '*.rs' | (cd docs && xargs cat)",
            "echo .env | xargs cat",
            "cat list | xargs cat",
            "printf '.env' | xargs cat",
            "xargs cat < list",
            "xargs -a list cat",
            "ls | xargs cat",
            "rg --files | xargs rg x",
            "git ls-files | xargs cat",
            "find . -name '*.rs' -exec touch {} +",
            "find . -exec cat {} +",
            "find . -name '*.rs' -exec cat .env \\;",
            "find . -name '*.rs' -exec sh -c 'id' \\;",
            "find . -name '*.rs' -execdir cat {} +",
            "find . -name '*.rs' -ok cat {} \\;",
            "find . -name '*.rs' -exec uniq {} x \\;",
            "find . -name '*.rs' -exec cat x{} \\;",
            "find docs -exec cat {} +",
            "find . -type d -exec grep -r KEY {} +",
            "find . -name '*.rs' | while read -r f; do rm \"$f\"; done",
            "find . | while read -r f; do cat \"$f\"; done",
            "find . -name '*.rs' | while read f; do cat \"$f\"; done",
            "echo .env | while read -r f; do cat \"$f\"; done",
            "cat list | while read -r l; do eval \"$l\"; done",
            "cat list | while read -r l; do cat \"$l\"; done",
            "cat list | while read -r l; do echo $l; done",
            "cat list | while read -r l; do $l; done",
            "while read -r l; do echo \"$l\"; done < .env",
            "while read -r l; do echo \"$l\"; done < /etc/passwd",
            "while touch x; do ls; done",
            "ls src # a\ntouch pwned",
            "ls src\ntouch pwned",
            "PATH=. ls",
            "LD_PRELOAD=./x.so ls",
            "GIT_DIR=vendor/.git git log",
            "GIT_EXTERNAL_DIFF=x git diff",
            "PAGER=x git log",
            "BASH_ENV=x ls",
            "IFS=x ls",
            "FOO=./x ls",
            "FOO=$(touch pwned) ls",
            "LANG=../x ls",
            "TZ=/etc/passwd date",
            "RIPGREP_CONFIG_PATH=1 rg x",
            "PATH=x; ls",
            "path=x; ls",
            "x=.env; cat $x",
            "x=.env; cat \"$x\"",
            "x=e; cat .${x}nv",
            "x=touch; $x pwned",
            "x=README.md; x=.env; cat $x",
            "false || x=1; echo $x",
            "cat \"$x\"",
            "cat $HOME/.ssh/id_rsa",
            "cat \"$HOME/.bashrc\"",
            "ls $HOME",
            "ls \"$PWD/..\"",
            "cat \"$PWD/.env\"",
            "echo \"$AWS_SECRET_ACCESS_KEY\"",
            "echo $TOKEN",
            "echo \"${HOME:-x}\"",
            "echo ${!x}",
            "env LD_PRELOAD=x ls",
            "env | grep PATH",
            "env -i ls",
            "env FOO=./x ls",
            "timeout 5 touch pwned",
            "timeout 5 sh -c ls",
            "nice touch pwned",
            "time touch pwned",
            "command touch pwned",
            "command -p ls",
            "nice -n 5 ./ls",
            "timeout --foo 5 ls",
            "nohup ls",
            "( touch pwned )",
            "{ touch pwned; }",
            "! touch pwned",
            "if touch pwned; then ls; fi",
            "if ls; then touch pwned; fi",
            "[[ -n $(touch pwned) ]]",
            "[[ -v 'a[$(touch pwned)]' ]]",
            "[[ a[$(touch pwned)] -eq 1 ]]",
            "[[ 'a[$(touch pwned)]' -eq 1 ]]",
            "cat <<EOF\n$(touch pwned)\nEOF",
            "cat <<'EOF' > pwned\nx\nEOF",
            "cat <<'EOF' | sh\ntouch pwned\nEOF",
            "cat <<'EOF'\nx\nEOF\ntouch pwned",
            "bash <<'EOF'\ntouch pwned\nEOF",
            "xargs touch <<< pwned",
            "cd \"$(git rev-parse --show-toplevel)/..\" && ls",
            "cd \"$(cat x)\" && ls",
            "cat \"$(git rev-parse --show-toplevel)/.env\"",
            "$(git rev-parse --show-toplevel)/x",
            "ls $(cat list)",
            "cat $(echo .env)",
            "echo $(cat .env)",
            "echo \"$(cat .env)\"",
            "echo \"$(touch pwned)\"",
            "(cd .. && ls)",
            "(cd docs; cat link.md)",
            "{ cd docs; cat link.md; }",
            "cd docs\ncat link.md",
            "x=$(cat .env); echo \"$x\"",
            "ls &>pwned",
            "ls 2>pwned",
            "grep $HOME README.md; grep \"$(cat README.md)\" README.md",
        ],
    );
}

#[test]
fn git_substitutions_are_replaced_by_their_output_in_the_rewrite() {
    let facts = StubFacts { links: BTreeMap::new(), ..workspace() };
    let reads = Policy::preset(Preset::ReadOnly);
    let decision = reads.decide(&request("cd \"$(git rev-parse --show-toplevel)\" && ls # all"), &facts);
    assert_eq!(decision.rewrite.as_deref(), Some("cd /home/dev/w && ls"), "{}", decision.reason);
    let without =
        PermissionRequest { takes_rewrite: false, ..request("cd \"$(git rev-parse --show-toplevel)\" && ls") };
    assert_eq!(reads.decide(&without, &facts).verdict, Verdict::Ask);
    let rewrite = |text: &str| reads.decide(&request(text), &facts).rewrite.unwrap_or_default();
    let looped = rewrite("for f in src docs; do git status; done");
    assert!(looped.starts_with("for f in src docs; do env -u ") && looped.ends_with("; done"), "{looped}");
    let timed = rewrite("timeout 10 git status | head -5");
    assert!(timed.starts_with("timeout 10 env -u ") && timed.ends_with(" | head -5"), "{timed}");
    // A list that git prints into a word is not rewritten, so it would run as written.
    assert_eq!(reads.decide(&request("wc -l $(git ls-files)"), &facts).verdict, Verdict::Ask);
}

#[test]
fn a_rule_for_a_command_does_not_cover_piped_input() {
    for line in
        ["echo ls | sh", "cat a.sql | psql prod", "ls | xargs make", "make x | tee log", "(cat a; cat b) | python3"]
    {
        assert_eq!(rule_for(&request(line)), None, "{line}");
    }
    let rules = ["sh", "psql", "xargs", "tee", "python3"].map(|program| {
        format!("[[rule]]\nname = \"{program}\"\ndecision = \"allow\"\ncommand = [\"{program}\", \"...\"]\n")
    });
    let policy = policy(&format!("preset = \"read-only\"\n{}", rules.concat()));
    let programs = ["sh", "psql", "xargs", "tee", "python3", "cat", "ls", "head", "grep", "wc", "make"];
    let verdict = |line: &str| policy.decide(&request(line), &StubFacts::usual(&programs)).verdict;
    for line in ["cat a | sh", "cat a.sql | psql prod", "ls | xargs make", "ls | tee log", "cat a | cat | python3"] {
        assert_eq!(verdict(line), Verdict::Ask, "{line}");
    }
    for line in ["psql prod", "psql prod | head -3", "psql prod | grep b | wc -l"] {
        assert_eq!(verdict(line), Verdict::Allow, "{line}");
    }
}
