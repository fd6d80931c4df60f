use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(Json::parse(text).unwrap().to_text(), expected);
}

#[test]
fn text_comes_out_as_javascript_writes_it() {
    check(r#" { "b" : 1 , "a" : [ 1.0 , -2.5, 1e3 ] } "#, r#"{"b":1,"a":[1,-2.5,1000]}"#);
    check(r#""\u0007\u0008\n\"\\\/é€""#, r#""\u0007\b\n\"\\/é€""#);
    check(r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#);
}

#[test]
fn half_a_pair_becomes_a_replacement() {
    check(r#""x\ud83d""#, "\"x\u{fffd}\"");
    check(r#""\udc00\ud83d\ude00""#, "\"\u{fffd}\u{1f600}\"");
    // An escaped backslash before a u is no escape.
    check(r#""\\ud83d \ud83d""#, "\"\\\\ud83d \u{fffd}\"");
    assert!(Json::parse(r#"{"a":"\ud83d"#).is_err());
    assert!(Json::parse("\"\\").is_err());
}

#[test]
fn many_keys_are_found_once() {
    let text: Vec<String> = (0..100).map(|i| format!("\"k{}\":{i}", i % 50)).collect();
    let Json::Object(object) = Json::parse(&format!("{{{}}}", text.join(","))).unwrap() else { panic!() };
    assert_eq!(object.len(), 50);
    assert_eq!(object.get("k49").and_then(Json::as_f64), Some(99.0));
}

#[test]
fn length_counts_units() {
    assert_eq!(utf16_len("aé😀"), 4);
    assert_eq!(utf16_prefix("a😀b", 2), "a");
    assert_eq!(utf16_prefix("a😀b", 3), "a😀");
    assert_eq!(utf16_prefix("ab", 9), "ab");
}
