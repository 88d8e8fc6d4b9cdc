import { type Agent, ProblemError, type Revision } from "@perdure/client";
import { lazy, Suspense, useState } from "react";
import { useSearchParams } from "wouter";
import { Button } from "../../components/button";
import { Empty, Loading } from "../../components/page";
import { Problem } from "../../components/problem";
import { safeText } from "../../components/safe_text";
import { Time } from "../../components/time";
import { PublishDialog } from "./publish_dialog";
import { shortRevision, useDefinition, useRevisions } from "./queries";
import styles from "./revisions.module.css";

const YAMLComparison = lazy(() => import("../../components/yaml_comparison"));

/** The publications of an agent, newest first, and the differences between two of them. */
export function RevisionsTab({ agent }: { agent: Agent }) {
  const { data: publications, error, refetch } = useRevisions(agent.name);
  const [params, setParams] = useSearchParams();
  const [restored, setRestored] = useState<Revision>();
  if (error !== null) {
    return (
      <Problem error={error} onRetry={() => void refetch()}>
        {error instanceof ProblemError && error.status === 403 && <p>Only administrators may read the revisions of agents.</p>}
      </Problem>
    );
  }
  if (publications === undefined) return <Loading />;
  // Without a choice: what the last publication changed.
  const after = params.get("to") ?? publications[0]!.revision;
  const before = params.get("from") ?? publications.find(({ revision }) => revision !== after)?.revision;
  const compare = (change: { from?: string; to?: string }) => setParams({ ...(before !== undefined && { from: before }), to: after, ...change }, { replace: true });
  return (
    <div className={styles.revisions}>
      <RevisionList publications={publications} before={before} after={after} onCompare={compare} onRestore={setRestored} />
      <section className={styles.differences} aria-label="Differences">
        {before === undefined
          ? <Empty title="Only one revision"><p>When another one is published, you can compare them here.</p></Empty>
          : <Differences agent={agent.name} before={before} after={after} />}
      </section>
      {restored !== undefined && <Restore agent={agent} publication={restored} onClose={() => setRestored(undefined)} />}
    </div>
  );
}

interface RevisionListProps {
  publications: readonly Revision[];
  before: string | undefined;
  after: string;
  onCompare: (change: { from?: string; to?: string }) => void;
  onRestore: (publication: Revision) => void;
}

function RevisionList({ publications, before, after, onCompare, onRestore }: RevisionListProps) {
  const currentRevision = publications.find(({ current }) => current)?.revision;
  return (
    <ol className={styles.list} aria-label="Revisions">
      {publications.map((publication, i) => {
        const { revision, publishedAt, source, by, note } = publication;
        const name = shortRevision(revision);
        const isCurrent = revision === currentRevision;
        const isLatest = publications.findIndex((other) => other.revision === revision) === i; // of the publications of the revision
        return (
          <li key={publishedAt} className={isLatest && (revision === after || revision === before) ? styles.compared : styles.revision}>
            <div className={styles.head}>
              <code title={revision}>{name}</code>
              {isCurrent && isLatest && <span className={styles.current}>current</span>}
              {isLatest
                ? (
                  <span className={styles.choices}>
                    <Side name="from" label={`Compare from ${name}`} text="from" isChosen={revision === before} onChoose={() => onCompare({ from: revision })} />
                    <Side name="to" label={`Compare to ${name}`} text="to" isChosen={revision === after} onChoose={() => onCompare({ to: revision })} />
                  </span>
                )
                : <span className={`muted ${styles.choices}`}>published again above</span>}
            </div>
            {note !== undefined && <p className={styles.note}>{safeText(note)}</p>}
            <div className={styles.foot}>
              <span><Time at={publishedAt} /> · {source === "directory" ? "from the directory" : safeText(by ?? "anonymous caller")}</span>
              {!isCurrent && isLatest && <Button kind="quiet" onPress={() => onRestore(publication)} aria-label={`Restore ${name}`}>Restore …</Button>}
            </div>
          </li>
        );
      })}
    </ol>
  );
}

function Side({ name, label, text, isChosen, onChoose }: { name: string; label: string; text: string; isChosen: boolean; onChoose: () => void }) {
  return (
    <label className={styles.side}>
      <input type="radio" name={name} aria-label={label} checked={isChosen} onChange={onChoose} />
      <span aria-hidden="true">{text}</span>
    </label>
  );
}

function Differences({ agent, before, after }: { agent: string; before: string; after: string }) {
  const { data: old, error: oldError } = useDefinition(agent, before);
  const { data: changed, error } = useDefinition(agent, after);
  if (error !== null || oldError !== null) return <Problem error={error ?? oldError} />;
  if (old === undefined || changed === undefined) return <Loading />;
  if (before === after || old === changed) return <Empty title="No differences"><p>Choose two different revisions.</p></Empty>;
  return (
    <Suspense fallback={<Loading />}>
      <YAMLComparison before={{ label: `Revision ${shortRevision(before)}`, text: old }} after={{ label: `Revision ${shortRevision(after)}`, text: changed }} />
    </Suspense>
  );
}

function Restore({ agent, publication, onClose }: { agent: Agent; publication: Revision; onClose: () => void }) {
  const { data: text } = useDefinition(agent.name, publication.revision);
  if (text === undefined) return null;
  return <PublishDialog agent={agent} draft={{ text, base: agent.revision }} note={`Restore ${shortRevision(publication.revision)}`} onClose={onClose} onPublished={() => undefined} />;
}
