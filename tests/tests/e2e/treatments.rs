//! Every treatment of a file, applied to the oldest and newest format of every agent: a record counts once, whatever
//! was done to the file, even where the agent gives records no identity.
//!
//! opencode keeps its sessions in a database, whose rows are read by increasing number; no treatment applies to it.

use std::{collections::BTreeMap, fmt::Write, fs, path::PathBuf};

use events::Payload;
use tests::{
    recording::{
        fixtures,
        folder::{Folder, FolderStep},
    },
    world::World,
};

/// A file of an agent: the version that wrote it, its path below the home directory, and its contents.
struct Written {
    by: &'static str,
    path: String,
    text: String,
}

/// The largest file of a recording, as it was at the end.
fn recorded(by: &'static str, name: &str) -> Written {
    let folder = Folder::read(&fixtures().join("recordings").join(name)).unwrap();
    let mut files = BTreeMap::<String, String>::new();
    for line in folder.timeline {
        if let FolderStep::Append { path, data } = line.what {
            files.entry(path).or_default().push_str(&data);
        } else if let FolderStep::Write { path, data } = line.what
            && path.contains("/chats/")
        {
            files.insert(path, data);
        }
    }
    let (path, text) = files.into_iter().max_by_key(|(_, text)| text.len()).unwrap();
    Written { by, path, text }
}

fn kept(by: &'static str, below: &str, fixture: &str) -> Written {
    let file = fixtures().join(fixture);
    let name = file.file_name().unwrap().to_str().unwrap();
    Written { by, path: format!("{below}/{name}"), text: fs::read_to_string(&file).unwrap() }
}

/// The oldest and the newest recorded format of each agent's files.
fn all() -> Vec<Written> {
    let claude = ".claude/projects/-home-dev-p";
    let resumed = "foreign/claude/resumed/93a9705e-bc6a-406d-8dce-8acc014dedbd.jsonl";
    let older = "codex/older-form/rollout-2026-10-28T20-47-12-01a18444-5331-76d0-931f-fe2783107086.jsonl";
    let foreign = "foreign/codex/rollout-2026-04-06T18-46-22-031d3ab5-1e7f-4e55-8e54-10ebd73d1a8d.jsonl";
    vec![
        kept("Claude Code, 2025", claude, resumed),
        recorded("Claude Code 2.1.332", "claude/osc7501-deny-esc"),
        kept("Codex, records without a frame", ".codex/sessions/2026/10/28", older),
        kept("Codex, April 2026", ".codex/sessions/2026/04/06", foreign),
        recorded("Codex 0.171.0", "codex/H03-deny-esc-error"),
        recorded("Gemini CLI, one JSON document", "gemini/S92-resume-legacy-json-with-0.61"),
        recorded("Gemini CLI 0.61.0", "gemini/S13-compress"),
        recorded("Qwen Code 0.24.4", "qwen/S03-shell-approve"),
        recorded("pi, first format", "pi/S02-tools-and-tree"),
        recorded("pi 1.6.0", "pi/osc7501-tool-esc-error"),
    ]
}

/// The treatments of a file that capture has read or will read.
const TREATMENTS: &[&str] =
    &["grows", "emptied", "removed", "replaced by a rename", "written over", "moved away and back", "copied back"];

/// Ms after which a file is checked even without a notification.
const LOOKED_AT: i64 = 20_000;

fn treat(world: &mut World, treatment: &str, path: &PathBuf, text: &str) {
    let mut now = 0;
    let mut wait = |world: &mut World| {
        now += LOOKED_AT;
        world.run_to(now);
    };
    // Cut at arbitrary positions, also within a line, but not within a character.
    let cuts = |parts: usize| {
        let mut ends: Vec<usize> = (1..parts).map(|part| text.floor_char_boundary(part * text.len() / parts)).collect();
        ends.push(text.len());
        let starts = [0].into_iter().chain(ends.clone());
        starts.zip(ends).map(|(from, to)| &text[from..to]).collect::<Vec<_>>()
    };
    let aside = path.with_extension("aside");
    if treatment == "grows" {
        for part in cuts(5) {
            world.append(path, part, None);
            wait(world);
        }
        return;
    }
    world.write(path, text);
    wait(world);
    match treatment {
        "emptied" => world.write(path, ""),
        "removed" => world.remove(path),
        "replaced by a rename" => {
            fs::write(&aside, text).unwrap();
            fs::rename(&aside, path).unwrap();
        }
        "written over" => world.write(path, text),
        "moved away and back" => {
            fs::rename(path, &aside).unwrap();
            wait(world);
            fs::rename(&aside, path).unwrap();
        }
        "copied back" => {
            fs::copy(path, &aside).unwrap();
            world.remove(path);
            wait(world);
            fs::copy(&aside, path).unwrap();
            fs::remove_file(&aside).unwrap();
        }
        other => unreachable!("{other}"),
    }
    wait(world);
    if matches!(treatment, "emptied" | "removed") {
        for part in cuts(4) {
            world.append(path, part, None);
            wait(world);
        }
    }
    wait(world);
}

/// The stored contents of a session: its turns, its tokens, and its records by kind.
fn counted(written: &Written, treatment: Option<&str>) -> String {
    let mut world = World::new(1_796_000_000_000);
    let path = world.home().join(&written.path);
    match treatment {
        Some(treatment) => treat(&mut world, treatment, &path, &written.text),
        None => {
            world.write(&path, &written.text);
            world.run_to(LOOKED_AT);
        }
    }
    let mut out = String::new();
    for kept in world.end().1 {
        let mut kinds = BTreeMap::new();
        for event in kept.events.iter().filter(|event| !event.derived) {
            let counts = matches!(
                event.payload,
                Payload::UserPrompt(_)
                    | Payload::AssistantMessage(_)
                    | Payload::AssistantDelta(_)
                    | Payload::ToolCall(_)
                    | Payload::ToolResult(_)
                    | Payload::UsageReported(_)
                    | Payload::ContextCompacted(_)
                    | Payload::Error(_)
            );
            *kinds.entry(event.payload.kind().as_str()).or_insert(0) += u32::from(counts);
        }
        kinds.retain(|_, count| *count > 0);
        let session = &kept.state.session;
        let usage = session.usage;
        let _ = writeln!(
            out,
            "{} {} turns, {}+{}+{} tokens, {kinds:?}",
            kept.known.provider_session_id,
            session.turns,
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens
        );
    }
    out
}

#[test]
fn a_record_is_counted_once_after_any_change_to_its_file() {
    let mut wrong = String::new();
    println!("| format | {} |", TREATMENTS.join(" | "));
    for written in all() {
        let once = counted(&written, None);
        assert!(once.contains("user.prompt"), "{}: {once}", written.by);
        let mut row = format!("| {} |", written.by);
        for treatment in TREATMENTS {
            let treated = counted(&written, Some(treatment));
            row += if treated == once { " once |" } else { " WRONG |" };
            if treated != once {
                let _ = writeln!(wrong, "{}, {treatment}:\n{treated}instead of\n{once}", written.by);
            }
        }
        println!("{row}");
    }
    assert!(wrong.is_empty(), "{wrong}");
}
