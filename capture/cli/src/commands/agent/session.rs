//! `capture agent session`: inspects and changes a session file.
//!
//! With `--json` the output has the format of pi's answers, without our schema version. Problems of the file go to
//! standard error. Only `branch`, `fork`, `labels` with a change, and `migrate` write.

mod change;
mod export;
mod file;
mod shape;
mod show;

use std::{path::PathBuf, process::ExitCode};

use client::failure::{Failed, with_causes};
use session_tree::{Context, Object, compaction, llm};

use self::file::{Leaf, Loaded};
use super::super::number::integer;
use crate::commands::context::print_line;
use printing::safe_json;

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: SessionCommand,
}

#[derive(Debug, clap::Subcommand)]
enum SessionCommand {
    /// Summarize the file and list its problems.
    Load(Load),
    /// Print the context at one entry: messages, thinking level, model.
    Context(At),
    /// Print the messages that a model would receive at one entry.
    Llm(At),
    /// Print the whole tree.
    Tree(SessionFile),
    /// Print the entries on the path from the root to one entry.
    Path(At),
    /// Continue at another entry, or before the first one.
    Branch(change::Branch),
    /// Create a new session from the entries before a user message, or with `--whole` up to and including any entry.
    Fork(change::Fork),
    /// List, set or remove labels.
    Labels(change::Labels),
    /// Convert a file of an older version to the current version, in place.
    Migrate(SessionFile),
    /// Show which messages a compaction would summarize and which it would keep.
    CompactPlan(CompactPlan),
    /// Write the tree as one self-contained HTML page.
    Export(export::Export),
}

#[derive(Debug, clap::Args)]
struct SessionFile {
    /// The session's file, or the id of a session of capture's own agent.
    file: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Load {
    /// The session's file, or the id of a session of capture's own agent.
    file: PathBuf,
    /// With --json: include the file's problems.
    #[arg(long, visible_alias = "problems")]
    issues: bool,
}

#[derive(Debug, clap::Args)]
struct At {
    /// The session's file, or the id of a session of capture's own agent.
    file: PathBuf,
    /// The point: an entry's id, or `null` for before the first entry [default: the session's current point].
    #[arg(long, value_name = "ID|null")]
    leaf: Option<Leaf>,
}

#[derive(Debug, clap::Args)]
struct CompactPlan {
    #[command(flatten)]
    at: At,
    /// Approximate number of most recent tokens to keep unchanged.
    #[arg(long, value_name = "TOKENS", value_parser = integer::<u64>, default_value_t = compaction::CompactionSettings::default().keep_recent_tokens)]
    keep: u64,
}

/// The result of a command, for programs and for users.
struct SessionOutput {
    json: Object,
    text: String,
}

/// Runs the command. `own_file` finds the file of a session of our own agent by its id.
pub(super) fn run(
    json: bool,
    mut arguments: Arguments,
    own_file: impl FnOnce(&str) -> anyhow::Result<PathBuf>,
) -> anyhow::Result<ExitCode> {
    let file = arguments.verb.file();
    if let Some(id) = file.to_str().filter(|text| is_id(text) && !file.exists()) {
        *file = own_file(id)?;
    }
    match answer(&arguments.verb) {
        Ok(answer) if json => print_line(&safe_json(&answer.json.to_text()))?,
        Ok(answer) => print_line(answer.text.trim_end())?,
        Err(error) => {
            if json {
                let failed = Object::new().with("ok", false).with("error", with_causes(&error));
                print_line(&safe_json(&failed.to_text()))?;
            }
            return Err(error);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a text can be an id rather than a file path.
fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

impl SessionCommand {
    /// The session's file, as typed by the user.
    fn file(&mut self) -> &mut PathBuf {
        match self {
            Self::Load(of) => &mut of.file,
            Self::Context(of) | Self::Llm(of) | Self::Path(of) => &mut of.file,
            Self::Tree(of) | Self::Migrate(of) => &mut of.file,
            Self::Branch(of) => &mut of.file,
            Self::Fork(of) => &mut of.file,
            Self::Labels(of) => &mut of.file,
            Self::CompactPlan(of) => &mut of.at.file,
            Self::Export(of) => &mut of.at.file,
        }
    }
}

fn answer(verb: &SessionCommand) -> anyhow::Result<SessionOutput> {
    match verb {
        SessionCommand::Load(arguments) => {
            let loaded = Loaded::read(&arguments.file)?;
            let json = shape::load(&loaded, arguments.issues);
            Ok(SessionOutput { json, text: show::load(&loaded, &arguments.file) })
        }
        SessionCommand::Context(at) => at.answer(|loaded, context| {
            let messages = context.messages().cloned().map(Into::into).collect();
            (shape::context(loaded, context, messages), show::messages(context.messages()))
        }),
        SessionCommand::Llm(at) => at.answer(|loaded, context| {
            let messages = llm::to_model(context.messages());
            let text = show::messages(messages.iter().map(AsRef::as_ref));
            let messages = messages.into_iter().map(|message| message.into_owned().into()).collect();
            (shape::context(loaded, context, messages), text)
        }),
        SessionCommand::Tree(which) => {
            let loaded = Loaded::read(&which.file)?;
            Ok(SessionOutput { json: shape::tree(&loaded), text: show::tree(&loaded) })
        }
        SessionCommand::Path(at) => {
            let loaded = Loaded::read(&at.file)?.at(at.leaf.as_ref())?;
            let path = loaded.tree.path(loaded.leaf());
            Ok(SessionOutput { json: shape::path(&loaded, &path), text: show::path(&loaded, &path) })
        }
        SessionCommand::CompactPlan(arguments) => {
            let loaded = Loaded::read(&arguments.at.file)?.at(arguments.at.leaf.as_ref())?;
            let path = loaded.tree.path(loaded.leaf());
            let settings = compaction::CompactionSettings {
                keep_recent_tokens: arguments.keep,
                ..compaction::CompactionSettings::default()
            };
            let plan = compaction::CompactionPlan::of(&path, settings);
            Ok(SessionOutput { json: shape::plan(&loaded, plan.as_ref()), text: show::plan(&loaded, plan.as_ref()) })
        }
        SessionCommand::Branch(arguments) => change::branch(arguments),
        SessionCommand::Fork(arguments) => change::fork(arguments),
        SessionCommand::Labels(arguments) => change::labels(arguments),
        SessionCommand::Migrate(which) => change::migrate(&which.file),
        SessionCommand::Export(arguments) => export::export(arguments),
    }
}

impl At {
    fn answer(&self, make: impl FnOnce(&Loaded, &Context<'_>) -> (Object, String)) -> anyhow::Result<SessionOutput> {
        let loaded = Loaded::read(&self.file)?.at(self.leaf.as_ref())?;
        let context = Context::of(&loaded.tree, loaded.leaf());
        let (json, text) = make(&loaded, &context);
        Ok(SessionOutput { json, text })
    }
}

#[cfg(test)]
mod tests;
