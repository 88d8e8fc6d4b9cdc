import {
  AnsweredError,
  type Approval,
  awaitedBy,
  ConnectionLostError,
  type Decision,
  PerdureAgent,
  type PerdureAgentConfig,
  PerdureClient,
  ProblemError,
  type ToolResult,
} from "@perdure/client";
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ReceivedRequest, fetchOf, problem, type Reply, type Script } from "./scripted_server.js";
import { finished, frame, immediateRetry, settled, started, timers, read } from "./event_log.js";

const threadId = "t 1/ü";
const thread = "/v1/threads/t%201%2F%C3%BC";
const json = (body: object, status = 200): Reply => ({ status, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
const result: ToolResult = { toolCallId: "c-1", content: "42 🌍" };

const agentOf = (script: Script, requests: ReceivedRequest[] = [], more: Partial<PerdureAgentConfig> = {}) =>
  new PerdureAgent({ baseUrl: "http://server/", agent: "demo", threadId, retry: immediateRetry, headers: { Authorization: "Bearer x" }, fetch: fetchOf(script, requests), ...more });

test("an agent sends tool results and decisions to the routes of its thread", async () => {
  const requests: ReceivedRequest[] = [];
  const agent = agentOf(() => json({ repeated: true }), requests);
  assert.deepEqual(await agent.sendToolResult({ ...result, error: "no" }), { repeated: true });
  const decision: Decision = { decision: "edit", args: { amount: 5 }, reason: "too much" };
  await agent.decide("a/1", decision);
  assert.deepEqual(requests.map(({ method, path }) => [method, path]), [
    ["POST", `${thread}/tool-results`],
    ["POST", `${thread}/approvals/a%2F1`],
  ]);
  assert.deepEqual(requests.map(({ body }) => JSON.parse(body)), [{ ...result, error: "no" }, decision]);
  for (const { headers } of requests) assert.equal(headers.authorization, "Bearer x");
  for (const { headers } of requests) assert.equal(headers["content-type"], "application/json");
});

test("a client sends its commands to the routes of the thread that the caller names", async () => {
  const requests: ReceivedRequest[] = [];
  const client = new PerdureClient({ baseUrl: "http://server/", retry: immediateRetry, headers: { Authorization: "Bearer x" }, fetch: fetchOf(() => json({}), requests) });
  await client.decide(threadId, "a/1", { decision: "approve" });
  await client.toolResult(threadId, result);
  await client.cancel(threadId, "r/1", "enough");
  await client.pause(threadId);
  await client.resume(threadId);
  const agent = agentOf(() => ({ status: 204 }), requests);
  await agent.pause();
  await agent.resume();
  assert.deepEqual(requests.map(({ method, path, body }) => [method, path, JSON.parse(body)]), [
    ["POST", `${thread}/approvals/a%2F1`, { decision: "approve" }],
    ["POST", `${thread}/tool-results`, result],
    ["POST", `${thread}/runs/r%2F1/cancel`, { reason: "enough" }],
    ["POST", `${thread}/pause`, {}],
    ["POST", `${thread}/resume`, {}],
    ["POST", `${thread}/pause`, {}],
    ["POST", `${thread}/resume`, {}],
  ]);
  for (const { headers } of requests) assert.equal(headers.authorization, "Bearer x");
});

test("waits are listed, continued and cancelled, and events are sent", async () => {
  const requests: ReceivedRequest[] = [];
  const receipt = { id: "pay-77", source: "/shop", duplicate: false };
  const client = new PerdureClient({ baseUrl: "http://server/", retry: immediateRetry, fetch: fetchOf((_, n) => json(n === 0 ? { items: [] } : receipt), requests) });
  assert.deepEqual(await client.waits({ kind: "event", event: "payment.received" }), { items: [] });
  await client.continueWait(threadId, "w/1", { amount: 70 });
  await client.continueWait(threadId, "w/1");
  await client.cancelWait(threadId, "w/1", "sold out");
  assert.deepEqual(await client.sendEvent({ id: "pay-77", source: "/shop", type: "payment.received", data: { amount: 70 } }), receipt);
  await client.sendEvent({ source: "/shop", type: "payment.received" });
  assert.deepEqual(requests.map(({ method, path, query }) => [method, path, query]), [
    ["GET", "/v1/waits", "?kind=event&event=payment.received"],
    ["POST", `${thread}/approvals/w%2F1`, ""],
    ["POST", `${thread}/approvals/w%2F1`, ""],
    ["POST", `${thread}/approvals/w%2F1`, ""],
    ["POST", "/v1/events", ""],
    ["POST", "/v1/events", ""],
  ]);
  const bodies = requests.slice(1).map(({ body }) => JSON.parse(body));
  assert.deepEqual(bodies.slice(0, 4), [
    { decision: "answer", content: { data: { amount: 70 } } },
    { decision: "answer", content: { data: null } },
    { decision: "reject", reason: "sold out" },
    { specversion: "1.0", id: "pay-77", source: "/shop", type: "payment.received", data: { amount: 70 } },
  ]);
  assert.ok(bodies[4].id.length > 0, "an event without an ID gets one");
  assert.equal(requests[4]!.headers["content-type"], "application/cloudevents+json");
});

test("what a wait waits for is in the metadata of its interrupt", () => {
  const wait = { kind: "event", event: "payment.received", match: { orderId: "A-1" } };
  assert.deepEqual(awaitedBy({ metadata: { "perdure.wait": wait } }), wait);
  assert.equal(awaitedBy({}), undefined);
});

test("approvals are listed page by page", async () => {
  const requests: ReceivedRequest[] = [];
  const approval: Approval = {
    id: "int_1", threadId, runId: "r-1", agent: "support", toolCallId: "call_1", toolName: "issue_refund",
    args: { amount: 70 }, reason: "tool_call", argsDigest: "9f", message: "May it?", requestedAt: "2026-03-01T08:00:00Z",
    approvers: ["role:finance"], quorum: 1, decisions: [],
  };
  const replies: Reply[] = [problem(503, "inbox_unavailable"), json({ items: [approval], nextCursor: "c 1", eventsCursor: "e" }), json({ items: [], eventsCursor: "e" })];
  const client = new PerdureClient({ baseUrl: "http://server", retry: immediateRetry, fetch: fetchOf((_, n) => replies[n]!, requests) });
  const page = await client.approvals({ agent: "support", olderThan: "4h", limit: 1, cursor: undefined });
  assert.deepEqual(page, { items: [approval], nextCursor: "c 1", eventsCursor: "e" });
  assert.deepEqual(await client.approvals({ cursor: page.nextCursor }), { items: [], eventsCursor: "e" });
  const first = "?agent=support&olderThan=4h&limit=1";
  assert.deepEqual(requests.map(({ method, path, query }) => [method, path, query]), [
    ["GET", "/v1/approvals", first],
    ["GET", "/v1/approvals", first],
    ["GET", "/v1/approvals", "?cursor=c+1"],
  ]);
  assert.equal(requests[0]!.headers["content-type"], undefined);
  const refusing = new PerdureClient({ baseUrl: "http://server", fetch: fetchOf(() => problem(400, "invalid_cursor")) });
  await assert.rejects(refusing.approvals(), { status: 400, code: "invalid_cursor" });
});

test("an answer without the member repeated is not repeated", async () => {
  assert.deepEqual(await agentOf(() => json({ approval: { id: "a-1" } })).decide("a-1", { decision: "approve" }), {
    repeated: false,
    approval: { id: "a-1" },
  });
});

test("a command whose effect is unknown is sent again unchanged", async () => {
  const requests: ReceivedRequest[] = [];
  const failures: Reply[] = [problem(503, "unavailable"), { end: "refuse" }, { ...json({}), body: "{", end: "cut" }, { status: 504 }];
  const agent = agentOf((_, n) => failures[n] ?? json({ repeated: true }), requests);
  assert.deepEqual(await agent.sendToolResult(result), { repeated: true });
  assert.equal(requests.length, 5);
  for (const again of requests) assert.deepEqual(again, requests[0]);
});

test("a refusal is a ProblemError, and a conflict with a record an AnsweredError", async () => {
  const recorded = { toolCallId: "c-1", content: "41" };
  await assert.rejects(agentOf(() => problem(409, "already_answered", { recorded })).sendToolResult(result), (error) => {
    assert.ok(error instanceof AnsweredError && error instanceof ProblemError);
    assert.deepEqual([error.status, error.code, error.recorded], [409, "already_answered", recorded]);
    return true;
  });
  for (const [status, code, more] of [
    [403, "forbidden", {}],
    [404, "unknown_approval", {}],
    [410, "expired", { detail: "at noon" }],
    [422, "invalid_tool_result", { pointer: "/content" }],
  ] satisfies [number, string, object][]) {
    const requests: ReceivedRequest[] = [];
    await assert.rejects(agentOf(() => problem(status, code, more), requests).decide("a-1", { decision: "reject" }), (error) => {
      assert.ok(error instanceof ProblemError && !(error instanceof AnsweredError));
      assert.deepEqual(error.problem, { type: "about:blank", status, code, ...more });
      return true;
    });
    assert.equal(requests.length, 1);
  }
  const gateway = agentOf(() => ({ status: 413, body: "<html>too large</html>" })).sendToolResult(result);
  await assert.rejects(gateway, { message: "413 http_413: <html>too large</html>" });
});

test("a command that gets no answer rejects with a ConnectionLostError", async () => {
  const lost = agentOf(() => problem(503, "temporal_unavailable", { detail: "no frontend" })).sendToolResult(result);
  await assert.rejects(lost, (error) => {
    assert.ok(error instanceof ConnectionLostError);
    assert.match(error.message, /503 temporal_unavailable: no frontend/);
    return true;
  });
});

test("an aborted signal ends the attempts of a command", async () => {
  for (const script of [() => problem(503, "unavailable"), () => ({ end: "hang" })] satisfies Script[]) {
    const before = timers();
    const controller = new AbortController();
    const sending = agentOf(script, [], { retry: { baseDelay: 1e5 } }).sendToolResult(result, { signal: controller.signal });
    await settled();
    controller.abort(new Error("no longer wanted"));
    await assert.rejects(sending, /no longer wanted/);
    await settled();
    assert.equal(timers(), before);
  }
});

test("cancel reaches the run, and its stream ends with the run's last event", async (t) => {
  const requests: ReceivedRequest[] = [];
  let cancelled!: () => void;
  const cancel = new Promise<void>((resolve) => (cancelled = resolve));
  const fetch = fetchOf(({ path }) => (path.endsWith("/cancel") ? { status: 202 } : {}), requests);
  const agent = new PerdureAgent({
    baseUrl: "http://server",
    agent: "demo",
    threadId,
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      if (url.endsWith("/cancel")) cancelled();
      if (!url.endsWith("/runs")) return response;
      const frames = [frame(started("r/1"), "1"), frame(finished("r/1"), "2")];
      const encoder = new TextEncoder();
      const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
        if (frames.length === 1) await cancel;
        const text = frames.shift();
        if (text === undefined) controller.close();
        else controller.enqueue(encoder.encode(text));
      };
      return new Response(new ReadableStream({ pull }));
    },
  });
  let stopping: Promise<void> | undefined;
  const received = await read(t, agent, { run: { runId: "r/1" } }, () => void (stopping ??= agent.cancel("enough")));
  await stopping;
  assert.deepEqual(received.events, [started("r/1"), finished("r/1")]);
  assert.deepEqual([requests[1]!.path, requests[1]!.body], [`${thread}/runs/r%2F1/cancel`, '{"reason":"enough"}']);
});

test("a run can be cancelled before the server has received it", async (t) => {
  const requests: ReceivedRequest[] = [];
  let known = false;
  const script: Script = ({ path }, n) => {
    if (path.endsWith("/cancel")) return known ? { status: 202 } : problem(404, "unknown_run");
    known = n >= 4;
    return known ? { body: frame(started("r-1"), "1") + frame(finished("r-1"), "2") } : problem(503, "unavailable");
  };
  const agent = agentOf(script, requests, { retry: { attempts: 20, baseDelay: 1 } });
  const running = read(t, agent, { run: { runId: "r-1" } });
  await agent.cancel();
  assert.equal((await running).error, undefined);
  assert.equal(requests.filter(({ path }) => path.endsWith("/cancel")).length > 1, true);
});

test("the cancel of a run that the server refused rejects with unknown_run", async (t) => {
  const agent = agentOf(({ path }) => (path.endsWith("/cancel") ? problem(404, "unknown_run") : problem(400, "invalid_input")));
  await read(t, agent, { run: { runId: "r-1" } });
  await assert.rejects(agent.cancel(), { code: "unknown_run" });
});

test("a file is read as long as bytes arrive, and again after silence", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const bodies: ReadableStreamDefaultController<Uint8Array>[] = [];
  const told: string[] = [];
  const client = new PerdureClient({
    baseUrl: "http://server",
    retry: { baseDelay: 1 },
    fetch: async () => new Response(new ReadableStream({ start: (body) => void bodies.push(body) }), { headers: { "Content-Type": "text/plain" } }),
    onRetry: ({ error }) => told.push(error.name),
    onConnected: () => told.push("connected"),
    onReconnected: () => told.push("reconnected"),
  });
  const opening = client.openFile("file_1");
  await settled();
  for (const part of ["Hel", "lo"]) {
    t.mock.timers.tick(44_999);
    bodies[0]!.enqueue(new TextEncoder().encode(part));
    await settled();
  }
  t.mock.timers.tick(45_000);
  await settled();
  t.mock.timers.tick(1);
  await settled();
  bodies[1]!.enqueue(new TextEncoder().encode("Hello!"));
  bodies[1]!.close();
  const file = await opening;
  assert.deepEqual([await file.text(), file.type, bodies.length], ["Hello!", "text/plain", 2]);
  assert.deepEqual(told, ["SilenceError", "connected", "reconnected"]);
});
