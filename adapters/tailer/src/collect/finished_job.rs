//! A file that the history queue gives back.

use crate::{
    collect::files::FileId,
    tail::{Tail, TailError},
};

/// A file that comes back.
#[derive(Debug)]
pub(crate) struct FinishedJob {
    pub(super) file: FileId,
    pub(super) tail: Box<Tail>,
    pub(super) error: Option<TailError>,
}
