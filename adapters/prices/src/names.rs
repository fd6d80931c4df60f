//! Which entry of the table a model's name means. The rules, in this order, until an entry is found:
//!
//! 1. Upper and lower case do not matter; of a path the last part counts (`anthropic/claude-opus-4-5`), and of it what
//!    stands before `[`, `@` or `:` (`claude-opus-5-5[1m]`). A dot is a dash (`claude-opus-4.5`).
//! 2. A date at the end is dropped: `-20251101`, `-2025-12-11`.
//! 3. `-latest` at the end is dropped.
//!
//! Nothing else is guessed: a model that is new is unknown, though its name begins like an old one's.

/// The form in which names are compared.
pub(crate) fn key(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or_default();
    let name = name.split(['[', '@', ':']).next().unwrap_or_default();
    name.trim().to_ascii_lowercase().replace('.', "-")
}

/// The names under which a model may stand in the table, the surest first.
pub(crate) fn candidates(name: &str) -> impl Iterator<Item = String> {
    let whole = key(name);
    let undated = without_date(&whole).to_owned();
    let bare = undated.strip_suffix("-latest").unwrap_or(&undated).to_owned();
    [whole, undated, bare].into_iter()
}

fn without_date(name: &str) -> &str {
    let is_number = |part: &str, digits: usize| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut rest = name.rsplitn(4, '-');
    let last: [&str; 3] = std::array::from_fn(|_| rest.next().unwrap_or_default());
    let [day, month, year] = last;
    let length = if is_number(day, 8) {
        day.len() + 1
    } else if is_number(day, 2) && is_number(month, 2) && is_number(year, 4) {
        day.len() + month.len() + year.len() + 3
    } else {
        0
    };
    name.get(..name.len().saturating_sub(length)).unwrap_or(name)
}
