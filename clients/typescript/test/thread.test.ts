import { PerdureAgent, type PerdureAgentConfig } from "@perdure/client";
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ReceivedRequest, fetchOf, problem, type Reply, type Script, serve } from "./scripted_server.js";
import { framesAfter, cursor, ends, type Event, finished, frame, immediateRetry, log, textMessage, started, until, read } from "./event_log.js";

const threadId = "t 1/ü";
const path = "/v1/threads/t%201%2F%C3%BC/events";
const question = { id: "u-1", role: "user", content: "Wie groß?" } as const;

// What a client without a cursor receives: the history, then the active run. Only the last event has a cursor.
const prelude = [
  started("r-0"),
  { type: "MESSAGES_SNAPSHOT", messages: [question] },
  finished("r-0"),
  started("r-1"),
  { type: "MESSAGES_SNAPSHOT", messages: [question] },
  { type: "TEXT_MESSAGE_START", messageId: "m-1", role: "assistant" },
  { type: "TEXT_MESSAGE_CONTENT", messageId: "m-1", delta: "größer als 世界 " },
] satisfies Event[];
const tail = [
  { type: "TEXT_MESSAGE_CONTENT", messageId: "m-1", delta: "🌍" },
  { type: "TEXT_MESSAGE_END", messageId: "m-1" },
  finished("r-1"),
] satisfies Event[];
const next = [started("r-2"), ...textMessage("m-2", "noch einer"), finished("r-2")];

const preludeFrames = prelude.map((event, i) => frame(event, i === prelude.length - 1 ? cursor(0) : undefined));
const tailFrames = log(tail, 1);
const nextFrames = log(next, 10);

const rest = ({ headers }: ReceivedRequest): Reply => {
  const id = headers["last-event-id"];
  return { body: (id === undefined ? [...preludeFrames, ...tailFrames] : framesAfter([frame({ type: "" }, cursor(0)), ...tailFrames], id)).join("") };
};

const agentOf = (script: Script, more: Partial<PerdureAgentConfig> = {}, requests: ReceivedRequest[] = []) =>
  new PerdureAgent({ baseUrl: "http://server", agent: "demo", threadId, retry: immediateRetry, fetch: fetchOf(script, requests), ...more });

test("connectAgent shows the history and the active run", async (t) => {
  const requests: ReceivedRequest[] = [];
  const agent = agentOf(rest, { headers: { Authorization: "Bearer x" } }, requests);
  agent.addMessage({ id: "draft", role: "user", content: "never sent" });
  const received = await read(t, agent, { connect: {} });
  assert.equal(received.error, undefined);
  assert.deepEqual(received.console, []);
  assert.deepEqual(received.events, [...prelude, ...tail]);
  assert.deepEqual(received.messages, [question, { id: "m-1", role: "assistant", content: "größer als 世界 🌍" }]);
  const version = process.env.AG_UI_GENERATION === "0" ? "" : "1.0";
  assert.deepEqual([requests[0]!.method, requests[0]!.path, requests[0]!.query], ["GET", path, `?follow=false&protocolVersion=${version}`]);
  assert.equal(requests[0]!.headers.authorization, "Bearer x");
  assert.equal(requests.length, 1);
});

test("a join that is interrupted begins again, and later continues after its cursor", async (t) => {
  const frames = [...preludeFrames, ...tailFrames];
  const bytes = new TextEncoder().encode(frames.join(""));
  const joined = new TextEncoder().encode(preludeFrames.join("")).length;
  for (const [at, end] of ends(frames)) {
    const requests: ReceivedRequest[] = [];
    const agent = agentOf((a, n) => (n === 0 ? { body: bytes.slice(0, at), end } : rest(a)), {}, requests);
    const received = await read(t, agent, { connect: {} });
    assert.deepEqual(received.events, [...prelude, ...tail], `${end} at byte ${at}`);
    assert.deepEqual(received.console, []);
    assert.equal(requests[1]!.headers["last-event-id"] === undefined, at < joined, `${end} at byte ${at}`);
    assert.equal(requests[1]!.query, requests[0]!.query);
  }
});

test("between runs, a complete response ends the stream and a broken one does not", async (t) => {
  for (const end of ["clean", "cut"] as const) {
    const requests: ReceivedRequest[] = [];
    const all = [...preludeFrames, ...tailFrames].join("");
    const received = await read(t, agentOf((_, n) => (n === 0 ? { body: all, end } : { status: 204 }), {}, requests), { connect: {} });
    assert.deepEqual(received.events, [...prelude, ...tail]);
    assert.equal(requests.length, end === "clean" ? 1 : 2);
  }
});

test("a thread without events has none", async (t) => {
  for (const reply of [{ status: 204 }, problem(404, "unknown_thread")] satisfies Reply[]) {
    const received = await read(t, agentOf(() => reply), { connect: {} });
    assert.deepEqual(received, { events: [], messages: [], console: [] });
  }
});

test("a refused join rejects", async (t) => {
  for (const reply of [problem(404, "not_found"), problem(410, "gone"), problem(403, "forbidden")]) {
    const received = await read(t, agentOf(() => reply), { connect: {} });
    assert.equal((received.error as { status?: number }).status, reply.status);
    assert.match(String(received.error), new RegExp(JSON.parse(reply.body as string).code));
  }
});

test("an agent follows run after run until it is aborted", async (t) => {
  const server = await serve(t, ({ headers }) => {
    const id = headers["last-event-id"];
    if (id === undefined) return { body: preludeFrames.join("") + ": heartbeat\n\n" + tailFrames.join(""), end: "clean" };
    if (id === cursor(3)) return { body: nextFrames.slice(0, 2).join(""), end: "clean" };
    return { body: framesAfter(nextFrames, id).join(""), end: "hang" };
  });
  const agent = new PerdureAgent({ baseUrl: server.url, agent: "demo", threadId, retry: immediateRetry, follow: true });
  const leave = ({ runId, type }: Event) => void (type === "RUN_FINISHED" && runId === "r-2" && setImmediate(() => agent.abortRun()));
  const received = await read(t, agent, { connect: {} }, leave);
  assert.equal(received.error, undefined);
  assert.deepEqual(received.console, []);
  assert.deepEqual(received.events.slice(0, -1), [...prelude, ...tail, ...next]);
  assert.equal(received.events.at(-1)?.code, "abort");
  assert.equal(server.requests[0]!.query.includes("follow=true"), true);
  await until(() => server.open() === 0);
  // An agent that was aborted once can connect again.
  const again = await read(t, agent, { connect: {} }, leave);
  assert.deepEqual(again.events, received.events);
});

test("an agent that leaves a thread after a failed run reports nothing", async (t) => {
  const failed = [started("r-1"), { type: "RUN_ERROR", message: "no model", code: "unavailable" }] satisfies Event[];
  const agent = agentOf(() => ({ body: log(failed).join(""), end: "hang" }));
  const leave = ({ type }: Event) => void (type === "RUN_ERROR" && setImmediate(() => agent.abortRun()));
  const received = await read(t, agent, { connect: { follow: true } }, leave);
  assert.equal(received.error, undefined);
  assert.deepEqual(received.console, []);
  assert.deepEqual(received.events, failed);
});

test("a lost connection ends with RUN_ERROR in every state", async (t) => {
  const failed: Event = { type: "RUN_ERROR", message: "no model", code: "unavailable" };
  for (const [name, shown] of [
    ["no event", []],
    ["an active run", [started("r-1")]],
    ["a finished run", [started("r-1"), finished("r-1")]],
    ["a failed run", [started("r-1"), failed]],
  ] satisfies [string, Event[]][]) {
    const script: Script = (_, n) => (n === 0 ? { body: log(shown).join(""), end: "cut" } : { end: "refuse" });
    const received = await read(t, agentOf(script), { connect: { follow: true } });
    assert.equal(received.error, undefined, name);
    assert.deepEqual(received.console, [], name);
    assert.equal(received.events.at(-1)?.code, "connection_lost", name);
  }
});

test("an agent with open interrupts can connect, and receives the decision of another client", async (t) => {
  const interrupts = [{ id: "i-1", reason: "tool_call" }];
  const waits = log([started("r-1"), { ...finished("r-1"), outcome: { type: "interrupt", interrupts } }]);
  let thread: Reply = { status: 204 };
  const agent = agentOf(({ method }) => (method === "POST" ? { body: waits.join("") } : thread));
  await read(t, agent, { run: { runId: "r-1" } });
  assert.equal((await read(t, agent, { connect: {} })).error, undefined);
  assert.deepEqual(agent.pendingInterrupts.map(({ id }) => id), ["i-1"]);
  thread = { body: [...preludeFrames, ...tailFrames].join("") };
  assert.equal((await read(t, agent, { connect: {} })).error, undefined);
  assert.deepEqual(agent.pendingInterrupts, []);
});

test("cancel applies to the run that the stream has reached", async (t) => {
  const requests: ReceivedRequest[] = [];
  const agent = agentOf(({ method }) => (method === "POST" ? { status: 202 } : { body: preludeFrames.join(""), end: "hang" }), {}, requests);
  await assert.rejects(agent.cancel(), /no run to cancel/);
  let shown = 0;
  const reading = read(t, agent, { connect: { follow: true } }, () => void shown++);
  await until(() => shown === prelude.length);
  await agent.cancel("enough");
  agent.abortRun();
  await reading;
  assert.equal(requests[1]!.path, "/v1/threads/t%201%2F%C3%BC/runs/r-1/cancel");
});

test("the listeners of an agent learn of a lost connection, a retraction and a decision", async (t) => {
  const interrupt = { id: "i-1", reason: "tool_call", toolCallId: "c-1" };
  const stream = log([
    started("r-1"),
    { type: "CUSTOM", name: "perdure.retracted", value: { reason: "retry" } },
    { type: "CUSTOM", name: "perdure.approval", value: interrupt },
    { type: "CUSTOM", name: "perdure.approval", value: { ...interrupt, id: "i-2", toolCallId: "c-2" } },
    { type: "TOOL_CALL_RESULT", messageId: "m-2", toolCallId: "c-1", content: "ok", role: "tool" },
    { ...finished("r-1"), outcome: { type: "interrupt", interrupts: [{ ...interrupt, id: "i-2", toolCallId: "c-2" }] } },
    started("r-2"),
    finished("r-2"),
  ]);
  const learned: unknown[] = [];
  const script: Script = ({ headers }, n) => ({ body: framesAfter(stream, headers["last-event-id"]).slice(0, n === 0 ? 2 : undefined).join(""), end: n === 0 ? "cut" : "clean" });
  const agent = agentOf(script, {
    onRetry: ({ attempt }) => learned.push(["retry", attempt]),
    onConnected: () => learned.push("connected"),
    onReconnected: () => learned.push("reconnected"),
    onRetracted: ({ reason }) => learned.push(["retracted", reason]),
    onDecided: ({ threadId: of, interrupt: { id } }) => learned.push(["decided", of, id]),
  });
  const received = await read(t, agent, { connect: {} });
  assert.deepEqual([received.error, received.console], [undefined, []]);
  assert.deepEqual(learned, [
    "connected",
    ["retracted", "retry"],
    ["retry", 1],
    "connected",
    "reconnected",
    ["decided", threadId, "i-1"],
    ["decided", threadId, "i-2"],
  ]);
});
