//! `capture redact`: removes secrets from text.
//!
//! It reads no configuration and contacts no server, so it works as a filter anywhere.

use std::{
    fs::File,
    io::{BufWriter, ErrorKind, Read, Write},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use client::failure::Failed;
use secrets::Redactor;

const PIECE_BYTES: usize = 64 * 1024;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// File to read [default: standard input]
    #[arg(value_name = "FILE", conflicts_with = "stdin")]
    file: Option<PathBuf>,
    /// Read standard input; this is the default without FILE.
    #[arg(long)]
    stdin: bool,
}

/// The output of `--json`. `start` and `end` are byte offsets in the input. If the input is not UTF-8, `text` contains
/// replacement characters.
#[derive(serde::Serialize)]
struct RedactionOutput<'a> {
    text: &'a str,
    found: Vec<SecretSpan<'a>>,
}

#[derive(serde::Serialize)]
struct SecretSpan<'a> {
    kind: &'a str,
    start: usize,
    end: usize,
}

fn opened(path: &Path) -> anyhow::Result<File> {
    let opened = File::open(path);
    let is_missing = opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    anyhow::ensure!(!is_missing, Failed::NotFound(format!("{}: no such file", path.display())));
    opened.with_context(|| path.display().to_string())
}

pub(super) fn run(json: bool, arguments: &Arguments) -> anyhow::Result<()> {
    let redactor = Redactor::new()?;
    let name = arguments.file.as_deref().unwrap_or(Path::new("standard input"));
    let mut input: Box<dyn Read> = match &arguments.file {
        Some(path) => Box::new(opened(path)?),
        None => Box::new(std::io::stdin().lock()),
    };
    if json {
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes).with_context(|| name.display().to_string())?;
        let redacted = redactor.redact_bytes(&bytes);
        let found = redacted.found.iter();
        return super::output::print_json(&RedactionOutput {
            text: &String::from_utf8_lossy(&redacted.bytes),
            found: found
                .map(|one| SecretSpan { kind: &one.kind, start: one.range.start, end: one.range.end })
                .collect(),
        });
    }
    let mut out = BufWriter::new(printing::stdout().without_colours());
    let mut stream = redactor.stream();
    let mut piece = vec![0; PIECE_BYTES];
    let mut ready = Vec::new();
    loop {
        let count = match input.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error).with_context(|| name.display().to_string()),
        };
        stream.push(&piece[..count], &mut ready);
        out.write_all(&ready)?;
        ready.clear();
    }
    stream.finish(&mut ready);
    out.write_all(&ready)?;
    Ok(out.flush()?)
}
