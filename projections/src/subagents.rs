//! Finds the tool call that started a sub-agent.
//!
//! A sub-agent is a separate session. Its agent reports in different ways which call started it: the call's record or
//! result contains its id (Claude Code 2.1, Gemini CLI 0.61, opencode 1.18), the result contains its path in the tree
//! of agents (Codex 0.169), or its first prompt is the call's input. Times alone are never used: a sub-agent that no
//! call names is not assigned.

use events::{SessionId, State, Timestamp, ToolKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ConversationItem, ItemBody, ItemText, shorten::verbatim_line};

/// A sub-agent in the conversation that started it. Only a summary; read its conversation by the id of its session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Subagent {
    /// Its session.
    pub session_id: SessionId,
    /// The kind of sub-agent, as the agent names it: `general-purpose`, `/root/helper`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its state.
    pub state: State,
    /// Its turns so far.
    pub turns: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// Its last event.
    pub last_event_at: Timestamp,
}

/// A sub-agent, with the facts that may identify the call that started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedSubagent {
    /// The sub-agent.
    pub subagent: Subagent,
    /// The provider's id of its session.
    pub provider_session_id: Option<String>,
    /// Its first prompt.
    pub prompt: Option<ItemText>,
}

/// The start of a call and of its sub-agent may be dated by different lines; a sub-agent begins at most this long
/// before its call, ms.
const SLACK_MS: i64 = 2_000;
/// Shortest id that is searched for in a text, bytes.
const ID_BYTES: usize = 8;
/// Characters of a prompt that are compared.
const PROMPT_CHARS: usize = 400;

/// Whether a call started the sub-agent with this index.
type StartEvidence<'a> = &'a dyn Fn(&SubagentCall, usize) -> bool;

/// A call that may have started sub-agents, with its texts in full.
struct SubagentCall {
    /// Its index among the items.
    index: usize,
    at: Timestamp,
    agent_id: Option<String>,
    input: String,
    result: String,
    /// The texts of the input, each shortened to one line; one of them is the prompt.
    prompts: Vec<String>,
}

impl SubagentCall {
    fn names_id(&self, child: &StartedSubagent) -> bool {
        let Some(id) = child.provider_session_id.as_deref() else { return false };
        let stands = |text: &str| id.len() >= ID_BYTES && text.contains(id);
        self.agent_id.as_deref() == Some(id) || stands(&self.result) || stands(&self.input)
    }

    /// Whether the result contains the sub-agent's path in the tree of agents, by which Codex names its sub-agents.
    fn names_path(&self, child: &StartedSubagent) -> bool {
        let path = child.subagent.agent_type.as_deref().filter(|path| path.starts_with('/'));
        path.is_some_and(|path| self.result.contains(&format!("\"{path}\"")))
    }

    fn asks_the_same(&self, prompt: Option<&String>) -> bool {
        prompt.is_some_and(|prompt| self.prompts.contains(prompt))
    }
}

/// Moves each sub-agent into the call that started it, and returns those that no call names, in the order in which they
/// began. `whole` reads a text of which the item contains only the ends; `None` if it is not stored.
///
/// # Errors
/// The errors of `whole`.
pub fn fold<E>(
    items: &mut [ConversationItem],
    mut children: Vec<StartedSubagent>,
    mut whole: impl FnMut(&ItemText) -> Result<Option<String>, E>,
) -> Result<Vec<StartedSubagent>, E> {
    if children.is_empty() {
        return Ok(children);
    }
    let mut read = |text: &ItemText| Ok(whole(text)?.unwrap_or_else(|| text.text.clone()));
    let mut calls = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let ItemBody::ToolCall { tool: ToolKind::Subagent, input, result, .. } = &item.body else { continue };
        let input = read(input)?;
        let result = result.as_ref().map(|result| read(&result.text)).transpose()?.unwrap_or_default();
        let (at, agent_id) = (item.at, item.agent_id.as_deref().map(str::to_owned));
        let prompts = prompts_of(&input);
        calls.push(SubagentCall { index, at, agent_id, input, result, prompts });
    }
    children.sort_by_key(|child| (child.subagent.started_at, child.subagent.session_id));
    let mut prompts = Vec::with_capacity(children.len());
    for child in &children {
        let prompt = child.prompt.as_ref().map(&mut read).transpose()?;
        prompts.push(prompt.map(|prompt| verbatim_line(&prompt, PROMPT_CHARS)).filter(|prompt| !prompt.is_empty()));
    }
    // The most certain evidence first. An id may also occur in later calls that wait for the sub-agent or message it.
    let mut started_by: Vec<Option<usize>> = vec![None; children.len()];
    let may_have =
        |call: &SubagentCall, child: &StartedSubagent| child.subagent.started_at.since_ms(call.at) >= -SLACK_MS;
    for (child, by) in children.iter().zip(&mut started_by) {
        *by = calls.iter().position(|call| may_have(call, child) && call.names_id(child));
    }
    let path: StartEvidence<'_> = &|call, child| children.get(child).is_some_and(|child| call.names_path(child));
    let prompt: StartEvidence<'_> = &|call, child| call.asks_the_same(prompts.get(child).and_then(Option::as_ref));
    for evidence in [path, prompt] {
        for (number, call) in calls.iter().enumerate() {
            if started_by.contains(&Some(number)) {
                continue;
            }
            let mut free = (0..children.len()).filter(|child| started_by.get(*child) == Some(&None));
            let found = free
                .find(|child| children.get(*child).is_some_and(|one| may_have(call, one)) && evidence(call, *child));
            if let Some(by) = found.and_then(|child| started_by.get_mut(child)) {
                *by = Some(number);
            }
        }
    }
    let mut left = Vec::new();
    for (child, by) in children.into_iter().zip(started_by) {
        let item = by.and_then(|by| calls.get(by)).and_then(|call| items.get_mut(call.index));
        match item.map(|item| &mut item.body) {
            Some(ItemBody::ToolCall { subagents, .. }) => subagents.push(child.subagent),
            Some(_) | None => left.push(child),
        }
    }
    Ok(left)
}

/// The texts of a call's input, each in one line.
fn prompts_of(input: &str) -> Vec<String> {
    let texts: Vec<String> = match serde_json::from_str(input) {
        Ok(Value::Object(fields)) => fields
            .into_values()
            .filter_map(|value| value.as_str().map(|text| verbatim_line(text, PROMPT_CHARS)))
            .collect(),
        Ok(_) | Err(_) => vec![verbatim_line(input, PROMPT_CHARS)],
    };
    texts.into_iter().filter(|text| !text.is_empty()).collect()
}

#[cfg(test)]
mod tests;
