import assert from "node:assert/strict";
import { test } from "node:test";
import { Subagents } from "../dist/store/subagents.js";
import { started } from "./event_log.js";

const call = (id: string, name: string, more: object = {}) => ({ role: "assistant", toolCalls: [{ id, function: { name } }], ...more });
const messages = [
  { role: "user" },
  call("call_1", "historian"),
  call("call_a", "calculate", { subagentRunId: "sub_1" }),
  { role: "tool", toolCallId: "call_1" },
  call("call_2", "writer"),
  { role: "assistant", subagentRunId: "sub_2" },
];

test("subagents are known by their messages", () => {
  for (const [thread, status] of [["running", "running"], ["waiting", "suspended"], ["idle", "failed"]] as const) {
    assert.deepEqual(new Subagents().list(messages, thread), [
      { id: "sub_1", name: "historian", status: "finished", toolCallId: "call_1" },
      { id: "sub_2", name: "writer", status, toolCallId: "call_2" },
    ]);
  }
});

test("events tell how subagents and branches of the last run proceed", () => {
  const subagents = new Subagents();
  const begin = (subagentRunId: string, name: string, more: object = {}) => subagents.observe({ type: "SUBAGENT_STARTED", subagentRunId, name, ...more });
  const statuses = () => subagents.list(messages, "running").map(({ name, status }) => `${name} ${status}`);
  subagents.observe(started("r-1"));
  begin("sub_1", "historian", { parentToolCallId: "call_1" });
  begin("sub_3", "left", { parentSubagentRunId: "sub_1" });
  begin("sub_2", "writer", { parentToolCallId: "call_2" });
  assert.deepEqual(statuses(), ["historian running", "writer running", "left running"]);
  assert.deepEqual(subagents.list([], "running")[1], { id: "sub_3", name: "left", status: "running", parentId: "sub_1" });
  subagents.observe({ type: "SUBAGENT_ERROR", subagentRunId: "sub_1", code: "limit_turns", message: "too many" });
  subagents.observe({ type: "SUBAGENT_FINISHED", subagentRunId: "sub_3" });
  subagents.observe({ type: "SUBAGENT_FINISHED", subagentRunId: "sub_2", outcome: { type: "suspended", interruptIds: ["i"] } });
  assert.deepEqual(statuses(), ["historian failed", "writer suspended", "left finished"]);
  assert.deepEqual(subagents.list(messages, "running")[0]!.error, { code: "limit_turns", message: "too many" });
  subagents.observe(started("r-2"));
  assert.deepEqual(statuses(), ["historian failed", "writer suspended"]);
  begin("sub_2", "writer", { parentToolCallId: "call_2" });
  assert.deepEqual(statuses(), ["historian failed", "writer running"]);
});
