//! Notes that a person looked at a session: that its turn is over has been seen, and the lists stop telling.

use std::path::Path;

use api::{
    findings::{FindingsQuery, StateFilter},
    routes::{AcknowledgeFinding, EmptyBody, GetSession, ListFindings},
};
use client::{Client, Connection};
use events::{FindingKind, RunId, SessionId};

/// Acknowledges that the session's turn is over. Nothing depends on it: a server that does not answer is passed over.
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

/// The same for the session that a run hosts, if a server runs.
pub(super) fn completion_of_run(data: &Path, run: RunId) {
    let Ok(Some(client)) = Client::running(data, Connection::Unix) else { return };
    if let Ok(session) = client.one::<GetSession>(&run.to_string()) {
        completion(&client, session.id);
    }
}
