import { type Agent, ProblemError } from "@perdure/client";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { Button } from "../../components/button";
import { Choice } from "../../components/choice";
import { confirm } from "../../components/confirmation";
import { Loading, Page } from "../../components/page";
import { Problem } from "../../components/problem";
import type { YAMLEditorHandle } from "../../components/yaml_editor";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { useCompletion } from "./completion_names";
import styles from "./definition.module.css";
import { useDraft } from "./draft";
import { Mistakes } from "./mistakes";
import { useAgents } from "./queries";
import { mistakesOf, useValidation } from "./validation";

const YAMLEditor = lazy(() => import("../../components/yaml_editor"));

const template = `name: helper
description: Answers questions, calculates, and tells the time.
# This model is a script that needs no key. With a key: openai/gpt-5-mini, anthropic/…, gemini/…
model: scripted/demo
instructions: |
  You are a helpful assistant. Answer briefly.
tools: [calculate, current_time]
`;

type Scope = Agent["scope"];

const scopes: { id: Scope; label: string }[] = [
  { id: "platform", label: "For all tenants" },
  { id: "tenant", label: "For your tenant" },
];

/** The screen that writes an agent from a template, and publishes it. The draft is that of the agent without a name. */
export default function NewAgent() {
  const client = useClient();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const editor = useRef<YAMLEditorHandle>(null);
  const [draft, setDraft] = useDraft("");
  const [scope, setScope] = useState<Scope>("platform");
  const text = draft?.text ?? template;
  const name = nameIn(text);
  const { data: agents = [] } = useAgents();
  const taken = agents.find((agent) => agent.name === name && agent.scope === scope);
  const validation = useValidation({ name, scope }, text);
  const complete = useCompletion(name);
  const publish = useMutation({
    mutationFn: () => client.publishAgent(name, text, { scope, replaces: null }),
    onSuccess: async () => {
      setDraft(undefined);
      confirm(`Published ${name}`);
      await queries.invalidateQueries({ queryKey: ["agents"] });
      navigate(paths.agent(name));
    },
  });
  const refused = mistakesOf(publish.error);
  const isTaken = taken !== undefined || (publish.error instanceof ProblemError && publish.error.status === 412);
  return (
    <Page
      title="New agent"
      layout="fixed"
      trail={<Link href={paths.agents}>Agents</Link>}
      actions={
        <>
          <Choice label="Scope" isLabelHidden options={scopes} value={scope} onChange={(chosen) => setScope(chosen as Scope)} />
          <Button kind="primary" isDisabled={name === "" || isTaken || validation.state === "invalid" || publish.isPending} onPress={() => publish.mutate()}>Publish</Button>
        </>
      }
    >
      {isTaken && <p className={styles.outdated} role="note">There is an agent {name} already. Choose another name, or <Link href={`${paths.agent(name)}/definition?edit`}>change that agent</Link>.</p>}
      {publish.error !== null && !isTaken && <Problem error={publish.error} />}
      <Suspense fallback={<Loading label="Loading the editor …" />}>
        <YAMLEditor
          ref={editor} label="Definition of the new agent" value={text} marks={refused.length > 0 ? refused : validation.marks} complete={complete}
          onChange={(changed) => {
            publish.reset();
            setDraft(changed === template ? undefined : { text: changed, base: "" });
          }}
        />
      </Suspense>
      <Mistakes marks={refused.length > 0 ? refused : validation.marks} onSelect={(mark) => editor.current?.show(mark)} />
    </Page>
  );
}

// The name in a definition; "" = it has none yet.
const nameIn = (text: string) => /^name:[ \t]*["']?([A-Za-z0-9._-]+)/m.exec(text)?.[1] ?? "";
