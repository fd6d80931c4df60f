use super::*;
use crate::plan::tests::notice;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    notify: NotifySettings,
}

fn check(text: &str) -> Result<NotifySettings, String> {
    let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
    file.notify.check().map_err(|e| e.to_string())?;
    Ok(file.notify)
}

#[test]
fn by_default_nothing_leaves_the_machine() {
    let settings = check("").unwrap();
    assert_eq!(settings, NotifySettings::default());
    assert!(settings.channels.iter().all(|c| !c.leaves_machine()));
    assert_eq!(settings.names().collect::<Vec<_>>(), ["desktop"]);
}

#[test]
fn a_configuration_with_every_setting_is_accepted_and_hides_secrets() {
    let settings = check(
        r#"
        [notify]
        allow_hosts = ["127.0.0.1:8080", "ntfy.lan"]
        [notify.quiet]
        hours = ["22:00-07:00"]
        urgent_breaks_through = true
        [[notify.channels]]
        name = "d"
        type = "desktop"
        [[notify.channels]]
        name = "hook"
        type = "webhook"
        url = "http://127.0.0.1:8080/in?key=hunter2"
        secret_file = "/etc/secret"
        [[notify.channels]]
        name = "n"
        type = "ntfy"
        server = "http://ntfy.lan"
        topic = "hunter2"
        [[notify.channels]]
        name = "s"
        type = "slack"
        url_env = "SLACK"
        [[notify.channels]]
        name = "t"
        type = "telegram"
        chat_id = "12"
        token_env = "BOT"
        [[notify.channels]]
        name = "c"
        type = "command"
        argv = ["/usr/bin/logger", "hunter2"]
        [[notify.channels]]
        name = "term"
        type = "terminal"
        style = "osc777"
        [[notify.rules]]
        kind = "approval"
        severity = "urgent"
        channels = ["d", "hook"]
        debounce_ms = 0
        repeat_s = 60
        repeats = 2
        "#,
    )
    .unwrap();
    assert_eq!(settings.channels.len(), 7);
    assert!(!format!("{settings:?}").contains("hunter2"), "{settings:?}");
}

#[test]
fn invalid_settings_are_named_without_revealing_secrets() {
    let case = |text: &str, part: &str| {
        let error = check(text).unwrap_err();
        assert!(error.contains(part), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    };
    case("[notify]\nquite = 1", "quite");
    case("[[notify.rules]]\nknd = 'x'", "knd");
    case("[[notify.rules]]\nchannels = ['nobody']", "nobody");
    case("[[notify.rules]]\nrepeat_s = 3", "rules.repeat_s");
    case("[notify]\nper_minute = 0", "notify.per_minute");
    case("[notify.quiet]\nhours = ['22-7']", "22-7");
    case("[[notify.rules]]\nkind = 'status'", "expected one of `approval`, `risky_approval`");
    case("[notify]\nallow_hosts = ['http://x/y']", "allow_hosts");
    let channel = |text: &str, part: &str| case(&format!("[[notify.channels]]\nname = 'x'\n{text}"), part);
    channel("type = 'desktop'\nurl = 'x'", "url");
    channel("type = 'pigeon'", "pigeon");
    channel("type = 'webhook'\nurl = 'https://h/'", "secret_file");
    channel("type = 'webhook'\nurl = 'http://h/hunter2'\nsecret_env = 'X'", "allow_hosts");
    channel("type = 'webhook'\nurl = 'https://u:hunter2@h/'\nsecret_env = 'X'", "password");
    channel("type = 'webhook'\nurl = 'https://h/'\nsecret = 'hunter2'", "secret");
    channel("type = 'ntfy'\ntopic = 'a/b'", "topic");
    channel("type = 'command'\nargv = ['logger']", "absolute");
    channel("type = 'slack'", "url_file");
    case("[[notify.channels]]\nname='a'\ntype='desktop'\n[[notify.channels]]\nname='a'\ntype='desktop'", "`a`");
}

#[test]
fn a_telegram_chat_id_may_be_a_number_or_a_channel_name() {
    let chat = |id: &str| {
        let text = format!("[[notify.channels]]\nname='t'\ntype='telegram'\ntoken_env='BOT'\nchat_id={id}\n");
        check(&text).map(|settings| match &settings.channels[0] {
            ChannelSettings::Telegram { chat_id, .. } => chat_id.clone(),
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(chat("-1001234"), Ok("-1001234".to_owned()));
    assert_eq!(chat("'-1001234'"), chat("-1001234"));
    assert_eq!(chat("'@news'"), Ok("@news".to_owned()));
    assert!(chat("true").unwrap_err().contains("expected `chat_id` to be a number or \"@channel\""));
    let severity = |name: &str| check(&format!("[[notify.rules]]\nseverity='{name}'\n")).unwrap().rules[0].severity;
    assert_eq!(severity("error"), severity("urgent"));
}

#[test]
fn user_rules_override_the_default_notification_settings() {
    let names = ["a".to_owned(), "b".to_owned()];
    let usual = rule::resolve(&[], &names, &notice("1", "approval"));
    assert_eq!((usual.loudness, usual.debounce_ms, usual.channels.len()), (Loudness::Loud, 300, 2));
    assert_eq!((usual.repeat_ms, usual.while_present), (None, WhilePresent::Wait));
    assert_eq!(rule::resolve(&[], &names, &notice("1", "risky_approval")), usual, "no later and no quieter");
    assert_eq!(rule::resolve(&[], &names, &notice("1", "idle")).loudness, Loudness::Off);
    assert_eq!(rule::resolve(&[], &names, &notice("1", "completion")).while_present, WhilePresent::Drop);
    let urgent = NotifyRule {
        severity: Some(crate::Severity::Urgent),
        channels: Some(vec!["b".into()]),
        ..NotifyRule::default()
    };
    let quiet = NotifyRule {
        kind: Some(events::FindingKind::Approval),
        loudness: Some(Loudness::Quiet),
        ..NotifyRule::default()
    };
    let rules = [urgent, quiet];
    let mut one = notice("1", "approval");
    assert_eq!(rule::resolve(&rules, &names, &one).loudness, Loudness::Quiet);
    one.severity = crate::Severity::Urgent;
    let told = rule::resolve(&rules, &names, &one);
    assert_eq!((told.loudness, told.channels), (Loudness::Loud, vec![1]));
}

#[test]
fn allowed_hosts_match_host_and_port_exactly() {
    let covers = |host: &str, url: &str| AllowedHost::parse(host).unwrap().covers(&url::Url::parse(url).unwrap());
    assert!(covers("127.0.0.1:8080", "http://127.0.0.1:8080/x"));
    assert!(covers("127.0.0.1:8080", "http://2130706433:8080/x"));
    assert!(!covers("127.0.0.1:8080", "http://127.0.0.1:8081/x"));
    assert!(covers("ntfy.lan", "http://NTFY.lan/") && covers("ntfy.lan", "https://ntfy.lan/"));
    assert!(!covers("ntfy.lan", "http://ntfy.lan:22/") && !covers("ntfy.lan", "http://x.ntfy.lan/"));
    assert!(covers("h:80", "http://h/") && !covers("h:80", "https://h/"));
    assert!(covers("[::1]:9", "http://[::1]:9/"));
}
