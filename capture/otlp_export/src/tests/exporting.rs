//! The sending thread with collectors that hang, and after a panic.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use home::config::OtlpSettings;
use notifier::ChannelContext;

use super::*;

use crate::{Exporter, ExporterParts, OtlpExport};

/// An exporter that sends the log after its first position to this collector.
fn exporter(log: &Log, collector: &TcpListener, panics: &Arc<AtomicBool>) -> (OtlpExport, Exporter) {
    let panics = Arc::clone(panics);
    let clock = Arc::new(move || {
        assert!(!panics.load(Ordering::Relaxed), "made to panic");
        at(0)
    });
    let context = ChannelContext {
        // A wait for a collector that is not aborted exceeds the time a test may take.
        attempt: Duration::from_secs(86_400),
        ..ChannelContext::new(Arc::new(|_: &str| None), clock)
    };
    let endpoint = format!("http://{}", collector.local_addr().unwrap());
    let parts = ExporterParts {
        data: log.directory.path().to_owned(),
        reader: log.writer.reader(),
        settings: OtlpSettings { endpoint, ..OtlpSettings::default() },
        context,
        sessions: Arc::new(|| -> Vec<(Provider, State, u64)> { Vec::new() }),
        version: "1.2.3",
    };
    Exporter::new(parts).unwrap()
}

fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// Reads a request: its path and its body.
fn request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    (head.split(' ').nth(1).unwrap().to_owned(), body)
}

/// A collector that accepts everything and reports the names of the spans.
fn collects(listener: TcpListener) -> mpsc::Receiver<Vec<String>> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (path, body) = request(&mut stream);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
            let spans = TracesData::decode(&*body).unwrap_or_default().resource_spans;
            let names = spans.into_iter().flat_map(|r| r.scope_spans).flat_map(|s| s.spans).map(|span| span.name);
            if path == "/v1/traces" && tell.send(names.collect()).is_err() {
                return;
            }
        }
    });
    told
}

#[test]
fn a_hung_collector_does_not_block_a_stop_and_gets_its_spans_later() {
    let (mut log, listener, calm) = (Log::new(), listen(), Arc::default());
    let (handle, mut own) = exporter(&log, &listener, &calm);
    own.note();
    log.prompt(0).call(10, "a").result(20, "a");
    handle.committed(3);
    let sending = thread::spawn(move || {
        own.round();
        own.run();
    });
    let (mut stream, _) = listener.accept().unwrap();
    assert_eq!(request(&mut stream).0, "/v1/traces");
    // It has received the request and does not respond.
    handle.stop();
    sending.join().unwrap();
    let (handle, mut own) = exporter(&log, &listener, &calm);
    let told = collects(listener);
    handle.committed(3);
    own.round();
    assert_eq!(told.recv().unwrap(), ["execute_tool Bash"]);
    assert_eq!((handle.counts().sent, handle.counts().trouble), (1, None));
}

#[test]
fn no_request_is_sent_after_a_stop() {
    let (log, listener) = (Log::new(), listen());
    let (handle, mut own) = exporter(&log, &listener, &Arc::default());
    // No collector responds at this address.
    handle.stop();
    own.round();
    assert!(handle.counts().trouble.unwrap().contains("stops"));
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody connects");
}

#[test]
fn events_that_make_the_exporter_panic_are_skipped() {
    let (mut log, listener, panics) = (Log::new(), listen(), Arc::<AtomicBool>::default());
    let (handle, mut own) = exporter(&log, &listener, &panics);
    let told = collects(listener);
    log.prompt(0).call(10, "a").result(20, "a").turn_end(600, 1);
    handle.committed(log.position);
    panics.store(true, Ordering::Relaxed);
    own.next_metrics += Duration::from_secs(86_400);
    own.round();
    assert!(handle.counts().trouble.unwrap().contains("not sent"));
    assert_eq!((handle.counts().sent, handle.counts().behind), (0, 0), "it does not try again");
    panics.store(false, Ordering::Relaxed);
    log.prompt(700).call(710, "b").result(720, "b").turn_end(900, 2);
    handle.committed(log.position);
    own.round();
    assert_eq!(told.recv().unwrap(), ["execute_tool Bash", "invoke_agent claude"], "of the second turn");
    assert_eq!(handle.counts().sent, 2);
    // The position after the skip is also saved for a restart.
    own.note();
    let again = crate::position::PositionFile::in_directory(log.directory.path()).read().unwrap();
    assert_eq!(again.position, log.position);
}
