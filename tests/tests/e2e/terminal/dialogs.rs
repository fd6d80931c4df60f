//! Dialogs answered by keys, through the real program. The test plays the server.

use std::{
    io::{BufRead, BufReader, Lines, Write},
    os::unix::net::{UnixListener, UnixStream},
};

use host_protocol::{
    claim::HostEvent,
    frame::{Answered, DialogAnswer, HostMessage, HostRequest, ServerMessage},
};
use tests::PATIENCE;

use super::TerminalMachine;

/// Screen rules for such a program. It may be answered by keys in version 1.0.0.
pub(in crate::e2e) const RULES: &str = r#"
provider = "unknown"
tested = ["=1.0.0"]
version = { in = "screen", has = 'asker v(\d+\.\d+\.\d+)' }
[regions]
box = { from = '^\+--' }
[[rules]]
name = "ask"
priority = 990
state = "waiting_approval"
reason = "tool"
debounce_ms = 30
all = [{ in = "box", has = '(?m)^Proceed\?' }, { in = "box", has = '(?m)^> ' }]
[rules.dialog]
about = "command"
subject = [{ in = "box", has = '(?m)^\$ (.*)' }]
options = { in = "box", has = '(?m)^(?P<cursor>>)? *(?P<digit>\d)\. (?P<label>.*)$' }
whole = "box"
answerable = true
deny_key = "esc"
answers = { allow_once = ['^Yes$'], deny = ['^No$'] }
[[rules]]
name = "rest"
priority = 10
state = "waiting"
debounce_ms = 30
all = [{ in = "screen", has = '(?m)^input:' }]
"#;

/// Asks the same question twice, and prints which key it received.
const ASKER: &str = r#"stty raw -echo
for turn in 1 2; do
printf '\033[2J\033[Hasker v1.0.0\r\n+--\r\n$ touch a\r\nProceed?\r\n> 1. Yes\r\n  2. No'
key=$(dd bs=1 count=1 2>/dev/null | od -An -tx1)
printf '\033[2J\033[Hinput: got%s;' "$key"
sleep 0.4
done
stty sane"#;

/// The server's side of the connection to a host.
struct Conversation {
    lines: Lines<BufReader<UnixStream>>,
    write: UnixStream,
    asked: u64,
}

impl Conversation {
    fn accept(listener: &UnixListener) -> Self {
        listener.set_nonblocking(true).unwrap();
        let (mut write, lines) = loop {
            let (stream, _) = tests::eventually("a host", || listener.accept().ok());
            stream.set_nonblocking(false).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let write = stream.try_clone().unwrap();
            let mut lines = BufReader::new(stream).lines();
            let head: Vec<String> = lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            // The host first checks whether the server is running.
            if head.first().is_some_and(|line| line.starts_with("GET /api/v1/host ")) {
                break (write, lines);
            }
        };
        write.write_all(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: capture-host/1\r\n\r\n").unwrap();
        Self { lines, write, asked: 0 }
    }

    fn say(&mut self, down: &ServerMessage) {
        writeln!(self.write, "{}", serde_json::to_string(down).unwrap()).unwrap();
    }

    fn next(&mut self) -> HostMessage {
        let up: HostMessage = serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap();
        if let HostMessage::Frame(frame) = &up {
            self.say(&ServerMessage::Ack { n: frame.n });
        }
        up
    }

    /// The mark of the next reported dialog.
    fn mark(&mut self) -> String {
        loop {
            if let HostMessage::Frame(frame) = self.next()
                && let HostEvent::Claim(claim) = frame.event
                && let Some(dialog) = claim.dialog
            {
                return dialog.mark.unwrap();
            }
        }
    }

    /// Asks the host to answer a dialog. Messages received in between are skipped.
    fn answer(&mut self, mark: &str, answer: DialogAnswer) -> Result<Answered, String> {
        self.asked += 1;
        let id = self.asked;
        self.say(&ServerMessage::Ask { id, ask: HostRequest::Answer { mark: mark.to_owned(), answer } });
        loop {
            if let HostMessage::Answer { id: of, answer } = self.next() {
                assert_eq!(of, id);
                return answer.map(|value| serde_json::from_value(value).unwrap());
            }
        }
    }
}

#[test]
fn a_key_is_sent_only_to_the_dialog_it_was_decided_for() {
    let here = TerminalMachine::new();
    let data = here.machine.data();
    std::fs::create_dir_all(&data).unwrap();
    let rules = data.parent().unwrap().join("config/capture/screen-rules");
    std::fs::create_dir_all(&rules).unwrap();
    std::fs::write(rules.join("asker.toml"), RULES).unwrap();
    let socket = data.join("test.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let endpoint = serde_json::json!({
        "url": "http://127.0.0.1:1", "pid": std::process::id(), "epoch": "e", "socket": socket, "token_file": "none",
    });
    std::fs::write(data.join("endpoint.json"), endpoint.to_string()).unwrap();

    let mut user = here.run(ASKER);
    let mut host = Conversation::accept(&listener);
    let HostMessage::Hello(hello) = host.next() else { panic!("no hello") };
    assert!(hello.answers);
    user.expect("2. No");
    let first = host.mark();
    let why = host.answer("another", DialogAnswer::AllowOnce).unwrap_err();
    assert!(why.contains("another dialog"), "{why}");
    let answered = host.answer(&first, DialogAnswer::AllowOnce).unwrap();
    assert_eq!((answered.applied, answered.keys, answered.before.as_str()), (true, 1, first.as_str()));
    assert_eq!(answered.after.unwrap().dialog, None);
    user.expect("got 31;");
    user.expect("2. No");
    let second = host.mark();
    assert_ne!(first, second);
    assert!(host.answer(&first, DialogAnswer::AllowOnce).is_err());
    let answered = host.answer(&second, DialogAnswer::Deny).unwrap();
    assert_eq!((answered.applied, answered.keys), (true, 1));
    user.expect("got 1b;");
    let (_, status) = user.end();
    assert_eq!(status, 0);
}
