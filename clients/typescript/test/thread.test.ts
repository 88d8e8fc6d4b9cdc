import { PerdureAgent, type PerdureAgentConfig } from "@perdure/client";
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Asked, fetchOf, problem, type Reply, type Script, serve } from "./server.js";
import { behind, cursor, ends, type Event, finished, frame, hasty, log, says, started, until, watch } from "./stream.js";

const threadId = "t 1/ü";
const path = "/v1/threads/t%201%2F%C3%BC/events";
const question = { id: "u-1", role: "user", content: "Wie groß?" } as const;

// What a fresh client gets: the history, then the active run as far as it is, with a cursor at the end of that only.
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
const next = [started("r-2"), ...says("m-2", "noch einer"), finished("r-2")];

const preludeFrames = prelude.map((event, i) => frame(event, i === prelude.length - 1 ? cursor(0) : undefined));
const tailFrames = log(tail, 1);
const nextFrames = log(next, 10);

const rest = ({ headers }: Asked): Reply => {
  const id = headers["last-event-id"];
  return { body: (id === undefined ? [...preludeFrames, ...tailFrames] : behind([frame({ type: "" }, cursor(0)), ...tailFrames], id)).join("") };
};

const agentOf = (script: Script, more: Partial<PerdureAgentConfig> = {}, asked: Asked[] = []) =>
  new PerdureAgent({ baseUrl: "http://server", agent: "demo", threadId, retry: hasty, fetch: fetchOf(script, asked), ...more });

test("connectAgent shows the history and the active run", async (t) => {
  const asked: Asked[] = [];
  const agent = agentOf(rest, { headers: { Authorization: "Bearer x" } }, asked);
  agent.addMessage({ id: "draft", role: "user", content: "never sent" });
  const seen = await watch(t, agent, { connect: {} });
  assert.equal(seen.error, undefined);
  assert.deepEqual(seen.console, []);
  assert.deepEqual(seen.events, [...prelude, ...tail]);
  assert.deepEqual(seen.messages, [question, { id: "m-1", role: "assistant", content: "größer als 世界 🌍" }]);
  const version = process.env.AG_UI_GENERATION === "0" ? "" : "1.0";
  assert.deepEqual([asked[0]!.method, asked[0]!.path, asked[0]!.query], ["GET", path, `?follow=false&protocolVersion=${version}`]);
  assert.equal(asked[0]!.headers.authorization, "Bearer x");
  assert.equal(asked.length, 1);
});

test("joining is begun anew, and goes on behind it, at any byte", async (t) => {
  const frames = [...preludeFrames, ...tailFrames];
  const bytes = new TextEncoder().encode(frames.join(""));
  const joined = new TextEncoder().encode(preludeFrames.join("")).length;
  for (const [at, end] of ends(frames)) {
    const asked: Asked[] = [];
    const agent = agentOf((a, n) => (n === 0 ? { body: bytes.slice(0, at), end } : rest(a)), {}, asked);
    const seen = await watch(t, agent, { connect: {} });
    assert.deepEqual(seen.events, [...prelude, ...tail], `${end} at byte ${at}`);
    assert.deepEqual(seen.console, []);
    assert.equal(asked[1]!.headers["last-event-id"] === undefined, at < joined, `${end} at byte ${at}`);
    assert.equal(asked[1]!.query, asked[0]!.query);
  }
});

test("between runs, a clean end is the end and a cut is not", async (t) => {
  for (const end of ["clean", "cut"] as const) {
    const asked: Asked[] = [];
    const all = [...preludeFrames, ...tailFrames].join("");
    const seen = await watch(t, agentOf((_, n) => (n === 0 ? { body: all, end } : { status: 204 }), {}, asked), { connect: {} });
    assert.deepEqual(seen.events, [...prelude, ...tail]);
    assert.equal(asked.length, end === "clean" ? 1 : 2);
  }
});

test("a thread with nothing to show is shown as nothing", async (t) => {
  for (const reply of [{ status: 204 }, problem(404, "unknown_thread")] satisfies Reply[]) {
    const seen = await watch(t, agentOf(() => reply), { connect: {} });
    assert.deepEqual(seen, { events: [], messages: [], console: [] });
  }
});

test("a join that is refused fails", async (t) => {
  for (const reply of [problem(404, "not_found"), problem(410, "gone"), problem(403, "forbidden")]) {
    const seen = await watch(t, agentOf(() => reply), { connect: {} });
    assert.equal((seen.error as { status?: number }).status, reply.status);
    assert.match(String(seen.error), new RegExp(JSON.parse(reply.body as string).code));
  }
});

test("following goes on, run after run, until it is aborted", async (t) => {
  const server = await serve(t, ({ headers }) => {
    const id = headers["last-event-id"];
    if (id === undefined) return { body: preludeFrames.join("") + ": heartbeat\n\n" + tailFrames.join(""), end: "clean" };
    if (id === cursor(3)) return { body: nextFrames.slice(0, 2).join(""), end: "clean" };
    return { body: behind(nextFrames, id).join(""), end: "hang" };
  });
  const agent = new PerdureAgent({ baseUrl: server.url, agent: "demo", threadId, retry: hasty, follow: true });
  const leave = ({ runId, type }: Event) => void (type === "RUN_FINISHED" && runId === "r-2" && setImmediate(() => agent.abortRun()));
  const seen = await watch(t, agent, { connect: {} }, leave);
  assert.equal(seen.error, undefined);
  assert.deepEqual(seen.console, []);
  assert.deepEqual(seen.events.slice(0, -1), [...prelude, ...tail, ...next]);
  assert.equal(seen.events.at(-1)?.code, "abort");
  assert.equal(server.asked[0]!.query.includes("follow=true"), true);
  await until(() => server.open() === 0);
  // An agent that was aborted once can connect again.
  const again = await watch(t, agent, { connect: {} }, leave);
  assert.deepEqual(again.events, seen.events);
});

test("a connection that is lost for good is told in every state", async (t) => {
  const failed: Event = { type: "RUN_ERROR", message: "no model", code: "unavailable" };
  for (const [name, shown] of [
    ["nothing was shown", []],
    ["a run goes on", [started("r-1")]],
    ["the last run has ended", [started("r-1"), finished("r-1")]],
    ["the last run has failed", [started("r-1"), failed]],
  ] satisfies [string, Event[]][]) {
    const script: Script = (_, n) => (n === 0 ? { body: log(shown).join(""), end: "cut" } : { end: "refuse" });
    const seen = await watch(t, agentOf(script), { connect: { follow: true } });
    assert.equal(seen.error, undefined, name);
    assert.deepEqual(seen.console, [], name);
    assert.equal(seen.events.at(-1)?.code, "connection_lost", name);
  }
});

test("who waits for an answer may watch how somebody else gives it", async (t) => {
  const interrupts = [{ id: "i-1", reason: "tool_call" }];
  const waits = log([started("r-1"), { ...finished("r-1"), outcome: { type: "interrupt", interrupts } }]);
  let thread: Reply = { status: 204 };
  const agent = agentOf(({ method }) => (method === "POST" ? { body: waits.join("") } : thread));
  await watch(t, agent, { run: { runId: "r-1" } });
  assert.equal((await watch(t, agent, { connect: {} })).error, undefined);
  assert.deepEqual(agent.pendingInterrupts.map(({ id }) => id), ["i-1"]);
  thread = { body: [...preludeFrames, ...tailFrames].join("") };
  assert.equal((await watch(t, agent, { connect: {} })).error, undefined);
  assert.deepEqual(agent.pendingInterrupts, []);
});

test("cancel means the run that is shown now", async (t) => {
  const asked: Asked[] = [];
  const agent = agentOf(({ method }) => (method === "POST" ? { status: 202 } : { body: preludeFrames.join(""), end: "hang" }), {}, asked);
  await assert.rejects(agent.cancel(), /no run to cancel/);
  let shown = 0;
  const watching = watch(t, agent, { connect: { follow: true } }, () => void shown++);
  await until(() => shown === prelude.length);
  await agent.cancel("enough");
  agent.abortRun();
  await watching;
  assert.equal(asked[1]!.path, "/v1/threads/t%201%2F%C3%BC/runs/r-1/cancel");
});
