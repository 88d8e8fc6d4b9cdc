import { PerdureClient } from "@perdure/client";
import { inboxStore, ThreadStore, type ThreadStoreOptions, threadStore } from "@perdure/client/store";
import assert from "node:assert/strict";
import { after, before, describe, test, type TestContext } from "node:test";
import { share, shareByID } from "../dist/store/structural_sharing.js";
import { log, started, until } from "./event_log.js";
import { allTransports, skipReason, type Perdure, start } from "./perdure_process.js";
import { fetchOf, problem, serve } from "./scripted_server.js";

interface Store<Snapshot> {
  subscribe(listener: () => void): () => void;
  getSnapshot(): Snapshot;
}

// Resolves with the first snapshot that fits.
function when<Snapshot>(store: Store<Snapshot>, fits: (snapshot: Snapshot) => boolean): Promise<Snapshot> {
  return new Promise((resolve) => {
    const look = () => {
      const snapshot = store.getSnapshot();
      if (!fits(snapshot)) return;
      setImmediate(() => unsubscribe());
      resolve(snapshot);
    };
    const unsubscribe = store.subscribe(look);
    look();
  });
}

for (const [transport, options] of Object.entries(allTransports)) {
  describe(`stores over ${transport}`, { skip: skipReason, timeout: 240_000 }, () => {
    let perdure: Perdure;
    let client: PerdureClient;
    before(async () => {
      perdure = await start("clients/typescript/test/agents");
      client = new PerdureClient({ ...options, baseUrl: perdure.url, retry: { baseDelay: 10, attempts: 50 } });
    });
    after(() => perdure.stop());

    // Opens a store that reads until the test ends.
    const open = (t: TestContext, more: ThreadStoreOptions) => {
      const store = new ThreadStore(client, more);
      t.after(store.subscribe(() => {}));
      return store;
    };

    test("two stores of a thread show the same, and a message is shown while it is sent", async (t) => {
      const [one, two] = [0, 1].map(() => open(t, { threadId: "two stores", agent: "stepwise" }));
      const sending = one!.send("Go!");
      await when(one!, ({ messages, isSending }) => isSending && messages[0]?.content === "Go!");
      const runId = await sending;
      const done = ({ run, messages }: ReturnType<ThreadStore["getSnapshot"]>) => run.runId === runId && run.status === "idle" && messages.at(-1)?.content === "Done.";
      const shown = await Promise.all([when(one!, done), when(two!, done)]);
      assert.deepEqual(shown[0].messages, shown[1].messages);
      assert.deepEqual([shown[0].connection, shown[0].isSending, shown[0].interrupts, shown[0].toolCalls], ["connected", false, [], []]);
      assert.deepEqual(shown[0].messages.map(({ role }) => role).filter((role) => role !== "tool"), ["user", "assistant", "assistant"]);

      await two!.send("Go again!");
      const next = await when(one!, ({ run, messages }) => run.status === "idle" && messages.length > shown[0].messages.length + 2);
      for (const [i, message] of shown[0].messages.entries()) assert.equal(next.messages[i], message, "an earlier message is another object");
    });

    test("a failed call has its error as soon as its result, and the same after a reload", async (t) => {
      const live = open(t, { threadId: "failed call", agent: "divider" });
      const sent = await live.send("Go!");
      const resultOf = ({ messages }: ReturnType<ThreadStore["getSnapshot"]>) => messages.find(({ role }) => role === "tool") as { error?: string; content: string } | undefined;
      const failed = resultOf(await when(live, (snapshot) => resultOf(snapshot) !== undefined));
      assert.ok(failed?.error, "the result has no error");
      const done = ({ run, messages }: ReturnType<ThreadStore["getSnapshot"]>) => run.runId === sent && run.status === "idle" && messages.at(-1)?.content === "That does not work.";
      const { messages } = await when(live, done);
      const reloaded = await when(open(t, { threadId: "failed call", agent: "divider" }), done);
      assert.deepEqual(messages, reloaded.messages);
    });

    test("the result of a structured run is that of the run until the next one begins, and the same after a reload", async (t) => {
      const options = { threadId: "structured", agent: "counter" };
      const live = open(t, options);
      const runId = await live.send("Hello there");
      const done = ({ run }: ReturnType<ThreadStore["getSnapshot"]>) => run.runId === runId && run.status === "idle";
      const { run } = await when(live, done);
      assert.deepEqual(run.result, { total: 84 });
      const reloaded = await when(open(t, options), done);
      assert.deepEqual(reloaded.run, run);
      const next = await live.send("Hello");
      const running = await when(live, (snapshot) => snapshot.run.runId === next);
      assert.ok(running.run.status === "idle" || running.run.result === undefined, "a run that is active has the result of the one before");
      await when(live, (snapshot) => snapshot.run.runId === next && snapshot.run.status === "idle");
    });

    test("the result of a structured run may be null", async (t) => {
      const store = open(t, { threadId: "undecided", agent: "undecided" });
      const runId = await store.send("How much?");
      const { run } = await when(store, (snapshot) => snapshot.run.runId === runId && snapshot.run.status === "idle");
      assert.equal(run.result, null);
    });

    test("a message that the server refuses disappears", async (t) => {
      const store = open(t, { threadId: "refused", agent: "no such agent" });
      await assert.rejects(store.send("Hello"), { code: "unknown_agent" });
      await when(store, ({ messages, isSending }) => messages.length === 0 && !isSending);
    });

    test("an edit replaces a message, and regenerate answers it again", async (t) => {
      const store = open(t, { threadId: "edit", agent: "stepwise" });
      const idle = (runId: string) => when(store, ({ run }) => run.runId === runId && run.status === "idle");
      const first = await idle(await store.send("Go!"));
      const edited = await idle(await store.edit(first.messages[0]!.id, "Go there!"));
      assert.deepEqual([edited.messages[0]!.content, edited.messages.length], ["Go there!", first.messages.length]);
      const again = await idle(await store.regenerate());
      assert.equal(again.messages.length, first.messages.length);
      assert.notEqual(again.messages[1]!.id, edited.messages[1]!.id);
    });

    test("a decision of one store shows in the other before the thread continues", async (t) => {
      const [one, two] = [0, 1].map(() => open(t, { threadId: "approve", agent: "calculator" }));
      await one!.send("Please work out 6*7 and 6+7 for me.");
      const { interrupts, run } = await when(one!, (snapshot) => snapshot.interrupts.length === 2 && snapshot.interrupts.every(({ approval }) => approval));
      assert.equal(run.status, "waiting");
      assert.deepEqual(interrupts[0]!.approval!.toolName, "calculate");
      await when(two!, (snapshot) => snapshot.interrupts.length === 2);
      await one!.decide(interrupts[0]!.id, { decision: "edit", args: { expression: "5*5" } });
      const left = await when(two!, (snapshot) => snapshot.interrupts.length === 1);
      await two!.decide(left.interrupts[0]!.id, { decision: "approve" });
      for (const store of [one!, two!]) {
        const { messages } = await when(store, (snapshot) => snapshot.run.status === "idle" && String(snapshot.messages.at(-1)?.content).startsWith("At last"));
        assert.deepEqual(messages.flatMap((m) => (m.role === "tool" ? [m.content] : [])).sort(), ["13", "25"]);
      }
    });

    test("client tool calls wait for results", async (t) => {
      const pick = { name: "pick_color", description: "Picks a color.", parameters: { type: "object", properties: { for: { type: "string" } } } };
      for (const hold of [true, false]) {
        const store = open(t, { threadId: `tools ${hold}`, agent: "painter", tools: [pick], forwardedProps: { perdure: { hold } } });
        await store.send("Pick!");
        const { toolCalls } = await when(store, (snapshot) => snapshot.toolCalls.length === 2);
        assert.deepEqual(toolCalls.map(({ toolName, args }) => [toolName, JSON.parse(args)]), [["pick_color", { for: "sky" }], ["pick_color", { for: "sea" }]]);
        for (const { toolCallId } of toolCalls) await store.sendToolResult({ toolCallId, content: "blue" });
        const { messages } = await when(store, (snapshot) => snapshot.run.status === "idle" && snapshot.messages.at(-1)?.content === "Thank you.");
        assert.equal(messages.filter(({ role }) => role === "tool").length, 2);
      }
    });

    test("a run is steered, paused, resumed and cancelled", async (t) => {
      const store = open(t, { threadId: "control", agent: "stepwise" });
      await store.send("Go!");
      await when(store, ({ run }) => run.status === "running");
      await store.pause();
      await store.resume();
      await store.steer("Hurry!");
      await store.cancel("enough");
      const { messages } = await when(store, ({ run }) => run.status === "idle");
      assert.equal(messages[0]?.content, "Go!");
      assert.equal((await client.runs("control")).items[0]?.cancel?.reason, "enough");
    });

    test("messages are pending until a run has received them", async (t) => {
      const store = open(t, { threadId: "pending", agent: "stepwise" });
      const busy = (onBusy: string) => ({ forwardedProps: { perdure: { onBusy } } });
      const active = await store.send("Go!");
      await when(store, ({ run }) => run.status === "running");
      await store.pause();
      const [, queued] = await Promise.all([store.send("Hurry!", busy("steer")), store.send("Go again!", busy("enqueue"))]);
      const { pending, messages } = await when(store, (snapshot) => snapshot.pending.length === 2);
      assert.deepEqual(pending.map(({ kind, runId, isCancelled }) => [kind, runId, isCancelled]), [["steering", active, false], ["queued", queued, false]]);
      assert.deepEqual(pending.map(({ messageId }) => messageId), messages.slice(-2).map(({ id }) => id));
      await assert.rejects(store.cancelPending(pending[0]!.messageId), /no such message is queued/);
      await store.cancelPending(pending[1]!.messageId, "not now");
      await when(store, (snapshot) => snapshot.pending[1]!.isCancelled);
      await store.resume();
      const end = await when(store, ({ run, pending: rest }) => run.runId === queued && run.status === "idle" && rest.length === 0);
      assert.equal(end.messages.at(-1)?.content, "Go again!");
      assert.equal((await client.runs("pending")).items[0]?.cancel?.reason, "not now");
    });

    test("a run is cancelled that the server has not accepted yet", async (t) => {
      const store = open(t, { threadId: "early cancel", agent: "stepwise" });
      const sent = store.send("Go!");
      await store.cancel("a mistake");
      const runId = await sent;
      await when(store, ({ run }) => run.status === "idle" && run.runId === runId);
      assert.equal((await client.runs("early cancel")).items[0]?.cancel?.reason, "a mistake");
    });

    test("the inbox shows approvals until they are decided", async (t) => {
      const inbox = inboxStore(client, { agent: "calculator" });
      assert.equal(inboxStore(client, { agent: "calculator" }), inbox);
      t.after(inbox.subscribe(() => {}));
      await client.startRun("calculator", { threadId: "inbox", messages: [{ id: "u-1", role: "user", content: "Please work out 6*7 and 6+7 for me." }] });
      const own = ({ approvals }: ReturnType<typeof inbox.getSnapshot>) => approvals.filter(({ threadId }) => threadId === "inbox");
      const [first, second] = own(await when(inbox, (snapshot) => snapshot.status === "ready" && own(snapshot).length === 2));
      await inbox.decide(first!, { decision: "approve" });
      assert.deepEqual(own(await when(inbox, (snapshot) => own(snapshot).length === 1)), [second]);
      await client.decide("inbox", second!.id, { decision: "reject" });
      await when(inbox, (snapshot) => own(snapshot).length === 0);
    });
  });
}

test("a store that stops to read keeps the run as it was", async (t) => {
  const server = await serve(t, (_, n) => (n === 0 ? { body: log([started("r-1", "left")]).join(""), end: "hang" } : { end: "refuse" }));
  const store = new ThreadStore(new PerdureClient({ baseUrl: server.url, transport: "sse" }), { threadId: "left", agent: "a" });
  await when(store, ({ run }) => run.status === "running"); // unsubscribes
  await until(() => server.open() === 0);
  const { run } = await when(store, ({ connection }) => connection !== "connected");
  assert.deepEqual(run, { status: "running", runId: "r-1" });
});

test("an inbox that cannot be read again keeps its approvals", async (t) => {
  const approval = { id: "int_1", threadId: "t", runId: "r", agent: "a", requestedAt: "2026-01-01T00:00:00Z", approvers: [], decisions: [] };
  let lists = 0;
  const fetch = fetchOf(({ path }) => {
    if (path.endsWith("/events")) return problem(410, "gone");
    return ++lists === 1 ? { headers: { "Content-Type": "application/json" }, body: JSON.stringify({ items: [approval], eventsCursor: "1" }) } : problem(403, "forbidden");
  });
  const inbox = inboxStore(new PerdureClient({ baseUrl: "http://server", transport: "sse", fetch }));
  t.after(inbox.subscribe(() => {}));
  const { approvals } = await when(inbox, ({ status }) => status === "failed");
  assert.deepEqual(approvals.map(({ id }) => id), ["int_1"]);
});

test("equal options have one store", () => {
  const client = new PerdureClient({ baseUrl: "http://server" });
  const store = threadStore(client, { threadId: "t", agent: "a" });
  assert.equal(threadStore(client, { threadId: "t", agent: "a" }), store);
  assert.notEqual(threadStore(client, { threadId: "t", agent: "b" }), store);
  assert.notEqual(threadStore(new PerdureClient({ baseUrl: "http://server" }), { threadId: "t", agent: "a" }), store);
});

test("equal parts of a copy are those of the last copy", () => {
  const first = share(undefined, { a: { b: [1, { c: 2 }] }, d: null as unknown, e: "x" });
  assert.equal(share(first, structuredClone(first)), first);
  const second = share(first, { a: { b: [1, { c: 2 }] }, d: { f: 1 }, e: "x" });
  assert.equal(second.a, first.a);
  assert.notEqual(second, first);
  assert.deepEqual(share(second, { a: { b: [1] } }), { a: { b: [1] } });
  assert.deepEqual(share([1, 2], [1]), [1]);
  const items = shareByID([], [{ id: "1", n: 1 }, { id: "2", n: 2 }]);
  const moved = shareByID(items, [{ id: "2", n: 2 }, { id: "1", n: 1 }]);
  assert.deepEqual([moved[0] === items[1], moved[1] === items[0]], [true, true]);
});
