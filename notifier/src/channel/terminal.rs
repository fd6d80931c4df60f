//! Notifies in a run's terminal with a bell or a control sequence that terminal emulators show as a notification.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use events::Timestamp;

use crate::{
    attempt::{AttemptFailure, Channel},
    config::{channel::TerminalStyle, rule::Loudness},
    context::TerminalSink,
    message::OutgoingMessage,
    text,
};

/// Longest text of a terminal notification, characters.
const TERMINAL_CHARS: usize = 200;

/// Writes to the terminal of the run that a notice is about.
pub(super) struct TerminalChannel {
    style: TerminalStyle,
    sink: Arc<dyn TerminalSink>,
}

impl TerminalChannel {
    pub(super) fn new(style: TerminalStyle, sink: Arc<dyn TerminalSink>) -> Self {
        Self { style, sink }
    }
}

impl Channel for TerminalChannel {
    fn deliver(&mut self, message: &OutgoingMessage, _: Timestamp) -> Result<(), AttemptFailure> {
        let mut runs: Vec<&str> = message.notices.iter().filter_map(|n| n.run.as_deref()).collect();
        runs.sort_unstable();
        runs.dedup();
        if runs.is_empty() {
            return Err(AttemptFailure::never("the session has no `capture run` terminal"));
        }
        let bytes = sequence(self.style, message);
        // All runs are tried, even if one fails.
        let failed: Vec<_> = runs.iter().filter_map(|run| self.sink.write(run, &bytes).err()).collect();
        failed.first().map_or(Ok(()), |error| Err(AttemptFailure::never(error)))
    }
}

/// The bytes to write. The text in them can neither end the sequence nor begin another field of it.
fn sequence(style: TerminalStyle, message: &OutgoingMessage) -> Vec<u8> {
    let title = plain(&message.title);
    let body = plain(message.body.lines().next().unwrap_or_default());
    let bell = if message.loudness == Loudness::Quiet { "" } else { "\x07" };
    let told = match style {
        TerminalStyle::Bell => String::new(),
        // A number and a semicolon at the beginning would be another command (ConEmu).
        TerminalStyle::Osc9 => format!("\x1b]9;capture: {title}. {body}\x1b\\"),
        TerminalStyle::Osc777 => format!("\x1b]777;notify;{title};{body}\x1b\\"),
        TerminalStyle::Osc99 => {
            let id = &message.id;
            let (title, body) = (STANDARD.encode(&title), STANDARD.encode(&body));
            format!("\x1b]99;i={id}:d=0:e=1:p=title;{title}\x1b\\\x1b]99;i={id}:e=1:p=body;{body}\x1b\\")
        }
    };
    format!("{told}{bell}").into_bytes()
}

/// The text without characters that have a meaning for a terminal or in the sequence.
fn plain(shown: &str) -> String {
    let free: String = shown.chars().filter(|c| !c.is_control()).map(|c| if c == ';' { ',' } else { c }).collect();
    text::line(&free, TERMINAL_CHARS)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::{MessageForm, SinkError, plan::tests::notice};

    #[derive(Default)]
    struct WrittenTerminals(Mutex<Vec<(String, String)>>);

    impl TerminalSink for WrittenTerminals {
        fn write(&self, run: &str, bytes: &[u8]) -> Result<(), SinkError> {
            if run == "gone" {
                return Err(SinkError::NoTerminal);
            }
            self.0.lock().unwrap().push((run.to_owned(), String::from_utf8(bytes.to_vec()).unwrap()));
            Ok(())
        }
    }

    fn check(style: TerminalStyle, title: &str, written: &str) {
        let mut one = notice("a", "approval");
        one.run = Some("r".into());
        one.title = title.to_owned();
        let mut message = OutgoingMessage::new("t", MessageForm::Single, Loudness::Loud, vec![one], Timestamp::MIN);
        message.id = "m1".into();
        let sink = Arc::new(WrittenTerminals::default());
        TerminalChannel::new(style, sink.clone()).deliver(&message, Timestamp::MIN).unwrap();
        assert_eq!(*sink.0.lock().unwrap(), [("r".to_owned(), written.to_owned())]);
    }

    #[test]
    fn each_style_has_its_escape_sequence_and_the_text_cannot_end_it() {
        let bad = "4;1\u{1b}\\\u{1b}]52;c;x\u{7}\u{9c}y";
        check(TerminalStyle::Bell, bad, "\x07");
        check(TerminalStyle::Osc9, bad, "\x1b]9;capture: api (shop): 4,1\\]52,c,xy. Bash: cargo test a\x1b\\\x07");
        check(TerminalStyle::Osc777, bad, "\x1b]777;notify;api (shop): 4,1\\]52,c,xy;Bash: cargo test a\x1b\\\x07");
        check(
            TerminalStyle::Osc99,
            "hi",
            "\x1b]99;i=m1:d=0:e=1:p=title;YXBpIChzaG9wKTogaGk=\x1b\\\x1b]99;i=m1:e=1:p=body;QmFzaDogY2FyZ28gdGVzdCBh\x1b\\\x07",
        );
    }

    #[test]
    fn delivery_fails_without_a_run_or_an_attached_terminal() {
        let mut one = notice("a", "approval");
        let mut deliver = |run: Option<&str>| {
            one.run = run.map(str::to_owned);
            let message =
                OutgoingMessage::new("t", MessageForm::Single, Loudness::Loud, vec![one.clone()], Timestamp::MIN);
            TerminalChannel::new(TerminalStyle::Bell, Arc::new(WrittenTerminals::default()))
                .deliver(&message, Timestamp::MIN)
                .unwrap_err()
                .error
        };
        assert!(deliver(None).contains("no `capture run` terminal"));
        assert_eq!(deliver(Some("gone")), "no terminal is attached to the run");
    }
}
