//! Gemini's generateContent. <https://ai.google.dev/api/generate-content>

use serde_json::Value;

use super::{Checked, ensure, list, names, only, refuse, schema, text};
use crate::models::signature::signed;

pub(super) fn check(body: &Value) -> Checked {
    // "Invalid JSON payload received. Unknown name "x": Cannot find field."
    only(
        body,
        "body",
        &[
            "contents",
            "systemInstruction",
            "tools",
            "toolConfig",
            "generationConfig",
            "safetySettings",
            "cachedContent",
        ],
    )?;
    let config = &body["generationConfig"];
    if !config.is_null() {
        let known = [
            "maxOutputTokens",
            "temperature",
            "topP",
            "topK",
            "thinkingConfig",
            "stopSequences",
            "candidateCount",
            "seed",
        ];
        only(config, "generation_config", &known)?;
    }
    if !config["thinkingConfig"].is_null() {
        only(&config["thinkingConfig"], "thinking_config", &["includeThoughts", "thinkingBudget", "thinkingLevel"])?;
        // docs/thinking: the level and the budget exclude each other.
        ensure(
            config["thinkingConfig"]["thinkingLevel"].is_null() || config["thinkingConfig"]["thinkingBudget"].is_null(),
            || "You can only set one of thinking budget and thinking level.".to_owned(),
        )?;
    }
    let mut declared = Vec::new();
    for tool in body["tools"].as_array().into_iter().flatten() {
        only(tool, "tools", &["functionDeclarations"])?;
        for function in list(&tool["functionDeclarations"], "function_declarations")? {
            only(
                function,
                "function_declarations",
                &["name", "description", "parameters", "parametersJsonSchema", "behavior"],
            )?;
            let parameters = if function["parameters"].is_null() {
                &function["parametersJsonSchema"]
            } else {
                &function["parameters"]
            };
            schema(parameters, "function_declarations.parameters")?;
            declared.push(function["name"].as_str().unwrap_or_default());
        }
    }
    names(declared.into_iter(), 64)?;
    let system = &body["systemInstruction"];
    ensure(system.is_null() || system["parts"].is_array(), || "system_instruction.parts".to_owned())?;
    contents(body)
}

/// A turn: consecutive contents with the same role.
struct Turn<'a> {
    role: &'a str,
    parts: Vec<&'a Value>,
}

fn contents(body: &Value) -> Checked {
    let contents = list(&body["contents"], "contents")?;
    ensure(!contents.is_empty(), || "* GenerateContentRequest.contents: contents is not specified".to_owned())?;
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (n, content) in contents.iter().enumerate() {
        let at = format!("contents[{n}]");
        only(content, &at, &["role", "parts"])?;
        let role = text(&content["role"], &at)?;
        ensure(matches!(role, "user" | "model"), || "Please use a valid role: user, model.".to_owned())?;
        let parts = list(&content["parts"], &at)?;
        ensure(!parts.is_empty(), || format!("* GenerateContentRequest.{at}.parts: must not be empty"))?;
        for part in parts {
            self::part(part, role, &at)?;
        }
        match turns.last_mut().filter(|turn| turn.role == role) {
            Some(turn) => turn.parts.extend(parts),
            None => turns.push(Turn { role, parts: parts.iter().collect() }),
        }
    }
    ensure(turns.last().is_some_and(|turn| turn.role == "user"), || {
        "Please ensure that the conversation ends with a user role".to_owned()
    })?;
    pairs(&turns)?;
    signatures(&turns)
}

fn part(part: &Value, role: &str, at: &str) -> Checked {
    only(part, at, &["text", "thought", "thoughtSignature", "inlineData", "functionCall", "functionResponse"])?;
    let kinds = ["text", "inlineData", "functionCall", "functionResponse"];
    let count = kinds.iter().filter(|kind| !part[**kind].is_null()).count();
    // "Unable to submit request because it must have a text parameter", "required oneof field 'data' must have one
    // initialized field": python-genai#1113 and others.
    ensure(count == 1, || {
        format!("* GenerateContentRequest.{at}.parts: required oneof field 'data' must have one initialized field")
    })?;
    let signature = &part["thoughtSignature"];
    ensure(part["text"] != "" || signature.is_string(), || {
        format!("{at}: Unable to submit request because it has an empty text parameter")
    })?;
    if let Some(signature) = signature.as_str() {
        // docs/thought-signatures: the replacement for a signature of another model.
        let is_stand_in = signature == "skip_thought_signature_validator";
        let of = signed(signature);
        ensure(is_stand_in || of.is_some(), || "Corrupted thought signature.".to_owned())?;
        if let Some(name) = part["functionCall"]["name"].as_str() {
            ensure(is_stand_in || of.as_deref() == Some(name), || "Thought signature is not valid.".to_owned())?;
        }
    }
    if !part["functionCall"].is_null() {
        ensure(role == "model", || format!("{at}: a function call is the model's"))?;
        only(&part["functionCall"], at, &["id", "name", "args"])?;
        ensure(part["functionCall"]["args"].is_object(), || format!("{at}: function_call.args"))?;
    }
    if !part["functionResponse"].is_null() {
        ensure(role == "user", || format!("{at}: a function response is the user's"))?;
        only(&part["functionResponse"], at, &["id", "name", "response", "parts"])?;
        ensure(part["functionResponse"]["response"].is_object(), || format!("{at}: function_response.response"))?;
    }
    Ok(())
}

/// "Please ensure that function call turn comes immediately after a user turn or after a function response turn", "…
/// the number of function response parts is equal to the number of function call parts of the function call turn":
/// python-genai#1066, langchain-google#1092 and others. Names, ids and order: the harsher reading.
fn pairs(turns: &[Turn<'_>]) -> Checked {
    let mut awaited: Vec<(&Value, &Value)> = Vec::new();
    for turn in turns {
        let of = |kind: &'static str| turn.parts.iter().map(move |part| &part[kind]).filter(|value| !value.is_null());
        let responses: Vec<(&Value, &Value)> = of("functionResponse").map(|r| (&r["name"], &r["id"])).collect();
        ensure(responses.len() == awaited.len(), || {
            "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.".to_owned()
        })?;
        ensure(responses == awaited, || {
            "function responses do not match their calls in order, name and id".to_owned()
        })?;
        awaited = of("functionCall").map(|call| (&call["name"], &call["id"])).collect();
    }
    ensure(awaited.is_empty(), || "a function call has no response".to_owned())
}

/// docs/thought-signatures: in the current turn, which begins at the last message of the user, the first call of each
/// step has a signature.
fn signatures(turns: &[Turn<'_>]) -> Checked {
    let is_said =
        |turn: &Turn<'_>| turn.role == "user" && turn.parts.iter().any(|part| part["functionResponse"].is_null());
    let from = turns.iter().rposition(is_said).unwrap_or(0);
    for turn in turns[from..].iter().filter(|turn| turn.role == "model") {
        let first = turn.parts.iter().find(|part| !part["functionCall"].is_null());
        if let Some(first) = first.filter(|first| first["thoughtSignature"].is_null()) {
            let name = first["functionCall"]["name"].as_str().unwrap_or_default();
            return refuse(format!(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Additional data, function call `default_api:{name}`"
            ));
        }
    }
    Ok(())
}
