//! Browsers paired with this server: pairing codes, cookies, scopes and step-up, and push subscriptions ([`push`]).
//!
//! [`Devices`] owns the open codes and the paired devices. Only a hash of each cookie is stored, in a file with mode
//! 0600, so that devices stay signed in across restarts; codes and elevated rights are in memory only. The caller
//! passes in the clock.
//!
//! This crate does not depend on HTTP: the server decides which requests a device may make, using [`SignedIn`].

mod code;
mod file;
mod os;
pub mod push;
#[cfg(test)]
mod tests;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use api::{
    Scope,
    devices::{CodeScope, Device, DeviceScope, PairingRequest},
};
use constant_time_eq::constant_time_eq;
use events::{Timestamp, id::Hex};

pub use code::CODE_MS;
use code::{Codes, Pairing, Purpose, Redeemed};

/// How long a second code elevates a device, ms.
pub const RAISED_MS: i64 = 10 * 60 * 1_000;
/// Time without use after which a device must be paired again, ms.
pub const UNUSED_MS: i64 = 90 * 24 * 3_600 * 1_000;
/// Maximum number of paired devices.
pub const MOST_DEVICES: usize = 64;
/// Maximum length of a device's name, characters.
pub const NAME_CHARS: usize = 80;
/// Resolution of the time of last use, ms.
const MINUTE_MS: i64 = 60_000;
/// How far the time of last use in the file may lag before the file is written, ms.
const SAVE_AFTER_MS: i64 = 10 * MINUTE_MS;

/// Returns the current time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The paired devices. A handle: clones share them.
#[derive(Clone)]
pub struct Devices(Arc<Shared>);

struct Shared {
    /// The file; `None` keeps the devices in memory.
    file: Option<PathBuf>,
    clock: Clock,
    started_at: Timestamp,
    state: Mutex<State>,
    /// Held while the file is written, so that of two writes the later one remains.
    writing: Mutex<()>,
}

#[derive(Default)]
struct State {
    devices: Vec<Known>,
    codes: Codes,
    /// The latest use recorded in the file.
    saved_at: Timestamp,
}

/// A device with the hash of its cookie.
struct Known {
    device: Device,
    /// The BLAKE3 hash of the cookie.
    hash: blake3::Hash,
    raised_until: Option<Timestamp>,
    revoked: Arc<AtomicBool>,
}

/// The value of a device's cookie. It is never printed.
pub struct Cookie(String);

impl Cookie {
    /// The value, for the header that sets the cookie.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookie(…)")
    }
}

impl fmt::Debug for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Devices").field("file", &self.0.file).finish_non_exhaustive()
    }
}

/// The device to which a cookie belongs, as of the check of the cookie.
#[derive(Debug, Clone)]
pub struct SignedIn {
    /// The device.
    pub device: Device,
    /// Until when the device is elevated, if it is.
    pub raised_until: Option<Timestamp>,
    revoked: Arc<AtomicBool>,
}

impl SignedIn {
    /// Whether the device may use routes of this scope now.
    #[must_use]
    pub fn covers(&self, scope: Scope) -> bool {
        match scope {
            Scope::Admin => self.raised_until.is_some(),
            Scope::Open | Scope::Read | Scope::Control | Scope::Ingest => self.device.scope.covers(scope),
        }
    }

    /// Whether the device was revoked since, so that its open connections must end.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire)
    }
}

/// The process that enters a pairing code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A process of the server's own user on this machine.
    Own,
    /// A process on this machine that cannot be identified; it may be the server's own user's.
    Unidentified,
    /// Another machine, or another user's process on this one, such as a proxy's.
    Other,
}

impl Caller {
    const fn may_use(self, pairing: Pairing) -> bool {
        match self {
            Self::Own => true,
            Self::Unidentified => pairing.tunnel && !pairing.local,
            Self::Other => !pairing.local,
        }
    }
}

/// Why no code was created.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// A code of the scope `admin` elevates a device, and none was named.
    #[error("a code with the scope `admin` elevates one paired device, so pass its id (`--device`, `device_id`)")]
    NoDevice,
    /// The named device is not paired.
    #[error("no device has this id")]
    UnknownDevice,
    /// Devices with the scope `read` cannot be elevated.
    #[error("this device may only read, so it cannot become an administrator; pair it again with the scope `control`")]
    ReadOnly,
    /// A code that pairs a new device was requested for a paired one.
    #[error("a device (`--device`, `device_id`) can be named only with the scope `admin`")]
    NotForDevice,
    /// The system provided no random bytes.
    #[error("cannot read random bytes from the system: {0}")]
    Random(#[source] io::Error),
}

/// Why a code was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// No open code matches.
    #[error("the code is wrong")]
    Wrong,
    /// The code expired, was used, or was guessed too often.
    #[error("the code has expired or was used")]
    Expired,
    /// The maximum number of devices is reached.
    #[error("{MOST_DEVICES} devices are paired, which is the maximum; revoke one first")]
    TooMany,
    /// The system provided no random bytes.
    #[error("cannot read random bytes from the system: {0}")]
    Random(#[source] io::Error),
    /// The file could not be written.
    #[error("cannot write the file of the devices: {0}")]
    File(#[source] io::Error),
}

impl Devices {
    /// Opens the devices stored in this file. An unreadable file counts as having no devices, and the reason is also
    /// returned.
    #[must_use]
    pub fn open(file: &Path, clock: Clock) -> (Self, Option<String>) {
        let (devices, problem) = match file::load(file) {
            Ok(devices) => (devices, None),
            Err(why) => (Vec::new(), Some(format!("cannot read {}: {why}", file.display()))),
        };
        (Self::with(Some(file.to_owned()), devices, clock), problem)
    }

    /// Devices stored in memory only.
    #[must_use]
    pub fn in_memory(clock: Clock) -> Self {
        Self::with(None, Vec::new(), clock)
    }

    fn with(file: Option<PathBuf>, devices: Vec<Known>, clock: Clock) -> Self {
        let started_at = clock();
        let saved_at = devices.iter().map(|known| known.device.last_used_at).max().unwrap_or(Timestamp::MIN);
        let state = State { devices, codes: Codes::default(), saved_at };
        Self(Arc::new(Shared { file, clock, started_at, state: Mutex::new(state), writing: Mutex::default() }))
    }

    /// When the devices were opened, which is when the server started.
    #[must_use]
    pub fn started_at(&self) -> Timestamp {
        self.0.started_at
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        (self.0.clock)()
    }

    /// Creates a single-use code that pairs a new device or elevates the named one; returns it with its expiry time.
    ///
    /// # Errors
    /// If the device does not fit the scope, or the system provides no random bytes.
    pub fn make_code(&self, wanted: &PairingRequest) -> Result<(String, Timestamp), CodeError> {
        let &PairingRequest { scope, ref device_id, tunnel, local } = wanted;
        let now = self.now();
        let mut state = self.state();
        let pairs = |scope| Purpose::Pair(Pairing { scope, tunnel, local });
        let purpose = match (scope, device_id.as_deref()) {
            (CodeScope::Admin, None) => return Err(CodeError::NoDevice),
            (CodeScope::Admin, Some(id)) => match state.find(&id.to_ascii_uppercase()) {
                Some(known) if known.device.scope == DeviceScope::Read => return Err(CodeError::ReadOnly),
                Some(known) => Purpose::Raise(known.device.id.clone()),
                None => return Err(CodeError::UnknownDevice),
            },
            (CodeScope::Read | CodeScope::Control, Some(_)) => return Err(CodeError::NotForDevice),
            (CodeScope::Read, None) => pairs(DeviceScope::Read),
            (CodeScope::Control, None) => pairs(DeviceScope::Control),
        };
        state.codes.make(purpose, now).map_err(CodeError::Random)
    }

    /// Pairs a device with a code that this caller may use. Writes the file, so it blocks.
    ///
    /// # Errors
    /// If the code is not accepted, there are too many devices, or the file cannot be written; the device is then not
    /// paired.
    pub fn pair(&self, code: &str, name: &str, caller: Caller) -> Result<(Device, Cookie), PairError> {
        let now = self.now();
        let mut secret = [0_u8; 32];
        random(&mut secret).map_err(PairError::Random)?;
        let id = code::text(&random_bits().map_err(PairError::Random)?);
        let cookie = Cookie(Hex(&secret).to_string());
        let mut state = self.state();
        state.drop_unused(now);
        if state.devices.len() >= MOST_DEVICES {
            return Err(PairError::TooMany);
        }
        let is_for = |purpose: &Purpose| matches!(purpose, Purpose::Pair(pairing) if caller.may_use(*pairing));
        let purpose = accepted(state.codes.redeem(code, now, is_for))?;
        let Purpose::Pair(Pairing { scope, tunnel, .. }) = purpose else { return Err(PairError::Wrong) };
        let device = Device { id, name: named(name), scope, paired_at: now, last_used_at: minute(now), tunnel };
        state.devices.push(Known {
            device: device.clone(),
            hash: blake3::hash(cookie.0.as_bytes()),
            raised_until: None,
            revoked: Arc::default(),
        });
        drop(state);
        if let Err(error) = self.save() {
            self.state().devices.retain(|known| known.device.id != device.id);
            return Err(PairError::File(error));
        }
        Ok((device, cookie))
    }

    /// Elevates a device with a code created for it; returns until when.
    ///
    /// # Errors
    /// If the code is not accepted.
    pub fn step_up(&self, device: &str, code: &str) -> Result<Timestamp, PairError> {
        let now = self.now();
        let mut state = self.state();
        let is_for = |purpose: &Purpose| matches!(purpose, Purpose::Raise(id) if id == device);
        accepted(state.codes.redeem(code, now, is_for))?;
        let until = now.plus_ms(RAISED_MS);
        let known = state.devices.iter_mut().find(|known| known.device.id == device).ok_or(PairError::Wrong)?;
        known.raised_until = Some(until);
        Ok(until)
    }

    /// The device to which a cookie belongs. Each device is compared in constant time.
    #[must_use]
    pub fn sign_in(&self, cookie: &[u8]) -> Option<SignedIn> {
        let (now, hash) = (self.now(), blake3::hash(cookie));
        let mut state = self.state();
        let mut found = None;
        for known in &mut state.devices {
            // Hashes are compared in constant time.
            if constant_time_eq(known.hash.as_bytes(), hash.as_bytes()) {
                found = Some(known);
            }
        }
        let known = found.filter(|known| !is_unused(&known.device, now))?;
        known.device.last_used_at = known.device.last_used_at.max(minute(now));
        // Setting the clock back must not extend the elevation.
        known.raised_until = known.raised_until.filter(|until| *until > now && until.since_ms(now) <= RAISED_MS);
        Some(SignedIn {
            device: known.device.clone(),
            raised_until: known.raised_until,
            revoked: Arc::clone(&known.revoked),
        })
    }

    /// The devices, most recently used first.
    #[must_use]
    pub fn list(&self) -> Vec<Device> {
        let now = self.now();
        let mut state = self.state();
        state.drop_unused(now);
        let mut devices: Vec<Device> = state.devices.iter().map(|known| known.device.clone()).collect();
        drop(state);
        devices.sort_by(|a, b| b.last_used_at.cmp(&a.last_used_at).then_with(|| a.id.cmp(&b.id)));
        devices
    }

    /// Revokes a device: its cookie is no longer accepted, and its open connections end. Returns false if there is no
    /// device with this id. Writes the file, so it blocks.
    ///
    /// # Errors
    /// If the file cannot be written; the device is revoked until the server stops.
    pub fn revoke(&self, id: &str) -> io::Result<bool> {
        let mut state = self.state();
        let Some(at) = state.devices.iter().position(|known| known.device.id == id) else { return Ok(false) };
        let known = state.devices.swap_remove(at);
        state.codes.forget(id);
        drop(state);
        known.revoked.store(true, Ordering::Release);
        self.save()?;
        Ok(true)
    }

    /// Whether the devices were used so long after the last write that the file should be written again.
    #[must_use]
    pub fn is_save_due(&self) -> bool {
        let mut state = self.state();
        let last = state.devices.iter().map(|known| known.device.last_used_at).max().unwrap_or(Timestamp::MIN);
        let due = last.since_ms(state.saved_at) >= SAVE_AFTER_MS;
        if due {
            // One pending write is enough.
            state.saved_at = last;
        }
        due
    }

    /// Writes the file. Blocks.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self) -> io::Result<()> {
        let Some(file) = &self.0.file else { return Ok(()) };
        let _alone = self.0.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.state();
        let text = file::text(&state.devices)?;
        state.saved_at = state.devices.iter().map(|known| known.device.last_used_at).max().unwrap_or(Timestamp::MIN);
        drop(state);
        file::write(file, &text)
    }
}

impl State {
    fn find(&self, id: &str) -> Option<&Known> {
        self.devices.iter().find(|known| known.device.id == id)
    }

    fn drop_unused(&mut self, now: Timestamp) {
        self.devices.retain(|known| {
            let unused = is_unused(&known.device, now);
            if unused {
                known.revoked.store(true, Ordering::Release);
            }
            !unused
        });
    }
}

fn accepted(redeemed: Redeemed) -> Result<Purpose, PairError> {
    match redeemed {
        Redeemed::Accepted(purpose) => Ok(purpose),
        Redeemed::Expired => Err(PairError::Expired),
        Redeemed::Wrong => Err(PairError::Wrong),
    }
}

fn is_unused(device: &Device, now: Timestamp) -> bool {
    now.since_ms(device.last_used_at) > UNUSED_MS
}

fn minute(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond() - at.as_millisecond().rem_euclid(MINUTE_MS))
}

/// A name as it is stored: one line, without hidden characters.
fn named(given: &str) -> String {
    let plain: String = given.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let name: String = plain.trim().chars().take(NAME_CHARS).collect();
    if name.is_empty() { "browser".to_owned() } else { name }
}

/// Fills a buffer with random bytes from the system.
fn random(buffer: &mut [u8]) -> io::Result<()> {
    let filled = os::random(&mut *buffer)?;
    if filled == buffer.len() { Ok(()) } else { Err(io::Error::other("too few bytes")) }
}

/// 40 random bits.
fn random_bits() -> io::Result<[u8; 5]> {
    let mut bits = [0; 5];
    random(&mut bits).map(|()| bits)
}
