//! Payloads about turns: prompts, messages, tokens.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::skip::{is_none_of, is_zero};
use crate::{Receipt, Timestamp, provider::names};

names! {
    /// What opened a turn.
    TurnTrigger {
        /// A person's prompt.
        Prompt = "prompt" / 1,
        /// The agent itself: a finished background task, a scheduled wake-up.
        Wakeup = "wakeup" / 2,
        /// A command of the agent's own (`/compact`).
        Command = "command" / 3,
        /// A prompt that capture typed for a rule of the user.
        Monitor = "monitor" / 4,
    }
}

by_default!(TurnTrigger::Prompt);

data! {
    /// A turn was opened (derived).
    TurnStarted {
        /// What opened it.
        trigger: TurnTrigger,
        /// Its number within the session, from 1.
        number: u32,
    }
}

names! {
    /// How a turn ended.
    TurnOutcome {
        /// The agent finished.
        Completed = "completed" / 1,
        /// The user interrupted it.
        Interrupted = "interrupted" / 2,
        /// The user refused a permission.
        Denied = "denied" / 3,
        /// An error ended it.
        Failed = "failed" / 4,
        /// The session's process ended first.
        Exited = "exited" / 5,
        /// The next prompt arrived before capture saw an end.
        Superseded = "superseded" / 6,
        /// capture concluded the end from silence and a ready prompt.
        TimedOut = "timed_out" / 7,
        /// The user returned to a point before it, so the conversation continues without it. Its changes to files may
        /// remain.
        TakenBack = "taken_back" / 8,
    }
}

by_default!(TurnOutcome::Completed);

data! {
    /// A turn is over (derived).
    TurnCompleted {
        /// How it ended.
        outcome: TurnOutcome,
        /// Its number within the session, from 1.
        number: u32,
        /// Its duration, milliseconds, by capture's clock or the provider's.
        duration_ms: u64,
        /// What its checks showed.
        #[serde(default, skip_serializing_if = "Receipt::is_empty")]
        receipt: Receipt,
    }
}

names! {
    /// The origin of a prompt.
    PromptOrigin {
        /// A person typed it while the agent was waiting.
        Human = "human" / 1,
        /// A person typed it while the agent was working: steering or queued.
        Steering = "steering" / 2,
        /// The agent itself wrote it (a background task ended).
        Wakeup = "wakeup" / 3,
        /// Another agent wrote it: the task of a sub-agent.
        Agent = "agent" / 4,
        /// One of the agent's own commands that makes it work (`/compact`, `!ls`).
        Command = "command" / 5,
        /// capture typed it because of a rule in the user's configuration. It does not come from the user and
        /// authorizes nothing.
        Monitor = "monitor" / 6,
    }
}

by_default!(PromptOrigin::Human);

data! {
    /// The agent received a prompt. The prompt is the event's text.
    UserPrompt {
        /// The origin of the prompt.
        origin: PromptOrigin,
        /// Whether the agent's record names the origin. Otherwise capture concluded the origin: the prompt counts for
        /// titles and turns, but authorizes nothing.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stated: bool,
        /// Images and files that came with it.
        #[serde(default, skip_serializing_if = "is_zero")]
        attachments: u32,
        /// The provider's id of the turn, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_turn_id: Option<String>,
    }
}

names! {
    /// The part of a message that a text belongs to.
    Block {
        /// What the user reads.
        Text = "text" / 1,
        /// Thinking.
        Thinking = "thinking" / 2,
    }
}

by_default!(Block::Text);

data! {
    /// A part of a message that arrived after the message's event was committed, or live output.
    AssistantDelta {
        /// The provider's id of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// The part of the message.
        block: Block,
        /// Why the model stopped, if this part is the first to report it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop: Option<Stop>,
        /// Number of content blocks that this part represents.
        #[serde(default, skip_serializing_if = "is_zero")]
        blocks: u32,
    }
}

names! {
    /// Why the model stopped.
    Stop {
        /// It finished its turn.
        EndTurn = "end_turn" / 1,
        /// It called tools.
        ToolUse = "tool_use" / 2,
        /// It ran out of tokens.
        MaxTokens = "max_tokens" / 3,
        /// The user interrupted it.
        Aborted = "aborted" / 4,
        /// It refused.
        Refusal = "refusal" / 5,
        /// Anything else, or not reported.
        Other = "other" / 6,
    }
}

data! {
    /// One message of the model. All blocks of a message form one event. The text that the user reads is the event's
    /// text.
    AssistantMessage {
        /// The provider's id of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// Model that wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Why the model stopped; `end_turn` ends the turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop: Option<Stop>,
        /// Number of content blocks of any kind merged into this event.
        #[serde(default, skip_serializing_if = "is_zero")]
        blocks: u32,
        /// Number of tool calls among them.
        #[serde(default, skip_serializing_if = "is_zero")]
        tool_calls: u32,
        /// The readable part of the model's thinking.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thinking: Option<String>,
    }
}

data! {
    /// Tokens spent on one model response that were not reported before; never a total of several responses. A source
    /// reports a response's total so far; the log contains the increase.
    UsageReported {
        /// The provider's id of the message or response they were spent on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// The model, with the suffix `-fast` if the response was processed in a fast mode with a separate price.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Input tokens that no cache served.
        #[serde(default)]
        input_tokens: u64,
        /// Output tokens, thinking included.
        #[serde(default)]
        output_tokens: u64,
        /// Input tokens read from a cache.
        #[serde(default)]
        cache_read_tokens: u64,
        /// Input tokens written to a cache.
        #[serde(default)]
        cache_write_tokens: u64,
        /// The part of `cache_write_tokens` that stays in the cache for an hour instead of five minutes.
        #[serde(default, skip_serializing_if = "is_none_of")]
        cache_write_hour_tokens: u64,
        /// Output tokens spent on thinking.
        #[serde(default, skip_serializing_if = "is_none_of")]
        thinking_tokens: u64,
        /// What the response cost according to the agent, billionths of a US dollar.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_nano_usd: Option<u64>,
        /// The quotas, if they changed since the last report.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        quotas: Vec<QuotaReported>,
        /// The sums of the agent's own accounting. They include responses that are also reported one by one, so the two
        /// are compared and never added.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<UsageAccount>,
    }
}

impl UsageReported {
    /// Whether it reports tokens of a response.
    #[must_use]
    pub const fn has_tokens(&self) -> bool {
        self.input_tokens > 0 || self.output_tokens > 0 || self.cache_read_tokens > 0 || self.cache_write_tokens > 0
    }
}

names! {
    /// What an agent's accounting covers.
    AccountScope {
        /// The work of a session so far, including sub-agents and calls that are not in the transcript.
        Session = "session" / 1,
        /// One call of a model.
        Call = "call" / 2,
    }
}

by_default!(AccountScope::Session);

data! {
    /// Sums of an agent's own accounting. It may include calls that its files do not show, such as those that create a
    /// title or compact a conversation.
    UsageAccount {
        /// What it covers.
        scope: AccountScope,
        /// When the accounting began. A session that continues in another session's process continues its sums, and has
        /// the same time here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        began_at: Option<Timestamp>,
        /// The sums by model.
        models: Vec<AccountedModel>,
    }
}

data! {
    /// The sums of an agent's own accounting for one model.
    AccountedModel {
        /// Model.
        model: String,
        /// Input tokens that no cache served.
        #[serde(default)]
        input_tokens: u64,
        /// Output tokens, thinking included.
        #[serde(default)]
        output_tokens: u64,
        /// Input tokens read from a cache.
        #[serde(default)]
        cache_read_tokens: u64,
        /// Input tokens written to a cache.
        #[serde(default)]
        cache_write_tokens: u64,
        /// The part of `cache_write_tokens` that stays in the cache for an hour instead of five minutes.
        #[serde(default, skip_serializing_if = "is_none_of")]
        cache_write_hour_tokens: u64,
        /// Output tokens spent on thinking.
        #[serde(default, skip_serializing_if = "is_none_of")]
        thinking_tokens: u64,
        /// The cost, billionths of a US dollar.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_nano_usd: Option<u64>,
    }
}

data! {
    /// How much of a quota is used, as reported by the provider.
    QuotaReported {
        /// Its name: `primary`, `secondary`.
        name: String,
        /// Length of its window, minutes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window_minutes: Option<u32>,
        /// The part that is used, thousandths.
        used_permille: u32,
        /// When its window ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resets_at: Option<Timestamp>,
    }
}
