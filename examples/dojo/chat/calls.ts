import type { Message } from "@ag-ui/client";
import { textOf } from "@perdure/client";
import type { ThreadHook } from "@perdure/client/react";
import { useEffect, useRef } from "react";

/** The arguments of a tool call. */
export type Args = Record<string, any>;

/** A tool call of the conversation. */
export interface Call {
  id: string;
  name: string;
  /** Absent while the model writes them. */
  args?: Args;
  /** The arguments as far as the model has written them: any member may be absent, and the last value incomplete. */
  draft: Args;
  /** The text of the result. Absent while the call is open. */
  result?: string;
}

/** Returns the tool calls of a message, or of all messages, with their results. */
export function callsOf(messages: readonly Message[], of: readonly Message[] = messages): Call[] {
  return of.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : [])).map(({ id, function: { name, arguments: args } }) => {
    const result = messages.find((message) => message.role === "tool" && message.toolCallId === id);
    return { id, name, args: parsed(args), draft: begun(args), result: result && textOf(result) };
  });
}

/** Runs a client tool in the page: answers each of its calls with the text that run returns. */
export function useClientTool({ toolCalls, store }: ThreadHook<unknown>, name: string, run: (args: Args) => string) {
  const answered = useRef(new Set<string>());
  useEffect(() => {
    for (const { toolCallId, toolName, args } of toolCalls) {
      if (toolName !== name || answered.current.has(toolCallId)) continue;
      answered.current.add(toolCallId);
      // The server refuses the result if another tab has answered the call.
      store.sendToolResult({ toolCallId, content: run(JSON.parse(args)) }).catch((error) => console.info(error.message));
    }
  });
}

/** Returns the object in a JSON text, or undefined if the text is not complete JSON. */
export function parsed(json: string): Args | undefined {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Returns the object in the beginning of a JSON text: its members so far, without a literal or a name that is incomplete. */
function begun(json: string): Args {
  for (let end = json.length; end > 0; end--) {
    const beginning = json.slice(0, end);
    const args = parsed(beginning + closing(beginning));
    if (args) return args;
  }
  return {};
}

/** Returns the quote, brackets and braces that close what a JSON text leaves open. */
function closing(json: string): string {
  let closers = "";
  for (const [token, quote] of json.matchAll(/"(?:[^"\\]|\\.)*("?)|[[\]{}]/g)) {
    if (token === "{") closers = "}" + closers;
    else if (token === "[") closers = "]" + closers;
    else if (quote === undefined) closers = closers.slice(1);
    else if (quote === "") closers = '"' + closers;
  }
  return closers;
}
