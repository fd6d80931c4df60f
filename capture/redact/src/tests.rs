use std::io::Write;

use super::*;

/// A secret in a known format that belongs to no one. It is assembled here, so that no file contains it in full.
fn secret() -> String {
    ["ghp_", "x7Kd93LmQp2RtYv8", "WzAc5EfGh1Jk4NbS6uXo"].concat()
}

#[test]
fn a_secret_spanning_several_pieces_is_redacted_from_all_of_them() {
    let secret = secret();
    let text = format!("export TOKEN={secret}\r\nand on");
    for size in 1..text.len() {
        let mut pieces: Vec<String> =
            text.as_bytes().chunks(size).map(|piece| String::from_utf8(piece.to_vec()).unwrap()).collect();
        let count = pieces.len();
        of_pieces(&mut pieces);
        let left = pieces.concat();
        assert!(left.starts_with("export TOKEN=[redacted:") && left.ends_with("]\r\nand on"), "{size}: {left}");
        assert_eq!((pieces.len(), left.matches("redacted").count()), (count, 1));
    }
}

#[test]
fn secrets_are_redacted_from_the_log() {
    let mut log = Redacting(Vec::new());
    writeln!(log, "INFO cannot push: token={} refused", secret()).unwrap();
    let written = String::from_utf8(log.0).unwrap();
    assert!(written.contains("[redacted:") && !written.contains("x7Kd93"), "{written}");
}
