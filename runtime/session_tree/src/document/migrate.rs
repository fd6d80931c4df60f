//! Migrates versions 1 and 2 to 3, in memory.
//!
//! Source: `migrateSessionEntries` of pi 0.87.1. Only the version in the header decides. pi generates random ids for
//! version 1 and rewrites the file at once; here ids are derived from the position in the file, so that reading the
//! file twice gives the same ids and reading never needs to write.

use crate::json::{Json, Object};

/// The result of a migration.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct MigrationResult {
    pub(super) changed: bool,
    pub(super) minted_ids: bool,
}

/// Migrates header and entries. `positions` is the position of each entry among all objects of the file, in ascending
/// order; the header is 0. Old compactions refer to the first kept entry by this position.
pub(super) fn migrate(
    version: Option<&Json>,
    header: &mut Object,
    entries: &mut [Object],
    positions: &[usize],
) -> MigrationResult {
    let version = match version {
        None | Some(Json::Null) => 1.0,
        Some(version) => version.to_number(),
    };
    // A version that is not a number compares as not below any.
    if version >= 3.0 || version.is_nan() {
        return MigrationResult::default();
    }
    let minted_ids = version < 2.0;
    if minted_ids {
        header.set("version", 2_u64);
        chain(entries, positions);
    }
    header.set("version", 3_u64);
    rename_hook_messages(entries);
    MigrationResult { changed: true, minted_ids }
}

/// Version 1 has no ids: entries follow each other in the order of the lines.
fn chain(entries: &mut [Object], positions: &[usize]) {
    let mut previous = Json::Null;
    for index in 0..entries.len() {
        let id = Json::String(format!("{:08x}", index + 1));
        entries[index].set("id", id.clone());
        entries[index].set("parentId", std::mem::replace(&mut previous, id));
        if entries[index].text("type") != Some("compaction") {
            continue;
        }
        let Some(first_kept) = entries[index].get("firstKeptEntryIndex").and_then(Json::as_f64) else { continue };
        // The exact position, like an array index.
        #[expect(clippy::cast_precision_loss, reason = "no file has 2^52 lines")]
        let target = positions.binary_search_by(|position| (*position as f64).total_cmp(&first_kept));
        if let Ok(target) = target {
            // A later entry still has the id it will lose, if any, so it will not be found by it.
            match entries[target].get("id").cloned() {
                Some(id) => entries[index].set("firstKeptEntryId", id),
                None => drop(entries[index].remove("firstKeptEntryId")),
            }
        }
        entries[index].remove("firstKeptEntryIndex");
    }
}

/// Version 2 names the role of an extension's message `hookMessage`.
fn rename_hook_messages(entries: &mut [Object]) {
    for entry in entries.iter_mut().filter(|e| e.text("type") == Some("message")) {
        let Some(Json::Object(message)) = entry.get("message") else { continue };
        if message.text("role") == Some("hookMessage") {
            let message = message.clone().with("role", "custom");
            entry.set("message", message);
        }
    }
}
