use super::*;

fn check(text: &str) -> Result<Action, String> {
    let action: Action = toml::from_str(text).map_err(|error| error.to_string())?;
    action.check().map_err(|error| error.to_string())?;
    Ok(action)
}

#[test]
fn an_action_rule_must_have_exactly_the_fields_of_its_kind() {
    assert_eq!(check("on = [\"loop\"]\ndo = \"interrupt\"").unwrap().kind, ActionKind::Interrupt);
    assert!(check("on = [\"loop\"]\ndo = \"interrupt\"\ntext = \"x\"").unwrap_err().contains("no `text`"));
    assert!(check("on = [\"stuck\"]\ndo = \"queue\"").unwrap_err().contains("`text`"));
    assert!(check("on = []\ndo = \"note\"\ntext = \"x\"").unwrap_err().contains("`on`"));
    assert!(check("on = [\"sticky\"]\ndo = \"note\"\ntext = \"x\"").unwrap_err().contains("sticky"));
    assert!(check("on = [\"stuck\"]\ndo = \"approve\"").is_err(), "there is no such kind");
    assert_eq!(check("on = [\"loop\"]\ndo = \"steer\"\ntext = \"x\"").unwrap().kind, ActionKind::Steer);
    assert!(check("on = [\"loop\"]\ndo = \"steer\"").unwrap_err().contains("`text`"));
    assert_eq!(check("on = [\"loop\"]\ndo = \"pause\"").unwrap().kind, ActionKind::Pause);
    assert!(check("on = [\"loop\"]\ndo = \"pause\"\nlimits = { calls = 1 }").unwrap_err().contains("`limits`"));
    let limit = check("on = [\"loop\"]\ndo = \"limit\"\nlimits = { cost_usd = 0.5, calls = 9 }").unwrap();
    assert_eq!(limit.limits.unwrap().calls, Some(9));
    for bad in ["", "limits = {}", "limits = { cost = 1 }", "text = \"x\"\nlimits = { calls = 1 }"] {
        assert!(check(&format!("on = [\"loop\"]\ndo = \"limit\"\n{bad}")).is_err(), "{bad}");
    }
}
