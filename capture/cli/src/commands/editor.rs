//! Files that a person edits: the policy and the configuration.

use std::{
    fs,
    io::{IsTerminal, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use atomic_file::Draft;
use client::failure::{Failed, with_causes};
use home::{endpoint::read_if_there, paths};

use super::context::{complain, is_agreed, refuse_agents};

/// The file that a person is about to change, and what it says now. Where a link leads is what will be replaced; its
/// directory is made. `change` names the change to agents, which are refused.
pub(super) fn in_force(file: &Path, change: &str) -> anyhow::Result<(PathBuf, Option<String>)> {
    refuse_agents(change)?;
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let dir = file.parent().with_context(|| format!("{} has no parent directory", file.display()))?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let before = read_if_there(&file)?;
    Ok((file, before))
}

/// A copy with this text, beside the file; it goes when it is no longer needed.
pub(super) fn copy_of(file: &Path, text: &str) -> anyhow::Result<Draft> {
    let mut copy = Draft::beside(file, ".toml").with_context(|| format!("cannot make a copy of {}", file.display()))?;
    copy.file_mut().write_all(text.as_bytes())?;
    Ok(copy)
}

/// Puts the copy in the place of the file, whole or not at all.
pub(super) fn put_in_force(copy: Draft, file: &Path) -> anyhow::Result<()> {
    copy.sync().and_then(|()| copy.replace(file)).with_context(|| format!("cannot replace {}", file.display()))
}

/// Opens the user's editor, which may be a command with words of its own, and waits for it.
pub(super) fn open(file: &Path) -> anyhow::Result<()> {
    let editor = paths::variable("VISUAL").or_else(|| paths::variable("EDITOR")).unwrap_or_else(|| "vi".into());
    let script = format!("{} \"$1\"", editor.to_str().context("the name of the editor is not valid UTF-8")?);
    let status = std::process::Command::new("sh").arg("-c").arg(script).arg("sh").arg(file).status();
    let status = status.context("cannot run the editor")?;
    anyhow::ensure!(status.success(), Failed::Refused(format!("the editor failed ({status}); nothing was changed")));
    Ok(())
}

/// Asks the person at the terminal; without a terminal nothing is agreed.
pub(super) fn agreed(question: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(false);
    }
    is_agreed(question)
}

/// Has the person edit the text of a file until `check` accepts it, or they give up. Gives the new text.
pub(super) fn edited(file: &Path, before: &str, check: impl Fn(&str) -> anyhow::Result<()>) -> anyhow::Result<String> {
    let copy = copy_of(file, before)?;
    loop {
        open(copy.path())?;
        let text = fs::read_to_string(copy.path())?;
        let Err(error) = check(&text) else { return Ok(text) };
        complain(&with_causes(&error));
        if !agreed("Edit it again?")? {
            return Err(Failed::Refused("nothing was changed".into()).into());
        }
    }
}
