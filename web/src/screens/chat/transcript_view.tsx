import type { Thread } from "@perdure/client";
import type { ThreadHook } from "@perdure/client/react";
import { useMemo, useState } from "react";
import { flushSync } from "react-dom";
import { Link } from "wouter";
import { Button } from "../../components/button";
import { DownIcon, ForkIcon, StopIcon } from "../../components/icons";
import { Problem } from "../../components/problem";
import { safeText } from "../../components/safe_text";
import { paths } from "../../paths";
import { ClientToolCall } from "./client_tool_call";
import { EditingProvider } from "./conversation_context";
import { EarlierVersions, useEarlierVersions } from "./earlier_versions";
import { EntryView } from "./entry_view";
import { InterruptView } from "./interrupt_view";
import { LastMessage } from "./last_message";
import type { StartingThread } from "./starting";
import { callsIn, type Entry } from "./transcript";
import styles from "./transcript_view.module.css";
import { useChanges } from "./use_changes";
import { useEnd } from "./use_end";
import { useStarted } from "./use_started";
import { focusEditButton, MessageEditor } from "./user_message";

/** Properties of a TranscriptView. */
export interface TranscriptViewProps {
  thread: ThreadHook<unknown>;
  entries: readonly Entry[];
  agent: string;
  /** The revision of the agent that runs, or "". */
  revision: string;
  summary: Thread | undefined;
  starting: StartingThread | undefined;
}

/** The messages of a thread, with what waits and how the last run ended. It scrolls with the stream while the reader is at the end. */
export function TranscriptView({ thread, entries, agent, revision, summary, starting }: TranscriptViewProps) {
  const { run, connection, messages } = thread;
  const end = useEnd();
  const [editing, setEditing] = useState<string>();
  const changes = useChanges(thread, agent, revision, () => {
    setEditing(undefined);
    end.scroller.current?.focus({ preventScroll: true }); // what had the focus is gone
  });
  const versions = useEarlierVersions(thread.threadId, messages, summary !== undefined);
  const startError = useStarted(starting);
  const pending = new Set(thread.pending.map(({ messageId }) => messageId));
  const active = entries.findLast(({ key }) => !pending.has(key));
  const last = entries.findLast(({ key, kind }) => kind === "user" && !pending.has(key));
  const isRunning = run.status === "running";
  const canChange = !isRunning && thread.interrupts.length === 0;
  const cancelEditing = (id: string) => {
    flushSync(() => setEditing(undefined));
    focusEditButton(id);
  };
  return (
    <EditingProvider value={canChange ? setEditing : undefined}>
      <div className={styles.frame}>
        <div ref={end.scroller} className={styles.scroller} role="region" aria-label="Conversation" tabIndex={0}>
          <div ref={end.content} className={styles.column}>
            {summary?.forkedFrom && <Origin from={summary.forkedFrom} />}
            {entries.length === 0 && <p className="muted">{connection === "connecting" ? "Loading …" : "This thread has no messages."}</p>}
            {entries.map((entry) => (
              <div key={entry.key} className={styles.item}>
                {editing === entry.key && entry.kind === "user" ? (
                  <MessageEditor message={entry.message} isPending={changes.isPending} onCancel={() => cancelEditing(entry.key)} onSave={(content, isFork) => changes.mutate({ content, isFork, messageId: entry.key })} />
                ) : (
                  <EntryView entry={entry} isActive={isRunning && entry === active} />
                )}
                {versions.has(entry.key) && <EarlierVersions threadId={thread.threadId} versions={versions.get(entry.key)!} />}
              </div>
            ))}
            <Loose thread={thread} entries={entries} />
            {run.isCancelled && !isRunning && <p className={styles.stopped} data-kind="stopped"><StopIcon /> Stopped</p>}
            {run.error && !isRunning && <RunFailure thread={thread} />}
            {startError !== undefined && <Problem error={startError} />}
            {changes.error && <Problem error={changes.error} />}
            {canChange && editing === undefined && last?.kind === "user" && <LastMessage message={last.message} changes={changes} onEdit={() => setEditing(last.key)} />}
          </div>
        </div>
        {!end.isAtEnd && <div className={styles.jump}><Button onPress={end.jump}><DownIcon /> Jump to the end</Button></div>}
      </div>
    </EditingProvider>
  );
}

function Origin({ from: { threadId, runId } }: { from: { threadId: string; runId: string } }) {
  return (
    <p className={styles.origin}>
      <ForkIcon /> Forked from <Link href={paths.thread(threadId)}>{safeText(threadId)}</Link>, after <Link href={paths.run(threadId, runId)}>a run</Link>
    </p>
  );
}

// What waits without a tool call in the messages, such as a limit or a step of a pipeline.
function Loose({ thread: { interrupts, toolCalls }, entries }: { thread: ThreadHook<unknown>; entries: readonly Entry[] }) {
  const placed = useMemo(() => new Set(callsIn(entries)), [entries]);
  return (
    <>
      {interrupts.filter(({ toolCallId }) => toolCallId === undefined || !placed.has(toolCallId)).map((interrupt) => <InterruptView key={interrupt.id} interrupt={interrupt} hasFrame />)}
      {toolCalls.filter(({ toolCallId }) => !placed.has(toolCallId)).map((call) => <ClientToolCall key={call.toolCallId} call={call} hasFrame />)}
    </>
  );
}

function RunFailure({ thread: { run, threadId } }: { thread: ThreadHook<unknown> }) {
  const { error, runId } = run;
  return (
    <div className={styles.failure} role="alert">
      <p><strong>The run failed.</strong> {safeText(error!.message)} <code>{safeText(error!.code)}</code></p>
      {runId !== undefined && <Link href={paths.run(threadId, runId)}>Find out why</Link>}
    </div>
  );
}
