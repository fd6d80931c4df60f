use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(Json::parse(text).unwrap().to_text(), expected);
}

#[test]
fn json_is_serialized_as_in_javascript() {
    check(r#" { "b" : 1 , "a" : [ 1.0 , -2.5, 1e3 ] } "#, r#"{"b":1,"a":[1,-2.5,1000]}"#);
    check(r#""\u0007\u0008\n\"\\\/é€""#, r#""\u0007\b\n\"\\/é€""#);
    check(r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#);
}

#[test]
fn numbers_are_serialized_as_in_javascript() {
    check("[-0,-0.0,0e5,1E3,-2.50]", "[0,0,0,1000,-2.5]");
    check(
        "[1e21,123456789012345680000,1e20,1.5e300,-1e21]",
        "[1e+21,123456789012345680000,100000000000000000000,1.5e+300,-1e+21]",
    );
    check("[0.00001,0.000001,1.25e-6,1e-7,5e-324]", "[0.00001,0.000001,0.00000125,1e-7,5e-324]");
    check("[0.0034571500000000004,0.1234567890123456789]", "[0.0034571500000000004,0.12345678901234568]");
    check("[12345678901234567890,9007199254740993]", "[12345678901234567890,9007199254740993]");
    // JavaScript reads these as Infinity and writes them as null.
    check(r#"{"a 1e999":["1e999 \" -1e999",1e999,-1E+400]}"#, r#"{"a 1e999":["1e999 \" -1e999",null,null]}"#);
    check(r#"["\ud83d",1e999]"#, "[\"\u{fffd}\",null]");
    assert!(Json::parse("[1e999").is_err());
}

#[test]
fn values_convert_to_numbers_and_strings_as_in_javascript() {
    let number = |text: &str| Json::parse(text).unwrap().to_number();
    for (text, expected) in
        [("null", 0.0), ("true", 1.0), ("\" 2 \"", 2.0), ("\"\"", 0.0), ("\"0x1F\"", 31.0), ("\"0b10\"", 2.0)]
    {
        assert_eq!(number(text).to_bits(), f64::to_bits(expected), "{text}");
    }
    for (text, expected) in
        [("[]", 0.0), ("[null]", 0.0), ("[2]", 2.0), ("[\"1\"]", 1.0), ("\"-Infinity\"", f64::NEG_INFINITY)]
    {
        assert_eq!(number(text).to_bits(), f64::to_bits(expected), "{text}");
    }
    for text in ["{}", "[2,3]", "\"inf\"", "\"nan\"", "\"0x\"", "\"0x+1\"", "\"-0x1\"", "\"1_0\"", "[true]"] {
        assert!(number(text).is_nan(), "{text}");
    }
    let nested = Json::parse(r#"[1,null,["a",{}],true]"#).unwrap();
    assert_eq!(nested.to_template(), "1,,a,[object Object],true");
}

#[test]
fn a_lone_surrogate_becomes_a_replacement_character() {
    check(r#""x\ud83d""#, "\"x\u{fffd}\"");
    check(r#""\udc00\ud83d\ude00""#, "\"\u{fffd}\u{1f600}\"");
    // An escaped backslash before a u is not an escape.
    check(r#""\\ud83d \ud83d""#, "\"\\\\ud83d \u{fffd}\"");
    assert!(Json::parse(r#"{"a":"\ud83d"#).is_err());
    assert!(Json::parse("\"\\").is_err());
}

#[test]
fn duplicate_keys_keep_one_entry_with_the_last_value() {
    let text: Vec<String> = (0..100).map(|i| format!("\"k{}\":{i}", i % 50)).collect();
    let Json::Object(object) = Json::parse(&format!("{{{}}}", text.join(","))).unwrap() else { panic!() };
    assert_eq!(object.len(), 50);
    assert_eq!(object.get("k49").and_then(Json::as_f64), Some(99.0));
}

#[test]
fn lengths_and_prefixes_count_utf16_units() {
    assert_eq!(utf16_len("aé😀"), 4);
    assert_eq!(utf16_prefix("a😀b", 2), "a");
    assert_eq!(utf16_prefix("a😀b", 3), "a😀");
    assert_eq!(utf16_prefix("ab", 9), "ab");
}
