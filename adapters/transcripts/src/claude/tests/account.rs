//! Compares the process's own accounting with the transcripts of the same session.

use events::{AccountedModel, UsageAccount};

use super::*;

fn line(session: &str, start: &str, models: &str) -> String {
    format!(
        r#"{{"type":"cost-state","sessionId":"{session}","totalCostUSD":1,{start}"modelUsage":{{{models}}},"hasUnknownModelCost":false}}"#
    ) + "\n"
}

fn accounts(lines: &str) -> Vec<UsageAccount> {
    let out = decode(&transcript(OWN), lines.as_bytes());
    assert_eq!(out.issues, 0);
    let mut known = std::collections::HashSet::new();
    let told = out.events.into_iter().filter(|event| known.insert(event.identity));
    let account = told.filter_map(|event| match event.payload {
        Payload::UsageReported(usage) => {
            assert!(!usage.has_tokens(), "sums count as no response");
            usage.account
        }
        _ => None,
    });
    account.collect()
}

#[test]
fn usage_accounts_are_reported_once_and_only_for_their_own_session() {
    let opus = r#""claude-opus-5-5":{"inputTokens":80,"outputTokens":336,"thinkingTokens":9,"cacheReadInputTokens":40000,"cacheCreationInputTokens":960,"cacheCreationEphemeral1hInputTokens":60,"costUSD":0.01984}"#;
    let start = r#""startTime":1795149577580,"#;
    let told = accounts(&(line(OWN, start, opus) + &line(OWN, start, opus) + &line("other", start, opus)));
    let sums = AccountedModel {
        model: "claude-opus-5-5".into(),
        input_tokens: 80,
        output_tokens: 336,
        cache_read_tokens: 40_000,
        cache_write_tokens: 960,
        cache_write_hour_tokens: 60,
        thinking_tokens: 9,
        cost_nano_usd: Some(19_840_000),
    };
    let began_at = Some(Timestamp::from_millisecond(1_795_149_577_580));
    assert_eq!(told, [UsageAccount { began_at, models: vec![sums], ..UsageAccount::default() }]);
    // A cost that contains estimates is ignored; any sum may be missing.
    let guessed = line(OWN, "", r#""m":{"outputTokens":5,"costUSD":1}"#).replace("false}", "true}");
    let told = accounts(&guessed);
    assert_eq!(told[0].models, [AccountedModel { model: "m".into(), output_tokens: 5, ..AccountedModel::default() }]);
    assert!(accounts(&line(OWN, start, "")).is_empty());
}

#[test]
fn a_usage_account_line_with_a_wrong_type_is_kept_as_unrecognized() {
    let odd = line(OWN, "", r#""m":{"outputTokens":"many"}"#);
    let out = decode(&transcript(OWN), odd.as_bytes());
    let kinds: Vec<_> = out.events.iter().map(|event| event.payload.kind()).collect();
    assert_eq!(kinds, [events::Kind::Unrecognized]);
}
