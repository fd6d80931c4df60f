//! `read`.

use std::{
    io::{BufRead, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use super::{Files, modified_us};
use crate::{
    arguments::ReadArguments,
    cancel::Cancel,
    limits,
    result::{Content, ToolResult},
    seen::SeenFile,
    text::{self, Removed, cut_line},
    workspace::OpenedFile,
};

/// Bytes around the shown lines that are searched for secrets.
const CONTEXT: usize = 64 * 1024;
/// Bytes used to determine the kind of a file.
const HEAD: usize = 8 * 1024;

/// A range of lines of a file.
struct Window {
    /// Bytes before the first line, the lines, and bytes after the last.
    bytes: Vec<u8>,
    /// The range of the lines in `bytes`.
    start: usize,
    end: usize,
    /// The number of the first line, and the number of lines.
    first: u64,
    lines: u64,
    /// Whether the file ends with these lines.
    last: bool,
    /// The number of lines in the file, if counted.
    total: Option<u64>,
}

/// Lines of a file, and its whole content if it is not too long.
type Lines = (Window, Option<Vec<u8>>);

/// Reads lines of a text, or an image.
pub(crate) fn read(files: &Files, path: &Path, arguments: &ReadArguments, cancel: &Cancel) -> ToolResult {
    let shown = files.workspace.shown(path);
    let mut opened = match files.workspace.open_file(path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == std::io::ErrorKind::IsADirectory => {
            return ToolResult::error(format!("{shown} is a directory; list it with glob"));
        }
        Err(error) => return ToolResult::error(format!("cannot open {shown}: {error}")),
    };
    let mut head = Vec::new();
    if let Err(error) = (&mut opened.file).take(HEAD as u64).read_to_end(&mut head) {
        return ToolResult::error(format!("cannot read {shown}: {error}"));
    }
    if let Some(media_type) = image_type(&head) {
        return image(&shown, &mut opened, media_type);
    }
    if let Some(kind) = binary_kind(&head) {
        return ToolResult::error(format!("{shown} is a binary file ({kind}, {} bytes)", opened.size()));
    }
    match lines(&mut opened, arguments, cancel) {
        Ok(Some((window, content))) => show(files, path, &opened, &window, content.as_deref()),
        Ok(None) => ToolResult::error("cancelled"),
        Err(why) => ToolResult::error(format!("cannot read {shown}: {why}")),
    }
}

/// The requested lines, and the whole content of a file that is not too long; `None` if cancelled.
fn lines(opened: &mut OpenedFile, arguments: &ReadArguments, cancel: &Cancel) -> Result<Option<Lines>, String> {
    let first = arguments.offset.unwrap_or(1);
    let most = arguments.limit.unwrap_or(limits::READ_LINES);
    let failed = |error: std::io::Error| error.to_string();
    opened.file.seek(SeekFrom::Start(0)).map_err(failed)?;
    if opened.size() > limits::FILE_BYTES {
        return Ok(far(opened, first, most, cancel)?.map(|window| (window, None)));
    }
    let mut content = Vec::new();
    (&mut opened.file).take(limits::FILE_BYTES + 1).read_to_end(&mut content).map_err(failed)?;
    let total = count(&content);
    let mut start = 0;
    for _ in 1..first {
        match memchr::memchr(b'\n', &content[start..]) {
            Some(end) => start += end + 1,
            None => start = content.len(),
        }
    }
    if start >= content.len() && first > 1 {
        return Err(format!("it has only {total} lines, so none at offset {first}"));
    }
    let (mut end, mut lines) = (start, 0);
    while end < content.len() && lines < most {
        let next = memchr::memchr(b'\n', &content[end..]).map_or(content.len(), |at| end + at + 1);
        if next - start > limits::READ_BYTES && lines > 0 {
            break;
        }
        (end, lines) = (next, lines + 1);
    }
    let (from, to) = (start.saturating_sub(CONTEXT), (end + CONTEXT).min(content.len()));
    let window = Window {
        bytes: content[from..to].to_vec(),
        start: start - from,
        end: end - from,
        first,
        lines,
        last: end == content.len(),
        total: Some(total),
    };
    Ok(Some((window, Some(content))))
}

/// Like [`lines`], for a file that is too long to load.
fn far(opened: &mut OpenedFile, first: u64, most: u64, cancel: &Cancel) -> Result<Option<Window>, String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut reader = BufReader::with_capacity(256 * 1024, &mut opened.file);
    let (mut before, mut passed, mut line) = (Vec::new(), 0_u64, 1);
    while line < first {
        if cancel.is_cancelled() {
            return Ok(None);
        }
        let buffer = reader.fill_buf().map_err(failed)?;
        if buffer.is_empty() {
            return Err(format!("it has only {} lines, so none at offset {first}", line - 1));
        }
        // Skip to the end of the line before the first one, or the whole buffer.
        let wanted = usize::try_from(first - line - 1).unwrap_or(usize::MAX);
        let ends = memchr::memchr_iter(b'\n', buffer);
        let (taken, newlines) = match ends.clone().nth(wanted) {
            Some(end) => (end + 1, first - line),
            None => (buffer.len(), ends.count() as u64),
        };
        before.extend_from_slice(&buffer[..taken]);
        if before.len() > 2 * CONTEXT {
            before.drain(..before.len() - CONTEXT);
        }
        reader.consume(taken);
        (line, passed) = (line + newlines, passed + taken as u64);
        if passed > limits::READ_SKIP_BYTES {
            return Err(format!(
                "line {first} is more than {} MiB into the file; use bash with sed or tail",
                limits::READ_SKIP_BYTES >> 20
            ));
        }
    }
    let start = before.len();
    let mut bytes = before;
    // A single line may exceed the limit; the bytes after it are context.
    (&mut reader).take((limits::READ_BYTES + 2 * CONTEXT) as u64).read_to_end(&mut bytes).map_err(failed)?;
    let (mut end, mut lines) = (start, 0);
    while end < bytes.len() && lines < most {
        let next = memchr::memchr(b'\n', &bytes[end..]).map_or(bytes.len(), |at| end + at + 1);
        if next - start > limits::READ_BYTES && lines > 0 {
            break;
        }
        (end, lines) = (next, lines + 1);
    }
    let last = end == bytes.len() && reader.fill_buf().map_err(failed)?.is_empty();
    Ok(Some(Window { bytes, start, end, first, lines, last, total: None }))
}

fn count(content: &[u8]) -> u64 {
    let ends = memchr::memchr_iter(b'\n', content).count() as u64;
    ends + u64::from(!content.is_empty() && !content.ends_with(b"\n"))
}

/// The lines with their line numbers in the file, without secrets.
fn show(files: &Files, path: &Path, opened: &OpenedFile, window: &Window, content: Option<&[u8]>) -> ToolResult {
    let Some(found) = text::secrets(&window.bytes) else {
        return ToolResult::error("the rules for secrets cannot be read; nothing is shown");
    };
    let mut shown = String::new();
    let mut removed = Removed::default();
    let (mut at, mut number) = (window.start, window.first);
    let mut cut = None;
    for piece in window.bytes[window.start..window.end].split_inclusive(|byte| *byte == b'\n') {
        let end = at + piece.len();
        let mut line = Vec::new();
        let mut from = at;
        for secret in found.iter().filter(|secret| secret.range.start < end && secret.range.end > at) {
            line.extend_from_slice(&window.bytes[from..secret.range.start.max(from)]);
            // A secret of several lines is named on its first line; the others keep their numbers.
            if secret.range.start >= at {
                removed.masked += 1;
            }
            line.extend_from_slice(format!("[redacted:{}]", secret.kind).as_bytes());
            from = secret.range.end.min(end);
        }
        line.extend_from_slice(&window.bytes[from.min(end)..end]);
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (line, controls) = text::plain(&String::from_utf8_lossy(line));
        removed.removed += controls;
        let line = format!("{number:>6}\t{}\n", cut_line(&line.replace('\n', " "), limits::LINE_CHARS));
        if shown.len() + line.len() > limits::READ_BYTES && number > window.first {
            cut = Some(number);
            break;
        }
        shown.push_str(&line);
        (at, number) = (end, number + 1);
    }
    let last = number - 1;
    if window.lines == 0 {
        shown.push_str("(the file is empty)");
    } else if cut.is_some() || !window.last {
        let of = window.total.map_or(String::new(), |total| format!(" of {total}"));
        shown.push_str(&format!("[lines {}-{last}{of}; continue with offset {number}]", window.first));
    }
    let mut result = ToolResult::text(shown);
    result.details.masked = removed.masked;
    result.details.removed = removed.removed;
    result.details.untrusted = !files.workspace.contains(path);
    if let Some(content) = content {
        let file = SeenFile {
            path: path.to_owned(),
            hash: blake3::hash(content).to_hex().to_string(),
            bytes: content.len() as u64,
            modified_us: modified_us(opened),
            lines: if window.lines == 0 { Vec::new() } else { vec![(window.first, last)] },
            whole: window.first == 1 && window.last && cut.is_none(),
        };
        let mut seen = files.seen();
        let total = window.total.unwrap_or_default();
        let mut known = seen.record(file, Some(content));
        // The file was shown completely, in parts.
        if !known.whole && known.lines == [(1, total)] {
            known.whole = true;
            known = seen.record(known, None);
        }
        result.details.seen = Some(known);
    }
    result
}

fn image(shown: &str, opened: &mut OpenedFile, media_type: &'static str) -> ToolResult {
    if opened.size() > limits::IMAGE_BYTES {
        return ToolResult::error(format!(
            "{shown} is an image of {} bytes; the limit is {} MiB",
            opened.size(),
            limits::IMAGE_BYTES >> 20
        ));
    }
    let mut bytes = Vec::new();
    let read = opened
        .file
        .seek(SeekFrom::Start(0))
        .and_then(|_| (&mut opened.file).take(limits::IMAGE_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Ok(length) if length as u64 <= limits::IMAGE_BYTES => {
            let mut result = ToolResult::text(format!("{shown} ({media_type}, {length} bytes)"));
            result.content.push(Content::Image { media_type, bytes });
            result
        }
        Ok(_) => ToolResult::error(format!("{shown} grew while it was being read")),
        Err(error) => ToolResult::error(format!("cannot read {shown}: {error}")),
    }
}

/// The media type of an image in a format models accept.
fn image_type(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// The kind of a file that is not text; `None` for text in UTF-8 or another encoding that extends ASCII.
pub(super) fn binary_kind(head: &[u8]) -> Option<&'static str> {
    const KINDS: [(&[u8], &str); 16] = [
        (b"\x7fELF", "ELF program or library"),
        (b"%PDF-", "PDF"),
        (b"PK\x03\x04", "ZIP archive"),
        (b"\x1f\x8b", "gzip"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\xfd7zXZ\0", "xz"),
        (b"BZh", "bzip2"),
        (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
        (b"SQLite format 3\0", "SQLite database"),
        (b"\0asm", "WebAssembly"),
        (b"\xca\xfe\xba\xbe", "Java class or Mach-O program"),
        (b"\xcf\xfa\xed\xfe", "Mach-O program"),
        (b"MZ", "Windows program"),
        (b"\xff\xfe", "text in UTF-16"),
        (b"\xfe\xff", "text in UTF-16"),
        (b"!<arch>\n", "static library"),
    ];
    if !head.contains(&0) && !head.starts_with(b"%PDF-") {
        return None;
    }
    Some(KINDS.iter().find(|(magic, _)| head.starts_with(magic)).map_or("of unknown type", |(_, kind)| kind))
}
