// A language model for the AI SDK that needs no key: it answers by rules, one word at a time.
import { setTimeout as pause } from "node:timers/promises";

const sights = { Lisbon: "the Tejo at dusk", Oslo: "the opera", Vienna: "the tram round the Ring" };

/** The text of a message. */
const textOf = ({ content }) => (typeof content === "string" ? content : content.map(({ text = "" }) => text).join(""));

/** What the model answers to a prompt: a text, and a call of a tool. */
function answerTo(prompt) {
  const last = prompt.at(-1);
  if (last.role === "tool") {
    const { toolName, output } = last.content.at(-1);
    const result = typeof output.value === "string" ? JSON.parse(output.value) : output.value;
    if (toolName === "find_room") return { text: `${result.hotel} has one.`, call: ["book_room", result] };
    return { text: result.booked ? `I have booked ${result.hotel} for ${result.price}.` : `I have not booked ${result.hotel}.` };
  }
  const [, city] = /\bin (\w+)/.exec(textOf(last)) ?? [];
  if (/\bbook\b/i.test(textOf(last)) && city) return { text: `I look for a room in ${city}.`, call: ["find_room", { city }] };
  if (/\bsee\b/i.test(textOf(last)) && city) return { text: `In ${city}, see ${sights[city] ?? "the market in the morning"}.` };
  return { text: "I am a script. Say: Book a room in Lisbon. Or: What should I see in Oslo?" };
}

async function* parts(prompt) {
  const { text, call } = answerTo(prompt);
  yield { type: "stream-start", warnings: [] };
  yield { type: "text-start", id: "text" };
  for (const delta of text.match(/\S+\s*/g)) {
    await pause(300);
    yield { type: "text-delta", id: "text", delta };
  }
  yield { type: "text-end", id: "text" };
  if (call) yield { type: "tool-call", toolCallId: `call_${crypto.randomUUID()}`, toolName: call[0], input: JSON.stringify(call[1]) };
  const usage = { inputTokens: JSON.stringify(prompt).length >> 2, outputTokens: text.length >> 2, totalTokens: undefined };
  yield { type: "finish", finishReason: call ? "tool-calls" : "stop", usage };
}

export const model = {
  specificationVersion: "v2",
  provider: "scripted",
  modelId: "travel",
  supportedUrls: {},
  doStream: async ({ prompt }) => ({ stream: ReadableStream.from(parts(prompt)) }),
  doGenerate: () => Promise.reject(new Error("the script only streams")),
};
