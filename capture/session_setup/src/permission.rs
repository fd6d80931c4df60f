//! Decides in process about calls that need no approval.
//!
//! Calls denied by the policy are denied. Allowed are plain reads of the workspace that are not secrets, commands
//! allowed by the preset `read-only` unless the user chose another preset, calls that concern only the session, and
//! edits of the workspace allowed by the preset `workspace-edits`: in the mode `accept-edits`, and after the user at
//! the terminal allowed them for the session. A rule of the user that leaves a request to a person takes precedence. A
//! call that would change nothing at present is answered by its tool without asking, unless the answer reveals the
//! content of a file that the agent may not read without asking. Everything else is left to a broker.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use approver::{Decision, Explanation, Facts, PermissionRequest, Policy, Preset, RequestKind, Shell, Verdict};
use engine::{
    AskedPermission, CallClass, CallDecision, CallFacts, CallId, CallRun, CallVerdict, RequestNumber, SessionMode,
};
use events::Provider;
use policy_files::{AppendError, InForce};
use session_tree::Object;

use crate::broker::PreviewedCall;

/// The value of `by` in the session's file for edits that the user allowed for the session.
pub(crate) const BY_ALLOWANCE: &str = "allowance";

/// The policy of a session, and the facts it is evaluated with.
pub struct InProcess {
    /// The policy as last read.
    loaded: Mutex<Arc<Loaded>>,
    reads: Policy,
    edits: Policy,
    facts: Arc<dyn Facts + Send + Sync>,
    /// The file of the user's policy.
    file: PathBuf,
    workspace: PathBuf,
    /// Whether the user allowed edits of the workspace for the rest of the session.
    allows_edits: AtomicBool,
}

/// The user's policy at one time.
struct Loaded {
    policy: Policy,
    /// Whether the policy is the intended one. If not, nothing is allowed, since the intended one might deny it.
    is_in_force: bool,
    /// The state of the file when it was read.
    stamp: Option<FileStamp>,
}

/// Changes whenever a file is written or replaced: inode, size, and change time (s and ns).
type FileStamp = (u64, u64, i64, i64);

fn stamp_of(file: &Path) -> Option<FileStamp> {
    let facts = std::fs::metadata(file).ok()?;
    Some((facts.ino(), facts.len(), facts.ctime(), facts.ctime_nsec()))
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcess").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

impl Loaded {
    /// Reads the policy; also returns why it is not in force.
    fn read(file: &Path, workspace: &Path) -> (Self, Option<String>) {
        // Taken before reading: a change in between is noticed at the next check.
        let stamp = stamp_of(file);
        let InForce { policy, refused } = policy_files::in_force(file, workspace);
        let loaded = Self { policy, is_in_force: refused.is_none(), stamp };
        (loaded, refused.map(|refused| refused.to_string()))
    }
}

impl InProcess {
    /// The policy in `file` with the rules of the workspace's repository, and why it is not in force. That reason must
    /// be shown: in that case the user decides about everything.
    #[must_use]
    pub fn new(file: &Path, workspace: &Path, facts: Arc<dyn Facts + Send + Sync>) -> (Self, Option<String>) {
        let (loaded, refused) = Loaded::read(file, workspace);
        let in_process = Self {
            loaded: Mutex::new(Arc::new(loaded)),
            reads: Policy::preset(Preset::ReadOnly),
            edits: Policy::preset(Preset::WorkspaceEdits),
            facts,
            file: file.to_owned(),
            workspace: workspace.to_owned(),
            allows_edits: AtomicBool::new(false),
        };
        (in_process, refused)
    }

    /// The current policy: it is read again when its file has changed, as in the server.
    fn loaded(&self) -> Arc<Loaded> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.stamp != stamp_of(&self.file) {
            *loaded = Arc::new(Loaded::read(&self.file, &self.workspace).0);
        }
        Arc::clone(&loaded)
    }

    /// The decision, if no approval is needed.
    #[must_use]
    pub fn decide(&self, asked: &AskedPermission) -> Option<CallDecision> {
        if asked.facts.kind == CallClass::Note {
            return Some(decision(CallVerdict::Allow, "session", None, None));
        }
        let kind = request_kind(asked.facts.kind)?;
        let request = self.request(asked, kind);
        let loaded = self.loaded();
        let own = loaded.policy.decide(&request, &*self.facts);
        if own.verdict == Verdict::Deny {
            return Some(decision(CallVerdict::Deny, "policy", Some(own.rule), Some(own.reason)));
        }
        let by_preset = |preset: &Policy, by: &str| {
            let decided = self.by_preset(preset, &loaded, &request, &own)?;
            let allowed = decision(CallVerdict::Allow, by, Some(decided.rule), None);
            // Some commands are read-only only in the form the policy rewrites them to: git without the repository's
            // programs.
            let arguments = decided.rewrite.map(|command| asked.call.arguments.clone().with("command", command));
            Some(CallDecision { arguments, ..allowed })
        };
        match asked.facts.kind {
            CallClass::Read => by_preset(&self.reads, "policy"),
            // The server applies a preset chosen by the user: it also records what was allowed for the session.
            CallClass::Command if loaded.policy.chosen_preset().is_none() => by_preset(&self.reads, "policy"),
            CallClass::Edit | CallClass::Write => match asked.mode {
                SessionMode::AcceptEdits => by_preset(&self.edits, "mode"),
                SessionMode::Ask if self.allows_edits.load(Ordering::Relaxed) => by_preset(&self.edits, BY_ALLOWANCE),
                SessionMode::Ask | SessionMode::Plan | SessionMode::Auto => None,
            },
            CallClass::ReadOutside
            | CallClass::Command
            | CallClass::Fetch
            | CallClass::Question
            | CallClass::Note
            | CallClass::Other => None,
        }
    }

    /// The decision of a preset if the user's policy, which decided `own`, leaves the call open. Only the server has
    /// the labels of a session: if a rule needs one, the server decides.
    fn by_preset(
        &self,
        preset: &Policy,
        loaded: &Loaded,
        request: &PermissionRequest,
        own: &Decision,
    ) -> Option<Decision> {
        let is_known = loaded.is_in_force && !loaded.policy.depends_on_labels();
        let decided = preset.decide(request, &*self.facts);
        (is_known && leaves_open(own) && decided.verdict == Verdict::Allow).then_some(decided)
    }

    /// Whether edits of the workspace can be allowed for the session at this call: only if the allowance would have
    /// allowed the call itself, and nothing else allows it already.
    #[must_use]
    pub(crate) fn offers_edits(&self, asked: &AskedPermission) -> bool {
        if !asked.facts.kind.changes_files() || asked.mode != SessionMode::Ask {
            return false;
        }
        let Some(kind) = request_kind(asked.facts.kind) else { return false };
        let request = self.request(asked, kind);
        let loaded = self.loaded();
        let own = loaded.policy.decide(&request, &*self.facts);
        self.by_preset(&self.edits, &loaded, &request, &own).is_some()
    }

    /// Allows edits of the workspace for the rest of the session, at the request of the user at the terminal, like the
    /// mode `accept-edits`. Plan mode still denies them.
    pub(crate) fn allow_edits(&self) {
        self.allows_edits.store(true, Ordering::Relaxed);
    }

    /// Why the user is asked; `None` if the call shows it.
    #[must_use]
    pub(crate) fn why_asked(&self, asked: &AskedPermission) -> Option<String> {
        let kind = request_kind(asked.facts.kind)?;
        let loaded = self.loaded();
        if !loaded.is_in_force {
            return Some("Your policy is not in force, so every call is left to you.".to_owned());
        }
        let request = self.request(asked, kind);
        let own = loaded.policy.decide(&request, &*self.facts);
        if own.verdict == Verdict::Ask && own.rule != approver::DEFAULT_RULE {
            return Some(with_rule(&own.reason, &own.rule));
        }
        match asked.facts.kind {
            CallClass::Read if loaded.policy.depends_on_labels() => {
                Some("Your policy has rules for labels, and only the server knows the labels of a session.".to_owned())
            }
            CallClass::Read => {
                // The last rule of the preset concerns files.
                let tried = self.reads.explain(&request, &*self.facts).parts.into_iter().next()?.tried;
                tried.into_iter().rev().find(|rule| !rule.matched).map(|rule| rule.why)
            }
            CallClass::Command if own.verdict == Verdict::Ask => {
                let preset = loaded.policy.chosen_preset()?;
                Some(format!("The preset {preset} of your policy does not allow it. {}", own.reason))
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

    /// Why the user is asked while no server is running: only the server applies a rule that allows the call.
    #[must_use]
    pub(crate) fn why_asked_without_server(&self, asked: &AskedPermission) -> Option<String> {
        let request = self.request(asked, request_kind(asked.facts.kind)?);
        let loaded = self.loaded();
        let own = loaded.policy.decide(&request, &*self.facts);
        if loaded.is_in_force && own.verdict == Verdict::Allow {
            return Some(format!(
                "Your policy allows it ({}), but only the server applies such rules, and no server is running; \
                 `capture serve` starts one.",
                own.rule
            ));
        }
        self.why_asked(asked)
    }

    /// Whether the user's policy is in force.
    #[must_use]
    pub(crate) fn is_in_force(&self) -> bool {
        self.loaded().is_in_force
    }

    /// The rules that would allow exactly this call again, in this directory. `None` if no rule can, for instance of a
    /// secret or a file that decides what runs later, if the policy is not in force and could not be extended, or if
    /// the command looks dangerous: such a command cannot be allowed permanently with a key press.
    #[must_use]
    pub(crate) fn rule_for(&self, asked: &AskedPermission) -> Option<String> {
        let command = (asked.facts.kind == CallClass::Command).then(|| asked.call.arguments.text("command")).flatten();
        if !self.loaded().is_in_force || command.is_some_and(|command| !printing::asked::risks(command).is_empty()) {
            return None;
        }
        let request = self.request(asked, request_kind(asked.facts.kind)?);
        policy_files::rule_for(&self.file, &request, &*self.facts)
    }

    /// Adds rules to the user's policy; returns its file.
    ///
    /// # Errors
    /// If the file is not trusted, would be invalid with the rules, or cannot be written.
    pub(crate) fn add_rule(&self, rule: &str) -> Result<PathBuf, AppendError> {
        policy_files::append(&self.file, rule)
    }

    /// The decision about a call that would change nothing at present. Its result may reveal the content of its files,
    /// so the user is asked if reading them needs approval.
    #[must_use]
    pub(crate) fn without_effect(&self, call: &PreviewedCall) -> Option<CallDecision> {
        let facts = &call.asked.facts;
        let may_tell = || facts.paths.iter().all(|path| self.may_read(Path::new(&facts.cwd), Path::new(path)));
        (call.is_without_effect() && may_tell()).then(|| decision(CallVerdict::NoEffect, "session", None, None))
    }

    /// Whether a file of the workspace may be read without asking, as by the tool `read`.
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

/// Whether the user's policy, which made this decision, has no rule that denies the call or leaves it to a person.
fn leaves_open(own: &Decision) -> bool {
    own.verdict == Verdict::Allow || own.verdict == Verdict::Ask && own.rule == approver::DEFAULT_RULE
}

/// Explains a command of the built-in agent, for a policy in force: the preset `read-only` allows read-only commands,
/// unless the policy names a preset or has a rule for them.
#[must_use]
pub fn explain_command(policy: &Policy, request: &PermissionRequest, facts: &dyn Facts) -> Explanation {
    let own = policy.explain(request, facts);
    if policy.chosen_preset().is_some() || own.decision.verdict == Verdict::Allow || !leaves_open(&own.decision) {
        return own;
    }
    let reads = Policy::preset(Preset::ReadOnly).explain(request, facts);
    if reads.decision.verdict == Verdict::Allow { reads } else { own }
}

/// The kind of policy request for a call; `None` if only the user can answer, or no approval is needed.
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

/// A reason with the name of its rule.
fn with_rule(reason: &str, rule: &str) -> String {
    format!("{} (rule {rule})", reason.trim_end().trim_end_matches('.'))
}

/// A decision without a row in the audit record.
pub(crate) fn decision(verdict: CallVerdict, by: &str, rule: Option<String>, reason: Option<String>) -> CallDecision {
    CallDecision { verdict, by: by.to_owned(), rule, audit: None, reason, answer: None, arguments: None }
}

#[cfg(test)]
mod tests;
