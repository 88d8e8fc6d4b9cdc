import { useSearchParams } from "wouter";
import { Choice } from "../../components/choice";
import { Empty, Loading, Page } from "../../components/page";
import { Problem } from "../../components/problem";
import { type Group, lastDays, useUsage } from "./queries";
import { UsageCharts } from "./usage_charts";
import { UsageTable } from "./usage_table";
import styles from "./usage.module.css";

const groups: { id: Group; label: string }[] = [
  { id: "agent", label: "By agent" },
  { id: "model", label: "By model" },
  { id: "day", label: "By day" },
];

// Only callers that may read the usage of all tenants are offered it.
const byTenant: { id: Group; label: string } = { id: "tenant", label: "By tenant" };

const periods = [
  { id: "7", label: "Last 7 days" },
  { id: "30", label: "Last 30 days" },
  { id: "90", label: "Last 90 days" },
  { id: "365", label: "Last 365 days" },
];

/** What runs have used: by agent, model, day, or tenant. */
export default function Usage() {
  const [params, setParams] = useSearchParams();
  const wanted = params.get("by");
  const period = periods.find(({ id }) => id === params.get("days"))?.id ?? "30";
  const days = lastDays(Number(period));
  const own = useUsage({ ...days, groupBy: ["day"] });
  const offered = own.data?.allTenants ? [...groups, byTenant] : groups;
  const group = offered.find(({ id }) => id === wanted)?.id ?? "agent";
  const isOfAll = group === "tenant";
  const byDay = useUsage({ ...days, groupBy: isOfAll ? ["tenant", "day"] : ["day"] }); // both of the same tenants
  const byGroup = useUsage({ ...days, groupBy: [group] });
  const change = (next: { by?: string; days?: string }) => setParams({ by: group, days: period, ...next }, { replace: true });
  const error = byDay.error ?? byGroup.error;
  return (
    <Page
      title="Usage"
      actions={
        <>
          <Choice label="Group" isLabelHidden options={offered} value={group} onChange={(by) => change({ by })} />
          <Choice label="Period" isLabelHidden options={periods} value={period} onChange={(next) => change({ days: next })} />
        </>
      }
    >
      {error !== null && <Problem error={error} onRetry={() => void Promise.all([byDay.refetch(), byGroup.refetch()])} />}
      {error === null && (byDay.data === undefined || byGroup.data === undefined) && <Loading />}
      {byDay.data?.items.length === 0 && (
        <Empty title="No runs in this period">
          <p>Usage is recorded when a run ends. Start one:</p>
          <pre><code>perdure run demo "What is 12*7?"</code></pre>
        </Empty>
      )}
      {byDay.data && byDay.data.items.length > 0 && (
        <div className={styles.content}>
          <UsageCharts items={byDay.data.items} {...days} />
          {byGroup.data && <UsageTable items={byGroup.data.items} group={group} />}
        </div>
      )}
    </Page>
  );
}
