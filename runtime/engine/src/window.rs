//! Measures how full the model's context is, and words the message for a full one.

use std::fmt::Write as _;

/// The shares of the context that are reported to subscribers, in percent.
pub const SHARES: [u64; 2] = [80, 95];
/// The smallest number in a provider's message that is read as a token count.
const FEWEST_TOKENS: u64 = 1_000;

/// Number of shares that this number of tokens has reached.
pub(crate) fn shares_reached(tokens: u64, window: u64) -> usize {
    SHARES.iter().filter(|share| tokens.saturating_mul(100) >= window.saturating_mul(**share)).count()
}

/// The message for the user when the conversation no longer fits. `said` is the provider's message, `window` the known
/// size of the model's window.
pub(crate) fn too_long(said: &str, window: Option<u64>) -> String {
    let mut text = "The conversation no longer fits the model's context".to_owned();
    let _ = match (sizes(said, window), window) {
        (Some((tokens, most)), _) => write!(text, " ({} of {} tokens). ", grouped(tokens), grouped(most)),
        (None, Some(window)) => write!(text, " of {} tokens; the provider said: {}. ", grouped(window), ended(said)),
        (None, None) => write!(text, "; the provider said: {}. ", ended(said)),
    };
    text + "Start a new session, fork this one at an earlier message (`capture agent session fork`), or continue with \
            a model that has a larger context (`--continue --model`)."
}

fn ended(said: &str) -> &str {
    said.trim().trim_end_matches('.')
}

/// The number of tokens sent and the maximum, if a message contains both.
fn sizes(said: &str, window: Option<u64>) -> Option<(u64, u64)> {
    // Digits within a name, such as a model's, do not count.
    let mut numbers: Vec<u64> = said
        .split(|c: char| !c.is_alphanumeric() && !",_-.".contains(c))
        .map(|word| word.trim_end_matches(['.', ',']).replace([',', '_'], ""))
        .filter_map(|word| word.parse().ok())
        .filter(|number| *number >= FEWEST_TOKENS)
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let largest = *numbers.last()?;
    let most = match (&numbers[..], window) {
        (_, Some(window)) if numbers.contains(&window) => window,
        ([most, _], _) => *most,
        _ => return None,
    };
    (most < largest).then_some((largest, most))
}

/// A number with commas between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_sizes_are_parsed_from_provider_error_messages() {
        for (said, window, expected) in [
            ("prompt is too long: 213452 tokens > 200000 maximum", None, Some((213_452, 200_000))),
            (
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens \
                 (129000 in the messages, 1000 in the functions).",
                Some(128_000),
                Some((130_000, 128_000)),
            ),
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                None,
                Some((1_200_000, 1_048_576)),
            ),
            ("Your input exceeds the context window of this model.", Some(272_000), None),
            ("input length and `max_tokens` exceed context limit: 195000 + 32000 > 200000", None, None),
            ("the context is 8,192 tokens and the prompt 9_000", None, Some((9_000, 8_192))),
            ("gpt-4o-2024-11-20: this model's maximum context length is 128000 tokens.", Some(128_000), None),
            ("gpt-4o-2024-11-20: this model's maximum context length is 128000 tokens.", None, None),
            ("model claude-opus-4-20250514: 213452 tokens > 200000 maximum", None, Some((213_452, 200_000))),
            // A known window size is never taken for the number of tokens sent.
            ("128000 tokens at most (limit since 2024)", Some(128_000), None),
            ("250000 tokens, 128000 at most (limit since 2024)", Some(128_000), Some((250_000, 128_000))),
        ] {
            assert_eq!(sizes(said, window), expected, "{said}");
        }
    }

    #[test]
    fn a_context_overflow_message_gives_the_sizes_and_what_to_do() {
        let way_on = "Start a new session, fork this one at an earlier message (`capture agent session fork`), or \
                      continue with a model that has a larger context (`--continue --model`).";
        assert_eq!(
            too_long("prompt is too long: 213452 tokens > 200000 maximum", Some(200_000)),
            format!("The conversation no longer fits the model's context (213,452 of 200,000 tokens). {way_on}")
        );
        assert_eq!(
            too_long("Your input is too long.", Some(272_000)),
            format!(
                "The conversation no longer fits the model's context of 272,000 tokens; the provider said: Your input is \
                 too long. {way_on}"
            )
        );
        assert!(too_long("too long", None).starts_with("The conversation no longer fits the model's context; the"));
    }

    #[test]
    fn context_thresholds_are_counted_as_they_are_reached() {
        assert_eq!([799, 800, 949, 950, 2_000].map(|tokens| shares_reached(tokens, 1_000)), [0, 1, 1, 2, 2]);
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(999), "999");
    }
}
