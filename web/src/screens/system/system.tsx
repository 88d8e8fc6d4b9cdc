import { ProblemError, type System as SystemState } from "@perdure/client";
import { useQuery } from "@tanstack/react-query";
import { Loading, Page } from "../../components/page";
import { Problem } from "../../components/problem";
import { bytesText } from "../../components/size";
import { Status } from "../../components/status";
import { type Column, Table } from "../../components/table";
import { Time } from "../../components/time";
import { useClient } from "../../session";
import { ModelCalls } from "./model_calls";
import { Quotas } from "./quotas";
import styles from "./system.module.css";

type Worker = SystemState["workers"][number];
type Queue = SystemState["queues"][number];
type Stream = SystemState["log"]["streams"][number];

const workerColumns: Column<Worker>[] = [
  { title: "Worker", cell: ({ name }) => <span className="mono">{name}</span> },
  { title: "Version", cell: ({ version, deployment, buildId }) => (deployment ? `${deployment} ${buildId ?? ""}` : version) },
  { title: "Task queues", cell: ({ queues }) => queues.join(", ") },
  { title: "Tools", cell: ({ tools }) => <Names names={tools} /> },
  { title: "Seen", cell: ({ seenAt }) => <Time at={seenAt} /> },
];

const queueColumns: Column<Queue>[] = [
  { title: "Task queue", cell: ({ name }) => <span className="mono">{name}</span> },
  { title: "Tasks", cell: ({ tasks }) => tasks },
  { title: "State", cell: ({ pollers }) => <Status value={pollers > 0 ? "ready" : "failed"} text={pollers > 0 ? "has workers" : "no worker"} /> },
  { title: "Pollers", align: "end", cell: ({ pollers }) => pollers },
  { title: "Backlog", align: "end", cell: ({ backlog, backlogSeconds }) => (backlog > 0 ? `${backlog}, oldest ${Math.round(backlogSeconds)} s` : 0) },
];

const streamColumns: Column<Stream>[] = [
  { title: "Stream", cell: ({ name }) => <span className="mono">{name}</span> },
  { title: "Messages", align: "end", cell: ({ messages }) => messages.toLocaleString() },
  { title: "Size", align: "end", cell: ({ bytes, maxBytes }) => bytesText(bytes) + (maxBytes ? ` of ${bytesText(maxBytes)}` : "") },
  {
    title: "Copies",
    cell: ({ replicas = [] }) => (replicas.length === 0 ? "1" : replicas.map(({ server, leader, current }) => `${server}${leader ? " (leader)" : ""}${current ? "" : " (behind)"}`).join(", ")),
  },
];

function Names({ names }: { names: readonly string[] }) {
  const most = 8;
  return (
    <details className={styles.names}>
      <summary>
        {names.slice(0, most).join(", ") || "none"}
        {names.length > most && ` and ${names.length - most} more`}
      </summary>
      {names.join(", ")}
    </details>
  );
}

/** The state of the deployment: checks, workers, models that are not called, task queues, the log, and what is used of the limits. */
export default function System() {
  const client = useClient();
  const state = useQuery({ queryKey: ["system"], queryFn: () => client.system(), refetchInterval: 5_000 });
  const system = state.data;
  return (
    <Page title="System" beside={system && <Status value={system.ready ? "ready" : "failed"} text={system.ready ? "ready" : "not ready"} />}>
      <div className={styles.stack}>
        {state.isPending && <Loading />}
        {isForbidden(state.error) && <p className="muted">Workers, task queues and the log are those of the whole platform: its administrators see them here.</p>}
        {state.error && !isForbidden(state.error) && <Problem error={state.error} onRetry={() => void state.refetch()} />}
        {system && <Facts system={system} />}
        {system && (
          <>
            <section className={styles.stack} aria-labelledby="workers">
              <h2 id="workers">Workers</h2>
              {system.workers.length === 0 ? (
                <p className="muted">No worker announces itself. Runs wait until one starts: <code>bin/worker</code>, or <code>perdure dev</code> without <code>--no-worker</code>.</p>
              ) : (
                <Table label="Workers" columns={workerColumns} rows={system.workers} keyOf={({ name }) => name} />
              )}
            </section>
            <ModelCalls models={system.models} providers={system.providers} />
            <section className={styles.stack} aria-labelledby="queues">
              <h2 id="queues">Task queues</h2>
              <Table label="Task queues" columns={queueColumns} rows={system.queues} keyOf={({ name, tasks }) => `${name} ${tasks}`} />
            </section>
            <section className={styles.stack} aria-labelledby="log">
              <h2 id="log">Log</h2>
              <Table label="Streams of the log" columns={streamColumns} rows={system.log.streams} keyOf={({ name }) => name} />
            </section>
          </>
        )}
        <Quotas />
      </div>
    </Page>
  );
}

const isForbidden = (error: unknown) => error instanceof ProblemError && error.status === 403;

function Facts({ system }: { system: SystemState }) {
  const { checks, version, mode, startedAt, temporal, log, node } = system;
  return (
    <div className={styles.cards}>
      {checks.map(({ name, ready, detail }) => (
        <div key={name} className={styles.card}>
          <h2>{name}</h2>
          <Status value={ready ? "ready" : "failed"} />
          {detail !== undefined && <p>{detail}</p>}
          {name === "log" && <p className="muted">NATS {log.serverVersion}, {bytesText(log.bytes)}{log.maxBytes ? ` of ${bytesText(log.maxBytes)}` : ""}</p>}
          {name === "temporal" && <p className="muted">{temporal.version && `Temporal ${temporal.version}, `}{temporal.address}, namespace {temporal.namespace}</p>}
        </div>
      ))}
      <div className={styles.card}>
        <h2>{mode}</h2>
        <p className="number">{version}, started <Time at={startedAt} /></p>
        <p className="muted number">
          {node.streams} of {node.maxStreams.toLocaleString()} streams, {node.sockets} of {node.maxSockets.toLocaleString()} WebSockets
        </p>
      </div>
    </div>
  );
}
