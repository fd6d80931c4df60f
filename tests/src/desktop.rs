//! A desktop that receives notifications: a D-Bus server on a Unix socket with `org.freedesktop.Notifications`, limited
//! to what a notifying client needs, written from the specifications (D-Bus 0.43, Desktop Notifications 1.3).

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// A notification that was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesktopNotification {
    /// The name of the program.
    pub program: String,
    /// The title.
    pub summary: String,
    /// The text below the title, unmodified.
    pub body: String,
    /// 0 low, 1 normal, 2 critical.
    pub urgency: Option<u8>,
}

#[derive(Debug, Default)]
struct Screen {
    shown: Vec<DesktopNotification>,
    over: bool,
}

/// A desktop, which runs until it is dropped.
#[derive(Debug)]
pub struct Desktop {
    path: PathBuf,
    screen: Arc<(Mutex<Screen>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Desktop {
    /// Starts listening on the socket `bus` in a directory.
    #[must_use]
    pub fn start(dir: &Path) -> Self {
        let path = dir.join("bus");
        let listener = UnixListener::bind(&path).unwrap();
        let screen: Arc<(Mutex<Screen>, Condvar)> = Arc::default();
        let shared = screen.clone();
        let thread = std::thread::spawn(move || {
            let mut guests = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.0.lock().unwrap().over {
                    break;
                }
                let Ok(own) = stream.try_clone() else { continue };
                let shared = shared.clone();
                guests.push((own, std::thread::spawn(move || drop(serve(stream, &shared)))));
            }
            for (stream, thread) in guests {
                let _ = stream.shutdown(std::net::Shutdown::Both);
                let _ = thread.join();
            }
        });
        Self { path, screen, thread: Some(thread) }
    }

    /// The value of `DBUS_SESSION_BUS_ADDRESS`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("unix:path={}", self.path.display())
    }

    /// The notifications shown so far.
    #[must_use]
    pub fn shown(&self) -> Vec<DesktopNotification> {
        self.screen.0.lock().unwrap().shown.clone()
    }

    /// Waits until this many notifications were shown.
    ///
    /// # Panics
    /// If they do not arrive in time.
    #[must_use]
    pub fn wait(&self, count: usize, patience: Duration) -> Vec<DesktopNotification> {
        let (screen, more) = &*self.screen;
        let deadline = Instant::now() + patience;
        let mut screen = screen.lock().unwrap();
        while screen.shown.len() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{} of {count} were shown", screen.shown.len());
            screen = more.wait_timeout(screen, left).unwrap().0;
        }
        screen.shown.clone()
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        self.screen.0.lock().unwrap().over = true;
        // The thread checks the flag on the next connection.
        drop(UnixStream::connect(&self.path));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Serves one client until it disconnects.
fn serve(mut stream: UnixStream, screen: &(Mutex<Screen>, Condvar)) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    authenticate(&mut reader, &mut stream)?;
    let mut serial = 0_u32;
    loop {
        let call = Call::read(&mut reader)?;
        if call.kind != METHOD_CALL {
            continue;
        }
        serial += 1;
        let (signature, body) = match call.member.as_str() {
            "Hello" => ("s", text(":1.1")),
            "GetCapabilities" => ("as", array(&[text("body"), text("body-markup")])),
            "Notify" => {
                let shown = call.notification().ok_or_else(|| io::Error::other("no notification"))?;
                let (screen, more) = screen;
                let mut screen = screen.lock().unwrap();
                screen.shown.push(shown);
                more.notify_all();
                ("u", u32::try_from(screen.shown.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec())
            }
            // `AddMatch` and similar calls.
            _ => ("", Vec::new()),
        };
        stream.write_all(&reply(serial, call.serial, signature, &body))?;
    }
}

/// The line-based handshake: every client is accepted, passing of file descriptors is not.
fn authenticate(reader: &mut BufReader<UnixStream>, stream: &mut UnixStream) -> io::Result<()> {
    let mut nul = [0];
    reader.read_exact(&mut nul)?;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let answer = match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["BEGIN"] => return Ok(()),
            ["AUTH", "EXTERNAL"] => "DATA",
            ["AUTH", "EXTERNAL", _] | ["DATA", ..] => "OK 0123456789abcdef0123456789abcdef",
            ["AUTH", ..] => "REJECTED EXTERNAL",
            _ => "ERROR",
        };
        stream.write_all(format!("{answer}\r\n").as_bytes())?;
    }
}

const METHOD_CALL: u8 = 1;
const METHOD_RETURN: u8 = 2;

/// A message from the client; all clients here are little-endian.
struct Call {
    kind: u8,
    serial: u32,
    member: String,
    body: Vec<u8>,
}

impl Call {
    fn read(reader: &mut impl Read) -> io::Result<Self> {
        let mut head = [0; 16];
        reader.read_exact(&mut head)?;
        if head[0] != b'l' {
            return Err(io::Error::other("not little-endian"));
        }
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (body_bytes, serial, fields_bytes) = (word(4) as usize, word(8), word(12) as usize);
        let mut rest = vec![0; fields_bytes.next_multiple_of(8) + body_bytes];
        reader.read_exact(&mut rest)?;
        let body = rest.split_off(fields_bytes.next_multiple_of(8));
        // The fields begin at byte 16, so alignment within them equals that within the message.
        let mut fields = Marshalled { bytes: &rest[..fields_bytes], at: 0 };
        let mut member = String::new();
        while fields.align(8).is_some() && fields.at < fields.bytes.len() {
            let code = fields.byte();
            match fields.variant() {
                Some(Value::Text(name)) if code == Some(3) => member = name,
                Some(_) => {}
                None => return Err(io::Error::other("an unknown field")),
            }
        }
        Ok(Self { kind: head[1], serial, member, body })
    }

    /// The arguments of `Notify`: `susssasa{sv}i`.
    fn notification(&self) -> Option<DesktopNotification> {
        let mut body = Marshalled { bytes: &self.body, at: 0 };
        let program = body.text()?;
        body.word()?;
        body.text()?;
        let (summary, text) = (body.text()?, body.text()?);
        let actions = body.word()? as usize;
        body.at += actions;
        let hints = body.word()? as usize;
        body.align(8)?;
        let end = body.at + hints;
        let mut urgency = None;
        while body.at < end {
            body.align(8)?;
            let name = body.text()?;
            if let (Value::Byte(value), "urgency") = (body.variant()?, name.as_str()) {
                urgency = Some(value);
            }
        }
        Some(DesktopNotification { program, summary, body: text, urgency })
    }
}

/// The value of a variant, limited to the types that occur.
enum Value {
    Byte(u8),
    Text(String),
    Other,
}

/// Bytes in the wire format of D-Bus, read from the front.
struct Marshalled<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Marshalled<'_> {
    fn align(&mut self, to: usize) -> Option<()> {
        self.at = self.at.next_multiple_of(to);
        Some(())
    }

    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|b| b[0])
    }

    fn word(&mut self) -> Option<u32> {
        self.align(4)?;
        self.take(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }

    fn text(&mut self) -> Option<String> {
        let length = self.word()? as usize;
        let text = String::from_utf8(self.take(length)?.to_vec()).ok()?;
        (self.byte()? == 0).then_some(text)
    }

    fn signature(&mut self) -> Option<String> {
        let length = self.byte()? as usize;
        let text = String::from_utf8(self.take(length)?.to_vec()).ok()?;
        (self.byte()? == 0).then_some(text)
    }

    fn variant(&mut self) -> Option<Value> {
        match self.signature()?.as_str() {
            "y" => self.byte().map(Value::Byte),
            "s" | "o" => self.text().map(Value::Text),
            "g" => self.signature().map(|_| Value::Other),
            "u" | "i" | "b" => self.word().map(|_| Value::Other),
            _ => None,
        }
    }
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
    bytes
}

fn array(items: &[Vec<u8>]) -> Vec<u8> {
    let mut content = Vec::new();
    for item in items {
        content.resize(content.len().next_multiple_of(4), 0);
        content.extend_from_slice(item);
    }
    let mut bytes = u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
    bytes.append(&mut content);
    bytes
}

/// A reply with the fields a client needs: the serial it answers (5), the sender (7), and the signature (8).
fn reply(serial: u32, to: u32, signature: &str, body: &[u8]) -> Vec<u8> {
    let mut fields = vec![5, 1, b'u', 0];
    fields.extend(to.to_le_bytes());
    fields.extend([7, 1, b's', 0]);
    fields.extend(text(":1.0"));
    if !signature.is_empty() {
        fields.resize(fields.len().next_multiple_of(8), 0);
        fields.extend([8, 1, b'g', 0, u8::try_from(signature.len()).unwrap_or(u8::MAX)]);
        fields.extend_from_slice(signature.as_bytes());
        fields.push(0);
    }
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
    let mut message = vec![b'l', METHOD_RETURN, 1, 1];
    message.extend(length(body));
    message.extend(serial.to_le_bytes());
    message.extend(length(&fields));
    message.append(&mut fields);
    message.resize(message.len().next_multiple_of(8), 0);
    message.extend_from_slice(body);
    message
}
