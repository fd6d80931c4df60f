//! The byte order mark that a settings file may begin with.

use std::path::Path;

use crate::{error::Error, text::Problem};

pub(super) const BOM: &str = "\u{feff}";

/// Splits off the byte order mark, if there is one.
pub(super) fn split<'t>(path: &Path, bytes: &'t [u8]) -> Result<(&'t str, &'t str), Error> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        Error::content(path, Problem::at(&good, good.len(), "not valid UTF-8"))
    })?;
    Ok(text.strip_prefix(BOM).map_or(("", text), |rest| (BOM, rest)))
}
