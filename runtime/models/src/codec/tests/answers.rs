//! Answers from the vendors' documentation, with the relevant corner cases.

use crate::Api;

pub(super) const ALL: [(Api, &str); 4] =
    [(Api::Anthropic, ANTHROPIC), (Api::Responses, RESPONSES), (Api::Chat, CHAT), (Api::Gemini, GEMINI)];

/// <https://platform.claude.com/docs/en/build-with-claude/streaming>
pub(super) const ANTHROPIC: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-5-20251101","content":[],"stop_reason":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":120,"cache_read_input_tokens":5000,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":20},"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"\"see\"."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCg=="}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwKAhgB"}}

data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":"","citations":null}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"I look: \u00fc\n"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_01","name":"bash","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"command\":"}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"ls\",\"n\":1}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: content_block_start
data: {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_02","name":"read","input":{},"caller":{"type":"direct"}}}

event: content_block_delta
data: {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"a\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":4}

event: content_block_start
data: {"type":"content_block_start","index":5,"content_block":{"type":"container_upload", "file_id":"f_1"}}

event: content_block_stop
data: {"type":"content_block_stop","index":5}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":77,"output_tokens_details":{"thinking_tokens":30}}}

event: message_stop
data: {"type":"message_stop"}

"#;

/// The reasoning item of [`RESPONSES`], with its original whitespace.
pub(super) const REASONING: &str = r#"{"id":"rs_1", "type":"reasoning","encrypted_content":"gAAAABo\u002b","summary":[{"type":"summary_text","text":"**Plan**"}]}"#;

/// <https://platform.openai.com/docs/api-reference/responses-streaming>
pub(super) const RESPONSES: &str = r#"event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"gpt-5.5-2026-04-01","output":[]}}

data: {"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1"}}

data: {"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}

data: {"type":"response.reasoning_summary_text.delta","output_index":0,"item_id":"rs_1","summary_index":0,"delta":"**Plan**"}

data: {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1", "type":"reasoning","encrypted_content":"gAAAABo\u002b","summary":[{"type":"summary_text","text":"**Plan**"}]}}

data: {"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[]}}

data: {"type":"response.content_part.added","output_index":1,"part":{"type":"output_text","text":""}}

data: {"type":"response.output_text.delta","output_index":1,"delta":"Looking."}

data: {"type":"response.output_item.done","output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Looking."}]}}

data: {"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_1","name":"bash"}}

data: {"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"command\": "}

data: {"type":"response.function_call_arguments.delta","output_index":2,"delta":"\"ls\"}"}

data: {"type":"response.function_call_arguments.done","output_index":2,"arguments":"{\"command\": \"ls\"}"}

data: {"type":"response.output_item.done","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"command\": \"ls\"}","call_id":"call_1","name":"bash"}}

data: {"type":"response.output_item.added","output_index":3,"item":{"type":"web_search_call","id":"ws_1"}}

data: {"type":"response.output_item.done","output_index":3,"item":{"type":"web_search_call", "id":"ws_1","status":"completed"}}

data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":1200,"input_tokens_details":{"cached_tokens":1024,"cache_write_tokens":76},"output_tokens":60,"output_tokens_details":{"reasoning_tokens":10},"total_tokens":1260}}}

"#;

/// The order in which Azure sends it: earendil-works/pi#6409.
pub(super) const AZURE: &str = r#"data: {"type":"response.created","response":{"id":"resp_1"}}

data: {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}

data: {"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","arguments":"{}","call_id":"call_1","name":"bash"}}

data: {"type":"response.completed","response":{"status":"completed","output":[{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"}]}}

"#;

/// <https://platform.openai.com/docs/api-reference/chat-streaming>, with fields of DeepSeek and of Gemini's imitation.
pub(super) const CHAT: &str = r#": OPENROUTER PROCESSING

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt-5.5","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}]}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"reasoning_content":"Hm, "},"finish_reason":null}]}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"reasoning_content":"so","reasoning":"so"},"finish_reason":null}]}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"I look."},"finish_reason":null}]}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"bash","arguments":""}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"command\":"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"ls\"}"}},{"index":1,"id":"call_b","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":1200,"completion_tokens":60,"total_tokens":1260,"prompt_tokens_details":{"cached_tokens":1000},"completion_tokens_details":{"reasoning_tokens":10}}}

data: [DONE]

"#;

/// <https://ai.google.dev/gemini-api/docs/thought-signatures>
pub(super) const GEMINI: &str = "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"I think \",\"thought\":true}]},\"index\":0}],\"modelVersion\":\"gemini-3-pro\",\"responseId\":\"r1\"}\r
\r
data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"so.\",\"thought\":true},{\"text\":\"Two \"}]},\"index\":0}]}\r
\r
data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"words\"},{\"text\":\"\",\"thoughtSignature\":\"c2lnMQ==\"}]},\"index\":0}]}\r
\r
data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"bash\",\"args\":{\"command\":\"ls\",\"n\":2},\"id\":\"fc-1\"},\"thoughtSignature\":\"c2lnMg==\"},{\"functionCall\":{\"name\":\"read\",\"args\":{}}},{\"executableCode\":{\"language\":\"PYTHON\", \"code\":\"1\"}}]},\"index\":0}]}\r
\r
data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[]},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":1200,\"cachedContentTokenCount\":1000,\"candidatesTokenCount\":40,\"thoughtsTokenCount\":25,\"totalTokenCount\":1265}}\r
\r
";
