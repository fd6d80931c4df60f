//! `capture statusline`: session counts for a prompt, tmux or a window title.

use std::io::Write;

use events::{Need, State};
use projections::Session;
use serde::Serialize;

use super::{
    context::{Context, active_sessions, print_line},
    ps::{self, Needs},
};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// How to print the counts.
    #[arg(long = "for", value_enum, default_value_t = OutputFormat::Plain, value_name = "TARGET")]
    target: OutputFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OutputFormat {
    /// Marks and counts only.
    Plain,
    /// With the colours of a tmux status line.
    Tmux,
    /// As the title of the terminal's window.
    Title,
}

/// The number of active sessions in each situation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct Counts {
    /// Sessions that continue only after the user acts: permission requests, questions, failures, and stuck sessions.
    need_you: usize,
    /// Sessions whose turn is done and unseen, and which wait for a prompt.
    waiting: usize,
    /// Sessions that are working.
    running: usize,
}

/// Maximum number of sessions counted.
const COUNTED: usize = 1000;

/// Prints nothing if no server is running: a prompt must not start one and must not wait.
pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let Some(client) = context.running()? else { return Ok(()) };
    let counts = Counts::of(&active_sessions(&client, COUNTED)?, &ps::needs(&client)?);
    if context.json {
        return context.print_json(&counts);
    }
    match arguments.target {
        OutputFormat::Plain => print_line(&counts.plain()),
        OutputFormat::Tmux => print_line(&counts.tmux()),
        OutputFormat::Title => {
            let mut out = printing::stdout();
            out.control(&format!("\x1b]2;{}\x07", counts.plain()))?;
            Ok(out.flush()?)
        }
    }
}

impl Counts {
    fn of(sessions: &[Session], needs: &Needs) -> Self {
        let mut counts = Self::default();
        // Sub-agents count as part of their parent.
        for session in sessions.iter().filter(|session| session.parent_session_id.is_none()) {
            match (needs.of(session), session.status.state) {
                (Some(Need::Approval | Need::Question | Need::Failure | Need::Stuck), _) => counts.need_you += 1,
                (Some(Need::Prompt), _) => counts.waiting += 1,
                (None, State::Running) => counts.running += 1,
                (None, State::Waiting | State::WaitingApproval | State::Idle | State::Exited | State::Unknown) => {}
            }
        }
        counts
    }

    /// Each nonzero count with the mark and colour of its state.
    fn parts(self) -> impl Iterator<Item = (&'static str, &'static str, usize)> {
        [("▲", "red", self.need_you), ("◆", "yellow", self.waiting), ("●", "green", self.running)]
            .into_iter()
            .filter(|(_, _, count)| *count > 0)
    }

    fn plain(self) -> String {
        self.parts().map(|(mark, _, count)| format!("{mark}{count}")).collect::<Vec<_>>().join(" ")
    }

    fn tmux(self) -> String {
        let part = |(mark, colour, count)| format!("#[fg={colour}]{mark}{count}#[default]");
        self.parts().map(part).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_line_omits_zero_counts() {
        let counts = Counts { need_you: 2, waiting: 0, running: 13 };
        assert_eq!(counts.plain(), "▲2 ●13");
        assert_eq!(counts.tmux(), "#[fg=red]▲2#[default] #[fg=green]●13#[default]");
        assert_eq!(Counts::default().plain(), "");
    }
}
