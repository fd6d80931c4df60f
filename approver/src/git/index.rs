//! Reads the names of tracked files from git's index: a tracked secret would be printed with the rest.

use std::path::PathBuf;

/// The tracked files, relative to the top of the repository. `None` if the form of the index is not supported: split,
/// sparse.
///
/// The format is described in gitformat-index(5): a header, entries padded to eight bytes (in version 4 not padded,
/// each name without the prefix it shares with the previous one), extensions, a checksum.
pub(super) fn names(index: &[u8]) -> Option<Vec<PathBuf>> {
    // The index does not record the length of its hashes; with only one of the two lengths does it end correctly.
    names_with(index, 20).or_else(|| names_with(index, 32))
}

fn names_with(index: &[u8], hash: usize) -> Option<Vec<PathBuf>> {
    let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    let version = number(4)?;
    if index.get(..4)? != b"DIRC" || !matches!(version, 2..=4) {
        return None;
    }
    let (mut at, mut found, mut name) = (12, Vec::new(), Vec::new());
    for _ in 0..number(8)? {
        let is_directory = number(at + 24)? == 0o040_000;
        let flags = index.get(at + 40 + hash)?;
        let extended = version >= 3 && flags & 0x40 != 0;
        let mut begin = at + 40 + hash + 2 + if extended { 2 } else { 0 };
        if version == 4 {
            let (removed, read) = offset(index.get(begin..)?)?;
            name.truncate(name.len().checked_sub(removed)?);
            begin += read;
        } else {
            name.clear();
        }
        let length = index.get(begin..)?.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(&index[begin..begin + length]);
        if is_directory || name.is_empty() {
            return None;
        }
        found.push(PathBuf::from(std::str::from_utf8(&name).ok()?));
        at = if version == 4 { begin + length + 1 } else { at + ((begin + length - at + 8) & !7) };
    }
    let end = index.len().checked_sub(hash)?;
    while at < end {
        // `link` splits the index, `sdir` replaces directories that are not listed.
        if matches!(index.get(at..at + 4)?, b"link" | b"sdir") {
            return None;
        }
        at += 8 + usize::try_from(number(at + 4)?).ok()?;
    }
    (at == end).then_some(found)
}

/// A number in the encoding of pack offsets, and its length in bytes.
fn offset(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        value = (value << 7) + usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An index with these names, in git's format.
    pub(crate) fn index(version: u8, hash: usize, names: &[&str], extension: &[u8; 4]) -> Vec<u8> {
        let mut bytes =
            [b"DIRC".as_slice(), &[0, 0, 0, version], &u32::try_from(names.len()).unwrap().to_be_bytes()].concat();
        for name in names {
            let begin = bytes.len();
            bytes.extend([0; 24]);
            bytes.extend(0o100_644_u32.to_be_bytes());
            bytes.extend(vec![1; 12 + hash]);
            bytes.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
            bytes.extend(name.as_bytes());
            let padded = (bytes.len() - begin + 8) & !7;
            bytes.resize(begin + padded, 0);
        }
        bytes.extend(extension);
        bytes.extend([0, 0, 0, 3, 9, 9, 9]);
        bytes.extend(vec![7; hash]);
        bytes
    }

    #[test]
    fn file_names_are_read_from_the_git_index() {
        let names = ["README.md", "a/.env", "src/a-name-of-some-length.rs", "x.pem"];
        for (version, hash) in [(2, 20), (3, 20), (2, 32)] {
            let found = super::names(&index(version, hash, &names, b"TREE"));
            assert_eq!(found, Some(names.map(PathBuf::from).to_vec()), "{version} {hash}");
        }
        assert_eq!(super::names(&index(2, 20, &[], b"TREE")), Some(Vec::new()));
    }

    #[test]
    fn an_unsupported_or_truncated_index_is_refused() {
        let whole = index(2, 20, &["a"], b"TREE");
        for bytes in [
            index(5, 20, &["a"], b"TREE"),
            index(2, 20, &["a"], b"link"),
            index(2, 20, &["a"], b"sdir"),
            whole[..whole.len() - 1].to_vec(),
            Vec::new(),
            b"DIRC".to_vec(),
        ] {
            assert_eq!(super::names(&bytes), None);
        }
    }
}
