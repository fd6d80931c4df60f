//! Where a value stands in a text.

use jsonc_parser::{
    ast::{Array, Object},
    common::Ranged,
};

/// Bytes from one offset to before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// An object or array: its brackets and what stands between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Container {
    pub(super) span: Span,
    pub(super) members: Vec<Span>,
}

impl<T: Ranged> From<&T> for Span {
    fn from(node: &T) -> Self {
        let range = node.range();
        Self { start: range.start, end: range.end }
    }
}

impl From<&Object<'_>> for Container {
    fn from(object: &Object<'_>) -> Self {
        Self { span: object.into(), members: object.properties.iter().map(Span::from).collect() }
    }
}

impl From<&Array<'_>> for Container {
    fn from(array: &Array<'_>) -> Self {
        Self { span: array.into(), members: array.elements.iter().map(Span::from).collect() }
    }
}
