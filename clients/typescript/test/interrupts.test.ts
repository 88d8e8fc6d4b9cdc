import { HttpAgent, type Message } from "@ag-ui/client";
import { AnsweredError, type Approval, PerdureAgent, PerdureClient } from "@perdure/client";
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { skipReason, type Perdure, start, transports } from "./perdure_process.js";
import { type Event, immediateRetry, type Received, until, read } from "./event_log.js";

const userMessage = (content: string): Message[] => [{ id: "u-1", role: "user", content }];
const pick = { name: "pick_color", description: "Lets the user pick a color.", parameters: { type: "object", properties: { for: { type: "string" } } } };
const held = { runId: "r-1", tools: [pick], forwardedProps: { perdure: { hold: true } } };

// Return what a held run waits for.
const requestPaths = (event: Event) => (event.name === "perdure.approval" ? [event.value as { id: string; toolCallId: string }] : []);
const calls = (event: Event) => (event.name === "perdure.toolCalls" ? (event.value as string[]) : []);
const results = (messages: Message[]) => messages.flatMap((m) => (m.role === "tool" ? [m.content] : [])).sort();

for (const [transport, options] of Object.entries(transports)) describe(`interrupts over ${transport}`, { skip: skipReason, timeout: 240_000 }, () => {
  let perdure: Perdure;
  let inbox: PerdureClient;
  before(async () => {
    perdure = await start("clients/typescript/test/agents");
    inbox = new PerdureClient({ ...options, baseUrl: perdure.url, retry: immediateRetry });
  });
  after(() => perdure.stop());

  // Lists the approvals of some threads until they are as many as expected. The list lags for a moment.
  const listed = async (threads: string[], count: number) => {
    for (;;) {
      const { items } = await inbox.approvals({ limit: 500 });
      const ours = items.filter(({ threadId }) => threads.includes(threadId));
      if (ours.length === count) return ours;
    }
  };

  test("the inbox lists the approvals of all threads until they are decided", async (t) => {
    const threads = ["inbox 1/ü", "inbox 2", "inbox 3"];
    for (const threadId of threads) {
      const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "calculator", threadId, initialMessages: userMessage("Please work out 6*7 and 6+7 for me.") });
      assert.deepEqual((await read(t, agent, { run: { runId: "r-1" } })).console, []);
    }
    const all = await listed(threads, 6);
    assert.deepEqual([...new Set(all.map(({ threadId }) => threadId))], threads); // oldest first
    const first = all.find(({ threadId, args }) => threadId === threads[0] && (args as { expression: string }).expression === "6*7")!;
    const { id, toolCallId, argsDigest, requestedAt, message, ...rest } = first;
    assert.ok(id && toolCallId && argsDigest && message && Date.parse(requestedAt) <= Date.now() + 1000);
    assert.deepEqual(rest, {
      threadId: threads[0], runId: "r-1", agent: "calculator", toolName: "calculate", args: { expression: "6*7" }, approvers: [], quorum: 1, decisions: [], reason: "tool_call",
    });

    const paged: Approval[] = [];
    let cursor: string | undefined;
    do {
      const page = await inbox.approvals({ agent: "calculator", tool: "calculate", limit: 1, cursor });
      assert.equal(page.items.length, 1);
      assert.ok(page.eventsCursor);
      paged.push(...page.items);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    assert.deepEqual(paged.filter(({ threadId }) => threads.includes(threadId)), all);
    assert.equal((await inbox.approvals({ thread: "inbox 1/ü" })).items.length, 2);
    for (const filter of [{ agent: "nobody" }, { tool: "nothing" }, { olderThan: "4h" }]) assert.deepEqual((await inbox.approvals(filter)).items, []);
    await assert.rejects(inbox.approvals({ limit: 501 }), { status: 400, code: "invalid_input" });
    await assert.rejects(inbox.approvals({ cursor: "nonsense" }), { status: 400, code: "invalid_cursor" });

    for (const { threadId, id } of all) {
      const accepted = await inbox.decide(threadId, id, threadId === threads[1] ? { decision: "reject", reason: "not now" } : { decision: "approve" });
      assert.deepEqual([accepted.repeated, accepted.id], [false, id]);
    }
    await listed(threads, 0);
    for (const threadId of threads) {
      const reader = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "calculator", threadId });
      let shown: Received;
      do shown = await read(t, reader, { connect: {} }); // the server may not have started the continuing run yet
      while (shown.messages.at(-1)?.role !== "assistant" || results(shown.messages).length < 2);
      const refused = String(results(shown.messages)[0]).includes("not now");
      assert.deepEqual([results(shown.messages).includes("42"), refused], threadId === threads[1] ? [false, true] : [true, false]);
    }
  });

  test("a held run receives results from any client, and ends once", async (t) => {
    const threadId = "held 1/ü";
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "painter", threadId, initialMessages: userMessage("Pick!") });
    let open: string[] = [];
    const running = read(t, agent, { run: held }, (event) => void (calls(event).length > 0 && (open = calls(event))));
    await until(() => open.length === 2);
    const [sky, sea] = open as [string, string];
    assert.equal(agent.isRunning, true);

    const reader = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "painter", threadId });
    let announced: string[] = [];
    const joined = read(t, reader, { connect: {} }, (event) => void (calls(event).length > 0 && (announced = calls(event))));
    await until(() => announced.length > 0);
    assert.deepEqual(announced, open);

    assert.equal((await inbox.toolResult(threadId, { toolCallId: sky, content: "blue" })).repeated, false);
    assert.equal((await agent.sendToolResult({ toolCallId: sky, content: "blue" })).repeated, true);
    await assert.rejects(inbox.toolResult(threadId, { toolCallId: sky, content: "red" }), (error) => {
      assert.ok(error instanceof AnsweredError);
      assert.equal(error.code, "answered");
      assert.match(JSON.stringify(error.recorded), /blue/);
      return true;
    });
    await assert.rejects(inbox.toolResult(threadId, { toolCallId: "nonsense", content: "red" }), { status: 404, code: "unknown_tool_call" });
    await assert.rejects(inbox.toolResult(threadId, { toolCallId: sea } as never), { status: 422, code: "invalid_tool_result" });
    await assert.rejects(inbox.toolResult("no such thread", { toolCallId: sea, content: "" }), { status: 404 });
    await reader.sendToolResult({ toolCallId: sea, content: "", error: "nobody picks" });

    for (const received of [await running, await joined]) {
      assert.deepEqual([received.error, received.console], [undefined, []]);
      assert.deepEqual(results(received.messages), ["", "blue"]);
      assert.equal(received.messages.at(-1)?.content, "Thank you.");
      assert.equal(received.events.filter(({ type }) => type === "RUN_FINISHED").length, 1);
    }
  });

  test("a held run is in the inbox, and continues after all answers", async (t) => {
    const threadId = "held and approved";
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "painter", threadId, initialMessages: userMessage("Please pick and work out 6*7 for me.") });
    const open: { id: string; toolCallId: string }[] = [];
    let picks: string[] = [];
    const running = read(t, agent, { run: held }, (event) => void (open.push(...requestPaths(event)), picks.push(...calls(event))));
    await until(() => open.length === 1 && picks.length === 1);
    const [waiting] = await listed([threadId], 1);
    assert.deepEqual([waiting?.id, waiting?.toolCallId, waiting?.runId], [open[0]?.id, open[0]?.toolCallId, "r-1"]);
    await inbox.decide(threadId, open[0]!.id, { decision: "edit", args: { expression: "5*5" } });
    assert.equal((await agent.decide(open[0]!.id, { decision: "edit", args: { expression: "5*5" } })).repeated, true);
    await inbox.toolResult(threadId, { toolCallId: picks[0]!, content: [{ type: "text", text: "blue" }] });
    const received = await running;
    assert.deepEqual([received.error, received.console], [undefined, []]);
    const last = received.events.at(-1)!;
    assert.deepEqual([last.type, last.runId], ["RUN_FINISHED", "r-1"]);
    assert.match(String(received.messages.at(-1)?.content), /25/);
    assert.ok(results(received.messages).includes("25"));
    await listed([threadId], 0);
  });

  test("the run of a stock HttpAgent can be held", async (t) => {
    const threadId = "stock";
    const agent = new HttpAgent({ url: `${perdure.url}/v1/agents/painter/runs`, threadId, initialMessages: userMessage("Please pick and work out 6*7 for me.") });
    const open: { id: string }[] = [];
    const picks: string[] = [];
    const running = read(t, agent as PerdureAgent, { run: held }, (event) => void (open.push(...requestPaths(event)), picks.push(...calls(event))));
    await until(() => open.length === 1 && picks.length === 1);
    await inbox.toolResult(threadId, { toolCallId: picks[0]!, content: "blue" });
    await inbox.decide(threadId, open[0]!.id, { decision: "approve" });
    const received = await running;
    assert.deepEqual([received.error, received.console], [undefined, []]);
    assert.equal(received.messages.at(-1)?.content, "It is blue and 42.");
    assert.deepEqual(results(received.messages), ["42", "blue"]);
    assert.deepEqual(received.messages.map(({ role }) => role), ["user", "assistant", "tool", "tool", "assistant"]);

    // Its next run continues the conversation, because the first run ended without interrupts.
    agent.addMessage({ id: "u-2", role: "user", content: "Please pick and work out 1+1 for me." });
    const again = read(t, agent as PerdureAgent, { run: { ...held, runId: "r-2" } }, (event) => void (open.push(...requestPaths(event)), picks.push(...calls(event))));
    await until(() => open.length === 2 && picks.length === 2);
    await inbox.cancel(threadId, "r-2");
    const cancelled = await again;
    assert.deepEqual([cancelled.error, cancelled.console], [undefined, []]);
    await assert.rejects(inbox.toolResult(threadId, { toolCallId: picks[1]!, content: "red" }), { status: 409, code: "answered" });
    await assert.rejects(inbox.decide(threadId, open[1]!.id, { decision: "approve" }), { status: 404 });
  });

  // Each round has its own thread. No pause follows the acknowledgement.
  const rounds = Array.from({ length: 15 }, (_, i) => i);
  const expression = (received: Received) => results(received.messages);

  test("an agent that decides and connects receives the effect", async (t) => {
    for (const round of rounds) {
      const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "calculator", threadId: `decided ${round}`, initialMessages: userMessage("Please work out 6*7 and 6+7 for me.") });
      assert.deepEqual((await read(t, agent, { run: { runId: "r-1" } })).error, undefined);
      assert.equal(agent.pendingInterrupts.length, 2);
      for (const { id } of agent.pendingInterrupts) await agent.decide(id, { decision: "approve" });
      const received = await read(t, agent, { connect: {} });
      assert.deepEqual([received.error, received.console, agent.pendingInterrupts], [undefined, [], []]);
      assert.deepEqual(expression(received), ["13", "42"]);
      assert.match(String(received.messages.at(-1)?.content), /At last it is/);
    }
  });

  test("an agent with the cursor of another client's decision receives the effect", async (t) => {
    for (const round of rounds) {
      const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "calculator", threadId: `elsewhere ${round}`, initialMessages: userMessage("Please work out 6*7 and 6+7 for me.") });
      await read(t, agent, { run: { runId: "r-1" } });
      let waitFor: string | undefined;
      for (const { id } of agent.pendingInterrupts) waitFor = (await inbox.decide(agent.threadId, id, { decision: "approve" })).cursor;
      const reader = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "calculator", threadId: agent.threadId });
      const received = await read(t, reader, { connect: { ...(waitFor !== undefined && { waitFor }) } });
      assert.deepEqual([received.error, expression(received)], [undefined, ["13", "42"]]);
    }
  });

  test("an agent that decides and runs receives the effect", async (t) => {
    for (const round of rounds) {
      const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "calculator", threadId: `run ${round}`, initialMessages: userMessage("Please work out 6*7 and 6+7 for me.") });
      await read(t, agent, { run: { runId: "r-1" } });
      const [first, second] = agent.pendingInterrupts;
      await agent.decide(first!.id, { decision: "edit", args: { expression: "5*5" } });
      await agent.decide(second!.id, { decision: "approve" });
      const received = await read(t, agent, { run: { runId: "r-2" } });
      assert.deepEqual([received.error, received.console, agent.pendingInterrupts], [undefined, [], []]);
      assert.deepEqual(expression(received), ["13", "25"]);
      assert.equal(received.messages.filter(({ role }) => role === "user").length, 1);
      assert.match(String(received.messages.at(-1)?.content), /At last it is/);
    }
  });

  test("an agent that sends the last result, and connects or runs, receives the effect", async (t) => {
    for (const round of rounds) {
      const threadId = `picked ${round}`;
      const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "palette", threadId, initialMessages: userMessage("Pick!") });
      const first = await read(t, agent, { run: { runId: "r-1", tools: [pick] } });
      const open = first.messages.flatMap((m) => (m.role === "assistant" ? (m.toolCalls ?? []) : []));
      assert.equal(open.length, 2);
      for (const { id } of open) await agent.sendToolResult({ toolCallId: id, content: `blue ${round}` });
      const again = round % 2 === 0 ? { connect: {} } : { run: { runId: "r-2", tools: [pick] } };
      const received = await read(t, agent, again);
      assert.deepEqual([received.error, received.console], [undefined, []]);
      assert.deepEqual(expression(received), [`blue ${round}`, `blue ${round}`]);
      assert.equal(received.messages.at(-1)?.content, "Thank you.");
    }
  });
});
