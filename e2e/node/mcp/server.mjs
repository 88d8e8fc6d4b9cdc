// An MCP server on standard input and output, by an SDK that is not the one we call it with.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "node", version: "1.0.0" });

server.registerTool(
  "greet",
  {
    title: "Greet",
    description: "Greets somebody by name.",
    inputSchema: { name: z.string().min(1) },
    annotations: { readOnlyHint: true },
  },
  async ({ name }, extra) => {
    const progressToken = extra._meta?.progressToken;
    if (progressToken !== undefined) {
      await extra.sendNotification({
        method: "notifications/progress",
        params: { progressToken, progress: 1, total: 2, message: "clearing its throat" },
      });
      await server.server.ping(); // answered behind the progress, which a result would overtake
    }
    return {
      content: [
        { type: "text", text: `Hello, ${name}!` },
        { type: "image", mimeType: "image/png", data: "aGVsbG8=" },
      ],
    };
  },
);

// Asks in the middle of its call, over the connection.
server.registerTool(
  "ship",
  { description: "Ships something to where somebody says.", inputSchema: { what: z.string() } },
  async ({ what }) => {
    const requestedSchema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const { action, content } = await server.server.elicitInput({ message: "Where to?", requestedSchema });
    return { content: [{ type: "text", text: action === "accept" ? `${what} goes to ${content.city}.` : `${what} stays.` }] };
  },
);

await server.connect(new StdioServerTransport());
