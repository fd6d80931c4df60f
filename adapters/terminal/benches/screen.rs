//! The cost of reading a screen: `cargo bench -p terminal --bench screen`. Measures how long a reading takes on screens
//! that are hard on expressions, and how fast a flood is processed.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a measuring program, not a service"
)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use events::{Provider, Timestamp};
use host_protocol::screen::Size;
use terminal::screen::{Observer, ScreenRules};

/// Line beginnings that many rules match against.
const FILLS: [&str; 7] = ["─", "│ ", "> ", "› 1. a (", "❯ 1. No ", "a b ", "• esc to 1 "];
const FLOOD_LINE: &str = "some text of a line that is long enough to be a line\r\n";

/// A screen with a simulated clock, ms.
struct Screen {
    observer: Observer,
    now: i64,
}

impl Screen {
    fn new(size: Size, provider: Provider, rules: &Arc<ScreenRules>) -> Self {
        let now = 1_000_000;
        Self { observer: Observer::new(size, provider, Arc::clone(rules), Timestamp::from_millisecond(now)), now }
    }

    fn write(&mut self, text: &str) {
        self.observer.output(text.as_bytes(), Timestamp::from_millisecond(self.now));
    }

    /// Advances the clock by 100 ms, deadline by deadline; returns how long that took.
    fn look(&mut self) -> Duration {
        let begun = Instant::now();
        let until = self.now + 100;
        while let Some(due) = self.observer.next_deadline().filter(|due| due.as_millisecond() <= until) {
            self.now = self.now.max(due.as_millisecond());
            self.observer.advance(Timestamp::from_millisecond(self.now));
        }
        self.now = until;
        self.observer.advance(Timestamp::from_millisecond(self.now));
        self.observer.take_events();
        begun.elapsed()
    }
}

fn main() {
    let begun = Instant::now();
    let rules = Arc::new(ScreenRules::load(None).unwrap());
    println!("rules read in {:?}", begun.elapsed());
    for provider in [Provider::Claude, Provider::Codex, Provider::Gemini] {
        for (rows, columns) in [(40, 120), (100, 300), (500, 1000)] {
            for fill in FILLS {
                let mut screen = Screen::new(Size { rows, columns }, provider, &rules);
                let line = fill.repeat(usize::from(columns) / fill.chars().count());
                screen.write(&format!("\x1b[2J\x1b[H{}", vec![line; usize::from(rows)].join("\r\n")));
                let first = screen.look();
                screen.write("x");
                let then = screen.look();
                if (first + then).as_millis() > 1 {
                    println!("{provider} {rows}x{columns} {fill:?}: first look {first:?}, then {then:?}");
                }
            }
        }
    }
    let mut screen = Screen::new(Size { rows: 24, columns: 80 }, Provider::Claude, &rules);
    let chunk = FLOOD_LINE.repeat(1200);
    let begun = Instant::now();
    for _ in 0..1000 {
        screen.write(&chunk);
        screen.now += 1;
    }
    println!("flood: {:.0} MB/s", chunk.len() as f64 * 1000.0 / 1e6 / begun.elapsed().as_secs_f64());
}
