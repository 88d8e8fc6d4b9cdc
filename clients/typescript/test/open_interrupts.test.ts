// The open calls of client tools after the end of a run.
import assert from "node:assert/strict";
import { test } from "node:test";
import { OpenInterrupts } from "../dist/interrupts.js";

const messages = [
  { role: "user" },
  { role: "assistant", toolCalls: [{ id: "c1", function: { name: "pick_color", arguments: '{"col' } }, { id: "c2", function: { name: "pick_color", arguments: "{}" } }] },
];

for (const [name, end, want] of [
  ["a run that names its open calls", { type: "RUN_FINISHED", outcome: { type: "success", pendingToolCallIds: ["c2"] } }, ["c2"]],
  ["a run for a client before AG-UI 1.0", { type: "RUN_FINISHED" }, ["c1", "c2"]],
  ["a cancelled run", { type: "RUN_FINISHED", outcome: { type: "cancelled" } }, []],
  ["a run with an error", { type: "RUN_ERROR", code: "cancelled" }, []],
  ["a failed run that is read later", { type: "RUN_FINISHED", metadata: { "perdure.error": { code: "limit_turns" } } }, []],
] as const) {
  test(`open calls after ${name}`, () => {
    const open = new OpenInterrupts();
    open.observe({ type: "RUN_STARTED", runId: "r1" });
    open.observe({ ...end });
    assert.deepEqual(open.toolCalls(messages).map(({ toolCallId }) => toolCallId), want);
  });
}
