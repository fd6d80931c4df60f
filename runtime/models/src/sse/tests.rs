use proptest::{collection::vec, prelude::*};

use super::*;

fn read(pieces: &[&[u8]]) -> Vec<SseEvent> {
    let (mut reader, mut out) = (SseReader::default(), Vec::new());
    for piece in pieces {
        reader.read(piece, &mut out).unwrap();
    }
    out
}

fn event(name: &str, data: &str) -> SseEvent {
    SseEvent { name: name.to_owned(), data: data.to_owned() }
}

#[test]
fn sse_events_are_parsed_according_to_the_standard() {
    let check = |text: &str, expected: &[SseEvent]| assert_eq!(read(&[text.as_bytes()]), expected, "{text:?}");
    check("data: a\n\n", &[event("", "a")]);
    check("\u{feff}data:a\r\n\r\n", &[event("", "a")]);
    check("event: e\rdata:  a\rdata\rdata: b\r\r", &[event("e", " a\n\nb")]);
    check(": comment\n\nid: 1\nretry: 5\ndata: a\n\n", &[event("", "a")]);
    // An event without data is ignored, and its name does not apply to the next.
    check("event: e\n\ndata: a\n\n", &[event("", "a")]);
    check("data\n\n", &[event("", "")]);
    check("data: a\n", &[]);
    for rest in ["data: a", "data: a\n", "data: a\r", "data: a\n\n"] {
        let (mut reader, mut out) = (SseReader::default(), Vec::new());
        reader.read(rest.as_bytes(), &mut out).unwrap();
        reader.finish(&mut out).unwrap();
        assert_eq!(out, [event("", "a")], "{rest:?}");
    }
    check("data: a: b\nfoo: c\n\n", &[event("", "a: b")]);
}

#[test]
fn lines_and_events_have_a_limit() {
    let (mut reader, mut out) = (SseReader::default(), Vec::new());
    let piece = vec![b'a'; 1 << 20];
    let failed = (0..9).find_map(|_| reader.read(&piece, &mut out).err());
    assert_eq!(failed, Some(SseError::LongLine));
    let mut reader = SseReader::default();
    let line = [b"data: ".as_slice(), &piece, b"\n"].concat();
    let failed = (0..17).find_map(|_| reader.read(&line, &mut out).err());
    assert_eq!(failed, Some(SseError::LongEvent));
    assert_eq!(out, []);
}

proptest! {
    #[test]
    fn sse_parsing_does_not_depend_on_how_the_bytes_are_split(text in "(data|event|:|[a-c \r\n\u{fc}]){0,40}", cuts in vec(any::<usize>(), 0..8)) {
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (bytes.len() + 1)).chain([0, bytes.len()]).collect();
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(read(&pieces), read(&[bytes]));
    }
}
