use super::*;

fn bytes(text: &BodyText, range: Range<usize>) -> Vec<u8> {
    let mut body = RequestBody::default();
    text.append_to(range.clone(), &mut body);
    assert_eq!(body.len(), range.len());
    let parts: Vec<u8> = body.clone().into_parts().flat_map(|part| part.read().unwrap()).collect();
    assert_eq!(parts, body.to_vec().unwrap());
    parts
}

fn in_memory(text: &BodyText) -> usize {
    let held = |part: &BodyPart| if let BodyPart::Held(bytes) = part { bytes.len() } else { 0 };
    text.tail.capacity() + text.sealed.iter().map(|(_, part)| held(part)).sum::<usize>()
}

/// Grows a text by blocks of different sizes, truncates it occasionally, and compares it with a plain vector.
fn grown(text: &mut BodyText) -> Vec<u8> {
    let mut plain = Vec::new();
    for n in 0..400_usize {
        let block: Vec<u8> = (0..n * 97 % 20_000).map(|at| (at * 31 + n) as u8).collect();
        text.extend(&block);
        plain.extend_from_slice(&block);
        text.seal(plain.len());
        if n % 57 == 56 {
            let to = plain.len() * (n % 7 + 1) / 8;
            plain.truncate(to);
            plain.extend_from_slice(b"behind");
            text.truncate(to, b"behind");
        }
        assert_eq!(text.len(), plain.len());
    }
    plain
}

#[test]
fn a_text_is_the_same_in_memory_and_in_a_file() {
    for spill in [None, Some(Arc::new(SpillFile::new(tempfile::tempfile)))] {
        let mut text = BodyText { spill, ..BodyText::default() };
        let plain = grown(&mut text);
        for (from, to) in [(0, plain.len()), (1, 100), (40_000, 500_001), (plain.len() - 5, plain.len()), (7, 7)] {
            assert!(bytes(&text, from..to) == plain[from..to], "{from}..{to}");
        }
    }
}

#[test]
fn text_beyond_the_memory_limit_is_spilled_to_the_file() {
    let mut text = BodyText { spill: Some(Arc::new(SpillFile::new(tempfile::tempfile))), ..BodyText::default() };
    let plain = grown(&mut text);
    assert!(plain.len() > HELD_BYTES + 8 * SEALED_BYTES, "{}", plain.len());
    assert!(in_memory(&text) <= HELD_BYTES + 2 * SEALED_BYTES, "{}", in_memory(&text));
}

#[test]
fn a_file_that_cannot_be_written_leaves_the_text_in_memory() {
    let mut text = BodyText {
        spill: Some(Arc::new(SpillFile::new(|| Err(io::Error::other("the disk is full"))))),
        ..BodyText::default()
    };
    let plain = grown(&mut text);
    assert!(bytes(&text, 0..plain.len()) == plain);
}

#[test]
fn a_request_body_shares_sealed_bytes_without_copying() {
    let mut text = BodyText::default();
    text.extend(&vec![1; 3 * SEALED_BYTES]);
    text.seal(3 * SEALED_BYTES);
    text.extend(b"open");
    let mut body = RequestBody::default();
    text.append_to(0..text.len(), &mut body);
    let (BodyPart::Held(of_text), BodyPart::Held(of_body)) = (&text.sealed[0].1, &body.parts[0]) else {
        panic!("{body:?}")
    };
    assert_eq!(of_text.as_ptr(), of_body.as_ptr());
}
