// Lets a stock HttpAgent, of the version installed in the working directory, read recorded streams, and
// prints what it ends with. It judges nothing: that is done by who reads the lines.
//
//   in (stdin, one JSON document):  [{name, threadId, messages, events: [event, …]}, …]
//   out, a line for each stream:    {name, outcome, error?, messages, state, complaints}
import { createRequire } from "node:module";
import { join } from "node:path";
import { text } from "node:stream/consumers";

let complaints = [];
const words = (value) => (typeof value === "string" ? value : (value?.message ?? JSON.stringify(value)));
for (const level of ["warn", "error"]) {
  console[level] = (...args) => void complaints.push(args.map(words).join(" "));
}

const { HttpAgent } = createRequire(join(process.cwd(), "package.json"))("@ag-ui/client");

for (const { name, threadId, messages, events } of JSON.parse(await text(process.stdin))) {
  complaints = [];
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
  const fetch = async () => new Response(body, { headers: { "Content-Type": "text/event-stream" } });
  const agent = new HttpAgent({ url: "http://nobody.invalid/", threadId, initialMessages: messages, fetch });
  const end = { name, outcome: "resolved" };
  try {
    await agent.runAgent({ runId: "joined" });
  } catch (error) {
    Object.assign(end, { outcome: "rejected", error: words(error) });
  }
  process.stdout.write(JSON.stringify({ ...end, messages: agent.messages, state: agent.state, complaints }) + "\n");
}
