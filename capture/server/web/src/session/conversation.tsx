// The conversation: all texts and actions, from the first prompt to what the agent is currently writing.

import { useComputed, useSignal } from "@preact/signals";
import { useCallback, useEffect, useMemo, useRef } from "preact/hooks";
import { words } from "../api/client";
import type { OpenApproval } from "../api/routes";
import { approvals, row, watch } from "../live/store";
import { Empty, Loading } from "../parts/feedback";
import { Icon } from "../parts/icons";
import { Markdown } from "../parts/markdown";
import { Shown } from "../parts/text";
import { type Handle, VirtualList } from "../parts/virtual";
import { ItemView } from "./item";
import { Conversation } from "./loader";
import { broken, heard, type Saying, silent } from "./saying";

/** The conversation of a session; `at` is the sequence to show. */
export function ConversationView({ id, at }: { id: string; at: number | null }) {
  const conversation = useMemo(() => new Conversation(id), [id]);
  const list = useRef<Handle | null>(null);
  const saying = useSignal<Saying>(silent(false));
  /** Whether the text is terminal output, which is not Markdown. */
  const isScreen = useSignal(false);
  const atEnd = useSignal(at === null);
  const session = row(id)?.session.value;
  const last = session?.last_sequence ?? 0;

  useEffect(() => conversation.grow(last), [conversation, last]);
  useEffect(() => {
    const stop = watch(id, {
      event: (event) => {
        conversation.grow(event.sequence);
        if (event.kind === "tool.result" || event.kind === "approval.resolved" || event.kind === "question.answered") conversation.refresh();
        if (event.kind === "assistant.message" || event.kind === "turn.completed" || event.kind === "user.prompt") saying.value = silent(true);
      },
      delta: (delta) => {
        isScreen.value = delta.source === "pty";
        saying.value = isScreen.value ? heard(silent(true), delta.text) : heard(saying.peek(), delta.text);
      },
      restart: () => conversation.refresh(),
      missed: () => (saying.value = broken(saying.peek())),
    });
    return () => {
      stop();
      conversation.stop();
    };
  }, [conversation, id]);

  const reveal = useRef(at);
  reveal.current = at;
  const onHandle = useCallback((handle: Handle) => {
    list.current = handle;
    if (reveal.current !== null) handle.reveal(conversation.blockOf(reveal.current), "start");
  }, []);
  useEffect(() => {
    if (at !== null) list.current?.reveal(conversation.blockOf(at), "start");
  }, [at]);
  const range = useSignal<[number, number]>([0, 0]);
  const onRange = useCallback(
    (first: number, last: number) => {
      range.value = [first, last];
      conversation.look(first, last);
    },
    [conversation],
  );
  /** Whether what was in view first has been read. Until then nothing is shown, because its height is not known. */
  const settled = useSignal(false);
  const isRead = useComputed(() => {
    const [first, last] = range.value;
    const blocks = Array.from({ length: last - first }, (_, index) => first + index);
    return blocks.length > 0 && blocks.every((block) => conversation.items(block) !== null || conversation.failure(block) !== null);
  });
  useEffect(() => {
    if (settled.value || !isRead.value) return;
    // The frame after next has the blocks where they belong.
    let frame = requestAnimationFrame(() => {
      frame = requestAnimationFrame(() => (settled.value = true));
    });
    return () => cancelAnimationFrame(frame);
  }, [isRead.value]);
  const onEnd = useCallback((end: boolean) => (atEnd.value = end), []);

  const pending = useComputed(() => [...approvals.value.values()].filter((approval) => approval.session_id === id));
  const count = conversation.blocks.value;
  // A program without a conversation has events too.
  const isEmpty = count > 0 && count <= 3 && Array.from({ length: count }, (_, block) => conversation.items(block)).every((items) => items?.length === 0);
  if (session !== undefined && last === 0) {
    return <Empty icon="terminal" title="Nothing was said yet" />;
  }
  return (
    <div class={settled.value ? "conversation" : "conversation conversation-waits"} data-scroller tabIndex={0} role="region" aria-label="Conversation">
      {!settled.value && (
        <div class="conversation-place">
          <Loading lines={6} label="Loading the conversation" />
        </div>
      )}
      {isEmpty && <Empty icon="terminal" title="Nothing was said yet" />}
      <VirtualList
        count={count}
        estimate={900}
        keyOf={String}
        render={(block, height) => (
          <BlockView
            conversation={conversation}
            block={block}
            height={height}
            marked={at}
            ongoing={session?.turn != null}
            cwd={session?.cwd ?? null}
            asked={pending.value}
          />
        )}
        onRange={onRange}
        onEnd={onEnd}
        follow
        handle={onHandle}
        role="none"
      />
      {saying.value.text !== "" && (
        <div class="saying" aria-live="off">
          <span class="saying-label">Now</span>
          {saying.value.cut && <p class="muted">…</p>}
          {isScreen.value ? (
            <p class="cut">
              <Shown text={saying.value.text} />
            </p>
          ) : (
            <Markdown text={saying.value.text} />
          )}
        </div>
      )}
      {!atEnd.value && (
        <button type="button" class="to-end button small" onClick={() => list.current?.toEnd()}>
          <Icon name="down" size={14} /> Latest
        </button>
      )}
    </div>
  );
}

function BlockView({
  conversation,
  block,
  height,
  marked,
  ongoing,
  cwd,
  asked,
}: {
  conversation: Conversation;
  block: number;
  height: number;
  marked: number | null;
  ongoing: boolean;
  cwd: string | null;
  asked: OpenApproval[];
}) {
  const items = conversation.items(block);
  if (items === null) {
    const failure = conversation.failure(block);
    return (
      <div class="block-waiting" style={{ height: `${height}px` }}>
        {failure === null ? <Loading lines={3} /> : <p class="error-text">{words(failure)}</p>}
      </div>
    );
  }
  return (
    <div class="block">
      {items.map((item, index) => (
        <ItemView key={`${item.sequence} ${index}`} item={item} marked={item.sequence === marked} ongoing={ongoing} cwd={cwd} asked={asked} />
      ))}
    </div>
  );
}
