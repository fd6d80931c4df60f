//! Sends notifications to people: turns findings into notices and notices into messages (`notifier`), and records the
//! outcome of each message as an event of its session.
//!
//! There are two threads: `notices` makes notices of committed findings and records receipts; `notify` plans messages
//! and checks where the user is. Neither blocks ingest. Everything sent is redacted.

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use api::OperationId;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use events::{
    ApprovalId, ApprovalKind, ApprovalState, Finding, FindingId, FindingState, Notification, RunId, SendOutcome,
    Severity, Timestamp,
};
use home::{clock, desktop::has_desktop, paths};
use host_protocol::frame::Presence as Seen;
use ingest::{DerivedKind, DerivedRecord, IngestHandle, IngestInput};
use jiff::tz::TimeZone;
use live_view::{Refusal, metrics::encode_family};
use notifier::{
    AnswerButtons, ChannelContext, Delivery, DeliveryOutcome, INBOX_CAPACITY, LocalTime, Notice, NotifySettings,
    Planner, PlannerContext, Presence, Receipt, SinkError, TerminalSink, config::ChannelSettings,
};
use projections::{Approval, Session};
use prometheus_client::{
    collector::Collector, encoding::DescriptorEncoder, metrics::counter::ConstCounter, registry::Registry,
};
use store::{EntityFilter, Reader};

use crate::{
    answer_tokens::AnswerTokens,
    approvals::{is_only_for_its_command, revision_of, risk_of},
    push::PushedBrowsers,
    runs::Runs,
    supervisor::Supervisor,
};

/// The thread that makes notices and keeps receipts. What it was told and has not done is in its memory: it is not
/// started again.
pub const THREAD: &str = "notices";
/// The thread that plans messages, and remembers what it planned.
const PLANNER: &str = "notify";
/// Maximum number of pending findings and receipts.
const EVENTS: usize = 1_024;
/// Maximum number of causes remembered at the start, so that none is sent twice.
const REMEMBERED: usize = 20_000;
/// Maximum age at which a finding that was not sent before the last stop is sent at the start, ms.
const NOT_TOLD_YET_MS: i64 = 5 * 60 * 1000;
/// Time after typing during which a user counts as present at a terminal that does not report focus, ms. Short, because
/// a user who has just sent a prompt may leave.
const TYPED_MS: u64 = 1_000;
/// Time after typing during which a user counts as present at a terminal that reports that it has the focus, ms.
const FOCUSED_MS: u64 = 120_000;
/// Maximum wait for a message that is tried out.
const TEST_WITHIN: Duration = Duration::from_secs(8);
/// Time to send what waits at the end.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// A handle on the two threads; clones share it.
#[derive(Clone)]
pub struct Notices {
    events: Sender<NotifierEvent>,
    delivery: Arc<OnceLock<SharedDelivery>>,
}

/// The channels, while they are there.
type SharedDelivery = Mutex<Option<Arc<Delivery>>>;

enum NotifierEvent {
    Finding(Box<Finding>),
    Receipt(Box<Receipt>),
    Settings(Box<NotifySettings>),
    /// The first browser was subscribed, or the last one ended that.
    Refresh,
    Stop,
}

/// What the threads work with.
pub struct NotifierParts {
    /// Sends inputs to ingest.
    pub inputs: IngestHandle,
    /// What is stored.
    pub reader: Reader,
    /// The terminals.
    pub runs: Runs,
    /// The runtime for asynchronous work.
    pub runtime: tokio::runtime::Handle,
    /// Makes the tokens of buttons.
    pub buttons: AnswerTokens,
    /// Browsers that are subscribed.
    pub push: PushedBrowsers,
    /// The address of the page on this machine, once it is served.
    pub page: Arc<OnceLock<String>>,
    /// The user's settings.
    pub settings: NotifySettings,
}

/// What waits for the threads to begin.
pub struct PendingNotifier {
    events: Receiver<NotifierEvent>,
    back: Sender<NotifierEvent>,
    delivery: Arc<OnceLock<SharedDelivery>>,
}

impl Notices {
    /// A handle on threads that are not at work yet.
    #[must_use]
    pub fn new() -> (Self, PendingNotifier) {
        let (events, inbox) = bounded(EVENTS);
        let delivery = Arc::new(OnceLock::new());
        let waiting = PendingNotifier { events: inbox, back: events.clone(), delivery: Arc::clone(&delivery) };
        (Self { events, delivery }, waiting)
    }

    /// A finding changed; it is committed. Never waits.
    pub fn finding(&self, finding: Finding) {
        if let Err(TrySendError::Full(_)) = self.events.try_send(NotifierEvent::Finding(Box::new(finding))) {
            tracing::warn!("a notification is dropped: the queue of findings is full");
        }
    }

    /// Sends a message over a channel, to try it out.
    ///
    /// # Errors
    /// When there is no such channel, or it has not accepted the message in time.
    pub async fn test(&self, channel: String) -> Result<api::prompts::Receipt, Refusal> {
        let delivery = self.delivery().ok_or(Refusal::Unavailable)?;
        let tried = channel.clone();
        let receipt = tokio::task::spawn_blocking(move || delivery.test(&tried, TEST_WITHIN)).await;
        let receipt = receipt.map_err(|error| Refusal::Failed(error.to_string()))?;
        receipt.map(shown).ok_or_else(|| {
            let seconds = TEST_WITHIN.as_secs();
            Refusal::Conflict(format!("channel `{channel}` did not accept the message within {seconds} s"))
        })
    }

    /// Puts new settings in force: other channels, other rules. What waits for the old ones is sent by them.
    pub fn configure(&self, settings: NotifySettings) {
        self.events.send(NotifierEvent::Settings(Box::new(settings))).ok();
    }

    /// Takes up that browsers were subscribed, or none is any more.
    pub fn refresh(&self) {
        self.events.send(NotifierEvent::Refresh).ok();
    }

    /// Shows the messages of each channel among the metrics.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(ChannelMetrics(Arc::clone(&self.delivery))));
    }

    fn delivery(&self) -> Option<Arc<Delivery>> {
        delivery(&self.delivery)
    }

    /// Ends the threads.
    pub fn stop(&self) {
        self.events.send(NotifierEvent::Stop).ok();
    }
}

fn delivery(shared: &OnceLock<SharedDelivery>) -> Option<Arc<Delivery>> {
    shared.get()?.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The channels, as far as metrics show them.
struct ChannelMetrics(Arc<OnceLock<SharedDelivery>>);

impl fmt::Debug for ChannelMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChannelMetrics").finish_non_exhaustive()
    }
}

impl Collector for ChannelMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let counts = delivery(&self.0).map(|delivery| delivery.counts()).unwrap_or_default();
        let messages = counts.iter().flat_map(|of| {
            [("sent", of.sent), ("failed", of.failed), ("dropped", of.dropped)]
                .map(|(outcome, n)| ([("channel", of.channel.as_str()), ("outcome", outcome)], ConstCounter::new(n)))
        });
        let help = "Messages to people, by channel and outcome.";
        encode_family(&mut encoder, "capture_notifications", help, messages)
    }
}

impl PendingNotifier {
    /// Begins.
    ///
    /// # Errors
    /// When a channel's settings cannot be used, or a thread cannot be made.
    pub fn start(self, parts: NotifierParts, supervisor: &Supervisor) -> anyhow::Result<()> {
        let Self { events, back, delivery: shared } = self;
        let mut around = channel_context();
        around.terminals = Some(Arc::new(Terminals { runs: parts.runs.clone(), runtime: parts.runtime.clone() }));
        around.push = Some(Arc::new(parts.push.clone()));
        let push = parts.push.clone();
        let has_push = push.are_any();
        let starter = PlannerStarter { around, back, shared: Arc::clone(&shared), push };
        let notified = parts.reader.notified(REMEMBERED)?;
        let (plan, first) = starter.start(parts.settings.clone(), &notified)?;
        let (planners, next) = bounded(1);
        planners.send(first).ok();
        let presence = UserPresence { runs: parts.runs.clone(), runtime: parts.runtime.clone() };
        supervisor.spawn(PLANNER, move || {
            for RunningPlanner { mut planner, inbox, delivery } in next.iter() {
                notifier::run_planner(&mut planner, &inbox, &presence, &delivery);
                // One that is tried out at this moment has the channels still: they end with the program.
                if let Some(delivery) = Arc::into_inner(delivery) {
                    delivery.stop(STOP_WITHIN);
                }
            }
        })?;
        let mut maker = Some(NoticeMaker { parts, plan, starter, planners, has_push });
        let own = supervisor.clone();
        supervisor.spawn(THREAD, move || {
            if let Some(maker) = &mut maker {
                maker.run(&events, &notified);
            }
            if let Some(shared) = shared.get() {
                shared.lock().unwrap_or_else(PoisonError::into_inner).take();
            }
            // The planner ends with its channel.
            maker = None;
            own.join(PLANNER);
        })
    }
}

/// The environment and the clock of what sends messages.
#[must_use]
pub(crate) fn channel_context() -> ChannelContext {
    let variable = |name: &str| paths::variable(name).and_then(|value| value.into_os_string().into_string().ok());
    ChannelContext::new(Arc::new(variable), Arc::new(clock::now))
}

/// A planner with its channels. It works until its inbox is closed: the settings changed, or the service stops.
struct RunningPlanner {
    planner: Planner,
    inbox: Receiver<notifier::PlannerInput>,
    delivery: Arc<Delivery>,
}

/// Starts the channels of the user's settings, and a planner for them.
struct PlannerStarter {
    around: ChannelContext,
    back: Sender<NotifierEvent>,
    shared: Arc<OnceLock<SharedDelivery>>,
    push: PushedBrowsers,
}

/// What receipts call the channel to browsers, unless the user calls it something else.
const PUSH: &str = "push";

impl PlannerStarter {
    fn start(
        &self,
        mut settings: NotifySettings,
        notified: &[FindingId],
    ) -> anyhow::Result<(Sender<notifier::PlannerInput>, RunningPlanner)> {
        if settings == NotifySettings::default() && !has_desktop() {
            // Nobody asked for it, and there is none: that is not a failure to report each time.
            tracing::info!(
                "no notifications will be sent: no desktop session is running, and no other channel is configured; add \
                 one as `[[notify.channels]]`. `capture findings` still lists what needs you"
            );
            settings.channels.clear();
        }
        // Whoever subscribed a browser asked for it.
        let is_push = |channel: &ChannelSettings| matches!(channel, ChannelSettings::WebPush { .. });
        if settings.enabled && self.push.are_any() && !settings.channels.iter().any(is_push) {
            let name = if settings.names().any(|name| name == PUSH) { "web-push" } else { PUSH };
            settings.channels.push(ChannelSettings::WebPush { name: name.to_owned() });
        }
        for (channel, trouble) in notifier::delivery::troubles(&settings, &self.around) {
            tracing::warn!(channel, trouble, "a notification channel cannot be used");
        }
        let back = self.back.clone();
        let on_receipt = move |receipt| {
            if back.try_send(NotifierEvent::Receipt(Box::new(receipt))).is_err() {
                tracing::warn!("the outcome of a message is not recorded: the queue is full");
            }
        };
        let delivery = Arc::new(Delivery::start(&settings, self.around.clone(), Arc::new(on_receipt))?);
        let shared = self.shared.get_or_init(|| Mutex::new(None));
        *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&delivery));
        let planner = Planner::new(settings, notified.iter().map(FindingId::to_string));
        let (plan, inbox) = bounded(INBOX_CAPACITY);
        Ok((plan, RunningPlanner { planner, inbox, delivery }))
    }
}

/// Makes notices of findings.
struct NoticeMaker {
    parts: NotifierParts,
    plan: Sender<notifier::PlannerInput>,
    starter: PlannerStarter,
    /// Takes the next planner.
    planners: Sender<RunningPlanner>,
    /// Whether a browser was subscribed when the channels were made.
    has_push: bool,
}

impl NoticeMaker {
    fn run(&mut self, events: &Receiver<NotifierEvent>, notified: &[FindingId]) {
        self.notify_missed(notified);
        for event in events {
            match event {
                NotifierEvent::Finding(finding) => self.notify(&finding),
                NotifierEvent::Receipt(receipt) => self.record_receipt(&receipt),
                NotifierEvent::Settings(settings) => {
                    if let Err(error) = self.configure(*settings) {
                        tracing::warn!(%error, "cannot apply the settings of notifications; the old ones stay in force");
                    }
                }
                NotifierEvent::Refresh => {
                    // Only the first and the last one change the channels.
                    let has_push = self.parts.push.are_any();
                    if has_push != self.has_push
                        && let Err(error) = self.configure(self.parts.settings.clone())
                    {
                        tracing::warn!(%error, "cannot send messages to browsers");
                    }
                    self.has_push = has_push;
                }
                NotifierEvent::Stop => break,
            }
        }
    }

    /// Starts a planner with these settings; the one before it ends with its inbox.
    fn configure(&mut self, settings: NotifySettings) -> anyhow::Result<()> {
        let notified = self.parts.reader.notified(REMEMBERED)?;
        let (plan, next) = self.starter.start(settings.clone(), &notified)?;
        self.parts.settings = settings;
        self.plan = plan;
        self.planners.send(next).ok();
        self.notify_missed(&notified);
        Ok(())
    }

    /// Sends notices for findings from right before the last stop that were not sent then.
    fn notify_missed(&mut self, notified: &[FindingId]) {
        let filter = EntityFilter {
            states: Some(FindingState::Open..=FindingState::Open),
            session: None,
            limit: 1_000,
            behind: None,
        };
        match self.parts.reader.entities::<Finding>(&filter) {
            Ok(open) => {
                let fresh =
                    |f: &&Finding| clock::now().since_ms(f.first_at) < NOT_TOLD_YET_MS && !notified.contains(&f.id);
                open.iter().filter(fresh).for_each(|finding| self.notify(finding));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read findings; those from before the start are not sent")
            }
        }
    }

    fn notify(&mut self, finding: &Finding) {
        let input = match finding.state {
            FindingState::Open => match self.parts.reader.session(finding.session_id) {
                Ok(session) => {
                    let notice = notice(finding, session.as_ref());
                    notifier::PlannerInput::Notice(Box::new(self.linked(notice, finding)))
                }
                Err(error) => return tracing::warn!(%error, "a finding is not sent: cannot read its session"),
            },
            FindingState::Acknowledged | FindingState::Resolved => {
                notifier::PlannerInput::Withdraw(finding.id.to_string())
            }
        };
        self.plan.send(input).ok();
    }

    /// A notice with a link to its card, and with buttons where a channel shows them.
    fn linked(&self, mut notice: Notice, finding: &Finding) -> Notice {
        let settings = &self.parts.settings;
        let page = settings.page_url.as_ref().or_else(|| self.parts.page.get());
        let Some(page) = page.map(|page| page.trim_end_matches('/')) else { return notice };
        notice.url = Some(match &finding.approval_id {
            Some(approval) => format!("{page}/approvals#{approval}"),
            None => format!("{page}/s/{}", finding.session_id),
        });
        let shown = |channel: &ChannelSettings| matches!(channel, ChannelSettings::Ntfy { buttons: true, .. });
        if let Some(approval) = &finding.approval_id
            && settings.page_url.is_some()
            && settings.channels.iter().any(shown)
        {
            notice.buttons = self.buttons(approval, page, &notice);
        }
        notice
    }

    /// Buttons for a request that a click can answer.
    fn buttons(&self, approval: &ApprovalId, page: &str, notice: &Notice) -> Option<AnswerButtons> {
        let approval = self.parts.reader.entity::<Approval>(approval).ok().flatten()?;
        let is_clickable = approval.state == ApprovalState::Pending
            && !matches!(approval.kind, Some(ApprovalKind::Question | ApprovalKind::Plan) | None);
        let tokens = is_clickable.then(|| self.parts.buttons.make(&approval.id, &revision_of(&approval), clock::now()));
        let (allow, deny) = tokens?.inspect_err(|error| tracing::warn!(%error, "a message has no buttons")).ok()?;
        // What a tap on a lock screen must not allow is decided where the whole request is shown.
        let session = self.parts.reader.session(approval.session_id).ok().flatten();
        // The message names the directory in which the session began, and no other.
        let began_in = session.as_ref().and_then(|session| session.began_in.as_deref().or(session.cwd.as_deref()));
        let is_there = approval.cwd.is_some() && approval.cwd.as_deref() == began_in;
        let sentence = sentence_of(&approval, notice);
        let is_plain = risk_of(&approval).is_none() && is_there && sentence.is_some();
        let allow = is_plain.then_some(allow);
        let sentence = sentence.unwrap_or_default();
        let url = format!("{page}{}", OperationId::PressButton.route().path);
        Some(AnswerButtons { url, allow, sentence, deny })
    }

    /// The outcome of a message is an event of each session that it mentioned.
    fn record_receipt(&self, receipt: &Receipt) {
        let (outcome, error, attempts) = match &receipt.outcome {
            DeliveryOutcome::Sent => (SendOutcome::Sent, None, 1),
            DeliveryOutcome::Failed { error, attempts } => (SendOutcome::Failed, Some(error.clone()), *attempts),
            DeliveryOutcome::Dropped { why } => {
                let why = serde_json::to_value(why).ok().and_then(|why| why.as_str().map(str::to_owned));
                (SendOutcome::Dropped, why, 0)
            }
        };
        if outcome != SendOutcome::Sent {
            let error = error.as_deref().unwrap_or_default();
            tracing::warn!(channel = receipt.channel, error, attempts, "cannot send a message");
        }
        let mut sessions = std::collections::BTreeMap::new();
        for id in &receipt.causes {
            if let Ok(Some(finding)) = self.parts.reader.entity::<Finding>(&id.as_str().into()) {
                sessions.entry(finding.session_id).or_insert_with(Vec::new).push(finding.id);
            }
        }
        for (session, findings) in sessions {
            let told = Notification {
                message_id: receipt.message_id.clone(),
                channel: receipt.channel.clone(),
                findings,
                outcome,
                error: error.clone(),
                attempts,
            };
            self.parts
                .inputs
                .send(IngestInput::Derived(DerivedRecord::new(session, DerivedKind::Notification(Box::new(told)))))
                .ok();
        }
    }
}

/// The words of a notice that say everything a request asks for: a command of visible ASCII characters, and no more.
fn sentence_of(approval: &Approval, notice: &Notice) -> Option<String> {
    let is_only_a_command =
        approval.exact && approval.kind == Some(ApprovalKind::Command) && is_only_for_its_command(approval);
    let is_readable = |command: &&str| command.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    let command = approval.command.as_deref().filter(|_| is_only_a_command).filter(is_readable)?;
    if notice.title.strip_suffix(command).is_some_and(|before| before.ends_with(' ')) {
        return Some(notice.title.clone());
    }
    notice.body.lines().any(|line| line == command).then(|| command.to_owned())
}

/// A session's title as a message can show it: what an agent or a prompt says must not be taken for our own words, which
/// stand behind a colon.
fn quoted(title: &str) -> String {
    let is_plain =
        title.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '.' | ',' | '-' | '_' | '/' | '\'' | '#'));
    if is_plain { title.to_owned() } else { format!("“{}”", title.replace(['“', '”', '"'], "'")) }
}

/// Longest name of a project in a title, characters.
const PROJECT_CHARS: usize = 40;

/// The name of a directory as a title can show it. It may come from somebody else's repository, and its words must not be
/// taken for ours: marks that a title is made of become underscores.
fn project_name(directory: &str) -> String {
    let named = |c: char| if c.is_alphanumeric() || matches!(c, ' ' | '.' | '-' | '_' | '+' | '@') { c } else { '_' };
    directory.chars().take(PROJECT_CHARS).map(named).collect()
}

fn notice(finding: &Finding, session: Option<&Session>) -> Notice {
    let title = session.and_then(|s| s.title.clone());
    let cwd = session.and_then(|s| s.began_in.as_deref().or(s.cwd.as_deref()));
    let project =
        cwd.and_then(|cwd| cwd.rsplit('/').find(|part| !part.is_empty())).map(project_name).unwrap_or_default();
    let agent = session.map_or("session", |s| s.provider.as_str());
    let label = title.map_or_else(|| agent.to_owned(), |title| quoted(&title));
    let body = match &finding.subject {
        Some(subject) if !finding.what.contains(subject.as_str()) => format!("{}\n{subject}", finding.why),
        Some(_) | None => finding.why.clone(),
    };
    Notice {
        cause: finding.id.to_string(),
        kind: finding.kind,
        severity: match finding.severity {
            Severity::Info => notifier::Severity::Info,
            Severity::Warning => notifier::Severity::Warning,
            Severity::Error => notifier::Severity::Urgent,
        },
        session: finding.session_id.to_string(),
        session_label: redact::text(&label).into_owned(),
        project: redact::text(&project).into_owned(),
        title: redact::text(&finding.what).into_owned(),
        body: redact::text(&body).into_owned(),
        url: None,
        run: session.and_then(|s| s.run_id).map(|run| run.to_string()),
        buttons: None,
        at: finding.first_at,
    }
}

/// Says where the user is.
struct UserPresence {
    runs: Runs,
    runtime: tokio::runtime::Handle,
}

impl PlannerContext for UserPresence {
    fn now(&self) -> LocalTime {
        let at = clock::now();
        LocalTime { at, utc_offset_s: utc_offset_s(at) }
    }

    fn presence(&self, notice: &Notice) -> Presence {
        let Some(run) = notice.run.as_deref().and_then(|run| run.parse::<RunId>().ok()) else {
            return Presence::Unknown;
        };
        self.runtime.block_on(self.runs.presence(run)).map_or(Presence::Unknown, presence)
    }
}

fn presence(seen: Seen) -> Presence {
    let within = |ms| seen.typed_ms.is_some_and(|typed| typed < ms);
    let there = match (seen.attached, seen.focused) {
        (false, _) | (true, Some(false)) => false,
        (true, Some(true)) => within(FOCUSED_MS),
        (true, None) => within(TYPED_MS),
    };
    if there { Presence::AtTerminal } else { Presence::Away }
}

fn utc_offset_s(at: Timestamp) -> i32 {
    let at = jiff::Timestamp::from_millisecond(at.as_millisecond()).unwrap_or_default();
    TimeZone::system().to_offset(at).seconds()
}

/// The terminals of runs.
struct Terminals {
    runs: Runs,
    runtime: tokio::runtime::Handle,
}

impl TerminalSink for Terminals {
    fn write(&self, run: &str, bytes: &[u8]) -> Result<(), SinkError> {
        let run: RunId = run.parse().map_err(|_| SinkError::NoTerminal)?;
        let text = String::from_utf8(bytes.to_vec()).map_err(|error| SinkError::Busy(error.to_string()))?;
        // On a thread of the channel's own.
        self.runtime.block_on(self.runs.announce(run, text)).map_err(|refusal| SinkError::Busy(refusal.to_string()))
    }
}

/// A receipt as it is shown to clients.
fn shown(receipt: Receipt) -> api::prompts::Receipt {
    let Receipt { message_id, causes, channel, at, outcome } = receipt;
    let (outcome, error, attempts, why) = match outcome {
        DeliveryOutcome::Sent => ("sent", None, None, None),
        DeliveryOutcome::Failed { error, attempts } => ("failed", Some(error), Some(attempts), None),
        DeliveryOutcome::Dropped { why } => ("dropped", None, None, Some(why.to_string())),
    };
    api::prompts::Receipt { message_id, causes, channel, at, outcome: outcome.into(), error, attempts, why }
}

#[cfg(test)]
mod tests;
