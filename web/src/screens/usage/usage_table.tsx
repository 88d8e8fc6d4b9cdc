import type { UsageItem } from "@perdure/client";
import { Link } from "wouter";
import { safeText } from "../../components/safe_text";
import { type Column, Table } from "../../components/table";
import { durationText } from "../../components/time";
import { paths } from "../../paths";
import { amountText, countText } from "./numbers";
import { costOf, type Group, meanDuration } from "./queries";

const titles: Record<Group, string> = { agent: "Agent", model: "Model", tenant: "Tenant", day: "Day" };

/** The usage of each agent, model, tenant or day; the most expensive first, days in reverse order. */
export function UsageTable({ items, group }: { items: readonly UsageItem[]; group: Group }) {
  const rows = [...items].sort((a, b) => (group === "day" ? b.day!.localeCompare(a.day!) : costOf(b) - costOf(a) || tokensOf(b) - tokensOf(a) || b.runs - a.runs));
  const columns: Column<UsageItem>[] = [
    { title: titles[group], cell: (item) => <GroupName item={item} group={group} /> },
    { title: "Runs", align: "end", cell: ({ runs }) => countText(runs) },
    { title: "Failed", align: "end", cell: ({ runs, failed }) => (failed === 0 ? "–" : `${countText(failed)} (${((failed / runs) * 100).toFixed(0)} %)`) },
    { title: "Waited", align: "end", cell: ({ interrupted }) => (interrupted === 0 ? "–" : countText(interrupted)) },
    { title: "Input tokens", align: "end", cell: ({ inputTokens }) => countText(inputTokens) },
    { title: "Output tokens", align: "end", cell: ({ outputTokens }) => countText(outputTokens) },
    { title: "Mean duration", align: "end", cell: (item) => (item.runs === 0 ? "–" : durationText(meanDuration([item]) ?? 0)) },
    { title: "Cost", align: "end", cell: (item) => (costOf(item) === 0 ? "–" : amountText(costOf(item))) },
  ];
  return <Table label={`Usage by ${group}`} columns={columns} rows={rows} keyOf={(item) => item[group] ?? ""} />;
}

const tokensOf = ({ inputTokens, outputTokens }: UsageItem) => inputTokens + outputTokens;

function GroupName({ item, group }: { item: UsageItem; group: Group }) {
  const name = item[group] ?? "";
  if (group === "agent" && name !== "") return <Link href={paths.agent(name)}>{name}</Link>;
  return name === "" ? <span className="muted">none</span> : <code>{safeText(name)}</code>;
}
