//! The details of a permission request, and how much of them is stored in the event.

use events::{ApprovalKind, ApprovalRequested, Dialog, Excerpt, Provider};
use serde_json::{Map, Value};

use super::{Delivery, decode::payload_of};

/// Maximum length of a command or file name in a claim, in characters.
pub const SUBJECT_CHARS: usize = 400;
/// Maximum size of a tool input stored in a permission request, in bytes. No model writes more in one answer. For a
/// longer input an excerpt is stored, and the request cannot be allowed through capture.
const INPUT_BYTES: usize = 512 << 10;
/// Length of the excerpt of a too long input, in bytes.
const EXCERPT_BYTES: usize = 64 << 10;
/// Maximum number of files named in a permission request.
pub const PATHS: usize = 200;

/// Whether the input of a shell tool requests only to run the command: it may also contain a description, a time limit,
/// and switches that are off.
#[must_use]
pub fn is_only_a_command(provider: Provider, input: &str) -> bool {
    const KNOWN: [&str; 3] = ["command", "description", "timeout"];
    let switches = payload_of(provider).map_or(&[][..], |facts| facts.shell_switches);
    let is_off = |name: &str, value: &Value| switches.contains(&name) && *value == Value::Bool(false);
    serde_json::from_str::<Map<String, Value>>(input)
        .is_ok_and(|input| input.iter().all(|(name, value)| KNOWN.contains(&name.as_str()) || is_off(name, value)))
}

/// The details of a permission request.
#[derive(Debug, Default)]
pub struct PermissionDetails {
    /// The kind of permission; `None` if uncertain.
    pub about: Option<ApprovalKind>,
    /// The agent's id of the tool call.
    pub call_id: Option<String>,
    /// The tool.
    pub tool: Option<String>,
    /// The command.
    pub command: Option<String>,
    /// The files; `None` if the request does not name all of them.
    pub paths: Option<Vec<String>>,
    /// The URL to fetch.
    pub url: Option<String>,
    /// The tool's whole input, as exact bytes.
    pub input: Option<String>,
    /// The working directory of the call.
    pub cwd: Option<String>,
    /// The agent's name for the sandbox of the call; `None` if not reported.
    pub sandbox: Option<String>,
    /// A one-line subject for the user.
    pub subject: Option<String>,
    /// Other information the user needs for the decision.
    pub question: Option<String>,
    /// The key of the accompanying claim.
    pub key: Option<String>,
    /// Whether part of the request is missing here.
    pub cut: bool,
}

impl PermissionDetails {
    /// Converts the details into the event, with an excerpt of a too long input.
    pub fn into_event(self, delivery: &Delivery) -> ApprovalRequested {
        let long = |text: &str| text.len() > INPUT_BYTES;
        let too_many = self.paths.as_ref().is_none_or(|paths| paths.len() > PATHS);
        let is_long = [&self.input, &self.command].into_iter().flatten().any(|text| long(text));
        let excerpted = self.command.as_ref().or(self.input.as_ref()).filter(|_| is_long);
        let excerpt = excerpted.map(|text| Box::new(Excerpt::of(text, EXCERPT_BYTES)));
        let cut = self.cut || delivery.redacted_from.is_some() || too_many || is_long;
        let subject = self.subject.map(|text| text.chars().take(SUBJECT_CHARS).collect());
        let has_dialog = subject.is_some() || self.question.is_some();
        let dialog = Dialog { subject, question: self.question.filter(|text| !long(text)), ..Dialog::default() };
        ApprovalRequested {
            approval_id: delivery.approval_id(),
            about: self.about,
            call_id: self.call_id,
            tool: self.tool,
            command: self.command.filter(|_| !is_long),
            paths: self.paths.filter(|_| !too_many).unwrap_or_default(),
            url: self.url,
            input: self.input.filter(|_| !is_long),
            cut,
            masked: delivery.redacted_from.is_some(),
            excerpt,
            cwd: self.cwd,
            sandbox: self.sandbox,
            dialog: has_dialog.then(|| Box::new(dialog)),
            delivery: Some(delivery.id),
            digest: Some(delivery.digest()),
            search_path: delivery.search_path.clone(),
            key: self.key,
        }
    }
}
