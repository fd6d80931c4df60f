//! The map of crates holds: who may import whom, and what never reaches the pure ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::Value;

/// Crate and what of the workspace it may import.
const ARROWS: &[(&str, &[&str])] = &[
    ("events", &[]),
    ("projections", &["events"]),
    ("session_tree", &[]),
    ("adapters", &["events", "session_tree"]),
    ("store", &["events", "projections"]),
    ("search", &["events"]),
    ("approver", &["events"]),
    ("monitor", &["events", "projections"]),
    ("runtime", &["events", "session_tree"]),
    ("export", &["events", "projections", "session_tree"]),
    ("redact", &[]),
    ("notifier", &["events"]),
    ("server", &["events", "projections", "store", "search"]),
    (
        "capture",
        &[
            "events",
            "projections",
            "session_tree",
            "adapters",
            "store",
            "search",
            "approver",
            "monitor",
            "runtime",
            "export",
            "redact",
            "notifier",
            "server",
        ],
    ),
    // The harness drives capture's parts in virtual time, so it sees what capture sees.
    ("tests", &["events", "projections", "adapters", "store", "server", "monitor", "capture"]),
];

/// Pure crates,
const PURE: &[&str] = &["events", "projections", "approver", "monitor", "redact"];
/// and what they must not reach.
const IMPURE: &[&str] = &["tokio", "rusqlite", "axum", "tantivy", "notify"];
/// What only one crate of the workspace may name.
const ONLY_HOME: &[(&str, &str)] = &[
    ("rusqlite", "store"),
    ("tantivy", "search"),
    ("axum", "server"),
    ("anyhow", "capture"),
    ("notify", "adapters"),
    ("zbus", "notifier"),
    ("rustls", "notifier"),
];

fn metadata(more: &[&str]) -> Value {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let output = Command::new(cargo)
        .args(["metadata", "--offline", "--format-version", "1", "--manifest-path", manifest])
        .args(more)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn no_new_arrow_between_crates() {
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().unwrap();
    let names: BTreeSet<&str> = packages.iter().map(|p| text(&p["name"])).collect();
    let mut wrong = Vec::new();
    for package in packages {
        let name = text(&package["name"]);
        let Some((_, allowed)) = ARROWS.iter().find(|(of, _)| *of == name) else {
            wrong.push(format!("crate `{name}` is not on the map"));
            continue;
        };
        let folder = text(&package["manifest_path"]).rsplit('/').nth(1).unwrap_or_default();
        if folder != name {
            wrong.push(format!("crate `{name}` lives in `{folder}`"));
        }
        for dependency in package["dependencies"].as_array().unwrap() {
            let to = text(&dependency["name"]);
            if names.contains(to) && !allowed.contains(&to) {
                wrong.push(format!("new arrow: {name} → {to}"));
            }
            let dev = dependency["kind"] == "dev";
            for (what, home) in ONLY_HOME.iter().filter(|(what, _)| *what == to) {
                if !dev && name != *home {
                    wrong.push(format!("`{name}` names {what}, which only `{home}` may"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // None of those with code is missing in the walk.
    let here = ["events", "projections", "approver", "monitor", "adapters", "store", "server", "export", "redact"];
    let there = ["notifier", "capture", "tests"];
    assert!(names.is_superset(&here.into_iter().chain(there).collect()), "{names:?}");
}

#[test]
fn nothing_impure_reaches_the_pure_crates() {
    let metadata = metadata(&[]);
    let names: BTreeMap<&str, &str> =
        metadata["packages"].as_array().unwrap().iter().map(|p| (text(&p["id"]), text(&p["name"]))).collect();
    let members: BTreeSet<&str> = metadata["workspace_members"].as_array().unwrap().iter().map(text).collect();
    let mut uses: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in metadata["resolve"]["nodes"].as_array().unwrap() {
        let shipped = |d: &&Value| d["dep_kinds"].as_array().unwrap().iter().any(|k| k["kind"] != "dev");
        let deps = node["deps"].as_array().unwrap().iter().filter(shipped).map(|d| text(&d["pkg"])).collect();
        uses.insert(text(&node["id"]), deps);
    }
    let mut wrong = Vec::new();
    for root in members.iter().filter(|id| PURE.contains(&names[*id])) {
        let (mut open, mut seen) = (vec![*root], BTreeSet::new());
        while let Some(id) = open.pop() {
            if seen.insert(id) {
                open.extend(uses.get(id).into_iter().flatten());
            }
        }
        wrong.extend(
            seen.iter()
                .filter(|id| IMPURE.contains(&names[*id]))
                .map(|id| format!("{} reaches {}", names[root], names[id])),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The walk does see what is there.
    let store = members.iter().find(|id| names[*id] == "store").unwrap();
    assert!(uses[store].iter().any(|id| names[id] == "rusqlite"));
}
