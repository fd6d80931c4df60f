//! Colours, marks and times in output for users.

use std::{fmt, io::IsTerminal as _};

use anstyle::{AnsiColor, Style};
use api::part::SHORT_ID;
use events::{State, Timestamp};
use projections::SessionStatus;

/// The colour of items that need the user now.
pub const ALARM: Style = AnsiColor::Red.on_default().bold();
/// The colour of failures and removed lines.
pub const RED: Style = AnsiColor::Red.on_default();
/// The colour of success and added lines.
pub const GREEN: Style = AnsiColor::Green.on_default();
/// The colour of waiting items and warnings.
pub const YELLOW: Style = AnsiColor::Yellow.on_default();
/// The colour of unknown states.
pub const MAGENTA: Style = AnsiColor::Magenta.on_default();
/// The colour of items in progress.
pub const CYAN: Style = AnsiColor::Cyan.on_default();
/// The style of finished items.
pub const DIM: Style = Style::new().dimmed();

/// A state with its mark and colour; colours only if the terminal shows them.
pub fn state(status: &SessionStatus, colour: bool) -> String {
    let (mark, style) = match status.state {
        State::Running => ("●", GREEN),
        State::Waiting => ("◆", YELLOW),
        State::WaitingApproval => ("▲", ALARM),
        State::Idle => ("○", DIM),
        State::Exited => ("·", DIM),
        State::Unknown => ("?", MAGENTA),
    };
    let text = match status.reason {
        Some(reason) if !reason.facts().is_implied => format!("{mark} {} {reason}", status.state),
        Some(_) | None => format!("{mark} {}", status.state),
    };
    if colour { coloured(&text, style) } else { text }
}

/// A short form of a state with its mark, for narrow terminals.
pub fn short_state(status: &SessionStatus) -> String {
    match status.state {
        State::WaitingApproval => "▲ approval".to_owned(),
        State::Running | State::Waiting | State::Idle | State::Exited | State::Unknown => {
            let bare = SessionStatus { reason: None, ..status.clone() };
            state(&bare, false)
        }
    }
}

/// A coloured text, if the terminal shows colours.
pub fn painted(text: &str, style: Style) -> String {
    if colours() { coloured(text, style) } else { text.to_owned() }
}

/// A coloured text, whatever the terminal.
pub fn coloured(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

/// The age in the largest unit that fits.
pub fn age(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.since_ms(then).max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The time in local time.
pub fn local(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.as_millisecond()) {
        Ok(t) => t.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => at.to_string(),
    }
}

/// A path with the home directory as `~`.
pub fn path(path: &str) -> String {
    let home = crate::variable("HOME");
    match home.as_deref().and_then(|home| path.strip_prefix(home.to_str()?)) {
        Some("") => "~".into(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        Some(_) | None => path.to_owned(),
    }
}

/// Whether standard output shows colours.
pub fn colours() -> bool {
    crate::is_seen() && are_wanted()
}

/// Whether standard error shows colours.
pub fn error_colours() -> bool {
    std::io::stderr().is_terminal() && are_wanted()
}

fn are_wanted() -> bool {
    crate::variable("NO_COLOR").is_none() && crate::variable("TERM").is_none_or(|t| t.as_os_str() != "dumb")
}

/// The short form of an id: its last characters, which are enough to identify it.
pub fn short(id: &impl fmt::Display) -> String {
    let id = id.to_string();
    id[id.len().saturating_sub(SHORT_ID)..].to_owned()
}

#[cfg(test)]
mod tests {
    use anstyle::Color;

    use super::*;

    #[test]
    fn no_colour_vanishes_on_a_light_or_a_dark_background() {
        use AnsiColor::{Blue, Cyan, Green, Magenta, Red, Yellow};
        for style in [ALARM, RED, GREEN, YELLOW, MAGENTA, CYAN, DIM] {
            let is_seen = |color| matches!(color, Color::Ansi(Red | Green | Yellow | Blue | Magenta | Cyan));
            assert!(style.get_fg_color().is_none_or(is_seen), "{style:?}");
            assert_eq!(style.get_bg_color(), None, "{style:?}");
        }
    }
}
