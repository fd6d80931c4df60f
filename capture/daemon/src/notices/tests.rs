use super::*;

#[test]
fn who_typed_a_moment_ago_is_there() {
    let seen = |attached, focused, typed_ms| presence(Seen { attached, focused, typed_ms });
    assert_eq!(seen(true, None, Some(500)), Presence::AtTerminal);
    assert_eq!(seen(true, None, Some(10_000)), Presence::Away);
    assert_eq!(seen(true, None, None), Presence::Away);
    assert_eq!(seen(true, Some(true), Some(60_000)), Presence::AtTerminal);
    assert_eq!(seen(true, Some(true), Some(600_000)), Presence::Away, "the window has the focus, and nobody types");
    assert_eq!(seen(true, Some(false), Some(10)), Presence::Away, "typed, and went to another window");
    assert_eq!(seen(false, None, Some(10)), Presence::Away);
}
