import { type Agent, ProblemError } from "@perdure/client";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { useSearchParams } from "wouter";
import { announce } from "../../components/announcer";
import { Button } from "../../components/button";
import { Dialog, DialogActions } from "../../components/dialog";
import { EditIcon } from "../../components/icons";
import { Loading } from "../../components/page";
import { Problem } from "../../components/problem";
import { useShortcuts } from "../../components/shortcuts";
import type { Mark, YAMLEditorHandle } from "../../components/yaml_editor";
import { useCompletion } from "./completion_names";
import styles from "./definition.module.css";
import { useDraft } from "./draft";
import { Mistakes } from "./mistakes";
import { PublishDialog } from "./publish_dialog";
import { RepairNote } from "./repair_note";
import { shortRevision, useDefinition } from "./queries";
import { TryButton } from "./try_button";
import { useValidation } from "./validation";

const YAMLEditor = lazy(() => import("../../components/yaml_editor"));

/** The definition of an agent: to read it, to change it, to try the change, and to publish it. */
export function DefinitionTab({ agent }: { agent: Agent }) {
  const { data: published, error, refetch } = useDefinition(agent.name, agent.revision);
  if (error !== null) {
    return (
      <Problem error={error} onRetry={() => void refetch()}>
        {error instanceof ProblemError && error.status === 403 && <p>Only administrators may read and change definitions.</p>}
      </Problem>
    );
  }
  return published === undefined ? <Loading /> : <DefinitionEditor agent={agent} published={published} />;
}

function DefinitionEditor({ agent, published }: { agent: Agent; published: string }) {
  const [draft, setDraft] = useDraft(agent.name);
  const [params, setParams] = useSearchParams();
  const [isPublishing, setPublishing] = useState(false);
  const [isDiscarding, setDiscarding] = useState(false);
  const [refused, setRefused] = useState<{ text: string; marks: readonly Mark[] }>();
  const editor = useRef<YAMLEditorHandle>(null);
  const isEditing = draft !== undefined || params.has("edit");
  const text = draft?.text ?? published;
  const isChanged = draft !== undefined && draft.text !== published;
  const validation = useValidation(agent, isEditing ? text : undefined);
  const marks = refused?.text === text ? refused.marks : validation.marks;
  const complete = useCompletion(agent.name);
  const repairs = params.get("repairs");
  const kept: Record<string, string> = repairs === null ? {} : { repairs };
  const edit = () => {
    setParams({ edit: "", ...kept }, { replace: true });
    announce("You can edit the definition");
  };
  // The key e of the agent's other tabs opens the editor by the address.
  useEffect(() => {
    if (params.has("edit")) editor.current?.focus();
  }, [params.has("edit")]);
  const close = () => {
    setDiscarding(false);
    setDraft(undefined);
    setParams(kept, { replace: true });
  };
  const change = (next: string) => (next === published && draft === undefined ? undefined : setDraft({ text: next, base: draft?.base ?? agent.revision }));
  const refuse = (found: readonly Mark[]) => {
    setRefused({ text, marks: found });
    setPublishing(false);
  };
  useShortcuts("Definition", isEditing ? [{ keys: "p", label: "Publish", run: () => isChanged && setPublishing(true) }] : []);
  return (
    <>
      <div className={styles.bar}>
        <DefinitionState agent={agent} isEditing={isEditing} isChanged={isChanged} state={refused?.text === text ? "invalid" : validation.state} />
        <div className={styles.actions}>
          {!isEditing && <Button onPress={edit}><EditIcon />Edit</Button>}
          {isEditing && <Button kind="quiet" onPress={isChanged ? () => setDiscarding(true) : close}>{isChanged ? "Discard changes …" : "Stop editing"}</Button>}
          {isEditing && <TryButton agent={agent} text={text} isDisabled={!isChanged || validation.state !== "valid"} />}
          {isEditing && <Button kind="primary" isDisabled={!isChanged || validation.state === "invalid"} onPress={() => setPublishing(true)}>Publish …</Button>}
        </div>
      </div>
      {repairs?.startsWith("/threads/") && <RepairNote run={repairs} isChanged={isChanged} />}
      {draft !== undefined && draft.base !== agent.revision && <Outdated agent={agent} base={draft.base} onCompare={() => setPublishing(true)} />}
      <Suspense fallback={<Loading label="Loading the editor …" />}>
        <YAMLEditor
          ref={editor} label={`Definition of ${agent.name}`} value={text} onChange={change} isReadOnly={!isEditing}
          marks={isEditing ? marks : noMarks} complete={complete} autoFocus={params.has("edit")}
        />
      </Suspense>
      {isEditing && <Mistakes marks={marks} onSelect={(mark) => editor.current?.show(mark)} />}
      <DiscardDialog isOpen={isDiscarding} onClose={() => setDiscarding(false)} onDiscard={close} />
      {isPublishing && <PublishDialog agent={agent} draft={{ text, base: draft?.base ?? agent.revision }} onClose={() => setPublishing(false)} onPublished={close} onRefused={refuse} />}
    </>
  );
}

function DiscardDialog({ isOpen, onClose, onDiscard }: { isOpen: boolean; onClose: () => void; onDiscard: () => void }) {
  return (
    <Dialog title="Discard the changes?" isOpen={isOpen} onClose={onClose}>
      <p>The text goes back to the current revision.</p>
      <DialogActions>
        <Button onPress={onClose}>Keep editing</Button>
        <Button kind="danger" onPress={onDiscard}>Discard</Button>
      </DialogActions>
    </Dialog>
  );
}

const noMarks: readonly Mark[] = [];

const stateTexts = {
  valid: { text: "No mistakes", look: "valid" },
  invalid: { text: "Has mistakes", look: "invalid" },
  checking: { text: "Checking …", look: "checking" },
  unknown: { text: "Not checked", look: "checking" },
} as const;

function DefinitionState({ agent, isEditing, isChanged, state }: { agent: Agent; isEditing: boolean; isChanged: boolean; state: keyof typeof stateTexts }) {
  const { text, look } = stateTexts[state];
  return (
    <p className={styles.state}>
      {isEditing && isChanged ? "Draft, begun from" : "Current revision"} <code title={agent.revision}>{shortRevision(agent.revision)}</code>
      {isEditing && <span className={styles[look]}>{text}</span>}
    </p>
  );
}

function Outdated({ agent, base, onCompare }: { agent: Agent; base: string; onCompare: () => void }) {
  return (
    <div className={styles.outdated} role="note">
      <span>Your draft began from <code>{shortRevision(base)}</code>. Meanwhile <code>{shortRevision(agent.revision)}</code> was published. Your text is kept.</span>
      <Button onPress={onCompare}>Compare …</Button>
    </div>
  );
}
