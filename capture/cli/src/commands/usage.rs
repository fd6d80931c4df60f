//! `capture usage`: tokens and costs, quotas, and the quality of sessions.

use api::{
    list::Limit,
    routes::{QualityOfAll, UsageOfAll},
    usage::{QualityQuery, UsageBy, UsageQuery},
};
use events::Provider;
use home::clock;
use jiff::tz::TimeZone;

use super::{context::Context, number::count, output::has_template, watch::show, when, words::one_of};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Group the rows by this.
    #[arg(long, value_name = "BY", default_value = "day", value_parser = one_of(UsageBy::ALL, UsageBy::as_str))]
    by: UsageBy,
    /// Start of the period: a day (2026-11-20, yesterday), RFC 3339, HH:MM[:SS] today, or an age (5m, 2h, 3d).
    #[arg(long, default_value = "30d", value_name = "TIME", allow_hyphen_values = true)]
    since: String,
    /// End of the period, in the formats of --since.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,
    /// Only this session and its sub-agents: its id, the agent's id, or at least 3 characters from the start or end of
    /// its id.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Only sessions of these agents.
    #[arg(long, value_delimiter = ',', value_name = "AGENT", value_parser = one_of(Provider::ALL, Provider::as_str))]
    agent: Vec<Provider>,
    /// Only sessions that began in a directory with this name, or in this directory or below it.
    #[arg(long, value_name = "NAME|DIR")]
    project: Option<String>,
    /// Only calls of this model, named as in the rows of `--by model`.
    #[arg(long, value_name = "MODEL", conflicts_with = "quality")]
    model: Option<String>,
    /// Maximum number of rows.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = count, allow_negative_numbers = true)]
    limit: usize,
    /// Show turns, failures, approval times and waiting times instead of tokens and costs.
    #[arg(long, conflicts_with = "by")]
    quality: bool,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let (now, zone) = (clock::now(), TimeZone::system());
    let (since, until) = when::period(Some(&arguments.since), arguments.until.as_deref())?;
    let (session, project) = (arguments.session.clone(), arguments.project.clone());
    let (agent, limit) = (arguments.agent.clone().into(), Some(Limit::of(arguments.limit)));
    let client = context.client()?;
    if arguments.quality {
        let query = QualityQuery { since, until, session, agent, project, limit };
        let report = client.get::<QualityOfAll>("", &query)?;
        if has_template() {
            return context.print_json(&serde_json::json!({ "sessions": report.sessions, "next_cursor": null }));
        }
        return if context.json { context.print_json(&report) } else { show(&crate::show::usage::quality(&report)) };
    }
    let tz = zone.iana_name().map(str::to_owned);
    let (by, model) = (Some(arguments.by), arguments.model.clone());
    let query = UsageQuery { by, model, since, until, session, agent, project, tz, limit };
    let report = client.get::<UsageOfAll>("", &query)?;
    if has_template() {
        return context.print_json(&serde_json::json!({ "usage": report.usage, "next_cursor": null }));
    }
    if context.json { context.print_json(&report) } else { show(&crate::show::usage::report(&report, now)) }
}
