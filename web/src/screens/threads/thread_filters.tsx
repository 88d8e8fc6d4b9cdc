import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Button } from "../../components/button";
import { Choice } from "../../components/choice";
import { Field } from "../../components/field";
import { useClient } from "../../session";
import { type Filters, isFiltered, noFilters } from "./filters";
import styles from "./threads.module.css";

const statuses = [
  { id: "", label: "Any status" },
  { id: "running", label: "Running" },
  { id: "retrying", label: "Retrying" },
  { id: "stuck", label: "Stuck" },
  { id: "waiting", label: "Waiting" },
  { id: "paused", label: "Paused" },
  { id: "failed", label: "Failed" },
  { id: "idle", label: "Idle" },
];

const waits = [
  { id: "", label: "Waiting for anything" },
  { id: "approval", label: "Waiting for an approval" },
  { id: "question", label: "Waiting for an answer" },
  { id: "limit", label: "Waiting at a limit" },
  { id: "client_tool", label: "Waiting for a client tool" },
  { id: "timer", label: "Waiting for a time" },
  { id: "event", label: "Waiting for an event" },
];

const times = [
  { id: "", label: "Any time" },
  { id: "1h", label: "Last hour" },
  { id: "1d", label: "Last day" },
  { id: "7d", label: "Last 7 days" },
  { id: "30d", label: "Last 30 days" },
];

/** Properties of ThreadFilters. */
export interface ThreadFiltersProps {
  filters: Filters;
  onChange: (changes: Partial<Filters>) => void;
}

/** The fields that filter the list of threads. */
export function ThreadFilters({ filters, onChange }: ThreadFiltersProps) {
  const client = useClient();
  const { data: agents = [] } = useQuery({ queryKey: ["agents"], queryFn: ({ signal }) => client.agents({ signal }) });
  const names = [...new Set([...agents.map(({ name }) => name), ...(filters.agent === "" ? [] : [filters.agent])])].sort();
  return (
    <div className={styles.filters} role="search" aria-label="Threads">
      <div className={styles.search}>
        <TypedField label="Search titles and metadata" placeholder="Search" value={filters.q} onChange={(q) => onChange({ q })} />
      </div>
      <Choice label="Status" isLabelHidden options={statuses} value={filters.status} onChange={(status) => onChange({ status, ...(status !== "waiting" && { waitingFor: "" }) })} />
      {(filters.status === "waiting" || filters.waitingFor !== "") && <Choice label="Waiting for" isLabelHidden options={waits} value={filters.waitingFor} onChange={(waitingFor) => onChange({ waitingFor })} />}
      <Choice label="Agent" isLabelHidden options={[{ id: "", label: "Any agent" }, ...names.map((id) => ({ id, label: id }))]} value={filters.agent} onChange={(agent) => onChange({ agent })} />
      <div className={styles.owner}>
        <TypedField label="Owner" placeholder="Owner" value={filters.owner} onChange={(owner) => onChange({ owner })} />
      </div>
      <div className={styles.cost}>
        <TypedField label="Cost at least" placeholder="Min. cost" value={filters.minCost} onChange={(minCost) => onChange({ minCost })} />
      </div>
      <Choice label="Last activity" isLabelHidden options={times} value={filters.within} onChange={(within) => onChange({ within })} />
      {isFiltered(filters) && <Button kind="quiet" onPress={() => onChange(noFilters)}>Clear</Button>}
    </div>
  );
}

const pause = 250;

// A text field that changes the filter when its user has paused.
function TypedField({ label, placeholder, value, onChange }: { label: string; placeholder: string; value: string; onChange: (value: string) => void }) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed.trim() === value) return;
    const timer = window.setTimeout(() => onChange(typed.trim()), pause);
    return () => window.clearTimeout(timer);
  }, [typed, value, onChange]);
  return <Field label={label} isLabelHidden placeholder={placeholder} value={typed} onChange={setTyped} />;
}
