//! The meaning of each kind of record, tested on short lines from recordings of 0.61.0 (ids and texts shortened); whole
//! recordings are in `tests/recordings.rs`.

use std::{fmt::Write as _, sync::Arc};

use events::{Claim, Confidence, NewEvent, Payload, Provider, Timestamp};

use super::*;
use tailer::decode::{Decoded, Decoder, Record, feed};

mod legacy;
mod recordings;
mod restated;

const SESSION: &str = "/h/.gemini/tmp/p/chats/session-2026-11-20T04-39-77f970a5.jsonl";
const SUBAGENT: &str = "/h/.gemini/tmp/p/chats/df13ceb6/08986023.jsonl";
const HEADER: &str = r#"{"sessionId":"s1","projectHash":"ab","startTime":"2026-11-20T04:39:18.871Z","lastUpdated":"2026-11-20T04:39:18.871Z","kind":"main"}"#;
const PROMPT: &str = r#"{"id":"u1","timestamp":"2026-11-20T04:39:20.821Z","type":"user","content":[{"text":"run the greeting command"}]}"#;
const TOUCH: &str = r#"{"$set":{"lastUpdated":"2026-11-20T04:39:20.821Z"}}"#;
const ANSWER: &str = r#"{"id":"g1","timestamp":"2026-11-20T04:39:28.743Z","type":"gemini","content":"The command printed a greeting.","thoughts":[],"tokens":{"input":1200,"output":40,"cached":200,"thoughts":25,"tool":0,"total":1265},"model":"gemini-2.5-pro"}"#;
const EMPTY: &str = r#"{"id":"g2","timestamp":"2026-11-20T04:39:21.790Z","type":"gemini","content":"","thoughts":[],"tokens":null,"model":"gemini-2.5-pro"}"#;

fn with_calls(calls: &str) -> String {
    format!("{},\"toolCalls\":[{calls}]}}", &EMPTY[..EMPTY.len() - 1])
}

fn call(name: &str, args: &str, status: &str, response: &str) -> String {
    format!(
        r#"{{"id":"c1","name":"{name}","args":{args},"result":[{{"functionResponse":{{"id":"c1","name":"{name}","response":{response}}}}}],"status":"{status}","timestamp":"2026-11-20T04:39:28.133Z","resultDisplay":[[{{"text":"grid","fg":""}}]],"description":"described","displayName":"Shell","renderOutputAsMarkdown":false}}"#
    )
}

/// Events in short form: kind, relevant data, text; `!` marks low confidence.
fn short(event: &NewEvent) -> String {
    let mut line = String::new();
    if event.confidence == Confidence::Low {
        line.push('!');
    }
    let kind = event.payload.kind();
    let _ = match &event.payload {
        Payload::SessionStarted(s) => write!(
            line,
            "{kind} {} cwd={} parent={} type={}",
            s.how,
            s.cwd.as_deref().unwrap_or("-"),
            s.parent_provider_session_id.as_deref().unwrap_or("-"),
            s.agent_type.as_deref().unwrap_or("-")
        ),
        Payload::UserPrompt(p) => write!(line, "{kind} {}", p.origin),
        Payload::AssistantMessage(m) => {
            write!(line, "{kind} calls={} thinking={}", m.tool_calls, m.thinking.as_deref().unwrap_or("-"))
        }
        Payload::ToolCall(c) => write!(line, "{kind} {} {} `{}`", c.name, c.tool, c.title.as_deref().unwrap_or("-")),
        Payload::ToolResult(r) => write!(line, "{kind} {} {:?}", r.outcome, r.exit_code),
        Payload::UsageReported(u) => {
            write!(line, "{kind} {}+{}>{}", u.input_tokens, u.cache_read_tokens, u.output_tokens)
        }
        Payload::Error(e) => {
            write!(line, "{kind} {} {} ends={}", e.class, e.code.as_deref().unwrap_or("-"), e.ends_turn)
        }
        Payload::ContextCompacted(c) => {
            write!(line, "{kind} {}", c.trigger.map_or("-", events::CompactTrigger::as_str))
        }
        Payload::SessionForked(f) => {
            write!(line, "{kind} {} {}", f.from, f.at.as_deref().unwrap_or("-"))
        }
        Payload::Annotation(a) => write!(line, "{kind} {} {}", a.topic, a.value),
        Payload::Signal(s) => match &s.claim {
            Claim::State { state, reason } => {
                write!(line, "{kind} {state} {} {}", reason.map_or("-", events::Reason::as_str), s.strength)
            }
            Claim::TurnEnded { outcome, .. } => {
                write!(line, "{kind} ended {outcome} {}", s.strength)
            }
            Claim::ProcessAlive { .. } | Claim::ProcessGone { .. } | Claim::Withdrawn => {
                write!(line, "{kind} ?")
            }
        },
        Payload::Unrecognized(u) => write!(line, "{kind} {}", u.raw_kind),
        Payload::AssistantDelta(_)
        | Payload::SessionExited(_)
        | Payload::TurnStarted(_)
        | Payload::TurnCompleted(_)
        | Payload::ApprovalRequested(_)
        | Payload::ApprovalResolved(_)
        | Payload::StatusChanged(_)
        | Payload::Heartbeat(_)
        | Payload::QuestionAsked(_)
        | Payload::Finding(_)
        | Payload::Notification(_)
        | Payload::QueuedPrompt(_)
        | Payload::QuestionAnswered(_) => write!(line, "{kind}"),
    };
    if let Some(text) = &event.text {
        let _ = write!(line, " | {text}");
    }
    line
}

fn give(decoder: &mut dyn Decoder, out: &mut Decoded, lines: &[&str]) {
    let mut offset = 0;
    for line in lines {
        feed(decoder, Record { bytes: line.as_bytes(), offset, observed_at: Timestamp::from_millisecond(1) }, out);
        offset += line.len() as u64 + 1;
    }
}

fn output(path: &str) -> Decoded {
    Decoded::new(Provider::Gemini, Arc::from(path), 1)
}

/// Decodes a header and `lines`, then a pause; leaves out the events of the header.
#[track_caller]
fn check_in(path: &str, lines: &[&str], expected: &[&str]) {
    let mut decoder = GeminiDecoder::new(path, None);
    let mut out = output(path);
    let header = HEADER.replace("\"main\"", if path == SUBAGENT { "\"subagent\"" } else { "\"main\"" });
    give(&mut decoder, &mut out, &[&header]);
    out.events.clear();
    give(&mut decoder, &mut out, lines);
    decoder.pause(&mut out);
    let seen: Vec<String> = out.events.iter().map(short).collect();
    assert_eq!(seen, expected);
}

#[track_caller]
fn check(lines: &[&str], expected: &[&str]) {
    check_in(SESSION, lines, expected);
}

#[test]
fn a_new_session_header_in_the_file_ends_the_earlier_sessions_turn() {
    let other = HEADER.replace("s1", "s2");
    let mut out = output(SESSION);
    give(&mut GeminiDecoder::new(SESSION, None), &mut out, &[HEADER, PROMPT, ANSWER, &other]);
    let last = out.events.iter().rfind(|e| *e.provider_session_id == *"s1").map(short);
    assert_eq!(last.as_deref(), Some("signal ended completed medium"));
}

#[test]
fn a_header_starts_a_session_once() {
    let mut decoder = GeminiDecoder::new(SESSION, None).with_cwd(Some("/w".into()));
    let mut out = output(SESSION);
    give(&mut decoder, &mut out, &[HEADER, TOUCH, HEADER]);
    assert_eq!(out.events.iter().map(short).collect::<Vec<_>>(), ["session.started new cwd=/w parent=- type=-"]);
    assert_eq!(decoder.session().map(|s| &**s), Some("s1"));
}

#[test]
fn the_parent_of_a_sub_agent_is_read_from_its_folder() {
    let mut decoder = GeminiDecoder::new(SUBAGENT, None);
    let mut out = output(SUBAGENT);
    let header = r#"{"sessionId":"08986023","projectHash":"3","startTime":"2026-11-20T04:56:54.644Z","kind":"subagent","directories":["/w"]}"#;
    give(&mut decoder, &mut out, &[header]);
    assert_eq!(
        out.events.iter().map(short).collect::<Vec<_>>(),
        ["session.started subagent cwd=/w parent=df13ceb6 type=-"]
    );
}

#[test]
fn prompts_are_decoded_for_sessions_and_sub_agents() {
    check(&[PROMPT, TOUCH], &["user.prompt human | run the greeting command"]);
    check_in(SUBAGENT, &[PROMPT], &["user.prompt agent | run the greeting command"]);
}

#[test]
fn a_prompt_with_a_file_shows_only_the_typed_text() {
    let line = r#"{"id":"u1","timestamp":"2026-11-20T04:39:20.821Z","type":"user","content":[{"text":"read @a"},{"text":"--- content of a"}],"displayContent":"read @a"}"#;
    check(&[line], &["user.prompt human | read @a"]);
}

#[test]
fn injected_context_and_tool_responses_are_not_prompts() {
    for content in [
        r#"[{"text":"<session_context>\nThis is the Gemini CLI"}]"#,
        r#""<hook_context>x</hook_context>""#,
        r#"[{"functionResponse":{"id":"c1","name":"read_file","response":{"output":"x"}}}]"#,
        r#"[{"text":"x"},{"functionResponse":{"id":"c1","name":"read_file","response":{"output":"x"}}}]"#,
        "[]",
    ] {
        check(
            &[&format!(r#"{{"id":"u1","timestamp":"2026-11-20T04:39:20.821Z","type":"user","content":{content}}}"#)],
            &[],
        );
    }
}

#[test]
fn a_prompt_may_start_like_a_command() {
    for text in ["/usr/bin/x is missing", "// fix this", "/* this too */", "? what", "/fix\\nall of it"] {
        let line = PROMPT.replace("run the greeting command", text);
        check(&[&line], &[&format!("user.prompt human | {}", text.replace("\\n", "\n"))]);
    }
}

#[test]
fn slash_commands_and_injected_texts_are_not_prompts() {
    check(
        &[r#"{"id":"u1","timestamp":"2026-11-20T04:39:20.821Z","type":"user","content":"/stats"}"#],
        &["annotation command /stats"],
    );
    let injected = r#"{"id":"u1","timestamp":"2026-11-20T04:39:20.821Z","type":"user","content":[{"text":"System: Potential loop detected. Details: x"}],"displayContent":[{"text":"Potential loop detected"}]}"#;
    check(&[injected], &["annotation notice Potential loop detected"]);
}

#[test]
fn an_answer_ends_the_turn_with_low_confidence() {
    check(
        &[PROMPT, TOUCH, ANSWER, TOUCH],
        &[
            "user.prompt human | run the greeting command",
            "assistant.message calls=0 thinking=- | The command printed a greeting.",
            "usage.reported 1000+200>65",
            "signal ended completed low",
        ],
    );
}

#[test]
fn the_next_prompt_raises_the_confidence_of_the_turn_end() {
    let next = PROMPT.replace("u1", "u2");
    check(
        &[PROMPT, TOUCH, ANSWER, TOUCH, &next, TOUCH],
        &[
            "user.prompt human | run the greeting command",
            "assistant.message calls=0 thinking=- | The command printed a greeting.",
            "usage.reported 1000+200>65",
            "signal ended completed medium",
            "user.prompt human | run the greeting command",
        ],
    );
}

#[test]
fn thoughts_become_the_thinking_of_their_message() {
    let line = ANSWER.replace(
        "\"thoughts\":[]",
        r#""thoughts":[{"subject":"Greeting","description":"Answer briefly.","timestamp":"t"},{"subject":"Then"}]"#,
    );
    check(
        &[&line],
        &[
            "assistant.message calls=0 thinking=**Greeting** Answer briefly.\n**Then** | The command printed a greeting.",
            "usage.reported 1000+200>65",
            "signal ended completed low",
        ],
    );
}

#[test]
fn tokens_in_repeated_message_updates_are_counted_once() {
    let late = EMPTY.replace("null", r#"{"input":7,"output":2}"#);
    check(
        &[PROMPT, TOUCH, EMPTY, &late, &late],
        &[
            "user.prompt human | run the greeting command",
            "assistant.message calls=0 thinking=-",
            "usage.reported 7+0>2",
            "signal running tool low",
        ],
    );
}

#[test]
fn an_empty_message_indicates_an_open_tool_call() {
    check(&[EMPTY], &["assistant.message calls=0 thinking=-", "signal running tool low"]);
}

#[test]
fn a_text_announcing_a_tool_call_does_not_end_the_turn() {
    let announced = EMPTY.replace("\"content\":\"\"", "\"content\":\"Let me check the logs.\"");
    check(&[&announced], &["assistant.message calls=0 thinking=- | Let me check the logs.", "signal running tool low"]);
    let unaccounted =
        EMPTY.replace("\"content\":\"\",", "\"content\":\"Checking.\",").replace("null", r#"{"input":7,"output":412}"#);
    check(
        &[&unaccounted],
        &["assistant.message calls=0 thinking=- | Checking.", "usage.reported 7+0>412", "signal running tool low"],
    );
}

#[test]
fn tool_calls_in_repeated_message_updates_are_decoded_once() {
    let update = with_calls(&call(
        "run_shell_command",
        r#"{"command":"echo hello; sleep 1","description":"run it"}"#,
        "success",
        r#"{"output":"<untrusted_context>\nOutput: hello\nProcess Group PGID: 1\n</untrusted_context>"}"#,
    ));
    check(
        &[PROMPT, TOUCH, EMPTY, TOUCH, &update, &update],
        &[
            "user.prompt human | run the greeting command",
            "assistant.message calls=0 thinking=-",
            r#"tool.call run_shell_command execute `echo hello; sleep 1` | {"command":"echo hello; sleep 1","description":"run it"}"#,
            "tool.result ok None | Output: hello\nProcess Group PGID: 1",
            "signal running thinking medium",
        ],
    );
}

#[test]
fn a_tool_result_names_its_call() {
    let update = with_calls(&call("glob", r#"{"pattern":"*.rs"}"#, "success", r#"{"output":"a.rs"}"#));
    let mut out = output(SESSION);
    give(&mut GeminiDecoder::new(SESSION, None), &mut out, &[HEADER, EMPTY, &update]);
    let [.., called, result] = &out.events[..] else { panic!("{:?}", out.events) };
    assert_eq!(result.parent, Some(called.identity));
    assert_eq!(called.created_at, Timestamp::parse("2026-11-20T04:39:21.790Z"));
    assert_eq!(result.created_at, Timestamp::parse("2026-11-20T04:39:28.133Z"));
}

#[test]
fn tool_outcomes_are_decoded_from_status_and_response() {
    let check = |name, status, response, expected: &str| {
        let mut out = output(SESSION);
        give(
            &mut GeminiDecoder::new(SESSION, None),
            &mut out,
            &[HEADER, EMPTY, &with_calls(&call(name, "{}", status, response))],
        );
        assert_eq!(out.events.last().map(short).as_deref(), Some(expected));
    };
    check(
        "run_shell_command",
        "success",
        r#"{"output":"Output: x\nExit Code: 1\nProcess Group PGID: 3"}"#,
        "tool.result error Some(1) | Output: x\nExit Code: 1\nProcess Group PGID: 3",
    );
    check("read_file", "success", r#"{"output":"Exit Code: 1"}"#, "tool.result ok None | Exit Code: 1");
    check(
        "web_fetch",
        "error",
        r#"{"error":"All requested URLs were skipped"}"#,
        "tool.result error None | All requested URLs were skipped",
    );
    check(
        "write_file",
        "error",
        r#"{"error":"Tool execution blocked: policy says no"}"#,
        "tool.result blocked None | Tool execution blocked: policy says no",
    );
    check(
        "write_file",
        "cancelled",
        r#"{"error":"[Operation Cancelled] Reason: User denied execution."}"#,
        "tool.result denied None | [Operation Cancelled] Reason: User denied execution.",
    );
    check(
        "write_file",
        "cancelled",
        r#"{"error":"[Operation Cancelled] Reason: x"}"#,
        "tool.result cancelled None | [Operation Cancelled] Reason: x",
    );
    check("odd", "success", r#"{"output":{"content":[{"type":"text","text":"deep"}]}}"#, "tool.result ok None | deep");
    check("odd", "success", "null", "tool.result ok None");
}

#[test]
fn tool_calls_are_decoded_with_kind_and_title() {
    let check = |name: &str, args: &str, expected: &str| {
        let mut out = output(SESSION);
        give(
            &mut GeminiDecoder::new(SESSION, None),
            &mut out,
            &[HEADER, EMPTY, &with_calls(&call(name, args, "success", "{}"))],
        );
        let called = out.events.iter().map(short).find(|e| e.starts_with("tool.call")).unwrap();
        assert_eq!(called, format!("tool.call {name} {expected} | {args}"));
    };
    check("run_shell_command", r#"{"command":"a\nb"}"#, "execute `a`");
    check("write_file", r#"{"file_path":"/w/new.txt","content":"x"}"#, "edit `/w/new.txt`");
    check("replace", r#"{"file_path":"/w/app.py"}"#, "edit `/w/app.py`");
    check("read_many_files", r#"{"paths":["a"]}"#, "read `described`");
    check("list_directory", r#"{"dir_path":"."}"#, "read `.`");
    check("search_file_content", r#"{"pattern":"fn","path":"src"}"#, "read `fn`");
    check("web_fetch", r#"{"prompt":"summarise http://h/page"}"#, "fetch `summarise http://h/page`");
    check("google_web_search", r#"{"query":"rust"}"#, "fetch `rust`");
    check("ask_user", r#"{"questions":[{"header":"Database","question":"Which one?"}]}"#, "question `Which one?`");
    check("exit_plan_mode", r#"{"plan_filename":"plan1.md"}"#, "plan `plan1.md`");
    check("invoke_agent", r#"{"agent_name":"generalist","prompt":"Look"}"#, "subagent `Look`");
    check("mcp_labsrv_lookup", r#"{"key":"colour"}"#, "mcp `described`");
    check("save_memory", r#"{"fact":1}"#, "other `described`");
    check("run_shell_command", r#"{"command":["not","text"]}"#, "execute `described`");
}

#[test]
fn the_parents_call_gives_a_sub_agents_type_and_end() {
    let returned =
        call("invoke_agent", r#"{"agent_name":"generalist","prompt":"Look"}"#, "success", r#"{"output":"done"}"#)
            .replace("\"status\"", "\"agentId\":\"08986023\",\"status\"");
    let mut out = output(SESSION);
    give(&mut GeminiDecoder::new(SESSION, None), &mut out, &[HEADER, EMPTY, &with_calls(&returned)]);
    let of_helper: Vec<String> =
        out.events.iter().filter(|e| &*e.provider_session_id == "08986023").map(short).collect();
    assert_eq!(of_helper, ["session.started subagent cwd=- parent=s1 type=generalist", "signal ended completed high"]);
}

#[test]
fn a_sub_agents_turn_ends_with_complete_task() {
    let done = with_calls(&call("complete_task", r#"{"result":{}}"#, "success", r#"{"output":"Output submitted"}"#));
    check_in(
        SUBAGENT,
        &[EMPTY, &done, r#"{"$set":{"summary":"{}"}}"#],
        &[
            "assistant.message calls=0 thinking=-",
            r#"tool.call complete_task other `described` | {"result":{}}"#,
            "tool.result ok None | Output submitted",
            "signal ended completed high",
        ],
    );
    check_in(
        SUBAGENT,
        &[ANSWER],
        &[
            "assistant.message calls=0 thinking=- | The command printed a greeting.",
            "usage.reported 1000+200>65",
            "signal running thinking medium",
        ],
    );
}

const CANCELLED: &str =
    r#"{"id":"i1","timestamp":"2026-11-20T04:39:30.000Z","type":"info","content":"Request cancelled."}"#;

#[test]
fn a_cancelled_request_ends_the_turn() {
    check(
        &[PROMPT, TOUCH, CANCELLED],
        &["user.prompt human | run the greeting command", "signal ended interrupted high"],
    );
}

#[test]
fn a_denied_call_followed_by_a_cancelled_request_ends_the_turn_as_denied() {
    let refused = with_calls(&call(
        "replace",
        "{}",
        "cancelled",
        r#"{"error":"[Operation Cancelled] Reason: User denied execution."}"#,
    ));
    check(
        &[EMPTY, &refused, CANCELLED],
        &[
            "assistant.message calls=0 thinking=-",
            "tool.call replace edit `described` | {}",
            "tool.result denied None | [Operation Cancelled] Reason: User denied execution.",
            "signal ended denied high",
        ],
    );
}

/// Esc in a tool (0.61.0, built from a description): the interrupted call follows in a separate message.
#[test]
fn records_after_an_interrupted_tool_call_open_no_turn() {
    let carrier = format!(
        r#"{{"id":"g9","timestamp":"2026-11-20T04:39:30.500Z","type":"gemini","content":"","thoughts":[],"toolCalls":[{}]}}"#,
        call(
            "run_shell_command",
            r#"{"command":"sleep 9"}"#,
            "cancelled",
            r#"{"error":"[Operation Cancelled] Reason: x"}"#
        )
    );
    let response = r#"{"id":"u9","timestamp":"2026-11-20T04:39:30.600Z","type":"user","content":[{"functionResponse":{"id":"c1","name":"run_shell_command","response":{"error":"x"}}}]}"#;
    check(
        &[EMPTY, CANCELLED, &carrier, response],
        &[
            "assistant.message calls=0 thinking=-",
            "signal ended interrupted high",
            r#"tool.call run_shell_command execute `sleep 9` | {"command":"sleep 9"}"#,
            "tool.result cancelled None | [Operation Cancelled] Reason: x",
            "signal ended interrupted high",
        ],
    );
}

#[test]
fn an_api_error_ends_the_turn() {
    let error = r#"{"id":"e1","timestamp":"2026-11-20T04:39:30.000Z","type":"error","content":"[API Error: {\"error\":{\"code\":401,\"message\":\"no\"}}]"}"#;
    check(
        &[PROMPT, TOUCH, error],
        &[
            "user.prompt human | run the greeting command",
            "error auth 401 ends=true | [API Error: {\"error\":{\"code\":401,\"message\":\"no\"}}]",
            "signal ended failed high",
        ],
    );
    let other = r#"{"id":"e1","timestamp":"2026-11-20T04:39:30.000Z","type":"error","content":"Unknown command: /x"}"#;
    check(&[other], &["error other - ends=false | Unknown command: /x"]);
}

#[test]
fn info_and_warning_records_become_notices() {
    check(
        &[
            r#"{"id":"i1","timestamp":"2026-11-20T04:53:02.967Z","type":"info","content":"Conversation checkpoint saved with tag: mytag."}"#,
        ],
        &["annotation notice Conversation checkpoint saved with tag: mytag."],
    );
    check(
        &[r#"{"id":"i1","timestamp":"2026-11-20T04:53:02.967Z","type":"warning","content":"careful"}"#],
        &["annotation notice careful"],
    );
    check(
        &[
            r#"{"id":"i1","timestamp":"2026-11-20T04:53:02.967Z","type":"info","content":"A potential loop was detected. The request has been halted."}"#,
        ],
        &[
            "annotation notice A potential loop was detected. The request has been halted.",
            "signal ended failed medium",
        ],
    );
    check(&[r#"{"$set":{"summary":"Greets the user"}}"#], &["annotation title Greets the user"]);
}

#[test]
fn unknown_records_are_kept_as_unrecognized() {
    check(
        &[r#"{"id":"x","timestamp":"2026-11-20T04:39:20.821Z","type":"novelty","content":"?"}"#],
        &[r#"unrecognized novelty | {"id":"x","timestamp":"2026-11-20T04:39:20.821Z","type":"novelty","content":"?"}"#],
    );
    check(&[r#"{"new":1}"#], &[r#"unrecognized record | {"new":1}"#]);
    check(&[r#"{"id":7,"type":"user"}"#], &[r#"unrecognized user of another form | {"id":7,"type":"user"}"#]);
}
