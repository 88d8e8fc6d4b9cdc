import type { Message } from "@ag-ui/client";
import type { Superseded } from "@perdure/client";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link } from "wouter";
import { Dialog } from "../../components/dialog";
import { Loading } from "../../components/page";
import { Problem } from "../../components/problem";
import { Time } from "../../components/time";
import { paths } from "../../paths";
import { useClient } from "../../session";
import styles from "./earlier_versions.module.css";
import { EntryView } from "./entry_view";
import { entriesOf } from "./transcript";

/** Returns the superseded versions of a conversation by the ID of the user message that has replaced them. exists: whether the server has the thread. */
export function useEarlierVersions(threadId: string, messages: readonly Message[], exists: boolean): ReadonlyMap<string, readonly Superseded[]> {
  const client = useClient();
  const { data } = useQuery({
    queryKey: ["superseded", threadId],
    queryFn: ({ signal }) => client.superseded(threadId, { limit: 50 }, { signal }).then(({ items }) => items),
    enabled: exists,
  });
  return useMemo(() => {
    const versions = new Map<string, Superseded[]>();
    for (const version of data ?? []) {
      const at = messages.findIndex(({ id }) => id === version.afterMessageId);
      if (at === -1 && version.afterMessageId !== undefined) continue; // superseded itself
      // A regeneration removes what follows a user message, an edit also that message.
      const next = messages.slice(Math.max(at, 0)).find(({ role }) => role === "user");
      if (next) versions.set(next.id, [...(versions.get(next.id) ?? []), version]);
    }
    return versions;
  }, [data, messages]);
}

/** A link to the versions that an edit or a regeneration has replaced. */
export function EarlierVersions({ threadId, versions }: { threadId: string; versions: readonly Superseded[] }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" className={styles.link} onClick={() => setOpen(true)}>
        {versions.length === 1 ? "1 earlier version" : `${versions.length} earlier versions`}
      </button>
      <Dialog title="Earlier versions" place="side" isOpen={isOpen} onClose={() => setOpen(false)}>
        {versions.map((version) => <Version key={version.runId} threadId={threadId} version={version} />)}
      </Dialog>
    </>
  );
}

function Version({ threadId, version: { runId, supersededAt } }: { threadId: string; version: Superseded }) {
  const client = useClient();
  const { data, error } = useQuery({
    queryKey: ["version", threadId, runId],
    queryFn: ({ signal }) => client.supersededMessages(threadId, runId, { limit: 100 }, { signal }).then(({ items }) => items),
    staleTime: Infinity,
  });
  return (
    <section className={styles.version}>
      <h3>Replaced <Time at={supersededAt} /> by <Link href={paths.run(threadId, runId)}>a later run</Link></h3>
      {error && <Problem error={error} />}
      {!data && !error && <Loading />}
      {data && entriesOf(data, []).map((entry) => <EntryView key={entry.key} entry={entry} isActive={false} />)}
    </section>
  );
}
