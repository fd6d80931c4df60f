//! `capture policy edit`: edits a copy, checks it, shows the diff, and replaces the policy atomically.

use std::path::{Path, PathBuf};

use approver::Policy;
use client::failure::Failed;
use printing::display::show;
use similar::TextDiff;

use super::super::editor;
use crate::commands::context::{Context, print_line, refuse_agents};

/// The action named when an agent is refused.
pub(super) const CHANGE: &str = "changing the policy";

pub(super) fn run(context: &Context, yes: bool) -> anyhow::Result<()> {
    let (file, before) = editor::in_force(&context.policy_file()?, CHANGE)?;
    let check = |text: &str| Ok(Policy::parse(text, &file).map(drop)?);
    let offered = before.as_deref().unwrap_or(policy_files::STARTER);
    let after = editor::edited(&file, offered, check)?;
    if after == offered {
        return print_line("nothing was changed");
    }
    put_in_force(&file, before.as_deref(), &after, yes)
}

/// Shows the changes and applies the new text once the user agrees.
pub(super) fn put_in_force(file: &Path, before: Option<&str>, after: &str, yes: bool) -> anyhow::Result<()> {
    let diff = TextDiff::from_lines(before.unwrap_or_default(), after);
    print_line(show(&diff.unified_diff().header("in force", "edited").to_string()).text.trim_end())?;
    if !yes && !editor::agreed("Put it in force?")? {
        return Err(Failed::Refused("nothing was changed".into()).into());
    }
    // Apply the text that was checked and shown.
    editor::put_in_force(editor::copy_of(file, after)?, file)?;
    print_line(&format!("{} is in force", show(&file.display().to_string()).text))
}

/// Appends a rule to the user's policy; returns the file.
pub(in crate::commands) fn append(context: &Context, rule: &str) -> anyhow::Result<PathBuf> {
    refuse_agents(CHANGE)?;
    Ok(policy_files::append(&context.policy_file()?, rule)?)
}
