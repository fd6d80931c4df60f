//! Views of a run's terminal: the messages they receive, and what they may do.

use api::runs::{GridUpdate, InputSent, Run, Scrollback, Size};
use events::RunId;
use futures_util::{SinkExt, StreamExt};
use live_view::Refusal;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Message, client::IntoClientRequest},
};

use super::{
    commands::{Command, commands},
    *,
};

pub(super) fn run() -> Run {
    serde_json::from_value(json!({
        "id": RunId::from_bits(7), "run": RunId::from_bits(7), "command": ["sh"], "provider": "unknown", "cwd": "/",
        "pid": 1, "start_ticks": 1, "host_pid": 1, "started_at": at(0), "terminal": true, "draws": true,
        "state": "running", "exit_code": null, "exit_signal": null, "ended_at": null, "session_id": null,
        "frames_lost": 0, "screen_state": null,
    }))
    .unwrap()
}

fn update(rev: u64, line: &str) -> GridUpdate {
    serde_json::from_value(json!({
        "rev": rev, "cols": 80, "rows": 24, "cursor": { "row": 0, "col": 3, "visible": true }, "alternate": false,
        "title": null, "scrolled": 0, "skipped_bytes": 0, "lines": { "0": [[line, 2, "#010203", 1]] },
    }))
    .unwrap()
}

struct View(WebSocketStream<TcpStream>);

impl View {
    async fn open(live: &Live, scope: &str) -> Self {
        let address = live.serving.address();
        let mut request = format!("ws://{address}/api/v1/runs/shown/terminal").into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {}", token(scope)).parse().unwrap());
        Self(client_async(request, live.connect().await).await.unwrap().0)
    }

    async fn say(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    /// The next message that is not a grid.
    async fn answer(&mut self) -> Value {
        loop {
            let message = self.next().await;
            if message["type"] != "grid" {
                return message;
            }
        }
    }

    async fn next(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.0.next().await.unwrap().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }
}

/// A server with a host that shows nothing, carries out every request, and reports it.
async fn obedient() -> (Live, mpsc::UnboundedReceiver<String>) {
    let (control, mut inbox) = commands(16);
    let live = Live::with(|config| config.control = control).await;
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        // Unanswered requests wait until the host disconnects.
        let mut waiting = Vec::new();
        while let Some(command) = inbox.recv().await {
            match command {
                Command::Grid { since: 0, reply } => drop(reply.send(Ok(update(1, "$")))),
                Command::Grid { reply, .. } => waiting.push(reply),
                Command::Input { input, reply, .. } => {
                    tell.send(serde_json::to_string(&input).unwrap()).unwrap();
                    reply
                        .send(Ok(InputSent { run: RunId::from_bits(7), sent: true, position: 5, forced: false }))
                        .unwrap();
                }
                Command::Resize { size, reply } => {
                    tell.send(format!("{size:?}")).unwrap();
                    reply.send(Ok(())).unwrap();
                }
                Command::Scrollback { before, count, reply } => {
                    let lines = vec![Vec::new(); count.min(2) as usize];
                    reply.send(Ok(Scrollback { from: before - 2, oldest: 0, lines })).unwrap();
                }
                other @ (Command::SetCapture { .. }
                | Command::Screen { .. }
                | Command::Session { .. }
                | Command::Telemetry { .. }) => panic!("{other:?}"),
            }
        }
    });
    (live, told)
}

#[tokio::test]
async fn a_view_receives_the_screen_and_then_its_changes() {
    let (control, mut inbox) = commands(4);
    let live = Live::with(|config| config.control = control).await;
    let mut view = View::open(&live, "read").await;
    for (rev, line) in [(1, "first"), (2, "second"), (9, "third")] {
        let Some(Command::Grid { since, reply }) = inbox.recv().await else { panic!("it asks for the screen") };
        assert_eq!(since, [0, 1, 2][usize::try_from(rev.min(3) - 1).unwrap()]);
        reply.send(Ok(update(rev, line))).unwrap();
        let message = view.next().await;
        assert_eq!((&message["type"], &message["rev"]), (&"grid".into(), &rev.into()));
        assert_eq!(message["lines"]["0"], json!([[line, 2, "#010203", 1]]));
        assert_eq!((&message["cols"], &message["cursor"]["col"]), (&80.into(), &3.into()));
    }
    // Without changes nothing is sent; the end is reported.
    let Some(Command::Grid { reply, .. }) = inbox.recv().await else { panic!() };
    reply.send(Ok(update(9, "third"))).unwrap();
    let Some(Command::Grid { reply, .. }) = inbox.recv().await else { panic!() };
    reply.send(Err(Refusal::Conflict("run shown has ended".into()))).unwrap();
    assert_eq!(view.next().await, json!({ "type": "closed", "why": "run shown has ended" }));
}

#[tokio::test]
async fn a_read_only_view_cannot_type() {
    let (live, mut told) = obedient().await;
    let mut reader = View::open(&live, "read").await;
    for message in [
        json!({ "type": "input", "text": "ls" }),
        json!({ "type": "paste", "text": "ls" }),
        json!({ "type": "keys", "keys": ["enter"] }),
        json!({ "type": "lease" }),
        json!({ "type": "resize", "cols": 80, "rows": 24 }),
    ] {
        reader.say(message.clone()).await;
        let answer = reader.answer().await;
        assert_eq!((&answer["type"], &answer["code"]), (&"refused".into(), &"wrong_scope".into()), "{message}");
    }
    let mut owner = View::open(&live, "owner").await;
    for (message, typed) in [
        (json!({ "type": "input", "text": "ls\n" }), json!({ "text": "ls\n" })),
        (json!({ "type": "input", "text": "y", "force": true }), json!({ "text": "y", "force": true })),
        (json!({ "type": "paste", "text": "a\nb\n" }), json!({ "text": "a\nb" })),
        (json!({ "type": "keys", "keys": ["esc", "up"] }), json!({ "keys": ["esc", "up"] })),
    ] {
        owner.say(message).await;
        assert_eq!(owner.answer().await, json!({ "type": "done" }));
        assert_eq!(serde_json::from_str::<Value>(&told.recv().await.unwrap()).unwrap(), typed);
    }
    for wrong in
        [json!({ "type": "shout" }), json!({ "type": "keys" }), json!({ "type": "input", "text": "x", "to": 1 })]
    {
        owner.say(wrong).await;
        assert_eq!(owner.answer().await["code"], "bad_body");
    }
    reader.say(json!({ "type": "scrollback", "before": 12, "count": 9 })).await;
    assert_eq!(reader.answer().await, json!({ "type": "scrollback", "from": 10, "oldest": 0, "lines": [[], []] }));
    assert!(told.try_recv().is_err(), "nothing else was typed");
}

#[tokio::test]
async fn only_the_lease_holder_resizes_and_the_size_is_restored_afterwards() {
    let (live, mut told) = obedient().await;
    let (mut first, mut second) = (View::open(&live, "owner").await, View::open(&live, "owner").await);
    let resize = json!({ "type": "resize", "cols": 60, "rows": 20 });
    first.say(resize.clone()).await;
    assert_eq!(first.answer().await["code"], "conflict", "not without the lease");
    first.say(json!({ "type": "lease" })).await;
    assert_eq!(first.answer().await, json!({ "type": "lease", "held": true, "by": "a token" }));
    second.say(json!({ "type": "lease" })).await;
    assert_eq!(second.answer().await, json!({ "type": "lease", "held": false, "by": "a token" }));
    second.say(resize.clone()).await;
    assert_eq!(second.answer().await["code"], "conflict");
    first.say(resize.clone()).await;
    assert_eq!(first.answer().await["type"], "done");
    assert_eq!(told.recv().await.unwrap(), format!("{:?}", Some(Size { rows: 20, columns: 60 })));
    drop(first);
    assert_eq!(told.recv().await.unwrap(), "None", "the terminal that types has its size again");
    second.say(json!({ "type": "lease" })).await;
    assert_eq!(second.answer().await["held"], true);
    second.say(json!({ "type": "lease", "take": false })).await;
    assert_eq!(second.answer().await, json!({ "type": "lease", "held": false, "by": null }));
    assert_eq!(told.recv().await.unwrap(), "None");
}

#[tokio::test]
async fn a_view_is_notified_when_the_server_stops() {
    let (live, _told) = obedient().await;
    let mut view = View::open(&live, "read").await;
    assert_eq!(view.next().await["type"], "grid");
    live.cancel.cancel();
    assert_eq!(view.answer().await, json!({ "type": "closed", "why": "the server is stopping" }));
}
