//! The position of a value in a text.

use jsonc_parser::{
    ast::{Array, Object},
    common::Ranged,
};

/// A half-open range of byte offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextSpan {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// An object or array: its brackets and its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Container {
    pub(super) span: TextSpan,
    pub(super) members: Vec<TextSpan>,
}

impl<T: Ranged> From<&T> for TextSpan {
    fn from(node: &T) -> Self {
        let range = node.range();
        Self { start: range.start, end: range.end }
    }
}

impl From<&Object<'_>> for Container {
    fn from(object: &Object<'_>) -> Self {
        Self { span: object.into(), members: object.properties.iter().map(TextSpan::from).collect() }
    }
}

impl From<&Array<'_>> for Container {
    fn from(array: &Array<'_>) -> Self {
        Self { span: array.into(), members: array.elements.iter().map(TextSpan::from).collect() }
    }
}
