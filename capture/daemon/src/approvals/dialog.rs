//! Matches the dialog on a run's screen to its approval.

use events::{ApprovalKind, Dialog, Provider, RunId};
use projections::Approval;

use crate::runs::Runs;

/// Minimum length of the visible beginning by which a cut-off command is recognized, bytes.
const CUT_BYTES: usize = 24;

/// The dialog on the screen of a run that asks for exactly this approval: the run and the mark of the dialog. `alone`
/// means that nothing else is pending in the session.
///
/// # Errors
/// The reason it cannot be answered there, as text for the user.
pub(super) fn dialog_of(runs: &Runs, approval: &Approval, alone: bool) -> Result<(RunId, String), String> {
    let run = runs.run_of(approval.session_id).ok_or(
        "no hook waits for the answer, and the session was not started with `capture run`; answer it in the agent itself \
         (`capture hooks install --approver` and `capture run` let capture answer requests)",
    )?;
    let dialog = runs.dialog_of(run).ok_or("the dialog of this request is not on the screen")?;
    mark_of(&dialog, approval, alone).map(|mark| (run, mark))
}

/// The mark of a dialog, if its keys answer exactly this approval.
pub(super) fn mark_of(dialog: &Dialog, approval: &Approval, alone: bool) -> Result<String, String> {
    if let Some(why) = &dialog.unanswerable {
        return Err(format!("{why}: {}", instead(approval.provider)));
    }
    let mark = dialog
        .mark
        .clone()
        .ok_or("the dialog of this request cannot be answered by keys; answer it in its terminal")?;
    if !alone {
        return Err(
            "another request of this session is pending, and capture cannot tell the two apart on the screen; \
             answer in its terminal (`capture attach`)"
                .to_owned(),
        );
    }
    if is_same(approval, dialog) {
        Ok(mark)
    } else {
        Err("the dialog on the screen does not show the text of this request; answer it in its terminal (`capture attach`)"
            .to_owned())
    }
}

/// Where to answer a request whose dialog does not accept keys.
fn instead(provider: Provider) -> &'static str {
    let agent = agents::Agent::of(provider);
    let hooks = agent.and_then(|agent| agent.hooks.as_ref());
    if hooks.is_some_and(|hooks| hooks.answers.allowance) {
        "answer it in its terminal (`capture attach`), or install hooks that wait for an answer \
         (`capture hooks install --approver`)"
    } else if agent.is_some_and(|agent| agent.drive.is_some()) {
        "answer it in its terminal (`capture attach`), or start the agent with `capture agent drive`"
    } else {
        "answer it in its terminal (`capture attach`)"
    }
}

/// Whether the dialog asks for what the approval says, ignoring differences in whitespace, when nothing else is pending
/// in the session. A command that the screen marks as cut off is recognized by its beginning.
pub(super) fn is_same(approval: &Approval, dialog: &Dialog) -> bool {
    if dialog.about.is_some() && approval.kind.is_some() && !is_same_kind(dialog.about, approval.kind) {
        return false;
    }
    let bare = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = dialog.subject.as_deref().map(bare).unwrap_or_default();
    let asked = approval.command.as_deref().or_else(|| approval.paths.first().map(String::as_str));
    let asked = asked.or(approval.url.as_deref()).or(approval.subject.as_deref()).map(bare).unwrap_or_default();
    if shown.is_empty() {
        return false;
    }
    if approval.paths.is_empty() {
        let cut = shown.strip_suffix('…').filter(|cut| cut.len() >= CUT_BYTES);
        shown == asked || cut.is_some_and(|cut| asked.starts_with(cut))
    } else {
        // A file may be shown by its name or by the end of its path.
        asked == shown || asked.ends_with(&format!("/{shown}"))
    }
}

/// Whether only the beginning of a request is known, because its dialog is marked as cut off.
pub(super) fn is_cut_off(approval: &Approval) -> bool {
    let is_from_screen = approval.command.is_none() && approval.input.is_none();
    is_from_screen && approval.subject.as_deref().is_some_and(|subject| subject.trim_end().ends_with('…'))
}

fn is_same_kind(a: Option<ApprovalKind>, b: Option<ApprovalKind>) -> bool {
    let of = |kind| if kind == Some(ApprovalKind::Write) { Some(ApprovalKind::Edit) } else { kind };
    of(a) == of(b)
}
