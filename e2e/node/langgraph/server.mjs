// A LangGraph server with the graphs of graph.ts, which keeps its threads in memory: what "langgraph dev"
// starts. Its arguments are a port and a directory, which it removes. It ends with its standard input.
import { rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { startServer } from "@langchain/langgraph-api/server";

const [port, cwd] = process.argv.slice(2);
const graph = fileURLToPath(new URL("graph.ts", import.meta.url));
process.stdin.resume().on("end", async () => {
  await rm(cwd, { recursive: true, force: true });
  process.exit(0);
});
const graphs = { chat: `${graph}:chat`, ask: `${graph}:ask`, askBoth: `${graph}:askBoth` };
await startServer({ host: "127.0.0.1", port: Number(port), nWorkers: 10, cwd, graphs });
// The first request of a schema compiles the graph for seconds, and concurrent ones, which all runs make, do so
// each.
const assistants = await fetch(`http://127.0.0.1:${port}/assistants/search`, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ graph_id: "chat" }),
});
const [{ assistant_id: id }] = await assistants.json();
await (await fetch(`http://127.0.0.1:${port}/assistants/${id}/schemas`)).text();
process.send("ready");
