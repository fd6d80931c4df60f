use events::RunId;
use processes::wake;

use super::*;

#[test]
fn paste_and_cursor_modes_follow_the_programs_sequences() {
    let after = |bytes: &[u8]| {
        let size = Size { rows: 10, columns: 40 };
        let mut observer = Observer::new(size, Provider::Unknown, Arc::default(), clock());
        observer.output(bytes, clock());
        (observer.accepts_pastes(), observer.application_cursor())
    };
    assert!(after(b"\x1b[?25l\x1b[?1;2004h").0);
    assert!(after(b"\x1b[?1;2004h").1);
    assert!(!after(b"\x1b[?2004h\x1b[?2004l").0);
    assert!(!after(b"\x1b[?12h\x1b[1h").1);
    assert!(!after(b"\x1b[?").1);
}

fn clock() -> Timestamp {
    Timestamp::from_millisecond(1_800_000_000_000)
}

fn start(provider: Provider) -> (ScreenHandle, Receiver<FromScreen>, Sender<PendingRequest>) {
    let hello = Hello {
        run: RunId::from_bits(1),
        name: None,
        command: vec!["claude".into()],
        provider,
        version: None,
        cwd: "/".into(),
        pid: 1,
        start_ticks: 1,
        host_pid: 1,
        started_at: clock(),
        terminal: true,
        size: None,
        socket: None,
        recording: None,
        answers: true,
        session: None,
        takes: Vec::new(),
        draws: true,
    };
    let (server, requests) = bounded(4);
    let link = HostLink::start(hello.clone(), Box::new(|_| None), bounded(1).0).unwrap();
    let size = Size { rows: 24, columns: 80 };
    let (wake, _woken) = wake::pair().unwrap();
    let (tell, screen_events) = bounded(4);
    let begin = ScreenThreadConfig { hello, link, requests, size, clock, wake };
    (ScreenHandle::start(begin, Box::new(|| Arc::new(ScreenRules::default())), tell).unwrap(), screen_events, server)
}

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn server_requests_are_encoded_as_bytes_to_type() {
    let check = |provider, ask: HostRequest, expected: Result<&[u8], &str>| {
        let (screen, screen_events, server) = start(provider);
        let (reply, answer) = bounded(1);
        server.send(PendingRequest { ask, reply: Box::new(move |given| reply.send(given).unwrap()) }).unwrap();
        match expected {
            Ok(bytes) => match screen_events.recv_timeout(PATIENCE) {
                Ok(FromScreen::Type(typed, _)) => assert_eq!(typed, bytes),
                Ok(_) | Err(_) => panic!("nothing to type"),
            },
            Err(part) => {
                let error = answer.recv_timeout(PATIENCE).unwrap().unwrap_err();
                assert!(error.contains(part), "{error}");
            }
        }
        screen.end(PATIENCE);
    };
    let keys = |keys: &[&str]| HostRequest::Keys { keys: keys.iter().map(|&k| k.to_owned()).collect() };
    check(Provider::Claude, HostRequest::Interrupt, Ok(b"\x1b"));
    check(Provider::Unknown, HostRequest::Interrupt, Ok(b"\x03"));
    check(Provider::Claude, HostRequest::Type { text: "a\nb".into(), paste: false }, Ok(b"a\nb"));
    check(Provider::Claude, keys(&["y", "enter"]), Ok(b"y\r"));
    check(Provider::Claude, keys(&["y", "nokey"]), Err("`nokey` is not a key"));
}

#[test]
fn answers_without_an_open_dialog_are_refused() {
    let (screen, _news, server) = start(Provider::Claude);
    let answers: Vec<_> = ["x", "y"]
        .iter()
        .map(|mark| {
            let (reply, answer) = bounded(1);
            let ask = HostRequest::Answer { mark: (*mark).into(), answer: host_protocol::frame::DialogAnswer::Deny };
            server.send(PendingRequest { ask, reply: Box::new(move |given| reply.send(given).unwrap()) }).unwrap();
            answer
        })
        .collect();
    let first = answers[0].recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert_eq!(first, "no dialog is open (no key was pressed)");
    // The second request may arrive before the first is processed.
    let second = answers[1].recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert!(
        second == "no dialog is open (no key was pressed)" || second == "another answer to the dialog is in progress",
        "{second}"
    );
    screen.end(PATIENCE);
}

#[test]
fn a_screen_request_returns_the_picture_with_its_size() {
    let (screen, _news, server) = start(Provider::Claude);
    let (reply, answer) = bounded(1);
    server
        .send(PendingRequest { ask: HostRequest::Screen, reply: Box::new(move |given| reply.send(given).unwrap()) })
        .unwrap();
    let picture = answer.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(picture["size"], serde_json::json!({ "rows": 24, "columns": 80 }));
    screen.end(PATIENCE);
}

/// A handle without a thread.
fn unread(to: Sender<ToScreen>) -> ScreenHandle {
    ScreenHandle {
        to,
        waiting: Arc::new(AtomicUsize::new(0)),
        skipped: Arc::new(AtomicU64::new(0)),
        spent: bounded(1).1,
        ended: bounded(1).1,
    }
}

#[test]
fn output_is_skipped_instead_of_waiting_for_a_slow_reader() {
    // Nothing is received here.
    let (to, incoming) = bounded(THINGS);
    let screen = unread(to);
    let chunk = vec![b'x'; 64 << 10];
    for _ in 0..1000 {
        screen.output(&chunk, clock());
    }
    let kept: usize = incoming
        .try_iter()
        .map(|thing| match thing {
            ToScreen::Output(bytes, _) => bytes.len(),
            _ => 0,
        })
        .sum();
    assert!(kept <= BYTES + chunk.len(), "{kept}");
    assert_eq!(screen.skipped.load(Ordering::Relaxed) as usize + kept, 1000 * chunk.len());
}

#[test]
fn only_output_that_merely_scrolls_may_be_skipped() {
    for scrolls in ["", "plain\r\n", "\x1b[1;32mgreen\x1b[0m\n", "\x1b[Kx", "\x1b[38:2:1:2:3mx", "caf\u{e9}"] {
        assert!(only_scrolls(scrolls.as_bytes()), "{scrolls:?}");
    }
    for counts in
        ["\x1b[?1049h", "\x1b[2J", "\x1b]0;title\x07", "\x1bc", "\x1b[1;5r", "x\x1b", "x\x1b[", "x\x1b[1;3", "\x1b[6n"]
    {
        assert!(!only_scrolls(counts.as_bytes()), "{counts:?}");
    }
}

#[test]
fn an_incomplete_escape_sequence_at_the_end_is_measured() {
    for (bytes, begun) in [
        ("", 0),
        ("plain", 0),
        ("x\x1b", 1),
        ("x\x1b[", 2),
        ("x\x1b[1;32", 6),
        ("x\x1b[1;32m", 0),
        ("x\x1b[?10", 0),
        ("\x1b[1m\x1b[38:2:1:", 9),
        ("x\x1b]0;t", 0),
    ] {
        assert_eq!(begun_sequence(bytes.as_bytes()), begun, "{bytes:?}");
    }
}

#[test]
fn a_mode_change_split_at_any_byte_survives_a_flood_of_output() {
    let sequence = b"\x1b[?2004h";
    for cut in 0..=sequence.len() {
        let (screen, screen_events, server) = start(Provider::Unknown);
        let scrolls = b"\x1b[1;32mscrolls by\x1b[0m\r\n".repeat(3000);
        let (first, second) = sequence.split_at(cut);
        for chunk in [&scrolls, &[&scrolls, first].concat(), &[second, &scrolls].concat(), &scrolls, &scrolls] {
            screen.output(chunk, clock());
        }
        // The messages sent before are processed before this request is answered.
        let (reply, answer) = bounded(1);
        let asked = screen.restore(PATIENCE);
        assert!(!asked.is_empty(), "cut at {cut}");
        let ask = HostRequest::Type { text: "a\nb".into(), paste: true };
        server.send(PendingRequest { ask, reply: Box::new(move |given| reply.send(given).unwrap()) }).unwrap();
        let Ok(FromScreen::Type(typing, _)) = screen_events.recv_timeout(PATIENCE) else { panic!("cut at {cut}") };
        assert_eq!(typing, keys::paste("a\nb"), "cut at {cut}");
        drop((answer, server));
        screen.end(PATIENCE);
    }
}
