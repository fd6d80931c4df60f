//! The OpenAPI document, written from the table of routes and the types.

use std::collections::BTreeMap;

use projections::{Approval, Session, Turn, Usage};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::{
    Moment, SourceHealth,
    access::Scope,
    api::history::StatusChange,
    routes::{Gives, ROUTES, Route, Takes},
};

/// Makes the OpenAPI 3.1 document.
#[must_use]
pub fn document() -> Value {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in ROUTES {
        paths.entry(route.path).or_default().insert(route.method.as_str().to_ascii_lowercase(), operation(route));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "capture",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Coding-agent sessions as they stand and as they happen.",
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas(),
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    if let Some((_, rest)) = route.path.split_once('{')
        && let Some((name, _)) = rest.split_once('}')
    {
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    }
    for param in route.query {
        parameters.push(json!({
            "name": param.name, "in": "query", "description": param.about, "schema": { "type": "string" },
        }));
    }
    let mut operation = json!({
        "summary": route.about,
        "parameters": parameters,
        "x-scope": scope_name(route.scope),
        "responses": { "default": {
            "description": "an error",
            "content": { "application/json": { "schema": reference("Error") } },
        } },
    });
    match route.takes {
        Takes::Nothing => {}
        Takes::Json => operation["requestBody"] = taken(&["application/json"]),
        Takes::Telemetry => operation["requestBody"] = taken(&["application/json", "application/x-protobuf"]),
    }
    let (status, good) = good_answer(route.gives);
    operation["responses"][status] = good;
    if route.scope == Scope::Open {
        operation["security"] = json!([]);
    }
    operation
}

fn taken(types: &[&str]) -> Value {
    let content: Map<String, Value> = types.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    json!({ "required": true, "content": content })
}

fn good_answer(gives: Gives) -> (&'static str, Value) {
    let (content_type, schema) = match gives {
        Gives::One(name) => ("application/json", reference(name)),
        Gives::List(field, name) => (
            "application/json",
            json!({ "type": "object", "required": [field],
                    "properties": { field: { "type": "array", "items": reference(name) } } }),
        ),
        Gives::Array(name) => ("application/json", json!({ "type": "array", "items": reference(name) })),
        Gives::Json | Gives::Telemetry => ("application/json", json!({ "type": "object" })),
        Gives::Text(content_type) => (content_type, json!({ "type": "string" })),
        Gives::Events => ("text/event-stream", json!({ "type": "string" })),
        Gives::Upgrade => {
            return ("101", json!({ "description": "the connection speaks another protocol from here on" }));
        }
        Gives::WebSocket => {
            return ("101", json!({ "description": "the connection is a WebSocket from here on" }));
        }
    };
    ("200", json!({ "description": "as asked", "content": { content_type: { "schema": schema } } }))
}

fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Open => "none",
        Scope::Ingest => "ingest",
        Scope::Read => "read",
        Scope::Control => "control",
        Scope::Admin => "admin",
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// The schemas of what is answered, with everything they refer to.
fn schemas() -> Map<String, Value> {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.for_serialize().into_generator();
    generator.subschema_for::<Session>();
    generator.subschema_for::<Approval>();
    generator.subschema_for::<events::Finding>();
    generator.subschema_for::<projections::Prompt>();
    generator.subschema_for::<Turn>();
    generator.subschema_for::<Usage>();
    generator.subschema_for::<StatusChange>();
    generator.subschema_for::<Moment>();
    generator.subschema_for::<SourceHealth>();
    let mut schemas = generator.take_definitions(true);
    let mut event = events::schema::event_schema();
    if let Some(event) = event.as_object_mut() {
        event.remove("$schema");
        if let Some(Value::Object(definitions)) = event.remove("$defs") {
            for (name, schema) in definitions {
                schemas.entry(name).or_insert(schema);
            }
        }
    }
    schemas.insert("Event".into(), event);
    schemas.insert(
        "Error".into(),
        json!({ "type": "object", "required": ["error"], "properties": { "error": {
            "type": "object", "required": ["code", "message"],
            "properties": {
                "code": { "type": "string" },
                "message": { "type": "string" },
                "hint": { "type": "string" },
            },
        } } }),
    );
    schemas.values_mut().for_each(hoist);
    schemas
}

/// Points references into `$defs` to where the definitions are in this document.
fn hoist(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object.iter_mut() {
                if key == "$ref"
                    && let Some(name) = inner.as_str().and_then(|text| text.strip_prefix("#/$defs/"))
                {
                    *inner = format!("#/components/schemas/{name}").into();
                } else {
                    hoist(inner);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(hoist),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
