//! The packages that `packaging/build` makes from a binary.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Output},
};

use super::PROGRAM;

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn run(program: &str, arguments: &[&str], dir: &Path) -> Output {
    let done = Command::new(program).args(arguments).current_dir(dir).env("COMPRESSION", "1").output().unwrap();
    assert!(done.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    done
}

/// The last word of each line of a listing: the file names.
fn names(listing: Output) -> BTreeSet<String> {
    let text = String::from_utf8(listing.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
}

#[test]
fn the_deb_and_the_tarball_contain_all_files_with_checksums() {
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !has("dpkg-deb") || !has("objdump") {
        println!("not run: this machine has no dpkg-deb or no objdump");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // Stripped of symbols, like a release binary.
    let binary = dir.path().join("capture");
    run("strip", &["-o", binary.to_str().unwrap(), PROGRAM], dir.path());
    let packages = dir.path().join("packages");
    let script = format!("{ROOT}/packaging/build");
    let arguments = ["--binary", binary.to_str().unwrap(), "--output", packages.to_str().unwrap()];
    let said = String::from_utf8(run(&script, &arguments, dir.path()).stdout).unwrap();
    assert!(said.contains("\nneeds glibc 2."), "{said}");
    run("sha256sum", &["--check", "--strict", "SHA256SUMS"], &packages);
    let version = env!("CARGO_PKG_VERSION");
    let files: Vec<String> =
        fs::read_dir(&packages).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let find = |end: &str| files.iter().find(|name| name.contains(version) && name.ends_with(end)).unwrap();
    let in_deb = names(run("dpkg-deb", &["--contents", find(".deb")], &packages));
    let in_tar = names(run("tar", &["--list", "--file", find(".tar.gz")], &packages));
    let top = find(".tar.gz").trim_end_matches(".tar.gz");
    for file in [
        "bin/capture",
        "share/man/man1/capture.1.gz",
        "share/man/man1/capture-policy-explain.1.gz",
        "share/bash-completion/completions/capture",
        "share/zsh/vendor-completions/_capture",
        "share/fish/vendor_completions.d/capture.fish",
        "share/doc/capture/LICENSE-MIT",
        "share/doc/capture/LICENSE-APACHE",
    ] {
        assert!(in_deb.contains(&format!("./usr/{file}")), "{file} is not in the package: {in_deb:#?}");
        assert!(in_tar.contains(&format!("{top}/{file}")), "{file} is not in the tarball: {in_tar:#?}");
    }
    assert!(
        in_deb.contains("./usr/lib/systemd/user/capture.service")
            && in_deb.contains("./usr/share/doc/capture/copyright")
    );
    assert!(in_tar.contains(&format!("{top}/share/systemd/user/capture.service")));
    let control = String::from_utf8(run("dpkg-deb", &["--field", find(".deb")], &packages).stdout).unwrap();
    assert!(control.contains("Package: capture\n") && control.contains("Depends: libc6 (>= 2."), "{control}");
    // The packaged program runs, and its man pages and completions match this program.
    run("tar", &["--extract", "--file", find(".tar.gz")], &packages);
    let unpacked = packages.join(top);
    let told = run(unpacked.join("bin/capture").to_str().unwrap(), &["--version"], dir.path());
    assert_eq!(String::from_utf8(told.stdout).unwrap(), format!("capture {version}\n"));
    let completions = fs::read_to_string(unpacked.join("share/bash-completion/completions/capture")).unwrap();
    assert!(completions.contains("CAPTURE_COMPLETE") && !completions.contains("/tmp"), "{completions}");
}
