//! The files of one recording: their names, their list, and reading them as one.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use crate::asciicast::{
    event::{CastEvent, EventCode},
    header::CastHeader,
    read::{CastReader, ReadError},
};

/// The file of a part: `name.cast`, `name.2.cast`, `name.3.cast`.
#[must_use]
pub fn part_path(first: &Path, part: u32) -> PathBuf {
    if part <= 1 {
        return first.to_path_buf();
    }
    let mut name: OsString = first.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{part}"));
    if let Some(extension) = first.extension() {
        name.push(".");
        name.push(extension);
    }
    first.with_file_name(name)
}

/// The existing parts of a recording, in order. The first ones may have been removed; a later gap ends the list.
///
/// # Errors
/// If the directory cannot be read.
pub fn parts(first: &Path) -> std::io::Result<Vec<PathBuf>> {
    let dir = first.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (Some(stem), extension) = (first.file_stem(), first.extension()) else {
        return Ok(Vec::new());
    };
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = PathBuf::from(entry?.file_name());
        if first.file_name() == Some(name.as_os_str()) {
            numbers.push(1);
        } else if name.extension() == extension
            && let Some(middle) = name.file_stem().map(Path::new)
            && middle.file_stem() == Some(stem)
            && let Some(number) = middle.extension().and_then(|n| n.to_str()?.parse().ok())
            && number > 1_u32
        {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    let Some(least) = numbers.first().copied() else {
        return Ok(Vec::new());
    };
    let together = numbers.iter().zip(least..).take_while(|(number, expected)| *number == expected);
    Ok(together.map(|(number, _)| part_path(first, *number)).collect())
}

/// Reads the parts of a recording as if they were one file. Times continue over the parts, and the redrawn screen at
/// the beginning of a part is left out if the previous part exists.
#[derive(Debug)]
pub struct JoinedReader {
    header: CastHeader,
    open: CastReader,
    open_path: PathBuf,
    waiting: std::vec::IntoIter<PathBuf>,
    /// The start of the open part, relative to the start of the recording.
    offset_us: u64,
    last_us: u64,
    /// The number of the open part; `None` if the file is not from capture.
    part: Option<u32>,
    size: (u16, u16),
    /// Whether the next event of the open part only redraws the screen.
    repainted: bool,
    cut: Vec<PathBuf>,
}

impl JoinedReader {
    /// Opens the first of these files.
    ///
    /// # Errors
    /// If there is none, or it cannot be read or is not an asciicast.
    pub fn open(paths: Vec<PathBuf>) -> Result<Self, ReadError> {
        let mut waiting = paths.into_iter();
        let Some(first) = waiting.next() else {
            return Err(ReadError::Io { path: PathBuf::new(), source: std::io::ErrorKind::NotFound.into() });
        };
        let open = CastReader::open(&first)?;
        let header = open.header().clone();
        Ok(Self {
            part: header.part.map(|part| part.part),
            size: (header.columns, header.rows),
            header,
            open,
            open_path: first,
            waiting,
            offset_us: 0,
            last_us: 0,
            repainted: false,
            cut: Vec::new(),
        })
    }

    /// The header of the first part.
    #[must_use]
    pub const fn header(&self) -> &CastHeader {
        &self.header
    }

    /// Files that end in the middle of a line. Complete once everything was read.
    #[must_use]
    pub fn cut(&self) -> &[PathBuf] {
        &self.cut
    }

    /// The next event; `None` at the end of the last part.
    ///
    /// # Errors
    /// If a part cannot be read, or a line is not an event.
    pub fn next_event(&mut self) -> Result<Option<CastEvent>, ReadError> {
        loop {
            while let Some(mut event) = self.open.next_event()? {
                if std::mem::take(&mut self.repainted) && event.code == EventCode::Output {
                    continue;
                }
                event.at_us = event.at_us.saturating_add(self.offset_us).max(self.last_us);
                self.last_us = event.at_us;
                if event.code == EventCode::Resize
                    && let Some(size) =
                        event.data.split_once('x').and_then(|(c, r)| Some((c.parse().ok()?, r.parse().ok()?)))
                {
                    self.size = size;
                }
                return Ok(Some(event));
            }
            if self.open.cut() {
                self.cut.push(self.open_path.clone());
            }
            let Some(next) = self.waiting.next() else {
                return Ok(None);
            };
            if let Some(resized) = self.open_next(next)? {
                return Ok(Some(resized));
            }
        }
    }

    /// Opens the next part; a size that changed in between becomes an event.
    fn open_next(&mut self, path: PathBuf) -> Result<Option<CastEvent>, ReadError> {
        let next = CastReader::open(&path)?;
        let header = next.header();
        // A file that only has a matching name does not belong to the recording.
        let Some(part) = header.part.filter(|part| Some(part.part) == self.part.and_then(|n| n.checked_add(1))) else {
            self.waiting = Vec::new().into_iter();
            return Ok(None);
        };
        let start_ms = self.header.part.map_or(part.started_at_ms, |first| first.started_at_ms);
        let later_ms = u64::try_from(part.started_at_ms.saturating_sub(start_ms)).unwrap_or(0);
        self.offset_us = later_ms.saturating_mul(1000);
        self.repainted = part.repainted;
        self.part = Some(part.part);
        let size = (header.columns, header.rows);
        self.open = next;
        self.open_path = path;
        if std::mem::replace(&mut self.size, size) == size {
            return Ok(None);
        }
        self.last_us = self.last_us.max(self.offset_us);
        Ok(Some(CastEvent { at_us: self.last_us, code: EventCode::Resize, data: format!("{}x{}", size.0, size.1) }))
    }
}
