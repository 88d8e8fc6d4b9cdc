import type { ContentPart, Thread } from "@perdure/client";
import { awaitedBy, textOf } from "@perdure/client";
import { type RunSnapshot, type ThreadHook, useThread } from "@perdure/client/react";
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef } from "react";
import { Link } from "wouter";
import { announce } from "../../components/announcer";
import { Page } from "../../components/page";
import { safeText } from "../../components/safe_text";
import { useShortcuts } from "../../components/shortcuts";
import { Status } from "../../components/status";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { clientToolsOf } from "./client_tool_names";
import { Composer, type OnBusy } from "./composer";
import styles from "./conversation.module.css";
import { ConversationProvider, type ConversationValue } from "./conversation_context";
import { RevisionNote } from "./revision_note";
import { runInput, useRevision } from "./run_input";
import { SidePanel, usePanel } from "./side_panel";
import type { StartingThread } from "./starting";
import { StatusLine } from "./status_line";
import { ThreadActions } from "./thread_actions";
import { entriesOf } from "./transcript";
import { TranscriptView } from "./transcript_view";
import { useAgent } from "./use_agent";
import { useSubagents } from "./use_subagents";

/** Properties of a Conversation. */
export interface ConversationProps {
  threadId: string;
  agent: string;
  /** Absent until the server has the thread. */
  summary: Thread | undefined;
  /** Present if this page begins the thread. */
  starting: StartingThread | undefined;
}

/** The conversation of a thread, live. */
export function Conversation({ threadId, agent, summary, starting }: ConversationProps) {
  const client = useClient();
  const thread = useThread(client, useMemo(() => ({ threadId, agent }), [threadId, agent]));
  const { messages, run, interrupts, toolCalls, store } = thread;
  const subagents = useSubagents(thread);
  const entries = useMemo(() => entriesOf(messages, subagents), [messages, subagents]);
  const field = useRef<HTMLTextAreaElement>(null);
  const [panel, setPanel] = usePanel(thread, subagents);
  const [revision, resetRevision] = useRevision();
  const value = useConversationValue(thread);
  const current = summary?.agent ?? agent;
  const status = statusOf(run, summary);
  const details = useAgent(current);
  const asking = interrupts.filter((interrupt) => !awaitedBy(interrupt));
  useAnnouncements(current, run, asking.length + toolCalls.length);
  useFreshSummary(threadId, run);
  useEffect(() => void (starting && field.current?.focus()), [starting]);
  useShortcuts("Conversation", [
    { keys: "m", label: "Write a message", run: () => field.current?.focus() },
    { keys: "\\", label: "Show or hide the panel", run: () => setPanel(panel === "off" ? "state" : "off") },
  ]);
  // A thread that waits for decisions takes no other input than one for its queue.
  const isUndecided = run.status === "waiting" && interrupts.length > 0;
  const send = useCallback(
    (content: string | ContentPart[], onBusy: OnBusy) => store.send(content, { ...runInput(current, revision), forwardedProps: { perdure: { onBusy: isUndecided ? "enqueue" : onBusy } } }),
    [store, current, revision, isUndecided],
  );
  const stop = useCallback(() => store.cancel(), [store]);
  return (
    <ConversationProvider value={value}>
      <Page
        layout="fixed"
        title={titleOf(thread, summary)}
        trail={<><Link href={paths.threads}>Threads</Link> <span aria-hidden="true">/</span> <Link href={paths.agent(current)}>{safeText(current)}</Link></>}
        beside={<Status value={status} {...(status === "paused" && run.isCalling && { text: "pausing" })} />}
        actions={<ThreadActions threadId={threadId} status={status} run={run} store={store} panel={panel} onPanel={setPanel} />}
      >
        <div className={styles.conversation} data-panel={panel}>
          <div className={styles.main}>
            <TranscriptView thread={thread} entries={entries} agent={current} revision={revision} summary={summary} starting={starting} />
            <div className={styles.foot}>
              <div>
                <StatusLine thread={thread} status={status} agent={current} summary={summary} />
                <RevisionNote agent={current} revision={revision} onReset={resetRevision} />
                <Composer draft={threadId} field={field} placeholder={isUndecided ? `Message ${current}, to be answered after the ${asking.length > 0 ? "decision" : "wait"}` : `Message ${current}`} isRunning={run.status === "running"} agent={current} clientTools={clientToolsOf(details)}
                  onSend={send} onStop={stop} />
              </div>
            </div>
          </div>
          {panel !== "off" && <SidePanel thread={thread} subagents={subagents} summary={summary} agent={current} panel={panel} onPanel={setPanel} />}
        </div>
      </Page>
    </ConversationProvider>
  );
}

function useConversationValue({ store, interrupts, toolCalls, pending, run }: ThreadHook<unknown>): ConversationValue {
  const isRunning = run.status === "running";
  return useMemo(
    () => ({
      store,
      isRunning,
      isUndecided: !isRunning && interrupts.length > 0,
      firstInterrupt: interrupts.find((interrupt) => !awaitedBy(interrupt))?.id,
      interrupts: new Map(interrupts.flatMap((interrupt) => (interrupt.toolCallId === undefined ? [] : [[interrupt.toolCallId, interrupt] as const]))),
      toolCalls: new Map(toolCalls.map((call) => [call.toolCallId, call])),
      pending: new Map(pending.map((message) => [message.messageId, message])),
    }),
    [store, interrupts, toolCalls, pending, isRunning],
  );
}

/** Returns the status of a thread as the page shows it: the stream is faster than the summary, which alone knows of pauses and failures. */
function statusOf({ status, error }: RunSnapshot, summary: Thread | undefined): string {
  if (status === "running") return summary?.status === "paused" ? "paused" : "running";
  return status === "idle" && error ? "failed" : status;
}

const longestTitle = 80;

// The first words of the user, or the title that the thread was given.
function titleOf({ messages, threadId }: ThreadHook<unknown>, summary: Thread | undefined): string {
  const first = messages.find(({ role }) => role === "user");
  const text = summary?.title || (first ? textOf(first).trim().replaceAll(/\s+/g, " ") : "") || threadId;
  return safeText(text.length > longestTitle ? `${text.slice(0, longestTitle)} …` : text);
}

// Screen readers hear what the run does, not the words as they arrive.
function useAnnouncements(agent: string, { status, error, runId }: RunSnapshot, waiting: number): void {
  const before = useRef<string>(undefined);
  const state = status === "waiting" ? `waiting ${waiting}` : status;
  useEffect(() => {
    const isFirst = before.current === undefined;
    if (before.current === state) return;
    before.current = state;
    if (isFirst && status !== "waiting") return;
    if (status === "running") announce(`${agent} is answering`);
    else if (status === "waiting") announce(waiting === 0 ? `${agent} waits` : `${agent} waits for ${waiting === 1 ? "a decision" : `${waiting} decisions`}`);
    else announce(error ? `The run failed: ${error.message}` : `${agent} has answered`);
  }, [agent, state, status, error, waiting, runId]);
}

// The summary and the runs have changed when a run begins, waits or ends.
function useFreshSummary(threadId: string, { status, runId }: RunSnapshot): void {
  const queries = useQueryClient();
  useEffect(() => {
    for (const name of ["thread", "runs", "superseded"]) void queries.invalidateQueries({ queryKey: [name, threadId] });
  }, [queries, threadId, status, runId]);
}
