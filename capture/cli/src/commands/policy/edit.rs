//! `capture policy edit`: edits a copy, checks it, shows the diff, and replaces the policy atomically.

use std::path::PathBuf;

use approver::{Policy, display::show};
use similar::TextDiff;

use super::super::{Context, Failed, editor, print_line};

/// What agents are refused here.
const CHANGE: &str = "changing the policy";

/// The text of a new policy file.
const STARTER: &str = r#"# What agents may do without asking you. `capture policy explain COMMAND` says what each rule does.
version = 1

# The preset applies when none of your rules matches: "ask-everything", "read-only" or "workspace-edits".
preset = "ask-everything"

# The first rule that matches decides; if none matches, you are asked. If a line has several commands, the
# strictest decision counts.
#
# [[rule]]
# name = "tests"
# decision = "allow"                          # or "deny", "ask"
# command = ["cargo", "nextest", "run", "..."] # "*" is any one word, a last "..." any further words
# cwd = "/home/me/project"
#
# [[rule]]
# name = "no push"
# decision = "deny"
# command = ["git", "push"]
# reason = "I push myself."
"#;

pub(super) fn run(context: &Context, yes: bool) -> anyhow::Result<()> {
    let (file, before) = editor::in_force(&context.policy_file()?, CHANGE)?;
    let check = |text: &str| Ok(Policy::parse(text, &file).map(drop)?);
    let offered = before.as_deref().unwrap_or(STARTER);
    let after = editor::edited(&file, offered, check)?;
    if after == offered {
        return print_line("nothing was changed");
    }
    let old = before.unwrap_or_default();
    let diff = TextDiff::from_lines(old.as_str(), after.as_str());
    print_line(show(&diff.unified_diff().header("in force", "edited").to_string()).text.trim_end())?;
    if !yes && !editor::agreed("Put it in force?")? {
        return Err(Failed::Refused("nothing was changed".into()).into());
    }
    // What was checked and shown is what is put in force.
    editor::put_in_force(editor::copy_of(&file, &after)?, &file)?;
    print_line(&format!("{} is in force", show(&file.display().to_string()).text))
}

/// Adds a rule at the end of the user's policy; gives the file.
pub(in crate::commands) fn append(context: &Context, rule: &str) -> anyhow::Result<PathBuf> {
    let (file, before) = editor::in_force(&context.policy_file()?, CHANGE)?;
    let before = before.unwrap_or_else(|| STARTER.to_owned());
    let after = format!("{}\n\n{}\n", before.trim_end(), rule.trim());
    Policy::parse(&after, &file)?;
    editor::put_in_force(editor::copy_of(&file, &after)?, &file)?;
    Ok(file)
}
