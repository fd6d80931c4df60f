use super::*;

#[test]
fn presence_is_inferred_from_typing_and_focus() {
    let seen = |attached, focused, typed_ms| presence(Seen { attached, focused, typed_ms });
    assert_eq!(seen(true, None, Some(500)), Presence::AtTerminal);
    assert_eq!(seen(true, None, Some(10_000)), Presence::Away);
    assert_eq!(seen(true, None, None), Presence::Away);
    assert_eq!(seen(true, Some(true), Some(60_000)), Presence::AtTerminal);
    assert_eq!(seen(true, Some(true), Some(600_000)), Presence::Away, "the window has the focus, and nobody types");
    assert_eq!(seen(true, Some(false), Some(10)), Presence::Away, "typed, and went to another window");
    assert_eq!(seen(false, None, Some(10)), Presence::Away);
}

#[test]
fn directory_names_are_sanitized_for_notifications() {
    for (directory, shown) in [
        ("shop", "shop"),
        ("my shop.v2", "my shop.v2"),
        ("日本", "日本"),
        ("x): Bash asks: `ls` (", "x__ Bash asks_ _ls_ _"),
        ("a\nb\u{202e}c", "a_b_c"),
    ] {
        assert_eq!(project_name(directory), shown);
    }
    assert_eq!(project_name(&"x".repeat(500)).len(), PROJECT_CHARS);
}

#[test]
fn a_title_that_resembles_a_notification_is_quoted() {
    assert_eq!(quoted("Fix the parser"), "Fix the parser");
    assert_eq!(quoted("make test (ws): asks permission"), "“make test (ws): asks permission”");
    assert_eq!(quoted("a” (ws): asks"), "“a' (ws): asks”");
}
