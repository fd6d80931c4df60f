//! `capture init`: completions for a shell, and where to install them.

use std::{
    io::{IsTerminal, Write},
    path::PathBuf,
};

use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};
use home::paths;

/// The variable a shell's completion script sets to request candidates.
pub(super) const VARIABLE: &str = "CAPTURE_COMPLETE";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The shell.
    shell: Shell,
}

/// A shell whose commands can be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

/// On a terminal, explains where to put the line; otherwise prints the script that the line evaluates.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let shell = arguments.shell;
    let mut out = printing::stdout();
    if std::io::stdout().is_terminal() {
        let (file, line) = shell.place();
        writeln!(out, "Add this line to {file}, then start a new shell:\n\n    {line}\n")?;
        writeln!(out, "It completes commands, options, and the ids and names of live sessions, runs and requests.")?;
        return Ok(out.flush()?);
    }
    let mut script = Vec::new();
    shell.completer().write_registration(VARIABLE, "capture", "capture", "capture", &mut script)?;
    Ok(out.write_all(&script)?)
}

impl Shell {
    fn completer(self) -> &'static dyn EnvCompleter {
        match self {
            Self::Bash => &Bash,
            Self::Zsh => &Zsh,
            Self::Fish => &Fish,
            Self::Elvish => &Elvish,
            Self::Powershell => &Powershell,
        }
    }

    pub(super) fn name(self) -> &'static str {
        self.completer().name()
    }

    /// The start-up file and the line for it.
    fn place(self) -> (&'static str, &'static str) {
        match self {
            Self::Bash => ("~/.bashrc", r#"eval "$(capture init bash)""#),
            Self::Zsh => ("~/.zshrc (below `compinit`)", r#"eval "$(capture init zsh)""#),
            Self::Fish => ("~/.config/fish/config.fish", "capture init fish | source"),
            Self::Elvish => ("~/.config/elvish/rc.elv", "eval (capture init elvish | slurp)"),
            Self::Powershell => ("$PROFILE", "capture init powershell | Out-String | Invoke-Expression"),
        }
    }

    /// The user's login shell; `None` if it is not a supported one.
    pub(super) fn of_user() -> Option<Self> {
        let shell = paths::variable("SHELL")?;
        match shell.file_name()?.to_str()? {
            "bash" => Some(Self::Bash),
            "zsh" => Some(Self::Zsh),
            "fish" => Some(Self::Fish),
            "elvish" => Some(Self::Elvish),
            "pwsh" => Some(Self::Powershell),
            _ => None,
        }
    }

    /// Whether a start-up file of the shell mentions `capture init`.
    pub(super) fn is_set_up(self) -> bool {
        let Ok(home) = paths::home() else { return false };
        let files: Vec<PathBuf> = match self {
            Self::Bash => vec![home.join(".bashrc"), home.join(".bash_profile"), home.join(".profile")],
            Self::Zsh => vec![paths::variable("ZDOTDIR").unwrap_or_else(|| home.clone()).join(".zshrc")],
            Self::Fish => vec![home.join(".config/fish/config.fish")],
            Self::Elvish => vec![home.join(".config/elvish/rc.elv")],
            Self::Powershell => Vec::new(),
        };
        files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).any(|text| text.contains("capture init"))
    }
}
