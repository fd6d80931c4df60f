//! The table of `docs/security.md` is complete, and names tests that exist.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// How many requirements there are.
const REQUIREMENTS: usize = 45;
/// What follows a test that runs only when it is asked for.
const ON_REQUEST: &str = " (on request)";

/// A row of the table.
struct Row<'d> {
    number: usize,
    requirement: &'d str,
    met: &'d str,
    tests: &'d str,
}

fn rows(document: &str) -> Vec<Row<'_>> {
    let row = |line| {
        let cells: Vec<&str> = str::split(line, '|').map(str::trim).collect();
        let ["", number, requirement, met, tests, ""] = cells.as_slice() else { return None };
        Some(Row { number: number.parse().ok()?, requirement, met, tests })
    };
    document.lines().filter_map(row).collect()
}

/// Every test of the workspace, `crate::path::of::its::file::name`, and whether it runs only on request.
fn all_tests() -> BTreeMap<String, bool> {
    let mut found = BTreeMap::new();
    for krate in crates(Path::new(ROOT)) {
        let manifest = fs::read_to_string(krate.join("Cargo.toml")).unwrap();
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).unwrap();
        for below in ["src", "tests"] {
            walk(&krate.join(below), name, &mut found);
        }
    }
    found
}

/// The crates in a folder: itself, or those in the folders below it.
fn crates(dir: &Path) -> Vec<PathBuf> {
    let below = || fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    if dir != Path::new(ROOT) && dir.join("Cargo.toml").exists() {
        return vec![dir.to_owned()];
    }
    let rooms = below().filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        !name.starts_with('.') && !name.starts_with("target") && name != "fixtures"
    });
    let depth = dir.components().count() - Path::new(ROOT).components().count();
    if depth < 2 { rooms.flat_map(|path| crates(&path)).collect() } else { Vec::new() }
}

fn walk(dir: &Path, module: &str, found: &mut BTreeMap<String, bool>) {
    for entry in fs::read_dir(dir).into_iter().flatten().map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name().into_string().unwrap();
        if path.is_dir() {
            walk(&path, &format!("{module}::{name}"), found);
        } else if let Some(stem) = name.strip_suffix(".rs") {
            let module = match stem {
                "lib" | "main" => module.to_owned(),
                _ => format!("{module}::{stem}"),
            };
            read(&fs::read_to_string(&path).unwrap(), &module, found);
        }
    }
}

/// The tests of a file: functions behind an attribute `test`. Those of a `mod tests` in it are below `tests`.
fn read(text: &str, module: &str, found: &mut BTreeMap<String, bool>) {
    let (mut is_test, mut on_request, mut inner) = (false, false, "");
    for line in text.lines().map(str::trim_start) {
        if line == "mod tests {" {
            inner = "::tests";
        } else if line.starts_with("#[") {
            is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
            on_request |= line.starts_with("#[ignore");
        } else if let Some(rest) = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn ")) {
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            if is_test {
                found.insert(format!("{module}{inner}::{name}"), on_request);
            }
            (is_test, on_request) = (false, false);
        }
    }
}

#[test]
fn every_requirement_has_a_row_and_every_test_of_a_row_exists() {
    let document = fs::read_to_string(format!("{ROOT}/docs/security.md")).unwrap();
    let (rows, tests) = (rows(&document), all_tests());
    assert!(tests.len() > 1_000, "the walk finds {} tests", tests.len());
    let numbers: Vec<usize> = rows.iter().map(|row| row.number).collect();
    assert_eq!(numbers, (1..=REQUIREMENTS).collect::<Vec<_>>());
    let mut wrong = Vec::new();
    for row in rows {
        let mut named = 0;
        if row.requirement.is_empty() || row.met.is_empty() {
            wrong.push(format!("{}: an empty cell", row.number));
        }
        // Names stand between backticks.
        let parts: Vec<&str> = row.tests.split('`').collect();
        for (n, name) in parts.iter().enumerate().filter(|(n, _)| n % 2 == 1) {
            named += 1;
            let marked = parts[n + 1].starts_with(ON_REQUEST);
            match tests.get(*name) {
                None => wrong.push(format!("{}: there is no test `{name}`", row.number)),
                Some(on_request) if *on_request != marked => {
                    wrong.push(format!("{}: `{name}` runs on request: {on_request}", row.number));
                }
                Some(_) => {}
            }
        }
        let open = row.met.starts_with("Does not apply yet:");
        if (named == 0) != (row.tests == "none") || named == 0 && !open {
            wrong.push(format!("{}: a row without a test begins with its reason and says `none`", row.number));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
