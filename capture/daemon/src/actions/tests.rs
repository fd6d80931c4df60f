use super::*;

fn check(text: &str) -> Result<Action, String> {
    let action: Action = toml::from_str(text).map_err(|error| error.to_string())?;
    action.check().map_err(|error| error.to_string())?;
    Ok(action)
}

#[test]
fn a_rule_says_all_it_needs_and_nothing_else() {
    assert_eq!(check("on = [\"loop\"]\ndo = \"interrupt\"").unwrap().kind, ActionKind::Interrupt);
    assert!(check("on = [\"loop\"]\ndo = \"interrupt\"\ntext = \"x\"").unwrap_err().contains("no `text`"));
    assert!(check("on = [\"stuck\"]\ndo = \"queue\"").unwrap_err().contains("`text`"));
    assert!(check("on = []\ndo = \"note\"\ntext = \"x\"").unwrap_err().contains("`on`"));
    assert!(check("on = [\"sticky\"]\ndo = \"note\"\ntext = \"x\"").unwrap_err().contains("sticky"));
    assert!(check("on = [\"stuck\"]\ndo = \"approve\"").is_err(), "there is no such kind");
}
