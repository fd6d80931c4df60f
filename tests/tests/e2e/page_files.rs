//! The committed files of the web page match each other and the program, checked without node: its types match the
//! routes, and its bundle was built from its sources. `./test web` builds both again and compares them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tests::program::Machine;

use super::PROGRAM;

/// The folder of the web page.
const WEB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../capture/server/web");
/// The bundle and its sources, as `build.mjs` lists them.
const LISTED: [&str; 7] = ["build.mjs", "dist", "package-lock.json", "package.json", "src", "static", "tsconfig.json"];

fn sha256(bytes: &[u8]) -> String {
    hmac_sha256::Hash::hash(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The document in the form `scripts/types.mjs` hashes: an object becomes the list of its fields, sorted by name.
fn listed(value: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(listed).collect(),
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            sorted.into_iter().map(|(name, value)| json!([name, listed(value)])).collect()
        }
        // Numbers as JavaScript represents them.
        Value::Number(number) => {
            let number = number.as_f64().unwrap();
            assert!(number.fract() == 0.0 && number.abs() < 9e15, "{number} is written in several ways");
            json!(number as i64)
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

#[test]
fn the_generated_web_types_match_the_openapi_document() {
    let server = Machine::new(PROGRAM).serve();
    let document = server.client.get("/openapi.json").unwrap().json();
    let hashed = listed(&json!({ "paths": document["paths"], "components": document["components"] }));
    let generated = fs::read_to_string(format!("{WEB}/src/api/generated.ts")).unwrap();
    let said = generated.lines().find_map(|line| line.strip_prefix("// SHA-256 of its paths and components: "));
    assert_eq!(
        said,
        Some(sha256(hashed.to_string().as_bytes()).as_str()),
        "a route or a type was changed. In capture/server/web: \
         node scripts/openapi.mjs | node scripts/types.mjs -, then node build.mjs"
    );
}

#[test]
fn the_committed_web_bundle_matches_its_sources() {
    let sums = fs::read_to_string(format!("{WEB}/dist/SHA256SUMS")).unwrap();
    let mut said: BTreeMap<&str, &str> =
        sums.lines().map(|line| line.split_once("  ").unwrap()).map(|(hash, path)| (path, hash)).collect();
    let mut wrong = Vec::new();
    for path in LISTED.iter().flat_map(|path| below(Path::new(path))) {
        let name = path.to_str().unwrap();
        if name == "dist/SHA256SUMS" {
            continue;
        }
        let hash = sha256(&fs::read(Path::new(WEB).join(&path)).unwrap());
        match said.remove(name) {
            None => wrong.push(format!("{name} is new")),
            Some(old) if old != hash => wrong.push(format!("{name} was changed")),
            Some(_) => {}
        }
    }
    wrong.extend(said.keys().map(|name| format!("{name} was removed")));
    assert!(wrong.is_empty(), "run `node build.mjs` in capture/server/web: {}", wrong.join(", "));
}

/// The files at and below a path.
fn below(path: &Path) -> Vec<PathBuf> {
    let at = Path::new(WEB).join(path);
    if !at.is_dir() {
        return vec![path.to_owned()];
    }
    fs::read_dir(at).unwrap().flat_map(|entry| below(&path.join(entry.unwrap().file_name()))).collect()
}
