//! The JSON Schema of the wire form, generated from the types. The committed copy is `schema.json` beside this crate's
//! manifest; a test checks that both are equal.

use crate::{
    event::EventWire,
    payload::{Kind, Payload},
};

/// Creates the schema of one event: the common fields, and the form of `data` for each kind.
#[must_use]
pub fn event_schema() -> serde_json::Value {
    let mut generator = schemars::generate::SchemaSettings::draft2020_12().into_generator();
    let cases: Vec<serde_json::Value> = Kind::ALL
        .iter()
        .map(|kind| {
            let data = Payload::data_schema(*kind, &mut generator).to_value();
            serde_json::json!({
                "if": { "properties": { "kind": { "const": kind.as_str() } } },
                "then": { "properties": { "data": data } }
            })
        })
        .collect();
    let mut schema = generator.into_root_schema_for::<EventWire<'static>>().to_value();
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".into(), "Event".into());
        root.insert("allOf".into(), cases.into());
        if let Some(properties) = root.get_mut("properties").and_then(|p| p.as_object_mut()) {
            properties.insert("data".into(), serde_json::json!({ "type": "object" }));
        }
        if let Some(defs) = root.get_mut("$defs").and_then(|d| d.as_object_mut()) {
            defs.remove("Payload");
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    #[test]
    #[expect(clippy::disallowed_methods, reason = "how a developer asks for a new copy")]
    fn the_committed_event_schema_matches_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema.json");
        let now = serde_json::to_string_pretty(&super::event_schema()).unwrap_or_default() + "\n";
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(path, &now).ok();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == now,
            "{path} is not what the types say: run the test with UPDATE_SCHEMA=1 and review the change"
        );
    }
}
