//! Detects a nearly full context, by the usage of the last response or by the agent's own message.

use events::{Event, FindingKind, Severity, Timestamp, UsageReported};

use crate::{
    findings::{NewFinding, SessionFindings},
    rules::DetectorLimits,
};

/// The context size of models in tokens, by the beginning of their names.
const KNOWN: &[(&str, u64)] = &[
    ("claude", 200_000),
    ("gpt-4o", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-5", 272_000),
    ("gpt-6", 258_400),
    ("codex", 258_400),
    ("o3", 200_000),
    ("o4", 200_000),
    ("gemini", 1_048_576),
];
/// The larger context of models that have two.
const LARGE: u64 = 1_000_000;

/// The key of these findings.
pub(crate) const KEY: &str = "context_full";

/// The known use of the context.
#[derive(Debug, Default)]
pub(crate) struct ContextUse {
    model: Option<String>,
    /// Whether more than the known context was used, so the larger one applies.
    large: bool,
    /// The last response and its tokens, which may still grow.
    response: Option<(String, u64)>,
}

impl ContextUse {
    pub(crate) fn model(&mut self, model: Option<&str>) {
        if let Some(model) = model.filter(|model| !model.starts_with('<'))
            && self.model.as_deref() != Some(model)
        {
            self.model = Some(model.chars().take(100).collect());
            self.large = false;
        }
    }

    pub(crate) fn apply(
        &mut self,
        event: &Event,
        usage: &UsageReported,
        at: Timestamp,
        rules: &DetectorLimits,
        findings: &mut SessionFindings,
    ) {
        // The usage of a helper with another model does not count for this conversation.
        if event.agent_id.is_some() || usage.model.is_some() && self.model.is_some() && usage.model != self.model {
            return;
        }
        // A report of quotas or totals does not belong to a response.
        if !usage.has_tokens() {
            return;
        }
        self.model(usage.model.as_deref());
        let used = self.used(usage);
        let Some(mut window) = self.model.as_deref().and_then(|model| window(model, rules)) else { return };
        self.large |= used > window + window / 50;
        if self.large {
            window = window.max(LARGE);
        }
        let percent = used.saturating_mul(100) / window.max(1);
        if percent >= u64::from(rules.context_percent) {
            let what = format!("the context is {percent} % full");
            let why = format!("the last response used {used} of about {window} tokens");
            let raise = NewFinding::new(FindingKind::ContextFull, Severity::Warning, what, why, at);
            findings.raise(NewFinding { evidence: vec![event.id], ..raise }, at);
        } else if percent + 15 <= u64::from(rules.context_percent) {
            findings.resolve(KEY, at, "the context usage went down");
        }
    }

    /// The total tokens of a response: another report about the same response contains only the growth.
    fn used(&mut self, usage: &UsageReported) -> u64 {
        let tokens = [usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.output_tokens];
        let used = tokens.into_iter().fold(0, u64::saturating_add);
        let before = self.response.take().filter(|(id, _)| Some(id) == usage.message_id.as_ref());
        let used = used.saturating_add(before.map_or(0, |(_, used)| used));
        self.response = usage.message_id.clone().map(|id| (id, used));
        used
    }

    /// Handles the agent's message that the context is nearly full.
    pub(crate) fn remark(
        &mut self,
        event: &Event,
        words: &str,
        at: Timestamp,
        rules: &DetectorLimits,
        findings: &mut SessionFindings,
    ) {
        let words = crate::text::head(words, 400).to_ascii_lowercase();
        if words.starts_with("context compacted") {
            return self.compacted(at, findings);
        }
        let left =
            ["context left until auto-compact: ", "context left: ", "context remaining: "].iter().find_map(|sign| {
                let rest = &words[words.find(sign)? + sign.len()..];
                rest.split('%').next()?.trim().parse::<u32>().ok()
            });
        let low = left.is_some_and(|left| left <= 100_u32.saturating_sub(rules.context_percent))
            || words.contains("context low");
        if low {
            self.full(event, "the agent reported that its context is nearly full", at, findings);
        }
    }

    /// Handles a request that was refused because it was too long.
    pub(crate) fn full(&mut self, event: &Event, why: &str, at: Timestamp, findings: &mut SessionFindings) {
        let raise = NewFinding::new(
            FindingKind::ContextFull,
            Severity::Warning,
            "the context is nearly full".into(),
            why.into(),
            at,
        );
        findings.raise(NewFinding { evidence: vec![event.id], ..raise }, at);
    }

    pub(crate) fn compacted(&mut self, at: Timestamp, findings: &mut SessionFindings) {
        findings.resolve(KEY, at, "the context was compacted");
    }
}

fn window(model: &str, rules: &DetectorLimits) -> Option<u64> {
    let name = model.rsplit('/').next().unwrap_or(model);
    if let Some((_, tokens)) = rules
        .context_tokens
        .iter()
        .filter(|(start, _)| name.starts_with(start.as_str()))
        .max_by_key(|(start, _)| start.len())
    {
        return Some(*tokens);
    }
    if name.contains("[1m]") {
        return Some(LARGE);
    }
    KNOWN
        .iter()
        .filter(|(start, _)| name.starts_with(start))
        .max_by_key(|(start, _)| start.len())
        .map(|(_, tokens)| *tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_window_is_found_by_model_name() {
        let mut rules = DetectorLimits::default();
        assert_eq!(window("claude-opus-5-5", &rules), Some(200_000));
        assert_eq!(window("claude-sonnet-5[1m]", &rules), Some(1_000_000));
        assert_eq!(window("anthropic/claude-opus-5-5", &rules), Some(200_000));
        assert_eq!(window("gpt-6-sol", &rules), Some(258_400));
        assert_eq!(window("some-model", &rules), None);
        rules.context_tokens.insert("some".into(), 9);
        rules.context_tokens.insert("claude-opus".into(), 500_000);
        assert_eq!((window("some-model", &rules), window("claude-opus-5-5", &rules)), (Some(9), Some(500_000)));
    }
}
