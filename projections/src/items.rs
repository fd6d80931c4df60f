//! A session as a person reads it: prompts, messages, tool calls with their results, and approvals, in the order in
//! which they began.
//!
//! Events of the log are folded into items one after the other. Later events that belong to an item are added to it:
//! the parts of a message, the result of a call, the decision on a request. The module does not define how an item is
//! displayed.

use std::{collections::HashMap, sync::Arc};

use events::{
    ApprovalId, ApprovalState, Block, CompactTrigger, DecidedBy, ErrorClass, Event, Payload, PromptOrigin, Stop,
    TextRef, Timestamp, ToolKind, ToolOutcome, TurnId, TurnOutcome,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Subagent;

/// An item of a conversation, for people to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConversationItem {
    /// The sequence of its first event in the session.
    pub sequence: u64,
    /// When it began.
    pub at: Timestamp,
    /// The turn it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// The agent's id of its sub-agent, if that has no separate session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub agent_id: Option<Arc<str>>,
    /// Its content.
    #[serde(flatten)]
    pub body: ItemBody,
}

/// A text of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ItemText {
    /// The text, or the beginning and the end of a long text.
    pub text: String,
    /// The reference to the whole text, if `text` is not all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_ref: Option<TextRef>,
}

impl ItemText {
    /// The text of an event.
    pub(crate) fn of(event: &Event) -> Self {
        Self { text: event.text.clone().unwrap_or_default(), text_ref: event.text_ref.clone() }
    }

    /// Whether the text is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Appends another part. If only the ends of the text are stored, the part is appended after them.
    fn append(&mut self, event: &Event) {
        let Some(more) = event.text.as_deref().filter(|text| !text.is_empty()) else { return };
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(more);
        self.text_ref = self.text_ref.take().or_else(|| event.text_ref.clone());
    }
}

/// What an item of a conversation is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ItemBody {
    /// The agent received a prompt.
    Prompt {
        /// The origin of the prompt.
        origin: PromptOrigin,
        /// The prompt.
        #[serde(flatten)]
        text: ItemText,
        /// Images and files that came with it.
        #[serde(default, skip_serializing_if = "is_zero")]
        attachments: u32,
    },
    /// The agent wrote a message.
    Message {
        /// The model that wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The readable part of the model's thinking.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thinking: Option<String>,
        /// The message.
        #[serde(flatten)]
        text: ItemText,
        /// Why the model stopped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop: Option<Stop>,
    },
    /// The agent called a tool.
    ToolCall {
        /// The agent's id of the call.
        call_id: String,
        /// The agent's name for the tool; empty if only the result is known.
        name: String,
        /// What the tool does.
        tool: ToolKind,
        /// One line about the call: the command, the file, the URL.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// The input, as the agent wrote it.
        input: ItemText,
        /// The result; absent while the call runs, and if its end was never observed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<CallResult>,
        /// The sub-agents it started.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        subagents: Vec<Subagent>,
    },
    /// A sub-agent whose starting call is unknown. Its item has the sequence of the previous item.
    Subagent(Subagent),
    /// The agent asked for permission.
    Approval {
        /// Its id.
        approval_id: ApprovalId,
        /// The call it is about, by the agent's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// The command, the file or the URL.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<String>,
        /// Its state.
        state: ApprovalState,
        /// Who decided, if it was decided through capture.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<DecidedBy>,
        /// When it was closed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        closed_at: Option<Timestamp>,
    },
    /// The agent asked the user a question.
    Question {
        /// The question.
        #[serde(flatten)]
        text: ItemText,
        /// The answers offered.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
        /// The answer, if capture saw it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<ItemText>,
    },
    /// The agent reported an error.
    Error {
        /// Its kind.
        class: ErrorClass,
        /// The provider's code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// The message.
        #[serde(flatten)]
        text: ItemText,
    },
    /// The context was compacted.
    Compaction {
        /// Who started it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trigger: Option<CompactTrigger>,
        /// The summary with which the agent continues, if it is known.
        #[serde(flatten)]
        text: ItemText,
    },
    /// A turn ended.
    TurnEnd {
        /// How it ended.
        outcome: TurnOutcome,
        /// Its number within the session, from 1.
        number: u32,
        /// How long it took, milliseconds.
        duration_ms: u64,
    },
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallResult {
    /// How it ended.
    pub outcome: ToolOutcome,
    /// The exit code of a command, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The duration, milliseconds: as the agent reports it, otherwise from the times of call and result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The output.
    #[serde(flatten)]
    pub text: ItemText,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Folds events into items. Events must be applied in the order of their sequence.
#[derive(Debug, Default)]
pub struct ConversationItems {
    items: Vec<ConversationItem>,
    calls: HashMap<String, usize>,
    messages: HashMap<String, usize>,
    approvals: HashMap<ApprovalId, usize>,
    questions: HashMap<String, usize>,
    /// Number of calls without a result.
    open: usize,
    /// Events up to this sequence are read only for parts of later items.
    skip_until: u64,
}

/// The requested items, and the items around them that were folded too.
#[derive(Debug, Default)]
pub struct PageOfItems {
    /// Items before the requested ones.
    pub before: Vec<ConversationItem>,
    /// The requested items.
    pub items: Vec<ConversationItem>,
    /// Items after the requested ones.
    pub after: Vec<ConversationItem>,
}

impl ConversationItems {
    /// Collects the items that begin after this sequence. Events that belong to earlier items are left out, provided
    /// that those items were folded too.
    #[must_use]
    pub fn behind(sequence: u64) -> Self {
        Self { skip_until: sequence, ..Self::default() }
    }

    /// Applies the next event.
    pub fn apply(&mut self, event: &Event) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "all others are about the session, not of the conversation")]
        match &event.payload {
            Payload::UserPrompt(prompt) => {
                let (origin, attachments) = (prompt.origin, prompt.attachments);
                self.begin(event, ItemBody::Prompt { origin, text: ItemText::of(event), attachments });
            }
            Payload::AssistantMessage(message) => {
                let body = ItemBody::Message {
                    model: message.model.clone(),
                    thinking: message.thinking.clone(),
                    text: ItemText::of(event),
                    stop: message.stop,
                };
                if message.thinking.is_some() || event.text.is_some() {
                    let index = self.begin(event, body);
                    if let Some(id) = &message.message_id {
                        self.messages.insert(id.clone(), index);
                    }
                }
            }
            Payload::AssistantDelta(delta) => self.delta(event, delta),
            Payload::ToolCall(call) => {
                let input = ItemText::of(event);
                let begun = self.calls.get(&call.call_id).and_then(|index| self.items.get_mut(*index));
                if let Some(ConversationItem {
                    body: ItemBody::ToolCall { name, tool, title, input: known, .. }, ..
                }) = begun
                {
                    // Two sources reported the call, or the result arrived first.
                    if name.is_empty() {
                        (*name, *tool, *title, *known) = (call.name.clone(), call.tool, call.title.clone(), input);
                    }
                    return;
                }
                let body = ItemBody::ToolCall {
                    call_id: call.call_id.clone(),
                    name: call.name.clone(),
                    tool: call.tool,
                    title: call.title.clone(),
                    input,
                    result: None,
                    subagents: Vec::new(),
                };
                let index = self.begin(event, body);
                self.calls.insert(call.call_id.clone(), index);
                self.open += 1;
            }
            Payload::ToolResult(result) => self.result(event, result),
            Payload::ApprovalRequested(request) => {
                let subject = (request.command.clone())
                    .or_else(|| (!request.paths.is_empty()).then(|| request.paths.join(", ")))
                    .or_else(|| request.url.clone())
                    .or_else(|| event.text.clone());
                let body = ItemBody::Approval {
                    approval_id: request.approval_id.clone(),
                    call_id: request.call_id.clone(),
                    subject,
                    state: ApprovalState::Pending,
                    by: None,
                    closed_at: None,
                };
                let index = self.begin(event, body);
                self.approvals.insert(request.approval_id.clone(), index);
            }
            Payload::ApprovalResolved(resolved) => {
                let item = self.approvals.get(&resolved.approval_id).and_then(|index| self.items.get_mut(*index));
                if let Some(ItemBody::Approval { state, by, closed_at, .. }) = item.map(|item| &mut item.body) {
                    // The end of a call also means that its request is no longer open.
                    let elsewhere = (*state == ApprovalState::Pending).then_some(ApprovalState::AnsweredElsewhere);
                    if let Some(new) = resolved.new_state().or(elsewhere) {
                        (*state, *closed_at) = (new, Some(event.created_at));
                    }
                    *by = resolved.by.or(*by);
                }
            }
            Payload::QuestionAsked(asked) => {
                let body =
                    ItemBody::Question { text: ItemText::of(event), options: asked.options.clone(), answer: None };
                let index = self.begin(event, body);
                if let Some(id) = &asked.call_id {
                    self.questions.insert(id.clone(), index);
                }
            }
            Payload::QuestionAnswered(answered) => {
                let index = answered.call_id.as_ref().and_then(|id| self.questions.get(id));
                let item = index.and_then(|index| self.items.get_mut(*index));
                if let Some(ItemBody::Question { answer, .. }) = item.map(|item| &mut item.body) {
                    *answer = Some(ItemText::of(event));
                }
            }
            Payload::Error(error) => {
                let (class, code) = (error.class, error.code.clone());
                self.begin(event, ItemBody::Error { class, code, text: ItemText::of(event) });
            }
            Payload::ContextCompacted(compacted) => {
                let trigger = compacted.trigger;
                self.begin(event, ItemBody::Compaction { trigger, text: ItemText::of(event) });
            }
            Payload::TurnCompleted(turn) => {
                let (outcome, number, duration_ms) = (turn.outcome, turn.number, turn.duration_ms);
                self.begin(event, ItemBody::TurnEnd { outcome, number, duration_ms });
            }
            _ => {}
        }
    }

    /// Applies a part of a message that arrived after the message.
    fn delta(&mut self, event: &Event, delta: &events::AssistantDelta) {
        let known = delta.message_id.as_ref().and_then(|id| self.messages.get(id));
        if let Some(item) = known.and_then(|index| self.items.get_mut(*index)) {
            if let ItemBody::Message { thinking, text, stop, .. } = &mut item.body {
                *stop = delta.stop.or(*stop);
                match (delta.block, &event.text) {
                    (Block::Text, _) => text.append(event),
                    (Block::Thinking, Some(more)) => {
                        let before = thinking.get_or_insert_default();
                        if !before.is_empty() {
                            before.push('\n');
                        }
                        before.push_str(more);
                    }
                    (Block::Thinking, None) => {}
                }
            }
            return;
        }
        if event.text.is_none() {
            return;
        }
        let (thinking, text) = match delta.block {
            Block::Thinking => (event.text.clone(), ItemText::default()),
            Block::Text => (None, ItemText::of(event)),
        };
        let index = self.begin(event, ItemBody::Message { model: None, thinking, text, stop: delta.stop });
        if let Some(id) = &delta.message_id {
            self.messages.insert(id.clone(), index);
        }
    }

    fn result(&mut self, event: &Event, result: &events::ToolResult) {
        let known = self.calls.get(&result.call_id).copied();
        if known.is_none() && result.detail {
            return;
        }
        let index = known.unwrap_or_else(|| {
            // The call was not recorded.
            let body = ItemBody::ToolCall {
                call_id: result.call_id.clone(),
                name: String::new(),
                tool: ToolKind::Other,
                title: None,
                input: ItemText::default(),
                result: None,
                subagents: Vec::new(),
            };
            let index = self.begin(event, body);
            self.calls.insert(result.call_id.clone(), index);
            self.open += 1;
            index
        });
        let Some(item) = self.items.get_mut(index) else { return };
        let took = known.map(|_| event.created_at.since_ms(item.at).max(0) as u64);
        let ItemBody::ToolCall { result: known, .. } = &mut item.body else { return };
        match known {
            None => {
                self.open -= 1;
                *known = Some(CallResult {
                    outcome: result.outcome,
                    exit_code: result.exit_code,
                    duration_ms: result.duration_ms.or(took),
                    text: ItemText::of(event),
                });
            }
            // Details of a result, or a second result of the same call: the first text is the one the model read.
            Some(known) => {
                known.exit_code = result.exit_code.or(known.exit_code);
                known.duration_ms = result.duration_ms.or(known.duration_ms);
                if known.text.is_empty() {
                    known.text = ItemText::of(event);
                }
            }
        }
    }

    fn begin(&mut self, event: &Event, body: ItemBody) -> usize {
        self.items.push(ConversationItem {
            sequence: event.sequence,
            at: event.created_at,
            turn_id: event.turn_id,
            agent_id: event.agent_id.clone(),
            body,
        });
        self.items.len() - 1
    }

    /// Number of requested items that have begun.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.iter().rev().take_while(|item| item.sequence > self.skip_until).count()
    }

    /// Whether no requested item has begun.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a call among them has no result yet.
    #[must_use]
    pub const fn has_open_calls(&self) -> bool {
        self.open > 0
    }

    /// The items, at most `limit`.
    #[must_use]
    pub fn into_items(self, limit: usize) -> Vec<ConversationItem> {
        self.into_page(limit).items
    }

    /// The requested items, at most `limit`, and the items around them.
    #[must_use]
    pub fn into_page(self, limit: usize) -> PageOfItems {
        let skip_until = self.skip_until;
        let (before, mut items): (Vec<_>, Vec<_>) =
            self.items.into_iter().partition(|item| item.sequence <= skip_until);
        let after = items.split_off(limit.min(items.len()));
        PageOfItems { before, items, after }
    }
}

#[cfg(test)]
mod tests;
