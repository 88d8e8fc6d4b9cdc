// A page with CopilotKit without a user interface: @copilotkit/core, installed in the working directory,
// on one thread of one agent. It reads commands as JSON lines and prints what a page shows. It only reports;
// the Go tests check.
//
//   arguments: the runtime's URL, the agent's name, the thread, the name of the page's client tool, and the
//   bearer token of the page. The last two may be empty.
//   in:  {say: message, forwardedProps?}   {decide: payload, sameRun}   decides every open interrupt
//        {connect: true}   reads the thread, as a page does that is opened
//        {result: content}   of the last printed tool call
//        {stop: true}   prints nothing
//        With until: n, these commands also print a line when the last message has n characters.
//   out: {type: "end", run, messages, interrupts, error} … when the run has ended
//        {type: "partial", run, messages}
//        {type: "tool", args}   a call of the page's tool, which waits for its result
//        {type: "console", text}
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const emit = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const words = (value) => (typeof value === "string" ? value : (value?.message ?? JSON.stringify(value)));
for (const level of ["warn", "error"]) console[level] = (...args) => emit({ type: "console", text: args.map(words).join(" ") });
process.on("unhandledRejection", (reason) => emit({ type: "console", text: "unhandled: " + words(reason) }));

const require = createRequire(join(process.cwd(), "package.json"));
const kit = await import(pathToFileURL(require.resolve("@copilotkit/core").replace(/\.cjs$/, ".mjs")).href);
const { z } = require("zod");

const [runtimeUrl, agentId, threadId, toolName, token] = process.argv.slice(2);
const headers = token ? { Authorization: `Bearer ${token}` } : {};
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const told = async () => JSON.parse((await lines.next()).value ?? "null");

const agent = new kit.ProxiedCopilotRuntimeAgent({ runtimeUrl, agentId, threadId, headers, transport: "rest" });
const handler = async (args) => {
  emit({ type: "tool", args });
  return (await told())?.result;
};
const tools = toolName ? [{ name: toolName, description: "The page's tool.", parameters: z.object({ of: z.string() }), handler }] : [];
const core = new kit.CopilotKitCore({ agents__unsafe_dev_only: { [agentId]: agent }, headers, tools });

// As CopilotKit's adapters for React, Vue and Angular do: they own the state, the agent sends the events.
const state = new kit.ɵInterruptState();
let run;
let asked = [];
let until = Infinity;
let error;
agent.subscribe({
  onRunErrorEvent: ({ event }) => void (error = event.message),
  onMessagesChanged: ({ messages }) => {
    if (!((messages.at(-1)?.content?.length ?? 0) >= until)) return;
    until = Infinity;
    emit({ type: "partial", run, messages });
  },
  onRunStartedEvent: ({ event }) => {
    run = event.runId;
    asked = [];
    state.clear();
  },
  onRunFinishedEvent: ({ outcome, interrupts }) => void (asked = outcome === "interrupt" ? interrupts : []),
  onRunFinalized: () => void (asked.length > 0 && state.setStandard(asked)),
});

async function execute(command) {
  error = undefined;
  const options = { agent, forwardedProps: command.forwardedProps };
  if (command.say) agent.addMessage(command.say);
  if (command.decide) {
    let decision;
    for (const { id } of asked) decision = state.resolve(command.decide, id);
    for (const result of decision.toolResults) agent.addMessage({ id: randomUUID(), role: "tool", ...result });
    options.resume = decision.resume;
    if (command.sameRun) options.runId = run;
  }
  if (command.connect) await core.connectAgent(options);
  else await core.runAgent(options);
  emit({ type: "end", run, messages: agent.messages, interrupts: asked, error });
}

for (let command; (command = await told()); ) {
  if (command.stop) {
    core.stopAgent({ agent });
    continue;
  }
  until = command.until ?? Infinity;
  const end = execute(command);
  if (!command.until) await end;
}
process.exit(0);
