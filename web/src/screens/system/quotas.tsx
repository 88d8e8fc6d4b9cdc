import type { PerdureClient } from "@perdure/client";
import { useQuery } from "@tanstack/react-query";
import { Problem } from "../../components/problem";
import { bytesText } from "../../components/size";
import { type Column, Table } from "../../components/table";
import { useClient } from "../../session";
import styles from "./system.module.css";

type Quota = Awaited<ReturnType<PerdureClient["quotas"]>>["quotas"][number];

const text = (quota: string, value: number) => (/bytes$/i.test(quota) ? bytesText(value) : value.toLocaleString());

const columns: Column<Quota>[] = [
  { title: "Quota", cell: ({ quota }) => quota },
  { title: "Used", align: "end", cell: ({ quota, used }) => text(quota, used) },
  { title: "Limit", align: "end", cell: ({ quota, limit }) => (limit === undefined ? "none" : text(quota, limit)) },
  {
    title: "Part",
    cell: ({ quota, used, limit }) => (limit === undefined ? "" : <meter className={styles.meter} aria-label={`${quota}: used part`} min={0} max={limit} high={limit * 0.8} value={used} />),
  },
];

/** What the caller's tenant has of its quotas, and its rates. */
export function Quotas() {
  const client = useClient();
  const found = useQuery({ queryKey: ["quotas"], queryFn: () => client.quotas(), refetchInterval: 5_000 });
  return (
    <section className={styles.stack} aria-labelledby="quotas">
      <h2 id="quotas">Quotas{found.data && ` of the tenant ${found.data.tenant}`}</h2>
      {found.error && <Problem error={found.error} />}
      {found.data && <Table label="Quotas" columns={columns} rows={found.data.quotas} keyOf={({ quota }) => quota} />}
      {found.data && found.data.rates.some(({ perSecond }) => perSecond !== undefined) && (
        <p className="muted">Rates: {found.data.rates.filter(({ perSecond }) => perSecond !== undefined).map(({ rate, perSecond }) => `${rate} ${perSecond}`).join(", ")}</p>
      )}
    </section>
  );
}
