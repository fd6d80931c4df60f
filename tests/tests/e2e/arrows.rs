//! The map of crates is enforced: which crate may import which, and which dependencies the pure crates must not reach.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::Value;

/// Every crate: its name, its folder, and the workspace crates it imports. The folders `adapters`, `runtime` and
/// `capture` each contain several crates.
pub(super) const ARROWS: &[(&str, &str, &[&str])] = &[
    ("events", "events", &[]),
    ("projections", "projections", &["events", "secrets"]),
    ("approver", "approver", &["events"]),
    ("monitor", "monitor", &["events", "projections"]),
    ("secrets", "secrets", &[]),
    ("redact", "capture/redact", &["events", "host_protocol", "projections", "secrets"]),
    ("notifier", "notifier", &["atomic_file", "events", "outbound"]),
    ("outbound", "outbound", &["atomic_file"]),
    ("export", "export", &["events", "projections", "session_tree"]),
    ("atomic_file", "atomic_file", &[]),
    ("session_tree", "runtime/session_tree", &[]),
    ("models", "runtime/models", &["prices", "session_tree"]),
    ("tools", "runtime/tools", &["agents", "atomic_file", "events", "outbound", "processes", "secrets"]),
    ("executor", "runtime/executor", &["engine", "models", "outbound", "prices", "session_tree", "tools"]),
    ("settings", "runtime/settings", &[]),
    ("rpc", "runtime/rpc", &["engine", "session_tree"]),
    (
        "session_setup",
        "capture/session_setup",
        &[
            "agents",
            "api",
            "approver",
            "client",
            "engine",
            "events",
            "executor",
            "hooks",
            "host_protocol",
            "models",
            "outbound",
            "policy_files",
            "prices",
            "printing",
            "processes",
            "protocols",
            "session_tree",
            "settings",
            "tools",
            "usage",
        ],
    ),
    ("engine", "runtime/engine", &["session_tree"]),
    ("agents", "adapters/agents", &["events"]),
    ("processes", "adapters/processes", &["agents", "events"]),
    ("prices", "adapters/prices", &[]),
    ("tailer", "adapters/tailer", &["agents", "events"]),
    ("transcripts", "adapters/transcripts", &["agents", "events", "session_tree", "tailer"]),
    ("host_protocol", "adapters/host_protocol", &["atomic_file", "events", "processes"]),
    ("terminal", "adapters/terminal", &["agents", "atomic_file", "events", "host_protocol", "processes"]),
    ("hooks", "adapters/hooks", &["agents", "atomic_file", "events", "processes"]),
    ("protocols", "adapters/protocols", &["agents", "events", "hooks", "processes"]),
    ("store", "capture/store", &["atomic_file", "events", "projections"]),
    ("policy_files", "capture/policy_files", &["approver", "atomic_file", "events", "processes", "secrets"]),
    ("api", "capture/api", &["agents", "atomic_file", "events", "host_protocol", "processes", "projections"]),
    (
        "home",
        "capture/home",
        &[
            "agents",
            "api",
            "approver",
            "atomic_file",
            "events",
            "hooks",
            "monitor",
            "notifier",
            "policy_files",
            "processes",
            "projections",
            "redact",
            "settings",
        ],
    ),
    ("devices", "capture/devices", &["api", "atomic_file", "events"]),
    ("search", "capture/search", &["api", "events", "store"]),
    ("usage", "capture/usage", &["api", "atomic_file", "events", "prices", "projections", "store"]),
    ("printing", "capture/printing", &["api", "events", "monitor", "projections"]),
    (
        "client",
        "capture/client",
        &["agents", "api", "events", "home", "hooks", "host_protocol", "printing", "processes", "protocols", "store"],
    ),
    ("mcp", "capture/mcp", &["api", "events", "printing", "projections", "redact"]),
    (
        "otlp_export",
        "capture/otlp_export",
        &["agents", "atomic_file", "events", "export", "home", "notifier", "projections", "redact", "store"],
    ),
    ("live_view", "capture/live_view", &["api", "events", "projections"]),
    (
        "server",
        "capture/server",
        &["api", "devices", "events", "live_view", "processes", "projections", "store", "usage"],
    ),
    (
        "ingest",
        "capture/ingest",
        &[
            "agents",
            "events",
            "hooks",
            "host_protocol",
            "live_view",
            "notifier",
            "processes",
            "projections",
            "protocols",
            "redact",
            "store",
            "tailer",
            "transcripts",
        ],
    ),
    (
        "retention",
        "capture/retention",
        &[
            "api",
            "atomic_file",
            "events",
            "hooks",
            "host_protocol",
            "ingest",
            "live_view",
            "projections",
            "search",
            "store",
        ],
    ),
    (
        "daemon",
        "capture/daemon",
        &[
            "agents",
            "api",
            "approver",
            "atomic_file",
            "devices",
            "events",
            "export",
            "home",
            "hooks",
            "host_protocol",
            "ingest",
            "live_view",
            "mcp",
            "monitor",
            "notifier",
            "otlp_export",
            "policy_files",
            "processes",
            "projections",
            "protocols",
            "redact",
            "retention",
            "search",
            "server",
            "store",
            "tailer",
            "terminal",
            "transcripts",
        ],
    ),
    (
        "capture",
        "capture/cli",
        &[
            "agents",
            "api",
            "approver",
            "atomic_file",
            "client",
            "daemon",
            "engine",
            "events",
            "executor",
            "export",
            "home",
            "hooks",
            "host_protocol",
            "mcp",
            "policy_files",
            "prices",
            "printing",
            "processes",
            "projections",
            "protocols",
            "redact",
            "retention",
            "rpc",
            "secrets",
            "session_setup",
            "session_tree",
            "settings",
            "store",
            "terminal",
            "tools",
            "transcripts",
        ],
    ),
    // The harness drives the parts in virtual time, so it imports the same crates as the daemon.
    (
        "tests",
        "tests",
        &[
            "agents",
            "api",
            "capture",
            "daemon",
            "events",
            "export",
            "home",
            "hooks",
            "host_protocol",
            "ingest",
            "live_view",
            "models",
            "monitor",
            "prices",
            "processes",
            "projections",
            "protocols",
            "redact",
            "session_tree",
            "store",
            "tailer",
            "terminal",
            "transcripts",
        ],
    ),
];

/// Pure crates: they must not reach the crates in [`IMPURE`].
const PURE: &[&str] =
    &["events", "projections", "approver", "monitor", "secrets", "prices", "session_tree", "engine", "rpc"];
/// Dependencies that crates in [`PURE`] must not reach.
const IMPURE: &[&str] = &["tokio", "rusqlite", "axum", "tantivy", "notify"];
/// Dependencies that only the listed workspace crates may use, except in tests and benches.
const ONLY_HOMES: &[(&str, &[&str])] = &[
    ("rusqlite", &["store", "tailer", "tests"]),
    ("axum", &["server"]),
    ("anyhow", &["daemon", "home", "client", "capture"]),
    ("notify", &["tailer"]),
    ("portable-pty", &["terminal"]),
    ("vt100", &["terminal"]),
    ("jsonc-parser", &["hooks"]),
    ("prost", &["export", "protocols", "tests"]),
    ("pulldown-cmark", &["export"]),
    ("zbus", &["notifier"]),
    ("reqwest", &["models"]),
    ("rustls", &["models", "outbound"]),
    ("grep-searcher", &["tools"]),
    ("html2text", &["tools"]),
    ("tantivy", &["search"]),
    ("fast_qr", &["capture"]),
    ("rmcp", &["mcp", "tests"]),
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
fn crate_dependencies_match_the_declared_map() {
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().unwrap();
    let names: BTreeSet<&str> = packages.iter().map(|p| text(&p["name"])).collect();
    let root = text(&metadata["workspace_root"]);
    let mut wrong = Vec::new();
    for (name, ..) in ARROWS.iter().filter(|(name, ..)| !names.contains(name)) {
        wrong.push(format!("crate `{name}` is declared and does not exist"));
    }
    for package in packages {
        let name = text(&package["name"]);
        let Some((_, folder, declared)) = ARROWS.iter().find(|(of, ..)| *of == name) else {
            wrong.push(format!("crate `{name}` is not declared"));
            continue;
        };
        let manifest = text(&package["manifest_path"]);
        if manifest != format!("{root}/{folder}/Cargo.toml") {
            wrong.push(format!("crate `{name}` is in {manifest}, not in {folder}"));
        }
        let dependencies = package["dependencies"].as_array().unwrap();
        let imported: BTreeSet<&str> =
            dependencies.iter().map(|d| text(&d["name"])).filter(|to| names.contains(to)).collect();
        let declared: BTreeSet<&str> = declared.iter().copied().collect();
        wrong.extend(imported.difference(&declared).map(|to| format!("an arrow that is not declared: {name} → {to}")));
        wrong.extend(declared.difference(&imported).map(|to| format!("an arrow that no longer exists: {name} → {to}")));
        for dependency in dependencies.iter().filter(|d| d["kind"] != "dev") {
            let to = text(&dependency["name"]);
            if ONLY_HOMES.iter().any(|(what, homes)| *what == to && !homes.contains(&name)) {
                wrong.push(format!("`{name}` names {to}, which only its home may"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_crates_do_not_depend_on_impure_ones() {
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
    // The walk finds dependencies at all.
    let store = members.iter().find(|id| names[*id] == "store").unwrap();
    assert!(uses[store].iter().any(|id| names[id] == "rusqlite"));
}
