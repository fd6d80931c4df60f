//! Sends notifications to the user: turns findings into notices and notices into messages (`notifier`), and records the
//! outcome of each message as an event of its session.
//!
//! There are two threads: `notices` creates notices from committed findings and records receipts; `notify` plans
//! messages and checks where the user is. Neither blocks ingest. Everything sent is redacted.

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

/// Name of the thread that creates notices and records receipts. It is not restarted, because its pending work exists
/// only in memory.
pub const THREAD: &str = "notices";
/// Name of the thread that plans messages and remembers its plans.
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
/// Longest wait for a test message.
const TEST_WITHIN: Duration = Duration::from_secs(8);
/// Time allowed at the end for sending pending messages.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// A handle on the two threads; clones share it.
#[derive(Clone)]
pub struct Notices {
    events: Sender<NotifierEvent>,
    delivery: Arc<OnceLock<SharedDelivery>>,
}

/// The channels, while they exist.
type SharedDelivery = Mutex<Option<Arc<Delivery>>>;

enum NotifierEvent {
    Finding(Box<Finding>),
    Receipt(Box<Receipt>),
    Settings(Box<NotifySettings>),
    /// The first browser was subscribed, or the last one was unsubscribed.
    Refresh,
    Stop,
}

/// The parts the threads need.
pub struct NotifierParts {
    /// Sends inputs to ingest.
    pub inputs: IngestHandle,
    /// Reads the store.
    pub reader: Reader,
    /// The terminals.
    pub runs: Runs,
    /// The runtime for asynchronous work.
    pub runtime: tokio::runtime::Handle,
    /// Creates the tokens of buttons.
    pub buttons: AnswerTokens,
    /// The subscribed browsers.
    pub push: PushedBrowsers,
    /// The local URL of the web page, once it is served.
    pub page: Arc<OnceLock<String>>,
    /// The user's settings.
    pub settings: NotifySettings,
}

/// The parts of threads that were not started yet.
pub struct PendingNotifier {
    events: Receiver<NotifierEvent>,
    back: Sender<NotifierEvent>,
    delivery: Arc<OnceLock<SharedDelivery>>,
}

impl Notices {
    /// A handle on threads that were not started yet.
    #[must_use]
    pub fn new() -> (Self, PendingNotifier) {
        let (events, inbox) = bounded(EVENTS);
        let delivery = Arc::new(OnceLock::new());
        let waiting = PendingNotifier { events: inbox, back: events.clone(), delivery: Arc::clone(&delivery) };
        (Self { events, delivery }, waiting)
    }

    /// Receives a finding after its change was committed. Never blocks.
    pub fn finding(&self, finding: Finding) {
        if let Err(TrySendError::Full(_)) = self.events.try_send(NotifierEvent::Finding(Box::new(finding))) {
            tracing::warn!("a notification is dropped: the queue of findings is full");
        }
    }

    /// Sends a test message over a channel.
    ///
    /// # Errors
    /// When the channel does not exist, or did not accept the message in time.
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

    /// Applies new settings: other channels and rules. Messages already queued are still sent over the old channels.
    pub fn configure(&self, settings: NotifySettings) {
        self.events.send(NotifierEvent::Settings(Box::new(settings))).ok();
    }

    /// Checks whether the first browser was subscribed or the last one unsubscribed.
    pub fn refresh(&self) {
        self.events.send(NotifierEvent::Refresh).ok();
    }

    /// Registers the message counts of each channel as metrics.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(ChannelMetrics(Arc::clone(&self.delivery))));
    }

    fn delivery(&self) -> Option<Arc<Delivery>> {
        delivery(&self.delivery)
    }

    /// Stops the threads.
    pub fn stop(&self) {
        self.events.send(NotifierEvent::Stop).ok();
    }
}

fn delivery(shared: &OnceLock<SharedDelivery>) -> Option<Arc<Delivery>> {
    shared.get()?.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Exports metrics of the channels.
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
    /// Starts the threads.
    ///
    /// # Errors
    /// When a channel's settings are invalid, or a thread cannot be started.
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
                // A test in progress may still use the channels; then they end with the program.
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
            // The planner ends when its channel is closed.
            maker = None;
            own.join(PLANNER);
        })
    }
}

/// The environment and the clock for sending messages.
#[must_use]
pub(crate) fn channel_context() -> ChannelContext {
    let variable = |name: &str| paths::variable(name).and_then(|value| value.into_os_string().into_string().ok());
    ChannelContext::new(Arc::new(variable), Arc::new(clock::now))
}

/// A planner with its channels. It runs until its inbox is closed: the settings changed, or the service stops.
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

/// Name of the browser channel in receipts, unless the user's settings name it.
const PUSH: &str = "push";

impl PlannerStarter {
    fn start(
        &self,
        mut settings: NotifySettings,
        notified: &[FindingId],
    ) -> anyhow::Result<(Sender<notifier::PlannerInput>, RunningPlanner)> {
        if settings == NotifySettings::default() && !has_desktop() {
            // No channel was configured and none is available: this should not be reported as a failure each time.
            tracing::info!(
                "no notifications will be sent: no desktop session is running, and no other channel is configured; add \
                 one as `[[notify.channels]]`. `capture findings` still lists what needs you"
            );
            settings.channels.clear();
        }
        // A subscribed browser enables the channel.
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

/// Creates notices from findings.
struct NoticeMaker {
    parts: NotifierParts,
    plan: Sender<notifier::PlannerInput>,
    starter: PlannerStarter,
    /// Passes new planners to the planner thread.
    planners: Sender<RunningPlanner>,
    /// Whether a browser was subscribed when the channels were created.
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
                    // Only the first and the last subscription change the channels.
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

    /// Starts a planner with these settings; the previous one ends when its inbox closes.
    fn configure(&mut self, settings: NotifySettings) -> anyhow::Result<()> {
        let notified = self.parts.reader.notified(REMEMBERED)?;
        let (plan, next) = self.starter.start(settings.clone(), &notified)?;
        self.parts.settings = settings;
        self.plan = plan;
        self.planners.send(next).ok();
        self.notify_missed(&notified);
        Ok(())
    }

    /// Sends notices for findings from shortly before the last stop that were not sent then.
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
                tracing::warn!(%error, "cannot read findings; findings from before the start are not sent")
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

    /// Adds a link to the finding's card, and buttons if a channel shows them.
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
        let (allow, deny) = tokens?
            .inspect_err(|error| tracing::warn!(%error, "cannot create buttons; the message is sent without them"))
            .ok()?;
        // A request that a tap on a lock screen must not allow is decided where it is shown completely.
        let session = self.parts.reader.session(approval.session_id).ok().flatten();
        // The message names only the directory in which the session began.
        let began_in = session.as_ref().and_then(|session| session.began_in.as_deref().or(session.cwd.as_deref()));
        let is_there = approval.cwd.is_some() && approval.cwd.as_deref() == began_in;
        let sentence = sentence_of(&approval, notice);
        let is_plain = risk_of(&approval).is_none() && is_there && sentence.is_some();
        let allow = is_plain.then_some(allow);
        let sentence = sentence.unwrap_or_default();
        let url = format!("{page}{}", OperationId::PressButton.route().path);
        Some(AnswerButtons { url, allow, sentence, deny })
    }

    /// Records the outcome of a message as an event of each session it mentioned.
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

/// The text of a notice that states the complete request: a command of visible ASCII characters and nothing else.
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

/// A session's title for use in a message: text of an agent or a prompt must not look like capture's own text, which
/// follows a colon.
fn quoted(title: &str) -> String {
    let is_plain =
        title.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '.' | ',' | '-' | '_' | '/' | '\'' | '#'));
    if is_plain { title.to_owned() } else { format!("“{}”", title.replace(['“', '”', '"'], "'")) }
}

/// Maximum length of a project name in a title, characters.
const PROJECT_CHARS: usize = 40;

/// A directory name for use in a title. It may come from a foreign repository and must not look like capture's own
/// text: punctuation used in titles is replaced by underscores.
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

/// Reports where the user is.
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

/// Writes to the terminals of runs.
struct Terminals {
    runs: Runs,
    runtime: tokio::runtime::Handle,
}

impl TerminalSink for Terminals {
    fn write(&self, run: &str, bytes: &[u8]) -> Result<(), SinkError> {
        let run: RunId = run.parse().map_err(|_| SinkError::NoTerminal)?;
        let text = String::from_utf8(bytes.to_vec()).map_err(|error| SinkError::Busy(error.to_string()))?;
        // Runs on the channel's own thread.
        self.runtime.block_on(self.runs.announce(run, text)).map_err(|refusal| SinkError::Busy(refusal.to_string()))
    }
}

/// A receipt in the form shown to clients.
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
