import type { ContentPart, Thread } from "@perdure/client";
import type { ThreadHook } from "@perdure/client/react";
import { useMutation } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import { Button } from "../../components/button";
import { DownIcon, EditIcon, ForkIcon, RetryIcon } from "../../components/icons";
import { Problem } from "../../components/problem";
import { safeText } from "../../components/safe_text";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { ClientToolCall } from "./client_tool_call";
import { EarlierVersions, useEarlierVersions } from "./earlier_versions";
import { sendInFork } from "./edit_fork";
import { EntryView } from "./entry_view";
import { InterruptView } from "./interrupt_view";
import { runInput, withRevision } from "./run_input";
import type { StartingThread } from "./starting";
import { callsIn, type Entry } from "./transcript";
import styles from "./transcript_view.module.css";
import { useStarted } from "./use_started";
import { useEnd } from "./use_end";
import { MessageEditor } from "./user_message";

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
  const [isEditing, setEditing] = useState(false);
  const changes = useChanges(thread, agent, revision, () => setEditing(false));
  const versions = useEarlierVersions(thread.threadId, messages, summary !== undefined);
  const startError = useStarted(starting);
  const last = entries.findLast((entry) => entry.kind === "user");
  const isRunning = run.status === "running";
  return (
    <div className={styles.frame}>
      <div ref={end.scroller} className={styles.scroller} role="region" aria-label="Conversation" tabIndex={0}>
        <div ref={end.content} className={styles.column}>
          {summary?.forkedFrom && <Origin from={summary.forkedFrom} />}
          {entries.length === 0 && <p className="muted">{connection === "connecting" ? "Loading …" : "This thread has no messages."}</p>}
          {entries.map((entry, i) => (
            <div key={entry.key} className={styles.item}>
              {isEditing && entry.kind === "user" && entry === last ? (
                <MessageEditor message={entry.message} isPending={changes.isPending} onCancel={() => setEditing(false)} onSave={(content, isFork) => changes.mutate({ content, isFork, messageId: entry.key })} />
              ) : (
                <EntryView entry={entry} isActive={isRunning && i === entries.length - 1} />
              )}
              {versions.has(entry.key) && <EarlierVersions threadId={thread.threadId} versions={versions.get(entry.key)!} />}
            </div>
          ))}
          <Loose thread={thread} entries={entries} />
          {run.error && !isRunning && <RunFailure thread={thread} />}
          {startError !== undefined && <Problem error={startError} />}
          {changes.error && <Problem error={changes.error} />}
          {!isRunning && !isEditing && last !== undefined && (
            <div className={styles.actions} role="group" aria-label="Last message">
              <Button kind="quiet" isDisabled={changes.isPending} onPress={() => changes.mutate({})}><RetryIcon /> Answer again</Button>
              <Button kind="quiet" onPress={() => setEditing(true)}><EditIcon /> Edit</Button>
            </div>
          )}
        </div>
      </div>
      {!end.isAtEnd && <div className={styles.jump}><Button onPress={end.jump}><DownIcon /> Jump to the end</Button></div>}
    </div>
  );
}

interface Change {
  messageId?: string;
  /** Absent: the last message is answered again. */
  content?: string | ContentPart[];
  isFork?: boolean;
}

function useChanges({ store, threadId, messages }: ThreadHook<unknown>, agent: string, revision: string, onDone: () => void) {
  const client = useClient();
  const [, navigate] = useLocation();
  return useMutation({
    mutationFn: async ({ messageId, content, isFork }: Change) => {
      const options = runInput(revision);
      if (content === undefined) return store.regenerate(options);
      if (!isFork) return store.edit(messageId!, content, options);
      navigate(withRevision(paths.thread(await sendInFork(client, { threadId, messages, messageId: messageId!, agent, content, revision })), revision));
      return undefined;
    },
    onSuccess: onDone,
  });
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
