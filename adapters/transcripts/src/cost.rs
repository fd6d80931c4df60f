//! Amounts of money in the agents' records.

/// Converts to billionths of a US dollar. An amount that cannot be the cost of one response counts as absent.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
pub(crate) fn nano_usd(usd: f64) -> Option<u64> {
    (0.0..1e6).contains(&usd).then(|| (usd * 1e9).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::nano_usd;

    #[test]
    fn an_invalid_cost_counts_as_missing() {
        assert_eq!(nano_usd(0.004_96), Some(4_960_000));
        assert_eq!([nano_usd(-1.0), nano_usd(f64::NAN), nano_usd(1e300)], [None; 3]);
    }
}
