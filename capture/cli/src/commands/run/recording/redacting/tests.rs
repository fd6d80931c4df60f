use std::sync::{Arc, Mutex};

use super::*;

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<String>>>);

impl Written {
    fn add(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn whole(&self) -> String {
        self.0.lock().unwrap().concat()
    }
}

impl RecordingSink for Written {
    fn output(&mut self, _: Timestamp, bytes: &[u8]) {
        self.add(String::from_utf8_lossy(bytes).into_owned());
    }

    fn resize(&mut self, _: Timestamp, size: Size) {
        self.add(format!("<{}x{}>", size.columns, size.rows));
    }

    fn gap(&mut self, _: Timestamp, bytes: u64) {
        self.add(format!("<{bytes} missing>"));
    }

    fn quiet(&mut self) {}

    fn end(&mut self, _: Timestamp, code: Option<i32>) {
        self.add(format!("<end {code:?}>"));
    }
}

fn secret() -> String {
    ["ghp_", "x7Kd93LmQp2RtYv8", "WzAc5EfGh1Jk4NbS6uXo"].concat()
}

fn recorded(text: &str, piece: usize, quiet: bool) -> String {
    let written = Written::default();
    let mut sink = Redacting::new(written.clone());
    let at = Timestamp::from_millisecond(0);
    for bytes in text.as_bytes().chunks(piece) {
        sink.output(at, bytes);
        if quiet {
            sink.quiet();
        }
    }
    sink.end(at, Some(0));
    written.whole()
}

#[test]
fn a_secret_is_redacted_however_the_output_is_split() {
    let text = format!("$ export TOKEN={}\r\nnext\r\n\x1b[2J\x1b[H$ ", secret());
    for piece in 1..80 {
        for quiet in [false, true] {
            let written = recorded(&text, piece, quiet);
            assert!(written.starts_with("$ export TOKEN=[redacted:"), "{piece}: {written}");
            assert!(written.ends_with("]\r\nnext\r\n\x1b[2J\x1b[H$ <end Some(0)>"), "{piece}: {written}");
        }
    }
}

#[test]
fn output_without_secrets_is_recorded_unchanged() {
    let text = "a line of 64 letters, as a build writes them, no secret in it..\n".repeat(20_000) + "é€";
    assert_eq!(recorded(&text, 1000, false), format!("{text}<end Some(0)>"));
    let screen = "\x1b[H\x1b[2Ka screen that ends no line ".repeat(40_000);
    assert_eq!(recorded(&screen, 4096, true), format!("{screen}<end Some(0)>"));
}

#[test]
fn recorded_events_keep_their_place_between_output() {
    let written = Written::default();
    let mut sink = Redacting::new(written.clone());
    let at = Timestamp::from_millisecond(0);
    sink.resize(at, Size { columns: 80, rows: 24 });
    sink.output(at, b"one\ntwo");
    sink.quiet();
    sink.output(at, b" three\n");
    sink.gap(at, 7);
    sink.end(at, None);
    let written = written.0.lock().unwrap().clone();
    assert_eq!(written, ["<80x24>", "one\n", "two", " three\n", "<7 missing>", "<end None>"]);
}
