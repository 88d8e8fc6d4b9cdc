// Serves a Mastra agent, with the packages installed in the working directory, until stdin ends. Prints {"url"}.
//
//   arguments: host:port, the base URL of a model server that speaks OpenAI's API, and that of a server
//              for effects, which only the agent at /payer needs
//   POST /          runs the agent
//   POST /payer     runs an agent without a memory, whose tool pay has an effect
//   GET  /received  the inputs of all runs, each with "left": whether the client left before the end
//
// The adapter has no server of its own: @ag-ui/encoder and node:http do what Mastra's users write.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.cwd(), "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

const { EventEncoder } = await load("@ag-ui/encoder");
const { MastraAgent } = await load("@ag-ui/mastra");
const { Mastra } = await load("@mastra/core");
const { Agent } = await load("@mastra/core/agent");
const { RequestContext } = await load("@mastra/core/request-context");
const { InMemoryStore } = await load("@mastra/core/storage");
const { createTool } = await load("@mastra/core/tools");
const { Memory } = await load("@mastra/memory");
const { z } = await load("zod");

console.warn = () => {}; // the adapter warns of each new thread
const [address, modelServer, effects] = process.argv.slice(2);
const model = { providerId: "openai", modelId: "gpt-5-mini", url: `${modelServer}/v1`, apiKey: "none" };

const weather = createTool({
  id: "weather",
  description: "The weather of a city",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ city, sky: "clear" }),
});
const booking = createTool({
  id: "booking",
  description: "Books a room once a person has confirmed it",
  inputSchema: z.object({ room: z.string() }),
  suspendSchema: z.object({ question: z.string() }),
  resumeSchema: z.object({ confirmed: z.boolean() }),
  execute: async ({ room }, { agent: { resumeData, suspend } }) =>
    resumeData ? { room, confirmed: resumeData.confirmed } : suspend({ question: `Book the room ${room}?` }),
});
const payment = createTool({
  id: "payment",
  description: "Pays, after an approval",
  inputSchema: z.object({ amount: z.number() }),
  requireApproval: true,
  execute: async ({ amount }) => ({ paid: amount }),
});

const storage = new InMemoryStore();
const assistant = new Agent({
  id: "assistant",
  name: "assistant",
  instructions: "Be helpful.",
  model,
  tools: { weather, booking, payment },
  memory: new Memory({
    storage,
    options: { workingMemory: { enabled: true, schema: z.object({ city: z.string().optional() }) } },
  }),
});
const pay = createTool({
  id: "pay",
  description: "Pays an order",
  inputSchema: z.object({ order: z.string() }),
  execute: async ({ order }, { requestContext }) => {
    const headers = { "Content-Type": "application/json", "Idempotency-Key": `${requestContext.get("runId")}/pay` };
    const paid = await fetch(`${effects}/pay`, { method: "POST", headers, body: JSON.stringify({ order }) });
    return paid.text();
  },
});
const payer = new Agent({ id: "payer", name: "payer", instructions: "Pay.", model, tools: { pay } });
new Mastra({ agents: { assistant, payer }, storage, logger: false });
const agents = { "/": assistant, "/payer": payer };

const received = [];
const server = createServer(async (request, response) => {
  if (request.method === "GET") return response.end(JSON.stringify(received));
  const input = await json(request);
  const run = { input, left: false };
  received.push(run);
  response.on("close", () => (run.left = !response.writableFinished));
  const encoder = new EventEncoder({ accept: request.headers.accept });
  response.writeHead(200, { "Content-Type": encoder.getContentType() });
  const events = new MastraAgent({ agent: agents[request.url], requestContext: new RequestContext([["runId", input.runId]]) }).run(input).subscribe({
    next: (event) => response.write(encoder.encode(event)),
    error: (error) => response.end(encoder.encode({ type: "RUN_ERROR", message: error.message })),
    complete: () => response.end(),
  });
  response.on("close", () => events.unsubscribe());
});
const [host, port] = address.split(":");
server.listen(Number(port), host, () => process.stdout.write(JSON.stringify({ url: `http://${address}` }) + "\n"));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
