// A stock HttpAgent, of the version installed in the working directory, as a filter: each line of stdin
// is a stream of events with the client's earlier messages and state, each line of stdout the result. It
// only reports; the Go tests check.
//
//   {messages?, state?, events: [event…], compact?}  or  {…, protobuf: the body in base64}
//   → {error?, messages, state, invalid: [{event, text}…], complaints: [{event, text}…]}
//
//   compact:     compacts the stream with compactEvents, as clients do that keep and replay it
//   invalid:     events that the package's schema refuses
//   complaints:  console messages
//   event:       the index in the stream; for complaints, of the last event that the client got. The binary
//                wire is passed in one piece, and the index is -1
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const require = createRequire(join(process.cwd(), "package.json"));
const { HttpAgent, compactEvents } = require("@ag-ui/client");
const EventSchemas = require("@ag-ui/core").EventSchemas ?? require("@ag-ui/core/schemas").EventSchemas;

// The events that the client got of the current stream. A refused stream may still be active.
let progress = { given: 0 };
let complaints = [];
const words = (value) => (typeof value === "string" ? value : (value?.message ?? JSON.stringify(value)));
for (const level of ["warn", "error"]) {
  console[level] = (...args) => complaints.push({ event: progress.given - 1, text: args.map(words).join(" ") });
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

function respond({ events, compact, protobuf }) {
  if (protobuf) {
    return new Response(Buffer.from(protobuf, "base64"), { headers: { "Content-Type": "application/vnd.ag-ui.event+proto" } });
  }
  const encoder = new TextEncoder();
  const mine = progress;
  async function* frames() {
    for (const event of compact ? compactEvents(events) : events) {
      await turn(); // the client has then processed the previous event
      mine.given++;
      yield encoder.encode(`data: ${JSON.stringify(event)}\n\n`);
    }
    await turn();
  }
  return new Response(ReadableStream.from(frames()), { headers: { "Content-Type": "text/event-stream" } });
}

function refusals(events = []) {
  return events.flatMap((event, i) => {
    const { success, error } = EventSchemas.safeParse(event);
    return success ? [] : [{ event: i, text: JSON.stringify(error.issues) }];
  });
}

for await (const line of createInterface({ input: process.stdin })) {
  progress = { given: 0 };
  complaints = [];
  const job = JSON.parse(line);
  const agent = new HttpAgent({
    url: "http://nobody.invalid/",
    threadId: "t",
    initialMessages: job.messages ?? [],
    initialState: job.state ?? {},
    fetch: async () => respond(job),
  });
  const answer = { invalid: refusals(job.events) };
  try {
    await agent.runAgent({ runId: "r" });
  } catch (error) {
    answer.error = `at event ${progress.given - 1}: ${words(error)}`;
  }
  process.stdout.write(JSON.stringify({ ...answer, messages: agent.messages, state: agent.state, complaints }) + "\n");
}
