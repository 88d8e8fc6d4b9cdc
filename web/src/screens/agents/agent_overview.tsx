import type { Agent } from "@perdure/client";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { safeText } from "../../components/safe_text";
import { durationText, Time } from "../../components/time";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { UsageCharts } from "../usage/usage_charts";
import { lastDays, useUsage } from "../usage/queries";
import styles from "./agent.module.css";
import { useAgents, useRevisions } from "./queries";
import { ToolList } from "./tool_list";
import { Triggers } from "./triggers";

interface Capabilities {
  execution?: { maxIterations?: number; maxExecutionTime?: number };
}

/** What an agent is, where it is used, and how its runs went. */
export function AgentOverview({ agent }: { agent: Agent }) {
  const { data: revisions } = useRevisions(agent.name);
  const published = revisions?.find(({ current }) => current);
  const { execution } = agent.capabilities as Capabilities;
  return (
    <div className={styles.sections}>
      {agent.description !== undefined && <p className={styles.lead}>{safeText(agent.description)}</p>}
      <UnavailableTools tools={agent.unavailableTools ?? []} />
      <Warnings warnings={agent.warnings ?? []} />
      <dl className={styles.facts}>
        {agent.remote === undefined
          ? <Fact label="Model">{agent.model === "" ? "none of its own" : <code>{[agent.model, ...(agent.fallbackModels ?? [])].join(", ")}</code>}</Fact>
          : <Fact label="Server"><code>{safeText(agent.remote)}</code></Fact>}
        <Fact label="Tools"><ToolList tools={agent.tools ?? []} unavailable={agent.unavailableTools ?? []} /></Fact>
        <Fact label="Scope">{agent.scope === "tenant" ? `the tenant ${agent.tenant ?? ""}` : "all tenants of the platform"}</Fact>
        {published !== undefined && (
          <Fact label="Published">
            <Time at={published.publishedAt} /> {published.source === "put" ? `by ${published.by ?? "an anonymous caller"}` : "from the directory of definitions"}
          </Fact>
        )}
        {execution?.maxIterations !== undefined && execution.maxExecutionTime !== undefined && (
          <Fact label="Limits">{execution.maxIterations} turns, {durationText(execution.maxExecutionTime)}</Fact>
        )}
      </dl>
      <Triggers triggers={agent.triggers ?? []} />
      <Users agent={agent.name} />
      <RecentNumbers agent={agent.name} />
    </div>
  );
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  return <><dt>{label}</dt><dd>{children}</dd></>;
}

function UnavailableTools({ tools }: { tools: readonly string[] }) {
  if (tools.length === 0) return null;
  return (
    <div className={styles.notice} role="note">
      <p><strong>{tools.length === 1 ? "A tool is unavailable:" : `${tools.length} tools are unavailable:`}</strong> <code>{tools.join(", ")}</code></p>
      <p>Runs that call them wait for a limited time. Start a worker that has the tools, or publish the agents.</p>
    </div>
  );
}

function Warnings({ warnings }: { warnings: readonly string[] }) {
  if (warnings.length === 0) return null;
  return (
    <div className={styles.notice} role="note">
      <p><strong>Runs will fail:</strong></p>
      <ul className={styles.list}>{warnings.map((warning) => <li key={warning}>{safeText(warning)}</li>)}</ul>
    </div>
  );
}

/** The agents and schedules that name an agent. */
function Users({ agent }: { agent: string }) {
  const client = useClient();
  const { data: agents = [] } = useAgents();
  const { data: schedules = [] } = useQuery({ queryKey: ["schedules", "all"], queryFn: async () => (await client.schedules({ limit: 100 })).items });
  const callers = agents.filter(({ agents: used = [] }) => used.includes(agent));
  const fired = schedules.filter((schedule) => schedule.agent === agent);
  return (
    <section className={styles.section} aria-labelledby="users">
      <h2 id="users">Used by</h2>
      {callers.length + fired.length === 0 && <p className="muted">No other agent calls it, and no schedule starts it.</p>}
      {callers.length > 0 && <ul className={styles.list} aria-label="Agents">{callers.map(({ name }) => <li key={name}>agent <Link href={paths.agent(name)}>{name}</Link></li>)}</ul>}
      {fired.length > 0 && <ul className={styles.list} aria-label="Schedules">{fired.map(({ id }) => <li key={id}>schedule <Link href={paths.schedule(id)}>{safeText(id)}</Link></li>)}</ul>}
    </section>
  );
}

function RecentNumbers({ agent }: { agent: string }) {
  const { data: usage } = useUsage({ ...lastDays(30), agent, groupBy: ["day"] });
  if (usage === undefined) return null;
  return (
    <section className={styles.section} aria-labelledby="numbers">
      <h2 id="numbers">Last 30 days</h2>
      <UsageCharts items={usage.items} {...lastDays(30)} />
    </section>
  );
}
