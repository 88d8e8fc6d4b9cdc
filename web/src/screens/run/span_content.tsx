import type { Message } from "@ag-ui/client";
import { textOf } from "@perdure/client";
import type { ReactNode } from "react";
import { JSONView } from "../../components/json_view";
import { Markdown } from "../../components/markdown";
import { Problem } from "../../components/problem";
import { safeText } from "../../components/safe_text";
import styles from "./span_detail.module.css";
import { answerIn, callIn, useThreadMessages } from "./thread_messages";
import type { Span } from "./trace";

/** The content of a span, from the messages of the thread: arguments and result of a call, or what the model said. */
export function SpanContent({ threadId, span }: { threadId: string; span: Span }) {
  const { toolCallId, messageId } = span;
  if (toolCallId === undefined && messageId === undefined) return null;
  return <Content threadId={threadId} span={span} />;
}

function Content({ threadId, span: { kind, toolCallId, messageId, status, id } }: { threadId: string; span: Span }) {
  const messages = useThreadMessages(threadId, `${id} ${status}`);
  if (messages.error) return <Problem error={messages.error} onRetry={() => void messages.refetch()} />;
  if (!messages.data) return <p className="muted">Loading the content …</p>;
  if (toolCallId !== undefined) return <Call messages={messages.data} toolCallId={toolCallId} isOpen={status === "running"} hasArgumentsOnly={kind === "interrupt"} />;
  return <Answer messages={messages.data} messageId={messageId!} isOpen={status === "running"} />;
}

interface CallProps {
  messages: readonly Message[];
  toolCallId: string;
  isOpen: boolean;
  hasArgumentsOnly: boolean;
}

function Call({ messages, toolCallId, isOpen, hasArgumentsOnly }: CallProps) {
  const { arguments: args, result } = callIn(messages, toolCallId);
  if (args === undefined && !result) return isOpen ? null : <Missing />;
  return (
    <>
      {args !== undefined && <Part title="Arguments"><Value text={args} /></Part>}
      {result && !hasArgumentsOnly && <Part title="Result"><Value text={result.error ?? textOf(result)} /></Part>}
    </>
  );
}

function Answer({ messages, messageId, isOpen }: { messages: readonly Message[]; messageId: string; isOpen: boolean }) {
  const { reasoning, answer } = answerIn(messages, messageId);
  if (!answer) return isOpen ? null : <Missing />;
  const calls = answer.role === "assistant" ? (answer.toolCalls ?? []) : [];
  const text = textOf(answer);
  return (
    <>
      {reasoning.length > 0 && <Part title="Reasoning"><p className={styles.reasoning}>{safeText(reasoning.map((m) => textOf(m)).join("\n\n"))}</p></Part>}
      {text !== "" && <Part title="Text"><div className={styles.said}><Markdown text={text} /></div></Part>}
      {calls.length > 0 && (
        <Part title="Tool calls">
          {calls.map(({ id, function: { name, arguments: args } }) => <p key={id} className={`mono ${styles.call}`}>{safeText(name)}({safeText(args)})</p>)}
        </Part>
      )}
    </>
  );
}

const Missing = () => <p className="muted">The conversation does not have this message: it is hidden, or an edit has removed it.</p>;

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section aria-label={title} className={styles.part}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

// JSON as a tree, another text as it is.
function Value({ text }: { text: string }) {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  return <div className={styles.value}>{typeof value === "object" && value !== null ? <JSONView value={value} /> : <pre>{safeText(text)}</pre>}</div>;
}
