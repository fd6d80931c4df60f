//! `capture next`

use std::fmt::Write as _;

use api::{findings::AttentionList, routes::ListAttention};
use events::{Need, Timestamp};
use home::clock;
use printing::style;
use projections::AttentionItem;

use super::context::{Context, print_line};
use printing::{safe, wrapped};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Show only the first N sessions [default: all].
    #[arg(value_name = "N", value_parser = super::number::count, allow_negative_numbers = true)]
    most: Option<usize>,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let mut list = context.client()?.one::<ListAttention>("")?;
    let all = list.items.len();
    list.items.truncate(arguments.most.unwrap_or(usize::MAX));
    if context.json { context.print_json(&list) } else { print_line(rows(&list, all, clock::now()).trim_end()) }
}

fn rows(list: &AttentionList, all: usize, now: Timestamp) -> String {
    if list.items.is_empty() {
        return "nothing needs you\n".to_owned();
    }
    let mut text = String::new();
    for item in &list.items {
        let (mark, colour) = match item.need {
            Need::Approval => ("▲", style::ALARM),
            Need::Question => ("?", style::ALARM),
            Need::Failure => ("■", style::RED),
            Need::Stuck => ("◌", style::YELLOW),
            Need::Prompt => ("◆", style::CYAN),
        };
        let head = style::painted(&format!("{mark} {:<8}", item.need.as_str()), colour);
        let (id, title) = (style::short(&item.session_id), item.title.as_deref().unwrap_or("(no title)"));
        let line = format!("{head}  {:>4}  {id}  {:<7}  {}", style::age(item.since, now), item.provider, safe(title));
        let _ = writeln!(text, "{}", wrapped(&line, printing::width(), 4));
        let risk = if item.risky { style::painted("risky: ", style::ALARM) } else { String::new() };
        let about = item.what.as_deref().or(item.why.as_deref());
        let about = about.map(|about| format!("    {risk}{}", safe(about)));
        for line in about.into_iter().chain([format!("    {}", answer(item))]) {
            let _ = writeln!(text, "{}", wrapped(&line, printing::width(), 4));
        }
    }
    if all > list.items.len() {
        let _ = writeln!(text, "{} more", all - list.items.len());
    }
    text
}

/// The command that answers the item or shows more about it.
fn answer(item: &AttentionItem) -> String {
    let id = style::short(&item.session_id);
    match (item.need, item.approvals.first()) {
        (Need::Approval, Some(approval)) => format!("capture approvals {}", style::short(approval)),
        (Need::Question, Some(approval)) => format!("capture approve {} --answer NUMBER", style::short(approval)),
        (Need::Failure | Need::Stuck, _) => format!("capture explain {id}"),
        (Need::Approval | Need::Question | Need::Prompt, _) => format!("capture jump {id}"),
    }
}

#[cfg(test)]
mod tests {
    use events::{Provider, SessionId};

    use super::*;

    #[test]
    fn each_attention_item_shows_its_age_and_the_command_to_answer_it() {
        let item = AttentionItem {
            session_id: SessionId::from_bits(7),
            provider: Provider::Claude,
            title: Some("Fix the parser".into()),
            cwd: None,
            need: Need::Approval,
            since: Timestamp::from_millisecond(0),
            risky: true,
            what: Some("Bash rm -rf /".into()),
            why: None,
            approvals: vec!["7RSFFZ1HFSHJHWHNND5QB9K98E".into()],
            findings: Vec::new(),
        };
        let question = AttentionItem { need: Need::Question, ..item.clone() };
        assert_eq!(answer(&question), "capture approve 5QB9K98E --answer NUMBER");
        let elsewhere = AttentionItem { approvals: Vec::new(), ..question };
        assert!(answer(&elsewhere).starts_with("capture jump "), "an agent without a request that capture can answer");
        let prompt = AttentionItem { need: Need::Prompt, risky: false, what: None, ..item.clone() };
        let now = Timestamp::from_millisecond(180_000);
        let text = rows(&AttentionList { as_of: 1, items: vec![item, prompt] }, 5, now);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].contains("approval") && lines[0].contains("3m") && lines[0].ends_with("Fix the parser"),
            "{text}"
        );
        assert_eq!(lines[1], "    risky: Bash rm -rf /");
        assert_eq!(lines[2], "    capture approvals 5QB9K98E");
        assert!(lines[4].starts_with("    capture jump "), "{text}");
        assert_eq!(lines[5], "3 more");
        assert_eq!(rows(&AttentionList { as_of: 1, items: Vec::new() }, 0, now), "nothing needs you\n");
    }
}
