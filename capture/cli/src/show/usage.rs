//! Tables of the usage and quality of sessions.

use std::fmt::Write as _;

use api::usage::{ApprovalLatency, Quality, QualityReport, QuotaView, UsageBy, UsageReport, UsageRow, UsageSums};
use comfy_table::{CellAlignment, ContentArrangement, Table, TableStyle};
use events::Timestamp;

use printing::{safe, style, width};

/// Maximum length of a title, directory or model name, characters.
const NAME_CHARS: usize = 44;
/// Minimum width for one column per kind of token.
const ROOM_FOR_KINDS: usize = 100;

/// A report of tokens and costs.
pub(crate) fn report(report: &UsageReport, now: Timestamp) -> String {
    let mut text = String::new();
    let period = period(report.since, report.until);
    if report.usage.is_empty() {
        let _ = writeln!(text, "no usage {period}");
    } else {
        let _ = writeln!(text, "{period}\n");
        text.push_str(&sums(report));
        if report.more_rows > 0 {
            let _ = writeln!(text, "{} more rows; --limit shows more", report.more_rows);
        }
        for line in remarks(report) {
            let _ = writeln!(text, "{line}");
        }
    }
    for quota in &report.quotas {
        let _ = writeln!(text, "{}", in_words(quota, now));
    }
    text
}

/// The period of a report.
fn period(since: Option<Timestamp>, until: Option<Timestamp>) -> String {
    match (since.map(style::local), until.map(style::local)) {
        (Some(since), Some(until)) => format!("from {since} until {until}"),
        (Some(since), None) => format!("since {since}"),
        (None, Some(until)) => format!("until {until}"),
        (None, None) => "at any time".to_owned(),
    }
}

fn sums(report: &UsageReport) -> String {
    let is_wide = width().is_none_or(|width| width >= ROOM_FOR_KINDS);
    let kinds: &[&str] = if is_wide { &["INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE"] } else { &["TOKENS"] };
    let head = report.by.as_str().to_ascii_uppercase();
    let heading = [head.as_str(), "CALLS"].into_iter().chain(kinds.iter().copied()).chain(["CACHED", "COST"]);
    let mut table = plain();
    table.set_header(heading);
    for row in &report.usage {
        // A session includes its sub-agents, which have no line of their own.
        if row.parent_session_id.is_some() && report.usage.iter().any(|other| other.session_id == row.parent_session_id)
        {
            continue;
        }
        let sums = row.subagents.map_or(row.sums, |subagents| together(&row.sums, &subagents));
        table.add_row(cells(name(row, report.by), &sums, is_wide));
    }
    table.add_row(cells("total".to_owned(), &report.total, is_wide));
    right_but_first(&mut table, 1);
    format!("{}\n", table.trim_fmt())
}

fn cells(name: String, sums: &UsageSums, is_wide: bool) -> Vec<String> {
    let tokens = &sums.tokens;
    let kinds = [tokens.input_tokens, tokens.output_tokens, tokens.cache_read_tokens, tokens.cache_write_tokens];
    let mut cells = vec![name, sums.calls.to_string()];
    if is_wide {
        cells.extend(kinds.map(short));
    } else {
        cells.push(short(kinds.iter().sum()));
    }
    cells.push(sums.cache_hit_rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.0} %", rate * 100.0)));
    cells.push(cost(sums));
    cells
}

/// Adds the sums of a session's sub-agents to its own.
fn together(own: &UsageSums, subagents: &UsageSums) -> UsageSums {
    let mut sums = *own;
    sums.tokens.add_all(&subagents.tokens);
    sums.calls += subagents.calls;
    sums.unpriced_calls += subagents.unpriced_calls;
    sums.cost_usd = match (own.cost_usd, subagents.cost_usd) {
        (Some(own), Some(subagents)) => Some(own + subagents),
        (own, subagents) => own.or(subagents),
    };
    let tokens = sums.tokens;
    let input = tokens.input_tokens + tokens.cache_read_tokens + tokens.cache_write_tokens;
    sums.cache_hit_rate = (input > 0).then(|| ratio(tokens.cache_read_tokens, input));
    sums
}

fn name(row: &UsageRow, by: UsageBy) -> String {
    let cut = |text: &str| projections::shorten::verbatim_line(&safe(text), NAME_CHARS);
    match by {
        UsageBy::Day => row.day.clone().unwrap_or_default(),
        UsageBy::Week | UsageBy::Month => row.period.clone().unwrap_or_default(),
        UsageBy::Block => {
            let start = row.period.as_deref().and_then(Timestamp::parse);
            start.map(|start| style::local(start).chars().take("2026-11-23 20:00".len()).collect()).unwrap_or_default()
        }
        UsageBy::Project => match row.project.as_deref() {
            None | Some("") => "(unknown)".to_owned(),
            Some(directory) => cut(&style::path(directory)),
        },
        UsageBy::Model => cut(row.model.as_deref().unwrap_or("(unknown)")),
        UsageBy::Session => {
            let id = row.session_id.as_ref().map(style::short).unwrap_or_default();
            format!("{id}  {}", cut(row.title.as_deref().unwrap_or("(no title)")))
        }
        UsageBy::Agent => row.provider.map(|provider| provider.to_string()).unwrap_or_default(),
    }
}

/// The cost in dollars; `?` if unknown, with `+ ?` if part of it is unknown.
fn cost(sums: &UsageSums) -> String {
    match (sums.cost_usd, sums.unpriced_calls) {
        (None, _) => "?".to_owned(),
        (Some(usd), 0) => dollars(usd),
        (Some(0.0), _) => "?".to_owned(),
        (Some(usd), _) => format!("{} + ?", dollars(usd)),
    }
}

fn dollars(usd: f64) -> String {
    if usd > 0.0 && usd < 0.01 { "< $0.01".to_owned() } else { format!("${usd:.2}") }
}

fn remarks(report: &UsageReport) -> Vec<String> {
    let mut lines = Vec::new();
    if !report.unpriced_models.is_empty() {
        let name = |model: &String| if model.is_empty() { "(not reported)".to_owned() } else { safe(model) };
        let models: Vec<String> = report.unpriced_models.iter().map(name).collect();
        lines.push(format!("? the price is unknown: {}; prices.toml can add it", models.join(", ")));
    }
    if report.total.cost_usd.is_some_and(|cost| cost > report.total.reported_cost_usd) {
        lines.push(format!("costs at list prices of {}; your costs may differ", report.prices_date));
    }
    lines
}

fn in_words(quota: &QuotaView, now: Timestamp) -> String {
    let window = match quota.window_minutes {
        Some(minutes) if minutes % (24 * 60) == 0 => format!(" ({} days)", minutes / (24 * 60)),
        Some(minutes) => format!(" ({} hours)", minutes / 60),
        None => String::new(),
    };
    let name = safe(&quota.name);
    let told = format!("{} quota {name}{window}: {:.0} % used", quota.provider, quota.used_percent);
    match quota.resets_at {
        Some(at) if at <= now => format!("{told} before its reset at {}", style::local(at)),
        Some(at) => {
            let forecast = match quota.used_up_at {
                Some(end) if end > now => format!("; at this rate, it is used up at {}", style::local(end)),
                Some(_) | None => String::new(),
            };
            format!("{told}, {} ago; resets at {}{forecast}", style::age(quota.at, now), style::local(at))
        }
        None => format!("{told}, {} ago", style::age(quota.at, now)),
    }
}

/// A report on the quality of sessions.
pub(crate) fn quality(report: &QualityReport) -> String {
    let period = period(report.since, report.until);
    if report.sessions.is_empty() {
        return format!("no turns ended {period}\n");
    }
    let mut table = plain();
    table.set_header(["SESSION", "TURNS", "DONE", "CALLS", "FAILED", "TEST FIXES", "ACTIVE", "WAITING", "IDLE"]);
    for session in &report.sessions {
        let title =
            projections::shorten::verbatim_line(&safe(session.title.as_deref().unwrap_or("(no title)")), NAME_CHARS);
        table.add_row(figures(format!("{}  {title}", style::short(&session.session_id)), &session.quality));
    }
    table.add_row(figures("total".to_owned(), &report.total));
    right_but_first(&mut table, 1);
    let mut text = format!("{period}\n\n{}\n", table.trim_fmt());
    if report.more_sessions > 0 {
        let _ = writeln!(text, "{} more sessions; --limit shows more", report.more_sessions);
    }
    let kinds: Vec<String> =
        report.total.failures.iter().map(|(kind, count)| format!("{} {count}", kind.as_str())).collect();
    if !kinds.is_empty() {
        let _ = writeln!(text, "\nfailures: {}", kinds.join(", "));
    }
    if !report.approvals.is_empty() {
        let _ = write!(text, "\n{}", latencies(&report.approvals));
    }
    text
}

fn figures(name: String, quality: &Quality) -> Vec<String> {
    let loops = quality.test_fix_loops.map_or_else(|| "-".to_owned(), |count| count.to_string());
    vec![
        name,
        quality.turns.to_string(),
        quality.completed_turns.to_string(),
        quality.tool_calls.to_string(),
        quality.failed_calls.to_string(),
        loops,
        time(quality.active_ms),
        time(quality.waiting_ms),
        time(quality.idle_ms),
    ]
}

fn latencies(approvals: &[ApprovalLatency]) -> String {
    let mut table = plain();
    table.set_header(["APPROVALS", "ANSWERED", "HALF WITHIN", "9 OF 10 WITHIN"]);
    for approval in approvals {
        let name = approval.tool.as_deref().map_or_else(|| "all tools".to_owned(), safe);
        let answered = approval.answered.to_string();
        table.add_row([name, answered, time(approval.p50_ms), time(approval.p90_ms)]);
    }
    right_but_first(&mut table, 1);
    format!("{}\n", table.trim_fmt())
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.force_no_tty();
    table
}

/// Right-aligns numbers; the first `names` columns are names.
fn right_but_first(table: &mut Table, names: usize) {
    let last = table.column_count().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { 2 }));
        if index >= names {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// A compact number of tokens: `950`, `12.3k`, `4.5M`.
fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{:.1}k", ratio(tokens, 1_000)),
        1_000_000..1_000_000_000 => format!("{:.1}M", ratio(tokens, 1_000_000)),
        _ => format!("{:.1}G", ratio(tokens, 1_000_000_000)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is shown with one digit")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// A compact duration.
fn time(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms}ms"),
        1..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests;
