//! Sends to the browsers that were subscribed on the page. The push services deliver encrypted messages, which contain
//! only the kind of a message, its project, and the page to open.

use std::sync::Arc;

use events::Timestamp;
use serde::Serialize;

use crate::{
    attempt::{AttemptFailure, Channel, Stopper},
    context::{PushPost, PushSink},
    http::HttpClient,
    message::OutgoingMessage,
    notice::Notice,
};

/// Sends each message to every browser.
pub(super) struct WebPushChannel {
    sink: Arc<dyn PushSink>,
    client: HttpClient,
}

/// The content that the page's service worker shows.
#[derive(Debug, Serialize)]
struct PushMessage<'a> {
    title: String,
    body: &'a str,
    /// The path of the page with the details.
    path: String,
    /// A later message with the same tag replaces the earlier one.
    tag: &'a str,
}

impl WebPushChannel {
    pub(super) fn new(sink: Arc<dyn PushSink>, client: HttpClient) -> Self {
        Self { sink, client }
    }

    fn send(&self, post: &PushPost) -> Result<(), AttemptFailure> {
        let headers: Vec<(&str, &str)> = post.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        match self.client.status(&post.endpoint, "application/octet-stream", &headers, &post.body)? {
            (404 | 410, _) => {
                self.sink.gone(&post.endpoint);
                Ok(())
            }
            (_, judged) => judged,
        }
    }
}

impl Channel for WebPushChannel {
    fn deliver(&mut self, message: &OutgoingMessage, now: Timestamp) -> Result<(), AttemptFailure> {
        let body = serde_json::to_vec(&shown(message)).map_err(AttemptFailure::never)?;
        let posts = self.sink.posts(&body, now).map_err(AttemptFailure::never)?;
        let sent: Vec<Result<(), AttemptFailure>> = posts.iter().map(|post| self.send(post)).collect();
        // If one browser was reached, the message is not sent again for another that was not.
        let has_reached = sent.is_empty() || sent.iter().any(Result::is_ok);
        sent.into_iter().find(Result::is_err).filter(|_| !has_reached).unwrap_or(Ok(()))
    }

    fn stopper(&self) -> Option<Stopper> {
        Some(self.client.stopper())
    }
}

/// A message without text from an agent: no command, no title of a session.
fn shown(message: &OutgoingMessage) -> PushMessage<'_> {
    match message.notices.as_slice() {
        [only] => PushMessage {
            title: only.kind.facts().title.into(),
            body: &only.project,
            path: path(only),
            tag: &only.cause,
        },
        [] => PushMessage { title: message.title.clone(), body: "", path: "/".into(), tag: "capture" },
        several => PushMessage {
            title: format!("{} sessions need you", several.len()),
            body: "",
            path: "/".into(),
            tag: "capture",
        },
    }
}

/// The path of the page that a notice links to.
fn path(notice: &Notice) -> String {
    let url = notice.url.as_deref().and_then(|url| url::Url::parse(url).ok());
    match url.as_ref().map(|url| (url.path(), url.fragment())) {
        Some((path, Some(fragment))) => format!("{path}/{fragment}"),
        Some((path, None)) => path.to_owned(),
        None => "/".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loudness, MessageForm, plan::tests::notice};

    fn message(notices: Vec<Notice>) -> serde_json::Value {
        let message = OutgoingMessage::new("n", MessageForm::Single, Loudness::Loud, notices, Timestamp::MIN);
        serde_json::to_value(shown(&message)).unwrap()
    }

    #[test]
    fn a_web_push_message_contains_no_agent_text() {
        let mut one = notice("a", "approval");
        one.url = Some("http://127.0.0.1:4777/approvals#3FFCR6W3".into());
        let expected =
            serde_json::json!({ "title": "Approval", "body": "shop", "path": "/approvals/3FFCR6W3", "tag": "a" });
        assert_eq!(message(vec![one.clone()]), expected);
        one.url = Some("http://127.0.0.1:4777/s/7K3M9QXT".into());
        assert_eq!(message(vec![one.clone()])["path"], "/s/7K3M9QXT");
        one.url = None;
        assert_eq!(message(vec![one.clone()])["path"], "/");
        let several = message(vec![one.clone(), one]);
        assert_eq!((&several["title"], &several["path"]), (&"2 sessions need you".into(), &"/".into()));
    }
}
