//! Reads files that people write: settings, rules, keys.
//!
//! The name of such a file may lead to anything. The functions never wait for a pipe, never read a device, and read no
//! more than a limit.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

/// Largest settings file, bytes.
pub const SETTINGS_MOST: u64 = 1 << 20;

/// How a symbolic link is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Followed, because people use links for their settings.
    Followed,
    /// Refused, because another user may have created it. Links in the parent directories are followed.
    Refused,
}

/// Opens a regular file for reading, without blocking.
///
/// # Errors
/// If it cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path, links: Links) -> io::Result<File> {
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    if links == Links::Refused {
        flags |= OFlags::NOFOLLOW;
    }
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = match opened {
        // A socket.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            return Err(not_regular("a socket or a device"));
        }
        opened => opened?,
    };
    let kind = file.metadata()?.file_type();
    match () {
        () if kind.is_file() => Ok(file),
        () if kind.is_dir() => Err(not_regular("a directory")),
        () if kind.is_fifo() => Err(not_regular("a pipe")),
        () => Err(not_regular("a device")),
    }
}

fn not_regular(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a regular file"))
}

/// The content of a regular file of at most `most` bytes; `None` if it does not exist.
///
/// # Errors
/// The errors of [`open_regular`], and an error if the file is larger.
pub fn read_regular(path: &Path, links: Links, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match open_regular(path, links) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut content = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        let text = format!("it has more than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(Some(content))
}

/// The text of a settings file; `None` if it does not exist.
///
/// # Errors
/// If it is not a regular file, cannot be read, is larger than [`SETTINGS_MOST`] or is not UTF-8.
pub fn read_settings(path: &Path) -> io::Result<Option<String>> {
    let Some(content) = read_regular(path, Links::Followed, SETTINGS_MOST)? else { return Ok(None) };
    let text = String::from_utf8(content).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("it is not UTF-8 at byte {at}"))
    })?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::net::UnixListener};

    use rustix::fs::{FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn non_regular_files_are_refused_without_blocking() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("file"), "text").unwrap();
        fs::create_dir(path("directory")).unwrap();
        mknodat(rustix::fs::CWD, path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _listener = UnixListener::bind(path("socket")).unwrap();
        for (link, target) in [("to-zero", "/dev/zero".into()), ("to-pipe", path("pipe")), ("to-file", path("file"))] {
            std::os::unix::fs::symlink(target, path(link)).unwrap();
        }
        for name in ["directory", "pipe", "socket", "to-zero", "to-pipe"] {
            let error = read_settings(&path(name)).unwrap_err().to_string();
            assert!(error.contains("not a regular file"), "{name}: {error}");
            assert!(read_regular(&path(name), Links::Refused, 10).is_err(), "{name}");
        }
        for name in ["file", "to-file"] {
            assert_eq!(read_settings(&path(name)).unwrap().as_deref(), Some("text"), "{name}");
        }
        assert!(read_regular(&path("to-file"), Links::Refused, 10).is_err());
        assert_eq!(read_settings(&path("missing")).unwrap(), None);
    }

    #[test]
    fn a_file_over_the_size_limit_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "12345").unwrap();
        for (most, is_read) in [(4, false), (5, true), (6, true), (u64::MAX, true)] {
            assert_eq!(read_regular(&path, Links::Followed, most).is_ok(), is_read, "{most}");
        }
        fs::write(&path, b"ab\xff").unwrap();
        assert!(read_settings(&path).unwrap_err().to_string().contains("byte 2"));
        fs::write(&path, vec![b'a'; SETTINGS_MOST as usize + 1]).unwrap();
        assert!(read_settings(&path).unwrap_err().to_string().contains("1048576"));
    }
}
