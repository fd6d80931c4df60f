// A scripted model: answers Anthropic's Messages API from a script, so that real agents run with nothing else
// simulated.

import { createServer } from "node:http";

/** A tool call, as a step of a script. */
export const use = (name, input) => ({ type: "tool_use", name, input });

/** Serves a script: maps a word of the prompt to the answers, one text or call per step. The step is determined by the
 * length of the conversation, so a repeated request gets the same answer. */
export async function model(scripts) {
  const heard = [];
  const server = createServer(async (request, answer) => {
    let body = "";
    for await (const piece of request) body += piece;
    if (request.method !== "POST" || !request.url.startsWith("/v1/messages")) return answer.writeHead(404).end();
    const asked = JSON.parse(body);
    if (request.url.includes("count_tokens")) return answer.end('{"input_tokens":10}');
    heard.push(asked);
    const step = next(scripts, asked);
    const content = [typeof step === "string" ? { type: "text", text: step } : { ...step, id: `toolu_${String(heard.length).padStart(24, "0")}` }];
    const message = {
      id: `msg_${heard.length}`,
      type: "message",
      role: "assistant",
      model: asked.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 10, output_tokens: 1, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
    };
    const stop_reason = typeof step === "string" ? "end_turn" : "tool_use";
    if (asked.stream !== true) {
      answer.setHeader("Content-Type", "application/json");
      return answer.end(JSON.stringify({ ...message, content, stop_reason }));
    }
    answer.setHeader("Content-Type", "text/event-stream");
    const send = (type, fields) => answer.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`);
    send("message_start", { message });
    const [block] = content;
    send("content_block_start", { index: 0, content_block: block.type === "text" ? { type: "text", text: "" } : { ...block, input: {} } });
    send("content_block_delta", {
      index: 0,
      delta: block.type === "text" ? { type: "text_delta", text: block.text } : { type: "input_json_delta", partial_json: JSON.stringify(block.input) },
    });
    send("content_block_stop", { index: 0 });
    send("message_delta", { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 20 } });
    send("message_stop", {});
    answer.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** The call results that the model received in the conversation with this word, in order. */
    results: (word) =>
      heard
        .filter((asked) => place(asked, word) !== -1)
        .map(results)
        .reduce((longest, one) => (one.length > longest.length ? one : longest), []),
    close: () => server.close().closeAllConnections(),
  };
}

const texts = ({ content }) => (typeof content === "string" ? [content] : content.filter((block) => block.type === "text").map((block) => block.text));
/** The index of the first message in which the user says a word. */
const place = ({ messages }, word) => messages.findIndex((message) => message.role === "user" && texts(message).some((text) => text.includes(word)));
const results = ({ messages }) =>
  messages
    .flatMap(({ content }) => (Array.isArray(content) ? content.filter((block) => block.type === "tool_result") : []))
    .map(({ content }) => (typeof content === "string" ? content : texts({ content }).join("\n")));

function next(scripts, asked) {
  // Requests outside the conversation, for example for a title, have none of the agent's tools.
  if (!(asked.tools ?? []).some(({ name }) => /^bash$/i.test(name))) return '{"title":"Scripted"}';
  const [word, steps] = Object.entries(scripts).find(([word]) => place(asked, word) !== -1) ?? ["", ["No script has this."]];
  const said = asked.messages.slice(place(asked, word)).filter(({ role }) => role === "assistant").length;
  return steps[Math.min(said, steps.length - 1)];
}
