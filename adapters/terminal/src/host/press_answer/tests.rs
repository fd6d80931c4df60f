//! A simulated agent that replaces the dialog that was answered with another one, at any moment before, during and
//! after the answer: a key may only ever reach the dialog that was answered.
//!
//! The terminal, the relay and the screen are simulated with their delays and in every order, from a seed; the
//! decisions are made by the host's own code. The agent reads a key the moment it is typed: the interval between its
//! own write and its own read cannot be observed.

use std::{collections::VecDeque, fmt::Write, sync::Arc};

use crossbeam_channel::bounded;
use events::{Provider, Timestamp};
use host_protocol::{claim::HostEvent, screen::Size};

use super::*;
use crate::screen::ScreenRules;

/// Cases in the suite; `CAPTURE_SWAPS` overrides the number.
const CASES: u64 = 500;
const SIZE: Size = Size { rows: 24, columns: 80 };
const SCREEN: &str = include_str!("../../../../../fixtures/terminal/screens/claude/permission-24x80.txt");
const READY: &str = "\x1b]0;✳ Claude Code\x07\x1b[2J\x1b[H Claude Code v2.1.328\r\n\x1b[20;1H\
────────────────────────────────────────────────────────────────────────────────\r\n❯ \r\n\
────────────────────────────────────────────────────────────────────────────────\r\n  ? for shortcuts";
/// A program whose options have no dedicated keys.
const ARROWS: &str = r#"
provider = "unknown"
tested = ["=1.0.0"]
version = { in = "screen", has = 'asker v(\d+\.\d+\.\d+)' }
[regions]
box = { from = '^\+--' }
[[rules]]
name = "ask"
priority = 30
state = "waiting_approval"
reason = "tool"
debounce_ms = 30
all = [{ in = "box", has = '(?m)^Proceed\?' }, { in = "box", has = '(?m)^> ' }]
[rules.dialog]
about = "command"
subject = [{ in = "box", has = '(?m)^\$ (.*)' }]
options = { in = "box", has = '(?m)^(?P<cursor>>)? *(?P<digit>\d)\. (?P<label>.*)$' }
digits_answer = false
whole = "box"
answerable = true
deny_key = "esc"
answers = { allow_once = ['^Yes$'], allow_always = ['^Always$'], deny = ['^No$'] }
[[rules]]
name = "rest"
priority = 10
state = "waiting"
debounce_ms = 30
all = [{ in = "screen", has = '(?m)^input:' }]
"#;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: i64) -> i64 {
        i64::try_from(self.next() % n.unsigned_abs()).unwrap()
    }

    fn chance(&mut self, percent: i64) -> bool {
        self.below(100) < percent
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Look {
    Claude,
    Arrows,
}

/// A request of the agent, and its number.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Request {
    number: u64,
    command: String,
    cursor: usize,
}

/// The agent: its output, and the request that a key would answer.
struct Agent {
    look: Look,
    open: Option<Request>,
    requests: u64,
    /// Pending writes, each with its time.
    writes: VecDeque<(i64, String)>,
    keys: Vec<(Option<Request>, Vec<u8>)>,
    deaf: bool,
}

impl Agent {
    fn request(&mut self, command: &str) -> Request {
        self.requests += 1;
        let cursor = if self.look == Look::Arrows { 2 } else { 0 };
        Request { number: self.requests, command: command.to_owned(), cursor }
    }

    fn lines(&self, request: &Request) -> Vec<String> {
        match self.look {
            Look::Claude => {
                let body = SCREEN.split_once("---\n").unwrap().1;
                body.lines().map(|line| line.replace("touch a.txt", &request.command)).collect()
            }
            Look::Arrows => {
                let mut lines = vec!["asker v1.0.0".to_owned(), "+--".into(), format!("$ {}", request.command)];
                lines.push("Proceed?".into());
                for (at, option) in ["Yes", "Always", "No"].iter().enumerate() {
                    let cursor = if at == request.cursor { '>' } else { ' ' };
                    lines.push(format!("{cursor} {}. {option}", at + 1));
                }
                lines
            }
        }
    }

    fn composer(&self) -> String {
        match self.look {
            Look::Claude => READY.to_owned(),
            Look::Arrows => "\x1b[2J\x1b[Hasker v1.0.0\r\ninput:".to_owned(),
        }
    }

    fn rows(&self, request: &Request, only: impl Fn(usize, &str) -> bool) -> String {
        let mut out = String::new();
        for (row, line) in self.lines(request).iter().enumerate().filter(|(row, line)| only(*row, line)) {
            write!(out, "\x1b[{};1H{line}\x1b[K", row + 1).unwrap();
        }
        out
    }

    /// Draws a request in one of the ways agents use.
    fn draw(&self, request: &Request, way: i64) -> String {
        let all = self.rows(request, |_, _| true);
        match way {
            // Only the cells that differ.
            0 if self.open.is_some() => self.rows(request, |_, line| line.contains(&request.command)),
            1 => format!("\x1b[?2026h\x1b[2J{all}\x1b[?2026l"),
            // Line by line from the end, like agents that draw below their previous output.
            2 => {
                let erase: String = (1..=24).rev().map(|row| format!("\x1b[{row};1H\x1b[2K")).collect();
                erase + &all
            }
            3 => all,
            _ => format!("\x1b[2J\x1b[H{all}"),
        }
    }

    /// Opens `next`, drawn in one or more writes; it counts as open from the first write.
    fn show(&mut self, next: Option<Request>, drawn: String, now: i64, random: &mut Random) {
        self.open = next;
        let mut at = now;
        let mut rest = drawn.as_str();
        while !rest.is_empty() {
            let mut cut = rest.len();
            if random.chance(30) {
                cut = usize::try_from(1 + random.below(i64::try_from(rest.len()).unwrap())).unwrap();
                while !rest.is_char_boundary(cut) {
                    cut += 1;
                }
            }
            let (write, after) = rest.split_at(cut);
            self.writes.push_back((at, write.to_owned()));
            rest = after;
            at += random.below(40);
        }
    }

    fn key(&mut self, bytes: &[u8], now: i64, random: &mut Random) {
        self.keys.push((self.open.clone(), bytes.to_vec()));
        let Some(mut open) = self.open.clone().filter(|_| !self.deaf) else { return };
        match (self.look, bytes) {
            (Look::Arrows, b"\x1b[A" | b"\x1b[B") => {
                open.cursor = if bytes[2] == b'A' { open.cursor.saturating_sub(1) } else { (open.cursor + 1).min(2) };
                let drawn = self.rows(&open, |row, _| row >= 4);
                self.show(Some(open), drawn, now + 3, random);
            }
            _ => {
                let drawn = self.composer();
                self.show(None, drawn, now + 5, random);
            }
        }
    }
}

/// The simulation.
struct World {
    random: Random,
    now: i64,
    agent: Agent,
    /// Bytes written by the agent and not read by the relay.
    terminal: VecDeque<u8>,
    passed: u64,
    stood: Option<(String, Option<i32>)>,
    /// Bytes passed on by the relay and not parsed by the screen.
    copies: VecDeque<(Vec<u8>, i64)>,
    observer: Observer,
    parsed: u64,
    written_at: i64,
    marks: Vec<String>,
    answering: Option<Answering>,
    /// Messages from the screen to the relay.
    told: VecDeque<Result<String, Press>>,
    pressed: Option<Pressed>,
    /// Replace the dialog as soon as a key was handed to the relay.
    on_press: Option<&'static str>,
    answered: Option<Result<Answered, String>>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let look = if random.chance(75) { Look::Claude } else { Look::Arrows };
        let now = 1_000_000;
        let (provider, rules) = match look {
            Look::Claude => (Provider::Claude, ScreenRules::embedded()),
            Look::Arrows => (Provider::Unknown, ScreenRules::of("test.toml", ARROWS)),
        };
        let observer = Observer::new(SIZE, provider, Arc::new(rules), Timestamp::from_millisecond(now));
        let agent = Agent { look, open: None, requests: 0, writes: VecDeque::new(), keys: Vec::new(), deaf: false };
        Self {
            random,
            now,
            agent,
            terminal: VecDeque::new(),
            passed: 0,
            stood: None,
            copies: VecDeque::new(),
            observer,
            parsed: 0,
            written_at: now,
            marks: Vec::new(),
            answering: None,
            told: VecDeque::new(),
            pressed: None,
            on_press: None,
            answered: None,
        }
    }

    fn at(&self) -> Timestamp {
        Timestamp::from_millisecond(self.now)
    }

    /// Performs one of the steps that may happen next, within this millisecond.
    fn act(&mut self) {
        match self.random.below(4) {
            0 => self.read(false),
            1 => self.take(),
            2 => self.look(),
            _ => self.screen_events(),
        }
        if self.told.iter().any(Result::is_err)
            && let Some(command) = self.on_press.take()
        {
            self.swap(command);
            self.write();
        }
    }

    /// The agent performs its due writes.
    fn write(&mut self) {
        while self.agent.writes.front().is_some_and(|(at, _)| *at <= self.now) {
            let (_, text) = self.agent.writes.pop_front().unwrap();
            self.terminal.extend(text.bytes());
        }
    }

    /// The relay reads all or some of the output.
    fn read(&mut self, all: bool) {
        let most = if all || self.random.chance(50) { self.terminal.len() } else { self.terminal.len() / 2 };
        if most > 0 {
            let bytes: Vec<u8> = self.terminal.drain(..most).collect();
            self.passed += bytes.len() as u64;
            self.copies.push_back((bytes, self.now));
        }
    }

    /// The screen parses a chunk that was passed on.
    fn take(&mut self) {
        if let Some((bytes, at)) = self.copies.pop_front() {
            self.parsed += bytes.len() as u64;
            self.written_at = at;
            self.observer.output(&bytes, Timestamp::from_millisecond(at));
        }
    }

    /// The screen is checked, and the answer continues.
    fn look(&mut self) {
        // Parse everything that was passed on first, as the host does.
        while !self.copies.is_empty() {
            self.take();
        }
        let now = self.at();
        self.observer.advance(now);
        for (_, told) in self.observer.take_events() {
            let HostEvent::Claim(claim) = told else { continue };
            if let Some(mark) = claim.dialog.and_then(|dialog| dialog.mark) {
                self.marks.push(mark.clone());
                self.told.push_back(Ok(mark));
            }
        }
        let Some(mut answering) = self.answering.take() else { return };
        if let Some(pressed) = self.pressed.take()
            && let Some(AnswerStep::Done(done)) = answering.pressed(&pressed, &self.observer, now)
        {
            self.answered = Some(done);
            return;
        }
        match answering.step(&self.observer, Timestamp::from_millisecond(self.written_at), now) {
            AnswerStep::Wait(_) => {}
            AnswerStep::Done(done) => {
                self.answered = Some(done);
                return;
            }
            AnswerStep::Press { bytes } => {
                let mark = answering.mark().to_owned();
                self.told.push_back(Err(Press { mark, bytes, parsed: self.parsed, pressed: bounded(1).0 }));
            }
        }
        self.answering = Some(answering);
    }

    /// The relay handles a message from the screen, in the order of `Relay::press`.
    fn screen_events(&mut self) {
        match self.told.pop_front() {
            Some(Ok(mark)) => self.stood = Some((mark, Some(7))),
            Some(Err(press)) => {
                self.read(true);
                let facts = TerminalFacts {
                    passed: self.passed,
                    unread: !self.terminal.is_empty(),
                    stood: self.stood.as_ref().map(|(mark, group)| (mark.as_str(), *group)),
                    group: Some(7),
                    raw: true,
                    typed: None,
                    waiting: false,
                    runs: true,
                };
                self.pressed = Some(match may_press(&press, &facts) {
                    Ok(()) => {
                        self.agent.key(&press.bytes, self.now, &mut self.random);
                        Pressed::Yes
                    }
                    Err(not) => not,
                });
            }
            None => {}
        }
    }

    /// Advances time by a millisecond and performs what happens in it.
    fn pass(&mut self) {
        self.now += 1;
        self.write();
        let idle = self.terminal.is_empty() && self.copies.is_empty() && self.told.is_empty() && self.pressed.is_none();
        let due = self.observer.next_deadline().is_some_and(|due| due <= self.at());
        if idle && !due && self.answering.is_none() {
            return;
        }
        for _ in 0..self.random.below(6) {
            self.act();
        }
    }

    fn settle(&mut self, ms: i64) {
        for _ in 0..ms {
            self.pass();
        }
        while !(self.terminal.is_empty() && self.copies.is_empty() && self.told.is_empty()) {
            self.pass();
        }
    }

    /// Replaces the open dialog with another one or none.
    fn swap(&mut self, command: &str) {
        let now = self.now;
        let way = self.random.below(6);
        let mut changed = command.to_owned();
        let next = match self.random.below(7) {
            // One character differs.
            0 | 1 => {
                let at = usize::try_from(self.random.below(i64::try_from(command.len()).unwrap())).unwrap();
                changed.replace_range(at..=at, if &command[at..=at] == "x" { "y" } else { "x" });
                self.agent.request(&changed)
            }
            2 => self.agent.request("rm -rf build && make"),
            // It closes and another with the same words opens: at once, in one write, or later.
            3 => {
                let next = self.agent.request(command);
                let drawn = self.agent.composer() + &self.agent.draw(&next, 4);
                return self.agent.show(Some(next), drawn, now, &mut self.random);
            }
            4 => {
                let next = self.agent.request(command);
                let drawn = self.agent.draw(&next, 1 + self.random.below(2));
                return self.agent.show(Some(next), drawn, now, &mut self.random);
            }
            5 => {
                let drawn = self.agent.composer();
                self.agent.show(None, drawn, now, &mut self.random);
                let gap = self.random.below(200);
                self.settle(gap);
                self.agent.request(command)
            }
            _ => {
                let drawn = self.agent.composer();
                return self.agent.show(None, drawn, now, &mut self.random);
            }
        };
        let drawn = self.agent.draw(&next, way);
        self.agent.show(Some(next), drawn, self.now, &mut self.random);
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    applied: u64,
    refused: u64,
    /// A key reached another dialog, or no dialog.
    wrong: Vec<u64>,
    /// The dialog was not answered although nothing prevented it.
    idle: Vec<(u64, String)>,
}

fn play(seed: u64, count: &mut Count) {
    let mut world = World::new(seed);
    let drawn = world.agent.composer();
    let now = world.now;
    world.agent.show(None, drawn, now, &mut world.random);
    world.settle(150);
    let command =
        ["touch a.txt", "cargo test", "git push origin main"][usize::try_from(world.random.below(3)).unwrap()];
    let request = world.agent.request(command);
    let drawn = world.agent.draw(&request, 1 + world.random.below(4));
    let now = world.now;
    world.agent.show(Some(request.clone()), drawn, now, &mut world.random);
    let stood = 250 + world.random.below(600);
    world.settle(stood);
    // The decision, for the dialog reported last.
    let mark = world.marks.last().cloned().unwrap_or_else(|| panic!("seed {seed}: no dialog was told"));
    let answer = if world.random.chance(70) { DialogAnswer::AllowOnce } else { DialogAnswer::Deny };
    let swaps = world.random.chance(80);
    let on_press = swaps && world.random.chance(50);
    world.agent.deaf = world.random.chance(5);
    let swap_at = world.now + world.random.below(1000);
    let asked_at = world.now + world.random.below(500);
    let until = world.now + 6000;
    let (mut swapped, mut asked) = (false, false);
    while world.now < until && world.answered.is_none() {
        if !asked && world.now >= asked_at {
            asked = true;
            world.on_press = on_press.then_some(command);
            world.answering = Some(Answering::new(mark.clone(), answer, world.at()));
        }
        if swaps && !on_press && !swapped && world.now >= swap_at {
            swapped = true;
            // Within the millisecond: before, between and after the steps of the threads.
            for _ in 0..world.random.below(4) {
                world.act();
            }
            world.swap(command);
        }
        world.pass();
    }
    let answered = world.answered.take().unwrap_or_else(|| panic!("seed {seed}: the answer did not end"));
    if world.agent.keys.iter().any(|(open, _)| open.as_ref().map(|open| open.number) != Some(request.number)) {
        count.wrong.push(seed);
    }
    if let Some((Some(open), last)) = world.agent.keys.last() {
        // The key must also mean the decided answer: never the option in the middle.
        let allowed = last == b"1" || last == b"\r" && open.cursor == 0;
        let means = if answer == DialogAnswer::AllowOnce { allowed } else { last == b"\x1b" };
        if !means && (answered.as_ref().is_ok_and(|a| a.applied) || !last.starts_with(b"\x1b[")) {
            count.wrong.push(seed);
        }
    }
    match answered {
        Ok(answered) if answered.applied => count.applied += 1,
        Ok(_) => count.refused += 1,
        Err(why) => {
            assert!(world.agent.keys.is_empty(), "seed {seed}: a key was typed, and then: {why}");
            count.refused += 1;
            if !swaps {
                count.idle.push((seed, why));
            }
        }
    }
}

#[test]
fn an_answer_key_never_reaches_a_dialog_other_than_the_decided_one() {
    #[expect(clippy::disallowed_methods, reason = "how much is tried is said from outside")]
    let cases = std::env::var("CAPTURE_SWAPS").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES);
    let mut count = Count::default();
    for seed in 0..cases {
        play(seed, &mut count);
    }
    println!("{cases} cases: {} applied, {} refused, {} wrong", count.applied, count.refused, count.wrong.len());
    assert_eq!((&count.wrong, &count.idle), (&Vec::new(), &Vec::new()));
    assert!(count.applied > cases / 5 && count.refused > cases / 5, "{count:?}");
}

#[test]
fn arrow_keys_move_the_cursor_to_the_chosen_option() {
    use crate::screen::StandingOption;
    let dialog = |selected: usize, row| {
        let answers = [ChoiceAnswer::AllowAlways, ChoiceAnswer::AllowOnce, ChoiceAnswer::Deny].into_iter().enumerate();
        let option = |(at, answer)| StandingOption { answer: Some(answer), keys: Vec::new(), selected: at == selected };
        let options = answers.map(option).collect();
        StandingDialog { mark: "m".into(), since: Timestamp::MIN, deny_key: Some("esc".into()), row, options }
    };
    let key = |selected, row, answer| next_key(&dialog(selected, row), answer);
    for (row, back, on) in [(false, "up", "down"), (true, "left", "right")] {
        assert_eq!(key(0, row, DialogAnswer::AllowOnce), Ok(NextKey::Arrow(on, 1)));
        assert_eq!(key(1, row, DialogAnswer::AllowOnce), Ok(NextKey::Last("enter".into())));
        assert_eq!(key(2, row, DialogAnswer::AllowOnce), Ok(NextKey::Arrow(back, 1)));
        assert_eq!(key(0, row, DialogAnswer::Deny), Ok(NextKey::Last("esc".into())));
    }
}
