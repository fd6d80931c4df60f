use super::{command::MAX_BYTES, *};

fn words(text: &str) -> Vec<Vec<String>> {
    let line = understand(text).unwrap_or_else(|why| panic!("{text}: {why}"));
    line.commands.iter().map(|c| c.texts().into_iter().map(str::to_owned).collect()).collect()
}

#[track_caller]
fn check(text: &str, expected: &[&[&str]]) {
    assert_eq!(words(text), expected, "{text}");
}

#[track_caller]
fn refuse(text: &str, what: &str) {
    let why = understand(text).expect_err(text);
    assert!(why.contains(what), "{text}: {why}");
}

#[test]
fn plain_and_quoted_words_are_parsed() {
    check("ls -la src", &[&["ls", "-la", "src"]]);
    check("grep 'a b' \"c d\" e\\ f", &[&["grep", "a b", "c d", "e f"]]);
    check(r#"echo a'b'"c"\d "" ''"#, &[&["echo", "abcd", "", ""]]);
    check(r#"grep "foo\.bar\"x" "end$""#, &[&["grep", r#"foo\.bar"x"#, "end$"]]);
    check(
        r"find . \( -name '*.rs' \) ! -name x \;",
        &[&["find", ".", "(", "-name", "*.rs", ")", "!", "-name", "x", ";"]],
    );
    check("[ -d src ] && git diff HEAD~1 HEAD^", &[&["[", "-d", "src", "]"], &["git", "diff", "HEAD~1", "HEAD^"]]);
    check("dd if=x --a=b", &[&["dd", "if=x", "--a=b"]]);
}

#[test]
fn lists_and_pipes_are_split_into_commands() {
    check("a|b && c||d;e;", &[&["a"], &["b"], &["c"], &["d"], &["e"]]);
    let line = understand("ls 2>/dev/null | wc -l > /dev/null 2>&1 || true").unwrap();
    let joined: Vec<_> = line.commands.iter().map(|c| (c.redirects.clone(), c.then)).collect();
    assert_eq!(
        joined,
        [(vec!["2>/dev/null"], Separator::Pipe), (vec![">/dev/null", "2>&1"], Separator::Or), (vec![], Separator::End)]
    );
}

#[test]
fn one_enclosing_shell_is_unwrapped() {
    for shell in ["bash -lc", "sh -c", "/bin/zsh -lc", "/usr/bin/bash -c"] {
        let line = understand(&format!("{shell} 'ls -la | wc'")).unwrap();
        assert_eq!((line.commands.len(), line.wrapper.map(|w| w.len())), (2, Some(2)), "{shell}");
    }
    refuse("bash -c 'bash -c ls'", "shell within a shell");
    refuse("bash -c 'ls $x'", "variable");
    // Not the form that is removed.
    for text in ["bash -c ls x", "bash -x -c ls", "bash -c ls >/dev/null", "./bash -c ls", "bash -c ls; ls"] {
        assert_eq!(understand(text).unwrap().wrapper, None, "{text}");
    }
}

#[test]
fn an_unsupported_construct_is_named_in_the_error() {
    for (text, what) in [
        ("", "empty"),
        ("  ", "empty"),
        ("# ls", "empty"),
        ("ls\r", "U+000D"),
        ("ls é", "U+00E9"),
        ("ls # é", "U+00E9"),
        ("ls $x", "variable"),
        ("ls \"$x\"", "variable"),
        ("ls ${x:-y}", "other than a plain variable"),
        ("ls ${!x}", "other than a plain variable"),
        ("ls $1", "expansion"),
        ("ls $(x; y)", "several commands"),
        ("ls $(x\ny)", "several lines"),
        ("ls $((1 + 1))", "arithmetic"),
        ("((x = 1))", "parenthesis"),
        ("ls `x`", "command substitution"),
        ("ls \"`x`\"", "command substitution"),
        ("ls $'x'", "quote with `$`"),
        ("ls $\"x\"", "quote with `$`"),
        ("cat <<E", "here-document"),
        ("cat <<E\nx", "here-document"),
        ("cat <<E\n$x\nE", "here-document with an expansion"),
        ("cat <<E\n`x`\nE", "here-document with an expansion"),
        ("cat <<'a b'\nx\na b", "here-document"),
        ("cat <<<\"$x\"", "variable"),
        ("cat <&x", "input"),
        ("cat <>x", "input"),
        ("cat < x*", "cannot check from which file"),
        ("cat < a < b", "cannot check from which file"),
        ("cat 3< a", "input"),
        ("cat <(x)", "process substitution"),
        ("ls &", "background"),
        ("ls & ls", "background"),
        ("ls |& x", "background"),
        ("ls >| /dev/null", "redirection"),
        (">/dev/null ls", "before the command"),
        ("ls 3>/dev/null", "redirection"),
        ("ls >&3", "redirection"),
        ("PATH=x ls\nPATH=y", "variable `PATH`"),
        ("a=1; a=2", "assigned more than once"),
        ("a[0]=b", "pattern"),
        ("a+=b ls", "not of the form `NAME=VALUE`"),
        ("x && a=b", "is not allowed"),
        ("for path in a; do ls; done", "`path`"),
        ("for f; do ls; done", "arguments"),
        ("for f in a; do ls; done; echo $f", "variable"),
        ("while read -r IFS; do ls; done", "`IFS`"),
        ("while read -p x l; do ls; done", "`read`"),
        ("while read 'a[0]'; do ls; done", "`read`"),
        ("case x in x) ls;; esac", "parenthesis"),
        ("f() { ls; }", "parenthesis"),
        ("function f { ls; }", "function"),
        ("coproc ls", "coprocess"),
        ("ls **", "pattern"),
        ("ls -*", "pattern"),
        ("ls .*", "pattern"),
        ("ls a?b", "pattern"),
        ("ls [ab]", "pattern"),
        ("ls {a,b}", "brace"),
        ("ls ~", "home directory"),
        ("ls ~x", "home directory"),
        ("ls =x", "zsh"),
        ("ls a^b", "unquoted"),
        ("ls a(b)", "parenthesis"),
        ("ls a#b", "unquoted `#`"),
        ("ls a!b", "`!`"),
        ("echo \"a!b\"", "`!`"),
        ("if ls", "parsed"),
        ("[[ -v a ]]", "`[[`"),
        ("[[ a -eq b ]]", "`[[`"),
        ("[[ -R a ]]", "`[[`"),
        ("ls 'x", "unterminated quote"),
        ("ls \"x", "unterminated quote"),
        ("ls x\\", "backslash"),
        ("ls\\\nx", "backslash"),
        ("(ls", "parenthesis"),
        ("ls)", "parenthesis"),
        ("ls;;ls", "parsed"),
        ("| ls", "parsed"),
        ("ls; ls; ls; ls; ls; ls; ls; ls; ls; ls; ls", "more than 10"),
    ] {
        refuse(text, what);
    }
    refuse(&format!("echo {}", "a".repeat(MAX_BYTES)), "longer");
    refuse(&format!("{}ls{}", "( ".repeat(30), " )".repeat(30)), "too deep");
    refuse(&format!("echo {}ls{}", "$(echo ".repeat(30), ")".repeat(30)), "too deep");
}

#[test]
fn compound_commands_are_split_into_simple_commands() {
    check("ls src\n\nls docs # both\n# no more\n", &[&["ls", "src"], &["ls", "docs"]]);
    check("ls \\\n  -la", &[&["ls", "-la"]]);
    check("( cd src && ls ); { a; b; }", &[&["cd", "src"], &["ls"], &["a"], &["b"]]);
    check("! a | b; time c", &[&["a"], &["b"], &["c"]]);
    check("if a; then b; elif c; then d; else e; fi", &[&["a"], &["b"], &["c"], &["d"], &["e"]]);
    check("while a; do b; done; until c; do d; done", &[&["a"], &["b"], &["c"], &["d"]]);
    check("for f in a b; do ls \"$f\"; done", &[&["ls", "\"$f\""]]);
    check("cat <<'E'\n$(x) `y`\nE\nls", &[&["cat"], &["ls"]]);
    check("cat <<-E\n\tx\n\tE\n", &[&["cat"]]);
}

#[test]
fn input_redirection_and_the_exit_status_variable_are_parsed() {
    let line = understand("tr a b < src/x.rs | wc -l; echo \"exit: $?\" $?").unwrap();
    assert_eq!(line.commands[0].input.as_ref().map(|word| word.text.as_str()), Some("src/x.rs"));
    assert!(line.commands[2].words[1..].iter().all(|word| !word.parts.is_empty()));
    assert_eq!(line.render(&[]).unwrap(), "tr a b < src/x.rs | wc -l; echo \"exit: $?\" $?");
}

#[test]
fn a_rendered_line_parses_to_the_same_commands() {
    let text = r#"bash -lc 'grep "a b" x\;y | head -5 2>/dev/null; ls'"#;
    let line = understand(text).unwrap();
    let again = line.render(&[]).unwrap();
    assert_eq!(
        understand(&again).unwrap().commands.iter().map(SimpleCommand::texts).collect::<Vec<_>>(),
        line.commands.iter().map(SimpleCommand::texts).collect::<Vec<_>>()
    );
    assert_eq!(
        line.render(&[None, Some(vec!["a'b".into()])]).unwrap(),
        understand(text).unwrap().render(&[None, Some(vec!["a'b".into()])]).unwrap()
    );
}
