import { HttpAgent } from "@ag-ui/client";
import { PerdureAgent, type PerdureAgentConfig, type Retry } from "@perdure/client";
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { type Asked, fetchOf, problem, type Reply, type Script, serve } from "./server.js";
import { behind, cursor, ends, type Event, finished, frame, hasty, log, says, settled, started, timers, until, watch } from "./stream.js";

const threadId = "t 1/ü";
const events = [
  started("r-1"),
  ...says("m-1", "Grüße, ", "世界 🌍", ""),
  { type: "STATE_SNAPSHOT", snapshot: { type: "RUN_FINISHED", note: '"RUN_ERROR"' } },
  { type: "TOOL_CALL_START", toolCallId: "c-1", toolCallName: "find", parentMessageId: "m-1" },
  { type: "TOOL_CALL_ARGS", toolCallId: "c-1", delta: '{"q":"\\n\\n"}' },
  { type: "TOOL_CALL_END", toolCallId: "c-1" },
  { type: "TOOL_CALL_RESULT", messageId: "m-2", toolCallId: "c-1", content: "ok", role: "tool" },
  finished("r-1"),
] satisfies Event[];
const frames = log(events);
const bytesOf = (text: string) => new TextEncoder().encode(text);
const whole = bytesOf(frames.join(""));
const eventsPath = "/v1/threads/t%201%2F%C3%BC/runs/r-1/events";

const agentOf = (script: Script, more: Partial<PerdureAgentConfig> = {}, asked: Asked[] = [], size?: number) =>
  new PerdureAgent({ baseUrl: "http://server", agent: "demo", threadId, retry: hasty, fetch: fetchOf(script, asked, size), ...more });

// The server as it is: all of a run, or what is behind a cursor.
const rest = ({ headers }: Asked): Reply => ({ body: behind(frames, headers["last-event-id"]).join("") });

const run = (t: TestContext, agent: PerdureAgent, onEvent?: (event: Event) => void) => watch(t, agent, { run: { runId: "r-1" } }, onEvent);

async function uncut(t: TestContext) {
  const seen = await run(t, agentOf(rest));
  assert.deepEqual(seen.events, events);
  assert.deepEqual(seen.console, []);
  assert.equal(seen.messages.length, 2);
  return seen;
}

const lastOf = (list: Event[]) => list.at(-1);

test("the generation of AG-UI is the one that is tested", async (t) => {
  const asked: Asked[] = [];
  await run(t, agentOf(rest, {}, asked));
  assert.equal("protocolVersion" in JSON.parse(asked[0]!.body), process.env.AG_UI_GENERATION !== "0");
});

test("the newest cursor goes with the next run, and with nothing else", async (t) => {
  const asked: Asked[] = [];
  const agent = agentOf(rest, {}, asked);
  const sent = () => JSON.parse(asked.at(-1)!.body).forwardedProps;
  await run(t, agent);
  assert.deepEqual(sent(), {});
  const last = frames.at(-1)!.split("\n")[0]!.slice("id: ".length);
  await watch(t, agent, { run: { runId: "r-1", forwardedProps: { mine: 1, perdure: { hold: true } } } });
  assert.deepEqual(sent(), { mine: 1, perdure: { seen: last, hold: true } });
  await run(t, agent.clone());
  assert.deepEqual(sent(), { perdure: { seen: last } });
  agent.threadId = "another";
  await watch(t, agent, { run: { runId: "r-1" } });
  assert.deepEqual(sent(), {});
});

test("a connection that ends at any byte is continued", async (t) => {
  const expected = await uncut(t);
  for (const [at, end] of ends(frames)) {
    const asked: Asked[] = [];
    const agent = agentOf((a, n) => (n === 0 ? { body: whole.slice(0, at), end } : rest(a)), {}, asked);
    assert.deepEqual(await run(t, agent), expected, `${end} at byte ${at}`);
    assert.equal(asked.length, 2, `${end} at byte ${at}`);
    const last = asked[1]!;
    if (at < bytesOf(frames[0]!).length) assert.deepEqual(last, asked[0]);
    else assert.deepEqual([last.method, last.path, last.body], ["GET", eventsPath, ""]);
  }
});

test("connections that end after every few bytes are continued", async (t) => {
  const expected = await uncut(t);
  for (const allowance of [160, 201, 333]) {
    const asked: Asked[] = [];
    const script: Script = (a) => {
      const bytes = bytesOf(rest(a).body as string);
      return { body: bytes.slice(0, allowance + asked.length), end: "cut" };
    };
    assert.deepEqual(await run(t, agentOf(script, {}, asked)), expected);
    assert.ok(asked.length > 3);
  }
});

test("bytes may come in any portions, with any line ends", async (t) => {
  const expected = await uncut(t);
  for (const size of [1, 2, 3, 5, 1000]) {
    assert.deepEqual(await run(t, agentOf(rest, {}, [], size)), expected, `${size} at once`);
    const crlf: Script = () => ({ body: frames.join("").replaceAll("\n", "\r\n") });
    assert.deepEqual(await run(t, agentOf(crlf, {}, [], size)), expected, `${size} at once, CR LF`);
  }
});

test("over HTTP, too", async (t) => {
  const expected = await uncut(t);
  const server = await serve(t, (asked, n) => {
    const body = bytesOf(rest(asked).body as string);
    if (n === 2) return { status: 503, headers: { "Retry-After": "0" } };
    if (n === 4) return { end: "refuse" };
    return n < 7 ? { body: body.slice(0, 10 + n * 60), end: n % 2 ? "cut" : "clean" } : { body };
  });
  const agent = new PerdureAgent({ url: `${server.url}/v1/agents/demo/runs`, threadId, retry: hasty, headers: { Authorization: "Bearer x" } });
  assert.deepEqual(await run(t, agent), expected);
  assert.equal(server.asked.length, 8);
  assert.deepEqual(new Set(server.asked.map(({ headers }) => headers.authorization)), new Set(["Bearer x"]));
  assert.equal(server.asked.at(-1)!.headers["content-type"], undefined);
});

test("as long as it is unknown whether the run began, the same input is posted again", async (t) => {
  const asked: Asked[] = [];
  const failures: Reply[] = [problem(503, "unavailable"), { end: "refuse" }, { status: 502, body: "<html>" }, { body: ": heartbeat\n\n", end: "cut" }];
  const agent = agentOf((a, n) => failures[n] ?? rest(a), {}, asked);
  assert.deepEqual(await run(t, agent), await uncut(t));
  assert.equal(asked.length, 5);
  for (const again of asked) assert.deepEqual(again, asked[0]);
});

test("the server says when to come back", async (t) => {
  const retries: Retry[] = [];
  const controller = new AbortController();
  const onRetry = (retry: Retry) => {
    retries.push(retry);
    if (retries.length === 2) controller.abort();
  };
  const later = { ...problem(503, "unavailable"), headers: { "Retry-After": "7" } };
  const script: Script = (_, n) => (n === 0 ? { body: frames[0]!, end: "cut" } : later);
  const agent = agentOf(script, { retry: { baseDelay: 0 }, onRetry });
  await watch(t, agent, { run: { runId: "r-1", abortController: controller } });
  assert.deepEqual(retries.map(({ attempt, delay }) => [attempt, delay]), [[1, 0], [2, 7000]]);
  assert.match(retries[1]!.error.message, /503 unavailable/);
});

test("a listener that fails does not end the run", async (t) => {
  const expected = await uncut(t);
  const thrown: (() => void)[] = [];
  t.mock.method(globalThis, "queueMicrotask", (callback: () => void) => thrown.push(callback));
  const onRetry = () => {
    throw new Error("not my run");
  };
  const agent = agentOf((a, n) => (n === 0 ? { end: "refuse" } : rest(a)), { onRetry });
  assert.deepEqual(await run(t, agent), expected);
  assert.throws(thrown[0]!, /not my run/);
});

test("it gives up with RUN_ERROR", async (t) => {
  for (const [name, script, attempts] of [
    ["nobody is there", () => ({ end: "refuse" }), 6],
    ["nobody comes back", (_, n) => (n === 0 ? { body: frames.slice(0, 4).join(""), end: "cut" } : { end: "refuse" }), 6],
    ["no connection brings anything", (_, n) => ({ body: n === 0 ? frames.slice(0, 4).join("") : "id: 0", end: "cut" }), 6],
    ["the server never can", () => problem(503, "unavailable"), 6],
    ["nothing more, but no end", (_, n) => (n === 0 ? { body: frames[0]!, end: "cut" } : { status: 204 }), 2],
  ] satisfies [string, Script, number][]) {
    const asked: Asked[] = [];
    const seen = await run(t, agentOf(script, {}, asked));
    assert.equal(seen.error, undefined, name);
    assert.deepEqual(seen.console, [], name);
    assert.equal(lastOf(seen.events)?.type, "RUN_ERROR", name);
    assert.equal(lastOf(seen.events)?.code, "connection_lost", name);
    assert.equal(asked.length, attempts, name);
  }
});

test("it gives up when the time is over", async (t) => {
  const later = { ...problem(503, "unavailable"), headers: { "Retry-After": "2" } };
  const asked: Asked[] = [];
  const seen = await run(t, agentOf(() => later, { retry: { giveUpAfter: 1000 } }, asked));
  assert.equal(lastOf(seen.events)?.code, "connection_lost");
  assert.equal(asked.length, 1);
});

test("a cursor that the server refuses is told by RUN_ERROR", async (t) => {
  for (const [reply, code] of [
    [problem(410, "log_replaced", { detail: "attach anew" }), "log_replaced"],
    [problem(410, "gone"), "gone"],
    [{ status: 410, body: "Gone" }, "log_replaced"],
    [problem(400, "invalid_cursor"), "invalid_cursor"],
    [{ status: 401, body: "who are you?" }, "http_401"],
  ] satisfies [Reply, string][]) {
    const asked: Asked[] = [];
    const seen = await run(t, agentOf((_, n) => (n === 0 ? { body: frames.slice(0, 3).join(""), end: "cut" } : reply), {}, asked));
    assert.equal(seen.error, undefined);
    assert.deepEqual(seen.console, []);
    assert.deepEqual(seen.events.slice(0, -1), events.slice(0, 3));
    assert.equal(lastOf(seen.events)?.code, code);
    assert.equal(asked.length, 2);
  }
});

test("a run that is refused fails as with the stock agent", async (t) => {
  const script: Script = () => problem(409, "busy", { activeRun: "r-0" });
  const outcomes = [];
  const stock = new HttpAgent({ url: "http://server/v1/agents/demo/runs", threadId, fetch: fetchOf(script) });
  for (const agent of [agentOf(script), stock as PerdureAgent]) outcomes.push(await run(t, agent));
  assert.deepEqual(outcomes[0], outcomes[1]);
  assert.equal((outcomes[0]!.error as { status?: number }).status, 409);
});

test("a silent connection is taken for lost", async (t) => {
  const expected = await uncut(t);
  const server = await serve(t, (asked, n) => (n === 0 ? { body: frames.slice(0, 3).join("") + "id: 0", end: "hang" } : rest(asked)));
  const retries: Retry[] = [];
  const agent = new PerdureAgent({ baseUrl: server.url, agent: "demo", threadId, retry: hasty, silence: 50, onRetry: (r) => retries.push(r) });
  assert.deepEqual(await run(t, agent), expected);
  assert.equal(retries[0]?.error.name, "SilenceError");
  await until(() => server.open() === 0);
});

test("heartbeats keep a connection, however long it has nothing to say", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let send!: ReadableStreamDefaultController<Uint8Array>;
  let asked = 0;
  const fetch = async () => (asked++, new Response(new ReadableStream({ start: (controller) => void (send = controller) })));
  const agent = new PerdureAgent({ baseUrl: "http://server", agent: "demo", threadId, fetch });
  const running = run(t, agent);
  await settled();
  for (const text of [": heartbeat\n\n", ": heartbeat\n\n", ...frames]) {
    t.mock.timers.tick(44_999);
    send.enqueue(bytesOf(text));
    await settled();
  }
  assert.deepEqual((await running).events, events);
  assert.equal(asked, 1);
});

test("a run that has nothing to say for long is not given up because its connections are short", async (t) => {
  const asked: Asked[] = [];
  const script: Script = (a, n) => {
    if (n === 0) return { body: frames.slice(0, 2).join(""), end: "cut" };
    return n < 20 ? { body: ": heartbeat\n\n", end: n % 2 ? "cut" : "clean" } : rest(a);
  };
  assert.deepEqual(await run(t, agentOf(script, {}, asked)), await uncut(t));
  assert.equal(asked.length, 21);
});

test("aborted, it ends at once, wherever it waits", async (t) => {
  for (const [name, reply, more, aborted] of [
    ["for headers", undefined, {}, false],
    ["for the next frame", { body: frames.slice(0, 2).join(""), end: "hang" }, {}, true],
    ["to come back", { body: frames.slice(0, 2).join(""), end: "cut" }, { retry: { baseDelay: 1e6 }, silence: 1e6 }, true],
    ["to try again", { end: "refuse" }, { retry: { baseDelay: 1e5 } }, false],
  ] satisfies [string, Reply | undefined, Partial<PerdureAgentConfig>, boolean][]) {
    for (const reason of [undefined, "component unmounted", new Error("no more")]) {
      const before = timers();
      const waiting = reply ? {} : { fetch: () => new Promise<Response>(() => {}) };
      const agent = agentOf(() => reply ?? {}, { ...more, ...waiting });
      const running = run(t, agent);
      await settled();
      if (reason === undefined) agent.abortRun();
      else agent.abortController.abort(reason);
      const seen = await running;
      assert.equal(seen.error, undefined, name);
      assert.deepEqual(seen.console, [], name);
      assert.equal(lastOf(seen.events)?.code, aborted ? "abort" : undefined, name);
      await settled();
      assert.equal(timers(), before, name);
    }
  }
});

test("who leaves or is thrown out keeps no connection", async (t) => {
  const server = await serve(t, (_, n) => ({ body: frames.slice(0, 2).join("") + (n === 1 ? frames[1] : ""), end: "hang" }));
  const agent = new PerdureAgent({ baseUrl: server.url, agent: "demo", threadId });
  const running = run(t, agent, ({ type }) => void (type === "TEXT_MESSAGE_START" && agent.detachActiveRun()));
  assert.equal((await running).error, undefined);
  await until(() => server.open() === 0);
  const refused = await run(t, agent.clone());
  assert.match(String(refused.error), /already in progress/);
  await until(() => server.open() === 0);
  assert.equal(server.asked.length, 2);
});

test("a connection is let go before the next one begins", async (t) => {
  const signals: AbortSignal[] = [];
  const play = fetchOf((a, n) => (n < 3 ? { body: frames[n]! } : rest(a)));
  const agent = agentOf(rest, {
    fetch: (url, init) => {
      assert.ok(signals.every(({ aborted }) => aborted));
      signals.push(init.signal!);
      return play(url, init);
    },
  });
  assert.deepEqual(await run(t, agent), await uncut(t));
  assert.equal(signals.length, 4);
});

test("a run may be answered with the rest of another one first", async (t) => {
  const other = log([started("r-0"), ...says("m-0", "before"), finished("r-0")]);
  const wanted = log([started("r-1"), ...says("m-1", "after"), finished("r-1")], 10);
  const asked: Asked[] = [];
  const script: Script = ({ method, path, headers }, n) => {
    const id = headers["last-event-id"];
    if (n === 0) return { body: other.slice(0, 3).join(""), end: "cut" };
    if (method === "POST") return { body: wanted.slice(0, 2).join("") };
    return { body: behind(path.includes("r-0") ? other : wanted, id).join("") };
  };
  const seen = await run(t, agentOf(script, {}, asked));
  assert.deepEqual(seen.messages.map(({ content }) => content), ["before", "after"]);
  assert.deepEqual(
    asked.map(({ method, path, headers }) => [method, path, headers["last-event-id"]]),
    [
      ["POST", "/v1/agents/demo/runs", undefined],
      ["GET", eventsPath.replace("r-1", "r-0"), cursor(2)],
      ["POST", "/v1/agents/demo/runs", undefined],
      ["GET", eventsPath, cursor(11)],
    ],
  );
});

test("the stream ends with the run, whatever the connection does", async (t) => {
  const seen = await run(t, agentOf(() => ({ body: frames.join("") + frame({ type: "CUSTOM", name: "late", value: 1 }, "x"), end: "hang" })));
  assert.deepEqual(seen, await uncut(t));
});

test("a clone comes back by itself", async (t) => {
  const expected = await uncut(t);
  const asked: Asked[] = [];
  const original = agentOf((a) => (a.method === "POST" ? { body: frames[0]!, end: "cut" } : rest(a)), {}, asked);
  const clones = [original.clone(), original.clone().clone()];
  for (const [i, clone] of clones.entries()) {
    assert.ok(clone instanceof PerdureAgent);
    clone.headers = { "X-Clone": String(i) };
  }
  for (const seen of await Promise.all(clones.map((clone) => run(t, clone)))) assert.deepEqual(seen.events, expected.events);
  assert.deepEqual(asked.map(({ headers }) => headers["x-clone"]).sort(), ["0", "0", "1", "1"]);
  assert.deepEqual(original.messages, []);
});

test("run works by itself, too, as middleware calls it", async (t) => {
  const used = agentOf(rest);
  await run(t, used);
  for (const agent of [used, used.clone()]) {
    const seen: Event[] = [];
    const input = { threadId, runId: "r-1", messages: [], tools: [], context: [], state: {}, forwardedProps: {} };
    await new Promise<void>((complete, error) => {
      agent.run(input).subscribe({ next: (event) => void seen.push(event as unknown as Event), complete, error });
    });
    assert.deepEqual(seen, events);
  }
});
