import type { Agent } from "@perdure/client";
import { safeText } from "../../components/safe_text";
import { type Column, Table } from "../../components/table";
import styles from "./agent.module.css";

type Trigger = NonNullable<Agent["triggers"]>[number];

const busy = { enqueue: "waits for its turn", interrupt: "interrupts the active run", reject: "does not begin" };

const columns: Column<Trigger>[] = [
  { title: "Event", cell: ({ event }) => <code>{safeText(event)}</code> },
  { title: "If the data have", cell: ({ match }) => <Match match={match ?? {}} /> },
  { title: "Thread", cell: ({ thread }) => (thread === undefined ? "a new one for each event" : <code>{safeText(thread)}</code>) },
  { title: "Acts as", cell: ({ runAs }) => (runAs === undefined ? "an anonymous caller" : <>the service <code>{safeText(runAs)}</code></>) },
  { title: "If the thread is busy", cell: ({ onBusy = "enqueue" }) => busy[onBusy] },
];

function Match({ match }: { match: Record<string, unknown> }) {
  const values = Object.entries(match);
  if (values.length === 0) return "anything";
  return <ul className={styles.list}>{values.map(([path, value]) => <li key={path}><code>{safeText(`${path}: ${JSON.stringify(value)}`)}</code></li>)}</ul>;
}

/** The events that start runs of an agent. Nothing if it has no triggers, or the reader may not read its definition. */
export function Triggers({ triggers }: { triggers: readonly Trigger[] }) {
  if (triggers.length === 0) return null;
  const rows = triggers.map((trigger, i) => ({ ...trigger, key: String(i) }));
  return (
    <section className={styles.section} aria-labelledby="triggers">
      <h2 id="triggers">Triggers</h2>
      <p className="muted">A run starts for each event of another system that one of these matches.</p>
      <Table label="Triggers" columns={columns} rows={rows} keyOf={({ key }) => key} />
    </section>
  );
}
