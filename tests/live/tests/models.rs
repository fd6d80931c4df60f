//! Tests of the scripted models with a plain client: each protocol streams the answers of the script, and the model
//! chooses its answer from the contents of the conversation.

use std::time::Duration;

use serde_json::{Value, json};
use tests::{
    PATIENCE, eventually,
    http::{Answer, Client},
    models::{
        AnswerProgress, Api, Model,
        anthropic::PLAN_FILE,
        script::{Call, Part, Script, Step, call, hold, say},
    },
};

const APIS: [Api; 4] = [Api::Anthropic, Api::Responses, Api::Chat, Api::Gemini];

/// An item of a conversation, independent of the protocol.
#[derive(Clone, Copy)]
enum ConversationItem<'a> {
    User(&'a str),
    Called(&'a str),
    Result(&'a str),
}
use ConversationItem::{Called, Result, User};

fn script() -> Script {
    Script::default()
        .lane("touch", [call(Call::new("Bash", json!({ "command": "touch x" }))), say("It is done.")])
        .lane("wait", [hold("I am at ", "go on", "the end.")])
        .lane(
            "stumble",
            [Step::Fail { status: 529, retry_after: Some(Duration::from_secs(3)), times: 2 }, say("Up again.")],
        )
        .lane(
            "both",
            [
                Step::Answer(vec![
                    Part::Slowly { text: "First this. ".to_owned(), pause: Duration::from_millis(1) },
                    Part::Call(Call::new("Bash", json!({ "command": "one" }))),
                    Part::Call(Call::new("Bash", json!({ "command": "two" }))),
                ]),
                say("Both are done."),
            ],
        )
}

fn start(api: Api) -> (Model, Client) {
    let model = Model::start(api, script()).unwrap();
    let client = Client { address: model.address(), token: String::new() };
    (model, client)
}

fn request(api: Api, held: &[ConversationItem]) -> (&'static str, Value) {
    match api {
        Api::Anthropic => {
            let message = |held: &ConversationItem| match held {
                User(text) => json!({ "role": "user", "content": [{ "type": "text", "text": text }] }),
                Called(name) => {
                    json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "1", "name": name, "input": {} }] })
                }
                Result(text) => {
                    json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "1", "content": text }] })
                }
            };
            let messages: Vec<Value> = held.iter().map(message).collect();
            ("/v1/messages?beta=true", json!({ "stream": true, "tools": [{ "name": "Bash" }], "messages": messages }))
        }
        Api::Responses => {
            let item = |held: &ConversationItem| match held {
                User(text) => {
                    json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] })
                }
                Called(name) => json!({ "type": "function_call", "name": name, "arguments": "{}", "call_id": "1" }),
                Result(text) => json!({ "type": "function_call_output", "call_id": "1", "output": text }),
            };
            let input: Vec<Value> = held.iter().map(item).collect();
            ("/v1/responses", json!({ "stream": true, "input": input }))
        }
        Api::Chat => {
            let message = |held: &ConversationItem| match held {
                User(text) => json!({ "role": "user", "content": text }),
                Called(name) => {
                    let call =
                        json!({ "id": "1", "type": "function", "function": { "name": name, "arguments": "{}" } });
                    json!({ "role": "assistant", "content": null, "tool_calls": [call] })
                }
                Result(text) => json!({ "role": "tool", "tool_call_id": "1", "content": text }),
            };
            let messages: Vec<Value> = held.iter().map(message).collect();
            ("/v1/chat/completions", json!({ "model": "m", "stream": true, "messages": messages }))
        }
        Api::Gemini => {
            let content = |held: &ConversationItem| match held {
                User(text) => json!({ "role": "user", "parts": [{ "text": text }] }),
                Called(name) => json!({ "role": "model", "parts": [{ "functionCall": { "name": name } }] }),
                Result(text) => {
                    json!({ "role": "user", "parts": [{ "functionResponse": { "response": { "output": text } } }] })
                }
            };
            let contents: Vec<Value> = held.iter().map(content).collect();
            ("/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", json!({ "contents": contents }))
        }
    }
}

fn ask(api: Api, client: &Client, held: &[ConversationItem]) -> Answer {
    let (path, body) = request(api, held);
    client.send("POST", path, Some(&body.to_string()), PATIENCE).unwrap()
}

/// The text and the calls of a streamed answer, assembled as a client of the protocol would.
fn heard(api: Api, answer: &Answer) -> (String, Vec<Value>) {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = answer.text();
    let data = body.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    let events: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
    let of = |kind: &'static str| events.iter().filter(move |event| event["type"] == kind);
    let texts = |kind: &'static str, at: &str| of(kind).filter_map(|e| e.pointer(at)?.as_str()).collect::<String>();
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    match api {
        Api::Anthropic => {
            assert_eq!(of("content_block_start").count(), of("content_block_stop").count(), "{body}");
            assert_eq!(events.last().unwrap()["type"], "message_stop");
            let calls: Vec<Value> =
                of("content_block_delta").filter_map(|e| e["delta"]["partial_json"].as_str()).map(parsed).collect();
            let reason = of("message_delta").next_back().unwrap()["delta"]["stop_reason"].as_str().unwrap();
            assert_eq!(reason, if calls.is_empty() { "end_turn" } else { "tool_use" });
            (texts("content_block_delta", "/delta/text"), calls)
        }
        Api::Responses => {
            let sequence: Vec<u64> = events.iter().map(|e| e["sequence_number"].as_u64().unwrap()).collect();
            assert_eq!(sequence, (0..events.len() as u64).collect::<Vec<_>>());
            let last = events.last().unwrap();
            assert_eq!(last["type"], "response.completed");
            let done: Vec<&Value> = of("response.output_item.done").map(|e| &e["item"]).collect();
            assert_eq!(last["response"]["output"].as_array().unwrap().iter().collect::<Vec<_>>(), done);
            let calls = done.iter().filter_map(|item| item["arguments"].as_str()).map(parsed).collect();
            (texts("response.output_text.delta", "/delta"), calls)
        }
        Api::Chat => {
            assert!(body.ends_with("data: [DONE]\n\n"), "{body}");
            let at = |path: &'static str| events.iter().filter_map(move |event| event.pointer(path));
            let text = at("/choices/0/delta/content").filter_map(Value::as_str).collect();
            let mut calls: Vec<String> = Vec::new();
            for call in at("/choices/0/delta/tool_calls/0") {
                let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
                calls.resize(calls.len().max(index + 1), String::new());
                calls[index].push_str(call["function"]["arguments"].as_str().unwrap());
            }
            let reason = at("/choices/0/finish_reason").find_map(Value::as_str).unwrap();
            assert_eq!(reason, if calls.is_empty() { "stop" } else { "tool_calls" });
            (text, calls.iter().map(|call| parsed(call)).collect())
        }
        Api::Gemini => {
            let reasons: Vec<&Value> = events.iter().map(|e| &e["candidates"][0]["finishReason"]).collect();
            assert_eq!(reasons.iter().filter(|reason| **reason == "STOP").count(), 1);
            assert_eq!(*reasons[reasons.len() - 1], "STOP");
            let parts: Vec<&Value> =
                events.iter().flat_map(|e| e["candidates"][0]["content"]["parts"].as_array().unwrap()).collect();
            assert!(parts.iter().all(|part| part["text"] != ""), "the agent takes an empty text for an error: {body}");
            let text = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            let calls = parts.iter().filter_map(|part| part.pointer("/functionCall/args").cloned()).collect();
            (text, calls)
        }
    }
}

#[test]
fn the_answer_is_chosen_from_the_contents_of_the_conversation() {
    for api in APIS {
        let (_model, client) = start(api);
        let first = [User("a list of rules"), User("touch it")];
        for _ in 0..2 {
            let (text, calls) = heard(api, &ask(api, &client, &first));
            assert_eq!(
                (text.as_str(), calls),
                ("", vec![json!({ "command": "touch x" })]),
                "{api:?}: also when repeated"
            );
        }
        let second = [&first[..], &[Called("Bash"), Result("done")]].concat();
        let (text, calls) = heard(api, &ask(api, &client, &second));
        assert_eq!((text.as_str(), calls.len()), ("It is done.", 0), "{api:?}");
        let third = [&second[..], &[User("touch it once more")]].concat();
        assert_eq!(heard(api, &ask(api, &client, &third)).1.len(), 1, "{api:?}: a new prompt begins again");
        assert_eq!(heard(api, &ask(api, &client, &[User("hello")])).0, "(not in the script)");
    }
}

#[test]
fn parallel_tool_calls_are_one_step_of_the_script() {
    for api in APIS {
        let (_model, client) = start(api);
        let (text, calls) = heard(api, &ask(api, &client, &[User("both")]));
        assert_eq!((text.as_str(), calls.len()), ("First this. ", 2), "{api:?}");
        let one = [User("both"), Called("Bash"), Result("one")];
        assert_eq!(heard(api, &ask(api, &client, &one)).1.len(), 2, "{api:?}: not all have come back");
        let two = [&one[..], &[Called("Bash"), Result("two")]].concat();
        assert_eq!(heard(api, &ask(api, &client, &two)).0, "Both are done.", "{api:?}");
    }
}

#[test]
fn scripted_errors_are_counted_and_have_a_retry_after_header() {
    for api in APIS {
        let (model, client) = start(api);
        for _ in 0..2 {
            let answer = ask(api, &client, &[User("stumble")]);
            assert_eq!(answer.status, 529, "{api:?}");
            assert!(answer.headers.iter().any(|header| header == "retry-after: 3"), "{:?}", answer.headers);
            assert!(answer.json()["error"].is_object());
        }
        assert_eq!(heard(api, &ask(api, &client, &[User("stumble")])).0, "Up again.", "{api:?}");
        assert_eq!(model.notes().iter().filter(|note| note.did == AnswerProgress::Failed).count(), 2);
    }
}

#[test]
fn a_waiting_step_answers_only_after_its_signal() {
    for api in APIS {
        let (model, client) = start(api);
        let text = std::thread::scope(|scope| {
            let asking = scope.spawn(|| heard(api, &ask(api, &client, &[User("wait")])).0);
            eventually("the answer begins", || model.when("wait", 0, AnswerProgress::Began));
            assert_eq!(model.when("wait", 0, AnswerProgress::Ended), None, "{api:?}");
            model.tell("go on");
            asking.join().unwrap()
        });
        assert_eq!(text, "I am at the end.", "{api:?}");
        assert!(model.when("wait", 0, AnswerProgress::Ended).is_some());
    }
}

#[test]
fn a_client_that_disconnects_is_detected() {
    for api in APIS {
        let (model, client) = start(api);
        let (path, body) = request(api, &[User("wait")]);
        let gone = client.send("POST", path, Some(&body.to_string()), Duration::from_millis(100));
        assert!(gone.is_err(), "{api:?}: nothing is complete yet");
        eventually("it is noticed", || model.when("wait", 0, AnswerProgress::Gone));
    }
}

#[test]
fn side_requests_do_not_advance_the_script() {
    let title = "Generate a concise, single-line task title for: stumble";
    let asides = [
        (Api::Anthropic, "/v1/messages", json!({ "messages": [{ "role": "user", "content": "stumble" }] })),
        (
            Api::Anthropic,
            "/v1/messages/count_tokens",
            json!({ "messages": [{ "role": "user", "content": "stumble" }] }),
        ),
        (Api::Responses, "/v1/responses", request(Api::Responses, &[User(title)]).1),
        (Api::Gemini, "/v1beta/models/m:generateContent", request(Api::Gemini, &[User("stumble")]).1),
        (Api::Gemini, "/v1beta/models/m:countTokens", request(Api::Gemini, &[User("stumble")]).1),
    ];
    for (api, path, body) in asides {
        let (model, client) = start(api);
        let answer = client.send("POST", path, Some(&body.to_string()), PATIENCE).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert!(model.notes().iter().all(|note| note.lane == "aside"), "{path}: {:?}", model.notes());
        assert_eq!(ask(api, &client, &[User("stumble")]).status, 529, "{path}: the script is where it was");
    }
}

#[test]
fn a_sub_agent_request_uses_a_separate_lane() {
    let task = "Message Type: NEW_TASK\nPayload:";
    let mail = json!({ "type": "agent_message", "content": [
        { "type": "input_text", "text": task }, { "type": "encrypted_content", "encrypted_content": "touch it" },
    ]});
    let (model, client) = start(Api::Responses);
    let body = json!({ "input": [mail] }).to_string();
    let answer = client.send("POST", "/v1/responses", Some(&body), PATIENCE).unwrap();
    assert_eq!(heard(Api::Responses, &answer).1.len(), 1);
    assert!(model.when("touch", 0, AnswerProgress::Ended).is_some());
}

#[test]
fn tool_results_sent_to_the_model_are_recorded() {
    for api in APIS {
        let (model, client) = start(api);
        assert_eq!(model.results("both"), Vec::<String>::new(), "{api:?}");
        let held = [User("both"), Called("Bash"), Result("the first"), Called("Bash"), Result("the second")];
        ask(api, &client, &held);
        let told = model.results("both");
        assert_eq!(told.len(), 2, "{api:?}: {told:?}");
        assert!(told[0].contains("the first") && told[1].contains("the second"), "{api:?}: {told:?}");
    }
}

#[test]
fn a_plan_is_written_to_the_path_named_in_the_conversation() {
    let write = Call::new("Write", json!({ "file_path": PLAN_FILE, "content": "# Plan" }));
    let model = Model::start(Api::Anthropic, Script::default().lane("plan", [call(write), say("Shown.")])).unwrap();
    let client = Client { address: model.address(), token: String::new() };
    let told = "plan: `/home/me/.claude/plans/one-two-three.md` is the file";
    let (_, calls) = heard(Api::Anthropic, &ask(Api::Anthropic, &client, &[User(told)]));
    assert_eq!(calls[0]["file_path"], "/home/me/.claude/plans/one-two-three.md");
}
