// Serves aimock's AG-UI server, installed in the working directory, until stdin ends. Prints {"url"}.
//
//   arguments: host:port
//   POST /          runs the agent: the first fixture that fits is its run
//   GET  /received  the inputs of all runs, each with "left": whether the client left before the end
//
// A fixture is a stream of events: its thread, its run and its messages have the same IDs in each run.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.cwd(), "package.json"));
const { AGUIMock, buildTextResponse } = require("@copilotkit/aimock/agui");

// Tests look for this mark in places where content must not be.
const mark = "zq7content";

// run returns the events of a run.
const run = (...events) => [
  { type: "RUN_STARTED", threadId: "thread", runId: "run" },
  ...events,
  { type: "RUN_FINISHED", threadId: "thread", runId: "run" },
];
const text = (messageId, ...deltas) => [
  { type: "TEXT_MESSAGE_START", messageId, role: "assistant" },
  ...deltas.map((delta) => ({ type: "TEXT_MESSAGE_CONTENT", messageId, delta })),
  { type: "TEXT_MESSAGE_END", messageId },
];
const call = (toolCallId, toolCallName, args, parentMessageId) => [
  { type: "TOOL_CALL_START", toolCallId, toolCallName, parentMessageId },
  { type: "TOOL_CALL_ARGS", toolCallId, delta: args },
  { type: "TOOL_CALL_END", toolCallId },
];

const hasResult = ({ messages }) => messages.at(-1).role === "tool";
const mock = new AGUIMock({ logLevel: "silent" })
  .onPredicate(hasResult, buildTextResponse(`${mark} It is red.`))
  .onMessage("Say hello", `${mark} Hello from afar.`)
  .onToolCall("Paint it", "paint", '{"color":"red"}')
  .onRun(
    "Weather in Paris",
    run(
      ...text("message-1", `${mark} Let me look.`),
      ...call("call-1", "weather", '{"city":"Paris"}', "message-1"),
      { type: "TOOL_CALL_RESULT", messageId: "result-1", toolCallId: "call-1", content: '{"city":"Paris","sky":"clear"}' },
      ...text("message-2", `${mark} Clear in Paris.`),
    ),
  )
  .onRun("Remember Oslo", run({ type: "STATE_SNAPSHOT", snapshot: { city: "Oslo" } }, ...text("message-1", `${mark} Noted.`)))
  .onRun("Tell a story", run(...text("story", ...Array.from({ length: 300 }, (_, i) => `${mark} ${i}. `))), 50);

const received = [];
const server = createServer((request, response) => {
  if (request.method === "GET") return response.end(JSON.stringify(received));
  const entry = { left: false };
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => received.push(Object.assign(entry, { input: JSON.parse(Buffer.concat(chunks)) })));
  response.on("close", () => (entry.left = !response.writableFinished));
  mock.handleRequest(request, response, "/");
});
const [host, port] = process.argv[2].split(":");
server.listen(Number(port), host, () => process.stdout.write(JSON.stringify({ url: `http://${host}:${port}` }) + "\n"));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
