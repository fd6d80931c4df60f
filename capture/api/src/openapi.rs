//! The OpenAPI document, generated from the table of routes and the types.

use std::{collections::BTreeMap, fmt::Display};

use events::{FindingFacts, FindingKind, Reason};
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::{
    ErrorBody, Scope,
    devices::COOKIE,
    history::EVENT,
    routes::{AnswerKind, ROUTES, RequestBody, Route},
};

/// Generates the OpenAPI 3.1 document.
#[must_use]
pub fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in ROUTES {
        let operation = operation(route, &mut schemas);
        paths.entry(route.path).or_default().insert(route.method.as_str().to_ascii_lowercase(), operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "capture",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Coding-agent sessions: their status, history, approvals and findings.",
        },
        "security": [{ "token": [] }, { "device": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "device": { "type": "apiKey", "in": "cookie", "name": COOKIE },
            },
            "schemas": schemas.finish(),
        },
    })
}

/// The schemas of requests and answers. A type used in both has one schema, because an answer contains every field of
/// the request.
struct Schemas {
    generator: SchemaGenerator,
    requests: SchemaGenerator,
}

/// Adds the meaning of each value of an enumeration to its schema, as `x-facts`.
fn describe<T: Copy + Display>(schemas: &mut Map<String, Value>, name: &str, values: &[T], facts: impl Fn(T) -> Value) {
    let facts: Map<String, Value> = values.iter().map(|value| (value.to_string(), facts(*value))).collect();
    if let Some(Value::Object(schema)) = schemas.get_mut(name) {
        schema.insert("x-facts".into(), Value::Object(facts));
    }
}

impl Schemas {
    fn new() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        Self {
            generator: settings.clone().for_serialize().into_generator(),
            requests: settings.for_deserialize().into_generator(),
        }
    }

    fn finish(mut self) -> Map<String, Value> {
        let mut schemas = self.generator.take_definitions(true);
        for (name, schema) in self.requests.take_definitions(true) {
            schemas.entry(name).or_insert(schema);
        }
        let mut event = events::schema::event_schema();
        if let Some(event) = event.as_object_mut() {
            event.remove("$schema");
            if let Some(Value::Object(definitions)) = event.remove("$defs") {
                for (name, schema) in definitions {
                    schemas.entry(name).or_insert(schema);
                }
            }
        }
        schemas.insert(EVENT.into(), event);
        describe(&mut schemas, "FindingKind", FindingKind::ALL, |kind| {
            let FindingFacts { title, meaning, need, .. } = kind.facts();
            json!({ "title": title, "meaning": meaning, "need": need })
        });
        describe(
            &mut schemas,
            "Reason",
            Reason::ALL,
            |reason| json!({ "title": reason.facts().title, "need": reason.need() }),
        );
        // Parameters are inlined where they are used.
        schemas.retain(|name, _| !name.ends_with("Query"));
        schemas.values_mut().for_each(hoist);
        schemas
    }
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let mut responses: BTreeMap<String, Value> = BTreeMap::new();
    for (status, codes) in errors_by_status(route) {
        let about: Vec<String> = codes.iter().map(|(code, about)| format!("`{code}`: {about}")).collect();
        responses.insert(
            status.to_string(),
            json!({
                "description": about.join("\n"),
                "content": { "application/json": { "schema": schemas.generator.subschema_for::<ErrorBody>() } },
                "x-codes": codes.iter().map(|(code, _)| code).collect::<Vec<_>>(),
            }),
        );
    }
    responses.extend(good_answers(route.answer, schemas));
    let mut operation = json!({
        "operationId": route.operation.as_str(),
        "summary": route.about,
        "parameters": parameters(route, schemas),
        "x-scope": route.scope.as_str(),
        "responses": responses,
    });
    match route.body {
        RequestBody::None => {}
        RequestBody::Json(schema) => {
            let schema = schema(&mut schemas.requests);
            operation["requestBody"] =
                json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        }
        RequestBody::Telemetry => {
            let content = json!({ "application/json": {}, "application/x-protobuf": {} });
            operation["requestBody"] = json!({ "required": true, "content": content });
        }
    }
    if route.scope == Scope::Open {
        operation["security"] = json!([]);
    }
    operation
}

fn errors_by_status(route: &Route) -> BTreeMap<u16, Vec<(&'static str, &'static str)>> {
    let mut by_status: BTreeMap<u16, Vec<_>> = BTreeMap::new();
    for code in route.all_errors() {
        by_status.entry(code.status().as_u16()).or_default().push((code.as_str(), code.about()));
    }
    by_status
}

fn parameters(route: &Route, schemas: &mut Schemas) -> Vec<Value> {
    let mut parameters: Vec<Value> = Vec::new();
    if let Some(name) = route.segment() {
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    }
    let reference = (route.query)(&mut schemas.requests).to_value();
    let name = reference["$ref"].as_str().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
    let Some(query) = schemas.requests.definitions().get(name) else { return parameters };
    let required: Vec<&str> = query["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, schema) in query["properties"].as_object().into_iter().flatten() {
        let mut schema = schema.clone();
        let about = schema.as_object_mut().and_then(|schema| schema.remove("description")).unwrap_or_default();
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("default");
        }
        let mut parameter = json!({
            "name": name,
            "in": "query",
            "required": required.contains(&name.as_str()),
            "description": about,
            "schema": without_null(schema),
        });
        if parameter["schema"]["type"] == "array" {
            // Several values are separated by commas.
            parameter["style"] = "form".into();
            parameter["explode"] = false.into();
        }
        parameters.push(parameter);
    }
    parameters
}

/// An optional parameter is absent, never null.
fn without_null(mut schema: Value) -> Value {
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            schema["type"] = only.clone();
        }
    }
    if let Some(cases) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        cases.retain(|case| case["type"] != "null");
        if let [only] = cases.as_slice() {
            return only.clone();
        }
    }
    schema
}

fn good_answers(answer: AnswerKind, schemas: &mut Schemas) -> Vec<(String, Value)> {
    let good = |content_type: &str, schema: Value| {
        ("200".to_owned(), json!({ "description": "OK", "content": { content_type: { "schema": schema } } }))
    };
    let upgraded = |description: &str| vec![("101".to_owned(), json!({ "description": description }))];
    match answer {
        AnswerKind::Json(schema) => vec![good("application/json", schema(&mut schemas.generator).to_value())],
        AnswerKind::JsonOrNothing(schema) => vec![
            good("application/json", schema(&mut schemas.generator).to_value()),
            ("204".to_owned(), json!({ "description": "There is no answer." })),
        ],
        AnswerKind::Telemetry => vec![good("application/json", json!({ "type": "object" }))],
        AnswerKind::Text(content_type) => vec![good(content_type, json!({ "type": "string" }))],
        AnswerKind::Events => vec![good("text/event-stream", json!({ "type": "string" }))],
        AnswerKind::JsonOrEvents(schema) => {
            let json = json!({ "schema": schema(&mut schemas.generator).to_value() });
            let events = json!({ "schema": { "type": "string" } });
            let content = json!({ "application/json": json, "text/event-stream": events });
            vec![("200".to_owned(), json!({ "description": "OK", "content": content }))]
        }
        AnswerKind::WebSocket => upgraded("The connection is a WebSocket from here on."),
        AnswerKind::Upgrade => upgraded("The connection speaks another protocol from here on."),
    }
}

/// Rewrites references into `$defs` to the location of the definitions in this document.
fn hoist(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object.iter_mut() {
                if key == "$ref"
                    && let Value::String(reference) = inner
                    && let Some(name) = reference.strip_prefix("#/$defs/")
                {
                    *reference = format!("#/components/schemas/{name}");
                }
                hoist(inner);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hoist),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_openapi_reference_resolves() {
        let document = document();
        let mut references = Vec::new();
        collect(&document, &mut references);
        assert!(references.len() > 60, "{}", references.len());
        for reference in references {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
        }
    }

    fn collect(value: &Value, references: &mut Vec<String>) {
        match value {
            Value::Object(object) => {
                for (key, inner) in object {
                    if key == "$ref"
                        && let Value::String(reference) = inner
                    {
                        references.push(reference.clone());
                    } else {
                        collect(inner, references);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn parameters_bodies_and_responses_have_their_schemas() {
        let document = document();
        let list = &document["paths"]["/api/v1/sessions"]["get"];
        let parameter = |name: &str| {
            list["parameters"].as_array().unwrap().iter().find(|parameter| parameter["name"] == name).unwrap().clone()
        };
        let state = parameter("state");
        assert_eq!((&state["schema"]["type"], &state["explode"]), (&"array".into(), &false.into()));
        assert_eq!(state["schema"]["items"]["$ref"], "#/components/schemas/State");
        assert_eq!(parameter("limit")["schema"]["type"], "integer");
        assert_eq!(parameter("active")["required"], false);
        let decide = &document["paths"]["/api/v1/approvals/{id}/decision"]["post"];
        let body = &decide["requestBody"]["content"]["application/json"]["schema"];
        assert_eq!(body["$ref"], "#/components/schemas/DecisionRequest");
        assert_eq!(document["components"]["schemas"]["DecisionRequest"]["required"], json!(["decision"]));
        assert!(decide["responses"]["409"]["x-codes"].as_array().unwrap().contains(&"conflict".into()));
        let answer = &decide["responses"]["200"]["content"]["application/json"]["schema"];
        assert_eq!(answer["$ref"], "#/components/schemas/ApprovalView");
        let view = &document["components"]["schemas"]["ApprovalView"]["properties"];
        for field in ["id", "state", "answer", "files", "more_files", "policy", "suggested_rule"] {
            assert!(view[field].is_object(), "{field}");
        }
        let wait = &document["paths"]["/api/v1/sessions/{id}/wait"]["get"];
        let until = wait["parameters"].as_array().unwrap().iter().find(|parameter| parameter["name"] == "until");
        assert_eq!(until.unwrap()["required"], true);
        assert!(wait["responses"]["408"].is_object() && wait["responses"]["308"].is_object());
    }
}
