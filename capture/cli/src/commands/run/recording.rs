//! Writes recordings of runs: the recording thread writes terminal output to an asciicast, with secrets removed if only
//! redacted text may be stored.

mod redacting;

use std::{collections::BTreeMap, fs::DirBuilder, io, os::unix::fs::DirBuilderExt};

use anyhow::Context;
use events::Timestamp;
use export::asciicast::{CastHeader, CastVersion, RecordError, RecordSettings, Recorder};
use home::{clock, paths, redacted_only};
use host_protocol::screen::Size;
use redacting::Redacting;
use terminal::host::{
    sink::RecordingSink,
    start::{self, Recording},
    wire::{RecordSpec, Spec},
};

/// Maximum number of parts of a recording; the oldest is deleted first.
const PARTS: u32 = 4;

/// The function that begins the recording of a run, if one is requested.
pub(super) fn wanted(spec: &Spec) -> Option<start::StartRecording> {
    let (spec, record) = (spec.clone(), spec.record.clone()?);
    Some(Box::new(move |size| begin(&spec, &record, size).map_err(|error| io::Error::other(format!("{error:#}")))))
}

/// Fails if the file cannot be created or already exists.
fn begin(spec: &Spec, record: &RecordSpec, size: Size) -> anyhow::Result<Recording> {
    let path = match &record.file {
        Some(file) => file.clone(),
        None => {
            let dir = paths::recordings(&spec.data);
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&dir)
                .with_context(|| format!("cannot create {}", dir.display()))?;
            paths::recording(&spec.data, spec.run)
        }
    };
    let version = if record.format == "v2" { CastVersion::V2 } else { CastVersion::V3 };
    let max_bytes = (u64::from(record.max_mib) << 20) / u64::from(PARTS);
    let settings = RecordSettings { path: path.clone(), version, max_bytes: max_bytes.max(64 << 10), keep: PARTS };
    let env: BTreeMap<String, String> = ["TERM", "SHELL"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), paths::variable(name)?.to_str()?.to_owned())))
        .collect();
    let words: Vec<String> = spec.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let is_redacted = redacted_only::is_on(&spec.data);
    let shown = |text: &str| if is_redacted { redact::text(text).into_owned() } else { text.to_owned() };
    let header = CastHeader {
        columns: size.columns,
        rows: size.rows,
        command: Some(shown(&words.join(" "))),
        title: spec.name.as_deref().map(shown),
        env,
        ..CastHeader::default()
    };
    let recorder = Recorder::create(settings, header, clock::now()).map_err(|error| {
        let kind = error.source.kind();
        let why = if kind == io::ErrorKind::NotFound {
            "no such directory".to_owned()
        } else if kind == io::ErrorKind::AlreadyExists {
            "the file already exists".to_owned()
        } else {
            error.source.to_string()
        };
        anyhow::anyhow!("cannot record to {}: {why}", error.path.display())
    })?;
    let cast = Cast { recorder: Some(recorder) };
    let sink: Box<dyn RecordingSink> = if is_redacted { Box::new(Redacting::new(cast)) } else { Box::new(cast) };
    Ok((sink, path.display().to_string()))
}

/// An asciicast being written.
struct Cast {
    /// `None` if the recording ended, because of an error or with the program.
    recorder: Option<Recorder>,
}

impl Cast {
    fn with(&mut self, write: impl FnOnce(&mut Recorder) -> Result<(), RecordError>) {
        let Some(recorder) = &mut self.recorder else { return };
        if let Err(error) = write(recorder) {
            tracing::error!(%error, "cannot continue the recording; the run continues");
            self.recorder = None;
        }
    }
}

impl RecordingSink for Cast {
    fn output(&mut self, at: Timestamp, bytes: &[u8]) {
        self.with(|recorder| recorder.output(at, bytes));
    }

    fn resize(&mut self, at: Timestamp, size: Size) {
        self.with(|recorder| recorder.resize(at, size.columns, size.rows));
    }

    fn gap(&mut self, at: Timestamp, bytes: u64) {
        self.with(|recorder| recorder.mark(at, &format!("{bytes} bytes are missing here (not recorded)")));
    }

    fn quiet(&mut self) {
        self.with(|recorder| recorder.advance(clock::now()));
    }

    fn end(&mut self, at: Timestamp, code: Option<i32>) {
        if let Some(recorder) = self.recorder.take()
            && let Err(error) = recorder.finish(at, code)
        {
            tracing::error!(%error, "cannot write the end of the recording");
        }
    }
}
