//! The commands of a call one by one, for those who hold them against what a person said: which programs they run with
//! which words, and which of them certainly succeeded.

use events::{CheckClass, ToolOutcome};

use super::{
    ExitMeans, LineExit,
    line::{self, LineCommand},
    programs, summary,
};
use crate::failure::FinishedCall;

/// A command of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommand {
    /// Its words without quotes, and without the programs that only start it (`sudo`, `timeout 60`, `npx`).
    /// Substitutions stay as written.
    pub words: Vec<String>,
    /// The files that its redirections write.
    pub writes: Vec<String>,
    /// What it checks or publishes.
    pub class: Option<CheckClass>,
    exit: ExitMeans,
    /// Whether no other program of the line prints anything.
    alone: bool,
}

/// The commands of a line, in order; empty if the line cannot be parsed.
#[must_use]
pub fn commands(line: &str) -> Vec<ShellCommand> {
    let commands = line::commands_of(line).unwrap_or_default();
    let alone = commands.iter().filter(|command| !programs::only_shows(&command.words)).count() <= 1;
    let command = |command: LineCommand| ShellCommand {
        class: programs::class_of(&command.words),
        exit: if command.background { ExitMeans::Nothing } else { command.exit },
        words: programs::without_wrappers(&command.words).to_vec(),
        writes: command.writes,
        alone,
    };
    commands.into_iter().map(command).collect()
}

impl ShellCommand {
    /// The name of its program, without a directory.
    #[must_use]
    pub fn program(&self) -> &str {
        self.words.first().map_or("", |word| programs::base(word))
    }

    /// Whether it certainly ran and succeeded in a finished call: by what git printed, or else by the exit code, as far
    /// as the code is its own.
    #[must_use]
    pub fn succeeded(&self, call: &FinishedCall<'_>) -> bool {
        let text = call.text.unwrap_or_default();
        match call.outcome {
            ToolOutcome::Ok | ToolOutcome::Error => {}
            ToolOutcome::Denied | ToolOutcome::Blocked | ToolOutcome::Cancelled => return false,
        }
        if text.starts_with("<tool_use_error>") {
            return false;
        }
        let exit = LineExit::of(call);
        let printed = self.class.and_then(|class| match class {
            CheckClass::Commit | CheckClass::Push | CheckClass::Merge => summary::of_git(class, text, self.alone),
            CheckClass::Tests
            | CheckClass::Build
            | CheckClass::Types
            | CheckClass::Lint
            | CheckClass::Format
            | CheckClass::Deploy
            | CheckClass::Install => None,
        });
        let by_exit = self.exit.shows_success(exit);
        match printed {
            // git exits with 0 only if it did it: another command printed the failure.
            Some(false) => by_exit,
            // In a line that failed, another command may have printed the success.
            Some(true) => by_exit || exit != LineExit::NotZero,
            None => by_exit,
        }
    }
}
