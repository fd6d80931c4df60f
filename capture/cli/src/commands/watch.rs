//! A list on screen that is kept up to date.

use std::{
    io::{IsTerminal, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use api::routes::{Stream, StreamQuery};
use client::{Client, failure::Failed};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::context::Context;
use printing::on_terminal;

/// Interval after which a list on screen is redrawn even without a change.
const TICK: Duration = Duration::from_secs(1);

/// Minimum time between two requests for a list.
const PAUSE: Duration = Duration::from_millis(100);

/// Stream frames that may change a list of sessions.
pub(super) const STATUS: &[&str] = &["snapshot", "status"];
/// Stream frames that may change any list: all of them.
pub(super) const ALL: &[&str] = &["snapshot", "event", "status", "approval", "finding"];

/// A list as text.
#[derive(Debug, Default)]
pub(super) struct ListText {
    /// The heading, which stays in place when the rows scroll.
    pub(super) head: Vec<String>,
    /// The rows.
    pub(super) rows: Vec<String>,
}

impl ListText {
    /// A text whose first `head` lines are the heading.
    pub(super) fn new(text: &str, head: usize) -> Self {
        let mut lines = text.lines().map(str::to_owned);
        Self { head: lines.by_ref().take(head).collect(), rows: lines.collect() }
    }
}

/// A list in watch mode; `P` is the server's answer.
pub(super) trait Watched<P> {
    /// Requests the list from the server.
    fn list(&self) -> anyhow::Result<P>;

    /// Renders the list as text.
    fn render(&self, page: &P) -> ListText;

    /// Additional keys of this list with their meaning, for the last line of the screen.
    fn keys(&self) -> &'static str {
        ""
    }

    /// Handles an additional key; returns whether to request the list again.
    fn on_key(&mut self, _key: char) -> bool {
        false
    }
}

/// Shows a list and refreshes it on changes: until `q` on a terminal, otherwise until the server exits.
pub(super) fn watch<P: serde::Serialize>(
    context: &Context,
    client: &Client,
    frames: &'static [&'static str],
    list: impl Watched<P>,
) -> anyhow::Result<()> {
    let (report, news) = bounded(16);
    follow(client, frames, report.clone())?;
    if context.json || !std::io::stdout().is_terminal() {
        return print_changes(context, &news, &list);
    }
    on_screen(&report, &news, list)
}

/// Events that a watched list waits for.
enum News {
    /// Something may have changed.
    Changed,
    /// The stream has ended.
    Ended,
    /// The terminal reports a key or a new size.
    Terminal(Event),
}

/// Prints the list whenever it has changed.
fn print_changes<P: serde::Serialize>(
    context: &Context,
    news: &Receiver<News>,
    list: &impl Watched<P>,
) -> anyhow::Result<()> {
    let mut last = String::new();
    loop {
        let page = list.list()?;
        // The change may concern something that is not on the list.
        let text = serde_json::to_string(&page)?;
        if text != last {
            if context.json {
                context.print_json(&page)?;
            } else {
                let ListText { head, rows } = list.render(&page);
                let separator = if last.is_empty() { "" } else { "\n" };
                let lines: String = head.iter().chain(&rows).map(|line| format!("{line}\n")).collect();
                show(&format!("{separator}{lines}"))?;
            }
            last = text;
        }
        match news.recv() {
            Ok(News::Changed | News::Terminal(_)) => crossbeam_channel::after(PAUSE).recv().ok(),
            Ok(News::Ended) | Err(_) => {
                return Err(Failed::Other("the server stopped, so the list is no longer updated".into()).into());
            }
        };
        while news.len() > 1 {
            news.try_recv().ok();
        }
    }
}

/// Shows the list on the whole screen and handles keys.
fn on_screen<P>(report: &Sender<News>, news: &Receiver<News>, mut list: impl Watched<P>) -> anyhow::Result<()> {
    let screen = FullScreen::enter()?;
    let has_keys = std::io::stdin().is_terminal();
    if has_keys {
        read_keys(report.clone())?;
    }
    let ending = terminating()?;
    let mut scroll = Scroll::default();
    let mut text = list.render(&list.list()?);
    let mut listed = Instant::now();
    let mut is_stale = false;
    loop {
        scroll.draw(&screen, &text, if has_keys { Some(list.keys()) } else { None })?;
        let wait = if is_stale { PAUSE.saturating_sub(listed.elapsed()) } else { TICK };
        match news.recv_timeout(wait) {
            Ok(News::Ended) => {
                return Err(Failed::Other("the server stopped, so the list is no longer updated".into()).into());
            }
            Ok(News::Terminal(Event::Key(key))) => match scroll.on_key(key) {
                KeyResult::Quit => return Ok(()),
                KeyResult::Done => {}
                KeyResult::Other(key) => is_stale |= list.on_key(key),
            },
            Ok(News::Terminal(_)) | Err(RecvTimeoutError::Timeout) => is_stale = true,
            Ok(News::Changed) => is_stale = true,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        if ending.load(Ordering::Relaxed) {
            return Ok(());
        }
        // Users cannot read faster than this, so changes within the pause share one request.
        if is_stale && listed.elapsed() >= PAUSE {
            (text, listed, is_stale) = (list.render(&list.list()?), Instant::now(), false);
        }
    }
}

/// The terminal's alternate screen without echo. Dropping it restores the previous screen.
struct FullScreen;

impl FullScreen {
    fn enter() -> anyhow::Result<Self> {
        if std::io::stdin().is_terminal() {
            crossterm::terminal::enable_raw_mode()?;
        }
        let screen = Self;
        // Without wrapping, a line that is too long is cut at the edge.
        control("\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J")?;
        Ok(screen)
    }

    fn size(&self) -> (usize, usize) {
        let (columns, rows) = crossterm::terminal::size().unwrap_or((80, 24));
        (usize::from(columns.max(1)), usize::from(rows.max(2)))
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        control("\x1b[?7h\x1b[?25h\x1b[?1049l").ok();
        crossterm::terminal::disable_raw_mode().ok();
    }
}

/// The part of a list that is on the screen.
#[derive(Debug, Default)]
struct Scroll {
    first: usize,
    /// Number of rows that fit, as of the last drawing.
    height: usize,
    has_help: bool,
}

/// The effect of a key on a list.
enum KeyResult {
    Quit,
    Done,
    Other(char),
}

impl Scroll {
    /// Overwrites the previous drawing line by line, so that nothing flickers.
    fn draw(&mut self, screen: &FullScreen, text: &ListText, keys: Option<&str>) -> anyhow::Result<()> {
        let (columns, rows) = screen.size();
        self.height = rows.saturating_sub(text.head.len() + 1).max(1);
        self.first = self.first.min(text.rows.len().saturating_sub(self.height));
        let shown = text.rows.iter().skip(self.first).take(self.height);
        let mut lines: Vec<String> = text.head.iter().chain(shown).cloned().collect();
        lines.resize(rows - 1, String::new());
        let below = text.rows.len().saturating_sub(self.first + self.height);
        let drawn: String =
            lines.iter().map(|line| format!("{}\x1b[K\r\n", on_terminal(line))).collect::<Vec<_>>().concat();
        let foot: String = self.foot(below, keys).chars().take(columns).collect();
        control(&format!("\x1b[H{drawn}\x1b[2m{foot}\x1b[0m\x1b[K"))
    }

    fn foot(&self, below: usize, keys: Option<&str>) -> String {
        let more = match (self.first, below) {
            (0, 0) => String::new(),
            (above, below) => format!("{above} above, {below} below · "),
        };
        match keys {
            None => more.trim_end_matches(" · ").to_owned(),
            Some(keys) if self.has_help => {
                format!("{more}↑ ↓ j k one line · PgUp PgDn a page · g G first, last · {keys}q quit")
            }
            Some(keys) => format!("{more}j k scroll · {keys}? keys · q quit"),
        }
    }

    fn on_key(&mut self, key: KeyEvent) -> KeyResult {
        if key.kind == KeyEventKind::Release {
            return KeyResult::Done;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let page = self.height.saturating_sub(1).max(1);
        let is = |codes: &[KeyCode]| codes.contains(&key.code);
        if is(&[KeyCode::Char('q'), KeyCode::Esc]) || control && is(&[KeyCode::Char('c'), KeyCode::Char('d')]) {
            return KeyResult::Quit;
        }
        if is(&[KeyCode::Char('?')]) {
            self.has_help = !self.has_help;
        } else if is(&[KeyCode::Char('j'), KeyCode::Down]) {
            self.first += 1;
        } else if is(&[KeyCode::Char('k'), KeyCode::Up]) {
            self.first = self.first.saturating_sub(1);
        } else if is(&[KeyCode::Char(' '), KeyCode::PageDown]) {
            self.first += page;
        } else if is(&[KeyCode::Char('b'), KeyCode::PageUp]) {
            self.first = self.first.saturating_sub(page);
        } else if is(&[KeyCode::Char('g'), KeyCode::Home]) {
            self.first = 0;
        } else if is(&[KeyCode::Char('G'), KeyCode::End]) {
            // The next drawing moves it back to the last page.
            self.first = usize::MAX >> 1;
        } else if let KeyCode::Char(other) = key.code {
            return KeyResult::Other(other);
        }
        KeyResult::Done
    }
}

/// Reports keys and size changes of the terminal.
fn read_keys(report: Sender<News>) -> anyhow::Result<()> {
    std::thread::Builder::new().name("keys".into()).spawn(move || {
        while let Ok(event) = crossterm::event::read() {
            if report.send(News::Terminal(event)).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

/// Becomes true when a signal asks the program to exit, so that the terminal is restored first.
fn terminating() -> anyhow::Result<Arc<AtomicBool>> {
    let ending = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&ending))?;
    }
    Ok(ending)
}

/// Reports changes until the stream ends.
fn follow(client: &Client, frames: &'static [&'static str], report: Sender<News>) -> anyhow::Result<()> {
    let stream = client.stream::<Stream>("", &StreamQuery::default())?;
    // The thread ends with the stream or the program.
    std::thread::Builder::new().name("status-stream".into()).spawn(move || {
        for item in stream {
            let Ok((frame, _)) = item else { break };
            if !frames.contains(&frame.as_str()) {
                continue;
            }
            // If the channel is full, a request for the list is already due.
            if matches!(report.try_send(News::Changed), Err(TrySendError::Disconnected(_))) {
                return;
            }
        }
        report.send(News::Ended).ok();
    })?;
    Ok(())
}

/// Writes our own control sequences to the terminal.
fn control(sequences: &str) -> anyhow::Result<()> {
    let mut out = printing::stdout();
    out.control(sequences)?;
    Ok(out.flush()?)
}

/// Writes a text and flushes it.
pub(super) fn show(text: &str) -> anyhow::Result<()> {
    let mut out = printing::stdout();
    write!(out, "{text}")?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn keys_scroll_and_quit() {
        let mut scroll = Scroll { height: 10, ..Scroll::default() };
        scroll.on_key(key(KeyCode::Char('j')));
        scroll.on_key(key(KeyCode::PageDown));
        assert_eq!(scroll.first, 10);
        scroll.on_key(key(KeyCode::Up));
        assert_eq!(scroll.first, 9);
        scroll.on_key(key(KeyCode::Home));
        assert_eq!(scroll.first, 0);
        assert!(matches!(scroll.on_key(key(KeyCode::Char('q'))), KeyResult::Quit));
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert!(matches!(scroll.on_key(interrupt), KeyResult::Quit));
        assert!(matches!(scroll.on_key(key(KeyCode::Char('a'))), KeyResult::Other('a')));
    }

    #[test]
    fn the_footer_counts_hidden_lines_and_lists_the_keys() {
        let scroll = Scroll { first: 3, ..Scroll::default() };
        assert_eq!(scroll.foot(7, Some("a all · ")), "3 above, 7 below · j k scroll · a all · ? keys · q quit");
        assert_eq!(Scroll::default().foot(0, None), "");
    }
}
