//! `capture send`: types into a run.

use api::{routes::RunInput, runs::Input};

use super::{Context, Failed};

#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true).args(["text", "keys", "interrupt"]),
    override_usage = "capture send [OPTIONS] <TARGET> <TEXT>
       capture send [OPTIONS] <TARGET> --keys <KEY>...
       capture send [OPTIONS] <TARGET> --interrupt",
)]
pub(super) struct Arguments {
    /// The run: its name, its id, at least 3 characters from the start or end of it, or the session that it hosts.
    target: String,
    /// Text to type, followed by Enter.
    text: Option<String>,
    /// Keys to press instead, in order, separated by spaces or commas: `enter`, `esc`, `ctrl-c`, `up`, `y`, `1` and so
    /// on.
    #[arg(long, num_args = 1.., value_name = "KEY")]
    keys: Option<Vec<String>>,
    /// Press the agent's interrupt key: Esc for some agents (such as codex), Ctrl-C for others and for other programs.
    #[arg(long)]
    interrupt: bool,
    /// Do not press Enter after the text.
    #[arg(long, requires = "text")]
    no_submit: bool,
    /// Type the text even while a dialog is open; it may answer the dialog.
    #[arg(long, requires = "text")]
    force: bool,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let Some(client) = context.running()? else {
        return Err(Failed::NotFound("cannot send: no server is running".into()).into());
    };
    let input = Input {
        text: arguments.text.clone(),
        submit: arguments.text.is_some() && !arguments.no_submit,
        keys: arguments.keys.as_deref().map(keys_of),
        interrupt: arguments.interrupt,
        force: arguments.force,
    };
    let sent = client.send::<RunInput>(&arguments.target, &input)?;
    if context.json {
        context.print_json(&sent)?;
    }
    Ok(())
}

/// The keys that were given, one each; a comma alone is the key.
fn keys_of(given: &[String]) -> Vec<String> {
    let keys = given.iter().flat_map(|word| match word.as_str() {
        "," => vec![","],
        word => word.split(',').filter(|key| !key.is_empty()).collect(),
    });
    keys.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::keys_of;

    #[test]
    fn keys_are_separated_by_spaces_or_commas() {
        let given = ["esc,enter", "ctrl-c", ",", "y"].map(str::to_owned);
        assert_eq!(keys_of(&given), ["esc", "enter", "ctrl-c", ",", "y"]);
    }
}
