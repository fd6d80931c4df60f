//! Ingest's metrics.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use events::{ApprovalState, Finding, FindingKind, FindingState};
use live_view::metrics::encode_metric;
use projections::Approval;
use prometheus_client::{
    collector::Collector,
    encoding::DescriptorEncoder,
    metrics::{
        counter::{ConstCounter, Counter},
        family::Family,
    },
    registry::Registry,
};

/// One label and its value.
type CounterLabel = [(&'static str, &'static str); 1];

/// Counters of committed work since the start. Clones share the values.
#[derive(Debug, Clone)]
pub struct Counters {
    /// Events committed.
    pub events: Counter,
    /// Records that were already known.
    pub repeated: Counter,
    /// Commits.
    pub commits: Counter,
    /// Commits that failed.
    pub commits_failed: Counter,
    approvals_requested: Counter,
    approvals_closed: Family<CounterLabel, Counter>,
    approval_wait: ApprovalWait,
    findings: Family<CounterLabel, Counter>,
}

/// How long closed approvals waited, ms.
#[derive(Debug, Clone, Default)]
struct ApprovalWait(Arc<AtomicU64>);

impl Default for Counters {
    fn default() -> Self {
        let closed = ApprovalState::ALL.iter().filter(|state| **state != ApprovalState::Pending);
        Self {
            events: Counter::default(),
            repeated: Counter::default(),
            commits: Counter::default(),
            commits_failed: Counter::default(),
            approvals_requested: Counter::default(),
            approvals_closed: zeros("state", closed.map(|state| state.as_str())),
            approval_wait: ApprovalWait::default(),
            findings: zeros("kind", FindingKind::ALL.iter().map(|kind| kind.as_str())),
        }
    }
}

/// A counter for each value of a label, so that all of them are exported from the start, with value 0.
fn zeros(label: &'static str, values: impl Iterator<Item = &'static str>) -> Family<CounterLabel, Counter> {
    let family = Family::default();
    for value in values {
        drop(family.get_or_create(&[(label, value)]));
    }
    family
}

impl Counters {
    /// Registers the counters as metrics.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("capture_ingest_events", "Events committed since the start", self.events.clone());
        registry.register("capture_ingest_repeated", "Records that were already known", self.repeated.clone());
        registry.register("capture_ingest_commits", "Commits", self.commits.clone());
        registry.register("capture_ingest_commits_failed", "Commits that failed", self.commits_failed.clone());
        let requested = self.approvals_requested.clone();
        registry.register("capture_approvals_asked", "Permission requests since the start", requested);
        let closed = self.approvals_closed.clone();
        registry.register("capture_approvals_closed", "Approvals closed since the start, by outcome", closed);
        let findings = self.findings.clone();
        registry.register("capture_findings", "Findings that were raised since the start, by kind", findings);
        registry.register_collector(Box::new(self.approval_wait.clone()));
    }

    /// Counts an approval that was opened or closed.
    pub(super) fn approval(&self, approval: &Approval) {
        if approval.state == ApprovalState::Pending {
            self.approvals_requested.inc();
        } else if approval.outcome.is_none() || approval.by.is_none() {
            self.approvals_closed.get_or_create(&[("state", approval.state.as_str())]).inc();
            self.approval_wait.0.fetch_add(approval.waited_ms.unwrap_or(0), Ordering::Relaxed);
        }
    }

    /// Counts a finding that changed.
    pub(super) fn finding(&self, finding: &Finding) {
        if finding.state == FindingState::Open && finding.count <= 1 {
            self.findings.get_or_create(&[("kind", finding.kind.as_str())]).inc();
        }
    }
}

impl Collector for ApprovalWait {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // Summed in integer milliseconds: summing seconds as floating point would accumulate rounding errors.
        let seconds = self.0.load(Ordering::Relaxed) as f64 / 1000.0;
        let help = "Time from opening an approval to closing it.";
        encode_metric(&mut encoder, "capture_approval_wait_seconds", help, &ConstCounter::new(seconds))
    }
}
