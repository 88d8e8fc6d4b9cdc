// Drives a stock HttpAgent, of the version installed in the working directory, and prints what it
// sees as JSON lines. It only reports; the Go tests check.
//
//   in (stdin, one JSON document):
//     {url, threadId, messages?, accept?, runs: [{runId, messages?, add?, answer?, resume?, parameters?}],
//      reconnect?: {addresses, cuts?}}
//   answer has a result by tool name, for each open call of the tool.
//   resume is the payload that resolves each open interrupt.
//   out: {type: "event", run, event} … {type: "end", run, outcome, error?, contentType?, messages, state, newMessages, pending}
//        {type: "console", level, text}   {type: "unhandled", text}
import { createRequire } from "node:module";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { reconnecting } from "./reconnect.mjs";

const emit = (line) => process.stdout.write(JSON.stringify(line) + "\n");

const words = (value) => (typeof value === "string" ? value : (value?.message ?? JSON.stringify(value)));
for (const level of ["warn", "error"]) {
  console[level] = (...args) => emit({ type: "console", level, text: args.map(words).join(" ") });
}
process.on("unhandledRejection", (reason) => emit({ type: "unhandled", text: words(reason) }));

const { HttpAgent } = createRequire(join(process.cwd(), "package.json"))("@ag-ui/client");
const command = JSON.parse(await text(process.stdin));

// Another Accept header needs a subclass. It prints the response's content type.
let contentType;
const noting = async (...args) => {
  const response = await fetch(...args);
  contentType = response.headers.get("content-type");
  return response;
};
class Agent extends HttpAgent {
  requestInit(input) {
    const init = super.requestInit(input);
    return command.accept ? { ...init, headers: { ...init.headers, Accept: command.accept } } : init;
  }
}

const agent = new Agent({
  url: command.url,
  threadId: command.threadId,
  initialMessages: command.messages ?? [],
  ...(command.accept && { fetch: noting }),
  ...(command.reconnect && { fetch: reconnecting(command.reconnect) }),
});

// results returns tool messages for the open tool calls.
const results = (answer) => {
  const answered = new Set(agent.messages.map((message) => message.toolCallId));
  return agent.messages
    .flatMap((message) => message.toolCalls ?? [])
    .filter((call) => call.function.name in answer && !answered.has(call.id))
    .map((call) => ({ id: `result-${call.id}`, role: "tool", toolCallId: call.id, content: answer[call.function.name] }));
};

for (const [run, { runId, messages, add = [], answer = {}, resume, parameters = {} }] of command.runs.entries()) {
  if (messages) agent.setMessages(messages);
  agent.addMessages([...results(answer), ...add]);
  if (resume) {
    parameters.resume = agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: resume }));
  }
  const end = { type: "end", run, outcome: "resolved" };
  try {
    const subscriber = { onEvent: ({ event }) => void emit({ type: "event", run, event }) };
    const { newMessages } = await agent.runAgent({ runId, ...parameters }, subscriber);
    end.newMessages = newMessages;
  } catch (error) {
    Object.assign(end, { outcome: "rejected", error: words(error), status: error?.status });
  }
  emit({ ...end, contentType, messages: agent.messages, state: agent.state, pending: agent.pendingInterrupts ?? [] });
}
