//! `capture findings`: what the monitor noticed about sessions.

use std::{cmp::Reverse, fmt::Write};

use anstyle::Style;
use api::{
    findings::{FindingPage, FindingsQuery, StateFilter},
    list::Limit,
    routes::{AcknowledgeFinding, EmptyBody, GetFinding, ListFindings},
};
use client::Client;
use events::{Finding, FindingKind, FindingState, Severity};
use home::clock;
use printing::style;

use super::{
    context::{Context, print_line},
    meanings,
    number::count,
    watch::{ALL, ListText, Watched, show, watch},
    words::one_of_explained,
};
use printing::{safe, wrapped};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Show only this finding, with its evidence: its id, or at least 3 characters from the start or end of its id.
    pub(super) id: Option<String>,
    /// Acknowledge the finding, so that it is not reported again.
    #[arg(long, requires = "id")]
    ack: bool,
    /// Include resolved findings.
    #[arg(long, short)]
    all: bool,
    /// Keep the list on the screen and update it.
    #[arg(long, short, conflicts_with = "id")]
    watch: bool,
    /// Only findings of this session: its id, or at least 3 characters from the start or end of its id.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Only these kinds.
    #[arg(long, value_delimiter = ',', value_name = "KIND", value_parser = one_of_explained(FindingKind::ALL, FindingKind::as_str, meanings::of_finding))]
    kind: Vec<FindingKind>,
    /// Maximum number of findings.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = count, allow_negative_numbers = true)]
    limit: usize,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let client = context.client()?;
    if let Some(id) = &arguments.id {
        let finding = if arguments.ack {
            client.send::<AcknowledgeFinding>(id, &EmptyBody {})?
        } else {
            client.one::<GetFinding>(id)?
        };
        return if context.json { context.print_json(&finding) } else { show(&whole(&finding)) };
    }
    let session = arguments.session.as_deref().map(|given| super::context::find(&client, given)).transpose()?;
    let query = FindingsQuery {
        state: arguments.all.then_some(StateFilter::All),
        kind: arguments.kind.clone().into(),
        session: session.map(|session| session.id.to_string()),
        cursor: None,
        limit: Some(Limit::of(arguments.limit)),
    };
    if arguments.watch {
        return watch(context, &client, ALL, FindingList { client: &client, query, all: arguments.all });
    }
    let page = client.get::<ListFindings>("", &query)?;
    if context.json { context.print_json(&page) } else { print_line(rows(&page, arguments.all).trim_end()) }
}

/// The list of findings in watch mode.
struct FindingList<'a> {
    client: &'a Client,
    query: FindingsQuery,
    all: bool,
}

impl Watched<FindingPage> for FindingList<'_> {
    fn list(&self) -> anyhow::Result<FindingPage> {
        Ok(self.client.get::<ListFindings>("", &self.query)?)
    }

    fn render(&self, page: &FindingPage) -> ListText {
        ListText::new(&rows(page, self.all), 0)
    }
}

fn rows(page: &FindingPage, all: bool) -> String {
    if page.findings.is_empty() {
        return if all { "no findings yet\n" } else { "no open findings (--all includes resolved ones)\n" }.to_owned();
    }
    let now = clock::now();
    let mut text = String::new();
    let mut findings: Vec<&Finding> = page.findings.iter().collect();
    // Open findings first, then by severity, then newest first.
    findings.sort_by_key(|f| (!f.is_open(), Reverse(f.severity), Reverse(f.first_at)));
    for finding in findings {
        let (mark, colour) = mark(finding);
        let head = style::painted(&format!("{mark} {:<16}", finding.kind), colour);
        let times = if finding.count > 1 { format!("  ×{}", finding.count) } else { String::new() };
        let state = match finding.state {
            FindingState::Open => "",
            FindingState::Acknowledged => "  (acknowledged)",
            FindingState::Resolved => "  (over)",
        };
        let age = style::age(finding.first_at, now);
        let what = format!("{head}  {}  {age:>4}{times}  {}{state}", finding.id, safe(&finding.what));
        let why = format!("    {}  {}", style::short(&finding.session_id), safe(&finding.why));
        for line in [what, why] {
            let _ = writeln!(text, "{}", wrapped(&line, printing::width(), 4));
        }
    }
    text
}

fn mark(finding: &Finding) -> (&'static str, Style) {
    match (finding.is_open(), finding.severity) {
        (false, _) => ("✓", style::DIM),
        (true, Severity::Info) => ("·", style::CYAN),
        (true, Severity::Warning) => ("▲", style::YELLOW),
        (true, Severity::Error) => ("■", style::ALARM),
    }
}

/// One finding in full.
fn whole(finding: &Finding) -> String {
    let mut text = rows(&FindingPage { as_of: 0, findings: vec![finding.clone()], next_cursor: None }, true);
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "    {name:<10} {}", safe(&value));
        }
    };
    line("about", finding.subject.clone());
    line("session", Some(finding.session_id.to_string()));
    line("approval", finding.approval_id.as_ref().map(ToString::to_string));
    line("first seen", Some(style::local(finding.first_at)));
    line("last seen", Some(style::local(finding.last_at)));
    line("until", finding.until.map(style::local));
    line("over since", finding.resolved_at.map(style::local));
    line("because", finding.resolution.clone());
    line("to do", finding.is_open().then(|| finding.kind.facts().advice.to_owned()));
    for id in &finding.evidence {
        line("evidence", Some(format!("event {id}")));
    }
    text
}
