// The reference implementation of the binary wire, as a filter: each line of stdin is a job, each line
// of stdout its answer.
//
//   {encode: event} → {bytes: base64}    {decode: base64} → {event}    either → {error}
//
// An answer has the console messages of its job, as {console: [text…]}.
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const { encode, decode } = createRequire(join(process.cwd(), "package.json"))("@ag-ui/proto");

let said = [];
console.warn = console.error = (...args) => said.push(args.join(" "));

const answer = (job) => {
  try {
    if (job.encode) return { bytes: Buffer.from(encode(job.encode)).toString("base64") };
    return { event: decode(new Uint8Array(Buffer.from(job.decode, "base64"))) };
  } catch (error) {
    return { error: `${error.name}: ${error.message}` };
  }
};

for await (const line of createInterface({ input: process.stdin })) {
  said = [];
  const result = answer(JSON.parse(line));
  process.stdout.write(JSON.stringify({ ...result, console: said }) + "\n");
}
