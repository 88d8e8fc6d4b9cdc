// Serves the graphs of graph.mjs over AG-UI on host:port, the first argument, and prints {"url"}:
//
//   POST /GRAPH           a run; with ?outcome the interrupts are also in the outcome of RUN_FINISHED
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
  env: { ...process.env, LOG_LEVEL: "error" },
});
langGraph.on("exit", () => process.exit(1));
await once(langGraph, "message");
const deploymentUrl = `http://127.0.0.1:${port}`;

/** Streams a run, as an application does that uses the agent class. */
async function run(req, res) {
  const { pathname, searchParams } = new URL(req.url, deploymentUrl);
  const agent = new LangGraphAgent({ deploymentUrl, graphId: pathname.slice(1), emitInterruptOutcome: searchParams.has("outcome") });
  const encoder = new EventEncoder({ accept: req.headers.accept });
  const input = await json(req);
  res.writeHead(200, { "Content-Type": encoder.getContentType() });
  res.on("close", () => res.writableFinished || agent.abortRun());
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
