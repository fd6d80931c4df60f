//! What a request for permission asks for, and how much of it is told.

use events::{ApprovalKind, ApprovalRequested, Dialog};

use super::Delivery;

/// At most so much of a command or a file name is kept in a claim, characters.
pub const SUBJECT_CHARS: usize = 400;
/// A request with more input than this is told without it, bytes: nobody decides on it by a rule.
const INPUT_BYTES: usize = 64 << 10;
/// At most so many files of a request are named.
pub const PATHS: usize = 200;

/// What a request asks for.
#[derive(Debug, Default)]
pub struct PermissionDetails {
    /// What it is about, when that is certain.
    pub about: Option<ApprovalKind>,
    /// The call, by the agent's id.
    pub call_id: Option<String>,
    /// The tool.
    pub tool: Option<String>,
    /// The command.
    pub command: Option<String>,
    /// The files; `None` when they are not all told.
    pub paths: Option<Vec<String>>,
    /// What is to be fetched.
    pub url: Option<String>,
    /// All of the input, to the byte.
    pub input: Option<String>,
    /// Where it would happen.
    pub cwd: Option<String>,
    /// What it is about, for people.
    pub subject: Option<String>,
    /// The key of the claim beside it.
    pub key: Option<String>,
    /// Something of it is not told.
    pub cut: bool,
}

impl PermissionDetails {
    /// As it is told; what is too long is left out.
    pub fn into_event(self, delivery: &Delivery) -> ApprovalRequested {
        let long = |text: &str| text.len() > INPUT_BYTES;
        let too_many = self.paths.as_ref().is_none_or(|paths| paths.len() > PATHS);
        let cut = self.cut
            || delivery.redacted_from.is_some()
            || too_many
            || [&self.input, &self.command].into_iter().flatten().any(|text| long(text));
        let subject = self.subject.map(|text| text.chars().take(SUBJECT_CHARS).collect());
        ApprovalRequested {
            approval_id: delivery.approval_id(),
            about: self.about,
            call_id: self.call_id,
            tool: self.tool,
            command: self.command.filter(|command| !long(command)),
            paths: self.paths.filter(|_| !too_many).unwrap_or_default(),
            url: self.url,
            input: self.input.filter(|input| !long(input)),
            cut,
            cwd: self.cwd,
            dialog: subject.map(|subject| Box::new(Dialog { subject: Some(subject), ..Dialog::default() })),
            delivery: Some(delivery.id.to_string()),
            digest: Some(delivery.digest()),
            search_path: delivery.search_path.clone(),
            key: self.key,
        }
    }
}
