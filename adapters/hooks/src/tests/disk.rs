//! Tests which files may be changed, and how.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

fn refused(place: &SettingsFixture, says: &str) {
    let before = place.bytes();
    let error = place.plan(&install(PROGRAM)).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
    let error = error.to_string();
    assert!(error.contains(says) && error.contains("home") && error.ends_with("nothing was changed"), "{error}");
    assert_eq!(place.bytes(), before);
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_symlinked_settings_file_is_written_through_the_link() {
    let place = SettingsFixture::new(Provider::Claude, None);
    let dotfiles = place.dir.path().join("dotfiles");
    fs::create_dir(&dotfiles).unwrap();
    fs::write(dotfiles.join("claude.json"), "{\"a\": 1}\n").unwrap();
    symlink("../dotfiles/claude.json", dotfiles.join("between")).unwrap();
    symlink(dotfiles.join("claude.json"), place.file()).unwrap();
    place.make(&install(PROGRAM));
    assert!(place.file().symlink_metadata().unwrap().is_symlink());
    assert!(fs::read_to_string(dotfiles.join("claude.json")).unwrap().contains("capture-hook"));
    place.make(&RequestedChange::Uninstall);
    assert!(place.file().symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read_to_string(dotfiles.join("claude.json")).unwrap(), "{\"a\": 1}\n");
}

#[test]
fn a_dangling_settings_symlink_is_refused() {
    let place = SettingsFixture::new(Provider::Claude, None);
    symlink("nowhere", place.file()).unwrap();
    refused(&place, "a link to a file that does not exist");
    assert!(!place.home().join("nowhere").exists());
}

#[test]
fn mode_and_group_are_kept() {
    for kept in [0o600, 0o644, 0o640, 0o664] {
        let place = SettingsFixture::new(Provider::Claude, Some(b"{}"));
        mode(&place.file(), kept);
        let before = fs::metadata(place.file()).unwrap();
        place.make(&install(PROGRAM));
        let after = fs::metadata(place.file()).unwrap();
        assert_eq!(after.mode() & 0o7777, kept);
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    }
    let place = SettingsFixture::new(Provider::Claude, None);
    place.make(&install(PROGRAM));
    assert_eq!(fs::metadata(place.file()).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn read_only_settings_files_and_directories_are_refused() {
    let place = SettingsFixture::new(Provider::Claude, Some(b"{}"));
    mode(&place.file(), 0o444);
    refused(&place, "the file is read-only");
    mode(&place.file(), 0o644);
    mode(&place.home(), 0o555);
    refused(&place, "the directory is read-only");
    mode(&place.home(), 0o755);
    place.make(&install(PROGRAM));
}

#[test]
fn irregular_oversized_and_hard_linked_settings_files_are_refused() {
    let place = SettingsFixture::new(Provider::Claude, None);
    fs::create_dir(place.file()).unwrap();
    refused(&place, "not a regular file");
    fs::remove_dir(place.file()).unwrap();

    rustix::fs::mkfifoat(rustix::fs::CWD, place.file(), 0o600.into()).unwrap();
    let error = place.plan(&install(PROGRAM)).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
    fs::remove_file(place.file()).unwrap();

    fs::write(place.file(), vec![b' '; usize::try_from(super::super::LARGEST).unwrap() + 1]).unwrap();
    refused(&place, "4194305 bytes");
    let full = usize::try_from(super::super::LARGEST).unwrap() - 100;
    fs::write(place.file(), format!("{{\"a\": \"{}\"}}", "x".repeat(full))).unwrap();
    refused(&place, "the changed file would be larger than");

    fs::write(place.file(), "{}").unwrap();
    fs::hard_link(place.file(), place.home().join("other-name")).unwrap();
    refused(&place, "hard links");
}

#[test]
fn install_refuses_a_missing_agent_home() {
    let place = SettingsFixture::new(Provider::Codex, None);
    fs::remove_dir(place.home()).unwrap();
    let error = place.plan(&install(PROGRAM)).unwrap_err();
    assert!(matches!(error, Error::NoDirectory { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        format!("{} does not exist. Start codex once, then install again", place.home().display())
    );
    assert!(!place.home().exists());
}

#[test]
fn a_file_of_another_user_is_refused() {
    // Root can give a file away; for other users, every file of root belongs to another user.
    let place = SettingsFixture::new(Provider::Claude, Some(b"{}"));
    if std::os::unix::fs::chown(place.file(), Some(12_345), None).is_ok() {
        refused(&place, "belongs to another user (uid 12345)");
    } else {
        fs::remove_file(place.file()).unwrap();
        symlink("/etc/passwd", place.file()).unwrap();
        let error = place.plan(&install(PROGRAM)).unwrap_err().to_string();
        assert_eq!(error, "/etc/passwd: belongs to another user (uid 0); nothing was changed");
    }
}

#[test]
fn a_settings_file_replaced_after_planning_is_not_overwritten() {
    let now = Timestamp::from_millisecond(0);
    let cases: [(Option<&str>, Option<&str>); 4] =
        [(Some("{}"), Some("{\"a\": 1}")), (Some("{}"), None), (None, Some("{}")), (Some("{}"), Some("{}"))];
    for (before, meanwhile) in cases {
        let place = SettingsFixture::new(Provider::Claude, before.map(str::as_bytes));
        let plan = place.plan(&install(PROGRAM)).unwrap();
        fs::remove_file(place.file()).ok();
        if let Some(meanwhile) = meanwhile {
            // Another file, possibly with the same bytes, renamed into place like editors do.
            fs::write(place.home().join("new"), meanwhile).unwrap();
            fs::write(place.home().join("not the same inode"), "").unwrap();
            fs::rename(place.home().join("new"), place.file()).unwrap();
        }
        let same_file = before == meanwhile;
        match plan.apply(now) {
            Err(Error::Changed { path }) => assert_eq!(path, place.file()),
            // The system may reuse the inode, and then it counts as the same file.
            Ok(_) if same_file => continue,
            other => panic!("{other:?}"),
        }
        assert_eq!(place.bytes().as_deref(), meanwhile.map(str::as_bytes));
        assert!(
            fs::read_dir(place.home()).unwrap().all(|e| !e.unwrap().file_name().to_string_lossy().starts_with('.'))
        );
    }
}

#[test]
fn backups_are_private_and_limited_to_ten() {
    let place = SettingsFixture::new(Provider::Claude, Some(b"{\"env\": {\"KEY\": \"secret\"}}"));
    let mut last = None;
    for at in 0..15_i64 {
        let wish = if at % 2 == 0 { install(PROGRAM) } else { RequestedChange::Uninstall };
        last = place.plan(&wish).unwrap().apply(Timestamp::from_millisecond(at * 1000)).unwrap().backup;
    }
    let last = last.unwrap();
    let dir = last.parent().unwrap();
    assert!(dir.starts_with(place.data().join("backups")));
    let copies: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    let dated = copies.iter().filter(|p| p.file_name().unwrap().to_string_lossy().starts_with('0')).count();
    assert_eq!(dated, 10, "{copies:?}");
    assert!(last.exists());
    for path in copies {
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600, "{}", path.display());
    }
    assert_eq!(fs::metadata(dir).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn uninstall_ignores_a_tampered_copy_of_the_original_settings() {
    let before = b"{\n  \"a\": 1\n}\n";
    let place = SettingsFixture::new(Provider::Claude, Some(before));
    place.make(&install(PROGRAM));
    let dir = fs::read_dir(place.data().join("backups/hooks")).unwrap().next().unwrap().unwrap().path();
    let copy =
        fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).find(|p| p.to_string_lossy().contains("without-"));
    fs::write(copy.unwrap(), "{\"evil\": true}").unwrap();
    place.make(&RequestedChange::Uninstall);
    assert_eq!(place.bytes().unwrap(), before);
}
