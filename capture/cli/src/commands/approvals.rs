//! `capture approvals`, `capture approve`, `capture deny`: permission requests, and people's decisions.

mod answer;
mod pick;

use std::{
    collections::BTreeMap,
    io::{IsTerminal, Write},
};

use anstyle::Style;
use api::{
    approvals::{
        ApprovalPage, ApprovalView, ApprovalsQuery, BoundaryView, DecisionRequest, DecisionScope, PolicyDecision,
        Verdict,
    },
    list::Limit,
    routes::{DecideApproval, GetApproval, ListApprovals, RunScreen},
};
use client::{Client, failure::Failed};
use events::{ApprovalKind, ApprovalState, DecidedVia, Provider, Timestamp};
use home::clock;
use printing::style;
use projections::Approval;

use self::pick::picked;
use super::{
    context::{Context, is_agreed, is_agreed_to},
    number::count,
    watch::{ALL, ListText, Watched, show, watch},
};
use crate::show::request::{decided, exact, headline, options_hint, questions, surroundings};
use printing::{asked::block, is_with_a_person, safe, wrapped};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Show only this request, with everything needed to decide it: its id, or at least 3 characters from the start or
    /// end of its id.
    pub(super) id: Option<String>,
    /// Include closed requests.
    #[arg(long, short)]
    all: bool,
    /// Keep the list on the screen and update it.
    #[arg(long, short, conflicts_with = "id")]
    watch: bool,
    /// Only requests of this session: its id, or at least 3 characters from the start or end of its id.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Maximum number of requests.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = count, allow_negative_numbers = true)]
    limit: usize,
}

#[derive(Debug, clap::Args)]
pub(super) struct Approve {
    /// The request: its id, or at least 3 characters from the start or end of its id. If omitted, choose from the
    /// pending requests.
    id: Option<String>,
    /// The requests to allow.
    #[arg(long, value_enum, default_value_t = GrantScope::Once)]
    scope: GrantScope,
    /// The answer to a question: the number or text of an option. If there are several questions, pass `--answer
    /// QUESTION=ANSWER` for each, with the text of the question: `--answer 'Which color?=Blue'`.
    #[arg(long, value_name = "ANSWER")]
    answer: Vec<String>,
    /// Accept an answer that is not among the options.
    #[arg(long, requires = "answer")]
    any_answer: bool,
    /// With `--scope rule`: save the rule without asking.
    #[arg(long, short)]
    yes: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Deny {
    /// The request: its id, or at least 3 characters from the start or end of its id. If omitted, choose from the
    /// pending requests.
    id: Option<String>,
    /// The reason to give to the agent.
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum GrantScope {
    /// Only this request.
    Once,
    /// This request and later identical requests of this session, until the server stops.
    Session,
    /// This request and every request the displayed rule covers, in any session. The rule is saved in your policy after
    /// you confirm.
    Rule,
}

pub(super) fn list(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let client = context.client()?;
    if let Some(id) = &arguments.id {
        let shown = one(&client, id)?;
        return if context.json { context.print_json(&shown) } else { show(&whole(&shown)) };
    }
    let session = arguments.session.as_deref().map(|given| super::context::find(&client, given)).transpose()?;
    let query = ApprovalsQuery {
        state: (!arguments.all).then_some(ApprovalState::Pending),
        session: session.map(|session| session.id.to_string()),
        cursor: None,
        limit: Some(Limit::of(arguments.limit)),
    };
    if !arguments.watch {
        let page = client.get::<ListApprovals>("", &query)?;
        return if context.json { context.print_json(&page) } else { show(&rows(&page, arguments.all)) };
    }
    watch(context, &client, ALL, ApprovalList { client: &client, query, all: arguments.all })
}

/// The list of permission requests in watch mode.
struct ApprovalList<'a> {
    client: &'a Client,
    query: ApprovalsQuery,
    all: bool,
}

impl Watched<ApprovalPage> for ApprovalList<'_> {
    fn list(&self) -> anyhow::Result<ApprovalPage> {
        Ok(self.client.get::<ListApprovals>("", &self.query)?)
    }

    fn render(&self, page: &ApprovalPage) -> ListText {
        ListText::new(&rows(page, self.all), 0)
    }
}

fn one(client: &Client, id: &str) -> anyhow::Result<ApprovalView> {
    Ok(client.one::<GetApproval>(id)?)
}

fn rows(page: &ApprovalPage, all: bool) -> String {
    if page.approvals.is_empty() {
        let hint = if all {
            "no permission requests yet"
        } else {
            "no pending permission requests (--all includes closed ones)"
        };
        return format!("{hint}\n");
    }
    let now = clock::now();
    let mut text = String::new();
    let is_unanswerable =
        |shown: &ApprovalView| shown.approval.state == ApprovalState::Pending && shown.answer.is_none();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for shown in page.approvals.iter().filter(|shown| is_unanswerable(shown)) {
        *reasons.entry(unanswerable(shown)).or_default() += 1;
    }
    // A reason that several requests share is printed once, below the list.
    reasons.retain(|_, requests| *requests > 1);
    for shown in &page.approvals {
        let approval = &shown.approval;
        let pending = approval.state == ApprovalState::Pending;
        let age = style::age(approval.opened_at, now);
        let (mark, colour) = mark(approval);
        let state = style::painted(&format!("{mark} {}", state_in_words(approval)), colour);
        let cwd = style::path(approval.cwd.as_deref().map(safe).as_deref().unwrap_or(""));
        let mut lines = vec![
            format!("{state}  {}  {age:>4}  {}  {cwd}", style::short(&approval.id), approval.provider),
            format!("    {}", headline(approval)),
        ];
        lines.extend(shown.risk.as_deref().filter(|_| pending).map(|risk| format!("    risk: {}", safe(risk))));
        lines.extend(shown.boundary.as_ref().map(|boundary| format!("    {}", you_said(boundary))));
        let why = shown.cannot_allow.as_deref().filter(|_| pending);
        lines.extend(why.map(|why| format!("    {}", safe(why))));
        if is_unanswerable(shown) {
            let why = unanswerable(shown);
            let is_shared = reasons.contains_key(&why);
            lines.push(format!("    {}", if is_shared { "answer it in the agent itself" } else { &why }));
        }
        text.extend(lines.iter().flat_map(|line| [wrapped(line, printing::width(), 4), "\n".to_owned()]));
    }
    for (why, requests) in &reasons {
        let why = why.replacen("this request", &format!("{requests} of these requests"), 1);
        text += &format!("\n{}\n", wrapped(&why, printing::width(), 0));
    }
    if page.approvals.iter().any(|shown| shown.answer.is_some()) {
        let next = "capture approve ID · capture deny ID · capture approvals ID shows a request in full";
        text += &format!("\n{}\n", wrapped(next, printing::width(), 0));
    }
    text
}

fn mark(approval: &Approval) -> (&'static str, Style) {
    match (approval.state, approval.allowed) {
        (ApprovalState::Pending, _) => ("▲", style::ALARM),
        (ApprovalState::Allowed, _) | (_, Some(true)) => ("✓", style::GREEN),
        (ApprovalState::Denied, _) | (_, Some(false)) => ("✗", style::RED),
        (ApprovalState::AnsweredElsewhere | ApprovalState::Expired | ApprovalState::Withdrawn, None) => {
            ("·", style::DIM)
        }
    }
}

fn state_in_words(approval: &Approval) -> String {
    if approval.state == ApprovalState::Pending {
        return approval.state.to_string();
    }
    decided(approval.state, approval.by, approval.device.as_deref(), approval.rule.as_deref())
}

/// One request in full, with instructions for answering it.
fn whole(shown: &ApprovalView) -> String {
    let approval = &shown.approval;
    let mut text = described(shown);
    if approval.state == ApprovalState::Pending {
        text += &options_hint(approval);
        let cannot = format!("\n{}\n", shown.cannot_allow.as_deref().map_or_else(|| unanswerable(shown), safe));
        text += match shown.answer.filter(|_| shown.cannot_allow.is_none()) {
            Some(DecidedVia::Hook) => {
                "\nthe agent's hook is waiting for the answer: capture approve ID, capture deny ID\n"
            }
            Some(DecidedVia::Protocol) if approval.provider == Provider::Capture => {
                "\ncapture's own agent is waiting for the answer. It has no sandbox: calls that you allow run as your \
                 user. capture approve ID, capture deny ID\n"
            }
            Some(DecidedVia::Protocol) => {
                "\n`capture agent drive` is waiting for the answer: capture approve ID, capture deny ID\n"
            }
            Some(DecidedVia::Keys) => {
                "\ncapture can answer the dialog by pressing keys: capture approve ID, capture deny ID\n"
            }
            None => &cannot,
        };
    }
    text
}

/// One request in full: the session, the directory and the content. Nothing is cut or hidden.
fn described(shown: &ApprovalView) -> String {
    let approval = &shown.approval;
    let (mark, colour) = mark(approval);
    let mut text = format!("{}\n", style::painted(&format!("{mark} {}", state_in_words(approval)), colour));
    let mut line = |name: &str, value: &str| text += &format!("{name:>9}  {value}\n");
    line("id", approval.id.as_str());
    line("session", &format!("{} ({})", approval.session_id, approval.provider));
    if let Some(agent) = &approval.agent_id {
        line("sub-agent", &safe(agent));
    }
    if let Some(kind) = approval.kind {
        line("kind", kind.as_str());
    }
    text += &surroundings(approval);
    let mut line = |name: &str, value: &str| text += &format!("{name:>9}  {value}\n");
    if let Some(risk) = &shown.risk {
        line("risk", risk);
    }
    if let Some(boundary) = &shown.boundary {
        line("boundary", &you_said(boundary));
    }
    line("asked", &format!("{} by {}", when(approval.opened_at), approval.source));
    if let Some(closed_at) = approval.closed_at {
        line("closed", &when(closed_at));
    }
    if let Some(message) = &approval.message {
        line("because", &safe(message));
    }
    if let Some(outcome) = approval.outcome {
        line("then", &format!("the call ended: {outcome}"));
    }
    for file in &shown.files {
        let about = match (file.size, &file.hash) {
            (None, _) => "does not exist".to_owned(),
            (Some(size), Some(hash)) => format!("{size} bytes, {}…", &hash[..hash.len().min(12)]),
            (Some(size), None) => format!("{size} bytes"),
        };
        line("checked", &format!("{} ({about})", safe(&file.path)));
    }
    if shown.more_files {
        line(
            "warning",
            "the call may run or change more files than capture checked; your decision does not cover the \
                         contents of the others",
        );
    }
    if let Some(policy) = &shown.policy {
        let decision = match policy.decision {
            PolicyDecision::Allow => "allow",
            PolicyDecision::Deny => "deny",
            PolicyDecision::Ask => "ask",
        };
        line("policy", &format!("{decision}: {} ({})", safe(&policy.reason), safe(&policy.rule)));
    }
    text += &exact(approval);
    if let Some(rewrite) = &approval.rewrite {
        text += &block("ran as", rewrite);
    }
    text
}

/// The user's words in a prompt that forbids what is requested.
fn you_said(boundary: &BoundaryView) -> String {
    let at = style::local(boundary.at);
    format!("you said at {}: {}", at.get(11..16).unwrap_or(&at), safe(&boundary.said))
}

/// Why the request cannot be answered from here, and what to do instead.
fn unanswerable(shown: &ApprovalView) -> String {
    match &shown.unanswerable {
        Some(why) => format!("capture cannot answer this request: {}", safe(why)),
        None => "capture cannot answer this request: answer it in the agent itself".to_owned(),
    }
}

fn when(at: Timestamp) -> String {
    format!("{} ({} ago)", style::local(at), style::age(at, clock::now()))
}

pub(super) fn approve(context: &Context, arguments: &Approve) -> anyhow::Result<()> {
    let client = context.client()?;
    let (shown, is_picked) = picked(context, &client, arguments.id.as_deref())?;
    if let Some(why) = &shown.cannot_allow {
        return Err(Failed::Refused(format!("not allowed: {why}")).into());
    }
    // Check the arguments before anything is shown.
    let mut answers = answer::answers(&shown.approval, &arguments.answer, arguments.any_answer)?;
    // Lists shorten a request; show all of it before it is allowed.
    let mut whole = if context.json { String::new() } else { described(&shown) };
    let is_read_off = shown.answer == Some(DecidedVia::Keys) && !shown.approval.exact;
    if is_read_off && !context.json {
        whole += &screen_of(&client, &shown.approval)?;
    }
    let questions = questions(&shown.approval);
    // The screen may show only part of what the dialog asks for.
    let is_seen_now = is_picked || is_read_off && !context.json && is_with_a_person();
    let is_asked = is_seen_now && (answers.is_some() || questions.is_empty());
    if !is_asked {
        write!(printing::stderr(), "{whole}").ok();
    }
    if answers.is_none() && !questions.is_empty() && !context.json && is_with_a_person() {
        let typed = answer::ask(&questions)?;
        answers = answer::answers(&shown.approval, &typed, arguments.any_answer)?;
    } else if is_asked && !is_agreed_to(&whole, "\nAllow this?")? {
        // A user who named the request has already decided; a user who picked it from a list has not yet seen all of
        // it.
        return Err(Failed::Refused("nothing was allowed".into()).into());
    }
    let scope = if arguments.scope == GrantScope::Session { DecisionScope::Session } else { DecisionScope::Once };
    let rule =
        (arguments.scope == GrantScope::Rule).then(|| agreed_rule(context, &shown, arguments.yes)).transpose()?;
    let decision = Verdict::Allow;
    let revision = Some(shown.revision.clone());
    let request = DecisionRequest { decision, message: None, scope, answers, revision, rule: false };
    decide(context, &client, &shown, &request)?;
    if let Some(rule) = rule {
        let path = super::policy::append(context, rule)?;
        printing::print_error_line(&format!("capture: saved in {}", safe(&path.display().to_string())));
    }
    Ok(())
}

/// The full screen with the dialog that would be answered. Only part of the dialog could be parsed.
fn screen_of(client: &Client, approval: &Approval) -> anyhow::Result<String> {
    let picture = client.one::<RunScreen>(&approval.session_id.to_string())?;
    let filled = picture.lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    let rows: String = picture.lines[..filled].iter().map(|line| format!("│{}\n", safe(line))).collect();
    Ok(format!(
        "\nThe text above was read from the agent's screen and may be incomplete. This is the whole screen; to answer \
         its dialog, capture presses a key:\n┌─\n{rows}└─\n"
    ))
}

pub(super) fn deny(context: &Context, arguments: &Deny) -> anyhow::Result<()> {
    let client = context.client()?;
    let (shown, is_picked) = picked(context, &client, arguments.id.as_deref())?;
    if is_picked && !is_agreed_to(&described(&shown), "\nDeny this?")? {
        return Err(Failed::Refused("nothing was denied".into()).into());
    }
    let (decision, message) = (Verdict::Deny, arguments.message.clone());
    let (scope, answers) = (DecisionScope::Once, None);
    let revision = Some(shown.revision.clone());
    let request = DecisionRequest { decision, message, scope, answers, revision, rule: false };
    decide(context, &client, &shown, &request)
}

fn decide(context: &Context, client: &Client, shown: &ApprovalView, decision: &DecisionRequest) -> anyhow::Result<()> {
    // Use the full id, so that the decision applies to the request that was shown.
    let decided = client.send::<DecideApproval>(shown.approval.id.as_str(), decision)?;
    if context.json {
        return context.print_json(&decided);
    }
    let approval = &decided.approval;
    let (mark, colour) = mark(approval);
    let state = style::painted(&format!("{mark} {}", approval.state), colour);
    show(&format!("{state}  {}\n", headline(approval)))
}

/// Why no rule can be saved for a request, and what to do instead.
fn why_no_rule(approval: &Approval) -> &'static str {
    let is_file = matches!(approval.kind, Some(ApprovalKind::Read | ApprovalKind::Edit | ApprovalKind::Write));
    match (is_file, approval.kind) {
        (true, _) if approval.provider == Provider::Capture => {
            "for a request that names files, a rule can be saved only at the agent's terminal (`r`); use `--scope once` here"
        }
        (true, _) => {
            "capture saves no rule for a request that names files, because the rule would not check their content; use \
             `--scope once`, or write the rule with `capture policy edit`"
        }
        (false, Some(ApprovalKind::Command)) => {
            "no rule can allow exactly this command: capture cannot parse all of it, or it names files whose content \
             the rule would not check; use `--scope once`"
        }
        (false, _) => {
            "no rule can allow exactly this request: capture does not understand all of it; use `--scope once`"
        }
    }
}

/// Shows the rule that would allow the same request again, and returns it if the user agrees.
fn agreed_rule<'s>(context: &Context, shown: &'s ApprovalView, yes: bool) -> anyhow::Result<&'s str> {
    let Some(rule) = &shown.suggested_rule else {
        return Err(Failed::Refused(why_no_rule(&shown.approval).into()).into());
    };
    let mut err = printing::stderr();
    let several = rule.matches("[[rule]]").count() > 1;
    writeln!(err, "{} would be added to your policy:\n", if several { "These rules" } else { "This rule" })?;
    for line in rule.lines() {
        writeln!(err, "    {}", safe(line))?;
    }
    if !yes {
        if context.json || !std::io::stdin().is_terminal() {
            return Err(Failed::Refused(
                "cannot ask for confirmation without a terminal; pass --yes to save the rule".into(),
            )
            .into());
        }
        if !is_agreed("\nSave it?")? {
            return Err(Failed::Refused("nothing was saved or allowed".into()).into());
        }
    }
    Ok(rule)
}

#[cfg(test)]
mod tests {
    use events::{ApprovalRequested, Confidence, EventId, SessionId, Source};

    use super::*;

    fn pending(n: u128, why: &str) -> ApprovalView {
        let asked = ApprovalRequested {
            approval_id: EventId::from_bits(n).into(),
            command: Some(format!("make {n}")),
            ..ApprovalRequested::default()
        };
        let of = (SessionId::from_bits(1), Provider::Claude);
        let approval = Approval::of(&asked, of, None, (Source::Transcript, Confidence::High), Timestamp::MIN);
        let mut view = serde_json::to_value(approval).unwrap();
        view["unanswerable"] = why.into();
        serde_json::from_value(view).unwrap()
    }

    #[test]
    fn a_request_shows_what_the_user_forbade() {
        let (at, event) = (Timestamp::from_millisecond(0), EventId::from_bits(2));
        let boundary = Some(BoundaryView { said: "don't make\u{1b}[2J".into(), at, event });
        let view = ApprovalView { boundary, ..pending(1, "no hook waits") };
        let time = &style::local(at)[11..16];
        let said = format!("you said at {time}: don't make");
        let whole = whole(&view);
        assert!(whole.contains(&said) && !whole.contains('\u{1b}'), "{whole}");
        let rows = rows(&ApprovalPage { as_of: 0, approvals: vec![view], next_cursor: None }, false);
        assert!(rows.contains(&said), "{rows}");
    }

    #[test]
    fn a_reason_shared_by_requests_is_printed_once() {
        let page = |approvals| ApprovalPage { as_of: 0, approvals, next_cursor: None };
        let one = rows(&page(vec![pending(1, "no hook waits")]), false);
        assert!(one.contains("    capture cannot answer this request: no hook waits\n"), "{one}");
        let approvals = vec![pending(1, "no hook waits"), pending(2, "no hook waits"), pending(3, "it is gone")];
        let several = rows(&page(approvals), false);
        assert_eq!(several.matches("no hook waits").count(), 1, "{several}");
        assert_eq!(several.matches("    answer it in the agent itself\n").count(), 2, "{several}");
        assert!(several.ends_with("\ncapture cannot answer 2 of these requests: no hook waits\n"), "{several}");
        assert!(several.contains("    capture cannot answer this request: it is gone\n"), "{several}");
    }
}
