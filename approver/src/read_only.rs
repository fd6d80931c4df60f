//! Judges one simple command: git by rules of its own, every other program by the tables.

use crate::{
    facts::Facts,
    git,
    paths::WorkingDir,
    shell::SimpleCommand,
    tools::{self, ReadOnlyCommand, resolved},
};

/// Whether the command is known to read only, and nothing it should not.
///
/// # Errors
/// A sentence that says why not.
pub(crate) fn judge(
    command: &SimpleCommand,
    working_dir: &WorkingDir,
    facts: &dyn Facts,
) -> Result<ReadOnlyCommand, String> {
    match command.words.split_first() {
        Some((first, words)) if first.text == "git" => {
            resolved(first, working_dir, facts)?;
            if command.input.is_some() || words.iter().any(|word| !word.is_exact()) {
                return Err("Git is only allowed without input redirection and with plain words.".into());
            }
            git::judge(words, working_dir, facts)
        }
        Some(_) | None => tools::judge(command, working_dir, facts),
    }
}
