import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { ApprovalFeed } from "../dist/approval_feed.js";
import { windowSize } from "../dist/exchange.js";
import type { ResponseFrame } from "../dist/socket_frames.js";
import { settled } from "./event_log.js";

/** One connection of the feed. */
interface Attempt {
  after: string | null;
  isOpen: boolean;
  send(cursor: string, text?: string): void;
  end(): void;
}

// Returns a feed whose server is scripted, with its connections. It closes at the end of the test.
function feedOf(t: TestContext, status = 200) {
  const attempts: Attempt[] = [];
  const fetch = async (address: string, { signal }: RequestInit) => {
    const encoder = new TextEncoder();
    let controller!: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({ start: (c) => void (controller = c) });
    const attempt: Attempt = {
      after: new URL(address).searchParams.get("after"),
      isOpen: true,
      send: (cursor, text = "") => controller.enqueue(encoder.encode(`id: ${cursor}\ndata: ${JSON.stringify({ type: "opened", text })}\n\n`)),
      end: () => controller.close(),
    };
    signal!.addEventListener("abort", () => (attempt.isOpen = false));
    attempts.push(attempt);
    if (status !== 200) return new Response(JSON.stringify({ status, code: "gone" }), { status });
    return new Response(body);
  };
  let emptied = 0;
  const endpoint = { base: "http://server", token: async () => undefined, webSocket: assert.fail, fetch, silence: 45_000 };
  const feed = new ApprovalFeed(endpoint, "?agent=a", () => emptied++);
  t.after(() => feed.close(new Error("the test has ended")));
  const read = (after?: string) => {
    const reader = { cursors: [] as (string | undefined)[], last: undefined as ResponseFrame | undefined, lost: undefined as Error | undefined, close: () => {} };
    const receive = (frame: ResponseFrame) => {
      reader.last = frame;
      if (frame.type === "event") reader.cursors.push(frame.cursor);
    };
    reader.close = feed.open(after, { receive, lose: (error) => void (reader.lost = error) }).close;
    return reader;
  };
  return { attempts, read, emptied: () => emptied };
}

test("readers share one connection, which ends with the last of them", async (t) => {
  const { attempts, read, emptied } = feedOf(t);
  const [one, two] = [read("2"), read("2")];
  await settled();
  attempts[0]!.send("3");
  await settled();
  assert.deepEqual([one.cursors, two.cursors, attempts.length], [["3"], ["3"], 1]);
  one.close();
  assert.equal(emptied(), 0);
  two.close();
  assert.deepEqual([emptied(), attempts[0]!.isOpen], [1, false]);
});

test("readers are acknowledged as soon as the feed is connected", async (t) => {
  const { attempts, read } = feedOf(t);
  const one = read("2");
  await settled();
  assert.deepEqual([one.last?.type, read("2").last?.type, attempts.length], ["ack", "ack", 1]);
});

test("a reader with an earlier cursor begins there, and the others receive nothing twice", async (t) => {
  const { attempts, read } = feedOf(t);
  const one = read("2");
  await settled();
  attempts[0]!.send("3");
  await settled();
  const two = read("1");
  await settled();
  assert.deepEqual([attempts.map(({ after }) => after), attempts[0]!.isOpen], [["2", "1"], false]);
  for (const cursor of ["2", "3", "4"]) attempts[1]!.send(cursor);
  await settled();
  assert.deepEqual([one.cursors, two.cursors], [["3", "4"], ["2", "3", "4"]]);
  read("4");
  await settled();
  assert.equal(attempts.length, 2);
});

test("readers are lost with the connection, and refused with the refusal", async (t) => {
  const { attempts, read } = feedOf(t);
  const reader = read("1");
  await settled();
  attempts[0]!.end();
  await settled();
  assert.match(String(reader.lost), /has ended/);
  const refused = feedOf(t, 410).read("1");
  await settled();
  assert.deepEqual(refused.last, { type: "error", status: 410, code: "gone" });
});

test("a reader that is too slow is lost, and the others are not", async (t) => {
  const { attempts, read } = feedOf(t);
  const slow = read("1");
  await settled();
  attempts[0]!.send("2", "x".repeat(windowSize + 1));
  await settled();
  const fast = read("2");
  attempts[0]!.send("3");
  await settled();
  assert.deepEqual([slow.lost?.name, fast.lost, fast.cursors], ["MovedError", undefined, ["3"]]);
});
