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
  { id: "tenant", label: "By tenant" },
  { id: "day", label: "By day" },
];

const periods = [
  { id: "7", label: "Last 7 days" },
  { id: "30", label: "Last 30 days" },
  { id: "90", label: "Last 90 days" },
  { id: "365", label: "Last 365 days" },
];

/** What runs have used: by agent, model, tenant or day. */
export default function Usage() {
  const [params, setParams] = useSearchParams();
  const group = groups.find(({ id }) => id === params.get("by"))?.id ?? "agent";
  const period = periods.find(({ id }) => id === params.get("days"))?.id ?? "30";
  const days = lastDays(Number(period));
  const byDay = useUsage({ ...days, groupBy: group === "tenant" ? ["tenant", "day"] : ["day"] }); // both of the same tenants
  const byGroup = useUsage({ ...days, groupBy: [group] });
  const change = (next: { by?: string; days?: string }) => setParams({ by: group, days: period, ...next }, { replace: true });
  const error = byDay.error ?? byGroup.error;
  return (
    <Page
      title="Usage"
      actions={
        <>
          <Choice label="Group" isLabelHidden options={groups} value={group} onChange={(by) => change({ by })} />
          <Choice label="Period" isLabelHidden options={periods} value={period} onChange={(next) => change({ days: next })} />
        </>
      }
    >
      {error !== null && <Problem error={error} onRetry={() => void Promise.all([byDay.refetch(), byGroup.refetch()])} />}
      {error === null && (byDay.data === undefined || byGroup.data === undefined) && <Loading />}
      {byDay.data?.length === 0 && (
        <Empty title="No runs in this period">
          <p>Usage is recorded when a run ends. Start one:</p>
          <pre><code>perdure run demo "What is 12*7?"</code></pre>
        </Empty>
      )}
      {byDay.data && byDay.data.length > 0 && (
        <div className={styles.content}>
          <UsageCharts items={byDay.data} {...days} />
          {byGroup.data && <UsageTable items={byGroup.data} group={group} />}
        </div>
      )}
    </Page>
  );
}
