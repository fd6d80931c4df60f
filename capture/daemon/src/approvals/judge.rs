//! Applies the user's policy to an approval.

use std::path::{Path, PathBuf};

use approver::{PermissionRequest, RequestKind, Shell, Verdict};
use events::{ApprovalKind, Source};
use projections::{Approval, Session};

use hooks::delivery::{
    answer::{accepts_rewrite, names_directory},
    permission::is_only_a_command,
};
use protocols as protocol;

use api::approvals::{PolicyDecision, PolicyView};
use policy_files::{OnDisk, in_force, workspace_of};

/// Decides requests by rules. Anything uncertain is left to the user.
pub trait Judge: Send + Sync {
    /// Judges a request of a session.
    fn judge(&self, approval: &Approval, session: Option<&Session>) -> Judged;

    /// The rule that would allow exactly this request again, for the user to review and save.
    fn rule_for(&self, approval: &Approval, session: Option<&Session>) -> Option<String>;

    /// Checks whether this rule could be added to the user's policy.
    ///
    /// # Errors
    /// The reason it could not.
    fn check_rule(&self, rule: &str) -> Result<(), String>;

    /// Adds a rule to the user's policy.
    ///
    /// # Errors
    /// The reason it was not added.
    fn save_rule(&self, rule: &str) -> Result<(), String>;
}

/// The result of applying the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Allowed or denied; `None` if the user should be asked.
    pub allow: Option<bool>,
    /// The command to run instead of the requested one.
    pub rewrite: Option<String>,
    /// The rule.
    pub rule: String,
    /// The reason, in one sentence.
    pub reason: String,
}

impl Judged {
    fn ask(rule: &str, reason: impl Into<String>) -> Self {
        Self { allow: None, rewrite: None, rule: rule.to_owned(), reason: reason.into() }
    }
}

impl From<&Judged> for PolicyView {
    fn from(judged: &Judged) -> Self {
        let decision = match judged.allow {
            Some(true) => PolicyDecision::Allow,
            Some(false) => PolicyDecision::Deny,
            None => PolicyDecision::Ask,
        };
        Self { decision, rule: judged.rule.clone(), reason: judged.reason.clone() }
    }
}

/// The policy on disk. The file is read for each request, so a saved change applies at once.
#[derive(Debug)]
pub struct OnPolicy {
    /// Path of the user's rules.
    pub file: PathBuf,
    /// Looks up facts on disk, with the PATH from the server's start.
    pub facts: OnDisk,
}

impl Judge for OnPolicy {
    fn judge(&self, approval: &Approval, session: Option<&Session>) -> Judged {
        let Some(request) = request(approval, session) else {
            return Judged::ask(
                "incomplete",
                "capture does not know the whole request, or the directory in which the session began",
            );
        };
        let in_force = in_force(&self.file, &request.workspace);
        if let Some(refused) = in_force.refused {
            tracing::warn!(%refused, "the policy is not in force; every request is left to a person");
            return Judged::ask("refused", refused.to_string());
        }
        let decision = match &approval.search_path {
            Some(path) => in_force.policy.decide(&request, &self.facts.also_on(path)),
            None => in_force.policy.decide(&request, &self.facts),
        };
        if decision.verdict == Verdict::Allow
            && approval.kind == Some(ApprovalKind::Command)
            && !is_only_for_its_command(approval)
        {
            return Judged::ask(
                "incomplete",
                "the agent asks for more than permission to run the command; check the whole request",
            );
        }
        Judged {
            allow: match decision.verdict {
                Verdict::Allow => Some(true),
                Verdict::Deny => Some(false),
                Verdict::Ask => None,
            },
            rewrite: decision.rewrite,
            rule: decision.rule,
            reason: decision.reason,
        }
    }

    fn rule_for(&self, approval: &Approval, session: Option<&Session>) -> Option<String> {
        let request = request(approval, session).filter(|_| approval.exact)?;
        match &approval.search_path {
            Some(path) => policy_files::rule_for(&self.file, &request, &self.facts.also_on(path)),
            None => policy_files::rule_for(&self.file, &request, &self.facts),
        }
    }

    fn check_rule(&self, rule: &str) -> Result<(), String> {
        policy_files::appended(&self.file, rule).map(drop).map_err(|error| error.to_string())
    }

    fn save_rule(&self, rule: &str) -> Result<(), String> {
        policy_files::append(&self.file, rule).map(drop).map_err(|error| error.to_string())
    }
}

/// The request in the policy's terms; `None` if it is not completely known.
fn request(approval: &Approval, session: Option<&Session>) -> Option<PermissionRequest> {
    // A request that is too long to store may still be denied; only exact requests can be allowed.
    let cwd = PathBuf::from(approval.cwd.as_deref().filter(|_| approval.delivery.is_some())?);
    // The workspace is where the session began; later events do not change it.
    let began = Path::new(session?.began_in.as_deref()?);
    if !cwd.is_absolute() || !began.is_absolute() {
        return None;
    }
    Some(PermissionRequest {
        agent: approval.provider,
        kind: kind_of(approval.kind?),
        tool: approval.tool.clone(),
        // An excerpt never leads to an allowance, because the request is not exact, but its visible part may be denied.
        command: approval.command.clone().or_else(|| approval.excerpt.as_ref().map(|excerpt| excerpt.joined())),
        workspace: workspace_of(began),
        cwd,
        // If a protocol does not report the directory, the request is not exact.
        cwd_is_certain: approval.source == Source::Protocol || names_directory(approval.provider),
        paths: approval.paths.iter().map(PathBuf::from).collect(),
        url: approval.url.clone(),
        glob: approval.input.as_deref().and_then(glob_of),
        labels: session.map(|session| session.labels.clone()).unwrap_or_default(),
        takes_rewrite: accepts_rewrite(approval.provider) || protocol::is_own(approval.provider),
        // Other agents use the user's login shell, which they do not report.
        shell: if protocol::is_own(approval.provider) { Shell::Bash } else { Shell::Unknown },
    })
}

/// The glob pattern of a search by capture's own tool.
fn glob_of(input: &str) -> Option<String> {
    let input: serde_json::Value = serde_json::from_str(input).ok()?;
    input["glob"].as_str().map(str::to_owned)
}

/// Whether the request is only for running its command.
pub(crate) fn is_only_for_its_command(approval: &Approval) -> bool {
    if approval.source == Source::Protocol {
        return approval.input.as_deref().is_some_and(|input| protocol::is_plain(approval.provider, input));
    }
    approval.input.as_deref().is_some_and(|input| is_only_a_command(approval.provider, input))
}

const fn kind_of(kind: ApprovalKind) -> RequestKind {
    match kind {
        ApprovalKind::Command => RequestKind::Command,
        ApprovalKind::Edit => RequestKind::Edit,
        ApprovalKind::Plan => RequestKind::Plan,
        ApprovalKind::Mcp => RequestKind::Mcp,
        ApprovalKind::Fetch => RequestKind::Fetch,
        ApprovalKind::Trust => RequestKind::Trust,
        ApprovalKind::Write => RequestKind::Write,
        ApprovalKind::Question => RequestKind::Question,
        ApprovalKind::Read => RequestKind::Read,
    }
}
