//! Saves requests that a vendor called invalid, to find the defect: one file per session, with the last request.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use executor::KeepRequest;

/// The file, beside the outputs of the session's tools.
const NAME: &str = "refused-request.json";

/// Saves them in a directory; `clean` removes secrets from the text.
pub(crate) fn keep_in(directory: PathBuf, clean: impl Fn(&str) -> String + Send + Sync + 'static) -> KeepRequest {
    Arc::new(move |body| {
        let text = clean(&String::from_utf8_lossy(body));
        // The failure itself is reported; the file only helps to find its cause.
        write(&directory, &text).ok()
    })
}

fn write(directory: &Path, text: &str) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let path = directory.join(NAME);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(text.as_bytes())?;
    Ok(path)
}
