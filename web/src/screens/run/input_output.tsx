import type { Message } from "@ag-ui/client";
import { textOf } from "@perdure/client";
import type { ReactNode } from "react";
import { JSONView } from "../../components/json_view";
import { Markdown } from "../../components/markdown";
import { Empty, Loading } from "../../components/page";
import { Problem } from "../../components/problem";
import styles from "./input_output.module.css";
import { Decisions, EventFacts, useDecisions } from "./decisions";
import { useResult } from "./result";
import { useRuns } from "./run_trail";
import { useThreadMessages } from "./thread_messages";
import type { Trace } from "./trace";

/** The messages and decisions that a run has received, and its result or its last answer. */
export function InputOutput({ trace }: { trace: Trace }) {
  const messages = useThreadMessages(trace.threadId, trace.status);
  const { data: decided = [] } = useDecisions(trace);
  const { data: runs = [] } = useRuns(trace.threadId);
  const result = useResult(trace);
  if (messages.error) return <div className={styles.page}><Problem error={messages.error} onRetry={() => void messages.refetch()} /></div>;
  if (!messages.data) return <Loading />;
  const { input, output } = partsOf(messages.data, trace, runs.at(-1)?.runId === trace.runId);
  const { event, startedAt } = trace;
  if (input.length === 0 && !output && result === undefined && decided.length === 0 && event === undefined) {
    return (
      <Empty title="No messages of this run">
        <p>The run has no messages in the conversation: it has continued an earlier run, or an edit has removed them.</p>
      </Empty>
    );
  }
  return (
    <div className={styles.page} tabIndex={0} role="region" aria-label="Input and output">
      {(input.length > 0 || decided.length > 0 || event !== undefined) && (
        <Part title="Input" messages={input}>
          {event && <div className={styles.message}><EventFacts content={event} at={startedAt} /></div>}
          <Decisions approvals={decided} />
        </Part>
      )}
      {result !== undefined && <Part title="Result"><div className={styles.message}><JSONView value={result} /></div></Part>}
      {output && result === undefined && <Part title="Output" messages={[output]} />}
    </div>
  );
}

function Part({ title, messages = [], children }: { title: string; messages?: readonly Message[]; children?: ReactNode }) {
  return (
    <section>
      <h2>{title}</h2>
      {children}
      {messages.map((message) => <div key={message.id} className={styles.message}><Markdown text={textOf(message)} /></div>)}
    </section>
  );
}

/**
 * Returns the input of a run: what users have written directly before its first answer; and the output: its last answer with
 * a text. The last run may have failed before it answered.
 */
export function partsOf(messages: readonly Message[], { spans }: Trace, isLast: boolean): { input: Message[]; output: Message | undefined } {
  const ids = new Set(spans.flatMap(({ messageId, toolCallId }) => [messageId, toolCallId]).filter((id) => id !== undefined));
  const isOfRun = (m: Message) => ids.has(m.id) || (m.role === "assistant" && (m.toolCalls ?? []).some(({ id }) => ids.has(id)));
  const first = messages.findIndex(isOfRun);
  const before = first >= 0 ? messages.slice(0, first) : isLast ? messages : [];
  const begin = before.findLastIndex(({ role }) => role === "assistant" || role === "tool") + 1;
  return {
    input: before.slice(begin).filter(({ role }) => role === "user"),
    output: messages.findLast((m) => m.role === "assistant" && ids.has(m.id) && textOf(m) !== ""),
  };
}
