//! Answers, on behalf of the terminals, whether they support the Program Status Protocol (OSC 7501).
//!
//! A program reports its state only if its terminal answers this query, and the host is its terminal even while no
//! terminal is attached. The query is not passed on to attached terminals, so that none of them answers it again.

use memchr::memmem;

/// The program's query, without its terminator (BEL or ST).
const QUESTION: &[u8] = b"\x1b]7501;?";
/// The answer of a terminal that supports the protocol.
pub(super) const ANSWER: &[u8] = b"\x1b]7501;?\x1b\\";
/// Cancels a sequence of which a part was passed on.
const CANCEL: &[u8] = b"\x18";

/// How much of a query was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuestionProgress {
    /// This many bytes of the query ended the bytes passed on so far.
    Begun(usize),
    /// Only the terminator is missing; `escape` says whether its escape was received.
    Ending { escape: bool },
}

/// Follows the output of one program.
#[derive(Debug)]
pub(super) struct StatusQuestions {
    progress: QuestionProgress,
}

impl Default for StatusQuestions {
    fn default() -> Self {
        Self { progress: QuestionProgress::Begun(0) }
    }
}

impl StatusQuestions {
    /// Passes on the output without queries, in pieces. Returns how many queries ended in it.
    pub(super) fn take_out(&mut self, bytes: &[u8], mut on: impl FnMut(&[u8])) -> usize {
        let (mut from, mut at, mut asked) = (0, 0, 0);
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self.progress {
                QuestionProgress::Begun(0) => match memmem::find(rest, QUESTION) {
                    Some(before) => {
                        if from < at + before {
                            on(&bytes[from..at + before]);
                        }
                        at += before + QUESTION.len();
                        from = at;
                        self.progress = QuestionProgress::Ending { escape: false };
                    }
                    None => {
                        self.progress = QuestionProgress::Begun(begun(rest));
                        at = bytes.len();
                    }
                },
                QuestionProgress::Begun(seen) => {
                    let missing = &QUESTION[seen..];
                    let more = missing.iter().zip(rest).take_while(|(wanted, byte)| wanted == byte).count();
                    if more == missing.len() {
                        on(CANCEL);
                        at += more;
                        from = at;
                        self.progress = QuestionProgress::Ending { escape: false };
                    } else if more == rest.len() {
                        self.progress = QuestionProgress::Begun(seen + more);
                        at += more;
                    } else {
                        self.progress = QuestionProgress::Begun(0);
                    }
                }
                QuestionProgress::Ending { escape } => {
                    match (escape, rest[0]) {
                        (false, 0x1b) => self.progress = QuestionProgress::Ending { escape: true },
                        (false, 0x07) | (true, b'\\') => {
                            asked += 1;
                            self.progress = QuestionProgress::Begun(0);
                        }
                        _ => {
                            // Another sequence with the same beginning.
                            on(QUESTION);
                            if escape {
                                on(b"\x1b");
                            }
                            self.progress = QuestionProgress::Begun(0);
                            continue;
                        }
                    }
                    at += 1;
                    from = at;
                }
            }
        }
        if from < bytes.len() {
            on(&bytes[from..]);
        }
        asked
    }
}

/// The number of bytes at the end that begin a query.
fn begun(bytes: &[u8]) -> usize {
    (1..QUESTION.len()).rev().find(|length| bytes.ends_with(&QUESTION[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u8>, usize) {
        let (mut questions, mut out, mut asked) = (StatusQuestions::default(), Vec::new(), 0);
        for chunk in chunks {
            asked += questions.take_out(chunk, |piece| out.extend_from_slice(piece));
        }
        (out, asked)
    }

    #[test]
    fn a_status_query_is_removed_from_the_output_and_counted() {
        assert_eq!(taken([b"a\x1b]7501;?\x1b\\b\x1b]7501;?\x07\x1b[c".as_slice()]), (b"ab\x1b[c".to_vec(), 2));
        // Reports are passed on to terminals that display them.
        for other in
            [b"\x1b]7501;state=idle\x1b\\".as_slice(), b"\x1b]7501;?x\x1b\\", b"\x1b]7501;?\x1bx", b"]7501;?\x07"]
        {
            assert_eq!(taken([other]), (other.to_vec(), 0));
        }
    }

    proptest::proptest! {
        #[test]
        fn status_queries_are_recognized_in_any_split_of_the_output(
            parts in proptest::collection::vec(proptest::sample::select(vec![
                "\x1b]7501;?\x1b\\", "\x1b]7501;?\x07", "\x1b]7501;?", "\x1b]75", "\x1b", "text", "\x1b]7501;state=idle\x07", "\x1b\\", "\x07", "?",
            ]), 0..12),
            sizes in proptest::collection::vec(1_usize..9, 1..40),
        ) {
            let whole = parts.concat().into_bytes();
            let (expected, asked) = taken([whole.as_slice()]);
            let (mut chunks, mut rest, mut sizes) = (Vec::new(), whole.as_slice(), sizes.iter().cycle());
            while !rest.is_empty() {
                let (chunk, left) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
                chunks.push(chunk);
                rest = left;
            }
            let (out, in_pieces) = taken(chunks);
            proptest::prop_assert_eq!(in_pieces, asked);
            // A part of a query that was passed on before it was recognised is cancelled.
            let mut seen = Vec::new();
            for byte in out {
                if byte == CANCEL[0] {
                    let length = begun(&seen);
                    proptest::prop_assert!(length > 0);
                    seen.truncate(seen.len() - length);
                } else {
                    seen.push(byte);
                }
            }
            proptest::prop_assert_eq!(String::from_utf8(seen).unwrap(), String::from_utf8(expected).unwrap());
        }
    }
}
