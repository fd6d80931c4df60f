//! Black-box tests of the screen: bytes and time in, claims out.

mod engine;
mod faults;
mod marks;
mod model;
mod properties;
mod reports;
mod screens;
mod typing;

use std::sync::{Arc, OnceLock};

use events::{Provider, State, Timestamp};
use host_protocol::{
    claim::{HostEvent, ScreenClaim},
    screen::Size,
};

use super::{Observer, ScreenRules};

const SIZE: Size = Size { rows: 24, columns: 80 };

/// The built-in rules, read once.
fn embedded() -> Arc<ScreenRules> {
    static RULES: OnceLock<Arc<ScreenRules>> = OnceLock::new();
    Arc::clone(RULES.get_or_init(|| Arc::new(ScreenRules::load(None).unwrap())))
}

/// A terminal with a clock controlled by the test.
struct Stage {
    observer: Observer,
    now: i64,
}

impl Stage {
    fn new(provider: Provider, rules: ScreenRules) -> Self {
        Self::sized(SIZE, provider, Arc::new(rules))
    }

    fn sized(size: Size, provider: Provider, rules: Arc<ScreenRules>) -> Self {
        let now = 1_000_000;
        Self { observer: Observer::new(size, provider, rules, Timestamp::from_millisecond(now)), now }
    }

    /// A terminal with the rules of one file, for any program.
    fn with(rules: &str) -> Self {
        let mut all = ScreenRules::default();
        all.add("test.toml", rules).unwrap();
        Self::new(Provider::Unknown, all)
    }

    fn at(&self) -> Timestamp {
        Timestamp::from_millisecond(self.now)
    }

    fn write(&mut self, text: &str) -> &mut Self {
        self.observer.output(text.as_bytes(), self.at());
        self
    }

    /// Clears the screen and draws `text`.
    fn draw(&mut self, text: &str) -> &mut Self {
        let text = text.replace('\n', "\r\n");
        self.write(&format!("\x1b[2J\x1b[H{text}"))
    }

    /// Advances the clock by `ms`, deadline by deadline.
    fn pass(&mut self, ms: i64) -> Vec<HostEvent> {
        let until = self.now + ms;
        while let Some(due) = self.observer.next_deadline().filter(|d| d.as_millisecond() <= until) {
            self.now = self.now.max(due.as_millisecond());
            self.observer.advance(self.at());
        }
        self.now = until;
        self.observer.advance(self.at());
        self.observer.take_events().into_iter().map(|(_, told)| told).collect()
    }

    /// The claims made within `ms`, each as `state reason`.
    fn claims(&mut self, ms: i64) -> Vec<String> {
        self.pass(ms).iter().map(short).collect()
    }
}

fn short(told: &HostEvent) -> String {
    match told {
        HostEvent::Claim(claim) => named(claim),
        HostEvent::Withdrawn => "withdrawn".into(),
        HostEvent::Answered { meaning } => format!("answered {meaning}"),
        HostEvent::Notification { text } => format!("notification {text}"),
        HostEvent::Bell => "bell".into(),
        HostEvent::Prompt { text } => format!("prompt {text}"),
        HostEvent::Text { .. } => "text".into(),
        HostEvent::Alive => "alive".into(),
        HostEvent::Exited { .. }
        | HostEvent::Gap { .. }
        | HostEvent::ModeGranted { .. }
        | HostEvent::CallDecided(_)
        | HostEvent::ReadsAllowed { .. }
        | HostEvent::Unknown => "?".into(),
    }
}

fn named(claim: &ScreenClaim) -> String {
    claim.reason.map_or_else(|| claim.state.to_string(), |reason| format!("{} {reason}", claim.state))
}
