//! A list that stays on screen and up to date.

use std::{io::Write, time::Duration};

use api::routes::{Stream, StreamQuery};
use crossbeam_channel::{Receiver, RecvTimeoutError, TrySendError, after, bounded};

use super::{Context, Failed};
use crate::{
    client::Client,
    terminal::{self, on_terminal},
};

/// Time after which a list on screen is redrawn even without a change.
const TICK: Duration = Duration::from_secs(1);

/// Shortest time between two redraws of a list.
const PAUSE: Duration = Duration::from_millis(100);

/// Stream frames that may change a list of sessions.
pub(super) const STATUS: &[&str] = &["snapshot", "status"];
/// Stream frames that may change any list: all of them.
pub(super) const ALL: &[&str] = &["snapshot", "event", "status", "approval", "finding"];

/// Prints the list and prints it again when something changes, until the server ends.
pub(super) fn watch<T: serde::Serialize>(
    context: &Context,
    client: &Client,
    frames: &'static [&'static str],
    list: impl Fn() -> anyhow::Result<T>,
    render: impl Fn(&T) -> String,
) -> anyhow::Result<()> {
    let news = follow(client, frames)?;
    let mut last = String::new();
    loop {
        let page = list()?;
        if context.json {
            // What a stream tells of need not be on the list.
            let text = serde_json::to_string(&page)?;
            if text != last {
                context.print_json(&page)?;
                last = text;
            }
        } else {
            // Drawn over the last list line by line, so that nothing flickers.
            let shown = on_terminal(&render(&page));
            let lines: String = shown.lines().map(|line| format!("{line}\x1b[K\r\n")).collect();
            control(&format!("\x1b[H{lines}\x1b[J"))?;
        }
        // Nobody reads faster. Nothing is sent on this channel: it is a wait.
        after(PAUSE).recv().ok();
        // What changed meanwhile shares the next drawing; without a change only the ages go on.
        match news.recv_timeout(TICK) {
            Err(RecvTimeoutError::Timeout) if context.json => match news.recv() {
                Ok(()) => {}
                Err(_) => break,
            },
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Err(Failed::Other("the server ended".into()).into())
}

/// Reports changes as long as the stream lasts.
fn follow(client: &Client, frames: &'static [&'static str]) -> anyhow::Result<Receiver<()>> {
    let stream = client.stream::<Stream>("", &StreamQuery::default())?;
    let (told, news) = bounded(1);
    // Ends with the stream, or with the program.
    std::thread::Builder::new().name("status-stream".into()).spawn(move || {
        for item in stream {
            let Ok((frame, _)) = item else { return };
            if frames.contains(&frame.as_str()) && matches!(told.try_send(()), Err(TrySendError::Disconnected(()))) {
                return;
            }
        }
    })?;
    Ok(news)
}

/// Empties the screen.
pub(super) fn clear() -> anyhow::Result<()> {
    control("\x1b[2J")
}

/// Writes our own control sequences to the terminal.
fn control(sequences: &str) -> anyhow::Result<()> {
    let mut out = terminal::stdout();
    out.control(sequences)?;
    Ok(out.flush()?)
}

/// Writes a text at once.
pub(super) fn show(text: &str) -> anyhow::Result<()> {
    let mut out = terminal::stdout();
    write!(out, "{text}")?;
    Ok(out.flush()?)
}
