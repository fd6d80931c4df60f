//! `capture export`

pub(super) mod session;

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use api::part::IdPart;
use atomic_file::Draft;
use client::{Client, failure::Failed};
use export::asciicast::{CastEvent, CastHeader, CastReader, CastVersion, Encoder, EventCode, JoinedReader, parts};
use projections::Session;

use printing::{safe, safe_json};

use crate::commands::export::session::{write_html, write_json, write_markdown, write_otlp};

use super::{
    context::{Context, find, run_of_session},
    conversation::without_wrapping,
};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The session or the run: its name, its id, or at least 3 characters from the start or end of its id. You can also
    /// pass the path of a recording.
    #[arg(value_name = "RUN|SESSION|FILE")]
    what: PathBuf,
    /// The format: `cast` for the recording of a run's terminal, the others for a session's conversation [default: the
    /// recording if there is one, else `md`].
    #[arg(long, value_enum)]
    format: Option<ExportFormat>,
    /// The asciicast version. All players can read version 2.
    #[arg(long, value_enum, value_name = "VERSION", default_value = "v2")]
    cast_version: CastVersionArgument,
    /// With `--format otlp`, also export prompts, answers, and inputs and outputs of tools, with secrets removed.
    #[arg(long)]
    texts: bool,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the file if it exists.
    #[arg(long, requires = "output")]
    force: bool,
}

/// An asciicast version, as it is typed: `v2` or `2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum CastVersionArgument {
    /// Version 2 (also `2`).
    #[value(alias = "2")]
    V2,
    /// Version 3 (also `3`).
    #[value(alias = "3")]
    V3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExportFormat {
    /// An asciicast file, which asciinema can play (also `asciicast`).
    #[value(alias = "asciicast")]
    Cast,
    /// The conversation as Markdown (also `markdown`).
    #[value(alias = "markdown")]
    Md,
    /// The conversation as a page for the browser, in one file.
    Html,
    /// The conversation as JSON, one item per line.
    Jsonl,
    /// The session as OpenTelemetry traces (OTLP/JSON lines); without `--texts`, only times, names, outcomes and
    /// tokens.
    Otlp,
}

/// File name extension of recordings; the stem is the run's id.
const EXTENSION: &str = "cast";

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let format = match arguments.format {
        Some(ExportFormat::Cast) => return cast(context, arguments),
        Some(format) => format,
        None => match recording(&context.data, &arguments.what)? {
            Some(_) => return cast(context, arguments),
            None => ExportFormat::Md,
        },
    };
    let write = |client: &Client, session: &Session, out: &mut dyn Write| {
        let written = match format {
            ExportFormat::Cast => Ok(()),
            ExportFormat::Md => write_markdown(client, session, out),
            ExportFormat::Html => write_html(client, session, out),
            ExportFormat::Jsonl => write_json(client, session, out),
            ExportFormat::Otlp => write_otlp(client, session, arguments.texts, out),
        };
        written.map_err(|error| without_wrapping(error.into()))
    };
    // Without a format, the argument may not be a session.
    let is_session_meant = arguments.format.is_some();
    let client =
        context.client().map_err(|error| if is_session_meant { error } else { neither(&arguments.what).into() })?;
    let session = find(&client, &arguments.what.to_string_lossy())
        .map_err(|error| if is_session_meant { error } else { neither(&arguments.what).into() })?;
    match &arguments.output {
        None => {
            let mut out = BufWriter::new(printing::stdout().without_colours());
            write(&client, &session, &mut out)?;
            Ok(out.flush()?)
        }
        Some(path) => to_file(path, arguments.force, |out| write(&client, &session, out)),
    }
}

/// The error for an argument that names nothing that can be exported.
fn neither(what: &Path) -> Failed {
    let what = safe(&what.display().to_string());
    Failed::NotFound(format!(
        "no session, recorded run or file `{what}`; `capture ps --all` lists the sessions, and `capture run --record` \
         records a run"
    ))
}

/// Writes the recording of a run.
fn cast(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let version = match arguments.cast_version {
        CastVersionArgument::V2 => CastVersion::V2,
        CastVersionArgument::V3 => CastVersion::V3,
    };
    let first = recording(&context.data, &arguments.what)?.ok_or_else(|| neither(&arguments.what))?;
    let files = parts(&first).with_context(|| format!("{}", first.display()))?;
    if files.is_empty() {
        return Err(Failed::NotFound(format!("{}: no such file", first.display())).into());
    }
    let mut joined = JoinedReader::open(files)?;
    match &arguments.output {
        None => convert(&mut joined, version, &mut BufWriter::new(printing::stdout().without_colours()))?,
        Some(path) => to_file(path, arguments.force, |out| convert(&mut joined, version, out))?,
    }
    for path in joined.cut() {
        printing::print_error_line(&format!(
            "capture: {} ends in the middle of a line; all complete lines were exported",
            safe(&path.display().to_string())
        ));
    }
    Ok(())
}

fn convert(joined: &mut JoinedReader, version: CastVersion, out: &mut impl Write) -> anyhow::Result<()> {
    let mut encoder = Encoder::new(version);
    // The parts are joined into one file.
    let header = CastHeader { part: None, ..joined.header().clone() };
    out.write_all(safe_json(&encoder.header(&header)).as_bytes())?;
    let mut batch = Vec::new();
    let mut bytes = 0;
    while let Some(event) = joined.next_event()? {
        bytes += event.data.len();
        let ends = event.data.ends_with('\n');
        batch.push(event);
        if bytes >= BATCH_BYTES && ends || bytes >= 2 * BATCH_BYTES {
            write_redacted(std::mem::take(&mut batch), &mut encoder, out)?;
            bytes = 0;
        }
    }
    write_redacted(batch, &mut encoder, out)?;
    Ok(out.flush()?)
}

/// Number of bytes of a recording searched for secrets at once, extended to the end of a line.
const BATCH_BYTES: usize = 4 << 20;

/// Writes events without secrets. Terminal output and typed input are each searched as one text, of which every event
/// is a piece.
fn write_redacted(mut batch: Vec<CastEvent>, encoder: &mut Encoder, out: &mut impl Write) -> anyhow::Result<()> {
    for code in [EventCode::Output, EventCode::Input] {
        let mut pieces: Vec<&mut CastEvent> = batch.iter_mut().filter(|event| event.code == code).collect();
        let mut texts: Vec<String> = pieces.iter_mut().map(|event| std::mem::take(&mut event.data)).collect();
        redact::of_pieces(&mut texts);
        pieces.into_iter().zip(texts).for_each(|(event, text)| event.data = text);
    }
    for event in batch {
        out.write_all(safe_json(&encoder.event(&event)).as_bytes())?;
    }
    Ok(())
}

/// Writes a file atomically.
pub(super) fn to_file(
    path: &Path,
    replace: bool,
    write: impl FnOnce(&mut BufWriter<File>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let told = || path.display().to_string();
    let refused = || Failed::Refused(format!("{} already exists; pass --force to overwrite it", path.display()));
    if !replace && path.symlink_metadata().is_ok() {
        return Err(refused().into());
    }
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty() && !dir.is_dir()) {
        let why = format!("cannot write {}: {} is not a directory", path.display(), dir.display());
        return Err(Failed::NotFound(why).into());
    }
    let draft = Draft::beside(path, ".part").with_context(told)?;
    let mut out = BufWriter::new(draft.file().try_clone().with_context(told)?);
    write(&mut out)?;
    out.flush().with_context(told)?;
    if replace {
        return draft.replace(path).with_context(told);
    }
    match draft.place_new(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(refused().into()),
        placed => placed.with_context(told),
    }
}

/// The first file of the recording the user names; `None` if no run and no file has this name.
fn recording(data: &Path, what: &Path) -> anyhow::Result<Option<PathBuf>> {
    let dir = home::paths::recordings(data);
    let Some(name) = what.to_str().filter(|name| !name.is_empty() && !name.contains('/')) else {
        return existing(what).map(Some);
    };
    let part = IdPart::new(name);
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries.collect::<Result<Vec<_>, _>>().with_context(|| dir.display().to_string())?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error).with_context(|| dir.display().to_string()),
    };
    let mut runs: Vec<String> = entries
        .iter()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (run, rest) = name.split_once('.')?;
            let ours = rest == EXTENSION || rest.split_once('.').is_some_and(|(_, rest)| rest == EXTENSION);
            ours.then(|| run.to_owned())
        })
        .collect();
    runs.sort_unstable();
    runs.dedup();
    let fitting: Vec<&String> = runs.iter().filter(|run| part.as_ref().is_some_and(|part| part.fits(run))).collect();
    match fitting.as_slice() {
        [run] => Ok(Some(dir.join(run).with_extension(EXTENSION))),
        [] if let Some(named) = recording_named(&dir, &runs, name) => Ok(Some(named)),
        [] if what.exists() => Ok(Some(what.to_path_buf())),
        [] if let Some(run) = run_of_session(data, name).filter(|run| runs.contains(&run.to_string())) => {
            Ok(Some(dir.join(run.to_string()).with_extension(EXTENSION)))
        }
        [] => Ok(None),
        [a, b, ..] => {
            Err(Failed::NotFound(format!("`{}` matches several runs, for instance {a} and {b}", what.display())).into())
        }
    }
}

/// The recording of the newest run with this name. The title of a recording is the name of its run.
fn recording_named(dir: &Path, runs: &[String], name: &str) -> Option<PathBuf> {
    let title = redact::text(name);
    // Ids begin with the time, so the newest is the last one.
    let mut files = runs.iter().rev().map(|run| dir.join(run).with_extension(EXTENSION));
    files.find(|file| {
        // The first part may have been deleted to make room for newer ones.
        let first = parts(file).ok().and_then(|files| files.into_iter().next());
        let header = first.and_then(|first| CastReader::open(&first).ok()).and_then(|cast| cast.header().title.clone());
        header.is_some_and(|header| header == name || header == title)
    })
}

fn existing(path: &Path) -> anyhow::Result<PathBuf> {
    match path.metadata() {
        Ok(_) => Ok(path.to_path_buf()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Failed::NotFound(format!("{}: no such file", path.display())).into())
        }
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exporting_into_a_missing_directory_names_that_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a b/ü.cast");
        let error = to_file(&path, false, |_| Ok(())).unwrap_err().to_string();
        let parent = dir.path().join("a b");
        assert_eq!(error, format!("cannot write {}: {} is not a directory", path.display(), parent.display()));
        fs::create_dir(&parent).unwrap();
        to_file(&path, false, |out| Ok(out.write_all(b"x")?)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"x");
        assert!(to_file(&path, false, |_| Ok(())).unwrap_err().to_string().contains("already exists"));
    }
}
