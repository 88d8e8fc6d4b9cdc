// A stock AG-UI client with a client tool: show_form, which shows a form to the user.
//
//   node form.mjs [run endpoint] [thread]
//
// The agent's call of the tool ends a run. The next run sends the result. No connection is open in
// between: you can stop this program and Perdure, and continue with the printed thread ID.
import { HttpAgent } from "@ag-ui/client";
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";

const [url = "http://127.0.0.1:8080/v1/agents/form/runs", thread = randomUUID()] = process.argv.slice(2);

const showForm = {
  name: "show_form",
  description: "Shows a form to the user. The result has a text for each field, by its name.",
  parameters: {
    type: "object",
    required: ["title", "fields"],
    properties: {
      title: { type: "string" },
      fields: {
        type: "array",
        items: {
          type: "object",
          required: ["name", "label"],
          properties: { name: { type: "string" }, label: { type: "string" } },
        },
      },
    },
  },
};

const input = createInterface({ input: process.stdin });
const lines = input[Symbol.asyncIterator]();
const ask = async (label) => {
  process.stdout.write(label + " ");
  return (await lines.next()).value ?? "";
};

async function fill(call) {
  const { title, fields } = JSON.parse(call.function.arguments);
  console.log(`\n${title}`);
  const values = {};
  for (const { name, label } of fields) values[name] = await ask(label);
  return { id: `result-${call.id}`, role: "tool", toolCallId: call.id, content: JSON.stringify(values) };
}

// Returns the calls of show_form that have no result yet.
const openCalls = ({ messages }) => {
  const answered = new Set(messages.map(({ toolCallId }) => toolCallId));
  return messages
    .flatMap(({ toolCalls = [] }) => toolCalls)
    .filter((call) => call.function.name === showForm.name && !answered.has(call.id));
};

// Returns the messages of the thread; [] if the thread does not exist yet.
async function history() {
  const events = new URL(`/v1/threads/${encodeURIComponent(thread)}/events?follow=false&protocolVersion=1.0`, url);
  const response = await fetch(events, { headers: { Accept: "application/json" } });
  if (response.status === 404) return [];
  if (!response.ok) throw new Error(`${events}: HTTP ${response.status}`);
  const { items } = await response.json();
  return items.findLast(({ event }) => event.type === "MESSAGES_SNAPSHOT")?.event.messages ?? [];
}

const agent = new HttpAgent({ url, threadId: thread, initialMessages: await history() });
console.log(`Thread ${thread}`);
if (openCalls(agent).length === 0) agent.addMessage({ id: randomUUID(), role: "user", content: await ask("You:") });
do {
  for (const call of openCalls(agent)) agent.addMessage(await fill(call));
  await agent.runAgent(
    { tools: [showForm] },
    {
      onTextMessageStartEvent: () => void process.stdout.write("\n"),
      onTextMessageContentEvent: ({ event }) => void process.stdout.write(event.delta),
      onTextMessageEndEvent: () => void process.stdout.write("\n"),
      onRunErrorEvent: ({ event }) => console.error(`\n${event.code}: ${event.message}`),
    },
  );
} while (openCalls(agent).length > 0);
input.close();
