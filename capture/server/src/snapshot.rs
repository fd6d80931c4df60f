//! The snapshot at the beginning of a stream, encoded once for all clients.

use std::sync::{Arc, OnceLock};

use axum::extract::ws::Utf8Bytes;
use bytes::Bytes;
use events::SessionId;
use live_view::{Epoch, Interest, Json, LiveView, Mark};

/// The state of a stream's sessions.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) as_of: u64,
    /// The JSON of each session.
    pub(crate) sessions: Vec<Json>,
    /// `{"as_of","epoch","sessions","approvals","findings"}`
    json: String,
    message: OnceLock<Utf8Bytes>,
}

/// Pending approvals and open findings, as the JSON of each.
#[derive(Debug, Default)]
pub(crate) struct Open {
    pub(crate) approvals: Vec<Json>,
    pub(crate) findings: Vec<Json>,
}

impl Open {
    pub(crate) fn of(live_view: &LiveView, interest: &Interest) -> Self {
        let jsons = |items: Vec<(SessionId, Json)>| items.into_iter().map(|(_, json)| json).collect();
        Self {
            approvals: jsons(live_view.pending_approvals(interest)),
            findings: jsons(live_view.open_findings(interest)),
        }
    }
}

impl Snapshot {
    pub(crate) fn new(as_of: u64, epoch: &Epoch, sessions: Vec<Json>, open: &Open) -> Self {
        let mut json = format!("{{\"as_of\":{as_of},\"epoch\":{},\"sessions\":", epoch.json());
        Json::concatenate(&mut json, &sessions);
        json.push_str(",\"approvals\":");
        Json::concatenate(&mut json, &open.approvals);
        json.push_str(",\"findings\":");
        Json::concatenate(&mut json, &open.findings);
        json.push('}');
        Self { as_of, sessions, json, message: OnceLock::new() }
    }

    pub(crate) fn sse(&self) -> Bytes {
        format!("event: snapshot\nid: {}\ndata: {}\n\n", self.as_of, self.json).into()
    }

    pub(crate) fn message(&self, epoch: &Epoch) -> Utf8Bytes {
        let (as_of, epoch, json) = (self.as_of, epoch.json(), &self.json);
        self.message
            .get_or_init(|| {
                format!("{{\"type\":\"snapshot\",\"position\":{as_of},\"epoch\":{epoch},\"data\":{json}}}").into()
            })
            .clone()
    }
}

/// A full snapshot, and the state of the live view when it was taken.
#[derive(Debug)]
pub(crate) struct LastSnapshot {
    pub(crate) mark: Mark,
    pub(crate) changes: u64,
    pub(crate) snapshot: Arc<Snapshot>,
}
