import { PerdureAgent, type PerdureAgentConfig } from "@perdure/client";
import assert from "node:assert/strict";
import { test } from "node:test";
import { Backoff, policyOf, type Retry, retryAfterOf } from "../dist/backoff.js";
import { FrameReader } from "../dist/sse_frames.js";
import { type ReceivedRequest, fetchOf } from "./scripted_server.js";
import { settled } from "./event_log.js";

async function requestPaths(config: PerdureAgentConfig): Promise<string[]> {
  const requests: ReceivedRequest[] = [];
  const script = ({ path }: ReceivedRequest) => (path.endsWith("/cancel") ? { status: 202 } : { body: 'id: 1\ndata: {"type":"RUN_ERROR","message":"no"}\n\n' });
  const agent = new PerdureAgent({ ...config, threadId: "t", fetch: fetchOf(script, requests) });
  await agent.runAgent({ runId: "r" });
  await agent.cancel();
  return requests.map(({ path, query }) => path + query);
}

test("the routes derive from url, or from baseUrl and agent", async () => {
  const cancel = "/v1/threads/t/runs/r/cancel";
  assert.deepEqual(await requestPaths({ baseUrl: "http://s/", agent: "a b" }), ["/v1/agents/a%20b/runs", cancel]);
  assert.deepEqual(await requestPaths({ url: "http://s/v1/agents/a/runs" }), ["/v1/agents/a/runs", cancel]);
  assert.deepEqual(await requestPaths({ url: "http://s/p/v1/agents/a/runs/?key=1" }), ["/p/v1/agents/a/runs/?key=1", "/p" + cancel]);
  assert.deepEqual(await requestPaths({ url: "http://s/chat", baseUrl: "http://s/perdure" }), ["/chat", "/perdure" + cancel]);
});

test("an error names the option that is missing or invalid", () => {
  const base = { baseUrl: "http://s", agent: "a" };
  for (const [config, message] of [
    [{}, /url, or baseUrl and agent/],
    [{ baseUrl: "http://s" }, /url, or baseUrl and agent/],
    [{ url: "http://s/chat" }, /http:\/\/s\/chat .*baseUrl/],
    [{ ...base, silence: 0 }, /silence/],
    [{ ...base, silence: NaN }, /silence/],
    [{ ...base, retry: { attempts: -1 } }, /retry\.attempts/],
    [{ ...base, retry: { jitter: 1.5 } }, /retry\.jitter/],
    [{ ...base, retry: { giveUpAfter: NaN } }, /retry\.giveUpAfter/],
  ] satisfies [PerdureAgentConfig, RegExp][]) {
    assert.throws(() => new PerdureAgent(config), message);
  }
});

test("pauses double up to the maximum, with a random part", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  for (const [random, delays] of [[0, [100, 200, 400, 500, 500]], [1, [75, 150, 300, 375, 375]]] satisfies [number, number[]][]) {
    t.mock.method(Math, "random", () => random);
    const retries: Retry[] = [];
    const policy = policyOf({ baseDelay: 100, maxDelay: 500, jitter: 0.25, attempts: 5 });
    const backoff = new Backoff(policy, { onRetry: (retry) => retries.push(retry) });
    const { signal } = new AbortController();
    for (const round of [1, 2]) {
      for (const delay of delays) {
        const waiting = backoff.wait(new Error("lost"), 0, signal);
        t.mock.timers.tick(delay - 1);
        assert.equal(await Promise.race([waiting, settled()]), undefined);
        t.mock.timers.tick(1);
        assert.equal(await waiting, true);
      }
      assert.equal(await backoff.wait(new Error("lost"), 0, signal), false);
      assert.deepEqual(retries.splice(0).map((retry) => retry.delay), delays, `round ${round}`);
      backoff.reset();
    }
  }
});

test("a connection that has lasted resets the pauses, and a short one does not", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const retries: Retry[] = [];
  let connected = 0;
  const backoff = new Backoff(policyOf({ baseDelay: 100, jitter: 0 }), { onRetry: (retry) => retries.push(retry), onConnected: () => connected++ });
  for (const lasted of [undefined, 4_999, 0, 5_000, undefined]) {
    if (lasted !== undefined) backoff.connected();
    t.mock.timers.tick(lasted ?? 60_000);
    const waiting = backoff.wait(new Error("lost"), 0, new AbortController().signal);
    t.mock.timers.tick(retries.at(-1)!.delay);
    assert.equal(await waiting, true);
  }
  assert.deepEqual(retries.map(({ delay }) => delay), [100, 200, 400, 100, 200]);
  assert.equal(connected, 3);
});

test("Retry-After is seconds or a date", () => {
  const after = (value?: string) => retryAfterOf(new Headers(value === undefined ? {} : { "Retry-After": value }));
  assert.deepEqual([after(), after("0"), after("3"), after("-3"), after("soon"), after("Mon, 01 Jan 2024 00:00:00 GMT")], [0, 0, 3000, 0, 0, 0]);
  const wait = after(new Date(Date.now() + 60_000).toUTCString());
  assert.ok(wait > 50_000 && wait <= 60_000, String(wait));
});

test("a frame is the same for every size of the chunks", () => {
  const text = ': hello\n\nid: 1-ü\ndata: {"type":\ndata: "RUN_STARTED","runId":"世"}\n\nid:2\n\nevent: x\ndata:{"type":"A","x":"🌍"}\nid: 3\n\ndata: half';
  const bytes = new TextEncoder().encode(text);
  const expected = [
    { text: ": hello", hasData: false },
    { text: 'id: 1-ü\ndata: {"type":\ndata: "RUN_STARTED","runId":"世"}', hasData: true, id: "1-ü", lifecycle: { type: "RUN_STARTED", runId: "世" } },
    { text: "id:2", hasData: false, id: "2" },
    { text: 'event: x\ndata:{"type":"A","x":"🌍"}\nid: 3', hasData: true, id: "3" },
  ];
  for (let size = 1; size <= bytes.length; size++) {
    const reader = new FrameReader();
    const frames = [];
    for (let at = 0; at < bytes.length; at += size) frames.push(...reader.read(bytes.slice(at, at + size)));
    assert.deepEqual(frames, expected, `${size} at once`);
  }
});

test("a frame without an end is refused when it exceeds the limit", () => {
  const reader = new FrameReader();
  const bytes = new Uint8Array(8 << 20).fill(32);
  assert.throws(() => {
    for (let i = 0; i < 10; i++) reader.read(bytes);
  }, { name: "TooLargeError" });
});
