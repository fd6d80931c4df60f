//! Records that the user looked at a session, so that lists no longer show its completed turn as unseen.

use std::path::Path;

use api::{
    findings::{FindingsQuery, StateFilter},
    routes::{AcknowledgeFinding, EmptyBody, GetSession, ListFindings},
};
use client::{Client, Connection};
use events::{FindingKind, RunId, SessionId};

/// Acknowledges that the session's turn is over. Errors are ignored, because nothing depends on this.
pub(super) fn completion(client: &Client, session: SessionId) {
    let query = FindingsQuery {
        state: Some(StateFilter::Open),
        kind: vec![FindingKind::Completion].into(),
        session: Some(session.to_string()),
        ..FindingsQuery::default()
    };
    let Ok(page) = client.get::<ListFindings>("", &query) else { return };
    for finding in page.findings {
        client.send::<AcknowledgeFinding>(finding.id.as_ref(), &EmptyBody {}).ok();
    }
}

/// Like [`completion`], for the session that a run hosts, if a server is running.
pub(super) fn completion_of_run(data: &Path, run: RunId) {
    let Ok(Some(client)) = Client::running(data, Connection::Unix) else { return };
    if let Ok(session) = client.one::<GetSession>(&run.to_string()) {
        completion(&client, session.id);
    }
}
