//! The list of tools sent to models: frozen bytes, generated from the types of the arguments.

use std::sync::LazyLock;

use serde_json::Value;

use crate::tool::Tool;

/// The tools, sorted by name: an array of `{"name", "description", "parameters"}`, where `parameters` is a JSON Schema
/// without references.
///
/// Changing one byte invalidates the cached prefix for every new session. Existing sessions keep the bytes they started
/// with.
pub const SCHEMAS: &str = include_str!("../schemas.json");

static PARSED: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(SCHEMAS).unwrap_or_default());

/// The field whose value does not have the type in the schema.
pub(crate) fn mismatch(tool: Tool, value: &Value) -> Option<String> {
    let schema = PARSED.as_array()?.iter().find(|one| one["name"] == tool.name())?;
    differs(&schema["parameters"], value, "")
}

fn differs(schema: &Value, value: &Value, path: &str) -> Option<String> {
    if !is_of(&schema["type"], value) {
        return Some(path.to_owned());
    }
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let schema = schema["properties"].get(name)?;
            differs(schema, value, &if path.is_empty() { name.clone() } else { format!("{path}.{name}") })
        }),
        Value::Array(items) => {
            let schema = schema.get("items")?;
            items.iter().enumerate().find_map(|(at, item)| differs(schema, item, &format!("{path}[{at}]")))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn is_of(kind: &Value, value: &Value) -> bool {
    let one = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => true,
    };
    match kind {
        Value::String(kind) => one(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).any(one),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    }
}

#[cfg(test)]
mod tests;
