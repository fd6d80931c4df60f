//! Files that users edit: the policy and the configuration.

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

/// Returns the file the user is about to change and its current text. Symbolic links are resolved, and the file's
/// directory is created. `change` is the action named when an agent is refused.
pub(super) fn in_force(file: &Path, change: &str) -> anyhow::Result<(PathBuf, Option<String>)> {
    refuse_agents(change)?;
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let dir = file.parent().with_context(|| format!("{} has no parent directory", file.display()))?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let before = read_if_there(&file)?;
    Ok((file, before))
}

/// A copy with this text next to the file. It is deleted when dropped.
pub(super) fn copy_of(file: &Path, text: &str) -> anyhow::Result<Draft> {
    let mut copy = Draft::beside(file, ".toml").with_context(|| format!("cannot make a copy of {}", file.display()))?;
    copy.file_mut().write_all(text.as_bytes())?;
    Ok(copy)
}

/// Atomically replaces the file with the copy.
pub(super) fn put_in_force(copy: Draft, file: &Path) -> anyhow::Result<()> {
    copy.sync().and_then(|()| copy.replace(file)).with_context(|| format!("cannot replace {}", file.display()))
}

/// Opens the user's editor, which may be a command with arguments, and waits for it.
pub(super) fn open(file: &Path) -> anyhow::Result<()> {
    let editor = paths::variable("VISUAL").or_else(|| paths::variable("EDITOR")).unwrap_or_else(|| "vi".into());
    let script = format!("{} \"$1\"", editor.to_str().context("the name of the editor is not valid UTF-8")?);
    let status = std::process::Command::new("sh").arg("-c").arg(script).arg("sh").arg(file).status();
    let status = status.context("cannot run the editor")?;
    anyhow::ensure!(status.success(), Failed::Refused(format!("the editor failed ({status}); nothing was changed")));
    Ok(())
}

/// Asks the user at the terminal; without a terminal the answer is no.
pub(super) fn agreed(question: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(false);
    }
    is_agreed(question)
}

/// Lets the user edit the text of a file until `check` accepts it or the user gives up. Returns the new text.
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
