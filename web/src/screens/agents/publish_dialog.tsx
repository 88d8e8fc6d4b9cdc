import { type Agent, ProblemError } from "@perdure/client";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { Button } from "../../components/button";
import { confirm } from "../../components/confirmation";
import { Dialog, DialogActions } from "../../components/dialog";
import { Field } from "../../components/field";
import { Loading } from "../../components/page";
import { Problem } from "../../components/problem";
import { Sending } from "../../components/sending";
import type { Mark } from "../../components/yaml_editor";
import { useClient } from "../../session";
import styles from "./definition.module.css";
import type { Draft } from "./draft";
import { shortRevision, useAgent, useDefinition } from "./queries";
import { mistakesOf } from "./validation";

const YAMLComparison = lazy(() => import("../../components/yaml_comparison"));

/** Properties of a PublishDialog. */
export interface PublishDialogProps {
  agent: Agent;
  /** The text to publish. */
  draft: Draft;
  /** The note at first. */
  note?: string;
  onClose: () => void;
  onPublished: () => void;
  /** Called with the mistakes for which the server refuses the text. Without it the dialog shows them. */
  onRefused?: (marks: readonly Mark[]) => void;
}

/** Asks for a note, shows what changes against the current revision, and publishes. */
export function PublishDialog({ agent: { name, scope }, draft, note: first = "", onClose, onPublished, onRefused }: PublishDialogProps) {
  const client = useClient();
  const { data: agent, refetch } = useAgent(name);
  const queries = useQueryClient();
  const [note, setNote] = useState(first);
  // The revision with which the dialog has compared: only that one may be replaced.
  const [compared, setCompared] = useState(draft.base);
  const { data: current, error } = useDefinition(name, agent?.revision);
  const isOutdated = agent !== undefined && agent.revision !== compared;
  const publish = useMutation({
    mutationFn: () => client.publishAgent(name, draft.text, { scope, replaces: compared, note: note.trim() || undefined }),
    onSuccess: async (published) => {
      confirm(`Published revision ${shortRevision(published.revision)} of ${name}`);
      onPublished();
      onClose();
      await queries.invalidateQueries({ queryKey: ["agents"] });
    },
    onError: (refusal) => {
      if (refusal instanceof ProblemError && refusal.status === 412) void refetch();
      const marks = mistakesOf(refusal);
      if (marks.length > 0) onRefused?.(marks);
    },
  });
  const isConflict = publish.error instanceof ProblemError && publish.error.status === 412;
  return (
    <Dialog title={`Publish ${name}`} isOpen onClose={onClose} size="large">
      {isOutdated && <Conflict base={compared} current={agent.revision} />}
      {publish.error !== null && !isConflict && <Problem error={publish.error} />}
      <Field label="Note" value={note} onChange={setNote} placeholder="What changes, and why" maxLength={500} autoFocus />
      {error !== null && <Problem error={error} />}
      <div className={styles.compared}>
        {agent !== undefined && current !== undefined && (
          <Suspense fallback={<Loading />}>
            <YAMLComparison before={{ label: `Current revision ${shortRevision(agent.revision)}`, text: current }} after={{ label: "To be published", text: draft.text }} />
          </Suspense>
        )}
      </div>
      {publish.isPending && <Sending />}
      <DialogActions>
        <Button onPress={onClose}>Cancel</Button>
        {isOutdated
          ? <Button onPress={() => { setCompared(agent.revision); publish.reset(); }}>I have compared, replace {shortRevision(agent.revision)}</Button>
          : <Button kind="primary" isDisabled={publish.isPending || current === undefined} onPress={() => publish.mutate()}>Publish</Button>}
      </DialogActions>
    </Dialog>
  );
}

function Conflict({ base, current }: { base: string; current: string }) {
  return (
    <div className={styles.conflict} role="alert">
      <p><strong>Somebody has published another revision.</strong></p>
      <p>Your text began from <code>{shortRevision(base)}</code>, and <code>{shortRevision(current)}</code> is current. Nothing that you typed is lost. The comparison shows what your text would change in the current revision, and undo of it.</p>
    </div>
  );
}
