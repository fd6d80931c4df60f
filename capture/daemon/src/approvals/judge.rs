//! Applies the user's policy to an approval.

use std::path::{Path, PathBuf};

use approver::{PermissionRequest, RequestKind, Shell, Verdict, rule_for};
use events::{ApprovalKind, Source};
use projections::{Approval, Session};

use hooks::delivery::{
    answer::{accepts_rewrite, names_directory},
    permission::is_only_a_command,
};
use protocols as protocol;

use api::approvals::{PolicyDecision, PolicyView};
use policy_files::{OnDisk, in_force, workspace_of};

/// Decides by rules. Whatever is uncertain is left to a person.
pub trait Judge: Send + Sync {
    /// Judges a request of a session by the rules.
    fn judge(&self, approval: &Approval, session: Option<&Session>) -> Judged;

    /// The rule that would allow just this again, to be reviewed and saved by the user.
    fn rule_for(&self, approval: &Approval, session: Option<&Session>) -> Option<String>;

    /// Whether this rule could be added to the user's policy.
    ///
    /// # Errors
    /// Why it could not.
    fn check_rule(&self, rule: &str) -> Result<(), String>;

    /// Adds a rule to the user's policy.
    ///
    /// # Errors
    /// Why it was not added.
    fn save_rule(&self, rule: &str) -> Result<(), String>;
}

/// The judgement of the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Allowed or denied; `None` when a person is to be asked.
    pub allow: Option<bool>,
    /// The command to run in place of the one that was asked for.
    pub rewrite: Option<String>,
    /// The rule.
    pub rule: String,
    /// Why, in one sentence.
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

/// The policy on the disk. The file is read for each request: what the user saved is in force.
#[derive(Debug)]
pub struct OnPolicy {
    /// Where the user's rules are.
    pub file: PathBuf,
    /// What has to be looked up, with the PATH of the start.
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
                "the agent asks for more than to run the command; check the whole \
                request",
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
        rule_for(&request(approval, session).filter(|_| approval.exact)?)
    }

    fn check_rule(&self, rule: &str) -> Result<(), String> {
        policy_files::appended(&self.file, rule).map(drop).map_err(|error| error.to_string())
    }

    fn save_rule(&self, rule: &str) -> Result<(), String> {
        policy_files::append(&self.file, rule).map(drop).map_err(|error| error.to_string())
    }
}

/// The request as the policy understands it; `None` if it is not known.
fn request(approval: &Approval, session: Option<&Session>) -> Option<PermissionRequest> {
    // What is too long to be kept may still be denied; nothing is allowed that is not exact.
    let cwd = PathBuf::from(approval.cwd.as_deref().filter(|_| approval.delivery.is_some())?);
    // The workspace is where the session began; nothing that came later moves it.
    let began = Path::new(session?.began_in.as_deref()?);
    if !cwd.is_absolute() || !began.is_absolute() {
        return None;
    }
    Some(PermissionRequest {
        agent: approval.provider,
        kind: kind_of(approval.kind?),
        tool: approval.tool.clone(),
        // Of an excerpt nothing is allowed, since the request is not exact; what it shows may be denied.
        command: approval.command.clone().or_else(|| approval.excerpt.as_ref().map(|excerpt| excerpt.joined())),
        workspace: workspace_of(began),
        cwd,
        // Where a protocol does not tell it, the request is not exact.
        cwd_is_certain: approval.source == Source::Protocol || names_directory(approval.provider),
        paths: approval.paths.iter().map(PathBuf::from).collect(),
        url: approval.url.clone(),
        glob: approval.input.as_deref().and_then(glob_of),
        labels: session.map(|session| session.labels.clone()).unwrap_or_default(),
        takes_rewrite: accepts_rewrite(approval.provider) || protocol::is_own(approval.provider),
        // Of other agents it is the user's login shell, which nobody tells.
        shell: if protocol::is_own(approval.provider) { Shell::Bash } else { Shell::Unknown },
    })
}

/// The pattern of a search, as capture's own tool takes it.
fn glob_of(input: &str) -> Option<String> {
    let input: serde_json::Value = serde_json::from_str(input).ok()?;
    input["glob"].as_str().map(str::to_owned)
}

/// Whether the request is only for the command.
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
