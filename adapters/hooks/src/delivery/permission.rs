//! What a permission request asks for, and how much of it is stored in the event.

use events::{ApprovalKind, ApprovalRequested, Dialog, Excerpt, Provider};
use serde_json::{Map, Value};

use super::{Delivery, decode::payload_of};

/// Longest command or file name kept in a claim, characters.
pub const SUBJECT_CHARS: usize = 400;
/// Longest tool input kept in a permission request, bytes. No model writes more in one answer. Of a longer one an excerpt
/// is kept, and the request cannot be allowed through capture.
const INPUT_BYTES: usize = 512 << 10;
/// Length of the excerpt of an input that is too long, bytes.
const EXCERPT_BYTES: usize = 64 << 10;
/// Maximum number of files named in a permission request.
pub const PATHS: usize = 200;

/// Whether the input of a shell tool requests nothing but to run the command: beside it stand at most its description, a
/// time limit, and switches that are off.
#[must_use]
pub fn is_only_a_command(provider: Provider, input: &str) -> bool {
    const KNOWN: [&str; 3] = ["command", "description", "timeout"];
    let switches = payload_of(provider).map_or(&[][..], |facts| facts.shell_switches);
    let is_off = |name: &str, value: &Value| switches.contains(&name) && *value == Value::Bool(false);
    serde_json::from_str::<Map<String, Value>>(input)
        .is_ok_and(|input| input.iter().all(|(name, value)| KNOWN.contains(&name.as_str()) || is_off(name, value)))
}

/// What a permission request asks for.
#[derive(Debug, Default)]
pub struct PermissionDetails {
    /// The kind of permission; `None` when it is not certain.
    pub about: Option<ApprovalKind>,
    /// The agent's id of the tool call.
    pub call_id: Option<String>,
    /// The tool.
    pub tool: Option<String>,
    /// The command.
    pub command: Option<String>,
    /// The files; `None` when the request does not name all of them.
    pub paths: Option<Vec<String>>,
    /// The URL to fetch.
    pub url: Option<String>,
    /// The tool's whole input, byte for byte.
    pub input: Option<String>,
    /// The working directory of the call.
    pub cwd: Option<String>,
    /// The agent's own name of what confines the call; `None` when it does not say.
    pub sandbox: Option<String>,
    /// A one-line subject, for people.
    pub subject: Option<String>,
    /// What else people are to know before they decide.
    pub question: Option<String>,
    /// The key of the claim beside it.
    pub key: Option<String>,
    /// Part of the request is missing here.
    pub cut: bool,
}

impl PermissionDetails {
    /// Converts the details into the event, with an excerpt of an input that is too long.
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
