// Serves the graphs of graph.mjs over AG-UI on host:port, the first argument, and prints {"url"}. The third
// argument is the URL of a server for the effects of the tool reserve.
//
//   POST /GRAPH           a run; with ?outcome the interrupts are also in the outcome of RUN_FINISHED, and with
//                         ?exact a run that is made again begins with the thread that it found
//   GET /threads/…        the same of LangGraph's API
//
// The LangGraph server is a process of its own, and ends with this one.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { EventEncoder } from "@ag-ui/encoder";
import { LangGraphAgent } from "@ag-ui/langgraph";

/** A port on loopback at which nothing listens. */
async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}

const port = await freePort();
const script = fileURLToPath(new URL("server.mjs", import.meta.url));
const langGraph = spawn(process.execPath, [script, port, await mkdtemp(join(tmpdir(), "langgraph-"))], {
  stdio: ["pipe", "ignore", "inherit", "ipc"],
  env: { ...process.env, LOG_LEVEL: "error", EFFECTS: process.argv[4] },
});
langGraph.on("exit", () => process.exit(1));
await once(langGraph, "message");
const deploymentUrl = `http://127.0.0.1:${port}`;

/** Takes back what an earlier attempt at a run has left in its thread: LangGraph would continue after it. */
async function takeBack({ threads, runs }, { threadId, runId }) {
  const left = await threads.getHistory(threadId, { limit: 1000, metadata: { aguiRunId: runId } }).catch(() => []); // no thread yet
  if (left.length === 0) return;
  for (const { run_id, status } of await runs.list(threadId)) {
    if (status === "running" || status === "pending") await runs.cancel(threadId, run_id, true);
  }
  const checkpoint = left.at(-1).parent_checkpoint;
  if (checkpoint) await threads.updateState(threadId, { values: null, checkpoint, asNode: "__copy__" });
  else await threads.delete(threadId);
}

/** Streams a run, as an application does that uses the agent class. */
async function run(req, res) {
  const { pathname, searchParams } = new URL(req.url, deploymentUrl);
  const encoder = new EventEncoder({ accept: req.headers.accept });
  const input = await json(req);
  const agent = new LangGraphAgent({
    deploymentUrl,
    graphId: pathname.slice(1),
    emitInterruptOutcome: searchParams.has("outcome"),
    assistantConfig: { configurable: { aguiRunId: input.runId } },
  });
  res.writeHead(200, { "Content-Type": encoder.getContentType() });
  res.on("close", () => res.writableFinished || agent.abortRun());
  if (searchParams.has("exact")) await takeBack(agent.client, input);
  agent.run(input).subscribe({
    next: (event) => res.write(encoder.encode(event)),
    error: ({ message }) => res.end(encoder.encode({ type: "RUN_ERROR", message })),
    complete: () => res.end(),
  });
}

const server = createServer(async (req, res) => {
  if (req.method === "POST") return run(req, res);
  const response = await fetch(deploymentUrl + req.url);
  res.writeHead(response.status, { "Content-Type": "application/json" }).end(await response.text());
});
const [host, own] = process.argv[2].split(":");
server.listen(Number(own), host, () => process.stdout.write(JSON.stringify({ url: `http://${process.argv[2]}` }) + "\n"));
process.stdin.resume().on("end", () => process.exit(0));
