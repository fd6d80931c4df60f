use events::{Provider, Source, Timestamp};

use super::*;

fn delivery(payload: &str) -> Delivery {
    Delivery {
        id: DeliveryId::mint(Timestamp::from_millisecond(1_700_000_000_000), [7; 10]),
        provider: Provider::Claude,
        source: Source::Hook,
        at: Timestamp::from_millisecond(1_700_000_000_000),
        agent: None,
        run: None,
        search_path: None,
        redacted_from: None,
        payload: RawValue::from_string(payload.to_owned()).unwrap(),
    }
}

fn kept(data: &Path, payload: &str) -> Delivery {
    let delivery = delivery(payload);
    put(data, &delivery).unwrap();
    let kept = Spool::of(data).get(delivery.id).unwrap().unwrap();
    assert_eq!(kept.digest(), delivery.digest());
    kept
}

#[test]
fn spooled_payloads_contain_secrets_only_while_redacted_only_is_off() {
    let dir = tempfile::tempdir().unwrap();
    let secret = ["ghp_", "x7Kd93LmQp2RtYv8", "WzAc5EfGh1Jk4NbS6uXo"].concat();
    let payload =
        format!(r#"{{"session_id":"s", "tool_input":{{"command":"T={secret} x","password":"opensesame9"}},"n":1}}"#);
    record_setting(dir.path(), false).unwrap();
    assert_eq!(kept(dir.path(), &payload).payload.get(), payload);
    record_setting(dir.path(), true).unwrap();
    record_setting(dir.path(), true).unwrap();
    assert!(is_recorded(dir.path()));
    let redacted = kept(dir.path(), &payload);
    let text = redacted.payload.get();
    assert!(!text.contains(&secret) && !text.contains("opensesame9") && text.contains(r#""session_id":"s""#), "{text}");
    assert!(redacted.redacted_from.is_some());
    let harmless = r#"{"session_id" : "s", "tool_input":{"command":"ls"}}"#;
    let same = kept(dir.path(), harmless);
    assert_eq!((same.payload.get(), &same.redacted_from), (harmless, &None));
    record_setting(dir.path(), false).unwrap();
    assert!(!is_recorded(dir.path()));
}
