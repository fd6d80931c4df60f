//! The tables of `docs/security.md` and `docs/faults.md` are complete, and the tests they name exist.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Number of requirements.
const REQUIREMENTS: usize = 45;
/// Number of faults in each category, in the order of the tables.
const FAULTS: [(&str, usize); 10] =
    [("T", 23), ("P", 15), ("H", 5), ("O", 5), ("S", 11), ("I", 4), ("W", 6), ("A", 8), ("R", 6), ("N", 3)];
/// Follows the name of a test that runs only on request.
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
    for below in ["e2e", "test"] {
        page_tests(below, &mut found);
    }
    found
}

/// The tests of the web page in one of its folders, as `web/FOLDER/FILE: TITLE`.
fn page_tests(folder: &str, found: &mut BTreeMap<String, bool>) {
    for entry in fs::read_dir(format!("{ROOT}/capture/server/web/{folder}")).unwrap().map(Result::unwrap) {
        let file = entry.file_name().into_string().unwrap();
        if !file.contains(".test.") {
            continue;
        }
        for line in fs::read_to_string(entry.path()).unwrap().lines() {
            let title = line.strip_prefix("test(\"").and_then(|rest| rest.split('"').next());
            found.extend(title.map(|title| (format!("web/{folder}/{file}: {title}"), false)));
        }
    }
}

/// The crates at or below a folder.
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

/// The tests in a file: functions with an attribute `test`. Those in a `mod tests` get the path segment `tests`.
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

/// Checks the names between backticks; returns how many there are.
fn check_names(row: &str, cell: &str, tests: &BTreeMap<String, bool>, wrong: &mut Vec<String>) -> usize {
    let parts: Vec<&str> = cell.split('`').collect();
    for (n, name) in parts.iter().enumerate().filter(|(n, _)| n % 2 == 1) {
        let marked = parts[n + 1].starts_with(ON_REQUEST);
        match tests.get(*name) {
            None => wrong.push(format!("{row}: there is no test `{name}`")),
            Some(on_request) if *on_request != marked => {
                wrong.push(format!("{row}: `{name}` runs on request: {on_request}"));
            }
            Some(_) => {}
        }
    }
    parts.len() / 2
}

#[test]
fn every_fault_has_a_row_with_a_test_or_the_reason_for_none() {
    let document = fs::read_to_string(format!("{ROOT}/docs/faults.md")).unwrap();
    let tests = all_tests();
    let mut faults = FAULTS.iter().flat_map(|(sort, count)| (1..=*count).map(move |n| format!("{sort}{n}")));
    let mut wrong = Vec::new();
    for line in document.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", number, fault, outcome, named, ""] = cells.as_slice() else { continue };
        if number.starts_with("**") || number.starts_with('-') || *number == "#" {
            continue;
        }
        assert_eq!(Some((*number).to_owned()), faults.next());
        let count = check_names(number, named, &tests, &mut wrong);
        let reason = named.strip_prefix("none: ").unwrap_or_default();
        if fault.is_empty() || outcome.is_empty() || (count == 0) == reason.is_empty() {
            wrong.push(format!("{number}: an empty cell"));
        }
    }
    assert_eq!(faults.next(), None, "the rows end too early");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
        if row.requirement.is_empty() || row.met.is_empty() {
            wrong.push(format!("{}: an empty cell", row.number));
        }
        let number = row.number.to_string();
        let named = check_names(&number, row.tests, &tests, &mut wrong);
        let open = row.met.starts_with("Does not apply yet:");
        if (named == 0) != (row.tests == "none") || named == 0 && !open {
            wrong.push(format!("{}: a row without a test begins with its reason and says `none`", row.number));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
