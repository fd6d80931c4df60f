//! Quotas: their usage, and when they will be used up.

use api::usage::QuotaView;
use events::Timestamp;
use store::{QuotaUse, ReadError, Reader};

use crate::UsageRequest;

/// Minimum elapsed time of a window for a forecast, ms.
const LEAST_MS: i64 = 5 * 60_000;

/// The quotas, as last reported by agents.
pub(crate) fn views(reader: &Reader, request: &UsageRequest) -> Result<Vec<QuotaView>, ReadError> {
    let told = reader.quotas()?;
    let wanted = |told: &&QuotaUse| request.of.agents.is_empty() || request.of.agents.contains(&told.provider);
    Ok(told.iter().filter(wanted).map(view).collect())
}

fn view(told: &QuotaUse) -> QuotaView {
    let quota = &told.quota;
    QuotaView {
        provider: told.provider,
        name: quota.name.clone(),
        window_minutes: quota.window_minutes,
        used_percent: f64::from(quota.used_permille) / 10.0,
        at: told.at,
        resets_at: quota.resets_at,
        used_up_at: used_up_at(told),
    }
}

/// When a quota will be used up at the average rate since the beginning of its window.
fn used_up_at(told: &QuotaUse) -> Option<Timestamp> {
    let quota = &told.quota;
    let used = i64::from(quota.used_permille);
    if used >= 1000 {
        return Some(told.at);
    }
    let resets_at = quota.resets_at?;
    let begun = resets_at.plus_ms(i64::from(quota.window_minutes?).saturating_mul(-60_000));
    let lasted = told.at.since_ms(begun);
    if used == 0 || lasted < LEAST_MS {
        return None;
    }
    let left = lasted.saturating_mul(1000 - used) / used;
    Some(told.at.plus_ms(left)).filter(|at| *at < resets_at)
}

#[cfg(test)]
mod tests {
    use events::{Provider, QuotaReported};

    use super::*;

    fn told(at_min: i64, used_permille: u32, resets_min: i64) -> QuotaUse {
        let minute = |n: i64| Timestamp::from_millisecond(n * 60_000);
        let quota = QuotaReported {
            name: "primary".into(),
            window_minutes: Some(300),
            used_permille,
            resets_at: Some(minute(resets_min)),
        };
        QuotaUse { provider: Provider::Codex, at: minute(at_min), quota }
    }

    #[test]
    fn quota_exhaustion_is_predicted_only_within_the_current_window() {
        let in_min = |told: &QuotaUse| used_up_at(told).map(|at| at.as_millisecond() / 60_000);
        // The window lasts from 1000 to 1300.
        assert_eq!(in_min(&told(1100, 500, 1300)), Some(1200));
        assert_eq!(in_min(&told(1200, 500, 1300)), None, "it lasts");
        assert_eq!(in_min(&told(1100, 0, 1300)), None);
        assert_eq!(in_min(&told(1001, 100, 1300)), None, "too early to tell");
        assert_eq!(in_min(&told(1100, 1000, 1300)), Some(1100));
        assert_eq!(view(&told(1100, 915, 1300)).used_percent, 91.5);
    }
}
