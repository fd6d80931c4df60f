//! Tests of the exact models with the clients of the crate `models`: the requests that the models refuse, what their
//! caches do and the faults they produce on purpose. They also show that the clients' requests are never refused, hit
//! the cache and never hang.

mod caches;
mod strictness;

use std::time::Duration;

use models::{
    Api as ClientApi, CacheTtl, EncodedRequest, EndReason, Failure, FailureKind, Marker, MarkerPlace, Prefix, Secret,
    StreamEvent, Target, Thinking, Transcript, Usage,
    transport::{ModelClient, ModelEndpoint, Patience},
};
use serde_json::json;
use session_tree::{Json, Object};
use tests::models::{
    Api, Model,
    fault::Fault,
    script::{Call, Part, Script, Step, say},
};

const APIS: [Api; 4] = [Api::Anthropic, Api::Responses, Api::Chat, Api::Gemini];

fn client_api(api: Api) -> ClientApi {
    match api {
        Api::Anthropic => ClientApi::Anthropic,
        Api::Responses => ClientApi::Responses,
        Api::Chat => ClientApi::Chat,
        Api::Gemini => ClientApi::Gemini,
    }
}

fn target(api: Api) -> Target {
    let model = match api {
        Api::Anthropic => "claude-opus-4-5",
        Api::Responses => "gpt-5.6",
        Api::Chat => "gpt-5.5",
        Api::Gemini => "gemini-3-flash",
    };
    let mut target = Target::new(client_api(api), "scripted", model, 8192);
    target.thinking = match api {
        Api::Anthropic => Thinking::Budget(2048),
        Api::Responses | Api::Gemini => Thinking::Effort("high".to_owned()),
        Api::Chat => Thinking::Default,
    };
    target
}

fn object(value: serde_json::Value) -> Object {
    let Json::Object(object) = Json::parse(&value.to_string()).unwrap() else { panic!("not an object: {value}") };
    object
}

/// A system prompt and tools of about 6,000 tokens.
fn prefix() -> Prefix {
    let schema =
        json!({ "type": "object", "properties": { "command": { "type": "string" } }, "required": ["command"] });
    let tools: Vec<_> = ["bash", "edit", "read"]
        .map(|name| json!({ "name": name, "description": format!("{name}. ").repeat(300), "parameters": schema }))
        .into();
    let message = json!({ "role": "system", "content": "Take care of every word. ".repeat(800), "toolsAdded": tools });
    Prefix::of_message(&object(message))
}

/// A session with one model, with the state a driver would keep.
struct Talk {
    runtime: tokio::runtime::Runtime,
    client: ModelClient,
    endpoint: ModelEndpoint,
    transcript: Transcript,
    key: String,
    requests: usize,
}

impl Talk {
    fn new(model: &Model, target: Target, key: &str) -> Self {
        let base = match target.api {
            ClientApi::Responses | ClientApi::Chat => format!("{}/v1", model.url()),
            ClientApi::Anthropic | ClientApi::Gemini => model.url(),
        };
        Self {
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            client: ModelClient::loopback("test").unwrap(),
            endpoint: ModelEndpoint::new(&base, Some(Secret::new("sk-test".to_owned()))).unwrap(),
            transcript: Transcript::new(target, &prefix()).unwrap(),
            key: key.to_owned(),
            requests: 0,
        }
    }

    fn say(&mut self, text: &str) {
        self.transcript.push(&object(json!({ "role": "user", "content": [{ "type": "text", "text": text }] })));
    }

    /// The request with its cache markers as in the brief: one at the end of the system prompt and one at each of the
    /// last two entries.
    fn request(&self) -> EncodedRequest {
        let entries = self.transcript.entries();
        let places = (entries.saturating_sub(2)..entries).map(MarkerPlace::Entry);
        let places = [MarkerPlace::System].into_iter().chain(places);
        let markers: Vec<Marker> = places.map(|place| Marker { place, ttl: CacheTtl::FiveMinutes }).collect();
        self.transcript.request(Some(&self.key), &markers).unwrap()
    }

    fn events(&mut self) -> Vec<StreamEvent> {
        self.requests += 1;
        let request = self.request();
        let mut exchange = self.client.exchange(&self.endpoint, &request, &self.requests.to_string()).unwrap();
        self.runtime.block_on(async {
            let mut events = Vec::new();
            while let Some(event) = exchange.next().await {
                events.push(event);
            }
            events
        })
    }

    /// Sends a request and appends the answer; returns why the answer ended, and its usage.
    fn ask(&mut self) -> Result<(EndReason, Usage), Failure> {
        let events = self.events();
        let (mut blocks, mut usage) = (Vec::new(), Usage::default());
        let mut outcome = None;
        for event in events {
            match event {
                StreamEvent::Block(block) => blocks.push(block),
                StreamEvent::Usage(told) => usage = told,
                StreamEvent::Ended(reason) => outcome = Some(Ok(reason)),
                StreamEvent::Failed(failure) => outcome = Some(Err(failure)),
                StreamEvent::Began { .. }
                | StreamEvent::Text(_)
                | StreamEvent::Thinking(_)
                | StreamEvent::ToolOpened { .. }
                | StreamEvent::ToolInput { .. } => {}
            }
        }
        let reason = outcome.unwrap()?;
        let target = self.transcript.target().clone();
        let message = Object::new()
            .with("role", "assistant")
            .with("content", blocks.iter().cloned().map(Json::Object).collect::<Vec<_>>())
            .with("api", target.api.name())
            .with("provider", target.provider.as_str())
            .with("model", target.model.as_str())
            .with("stopReason", reason.stop_reason());
        // A session sends the messages as it reads them back from its file.
        let Json::Object(message) = Json::parse(&message.to_text()).unwrap() else { panic!("{message:?}") };
        self.transcript.push(&message);
        for call in blocks.iter().filter(|block| block.text("type") == Some("toolCall")) {
            let said = format!("The result of {}: {}", call.text("id").unwrap(), "a line of output\n".repeat(60));
            let content = json!([{ "type": "text", "text": said }]);
            let result = json!({ "role": "toolResult", "toolCallId": call.text("id"), "toolName": call.text("name"),
                "content": content, "isError": false });
            self.transcript.push(&object(result));
        }
        Ok((reason, usage))
    }

    /// Sends requests until the model is done; returns the usage of each request.
    fn turn(&mut self, prompt: &str) -> Vec<Usage> {
        self.say(prompt);
        let mut usages = Vec::new();
        loop {
            let (reason, usage) = self.ask().unwrap_or_else(|failure| panic!("{failure:?}"));
            usages.push(usage);
            if reason != EndReason::ToolUse {
                return usages;
            }
        }
    }
}

fn bash(command: &str) -> Part {
    Part::Call(Call::new("bash", json!({ "command": command, "n": 1.0, "note": "\u{2028}\"ü\"" })))
}

/// The model thinks, makes one call, then two calls, and is done.
fn script() -> Script {
    let think = |text: &str| Part::Think(text.to_owned());
    Script::default().lane(
        "work",
        [
            Step::Answer(vec![think("How do I begin?"), Part::Say("I look. ".to_owned()), bash("ls")]),
            Step::Answer(vec![think("Both at once."), bash("one"), bash("two")]),
            Step::Answer(vec![think("That is all."), Part::Say("It is done.".to_owned())]),
        ],
    )
}

#[test]
fn fifty_turns_have_no_refused_request_and_hit_the_cache() {
    for api in APIS {
        let model = Model::exact(api, script()).unwrap();
        let mut talk = Talk::new(&model, target(api), "session");
        for turn in 0..50 {
            talk.turn(&format!("work {turn}"));
            // Slower than the limit of 15 requests per minute and machine.
            model.pass(Duration::from_secs(15));
        }
        assert_eq!(model.refusals(), Vec::<String>::new(), "{api:?}");
        let report = model.cache_report();
        assert_eq!(report.requests, 150, "{api:?}");
        println!("{api:?}: {:.4} of the best, {:.4} of all", report.of_best(), report.hit_rate());
        assert!(report.of_best() >= 0.98, "{api:?}: {report:?}");
        assert!(report.hit_rate() >= 0.9, "{api:?}: {report:?}");
    }
}

#[test]
fn thinking_is_returned_to_chat_servers_that_request_it() {
    let model = Model::exact(Api::Chat, script()).unwrap();
    let mut target = target(Api::Chat);
    target.chat.return_reasoning = true;
    let mut talk = Talk::new(&model, target, "session");
    talk.turn("work");
    assert_eq!(model.refusals(), Vec::<String>::new());
    let body = String::from_utf8(talk.request().body.to_vec().unwrap()).unwrap();
    for thought in ["How do I begin?", "Both at once.", "That is all."] {
        assert!(body.contains(&format!(r#""reasoning_content":"{thought}""#)), "{thought} in {body}");
    }
}

#[test]
fn a_second_session_reads_the_cached_prefix() {
    for api in APIS {
        let model = Model::exact(api, script()).unwrap();
        let shared = if api == Api::Anthropic { "two" } else { "one" };
        Talk::new(&model, target(api), "one").turn("work");
        let usages = Talk::new(&model, target(api), shared).turn("work elsewhere");
        assert!(usages[0].read > 5000, "{api:?}: {:?}", usages[0]);
    }
}

#[test]
fn reported_token_usage_matches_the_caches() {
    for api in APIS {
        let model = Model::exact(api, script()).unwrap();
        let mut talk = Talk::new(&model, target(api), "session");
        let usages: Vec<Usage> = (0..3).flat_map(|turn| talk.turn(&format!("work {turn}"))).collect();
        let report = model.cache_report();
        assert_eq!(usages.iter().map(|usage| usage.read).sum::<u64>(), report.read, "{api:?}");
        assert_eq!(usages.iter().map(Usage::total_input).sum::<u64>(), report.total, "{api:?}");
        let writes: u64 = usages.iter().map(|usage| usage.write_5m).sum();
        // Only the APIs that bill cache writes report them.
        assert_eq!(writes > 0, matches!(api, Api::Anthropic | Api::Responses), "{api:?}");
    }
}

#[test]
fn a_session_continued_with_another_model_is_accepted() {
    for from in APIS {
        for to in APIS.into_iter().filter(|to| *to != from) {
            let first = Model::exact(from, script()).unwrap();
            let mut talk = Talk::new(&first, target(from), "session");
            talk.turn("work");
            // Also in the middle of a turn.
            talk.say("work on");
            talk.ask().unwrap();
            let second = Model::exact(to, script()).unwrap();
            let mut target = target(to);
            // An answer from another vendor contains no thinking signed by this vendor.
            if to == Api::Anthropic {
                target.thinking = Thinking::Default;
            }
            let mut other = Talk::new(&second, target, "session");
            let messages = stored(&first, from);
            messages.iter().for_each(|message| {
                other.transcript.push(message);
            });
            other.ask().unwrap_or_else(|failure| panic!("{from:?} → {to:?}: {failure:?}"));
            assert_eq!(second.refusals(), Vec::<String>::new(), "{from:?} → {to:?}");
        }
    }
}

/// The messages of a session with one and a half turns.
fn stored(model: &Model, api: Api) -> Vec<Object> {
    let mut talk = Talk::new(model, target(api), "stored");
    let mut messages = vec![object(json!({ "role": "user", "content": "work" }))];
    talk.transcript.push(&messages[0]);
    for _ in 0..2 {
        let events = talk.events();
        let blocks = events.into_iter().filter_map(|event| match event {
            StreamEvent::Block(block) => Some(block),
            StreamEvent::Began { .. }
            | StreamEvent::Text(_)
            | StreamEvent::Thinking(_)
            | StreamEvent::ToolOpened { .. }
            | StreamEvent::ToolInput { .. }
            | StreamEvent::Usage(_)
            | StreamEvent::Ended(_)
            | StreamEvent::Failed(_) => None,
        });
        let blocks: Vec<Object> = blocks.collect();
        let target = talk.transcript.target().clone();
        let mut new = vec![
            Object::new()
                .with("role", "assistant")
                .with("content", blocks.iter().cloned().map(Json::Object).collect::<Vec<_>>())
                .with("api", target.api.name())
                .with("provider", target.provider.as_str())
                .with("model", target.model.as_str())
                .with("stopReason", "toolUse"),
        ];
        new.extend(blocks.iter().filter(|block| block.text("type") == Some("toolCall")).map(|call| {
            object(json!({ "role": "toolResult", "toolCallId": call.text("id"), "toolName": call.text("name"),
                "content": [{ "type": "text", "text": "out" }], "isError": true }))
        }));
        new.iter().for_each(|message| {
            talk.transcript.push(message);
        });
        messages.extend(new);
    }
    messages
}

#[test]
fn each_stream_fault_is_reported_by_kind_and_none_hangs() {
    let short = Duration::from_millis(300);
    let faults = [
        (Fault::CutAfter(0), FailureKind::Network),
        (Fault::CutAfter(40), FailureKind::Network),
        (Fault::CutAfter(400), FailureKind::Network),
        (Fault::Stall, FailureKind::Stalled),
        (Fault::PingOnly, FailureKind::Stalled),
        (Fault::PingsAfterWords, FailureKind::Stalled),
        (Fault::ErrorInStream, FailureKind::Overloaded),
        (Fault::Html, FailureKind::Network),
        (Fault::Flood(65 << 20), FailureKind::Unknown),
    ];
    for api in APIS {
        let steps = faults.iter().map(|(fault, _)| Step::Faulty { fault: fault.clone(), times: 1 });
        let script = Script::default().lane("work", steps.chain([say("It is done.")]));
        let model = Model::exact(api, script).unwrap();
        let mut talk = Talk::new(&model, target(api), "session");
        talk.say("work");
        for (fault, kind) in &faults {
            // A fault that hangs gets a short timeout; a fault that ends the answer gets a long one.
            let silence = if fault.ends() { Duration::from_secs(60) } else { short };
            talk.endpoint.patience = Patience::default().with_silence(silence, silence).unwrap();
            let events = talk.events();
            let Some(StreamEvent::Failed(failure)) = events.last() else {
                panic!("{api:?}, {fault:?}: {:?}", events.last())
            };
            assert_eq!(failure.kind, *kind, "{api:?}, {fault:?}: {failure:?}");
        }
        // The same request succeeds on retry.
        assert_eq!(talk.ask().unwrap().0, EndReason::Stop, "{api:?}");
    }
}

#[test]
fn an_answer_that_arrives_byte_by_byte_is_read_completely() {
    for api in APIS {
        let drip = Step::Faulty { fault: Fault::Drip(Duration::ZERO), times: 1 };
        let model = Model::exact(api, Script::default().lane("work", [drip])).unwrap();
        let mut talk = Talk::new(&model, target(api), "session");
        talk.say("work");
        let events = talk.events();
        let text: String = events
            .iter()
            .filter_map(|event| if let StreamEvent::Text(text) = event { Some(text.as_str()) } else { None })
            .collect();
        assert_eq!(text, "Some words. ", "{api:?}");
        assert_eq!(events.last(), Some(&StreamEvent::Ended(EndReason::Stop)), "{api:?}");
    }
}

#[test]
fn an_incomplete_tool_call_is_reported_as_malformed() {
    // Gemini sends the whole input of a call at once.
    for api in [Api::Anthropic, Api::Responses, Api::Chat] {
        let half = Step::Faulty { fault: Fault::HalfInput, times: 1 };
        let model = Model::exact(api, Script::default().lane("work", [half, say("I see.")])).unwrap();
        let mut talk = Talk::new(&model, target(api), "session");
        // With thinking enabled an answer that calls tools must begin with thinking; this answer does not.
        let target = Target { thinking: Thinking::Default, ..target(api) };
        talk.transcript = Transcript::new(target, &prefix()).unwrap();
        talk.say("work");
        let calls: Vec<Object> = talk
            .events()
            .into_iter()
            .filter_map(|event| if let StreamEvent::Block(block) = event { Some(block) } else { None })
            .filter(|block| block.text("type") == Some("toolCall"))
            .collect();
        let [call] = &calls[..] else { panic!("{api:?}: {calls:?}") };
        assert_eq!(call.text("malformed"), Some(r#"{"command":"echo it is not comp"#), "{api:?}");
    }
}

#[test]
fn tool_calls_with_duplicate_ids_are_accepted_when_sent_back() {
    for api in APIS {
        let same = Step::Faulty { fault: Fault::SameIds, times: 1 };
        let model = Model::exact(api, Script::default().lane("work", [same, say("I see.")])).unwrap();
        let target = Target { thinking: Thinking::Default, ..target(api) };
        let mut talk = Talk::new(&model, target, "session");
        talk.say("work");
        assert_eq!(talk.ask().unwrap().0, EndReason::ToolUse, "{api:?}");
        assert_eq!(talk.ask().unwrap_or_else(|failure| panic!("{api:?}: {failure:?}")).0, EndReason::Stop);
    }
}
