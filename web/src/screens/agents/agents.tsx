import type { Agent } from "@perdure/client";
import { useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { ButtonLink } from "../../components/button";
import { Field } from "../../components/field";
import { Empty, Loading, Page } from "../../components/page";
import { Problem } from "../../components/problem";
import { safeText } from "../../components/safe_text";
import { useShortcuts } from "../../components/shortcuts";
import { type Column, Table } from "../../components/table";
import { paths } from "../../paths";
import styles from "./agents.module.css";
import { shortRevision, useAgents, useDirectoryProblems } from "./queries";
import { ToolList } from "./tool_list";

const columns: Column<Agent>[] = [
  {
    title: "Agent",
    cell: (agent) => (
      <>
        <Link href={paths.agent(agent.name)} className={styles.name}>{agent.name}</Link>
        {agent.description !== undefined && <p className={styles.description}>{safeText(agent.description)}</p>}
        {agent.warnings?.map((warning) => <p key={warning} className={styles.warning}>{safeText(warning)}</p>)}
      </>
    ),
  },
  { title: "Model", cell: ({ model, remote }) => <code className={styles.model}>{remote === undefined ? model || "–" : `remote: ${safeText(remote)}`}</code> },
  { title: "Tools", cell: ({ tools, unavailableTools }) => <ToolList tools={tools ?? []} unavailable={unavailableTools ?? []} most={4} /> },
  { title: "Scope", cell: ({ scope }) => scope },
  { title: "Revision", cell: ({ revision }) => <code title={revision}>{shortRevision(revision)}</code> },
  { title: "Actions", cell: (agent) => <Link href={paths.newChat(agent.name)} aria-label={`Chat with ${agent.name}`}>Chat</Link> },
];

/** The agents that the caller may run. */
export default function Agents() {
  const { data: agents, error, refetch } = useAgents();
  const [params, setParams] = useSearchParams();
  const [, navigate] = useLocation();
  const [searched] = useState(() => ({ field: null as HTMLElement | null }));
  const query = params.get("q") ?? "";
  const shown = agents?.filter(({ name, description, model }) => `${name} ${description} ${model}`.toLowerCase().includes(query.toLowerCase())) ?? [];
  useShortcuts("Agents", [{ keys: "n", label: "New agent", run: () => navigate(paths.newAgent) }, { keys: "/", label: "Search", run: () => searched.field?.querySelector("input")?.focus() }]);
  const search = (text: string) => setParams(text === "" ? {} : { q: text }, { replace: true });
  return (
    <Page
      title="Agents"
      actions={
        <>
          {agents !== undefined && agents.length > 0 && (
            <div ref={(field) => void (searched.field = field)} className={styles.search}>
              <Field
                label="Search agents" isLabelHidden placeholder="Search agents" type="search" value={query} onChange={search}
                onKeyDown={(event) => event.key === "Enter" && shown.length === 1 && navigate(paths.agent(shown[0]!.name))}
              />
            </div>
          )}
          <ButtonLink href={paths.newAgent}>New agent</ButtonLink>
        </>
      }
    >
      <DirectoryProblems />
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {agents === undefined && error === null && <Loading />}
      {agents?.length === 0 && <NoAgents />}
      {agents !== undefined && agents.length > 0 && (shown.length > 0
        ? <Table label="Agents" columns={columns} rows={shown} keyOf={({ name }) => name} />
        : <Empty title={`No agent matches “${query}”`} />)}
    </Page>
  );
}

function DirectoryProblems() {
  const { data: problems = [] } = useDirectoryProblems();
  if (problems.length === 0) return null;
  return (
    <div className={styles.notice} role="note">
      <p><strong>Not all files of the directory are published:</strong></p>
      <ul>{problems.map((problem) => <li key={problem}>{safeText(problem)}</li>)}</ul>
    </div>
  );
}

function NoAgents() {
  return (
    <Empty title="No agents yet">
      <p>An agent is a YAML file: a model, instructions and tools, or the steps of a pipeline. <Link href={paths.newAgent}>Write one here</Link>, or in a terminal:</p>
      <pre><code>{"perdure new agent greeter\nperdure agents put agents/greeter.yaml"}</code></pre>
      <p><code>perdure dev</code> publishes the files of its directory by itself, also when you change them.</p>
    </Empty>
  );
}
