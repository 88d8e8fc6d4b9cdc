import { HttpAgent, type Message } from "@ag-ui/client";
import { AnsweredError, PerdureAgent, PerdureClient } from "@perdure/client";
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { badLine, missing, type Perdure, start, transports } from "./perdure.js";
import { type Event, hasty, until, watch } from "./stream.js";

const say = (id: string, content: string): Message => ({ id, role: "user", content });
const long = "What is 12*7, and what time is it? Please repeat all of this: 世界 🌍 größer, ".repeat(2);

// A generator of numbers that are the same in every run of the tests (mulberry32).
function numbers(seed: number) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let z = Math.imul(seed ^ (seed >>> 15), seed | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 2 ** 32;
  };
}

for (const [transport, options] of Object.entries(transports)) describe(`against Perdure, over ${transport}`, { skip: missing, timeout: 240_000 }, () => {
  let perdure: Perdure;
  before(async () => void (perdure = await start()));
  after(() => perdure.stop());

  test("over a line that breaks anywhere, a run is what it is without", async (t) => {
    for (const seed of [1, 2, 3]) {
      const threadId = `line ${seed}`;
      const random = numbers(seed);
      // At least the headers and one frame: else nothing would ever come.
      const line = await badLine(perdure.url, () => 600 + Math.floor(random() * 900));
      const cut = new PerdureAgent({ ...options, baseUrl: line.url, agent: "demo", threadId, retry: { ...hasty, attempts: 50 }, initialMessages: [say("u-1", long)] });
      const seen = await watch(t, cut, { run: { runId: "r-1" } });
      line.stop();
      assert.equal(seen.error, undefined);
      assert.deepEqual(seen.console, []);
      assert.ok(line.cuts() > 5, `${line.cuts()} cuts`);
      const stock = new HttpAgent({ url: `${perdure.url}/v1/agents/demo/runs`, threadId, initialMessages: [say("u-1", long)] });
      const uncut = await watch(t, stock as PerdureAgent, { run: { runId: "r-1" } });
      assert.deepEqual(seen, uncut);
      assert.equal(seen.events.at(-1)?.type, "RUN_FINISHED");
      assert.ok(seen.messages.length >= 4);
    }
  });

  test("a second run goes on with the conversation of the first", async (t) => {
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId: "two runs" });
    for (const n of [1, 2]) {
      agent.addMessage(say(`u-${n}`, `This is ${n}.`));
      assert.deepEqual((await watch(t, agent, { run: {} })).console, []);
    }
    assert.deepEqual(agent.messages.map(({ role }) => role), ["user", "assistant", "user", "assistant"]);
  });

  test("a tab that is behind edits nothing, and one that lost its messages loses nothing", async (t) => {
    const threadId = "tabs";
    const tab = () => new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId });
    const says = async (agent: PerdureAgent, id: string) => {
      agent.addMessage(say(id, `This is ${id}.`));
      const seen = await watch(t, agent, { run: {} });
      assert.equal(seen.error, undefined);
      return seen.messages.filter(({ role }) => role === "user").map((m) => m.id);
    };
    const [one, two] = [tab(), tab()];
    assert.deepEqual(await says(one, "u-1"), ["u-1"]);
    await watch(t, two, { connect: {} });
    assert.deepEqual(await says(two, "u-2"), ["u-1", "u-2"]);
    assert.deepEqual(await says(one, "u-3"), ["u-1", "u-2", "u-3"]);
    assert.deepEqual(await says(one.clone(), "u-4"), ["u-1", "u-2", "u-3", "u-4"]);
    assert.deepEqual(await says(tab(), "u-5"), ["u-1", "u-2", "u-3", "u-4", "u-5"]);
  });

  test("cancel ends the run and keeps what was said", async (t) => {
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId: "cancel", initialMessages: [say("u-1", "word ".repeat(35))] });
    let cancelling: Promise<void> | undefined;
    const seen = await watch(t, agent, { run: {} }, ({ type }) => {
      if (type === "TEXT_MESSAGE_CONTENT") cancelling ??= agent.cancel("enough");
    });
    await cancelling;
    assert.deepEqual(seen.console, []);
    const { type, outcome, code } = seen.events.at(-1)!;
    if (process.env.AG_UI_GENERATION === "0") assert.deepEqual([type, code], ["RUN_ERROR", "cancelled"]);
    else assert.deepEqual([type, outcome], ["RUN_FINISHED", { type: "cancelled" }]);
    assert.notEqual(seen.messages.at(-1)?.content, "");
    assert.equal(seen.messages.length, 2);
    await agent.cancel(); // again, of a run that is over
  });

  test("who leaves and comes back with the same run sees it whole", async (t) => {
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId: "leave", initialMessages: [say("u-1", long)] });
    let events = 0;
    await watch(t, agent, { run: { runId: "r-1" } }, () => void (++events === 5 && agent.abortRun()));
    agent.setMessages([say("u-1", long)]);
    const seen = await watch(t, agent, { run: { runId: "r-1" } });
    assert.equal(seen.events.at(-1)?.type, "RUN_FINISHED");
    assert.equal(seen.messages.at(-1)?.role, "assistant");
  });

  test("who joins a run over a line that breaks anywhere has what its owner has", async (t) => {
    const threadId = "join";
    const random = numbers(4);
    const line = await badLine(perdure.url, () => 2000 + Math.floor(random() * 2000));
    const owner = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId, initialMessages: [say("u-1", long)] });
    const guest = new PerdureAgent({ ...options, baseUrl: line.url, agent: "demo", threadId, retry: { ...hasty, attempts: 50 } });
    let joining: ReturnType<typeof watch> | undefined;
    let contents = 0;
    await owner.runAgent({}, {
      onTextMessageContentEvent: () => {
        if (++contents === 3) joining = watch(t, guest, { connect: {} });
      },
    });
    const seen = await joining!;
    line.stop();
    assert.deepEqual([seen.error, seen.console], [undefined, []]);
    assert.ok(line.cuts() > 2, `${line.cuts()} cuts`);
    assert.deepEqual(seen.messages, owner.messages);
    const late = owner.clone();
    late.setMessages([]);
    assert.deepEqual((await watch(t, late, { connect: {} })).messages, owner.messages);
  });

  test("who follows a thread sees run after run", async (t) => {
    const threadId = "follow";
    const owner = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId });
    const guest = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId, follow: true });
    owner.addMessage(say("u-1", "This is 1."));
    await owner.runAgent({ runId: "r-1" });
    let shown = "";
    const following = watch(t, guest, { connect: {} }, ({ type, runId }) => {
      if (type === "RUN_FINISHED") shown = String(runId);
    });
    await until(() => shown !== "");
    for (const n of [2, 3]) {
      owner.addMessage(say(`u-${n}`, `This is ${n}.`));
      await owner.runAgent({ runId: `r-${n}` });
      await until(() => shown === `r-${n}`);
    }
    guest.abortRun();
    const seen = await following;
    assert.deepEqual([seen.error, seen.console], [undefined, []]);
    assert.deepEqual(seen.messages, owner.messages);
  });

  test("a thread that does not exist has nothing to show", async (t) => {
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId: "nobody was here" });
    assert.deepEqual(await watch(t, agent, { connect: {} }), { events: [], messages: [], console: [] });
  });
});

for (const [transport, options] of Object.entries(transports)) describe(`against Perdure that asks, over ${transport}`, { skip: missing, timeout: 240_000 }, () => {
  let perdure: Perdure;
  before(async () => void (perdure = await start("clients/typescript/test/agents")));
  after(() => perdure.stop());

  // The questions that a run ended with.
  const asked = (events: Event[]) => {
    const { outcome } = events.at(-1) as unknown as { outcome?: { interrupts?: { id: string; toolCallId: string }[] } };
    return outcome?.interrupts ?? [];
  };

  test("who decides need not be who asked, and who follows sees what comes of it", async (t) => {
    const threadId = "asks";
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "asking", threadId });
    agent.addMessage(say("u-1", "Please work out 6*7 and 6+7 for me."));
    const seen = await watch(t, agent, { run: { runId: "r-1" } });
    const [first, second] = asked(seen.events);
    assert.ok(first && second && asked(seen.events).length === 2);

    let ended = 0;
    const guest = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "asking", threadId, follow: true });
    const following = watch(t, guest, { connect: {} }, ({ type }) => void (type === "RUN_FINISHED" && ended++));
    await until(() => ended === 1);
    const inbox = new PerdureClient({ ...options, baseUrl: perdure.url + "/", retry: hasty });
    const accepted = await inbox.decide(threadId, first.id, { decision: "edit", args: { expression: "5*5" } });
    assert.deepEqual([accepted.repeated, accepted.decision], [false, "edit"]);
    assert.equal((await inbox.decide(threadId, first.id, { decision: "edit", args: { expression: "5*5" } })).repeated, true);
    await assert.rejects(agent.decide(first.id, { decision: "reject" }), (error) => {
      assert.ok(error instanceof AnsweredError);
      assert.deepEqual([error.code, (error.recorded as { decision: string }).decision], ["decided", "edit"]);
      return true;
    });
    await assert.rejects(inbox.decide(threadId, "nonsense", { decision: "approve" }), { status: 404, code: "unknown_approval" });
    await assert.rejects(inbox.decide(threadId, second.id, { decision: "edit" }), { status: 422, code: "invalid_answer" });
    await agent.decide(second.id, { decision: "answer", content: "thirteen" });
    await until(() => ended === 2);
    guest.abortRun();
    const { error, console, messages } = await following;
    assert.deepEqual([error, console], [undefined, []]);
    const results = messages.filter(({ role }) => role === "tool").map(({ content }) => content);
    assert.deepEqual(results.sort(), ["25", "thirteen"]);
    assert.match(String(messages.at(-1)?.content), /^At last it is/);
  });

  test("an input that steers the active run reads that run", async (t) => {
    const threadId = "steered";
    const owner = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "stepwise", threadId, initialMessages: [say("u-1", "Go!")] });
    const guest = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "stepwise", threadId, initialMessages: [say("u-2", "Hurry!")] });
    let steering: ReturnType<typeof watch> | undefined;
    const steer = { runId: "r-2", forwardedProps: { perdure: { onBusy: "steer" } } };
    const running = watch(t, owner, { run: { runId: "r-1" } }, ({ type }) => {
      if (type === "TOOL_CALL_START") steering ??= watch(t, guest, { run: steer });
    });
    const [shown, steered] = [await running, await steering!];
    assert.deepEqual([steered.error, steered.events[0]?.runId, steered.events.at(-1)?.type], [undefined, "r-1", "RUN_FINISHED"]);
    assert.ok(steered.messages.some(({ id }) => id === "u-2"));
    assert.deepEqual(steered.messages, shown.messages);
  });

  test("a run is paused and goes on", async (t) => {
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "stepwise", threadId: "pauses", initialMessages: [say("u-1", "Go!")] });
    const operator = new PerdureClient({ ...options, baseUrl: perdure.url });
    let paused: Promise<void> | undefined;
    const running = watch(t, agent, { run: {} }, ({ type }) => void (type === "TOOL_CALL_START" && (paused ??= agent.pause())));
    await until(() => paused !== undefined);
    await paused;
    assert.equal(agent.isRunning, true);
    await operator.resume("pauses");
    const seen = await running;
    assert.equal(seen.messages.at(-1)?.content, "Done.");
    await assert.rejects(operator.pause("pauses"), { status: 409, code: "not_active" });
  });

  test("a run that is cancelled by somebody else ends for who watches it", async (t) => {
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "stepwise", threadId: "cancelled", initialMessages: [say("u-1", "Go!")] });
    const operator = new PerdureClient({ ...options, baseUrl: perdure.url });
    let cancelling: Promise<void> | undefined;
    const seen = await watch(t, agent, { run: { runId: "r-1" } }, ({ type }) => {
      if (type === "TOOL_CALL_START") cancelling ??= operator.cancel("cancelled", "r-1", "enough");
    });
    await cancelling;
    const { type, outcome, code } = seen.events.at(-1)!;
    if (process.env.AG_UI_GENERATION === "0") assert.deepEqual([type, code], ["RUN_ERROR", "cancelled"]);
    else assert.deepEqual([type, outcome], ["RUN_FINISHED", { type: "cancelled" }]);
  });
});

for (const [transport, options] of Object.entries(transports)) describe(`against Perdure that goes away, over ${transport}`, { skip: missing, timeout: 240_000 }, () => {
  test("it gives up, and says so", async (t) => {
    const perdure = await start();
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "demo", threadId: "away", retry: hasty, initialMessages: [say("u-1", long)] });
    let stopping: Promise<void> | undefined;
    const seen = await watch(t, agent, { run: {} }, () => void (stopping ??= perdure.stop()));
    await stopping;
    await until(() => !agent.isRunning);
    assert.deepEqual([seen.error, seen.console], [undefined, []]);
    assert.equal(seen.events.at(-1)?.code, "connection_lost");
  });
});
