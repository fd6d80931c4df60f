// Generated from /openapi.json by scripts/types.mjs. Do not edit.
// SHA-256 of its paths and components: e9f7c693d79d91917ec635b21c28618ca805d3ccac4a8a2ead53517cfb5508b9

/** All claims about a status, and the rule that decided. */
export type Account = {
  /** Every claim: the deciding one first, then in order of strength. */
  claims: Weighed[];
  /** The rule that decided. */
  rule: Rule;
};

/** What an agent's accounting covers. */
export type AccountScope = ("session" | "call");

/** The sums of an agent's own accounting for one model. */
export type AccountedModel = {
  /** Input tokens read from a cache. */
  cache_read_tokens?: number;
  /** The part of `cache_write_tokens` that stays in the cache for an hour instead of five minutes. */
  cache_write_hour_tokens?: number;
  /** Input tokens written to a cache. */
  cache_write_tokens?: number;
  /** The cost, billionths of a US dollar. */
  cost_nano_usd?: number | null;
  /** Input tokens that no cache served. */
  input_tokens?: number;
  /** Model. */
  model: string;
  /** Output tokens, thinking included. */
  output_tokens?: number;
  /** Output tokens spent on thinking. */
  thinking_tokens?: number;
};

/** The active sessions, or all. */
export type ActiveFilter = ("true" | "all");

/** A message to the agent. */
export type AgentApiInput = {
  /** The text. */
  content: string;
  /** Its kind. */
  type: AgentApiInputKind;
};

/** The kind of a message to the agent. */
export type AgentApiInputKind = ("user" | "raw");

/** A message of the conversation. */
export type AgentApiMessage = {
  /** Its text. */
  content: string;
  /** Its position in the conversation; later messages have larger ids. */
  id: number;
  /** Its author. */
  role: AgentApiRole;
  /** When it was written. */
  time: Timestamp;
};

/** The messages of the conversation, oldest first. */
export type AgentApiMessages = {
  /** The messages; at most the last 1,000 of a conversation. */
  messages: AgentApiMessage[];
};

/** The author of a message. */
export type AgentApiRole = ("user" | "agent");

/** A message that was typed. */
export type AgentApiSent = {
  /** Always true. */
  ok: boolean;
};

/** Whether the agent is working. */
export type AgentApiState = ("running" | "stable");

/** The status of the agent. */
export type AgentApiStatus = {
  /** The agent. */
  agent_type: string;
  /** Whether the agent is working. */
  status: AgentApiState;
  /** Always `pty`. */
  transport: string;
};

/** A remark about the session: a title, a mode, a note. */
export type Annotation = {
  /** What it is about. */
  topic: Topic;
  /** The new value. */
  value: string;
};

/** The answer that an option of a dialog gives to its approval. */
export type Answer = ("allow_once" | "allow_always" | "deny" | "other");

/** The subject of an approval. */
export type ApprovalKind = ("command" | "edit" | "plan" | "mcp" | "fetch" | "trust" | "write" | "question" | "read");

/** How long people took to answer requests for permission. */
export type ApprovalLatency = {
  /** Requests that people answered. */
  answered: number;
  /** Half of them were answered within this time, ms. */
  p50_ms: number;
  /** Nine of ten were answered within this time, ms. */
  p90_ms: number;
  /** The tool; absent for all tools together. */
  tool?: string | null;
};

/** A page of approvals. */
export type ApprovalPage = {
  /** The approvals. */
  approvals: ApprovalView[];
  /** The position of the log the page reflects. */
  as_of: number;
  /** Continues the list; `null` on the last page. */
  next_cursor: string | null;
};

/** The agent stopped to ask for permission. The content of the request is exact unless it was read from a screen. */
export type ApprovalRequested = {
  /** The kind of action that the agent asks for. */
  about?: (ApprovalKind | null);
  /** capture's id of the approval. */
  approval_id: string;
  /** The provider's id of the call, if it reports one. */
  call_id?: string | null;
  /** The command, every byte of it. */
  command?: string | null;
  /** Whether part of the request is unknown. */
  cut?: boolean;
  /** The directory in which the call would run. */
  cwd?: string | null;
  /** The delivery of the hook that made the request and may wait for the answer. */
  delivery?: string | null;
  /** The dialog it was read from. */
  dialog?: (Dialog | null);
  /** The BLAKE3 hash of the payload passed to the hook. */
  digest?: string | null;
  /**
   * The beginning and the end of the command, or of the input if there is no command, if they are too long to be
   * in `command` and `input`.
   */
  excerpt?: (Excerpt | null);
  /** The tool's input, JSON. */
  input?: string | null;
  /** The key of the claim that was made with the request. */
  key?: string | null;
  /** Secrets were removed from the request before it was stored; the agent's original still contains them. */
  masked?: boolean;
  /** The files it concerns, as the agent names them. */
  paths?: string[];
  /**
   * The agent's own name for the sandbox of the call, `none` without one; absent if the agent does not report
   * it.
   */
  sandbox?: string | null;
  /** The PATH of the agent. */
  search_path?: string | null;
  /** The provider's name for the tool. */
  tool?: string | null;
  /** The URL to be fetched. */
  url?: string | null;
};

/** An approval was closed. With an `outcome`: its call ended. */
export type ApprovalResolved = {
  /** Whether it was allowed; absent when not known. */
  allowed?: boolean | null;
  /** capture's id of the approval. */
  approval_id: string;
  /** Who decided, if the decision was made through capture. */
  by?: (DecidedBy | null);
  /** The name of the paired device on which a person decided; absent if it was not a paired device. */
  device?: string | null;
  /** The reason, or the message to the agent. */
  message?: string | null;
  /** How the requested call ended. */
  outcome?: (ToolOutcome | null);
  /** The command that runs instead of the requested one. */
  rewrite?: string | null;
  /** The rule of the policy. */
  rule?: string | null;
  /** The new state. */
  state?: (ApprovalState | null);
  /** How the decision reaches the agent. */
  via?: (DecidedVia | null);
};

/** The state of an approval. */
export type ApprovalState = ("pending" | "allowed" | "denied" | "answered_elsewhere" | "expired" | "withdrawn");

/** An approval with everything needed to decide it. */
export type ApprovalView = {
  /** The sub-agent that made the request, if it was not the main agent. */
  agent_id?: string | null;
  /** Whether it was allowed; absent when not known. */
  allowed?: boolean | null;
  /** How a decision made through capture would reach the agent; absent if it would not. */
  answer?: (DecidedVia | null);
  /** What the user forbade in a prompt of the session and the pending request would do. */
  boundary?: (BoundaryView | null);
  /** Who decided. */
  by?: (DecidedBy | null);
  /** The call it is about, by the agent's id. */
  call_id?: string | null;
  /** Why capture can deny the request but not allow it, and what to do instead. */
  cannot_allow?: string | null;
  /** When it was closed. */
  closed_at?: (Timestamp | null);
  /** The whole command; absent when it is only known from a screen. */
  command: string | null;
  /** How certain it is that the agent waits for a decision. */
  confidence: Confidence;
  /** The directory in which the call would run. */
  cwd: string | null;
  /** The delivery of the hook that made the request. */
  delivery?: string | null;
  /** The name of the paired device on which a person decided; absent if it was not a paired device. */
  device?: string | null;
  /** The BLAKE3 hash of the payload passed to the hook. */
  digest?: string | null;
  /** Whether every byte of the request is known; rules decide only if it is. */
  exact: boolean;
  /**
   * The beginning and the end of the command, or of the input if there is no command, of a request that is too long
   * to be stored completely. capture does not allow such a request.
   */
  excerpt?: (Excerpt | null);
  /** The files the command would run or change, as they were when it was requested. */
  files?: FileView[];
  /** Its id. */
  id: string;
  /** The tool's input, JSON. */
  input?: string | null;
  /** The key of the claim that was made with the request. */
  key?: string | null;
  /** The kind of action the agent asks for; absent if not known. */
  kind: (ApprovalKind | null);
  /**
   * Secrets were removed from the request before it was stored; the agent's original still contains them. capture
   * does not allow such a request.
   */
  masked?: boolean;
  /** The reason, or the message that the agent received. */
  message?: string | null;
  /** Whether the command may run or change more files than `files` lists. */
  more_files?: boolean;
  /** When it was requested. */
  opened_at: Timestamp;
  /** The answers a dialog offers. */
  options?: Choice[];
  /** How the requested call ended. */
  outcome?: (ToolOutcome | null);
  /** The files it concerns. */
  paths: string[];
  /** The decision of the user's policy. */
  policy?: (PolicyView | null);
  /** The agent. */
  provider: Provider;
  /** The question shown to the user. */
  question?: string | null;
  /**
   * Whether it can be allowed for the rest of the session (`scope: "session"`), because capture can recognize a
   * repetition.
   */
  repeatable?: boolean;
  /**
   * Identifies the content of the request. A decision that includes this value is refused if the content has changed
   * since.
   */
  revision?: string;
  /** The command that ran instead of the requested one. */
  rewrite?: string | null;
  /**
   * Why a heuristic over its words considers the pending request risky. If absent, the heuristic found no sign of
   * danger; the request may still do harm.
   */
  risk?: string | null;
  /** The rule that decided. */
  rule?: string | null;
  /** The other pending requests of the same agent for the same tool, input and directory. Omitted in lists. */
  same_as?: string[];
  /** The agent's own name for the sandbox of the call, `none` without one; absent if the agent does not report it. */
  sandbox?: string | null;
  /** The PATH of the agent, on which it finds its programs. */
  search_path?: string | null;
  /** The session it belongs to. */
  session_id: SessionId;
  /** The source that reported it. */
  source: Source;
  /** Its state. */
  state: ApprovalState;
  /** The subject in the words of the source; may be cut. */
  subject: string | null;
  /** A rule that would allow exactly this request from now on. */
  suggested_rule?: string | null;
  /** The agent's name for the tool. */
  tool: string | null;
  /** Why a decision made through capture would not reach the agent, and what to do instead. */
  unanswerable?: string | null;
  /** The URL to be fetched. */
  url?: string | null;
  /** How the decision was delivered to the agent. */
  via?: (DecidedVia | null);
  /** How long it was pending, ms; absent while it is still pending. */
  waited_ms?: number | null;
};

/** How long permission requests waited. */
export type ApprovalWaits = {
  /** The number of requests by waiting time. */
  buckets: WaitBucket[];
  /** Waiting times by tool, most frequent tool first. */
  by_tool: ToolWaits[];
  /** Median waiting time of the requests that a person answered, seconds. */
  p50_s: number | null;
  /** 90th percentile of the waiting time of the requests that a person answered, seconds. */
  p90_s: number | null;
};

/** A turn that a person's prompt opened, with the work until the next one. */
export type Ask = {
  /** Number of commands. */
  commands?: number;
  /** The event of the prompt. */
  event: EventId;
  /** The changed files in the order of their first change, at most 64. */
  files?: ScopedFile[];
  /** Whether more files were changed than are listed. */
  more_files?: boolean;
  /**
   * The files, directories and identifiers that the person named, at most 12. Of names that may mean something
   * else, only those that a changed file matched.
   */
  named?: string[];
  /** The prompt in one line, shortened. */
  prompt: string;
  /** The number of the turn in the session; 0 if unknown. */
  turn: number;
};

/** A part of a message that arrived after the message's event was committed, or live output. */
export type AssistantDelta = {
  /** The part of the message. */
  block: Block;
  /** Number of content blocks that this part represents. */
  blocks?: number;
  /** The provider's id of the message. */
  message_id?: string | null;
  /** Why the model stopped, if this part is the first to report it. */
  stop?: (Stop | null);
};

/**
 * One message of the model. All blocks of a message form one event. The text that the user reads is the event's
 * text.
 */
export type AssistantMessage = {
  /** Number of content blocks of any kind merged into this event. */
  blocks?: number;
  /** The provider's id of the message. */
  message_id?: string | null;
  /** Model that wrote it. */
  model?: string | null;
  /** Why the model stopped; `end_turn` ends the turn. */
  stop?: (Stop | null);
  /** The readable part of the model's thinking. */
  thinking?: string | null;
  /** Number of tool calls among them. */
  tool_calls?: number;
};

/** A session that needs a person. */
export type AttentionItem = {
  /** Its pending approvals and those of its sub-agents. */
  approvals?: string[];
  /** Its working directory. */
  cwd: string | null;
  /** Its open findings of this need. */
  findings?: string[];
  /** What it needs first. */
  need: Need;
  /** Its agent. */
  provider: Provider;
  /** Whether the request could do irreversible harm. */
  risky: boolean;
  /** The session. */
  session_id: SessionId;
  /** When the need arose. */
  since: Timestamp;
  /** Its title. */
  title: string | null;
  /** The subject, in a few words. */
  what: string | null;
  /** The reason, if a finding states one. */
  why: string | null;
};

/** The active sessions that need a person, most urgent first. */
export type AttentionList = {
  /** The position of the log the list reflects. */
  as_of: number;
  /** The sessions and their needs. */
  items: AttentionItem[];
};

/** The part of a message that a text belongs to. */
export type Block = ("text" | "thinking");

/** What the user forbade in a prompt. */
export type BoundaryView = {
  /** When the user wrote the prompt. */
  at: Timestamp;
  /** The event of the prompt. */
  event: EventId;
  /** The sentence of the prompt, shortened and without secrets. */
  said: string;
};

/** What a button decided. */
export type ButtonAnswer = {
  /** The request. */
  approval_id: string;
  /** Its state. */
  state: ApprovalState;
};

/** The press of a button in a notification. */
export type ButtonPressed = {
  /** The single-use token of the button. It allows one request once, or denies it. */
  token: string;
};

/** The result of a tool call. */
export type CallResult = {
  /** The duration, milliseconds: as the agent reports it, otherwise from the times of call and result. */
  duration_ms?: number | null;
  /** The exit code of a command, if it is known. */
  exit_code?: number | null;
  /** How it ended. */
  outcome: ToolOutcome;
  /** The text, or the beginning and the end of a long text. */
  text: string;
  /** The reference to the whole text, if `text` is not all of it. */
  text_ref?: (TextRef | null);
};

/** Whether a session is captured from now on. */
export type CaptureAnswer = {
  /** Whether it is captured. */
  enabled: boolean;
  /** The session. */
  id: SessionId;
};

/** Turns the capture of a session on or off. */
export type CaptureRequest = {
  /** Whether the session is to be captured. */
  enabled: boolean;
};

/** A notification channel to test. */
export type ChannelTest = {
  /** The channel's name in the configuration. */
  channel: string;
};

/** The last run of a check of one class. */
export type Check = {
  /** What it checks. */
  class: CheckClass;
  /** The command, shortened. */
  command: string;
  /** The numbers that the test runner printed. */
  counts?: (TestCounts | null);
  /** Number of edits after it. */
  edits_after?: number;
  /** The event of its result. */
  event: EventId;
  /** The exit code of the command line, if known and if it is that of this command. */
  exit_code?: number | null;
  /** Number of runs that failed since the last run that passed. */
  failures?: number;
  /** The files of these edits, each once; at most 3. */
  files_after?: string[];
  /** Whether a program ran after it that may have run this check again without showing a result. */
  opaque_after?: boolean;
  /** Whether another command of this class passed before it in the same turn, such as the tests of another package. */
  other_passed?: boolean;
  /** Number of runs of this class in the turn. */
  tries: number;
  /** How it ended. */
  verdict: CheckVerdict;
};

/** What a command checks or publishes. */
export type CheckClass = ("tests" | "build" | "types" | "lint" | "format" | "commit" | "push" | "merge" | "deploy" | "install");

/** How a check ended. */
export type CheckVerdict = ("passed" | "failed" | "unknown");

/** A turn of a sub-agent that ran checks. */
export type CheckedSubagent = {
  /** The checks in one line. */
  checks: string;
  /** What its checks showed. */
  receipt: Receipt;
  /** The session of the sub-agent. */
  session_id: SessionId;
  /** Its title. */
  title: string | null;
  /** The number of the turn within that session. */
  turn: number;
};

/** A finished turn and what its checks showed. */
export type CheckedTurn = {
  /** Number of approvals requested. */
  approvals: number;
  /** The checks in one line; absent if none ran. */
  checks?: string | null;
  /** End. */
  completed_at: (Timestamp | null);
  /** The failures, by kind. */
  failures?: Record<string, number>;
  /** Its id. */
  id: TurnId;
  /** Messages of the model. */
  messages: number;
  /** Its number within the session, from 1. */
  number: number;
  /** How it ended; absent while it is open. */
  outcome: (TurnOutcome | null);
  /** The prompt, shortened. */
  prompt: string | null;
  /** What its checks showed. */
  receipt?: Receipt;
  /** Start. */
  started_at: Timestamp;
  /** Prompts typed while it ran. */
  steering: number;
  /** The turns of sub-agents that began during this turn and ran checks. */
  subagents?: CheckedSubagent[];
  /**
   * How often a test failed, files were edited, and the same test ran again; absent in turns that were recorded
   * before this was counted.
   */
  test_fix_loops?: number | null;
  /** The agent's last text, shortened to its beginning and end. */
  text: string | null;
  /** Tool calls. */
  tool_calls: number;
  /** Tool calls that failed. */
  tool_errors: number;
  /** What opened it. */
  trigger: TurnTrigger;
  /** Tokens spent. */
  usage: Usage;
  /** The work of the turn. */
  work?: TurnWork;
};

/** An option of a dialog. */
export type Choice = {
  /** Its effect on the requested approval; absent if the rules do not define it, as for a question. */
  answer?: (Answer | null);
  /** The key that gives this answer immediately: `1`, `y`, `esc`; absent if the option can only be selected. */
  key?: string | null;
  /** Its text on the screen. */
  label: string;
  /** Whether the cursor is on it, so that Enter chooses it. */
  selected?: boolean;
};

/** A statement of an agent, compared with what its commands showed. */
export type ClaimCheck = {
  /** What the statement is about. */
  about: ClaimSubject;
  /** The event of the result that decided; absent if there is none. */
  event?: (EventId | null);
  /** The sentence, shortened. */
  said: string;
  /** What the record says about it. */
  verdict: ClaimVerdict;
  /** Why, in words. */
  why: string;
};

/** What the agent's last message says was done. */
export type ClaimSubject = ("tests" | "build" | "types" | "lint" | "commit" | "push" | "merge" | "deploy" | "todo");

/** What the record of a session says about a statement of its agent. */
export type ClaimVerdict = ("supported" | "stale" | "contradicted" | "unsupported" | "undecided");

/** What a pairing code is for. */
export type CodeScope = ("read" | "control" | "admin");

/** A command that was run. */
export type CommandRun = {
  /** The command, in one line. */
  command: string;
  /** Its exit code, when known. */
  exit_code: number | null;
  /** How it ended; absent while it runs. */
  outcome: (ToolOutcome | null);
};

/** Who started a compaction. */
export type CompactTrigger = ("manual" | "auto");

/** The confidence of a claim. */
export type Confidence = ("low" | "medium" | "high");

/** The context was compacted. */
export type ContextCompacted = {
  /** Tokens after. */
  tokens_after?: number | null;
  /** Tokens before. */
  tokens_before?: number | null;
  /** Who started it. */
  trigger?: (CompactTrigger | null);
};

/** An item of a conversation, for people to read. */
export type ConversationItem = ({
  /** Images and files that came with it. */
  attachments?: number;
  /** The origin of the prompt. */
  origin: PromptOrigin;
  /** The text, or the beginning and the end of a long text. */
  text: string;
  /** The reference to the whole text, if `text` is not all of it. */
  text_ref?: (TextRef | null);
  type: "prompt";
} | {
  /** The model that wrote it. */
  model?: string | null;
  /** Why the model stopped. */
  stop?: (Stop | null);
  /** The text, or the beginning and the end of a long text. */
  text: string;
  /** The reference to the whole text, if `text` is not all of it. */
  text_ref?: (TextRef | null);
  /** The readable part of the model's thinking. */
  thinking?: string | null;
  type: "message";
} | {
  /** The agent's id of the call. */
  call_id: string;
  /** The input, as the agent wrote it. */
  input: ItemText;
  /** The agent's name for the tool; empty if only the result is known. */
  name: string;
  /** The result; absent while the call runs, and if its end was never observed. */
  result?: (CallResult | null);
  /** The sub-agents it started. */
  subagents?: Subagent[];
  /** One line about the call: the command, the file, the URL. */
  title?: string | null;
  /** What the tool does. */
  tool: ToolKind;
  type: "tool_call";
} | Subagent & {
  type: "subagent";
} | {
  /** Its id. */
  approval_id: string;
  /** Who decided, if it was decided through capture. */
  by?: (DecidedBy | null);
  /** The call it is about, by the agent's id. */
  call_id?: string | null;
  /** When it was closed. */
  closed_at?: (Timestamp | null);
  /** Its state. */
  state: ApprovalState;
  /** The command, the file or the URL. */
  subject?: string | null;
  type: "approval";
} | {
  /** The answer, if capture saw it. */
  answer?: (ItemText | null);
  /** The answers offered. */
  options?: string[];
  /** The text, or the beginning and the end of a long text. */
  text: string;
  /** The reference to the whole text, if `text` is not all of it. */
  text_ref?: (TextRef | null);
  type: "question";
} | {
  /** Its kind. */
  class: ErrorClass;
  /** The provider's code. */
  code?: string | null;
  /** The text, or the beginning and the end of a long text. */
  text: string;
  /** The reference to the whole text, if `text` is not all of it. */
  text_ref?: (TextRef | null);
  type: "error";
} | {
  /** The text, or the beginning and the end of a long text. */
  text: string;
  /** The reference to the whole text, if `text` is not all of it. */
  text_ref?: (TextRef | null);
  /** Who started it. */
  trigger?: (CompactTrigger | null);
  type: "compaction";
} | {
  /** How long it took, milliseconds. */
  duration_ms: number;
  /** Its number within the session, from 1. */
  number: number;
  /** How it ended. */
  outcome: TurnOutcome;
  type: "turn_end";
}) & ({
  /** The agent's id of its sub-agent, if that has no separate session. */
  agent_id?: string | null;
  /** When it began. */
  at: Timestamp;
  /** The sequence of its first event in the session. */
  sequence: number;
  /** The turn it belongs to. */
  turn_id?: (TurnId | null);
});

/** A page of a conversation, oldest first. */
export type ConversationPage = {
  /** The position of the log the page reflects. */
  as_of: number;
  /** The items. */
  items: ConversationItem[];
  /** Continues the list; `null` on the last page. */
  next_cursor: string | null;
};

/** The form in which long texts of a conversation are sent. */
export type ConversationTexts = ("short" | "whole");

/** Findings of a kind that began on a day. */
export type DayFindings = {
  /** Number of findings. */
  count: number;
  /** The day: `2026-11-23`. */
  day: string;
  /** The kind. */
  kind: FindingKind;
};

/** How the time of a day was spent, summed over sessions. */
export type DaySplit = {
  /** Seconds during which a model was working. */
  agent_s: number;
  /** The day: `2026-11-23`. */
  day: string;
  /** Seconds during which a tool ran. */
  tool_s: number;
  /**
   * Seconds during which agents waited for a person. Of each wait, only the first 30 minutes count; after that, the
   * person is considered away.
   */
  waiting_s: number;
};

/** Who decided. */
export type DecidedBy = ("policy" | "person" | "grant");

/** How a decision reaches the agent. */
export type DecidedVia = ("hook" | "keys" | "protocol");

/** A decision. */
export type DecisionRequest = {
  /** The answers to questions, by question. */
  answers?: Record<string, string> | null;
  /** `allow` or `deny`. */
  decision: Verdict;
  /** The reason given to the agent if the request is denied. */
  message?: string | null;
  /**
   * The `revision` of the request as it was shown to the person. If the request has changed since, the answer is
   * 409.
   */
  revision?: string | null;
  /**
   * Also saves the `suggested_rule` in the policy, which allows such requests from now on. Requires `revision` and
   * the scope `admin`; a device must be elevated first.
   */
  rule?: boolean;
  /** `once` (default), or `session`, which also covers repetitions of the request in the same session. */
  scope?: DecisionScope;
};

/** The requests that a decision covers. */
export type DecisionScope = ("once" | "session");

export type DeliveryId = string;

/** A delivery is in the spool, or could not be stored there. */
export type DeliveryNotice = {
  /** The delivery. */
  id: DeliveryId;
  /** Why the delivery could not be stored and is lost. */
  lost?: string | null;
};

/** The delivery is being read. */
export type DeliveryTaken = Record<string, unknown>;

/** The delta was accepted. */
export type DeltaTaken = Record<string, unknown>;

/** A device. */
export type Device = {
  /** Its id. */
  id: string;
  /** When it was last used, to the minute. */
  last_used_at: Timestamp;
  /** Its name. */
  name: string;
  /** When it was paired. */
  paired_at: Timestamp;
  /** What it may do. */
  scope: DeviceScope;
  /** Whether it connects through a tunnel or a proxy of the server's own user. */
  tunnel?: boolean;
};

/** The paired devices, most recently used first. */
export type DeviceList = {
  /** The devices. */
  devices: ListedDevice[];
};

/** What a device may do. */
export type DeviceScope = ("read" | "control");

/** A dialog an agent shows: what it asks, and how it can be answered. */
export type Dialog = {
  /** The kind of approval it asks for; absent for a question. */
  about?: (ApprovalKind | null);
  /**
   * Distinguishes this dialog from all others of its run, also from earlier and later ones with the same words. An
   * answer names the mark, so that a decision about one dialog never reaches another.
   */
  mark?: string | null;
  /** Its options, in order. */
  options?: Choice[];
  /** The question it asks: `Do you want to proceed?`. */
  question?: string | null;
  /** The subject of the question: command, file or URL. Read from a screen, so it may be cut. */
  subject?: string | null;
  /** Why keys can never answer it, whatever the screen shows: for example, the agent's version was not tested. */
  unanswerable?: string | null;
};

/** The distance of an edit from what the person named. */
export type Distance = ("named" | "near" | "read_first" | "elsewhere");

/** What the person asked for in a session, and how far its edits are from it. */
export type Drift = {
  /** The turns that a person's prompt opened, oldest first; at most the last 200. */
  asks: Ask[];
  /** Number of earlier turns that are not in `asks`. */
  earlier?: number;
  /** Where the session left its subject, if it did. */
  left?: (Left | null);
};

/** An empty object. */
export type EmptyBody = Record<string, unknown>;

/** The body of every answer that reports an error. */
export type Error = {
  /** The error. */
  error: ErrorText;
};

/** The kind of an error. */
export type ErrorClass = ("auth" | "rate_limit" | "quota" | "network" | "provider" | "context" | "other");

/** The agent reported an error. Its message is the event's text. */
export type ErrorReported = {
  /** The kind. */
  class: ErrorClass;
  /** The provider's code: `529`, `usage_limit_exceeded`. */
  code?: string | null;
  /** Whether the error ended the turn. */
  ends_turn?: boolean;
  /** Whether the agent retries by itself. */
  retrying?: boolean;
};

/** An error. */
export type ErrorText = {
  /** What went wrong, for programs: one of the codes listed with each route. */
  code: string;
  /** More about the error, for programs. If a permission request was already decided: who decided, and when. */
  details?: unknown;
  /** What to do about it. */
  hint?: string | null;
  /** What went wrong, for people. */
  message: string;
};

/** The wire form, and the only place that names its fields. */
export type Event = ({
  agent_id?: string | null;
  confidence: Confidence;
  created_at: Timestamp;
  data: Record<string, unknown>;
  derived: boolean;
  history?: boolean;
  id: EventId;
  kind: Kind;
  observed_at: Timestamp;
  origin: Origin;
  parent_id?: (EventId | null);
  position: number;
  provider: Provider;
  provider_session_id: string;
  sequence: number;
  session_id: SessionId;
  severity?: (Severity | null);
  source: Source;
  text?: string | null;
  text_ref?: (TextRef | null);
  turn_id?: (TurnId | null);
});

export type EventId = string;

/** A page of events, as the server sends it and a client reads it. */
export type EventPage = {
  /** The position of the log the page reflects. */
  as_of: number;
  /** The events. */
  events: Event[];
  /** The sequence of the last event, to pass as `after`. */
  next_after: number;
  /** Continues the list; `null` on the last page. */
  next_cursor: string | null;
};

/** A claim about the state, and its source. */
export type Evidence = {
  /** When. */
  at: Timestamp;
  /** The claim, in the source's words. */
  claim: string;
  /** The source. */
  source: Source;
  /** How far it can be trusted. */
  strength: Confidence;
};

/** The stored parts of a request that is too long to be stored completely. */
export type Excerpt = {
  /** Its beginning. */
  beginning: string;
  /** The length of the whole, bytes. */
  bytes: number;
  /** Its end. */
  end: string;
};

/** A file, as it was when the request was made. */
export type FileView = {
  /** The BLAKE3 hash of its content, hexadecimal; absent if it could not be read or is too large. */
  hash?: string | null;
  /** Its path. */
  path: string;
  /** Its size, bytes; absent if the file did not exist or could not be opened. */
  size?: number | null;
};

/**
 * Something that a person should know about a session. Also the data of an event `finding`, one for each change of it;
 * the newest has the current state.
 */
export type Finding = {
  /** When a person acknowledged it. */
  acknowledged_at?: (Timestamp | null);
  /** The approval it is about. */
  approval_id?: string | null;
  /** How certain it is: no more than its strongest evidence. */
  confidence?: Confidence;
  /** How often it was seen. */
  count: number;
  /** The events on which it is based, oldest first. */
  evidence?: EventId[];
  /** When it began. */
  first_at: Timestamp;
  /** Identifies the finding; derived from `session_id`, `key` and `first_at`. */
  id: string;
  /** Identifies the cause. A session has at most one unresolved finding with a key. */
  key: string;
  /** The kind. */
  kind: FindingKind;
  /** When it was last seen. */
  last_at: Timestamp;
  /** Why it was resolved. */
  resolution?: string | null;
  /** When it was resolved. */
  resolved_at?: (Timestamp | null);
  /** The session it belongs to. */
  session_id: SessionId;
  /** How severe it is. */
  severity: Severity;
  /** Its state. */
  state: FindingState;
  /** The subject, if there is a single one: the tool and the command. */
  subject?: string | null;
  /** When it is expected to end by itself, such as the reset of a limit. */
  until?: (Timestamp | null);
  /** The finding in a few words: `cargo test failed 4 times`. */
  what: string;
  /** The reason for the finding, in one sentence. */
  why: string;
};

/** The kind of a finding. */
export type FindingKind = ("approval" | "risky_approval" | "approval_backlog" | "question" | "stuck" | "loop" | "repeated_failure" | "auth" | "rate_limit" | "quota" | "network" | "merge_conflict" | "context_full" | "crash" | "open_work" | "completion" | "long_job" | "provider" | "idle" | "shared_files" | "shared_quota" | "several_blocked" | "claim" | "boundary");

export const FINDING_KINDS: Record<FindingKind, { meaning: string; need: Need | null; title: string }> = {
  approval: { meaning: "a permission request is pending", need: "approval", title: "Approval" },
  approval_backlog: { meaning: "several permission requests are pending, or one for a long time", need: "approval", title: "Approval backlog" },
  auth: { meaning: "the agent is not signed in, or its key was rejected", need: "failure", title: "Sign-in" },
  boundary: { meaning: "the agent did something that you had forbidden", need: "stuck", title: "Boundary" },
  claim: { meaning: "the agent's last message does not agree with what its commands showed", need: "prompt", title: "Claim" },
  completion: { meaning: "a turn is done, and nothing is pending", need: "prompt", title: "Completion" },
  context_full: { meaning: "the context is nearly full", need: "stuck", title: "Context full" },
  crash: { meaning: "the agent's process died", need: "failure", title: "Crash" },
  idle: { meaning: "a session has been idle for a long time", need: null, title: "Idle" },
  long_job: { meaning: "a long-running command is done", need: null, title: "Long job" },
  loop: { meaning: "the agent repeats the same steps", need: "stuck", title: "Loop" },
  merge_conflict: { meaning: "a merge, rebase or pull stopped at conflicts", need: "failure", title: "Merge conflict" },
  network: { meaning: "the model's service cannot be reached", need: "failure", title: "Network" },
  open_work: { meaning: "the session ended with an open turn, a failed check or conflicts", need: "stuck", title: "Open work" },
  provider: { meaning: "the model's service fails", need: "failure", title: "Provider" },
  question: { meaning: "the agent asks you a question", need: "question", title: "Question" },
  quota: { meaning: "a quota is used up", need: "failure", title: "Quota" },
  rate_limit: { meaning: "a rate limit of the model's service was reached", need: "failure", title: "Rate limit" },
  repeated_failure: { meaning: "a command or test fails again and again", need: "stuck", title: "Repeated failure" },
  risky_approval: { meaning: "a pending permission request could do harm that cannot be undone", need: "approval", title: "Risky approval" },
  several_blocked: { meaning: "several sessions wait for you at the same time", need: null, title: "Several blocked" },
  shared_files: { meaning: "two sessions edit the same file at the same time", need: "stuck", title: "Shared files" },
  shared_quota: { meaning: "a quota stops several sessions of an agent", need: null, title: "Shared quota" },
  stuck: { meaning: "a turn makes no progress, or requests to the model keep failing", need: "stuck", title: "Stuck" },
};

/** A page of findings. */
export type FindingPage = {
  /** The position of the log the page reflects. */
  as_of: number;
  /** The findings. */
  findings: Finding[];
  /** Continues the list; `null` on the last page. */
  next_cursor: string | null;
};

/** The state of a finding. */
export type FindingState = ("open" | "acknowledged" | "resolved");

/** A note for continuing a session's work, as printed by `capture handoff`. */
export type HandoffNote = {
  /** The note in Markdown, without secrets; times are in UTC. */
  markdown: string;
};

/** Whether capture has read all of a session. */
export type Health = ("ok" | "behind" | "issues");

/** The session is alive; the event has no other meaning. */
export type Heartbeat = Record<string, unknown>;

/** A decision, as the answer to an agent that waits for it. */
export type HookAnswer = {
  /** Allowed or denied. */
  allow: boolean;
  /** The answers to questions, by question. */
  answers?: Record<string, string> | null;
  /** The message to the agent if the request is denied. */
  message?: string | null;
  /** The command to run instead of the requested one. */
  rewrite?: string | null;
};

/** A hook waits for the decision on its delivery. */
export type HookWait = {
  /** The BLAKE3 hash of the payload passed to the hook, hexadecimal. */
  digest: string;
  /** Whether it also waits for a person, not only for a rule. */
  people?: boolean;
  /** How long it waits, ms; at most an hour. */
  wait_ms: number;
  /** The delivery itself, if nothing else reports the request. */
  whole?: unknown;
};

/** The state of the index. */
export type IndexState = ("ready" | "building" | "paused");

/** The state and progress of the index. */
export type IndexStatus = {
  /** Its size on the disk, bytes. */
  bytes: number;
  /** The position of the log up to which texts are searchable. */
  indexed: number;
  /** Its state. */
  state: IndexState;
  /** Number of searchable texts. */
  texts: number;
  /** The last committed position of the log. */
  total: number;
  /** Why nothing can be added at the moment. */
  trouble?: string | null;
};

/** Input for a run: exactly one of `text`, `keys` and `interrupt`. */
export type Input = {
  /** Types the text at once, whatever the screen shows; it may answer a dialog. */
  force?: boolean;
  /** Interrupts the program. */
  interrupt?: boolean;
  /** Keys by name, pressed one after another, whatever the screen shows: `enter`, `esc`, `ctrl-c`, `up`, `y`. */
  keys?: string[] | null;
  /** Presses Enter after the text, if the screen still shows the same prompt. */
  submit?: boolean;
  /**
   * Text to type once the run is at a prompt, never into a dialog or menu. A newline at its end presses Enter; text
   * with a newline inside is sent as a paste.
   */
  text?: string | null;
  /**
   * How long the text waits for the prompt, ms (default 30000, at most 3600000). After that, the answer is 408 and
   * nothing is typed.
   */
  timeout_ms?: number | null;
};

/** Input that was typed. */
export type InputSent = {
  /** Whether it was typed without checking the screen. */
  forced?: boolean;
  /** The position of the log before it was typed, to pass as `after` to `GET /api/v1/sessions/{id}/wait`. */
  position: number;
  /** The run. */
  run: RunId;
  /** Always true. */
  sent: boolean;
};

/** A text of a conversation. */
export type ItemText = {
  /** The text, or the beginning and the end of a long text. */
  text: string;
  /** The reference to the whole text, if `text` is not all of it. */
  text_ref?: (TextRef | null);
};

/** The kind of an event. */
export type Kind = ("session.started" | "session.exited" | "turn.started" | "turn.completed" | "user.prompt" | "assistant.delta" | "assistant.message" | "tool.call" | "tool.result" | "approval.requested" | "approval.resolved" | "status.changed" | "error" | "heartbeat" | "question.asked" | "question.answered" | "usage.reported" | "context.compacted" | "session.forked" | "annotation" | "signal" | "unrecognized" | "finding" | "notification" | "prompt.queued");

/** Labels to set on a session or to remove. */
export type Labels = {
  /** Values by key; `null` removes a label. At most 32, each key and value at most 100 characters. */
  labels: Record<string, string | null>;
};

/** The states of a session over time. */
export type Lane = {
  /** Permission requests and beginnings of findings, by time. */
  marks: LaneMark[];
  /** Its agent. */
  provider: Provider;
  /** Its states, one after another. */
  segments: LaneSegment[];
  /** The session. */
  session_id: SessionId;
  /** Its title. */
  title: string | null;
};

/** A permission request, or the beginning of a finding. */
export type LaneMark = {
  /** The permission request. */
  approval?: string | null;
  /** The time. */
  at: Timestamp;
  /** The finding. */
  finding?: string | null;
  /** Its kind. */
  kind: LaneMarkKind;
};

/** The kind of a mark. */
export type LaneMarkKind = ("approval" | "finding");

/** A period in one state. */
export type LaneSegment = {
  /** The confidence in the state. */
  confidence: Confidence;
  /** Start of the period. */
  from: Timestamp;
  /** The state. */
  state: State;
  /** End of the period. */
  until: Timestamp;
};

/** The first of the edits with which a session left its subject. */
export type Left = {
  /** The event of the edit. */
  event: EventId;
  /** The file. */
  file: string;
  /** Its sequence in the session. */
  sequence: number;
  /** The number of the turn in the session; 0 if unknown. */
  turn: number;
};

/** A device in the list of paired devices. */
export type ListedDevice = {
  /** Whether it is the device that sent the request. */
  current: boolean;
  /** Its id. */
  id: string;
  /** When it was last used, to the minute. */
  last_used_at: Timestamp;
  /** Its name. */
  name: string;
  /** When it was paired. */
  paired_at: Timestamp;
  /** What it may do. */
  scope: DeviceScope;
  /** Whether it connects through a tunnel or a proxy of the server's own user. */
  tunnel?: boolean;
};

/** The user's marks on a session for their lists. They affect neither its status nor any rule. */
export type Marks = {
  /** Whether it is archived. */
  archived: boolean;
  /** Whether it is listed before others. */
  pinned: boolean;
  /** Time until which it is hidden, unless it needs the user. */
  snoozed_until: (Timestamp | null);
};

/** Changes of the marks of a session; absent fields are left unchanged. */
export type MarksRequest = {
  /** Whether it is archived. */
  archived?: boolean | null;
  /** Whether it is listed before others. */
  pinned?: boolean | null;
  /** Time until which it is hidden, unless it needs the user; `null` shows it again. */
  snoozed_until?: (Timestamp | null);
};

/** A message of the Model Context Protocol. */
export type McpMessage = {
  /** Always `2.0`. */
  jsonrpc: string;
};

/** The signed-in device. */
export type Me = {
  /** The device. */
  device: Device;
  /** Time until which the device may use routes that need a second code; `null` if it is not elevated. */
  elevated_until: (Timestamp | null);
  /** When the server started. */
  started_at: Timestamp;
  /** The version of the server. */
  version: string;
};

/** A prompt or an answer. */
export type Message = {
  /** When it was written. */
  at: Timestamp;
  /** Its event. */
  id: EventId;
  /** `user` or `assistant`. */
  role: string;
  /** The sequence of its event. */
  sequence: number;
  /**
   * Its whole text, or only the beginning if it is too large to be stored or the answer already contains 16 MiB of
   * long texts.
   */
  text: string;
};

/** The last prompts and answers of a session. */
export type Messages = {
  /** The messages, oldest first. */
  messages: Message[];
  /** The session. */
  sessionId: SessionId;
};

/** What a session needs from a person, in the order of urgency. */
export type Need = ("approval" | "question" | "failure" | "stuck" | "prompt");

/** A note on a session, written by a person or by one of the user's rules. */
export type Note = {
  /** When it was written. */
  at: Timestamp;
  /** The sequence of its event. */
  sequence: number;
  /** Its text. */
  text: string;
};

/** A note to write. */
export type NoteRequest = {
  /** Its text, 1 to 2,000 characters. */
  text: string;
};

/** The notes among a session's last 5,000 annotations, oldest first. */
export type Notes = {
  /** The notes. */
  notes: Note[];
};

/** The outcome of a notification. */
export type Notification = {
  /** Number of attempts. */
  attempts: number;
  /** The channel, as the configuration names it. */
  channel: string;
  /** Why it was not sent. */
  error?: string | null;
  /** The findings of this session it is about. */
  findings: string[];
  /** Identifies the message; a combined message is about several findings. */
  message_id: string;
  /** Its outcome. */
  outcome: SendOutcome;
};

/** The open turn of a session. */
export type OpenTurn = {
  /** Its id. */
  id: TurnId;
  /** The prompt, shortened. */
  prompt: string | null;
  /** When. */
  started_at: Timestamp;
};

/** The bytes, or the delivery, from which an event was made. */
export type Origin = ({
  file: {
    /** The generation of the file at this path, from 1. */
    generation: number;
    /** Length of the record without its newline, bytes. */
    length: number;
    /** Start of the record, bytes. */
    offset: number;
    /** Absolute path. */
    path: string;
  };
} | {
  delivery: {
    /** The id minted by the sender. */
    id: string;
  };
} | "derived");

/** The outcomes of commands. */
export type OutcomeKind = ("landed" | "queued" | "done");

/** The activity of all sessions in a period. */
export type Overview = {
  /** How long permission requests waited. */
  approval_waits: ApprovalWaits;
  /** The position of the log it reflects. */
  as_of: number;
  /** How the time of the sessions in `lanes` was spent, by day. */
  days: DaySplit[];
  /** How often each kind of finding began, by day. */
  findings: DayFindings[];
  /** The sessions, each with its states over time. */
  lanes: Lane[];
  /** Sessions that were left out because of `limit`. */
  more_lanes: number;
  /** Start of the period. */
  since: Timestamp;
  /** End of the period. */
  until: Timestamp;
};

/** Pairs a browser. */
export type PairRequest = {
  /** The code. */
  code: string;
  /** The name of the device, at most 80 characters. */
  name: string;
};

/** The paired device. The answer also sets its cookie. */
export type Paired = {
  /** The device. */
  device: Device;
};

/** A single-use code that pairs or elevates a device. */
export type PairingCode = {
  /** The code, as it is typed. */
  code: string;
  /** When it expires. */
  expires_at: Timestamp;
  /** What it is for. */
  scope: CodeScope;
  /** The address of the page that accepts the code. The code is in the fragment, which browsers do not send. */
  url: string;
};

/** Asks for a pairing code. */
export type PairingRequest = {
  /** The device to elevate; only with the scope `admin`. */
  device_id?: string | null;
  /**
   * Whether only a process of the server's own user on this machine can use the code. Set for a browser that a
   * command opens, because other users of the machine can read its arguments.
   */
  local?: boolean;
  /** What the code is for. */
  scope: CodeScope;
  /**
   * Whether the device connects through an SSH tunnel or a proxy of the server's own user, so that the process at
   * the other end of its connections cannot be identified.
   */
  tunnel?: boolean;
};

/** A decision of the policy. */
export type PolicyDecision = ("allow" | "deny" | "ask");

/** The decision of the user's policy about an approval. */
export type PolicyView = {
  /** Its decision. */
  decision: PolicyDecision;
  /** The reason. */
  reason: string;
  /** The rule that decided. */
  rule: string;
};

/** A queued prompt. */
export type Prompt = {
  /** Who queued it. */
  by: QueuedBy;
  /** When it was delivered or cancelled. */
  ended_at?: (Timestamp | null);
  /** Its id. */
  id: string;
  /** When it was queued. */
  queued_at: Timestamp;
  /**
   * Whether secrets were removed from its text before it was stored, so that the stored text is not the text to
   * type.
   */
  redacted?: boolean;
  /** The session it belongs to. */
  session_id: SessionId;
  /** Its state. */
  state: QueuedState;
  /** The prompt. */
  text: string;
  /** The reason for its state, if it is not obvious. */
  why?: string | null;
};

/** The origin of a prompt. */
export type PromptOrigin = ("human" | "steering" | "wakeup" | "agent" | "command" | "monitor");

/** A page of queued prompts. */
export type PromptPage = {
  /** The position of the log the page reflects. */
  as_of: number;
  /** Continues the list; `null` on the last page. */
  next_cursor: string | null;
  /** The prompts. */
  prompts: Prompt[];
};

/** A prompt to queue. */
export type PromptRequest = {
  /** The prompt: 1 to 65,536 bytes, without control characters other than newlines and tabs. */
  text: string;
};

/** The agent a session belongs to. */
export type Provider = ("unknown" | "claude" | "codex" | "gemini" | "pi" | "capture" | "qwen" | "opencode" | "aider" | "crush" | "goose" | "amp");

/** Which sessions to remove to save space. Running sessions are never removed. */
export type PruneRequest = {
  /** Confirms that a person checked the clock and it is right, although it jumped. */
  clock_is_right?: boolean;
  /** Only report what would be removed. */
  dry_run?: boolean;
  /** Remove the oldest sessions until the database has at most this size, bytes. */
  larger_than_bytes?: number | null;
  /** Remove sessions whose last event is older than this, seconds. */
  older_than_s?: number | null;
  /** Only sessions that began in this directory or below it. Without another condition, all of them are removed. */
  project?: string | null;
};

/** Ends the subscription of the device that sends the request. */
export type PushEnd = {
  /** The endpoint of the subscription; the device's subscription ends whatever this value is. */
  endpoint?: string | null;
};

/** The key that a browser subscribes with. */
export type PushKey = {
  /** The public key of this server: 65 bytes, in URL-safe base64. */
  public_key: string;
};

/** The keys of a browser. */
export type PushKeys = {
  /** The secret it shares with this server. */
  auth: string;
  /** Its public key. */
  p256dh: string;
};

/** The state of the device's subscription. */
export type PushState = {
  /** Whether the device is subscribed. */
  subscribed: boolean;
};

/** A subscription, in the format of a browser's `PushSubscription`. */
export type PushSubscription = {
  /** The address at which the browser's push service accepts messages for it. */
  endpoint: string;
  /** The browser's keys. */
  keys: PushKeys;
};

/** How well work went. */
export type Quality = {
  /** Duration of the turns without the time they waited for approvals, ms. */
  active_ms: number;
  /** Turns that the agent finished. */
  completed_turns: number;
  /** Tool calls that failed. */
  failed_calls: number;
  /** Number of failures, by kind. */
  failures: Record<string, number>;
  /** Sum of the gaps between two turns that are longer than 30 minutes, ms. */
  idle_ms: number;
  /**
   * How often a test failed, files were edited, and the same test ran again; `null` if capture did not count this
   * yet when the turns ran.
   */
  test_fix_loops: number | null;
  /** Tool calls. */
  tool_calls: number;
  /** Turns that have ended. */
  turns: number;
  /** How long the agent waited for the user, ms: for approvals, and in gaps of at most 30 minutes between two turns. */
  waiting_ms: number;
};

/** How well sessions went. A sub-agent counts only through the figures in its parent's turns. */
export type QualityReport = {
  /** How long requests waited for people: all tools together, then each tool, the most frequent first. */
  approvals: ApprovalLatency[];
  /** Sessions that were left out because of `limit`. */
  more_sessions: number;
  /** The sessions. */
  sessions: SessionQuality[];
  /** Start of the period; `null` when it has none. */
  since: (Timestamp | null);
  /** All sessions together. */
  total: Quality;
  /** End of the period; `null` when it has none. */
  until: (Timestamp | null);
};

/** The user answered, or dismissed the question. */
export type QuestionAnswered = {
  /** The provider's id of the call that asked. */
  call_id?: string | null;
};

/** The agent asked the user a question. The question is the event's text. */
export type QuestionAsked = {
  /** The provider's id of the call that asks. */
  call_id?: string | null;
  /** The answers offered. */
  options?: string[];
};

/** Who queued a prompt. */
export type QueuedBy = ("person" | "monitor");

/** A change of a queued prompt. The prompt is the event's text. */
export type QueuedPrompt = {
  /** Who queued it. */
  by: QueuedBy;
  /** Its id. */
  prompt_id: string;
  /** Its state. */
  state: QueuedState;
  /** The reason for its state, if it is not obvious. */
  why?: string | null;
};

/** The state of a queued prompt. */
export type QueuedState = ("queued" | "delivering" | "delivered" | "unclear" | "cancelled");

/** How much of a quota is used, as reported by the provider. */
export type QuotaReported = {
  /** Its name: `primary`, `secondary`. */
  name: string;
  /** When its window ends. */
  resets_at?: (Timestamp | null);
  /** The part that is used, thousandths. */
  used_permille: number;
  /** Length of its window, minutes. */
  window_minutes?: number | null;
};

/** A quota and how far it is used. */
export type QuotaView = {
  /** Time of the last report. */
  at: Timestamp;
  /** The provider's name for the quota. */
  name: string;
  /** The agent that reported it. */
  provider: Provider;
  /** When its window ends. */
  resets_at: (Timestamp | null);
  /** Percentage used at the last report. */
  used_percent: number;
  /**
   * Time at which the quota will be used up if usage continues at the average rate of its window so far; `null` if
   * that is after the end of the window, or cannot be estimated.
   */
  used_up_at: (Timestamp | null);
  /** Length of its window, minutes. */
  window_minutes: number | null;
};

/** Progress of reading the history. Both numbers grow until all files are found. */
export type ReadingProgress = {
  /** Bytes that have been read. */
  done_bytes: number;
  /** Bytes that were found. */
  total_bytes: number;
};

/** Why a session is in its state. Each reason belongs to the state named at the start of its description. */
export type Reason = ("thinking" | "streaming" | "tool" | "retrying" | "compacting" | "subagents" | "new_session" | "turn_complete" | "question" | "interrupted" | "denied" | "error" | "auth" | "quota" | "background" | "edit" | "plan" | "mcp" | "fetch" | "trust" | "quiet" | "clean" | "failed" | "killed" | "no_evidence" | "lost");

export const REASONS: Record<Reason, { need: Need | null; title: string }> = {
  auth: { need: "failure", title: "not signed in" },
  background: { need: null, title: "background command runs" },
  clean: { need: null, title: "ended normally" },
  compacting: { need: null, title: "compacting the context" },
  denied: { need: "prompt", title: "permission denied" },
  edit: { need: null, title: "edit" },
  error: { need: "failure", title: "error" },
  failed: { need: null, title: "ended with an error" },
  fetch: { need: null, title: "fetch" },
  interrupted: { need: "prompt", title: "interrupted" },
  killed: { need: null, title: "killed" },
  lost: { need: null, title: "evidence lost" },
  mcp: { need: null, title: "MCP tool" },
  new_session: { need: null, title: "no prompt yet" },
  no_evidence: { need: null, title: "no evidence" },
  plan: { need: null, title: "plan" },
  question: { need: "question", title: "question" },
  quiet: { need: null, title: "quiet" },
  quota: { need: "failure", title: "quota used up" },
  retrying: { need: null, title: "retrying" },
  streaming: { need: null, title: "answering" },
  subagents: { need: null, title: "sub-agents work" },
  thinking: { need: null, title: "thinking" },
  tool: { need: null, title: "command" },
  trust: { need: null, title: "trust" },
  turn_complete: { need: "prompt", title: "turn complete" },
};

/** What the checks of a turn showed. The changed files and the denied calls are in the turn's `work`. */
export type Receipt = {
  /** Number of commands that the agent left running in the background. */
  background?: number;
  /** The last run of each class, in the order of these runs. */
  checks?: Check[];
  /** The statements of the agent's last message, compared with the checks; at most 4. */
  claims?: ClaimCheck[];
  /** Number of edits that were carried out. */
  edits?: number;
  /** The files whose last edit failed, each once; at most 3. */
  failed_edits?: string[];
  /**
   * Whether a program ran that may have run checks without showing their results: a script, a tool of an MCP server,
   * a sub-agent.
   */
  opaque?: boolean;
  /** Whether a program ran that may have committed, pushed, merged or deployed in a way that capture does not know. */
  publishes?: boolean;
  /** Number of items of the agent's to-do list that are not done; absent without a list. */
  todo_left?: number | null;
  /** Whether a program ran that capture does not know: it may have run any check. */
  unlisted?: boolean;
};

/** The outcome of a message. */
export type Receipt2 = {
  /** When the outcome was known. */
  at: Timestamp;
  /** How many attempts were made. */
  attempts?: number | null;
  /** The findings and approvals it was about. */
  causes: string[];
  /** The channel. */
  channel: string;
  /** Why the last attempt failed. */
  error?: string | null;
  /** The message. */
  message_id: string;
  /** `sent`, `failed` or `dropped`. */
  outcome: string;
  /** Why no attempt was made. */
  why?: string | null;
};

/** A page of turns of all sessions, grouped by session and in order within each session. */
export type RecentTurnPage = {
  /** The position of the log the page reflects. */
  as_of: number;
  /** Continues the list; `null` on the last page. */
  next_cursor: string | null;
  /** The turns. */
  turns: SessionTurn[];
};

/** The screen at a time of a recording, or the rows that changed since the frame before. */
export type RecordedFrame = {
  /** Whether the alternate screen is shown, which has no scrolled-off lines. */
  alternate: boolean;
  /** The time, ms from the beginning. */
  at_ms: number;
  /** Columns. */
  cols: number;
  /** The cursor. */
  cursor: TerminalCursor;
  /** The rows that changed, by their number from 0; trailing blanks are left out. */
  lines: Record<string, Span[]>;
  /** Grows with every change. */
  rev: number;
  /** Rows. */
  rows: number;
  /** Number of lines that scrolled off the screen so far. */
  scrolled: number;
  /** Bytes that were not read since the screen was last redrawn: it may be wrong. */
  skipped_bytes: number;
  /** The title. */
  title: string | null;
};

/** Frames of a recording, in order, at most 30 a second. The first one is the whole screen at the requested time. */
export type RecordedFrames = {
  /** The frames. */
  frames: RecordedFrame[];
  /** Start of the next frames, ms from the beginning; `null` at the end. */
  next_ms: number | null;
};

/** The recording of a run's terminal. */
export type RecordingInfo = {
  /** Length of the part dropped from its beginning to make room, ms; 0 if this is no longer known. */
  dropped_ms: number;
  /** Playable length, ms; grows while the run is being recorded. */
  duration_ms: number;
  /** Whether the recording is complete. */
  ended: boolean;
  /** When its first output was written. */
  started_at: Timestamp;
};

/** A region of the screen. */
export type RegionText = {
  /** Its name. */
  name: string;
  /** Its text; absent when it is not on the screen. */
  text: string | null;
};

/** The data that was removed, or would be. */
export type RemovalReport = {
  /** Backups outside the data directory, which still contain the sessions and are not changed. */
  backups_elsewhere: string[];
  /** Their approximate size in the database, bytes. */
  bytes: number;
  /** Whether this is a dry run, which removes nothing. */
  dry_run: boolean;
  /** Number of their events. */
  events: number;
  /** Files of the data directory that are removed whole: recordings, backups, damaged databases. */
  files: string[];
  /** The sessions, with their sub-agents. */
  sessions: RemovedSession[];
};

/** A session that is removed. */
export type RemovedSession = {
  /** Its approximate size in the database, bytes. */
  bytes: number;
  /** Number of its events. */
  events: number;
  /** Its id. */
  id: SessionId;
  /** Whether it seems to be running. */
  is_running: boolean;
  /** Its last event. */
  last_event_at: Timestamp;
  /** The session it is a sub-agent of. */
  parent_session_id: (SessionId | null);
  /** The agent. */
  provider: Provider;
  /** Its title. */
  title: string | null;
  /** Whether its events and texts were removed before, to save space. */
  was_pruned: boolean;
};

/** What is still to be erased, and the size of the database. */
export type RetentionStatus = {
  /**
   * Why capture does not trust the clock of this machine and removes no session by age; `null` if it trusts the
   * clock.
   */
  clock: string | null;
  /** The size of the database, bytes. */
  database_bytes: number;
  /** Number of removed sessions of which the files still contain data. */
  erasing: number;
  /** Why this data cannot be erased at the moment; the server tries again. */
  trouble: string | null;
  /** The part of it that is in use, bytes. */
  used_bytes: number;
};

/** The rule that decided between the claims. */
export type Rule = ("process_gone" | "silence" | "alone" | "unanimous" | "strongest" | "closest" | "latest" | "first");

/** One expression of a rule. */
export type RuleCheck = {
  /** The text it matched. */
  found: string | null;
  /** How it counts. */
  need: RuleNeed;
  /** Whether this is what the rule requires. */
  ok: boolean;
  /** The expression. */
  pattern: string;
  /** The region in which it was searched for. */
  region: string;
};

/** A file of rules. */
export type RuleFile = {
  /** Its name. */
  name: string;
  /** The versions it is for. */
  versions: string;
};

/** Whether a rule matches. */
export type RuleMatch = ({
  outcome: "chosen";
} | {
  outcome: "below";
} | {
  /** How long it must still match, ms. */
  ms: number;
  outcome: "debouncing";
} | {
  outcome: "held";
} | {
  outcome: "no_match";
});

/** How an expression counts. */
export type RuleNeed = ("all" | "any" | "none");

/** The result of a rule for the screen. */
export type RuleOutcome = {
  /** The expressions that decided: the first that failed, or all that matched. */
  checks: RuleCheck[];
  /** Its name. */
  name: string;
  /** Whether it matches. */
  outcome: RuleMatch;
  /** Its priority. */
  priority: number;
  /** The reason it would claim. */
  reason: (Reason | null);
  /** The state it would claim. */
  state: State;
  /** The confidence of its claim. */
  strength: Confidence;
};

/** A run. */
export type Run = {
  /** Whether this host supports [`HostRequest::Answer`]; older hosts do not even refuse it. */
  answers: boolean;
  /** The command, word by word. */
  command: string[];
  /** Working directory at the start. */
  cwd: string;
  /** Whether this host supports [`HostRequest::Grid`] and the related requests. */
  draws: boolean;
  /** When it ended. */
  ended_at: (Timestamp | null);
  /** Its exit code. */
  exit_code: number | null;
  /** The signal that ended it. */
  exit_signal: number | null;
  /** Frames that its terminal host dropped while no server accepted them. */
  frames_lost: number;
  /** Process id of the host. */
  host_pid: number;
  /** Its id. */
  id: RunId;
  /** The name its user gave it. */
  name: string | null;
  /** Process id of the program. */
  pid: number;
  /** The agent, if capture knows it. */
  provider: Provider;
  /** The file its output is recorded in. */
  recording: string | null;
  /** The run. */
  run: RunId;
  /** What its screen shows. */
  screen_state: (State | null);
  /**
   * The agent's own id of the session, from a host that runs the session itself. This is our own agent, which
   * reports its work and has no screen.
   */
  session?: string | null;
  /** The session it hosts now. */
  session_id: (SessionId | null);
  /** Rows and columns of its screen. */
  size: [number, number] | null;
  /** The socket for attaching to it. */
  socket: string | null;
  /** Its start in clock ticks since boot. */
  start_ticks: number;
  /** When it started. */
  started_at: Timestamp;
  /** Its state. */
  state: RunState;
  /**
   * The commands ([`SessionCommand::name`]) that this host accepts for its session; none from a host with a
   * terminal, which accepts typed input.
   */
  takes?: string[];
  /** Whether it runs in a terminal of capture. Otherwise its output goes where it would go without capture. */
  terminal: boolean;
  /** Its version, as shown on its screen. */
  version: string | null;
};

export type RunId = string;

/** The runs: first the active ones, newest first, then those that ended recently. */
export type RunPage = {
  /** The position of the log the page reflects. */
  as_of: number;
  /** Continues the list; always `null`: all runs are on one page. */
  next_cursor: string | null;
  /** The runs. */
  runs: Run[];
};

/** The state of a run. */
export type RunState = ("running" | "exited" | "unreachable");

/** A changed file. */
export type ScopedFile = {
  /** Its distance at its closest edit; absent if the person named nothing. */
  distance?: (Distance | null);
  /** Number of edits. */
  edits: number;
  /** The event of the first edit. */
  event: EventId;
  /** The file, as the agent names it. */
  file: string;
};

/** The current screen. */
export type Screen = {
  /** The state that the program itself reports (OSC 7501), without its texts: `state=working:app=codex`. */
  agent_state: string | null;
  /** Whether the alternate screen is shown. */
  alternate: boolean;
  /** When the last bytes arrived. */
  at: Timestamp;
  /** The current claim. */
  claim: (ScreenClaim | null);
  /** Row and column of the cursor, from 0; absent while it is hidden. */
  cursor: [number, number] | null;
  /** The rows as text, from the top, without blanks at their ends. */
  lines: string[];
  /** Rows and columns. */
  size: TerminalSize;
  /** Bytes that were not parsed since the screen was last redrawn: it may be wrong. */
  skipped_bytes: number;
  /** The title (OSC 0, 2). */
  title: string | null;
};

/** A claim read from a screen, or made by our own agent. */
export type ScreenClaim = {
  /** The dialog, if there is one. */
  dialog: (Dialog | null);
  /** Why. */
  reason: (Reason | null);
  /** The state. */
  state: State;
  /** The confidence in the claim. */
  strength: Confidence;
  /**
   * The rule, what it matched and in which region, for people:
   * `claude/permission: "Do you want to proceed?" in bottom`.
   */
  words: string;
};

/** Why the screen is read the way it is. */
export type ScreenExplanation = {
  /** The current claim. */
  claim: (ScreenClaim | null);
  /** The files that contain the rules. */
  files: RuleFile[];
  /** Whether that rule does not match at this moment, and its claim is kept because no other claim has replaced it. */
  kept: boolean;
  /** How often the parser failed and the screen was reset. */
  panics: number;
  /** The agent whose rules are used. */
  provider: Provider;
  /** Each region as it is now. */
  regions: RegionText[];
  /** The rule that makes the claim. */
  rule: string | null;
  /** Each rule, the most urgent first. */
  rules: RuleOutcome[];
  /** The agent's version, as shown on its screen. */
  version: string | null;
};

/** A text that matches. */
export type SearchHit = {
  /** The agent. */
  agent: Provider;
  /** When it was written. */
  at: Timestamp;
  /** The event it belongs to. */
  id: EventId;
  /** The kind of the text. */
  kind: TextKind;
  /** The position of that event in the log. */
  position: number;
  /** How well it matches; comparable within one search only. */
  score: number;
  /** Its sequence within the session. */
  sequence: number;
  /** The session. */
  session_id: SessionId;
  /** The part of the text that matches. */
  snippet: Snippet;
  /** The location of its record in a file of the agent. */
  source?: (SourceRange | null);
  /** Its title. */
  title?: string | null;
  /** The number of that turn within the session, from 1. */
  turn?: number | null;
  /** The turn it belongs to. */
  turn_id?: (TurnId | null);
};

/** A page of hits. */
export type SearchPage = {
  /** Whether more texts than `matches` may match, because matches of a phrase are counted only up to 1,000. */
  at_least: boolean;
  /** The hits. */
  hits: SearchHit[];
  /** The position of the log up to which texts are searchable. */
  indexed: number;
  /** Number of texts that match. */
  matches: number;
  /** Continues the list; `null` on the last page. */
  next_cursor: string | null;
  /** How long the search took, microseconds. */
  took_us: number;
  /** The last committed position of the log; larger than `indexed` while the index is built. */
  total: number;
};

/** The order of hits. */
export type SearchSort = ("relevance" | "time");

/** The outcome of a message. */
export type SendOutcome = ("sent" | "failed" | "dropped");

/** One session: a conversation of one agent. */
export type Session = {
  /** Time it waited for approvals that are closed, ms; the sum over the approvals. */
  approval_wait_ms: number;
  /** The directory in which it began, which is the workspace. No later `cd` or record changes it. */
  began_in?: string | null;
  /** Version of the agent. */
  cli_version?: string | null;
  /** Working directory. */
  cwd: string | null;
  /** Its failures so far, by kind: tool results and errors. */
  failures?: Record<string, number>;
  /** The session whose history this one continues. */
  forked_from?: string | null;
  /** Git branch. */
  git_branch: string | null;
  /**
   * Whether a program runs it, so that no person can type into it (`claude -p`, `codex exec`): it never waits for a
   * prompt.
   */
  headless?: boolean;
  /** Whether capture has read all of it. */
  health: Health;
  /** capture's id. */
  id: SessionId;
  /** The labels that the user set. */
  labels?: Record<string, string>;
  /** Last output of the model. */
  last_assistant_output_at: (Timestamp | null);
  /** The time of its last event. */
  last_event_at: Timestamp;
  /** Sequence of its last event. */
  last_sequence: number;
  /** Last prompt of a person. */
  last_user_prompt_at: (Timestamp | null);
  /** The user's marks, such as pinned or archived; absent if there are none. */
  marks?: (Marks | null);
  /** The session into which this one was merged. */
  merged_into?: (SessionId | null);
  /** Model. */
  model: string | null;
  /** The parent session, if this is a sub-agent. */
  parent_session_id: (SessionId | null);
  /** Ids of the approvals it waits for. */
  pending_approvals: string[];
  /** Permission mode, in the agent's words. */
  permission_mode?: string | null;
  /** Process id, while it is alive. */
  pid: number | null;
  /** The agent. */
  provider: Provider;
  /** The agent's own id of the session. */
  provider_session_id: string | null;
  /** The run that hosts it, if capture started its process. */
  run_id: string | null;
  /** When it was first observed. */
  started_at: Timestamp;
  /** Its status, and the evidence. */
  status: Status;
  /** A description in three lines. */
  summary: Summary;
  /**
   * The title: the name that the agent or the user gave it, otherwise the subject of the last prompt that is a
   * separate task.
   */
  title: string | null;
  /** Its files. */
  transcripts: TranscriptView[];
  /** The open turn. */
  turn: (OpenTurn | null);
  /** Turns so far, the open one included. */
  turns: number;
  /** Tokens so far. */
  usage: Usage;
};

/** The actions that `do` can request. */
export type SessionAction = ("prompt" | "steer" | "follow_up" | "abort" | "pause" | "resume" | "compact" | "set_model" | "limit" | "end");

/** The last finished turns of a session, each with what its checks showed and what the agent said about them. */
export type SessionCheck = {
  /** The position up to which events are included. */
  as_of: number;
  /** The turns, oldest first. */
  turns: CheckedTurn[];
};

/** The session's process reported its end, or capture concluded that it is gone (derived). */
export type SessionExited = {
  /** Exit code, when known. */
  code?: number | null;
  /** clean, failed or killed. */
  reason?: (Reason | null);
};

/**
 * The session repeats the history of another session up to a record and then continues differently; or it returned
 * to one of its own earlier records (rewind).
 */
export type SessionForked = {
  /** The provider's id of the last common record, if known. */
  at?: string | null;
  /** The provider's id of the session it comes from; its own for a rewind. */
  from: string;
  /**
   * For a rewind: the first turn that was taken back, which is the event of its prompt. The later turns are
   * taken back too.
   */
  taken_back?: (TurnId | null);
  /** For a rewind of an agent that counts turns: the number of turns that were taken back. */
  turns?: number | null;
};

export type SessionId = string;

/**
 * Input for a session: `do` with the fields of the action or, for a run with a terminal, exactly one of `text`, `keys`
 * and `interrupt`.
 */
export type SessionInputRequest = {
  /** The action. capture's own agent supports all actions, agents in `capture run` only `prompt` and `abort`. */
  do?: (SessionAction | null);
  /** Types the text at once, whatever the screen shows; it may answer a dialog. */
  force?: boolean;
  /** Interrupts the program. */
  interrupt?: boolean;
  /** Keys by name, pressed one after another: `enter`, `esc`, `ctrl-c`, `up`, `y`. */
  keys?: string[] | null;
  /** The limits of `limit`; they replace the earlier ones. */
  limits?: (SessionLimits | null);
  /** The model of `set_model`: `PROVIDER/MODEL`. */
  model?: string | null;
  /** Presses Enter after the text, if the screen still shows the same prompt. */
  submit?: boolean;
  /**
   * The text of `prompt`, `steer` and `follow_up`. Without `do`, the text is typed once the run is at a prompt: a
   * newline at its end presses Enter, and text with a newline inside is sent as a paste.
   */
  text?: string | null;
  /** How long the text waits for the prompt, ms (default 30000, at most 3600000). */
  timeout_ms?: number | null;
};

/** Input that was accepted. */
export type SessionInputTaken = {
  /** The entry of the session's file that contains the message. */
  entry?: string | null;
  /** The id of the message in the session's file. */
  message?: string | null;
  /** The kind of outcome. */
  outcome?: OutcomeKind;
  /** The position of the log before it was accepted, to pass as `after` to `GET /api/v1/sessions/{id}/wait`. */
  position: number;
  /** The run of the session. */
  run: RunId;
  /** Always true. */
  sent: boolean;
};

/** The limits of a session. An absent field means no limit. */
export type SessionLimits = {
  /** Tool calls that were started. */
  calls?: number | null;
  /** Costs, in US dollars. */
  cost_usd?: number | null;
  /** Time spent in turns, minutes. */
  minutes?: number | null;
  /** Input and output tokens. */
  tokens?: number | null;
};

/** A page of sessions. */
export type SessionPage = {
  /** The position of the log the page reflects. */
  as_of: number;
  /** Continues the list; `null` on the last page. */
  next_cursor: string | null;
  /** The sessions. */
  sessions: Session[];
};

/** How well a session went. */
export type SessionQuality = {
  /** Duration of the turns without the time they waited for approvals, ms. */
  active_ms: number;
  /** Turns that the agent finished. */
  completed_turns: number;
  /** Tool calls that failed. */
  failed_calls: number;
  /** Number of failures, by kind. */
  failures: Record<string, number>;
  /** Sum of the gaps between two turns that are longer than 30 minutes, ms. */
  idle_ms: number;
  /** The end of its last turn. */
  last_turn_at: Timestamp;
  /** The agent. */
  provider: Provider;
  /** The session. */
  session_id: SessionId;
  /**
   * How often a test failed, files were edited, and the same test ran again; `null` if capture did not count this
   * yet when the turns ran.
   */
  test_fix_loops: number | null;
  /** Its title. */
  title: string | null;
  /** Tool calls. */
  tool_calls: number;
  /** Turns that have ended. */
  turns: number;
  /** How long the agent waited for the user, ms: for approvals, and in gaps of at most 30 minutes between two turns. */
  waiting_ms: number;
};

/** A session to start. */
export type SessionRequest = {
  /** The agent: `capture` (default), or one that `capture agent drive` supports. */
  agent?: Provider;
  /** The session of capture's own agent to continue: its id. */
  continues?: string | null;
  /** The working directory; absolute. */
  cwd: string;
  /** The mode of capture's own agent, `plan` or `ask` (default). */
  mode?: (StartMode | null);
  /** The model of capture's own agent: `PROVIDER/MODEL` (default: the configured model). */
  model?: string | null;
  /** A name for the session's run; no other active run may have this name. */
  name?: string | null;
  /** The first prompt. Other agents than `capture` need one. */
  prompt?: string | null;
  /** The first skill; not available yet. */
  skill?: string | null;
  /** How long a permission request waits for a decision, seconds (default 600, at most 3,600). */
  wait_s?: number | null;
};

/** A session was first seen. Repeated if a later record contains more. */
export type SessionStarted = {
  /** The kind of sub-agent: `general-purpose`, `/root/helper`. */
  agent_type?: string | null;
  /** Version of the agent. */
  cli_version?: string | null;
  /** Working directory. */
  cwd?: string | null;
  /** Git branch. */
  git_branch?: string | null;
  /**
   * Whether a program runs it, so that no person can type into it (`claude -p`, `codex exec`); absent if
   * unknown.
   */
  headless?: boolean | null;
  /** How it began. */
  how?: StartKind;
  /** Model. */
  model?: string | null;
  /** The provider's id of the parent session, if this is a sub-agent. */
  parent_provider_session_id?: string | null;
  /** capture's id of the parent session; filled in when the event is committed. */
  parent_session_id?: (SessionId | null);
};

/** A session and its last events. */
export type SessionStream = {
  /** Its last events, at most 50, oldest first. */
  events: unknown[];
  /** The reason for the status. */
  reason: (Reason | null);
  /** The session. */
  sessionId: SessionId;
  /** `running`, `waiting`, `idle` or `exited`. */
  status: string;
  /** Whether the agent is at work. */
  working: boolean;
};

/** A short summary of a session. */
export type SessionSummary = {
  /** What it is doing, in one word. */
  activity: string | null;
  /**
   * What the checks of the last finished turn showed: `tests 297 passed, then 5 edits · commit failed ×7`. Absent while
   * a turn is open.
   */
  checks?: string | null;
  /** What it is doing, in one line. */
  current: string | null;
  /** The session. */
  id: SessionId;
  /** When its last event happened. */
  last_event_at: Timestamp;
  /** The last prompt, shortened. */
  last_prompt: string | null;
  /** Why it is in that state. */
  reason: (Reason | null);
  /** What it did last, in one line. */
  recent: string | null;
  /** Its state. */
  state: State;
  /** Its title. */
  title: string | null;
  /** Several lines for a tooltip. */
  tooltip: string;
};

/** A turn and its session. */
export type SessionTurn = {
  /** The session. */
  session_id: SessionId;
  /** The turn. */
  turn: Turn;
};

/** The tokens of a session. */
export type SessionUsage = {
  /** Input tokens read from a cache. */
  cache_read_tokens: number;
  /** The part of `cache_write_tokens` that stays in the cache for an hour instead of five minutes. */
  cache_write_hour_tokens?: number;
  /** Input tokens written to a cache. */
  cache_write_tokens: number;
  /** The session. */
  id: SessionId;
  /** Input tokens that no cache served. */
  input_tokens: number;
  /** Its model. */
  model: string | null;
  /** Output tokens. */
  output_tokens: number;
  /** Output tokens spent on thinking, if the agent reports them. */
  thinking_tokens?: number;
};

/** The severity of an event for a person. */
export type Severity = ("info" | "warning" | "error");

/**
 * One claim of one source. The adapter that read it sets its strength and duration, so that reducers do not depend on
 * the provider.
 */
export type Signal = ({
  claim: "state";
  /** The reason, if the source reports it. */
  reason?: (Reason | null);
  /** The state. */
  state: State;
} | {
  claim: "turn_ended";
  /** How it ended. */
  outcome: TurnOutcome;
  /** Number of sub-agents that are still working, according to the agent. */
  pending_subagents?: number;
} | {
  claim: "process_alive";
  /** Process id. */
  pid: number;
  /**
   * Start time in clock ticks since boot (`/proc/<pid>/stat`, field 22); distinguishes the process from a later
   * one with the same pid.
   */
  start_ticks: number;
} | {
  claim: "process_gone";
  /** Whether the agent ended cleanly (removed its registry file, wrote its end). */
  clean: boolean;
  /** Process id. */
  pid: number;
} | {
  claim: "withdrawn";
}) & ({
  /** The dialog on the agent's screen that the claim is read from. */
  dialog?: (Dialog | null);
  /**
   * The time from which the claim counts, if later than the event's own time. Something that is only likely at first
   * then counts as true, unless another event comes before.
   */
  holds_from?: (Timestamp | null);
  /**
   * Distinguishes claims of one source that hold at the same time, such as two requests made at once. A claim
   * replaces the earlier claim with the same key.
   */
  key?: string | null;
  /** How far the source can be trusted for this claim. */
  strength: Confidence;
  /** When the claim expires, if it does. */
  valid_until?: (Timestamp | null);
  /** The source's own words, for `explain`: `waiting: permission prompt`. */
  words?: string | null;
});

/** A device whose cookie is no longer valid. */
export type SignedOut = {
  /** Its id. */
  id: string;
};

/** A part of a text, without secrets, on one line. */
export type Snippet = {
  /** The matches: ranges of `text`, bytes, in order and without overlaps. */
  highlights: number[][];
  /** The text; `…` marks omissions. */
  text: string;
};

/** The source of an event or a claim. */
export type Source = ("transcript" | "registry" | "hook" | "telemetry" | "pty" | "input" | "process" | "protocol" | "runtime");

/** One source and how it is doing. */
export type SourceHealth = {
  /** Whether it is being read. */
  active: boolean;
  /** Records that were merged into the event of another record, such as the blocks of a message. */
  coalesced: number;
  /** Details, in one line. */
  detail: string | null;
  /** Events that the source lost. */
  dropped: number;
  /** Failures so far. */
  errors: number;
  /** Files it follows. */
  files: number;
  /**
   * How long the source has lagged behind its newest bytes or deliveries, ms; absent for sources that are not read
   * in order.
   */
  lag_ms?: number | null;
  /** When its last event happened. */
  last_event_at: (Timestamp | null);
  /** Its name: `claude transcripts`, `hooks`. */
  name: string;
  /** Progress of reading the history; absent once all of it has been read, and for sources without history. */
  reading?: (ReadingProgress | null);
  /** What needs attention, in one line; absent while all is well. */
  trouble?: string | null;
};

/** The bytes of a record in a file. */
export type SourceRange = {
  /** Its length, bytes. */
  length: number;
  /** Where the record begins, bytes. */
  offset: number;
  /** The file, absolute. */
  path: string;
};

/** All sources. */
export type Sources = {
  /** The sources. */
  sources: SourceHealth[];
};

/**
 * Text in one style: the text, its colours, and its attributes as a sum of [`SpanFlags`]. On the wire an array of four:
 * `[text, foreground, background, attributes]`.
 */
export type Span = [string, (TerminalColor | null), (TerminalColor | null), number];

/** The outcome of a claim. */
export type Standing = ("decides" | "agrees" | "weaker" | "overruled" | "not_yet" | "over");

/** How a session began. */
export type StartKind = ("unknown" | "new" | "resume" | "fork" | "subagent");

/** The modes in which the API can start a session. */
export type StartMode = ("plan" | "ask");

/** A session that was started. */
export type StartedSession = {
  /** The agent. */
  agent: Provider;
  /** The working directory. */
  cwd: string;
  /** The process, which outlives the server and its clients. */
  pid: number;
  /** The run of its process. */
  run_id: RunId;
  /**
   * Its id. If the agent has not reported its own session id yet, this session is later merged into the agent's
   * session, and this id redirects to that session.
   */
  session_id: SessionId;
};

/** The status of a session. */
export type State = ("running" | "waiting" | "waiting_approval" | "idle" | "exited" | "unknown");

/** A state of findings, or all of them. */
export type StateFilter = ("open" | "acknowledged" | "resolved" | "all");

/** The status of a session. */
export type Status = {
  /** The current activity, in one line: the command, the tool, the question. */
  activity: string | null;
  /** The confidence in the state. */
  confidence: Confidence;
  /** Claims with another state, which were overruled. */
  disagreements: Evidence[];
  /** The claims that decided. */
  evidence: Evidence[];
  /** The reason. */
  reason: (Reason | null);
  /** When it began, by the clock of the evidence. */
  since: Timestamp;
  /** The state. */
  state: State;
};

/** A session's status at a time, and the claims from which it was derived. */
export type StatusAt = {
  /** Every claim in force at that time, and the rule that decided. */
  account: Account;
  /** The requested time; `null` for the present. */
  at: (Timestamp | null);
  /** The session. */
  session_id: SessionId;
  /** The status then. */
  status: Status;
};

/** One change of a session's status. */
export type StatusChange = {
  /** The time of the change, by the clock of the evidence. */
  at: Timestamp;
  /** The confidence in the new state. */
  confidence: Confidence;
  /** The claims that decided, as their sources worded them. */
  evidence: string[];
  /** The state before; `null` for the first. */
  from: (State | null);
  /** When capture observed the change. */
  observed_at: Timestamp;
  /** The reason for the new state. */
  reason: (Reason | null);
  /** The sequence of the event that records the change. */
  sequence: number;
  /** The source of the claim that decided. */
  source?: (Source | null);
  /** The state after the change. */
  to: State;
};

/** A page of status changes of a session, oldest first. */
export type StatusChangePage = {
  /** The position of the log the page reflects. */
  as_of: number;
  /** The changes. */
  changes: StatusChange[];
  /** Continues the list; `null` on the last page. */
  next_cursor: string | null;
};

/** The status changed (derived). */
export type StatusChanged = {
  /** The activity, in one line. */
  activity?: string | null;
  /** The claims that decided, in their sources' words: `registry: waiting: permission prompt`. */
  evidence?: string[];
  /** The state before; absent for the first. */
  from?: (State | null);
  /** Why. */
  reason?: (Reason | null);
  /** The state now. */
  to: State;
};

/** Elevates a device. */
export type StepUpRequest = {
  /** A code with the scope `admin` that was created for this device. */
  code: string;
};

/** The end of the elevation of a device. */
export type SteppedUp = {
  /** Time until which the device may use routes that need a second code. */
  elevated_until: Timestamp;
};

/** Why the model stopped. */
export type Stop = ("end_turn" | "tool_use" | "max_tokens" | "aborted" | "refusal" | "other");

/** The status of a session, in the words of older clients. */
export type StreamStatus = {
  /** The reason for the status. */
  reason: (Reason | null);
  /** The session. */
  sessionId: SessionId;
  /** `running`, `waiting`, `idle` or `exited`. */
  status: string;
  /** Whether the agent is at work. */
  working: boolean;
};

/** The status of all sessions. */
export type StreamStatuses = {
  /** The active sessions. */
  sessions: StreamStatus[];
};

/** A sub-agent in the conversation that started it. Only a summary; read its conversation by the id of its session. */
export type Subagent = {
  /** The kind of sub-agent, as the agent names it: `general-purpose`, `/root/helper`. */
  agent_type?: string | null;
  /** Its last event. */
  last_event_at: Timestamp;
  /** Its session. */
  session_id: SessionId;
  /** When it began. */
  started_at: Timestamp;
  /** Its state. */
  state: State;
  /** Its title. */
  title?: string | null;
  /** Its turns so far. */
  turns: number;
};

/** A description of a session, made without a model. */
export type Summary = {
  /**
   * What the checks of the last finished turn showed, while no turn is open: `tests 297 passed, then 5 edits · commit
   * failed ×7`.
   */
  checks?: string | null;
  /** What it is doing now. */
  current: string | null;
  /** The last prompt. */
  last_prompt: string | null;
  /** Its recent work, newest turn first: changed files, commands, tests, approvals, errors. */
  recent: string | null;
};

/** A number of the palette of 256 colours, or `#rrggbb`. */
export type TerminalColor = (number | string);

/** The cursor. */
export type TerminalCursor = {
  /** Its column, from 0. */
  col: number;
  /** Its row, from 0. */
  row: number;
  /** Whether it is shown. */
  visible: boolean;
};

/** Rows and columns of a terminal. */
export type TerminalSize = {
  /** Columns. */
  columns: number;
  /** Rows. */
  rows: number;
};

/** The numbers that a test runner printed, added up over its summaries. */
export type TestCounts = {
  /** Tests that failed, and errors. */
  failed: number;
  /** Tests that passed. */
  passed: number;
  /** Tests that were skipped or ignored. */
  skipped?: number;
};

/** The text that an agent is writing now, before it is stored. */
export type TextDelta = {
  /** Number of deltas that were joined to this one. */
  joined?: number;
  /** Number of deltas before it that were lost. */
  lost?: number;
  /** The agent. */
  provider: Provider;
  /** The agent's own id of the session. */
  session_id: string;
  /** The text, at most 16 KiB. */
  text: string;
};

/** The kind of a text. */
export type TextKind = ("prompt" | "answer" | "thinking" | "call" | "output" | "error" | "question" | "summary" | "title" | "note" | "approval" | "finding");

/** A reference to a whole text that is longer than the text in an event. */
export type TextRef = {
  /** BLAKE3 of the text, first 16 bytes, hexadecimal. */
  hash: string;
  /** Length, bytes. */
  length: number;
  /** Whether the text itself is stored. False above the size limit: then only `origin` locates it. */
  stored: boolean;
};

/** A page of events of all sessions, the newest first. */
export type TimelinePage = {
  /** The position of the log the page reflects. */
  as_of: number;
  /** The events. */
  events: Event[];
  /** Continues the list with older events; `null` on the last page. */
  next_cursor: string | null;
  /** The sessions they belong to. */
  sessions: TimelineSession[];
};

/** A session that events on a page belong to. */
export type TimelineSession = {
  /** Its working directory. */
  cwd: string | null;
  /** Its id. */
  id: SessionId;
  /** Its agent. */
  provider: Provider;
  /** Its title. */
  title: string | null;
};

export type Timestamp = string;

/** The agent called a tool. The input, as the agent wrote it, is the event's text. */
export type ToolCall = {
  /** Whether the call continues after its turn (a background command). */
  background?: boolean;
  /** The provider's id of the call. */
  call_id: string;
  /** The files of an edit that changes several files; at most 64, each up to 1,024 bytes. */
  files?: string[];
  /** Whether the agent may ask a person before it runs this call without its records showing it. */
  may_ask?: boolean;
  /** The provider's name for the tool. */
  name: string;
  /** One line for people: the command, the file, the URL, the question. */
  title?: string | null;
  /** What it does. */
  tool: ToolKind;
};

/** What a tool does, as far as it matters for status and approvals. */
export type ToolKind = ("execute" | "edit" | "read" | "fetch" | "mcp" | "plan" | "question" | "subagent" | "other");

/** How a tool call ended. */
export type ToolOutcome = ("ok" | "error" | "denied" | "blocked" | "cancelled");

/** A tool call returned. Its output is the event's text. */
export type ToolResult = {
  /** The provider's id of the call. */
  call_id: string;
  /** Whether it contains only details of a call whose result was reported before. */
  detail?: boolean;
  /** How long it took, milliseconds. */
  duration_ms?: number | null;
  /** Exit code of a command, when known. */
  exit_code?: number | null;
  /** How it ended. */
  outcome: ToolOutcome;
};

/** How long requests for a tool waited for a person. */
export type ToolWaits = {
  /** Requests that a person answered. */
  count: number;
  /** Median waiting time, seconds. */
  p50_s: number;
  /** 90th percentile of the waiting time, seconds. */
  p90_s: number;
  /** The tool. */
  tool: string;
};

/** The topic of an annotation. */
export type Topic = ("title" | "model" | "cwd" | "git_branch" | "permission_mode" | "cli_version" | "queue" | "command" | "notice" | "merged_into" | "capture" | "note" | "run" | "input" | "label" | "screen" | "trace" | "mark" | "asleep");

/** One file of a session. */
export type TranscriptView = {
  /** The generation of the file at this path, from 1. */
  generation: number;
  /** Number of records that were damaged or unknown. */
  issues: number;
  /** Number of bytes read so far. */
  offset: number;
  /** Absolute path. */
  path: string;
  /** Size at the last check, bytes. */
  size: number;
};

/** One turn of a session, open or over. */
export type Turn = {
  /** Number of approvals requested. */
  approvals: number;
  /** End. */
  completed_at: (Timestamp | null);
  /** The failures, by kind. */
  failures?: Record<string, number>;
  /** Its id. */
  id: TurnId;
  /** Messages of the model. */
  messages: number;
  /** Its number within the session, from 1. */
  number: number;
  /** How it ended; absent while it is open. */
  outcome: (TurnOutcome | null);
  /** The prompt, shortened. */
  prompt: string | null;
  /** What its checks showed. */
  receipt?: Receipt;
  /** Start. */
  started_at: Timestamp;
  /** Prompts typed while it ran. */
  steering: number;
  /**
   * How often a test failed, files were edited, and the same test ran again; absent in turns that were recorded
   * before this was counted.
   */
  test_fix_loops?: number | null;
  /** The agent's last text, shortened to its beginning and end. */
  text: string | null;
  /** Tool calls. */
  tool_calls: number;
  /** Tool calls that failed. */
  tool_errors: number;
  /** What opened it. */
  trigger: TurnTrigger;
  /** Tokens spent. */
  usage: Usage;
  /** The work of the turn. */
  work?: TurnWork;
};

/** A turn is over (derived). */
export type TurnCompleted = {
  /** Its duration, milliseconds, by capture's clock or the provider's. */
  duration_ms: number;
  /** Its number within the session, from 1. */
  number: number;
  /** How it ended. */
  outcome: TurnOutcome;
  /** What its checks showed. */
  receipt?: Receipt;
};

export type TurnId = string;

/** How a turn ended. */
export type TurnOutcome = ("completed" | "interrupted" | "denied" | "failed" | "exited" | "superseded" | "timed_out" | "taken_back");

/** A page of turns. */
export type TurnPage = {
  /** The position of the log the page reflects. */
  as_of: number;
  /** The number of the last turn, to pass as `after`. */
  next_after: number;
  /** Continues the list; `null` on the last page. */
  next_cursor: string | null;
  /** The turns. */
  turns: Turn[];
};

/** A turn was opened (derived). */
export type TurnStarted = {
  /** Its number within the session, from 1. */
  number: number;
  /** What opened it. */
  trigger: TurnTrigger;
};

/** What opened a turn. */
export type TurnTrigger = ("prompt" | "wakeup" | "command" | "monitor");

/** The work of a turn. */
export type TurnWork = {
  /** Number of commands that were started, except checks, which the receipt lists. */
  commands?: number;
  /** Calls that a person refused. */
  denied?: number;
  /** The changed files, as the agent names them, each once, in the order of their first change; at most 8. */
  files?: string[];
  /** The last of these commands, shortened. */
  last_command?: string | null;
  /** Whether more files were changed than are named. */
  more_files?: boolean;
};

/**
 * A record that is unknown or damaged. Nothing is lost: `origin` states where its bytes are, and the event's text
 * contains their readable part.
 */
export type Unrecognized = {
  /** Hash of its bytes (BLAKE3, hexadecimal), if they are not stored. */
  hash?: string | null;
  /** What is wrong with the record, if it is damaged. */
  issue?: string | null;
  /** Its length, bytes. */
  length?: number;
  /** The record's own kind: `type` (`system/foo`), or `damaged`, `oversized`. */
  raw_kind: string;
};

/** Tokens. */
export type Usage = {
  /** Input tokens read from a cache. */
  cache_read_tokens: number;
  /** The part of `cache_write_tokens` that stays in the cache for an hour instead of five minutes. */
  cache_write_hour_tokens?: number;
  /** Input tokens written to a cache. */
  cache_write_tokens: number;
  /** Input tokens that no cache served. */
  input_tokens: number;
  /** Output tokens. */
  output_tokens: number;
  /** Output tokens spent on thinking, if the agent reports them. */
  thinking_tokens?: number;
};

/**
 * Sums of an agent's own accounting. It may include calls that its files do not show, such as those that create a
 * title or compact a conversation.
 */
export type UsageAccount = {
  /**
   * When the accounting began. A session that continues in another session's process continues its sums, and has
   * the same time here.
   */
  began_at?: (Timestamp | null);
  /** The sums by model. */
  models: AccountedModel[];
  /** What it covers. */
  scope: AccountScope;
};

/** What a row of a report stands for. */
export type UsageBy = ("day" | "week" | "month" | "block" | "project" | "model" | "session" | "agent");

/** Tokens and costs in a period. */
export type UsageReport = {
  /** What a row stands for. */
  by: UsageBy;
  /** Number of rows omitted because of `limit`: the oldest periods, or the rows that cost least. */
  more_rows: number;
  /** The date of the prices. */
  prices_date: string;
  /** The quotas, as last reported by agents. */
  quotas: QuotaView[];
  /** Start of the period; `null` when it has none. */
  since: (Timestamp | null);
  /** The sum. */
  total: UsageSums;
  /** Models whose price is not known. */
  unpriced_models: string[];
  /** End of the period; `null` when it has none. */
  until: (Timestamp | null);
  /** The rows: periods in order; other rows by cost and tokens, sub-agents included, highest first. */
  usage: UsageRow[];
};

/**
 * Tokens spent on one model response that were not reported before; never a total of several responses. A source
 * reports a response's total so far; the log contains the increase.
 */
export type UsageReported = {
  /**
   * The sums of the agent's own accounting. They include responses that are also reported one by one, so the two
   * are compared and never added.
   */
  account?: (UsageAccount | null);
  /** Input tokens read from a cache. */
  cache_read_tokens?: number;
  /** The part of `cache_write_tokens` that stays in the cache for an hour instead of five minutes. */
  cache_write_hour_tokens?: number;
  /** Input tokens written to a cache. */
  cache_write_tokens?: number;
  /** What the response cost according to the agent, billionths of a US dollar. */
  cost_nano_usd?: number | null;
  /** Input tokens that no cache served. */
  input_tokens?: number;
  /** The provider's id of the message or response they were spent on. */
  message_id?: string | null;
  /** The model, with the suffix `-fast` if the response was processed in a fast mode with a separate price. */
  model?: string | null;
  /** Output tokens, thinking included. */
  output_tokens?: number;
  /** The quotas, if they changed since the last report. */
  quotas?: QuotaReported[];
  /** Output tokens spent on thinking. */
  thinking_tokens?: number;
};

/** The tokens of a period, a project, a model, a session or an agent. */
export type UsageRow = {
  /** The part of the input that a cache served, 0 to 1; `null` without input. */
  cache_hit_rate: number | null;
  /** Input tokens read from a cache. */
  cache_read_tokens: number;
  /** The part of `cache_write_tokens` that stays in the cache for an hour instead of five minutes. */
  cache_write_hour_tokens?: number;
  /** Input tokens written to a cache. */
  cache_write_tokens: number;
  /**
   * Calls of models. Usage that an agent reports beyond the calls in its transcripts counts as one call per session
   * and model.
   */
  calls: number;
  /** What the calls with a known price cost, US dollars; `null` when no call has one. */
  cost_usd: number | null;
  /** The day, as `2026-11-23`. */
  day?: string | null;
  /** Input tokens that no cache served. */
  input_tokens: number;
  /** The model; `null` if the agent does not report it, and in rows by anything else. */
  model: string | null;
  /** Output tokens. */
  output_tokens: number;
  /** The session whose sub-agent this session is. */
  parent_session_id?: (SessionId | null);
  /** The week, by its Monday (`2026-11-23`); the month (`2026-11`); or the start of the block, RFC 3339. */
  period?: string | null;
  /** The directory. */
  project?: string | null;
  /** The agent. */
  provider?: (Provider | null);
  /** The part of `cost_usd` that agents reported themselves. */
  reported_cost_usd: number;
  /** The session. */
  session_id?: (SessionId | null);
  /** The sums of the session's sub-agents, which have rows of their own too. */
  subagents?: (UsageSums | null);
  /** Output tokens spent on thinking, if the agent reports them. */
  thinking_tokens?: number;
  /** The title of the session. */
  title?: string | null;
  /** Calls without a known price; `cost_usd` does not include them. */
  unpriced_calls: number;
};

/** Tokens and what they cost. */
export type UsageSums = {
  /** The part of the input that a cache served, 0 to 1; `null` without input. */
  cache_hit_rate: number | null;
  /** Input tokens read from a cache. */
  cache_read_tokens: number;
  /** The part of `cache_write_tokens` that stays in the cache for an hour instead of five minutes. */
  cache_write_hour_tokens?: number;
  /** Input tokens written to a cache. */
  cache_write_tokens: number;
  /**
   * Calls of models. Usage that an agent reports beyond the calls in its transcripts counts as one call per session
   * and model.
   */
  calls: number;
  /** What the calls with a known price cost, US dollars; `null` when no call has one. */
  cost_usd: number | null;
  /** Input tokens that no cache served. */
  input_tokens: number;
  /** Output tokens. */
  output_tokens: number;
  /** The part of `cost_usd` that agents reported themselves. */
  reported_cost_usd: number;
  /** Output tokens spent on thinking, if the agent reports them. */
  thinking_tokens?: number;
  /** Calls without a known price; `cost_usd` does not include them. */
  unpriced_calls: number;
};

/** The agent received a prompt. The prompt is the event's text. */
export type UserPrompt = {
  /** Images and files that came with it. */
  attachments?: number;
  /** The origin of the prompt. */
  origin: PromptOrigin;
  /** The provider's id of the turn, if it has one. */
  provider_turn_id?: string | null;
  /**
   * Whether the agent's record names the origin. Otherwise capture concluded the origin: the prompt counts for
   * titles and turns, but authorizes nothing.
   */
  stated?: boolean;
};

/** A person's decision. */
export type Verdict = ("allow" | "deny");

/** Requests with similar waiting times. */
export type WaitBucket = {
  /** Number of requests that expired or were withdrawn without an answer. */
  expired: number;
  /** Number of requests answered by a person. */
  person: number;
  /** Number of requests answered by a rule or by an allowance for the session. */
  rule: number;
  /**
   * Upper bound of the wait in this bucket, inclusive, seconds; the previous bucket's bound is the lower bound.
   * `null` for the last bucket.
   */
  up_to_s: number | null;
};

/** One claim, as it was weighed. */
export type Weighed = {
  /** The sub-agent it is about; absent for the main conversation. */
  agent: string | null;
  /** When it was made. */
  at: Timestamp;
  /** The source's own words. */
  claim: string;
  /** The event that contains it; absent for the claim of the conversation as a whole. */
  event: (EventId | null);
  /** When it begins to count, if not immediately. */
  from: (Timestamp | null);
  /** The reason. */
  reason: (Reason | null);
  /** The source of the claim. */
  source: Source;
  /** Its outcome. */
  standing: Standing;
  /** The state claimed. */
  state: State;
  /** The confidence with which it counts. */
  strength: Confidence;
  /** When it expires, if it does; otherwise it applies until it is replaced or withdrawn. */
  until: (Timestamp | null);
};

/** The work of a session, from its events in order. */
export type WorkLog = {
  /** The commands it ran, oldest first. */
  commands: CommandRun[];
  /** The files it changed, and how often. Failed and refused edits changed nothing. */
  files: Record<string, number>;
  /** The whole text of its last answer. */
  last_text: string | null;
};

/** Every route: its parameters, its body and what it answers. */
export interface Routes {
  /** The page for browsers; it contains no data. */
  "GET /": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: string;
  };
  /** Older name: the last prompts and answers of a session. */
  "GET /api/session/messages": {
    path: Record<never, never>;
    query: { before?: number; limit?: number; session: string };
    body: undefined;
    answer: Messages;
  };
  /** Older name: a session and its last events, in the older format. As JSON, or as a stream with `Accept: text/event-stream`. */
  "GET /api/sessions/{id}/stream": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: SessionStream;
  };
  /** Older name of /api/v1/sessions/{id}/summary. */
  "GET /api/sessions/{id}/summary": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: SessionSummary;
  };
  /** Older name: the status of all active sessions, in the older format. As JSON, or as a stream with `Accept: text/event-stream`. */
  "GET /api/stream/status": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: StreamStatuses;
  };
  /** Answers a permission request with the single-use token of a button in a message. */
  "POST /api/v1/answers": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: ButtonPressed;
    answer: ButtonAnswer;
  };
  /** Permission requests, newest first. */
  "GET /api/v1/approvals": {
    path: Record<never, never>;
    query: { cursor?: string; limit?: number; session?: string; state?: ApprovalState };
    body: undefined;
    answer: ApprovalPage;
  };
  /** A permission request, with everything needed to decide it. */
  "GET /api/v1/approvals/{id}": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: ApprovalView;
  };
  /** Allows or denies a permission request; 409 if it is closed or cannot be answered from here. */
  "POST /api/v1/approvals/{id}/decision": {
    path: { id: string };
    query: Record<never, never>;
    body: DecisionRequest;
    answer: ApprovalView;
  };
  /** The active sessions that need a person, most urgent first, by need, risk and waiting time. */
  "GET /api/v1/attention": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: AttentionList;
  };
  /** Announces a delivery that a hook wrote to the spool. */
  "POST /api/v1/deliveries": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: DeliveryNotice;
    answer: DeliveryTaken;
  };
  /** Waits for the decision on a hook's delivery; 204 if there is none. */
  "POST /api/v1/deliveries/{id}/answer": {
    path: { id: string };
    query: Record<never, never>;
    body: HookWait;
    answer: HookAnswer;
  };
  /** Sends the text an agent is writing now; streams send it as a `delta`, and it is not stored. */
  "POST /api/v1/deltas": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: TextDelta;
    answer: DeltaTaken;
  };
  /** The paired devices, most recently used first. */
  "GET /api/v1/devices": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: DeviceList;
  };
  /** Revokes a device; its cookie becomes invalid and its connections are closed. */
  "DELETE /api/v1/devices/{id}": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: SignedOut;
  };
  /** Prompts, ends of turns, permission requests, errors, findings and similar events of all sessions, newest first. */
  "GET /api/v1/events": {
    path: Record<never, never>;
    query: { agent?: Provider[]; cursor?: string; cwd?: string; failures?: boolean; kind?: Kind[]; limit?: number; session?: string; since?: Timestamp; until?: Timestamp };
    body: undefined;
    answer: TimelinePage;
  };
  /** Findings, newest first. */
  "GET /api/v1/findings": {
    path: Record<never, never>;
    query: { cursor?: string; kind?: FindingKind[]; limit?: number; session?: string; state?: StateFilter };
    body: undefined;
    answer: FindingPage;
  };
  /** One finding. */
  "GET /api/v1/findings/{id}": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: Finding;
  };
  /** Acknowledges a finding: it is not reported again. */
  "POST /api/v1/findings/{id}/ack": {
    path: { id: string };
    query: Record<never, never>;
    body: EmptyBody;
    answer: Finding;
  };
  /** The sources and their health. */
  "GET /api/v1/health/sources": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: Sources;
  };
  /** Connects the terminal host of a run (Unix socket only). */
  "GET /api/v1/host": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: undefined;
  };
  /** The device that is signed in. */
  "GET /api/v1/me": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: Me;
  };
  /** Sends a test message over a notification channel. */
  "POST /api/v1/notify/test": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: ChannelTest;
    answer: Receipt2;
  };
  /** Activity of all sessions in a period: which agents worked when, how long agents waited for people, findings by day. */
  "GET /api/v1/overview": {
    path: Record<never, never>;
    query: { limit?: number; since?: Timestamp; tz?: string; until?: Timestamp };
    body: undefined;
    answer: Overview;
  };
  /** Pairs a browser with a code; the answer sets its cookie. Works only from this server's own page. */
  "POST /api/v1/pair": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: PairRequest;
    answer: Paired;
  };
  /** Creates a single-use code that pairs a browser or elevates a device. Requires a token, not a cookie. */
  "POST /api/v1/pairing": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: PairingRequest;
    answer: PairingCode;
  };
  /** Queued prompts and their outcomes, newest first. */
  "GET /api/v1/prompts": {
    path: Record<never, never>;
    query: { cursor?: string; limit?: number; session?: string; state?: QueuedState };
    body: undefined;
    answer: PromptPage;
  };
  /** Cancels a queued prompt. */
  "POST /api/v1/prompts/{id}/cancel": {
    path: { id: string };
    query: Record<never, never>;
    body: EmptyBody;
    answer: Prompt;
  };
  /** The key with which a browser subscribes to messages. */
  "GET /api/v1/push": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: PushKey;
  };
  /** Subscribes the signed-in device to messages. */
  "POST /api/v1/push/subscriptions": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: PushSubscription;
    answer: PushState;
  };
  /** Ends the subscription of the signed-in device. */
  "DELETE /api/v1/push/subscriptions": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: PushEnd;
    answer: PushState;
  };
  /** How much of the removed sessions still has to be erased, and the size of the database. */
  "GET /api/v1/retention": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: RetentionStatus;
  };
  /** Removes old sessions to save space; they are not read again. */
  "POST /api/v1/retention/prune": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: PruneRequest;
    answer: RemovalReport;
  };
  /** The processes that `capture run` started. */
  "GET /api/v1/runs": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: RunPage;
  };
  /** A run, by its id or name. */
  "GET /api/v1/runs/{id}": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: Run;
  };
  /** As in coder/agentapi: messages and status changes as they occur. */
  "GET /api/v1/runs/{id}/agentapi/events": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: string;
  };
  /** As in coder/agentapi: types a prompt or characters. */
  "POST /api/v1/runs/{id}/agentapi/message": {
    path: { id: string };
    query: Record<never, never>;
    body: AgentApiInput;
    answer: AgentApiSent;
  };
  /** As in coder/agentapi: the prompts and answers of the run's session. */
  "GET /api/v1/runs/{id}/agentapi/messages": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: AgentApiMessages;
  };
  /** As in coder/agentapi: whether the agent of a run is working. */
  "GET /api/v1/runs/{id}/agentapi/status": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: AgentApiStatus;
  };
  /** Which rule matches a run's screen, and why the other rules do not. */
  "GET /api/v1/runs/{id}/explain": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: ScreenExplanation;
  };
  /** Types into a run's terminal: text as soon as a prompt is shown, keys or an interrupt immediately. */
  "POST /api/v1/runs/{id}/input": {
    path: { id: string };
    query: Record<never, never>;
    body: Input;
    answer: InputSent;
  };
  /** The length and state of a run's recording. */
  "GET /api/v1/runs/{id}/recording": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: RecordingInfo;
  };
  /** The recorded screen at a time, and the changes after it. */
  "GET /api/v1/runs/{id}/recording/frames": {
    path: { id: string };
    query: { from_ms?: number; limit?: number };
    body: undefined;
    answer: RecordedFrames;
  };
  /** The screen of a run's terminal. */
  "GET /api/v1/runs/{id}/screen": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: Screen;
  };
  /** A run's terminal over a WebSocket: sends the screen as rows of coloured text, and accepts input. */
  "GET /api/v1/runs/{id}/terminal": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: undefined;
  };
  /** The texts of all sessions that match a query, each with the matching part. */
  "GET /api/v1/search": {
    path: Record<never, never>;
    query: { agent?: Provider[]; cursor?: string; cwd?: string; kind?: TextKind[]; limit?: number; project?: string; q?: string; session?: string; since?: Timestamp; sort?: SearchSort; tool?: string; until?: Timestamp };
    body: undefined;
    answer: SearchPage;
  };
  /** The state and progress of the search index. */
  "GET /api/v1/search/index": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: IndexStatus;
  };
  /** Deletes the search index and rebuilds it; until then, searches use the finished part. */
  "POST /api/v1/search/index/rebuild": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: EmptyBody;
    answer: IndexStatus;
  };
  /** Sessions, most recent event first. */
  "GET /api/v1/sessions": {
    path: Record<never, never>;
    query: { active?: ActiveFilter; cursor?: string; cwd?: string; limit?: number; parent?: string; provider?: Provider[]; state?: State[] };
    body: undefined;
    answer: SessionPage;
  };
  /** Starts a session: capture's own agent, or another agent over its protocol. The session's process continues when the server or the client ends. */
  "POST /api/v1/sessions": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: SessionRequest;
    answer: StartedSession;
  };
  /** A session, by any of its ids. */
  "GET /api/v1/sessions/{id}": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: Session;
  };
  /** Forgets a session and its sub-agents: all their data is removed, and they are not read again. */
  "DELETE /api/v1/sessions/{id}": {
    path: { id: string };
    query: { dry_run?: boolean };
    body: undefined;
    answer: RemovalReport;
  };
  /** Turns the capture of a session on or off. */
  "PUT /api/v1/sessions/{id}/capture": {
    path: { id: string };
    query: Record<never, never>;
    body: CaptureRequest;
    answer: CaptureAnswer;
  };
  /** The last finished turns of a session with what their checks showed, also in sub-agents, and what the agent said about them. */
  "GET /api/v1/sessions/{id}/check": {
    path: { id: string };
    query: { last?: number };
    body: undefined;
    answer: SessionCheck;
  };
  /** The conversation of a session: prompts, messages, tool calls with their results, approvals, and sub-agents at the point where they were started. */
  "GET /api/v1/sessions/{id}/conversation": {
    path: { id: string };
    query: { after?: number; cursor?: number; limit?: number; texts?: ConversationTexts };
    body: undefined;
    answer: ConversationPage;
  };
  /** What the person asked for in a session, and how far its edits are from the named files, from its last 20,000 events. */
  "GET /api/v1/sessions/{id}/drift": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: Drift;
  };
  /** The events of a session, in order. */
  "GET /api/v1/sessions/{id}/events": {
    path: { id: string };
    query: { after?: number; cursor?: number; kind?: Kind[]; limit?: number };
    body: undefined;
    answer: EventPage;
  };
  /** Which rule matches that screen, and why the other rules do not. */
  "GET /api/v1/sessions/{id}/explain": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: ScreenExplanation;
  };
  /** A Markdown note without secrets with which a person or an agent can continue a session's work. */
  "GET /api/v1/sessions/{id}/handoff": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: HandoffNote;
  };
  /** Sends a prompt or a command to a session, or types into the run that hosts it. */
  "POST /api/v1/sessions/{id}/input": {
    path: { id: string };
    query: Record<never, never>;
    body: SessionInputRequest;
    answer: SessionInputTaken;
  };
  /** Sets or removes labels of a session. Policies can refer to labels. */
  "PUT /api/v1/sessions/{id}/labels": {
    path: { id: string };
    query: Record<never, never>;
    body: Labels;
    answer: Labels;
  };
  /** Pins, snoozes or archives a session in the user's lists, for every view. */
  "PUT /api/v1/sessions/{id}/marks": {
    path: { id: string };
    query: Record<never, never>;
    body: MarksRequest;
    answer: Marks;
  };
  /** The notes on a session. */
  "GET /api/v1/sessions/{id}/notes": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: Notes;
  };
  /** Adds a note to a session. Notes are stored as events of the session and cannot be deleted. */
  "POST /api/v1/sessions/{id}/notes": {
    path: { id: string };
    query: Record<never, never>;
    body: NoteRequest;
    answer: Notes;
  };
  /** Queues a prompt, which is typed when the session's run waits for one. */
  "POST /api/v1/sessions/{id}/prompts": {
    path: { id: string };
    query: Record<never, never>;
    body: PromptRequest;
    answer: Prompt;
  };
  /** The screen of the run that hosts a session. */
  "GET /api/v1/sessions/{id}/screen": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: Screen;
  };
  /** A session's status now or at a past time, the claims in force then, and the rule that decided. */
  "GET /api/v1/sessions/{id}/status": {
    path: { id: string };
    query: { at?: Timestamp };
    body: undefined;
    answer: StatusAt;
  };
  /** Changes of a session's status in pages, oldest first. */
  "GET /api/v1/sessions/{id}/status/changes": {
    path: { id: string };
    query: { after?: number; cursor?: number; limit?: number };
    body: undefined;
    answer: StatusChangePage;
  };
  /** Changes of a session's status, oldest first; without `after`, the latest ones. */
  "GET /api/v1/sessions/{id}/status/history": {
    path: { id: string };
    query: { after?: number; cursor?: number; limit?: number };
    body: undefined;
    answer: StatusChange[];
  };
  /** What a session is about. */
  "GET /api/v1/sessions/{id}/summary": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: SessionSummary;
  };
  /** The turns of a session, in order. */
  "GET /api/v1/sessions/{id}/turns": {
    path: { id: string };
    query: { after?: number; cursor?: number; limit?: number };
    body: undefined;
    answer: TurnPage;
  };
  /** The tokens of a session. */
  "GET /api/v1/sessions/{id}/usage": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: SessionUsage;
  };
  /** Answers when a session reaches a state; with `after`, only states after that position count. */
  "GET /api/v1/sessions/{id}/wait": {
    path: { id: string };
    query: { after?: number; timeout_ms?: number; until: State[] };
    body: undefined;
    answer: Session;
  };
  /** The files a session changed, the commands it ran and its last answer, from its last 20,000 events. */
  "GET /api/v1/sessions/{id}/work": {
    path: { id: string };
    query: Record<never, never>;
    body: undefined;
    answer: WorkLog;
  };
  /** Signs the device out; its cookie becomes invalid. */
  "POST /api/v1/sign-out": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: EmptyBody;
    answer: SignedOut;
  };
  /** Grants the device the scope `admin` for ten minutes. Needs a code created for this device. */
  "POST /api/v1/step-up": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: StepUpRequest;
    answer: SteppedUp;
  };
  /** A snapshot, then events, statuses, approvals and findings as they occur. */
  "GET /api/v1/stream": {
    path: Record<never, never>;
    query: { after?: number; batch_ms?: number; compress?: string; epoch?: string; events?: string; session?: string };
    body: undefined;
    answer: string;
  };
  /** The whole text an event's `text_ref` points to. */
  "GET /api/v1/texts/{hash}": {
    path: { hash: string };
    query: Record<never, never>;
    body: undefined;
    answer: string;
  };
  /** The turns of all sessions, grouped by session. */
  "GET /api/v1/turns": {
    path: Record<never, never>;
    query: { cursor?: string; limit?: number; since?: Timestamp };
    body: undefined;
    answer: RecentTurnPage;
  };
  /** Tokens and costs by model, day, project, session or agent, and the quotas of agents. */
  "GET /api/v1/usage": {
    path: Record<never, never>;
    query: { agent?: Provider[]; by?: UsageBy; limit?: number; model?: string; project?: string; session?: string; since?: Timestamp; tz?: string; until?: Timestamp };
    body: undefined;
    answer: UsageReport;
  };
  /** How well sessions went: turns, failures, how long approvals took, active and waiting time. */
  "GET /api/v1/usage/quality": {
    path: Record<never, never>;
    query: { agent?: Provider[]; limit?: number; project?: string; session?: string; since?: Timestamp; until?: Timestamp };
    body: undefined;
    answer: QualityReport;
  };
  /** The same frames over a WebSocket. */
  "GET /api/v1/ws": {
    path: Record<never, never>;
    query: { after?: number; batch_ms?: number; compress?: string; epoch?: string; events?: string; session?: string };
    body: undefined;
    answer: undefined;
  };
  /** 200 while every part of the server works, otherwise 503. */
  "GET /healthz": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: string;
  };
  /** A message of the Model Context Protocol. */
  "POST /mcp": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: McpMessage;
    answer: McpMessage;
  };
  /** Metrics in Prometheus text form. */
  "GET /metrics": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: string;
  };
  /** This document. */
  "GET /openapi.json": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: Record<string, unknown>;
  };
  /** OTLP/HTTP: log records of an agent. */
  "POST /v1/logs": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: Record<string, unknown>;
  };
  /** OTLP/HTTP: metrics of an agent; accepted, not stored. */
  "POST /v1/metrics": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: Record<string, unknown>;
  };
  /** OTLP/HTTP: spans of an agent; accepted, not stored. */
  "POST /v1/traces": {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: Record<string, unknown>;
  };
}
