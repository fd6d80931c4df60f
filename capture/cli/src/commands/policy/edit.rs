//! `capture policy edit`: edits a copy, checks it, shows the diff, and replaces the policy atomically.

use std::{
    fs,
    io::{IsTerminal, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use approver::{Policy, display::show};
use atomic_file::Draft;
use similar::TextDiff;

use super::super::{Context, Failed, complain, is_agreed, print_line, refuse_agents};
use daemon::{endpoint::read_if_there, paths};

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
    let (file, before) = in_force(context)?;
    let copy = copy_of(&file, before.as_deref().unwrap_or(STARTER))?;
    let after = loop {
        open(copy.path())?;
        let text = fs::read_to_string(copy.path())?;
        match Policy::parse(&text, &file) {
            Ok(_) => break text,
            Err(error) => {
                complain(&error.to_string());
                if !agreed("Edit it again?")? {
                    return Err(Failed::Refused("nothing was changed".into()).into());
                }
            }
        }
    };
    if before.as_deref() == Some(after.as_str()) {
        return print_line("nothing was changed");
    }
    let old = before.unwrap_or_default();
    let diff = TextDiff::from_lines(old.as_str(), after.as_str());
    print_line(show(&diff.unified_diff().header("in force", "edited").to_string()).text.trim_end())?;
    if !yes && !agreed("Put it in force?")? {
        return Err(Failed::Refused("nothing was changed".into()).into());
    }
    put_in_force(copy, &file)?;
    print_line(&format!("{} is in force", show(&file.display().to_string()).text))
}

/// Adds a rule at the end of the user's policy; gives the file.
pub(in crate::commands) fn append(context: &Context, rule: &str) -> anyhow::Result<PathBuf> {
    let (file, before) = in_force(context)?;
    let before = before.unwrap_or_else(|| STARTER.to_owned());
    let after = format!("{}\n\n{}\n", before.trim_end(), rule.trim());
    Policy::parse(&after, &file)?;
    put_in_force(copy_of(&file, &after)?, &file)?;
    Ok(file)
}

/// The user's policy, which is about to be changed by a person, and what it says; its directory is there.
fn in_force(context: &Context) -> anyhow::Result<(PathBuf, Option<String>)> {
    refuse_agents("changing the policy")?;
    let file = context.policy_file()?;
    // Where a link leads is what is replaced.
    let file = file.canonicalize().unwrap_or(file);
    let dir = file.parent().context("the policy's path has no parent directory")?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let before = read_if_there(&file)?;
    Ok((file, before))
}

/// A copy with this text, beside the file; it goes when it is no longer needed.
fn copy_of(file: &Path, text: &str) -> anyhow::Result<Draft> {
    let mut copy = Draft::beside(file, ".toml").with_context(|| format!("cannot make a copy of {}", file.display()))?;
    copy.file_mut().write_all(text.as_bytes())?;
    Ok(copy)
}

/// Puts the copy in the place of the file, whole or not at all.
fn put_in_force(copy: Draft, file: &Path) -> anyhow::Result<()> {
    copy.sync().and_then(|()| copy.replace(file)).with_context(|| format!("cannot replace {}", file.display()))
}

/// Opens the user's editor, which may be a command with words of its own, and waits for it.
fn open(file: &Path) -> anyhow::Result<()> {
    let editor = paths::variable("VISUAL").or_else(|| paths::variable("EDITOR")).unwrap_or_else(|| "vi".into());
    let script = format!("{} \"$1\"", editor.to_str().context("the name of the editor is not valid UTF-8")?);
    let status = std::process::Command::new("sh").arg("-c").arg(script).arg("sh").arg(file).status();
    let status = status.context("cannot run the editor")?;
    anyhow::ensure!(status.success(), Failed::Refused(format!("the editor failed ({status}); nothing was changed")));
    Ok(())
}

/// Asks the person at the terminal; without a terminal nothing is agreed.
fn agreed(question: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(false);
    }
    is_agreed(question)
}
