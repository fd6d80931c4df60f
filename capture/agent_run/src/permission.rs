//! What is decided about a call in process, without asking anybody.
//!
//! Denied is what the policy denies. Allowed are plain reads of the workspace that are not secrets, commands that the
//! preset `read-only` allows unless the user chose another preset, whatever concerns the session alone, and in the mode
//! `accept-edits` edits of the workspace that the policy's preset of that kind would allow. A rule of the user that leaves a request to a person is obeyed. A call that changes nothing as things
//! are is answered by its tool without a question, if the answer tells nothing of a file that the agent may not read
//! without one. Everything else is for a broker.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use approver::{Facts, PermissionRequest, Policy, Preset, RequestKind, Shell, Verdict};
use engine::{
    AskedPermission, CallClass, CallDecision, CallFacts, CallId, CallRun, CallVerdict, RequestNumber, SessionMode,
};
use events::Provider;
use policy::{AppendError, InForce};
use session_tree::Object;

use crate::broker::PreviewedCall;

/// The policy of a session, and what it is held against.
pub struct InProcess {
    policy: Policy,
    reads: Policy,
    edits: Policy,
    facts: Arc<dyn Facts + Send + Sync>,
    /// The user's policy.
    file: PathBuf,
    workspace: PathBuf,
    /// Whether the policy is the intended one. If not, nothing is allowed: it might have denied it.
    is_in_force: bool,
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcess").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

impl InProcess {
    /// The policy in `file` with the rules of the workspace's repository, and why it is not in force, which has to be
    /// shown: then a person decides about everything.
    #[must_use]
    pub fn new(file: &Path, workspace: &Path, facts: Arc<dyn Facts + Send + Sync>) -> (Self, Option<String>) {
        let InForce { policy, refused } = policy::in_force(file, workspace);
        let in_process = Self {
            policy,
            reads: Policy::preset(Preset::ReadOnly),
            edits: Policy::preset(Preset::WorkspaceEdits),
            facts,
            file: file.to_owned(),
            workspace: workspace.to_owned(),
            is_in_force: refused.is_none(),
        };
        (in_process, refused.map(|refused| refused.to_string()))
    }

    /// The decision, when nobody has to be asked.
    #[must_use]
    pub fn decide(&self, asked: &AskedPermission) -> Option<CallDecision> {
        if asked.facts.kind == CallClass::Note {
            return Some(decision(CallVerdict::Allow, "session", None, None));
        }
        let kind = request_kind(asked.facts.kind)?;
        let request = self.request(asked, kind);
        let own = self.policy.decide(&request, &*self.facts);
        // A rule that leaves it to a person is obeyed. Without a rule nothing was left to anybody.
        let is_not_asked = own.verdict == Verdict::Allow || own.rule == approver::DEFAULT_RULE;
        let is_open = self.is_in_force && is_not_asked;
        let by_preset = |preset: &Policy, by: &str| {
            let decided = preset.decide(&request, &*self.facts);
            if !is_open || decided.verdict != Verdict::Allow {
                return None;
            }
            let allowed = decision(CallVerdict::Allow, by, Some(decided.rule), None);
            // Some commands only read when they run as the policy writes them: git without the repository's programs.
            let arguments = decided.rewrite.map(|command| asked.call.arguments.clone().with("command", command));
            Some(CallDecision { arguments, ..allowed })
        };
        if own.verdict == Verdict::Deny {
            return Some(decision(CallVerdict::Deny, "policy", Some(own.rule), Some(own.reason)));
        }
        match asked.facts.kind {
            CallClass::Read => by_preset(&self.reads, "policy"),
            // A preset that the user chose is the server's to apply: it also keeps what was allowed for the session.
            CallClass::Command if self.policy.chosen_preset().is_none() => by_preset(&self.reads, "policy"),
            CallClass::Edit | CallClass::Write if asked.mode == SessionMode::AcceptEdits => {
                by_preset(&self.edits, "mode")
            }
            CallClass::ReadOutside
            | CallClass::Edit
            | CallClass::Write
            | CallClass::Command
            | CallClass::Fetch
            | CallClass::Question
            | CallClass::Note
            | CallClass::Other => None,
        }
    }

    /// Why a read of the workspace is not done unasked. Of other calls nobody expects that.
    #[must_use]
    pub(crate) fn why_asked(&self, asked: &AskedPermission) -> Option<String> {
        if asked.facts.kind != CallClass::Read {
            return None;
        }
        let request = self.request(asked, RequestKind::Read);
        let own = self.policy.decide(&request, &*self.facts);
        if !self.is_in_force {
            return Some("The policy cannot be read.".to_owned());
        }
        if own.rule != approver::DEFAULT_RULE {
            return Some(own.reason);
        }
        // The last rule of the preset is the one for files.
        let tried = self.reads.explain(&request, &*self.facts).parts.into_iter().next()?.tried;
        tried.into_iter().rev().find(|rule| !rule.matched).map(|rule| rule.why)
    }

    /// The rules that would allow just this call again, in this directory; nothing where none can.
    #[must_use]
    pub(crate) fn rule_for(&self, asked: &AskedPermission) -> Option<String> {
        approver::rule_for(&self.request(asked, request_kind(asked.facts.kind)?))
    }

    /// Adds rules to the user's policy; gives the file.
    ///
    /// # Errors
    /// When the file may not be believed, is not valid with the rules, or cannot be written.
    pub(crate) fn add_rule(&self, rule: &str) -> Result<PathBuf, AppendError> {
        policy::append(&self.file, rule)
    }

    /// The decision about a call that changes nothing as things are. Its result may tell what is in its files, so that
    /// the person is asked, as for a read of them.
    #[must_use]
    pub(crate) fn without_effect(&self, call: &PreviewedCall) -> Option<CallDecision> {
        let facts = &call.asked.facts;
        let may_tell = || facts.paths.iter().all(|path| self.may_read(Path::new(&facts.cwd), Path::new(path)));
        (call.is_without_effect() && may_tell()).then(|| decision(CallVerdict::NoEffect, "session", None, None))
    }

    /// Whether a file of the workspace may be read without asking anybody, as the tool `read` would.
    pub(crate) fn may_read(&self, cwd: &Path, path: &Path) -> bool {
        let call = CallRun {
            call: CallId { request: RequestNumber(0), index: 0 },
            model_id: String::new(),
            tool: "read".to_owned(),
            arguments: Object::new(),
        };
        let facts = CallFacts {
            kind: CallClass::Read,
            cwd: cwd.to_string_lossy().into_owned(),
            paths: vec![path.to_string_lossy().into_owned()],
            ..CallFacts::default()
        };
        let asked = AskedPermission { call, facts, mode: SessionMode::Ask };
        self.decide(&asked).is_some_and(|decision| decision.verdict == CallVerdict::Allow)
    }

    fn request(&self, asked: &AskedPermission, kind: RequestKind) -> PermissionRequest {
        let command = (kind == RequestKind::Command).then(|| asked.call.arguments.text("command"));
        PermissionRequest {
            agent: Provider::Capture,
            kind,
            tool: Some(asked.call.tool.clone()),
            command: command.flatten().map(str::to_owned),
            cwd: PathBuf::from(&asked.facts.cwd),
            cwd_is_certain: true,
            workspace: self.workspace.clone(),
            paths: asked.facts.paths.iter().map(PathBuf::from).collect(),
            url: asked.facts.url.clone(),
            glob: asked.call.arguments.text("glob").map(str::to_owned),
            labels: std::collections::BTreeMap::new(),
            takes_rewrite: true,
            shell: Shell::Bash,
        }
    }
}

/// What a call asks of the policy; nothing where only a person answers, or nobody has to.
const fn request_kind(class: CallClass) -> Option<RequestKind> {
    match class {
        CallClass::Read | CallClass::ReadOutside => Some(RequestKind::Read),
        CallClass::Edit => Some(RequestKind::Edit),
        CallClass::Write => Some(RequestKind::Write),
        CallClass::Command => Some(RequestKind::Command),
        CallClass::Fetch => Some(RequestKind::Fetch),
        CallClass::Note | CallClass::Question | CallClass::Other => None,
    }
}

/// A decision without a row of the audit record.
pub(crate) fn decision(verdict: CallVerdict, by: &str, rule: Option<String>, reason: Option<String>) -> CallDecision {
    CallDecision { verdict, by: by.to_owned(), rule, audit: None, reason, answer: None, arguments: None }
}

#[cfg(test)]
mod tests;
