//! The commands that write session files.

use std::path::{Path, PathBuf};

use session_tree::{Json, NewBranchSummary, NewEntry, Object, Session};

use super::{
    SessionOutput,
    file::{Leaf, Loaded, failed, stamp, working_directory},
    shape, show,
};

#[derive(Debug, clap::Args)]
pub(super) struct Branch {
    /// The session's file, or the id of a session of capture's own agent.
    pub(super) file: PathBuf,
    /// The entry at which the session continues, or `null` for before the first one.
    #[arg(value_name = "ID|null")]
    leaf: Leaf,
    /// Summary of the branch that the session leaves.
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Fork {
    /// The session's file, or the id of a session of capture's own agent.
    pub(super) file: PathBuf,
    /// The new session ends before this user message or, with `--whole`, with this entry.
    #[arg(value_name = "ID")]
    entry: String,
    /// End the new session with this entry, which need not be a user message.
    #[arg(long)]
    whole: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Labels {
    /// The session's file, or the id of a session of capture's own agent.
    pub(super) file: PathBuf,
    /// Set a label on an entry.
    #[arg(long, num_args = 2, value_names = ["ID", "TEXT"])]
    set: Vec<String>,
    /// Remove the label of an entry.
    #[arg(long, value_name = "ID", conflicts_with = "set")]
    clear: Option<String>,
}

/// Opens a file for writing. A missing file, or one that is not a session, causes an error and is left unchanged.
fn open(file: &Path) -> anyhow::Result<Session> {
    let session = Session::open(file, &working_directory()?, stamp()?).map_err(failed)?;
    Ok(session)
}

pub(super) fn branch(arguments: &Branch) -> anyhow::Result<SessionOutput> {
    let mut session = open(&arguments.file)?;
    let id = match &arguments.leaf {
        Leaf::Before => None,
        Leaf::Entry(id) | Leaf::EntryOrLast(id) => Some(meant(&arguments.file, id)?),
    };
    match (&arguments.summary, &id) {
        (Some(summary), id) => {
            let new = NewBranchSummary { summary: summary.clone(), ..NewBranchSummary::default() };
            session.branch_with_summary(id.as_deref(), new, stamp()?).map(|_| ()).map_err(failed)?;
        }
        (None, Some(id)) => session.branch(id, stamp()?).map_err(failed)?,
        (None, None) => session.reset_leaf(stamp()?).map_err(failed)?,
    }
    let leaf = session.tree().leaf_id();
    let text = leaf.map_or("The session continues before its first entry.".to_owned(), |id| {
        format!(
            "The session continues \
            at {id}."
        )
    });
    Ok(SessionOutput { json: ok().with("leafId", leaf.map_or(Json::Null, Json::from)), text })
}

pub(super) fn fork(arguments: &Fork) -> anyhow::Result<SessionOutput> {
    let session = open(&arguments.file)?;
    let id = meant(&arguments.file, &arguments.entry)?;
    let (mut new, before) = if arguments.whole {
        (session.branched(&id, stamp()?).map_err(failed)?, None)
    } else {
        let forked = session.forked(&id, stamp()?).map_err(failed)?;
        (forked.session, Some(forked.text))
    };
    // The user asked for the file, so write it even if the conversation is empty.
    new.save().map_err(failed)?;
    let file = new.path().display().to_string();
    let leaf = new.tree().leaf_id().map_or(Json::Null, Json::from);
    let json = ok().with("file", file.as_str()).with("leafId", leaf).with_some("text", before);
    Ok(SessionOutput { json, text: file })
}

pub(super) fn labels(arguments: &Labels) -> anyhow::Result<SessionOutput> {
    let change = match (arguments.set.as_slice(), &arguments.clear) {
        ([id, text], _) => Some((id, Some(text.clone()))),
        (_, Some(id)) => Some((id, None)),
        (_, None) => None,
    };
    if let Some((id, text)) = change {
        let target = meant(&arguments.file, id)?;
        let mut session = open(&arguments.file)?;
        session.append(NewEntry::Label { target, text }, stamp()?).map(|_| ()).map_err(failed)?;
    }
    let loaded = Loaded::read(&arguments.file)?;
    Ok(SessionOutput { json: shape::labels(&loaded), text: show::labels(&loaded) })
}

pub(super) fn migrate(file: &Path) -> anyhow::Result<SessionOutput> {
    let is_old = Loaded::read(file)?.is_old;
    let mut session = open(file)?;
    session.save().map_err(failed)?;
    let loaded = Loaded::read(file)?;
    let text = if is_old { "The file now has version 3." } else { "The file already has version 3." };
    let changed = loaded.size_before;
    Ok(SessionOutput { json: ok().with("migrated", is_old).with("size", changed), text: text.to_owned() })
}

/// The id of an entry that the user named as shown.
fn meant(file: &Path, id: &str) -> anyhow::Result<String> {
    let leaf = Leaf::Entry(id.to_owned());
    let loaded = Loaded::read(file)?.at(Some(&leaf))?;
    Ok(loaded.leaf().and_then(session_tree::Entry::id).unwrap_or(id).to_owned())
}

fn ok() -> Object {
    Object::new().with("ok", true)
}
