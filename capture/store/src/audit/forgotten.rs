//! Rows of the audit record whose sessions were forgotten. Their text is removed but their hashes stay, so the chain
//! remains valid; a later row lists each of them with its hash, so that no other row can be emptied unnoticed.

use std::collections::{BTreeMap, HashSet};

use events::{AuditKind, SessionId};
use rusqlite::{Connection, params, types::ValueRef};
use serde::{Deserialize, Serialize};

use super::{AuditHash, AuditHead};

/// The remaining content of an emptied row.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmptiedRow {
    at: serde_json::Value,
    what: String,
    forgotten: bool,
}

/// The row that lists emptied rows.
#[derive(Deserialize)]
struct ForgotRow {
    what: String,
    rows: Vec<(u64, AuditHash)>,
}

/// Empties the rows about these sessions, within a transaction; returns their numbers and hashes.
pub(crate) fn forget_rows(connection: &Connection, sessions: &[SessionId]) -> rusqlite::Result<Vec<(u64, AuditHash)>> {
    let sessions: HashSet<String> = sessions.iter().map(ToString::to_string).collect();
    let mut found = Vec::new();
    let mut statement = connection.prepare_cached(
        "SELECT sequence, hash, json_extract(body, '$.approval.session_id'), json_extract(body, '$.at'), \
         json_extract(body, '$.what') FROM audit WHERE json_valid(body)",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let Ok(ValueRef::Text(session)) = row.get_ref(2) else { continue };
        if !sessions.contains(&*String::from_utf8_lossy(session)) {
            continue;
        }
        let at = match row.get_ref(3)? {
            ValueRef::Text(at) => String::from_utf8_lossy(at).into_owned().into(),
            ValueRef::Integer(at) => at.into(),
            ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => serde_json::Value::Null,
        };
        let emptied = EmptiedRow { at, what: row.get(4).unwrap_or_default(), forgotten: true };
        found.push((
            row.get::<_, i64>(0)?,
            AuditHash(row.get(1)?),
            serde_json::to_string(&emptied).unwrap_or_default(),
        ));
    }
    let mut update = connection.prepare_cached("UPDATE audit SET body = ?2 WHERE sequence = ?1")?;
    for (sequence, _, body) in &found {
        update.execute(params![sequence, body])?;
    }
    Ok(found.into_iter().map(|(sequence, hash, _)| (sequence.max(0) as u64, hash)).collect())
}

/// The emptied rows not yet listed by a later row, while the record is verified.
#[derive(Debug, Default)]
pub(super) struct ForgottenRows {
    /// By number: the hash of each row, and the row before it.
    open: BTreeMap<u64, (AuditHash, AuditHead)>,
}

impl ForgottenRows {
    /// The hash of an emptied row; `None` for any other row.
    pub(super) fn passes(
        &mut self,
        before: AuditHead,
        sequence: u64,
        body: ValueRef<'_>,
        hash: ValueRef<'_>,
    ) -> Option<AuditHash> {
        let (ValueRef::Text(body), ValueRef::Blob(hash)) = (body, hash) else { return None };
        let row: EmptiedRow = serde_json::from_slice(body).ok()?;
        let hash = AuditHash(hash.try_into().ok()?);
        row.forgotten.then(|| self.open.insert(sequence, (hash, before)));
        row.forgotten.then_some(hash)
    }

    /// Reads an intact row, which may list earlier emptied rows.
    pub(super) fn read(&mut self, body: ValueRef<'_>) {
        if self.open.is_empty() {
            return;
        }
        let ValueRef::Text(body) = body else { return };
        let Ok(row) = serde_json::from_slice::<ForgotRow>(body) else { return };
        if row.what != AuditKind::Forgot.as_str() {
            return;
        }
        for (sequence, hash) in row.rows {
            if self.open.get(&sequence).is_some_and(|(open, _)| *open == hash) {
                self.open.remove(&sequence);
            }
        }
    }

    /// The row before the first emptied row that no later row lists.
    pub(super) fn unexplained(&self) -> Option<AuditHead> {
        self.open.values().next().map(|(_, before)| *before)
    }
}

#[cfg(test)]
mod tests {
    use crate::Writer;
    use events::{Provider, SessionId, Timestamp};

    #[test]
    fn the_hash_chain_accepts_only_emptied_rows_listed_as_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(dir.path()).unwrap();
        let session = |name: &str| SessionId::mint(Timestamp::from_millisecond(1), Provider::Claude, name);
        let row = |name: &str, text: &str| {
            format!(
                r#"{{"at":"t","what":"decided","approval":{{"session_id":"{}","subject":"{text}"}}}}"#,
                session(name)
            )
        };
        for (name, text) in [("a", "one"), ("b", "planted"), ("a", "two"), ("b", "planted too")] {
            writer.audit(&row(name, text)).unwrap();
        }
        writer.begin().unwrap();
        let head = writer.forget_decisions(&[session("b")], Timestamp::from_millisecond(2)).unwrap();
        writer.commit().unwrap();
        writer.audit(&row("a", "three")).unwrap();
        let reader = writer.reader();
        let check = reader.check_audit(&[head]).unwrap();
        assert_eq!((check.rows, check.broken), (6, None));
        let bodies: Vec<String> = reader.audit(0, 9).unwrap().into_iter().map(|row| row.body).collect();
        assert!(bodies.iter().all(|body| !body.contains("planted")), "{bodies:?}");
        assert!(bodies[4].contains("forgot"), "{bodies:?}");
        // An emptied row that is not listed counts as changed.
        writer
            .connection()
            .execute("UPDATE audit SET body = (SELECT body FROM audit WHERE sequence = 2) WHERE sequence = 3", [])
            .unwrap();
        assert_eq!(reader.check_audit(&[]).unwrap().broken.as_deref(), Some("row 3 was changed"));
        writer.connection().execute("UPDATE audit SET body = ?1 WHERE sequence = 3", [row("a", "two")]).unwrap();
        assert_eq!(reader.check_audit(&[]).unwrap().broken, None);
        writer.connection().execute("UPDATE audit SET body = ?1 WHERE sequence = 2", [row("b", "other")]).unwrap();
        assert_eq!(reader.check_audit(&[]).unwrap().broken.as_deref(), Some("row 2 was changed"));
    }
}
