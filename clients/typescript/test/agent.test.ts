import { HttpAgent, type Message } from "@ag-ui/client";
import { AnsweredError, PerdureAgent, PerdureClient } from "@perdure/client";
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { allTransports, unreliableProxy, skipReason, type Perdure, start } from "./perdure_process.js";
import { type Event, immediateRetry, until, read } from "./event_log.js";

const userMessage = (id: string, content: string): Message => ({ id, role: "user", content });
const long = "What is 12*7, and what time is it? Please repeat all of this: 世界 🌍 größer, ".repeat(2);

// Returns a generator of the same pseudorandom numbers in every run of the tests (mulberry32).
function numbers(seed: number) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let z = Math.imul(seed ^ (seed >>> 15), seed | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 2 ** 32;
  };
}

for (const [transport, options] of Object.entries(allTransports)) describe(`runs and threads over ${transport}`, { skip: skipReason, timeout: 240_000 }, () => {
  let perdure: Perdure;
  before(async () => void (perdure = await start()));
  after(() => perdure.stop());

  test("a run over connections that break anywhere has the events of an unbroken one", async (t) => {
    for (const seed of [1, 2, 3]) {
      const threadId = `line ${seed}`;
      const random = numbers(seed);
      // Each connection transfers at least the headers and one frame, so that the run makes progress.
      const line = await unreliableProxy(perdure.url, () => 600 + Math.floor(random() * 900));
      const cut = new PerdureAgent({ ...options, baseUrl: line.url, agent: "demo", threadId, retry: { ...immediateRetry, attempts: 50 }, initialMessages: [userMessage("u-1", long)] });
      const received = await read(t, cut, { run: { runId: "r-1" } });
      line.stop();
      assert.equal(received.error, undefined);
      assert.deepEqual(received.console, []);
      assert.ok(line.cuts() > 5, `${line.cuts()} cuts`);
      const stock = new HttpAgent({ url: `${perdure.url}/v1/agents/demo/runs`, threadId, initialMessages: [userMessage("u-1", long)] });
      const unbroken = await read(t, stock as PerdureAgent, { run: { runId: "r-1" } });
      assert.deepEqual(received, unbroken);
      assert.equal(received.events.at(-1)?.type, "RUN_FINISHED");
      assert.ok(received.messages.length >= 4);
    }
  });

  test("a second run continues the conversation of the first", async (t) => {
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId: "two runs" });
    for (const n of [1, 2]) {
      agent.addMessage(userMessage(`u-${n}`, `This is ${n}.`));
      assert.deepEqual((await read(t, agent, { run: {} })).console, []);
    }
    assert.deepEqual(agent.messages.map(({ role }) => role), ["user", "assistant", "user", "assistant"]);
  });

  test("the outdated list of a tab removes no messages", async (t) => {
    const threadId = "tabs";
    const tab = () => new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId });
    const send = async (agent: PerdureAgent, id: string) => {
      agent.addMessage(userMessage(id, `This is ${id}.`));
      const received = await read(t, agent, { run: {} });
      assert.equal(received.error, undefined);
      return received.messages.filter(({ role }) => role === "user").map((m) => m.id);
    };
    const [one, two] = [tab(), tab()];
    assert.deepEqual(await send(one, "u-1"), ["u-1"]);
    await read(t, two, { connect: {} });
    assert.deepEqual(await send(two, "u-2"), ["u-1", "u-2"]);
    assert.deepEqual(await send(one, "u-3"), ["u-1", "u-2", "u-3"]);
    assert.deepEqual(await send(one.clone(), "u-4"), ["u-1", "u-2", "u-3", "u-4"]);
    assert.deepEqual(await send(tab(), "u-5"), ["u-1", "u-2", "u-3", "u-4", "u-5"]);
  });

  test("cancel ends the run and keeps its messages", async (t) => {
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId: "cancel", initialMessages: [userMessage("u-1", "word ".repeat(35))] });
    let cancelling: Promise<void> | undefined;
    const received = await read(t, agent, { run: {} }, ({ type }) => {
      if (type === "TEXT_MESSAGE_CONTENT") cancelling ??= agent.cancel("enough");
    });
    await cancelling;
    assert.deepEqual(received.console, []);
    const { type, outcome, code } = received.events.at(-1)!;
    if (process.env.AG_UI_GENERATION === "0") assert.deepEqual([type, code], ["RUN_ERROR", "cancelled"]);
    else assert.deepEqual([type, outcome], ["RUN_FINISHED", { type: "cancelled" }]);
    assert.notEqual(received.messages.at(-1)?.content, "");
    assert.equal(received.messages.length, 2);
    await agent.cancel(); // the cancel of an ended run has no effect
  });

  test("an agent that runs the same run again receives all of it", async (t) => {
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId: "leave", initialMessages: [userMessage("u-1", long)] });
    let events = 0;
    await read(t, agent, { run: { runId: "r-1" } }, () => void (++events === 5 && agent.abortRun()));
    agent.setMessages([userMessage("u-1", long)]);
    const received = await read(t, agent, { run: { runId: "r-1" } });
    assert.equal(received.events.at(-1)?.type, "RUN_FINISHED");
    assert.equal(received.messages.at(-1)?.role, "assistant");
  });

  test("an agent that joins a run over connections that break has the messages of its owner", async (t) => {
    const threadId = "join";
    const random = numbers(4);
    const line = await unreliableProxy(perdure.url, () => 2000 + Math.floor(random() * 2000));
    const owner = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId, initialMessages: [userMessage("u-1", long)] });
    const reader = new PerdureAgent({ ...options, baseUrl: line.url, agent: "demo", threadId, retry: { ...immediateRetry, attempts: 50 } });
    let joining: ReturnType<typeof read> | undefined;
    let contents = 0;
    await owner.runAgent({}, {
      onTextMessageContentEvent: () => {
        if (++contents === 3) joining = read(t, reader, { connect: {} });
      },
    });
    const received = await joining!;
    line.stop();
    assert.deepEqual([received.error, received.console], [undefined, []]);
    assert.ok(line.cuts() > 2, `${line.cuts()} cuts`);
    assert.deepEqual(received.messages, owner.messages);
    const late = owner.clone();
    late.setMessages([]);
    assert.deepEqual((await read(t, late, { connect: {} })).messages, owner.messages);
  });

  test("an agent that follows a thread receives every run", async (t) => {
    const threadId = "follow";
    const owner = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId });
    const reader = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId, follow: true });
    owner.addMessage(userMessage("u-1", "This is 1."));
    await owner.runAgent({ runId: "r-1" });
    let shown = "";
    const following = read(t, reader, { connect: {} }, ({ type, runId }) => {
      if (type === "RUN_FINISHED") shown = String(runId);
    });
    await until(() => shown !== "");
    for (const n of [2, 3]) {
      owner.addMessage(userMessage(`u-${n}`, `This is ${n}.`));
      await owner.runAgent({ runId: `r-${n}` });
      await until(() => shown === `r-${n}`);
    }
    reader.abortRun();
    const received = await following;
    assert.deepEqual([received.error, received.console], [undefined, []]);
    assert.deepEqual(received.messages, owner.messages);
  });

  test("a thread that does not exist has no events", async (t) => {
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId: "nobody was here" });
    assert.deepEqual(await read(t, agent, { connect: {} }), { events: [], messages: [], console: [] });
  });
});

for (const [transport, options] of Object.entries(allTransports)) describe(`commands over ${transport}`, { skip: skipReason, timeout: 240_000 }, () => {
  let perdure: Perdure;
  before(async () => void (perdure = await start("clients/typescript/test/agents")));
  after(() => perdure.stop());

  // Returns the interrupts with which a run ended.
  const interruptsOf = (events: Event[]) => {
    const { outcome } = events.at(-1) as unknown as { outcome?: { interrupts?: { id: string; toolCallId: string }[] } };
    return outcome?.interrupts ?? [];
  };

  test("any client decides, and an agent that follows the thread receives the effect", async (t) => {
    const threadId = "requestPaths";
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "calculator", threadId });
    agent.addMessage(userMessage("u-1", "Please work out 6*7 and 6+7 for me."));
    const received = await read(t, agent, { run: { runId: "r-1" } });
    const [first, second] = interruptsOf(received.events);
    assert.ok(first && second && interruptsOf(received.events).length === 2);

    let ended = 0;
    const reader = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "calculator", threadId, follow: true });
    const following = read(t, reader, { connect: {} }, ({ type }) => void (type === "RUN_FINISHED" && ended++));
    await until(() => ended === 1);
    const inbox = new PerdureClient({ ...options, baseUrl: perdure.url + "/", retry: immediateRetry });
    const accepted = await inbox.decide(threadId, first.id, { decision: "edit", args: { expression: "5*5" } });
    assert.deepEqual([accepted.repeated, accepted.decision], [false, "edit"]);
    assert.equal((await inbox.decide(threadId, first.id, { decision: "edit", args: { expression: "5*5" } })).repeated, true);
    await assert.rejects(agent.decide(first.id, { decision: "reject" }), (error) => {
      assert.ok(error instanceof AnsweredError);
      assert.deepEqual([error.code, (error.recorded as { decision: string }).decision], ["decided", "edit"]);
      return true;
    });
    await assert.rejects(inbox.decide(threadId, "nonsense", { decision: "approve" }), { status: 404, code: "unknown_approval" });
    await assert.rejects(inbox.decide(threadId, second.id, { decision: "edit" } as never), { status: 422, code: "invalid_answer" });
    await agent.decide(second.id, { decision: "answer", content: "thirteen" });
    await until(() => ended === 2);
    reader.abortRun();
    const { error, console, messages } = await following;
    assert.deepEqual([error, console], [undefined, []]);
    const results = messages.filter(({ role }) => role === "tool").map(({ content }) => content);
    assert.deepEqual(results.sort(), ["25", "thirteen"]);
    assert.match(String(messages.at(-1)?.content), /^At last it is/);
  });

  test("an input that steers the active run reads that run", async (t) => {
    const threadId = "steered";
    const owner = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "stepwise", threadId, initialMessages: [userMessage("u-1", "Go!")] });
    const reader = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "stepwise", threadId, initialMessages: [userMessage("u-2", "Hurry!")] });
    let steering: ReturnType<typeof read> | undefined;
    const steer = { runId: "r-2", forwardedProps: { perdure: { onBusy: "steer" } } };
    const running = read(t, owner, { run: { runId: "r-1" } }, ({ type }) => {
      if (type === "TOOL_CALL_START") steering ??= read(t, reader, { run: steer });
    });
    const [shown, steered] = [await running, await steering!];
    assert.deepEqual([steered.error, steered.events[0]?.runId, steered.events.at(-1)?.type], [undefined, "r-1", "RUN_FINISHED"]);
    assert.ok(steered.messages.some(({ id }) => id === "u-2"));
    assert.deepEqual(steered.messages, shown.messages);
  });

  test("a run is paused and resumed", async (t) => {
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "stepwise", threadId: "pauses", initialMessages: [userMessage("u-1", "Go!")] });
    const operator = new PerdureClient({ ...options, baseUrl: perdure.url });
    let paused: Promise<void> | undefined;
    const running = read(t, agent, { run: {} }, ({ type }) => void (type === "TOOL_CALL_START" && (paused ??= agent.pause())));
    await until(() => paused !== undefined);
    await paused;
    assert.equal(agent.isRunning, true);
    await operator.resume("pauses");
    const received = await running;
    assert.equal(received.messages.at(-1)?.content, "Done.");
    await assert.rejects(operator.pause("pauses"), { status: 409, code: "not_active" });
  });

  test("a run that another client cancels ends for its reader", async (t) => {
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "stepwise", threadId: "cancelled", initialMessages: [userMessage("u-1", "Go!")] });
    const operator = new PerdureClient({ ...options, baseUrl: perdure.url });
    let cancelling: Promise<void> | undefined;
    const received = await read(t, agent, { run: { runId: "r-1" } }, ({ type }) => {
      if (type === "TOOL_CALL_START") cancelling ??= operator.cancel("cancelled", "r-1", "enough");
    });
    await cancelling;
    const { type, outcome, code } = received.events.at(-1)!;
    if (process.env.AG_UI_GENERATION === "0") assert.deepEqual([type, code], ["RUN_ERROR", "cancelled"]);
    else assert.deepEqual([type, outcome], ["RUN_FINISHED", { type: "cancelled" }]);
  });
});

for (const [transport, options] of Object.entries(allTransports)) describe(`a server that stops, over ${transport}`, { skip: skipReason, timeout: 240_000 }, () => {
  test("an agent gives up with connection_lost", async (t) => {
    const perdure = await start();
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId: "away", retry: immediateRetry, initialMessages: [userMessage("u-1", long)] });
    let stopping: Promise<void> | undefined;
    const received = await read(t, agent, { run: {} }, () => void (stopping ??= perdure.stop()));
    await stopping;
    await until(() => !agent.isRunning);
    assert.deepEqual([received.error, received.console], [undefined, []]);
    assert.equal(received.events.at(-1)?.code, "connection_lost");
  });
});
