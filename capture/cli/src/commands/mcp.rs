//! `capture mcp`

use client::failure::with_causes;
use mcp::WriteTool;

use super::context::Context;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Also offer this tool, which changes something. Agents and the processes they started cannot use it.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TOOL")]
    allow: Vec<AllowedTool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum AllowedTool {
    /// Queue prompts for runs.
    Send,
    /// Set and remove labels of sessions.
    Label,
}

pub(super) fn run(context: Context, arguments: &Arguments) -> anyhow::Result<()> {
    let allowed = arguments.allow.iter().map(|tool| match tool {
        AllowedTool::Send => WriteTool::SendPrompt,
        AllowedTool::Label => WriteTool::SetLabels,
    });
    let allowed = allowed.collect();
    let Context { data, config, connection, .. } = context;
    let connect = move || client::connect(&data, &config, connection).map_err(|error| with_causes(&error));
    Ok(mcp::serve(Box::new(connect), allowed)?)
}
