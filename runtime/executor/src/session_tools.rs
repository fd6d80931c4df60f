//! The tools of a session, run by `tools`.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use engine::{CallClass, CallFacts, CallId, CallOutput, CallRun};
use session_tree::{Json, Object, Tree};
use tools::{Call, Cancel, Content, Details, Intent, IntentKind, PersonAnswer, Preview, ToolResult, Tools};

use crate::ports::ToolRunner;

/// The tools of a session.
#[derive(Debug)]
pub struct SessionTools {
    tools: Arc<Tools>,
    calls: Mutex<HashMap<CallId, InspectedCall>>,
    running: Mutex<HashMap<CallId, Cancel>>,
}

/// A call and its intent: a run touches what was inspected, whatever has changed on the disk since.
#[derive(Debug, Clone)]
struct InspectedCall {
    arguments: Object,
    call: Call,
    intent: Intent,
}

impl SessionTools {
    /// Runs calls with these tools.
    #[must_use]
    pub fn new(tools: Arc<Tools>) -> Self {
        Self { tools, calls: Mutex::default(), running: Mutex::default() }
    }

    /// Restores the list of files the model has seen from the results of a reopened session.
    pub fn restore(&self, tree: &Tree) {
        let results = tree.leaf_path().into_iter().filter_map(|entry| entry.message());
        for result in results.filter(|message| message.text("role") == Some("toolResult")) {
            let details = result.get("details").map(Json::to_text).unwrap_or_default();
            if let Some(seen) = serde_json::from_str::<Details>(&details).ok().and_then(|details| details.seen) {
                self.tools.restore(seen);
            }
        }
    }

    /// Previews an inspected call in the current state, for the approver; `None` if its arguments describe it fully.
    /// Changes and records nothing. Reads files, so it blocks.
    #[must_use]
    pub fn preview(&self, id: CallId) -> Option<Preview> {
        let inspected = self.calls().get(&id)?.clone();
        self.tools.preview(&inspected.call, &inspected.intent)
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<CallId, InspectedCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, HashMap<CallId, Cancel>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handle that cancels a call, which may happen before the call starts.
    fn cancel_of(&self, id: CallId) -> std::io::Result<Cancel> {
        let mut running = self.running();
        if let Some(cancel) = running.get(&id) {
            return Ok(cancel.clone());
        }
        let cancel = Cancel::new()?;
        running.insert(id, cancel.clone());
        Ok(cancel)
    }

    fn parse(&self, run: &CallRun) -> Result<InspectedCall, String> {
        let call = Call::parse(&run.tool, &run.arguments.to_text()).map_err(|error| error.to_string())?;
        let intent = self.tools.intent(&call)?;
        Ok(InspectedCall { arguments: run.arguments.clone(), call, intent })
    }

    /// The inspected call, with the approved arguments.
    fn allowed(&self, run: &CallRun) -> Result<InspectedCall, String> {
        let inspected = self.calls().remove(&run.call);
        let Some(inspected) = inspected else { return Err("internal error: this call was not checked".to_owned()) };
        if inspected.arguments == run.arguments {
            return Ok(inspected);
        }
        // The decision replaced the arguments. They must touch only what was asked for; a command may differ.
        let replaced = self.parse(run)?;
        let same = replaced.intent.kind == inspected.intent.kind
            && replaced.intent.cwd == inspected.intent.cwd
            && replaced.intent.paths == inspected.intent.paths
            && replaced.intent.url == inspected.intent.url;
        if same { Ok(replaced) } else { Err("the decision changed the kind or the target of the call".to_owned()) }
    }
}

impl ToolRunner for SessionTools {
    fn inspect(&self, run: &CallRun) -> Result<CallFacts, String> {
        let inspected = self.parse(run)?;
        let facts = facts_of(&inspected.intent);
        self.calls().insert(run.call, inspected);
        Ok(facts)
    }

    fn run(&self, run: &CallRun) -> CallOutput {
        let result = match (self.allowed(run), self.cancel_of(run.call)) {
            (Ok(allowed), Ok(cancel)) => self.tools.run(&run.call.to_string(), &allowed.call, &allowed.intent, &cancel),
            (Err(error), _) => ToolResult::error(error),
            (_, Err(error)) => ToolResult::error(format!("cannot start the tool: {error}")),
        };
        self.running().remove(&run.call);
        result_of(result)
    }

    fn run_without_effect(&self, run: &CallRun) -> CallOutput {
        result_of(match self.allowed(run) {
            Ok(inspected) => self.tools.run_without_effect(&inspected.call, &inspected.intent),
            Err(error) => ToolResult::error(error),
        })
    }

    fn cancel(&self, call: CallId) {
        // Without a handle the tool has not started, and cannot start.
        if let Ok(cancel) = self.cancel_of(call) {
            cancel.cancel();
        }
    }

    fn clean(&self, text: &str) -> String {
        tools::answer(&PersonAnswer::Text(text.to_owned())).joined_text()
    }

    fn mask(&self, text: &str) -> (String, usize) {
        tools::masked(text)
    }
}

fn facts_of(intent: &Intent) -> CallFacts {
    let text = |path: &PathBuf| path.to_string_lossy().into_owned();
    CallFacts {
        kind: match intent.kind {
            IntentKind::ReadInWorkspace => CallClass::Read,
            IntentKind::ReadOutside => CallClass::ReadOutside,
            IntentKind::Edit => CallClass::Edit,
            IntentKind::Write => CallClass::Write,
            IntentKind::Command => CallClass::Command,
            IntentKind::Fetch => CallClass::Fetch,
            IntentKind::Question => CallClass::Question,
            IntentKind::Session => CallClass::Note,
        },
        cwd: text(&intent.cwd),
        paths: intent.paths.iter().map(text).collect(),
        url: intent.url.clone(),
        taint: Vec::new(),
    }
}

fn result_of(result: ToolResult) -> CallOutput {
    let block = |content: Content| match content {
        Content::Text(text) => Json::from(Object::new().with("type", "text").with("text", text)),
        Content::Image { media_type, bytes } => {
            let image = Object::new().with("type", "image").with("data", STANDARD.encode(bytes));
            image.with("mimeType", media_type).into()
        }
    };
    let details = serde_json::to_string(&result.details).ok().and_then(|text| Json::parse(&text).ok());
    CallOutput {
        content: result.content.into_iter().map(block).collect(),
        is_error: result.is_error,
        details: details.as_ref().and_then(Json::as_object).cloned(),
    }
}

#[cfg(test)]
mod tests;
