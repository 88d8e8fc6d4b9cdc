import type { System } from "@perdure/client";
import { Status } from "../../components/status";
import { type Column, Table } from "../../components/table";
import { Time } from "../../components/time";
import styles from "./system.module.css";

type Provider = System["providers"][number];

/** Why workers do not call a model: an open circuit, or a pause that the provider asked for. */
interface Reason {
  key: string;
  model: string;
  state: "open" | "half-open" | "paused";
  at: string;
  workers: string;
}

const texts = { open: "circuit open", "half-open": "circuit half-open", paused: "paused" };

const modelColumns: Column<Reason>[] = [
  { title: "Model", cell: ({ model }) => <span className="mono">{model}</span> },
  { title: "State", cell: ({ state }) => <Status value={state === "open" ? "failed" : state === "paused" ? "paused" : "retrying"} text={texts[state]} /> },
  { title: "Time", cell: ({ state, at }) => (state === "paused" ? <>ends <Time at={at} /></> : <>opened <Time at={at} /></>) },
  { title: "Workers", cell: ({ workers }) => <span className="mono">{workers}</span> },
];

const providerColumns: Column<Provider>[] = [
  { title: "Provider", cell: ({ provider }) => <span className="mono">{provider}</span> },
  { title: "Active calls", align: "end", cell: ({ calls }) => calls },
  { title: "Waiting calls", align: "end", cell: ({ waiting }) => waiting },
];

const reasonsOf = ({ model, circuits, pausedUntil }: System["models"][number]): Reason[] => [
  ...(pausedUntil === undefined ? [] : [{ key: model, model, state: "paused" as const, at: pausedUntil, workers: "all" }]),
  ...circuits.map(({ worker, state, since }) => ({ key: `${model} ${worker}`, model, state, at: since, workers: worker })),
];

/** The models that workers do not call now, and the calls of providers with a limit. Nothing if all calls are made at once. */
export function ModelCalls({ models, providers }: Pick<System, "models" | "providers">) {
  if (models.length === 0 && providers.length === 0) return null;
  return (
    <section className={styles.stack} aria-labelledby="models">
      <h2 id="models">Models</h2>
      {models.length > 0 && (
        <>
          <p className="muted">
            Workers do not call these models now: their calls have failed, or the provider asked for a pause. Runs wait, or continue with the next model of their
            agent.
          </p>
          <Table label="Models that are not called" columns={modelColumns} rows={models.flatMap(reasonsOf)} keyOf={({ key }) => key} />
        </>
      )}
      {providers.length > 0 && <Table label="Providers with a limit" columns={providerColumns} rows={providers} keyOf={({ provider }) => provider} />}
    </section>
  );
}
