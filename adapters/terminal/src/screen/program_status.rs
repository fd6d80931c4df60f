//! The Program Status Protocol (OSC 7501): the status that a program and its workers report.
//!
//! Source: <https://superlogical.com/rex/docs/build/program-status>, revision 0.3 of 2026-10-07. A report is a list of
//! `name=value` pairs separated by colons, in any order: `state=blocked:kind=permission:app=pi`. It replaces the record
//! of its `id`; without an id it describes the program itself, the root. Ids are paths (`wf/1`), and clearing an id
//! also clears all ids below it. The texts `title` and `msg` are the program's own and are not stored.

use std::{collections::BTreeMap, fmt};

/// Maximum number of records per terminal.
const MOST_RECORDS: usize = 256;
/// Maximum length of a stored id, application or kind, in bytes.
const MAX_VALUE: usize = 128;

/// The state in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgramState {
    Idle,
    Working,
    Blocked,
    Done,
    Error,
}

impl ProgramState {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "idle" => Self::Idle,
            "working" => Self::Working,
            "blocked" => Self::Blocked,
            "done" => Self::Done,
            "error" => Self::Error,
            _ => return None,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Working => "working",
            Self::Blocked => "blocked",
            Self::Done => "done",
            Self::Error => "error",
        }
    }

    /// Whether the state ends with the program that reported it.
    const fn needs_program(self) -> bool {
        matches!(self, Self::Working | Self::Blocked)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct StatusRecord {
    state: ProgramState,
    app: Option<String>,
    kind: Option<String>,
}

impl fmt::Display for StatusRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state={}", self.state.name())?;
        for (name, value) in [("app", &self.app), ("kind", &self.kind)] {
            if let Some(value) = value {
                write!(f, ":{name}={value}")?;
            }
        }
        Ok(())
    }
}

/// The records of one terminal by id; the root's id is empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgramStatus {
    records: BTreeMap<String, StatusRecord>,
}

impl ProgramStatus {
    /// Applies a report. An invalid report changes nothing.
    pub(crate) fn report(&mut self, report: &str) {
        let pairs = || report.split(':').filter_map(|pair| pair.split_once('='));
        let value = |name: &str| {
            let value = pairs().find(|(key, _)| *key == name).map(|(_, value)| value);
            let is_word =
                |value: &&str| !value.is_empty() && value.len() <= MAX_VALUE && !value.contains(char::is_control);
            value.filter(is_word).map(str::to_owned)
        };
        // A rejected id must not be treated as the root.
        let is_kept = pairs().all(|(key, id)| key != "id" || id.is_empty() || value("id").is_some());
        let (Some(state), true) = (value("state"), is_kept) else { return };
        let id = value("id").unwrap_or_default();
        if state == "clear" {
            return self.clear(&id);
        }
        let Some(state) = ProgramState::named(&state) else { return };
        if self.records.len() < MOST_RECORDS || self.records.contains_key(&id) {
            self.records.insert(id, StatusRecord { state, app: value("app"), kind: value("kind") });
        }
    }

    fn clear(&mut self, id: &str) {
        let is_below =
            |other: &str| other.strip_prefix(id).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.records.retain(|other, _| !id.is_empty() && !is_below(other));
    }

    /// The program has ended and its shell shows a prompt (OSC 133 A): nothing is working or blocked any more.
    pub(crate) fn program_ended(&mut self) {
        self.records.retain(|_, record| !record.state.needs_program());
    }

    /// Handles a reset of the terminal.
    pub(crate) fn reset(&mut self) {
        self.records.clear();
    }

    /// Whether there are no records.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The program's own status, as `state=STATE:app=NAME:kind=KIND`; empty if there is none. The records of its
    /// workers are ignored: while a worker is busy, the program may be waiting for its user.
    pub(crate) fn root(&self) -> String {
        self.records.get("").map(ToString::to_string).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(reports: &[&str]) -> String {
        let mut status = ProgramStatus::default();
        reports.iter().for_each(|report| status.report(report));
        status.root()
    }

    #[test]
    fn status_reports_accept_any_order_and_ignore_unknown_pairs() {
        assert_eq!(after(&["app=pi:state=working"]), "state=working:app=pi");
        let full = "progress=40:kind=permission:msg=cm0:app=pi:state=blocked:new=1";
        assert_eq!(after(&[full]), "state=blocked:app=pi:kind=permission");
        // Each report replaces its whole record.
        assert_eq!(after(&[full, "state=idle"]), "state=idle");
        for nothing in ["", "?", "state=", "state=asleep", "app=pi", "state", "state=clear:id"] {
            assert_eq!(
                after(&["state=working", nothing]),
                if nothing == "state=clear:id" { "" } else { "state=working" }
            );
        }
    }

    #[test]
    fn worker_reports_do_not_change_the_status_of_the_program() {
        let asks = "state=blocked:app=pi:kind=permission";
        assert_eq!(after(&[asks, "state=working:id=wf/1:app=wf"]), "state=blocked:app=pi:kind=permission");
        assert_eq!(
            after(&[asks, "state=working:id=wf/1", "state=clear:id=wf/1"]),
            "state=blocked:app=pi:kind=permission"
        );
        assert_eq!(after(&["state=working:id=wf/1"]), "");
        assert_eq!(after(&[asks, "state=clear"]), "");
        let long = format!("state=working:id={}", "x".repeat(MAX_VALUE + 1));
        assert_eq!(after(&[asks, &long]), "state=blocked:app=pi:kind=permission");
    }

    #[test]
    fn clearing_a_status_record_clears_its_children() {
        let mut status = ProgramStatus::default();
        for id in ["wf", "wf/1", "wf/1/a", "wf2"] {
            status.report(&format!("state=working:id={id}"));
        }
        status.report("state=clear:id=wf/1");
        assert_eq!(status.records.keys().collect::<Vec<_>>(), ["wf", "wf2"]);
        status.report("state=clear:id=wf");
        assert_eq!(status.records.keys().collect::<Vec<_>>(), ["wf2"]);
    }

    #[test]
    fn only_final_states_remain_after_the_program_ends() {
        for (state, stands) in [("working", false), ("blocked", false), ("done", true), ("error", true), ("idle", true)]
        {
            let mut status = ProgramStatus::default();
            status.report(&format!("state={state}"));
            status.program_ended();
            assert_eq!(!status.root().is_empty(), stands, "{state}");
            status.reset();
            assert_eq!(status.root(), "");
        }
    }

    proptest::proptest! {
        #[test]
        fn status_records_stay_bounded_for_any_reports(reports in proptest::collection::vec("(state=(working|done|clear|x)|id=[a-c/]{0,3}|app=.{0,200}|[:=?]){0,4}", 0..400)) {
            let mut status = ProgramStatus::default();
            for (n, report) in reports.iter().enumerate() {
                status.report(report);
                status.report(&format!("state=working:id={n}"));
            }
            proptest::prop_assert!(status.records.len() <= MOST_RECORDS);
            proptest::prop_assert!(status.root().len() <= 3 * MAX_VALUE);
        }
    }
}
