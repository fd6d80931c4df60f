//! Desktop notifications: `org.freedesktop.Notifications` on the session bus.
//!
//! Source: the Desktop Notifications Specification 1.3 (freedesktop.org). A separate thread communicates with the bus,
//! so if the bus hangs, only the attempt fails, not the channel.

use std::{collections::HashMap, time::Duration};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use events::Timestamp;
use zbus::{Connection, Variant, connection::Builder};

use crate::{
    attempt::{AttemptFailure, Channel},
    config::rule::Loudness,
    context::{ChannelContext, Env},
    message::OutgoingMessage,
};

const SERVICE: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";
/// The server decides how long it is shown.
const SERVERS_CHOICE: i32 = -1;

/// Shows each message on the desktop.
pub(super) struct DesktopChannel {
    env: Env,
    attempt: Duration,
    thread: Option<BusThread>,
}

/// The thread that communicates with the bus.
struct BusThread {
    orders: Sender<BusRequest>,
    answers: Receiver<Result<u32, String>>,
    /// Whether a request timed out and its answer is still outstanding.
    owes: bool,
}

struct BusRequest {
    address: String,
    title: String,
    body: String,
    urgency: u8,
}

impl DesktopChannel {
    pub(super) fn new(context: &ChannelContext) -> Self {
        Self { env: context.env.clone(), attempt: context.attempt, thread: None }
    }

    /// The address of the bus: from the environment, or the user's default. Only buses on this machine are accepted: an
    /// address may also name a host, or a program to run.
    fn address(&self) -> Result<String, String> {
        let usual = || Some(format!("unix:path={}/bus", (self.env)("XDG_RUNTIME_DIR")?));
        let address = (self.env)("DBUS_SESSION_BUS_ADDRESS").filter(|a| !a.is_empty()).or_else(usual);
        match address {
            None => Err("there is no session bus: DBUS_SESSION_BUS_ADDRESS is not set".to_owned()),
            Some(address) if address.split(';').all(|one| one.starts_with("unix:")) => Ok(address),
            Some(_) => Err("the session bus address is not a local Unix socket".to_owned()),
        }
    }
}

impl Channel for DesktopChannel {
    fn deliver(&mut self, message: &OutgoingMessage, _: Timestamp) -> Result<(), AttemptFailure> {
        let address = self.address().map_err(AttemptFailure::never)?;
        let urgency = match message.loudness {
            Loudness::Off | Loudness::Quiet => 0,
            Loudness::Normal => 1,
            Loudness::Loud => 2,
        };
        let order = BusRequest { address, title: message.title.clone(), body: message.body.clone(), urgency };
        let attempt = self.attempt;
        let thread = match &mut self.thread {
            Some(thread) => thread,
            none => none.insert(BusThread::start(attempt).map_err(AttemptFailure::never)?),
        };
        let told = thread.request(order, attempt);
        if matches!(told, Err(BusFailure::Ended)) {
            self.thread = None;
        }
        match told {
            Ok(answer) => answer.map(drop).map_err(AttemptFailure::never),
            Err(BusFailure::Silent) => Err(AttemptFailure::never("the session bus does not answer")),
            Err(BusFailure::Ended) => Err(AttemptFailure::soon("the session bus thread ended")),
        }
    }
}

/// No answer from the bus.
enum BusFailure {
    /// It did not answer in time.
    Silent,
    /// The thread has ended.
    Ended,
}

impl BusThread {
    fn start(attempt: Duration) -> std::io::Result<Self> {
        let (orders, taken) = bounded::<BusRequest>(1);
        let (answer, answers) = bounded(1);
        // The thread ends when the channel, and with it the sender of requests, is dropped.
        std::thread::Builder::new().name("notify-bus".to_owned()).spawn(move || {
            let mut bus = None;
            for order in taken {
                if answer.send(zbus::block_on(show(&mut bus, &order, attempt))).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { orders, answers, owes: false })
    }

    fn request(&mut self, order: BusRequest, attempt: Duration) -> Result<Result<u32, String>, BusFailure> {
        if self.owes {
            // While the last request hangs, the next one would wait for it.
            match self.answers.try_recv() {
                Ok(_) => self.owes = false,
                Err(crossbeam_channel::TryRecvError::Empty) => return Err(BusFailure::Silent),
                Err(crossbeam_channel::TryRecvError::Disconnected) => return Err(BusFailure::Ended),
            }
        }
        self.orders.send(order).map_err(|_| BusFailure::Ended)?;
        match self.answers.recv_timeout(attempt) {
            Ok(answer) => Ok(answer),
            Err(RecvTimeoutError::Timeout) => {
                self.owes = true;
                Err(BusFailure::Silent)
            }
            Err(RecvTimeoutError::Disconnected) => Err(BusFailure::Ended),
        }
    }
}

/// A bus, and whether its server interprets mark-up in bodies.
struct Bus {
    address: String,
    connection: Connection,
    reads_markup: bool,
}

/// Shows a notification over the open connection, or over a new one if that failed.
async fn show(bus: &mut Option<Bus>, order: &BusRequest, attempt: Duration) -> Result<u32, String> {
    if let Some(open) = bus.take().filter(|open| open.address == order.address)
        && let Ok(id) = notify(&open, order).await
    {
        *bus = Some(open);
        return Ok(id);
    }
    let open = connect(&order.address, attempt)
        .await
        .map_err(|error| format!("cannot connect to the session bus: {error}"))?;
    let id =
        notify(&open, order).await.map_err(|error| format!("the desktop did not show the notification: {error}"))?;
    *bus = Some(open);
    Ok(id)
}

async fn connect(address: &str, attempt: Duration) -> zbus::Result<Bus> {
    let connection = Builder::address(address).method_timeout(attempt / 2).build().await?;
    let reply = connection.call_method(Some(SERVICE), PATH, Some(SERVICE), "GetCapabilities", &()).await?;
    let capabilities: Vec<String> = reply.body().deserialize()?;
    let reads_markup = capabilities.iter().any(|c| c == "body-markup");
    Ok(Bus { address: address.to_owned(), connection, reads_markup })
}

async fn notify(bus: &Bus, order: &BusRequest) -> zbus::Result<u32> {
    let body = if bus.reads_markup { escape(&order.body) } else { order.body.clone() };
    let hints: HashMap<&str, Variant<'_>> = HashMap::from([("urgency", Variant::from(order.urgency))]);
    let actions: [&str; 0] = [];
    let arguments = ("capture", 0_u32, "", order.title.as_str(), body.as_str(), &actions[..], hints, SERVERS_CHOICE);
    let reply = bus.connection.call_method(Some(SERVICE), PATH, Some(SERVICE), "Notify", &arguments).await?;
    reply.body().deserialize()
}

fn escape(body: &str) -> String {
    body.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
