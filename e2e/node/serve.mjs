// Serves the model server, installed in the working directory, on any free port until stdin ends.
// Prints {"url"}. Tests add fixtures over its control API. The answers here cannot be written as JSON.
import { createRequire } from "node:module";
import { join } from "node:path";

const { LLMock } = createRequire(join(process.cwd(), "package.json"))("@copilotkit/aimock");
const server = new LLMock({ port: 0, logLevel: "silent", journalMaxEntries: 0 });

const textOf = ({ content }) => (typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join(""));
server.on({ userMessage: /^echo / }, ({ messages }) => ({
  content: "You said: " + textOf(messages.findLast((m) => m.role === "user")).slice("echo ".length),
}));
server.on({ userMessage: /^weigh / }, ({ messages }) => ({
  content: `${messages.length} messages with ${messages.reduce((sum, m) => sum + textOf(m).length, 0)} characters`,
}));
// Counts with tool calls, one in each turn. The answer depends on the conversation only, so that a retry gets the same.
const count = ({ messages }) => {
  const to = Number(/^count to (\d+)/.exec(textOf(messages.findLast((m) => m.role === "user")))[1]);
  const n = messages.filter((m) => m.role === "tool").length;
  if (n === to) return { content: "Counted." };
  return { toolCalls: [{ name: "calculate", arguments: JSON.stringify({ expression: `2*${n}` }) }] };
};
server.on({ userMessage: /^count to / }, count, { latency: 30, chunkSize: 4 });

// GET /calls?api=completions&containing=x returns the requests with a message that contains x. aimock's own API returns
// the whole journal, which grows with the tests.
server.mount("/calls", {
  async handleRequest(req, res) {
    const asked = new URL(req.url, server.url).searchParams;
    const meant = ({ path, body }) =>
      path.includes(asked.get("api")) && (body?.messages ?? []).some((m) => textOf(m).includes(asked.get("containing")));
    res.writeHead(200, { "Content-Type": "application/json" });
    res.end(JSON.stringify(server.getRequests().filter(meant)));
    return true;
  },
});

await server.start();
process.stdout.write(JSON.stringify({ url: server.url }) + "\n");
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
