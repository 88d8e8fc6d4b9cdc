// Serves the model server, installed in the working directory, on any free port until stdin ends.
// Prints {"url"}. What it answers is added over its control API; only what no JSON can say is here.
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

await server.start();
process.stdout.write(JSON.stringify({ url: server.url }) + "\n");
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
