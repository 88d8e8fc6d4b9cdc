import type { UsageItem } from "@perdure/client";
import { useQuery } from "@tanstack/react-query";
import { useClient } from "../../session";

/** What usage is grouped by. */
export type Group = "agent" | "model" | "tenant" | "day";

/** Which usage to read. Days are YYYY-MM-DD in UTC; both are included. */
export interface UsageQuery {
  from: string;
  to: string;
  groupBy: readonly Group[];
  agent?: string;
}

/** The usage of runs, and whether the caller may read that of all tenants. */
export function useUsage({ groupBy, ...query }: UsageQuery) {
  const client = useClient();
  return useQuery({
    queryKey: ["usage", query, groupBy],
    queryFn: () => client.usageReport({ ...query, groupBy: groupBy.join(",") }),
    refetchInterval: 30_000,
    placeholderData: (last, query) => (String(query?.queryKey[2]) === String(groupBy) ? last : undefined), // of the same groups
  });
}

const day = 86_400_000;

/** The last days until today, in UTC. */
export function lastDays(count: number): { from: string; to: string } {
  return { from: dayText(Date.now() - (count - 1) * day), to: dayText(Date.now()) };
}

const dayText = (at: number) => new Date(at).toISOString().slice(0, 10);

/** The days of a period, at most 400. */
export function daysOf({ from, to }: { from: string; to: string }): string[] {
  const days: string[] = [];
  for (let at = Date.parse(from); at <= Date.parse(to) && days.length < 400; at += day) days.push(dayText(at));
  return days;
}

/** The cost of usage as a number; 0 = it is unknown. */
export const costOf = ({ cost }: UsageItem) => cost?.amount ?? 0;

/** How many runs succeeded: they neither failed nor were cancelled. */
export const succeeded = ({ runs, failed, cancelled }: UsageItem) => runs - failed - cancelled;

/** The part of the runs that succeeded, without the cancelled ones; null = no run succeeded or failed. */
export const successRate = (items: readonly UsageItem[]) => {
  const good = items.reduce((sum, item) => sum + succeeded(item), 0);
  const failed = items.reduce((sum, item) => sum + item.failed, 0);
  return good + failed === 0 ? null : good / (good + failed);
};

/** The mean duration of runs in milliseconds; null = there are none. */
export const meanDuration = (items: readonly UsageItem[]) => {
  const runs = items.reduce((sum, item) => sum + item.runs, 0);
  return runs === 0 ? null : (items.reduce((sum, { seconds }) => sum + seconds, 0) / runs) * 1000;
};
