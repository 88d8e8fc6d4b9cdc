import type { ReactNode } from "react";
import { Link } from "wouter";
import { ExternalIcon } from "../../components/icons";
import { safeText } from "../../components/safe_text";
import { Duration, Time } from "../../components/time";
import { paths } from "../../paths";
import { settings } from "../../settings";
import { moneyText } from "../../components/money";
import styles from "./run_facts.module.css";
import { useRuns } from "./run_trail";
import { totalOf, type Trace } from "./trace";

/** The facts of a run in a line: agent, revision, times, tokens and cost, and links to other tools. */
export function RunFacts({ trace }: { trace: Trace }) {
  const { agent, revision, startedAt, endedAt, status, usage, cost, runId, event } = trace;
  const tokens = totalOf(usage);
  const { data: runs = [] } = useRuns(trace.threadId);
  const next = runs.find(({ continues }) => continues === runId);
  const isActive = status === "running" || status === "waiting";
  return (
    <dl className={styles.facts}>
      <Fact name="Agent"><Link href={paths.agent(agent)}>{safeText(agent)}</Link></Fact>
      {revision !== undefined && <Fact name="Revision"><code title={revision}>{safeText(revision.replace(/^tenant-/, "").slice(0, 8))}</code></Fact>}
      <Fact name="Run"><code className="truncate" title={safeText(runId)}>{safeText(runId)}</code></Fact>
      <Fact name="Started"><Time at={startedAt} /></Fact>
      {event && <Fact name="Event"><code title={safeText(`${event.type} with the ID ${event.id}, from ${event.source}`)}>{safeText(event.type)}</code></Fact>}
      <Fact name="Duration"><Duration from={startedAt} to={endedAt ?? (isActive ? undefined : startedAt)} /></Fact>
      <Fact name="Tokens"><span className="number" title={`${tokens.input.toLocaleString()} in, ${tokens.output.toLocaleString()} out`}>{tokens.total.toLocaleString()}</span></Fact>
      {cost && <Fact name="Cost"><span className="number">{moneyText(cost)}</span></Fact>}
      {trace.continues !== undefined && <Fact name="Continues"><Link href={paths.run(trace.threadId, trace.continues)}>the run before the decision</Link></Fact>}
      {next && <Fact name="Continued by"><Link href={paths.run(trace.threadId, next.runId)}>the run after the decision</Link></Fact>}
      <Links trace={trace} />
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className={styles.fact}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Links({ trace: { threadId, runId, workflowId } }: { trace: Trace }) {
  const links = [
    { label: "Temporal", url: filled(settings.workflowUrl, { workflowId }) },
    { label: "Trace", url: filled(settings.traceUrl, { threadId, runId }) },
  ].filter(({ url }) => url !== undefined);
  if (links.length === 0) return null;
  return (
    <div className={styles.links}>
      <dt className="visually-hidden">Other tools</dt>
      {links.map(({ label, url }) => <dd key={label}><a href={url} target="_blank" rel="noreferrer">{label}<ExternalIcon /></a></dd>)}
    </div>
  );
}

// Returns a template with its values, or undefined if one is missing or it is no address of a page.
function filled(template: string | undefined, values: Record<string, string | undefined>): string | undefined {
  if (template === undefined || !/^https?:\/\//.test(template)) return undefined;
  let isComplete = true;
  const url = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) isComplete = false;
    return encodeURIComponent(value ?? "");
  });
  return isComplete ? url : undefined;
}
