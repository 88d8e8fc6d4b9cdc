// The graphs of the LangGraph server, as its guides write them. The answer of their model, a fake one, depends
// on the conversation only. It looks for these words in the last message of the user:
//
//	echo TEXT                    "You said: TEXT"
//	count to N                   "1 2 … N "
//	weather in CITY[ and CITY]   a text, and a call of the tool weather for each city
//	reserve TEXT                 a text, and a call of the tool reserve, which has an effect
//	note TEXT                    a call of the tool note, which adds the text to the state
//	recall                       the notes in the state
//	use TOOL[ and TOOL]          a call of each tool, which may be the client's
//	list                         the messages that the graph has: type=ID
//
// After results of tools, the answer is "So: " and the results. The word "slowly" before makes it slow.
import { setTimeout as sleep } from "node:timers/promises";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, ToolMessage } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { tool } from "@langchain/core/tools";
import { Command, END, MessagesValue, START, StateGraph, StateSchema, interrupt } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { z } from "zod";

const State = new StateSchema({ messages: MessagesValue, notes: z.array(z.string()).default([]) });
const Conversation = new StateSchema({ messages: MessagesValue });

/** The parts in which providers stream a text. */
const words = (text) => text.match(/\S+\s*/g) ?? [];

/** The parts in which OpenAI streams a call: its name, and its arguments in pieces. */
function call(index, name, args, id) {
  const text = JSON.stringify(args);
  const pieces = ["", text.slice(0, 5), text.slice(5)].map((args) => ({ type: "tool_call_chunk", index, args }));
  return [{ ...pieces[0], id, name }, ...pieces.slice(1)];
}

/** The parts of the answer to a conversation. */
function answer(messages, notes) {
  const last = messages.findLastIndex((m) => m.getType() === "human");
  const results = messages.slice(last + 1).filter((m) => m.getType() === "tool");
  if (results.length > 0) return words("So: " + results.map((m) => m.text).join(", "));
  const id = (n) => `call_${messages.filter((m) => m.getType() === "ai").length}_${n}`;
  const [, verb, text] = /(echo|count to|weather in|reserve|note|recall|use|list)\b ?(.*)$/s.exec(messages[last].text);
  switch (verb) {
    case "echo":
      return words(`You said: ${text}`);
    case "count to":
      return Array.from({ length: Number(text) }, (_, i) => `${i + 1} `);
    case "weather in":
      return [...words("Let me look. "), ...text.split(" and ").flatMap((city, n) => call(n, "weather", { city }, id(n)))];
    case "reserve":
      return [...words("Let me reserve it. "), ...call(0, "reserve", { order: text }, id(0))];
    case "note":
      return call(0, "note", { text }, id(0));
    case "recall":
      return words(`Notes: ${notes.join(", ")}`);
    case "use":
      return text.split(" and ").flatMap((name, n) => call(n, name, { number: n }, id(n)));
    case "list":
      return words(messages.map((m) => `${m.getType()}=${m.id}`).join(" "));
  }
}

class FakeModel extends BaseChatModel {
  constructor(notes = []) {
    super({});
    this.notes = notes;
  }

  _llmType() {
    return "fake";
  }

  async *_streamResponseChunks(messages, options, manager) {
    const isSlow = /slowly/.test(messages.findLast((m) => m.getType() === "human").text);
    for (const part of answer(messages, this.notes)) {
      if (isSlow) await sleep(40, undefined, { signal: options.signal });
      const text = typeof part === "string" ? part : "";
      const message = new AIMessageChunk(text ? { content: text } : { content: "", tool_call_chunks: [part] });
      const chunk = new ChatGenerationChunk({ message, text });
      yield chunk;
      await manager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk });
    }
  }

  async _generate(messages, options, manager) {
    let whole;
    for await (const chunk of this._streamResponseChunks(messages, options, manager)) whole = whole ? whole.concat(chunk) : chunk;
    return { generations: [whole] };
  }
}

const schema = (name) => ({ type: "object", properties: { [name]: { type: "string" } }, required: [name] });

const weather = tool(({ city }) => `sunny in ${city}`, { name: "weather", description: "The weather of a city", schema: schema("city") });

const note = tool(
  ({ text }, { toolCall, state }) =>
    new Command({ update: { notes: [...state.notes, text], messages: [new ToolMessage({ content: `noted ${text}`, tool_call_id: toolCall.id, name: "note" })] } }),
  { name: "note", description: "Writes a text down", schema: schema("text") },
);

const book = tool(({ number }) => `booked ${number}: ${JSON.stringify(interrupt({ question: `Book ${number}?`, number }))}`, {
  name: "book",
  description: "Books something, if a person allows it",
  schema: { type: "object", properties: { number: { type: "number" } } },
});

const reserve = tool(
  async ({ order }, { configurable }) => {
    const headers = { "Content-Type": "application/json", "Idempotency-Key": `${configurable.aguiRunId}/reserve` };
    const reserved = await fetch(`${process.env.EFFECTS}/reserve`, { method: "POST", headers, body: JSON.stringify({ order }) });
    return reserved.text();
  },
  { name: "reserve", description: "Reserves the goods of an order", schema: schema("order") },
);

const served = [weather, note, book, reserve];

/** A chat with tools. Calls of other tools are the client's, and end the run. */
export const chat = new StateGraph(State)
  .addNode("model", async ({ messages, notes }) => ({ messages: [await new FakeModel(notes).invoke(messages)] }))
  .addNode("tools", new ToolNode(served))
  .addEdge(START, "model")
  .addConditionalEdges("model", ({ messages }) => {
    const calls = messages.at(-1).tool_calls ?? [];
    return calls.length > 0 && calls.every((c) => served.some((t) => t.name === c.name)) ? "tools" : END;
  })
  .addEdge("tools", "model")
  .compile();

/** A node that asks with a plain text. */
export const ask = new StateGraph(Conversation)
  .addNode("ask", () => ({ messages: [{ role: "assistant", content: `The answer is ${JSON.stringify(interrupt("Really?"))}.` }] }))
  .addEdge(START, "ask")
  .addEdge("ask", END)
  .compile();

/** Two nodes that ask in parallel. */
export const askBoth = new StateGraph(Conversation)
  .addNode("first", () => ({ messages: [{ role: "assistant", content: `First: ${JSON.stringify(interrupt({ question: "First?" }))}.` }] }))
  .addNode("second", () => ({ messages: [{ role: "assistant", content: `Second: ${JSON.stringify(interrupt({ question: "Second?" }))}.` }] }))
  .addEdge(START, "first")
  .addEdge(START, "second")
  .addEdge("first", END)
  .addEdge("second", END)
  .compile();
