use std::{fs, path::Path, sync::Arc};

use events::Provider;
use host_protocol::screen::Size;
use serde_json::Value;

use super::*;
use crate::screen::{Observer, ScreenRules};

fn typed(keys: &str) -> Vec<String> {
    TypedLine::default().type_bytes(keys.as_bytes())
}

#[test]
fn typed_lines_are_reconstructed_from_edits_and_pastes() {
    assert_eq!(typed("say hello\r"), ["say hello"]);
    assert_eq!(typed("one\rtwo\r"), ["one", "two"]);
    assert_eq!(typed("sai\x7fy\r"), ["say"]);
    assert_eq!(typed("one two\x17three\r"), ["one three"]);
    assert_eq!(typed("wrong\x15right\r"), ["right"]);
    assert_eq!(typed("wrong\x03right\r"), ["right"]);
    assert_eq!(typed("\x1b[200~one\rtwo\x1b[201~\r"), ["one\ntwo"]);
    assert_eq!(typed("one\x1b\rtwo\r"), ["one\ntwo"]);
    assert_eq!(typed("größe 你好\r"), ["größe 你好"]);
    assert!(typed("  \r\r").is_empty());
    assert!(typed("not yet").is_empty());
}

#[test]
fn a_line_edited_with_cursor_history_or_completion_is_discarded() {
    assert!(typed("one\x1b[D\x1b[Dx\r").is_empty(), "the cursor was moved");
    assert!(typed("\x1b[A\r").is_empty(), "an earlier line was taken");
    assert!(typed("fi\tone\r").is_empty(), "it was completed");
    assert_eq!(typed("\x1b[A\rnext\r"), ["next"]);
    assert_eq!(typed("\x1b[Aold\x15new\r"), ["new"]);
}

#[test]
fn terminal_reports_do_not_change_the_typed_line() {
    for silent in ["\x1b[I", "\x1b[<35;10;4M", "\x1b[?62;22c", "\x1b[12;4R", "\x1b]11;rgb:0000/0000/0000\x1b\\"] {
        assert_eq!(typed(&format!("on{silent}e\r")), ["one"], "{silent:?}");
    }
}

#[test]
fn typed_keys_split_at_any_byte_give_the_same_line() {
    let whole = "größe\x1b[200~a\rb\x1b[201~ c\r".as_bytes();
    for cut in 0..whole.len() {
        // A lone Esc is the key.
        if whole[..cut].ends_with(b"\x1b") {
            continue;
        }
        let mut line = TypedLine::default();
        let mut lines = line.type_bytes(&whole[..cut]);
        lines.extend(line.type_bytes(&whole[cut..]));
        assert_eq!(lines, ["größea\nb c"], "cut at {cut}");
    }
}

/// A terminal of an agent whose files capture does not read.
fn observer() -> Observer {
    let rules = Arc::new(ScreenRules::load(None).unwrap());
    Observer::new(Size { rows: 24, columns: 80 }, Provider::Goose, rules, Timestamp::from_millisecond(0))
}

fn told(observer: &mut Observer) -> Vec<String> {
    let events = observer.take_events().into_iter().filter_map(|(_, event)| short(&event));
    events.collect()
}

fn short(event: &HostEvent) -> Option<String> {
    match event {
        HostEvent::Prompt { text } => Some(format!("> {text}")),
        HostEvent::Text { text } => Some(text.clone()),
        HostEvent::Alive => Some("alive".into()),
        _ => None,
    }
}

#[test]
fn typed_text_not_shown_on_the_screen_is_not_a_prompt() {
    let at = Timestamp::from_millisecond;
    let mut observer = observer();
    observer.output(b"Password: ", at(0));
    observer.input(b"swordfish\r", at(10));
    observer.output(b"\r\n> say hello", at(20));
    observer.input(b"say hello\r", at(30));
    assert_eq!(told(&mut observer), ["> say hello"]);
}

#[test]
fn no_screen_text_is_recorded_for_unknown_programs_or_transcript_agents() {
    let at = Timestamp::from_millisecond;
    for provider in [Provider::Claude, Provider::Opencode, Provider::Unknown, Provider::Capture] {
        let mut observer = observer();
        observer.set_provider(provider, at(0));
        observer.output(b"> say hello", at(20));
        observer.input(b"say hello\r", at(30));
        observer.advance(at(10_000));
        assert!(told(&mut observer).is_empty(), "{provider}");
    }
}

#[test]
fn screen_text_is_recorded_once_the_screen_is_still() {
    let at = Timestamp::from_millisecond;
    let mut observer = observer();
    observer.output(b"one\r\n", at(0));
    observer.advance(at(1_000));
    observer.output("two\r\n─────\r\n".as_bytes(), at(1_400));
    observer.advance(at(2_000));
    assert!(told(&mut observer).is_empty(), "it still writes");
    assert_eq!(observer.next_deadline(), Some(at(2_900)));
    observer.advance(at(2_900));
    assert_eq!(told(&mut observer), ["one\ntwo"]);
    observer.output(b"\x1b[2J\x1b[Htwo\r\nthree\r\n", at(5_000));
    observer.advance(at(9_000));
    assert_eq!(told(&mut observer), ["three"]);
}

#[test]
fn recorded_screen_text_is_bounded() {
    let at = Timestamp::from_millisecond;
    let mut observer = observer();
    for n in 0..120_000_i64 {
        if n % 10 == 0 {
            observer.output(format!("line {n} {}\r\n", "x".repeat(60)).as_bytes(), at(n));
        }
    }
    assert_eq!(told(&mut observer), ["alive"], "a heartbeat a minute, and no text while it writes");
    observer.input("y".repeat(100_000).as_bytes(), at(120_000));
    observer.advance(at(130_000));
    let text = told(&mut observer).concat();
    assert!(text.len() <= TEXT_BYTES && text.starts_with("line 119"), "{} bytes", text.len());
}

/// The events derived from the terminal of a real session.
#[test]
fn a_recorded_aider_session_yields_its_prompts_and_answers() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/terminal/recordings/aider/edit-and-command");
    let rules = Arc::new(ScreenRules::load(None).unwrap());
    let mut observer =
        Observer::new(Size { rows: 40, columns: 120 }, Provider::Aider, rules, Timestamp::from_millisecond(0));
    let mut seen = Vec::new();
    for line in fs::read_to_string(folder.join("timeline.jsonl")).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let at = Timestamp::from_millisecond((line["at"].as_f64().unwrap() * 1000.0) as i64);
        while let Some(due) = observer.next_deadline().filter(|due| *due <= at) {
            observer.advance(due);
        }
        match (line["op"].as_str().unwrap(), line["data"].as_str()) {
            ("out", Some(data)) => observer.output(data.as_bytes(), at),
            ("in", Some(data)) => observer.input(data.as_bytes(), at),
            _ => {}
        }
        seen.extend(told(&mut observer));
    }
    let prompts: Vec<&String> = seen.iter().filter(|event| event.starts_with("> ")).collect();
    assert_eq!(prompts, ["> say hello", "> make b.txt"], "answers to its questions are left out");
    let text = seen.join("\n");
    for said in ["Hello. An answer that is written slowly, word by word, so that it is seen.", "Applied edit to b.txt"]
    {
        assert_eq!(text.matches(said).count(), 1, "{said} in {seen:#?}");
    }
}
