//! For each rule of the strict models: a valid request passes, and the same request with one change is refused.

use serde_json::{Value, json};
use tests::models::{Api, Model, strict::check};

use super::{prefix, script, stored, target};

/// A request in the middle of a turn: a user message, two answers with thinking and calls, and their results.
fn request(api: Api) -> Value {
    let model = Model::exact(api, script()).unwrap();
    let mut transcript = models::Transcript::new(target(api), &prefix()).unwrap();
    for message in stored(&model, api) {
        transcript.push(&message);
    }
    let request = transcript.request(Some("session"), &[]).unwrap();
    serde_json::from_slice(&request.body.to_vec().unwrap()).unwrap()
}

type Change = fn(&mut Value);

/// Applies each change to a valid request and checks the refusal.
fn refuses(api: Api, changes: &[(&str, Change)]) {
    let valid = request(api);
    assert_eq!(check(api, valid.to_string().as_bytes()), Ok(()), "{api:?}");
    for (refusal, change) in changes {
        let mut body = valid.clone();
        change(&mut body);
        assert!(body != valid, "{api:?}: nothing was changed for `{refusal}`");
        let refused = check(api, body.to_string().as_bytes()).map_err(|refusal| refusal.message);
        assert!(refused.as_ref().is_err_and(|said| said.contains(refusal)), "{api:?}: `{refusal}`: {refused:?}");
    }
}

fn list<'a>(body: &'a mut Value, at: &str) -> &'a mut Vec<Value> {
    body.pointer_mut(at).unwrap().as_array_mut().unwrap()
}

#[test]
fn anthropic_refuses_each_invalid_request() {
    refuses(
        Api::Anthropic,
        &[
            ("Extra inputs", |b| b["verbosity"] = "low".into()),
            ("model", |b| b["model"] = Value::Null),
            ("max_tokens", |b| b["max_tokens"] = 0.into()),
            ("greater than or equal to 1024", |b| b["thinking"]["budget_tokens"] = 1000.into()),
            ("must be greater than", |b| b["max_tokens"] = 2048.into()),
            ("at least one message", |b| b["messages"] = json!([])),
            ("Input should be 'user' or 'assistant'", |b| b["messages"][0]["role"] = "system".into()),
            ("first message", |b| drop(list(b, "/messages").remove(0))),
            ("must be non-empty", |b| b["messages"][0]["content"][0]["text"] = "".into()),
            ("non-whitespace", |b| b["messages"][0]["content"][0]["text"] = " \n".into()),
            ("non-empty content", |b| b["messages"][0]["content"] = json!([])),
            ("Invalid `signature`", |b| b["messages"][1]["content"][0]["thinking"] = "Another thought".into()),
            ("Invalid `signature`", |b| b["messages"][1]["content"][0]["signature"] = "bm8=".into()),
            ("Input should be a valid string", |b| b["messages"][1]["content"][0]["signature"] = Value::Null),
            ("Expected `thinking`", |b| drop(list(b, "/messages/3/content").remove(0))),
            ("`tool_use` ids were found without", |b| drop(list(b, "/messages/4/content").remove(0))),
            ("unexpected `tool_use_id`", |b| b["messages"][2]["content"][0]["tool_use_id"] = "toolu_x".into()),
            ("not in the order", |b| list(b, "/messages/4/content").swap(0, 1)),
            ("must come first", |b| list(b, "/messages/4/content").insert(1, json!({ "type": "text", "text": "a" }))),
            ("must be unique", |b| {
                let id = b["messages"][1]["content"][2]["id"].clone();
                b["messages"][3]["content"][1]["id"] = id.clone();
                b["messages"][4]["content"][0]["tool_use_id"] = id;
            }),
            ("String should match", |b| b["messages"][1]["content"][2]["id"] = "call|1".into()),
            ("valid dictionary", |b| b["messages"][1]["content"][2]["input"] = "{}".into()),
            ("not allowed for the role", |b| {
                b["messages"][0]["content"][0] = json!({ "type": "tool_use", "id": "a", "name": "b", "input": {} })
            }),
            ("does not match any of the expected tags", |b| b["messages"][0]["content"][0]["type"] = "toolCall".into()),
            ("assistant message prefill", |b| drop(list(b, "/messages").pop())),
            ("must define tools", |b| drop(b.as_object_mut().unwrap().remove("tools"))),
            ("input_schema", |b| b["tools"][0]["input_schema"] = Value::Null),
            ("should match pattern", |b| b["tools"][0]["name"] = "a tool".into()),
            ("must be unique", |b| b["tools"][0]["name"] = "read".into()),
            ("A maximum of 4", |b| {
                for tool in list(b, "/tools") {
                    tool["cache_control"] = json!({ "type": "ephemeral" });
                }
                b["system"][0]["cache_control"] = json!({ "type": "ephemeral" });
                b["messages"][0]["content"][0]["cache_control"] = json!({ "type": "ephemeral" });
            }),
            ("must not come after", |b| {
                b["system"][0]["cache_control"] = json!({ "type": "ephemeral" });
                b["messages"][0]["content"][0]["cache_control"] = json!({ "type": "ephemeral", "ttl": "1h" });
            }),
            ("thinking: cache_control", |b| {
                b["messages"][1]["content"][0]["cache_control"] = json!({ "type": "ephemeral" })
            }),
            ("maximum size", |b| b["messages"][0]["content"][0]["text"] = "a".repeat(33 << 20).into()),
        ],
    );
}

#[test]
fn responses_refuses_each_invalid_request() {
    refuses(
        Api::Responses,
        &[
            ("Extra inputs", |b| b["max_tokens"] = 5.into()),
            ("minimum value", |b| b["max_output_tokens"] = 15.into()),
            ("prompt_cache_key", |b| b["prompt_cache_key"] = "k".repeat(65).into()),
            ("Invalid schema", |b| b["tools"][0]["parameters"] = Value::Null),
            ("should match pattern", |b| b["tools"][0]["name"] = "a.b".into()),
            ("Items are not persisted", |b| drop(b["input"][1].as_object_mut().unwrap().remove("encrypted_content"))),
            ("could not be verified", |b| b["input"][1]["encrypted_content"] = "gAAA".into()),
            ("could not be verified", |b| b["input"][1]["id"] = "rs_x".into()),
            ("required following item", |b| {
                let items = list(b, "/input");
                items.truncate(2);
            }),
            ("without its required 'reasoning' item", |b| drop(list(b, "/input").remove(1))),
            ("No tool output found", |b| drop(list(b, "/input").remove(4))),
            ("No tool output found", |b| drop(list(b, "/input").pop())),
            ("No tool call found", |b| b["input"][4]["call_id"] = "call_x".into()),
            ("not in the order", |b| {
                let items = list(b, "/input");
                let last = items.len() - 1;
                items.swap(last, last - 1);
            }),
            ("begins with 'fc'", |b| b["input"][3]["id"] = "msg_1".into()),
            ("Supported values", |b| b["input"][0]["role"] = "tool".into()),
            ("Supported values", |b| b["input"][0]["content"][0]["type"] = "output_text".into()),
            ("Invalid value: 'tool_use'", |b| b["input"][0]["type"] = "tool_use".into()),
        ],
    );
}

#[test]
fn chat_refuses_each_invalid_request() {
    refuses(
        Api::Chat,
        &[
            ("Extra inputs", |b| b["system"] = "x".into()),
            ("stream_options", |b| b["stream"] = false.into()),
            ("empty array", |b| b["tools"] = json!([])),
            ("Invalid schema", |b| b["tools"][0]["function"]["parameters"] = json!({})),
            ("Supported values", |b| b["messages"][1]["role"] = "human".into()),
            ("expected a string, got null", |b| b["messages"][2] = json!({ "role": "assistant", "content": null })),
            ("Extra inputs", |b| b["messages"][2]["thinking"] = "hm".into()),
            ("must be followed by tool messages", |b| b["messages"][3] = json!({ "role": "user", "content": "x" })),
            ("must be a response to", |b| drop(list(b, "/messages").remove(2))),
            ("must be a response to", |b| list(b, "/messages").swap(5, 6)),
            ("did not have response", |b| drop(list(b, "/messages").pop())),
            ("string too long", |b| b["messages"][2]["tool_calls"][0]["id"] = "c".repeat(41).into()),
            ("duplicate tool_call id", |b| {
                let id = b["messages"][4]["tool_calls"][0]["id"].clone();
                b["messages"][4]["tool_calls"][1]["id"] = id;
            }),
            ("not a JSON object", |b| b["messages"][2]["tool_calls"][0]["function"]["arguments"] = "{\"a".into()),
            ("empty string", |b| b["messages"][1]["content"] = "".into()),
            ("Invalid content type", |b| b["messages"][3]["content"] = json!([{ "type": "image_url" }])),
        ],
    );
}

#[test]
fn gemini_refuses_each_invalid_request() {
    refuses(
        Api::Gemini,
        &[
            ("Extra inputs", |b| b["stream"] = true.into()),
            ("thinking budget", |b| b["generationConfig"]["thinkingConfig"]["thinkingBudget"] = 5.into()),
            ("schema", |b| b["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] = Value::Null),
            ("not specified", |b| b["contents"] = json!([])),
            ("valid role", |b| b["contents"][0]["role"] = "assistant".into()),
            ("must not be empty", |b| b["contents"][0]["parts"] = json!([])),
            ("empty text", |b| b["contents"][0]["parts"][0]["text"] = "".into()),
            ("one initialized field", |b| b["contents"][0]["parts"][0] = json!({})),
            ("missing a thought_signature", |b| {
                for part in list(b, "/contents/1/parts") {
                    part.as_object_mut().unwrap().remove("thoughtSignature");
                }
            }),
            ("Corrupted thought signature", |b| signed_part(b)["thoughtSignature"] = "bm8=".into()),
            ("Thought signature is not valid", |b| signed_part(b)["functionCall"]["name"] = "read".into()),
            ("number of function response parts", |b| drop(list(b, "/contents/4/parts").pop())),
            ("number of function response parts", |b| drop(list(b, "/contents").remove(2))),
            ("do not match", |b| list(b, "/contents/4/parts").swap(0, 1)),
            ("function_call.args", |b| signed_part(b)["functionCall"]["args"] = "{}".into()),
            ("ends with a user role", |b| drop(list(b, "/contents").pop())),
            ("is the user's", |b| {
                b["contents"][1]["parts"][0] = json!({ "functionResponse": { "name": "a", "response": {} } })
            }),
        ],
    );
}

fn signed_part(body: &mut Value) -> &mut Value {
    list(body, "/contents/1/parts").iter_mut().find(|part| part["thoughtSignature"].is_string()).unwrap()
}
