//! Turns: from a message to the entry that ends them.
//!
//! [`EngineStep::settle`] ends every turn, whether it completed, was aborted, or belonged to a process that was killed:
//! it writes a result for each call without one.

use session_tree::{Json, NewEntry, Object};

use crate::{
    calls::{CallBatch, error},
    context::{self, ContextKey},
    effect::{CallRun, Effect, RuntimeFrame},
    entries::{Frozen, NOTE_TYPE, OWN_KEY, RuntimeEntry, Sent, StoppedNote, TaskEnded, to_json},
    input::{CallOutput, QueueKind, TurnOutcome, UserMessage},
    machine::EngineStep,
    recorded::{RecordedCall, RecordedStage, content_of},
    state::{Activity, Ending, Then, TurnClock},
};

/// Maximum length of a background command in a note to the model, in characters.
const STOPPED_COMMAND: usize = 200;
/// The message sent to the model after an answer without text and calls.
const NUDGE: &str = "Your last answer was empty. Continue the task, or say that it is done.";

impl EngineStep<'_> {
    /// Settles the last turn, or starts one with a queued message.
    pub(crate) fn idle(&mut self) -> bool {
        if self.state.recorded.is_unfinished() {
            self.settle();
            return false;
        }
        let next = self.state.recorded.queue.front().filter(|_| !self.state.live.is_held);
        let Some(next) = next else {
            // A queued message comes first; a compaction that is due then begins within its turn.
            if self.limit_reached().is_some() {
                self.drop_compaction("a limit of the session is reached");
            } else {
                self.begin_due_compaction();
            }
            return false;
        };
        self.state.live.activity = Activity::Starting(Box::new(next.message.clone()));
        true
    }

    /// Handles the boundary between tools and requests.
    pub(crate) fn boundary(&mut self) -> bool {
        if let Some(why) = self.state.live.pause {
            self.state.live.activity = self.paused(why, None, None);
            return false;
        }
        if !self.state.recorded.calls.is_empty() {
            self.state.live.activity = Activity::Calls(CallBatch::new(&self.state.recorded.calls));
            return true;
        }
        if self.state.live.compaction.is_some() {
            self.prepare(0);
            return false;
        }
        if self.state.recorded.turn.is_none() {
            self.state.live.activity = Activity::Idle;
            return true;
        }
        let steers = self.state.recorded.queue.iter().filter(|queued| queued.kind == QueueKind::Steer);
        let steers: Vec<UserMessage> = steers.map(|queued| queued.message.clone()).collect();
        if !steers.is_empty() {
            for message in &steers {
                self.append_user(message);
            }
            self.state.live.slow = None;
            return false;
        }
        let turn = self.state.recorded.turn.clone().unwrap_or_default();
        if let Some(outcome) = turn.answered {
            self.end_turn(outcome, None);
            return true;
        }
        if turn.is_empty && turn.was_nudged {
            self.end_turn(TurnOutcome::Empty, Some("the model gave an empty answer twice".to_owned()));
            return true;
        }
        let most = self.state.setup.turns.rounds;
        if turn.rounds >= most {
            let answers = if most == 1 { "answer" } else { "answers" };
            let error = format!("stopped after {most} {answers} of the model, the limit for one prompt");
            self.end_turn(TurnOutcome::Rounds, Some(error));
            return true;
        }
        if let Some(why) = self.limit_reached() {
            self.state.live.activity = self.paused(why, None, None);
            return false;
        }
        if turn.is_empty {
            self.append_note(NUDGE, None);
            return false;
        }
        if let Some((times, ms)) = self.state.live.slow.take() {
            let until_ms = self.time.mono_ms.saturating_add(ms);
            let until_wall_ms = self.time.wall_ms.saturating_add_unsigned(ms);
            self.state.live.activity = Activity::Slowed { until_ms, until_wall_ms, times };
            return false;
        }
        if self.begin_due_compaction() {
            return false;
        }
        let settings = self.settings();
        if settings.is_empty() {
            self.prepare(0);
        }
        for entry in settings {
            self.append(entry, false, Then::Nothing);
        }
        false
    }

    /// Marks the turn as over; [`EngineStep::settle`] writes its end.
    pub(crate) fn end_turn(&mut self, outcome: TurnOutcome, error: Option<String>) {
        self.state.live.activity = Activity::Idle;
        self.state.live.is_held |= !matches!(outcome, TurnOutcome::Done | TurnOutcome::Length);
        self.state.live.ending = Ending::new(outcome, error);
        self.state.live.clock.stop(self.time.mono_ms);
    }

    /// Writes a result for every call of the turn, then the end of the turn.
    pub(crate) fn settle(&mut self) {
        let ending = std::mem::replace(&mut self.state.live.ending, Ending::new(TurnOutcome::Interrupted, None));
        let Ending { outcome, error: why, mut results, changed } = ending;
        for call in self.state.recorded.calls.clone() {
            let known = results.remove(&call.id);
            let result = known.unwrap_or_else(|| unfinished(&call, outcome, changed.get(&call.id)));
            let run = CallRun { call: call.id, model_id: call.model_id, tool: call.tool, arguments: call.arguments };
            self.append_result(&run, result, None);
        }
        if self.state.recorded.turn.is_some() {
            let ms = self.state.live.clock.elapsed_ms(self.time.mono_ms);
            self.state.live.clock = TurnClock::default();
            let ended = TaskEnded { outcome, error: why.clone(), ms };
            self.append(ended.to_entry(), false, Then::TurnEnded(outcome, why));
        }
    }

    pub(crate) fn start_turn(&mut self) {
        let Activity::Starting(message) = std::mem::replace(&mut self.state.live.activity, Activity::Boundary) else {
            return;
        };
        self.state.live.is_held = false;
        self.state.live.pause = None;
        self.state.live.slow = None;
        self.state.live.compaction_failed = false;
        self.state.live.clock = TurnClock::default();
        self.state.live.clock.start(self.time.mono_ms);
        self.state.live.long_system_cache = self.state.recorded.cache.is_long_cache_cheaper();
        if self.state.recorded.frozen.is_none() {
            self.freeze();
        }
        for entry in self.settings() {
            self.append(entry, false, Then::Nothing);
        }
        if std::mem::replace(&mut self.state.live.background_is_lost, false) {
            self.tell_stopped();
        }
        self.append_user(&message);
        self.state.live.is_end_due = true;
        self.out.push(Effect::Tell(RuntimeFrame::TurnStarted));
    }

    /// Stores the system prompt and the tools; requests use the stored ones for as long as the session exists.
    fn freeze(&mut self) {
        let setup = &self.state.setup;
        let tools = Json::Array(setup.tools.iter().cloned().map(Json::Object).collect());
        let frozen = Frozen {
            version: setup.version.clone(),
            system: blake3::hash(setup.system.as_bytes()).to_hex().to_string(),
            tools: blake3::hash(tools.to_text().as_bytes()).to_hex().to_string(),
        };
        let message = Object::new()
            .with("role", "system")
            .with("content", setup.system.as_str())
            .with("toolsAdded", tools)
            .with("timestamp", self.time.wall_ms);
        self.append(NewEntry::Message(message), false, Then::Nothing);
        self.append(frozen.to_entry(), false, Then::Nothing);
    }

    /// The entries needed to bring the model and the context up to date for the next request.
    fn settings(&self) -> Vec<NewEntry> {
        let (recorded, model) = (&self.state.recorded, &self.state.live.model);
        let mut entries = Vec::new();
        if recorded.model.as_ref().is_none_or(|(provider, id)| *provider != model.provider || *id != model.id) {
            entries.push(NewEntry::ModelChange { provider: model.provider.clone(), model: model.id.clone() });
        }
        if recorded.thinking.as_deref().unwrap_or("off") != model.thinking {
            entries.push(NewEntry::ThinkingLevelChange(model.thinking.clone()));
        }
        let facts = &self.state.live.facts;
        let permission = facts.permission.clone();
        let key = ContextKey { date: facts.date.clone(), model: model.id.clone(), permission };
        if recorded.context.as_ref() != Some(&key) {
            entries.push(context::entry(facts, &key));
        }
        entries
    }

    fn append_user(&mut self, message: &UserMessage) {
        let sent = Sent { id: message.id.clone(), origin: message.origin.clone() };
        let entry = Object::new()
            .with("role", "user")
            .with("content", content_of(message))
            .with("timestamp", self.time.wall_ms)
            .with(OWN_KEY, to_json(&sent));
        self.append(NewEntry::Message(entry), false, Then::Landed(message.id.clone()));
    }

    /// Tells the model which background commands no longer run. Whether one had already ended is unknown.
    fn tell_stopped(&mut self) {
        let lost = &self.state.recorded.background;
        if lost.is_empty() {
            return;
        }
        let command = |(id, command): (&String, &String)| {
            let start: String = command.chars().take(STOPPED_COMMAND).collect();
            format!("{id} (`{start}`)")
        };
        let all: Vec<String> = lost.iter().map(command).collect();
        let stopped = StoppedNote { stopped: lost.keys().cloned().collect() };
        let text = format!(
            "[The agent's process was restarted. These background commands have ended, by themselves or with the \
             previous process: {}. Start what is still needed.]",
            all.join(", ")
        );
        self.append_note(&text, Some(to_json(&stopped)));
    }

    fn append_note(&mut self, text: &str, details: Option<Json>) {
        let entry = NewEntry::CustomMessage {
            custom_type: NOTE_TYPE.to_owned(),
            content: Json::from(text),
            display: false,
            details,
        };
        self.append(entry, false, Then::Nothing);
    }
}

/// The result of a call whose turn ended before it did.
fn unfinished(call: &RecordedCall, outcome: TurnOutcome, changed: Option<&Vec<String>>) -> CallOutput {
    let how = if outcome == TurnOutcome::Aborted { "aborted by the user" } else { "interrupted" };
    match &call.stage {
        RecordedStage::Wanted | RecordedStage::Asked(_) | RecordedStage::Decided(_) => {
            error(format!("Not run: {how} before it was started."))
        }
        RecordedStage::Started { harmless: true, .. } => error(format!("{}.", capitalized(how))),
        RecordedStage::Started { harmless: false, .. } | RecordedStage::Foreign => {
            let files = match changed {
                Some(files) if files.is_empty() => " No file of the workspace changed since.".to_owned(),
                Some(files) => format!(" Files changed since: {}.", files.join(", ")),
                None => String::new(),
            };
            error(format!("{}; it may have taken effect.{files}", capitalized(how)))
        }
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
