//! Plays recordings of runs: the screen at a given time, and its changes from there. Secrets were removed when the run
//! was recorded.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use api::runs::{GridUpdate, RecordedFrame, RecordedFrames, RecordingInfo, Run, RunState};
use events::{RunId, Timestamp};
use export::asciicast::{CastEvent, EventCode, JoinedReader, ReadError, parts};
use home::paths;
use host_protocol::screen::Size;
use live_view::{Refusal, RunTarget};
use terminal::screen::PlaybackScreen;

use crate::runs::Runs;

/// Minimum time between two frames, ms: at most 30 per second.
const FRAME_MS: u64 = 33;
/// Size of the texts of a response from which no more frames are added, bytes.
const ANSWER_BYTES: usize = 4 << 20;

/// Plays recordings. A client that continues where the last response ended does not cause everything before it to be
/// read again.
#[derive(Clone)]
pub struct Recordings {
    runs: Runs,
    data: PathBuf,
    left: Arc<Mutex<Option<(PathBuf, u64, Playback)>>>,
}

impl Recordings {
    /// Plays the recordings of these runs, and those of earlier runs in the data directory.
    #[must_use]
    pub fn new(runs: Runs, data: &Path) -> Self {
        Self { runs, data: data.to_path_buf(), left: Arc::default() }
    }

    /// Describes a recording.
    ///
    /// # Errors
    /// When the run has no recording, or it cannot be read.
    pub fn info(&self, target: &RunTarget) -> Result<RecordingInfo, Refusal> {
        let (first, run) = self.file(target)?;
        let mut playback = Playback::open(&first)?;
        let header = playback.events.header().clone();
        let begun = |ms: i64| Timestamp::from_millisecond(ms);
        let by_second = || begun(i64::try_from(header.timestamp.unwrap_or_default()).unwrap_or_default() * 1_000);
        let started_at = header.part.map_or_else(by_second, |part| begun(part.started_at_ms));
        let later = header.part.is_some_and(|part| part.part > 1);
        let dropped_ms = run.as_ref().filter(|_| later).map_or(0, |run| started_at.since_ms(run.hello.started_at));
        let (mut duration_ms, mut ended) = (0, run.as_ref().is_none_or(|run| run.state == RunState::Exited));
        while let Some(event) = playback.take()? {
            duration_ms = at_ms(&event);
            ended |= event.code == EventCode::Exit;
        }
        Ok(RecordingInfo { started_at, duration_ms, ended, dropped_ms: dropped_ms.max(0).unsigned_abs() })
    }

    /// The screen at a given time, and its changes from there.
    ///
    /// # Errors
    /// As [`info`](Self::info).
    pub fn frames(&self, target: &RunTarget, from_ms: u64, limit: usize) -> Result<RecordedFrames, Refusal> {
        let (first, _) = self.file(target)?;
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut playback = match left {
            Some((file, at, playback)) if file == first && at == from_ms => playback,
            Some(_) | None => Playback::open(&first)?,
        };
        playback.play(from_ms)?;
        let mut frames = vec![RecordedFrame { at_ms: from_ms, screen: playback.screen.whole() }];
        let mut bytes = frames.first().map_or(0, |frame| weight(&frame.screen));
        while frames.len() < limit && bytes < ANSWER_BYTES {
            let Some(next) = playback.next_ms()? else { return Ok(RecordedFrames { frames, next_ms: None }) };
            let at_ms = playback.play(next.saturating_add(FRAME_MS - 1))?;
            if let Some(screen) = playback.screen.changes() {
                bytes += weight(&screen);
                frames.push(RecordedFrame { at_ms, screen });
            }
        }
        let next_ms = playback.next_ms()?;
        if let Some(next_ms) = next_ms {
            *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some((first, next_ms, playback));
        }
        Ok(RecordedFrames { frames, next_ms })
    }

    /// The first file of a recording, and its run if it is known.
    fn file(&self, target: &RunTarget) -> Result<(PathBuf, Option<Run>), Refusal> {
        let refused = match self.runs.get(target) {
            Ok(run) => {
                let none = || Refusal::NotFound(format!("run {} is not recorded", run.id));
                return run
                    .hello
                    .recording
                    .as_ref()
                    .map(PathBuf::from)
                    .map(|file| (file, Some(run.clone())))
                    .ok_or_else(none);
            }
            Err(refused) => refused,
        };
        // The run may belong to an earlier server.
        let run = match target {
            RunTarget::Run(name) => name.parse::<RunId>().ok(),
            RunTarget::Session(_) => None,
        };
        let file = run.map(|run| paths::recording(&self.data, run)).filter(|file| file.is_file());
        file.map(|file| (file, None)).ok_or(refused)
    }
}

/// A recording and the position up to which it was played.
struct Playback {
    events: JoinedReader,
    screen: PlaybackScreen,
    next: Option<CastEvent>,
    at_ms: u64,
}

impl Playback {
    fn open(first: &Path) -> Result<Self, Refusal> {
        let files = parts(first).map_err(|error| failed(first, &error))?;
        // Opening a pipe would block.
        if files.is_empty() || !files.iter().all(|file| file.is_file()) {
            return Err(Refusal::NotFound(format!("the recording {} no longer exists", first.display())));
        }
        let events = JoinedReader::open(files).map_err(unreadable)?;
        let (columns, rows) = (events.header().columns, events.header().rows);
        Ok(Self { events, screen: PlaybackScreen::new(Size { rows, columns }), next: None, at_ms: 0 })
    }

    fn take(&mut self) -> Result<Option<CastEvent>, Refusal> {
        match self.next.take() {
            Some(event) => Ok(Some(event)),
            None => self.events.next_event().map_err(unreadable),
        }
    }

    /// The time of the next event.
    fn next_ms(&mut self) -> Result<Option<u64>, Refusal> {
        self.next = self.take()?;
        Ok(self.next.as_ref().map(at_ms))
    }

    /// Plays all events up to a time; returns the time of the last one.
    fn play(&mut self, until_ms: u64) -> Result<u64, Refusal> {
        while let Some(event) = self.take()? {
            if at_ms(&event) > until_ms {
                self.next = Some(event);
                break;
            }
            self.at_ms = at_ms(&event);
            match event.code {
                EventCode::Output => self.screen.output(&event.data),
                EventCode::Resize => {
                    let size = event.data.split_once('x').and_then(|(columns, rows)| {
                        Some(Size { rows: rows.parse().ok()?, columns: columns.parse().ok()? })
                    });
                    size.into_iter().for_each(|size| self.screen.resize(size));
                }
                EventCode::Input | EventCode::Marker | EventCode::Exit | EventCode::Other(_) => {}
            }
        }
        Ok(self.at_ms)
    }
}

const fn at_ms(event: &CastEvent) -> u64 {
    event.at_us / 1_000
}

/// Approximate size of a frame's rows, bytes.
fn weight(screen: &GridUpdate) -> usize {
    screen.lines.values().flatten().map(|span| span.0.len() + 16).sum()
}

fn unreadable(error: ReadError) -> Refusal {
    Refusal::Failed(error.to_string())
}

fn failed(file: &Path, error: &std::io::Error) -> Refusal {
    Refusal::Failed(format!("{}: {error}", file.display()))
}
