//! `capture runs`: the programs that `capture run` started.

use api::{
    routes::ListRuns,
    runs::{Run, RunPage, RunState},
};
use comfy_table::{ColumnConstraint, ContentArrangement, Table, TableStyle};
use home::clock;
use printing::style;

use super::{context::Context, watch::show};
use printing::{safe, wrapped};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Include runs that ended recently.
    #[arg(long, short)]
    all: bool,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let mut page = context.client()?.one::<ListRuns>("")?;
    page.runs.retain(|run| arguments.all || run.state != RunState::Exited);
    if context.json { context.print_json(&page) } else { show(&render(&page, arguments.all, printing::width())) }
}

/// Minimum width for all columns, in columns of text.
const ROOM_FOR_ALL: usize = 64;
/// The index of the age column.
const AGE: usize = 3;
/// The index of the session column.
const SESSION: usize = 4;

fn render(page: &RunPage, all: bool, width: Option<usize>) -> String {
    if page.runs.is_empty() {
        let hint = if all { "no runs yet" } else { "no active runs (--all includes those that ended recently)" };
        return wrapped(&format!("{hint}; `capture run -- PROGRAM` starts one"), width, 0) + "\n";
    }
    let now = clock::now();
    let mut table = Table::new();
    table.load_style(TableStyle::new()).force_no_tty();
    table.set_content_arrangement(match width {
        Some(_) => ContentArrangement::Dynamic,
        None => ContentArrangement::Disabled,
    });
    if let Some(width) = width {
        table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    }
    // Short columns are never cut; if there is no room for all columns, some are omitted.
    let is_shown = |column: usize| width.is_none_or(|width| width >= ROOM_FOR_ALL) || !matches!(column, AGE | SESSION);
    let shown = |cells: Vec<String>| {
        let cells = cells.into_iter().enumerate().filter(|(column, _)| is_shown(*column));
        let mut row = comfy_table::Row::from(cells.map(|(_, cell)| cell).collect::<Vec<_>>());
        row.max_height(1);
        row
    };
    table.set_header(shown(["NAME", "RUN", "STATE", "AGE", "SESSION", "COMMAND"].map(str::to_owned).into()));
    for run in &page.runs {
        table.add_row(shown(vec![
            run.hello.name.as_deref().map(safe).unwrap_or_default(),
            style::short(&run.id),
            state(run),
            style::age(run.hello.started_at, now),
            run.session_id.map(|id| style::short(&id)).unwrap_or_default(),
            safe(&projections::shorten::verbatim_line(&run.hello.command.join(" "), 300)),
        ]));
    }
    let last = table.column_count().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { 2 }));
        if index != 0 && index != last {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    format!("{}\n", table.trim_fmt())
}

/// The state of a run, and how it ended.
fn state(run: &Run) -> String {
    match (run.state, run.exit_code, run.exit_signal) {
        (RunState::Running, _, _) => "running".to_owned(),
        (RunState::Unreachable, _, _) => "unreachable".to_owned(),
        (RunState::Exited, _, Some(signal)) => format!("ended by signal {signal}"),
        (RunState::Exited, Some(code), None) => format!("exited with {code}"),
        (RunState::Exited, None, None) => "exited".to_owned(),
    }
}
