//! Handwritten and random settings: entries are installed and removed, and everything of the user is preserved.

mod disk;
mod layout;
mod model;

use std::{
    fs,
    path::{Path, PathBuf},
};

use events::{Provider, Timestamp};

use semver::Version;

use super::{
    Error, EventState, HookCommand, HookStatus, InstallState, Installed, Plan, RequestedChange, accepted_events,
    catalogue, facts, place, settings,
};
use model::{Tree, is_subsequence, ours_in, without_ours};

/// A home and a data directory.
struct SettingsFixture {
    dir: tempfile::TempDir,
    provider: Provider,
}

impl SettingsFixture {
    fn new(provider: Provider, bytes: Option<&[u8]>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("home")).unwrap();
        let place = Self { dir, provider };
        if let Some(bytes) = bytes {
            fs::write(place.file(), bytes).unwrap();
        }
        place
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn file(&self) -> PathBuf {
        place(self.provider, &self.home()).unwrap()
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        fs::read(self.file()).ok()
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn plan(&self, wish: &RequestedChange) -> Result<Plan, Error> {
        let wish = &match wish {
            // Every event, unless some are named.
            RequestedChange::Install { command, events } if events.is_empty() => {
                RequestedChange::Install { command: command.clone(), events: catalogue(self.provider) }
            }
            RequestedChange::Install { .. } | RequestedChange::Uninstall => wish.clone(),
        };
        Plan::new(self.provider, &self.home(), &self.data(), wish)
    }

    /// Applies the change; returns whether anything changed.
    fn make(&self, wish: &RequestedChange) -> bool {
        let plan = self.plan(wish).unwrap();
        let changes = plan.changes();
        let before = self.bytes();
        let done = plan.apply(Timestamp::from_millisecond(1_780_000_000_000)).unwrap();
        if let Some(backup) = &done.backup {
            assert_eq!(fs::read(backup).ok(), before, "the copy is what was there");
        }
        assert_eq!(changes, before != self.bytes());
        assert_eq!(fs::read_dir(self.home()).unwrap().count(), usize::from(self.bytes().is_some()), "nothing beside");
        changes
    }

    fn status(&self, program: &str) -> HookStatus {
        self.status_with(program, self.newest())
    }

    fn status_with(&self, program: &str, version: Version) -> HookStatus {
        let installed = Installed { program: "/bin/agent".into(), version };
        HookStatus::read(self.provider, &self.home(), &command(program), || Ok(installed)).unwrap()
    }

    fn newest(&self) -> Version {
        facts(self.provider).unwrap().versions.newest.clone()
    }
}

fn command(program: &str) -> HookCommand {
    HookCommand { program: program.into(), data_dir: None, approver: None }
}

fn install(program: &str) -> RequestedChange {
    RequestedChange::Install { command: command(program), events: Vec::new() }
}

const PROGRAM: &str = "/opt/capture/bin/capture";

fn fixtures(kind: &str) -> Vec<(String, Provider, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hooks").join(kind);
    let mut all: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let provider = name.split('-').next().unwrap().parse().unwrap();
            (name, provider, fs::read(entry.path()).unwrap())
        })
        .collect();
    all.sort();
    all
}

fn text(bytes: &[u8]) -> &str {
    let text = std::str::from_utf8(bytes).unwrap();
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Installs and uninstalls, and checks every guarantee.
fn check(name: &str, provider: Provider, bytes: &[u8]) {
    let place = SettingsFixture::new(provider, Some(bytes));
    assert!(place.make(&install(PROGRAM)), "{name}");
    let installed = place.bytes().unwrap();
    let shown = String::from_utf8_lossy(&installed).into_owned();

    let before = Tree::of(if text(bytes).trim().is_empty() { "{}" } else { text(bytes) });
    let after = Tree::of(text(&installed));
    assert_eq!(without_ours(after.clone()), without_ours(before), "{name}: all of the person's is there\n{shown}");
    assert!(is_subsequence(text(bytes).trim(), text(&installed)), "{name}: nothing was taken away\n{shown}");
    assert_eq!(bytes.starts_with(b"\xef\xbb\xbf"), installed.starts_with(b"\xef\xbb\xbf"), "{name}");
    let lines =
        |bytes: &[u8]| (bytes.iter().filter(|b| **b == b'\r').count(), bytes.iter().filter(|b| **b == b'\n').count());
    if let (crs @ 1.., lfs) = lines(bytes) {
        assert_eq!(crs, lfs, "the fixture has one kind of line ends");
        assert_eq!(lines(&installed).0, lines(&installed).1, "{name}: the line ends are kept");
    }
    let expected = command(PROGRAM).line(provider).unwrap();
    let ours = ours_in(&after);
    assert_eq!(ours.len(), catalogue(provider).len(), "{name}: {ours:?}");
    for event in catalogue(provider) {
        assert_eq!(ours.iter().filter(|(of, line)| of == event && *line == expected).count(), 1, "{name}: {event}");
    }
    if provider == Provider::Codex {
        serde_json::from_slice::<serde_json::Value>(&installed).unwrap();
    }
    assert_eq!(place.status(PROGRAM).state, InstallState::Installed, "{name}");

    assert!(!place.make(&install(PROGRAM)), "{name}: twice is once");
    assert_eq!(place.bytes().unwrap(), installed, "{name}");

    // A different path of the program, and back.
    assert_eq!(place.status("/new/capture").state, InstallState::OutOfDate, "{name}");
    assert!(place.make(&install("/new/capture")), "{name}");
    assert_eq!(place.status("/new/capture").state, InstallState::Installed, "{name}");
    assert!(place.make(&install(PROGRAM)), "{name}");
    assert_eq!(place.bytes().unwrap(), installed, "{name}: only the commands differed");

    assert!(place.make(&RequestedChange::Uninstall), "{name}");
    assert_eq!(place.bytes().unwrap(), bytes, "{name}: as it was");
    assert!(!place.make(&RequestedChange::Uninstall), "{name}");

    // Without the note of the previous file: as before, except for space in empty containers.
    fs::write(place.file(), &installed).unwrap();
    fs::remove_dir_all(place.data()).unwrap();
    assert!(place.make(&RequestedChange::Uninstall), "{name}");
    let bare = place.bytes().unwrap();
    assert!(ours_in(&Tree::of(text(&bare))).is_empty(), "{name}");
    let squeezed =
        |bytes: &[u8]| without_ours(Tree::of(if text(bytes).trim().is_empty() { "{}" } else { text(bytes) }));
    assert_eq!(squeezed(&bare), squeezed(bytes), "{name}");
    if !settings::empty_containers(text(bytes), super::text::JsonDialect::Commented).keeps_any()
        && !text(bytes).trim().is_empty()
    {
        assert_eq!(String::from_utf8_lossy(&bare), String::from_utf8_lossy(bytes), "{name}: as it was, by hand");
    }
}

#[test]
fn hand_written_settings_files_survive_install_and_uninstall() {
    let all = fixtures("taken");
    assert!(all.len() >= 25, "{}", all.len());
    for (name, provider, bytes) in all {
        check(&name, provider, &bytes);
    }
}

#[test]
fn invalid_settings_files_are_refused_and_left_unchanged() {
    let expected = [
        ("claude-array.json", ":1:1: the top level is not an object"),
        ("claude-cut.json", ":3:10: not valid JSON"),
        ("claude-event-object.json", ":3:13: `hooks.Stop` is not an array"),
        ("claude-hooks-array.json", ":2:29: `hooks` is not an object"),
        ("claude-hooks-null.json", ":2:12: `hooks` is not an object"),
        ("claude-no-comma.json", ":2:9: not valid JSON: Expected comma"),
        ("claude-not-utf8.json", ":2:12: not valid UTF-8"),
        ("claude-only-comment.json", ":2:1: not valid JSON: the file has no value"),
        ("claude-open-comment.json", ":2:10: not valid JSON"),
        ("claude-single-quotes.json", ":1:2: not valid JSON"),
        ("claude-string.json", ":1:1: the top level is not an object"),
        ("claude-too-deep.json", ":1:5"),
        ("claude-two-values.json", ":2:1: not valid JSON"),
        ("codex-comment.json", ":2:3: not valid JSON"),
        ("codex-trailing-comma.json", ":2:14: not valid JSON"),
    ];
    let all = fixtures("refused");
    assert_eq!(all.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), expected.map(|(name, _)| name));
    for ((name, provider, bytes), (_, says)) in all.iter().zip(expected) {
        let place = SettingsFixture::new(*provider, Some(bytes));
        let error = place.plan(&install(PROGRAM)).unwrap_err().to_string();
        assert!(error.contains(&format!("{}{says}", place.file().display())), "{name}: {error}");
        assert!(error.ends_with("nothing was changed"), "{name}: {error}");
        assert_eq!(place.bytes().unwrap(), *bytes, "{name}");
        assert!(!place.data().exists(), "{name}");
    }
}

#[test]
fn uninstall_deletes_a_settings_file_that_install_created() {
    for provider in super::AGENTS.iter() {
        let place = SettingsFixture::new(*provider, None);
        assert!(place.make(&install(PROGRAM)));
        let written = place.bytes().unwrap();
        assert!(written.starts_with(b"{\n  \"hooks\": {\n    \"SessionStart\": [\n") && written.ends_with(b"\n}\n"));
        assert!(place.make(&install("/other/capture")));
        assert!(place.make(&RequestedChange::Uninstall));
        assert_eq!(place.bytes(), None);
        // Not exactly as written, but without content of the user.
        assert!(place.make(&install(PROGRAM)));
        fs::write(place.file(), [&written[..], b"\n"].concat()).unwrap();
        assert!(place.make(&RequestedChange::Uninstall));
        assert_eq!(place.bytes(), None);
    }
}

#[test]
fn user_edits_made_after_install_survive_uninstall() {
    let before = "{\n  \"hooks\": {},\n  \"model\": \"opus\"\n}\n";
    let place = SettingsFixture::new(Provider::Claude, Some(before.as_bytes()));
    place.make(&install(PROGRAM));
    let edited = String::from_utf8(place.bytes().unwrap()).unwrap().replace("opus", "sonnet");
    fs::write(place.file(), &edited).unwrap();
    assert!(place.make(&install("/new/capture")), "the commands are brought up to date");
    place.make(&RequestedChange::Uninstall);
    let after = String::from_utf8(place.bytes().unwrap()).unwrap();
    assert_eq!(after, before.replace("opus", "sonnet"), "with the empty object that was there");
}

#[test]
fn install_updates_our_stale_entries_and_keeps_other_hooks() {
    let old = "'/old/capture' hook claude # capture-hook";
    let before = format!(
        r#"{{
  "hooks": {{
    "Stop": [
      {{"hooks": [{{"type": "command", "command": "mine"}}, {{"type": "command", "command": "{old}", "timeout": 99}}]}},
      {{"hooks": [{{"type": "command", "command": "{old}"}}]}}
    ],
    "PreToolUse": [
      {{"matcher": "Bash", "hooks": [{{"type": "command", "command": "{old}", "timeout": 5}}, {{"type": "command", "command": "guard"}}]}}
    ],
    "FileChanged": [{{"hooks": [{{"type": "command", "command": "{old}"}}]}}]
  }}
}}
"#
    );
    let place = SettingsFixture::new(Provider::Claude, Some(before.as_bytes()));
    let status = place.status(PROGRAM);
    assert_eq!(status.state, InstallState::Partly);
    assert_eq!(status.programs, [("/old/capture".into(), false)]);
    let of = |status: &HookStatus, event: &str| status.events.iter().find(|(name, _)| *name == event).unwrap().1;
    assert_eq!(of(&status, "Stop"), EventState::OutOfDate);
    assert_eq!(of(&status, "PreToolUse"), EventState::Missing, "for one tool only is not for all");

    place.make(&install(PROGRAM));
    let tree = Tree::of(text(&place.bytes().unwrap()));
    let ours = ours_in(&tree);
    assert_eq!(ours.len(), catalogue(Provider::Claude).len());
    assert!(ours.iter().all(|(_, line)| line.starts_with(&format!("'{PROGRAM}'"))), "{ours:?}");
    assert!(ours.iter().all(|(event, _)| event != "FileChanged"));
    assert_eq!(without_ours(tree), without_ours(Tree::of(&before)));

    place.make(&RequestedChange::Uninstall);
    let after = String::from_utf8(place.bytes().unwrap()).unwrap();
    assert_eq!(
        after,
        r#"{
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "mine"}]}
    ],
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [{"type": "command", "command": "guard"}]}
    ]
  }
}
"#
    );
}

#[test]
fn status_and_install_report_settings_that_disable_hooks() {
    let told = |provider, settings: &str, config: Option<&str>| {
        let place = SettingsFixture::new(provider, Some(settings.as_bytes()));
        if let Some(config) = config {
            fs::write(place.home().join("config.toml"), config).unwrap();
        }
        let status = place.status(PROGRAM);
        let notes = place.plan(&install(PROGRAM)).unwrap().notes;
        assert!(status.hindrances.iter().all(|hindrance| notes.contains(hindrance)), "install says so too");
        assert_eq!(notes.iter().any(|note| note.contains("trusted")), provider == Provider::Codex);
        status.hindrances.join("\n")
    };
    assert!(told(Provider::Claude, r#"{"disableAllHooks": true}"#, None).contains("disableAllHooks"));
    assert_eq!(told(Provider::Claude, r#"{"disableAllHooks": false}"#, None), "");
    assert!(told(Provider::Gemini, r#"{"hooksConfig": {"enabled": false}}"#, None).contains("enabled"));
    assert!(told(Provider::Gemini, r#"{"hooksConfig": {"disabled": ["x", "capture"]}}"#, None).contains("disabled"));
    assert_eq!(told(Provider::Gemini, r#"{"hooksConfig": {"enabled": true, "disabled": ["x"]}}"#, None), "");
    assert!(told(Provider::Codex, "{}", Some("[features]\nhooks = false\n")).contains("hooks = false"));
    assert!(told(Provider::Codex, "{}", Some("features.codex_hooks = false\n")).contains("codex_hooks = false"));
    assert_eq!(told(Provider::Codex, "{}", Some("[features]\nhooks = true\n")), "");
    assert_eq!(told(Provider::Codex, "{}", Some("not toml")), "");
}

#[test]
fn status_reports_hooks_that_codex_does_not_trust() {
    let place = SettingsFixture::new(Provider::Codex, Some(b"{}"));
    assert_eq!(place.status(PROGRAM).remarks, Vec::<String>::new());
    place.make(&install(PROGRAM));
    let config = |text: &str| fs::write(place.home().join("config.toml"), text).unwrap();
    let trust = "Codex does not trust any of them yet, and runs none of them until then";
    assert_eq!(place.status(PROGRAM).remarks, [trust]);
    config("[hooks.state.\"/other/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:1\"\n");
    assert_eq!(place.status(PROGRAM).remarks, [trust]);
    let file = place.file();
    config(&format!("[hooks.state.\"{}:stop:0:0\"]\ntrusted_hash = \"sha256:1\"\n", file.display()));
    assert_eq!(place.status(PROGRAM).remarks, Vec::<String>::new());
    config("[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"\ncommand = \"x\"\n");
    assert!(place.status(PROGRAM).remarks[0].contains("also contains hooks"));
}

#[test]
fn installing_for_an_older_version_removes_unsupported_events() {
    let place = SettingsFixture::new(Provider::Claude, Some(b"{}\n"));
    let wish = |version: Version| {
        let events = accepted_events(Provider::Claude, &version).unwrap();
        RequestedChange::Install { command: command(PROGRAM), events }
    };
    let (old, newest) = (Version::new(2, 0, 60), place.newest());
    assert!(place.make(&wish(old.clone())));
    let fit = |version: &Version| {
        let status = place.status_with(PROGRAM, version.clone());
        (status.state, status.fit.is_harmful())
    };
    assert_eq!([fit(&old), fit(&newest)], [(InstallState::Installed, false), (InstallState::Partly, false)]);
    assert!(place.make(&wish(newest.clone())));
    assert_eq!([fit(&old), fit(&newest)], [(InstallState::Installed, true), (InstallState::Installed, false)]);
    assert!(place.make(&wish(old.clone())));
    assert_eq!(fit(&old), (InstallState::Installed, false));
    assert!(place.make(&RequestedChange::Uninstall));
    assert_eq!(place.bytes().unwrap(), b"{}\n");
}

#[test]
fn status_reports_codex_versions_that_need_the_hooks_feature_flag() {
    let place = SettingsFixture::new(Provider::Codex, None);
    place.make(&install(PROGRAM));
    let off = |minor| place.status_with(PROGRAM, Version::new(0, minor, 0)).hindrances.join("\n");
    assert!(off(120).contains("codex 0.120.0 runs hooks only with codex_hooks = true"), "{}", off(120));
    assert_eq!(off(124), "");
    fs::write(place.home().join("config.toml"), "[features]\ncodex_hooks = true\n").unwrap();
    assert_eq!(off(120), "");
}
