use super::*;

fn parse(text: &str) -> Result<AgentSettings, String> {
    let settings: AgentSettings = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    settings.check().map_err(|error| error.to_string())?;
    Ok(settings)
}

#[test]
fn agent_settings_and_providers_are_parsed() {
    let settings = parse(
        r#"
        model = "work/org/model-1"
        mode = "accept-edits"
        thinking = "high"
        retries = 0
        budget = { cost_usd = 2.5, minutes = 30 }
        [providers.work]
        api = "chat"
        base_url = "http://127.0.0.1:8080/v1"
        key_command = ["pass", "show", "work"]
        headers = { "x-team" = "a" }
        idle_s = 600
        "#,
    )
    .unwrap();
    let model = settings.model.clone().unwrap();
    assert_eq!((model.provider.as_str(), model.model.as_str()), ("work", "org/model-1"));
    assert_eq!(settings.mode, AgentMode::AcceptEdits);
    assert_eq!((settings.thinking, settings.retries), (Some(ThinkingLevel::High), 0));
    assert_eq!(settings.provider_names().collect::<Vec<_>>(), ["anthropic", "openai", "gemini", "work"]);
    assert_eq!(settings.provider("work").unwrap().api, Some(ModelApi::Chat));
}

#[test]
fn the_instruction_files_default_to_claude_md() {
    for (text, names) in [
        ("", &["CLAUDE.md"][..]),
        ("mode = \"plan\"", &["CLAUDE.md"]),
        ("instructions = []", &[]),
        ("instructions = [\"RULES.md\"]", &["RULES.md"]),
    ] {
        assert_eq!(parse(text).unwrap().instructions, names, "{text}");
    }
}

#[test]
fn invalid_settings_are_refused_with_the_reason() {
    for (text, told) in [
        ("mdoel = \"a/b\"", "unknown field `mdoel`"),
        ("[providers.a]\nbase_ulr = \"x\"", "unknown field `base_ulr`"),
        ("model = \"sonnet\"", "expected PROVIDER/MODEL"),
        ("mode = \"auto\"", "needs a sandbox"),
        ("instructions = [\"../x\"]", "agent.instructions: expected names of files, got `../x`"),
        ("thinking = \"hard\"", "expected off, minimal, low, medium, high, xhigh or max, got `hard`"),
        ("retries = 99", "agent.retries: expected 0 to 20"),
        ("mode = \"yolo\"", "expected plan, ask or accept-edits, got `yolo`"),
        ("[budget]\ncost_usd = -1.0", "agent.budget.cost_usd"),
        ("[providers.a]\nkey_file = \"key\"", "agent.providers.a.key_file: expected an absolute path"),
        ("[providers.a]\nkey_env = \"A\"\nkey_command = [\"b\"]", "set only one of"),
        ("[providers.a]\nidle_s = 0", "agent.providers.a.idle_s"),
        ("[providers.\"a/b\"]\nidle_s = 1", "without `/`"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(told), "{text}: {error}");
    }
}

#[test]
fn built_in_providers_have_defaults_and_custom_ones_need_a_base_url() {
    let settings = parse("[providers.gemini]\nkey_file = \"/k\"\n[providers.mine]\napi = \"chat\"").unwrap();
    let anthropic = settings.provider("anthropic").unwrap();
    assert_eq!(anthropic.key_env.as_deref(), Some("ANTHROPIC_API_KEY"));
    // A key file replaces the variable.
    assert_eq!(settings.provider("gemini").unwrap().key_env, None);
    assert_eq!(settings.provider("mine").unwrap_err().key, "agent.providers.mine.base_url");
    let error = settings.provider("other").unwrap_err().to_string();
    assert!(error.contains("anthropic, openai, gemini"), "{error}");
    assert!(settings.key_variables().contains(&"OPENAI_API_KEY".to_owned()));
}

#[test]
fn a_configured_base_url_takes_precedence_over_the_environment_variable() {
    let settings =
        parse("[providers.openai]\nbase_url = \"https://work.test/v1\"\n[providers.mine]\napi = \"chat\"").unwrap();
    let gateway = |name: &str| Some(format!("https://{}.gateway.test", name.to_lowercase()));
    let of = |name, variable: &dyn Fn(&str) -> Option<String>| settings.address(name, variable).unwrap();
    for (name, variable, vendor) in [
        ("anthropic", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
        ("gemini", "GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com"),
    ] {
        let address = of(name, &gateway);
        assert_eq!(address.base_url, gateway(variable).unwrap());
        assert_eq!(address.source, AddressSource::Variable(variable));
        for unset in [None, Some(String::new()), Some(" ".to_owned())] {
            let address = of(name, &|_| unset.clone());
            assert_eq!((address.base_url.as_str(), address.source), (vendor, AddressSource::Vendor));
        }
    }
    let address = of("openai", &gateway);
    assert_eq!(address.base_url, "https://work.test/v1");
    assert_eq!(address.source, AddressSource::Setting("agent.providers.openai.base_url".to_owned()));
    let address = AgentSettings::default().address("openai", gateway).unwrap();
    assert_eq!(address.base_url, "https://openai_base_url.gateway.test");
    // Other providers have no variable.
    assert_eq!(settings.address("mine", gateway).unwrap_err().key, "agent.providers.mine.base_url");
}
