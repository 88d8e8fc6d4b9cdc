import type { Message } from "@ag-ui/client";
import { textOf } from "@perdure/client";
import type { ComponentType, ReactNode } from "react";
import { type Call, callsOf } from "./calls";

interface Props {
  messages: readonly Message[];
  /** How to show the calls of a tool, by its name. */
  tools?: Record<string, ComponentType<Call>>;
  /** Shows a message in another way, unless it returns undefined. */
  render?: (message: Message) => ReactNode | undefined;
}

/** The conversation: its messages and tool calls. */
export function Transcript(props: Props) {
  return <section role="log" aria-label="Conversation"><Messages {...props} /></section>;
}

/** A list of messages and their tool calls. */
export function Messages({ messages, tools = {}, render }: Props) {
  return (
    <ol className="transcript">
      {messages.map((message) => {
        const special = render?.(message);
        if (special !== undefined) return <li key={message.id} className={message.role}>{special}</li>;
        if (message.role !== "user" && message.role !== "assistant") return null;
        const text = textOf(message);
        return [
          text && <li key={message.id} className={message.role}>{text}</li>,
          ...callsOf(messages, [message]).map((call) => {
            const Tool = tools[call.name] ?? ToolCall;
            return <li key={call.id} className="call"><Tool {...call} /></li>;
          }),
        ];
      })}
    </ol>
  );
}

/** A tool call without a view of its own. */
function ToolCall({ name, args, result }: Call) {
  return (
    <details>
      <summary>{result === undefined ? `Calling ${name} …` : `Called ${name}`}</summary>
      <pre>{JSON.stringify(args, null, 2)}</pre>
      <pre>{result}</pre>
    </details>
  );
}
