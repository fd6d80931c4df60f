use std::os::unix::net::UnixListener;

use events::{Provider, RunId};

use super::*;
use crate::frame::DialogAnswer;

fn hello() -> Hello {
    Hello {
        run: RunId::from_bits(1),
        name: None,
        command: vec!["claude".into()],
        provider: Provider::Claude,
        version: None,
        cwd: "/".into(),
        pid: 1,
        start_ticks: 1,
        host_pid: 1,
        started_at: Timestamp::MIN,
        terminal: true,
        size: None,
        socket: None,
        recording: None,
        answers: true,
        session: None,
        takes: Vec::new(),
        draws: true,
    }
}

/// A server that the test plays, with a separate socket.
struct Server {
    dir: tempfile::TempDir,
    listener: UnixListener,
}

struct Conversation {
    lines: std::io::Lines<BufReader<UnixStream>>,
    write: UnixStream,
}

impl Server {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("s")).unwrap();
        Self { dir, listener }
    }

    fn link(&self) -> (HostLink, Receiver<PendingRequest>) {
        let path = self.dir.path().join("s");
        let (requests, asks) = bounded(1);
        (HostLink::start(hello(), Box::new(move |_| Some(path.clone())), requests).unwrap(), asks)
    }

    /// Accepts the next connection and reads its hello.
    fn accept(&self) -> Conversation {
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut write = stream.try_clone().unwrap();
        let mut lines = BufReader::new(stream).lines();
        let head: Vec<String> = lines.by_ref().map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
        assert!(head[0].starts_with("GET /api/v1/host HTTP/1.1"), "{head:?}");
        assert!(head.iter().any(|line| *line == format!("Upgrade: {PROTOCOL}")), "{head:?}");
        write.write_all(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: capture-host/1\r\n\r\n").unwrap();
        let mut conversation = Conversation { lines, write };
        assert_eq!(conversation.next(), HostMessage::Hello(Box::new(hello())));
        conversation
    }
}

impl Conversation {
    fn next(&mut self) -> HostMessage {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    fn frame(&mut self) -> (u64, HostEvent) {
        let up = self.next();
        let HostMessage::Frame(HostFrame { n, event, .. }) = up else { panic!("{up:?} is not a frame") };
        (n, event)
    }

    fn send(&mut self, down: &ServerMessage) {
        let line = serde_json::to_string(down).unwrap() + "\n";
        self.write.write_all(line.as_bytes()).unwrap();
    }
}

fn note(text: &str) -> HostEvent {
    HostEvent::Notification { text: text.into() }
}

#[test]
fn unacknowledged_events_are_resent_after_reconnecting() {
    let server = Server::new();
    let (link, _asks) = server.link();
    for text in ["a", "b", "c"] {
        link.send_event(Timestamp::MIN, note(text));
    }
    let mut first = server.accept();
    for (n, text) in [(1, "a"), (2, "b"), (3, "c")] {
        assert_eq!(first.frame(), (n, note(text)));
    }
    first.send(&ServerMessage::Ack { n: 2 });
    // An answer to a request shows that the earlier messages were received.
    first.send(&ServerMessage::Ask { id: 7, ask: HostRequest::Interrupt });
    _asks.recv().unwrap();
    drop(first);
    let mut second = server.accept();
    assert_eq!(second.frame(), (3, note("c")));
    link.send_event(Timestamp::MIN, note("d"));
    assert_eq!(second.frame(), (4, note("d")));
    second.send(&ServerMessage::Ack { n: 4 });
    drop(link);
}

#[test]
fn a_server_request_is_answered_or_refused_when_the_queue_is_full() {
    let server = Server::new();
    let (link, asks) = server.link();
    let mut server = server.accept();
    server.send(&ServerMessage::Ask { id: 1, ask: HostRequest::Screen });
    let requests = asks.recv().unwrap();
    assert_eq!(requests.ask, HostRequest::Screen);
    (requests.reply)(Ok(serde_json::json!({ "rows": 1 })));
    assert_eq!(server.next(), HostMessage::Answer { id: 1, answer: Ok(serde_json::json!({ "rows": 1 })) });
    // The second request stays in the queue, so the third is refused immediately.
    server.send(&ServerMessage::Ask { id: 2, ask: HostRequest::Screen });
    server.send(&ServerMessage::Ask { id: 3, ask: HostRequest::Screen });
    assert_eq!(server.next(), HostMessage::Answer { id: 3, answer: Err("the run is busy; try again".into()) });
    drop(asks);
    drop(server);
    drop(link);
}

#[test]
fn unknown_server_requests_are_refused_and_the_link_continues() {
    let server = Server::new();
    let (link, _asks) = server.link();
    let mut server = server.accept();
    for (id, ask) in [(4, r#"{"ask":"dance"}"#), (5, r#"{"ask":"answer","mark":"m","answer":"perhaps"}"#)] {
        writeln!(server.write, r#"{{"type":"ask","id":{id},"ask":{ask}}}"#).unwrap();
        assert_eq!(server.next(), HostMessage::Answer { id, answer: Err(NOT_UNDERSTOOD.into()) });
    }
    writeln!(server.write, r#"{{"type":"nonsense"}}"#).unwrap();
    server
        .send(&ServerMessage::Ask { id: 6, ask: HostRequest::Answer { mark: "m".into(), answer: DialogAnswer::Deny } });
    assert!(matches!(_asks.recv().unwrap().ask, HostRequest::Answer { .. }));
    drop(server);
    drop(link);
}

#[test]
fn dropping_the_link_waits_for_the_last_acknowledgement() {
    let server = Server::new();
    let (link, _asks) = server.link();
    link.send_event(Timestamp::MIN, HostEvent::Exited { code: Some(0), signal: None });
    let mut server = server.accept();
    assert_eq!(server.frame().0, 1);
    let dropping = std::thread::spawn(move || drop(link));
    server.send(&ServerMessage::Ack { n: 1 });
    dropping.join().unwrap();
    assert!(server.lines.next().is_none(), "the host is gone");
}

#[test]
fn a_full_spool_drops_its_oldest_events_and_records_a_gap() {
    let (requests, _asks) = bounded(1);
    let mut worker = LinkWorker {
        hello: hello(),
        find: Box::new(|_| None),
        requests,
        missed: Arc::default(),
        connected: Arc::default(),
        tried: Arc::default(),
        spool: VecDeque::new(),
        next: 1,
        sent: 0,
        connection: None,
        wait: RETRY_FIRST,
        started: false,
    };
    let event = SPOOL as u64 + 10;
    for n in 1..=event {
        worker.apply(LinkCommand::Event(Timestamp::MIN, note(&n.to_string())));
    }
    assert_eq!(worker.spool.len(), SPOOL);
    assert_eq!(worker.spool.front().map(|f| (f.n, f.event.clone())), Some((11, HostEvent::Gap { frames: 11 })));
    assert_eq!(worker.spool.back().map(|f| (f.n, f.event.clone())), Some((event, note(&event.to_string()))));
    worker.missed.store(5, Ordering::Relaxed);
    worker.apply(LinkCommand::Event(Timestamp::MIN, note("x")));
    let last: Vec<HostEvent> = worker.spool.iter().rev().take(2).map(|f| f.event.clone()).collect();
    assert_eq!(last, [note("x"), HostEvent::Gap { frames: 5 }]);
}
