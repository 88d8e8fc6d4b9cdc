import { HttpAgent, type Message } from "@ag-ui/client";
import { AnsweredError, type Approval, PerdureAgent, PerdureClient } from "@perdure/client";
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { missing, type Perdure, start, transports } from "./perdure.js";
import { type Event, hasty, type Seen, until, watch } from "./stream.js";

const say = (content: string): Message[] => [{ id: "u-1", role: "user", content }];
const pick = { name: "pick_color", description: "Has the user pick a color.", parameters: { type: "object", properties: { for: { type: "string" } } } };
const held = { runId: "r-1", tools: [pick], forwardedProps: { perdure: { hold: true } } };

// What a held run says that it waits for.
const asks = (event: Event) => (event.name === "perdure.approval" ? [event.value as { id: string; toolCallId: string }] : []);
const calls = (event: Event) => (event.name === "perdure.toolCalls" ? (event.value as string[]) : []);
const results = (messages: Message[]) => messages.flatMap((m) => (m.role === "tool" ? [m.content] : [])).sort();

for (const [transport, options] of Object.entries(transports)) describe(`against Perdure that waits, over ${transport}`, { skip: missing, timeout: 240_000 }, () => {
  let perdure: Perdure;
  let inbox: PerdureClient;
  before(async () => {
    perdure = await start("clients/typescript/test/agents");
    inbox = new PerdureClient({ ...options, baseUrl: perdure.url, retry: hasty });
  });
  after(() => perdure.stop());

  // Lists what waits on some threads until there is as much as there should be: the list is told of it in a moment.
  const listed = async (threads: string[], count: number) => {
    for (;;) {
      const { items } = await inbox.approvals({ limit: 500 });
      const ours = items.filter(({ threadId }) => threads.includes(threadId));
      if (ours.length === count) return ours;
    }
  };

  test("the inbox has what waits over all threads, page by page, until it is decided", async (t) => {
    const threads = ["inbox 1/ü", "inbox 2", "inbox 3"];
    for (const threadId of threads) {
      const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "asking", threadId, initialMessages: say("Please work out 6*7 and 6+7 for me.") });
      assert.deepEqual((await watch(t, agent, { run: { runId: "r-1" } })).console, []);
    }
    const all = await listed(threads, 6);
    assert.deepEqual([...new Set(all.map(({ threadId }) => threadId))], threads); // the oldest first
    const first = all.find(({ threadId, args }) => threadId === threads[0] && (args as { expression: string }).expression === "6*7")!;
    const { id, toolCallId, argsDigest, requestedAt, message, ...rest } = first;
    assert.ok(id && toolCallId && argsDigest && message && Date.parse(requestedAt) <= Date.now() + 1000);
    assert.deepEqual(rest, {
      threadId: threads[0], runId: "r-1", agent: "asking", toolName: "calculate", args: { expression: "6*7" }, approvers: [], quorum: 1, decisions: [], reason: "tool_call",
    });

    const paged: Approval[] = [];
    let cursor: string | undefined;
    do {
      const page = await inbox.approvals({ agent: "asking", tool: "calculate", limit: 1, cursor });
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
      const guest = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "asking", threadId });
      let shown: Seen;
      do shown = await watch(t, guest, { connect: {} }); // the run that nobody asked for may be about to begin
      while (shown.messages.at(-1)?.role !== "assistant" || results(shown.messages).length < 2);
      const refused = String(results(shown.messages)[0]).includes("not now");
      assert.deepEqual([results(shown.messages).includes("42"), refused], threadId === threads[1] ? [false, true] : [true, false]);
    }
  });

  test("a held run stays open for results, whoever gives them, and ends once", async (t) => {
    const threadId = "held 1/ü";
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "picking", threadId, initialMessages: say("Pick!") });
    let open: string[] = [];
    const running = watch(t, agent, { run: held }, (event) => void (calls(event).length > 0 && (open = calls(event))));
    await until(() => open.length === 2);
    const [sky, sea] = open as [string, string];
    assert.equal(agent.isRunning, true);

    const guest = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "picking", threadId });
    let told: string[] = [];
    const joined = watch(t, guest, { connect: {} }, (event) => void (calls(event).length > 0 && (told = calls(event))));
    await until(() => told.length > 0);
    assert.deepEqual(told, open);

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
    await guest.sendToolResult({ toolCallId: sea, content: "", error: "nobody picks" });

    for (const seen of [await running, await joined]) {
      assert.deepEqual([seen.error, seen.console], [undefined, []]);
      assert.deepEqual(results(seen.messages), ["", "blue"]);
      assert.equal(seen.messages.at(-1)?.content, "Thank you.");
      assert.equal(seen.events.filter(({ type }) => type === "RUN_FINISHED").length, 1);
    }
  });

  test("a held run asks, is listed, and goes on when all is answered", async (t) => {
    const threadId = "held and asked";
    const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "picking", threadId, initialMessages: say("Please pick and work out 6*7 for me.") });
    const open: { id: string; toolCallId: string }[] = [];
    let picks: string[] = [];
    const running = watch(t, agent, { run: held }, (event) => void (open.push(...asks(event)), picks.push(...calls(event))));
    await until(() => open.length === 1 && picks.length === 1);
    const [waiting] = await listed([threadId], 1);
    assert.deepEqual([waiting?.id, waiting?.toolCallId, waiting?.runId], [open[0]?.id, open[0]?.toolCallId, "r-1"]);
    await inbox.decide(threadId, open[0]!.id, { decision: "edit", args: { expression: "5*5" } });
    assert.equal((await agent.decide(open[0]!.id, { decision: "edit", args: { expression: "5*5" } })).repeated, true);
    await inbox.toolResult(threadId, { toolCallId: picks[0]!, content: [{ type: "text", text: "blue" }] });
    const seen = await running;
    assert.deepEqual([seen.error, seen.console], [undefined, []]);
    const last = seen.events.at(-1)!;
    assert.deepEqual([last.type, last.runId], ["RUN_FINISHED", "r-1"]);
    assert.match(String(seen.messages.at(-1)?.content), /25/);
    assert.ok(results(seen.messages).includes("25"));
    await listed([threadId], 0);
  });

  test("a stock HttpAgent is held as well, and needs to know nothing of it", async (t) => {
    const threadId = "stock";
    const agent = new HttpAgent({ url: `${perdure.url}/v1/agents/picking/runs`, threadId, initialMessages: say("Please pick and work out 6*7 for me.") });
    const open: { id: string }[] = [];
    const picks: string[] = [];
    const running = watch(t, agent as PerdureAgent, { run: held }, (event) => void (open.push(...asks(event)), picks.push(...calls(event))));
    await until(() => open.length === 1 && picks.length === 1);
    await inbox.toolResult(threadId, { toolCallId: picks[0]!, content: "blue" });
    await inbox.decide(threadId, open[0]!.id, { decision: "approve" });
    const seen = await running;
    assert.deepEqual([seen.error, seen.console], [undefined, []]);
    assert.equal(seen.messages.at(-1)?.content, "It is blue and 42.");
    assert.deepEqual(results(seen.messages), ["42", "blue"]);
    assert.deepEqual(seen.messages.map(({ role }) => role), ["user", "assistant", "tool", "tool", "assistant"]);

    // Its next run goes on with the conversation: nothing was asked of it.
    agent.addMessage({ id: "u-2", role: "user", content: "Please pick and work out 1+1 for me." });
    const again = watch(t, agent as PerdureAgent, { run: { ...held, runId: "r-2" } }, (event) => void (open.push(...asks(event)), picks.push(...calls(event))));
    await until(() => open.length === 2 && picks.length === 2);
    await inbox.cancel(threadId, "r-2");
    const cancelled = await again;
    assert.deepEqual([cancelled.error, cancelled.console], [undefined, []]);
    await assert.rejects(inbox.toolResult(threadId, { toolCallId: picks[1]!, content: "red" }), { status: 410, code: "abandoned" });
    await assert.rejects(inbox.decide(threadId, open[1]!.id, { decision: "approve" }), { status: 404 });
  });

  // Each round is a thread of its own; the acknowledgement is not followed by any pause.
  const rounds = Array.from({ length: 15 }, (_, i) => i);
  const expression = (seen: Seen) => results(seen.messages);

  test("who decides and connects is shown the decision, not the question", async (t) => {
    for (const round of rounds) {
      const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "asking", threadId: `decided ${round}`, initialMessages: say("Please work out 6*7 and 6+7 for me.") });
      assert.deepEqual((await watch(t, agent, { run: { runId: "r-1" } })).error, undefined);
      assert.equal(agent.pendingInterrupts.length, 2);
      for (const { id } of agent.pendingInterrupts) await agent.decide(id, { decision: "approve" });
      const seen = await watch(t, agent, { connect: {} });
      assert.deepEqual([seen.error, seen.console, agent.pendingInterrupts], [undefined, [], []]);
      assert.deepEqual(expression(seen), ["13", "42"]);
      assert.match(String(seen.messages.at(-1)?.content), /At last it is/);
    }
  });

  test("who decides elsewhere passes the cursor on", async (t) => {
    for (const round of rounds) {
      const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "asking", threadId: `elsewhere ${round}`, initialMessages: say("Please work out 6*7 and 6+7 for me.") });
      await watch(t, agent, { run: { runId: "r-1" } });
      let waitFor: string | undefined;
      for (const { id } of agent.pendingInterrupts) waitFor = (await inbox.decide(agent.threadId, id, { decision: "approve" })).cursor;
      const guest = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "asking", threadId: agent.threadId });
      const seen = await watch(t, guest, { connect: { ...(waitFor !== undefined && { waitFor }) } });
      assert.deepEqual([seen.error, expression(seen)], [undefined, ["13", "42"]]);
    }
  });

  test("who decides and runs is shown what came of it", async (t) => {
    for (const round of rounds) {
      const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "asking", threadId: `run ${round}`, initialMessages: say("Please work out 6*7 and 6+7 for me.") });
      await watch(t, agent, { run: { runId: "r-1" } });
      const [first, second] = agent.pendingInterrupts;
      await agent.decide(first!.id, { decision: "edit", args: { expression: "5*5" } });
      await agent.decide(second!.id, { decision: "approve" });
      const seen = await watch(t, agent, { run: { runId: "r-2" } });
      assert.deepEqual([seen.error, seen.console, agent.pendingInterrupts], [undefined, [], []]);
      assert.deepEqual(expression(seen), ["13", "25"]);
      assert.equal(seen.messages.filter(({ role }) => role === "user").length, 1);
      assert.match(String(seen.messages.at(-1)?.content), /At last it is/);
    }
  });

  test("who gives the last result and connects, or runs, is shown what came of it", async (t) => {
    for (const round of rounds) {
      const threadId = `picked ${round}`;
      const agent = new PerdureAgent({ ...options, baseUrl: perdure.url, agent: "patient", threadId, initialMessages: say("Pick!") });
      const first = await watch(t, agent, { run: { runId: "r-1", tools: [pick] } });
      const open = first.messages.flatMap((m) => (m.role === "assistant" ? (m.toolCalls ?? []) : []));
      assert.equal(open.length, 2);
      for (const { id } of open) await agent.sendToolResult({ toolCallId: id, content: `blue ${round}` });
      const again = round % 2 === 0 ? { connect: {} } : { run: { runId: "r-2", tools: [pick] } };
      const seen = await watch(t, agent, again);
      assert.deepEqual([seen.error, seen.console], [undefined, []]);
      assert.deepEqual(expression(seen), [`blue ${round}`, `blue ${round}`]);
      assert.equal(seen.messages.at(-1)?.content, "Thank you.");
    }
  });
});
