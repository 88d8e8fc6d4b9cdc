// Serves a Mastra agent over AG-UI. Nothing in this program knows Perdure.
//
//   node server.mjs [port]
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { EventEncoder } from "@ag-ui/encoder";
import { MastraAgent } from "@ag-ui/mastra";
import { Mastra } from "@mastra/core";
import { Agent } from "@mastra/core/agent";
import { InMemoryStore } from "@mastra/core/storage";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";
import { model } from "./model.mjs";

const room = z.object({ hotel: z.string(), price: z.number() });

const find_room = createTool({
  id: "find_room",
  description: "Finds a free room in a city.",
  inputSchema: z.object({ city: z.string() }),
  outputSchema: room,
  execute: async ({ city }) => ({ hotel: `Hotel ${city}`, price: 90 + city.length }),
});

const book_room = createTool({
  id: "book_room",
  description: "Books a room, after a person has confirmed it.",
  inputSchema: room,
  suspendSchema: z.object({ question: z.string() }),
  resumeSchema: z.object({ approved: z.boolean() }),
  execute: async ({ hotel, price }, { agent: { resumeData, suspend } }) =>
    resumeData ? { hotel, price, booked: resumeData.approved } : suspend({ question: `Book ${hotel} for ${price}?` }),
});

const travel = new Agent({
  id: "travel",
  name: "travel",
  instructions: "You book rooms for travelers. Find a room before you book it.",
  model, // with a key: "openai/gpt-5-mini"
  tools: { find_room, book_room },
});
new Mastra({ agents: { travel }, storage: new InMemoryStore(), logger: false }); // the storage has the suspended runs

const server = createServer(async (request, response) => {
  const encoder = new EventEncoder({ accept: request.headers.accept });
  const input = await json(request).catch(() => undefined);
  if (!input) return response.writeHead(400).end("The body must be a RunAgentInput.");
  response.writeHead(200, { "Content-Type": encoder.getContentType() });
  const events = new MastraAgent({ agent: travel }).run(input).subscribe({
    next: (event) => response.write(encoder.encode(event)),
    error: ({ message }) => response.end(encoder.encode({ type: "RUN_ERROR", message })),
    complete: () => response.end(),
  });
  response.on("close", () => events.unsubscribe());
});
server.listen(Number(process.argv[2] ?? 8092), "127.0.0.1", () => console.log(`The agent is ready: http://127.0.0.1:${server.address().port}`));
