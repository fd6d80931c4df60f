//! Screens of real agents (`fixtures/terminal/screens`) with the expected reading; the same screens without title and
//! state; and the same dialogs printed into a conversation.

use std::{fs, path::PathBuf};

use events::{ChoiceAnswer, Provider};

use super::*;

/// A screen and its expected reading.
pub(super) struct Screen {
    pub(super) name: String,
    provider: Provider,
    size: Size,
    title: String,
    agent_state: String,
    pub(super) claim: String,
    pub(super) question: Option<String>,
    subject: Option<String>,
    pub(super) options: Vec<String>,
    lines: Vec<String>,
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/terminal/screens"))
}

fn load(path: &std::path::Path) -> Screen {
    let text = fs::read_to_string(path).unwrap();
    let (head, body) = text.split_once("---\n").unwrap();
    let of =
        |name: &str| head.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':')).map(|v| v.trim().to_owned());
    let size = of("size").unwrap();
    let (rows, columns) = size.split_once(' ').unwrap();
    Screen {
        name: path.strip_prefix(folder()).unwrap().display().to_string(),
        provider: of("provider").unwrap().parse().unwrap(),
        size: Size { rows: rows.parse().unwrap(), columns: columns.parse().unwrap() },
        title: of("title").unwrap_or_default(),
        agent_state: of("agent_state").unwrap_or_default(),
        claim: of("claim").unwrap(),
        question: of("question"),
        subject: of("subject"),
        options: head.lines().filter_map(|l| l.strip_prefix("option:")).map(str::to_owned).collect(),
        lines: body.lines().map(str::to_owned).collect(),
    }
}

pub(super) fn all() -> Vec<Screen> {
    let mut screens = Vec::new();
    for provider in fs::read_dir(folder()).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()) {
        let mut paths: Vec<PathBuf> = fs::read_dir(provider).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        screens.extend(paths.iter().map(|p| load(p)));
    }
    assert!(screens.len() > 80, "{}", screens.len());
    screens
}

/// Draws the screen and returns the terminal after a while.
pub(super) fn shown(screen: &Screen) -> Stage {
    let mut stage = Stage::sized(screen.size, screen.provider, embedded());
    if !screen.title.is_empty() {
        stage.write(&format!("\x1b]0;{}\x07", screen.title));
    }
    if !screen.agent_state.is_empty() {
        stage.write(&format!("\x1b]7501;{}\x1b\\", screen.agent_state));
    }
    for (row, line) in screen.lines.iter().enumerate() {
        stage.write(&format!("\x1b[{};1H{line}", row + 1));
    }
    stage.pass(3000);
    stage
}

fn claimed(screen: &Screen) -> String {
    shown(screen).observer.picture().claim.map_or_else(|| "nothing".to_owned(), |c| named(&c))
}

#[test]
fn every_fixture_screen_has_its_expected_claim() {
    let mut wrong = Vec::new();
    for screen in all() {
        let stage = shown(&screen);
        let picture = stage.observer.picture();
        let claim = picture.claim.as_ref();
        let dialog = claim.and_then(|c| c.dialog.clone()).unwrap_or_default();
        let mut expect = |what: &str, is: Option<String>, should: Option<String>| {
            if is != should {
                wrong.push(format!("{}: {what}: {is:?}, not {should:?}", screen.name));
            }
        };
        expect("claim", claim.map(named), Some(screen.claim.clone()));
        if screen.question.is_some() {
            expect("question", dialog.question.map(|q| q.replace('\n', " | ")), screen.question.clone());
        }
        if screen.subject.is_some() {
            expect("subject", dialog.subject.map(|q| q.replace('\n', " | ")), screen.subject.clone());
        }
        if !screen.options.is_empty() {
            let options = dialog.options.iter().map(|o| {
                let mark = if o.selected { '>' } else { ' ' };
                let means = match o.answer {
                    None => "",
                    Some(ChoiceAnswer::AllowOnce) => " = allow_once",
                    Some(ChoiceAnswer::AllowAlways) => " = allow_always",
                    Some(ChoiceAnswer::Deny) => " = deny",
                    Some(ChoiceAnswer::Other) => " = other",
                };
                format!("{mark}{} {}{means}", o.key.as_deref().unwrap_or("-"), o.label)
            });
            expect("options", Some(options.collect::<Vec<_>>().join("\n")), Some(screen.options.join("\n")));
        }
        let explained = stage.observer.explain();
        expect("explained", explained.claim.as_ref().map(named), claim.map(named));
        expect("kept", Some(explained.kept.to_string()), Some("false".to_owned()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Title and state can be missing; dialogs must be recognised without them and never be invented.
#[test]
fn dialogs_are_recognized_without_title_and_reported_state() {
    let mut wrong = Vec::new();
    for mut screen in all() {
        screen.title.clear();
        screen.agent_state.clear();
        let is = claimed(&screen);
        let dialog = !screen.options.is_empty() || screen.claim.starts_with("waiting_approval");
        if dialog && is != screen.claim || !dialog && is.starts_with("waiting_approval") {
            wrong.push(format!("{}: {is}, not {}", screen.name, screen.claim));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A dialog printed by a tool is above the input line of a live screen and is not a dialog.
#[test]
fn a_dialog_printed_in_the_conversation_is_not_claimed() {
    let screens = all();
    let mut wrong = Vec::new();
    for provider in
        [Provider::Claude, Provider::Codex, Provider::Gemini, Provider::Qwen, Provider::Opencode, Provider::Aider]
    {
        let of_provider = || screens.iter().filter(|s| s.provider == provider);
        for around in of_provider().filter(|s| s.options.is_empty() && s.question.is_none()) {
            if around.claim.starts_with("waiting_approval")
                || around.name.contains("rewind")
                || around.name.contains("restarting")
            {
                continue;
            }
            let is_dialog = |s: &&Screen| !s.options.is_empty() || s.claim.starts_with("waiting_approval");
            for dialog in of_provider().filter(is_dialog) {
                let first = around.lines.iter().position(|l| !l.is_empty()).unwrap_or(0);
                let lines: Vec<String> = dialog.lines.iter().chain(&around.lines[first..]).cloned().collect();
                let rows = u16::try_from(lines.len()).unwrap();
                let printed = Screen {
                    name: format!("{} in {}", dialog.name, around.name),
                    provider,
                    size: Size { rows, columns: dialog.size.columns.max(around.size.columns) },
                    title: around.title.clone(),
                    agent_state: around.agent_state.clone(),
                    claim: String::new(),
                    question: None,
                    subject: None,
                    options: Vec::new(),
                    lines,
                };
                let is = claimed(&printed);
                if is.starts_with("waiting_approval") {
                    wrong.push(format!("{}: {is}", printed.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of them\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}

/// Screens from the tests of other programs; most are fragments. Our reading differs from their authors' where
/// `fixtures/terminal/PROVENANCE.md` gives the reason.
#[test]
fn screens_from_other_projects_have_their_expected_state() {
    let file = folder().with_file_name("others.jsonl");
    let mut wrong = Vec::new();
    for line in fs::read_to_string(file).unwrap().lines() {
        let theirs: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| theirs[name].as_str().unwrap_or_default().to_owned();
        let lines: Vec<String> = text("screen").lines().map(str::to_owned).collect();
        let columns = lines.iter().map(|line| line.chars().count() + 4).max().unwrap_or(0).max(120);
        let size = Size { rows: lines.len().max(40).try_into().unwrap(), columns: columns.try_into().unwrap() };
        let mut stage = Stage::sized(size, text("agent").parse().unwrap(), embedded());
        stage.write(&format!("\x1b]0;{}\x07{}", text("title"), lines.join("\r\n")));
        stage.pass(4000);
        let is = stage.observer.picture().claim.map_or_else(|| "nothing".to_owned(), |claim| claim.state.to_string());
        if is != text("read") {
            wrong.push(format!("{} {}: {is}, not {}", text("from"), text("name"), text("read")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A dialog reports at once that capture will not answer it by keys, and why.
#[test]
fn a_dialog_of_an_untested_version_is_marked_unanswerable() {
    let dialog = "\x1b[2J\x1b[HBash command\r\n\r\n  touch x\r\n\r\nDo you want to proceed?\r\n❯ 1. Yes\r\n  2. No\r\n\r\n \
                  Esc to cancel\r\n";
    let rule = "─".repeat(80);
    for (banner, why) in [
        ("Claude Code v2.1.328", None),
        // A later release of the same line, whose dialog is the same.
        ("Claude Code v2.1.399", None),
        ("Claude Code v2.0.60", Some("keys were tested with claude 2.1.328 and later, before 2.2.0, not with 2.0.60")),
        ("Claude Code v2.2.0", Some("keys were tested with claude 2.1.328 and later, before 2.2.0, not with 2.2.0")),
        (
            "Welcome",
            Some(
                "the agent's version is unknown, and keys were tested only with claude 2.1.328 and later, before 2.2.0",
            ),
        ),
    ] {
        let mut stage = Stage::sized(SIZE, Provider::Claude, embedded());
        stage.draw(banner);
        stage.pass(300);
        stage.write(&dialog.replacen("Bash", &format!("{rule}\r\nBash"), 1));
        stage.pass(300);
        let claim = stage.observer.picture().claim.unwrap();
        assert_eq!(named(&claim), "waiting_approval tool", "{banner}");
        assert_eq!(claim.dialog.unwrap().unanswerable.as_deref(), why, "{banner}");
    }
}

/// Within the tested versions, a dialog is answered only if its whole layout is known.
#[test]
fn a_dialog_with_an_unknown_layout_is_marked_unanswerable() {
    let rule = "─".repeat(80);
    let right = format!(
        "{rule}\n Bash command\n\n   touch x\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. Yes, and don’t ask again for \
         touch\n   3. No\n\n Esc to cancel · Tab to amend"
    );
    let unknown = Some("capture does not recognize one of the options of the dialog");
    let named = Some("capture does not recognize how the dialog names its keys");
    let two = Some("the dialog does not have exactly one option to allow once and one to deny");
    let order = Some("the options of the dialog are not numbered in order");
    for (was, is, why) in [
        ("", "", None),
        ("   3. No", "   3. Yes, in a sandbox\n   4. No", unknown),
        ("   3. No", "   3. No\n   4. Explain", unknown),
        ("   3. No", "   3. No\n   4. No, and stop", two),
        ("   3. No", "   4. No", order),
        (" Esc to cancel · Tab to amend", " Ctrl+G to cancel · Tab to amend", named),
        (" Esc to cancel · Tab to amend", "", named),
    ] {
        let mut stage = Stage::sized(SIZE, Provider::Claude, embedded());
        stage.draw("Claude Code v2.1.340");
        stage.pass(300);
        let dialog = if was.is_empty() { right.clone() } else { right.replace(was, is) };
        stage.write(&format!("\r\n{}", dialog.replace('\n', "\r\n")));
        stage.pass(600);
        let claim = stage.observer.picture().claim.unwrap();
        assert_eq!(claim.dialog.unwrap().unanswerable.as_deref(), why, "{is}");
        assert_eq!(stage.observer.standing().err(), why, "{is}");
    }
}

/// opencode's dialog for a command with these lines and the cursor on this option.
fn opencode_asks(lines: &[&str], cursor: Option<usize>) -> Stage {
    let mut stage = Stage::sized(SIZE, Provider::Opencode, embedded());
    stage.draw("  ~/proj:main                                                          1.18.33");
    stage.pass(300);
    let body: String = lines.iter().map(|line| format!("  ┃  {line}\n")).collect();
    let options = ["Allow once", "Allow always", "Reject"].iter().enumerate();
    let options: String = options
        .map(
            |(at, label)| {
                if cursor == Some(at) { format!("\x1b[48;5;215m {label} \x1b[m ") } else { format!(" {label}  ") }
            },
        )
        .collect();
    stage.draw(&format!(
        "  ┃\n  ┃  Run it\n  ┃\n\n     I run it.\n\n  ┃\n  ┃  △ Permission required\n  ┃    # Shell command\n  ┃\n{body}  ┃\n  ┃\n  ┃  {options}     \
         ⇆ select  enter confirm\n  ┃"
    ));
    stage.pass(600);
    stage
}

#[test]
fn an_opencode_dialog_is_answerable_only_if_its_command_is_complete() {
    let asked = |stage: &Stage| *stage.observer.picture().claim.unwrap().dialog.unwrap();
    let selected = |stage: &Stage| {
        let options = stage.observer.standing().map(|standing| standing.options)?;
        Ok::<_, &str>(options.iter().map(|option| (option.answer, option.selected)).collect::<Vec<_>>())
    };
    let (once, always, deny) =
        (Some(ChoiceAnswer::AllowOnce), Some(ChoiceAnswer::AllowAlways), Some(ChoiceAnswer::Deny));
    let stage = opencode_asks(&["$ touch x"], Some(0));
    let dialog = asked(&stage);
    assert_eq!((dialog.subject.as_deref(), dialog.unanswerable), (Some("touch x"), None));
    assert_eq!(selected(&stage), Ok(vec![(once, true), (always, false), (deny, false)]));
    assert_eq!(
        selected(&opencode_asks(&["$ touch x"], Some(2))),
        Ok(vec![(once, false), (always, false), (deny, true)])
    );
    let unknown = opencode_asks(&["$ touch x"], None);
    assert_eq!(selected(&unknown), Err("the cursor is not on one of its options"));
    // Six lines are the whole command; seven may be the beginning of a longer one.
    let mut lines = vec!["$ cat <<E", "a", "", "b", "E", "rm x"];
    let dialog = asked(&opencode_asks(&lines, Some(0)));
    assert_eq!((dialog.subject.as_deref(), dialog.unanswerable), (Some("cat <<E\na\nb\nE\nrm x"), None));
    let cut = Some("the terminal does not show all of the request".to_owned());
    for last in ["rm y", ""] {
        lines.truncate(6);
        lines.push(last);
        let stage = opencode_asks(&lines, Some(0));
        assert_eq!(asked(&stage).unanswerable, cut, "{last:?}");
        assert!(stage.observer.standing().is_err());
    }
    // A command that imitates the dialog of another command.
    let fake = ["$ echo '", "", "△ Permission required", "  # Shell command", "", "$ ls", ""];
    assert_eq!(asked(&opencode_asks(&fake, Some(0))).unanswerable, cut);
}

/// Qwen Code's dialog for a command whose box has these lines.
fn qwen_asks(body: &[&str]) -> Stage {
    let mut stage = Stage::sized(SIZE, Provider::Qwen, embedded());
    let body: String = body.iter().map(|line| format!("     {line}\n")).collect();
    stage.draw(&format!(
        "\n  > Run it\n\n  ◆ I run it.\n  ? Shell it (Run it) ←\n\n{body}\n   Allow execution of: 'it'?\n\n   › 1. Yes, allow \
         once\n     2. No, suggest changes (esc)\n\n\n  ⠏ Waiting for user confirmation..."
    ));
    stage.pass(600);
    stage
}

#[test]
fn qwens_warning_is_not_part_of_the_command_read_from_its_dialog() {
    let unavailable = "⚠ Auto Mode couldn't classify this action (unavailable). Review it";
    let blocked = "⚠ Auto mode previously blocked this exact action. Review it manually.";
    for (body, subject) in [
        (&["touch x"][..], "touch x"),
        (&["cat <<E", "a", "", "   › 1. Yes, allow once", "E", "rm x"], "cat <<E\na\n› 1. Yes, allow once\nE\nrm x"),
        (&[unavailable, "manually.", "", "rm x"], "rm x"),
        (&[blocked, "", "rm x"], "rm x"),
        // The same text as the beginning of a command that does more.
        (&["⚠ Auto mode; touch y", "", "rm x"], "⚠ Auto mode; touch y\nrm x"),
        (&["⚠ Auto Mode couldn't' ; touch y", "", "rm x"], "⚠ Auto Mode couldn't' ; touch y\nrm x"),
    ] {
        let claim = qwen_asks(body).observer.picture().claim.unwrap();
        assert_eq!(named(&claim), "waiting_approval tool", "{body:?}");
        let dialog = claim.dialog.unwrap();
        assert_eq!(dialog.subject.as_deref(), Some(subject), "{body:?}");
        let options: Vec<_> = dialog.options.iter().map(|o| (o.label.as_str(), o.selected)).collect();
        assert_eq!(options, [("Yes, allow once", true), ("No, suggest changes", false)], "{body:?}");
        assert!(dialog.unanswerable.is_some());
    }
}

/// The prompt returns to the input line, and nothing else shows that the turn was interrupted.
#[test]
fn esc_before_qwens_first_text_returns_the_state_to_waiting() {
    let rule = "─".repeat(usize::from(SIZE.columns));
    for title in ["", "Qwen - proj"] {
        let mut stage = Stage::sized(SIZE, Provider::Qwen, embedded());
        if !title.is_empty() {
            stage.write(&format!("\x1b]0;◐\u{fe0e} {title}\x07"));
        }
        stage.draw(&format!(
            "\n  > Wait\n\n  ⠧ Rebooting the humor module... (2s · esc to cancel)\n{rule}\n>   Type your message\n{rule}\n  \
             ➜ proj · scripted"
        ));
        stage.pass(600);
        assert_eq!(named(&stage.observer.picture().claim.unwrap()), "running", "{title}");
        if !title.is_empty() {
            stage.write(&format!("\x1b]0;{title}\x07"));
        }
        stage.draw(&format!("\n{rule}\n> Wait\n{rule}\n  ➜ proj · scripted\n  Press Esc again to clear."));
        stage.pass(1_000);
        assert_eq!(named(&stage.observer.picture().claim.unwrap()), "waiting", "{title}");
    }
}

/// The version is read from the banner.
#[test]
fn the_claude_code_version_is_read_from_the_banner() {
    let mut known = 0;
    for screen in all() {
        let stage = shown(&screen);
        if screen.lines.iter().any(|l| l.contains("Claude Code v2.1.328")) {
            assert_eq!(stage.observer.version(), Some("2.1.328"), "{}", screen.name);
            known += 1;
        }
    }
    assert!(known > 5);
}

/// A dialog of a future version that no rule matches.
#[test]
fn an_unrecognized_dialog_is_claimed_from_the_self_reported_state() {
    let asks = "\x1b[2J\x1b[H  The walrus wants fish\r\n\r\n  Press a to agree\r\n";
    for (said, expected) in [
        ("state=blocked:app=claude-code:kind=permission", "waiting_approval tool"),
        ("state=blocked:kind=question:app=claude-code", "waiting question"),
        ("state=blocked:app=claude-code:kind=auth", "waiting auth"),
        ("state=blocked:app=claude-code", "waiting_approval tool"),
        ("state=working:app=claude-code", "running"),
        ("state=error:app=claude-code", "waiting error"),
        ("state=done:app=claude-code", "waiting"),
    ] {
        let mut stage = Stage::new(Provider::Claude, ScreenRules::load(None).unwrap());
        stage.write(asks);
        assert_eq!(stage.claims(900), [] as [&str; 0], "the screen alone says nothing");
        stage.write(&format!("\x1b]7501;{said}\x07"));
        assert_eq!(stage.claims(900), [expected], "{said}");
    }
    // A visible prompt takes precedence, whatever runs in the background.
    let mut stage = Stage::new(Provider::Claude, ScreenRules::load(None).unwrap());
    let rule = "─".repeat(40);
    stage.write(&format!("\x1b[2J\x1b[H✻ Worked for 3s\r\n\r\n{rule}\r\n❯ \r\n{rule}\r\n"));
    stage.write("\x1b]7501;state=working:app=claude-code:msg=MSBzaGVsbCBzdGlsbCBydW5uaW5n\x07");
    assert_eq!(stage.claims(900).last().map(|claim| claim.starts_with("waiting")), Some(true));
}

#[test]
fn the_self_reported_state_of_an_unknown_program_is_claimed() {
    let mut stage = Stage::new(Provider::Unknown, ScreenRules::load(None).unwrap());
    stage.write("\x1b]7501;state=working:app=other\x1b\\");
    assert_eq!(stage.claims(500), ["running"]);
    stage.write("\x1b]7501;state=blocked:app=other:kind=question\x1b\\");
    assert_eq!(stage.claims(500), ["waiting question"]);
    stage.write("\x1b]7501;state=blocked:app=other:kind=permission\x1b\\");
    assert_eq!(stage.claims(500), ["waiting_approval tool"]);
    // The records of workers do not change the program's own state.
    stage.write("\x1b]7501;state=working:id=wf/1:app=wf\x1b\\\x1b]7501;state=clear:id=wf/1\x1b\\");
    assert_eq!(stage.claims(500), [] as [&str; 0]);
    stage.write("\x1b]7501;app=other:kind=auth:state=blocked\x1b\\");
    assert_eq!(stage.claims(500), ["waiting auth"]);
    stage.write("\x1b]7501;state=done:app=other\x1b\\");
    assert_eq!(stage.claims(500), ["waiting turn_complete"]);
    assert_eq!(stage.observer.picture().claim.unwrap().state, State::Waiting);
}
