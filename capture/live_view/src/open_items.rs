//! Pending approvals and open findings, which a snapshot contains in addition to the sessions.

use std::{collections::BTreeMap, sync::Mutex};

use events::SessionId;

use crate::{Interest, Json, locks::lock};

/// The items of one kind, by session and id.
type Items = BTreeMap<(SessionId, String), Json>;

#[derive(Debug, Default)]
pub(crate) struct OpenItems {
    approvals: Mutex<Items>,
    findings: Mutex<Items>,
}

/// The current state of an approval or a finding.
#[derive(Debug, Clone)]
pub struct OpenItem {
    /// The session it belongs to.
    pub session: SessionId,
    /// Its id.
    pub id: String,
    /// The item; `None` if it is closed.
    pub json: Option<Json>,
}

fn put(items: &Mutex<Items>, OpenItem { session, id, json }: OpenItem) {
    let mut items = lock(items);
    match json {
        Some(json) => drop(items.insert((session, id), json)),
        None => drop(items.remove(&(session, id))),
    }
}

fn of(items: &Mutex<Items>, interest: &Interest) -> Vec<(SessionId, Json)> {
    let items = lock(items);
    match interest.sessions() {
        None => items.iter().map(|((session, _), json)| (*session, json.clone())).collect(),
        Some(ids) => {
            let mut found = Vec::new();
            for id in ids {
                let of_session = items.range((*id, String::new())..).take_while(|((session, _), _)| session == id);
                found.extend(of_session.map(|((session, _), json)| (*session, json.clone())));
            }
            found
        }
    }
}

impl OpenItems {
    pub(crate) fn put_approval(&self, approval: OpenItem) {
        put(&self.approvals, approval);
    }

    pub(crate) fn put_finding(&self, finding: OpenItem) {
        put(&self.findings, finding);
    }

    pub(crate) fn remove(&self, session: SessionId) {
        for items in [&self.approvals, &self.findings] {
            lock(items).retain(|(of, _), _| *of != session);
        }
    }

    pub(crate) fn approvals(&self, interest: &Interest) -> Vec<(SessionId, Json)> {
        of(&self.approvals, interest)
    }

    pub(crate) fn findings(&self, interest: &Interest) -> Vec<(SessionId, Json)> {
        of(&self.findings, interest)
    }
}
