//! The values that are left out of the wire form.

pub(crate) fn is_zero(n: &u32) -> bool {
    *n == 0
}

pub(super) fn is_none_of(n: &u64) -> bool {
    *n == 0
}

pub(super) fn is_false(b: &bool) -> bool {
    !*b
}
