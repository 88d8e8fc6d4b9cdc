// A LangGraph server with the graphs of graph.mjs, which keeps its threads in memory: what "langgraph dev"
// starts. Its arguments are a port and a directory, which it removes. It ends with its standard input.
import { rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { startServer } from "@langchain/langgraph-api/server";

const [port, cwd] = process.argv.slice(2);
const graph = fileURLToPath(new URL("graph.mjs", import.meta.url));
process.stdin.resume().on("end", async () => {
  await rm(cwd, { recursive: true, force: true });
  process.exit(0);
});
const graphs = { chat: `${graph}:chat`, ask: `${graph}:ask`, askBoth: `${graph}:askBoth` };
await startServer({ host: "127.0.0.1", port: Number(port), nWorkers: 10, cwd, graphs });
process.send("ready");
