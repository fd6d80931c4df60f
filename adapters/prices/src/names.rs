//! Finds the entry of the table for a model's name. The rules, in this order, until an entry is found:
//!
//! 1. Names are compared without case. Only the last part of a path counts (`anthropic/claude-opus-4-5`), and only up
//!    to `[`, `@` or `:` (`claude-opus-5-5[1m]`). The region and the vendor of an Amazon Bedrock name are dropped
//!    (`us.anthropic.claude-opus-4-6-v1`). A dot equals a dash (`claude-opus-4.5`).
//! 2. The version at the end of a Bedrock name is dropped: `-v1`. So is the reasoning effort, which does not change the
//!    price: `-thinking`, `-high`.
//! 3. A date at the end is dropped: `-20251101`, `-2025-12-11`.
//! 4. `-latest` at the end is dropped.
//!
//! `-fast` at the end means fast processing, which has separate prices; the rest of the name is read by the same rules.
//!
//! The module guesses nothing else: a new model is unknown even if its name begins like the name of a known one.

/// The vendors in names of Amazon Bedrock (from its documentation of model ids, November 2026).
const VENDORS: [&str; 10] =
    ["amazon", "anthropic", "cohere", "deepseek", "meta", "minimax", "mistral", "moonshot", "openai", "qwen"];
/// Suffixes for the reasoning effort.
const EFFORTS: [&str; 6] = ["-thinking", "-minimal", "-low", "-medium", "-high", "-xhigh"];

/// The end of the name of a model that is processed fast.
pub(crate) const FAST: &str = "-fast";

/// The form in which names are compared.
pub(crate) fn key(name: &str) -> String {
    let lower = model_part(name);
    without_vendor(&lower).unwrap_or(&lower).replace('.', "-")
}

/// The part of a name that names the model, in lower case.
fn model_part(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or_default();
    let name = name.split(['[', '@', ':']).next().unwrap_or_default();
    name.trim().to_ascii_lowercase()
}

/// The names under which a model may be in the table, the most certain first.
pub(crate) fn candidates(name: &str) -> impl Iterator<Item = String> {
    let whole = key(name);
    let (names, end) = match whole.strip_suffix(FAST) {
        Some(standard) => (plain(name, standard), FAST),
        None => (plain(name, &whole), ""),
    };
    names.map(|name| format!("{name}{end}")).into_iter()
}

/// The shortest form of a model's name, without the suffix for fast processing.
pub(crate) fn shortest(name: &str) -> String {
    let whole = key(name);
    let [.., shortest] = plain(name, whole.strip_suffix(FAST).unwrap_or(&whole));
    shortest
}

fn plain(name: &str, whole: &str) -> [String; 5] {
    let is_bedrock = without_vendor(&model_part(name)).is_some();
    let unversioned = if is_bedrock { without_version(whole) } else { whole };
    let plain = without_effort(unversioned);
    let undated = without_date(plain);
    let bare = undated.strip_suffix("-latest").unwrap_or(undated);
    [whole, without_date(whole), plain, undated, bare].map(str::to_owned)
}

/// A Bedrock name without the leading region and vendor, `eu.anthropic.` or `anthropic.`; `None` if it is not a Bedrock
/// name.
fn without_vendor(name: &str) -> Option<&str> {
    let mut parts = name.splitn(3, '.');
    let (first, second, third) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let is_vendor = |part: &str| VENDORS.contains(&part);
    match (second, third) {
        (Some(second), Some(_)) if is_vendor(second) => name.get(first.len() + second.len() + 2..),
        (Some(_), _) if is_vendor(first) => name.get(first.len() + 1..),
        _ => None,
    }
}

fn without_version(name: &str) -> &str {
    let version = name
        .rsplit_once("-v")
        .filter(|(_, number)| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    version.map_or(name, |(rest, _)| rest)
}

fn without_effort(name: &str) -> &str {
    EFFORTS.iter().find_map(|effort| name.strip_suffix(effort)).unwrap_or(name)
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
