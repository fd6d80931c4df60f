//! Images of the user and of tools.

use serde_json::{Value, json};

use super::{APIS, assistant, object, prefix, target, user};
use crate::{
    Api, Target, Transcript,
    codec::draft::{InputForm, call_block},
    message::NO_IMAGE,
};

const IMAGE: &str = r#"{"type":"image","data":"iVBO","mimeType":"image/png"}"#;

/// A user's image, a call with an image as its result, and a text of the user.
fn body(target: &Target) -> Value {
    let mut transcript = Transcript::new(target.clone(), &prefix()).unwrap();
    let image = || vec![object(IMAGE).into()];
    transcript.push(&user("").with("content", image()));
    transcript.push(&assistant(target, vec![call_block("c1", "bash", "{}", InputForm::Value)]));
    let result = object(r#"{"role":"toolResult","toolCallId":"c1","toolName":"bash","isError":false}"#);
    transcript.push(&result.with("content", image()));
    let before = transcript.request(None, &[]).unwrap().body.to_vec().unwrap();
    transcript.push(&user("And now?"));
    let body = transcript.request(None, &[]).unwrap().body.to_vec().unwrap();
    // Later requests send the same bytes for the result.
    let blocks: usize = before.iter().zip(&body).take_while(|(a, b)| a == b).count();
    assert!(String::from_utf8_lossy(&body[..blocks]).matches("iVBO").count() == if target.images { 2 } else { 0 });
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn images_are_encoded_in_each_vendors_format() {
    let anthropic = body(&target(Api::Anthropic));
    let image = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "iVBO" } });
    assert_eq!(anthropic["messages"][0]["content"], json!([image]));
    assert_eq!(anthropic["messages"][2]["content"][0]["content"], json!([image]));

    let responses = body(&target(Api::Responses));
    let image = json!({ "type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBO" });
    assert_eq!(responses["input"][0]["content"], json!([image]));
    assert_eq!(responses["input"][2]["output"], json!([image]));

    // A tool message can contain only text.
    let chat = body(&target(Api::Chat));
    let image = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,iVBO" } });
    assert_eq!(chat["messages"][1]["content"], json!([image]));
    assert_eq!(chat["messages"][3]["content"], "(see the attached image)");
    assert_eq!(chat["messages"][4]["content"][1], image);
    assert_eq!(chat["messages"][5]["content"], "And now?");

    let image = json!({ "inlineData": { "mimeType": "image/png", "data": "iVBO" } });
    let gemini = body(&target(Api::Gemini));
    assert_eq!(gemini["contents"][0]["parts"], json!([image]));
    assert_eq!(gemini["contents"][2]["parts"][0]["functionResponse"]["parts"], json!([image]));
    // Older models need it beside the result.
    let gemini = body(&Target { model: "gemini-2.5-pro".to_owned(), ..target(Api::Gemini) });
    assert_eq!(gemini["contents"][2]["parts"][0]["functionResponse"]["parts"], Value::Null);
    assert_eq!(gemini["contents"][3]["parts"][1], image);
}

#[test]
fn a_model_that_sees_no_images_gets_a_note() {
    for api in APIS {
        let body = body(&Target { images: false, ..target(api) }).to_string();
        assert_eq!(body.matches(NO_IMAGE).count(), 2, "{body}");
    }
}
