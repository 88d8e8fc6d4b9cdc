import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { requestJSON } from "../../session";

/** What usage is grouped by. */
export type Group = "agent" | "model" | "tenant" | "day";

/** The usage of a group of runs. */
export interface UsageItem {
  agent?: string;
  model?: string;
  tenant?: string;
  /** The day in UTC, as YYYY-MM-DD. */
  day?: string;
  runs: number;
  failed: number;
  inputTokens: number;
  outputTokens: number;
  cost?: number | string | { amount: number | string; currency?: string };
  currency?: string;
  /** The durations of the runs, in milliseconds. */
  durationMs?: { p50?: number; p95?: number };
}

/** Which usage to read. Days are YYYY-MM-DD in UTC; both are included. */
export interface UsageQuery {
  from: string;
  to: string;
  groupBy: readonly Group[];
  agent?: string;
}

/** Whether the API has GET /v1/usage. */
export const isUsageRecorded: boolean = false;

/** The usage of runs. */
export function useUsage({ from, to, groupBy, agent }: UsageQuery) {
  const query = new URLSearchParams({ from, to, groupBy: groupBy.join(","), ...(agent !== undefined && { agent }) });
  return useQuery({
    queryKey: ["usage", query.toString()],
    queryFn: async () => (await requestJSON<{ items: UsageItem[] }>(`/v1/usage?${query}`)).items,
    enabled: isUsageRecorded,
    refetchInterval: 30_000,
    placeholderData: keepPreviousData,
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

/** The cost of usage as a number. */
export function costOf({ cost }: UsageItem): number {
  return Number(typeof cost === "object" ? cost.amount : (cost ?? 0));
}
