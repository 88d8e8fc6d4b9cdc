import { type Message } from "@ag-ui/client";
import { Listing, PerdureClient } from "@perdure/client";
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { allTransports, skipReason, type Perdure, start } from "./perdure_process.js";
import { until } from "./event_log.js";

const say = (content: string): Message[] => [{ id: `u-${content}`, role: "user", content }];

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = [];
  for await (const item of items) list.push(item);
  return list;
}

for (const [transport, options] of Object.entries(allTransports)) {
  describe(`PerdureClient over ${transport}`, { skip: skipReason, timeout: 240_000 }, () => {
    let perdure: Perdure;
    let client: PerdureClient;
    before(async () => {
      perdure = await start("clients/typescript/test/agents");
      client = new PerdureClient({ ...options, baseUrl: perdure.url, retry: { baseDelay: 10, attempts: 50 } });
    });
    after(() => perdure.stop());

    // Starts a run and reads it to its end.
    const run = async (agent: string, threadId: string, content: string) => {
      const runId = await client.startRun(agent, { threadId, messages: say(content) });
      const events = await all(client.events(threadId, { runId }));
      assert.equal(events.at(-1)?.event.type, "RUN_FINISHED");
      return { runId, events };
    };

    test("starts a run, and reads its events from the start, after a cursor, and from the log", async () => {
      const { runId, events } = await run("stepwise", "events", "Go!");
      assert.equal(events[0]!.event.type, "RUN_STARTED");
      const rest = await all(client.events("events", { runId, after: events[2]!.cursor! }));
      assert.deepEqual(rest, events.slice(3));
      assert.deepEqual(await all(client.loggedEvents("events", { runId, limit: 2 })), events);
      const joined = await all(client.events("events", { follow: false }));
      assert.deepEqual(joined.map(({ event }) => event.type).slice(0, 2), ["RUN_STARTED", "MESSAGES_SNAPSHOT"]);
      await assert.rejects(client.startRun("no such agent", { threadId: "t" }), { code: "unknown_agent" });
      await assert.rejects(client.events("no such thread", { runId: "r" }).next(), { code: "unknown_run" });
    });

    test("returns the trace of a run, and yields it until the run ends", async () => {
      const { runId } = await run("stepwise", "traced", "Go!");
      const trace = await client.trace("traced", runId);
      const [root, ...parts] = trace.spans;
      assert.deepEqual([trace.status, root!.kind, root!.name], ["finished", "run", "stepwise"]);
      assert.ok(parts.some(({ kind, status }) => kind === "model" && status === "finished"));
      assert.deepEqual(await all(client.traceEvents("traced", runId)), [{ type: "trace", trace }, { type: "end" }]);
      await assert.rejects(client.traceEvents("traced", "no such run").next(), { code: "unknown_run" });
      const timed = await client.loggedEvents("traced", { runId, timestamps: true });
      assert.ok(timed.items.every(({ event }) => typeof event.timestamp === "number"));
    });

    test("returns the result of a run, and rejects if it fails or has none", async () => {
      assert.deepEqual(await client.call<{ total: number }>("counter", "How much?"), { total: 84 });
      const threadId = "called";
      assert.deepEqual(await client.call("counter", { threadId, messages: say("How much?") }), { total: 84 });
      const { runId } = (await client.runs(threadId)).items[0]!;
      const run = await client.run(threadId, runId);
      assert.deepEqual([run.outcome, run.result], ["success", { total: 84 }]);
      assert.equal(await client.call("undecided", "How much?"), null);
      await assert.rejects(client.call("stubborn", "How much?"), { name: "RunError", code: "invalid_output" });
      await assert.rejects(client.call("stepwise", "Go!"), { name: "RunError", code: "no_result" });
    });

    test("lists, reads, forks and deletes threads", async () => {
      const { runId } = await run("stepwise", "parent", "Go!");
      await run("stepwise", "parent", "Go again!");
      const summary = await client.thread("parent");
      assert.deepEqual([summary.status, summary.runs, summary.agent], ["idle", 2, "stepwise"]);
      const messages = await all(client.messages("parent", { limit: 3 }));
      assert.equal(messages.length, summary.messages);
      assert.deepEqual((await all(client.runs("parent", { limit: 1 }))).map(({ outcome }) => outcome), ["success", "success"]);
      assert.deepEqual(await client.state("parent"), {});

      const fork = await client.fork("parent", runId);
      assert.deepEqual((await client.thread(fork)).forkedFrom, { threadId: "parent", runId });
      assert.equal(await client.fork("parent", runId, fork), fork);
      const end = (await client.forkPoints("parent", runId)).at(-1)!;
      assert.equal(end.kind, "end");
      assert.equal(await client.fork("parent", runId, fork, { at: end.cursor }), fork);
      let listed: string[] = [];
      while (!listed.includes(fork)) listed = (await all(client.threads({ limit: 1 }))).map(({ threadId }) => threadId);
      assert.ok(listed.includes("parent"));

      const shares = [{ role: "finance", access: "decide" as const }, { everyone: true, access: "read" as const }];
      assert.deepEqual((await client.share(fork, shares)).shares, shares);
      assert.deepEqual((await client.shares(fork)).shares, shares);
      assert.deepEqual((await client.share(fork, [])).shares, []);
      await client.deleteThread(fork);
      await assert.rejects(client.thread(fork), { status: 404, code: "unknown_thread" });
      await assert.rejects(client.deleteThread(fork), { status: 404, code: "unknown_thread" });
    });

    test("lists the messages that an edit removed", async () => {
      await run("stepwise", "edited", "Go!");
      const edited = { id: "u-Go!", role: "user", content: "Go there!" } as Message;
      const runId = await client.startRun("stepwise", { threadId: "edited", messages: [edited] });
      await all(client.events("edited", { runId }));
      const [superseded] = await all(client.superseded("edited"));
      assert.equal(superseded?.runId, runId);
      const removed = await all(client.supersededMessages("edited", runId, { limit: 4 }));
      assert.equal(removed.length, superseded.messages);
      assert.equal(removed[0]?.content, "Go!");
    });

    test("steers an active run", async () => {
      const runId = await client.startRun("stepwise", { threadId: "steered", messages: say("Go!") });
      const accepted = await client.steer("steered", { id: "u-2", role: "user", content: "Hurry!" });
      assert.equal(accepted.runId, runId);
      await all(client.events("steered", { runId }));
      assert.ok((await all(client.messages("steered"))).some(({ id }) => id === "u-2"));
      await assert.rejects(client.steer("steered", { id: "u-3", role: "user", content: "Hurry!" }), { code: "not_active" });
    });

    test("follows, decides and audits approvals", async () => {
      const seen: string[] = [];
      const stop = new AbortController();
      const { eventsCursor } = await client.approvals();
      const following = (async () => {
        for await (const { type, approval } of client.approvalEvents({ after: eventsCursor }, { signal: stop.signal })) {
          if (approval.threadId === "approvals") seen.push(type);
        }
      })().catch((error: unknown) => assert.ok(stop.signal.aborted, String(error)));
      await run("calculator", "approvals", "Please work out 6*7 and 6+7 for me.");
      await until(() => seen.length === 2);
      const open = await all(client.approvals({ thread: "approvals", limit: 1 }));
      assert.equal(open.length, 2);
      const results = await client.decideBatch([
        ...open.map(({ threadId, id }) => ({ threadId, id, decision: "approve" as const, remember: "arguments" as const })),
        { threadId: "approvals", id: "nonsense", decision: "approve" },
      ]);
      assert.deepEqual(results.map(({ status, code }) => code ?? status), [200, 200, "unknown_approval"]);
      await until(() => seen.length === 4);
      assert.deepEqual(seen, ["opened", "opened", "decided", "decided"]);
      stop.abort();
      await following;
      const audit = await all(client.audit("approvals", { limit: 1, waitFor: results[1]!.cursor }));
      assert.deepEqual(audit.map(({ status, decisions }) => [status, decisions[0]?.decision]), [["decided", "approve"], ["decided", "approve"]]);
      await assert.rejects(client.createLink("approvals", open[0]!.id, { decision: "approve" }), { status: 409, code: "decided" });
    });

    test("creates, changes, fires and deletes schedules", async () => {
      const spec = { agent: "stepwise", cron: ["0 9 * * *"], input: { messages: [{ role: "user", content: "Go!" }] } };
      const { id } = await client.createSchedule(spec);
      assert.deepEqual((await client.replaceSchedule(id, { ...spec, note: "changed" })).note, "changed");
      await client.pauseSchedule(id);
      assert.equal((await client.schedule(id)).paused, true);
      await client.resumeSchedule(id);
      await client.triggerSchedule(id, { overlap: "skip" });
      let fired = 0;
      while (fired === 0) fired = (await client.schedule(id)).fired;
      assert.deepEqual((await all(client.schedules({ limit: 1 }))).map((listed) => listed.id), [id]);
      await client.deleteSchedule(id);
      await assert.rejects(client.schedule(id), { code: "unknown_schedule" });
      await assert.rejects(client.createSchedule({ ...spec, cron: ["never"] }), { code: "invalid_schedule" });
    });

    test("uploads, reads, lists and deletes a file", async () => {
      const bytes = new Uint8Array(300_000).map((_, i) => i % 251);
      const { id, url, name, size } = await client.uploadFile(new Blob([bytes]), { name: "noise.bin" });
      assert.deepEqual([url, name, size], [`/v1/files/${id}`, "noise.bin", bytes.length]);
      assert.deepEqual(new Uint8Array(await (await client.openFile(id)).arrayBuffer()), bytes);
      assert.equal((await client.file(id)).name, "noise.bin");
      assert.ok((await client.files()).items.some((file) => file.id === id));
      await client.deleteFile(id);
      await assert.rejects(client.openFile(id), { code: "unknown_file" });
    });
    test("reads the quotas of the tenant", async () => {
      const { tenant, quotas } = await client.quotas();
      assert.equal(tenant, "default");
      assert.ok(quotas.some(({ quota, used }) => quota === "threads" && used > 0));
      assert.equal((await client.quotas({ tenant: "acme" })).tenant, "acme");
    });

    test("publishes an agent, and reads its revisions", async () => {
      const definition = (description: string) => `name: greeter\nmodel: scripted/demo\ndescription: ${description}\n`;
      const first = await client.publishAgent("greeter", definition("one"), { replaces: null });
      await assert.rejects(client.publishAgent("greeter", definition("two"), { replaces: null }), { code: "revision_mismatch" });
      const second = await client.publishAgent("greeter", definition("two"), { replaces: first.revision, scope: "platform", note: "shorter" });
      assert.equal((await client.agent("greeter")).revision, second.revision);
      assert.equal((await client.agent("greeter", { revision: first.revision })).description, "one");
      assert.ok((await client.agents()).some(({ name }) => name === "greeter"));
      assert.equal((await client.caller()).tenant, "default");
      const revisions = await all(client.revisions("greeter", { limit: 1 }));
      assert.deepEqual(revisions.map(({ revision }) => revision), [second.revision, first.revision]);
      assert.match(await client.definition("greeter", first.revision), /description: one/);
      assert.match(await client.revisionDiff("greeter", second.revision), /-description: one\n\+description: two/);
    });
  });
}

test("a list is a page when it is awaited, and sends nothing before", async () => {
  const requests: (string | undefined)[] = [];
  const listing = new Listing<number>(async (cursor) => {
    requests.push(cursor);
    return cursor === "second" ? { items: [3] } : { items: [1, 2], nextCursor: "second" };
  });
  assert.deepEqual(requests, []);
  assert.deepEqual(await listing, { items: [1, 2], nextCursor: "second" });
  assert.deepEqual(await all(listing), [1, 2, 3]);
  assert.deepEqual(requests, [undefined, undefined, "second"]);
});
