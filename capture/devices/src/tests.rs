use std::{
    fs,
    os::unix::fs::PermissionsExt,
    sync::atomic::{AtomicI64, Ordering},
};

use tempfile::TempDir;

use super::*;

/// Devices in a file, with a clock that changes only when the test moves it.
struct World {
    directory: TempDir,
    now: Arc<AtomicI64>,
    devices: Devices,
}

const START_MS: i64 = 1_795_000_020_000;

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let now = Arc::new(AtomicI64::new(START_MS));
        let devices = opened(&directory, &now);
        Self { directory, now, devices }
    }

    fn wait(&self, ms: i64) {
        self.now.fetch_add(ms, Ordering::Relaxed);
    }

    fn restart(&mut self) {
        self.devices = opened(&self.directory, &self.now);
    }

    fn make(&self, scope: CodeScope, device: Option<&str>) -> Result<(String, Timestamp), CodeError> {
        self.devices.make_code(&wanted(scope, device))
    }

    fn code(&self, scope: CodeScope) -> String {
        self.make(scope, None).unwrap().0
    }

    fn pair(&self, code: &str, name: &str) -> Result<(Device, Cookie), PairError> {
        self.devices.pair(code, name, Caller::Own)
    }

    fn paired(&self, scope: CodeScope) -> (Device, Cookie) {
        self.pair(&self.code(scope), "Pixel").unwrap()
    }

    fn signed_in(&self, cookie: &Cookie) -> Option<SignedIn> {
        self.devices.sign_in(cookie.as_str().as_bytes())
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("devices.json")
    }
}

fn opened(directory: &TempDir, now: &Arc<AtomicI64>) -> Devices {
    let now = Arc::clone(now);
    let clock: Clock = Arc::new(move || Timestamp::from_millisecond(now.load(Ordering::Relaxed)));
    let (devices, problem) = Devices::open(&directory.path().join("devices.json"), clock);
    assert_eq!(problem, None);
    devices
}

fn wanted(scope: CodeScope, device: Option<&str>) -> PairingRequest {
    PairingRequest { scope, device_id: device.map(str::to_owned), tunnel: false, local: false }
}

/// A code that differs from the given one in its last digit.
fn wrong(code: &str) -> String {
    let last = if code.ends_with('0') { "1" } else { "0" };
    format!("{}{last}", &code[..code.len() - 1])
}

#[test]
fn a_code_pairs_one_device_once() {
    let world = World::new();
    let (code, expires_at) = world.make(CodeScope::Control, None).unwrap();
    assert_eq!(expires_at.as_millisecond(), START_MS + CODE_MS);
    let (device, cookie) = world.pair(&code.to_lowercase(), " My\nphone ").unwrap();
    assert_eq!((device.name.as_str(), device.scope), ("My phone", DeviceScope::Control));
    let signed_in = world.signed_in(&cookie).unwrap();
    assert_eq!(signed_in.device.id, device.id);
    assert!(signed_in.covers(Scope::Read) && signed_in.covers(Scope::Control));
    assert!(!signed_in.covers(Scope::Admin) && !signed_in.covers(Scope::Ingest));
    assert!(matches!(world.pair(&code, "again"), Err(PairError::Expired)), "a code is used once");
    assert_eq!(world.devices.list().len(), 1);
    assert!(world.devices.sign_in(b"").is_none());
    assert!(world.devices.sign_in(&cookie.as_str().as_bytes()[1..]).is_none());
}

#[test]
fn a_code_expires_after_one_minute() {
    let world = World::new();
    let (just, late) = (world.code(CodeScope::Read), world.code(CodeScope::Read));
    world.wait(CODE_MS - 1);
    world.pair(&just, "in time").unwrap();
    world.wait(1);
    assert!(matches!(world.pair(&late, "late"), Err(PairError::Expired)));
    let back = world.code(CodeScope::Read);
    world.wait(-2);
    assert!(matches!(world.pair(&back, "a clock that was put back"), Err(PairError::Expired)));
}

#[test]
fn wrong_codes_do_not_invalidate_an_open_code() {
    let world = World::new();
    let code = world.code(CodeScope::Read);
    for _ in 0..500 {
        assert!(matches!(world.pair(&wrong(&code), "guess"), Err(PairError::Wrong)));
        assert!(matches!(world.pair("", "nothing"), Err(PairError::Wrong)));
    }
    world.pair(&code, "right").unwrap();
}

#[test]
fn an_admin_code_elevates_only_the_device_it_was_created_for() {
    let world = World::new();
    let (device, cookie) = world.paired(CodeScope::Control);
    let (other, _) = world.paired(CodeScope::Control);
    let raise = |id: &str| world.make(CodeScope::Admin, Some(id));
    assert!(matches!(world.make(CodeScope::Admin, None), Err(CodeError::NoDevice)));
    assert!(matches!(raise("nobody"), Err(CodeError::UnknownDevice)));
    let (reader, _) = world.paired(CodeScope::Read);
    assert!(matches!(raise(&reader.id), Err(CodeError::ReadOnly)));
    assert!(matches!(world.make(CodeScope::Read, Some(&device.id)), Err(CodeError::NotForDevice)));
    let (code, _) = raise(&device.id).unwrap();
    assert!(matches!(world.pair(&code, "a new device"), Err(PairError::Wrong)));
    assert!(matches!(world.devices.step_up(&other.id, &code), Err(PairError::Wrong)));
    assert!(matches!(world.devices.step_up(&device.id, &world.code(CodeScope::Control)), Err(PairError::Wrong)));
    let until = world.devices.step_up(&device.id, &code).unwrap();
    assert_eq!(until.as_millisecond(), START_MS + RAISED_MS);
    assert!(matches!(world.devices.step_up(&device.id, &code), Err(PairError::Expired)));
    world.wait(RAISED_MS - 1);
    assert!(world.signed_in(&cookie).unwrap().covers(Scope::Admin));
    world.wait(1);
    assert!(!world.signed_in(&cookie).unwrap().covers(Scope::Admin));
}

#[test]
fn device_elevation_does_not_survive_a_restart() {
    let mut world = World::new();
    let (device, cookie) = world.paired(CodeScope::Control);
    let (code, _) = world.make(CodeScope::Admin, Some(&device.id)).unwrap();
    world.devices.step_up(&device.id, &code).unwrap();
    let (open, _) = world.make(CodeScope::Read, None).unwrap();
    world.restart();
    let signed_in = world.signed_in(&cookie).expect("it stays signed in");
    assert!(!signed_in.covers(Scope::Admin) && signed_in.covers(Scope::Control));
    assert!(matches!(world.pair(&open, "codes end with the server"), Err(PairError::Wrong)));
}

#[test]
fn a_revoked_device_stays_signed_out() {
    let mut world = World::new();
    let (device, cookie) = world.paired(CodeScope::Control);
    let (_, kept) = world.paired(CodeScope::Read);
    let signed_in = world.signed_in(&cookie).unwrap();
    assert!(!signed_in.is_revoked());
    assert!(world.devices.revoke(&device.id).unwrap());
    assert!(signed_in.is_revoked(), "what it has open ends");
    assert!(!world.devices.revoke(&device.id).unwrap());
    for _ in 0..2 {
        assert!(world.signed_in(&cookie).is_none());
        assert!(world.signed_in(&kept).is_some());
        world.restart();
    }
}

#[test]
fn an_unused_device_is_removed() {
    let world = World::new();
    let (_, used) = world.paired(CodeScope::Read);
    let (_, unused) = world.paired(CodeScope::Read);
    world.wait(UNUSED_MS / 2);
    assert!(world.signed_in(&used).is_some());
    world.wait(UNUSED_MS / 2 + MINUTE_MS);
    assert!(world.signed_in(&used).is_some());
    assert!(world.signed_in(&unused).is_none());
    assert_eq!(world.devices.list().len(), 1);
}

#[test]
fn the_device_file_is_private_and_contains_no_cookie() {
    let mut world = World::new();
    let (_, cookie) = world.paired(CodeScope::Read);
    let text = fs::read_to_string(world.file()).unwrap();
    assert!(!text.contains(cookie.as_str()), "{text}");
    assert_eq!(fs::metadata(world.file()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(format!("{cookie:?}"), "Cookie(…)");
    assert!(!world.devices.is_save_due());
    world.wait(SAVE_AFTER_MS + MINUTE_MS);
    world.signed_in(&cookie).unwrap();
    assert!(world.devices.is_save_due());
    assert!(!world.devices.is_save_due(), "once is enough");
    world.devices.save().unwrap();
    let used_at = world.devices.list()[0].last_used_at;
    world.restart();
    assert_eq!(world.devices.list()[0].last_used_at, used_at);
}

#[test]
fn an_unreadable_device_file_yields_no_devices() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("devices.json");
    for text in ["", "{", r#"{"version":2,"devices":[]}"#, r#"{"version":1,"devices":[{"id":"x"}]}"#] {
        fs::write(&file, text).unwrap();
        let (devices, problem) = Devices::open(&file, Arc::new(|| Timestamp::from_millisecond(START_MS)));
        assert!(problem.is_some_and(|problem| problem.starts_with("cannot read ")), "{text}");
        assert!(devices.list().is_empty());
    }
}

#[test]
fn pairing_fails_at_the_device_limit() {
    let world = World::new();
    for _ in 0..MOST_DEVICES {
        world.paired(CodeScope::Read);
    }
    let code = world.code(CodeScope::Read);
    assert!(matches!(world.pair(&code, "one more"), Err(PairError::TooMany)));
    world.devices.revoke(&world.devices.list()[0].id).unwrap();
    world.pair(&code, "in its place").unwrap();
}

#[test]
fn a_code_is_accepted_only_from_the_callers_it_was_created_for() {
    let world = World::new();
    for (tunnel, local, accepted) in [
        (false, false, [true, false, true]),
        (true, false, [true, true, true]),
        (false, true, [true, false, false]),
        (true, true, [true, false, false]),
    ] {
        for (caller, accepted) in [Caller::Own, Caller::Unidentified, Caller::Other].into_iter().zip(accepted) {
            let wanted = PairingRequest { tunnel, local, ..wanted(CodeScope::Read, None) };
            let (code, _) = world.devices.make_code(&wanted).unwrap();
            let paired = world.devices.pair(&code, "x", caller);
            assert_eq!(paired.is_ok(), accepted, "{wanted:?} {caller:?}");
            if let Ok((device, _)) = paired {
                assert_eq!(device.tunnel, tunnel);
            }
        }
    }
}
