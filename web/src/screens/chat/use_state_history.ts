import type { PerdureClient } from "@perdure/client";
import { useEffect, useRef, useState } from "react";
import { useClient } from "../../session";

/** A change of the state of a thread. */
export interface StateChange {
  key: string;
  /** The operations of a JSON Patch. Absent: the whole state was set. */
  operations?: { op: string; path: string; value?: unknown }[];
  snapshot?: unknown;
  /** The subagent that has made it. */
  subagent?: string;
}

const pause = 500;
const mostChanges = 500;
const eventsPerPage = 500; // the most that the API returns

interface Progress {
  threadId: string;
  cursor: string | undefined;
  changes: StateChange[];
}

/** Returns the changes of the state of a thread, if there is one, newest first, at most 500. It reads the log again when the state or the run changes. */
export function useStateHistory(threadId: string | undefined, state: unknown, status: string): { changes: readonly StateChange[]; error?: unknown } {
  const client = useClient();
  const progress = useRef<Progress>({ threadId: "", cursor: undefined, changes: [] });
  const [result, setResult] = useState<{ changes: readonly StateChange[]; error?: unknown }>({ changes: [] });
  useEffect(() => {
    if (threadId === undefined) return;
    const aborter = new AbortController();
    const timer = setTimeout(() => {
      if (progress.current.threadId !== threadId) progress.current = { threadId, cursor: undefined, changes: [] };
      readChanges(client, progress.current, aborter.signal).then(
        () => setResult({ changes: progress.current.changes }),
        (error: unknown) => aborter.signal.aborted || setResult({ changes: progress.current.changes, error }),
      );
    }, pause);
    return () => {
      clearTimeout(timer);
      aborter.abort();
    };
  }, [client, threadId, state, status]);
  return result;
}

async function readChanges(client: PerdureClient, progress: Progress, signal: AbortSignal): Promise<void> {
  for (;;) {
    const { items, nextCursor } = await client.loggedEvents(progress.threadId, { limit: eventsPerPage, ...(progress.cursor !== undefined && { after: progress.cursor }) }, { signal });
    if (signal.aborted) return;
    for (const change of items.flatMap(({ event, cursor }) => changeOf(event, cursor))) {
      if (!isRepeated(change, progress.changes[0])) progress.changes = [change, ...progress.changes.slice(0, mostChanges - 1)];
    }
    progress.cursor = nextCursor ?? items.at(-1)?.cursor ?? progress.cursor;
    if (items.length === 0 || nextCursor === undefined) return;
  }
}

// Each run begins with the state that it has found.
function isRepeated({ operations, snapshot }: StateChange, before: StateChange | undefined): boolean {
  return operations === undefined && before?.operations === undefined && JSON.stringify(snapshot) === JSON.stringify(before?.snapshot ?? {});
}

function changeOf({ type, delta, snapshot, subagentRunId }: { type: string; [member: string]: unknown }, cursor = ""): StateChange[] {
  const rest = { key: `${cursor} ${type}`, ...(subagentRunId !== undefined && { subagent: String(subagentRunId) }) };
  if (type === "STATE_DELTA") return [{ ...rest, operations: delta as NonNullable<StateChange["operations"]> }];
  return type === "STATE_SNAPSHOT" ? [{ ...rest, snapshot }] : [];
}
