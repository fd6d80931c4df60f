//! Lines of the type `assistant`: a block of a message, the calls in it and its cost.

use std::sync::Arc;

use agents::borrowed::Text;
use events::{
    AssistantDelta, AssistantMessage, Confidence, Identity, QuestionAsked, Severity, Stop, ToolCall, ToolKind, Topic,
    UsageReported,
};
use tailer::decode::{Decoded, Record};

use super::{CALL, CLAUDE, EXTRA, NO_RESPONSE, OPEN_QUESTIONS, QUESTION, TranscriptDecoder};
use crate::claude::{
    record::{ClaudeLine, ClaudeTokens, MessageContent, OfferedQuestion, ToolInput},
    words::{api_error, text_block, title, tool_kind},
};
use crate::cost::nano_usd;

impl TranscriptDecoder {
    pub(super) fn assistant(&mut self, mut line: ClaudeLine<'_>, record: &Record<'_>, out: &mut Decoded) {
        self.detect_resume(&line, out);
        if self.parent.is_none()
            && !self.carried.own
            && !self.carried.resumed
            && line.first_session_id.is_none()
            && line.forked_from.is_none()
            && self.foreign.is_none()
        {
            // Older versions write no `session_id`, so waiting would not show whether the prompts before are copies.
            self.begin_own(out);
        }
        let owner = self.owner(&line, record, out);
        let Some(message) = line.message.take() else { return };
        if line.is_api_error_message {
            let error = api_error(&line);
            self.emit(&line, record, &owner, 0, error, message.content.text(), out);
            if let Some(event) = out.events.last_mut() {
                event.severity = Some(Severity::Error);
            }
            return;
        }
        let synthetic = message.model.as_deref() == Some("<synthetic>");
        if synthetic && message.content.is_text(NO_RESPONSE) {
            // A placeholder written when a session is resumed after a command; it is not an answer of the model.
            self.annotate(&line, record, &owner, EXTRA, Topic::Notice, NO_RESPONSE, out);
            return;
        }
        let message_id = message.id.map(Text::into_string);
        let model = message.model.filter(|_| !synthetic).map(Text::into_string);
        let stop = match message.stop_reason.as_deref() {
            _ if line.is_aborted_mid_stream => Some(Stop::Aborted),
            // The partial message when the user stopped it; the interrupt follows (2.1.200).
            Some("stop_sequence") if synthetic => Some(Stop::Aborted),
            Some("end_turn" | "stop_sequence") => Some(Stop::EndTurn),
            Some("tool_use") => Some(Stop::ToolUse),
            Some("max_tokens") => Some(Stop::MaxTokens),
            Some("refusal") => Some(Stop::Refusal),
            Some(_) => Some(Stop::Other),
            None => None,
        };
        self.carried.may_have_ended = false;
        self.count_stop(message_id.as_deref(), stop.is_some() && stop != Some(Stop::Aborted));
        let blocks = match message.content {
            MessageContent::Blocks(blocks) => blocks,
            MessageContent::Text(text) => vec![text_block(text)],
            MessageContent::Empty => Vec::new(),
        };
        let mut last_text = None;
        let mut calls = false;
        for (index, block) in blocks.into_iter().enumerate() {
            let index = index as u32;
            let is_call = matches!(&*block.kind, "tool_use" | "server_tool_use" | "mcp_tool_use");
            if let Some(thinking) = block.thinking {
                // The line's stop reason is that of the message; the text that follows ends the turn, not the thinking.
                let part = AssistantDelta {
                    message_id: message_id.clone(),
                    block: events::Block::Thinking,
                    stop: None,
                    blocks: 1,
                };
                let text = Some(thinking.into_string()).filter(|t| !t.is_empty());
                self.emit(&line, record, &owner, index, part, text, out);
                continue;
            }
            let said = AssistantMessage {
                message_id: message_id.clone(),
                model: model.clone(),
                stop,
                blocks: 1,
                tool_calls: u32::from(is_call),
                thinking: None,
            };
            let text = block.text.map(Text::into_string).filter(|t| !t.is_empty());
            calls |= is_call;
            last_text = text.as_deref().filter(|t| !t.trim().is_empty()).map(|t| t.chars().count());
            self.emit(&line, record, &owner, index, said, text, out);
            if is_call {
                self.call(&line, record, &owner, block.id, block.name, block.input.map(|i| i.get()), index, out);
            }
        }
        if let (Some(chars), None, false, false) = (last_text, stop, calls, synthetic) {
            self.unsaid_end(&line, record, &owner, chars, message.usage, out);
        }
        if synthetic && stop == Some(Stop::Aborted) {
            self.likely_end(&line, record, &owner, None, Confidence::Low, "a part of a message", out);
        }
        match (message.usage, message_id) {
            (Some(tokens), Some(id)) if !synthetic => self.usage(&line, record, &owner, id, model, tokens, out),
            // A message without an id consists of one line.
            (Some(tokens), None) if !synthetic => {
                let usage = reported(tokens.counted_as(model), tokens.counts(), tokens.details(), line.cost_usd);
                self.emit(&line, record, &owner, EXTRA + 2, usage, None, out);
            }
            (Some(_) | None, _) => {}
        }
    }

    /// Reports the usage of a message when its line adds to the previous ones. Versions up to 2.1.101 write the lines
    /// while the message streams, each with the count so far; newer ones write the total on each line.
    #[expect(clippy::too_many_arguments, reason = "the parts of one event")]
    fn usage(
        &mut self,
        line: &ClaudeLine<'_>,
        record: &Record<'_>,
        owner: &Arc<str>,
        id: String,
        model: Option<String>,
        tokens: ClaudeTokens<'_>,
        out: &mut Decoded,
    ) {
        let same = self.carried.counted.as_deref() == Some(&id);
        let before = if same { self.carried.counted_tokens.unwrap_or([u64::MAX; 4]) } else { [0; 4] };
        let now = tokens.counts();
        let most: [u64; 4] = std::array::from_fn(|i| now[i].max(before[i]));
        if same && most == before {
            return;
        }
        // The id decides which session counts the response, and which later report adds to it.
        let mut report = |id: String, usage: UsageReported| {
            let identity = Identity::of(CLAUDE, "usage", &[id.as_bytes()]);
            let usage = UsageReported { message_id: Some(id), ..usage };
            let mut event = out.event(record, owner, identity, usage);
            event.created_at = self.time_of(line);
            out.push(event);
        };
        let usage = reported(tokens.counted_as(model.clone()), most, tokens.details(), line.cost_usd);
        report(id.clone(), usage);
        for (index, call, tokens) in tokens.further_calls() {
            let model = call.model.map(Text::into_string).or_else(|| model.clone());
            let usage = reported(tokens.counted_as(model), tokens.counts(), tokens.details(), None);
            report(format!("{id}/{}/{index}", &*call.kind), usage);
        }
        if let Some(cost) = tokens.searches_nano_usd() {
            let usage = UsageReported { cost_nano_usd: Some(cost), ..reported(model, [0; 4], [0; 2], None) };
            report(format!("{id}/web_search"), usage);
        }
        self.carried.counted = Some(id);
        self.carried.counted_tokens = Some(most);
    }

    /// Whether Claude Code may show a dialog before it runs such a tool in its current permission mode.
    fn may_ask(&self, tool: ToolKind) -> bool {
        let answered = match self.carried.mode.as_deref() {
            Some("bypassPermissions" | "dontAsk") => true,
            Some("acceptEdits") => tool == ToolKind::Edit,
            _ => false,
        };
        tool.is_asked_for() && !answered && self.carried.headless != Some(true)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one block")]
    fn call(
        &mut self,
        line: &ClaudeLine<'_>,
        record: &Record<'_>,
        owner: &Arc<str>,
        id: Option<Text<'_>>,
        name: Option<Text<'_>>,
        input: Option<&str>,
        index: u32,
        out: &mut Decoded,
    ) {
        let call_id = id.map(Text::into_string).unwrap_or_default();
        let name = name.map(Text::into_string).unwrap_or_default();
        let tool = tool_kind(&name);
        let parsed: ToolInput<'_> = input.and_then(|i| serde_json::from_str(i).ok()).unwrap_or_default();
        let question = parsed
            .questions
            .and_then(|q| serde_json::from_str::<Vec<OfferedQuestion<'_>>>(q.get()).ok())
            .and_then(|q| q.into_iter().next());
        let title =
            question.as_ref().map(|q| q.question.0.to_string()).or_else(|| title(tool, &parsed)).or_else(|| {
                name.starts_with("mcp__").then(|| name.trim_start_matches("mcp__").replacen("__", ": ", 1))
            });
        let background = parsed.run_in_background == Some(true);
        let may_ask = self.may_ask(tool);
        let payload =
            ToolCall { call_id: call_id.clone(), name, tool, title, background, may_ask, ..ToolCall::default() };
        self.emit(line, record, owner, CALL + index, payload, input.map(str::to_owned), out);
        if let Some(question) = question {
            let options = question.options.into_iter().map(|c| c.label.into_string()).collect();
            let text = Some(question.question.into_string());
            self.emit(
                line,
                record,
                owner,
                QUESTION + index,
                QuestionAsked { call_id: Some(call_id.clone()), options },
                text,
                out,
            );
            if self.carried.questions.len() == OPEN_QUESTIONS {
                self.carried.questions.remove(0);
            }
            self.carried.questions.push(call_id);
        }
    }
}

/// The usage of a message: input, output, cache read, cache write; `details` are the parts cached for an hour and spent
/// on thinking.
fn reported(model: Option<String>, counts: [u64; 4], details: [u64; 2], cost_usd: Option<f64>) -> UsageReported {
    let [input_tokens, output_tokens, cache_read_tokens, cache_write_tokens] = counts;
    let [cache_write_hour_tokens, thinking_tokens] = details;
    UsageReported {
        model,
        input_tokens,
        output_tokens,
        cache_read_tokens,
        cache_write_tokens,
        cache_write_hour_tokens: cache_write_hour_tokens.min(cache_write_tokens),
        thinking_tokens: thinking_tokens.min(output_tokens),
        cost_nano_usd: cost_usd.and_then(nano_usd),
        ..UsageReported::default()
    }
}
