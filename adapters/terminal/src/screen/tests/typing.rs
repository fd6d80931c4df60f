//! Tests of which screens accept typed text.

use events::Provider;
use host_protocol::claim::TypingGate;

use super::{screens, *};
use crate::screen::typing::SETTLED_MS;

/// `open`, `choice` or `busy`.
fn gate(stage: &Stage) -> &'static str {
    match stage.observer.typing_gate(stage.at()) {
        TypingGate::Open => "open",
        TypingGate::Choice { .. } => "choice",
        TypingGate::Busy { .. } => "busy",
    }
}

/// A program with this title and screen.
fn stage(provider: Provider, title: &str, screen: &str) -> Stage {
    let mut stage = Stage::sized(Size { rows: 40, columns: 100 }, provider, embedded());
    stage.write(&format!("\x1b]0;{title}\x07"));
    stage.draw(screen);
    stage.pass(3_000);
    stage
}

/// The input line of each agent.
fn prompts() -> Vec<(Provider, &'static str, String)> {
    let (line, bar) = ("─".repeat(60), "▀".repeat(60));
    vec![
        (Provider::Claude, "✳ demo", format!("● Hello.\n\n{line}\n❯\n{line}\n  ? for shortcuts")),
        (Provider::Codex, "demo", "• Hello.\n\n\n› Ask anything\n\n  gpt-5 · ~/demo".into()),
        (
            Provider::Gemini,
            "◇  Ready (demo)",
            format!(" > hi\n\n✦ Hello.\n\n{bar}\n >   Type your message\n{}\n ~/demo   auto", "▄".repeat(60)),
        ),
    ]
}

#[test]
fn the_typing_gate_of_recorded_screens_opens_only_at_prompts() {
    let mut wrong = Vec::new();
    for screen in screens::all() {
        let is = gate(&screens::shown(&screen));
        let asks =
            screen.claim.starts_with("waiting_approval") || !screen.options.is_empty() || screen.question.is_some();
        let should = if asks {
            "choice"
        } else if screen.claim.starts_with("waiting") {
            "open"
        } else {
            "busy"
        };
        if is != should {
            wrong.push(format!("{}: {is}, not {should}", screen.name));
        }
    }
    wrong.sort();
    // Screens that wait without an input line: menus whose options are not parsed, a transcript, a sign-in.
    let expected = [
        "amp/sign-in.txt: choice, not open",
        "claude/rewind-confirm.txt: choice, not open",
        "claude/rewind.txt: choice, not open",
        "claude/transcript-rests.txt: choice, not open",
        "gemini/rewind.txt: choice, not open",
    ];
    assert_eq!(wrong, expected);
}

#[test]
fn the_typing_gate_reports_every_menu_as_a_choice() {
    let rule = "─".repeat(60);
    let claude = [
        " This session is 21h old and 755k tokens.\n\n❯ 1. Resume from summary (recommended)\n  2. Resume full session as-is\n  3. Don't ask me again\n\n Enter to confirm · Esc to cancel",
        " Select model\n Switch between models.\n\n❯ 1. Default (recommended)  A\n   2. B\n   3. C\n\n Enter to confirm · Esc to exit",
        " Rewind\n Restore the code and/or conversation to the point before…\n\n❯ feed the walrus\n  (current)\n\n Enter to continue · Esc to exit",
        " You've hit your session limit\n\n What do you want to do?\n\n❯ 1. Stop and wait for limit to reset\n  2. Upgrade your plan\n\n Enter to confirm · Esc to cancel",
        " Accessing workspace:\n\n /home/me/proj\n\n Quick safety check: Is this a project you created or one you trust?\n\n ❯ 1. Yes, I trust this folder\n   2. No, exit\n\n Enter to confirm · Esc to cancel",
        " Choose the text style that looks best with your terminal\n\n ❯ 1. Dark mode\n   2. Light mode\n\n Enter to confirm · Esc to cancel",
        " Resume session\n\n ⌕ Search…\n\n ❯ feed the walrus\n   3 hours ago · 12 messages\n\n Esc to cancel",
        " ☐ Colour\n\n Which colour?\n\n❯ 1. Red\n  2. Green\n  3. Type something.\n\n Enter to select · ↑/↓ to navigate · Esc to cancel",
    ];
    let codex = [
        "\n ✨ Update available! 0.153.0 -> 0.153.2\n\n› 1. Update now (runs `npm install -g @openai/codex`)\n  2. Skip\n  3. Skip until next version\n\n  Press enter to continue",
        "\n  Select Model and Effort\n\n› 1. gpt-5 (current)  Fast\n  2. gpt-5-mini  Faster\n\n  Press enter to confirm or esc to go back",
        "\n  Approaching rate limits\n  Switch to gpt-5-mini for lower usage?\n\n› 1. Switch to gpt-5-mini\n  2. Keep current model\n\n  Press enter to confirm or esc to go back",
        "\n  Folder access\n  /home/me/proj\n\n  Trust this folder?\n\n› 1. Yes, continue\n  2. No, quit\n\n  Press enter to continue",
        "\n  Hooks need review\n  1 hook is new or changed.\n\n› 1. Review hooks\n  2. Trust all and continue\n  3. Continue without trusting\n\n  Press enter to confirm or esc to go back",
    ];
    let gemini = [
        "╭────────────────────────────────╮\n│ Do you trust this folder?      │\n│                                │\n│ ● 1. Trust folder (proj)       │\n│   2. Don't trust               │\n╰────────────────────────────────╯",
        "╭────────────────────────────────╮\n│ Select Model                   │\n│                                │\n│ ● 1. Auto                      │\n│   2. Pro                       │\n╰────────────────────────────────╯",
        "╭────────────────────────────────╮\n│ How would you like to authenticate for this project? │\n│ ● 1. Login with Google         │\n│   2. Use Gemini API Key        │\n╰────────────────────────────────╯",
    ];
    let of = |provider, title: &'static str, screens: &[&str]| {
        screens.iter().map(|screen| (provider, title, format!("{rule}\n{screen}"))).collect::<Vec<_>>()
    };
    let mut all = of(Provider::Claude, "✳ Claude Code", &claude);
    all.extend(codex.iter().map(|screen| (Provider::Codex, "~/proj", (*screen).to_owned())));
    all.extend(gemini.iter().map(|screen| (Provider::Gemini, "◇  Ready (proj)", (*screen).to_owned())));
    let mut wrong = Vec::new();
    for (provider, title, screen) in &all {
        let is = gate(&stage(*provider, title, screen));
        if is != "choice" {
            wrong.push(format!("{provider}: {is}\n{screen}"));
        }
        // The agent runs in a script and has not been identified yet.
        let is = gate(&stage(Provider::Unknown, title, screen));
        if is == "open" && !screen.contains("Search") && !screen.contains("Rewind") {
            wrong.push(format!("{provider} unknown: {is}\n{screen}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn the_typing_gate_opens_once_a_prompt_is_stable() {
    for (provider, title, screen) in prompts() {
        let mut stage = Stage::sized(Size { rows: 40, columns: 100 }, provider, embedded());
        assert_eq!(gate(&stage), "busy", "{provider}: nothing is drawn");
        if provider == Provider::Codex {
            stage.write("\x1b]7501;state=idle:app=codex\x1b\\");
        }
        stage.write(&format!("\x1b]0;{title}\x07")).draw(&screen);
        stage.pass(1_000);
        assert_eq!(gate(&stage), "busy", "{provider}: a dialog may come yet");
        stage.pass(SETTLED_MS);
        assert_eq!(gate(&stage), "open", "{provider}");
        stage.write("\x1b[");
        assert_eq!(gate(&stage), "busy", "{provider}: half a sequence");
        stage.write("1mx");
        assert_eq!(gate(&stage), "busy", "{provider}: it is not looked at yet");
        stage.draw("A dialog of a form that no rule knows.\n\n [ Yes ]  [ No ]");
        stage.pass(100);
        assert_eq!(gate(&stage), "busy", "{provider}: the prompt is gone");
    }
}

#[test]
fn the_typing_gate_stays_closed_in_shell_and_transcript_mode() {
    let line = "─".repeat(60);
    for typed in ["!", "# ", "! ls"] {
        let stage = stage(Provider::Claude, "✳ demo", &format!("● Hello.\n\n{line}\n{typed}\n{line}\n  esc to leave"));
        assert_ne!(gate(&stage), "open", "{typed}");
    }
    let transcript = format!("● Hello.\n\n{line}\n  Showing detailed transcript · ctrl+o to toggle");
    assert_ne!(gate(&stage(Provider::Claude, "✳ demo", &transcript)), "open");
}

#[test]
fn the_typing_gate_opens_for_still_programs_without_rules() {
    for provider in [Provider::Unknown, Provider::Crush, Provider::Goose, Provider::Pi, Provider::Amp] {
        let mut stage = Stage::sized(SIZE, provider, embedded());
        assert_eq!(gate(&stage), "busy", "{provider}");
        stage.draw("~/proj $ ");
        stage.pass(1_000);
        assert_eq!(gate(&stage), "busy", "{provider}");
        stage.pass(1_000);
        assert_eq!(gate(&stage), "open", "{provider}");
    }
    let mut amp = Stage::sized(SIZE, Provider::Amp, embedded());
    amp.draw("Would you like to log in to Amp? [(y)es, (n)o]:");
    amp.pass(3_000);
    assert_eq!(gate(&amp), "choice");
    // For a program that reports its state, the reported state decides.
    let mut told = Stage::sized(SIZE, Provider::Unknown, embedded());
    for (state, is) in [("working", "busy"), ("idle", "open"), ("blocked:kind=question", "choice"), ("done", "open")] {
        told.write(&format!("\x1b]7501;state={state}:app=other\x1b\\"));
        told.pass(2_000);
        assert_eq!(gate(&told), is, "{state}");
    }
}
