//! `capture audit`: verifies, shows and exports the audit record. It reads the store directly, so it works without a
//! running server.

use std::io::Write;

use api::part::{IdPart, PART_HINT};
use client::failure::Failed;
use events::{AuditKind, Timestamp};
use printing::style;
use projections::Approval;
use serde::Serialize;
use serde_json::value::RawValue;
use store::{AuditCheck, AuditHead, HEAD_FILE, ReadFailure, Reader, VerifyError};

use printing::{safe, safe_json};

use crate::show::request::decided;

use super::{context::Context, number::count};

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: AuditCommand,
}

#[derive(Debug, clap::Subcommand)]
enum AuditCommand {
    /// Check the whole audit record for rows that were changed, removed or inserted.
    Verify {
        /// The last row that an earlier `audit verify` printed. A record that was replaced since then does not contain
        /// this row.
        #[arg(long, value_name = "SEQUENCE:HASH")]
        head: Option<String>,
    },
    /// Show the last rows of the audit record.
    Show {
        /// Only rows about this permission request: its id, or at least 3 characters from the start or end of its id.
        approval: Option<String>,
        /// Maximum number of rows.
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = count, allow_negative_numbers = true)]
        limit: usize,
    },
    /// Print all rows of the audit record with their hashes, one JSON object per line.
    Export,
}

/// Number of rows read at a time.
const PAGE: usize = 1_000;

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let database = context.data.join("capture.db");
    if !database.exists() {
        return Err(without_database(context, &arguments.verb).into());
    }
    let reader = Reader::new(database);
    match &arguments.verb {
        AuditCommand::Verify { head } => verify(context, &reader, head.as_deref()),
        AuditCommand::Show { approval, limit } => show(context, &reader, approval.as_deref(), *limit),
        AuditCommand::Export => export(&reader),
    }
}

/// Interprets a missing database: nothing was recorded yet, or the record was removed.
fn without_database(context: &Context, verb: &AuditCommand) -> Failed {
    let kept = match verb {
        AuditCommand::Verify { .. } => store::read_head(&context.data),
        AuditCommand::Show { .. } | AuditCommand::Export => Ok(None),
    };
    match kept {
        Ok(kept) if kept.is_none_or(|head| head.sequence == 0) => {
            Failed::NotFound(format!("no audit record in {} yet", context.data.display()))
        }
        Ok(_) | Err(_) => {
            Failed::Other(format!("the audit record is missing: {HEAD_FILE} exists, but capture.db does not"))
        }
    }
}

fn verify(context: &Context, reader: &Reader, given: Option<&str>) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Verified {
        whole: bool,
        rows: u64,
        head: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        broken: Option<String>,
    }
    let elsewhere = given.map(head_of).transpose()?;
    let AuditCheck { rows, head, broken: wrong } = reader.verify_audit(elsewhere).map_err(|e| unverified(&e))?;
    let head = format!("{}:{}", head.sequence, head.hash);
    let whole = wrong.is_none();
    let printed = if context.json {
        context.print_json(&Verified { whole, rows, head, broken: wrong.clone() })
    } else if whole {
        let rows = if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") };
        super::context::print_line(&format!("the audit record is intact: {rows}, last row {head}"))
    } else {
        Ok(())
    };
    // The exit code reports a broken record even if the reader of the output has gone.
    wrong.map_or(printed, |wrong| Err(broken(&wrong).into()))
}

fn broken(wrong: &str) -> Failed {
    Failed::Other(format!("the audit record was altered: {wrong}"))
}

/// The error for a record that could not be read completely, and so is neither intact nor broken.
fn unverified(error: &VerifyError) -> Failed {
    let hint = match error {
        VerifyError::Store(error) => match error.failure() {
            ReadFailure::Locked => "another program has locked the database; try again",
            ReadFailure::Io => "check that the data directory exists and is readable",
            ReadFailure::Damaged => "the database file is damaged; restore it from a backup",
            ReadFailure::Full | ReadFailure::ReadOnly | ReadFailure::Other => {
                "capture cannot tell whether the record is intact"
            }
        },
        VerifyError::Head(_) => "check that the file is readable",
    };
    Failed::Unreadable(format!("cannot verify the audit record: {error}; {hint}"))
}

fn head_of(text: &str) -> Result<AuditHead, Failed> {
    let head = text
        .split_once(':')
        .and_then(|(sequence, hash)| Some(AuditHead { sequence: sequence.parse().ok()?, hash: hash.parse().ok()? }));
    let wrong = || format!("--head: expected SEQUENCE:HASH with a hash of 64 hex digits, got `{}`", safe(text));
    head.ok_or_else(|| Failed::Usage(wrong()))
}

/// The fields of a row that are shown to users.
#[derive(serde::Deserialize)]
struct AuditRow {
    at: Timestamp,
    what: String,
    approval: Approval,
    #[serde(default)]
    evidence: serde_json::Value,
}

fn show(context: &Context, reader: &Reader, approval: Option<&str>, limit: usize) -> anyhow::Result<()> {
    let wanted = approval.map(IdPart::new);
    let mut rows = std::collections::VecDeque::new();
    let mut after = 0;
    loop {
        let page = reader.audit(after, PAGE)?;
        let Some(last) = page.last() else { break };
        after = last.sequence;
        for entry in page {
            let row: Option<AuditRow> = serde_json::from_str(&entry.body).ok();
            let fits = |part: &IdPart| row.as_ref().is_some_and(|row| part.fits(row.approval.id.as_str()));
            if wanted.as_ref().is_none_or(|part| part.as_ref().is_some_and(fits)) {
                rows.push_back((entry, row));
                if rows.len() > limit {
                    rows.pop_front();
                }
            }
        }
    }
    if let Some(approval) = approval.filter(|_| rows.is_empty()) {
        return Err(Failed::NotFound(format!(
            "the audit record has no permission request `{}`; `capture audit show` lists the last rows, and {PART_HINT}",
            safe(approval)
        ))
        .into());
    }
    if context.json {
        #[derive(Serialize)]
        struct AuditRows<'a> {
            rows: Vec<Exported<'a>>,
        }
        let rows = rows.iter().map(|(entry, _)| exported(entry)).collect::<Result<_, _>>()?;
        return context.print_json(&AuditRows { rows });
    }
    for (entry, row) in &rows {
        let line = match row {
            Some(row) => told(row),
            None => emptied(&entry.body),
        };
        super::context::print_line(&format!("{:>6}  {line}", entry.sequence))?;
    }
    if rows.is_empty() {
        super::context::print_line("no decisions yet")?;
    }
    Ok(())
}

/// A row as text: the time, the request, and what happened.
fn told(AuditRow { at, what, approval, evidence }: &AuditRow) -> String {
    let subject = approval.subject.as_deref().or(approval.tool.as_deref()).unwrap_or("?");
    // A newer program may have written a kind that this one does not know.
    let Ok(kind) = what.parse::<AuditKind>() else {
        return format!("{}  {}  {}  {}", style::local(*at), style::short(&approval.id), safe(what), safe(subject));
    };
    let words = match kind {
        AuditKind::Asked => "asked you".to_owned(),
        AuditKind::Decided | AuditKind::Closed => {
            decided(approval.state, approval.by, approval.device.as_deref(), approval.rule.as_deref())
        }
        AuditKind::Attempted => "pressing a key".to_owned(),
        AuditKind::Unclear => "keys were pressed, but the dialog stayed open".to_owned(),
        AuditKind::Refused => match evidence["why"].as_str() {
            Some(why) => format!("the dialog was not answered: {}", safe(why)),
            None => "the dialog was not answered".to_owned(),
        },
        AuditKind::Forbidden => "a rule denied the call before the agent asked".to_owned(),
        AuditKind::Delivered => "the agent has the answer".to_owned(),
        AuditKind::Undelivered => "the agent did not get the answer".to_owned(),
        AuditKind::Outcome => match approval.outcome {
            Some(outcome) => format!("the call ended: {outcome}"),
            None => "the call ended".to_owned(),
        },
        AuditKind::Granted => "granted by you".to_owned(),
        AuditKind::Forgot => "rows were emptied".to_owned(),
    };
    let (at, id) = (style::local(*at), style::short(&approval.id));
    format!("{at}  {id}  {words}  {}", safe(subject))
}

/// A row that is not about a request: the row of a forgotten session, or the row that lists such rows.
fn emptied(body: &str) -> String {
    #[derive(serde::Deserialize)]
    struct OtherRow {
        at: Option<Timestamp>,
        what: Option<String>,
        #[serde(default)]
        forgotten: bool,
        #[serde(default)]
        rows: Vec<serde::de::IgnoredAny>,
    }
    let Ok(row) = serde_json::from_str::<OtherRow>(body) else { return safe(body) };
    let words = match (row.what.as_deref(), row.forgotten) {
        (Some(what), true) => format!("{} (its session was forgotten)", safe(what)),
        (Some(what), false) if what == AuditKind::Forgot.as_str() => match row.rows.len() {
            1 => "1 row was emptied, because its session was forgotten".to_owned(),
            rows => format!("{rows} rows were emptied, because their sessions were forgotten"),
        },
        _ => return safe(body),
    };
    // The epoch stands for a time that was not recorded.
    let at = row.at.filter(|at| at.as_millisecond() > 0).map(|at| format!("{}  ", style::local(at)));
    format!("{}{words}", at.unwrap_or_default())
}

#[derive(Serialize)]
struct Exported<'a> {
    sequence: u64,
    hash: String,
    row: &'a RawValue,
}

fn exported(entry: &store::AuditEntry) -> Result<Exported<'_>, serde_json::Error> {
    Ok(Exported { sequence: entry.sequence, hash: entry.hash.to_string(), row: serde_json::from_str(&entry.body)? })
}

fn export(reader: &Reader) -> anyhow::Result<()> {
    let mut out = printing::stdout();
    let mut after = 0;
    loop {
        let page = reader.audit(after, PAGE)?;
        let Some(last) = page.last() else { return Ok(out.flush()?) };
        after = last.sequence;
        for entry in &page {
            let line = serde_json::to_string(&exported(entry)?)?;
            // In a pipe, print exactly the bytes that were hashed.
            let line = if out.escapes() { safe_json(&line) } else { line.into() };
            writeln!(out, "{line}")?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_rows_without_a_request_are_described_in_plain_text() {
        for (body, words) in [
            (
                r#"{"at":"1970-01-01T00:00:00.000Z","what":"forgot","sessions":1,"rows":[[7,"00"],[8,"00"]]}"#,
                "2 rows were emptied, because their sessions were forgotten",
            ),
            (r#"{"at":null,"what":"decided","forgotten":true}"#, "decided (its session was forgotten)"),
            (r#"{"what":"forgot","rows":[[7,"00"]]}"#, "1 row was emptied, because its session was forgotten"),
            ("not\u{7}json", r"not\u{7}json"),
            (r#"{"more":1}"#, r#"{"more":1}"#),
        ] {
            assert_eq!(emptied(body), words);
        }
        let dated = emptied(r#"{"at":"2026-11-29T20:55:51.288Z","what":"asked","forgotten":true}"#);
        assert!(dated.starts_with("2026-11-") && dated.ends_with("asked (its session was forgotten)"), "{dated}");
    }
}
