//! A file that the history queue returns.

use crate::{
    collect::files::FileId,
    tail::{Tail, TailError},
};

/// A returned file.
#[derive(Debug)]
pub(crate) struct FinishedJob {
    pub(super) file: FileId,
    pub(super) tail: Box<Tail>,
    pub(super) error: Option<TailError>,
}
