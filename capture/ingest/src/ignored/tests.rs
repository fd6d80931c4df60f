use std::{fs, os::unix::fs::symlink};

use super::*;

#[test]
fn an_ignored_directory_is_matched_through_any_symlink() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let at = |below: &str| root.join(below);
    fs::create_dir_all(at("real/secret/deep")).unwrap();
    fs::create_dir_all(at("real/secrets")).unwrap();
    symlink(at("real"), at("link")).unwrap();
    for written in ["real/secret", "link/secret", "link/../link/secret", "real/secret/"] {
        let ignored = Ignored::new(vec![at(written)]);
        for held in ["real/secret", "link/secret", "link/secret/deep", "real/secret/deep", "real/secret/gone/below"] {
            assert!(ignored.holds(&at(held)), "{written} holds {held}");
        }
        for other in ["real", "link", "real/secrets", "elsewhere"] {
            assert!(!ignored.holds(&at(other)), "{written} does not hold {other}");
        }
    }
    assert!(!Ignored::new(Vec::new()).holds(&at("real")));
}

#[test]
fn an_ignored_directory_is_matched_after_its_symlink_appears_or_disappears() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let ignored = Ignored::new(vec![root.join("link/secret")]);
    assert!(ignored.holds(&root.join("link/secret/x")));
    fs::create_dir_all(root.join("real/secret")).unwrap();
    assert!(!ignored.holds(&root.join("real/secret")));
    symlink(root.join("real"), root.join("link")).unwrap();
    assert!(ignored.holds(&root.join("real/secret")));
    fs::remove_file(root.join("link")).unwrap();
    assert!(ignored.holds(&root.join("real/secret")));
}
