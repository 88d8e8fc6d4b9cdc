import { HttpAgent } from "@ag-ui/client";
import { PerdureAgent, type PerdureAgentConfig, type Retry } from "@perdure/client";
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { type ReceivedRequest, fetchOf, problem, type Reply, type Script, serve } from "./scripted_server.js";
import { framesAfter, cursor, ends, type Event, finished, frame, immediateRetry, log, textMessage, settled, started, timers, until, read } from "./event_log.js";

const threadId = "t 1/ü";
const events = [
  started("r-1"),
  ...textMessage("m-1", "Grüße, ", "世界 🌍", ""),
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

const agentOf = (script: Script, more: Partial<PerdureAgentConfig> = {}, requests: ReceivedRequest[] = [], size?: number) =>
  new PerdureAgent({ baseUrl: "http://server", agent: "demo", threadId, retry: immediateRetry, fetch: fetchOf(script, requests, size), ...more });

// Responds like the server: with the whole run, or with the events after the cursor.
const rest = ({ headers }: ReceivedRequest): Reply => ({ body: framesAfter(frames, headers["last-event-id"]).join("") });

const run = (t: TestContext, agent: PerdureAgent, onEvent?: (event: Event) => void) => read(t, agent, { run: { runId: "r-1" } }, onEvent);

async function unbroken(t: TestContext) {
  const received = await run(t, agentOf(rest));
  assert.deepEqual(received.events, events);
  assert.deepEqual(received.console, []);
  assert.equal(received.messages.length, 2);
  return received;
}

const lastOf = (list: Event[]) => list.at(-1);

test("the agent declares the protocol version of the installed AG-UI client", async (t) => {
  const requests: ReceivedRequest[] = [];
  await run(t, agentOf(rest, {}, requests));
  assert.equal("protocolVersion" in JSON.parse(requests[0]!.body), process.env.AG_UI_GENERATION !== "0");
});

test("an input has the newest cursor of its own thread", async (t) => {
  const requests: ReceivedRequest[] = [];
  const agent = agentOf(rest, {}, requests);
  const sent = () => JSON.parse(requests.at(-1)!.body).forwardedProps;
  await run(t, agent);
  assert.deepEqual(sent(), {});
  const last = frames.at(-1)!.split("\n")[0]!.slice("id: ".length);
  await read(t, agent, { run: { runId: "r-1", forwardedProps: { mine: 1, perdure: { hold: true } } } });
  assert.deepEqual(sent(), { mine: 1, perdure: { seen: last, hold: true } });
  await run(t, agent.clone());
  assert.deepEqual(sent(), { perdure: { seen: last } });
  agent.threadId = "another";
  await read(t, agent, { run: { runId: "r-1" } });
  assert.deepEqual(sent(), {});
});

test("a run continues after a connection that ends at any byte", async (t) => {
  const expected = await unbroken(t);
  for (const [at, end] of ends(frames)) {
    const requests: ReceivedRequest[] = [];
    const agent = agentOf((a, n) => (n === 0 ? { body: whole.slice(0, at), end } : rest(a)), {}, requests);
    assert.deepEqual(await run(t, agent), expected, `${end} at byte ${at}`);
    assert.equal(requests.length, 2, `${end} at byte ${at}`);
    const last = requests[1]!;
    if (at < bytesOf(frames[0]!).length) assert.deepEqual(last, requests[0]);
    else assert.deepEqual([last.method, last.path, last.body], ["GET", eventsPath, ""]);
  }
});

test("a run continues over connections that end after a few frames", async (t) => {
  const expected = await unbroken(t);
  for (const allowance of [160, 201, 333]) {
    const requests: ReceivedRequest[] = [];
    const script: Script = (a) => {
      const bytes = bytesOf(rest(a).body as string);
      return { body: bytes.slice(0, allowance + requests.length), end: "cut" };
    };
    assert.deepEqual(await run(t, agentOf(script, {}, requests)), expected);
    assert.ok(requests.length > 3);
  }
});

test("chunks have any size, and lines end with LF or CR LF", async (t) => {
  const expected = await unbroken(t);
  for (const size of [1, 2, 3, 5, 1000]) {
    assert.deepEqual(await run(t, agentOf(rest, {}, [], size)), expected, `${size} at once`);
    const crlf: Script = () => ({ body: frames.join("").replaceAll("\n", "\r\n") });
    assert.deepEqual(await run(t, agentOf(crlf, {}, [], size)), expected, `${size} at once, CR LF`);
  }
});

test("a run continues over real HTTP connections", async (t) => {
  const expected = await unbroken(t);
  const server = await serve(t, (requests, n) => {
    const body = bytesOf(rest(requests).body as string);
    if (n === 2) return { status: 503, headers: { "Retry-After": "0" } };
    if (n === 4) return { end: "refuse" };
    return n < 7 ? { body: body.slice(0, 10 + n * 60), end: n % 2 ? "cut" : "clean" } : { body };
  });
  const agent = new PerdureAgent({ url: `${server.url}/v1/agents/demo/runs`, threadId, retry: immediateRetry, headers: { Authorization: "Bearer x" } });
  assert.deepEqual(await run(t, agent), expected);
  assert.equal(server.requests.length, 8);
  assert.deepEqual(new Set(server.requests.map(({ headers }) => headers.authorization)), new Set(["Bearer x"]));
  assert.equal(server.requests.at(-1)!.headers["content-type"], undefined);
});

test("the same input is posted again until a response has a cursor", async (t) => {
  const requests: ReceivedRequest[] = [];
  const failures: Reply[] = [problem(503, "unavailable"), { end: "refuse" }, { status: 502, body: "<html>" }, { body: ": heartbeat\n\n", end: "cut" }];
  const agent = agentOf((a, n) => failures[n] ?? rest(a), {}, requests);
  assert.deepEqual(await run(t, agent), await unbroken(t));
  assert.equal(requests.length, 5);
  for (const again of requests) assert.deepEqual(again, requests[0]);
});

test("the pause is at least that of Retry-After", async (t) => {
  const retries: Retry[] = [];
  const controller = new AbortController();
  const onRetry = (retry: Retry) => {
    retries.push(retry);
    if (retries.length === 2) controller.abort();
  };
  const later = { ...problem(503, "unavailable"), headers: { "Retry-After": "7" } };
  const script: Script = (_, n) => (n === 0 ? { body: frames[0]!, end: "cut" } : later);
  const agent = agentOf(script, { retry: { baseDelay: 0 }, onRetry });
  await read(t, agent, { run: { runId: "r-1", abortController: controller } });
  assert.deepEqual(retries.map(({ attempt, delay }) => [attempt, delay]), [[1, 0], [2, 7000]]);
  assert.match(retries[1]!.error.message, /503 unavailable/);
});

test("an exception of onRetry does not end the run", async (t) => {
  const expected = await unbroken(t);
  const thrown: (() => void)[] = [];
  t.mock.method(globalThis, "queueMicrotask", (callback: () => void) => thrown.push(callback));
  const onRetry = () => {
    throw new Error("not my run");
  };
  const agent = agentOf((a, n) => (n === 0 ? { end: "refuse" } : rest(a)), { onRetry });
  assert.deepEqual(await run(t, agent), expected);
  assert.throws(thrown[0]!, /not my run/);
});

test("an agent that gives up ends the run with RUN_ERROR", async (t) => {
  for (const [name, script, attempts] of [
    ["no connection", () => ({ end: "refuse" }), 6],
    ["no second connection", (_, n) => (n === 0 ? { body: frames.slice(0, 4).join(""), end: "cut" } : { end: "refuse" }), 6],
    ["no connection has an event", (_, n) => ({ body: n === 0 ? frames.slice(0, 4).join("") : "id: 0", end: "cut" }), 6],
    ["the server is unavailable", () => problem(503, "unavailable"), 6],
    ["nothing follows, but the run has not ended", (_, n) => (n === 0 ? { body: frames[0]!, end: "cut" } : { status: 204 }), 2],
  ] satisfies [string, Script, number][]) {
    const requests: ReceivedRequest[] = [];
    const received = await run(t, agentOf(script, {}, requests));
    assert.equal(received.error, undefined, name);
    assert.deepEqual(received.console, [], name);
    assert.equal(lastOf(received.events)?.type, "RUN_ERROR", name);
    assert.equal(lastOf(received.events)?.code, "connection_lost", name);
    assert.equal(requests.length, attempts, name);
  }
});

test("an agent gives up after giveUpAfter", async (t) => {
  const later = { ...problem(503, "unavailable"), headers: { "Retry-After": "2" } };
  const requests: ReceivedRequest[] = [];
  const received = await run(t, agentOf(() => later, { retry: { giveUpAfter: 1000 } }, requests));
  assert.equal(lastOf(received.events)?.code, "connection_lost");
  assert.equal(requests.length, 1);
});

test("the refusal of a cursor ends the run with RUN_ERROR and its code", async (t) => {
  for (const [reply, code] of [
    [problem(410, "log_replaced", { detail: "read it again" }), "log_replaced"],
    [problem(410, "gone"), "gone"],
    [{ status: 410, body: "Gone" }, "log_replaced"],
    [problem(400, "invalid_cursor"), "invalid_cursor"],
    [{ status: 401, body: "no credentials" }, "http_401"],
  ] satisfies [Reply, string][]) {
    const requests: ReceivedRequest[] = [];
    const received = await run(t, agentOf((_, n) => (n === 0 ? { body: frames.slice(0, 3).join(""), end: "cut" } : reply), {}, requests));
    assert.equal(received.error, undefined);
    assert.deepEqual(received.console, []);
    assert.deepEqual(received.events.slice(0, -1), events.slice(0, 3));
    assert.equal(lastOf(received.events)?.code, code);
    assert.equal(requests.length, 2);
  }
});

test("a refused run rejects as with HttpAgent", async (t) => {
  const script: Script = () => problem(409, "busy", { activeRun: "r-0" });
  const outcomes = [];
  const stock = new HttpAgent({ url: "http://server/v1/agents/demo/runs", threadId, fetch: fetchOf(script) });
  for (const agent of [agentOf(script), stock as PerdureAgent]) outcomes.push(await run(t, agent));
  assert.deepEqual(outcomes[0], outcomes[1]);
  assert.equal((outcomes[0]!.error as { status?: number }).status, 409);
});

test("a silent connection counts as lost", async (t) => {
  const expected = await unbroken(t);
  const server = await serve(t, (requests, n) => (n === 0 ? { body: frames.slice(0, 3).join("") + "id: 0", end: "hang" } : rest(requests)));
  const retries: Retry[] = [];
  const agent = new PerdureAgent({ baseUrl: server.url, agent: "demo", threadId, retry: immediateRetry, silence: 50, onRetry: (r) => retries.push(r) });
  assert.deepEqual(await run(t, agent), expected);
  assert.equal(retries[0]?.error.name, "SilenceError");
  await until(() => server.open() === 0);
});

test("heartbeats keep a connection without events open", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let send!: ReadableStreamDefaultController<Uint8Array>;
  let requests = 0;
  const fetch = async () => (requests++, new Response(new ReadableStream({ start: (controller) => void (send = controller) })));
  const agent = new PerdureAgent({ baseUrl: "http://server", agent: "demo", threadId, fetch });
  const running = run(t, agent);
  await settled();
  for (const text of [": heartbeat\n\n", ": heartbeat\n\n", ...frames]) {
    t.mock.timers.tick(44_999);
    send.enqueue(bytesOf(text));
    await settled();
  }
  assert.deepEqual((await running).events, events);
  assert.equal(requests, 1);
});

test("a server that accepts and closes every connection is asked less and less often", async (t) => {
  for (const body of ["", ": heartbeat\n\n"]) {
    const retries: Retry[] = [];
    let connected = 0;
    let reconnected = 0;
    const retry = { attempts: 6, baseDelay: 1, jitter: 0 };
    const agent = agentOf(() => ({ body }), { retry, onRetry: (next) => retries.push(next), onConnected: () => connected++, onReconnected: () => reconnected++ });
    assert.equal(lastOf((await run(t, agent)).events)?.code, "connection_lost");
    assert.deepEqual(retries.map(({ delay }) => delay), [1, 2, 4, 8, 16, 32]);
    assert.deepEqual([connected, reconnected], [7, 6]);
  }
});

test("an abort ends the run at once in every state", async (t) => {
  for (const [name, reply, more, aborted] of [
    ["while it waits for headers", undefined, {}, false],
    ["while it waits for a frame", { body: frames.slice(0, 2).join(""), end: "hang" }, {}, true],
    ["during the pause", { body: frames.slice(0, 2).join(""), end: "cut" }, { retry: { baseDelay: 1e6 }, silence: 1e6 }, true],
    ["before the first response", { end: "refuse" }, { retry: { baseDelay: 1e5 } }, false],
  ] satisfies [string, Reply | undefined, Partial<PerdureAgentConfig>, boolean][]) {
    for (const reason of [undefined, "component unmounted", new Error("no more")]) {
      const before = timers();
      const waiting = reply ? {} : { fetch: () => new Promise<Response>(() => {}) };
      const agent = agentOf(() => reply ?? {}, { ...more, ...waiting });
      const running = run(t, agent);
      await settled();
      if (reason === undefined) agent.abortRun();
      else agent.abortController.abort(reason);
      const received = await running;
      assert.equal(received.error, undefined, name);
      assert.deepEqual(received.console, [], name);
      assert.equal(lastOf(received.events)?.code, aborted ? "abort" : undefined, name);
      await settled();
      assert.equal(timers(), before, name);
    }
  }
});

test("a detached or failed agent closes its connection", async (t) => {
  const server = await serve(t, (_, n) => ({ body: frames.slice(0, 2).join("") + (n === 1 ? frames[1] : ""), end: "hang" }));
  const agent = new PerdureAgent({ baseUrl: server.url, agent: "demo", threadId });
  const running = run(t, agent, ({ type }) => void (type === "TEXT_MESSAGE_START" && agent.detachActiveRun()));
  assert.equal((await running).error, undefined);
  await until(() => server.open() === 0);
  const refused = await run(t, agent.clone());
  assert.match(String(refused.error), /already in progress/);
  await until(() => server.open() === 0);
  assert.equal(server.requests.length, 2);
});

test("an agent closes a connection before it opens the next one", async (t) => {
  const signals: AbortSignal[] = [];
  const play = fetchOf((a, n) => (n < 3 ? { body: frames[n]! } : rest(a)));
  const agent = agentOf(rest, {
    fetch: (url, init) => {
      assert.ok(signals.every(({ aborted }) => aborted));
      signals.push(init.signal!);
      return play(url, init);
    },
  });
  assert.deepEqual(await run(t, agent), await unbroken(t));
  assert.equal(signals.length, 4);
});

test("a run continues after the rest of another run", async (t) => {
  const other = log([started("r-0"), ...textMessage("m-0", "before"), finished("r-0")]);
  const wanted = log([started("r-1"), ...textMessage("m-1", "after"), finished("r-1")], 10);
  const requests: ReceivedRequest[] = [];
  const script: Script = ({ method, path, headers }, n) => {
    const id = headers["last-event-id"];
    if (n === 0) return { body: other.slice(0, 3).join(""), end: "cut" };
    if (method === "POST") return { body: wanted.slice(0, 2).join("") };
    return { body: framesAfter(path.includes("r-0") ? other : wanted, id).join("") };
  };
  const received = await run(t, agentOf(script, {}, requests));
  assert.deepEqual(received.messages.map(({ content }) => content), ["before", "after"]);
  assert.deepEqual(
    requests.map(({ method, path, headers }) => [method, path, headers["last-event-id"]]),
    [
      ["POST", "/v1/agents/demo/runs", undefined],
      ["GET", eventsPath.replace("r-1", "r-0"), cursor(2)],
      ["POST", "/v1/agents/demo/runs", undefined],
      ["GET", eventsPath, cursor(11)],
    ],
  );
});

test("the stream ends with the run, although the connection stays open", async (t) => {
  const received = await run(t, agentOf(() => ({ body: frames.join("") + frame({ type: "CUSTOM", name: "late", value: 1 }, "x"), end: "hang" })));
  assert.deepEqual(received, await unbroken(t));
});

test("clones reconnect independently", async (t) => {
  const expected = await unbroken(t);
  const requests: ReceivedRequest[] = [];
  const original = agentOf((a) => (a.method === "POST" ? { body: frames[0]!, end: "cut" } : rest(a)), {}, requests);
  const clones = [original.clone(), original.clone().clone()];
  for (const [i, clone] of clones.entries()) {
    assert.ok(clone instanceof PerdureAgent);
    clone.headers = { "X-Clone": String(i) };
  }
  for (const received of await Promise.all(clones.map((clone) => run(t, clone)))) assert.deepEqual(received.events, expected.events);
  assert.deepEqual(requests.map(({ headers }) => headers["x-clone"]).sort(), ["0", "0", "1", "1"]);
  assert.deepEqual(original.messages, []);
});

test("run works without runAgent, as middleware calls it", async (t) => {
  const used = agentOf(rest);
  await run(t, used);
  for (const agent of [used, used.clone()]) {
    const received: Event[] = [];
    const input = { threadId, runId: "r-1", messages: [], tools: [], context: [], state: {}, forwardedProps: {} };
    await new Promise<void>((complete, error) => {
      agent.run(input).subscribe({ next: (event) => void received.push(event as unknown as Event), complete, error });
    });
    assert.deepEqual(received, events);
  }
});
