// Serves CopilotKit's built-in agent from CopilotKit's runtime, installed in the working directory, until stdin ends.
// Prints {"url"}.
//
//   arguments: host:port, and the base URL of a model server that speaks OpenAI's API
//   POST /api/agent/assistant/run  runs the agent
//   GET  /received                 the inputs of all runs, each with "left": whether the client left before the end
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// The runtime reports each refused and each failed run, with stacks; the tests check these.
console.error = console.warn = () => {};
const [address, model] = process.argv.slice(2);
process.env.OPENAI_BASE_URL = `${model}/v1`;
process.env.OPENAI_API_KEY = "none";

const require = createRequire(join(process.cwd(), "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

const { BuiltInAgent, CopilotRuntime, defineTool } = await load("@copilotkit/runtime/v2");
const { createCopilotNodeListener } = await load("@copilotkit/runtime/v2/node");
const { z } = await load("zod");

const weather = defineTool({
  name: "weather",
  description: "The weather of a city",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ city, sky: "clear" }),
});
const booking = defineTool({
  name: "booking",
  description: "Books a room once a person has confirmed it",
  parameters: z.object({ room: z.string() }),
  interrupt: true,
  interruptMessage: "Book the room?",
});
const assistant = new BuiltInAgent({ model: "openai/gpt-5-mini", tools: [weather, booking], maxSteps: 4 });

const received = [];
const runtime = new CopilotRuntime({
  agents: { assistant },
  beforeRequestMiddleware: async ({ request }) => {
    if (!request.url.endsWith("/run")) return;
    const run = { input: await request.clone().json(), left: false };
    received.push(run);
    request.signal.addEventListener("abort", () => (run.left = true));
  },
});
const listen = createCopilotNodeListener({ runtime, basePath: "/api" });
const server = createServer((request, response) =>
  request.url === "/received" ? response.end(JSON.stringify(received)) : listen(request, response),
);
const [host, port] = address.split(":");
server.listen(Number(port), host, () => process.stdout.write(JSON.stringify({ url: `http://${address}` }) + "\n"));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
