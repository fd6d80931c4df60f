//! `capture jump`: brings the terminal of a session to the front.

use std::process::{Command, Stdio};

use client::failure::Failed;
use printing::style;
use serde::Serialize;

use super::{
    context::{Context, find, print_line},
    seen,
};
use printing::safe;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of
    /// its id.
    session: String,
    /// Only print where the terminal is.
    #[arg(long)]
    dry_run: bool,
}

/// The location of a session's terminal.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Terminal {
    /// The process that uses the terminal.
    pid: u32,
    /// The terminal device.
    tty: String,
    /// How to bring the terminal to the front.
    by: Option<Way>,
}

/// A program that can bring a terminal to the front.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    /// A pane of tmux, by its id.
    Tmux { socket: String, pane: String },
    /// A window of kitty, by its id.
    Kitty { listen_on: String, window: String },
    /// A pane of WezTerm, by its id.
    Wezterm { pane: String },
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let client = context.client()?;
    let session = find(&client, &arguments.session)?;
    let short = style::short(&session.id);
    let Some(pid) = session.pid else {
        return Err(Failed::NotFound(format!("session {short} has no live process, so it has no terminal")).into());
    };
    let terminal = front(&session, pid)?;
    if context.json {
        context.print_json(&terminal)?;
    }
    if arguments.dry_run {
        return if context.json { Ok(()) } else { print_line(&described(&terminal)) };
    }
    let Some(way) = &terminal.by else {
        if let Some(run) = &session.run_id {
            let attach = format!("session {short} is in a run: `capture attach {}` opens it here", style::short(run));
            return Err(Failed::Other(attach).into());
        }
        let title = session.title.as_deref().map(|title| format!(", title \"{}\"", safe(title))).unwrap_or_default();
        return Err(Failed::Other(format!(
            "session {short} is on {} (pid {pid}{title}); capture can only bring terminals of tmux, kitty and WezTerm \
             to the front",
            safe(&terminal.tty)
        ))
        .into());
    };
    way.go()?;
    seen::completion(&client, session.id);
    Ok(())
}

/// The terminal of a process, and the program that displays it.
fn front(session: &projections::Session, pid: u32) -> anyhow::Result<Terminal> {
    let gone = || Failed::NotFound(format!("session {} has no terminal", style::short(&session.id)));
    let tty = processes::terminal_of(pid).ok_or_else(gone)?;
    Ok(Terminal { pid, by: Way::of(&|name| processes::variable_of(pid, name)), tty })
}

fn described(terminal: &Terminal) -> String {
    let by = match &terminal.by {
        None => "cannot be brought to the front from here".to_owned(),
        Some(Way::Tmux { pane, .. }) => format!("pane {} of tmux", safe(pane)),
        Some(Way::Kitty { window, .. }) => format!("window {} of kitty", safe(window)),
        Some(Way::Wezterm { pane }) => format!("pane {} of WezTerm", safe(pane)),
    };
    format!("{} (pid {}): {by}", safe(&terminal.tty), terminal.pid)
}

impl Way {
    /// Reads the program that displays a process's terminal from the process's environment. The agent can set these
    /// values and they become arguments of a command, so they are validated.
    fn of(variable: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if let (Some(tmux), Some(pane)) = (variable("TMUX"), variable("TMUX_PANE"))
            && pane.strip_prefix('%').is_some_and(number)
        {
            // SOCKET,PID,SESSION
            let socket = tmux.split(',').next().unwrap_or_default().to_owned();
            return socket.starts_with('/').then_some(Self::Tmux { socket, pane });
        }
        if let (Some(listen_on), Some(window)) = (variable("KITTY_LISTEN_ON"), variable("KITTY_WINDOW_ID"))
            && number(&window)
            && listen_on.starts_with("unix:")
        {
            return Some(Self::Kitty { listen_on, window });
        }
        let pane = variable("WEZTERM_PANE").filter(|pane| number(pane))?;
        Some(Self::Wezterm { pane })
    }

    fn go(&self) -> anyhow::Result<()> {
        match self {
            Self::Tmux { socket, pane } => {
                // If a client shows another pane, possibly of another session, it is switched to this one.
                command("tmux", &["-S", socket, "switch-client", "-t", pane]).ok();
                command("tmux", &["-S", socket, "select-window", "-t", pane])?;
                command("tmux", &["-S", socket, "select-pane", "-t", pane])
            }
            Self::Kitty { listen_on, window } => {
                command("kitty", &["@", "--to", listen_on, "focus-window", "--match", &format!("id:{window}")])
            }
            Self::Wezterm { pane } => command("wezterm", &["cli", "activate-pane", "--pane-id", pane]),
        }
    }
}

fn command(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failed::Other(format!("cannot run `{program}`: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(Failed::Other(format!("`{program} {}` failed: {}", arguments.join(" "), safe(why.trim()))).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(variables: &[(&str, &str)]) -> Option<Way> {
        Way::of(&|name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_pane_is_read_from_the_environment() {
        let pane = Some(Way::Tmux { socket: "/tmp/tmux-1000/default".into(), pane: "%3".into() });
        assert_eq!(way(&[("TMUX", "/tmp/tmux-1000/default,812,0"), ("TMUX_PANE", "%3")]), pane);
        assert_eq!(way(&[("WEZTERM_PANE", "7")]), Some(Way::Wezterm { pane: "7".into() }));
        let kitty = Some(Way::Kitty { listen_on: "unix:/tmp/kitty".into(), window: "2".into() });
        assert_eq!(way(&[("KITTY_LISTEN_ON", "unix:/tmp/kitty"), ("KITTY_WINDOW_ID", "2")]), kitty);
    }

    #[test]
    fn invalid_pane_variables_are_ignored() {
        assert_eq!(way(&[("TMUX", "/tmp/s,1,0"), ("TMUX_PANE", "%3; kill-server")]), None);
        assert_eq!(way(&[("TMUX", "relative,1,0"), ("TMUX_PANE", "%3")]), None);
        assert_eq!(way(&[("WEZTERM_PANE", "--help")]), None);
        assert_eq!(way(&[("KITTY_LISTEN_ON", "tcp:evil:1"), ("KITTY_WINDOW_ID", "2")]), None);
        assert_eq!(way(&[]), None);
    }
}
