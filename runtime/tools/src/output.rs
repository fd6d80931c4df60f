//! The output of a command: its start and end for the model, all of it in a file. Memory is bounded for any amount of
//! output.

use std::{
    collections::VecDeque,
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use secrets::RedactingStream;

use crate::{
    limits::{OUTPUT_FILE_BYTES, OUTPUT_HEAD_BYTES, OUTPUT_TAIL_BYTES},
    result::OutputFile,
    text::{self, Removed, first_bytes, last_bytes},
};

/// Bytes beyond the shown part that are searched for secrets, so that a truncated secret is still found.
const CONTEXT: usize = 64 * 1024;

/// The start and the end of a stream.
#[derive(Debug, Default)]
pub(crate) struct Window {
    first: Vec<u8>,
    last: VecDeque<u8>,
    total: u64,
}

impl Window {
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = (OUTPUT_HEAD_BYTES + OUTPUT_TAIL_BYTES + CONTEXT) - self.first.len();
        let taken = room.min(bytes.len());
        self.first.extend_from_slice(&bytes[..taken]);
        bytes = &bytes[taken..];
        let most = OUTPUT_TAIL_BYTES + CONTEXT;
        bytes = &bytes[bytes.len().saturating_sub(most)..];
        let over = (self.last.len() + bytes.len()).saturating_sub(most);
        self.last.drain(..over);
        self.last.extend(bytes);
    }

    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// The text for the model; `file` is the location of the full output.
    pub(crate) fn shown(&self, file: Option<&Path>) -> (String, Removed) {
        let (last, rest) = self.last.as_slices();
        let end = [last, rest].concat();
        // Without a gap the parts form one text.
        let gap = self.total - (self.first.len() + end.len()) as u64;
        let (head, tail, removed) = if gap == 0 {
            let (whole, removed) = text::clean(&[self.first.as_slice(), &end].concat());
            if whole.len() <= OUTPUT_HEAD_BYTES + OUTPUT_TAIL_BYTES {
                return (whole, removed);
            }
            (
                first_bytes(&whole, OUTPUT_HEAD_BYTES).to_owned(),
                last_bytes(&whole, OUTPUT_TAIL_BYTES).to_owned(),
                removed,
            )
        } else {
            let (head, mut removed) = text::clean(&self.first);
            let (tail, more) = text::clean(&end);
            removed += more;
            let (head, tail) = (first_bytes(&head, OUTPUT_HEAD_BYTES), last_bytes(&tail, OUTPUT_TAIL_BYTES));
            (head.to_owned(), tail.to_owned(), removed)
        };
        let place = file.map_or(String::new(), |file| format!("; the output is in {}", file.display()));
        let left = self.total.saturating_sub((head.len() + tail.len()) as u64);
        (format!("{head}\n[… about {left} bytes left out{place} …]\n{tail}"), removed)
    }
}

/// Writes a stream to a file, without secrets; starts once the output exceeds what a model is shown.
pub(crate) struct Kept {
    dir: PathBuf,
    name: String,
    waiting: Vec<u8>,
    file: Option<KeptFile>,
    /// The file could not be created or written: the command continues without it.
    failed: bool,
}

struct KeptFile {
    file: File,
    path: PathBuf,
    stream: Option<RedactingStream>,
    hash: blake3::Hasher,
    bytes: u64,
}

impl Kept {
    /// A file in `dir`, named after the call's id. The directory is created with mode 0700.
    pub(crate) fn new(dir: &Path, call: &str) -> Self {
        let name = format!("{}.log", &blake3::hash(call.as_bytes()).to_hex()[..16]);
        Self { dir: dir.to_owned(), name, waiting: Vec::new(), file: None, failed: false }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.failed {
            return;
        }
        if self.file.is_none() {
            self.waiting.extend_from_slice(bytes);
            if self.waiting.len() <= OUTPUT_HEAD_BYTES + OUTPUT_TAIL_BYTES {
                return;
            }
            match KeptFile::begin(&self.dir, &self.name) {
                Ok(file) => self.file = Some(file),
                Err(_) => return self.fail(),
            }
            let waiting = std::mem::take(&mut self.waiting);
            return self.write(&waiting);
        }
        self.write(bytes);
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.file.as_mut().is_some_and(|file| file.push(bytes).is_err()) {
            self.fail();
        }
    }

    fn fail(&mut self) {
        self.failed = true;
        self.waiting = Vec::new();
    }

    /// The path of the file, once it exists.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| file.path.as_path())
    }

    /// Completes the file. `None` if everything was shown, or the file could not be written.
    pub(crate) fn finish(self, printed_bytes: u64) -> Option<OutputFile> {
        let mut kept = self.file?;
        kept.end().ok()?;
        Some(OutputFile {
            path: kept.path,
            bytes: kept.bytes,
            printed_bytes,
            hash: kept.hash.finalize().to_hex().to_string(),
        })
    }
}

impl KeptFile {
    fn begin(dir: &Path, name: &str) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let path = dir.join(name);
        // A call has one output: an existing file is from the same call before a restart.
        let removed = std::fs::remove_file(&path);
        removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let redactor = secrets::shared().ok_or_else(|| io::Error::other("the rules for secrets cannot be read"))?;
        Ok(Self { file, path, stream: Some(redactor.stream()), hash: blake3::Hasher::new(), bytes: 0 })
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let mut out = Vec::new();
        stream.push(bytes, &mut out);
        self.append(&out)?;
        if self.bytes >= OUTPUT_FILE_BYTES {
            self.stream = None;
        }
        Ok(())
    }

    fn append(&mut self, out: &[u8]) -> io::Result<()> {
        let room = usize::try_from(OUTPUT_FILE_BYTES - self.bytes).unwrap_or(usize::MAX);
        let out = &out[..out.len().min(room)];
        self.file.write_all(out)?;
        self.hash.update(out);
        self.bytes += out.len() as u64;
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        if let Some(stream) = self.stream.take() {
            let mut out = Vec::new();
            stream.finish(&mut out);
            self.append(&out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_shown_completely_and_not_stored() {
        let mut window = Window::default();
        window.push(b"one\n");
        window.push(b"two\n");
        assert_eq!(window.shown(None), ("one\ntwo\n".to_owned(), Removed::default()));
        let dir = tempfile::tempdir().unwrap();
        let mut kept = Kept::new(dir.path(), "call");
        kept.push(b"one\ntwo\n");
        assert_eq!(kept.finish(8), None);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn long_output_is_truncated_in_the_middle_and_stored_in_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let (mut window, mut kept) = (Window::default(), Kept::new(&dir.path().join("outputs"), "call"));
        let key = "AKIAQ3EGUVT5XB2N7WKM";
        let mut whole = Vec::new();
        for line in 0..40_000 {
            let secret = if line == 20_000 { format!("aws_access_key_id = {key}") } else { String::new() };
            whole.extend_from_slice(format!("line {line} {secret}\n").as_bytes());
        }
        for piece in whole.chunks(7_001) {
            window.push(piece);
            kept.push(piece);
        }
        assert_eq!(window.total(), whole.len() as u64);
        let (shown, _) = window.shown(kept.path());
        assert!(shown.starts_with("line 0 \n") && shown.ends_with("line 39999 \n"), "{}", &shown[..200]);
        assert!(shown.len() < OUTPUT_HEAD_BYTES + OUTPUT_TAIL_BYTES + 500);
        let file = kept.finish(window.total()).unwrap();
        assert!(shown.contains(&file.path.display().to_string()));
        let content = std::fs::read(&file.path).unwrap();
        assert_eq!(content.len() as u64, file.bytes);
        assert_eq!(blake3::hash(&content).to_hex().as_str(), file.hash);
        let content = String::from_utf8(content).unwrap();
        assert!(!content.contains(key) && content.contains("line 20000 aws_access_key_id = [redacted:"));
        assert!(content.ends_with("line 39999 \n"));
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file.path), mode(&dir.path().join("outputs"))), (0o600, 0o700));
    }

    #[test]
    fn the_output_file_stops_growing_at_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let mut kept = KeptFile::begin(dir.path(), "a").unwrap();
        kept.bytes = OUTPUT_FILE_BYTES - 10;
        kept.append(&[b'x'; 100]).unwrap();
        assert_eq!(kept.bytes, OUTPUT_FILE_BYTES);
        assert_eq!(std::fs::metadata(&kept.path).unwrap().len(), 10);
    }
}
