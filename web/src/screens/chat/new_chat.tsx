import type { Agent, ContentPart } from "@perdure/client";
import { useQuery } from "@tanstack/react-query";
import { useCallback, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { Field } from "../../components/field";
import { Empty, Loading, Page } from "../../components/page";
import { Problem } from "../../components/problem";
import { safeText } from "../../components/safe_text";
import { useShortcuts } from "../../components/shortcuts";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { AgentIntroduction } from "./agent_introduction";
import { clientToolsOf } from "./client_tool_names";
import { Composer } from "./composer";
import styles from "./new_chat.module.css";
import { RecentThreads } from "./recent_threads";
import { RevisionNote } from "./revision_note";
import { useRevision, withRevision } from "./run_input";
import { startThread } from "./starting";
import { useAgent } from "./use_agent";

const storageKey = "perdure.chatAgent";

/** The screen that begins a thread with an agent. */
export default function NewChat({ agent: asked }: { agent?: string }) {
  const client = useClient();
  const agents = useQuery({ queryKey: ["agents"], queryFn: ({ signal }) => client.agents({ signal }) });
  const last = localStorage.getItem(storageKey);
  const first = agents.data?.find(({ unavailableTools = [], warnings = [] }) => unavailableTools.length + warnings.length === 0) ?? agents.data?.[0];
  const chosen = agents.data?.find(({ name }) => name === (asked ?? last)) ?? (asked === undefined ? first : undefined);
  return (
    <Page title={chosen ? `Chat with ${safeText(chosen.name)}` : "Chat"}>
      {agents.isPending && <Loading />}
      {agents.error && <Problem error={agents.error} onRetry={() => void agents.refetch()} />}
      {agents.data?.length === 0 && <NoAgents />}
      {agents.data && agents.data.length > 0 && (
        <div className={styles.columns}>
          <div className={styles.start}>
            {chosen ? <Start key="start" agent={chosen.name} /> : <Empty title={`There is no agent ${safeText(asked ?? "")}`}><p>Choose another one.</p></Empty>}
            <AgentCards agents={agents.data} chosen={chosen?.name} />
          </div>
          <RecentThreads />
        </div>
      )}
    </Page>
  );
}

function Start({ agent }: { agent: string }) {
  const client = useClient();
  const [, navigate] = useLocation();
  const field = useRef<HTMLTextAreaElement | null>(null);
  const details = useAgent(agent);
  const [revision, resetRevision] = useRevision();
  const send = useCallback(
    async (content: string | ContentPart[]) => {
      localStorage.setItem(storageKey, agent);
      navigate(withRevision(paths.thread(startThread(client, agent, content, revision)), revision));
    },
    [client, agent, revision, navigate],
  );
  useShortcuts("Chat", [{ keys: "m", label: "Write a message", run: () => field.current?.focus() }]);
  return (
    <div>
      {details && <AgentIntroduction agent={details} />}
      <RevisionNote agent={agent} revision={revision} onReset={resetRevision} />
      <Composer draft="new" field={field} placeholder={`Message ${agent}`} isRunning={false} agent={agent} clientTools={clientToolsOf(details)} onSend={send} onStop={nothing} />
    </div>
  );
}

const nothing = async () => {};

// With more agents than this, a field searches them.
const searchless = 8;

function AgentCards({ agents: all, chosen }: { agents: readonly Agent[]; chosen: string | undefined }) {
  const [query, setQuery] = useState("");
  const agents = all.filter(({ name, description }) => `${name} ${description}`.toLowerCase().includes(query.trim().toLowerCase()));
  return (
    <section className={styles.agents} aria-labelledby="agents-title">
      <header className={styles.head}>
        <h2 id="agents-title">Agents</h2>
        {all.length > searchless && <Field label="Search agents" isLabelHidden placeholder="Search agents" type="search" value={query} onChange={setQuery} />}
      </header>
      {agents.length === 0 && <p className="muted">No agent matches.</p>}
      <ul className={styles.cards}>
        {agents.map((agent) => <li key={agent.name}><AgentCard agent={agent} isChosen={agent.name === chosen} /></li>)}
      </ul>
    </section>
  );
}

const shownTools = 4;

function AgentCard({ agent: { name, description, model, tools = [], unavailableTools = [], warnings = [] }, isChosen }: { agent: Agent; isChosen: boolean }) {
  const rest = tools.length - shownTools;
  return (
    <Link href={paths.newChat(name)} className={styles.card} aria-current={isChosen ? "true" : undefined}>
      <span className={styles.name}>{safeText(name)}</span>
      {description && <span className={styles.description}>{safeText(description)}</span>}
      <span className={styles.facts}>
        <span className="mono">{safeText(model)}</span>
        {tools.slice(0, shownTools).map((tool) => <span key={tool} className={styles.tool}>{safeText(tool)}</span>)}
        {rest > 0 && <span>{rest} more</span>}
      </span>
      {unavailableTools.length > 0 && <span className={styles.warning}>No worker has {safeText(unavailableTools.join(", "))}</span>}
      {warnings.map((warning) => <span key={warning} className={styles.warning}>{safeText(warning)}</span>)}
    </Link>
  );
}

function NoAgents() {
  return (
    <Empty title="There are no agents yet">
      <p>Write one as YAML, and start Perdure with its folder. It appears here when you save it:</p>
      <pre>perdure dev --agents agents</pre>
      <p><Link href={paths.agents}>Agents</Link></p>
    </Empty>
  );
}
