//! Tests the channels from outside: through `Delivery`, with the webhook receiver and the desktop of the end-to-end
//! tests.

#![allow(dead_code, unreachable_pub, reason = "the harness has more than is used here")]
#![allow(clippy::unwrap_used, reason = "a harness fails by panicking")]

#[path = "../../tests/src/desktop.rs"]
mod desktop;
#[path = "../../tests/src/receiver.rs"]
mod receiver;

use std::{
    collections::HashMap,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::Path,
    sync::Arc,
    time::Duration,
};

use desktop::Desktop;
use events::Timestamp;
use notifier::{
    ChannelContext, Delivery, DeliveryOutcome, Loudness, MessageForm, Notice, NotifySettings, OutgoingMessage, Receipt,
    Severity,
};
use receiver::Receiver;

const PATIENCE: Duration = Duration::from_secs(30);
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn notice(body: &str) -> Notice {
    Notice {
        cause: "a1".into(),
        kind: events::FindingKind::Approval,
        severity: Severity::Urgent,
        session: "s1".into(),
        session_label: "api".into(),
        project: "shop".into(),
        title: "Bash asks for permission".into(),
        body: body.into(),
        url: None,
        run: None,
        buttons: None,
        at: Timestamp::from_millisecond(1_700_000_000_000),
    }
}

fn message(channel: &str, body: &str) -> OutgoingMessage {
    let at = Timestamp::from_millisecond(1_700_000_000_123);
    OutgoingMessage::new(channel, MessageForm::Single, Loudness::Loud, vec![notice(body).shown()], at)
}

struct Setup {
    delivery: Delivery,
    heard: crossbeam_channel::Receiver<Receipt>,
}

impl Setup {
    fn new(settings: &str, env: &[(&str, &str)]) -> Self {
        let settings: NotifySettings = toml::from_str(settings).unwrap();
        let env: HashMap<String, String> = env.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
        let mut context = ChannelContext::new(
            Arc::new(move |name| env.get(name).cloned()),
            Arc::new(|| Timestamp::from_millisecond(1_700_000_000_500)),
        );
        // Long enough for a busy machine, short enough for an attempt that hangs.
        context.attempt = Duration::from_secs(5);
        let (tell, heard) = crossbeam_channel::bounded(100);
        let delivery = Delivery::start(&settings, context, Arc::new(move |receipt| drop(tell.send(receipt)))).unwrap();
        Self { delivery, heard }
    }

    fn outcome(&self, message: OutgoingMessage) -> DeliveryOutcome {
        self.delivery.send(message);
        self.heard.recv_timeout(PATIENCE).unwrap().outcome
    }

    fn error(&self, message: OutgoingMessage) -> String {
        match self.outcome(message) {
            DeliveryOutcome::Failed { error, .. } => error,
            other @ (DeliveryOutcome::Sent | DeliveryOutcome::Dropped { .. }) => panic!("{other:?}"),
        }
    }
}

fn private(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_webhook_is_signed_and_tried_again_under_the_same_id() {
    let receiver = Receiver::start();
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("secret");
    private(&secret, SECRET);
    let setup = Setup::new(
        &format!(
            "allow_hosts = ['{}']\n[[channels]]\nname = 'hook'\ntype = 'webhook'\nurl = '{}'\nsecret_file = '{}'",
            receiver.host(),
            receiver.url("/in"),
            secret.display()
        ),
        &[],
    );
    receiver.answer(503, "Retry-After: 0\r\n");
    receiver.answer(429, "Retry-After: 0\r\n");
    assert_eq!(setup.outcome(message("hook", "Bash: cargo test")), DeliveryOutcome::Sent);
    let requests = receiver.wait(3, PATIENCE);
    for request in &requests {
        assert_eq!(request.line, "POST /in HTTP/1.1");
        assert!(request.is_signed_by(SECRET), "{request:?}");
        assert_eq!(request.header("webhook-timestamp"), "1700000000");
        assert_eq!(request.header("webhook-id"), requests[0].header("webhook-id"));
        assert_eq!(request.json()["notices"][0]["body"], "Bash: cargo test");
    }
    receiver.answer(410, "");
    let error = setup.error(message("hook", "x"));
    assert!(error.starts_with("the server answered 410"), "{error}");
    assert!(setup.delivery.stop(PATIENCE));
}

#[test]
fn a_channel_without_its_secret_says_so_and_sends_nothing() {
    let receiver = Receiver::start();
    let hook = format!(
        "allow_hosts = ['{}']\n[[channels]]\nname = 'hook'\ntype = 'webhook'\nurl = '{}'\nsecret_env = 'HOOK'",
        receiver.host(),
        receiver.url("/in")
    );
    let error = Setup::new(&hook, &[]).error(message("hook", "x"));
    assert_eq!(error, "the environment variable HOOK is not set");
    let error = Setup::new(&hook, &[("HOOK", "hunter2")]).error(message("hook", "x"));
    assert!(error.contains("whsec_") && !error.contains("hunter2"), "{error}");
    assert!(receiver.requests().is_empty());
}

#[test]
fn ntfy_and_telegram_carry_their_tokens() {
    let receiver = Receiver::start();
    let setup = Setup::new(
        &format!(
            "allow_hosts = ['{host}']\n\
             [[channels]]\nname = 'n'\ntype = 'ntfy'\nserver = '{url}'\ntopic = 'mine'\ntoken_env = 'T'\n\
             [[channels]]\nname = 't'\ntype = 'telegram'\nserver = '{url}'\nchat_id = '7'\ntoken_env = 'T'",
            host = receiver.host(),
            url = receiver.url("")
        ),
        &[("T", "12:hunter2")],
    );
    assert_eq!(setup.outcome(message("n", "x")), DeliveryOutcome::Sent);
    assert_eq!(setup.outcome(message("t", "x")), DeliveryOutcome::Sent);
    let requests = receiver.requests();
    assert_eq!(
        (requests[0].line.as_str(), requests[0].header("authorization")),
        ("POST / HTTP/1.1", "Bearer 12:hunter2")
    );
    assert_eq!((&requests[0].json()["priority"], &requests[0].json()["topic"]), (&5.into(), &"mine".into()));
    assert_eq!(requests[1].line, "POST /bot12:hunter2/sendMessage HTTP/1.1");
    receiver.answer(404, "");
    let error = setup.error(message("t", "x"));
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn slack_and_discord_post_to_the_url_from_the_secret() {
    let receiver = Receiver::start();
    let setup = Setup::new(
        &format!(
            "allow_hosts = ['{}']\n[[channels]]\nname = 's'\ntype = 'slack'\nurl_env = 'S'\n\
             [[channels]]\nname = 'd'\ntype = 'discord'\nurl_env = 'D'",
            receiver.host()
        ),
        &[("S", &receiver.url("/services/hunter2")), ("D", "http://127.0.0.1:1/hunter2")],
    );
    assert_eq!(setup.outcome(message("s", "<!here>")), DeliveryOutcome::Sent);
    assert_eq!(receiver.requests()[0].line, "POST /services/hunter2 HTTP/1.1");
    let error = setup.error(message("d", "x"));
    assert!(error.contains("allow_hosts") && !error.contains("hunter2"), "{error}");
}

#[test]
fn a_desktop_notification_is_shown_with_markup_escaped() {
    let dir = tempfile::tempdir().unwrap();
    let desktop = Desktop::start(dir.path());
    let setup =
        Setup::new("[[channels]]\nname = 'd'\ntype = 'desktop'", &[("DBUS_SESSION_BUS_ADDRESS", &desktop.address())]);
    assert_eq!(setup.outcome(message("d", "<a href='x'>y</a> & \u{202e}")), DeliveryOutcome::Sent);
    assert_eq!(setup.outcome(message("d", "second")), DeliveryOutcome::Sent);
    let shown = desktop.wait(2, PATIENCE);
    assert_eq!(shown[0].summary, "api (shop): Bash asks for permission");
    assert_eq!(shown[0].body, "&lt;a href='x'&gt;y&lt;/a&gt; &amp; \\u{202e}");
    assert_eq!((shown[0].program.as_str(), shown[0].urgency, shown[1].body.as_str()), ("capture", Some(2), "second"));
    assert!(setup.delivery.stop(PATIENCE));
}

#[test]
fn the_desktop_channel_reconnects_after_the_bus_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let first = Desktop::start(dir.path());
    let setup =
        Setup::new("[[channels]]\nname = 'd'\ntype = 'desktop'", &[("DBUS_SESSION_BUS_ADDRESS", &first.address())]);
    assert_eq!(setup.outcome(message("d", "one")), DeliveryOutcome::Sent);
    drop(first);
    let error = setup.error(message("d", "lost"));
    assert!(error.starts_with("cannot connect to the session bus"), "{error}");
    std::fs::remove_file(dir.path().join("bus")).unwrap();
    let second = Desktop::start(dir.path());
    assert_eq!(setup.outcome(message("d", "two")), DeliveryOutcome::Sent);
    assert_eq!(second.shown()[0].body, "two");
}

#[test]
fn delivery_fails_without_a_local_session_bus() {
    let desktop = "[[channels]]\nname = 'd'\ntype = 'desktop'";
    let error = |env: &[(&str, &str)]| Setup::new(desktop, env).error(message("d", "x"));
    assert!(error(&[]).contains("DBUS_SESSION_BUS_ADDRESS is not set"));
    assert!(error(&[("XDG_RUNTIME_DIR", "/nonexistent")]).starts_with("cannot connect to the session bus"));
    for elsewhere in ["tcp:host=example.test,port=1", "unixexec:path=/bin/sh", "unix:path=/x;tcp:host=y,port=1"] {
        assert_eq!(
            error(&[("DBUS_SESSION_BUS_ADDRESS", elsewhere)]),
            "the session bus address is not a local Unix socket"
        );
    }
}

#[test]
fn an_unresponsive_session_bus_fails_the_delivery() {
    let dir = tempfile::tempdir().unwrap();
    // No server accepts; the kernel accepts the connection.
    let _silent = UnixListener::bind(dir.path().join("bus")).unwrap();
    let address = format!("unix:path={}/bus", dir.path().display());
    let setup = Setup::new("[[channels]]\nname = 'd'\ntype = 'desktop'", &[("DBUS_SESSION_BUS_ADDRESS", &address)]);
    for _ in 0..2 {
        let error = setup.error(message("d", "x"));
        assert!(error.contains("session bus"), "{error}");
    }
}
