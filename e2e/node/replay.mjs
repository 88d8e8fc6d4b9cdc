// The reference client as a filter: each line of stdin is a stream of events and what the client had
// before, each line of stdout what became of it.
//
//   {messages, state, stream: [event…]} → {error?, messages, state, console: [text…]}
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const require = createRequire(join(process.cwd(), "package.json"));
const { AbstractAgent } = require("@ag-ui/client");
const { from } = require("rxjs");

class Replay extends AbstractAgent {
  constructor({ stream, ...config }) {
    super(config);
    this.stream = stream;
  }
  run() {
    return from(this.stream);
  }
}

let said = [];
console.warn = console.error = (...args) => said.push(args.map(String).join(" "));

for await (const line of createInterface({ input: process.stdin })) {
  said = [];
  const { messages, state, stream } = JSON.parse(line);
  const agent = new Replay({ threadId: "t", initialMessages: messages, initialState: state, stream });
  let failure;
  await agent.runAgent({ runId: "r" }).catch((error) => (failure = String(error)));
  process.stdout.write(JSON.stringify({ error: failure, messages: agent.messages, state: agent.state, console: said }) + "\n");
}
