import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { BLOCK, Conversation } from "../src/session/loader";

test("a result that comes later is read again in every page, once it is looked at", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const read: number[] = [];
  Object.assign(globalThis, {
    location: { origin: "http://127.0.0.1:1" },
    fetch: (address: string) => {
      read.push(Number(new URL(address, "http://127.0.0.1:1").searchParams.get("after")));
      return Promise.resolve(new Response('{"items":[]}', { headers: { "Content-Type": "application/json" } }));
    },
  });
  const conversation = new Conversation("S");
  const settled = async (): Promise<void> => {
    mock.timers.tick(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  };
  const look = async (sequence: number): Promise<void> => {
    const block = Math.floor(sequence / BLOCK);
    conversation.look(block, block + 1);
    await settled();
  };
  conversation.grow(1_000);
  await look(0);
  await look(500);
  await look(0);
  assert.deepEqual(read, [0, 480], "what was read is not read again");
  await look(500);
  conversation.refresh();
  await settled();
  assert.deepEqual(read, [0, 480, 480], "what is in view is read at once");
  await look(0);
  assert.deepEqual(read, [0, 480, 480, 0]);
  conversation.stop();
  mock.timers.reset();
});
