//! Interprets a message's content: its text, the author of a `user` record, the kind of error in an `error` record.
//! Pure functions over raw values.

use std::borrow::Cow;

use events::ErrorClass;
use serde_json::value::RawValue;

use super::record::{ContentPart, Thought};
use agents::borrowed::escapes::unescaped;

/// The readable content of a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageText<'a> {
    /// The texts of all parts except thoughts.
    pub(crate) text: Cow<'a, str>,
    /// Number of images and files among the parts.
    pub(crate) attachments: u32,
    /// Whether tool results are among the parts.
    pub(crate) responses: bool,
}

/// Reads a message's content: a string, or a list of parts.
pub(crate) fn read(raw: Option<&RawValue>) -> MessageText<'_> {
    let Some(raw) = raw else {
        return MessageText::default();
    };
    if let Some(text) = unescaped(raw) {
        return MessageText { text, ..MessageText::default() };
    }
    let json = raw.get();
    let Ok(parts) = serde_json::from_str::<Vec<ContentPart<'_>>>(json) else {
        return MessageText { text: Cow::Borrowed(json), ..MessageText::default() };
    };
    let mut content = MessageText::default();
    for part in parts {
        content.responses |= part.function_response.is_some();
        content.attachments += u32::from(part.inline_data.is_some()) + u32::from(part.file_data.is_some());
        let text = part.text.filter(|_| !part.thought.0).and_then(unescaped);
        let Some(text) = text.filter(|t| !t.is_empty()) else {
            continue;
        };
        if content.text.is_empty() {
            content.text = text;
        } else {
            let whole = content.text.to_mut();
            whole.push('\n');
            whole.push_str(&text);
        }
    }
    content
}

/// Whether a message's content starts with a tool result, checked without parsing it.
pub(super) fn starts_with_response(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|r| r.get().starts_with(r#"[{"functionResponse""#))
}

/// Whether a record begins with the session context that the CLI gives the model. The context only occurs at the
/// beginning of a history, before the first prompt and often in one record with it.
pub(super) fn begins_history(raw: Option<&RawValue>) -> bool {
    read(raw).text.trim_start().starts_with("<session_context>")
}

/// The kind of a `user` record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UserRecord<'a> {
    /// A prompt.
    Prompt { text: Cow<'a, str>, attachments: u32 },
    /// Tool results returned to the model.
    Responses,
    /// Session context from the CLI; not a prompt.
    Context,
    /// The summary that replaces a compacted history.
    Snapshot { text: Cow<'a, str> },
    /// Text the CLI gives the model in the user's name, with the text it displays for it.
    Injected { shown: Cow<'a, str> },
    /// A command of the CLI itself.
    Command { text: Cow<'a, str> },
}

/// Determines the kind of a `user` record. The CLI's own filter (0.61.0) skips texts that start with `/`, `?`,
/// `<session_context>` or `<hook_context>`; but a prompt may start with a path or a comment, so only texts in the form
/// of a command count as one.
pub(super) fn user_record<'a>(content: Option<&'a RawValue>, shown: Option<&'a RawValue>) -> UserRecord<'a> {
    if starts_with_response(content) {
        return UserRecord::Responses;
    }
    let MessageText { text, attachments, responses } = read(content);
    if responses {
        return UserRecord::Responses;
    }
    let start = text.trim_start();
    if start.starts_with("<session_context>") || start.starts_with("<hook_context>") {
        return UserRecord::Context;
    }
    if start.starts_with("<state_snapshot>") {
        return UserRecord::Snapshot { text };
    }
    let shown = shown.map(|s| read(Some(s)).text).filter(|s| !s.is_empty());
    if let Some(shown) = shown {
        // `@file` inserts the files' contents into the prompt and displays the typed text.
        return if start.starts_with("System:") {
            UserRecord::Injected { shown }
        } else {
            UserRecord::Prompt { text: shown, attachments }
        };
    }
    if is_command(start) {
        return UserRecord::Command { text };
    }
    if start.is_empty() && attachments == 0 {
        return UserRecord::Context;
    }
    UserRecord::Prompt { text, attachments }
}

/// Whether a text is `?` or `/name …` on one line; `/usr/bin …` and `// …` are not.
fn is_command(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('/') else {
        return text.trim_end() == "?";
    };
    let name = rest.split(char::is_whitespace).next().unwrap_or_default();
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    !name.is_empty() && name.chars().all(known) && !rest.trim_end().contains('\n')
}

/// The model's thoughts as one text: one line `**subject** description` per thought.
pub(super) fn thinking(raw: &RawValue) -> Option<String> {
    let json = raw.get();
    if json == "[]" {
        return None;
    }
    let thoughts: Vec<Thought<'_>> = serde_json::from_str(json).ok()?;
    let mut all = String::new();
    for thought in &thoughts {
        if !all.is_empty() {
            all.push('\n');
        }
        let subject = thought.subject.and_then(unescaped).unwrap_or_default();
        let description = thought.description.and_then(unescaped).unwrap_or_default();
        if !subject.is_empty() {
            all.push_str("**");
            all.push_str(&subject);
            all.push_str(if description.is_empty() { "**" } else { "** " });
        }
        all.push_str(&description);
    }
    (!all.is_empty()).then_some(all)
}

/// The first line of a text, at most 200 characters.
pub(crate) fn one_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Removes the wrapping the CLI adds to untrusted outputs (0.61.0).
pub(super) fn unwrap_untrusted(text: &str) -> &str {
    text.strip_prefix("<untrusted_context>\n")
        .and_then(|t| t.trim_end().strip_suffix("</untrusted_context>"))
        .map_or(text, |t| t.strip_suffix('\n').unwrap_or(t))
}

/// The class of an error according to its message, and the HTTP status in it.
pub(crate) fn error_class(message: &str) -> (ErrorClass, Option<String>) {
    let code = http_status(message);
    let text = message.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|w| text.contains(w));
    let class = if matches!(code, Some(401 | 403))
        || has(&["api key", "api_key", "unauthenticated", "permission_denied", "unauthorized"])
    {
        ErrorClass::Auth
    } else if has(&["token count", "context window", "maximum number of tokens"]) {
        ErrorClass::Context
    } else if has(&["quota", "usage limit", "billing"]) {
        ErrorClass::Quota
    } else if code == Some(429) || has(&["rate limit", "resource_exhausted", "too many requests"]) {
        ErrorClass::RateLimit
    } else if matches!(code, Some(500..=599)) || has(&["overloaded", "unavailable", "internal error"]) {
        ErrorClass::Provider
    } else if has(&["fetch failed", "econn", "enotfound", "etimedout", "socket", "network", "timed out"]) {
        ErrorClass::Network
    } else {
        ErrorClass::Other
    };
    (class, code.map(|c| c.to_string()))
}

/// The number after `code` or `status` that can be an HTTP status.
fn http_status(message: &str) -> Option<u16> {
    ["code", "status"].iter().find_map(|word| {
        message.match_indices(word).find_map(|(at, _)| {
            let rest = message[at + word.len()..].trim_start_matches(['"', '\\', ':', ' ', '=']);
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            rest.get(..digits).filter(|d| d.len() == 3)?.parse().ok().filter(|n| (400..600).contains(n))
        })
    })
}

/// Whether a text that ends a record without a tool call announces one: its last sentence is a promise (`I will run the
/// tests.`) that does not wait for the user, or it ends in a colon.
pub(super) fn announces(text: &str) -> bool {
    let text = text.trim_end();
    if text.ends_with(':') {
        return true;
    }
    let body = text.trim_end_matches(['.', '!', '…']);
    if body.ends_with('?') {
        return false;
    }
    let ends =
        |(at, mark): (usize, &str)| (mark == "\n" || body[at + 1..].starts_with(char::is_whitespace)).then_some(at + 1);
    let start = body.rmatch_indices(['\n', '.', '!', '?']).find_map(ends).unwrap_or(0);
    let sentence =
        body[start..].trim_start_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase().replace('’', "'");
    let rest = ["okay, ", "ok, ", "now ", "now, ", "next, ", "first, ", "then, "]
        .iter()
        .fold(sentence.as_str(), |s, lead| s.strip_prefix(lead).unwrap_or(s));
    let promised =
        ["i will ", "i'll ", "let me ", "i am going to ", "i'm going to "].iter().find_map(|p| rest.strip_prefix(p));
    promised.is_some_and(|p| {
        !p.starts_with("know")
            && !p.starts_with("wait")
            && !p.starts_with("not ")
            && !p.split(|c: char| !c.is_alphabetic()).any(|w| matches!(w, "you" | "your" | "if" | "when" | "once"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_errors_are_classified_by_message() {
        let check = |message: &str, class, code: Option<&str>| {
            assert_eq!(error_class(message), (class, code.map(str::to_owned)), "{message}")
        };
        check(r#"[API Error: {"error":{"code":401,"message":"bad key"}}]"#, ErrorClass::Auth, Some("401"));
        check(
            r#"[API Error: {"error":{"message":"{\"error\": {\"code\": 400, \"message\": \"API key not valid\"}}"}}]"#,
            ErrorClass::Auth,
            Some("400"),
        );
        check("[API Error: got status: 503 Service Unavailable]", ErrorClass::Provider, Some("503"));
        check(
            r#"[API Error: {"error":{"code":429,"message":"Quota exceeded for quota metric"}}]"#,
            ErrorClass::Quota,
            Some("429"),
        );
        check(
            r#"[API Error: {"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]"#,
            ErrorClass::RateLimit,
            Some("429"),
        );
        check("[API Error: exception TypeError: fetch failed sending request]", ErrorClass::Network, None);
        check("[API Error: The input token count exceeds the maximum]", ErrorClass::Context, None);
        check("[API Error: something]", ErrorClass::Other, None);
    }

    #[test]
    fn texts_announcing_an_action_are_distinguished_from_answers() {
        for promise in [
            "I will run a command.",
            "Done with that.\n\nNow I'll run the tests.",
            "Okay, let me look at `app.py`",
            "Here is the plan:",
            "Next, I’ll check the logs…",
        ] {
            assert!(announces(promise), "{promise}");
        }
        for answer in [
            "",
            "Hello! I am the scripted model.",
            "The command printed a greeting.",
            "Let me know what comes next.",
            "I will wait for your answer.",
            "I will do it once you agree.",
            "Shall I go on?",
            "I will not change it.",
        ] {
            assert!(!announces(answer), "{answer}");
        }
    }
}
