import { useMemo } from "react";
import { useSearch } from "wouter";
import { changeSearchParams } from "../../components/search_param";

/** The filters of the list of threads, as texts of the address. The empty text does not filter. */
export interface Filters {
  q: string;
  agent: string;
  /** A status of threads, `retrying` or `stuck`. */
  status: string;
  waitingFor: string;
  owner: string;
  /** The least cost of the thread, such as 0.5. */
  minCost: string;
  /** The time since the last activity, such as 1h. */
  within: string;
}

const names = ["q", "agent", "status", "waitingFor", "owner", "minCost", "within"] as const;

/** The times since the last activity, in hours, by their names in the address. */
export const periods: Record<string, number> = { "1h": 1, "1d": 24, "7d": 168, "30d": 720 };

/** The filters in the address, and the function that changes some of them. */
export function useFilters(): [Filters, (changes: Partial<Filters>) => void] {
  const search = useSearch();
  const filters = useMemo(() => {
    const params = new URLSearchParams(search);
    return Object.fromEntries(names.map((name) => [name, params.get(name) ?? ""])) as unknown as Filters;
  }, [search]);
  return [filters, changeSearchParams as (changes: Partial<Filters>) => void];
}

/** Whether a filter is set. */
export const isFiltered = (filters: Filters) => names.some((name) => filters[name] !== "");

/** No filter. */
export const noFilters: Filters = { q: "", agent: "", status: "", waitingFor: "", owner: "", minCost: "", within: "" };

/** Returns the query of GET /v1/threads. Without a filter the parameter is absent. */
export function queryOf({ q, agent, status, waitingFor, owner, minCost, within }: Filters): object {
  const hours = periods[within];
  return {
    ...(q !== "" && { q }),
    ...(agent !== "" && { agent }),
    ...(status === "retrying" || status === "stuck" ? { [status]: true } : status !== "" && { status }),
    ...(waitingFor !== "" && { waitingFor }),
    ...(owner !== "" && { owner }),
    ...(minCost !== "" && { minCost }),
    // A minute is exact enough, and keeps the address of the request the same for its cache.
    ...(hours !== undefined && { updatedAfter: new Date(Math.floor(Date.now() / 60_000) * 60_000 - hours * 3_600_000).toISOString() }),
  };
}
