import type { Approval } from "@perdure/client";
import { paths } from "../../paths";

/** What the inbox shows. It is the query of the screen's address. */
export interface Filter {
  /** `expiring`: open approvals that expire soon. `decided`: the approvals of the last 30 days. Absent: all open ones. */
  view?: "expiring" | "decided";
  agent?: string;
  tool?: string;
  /** `me`, a subject or `role:name`, only for open approvals. */
  assignee?: string;
}

/** A filter with a name. */
export interface View {
  name: string;
  filter: Filter;
}

/** The views that everyone has. */
export const defaultViews: readonly View[] = [
  { name: "All", filter: {} },
  { name: "Mine", filter: { assignee: "me" } },
  { name: "Expiring soon", filter: { view: "expiring" } },
  { name: "Decided", filter: { view: "decided" } },
];

const members = ["view", "agent", "tool", "assignee"] as const;

/** Returns the filter of a query. */
export function filterOf(query: URLSearchParams): Filter {
  const filter: Record<string, string> = {};
  for (const name of members) {
    const value = query.get(name);
    if (value !== null && value !== "") filter[name] = value;
  }
  if (filter.view !== "expiring" && filter.view !== "decided") delete filter.view;
  if (filter.view === "decided") delete filter.assignee; // the API filters only open approvals by it
  return filter;
}

/** Returns the query of a filter, with its question mark, or "". Equal filters have equal queries. */
export function queryOf(filter: Filter): string {
  const query = new URLSearchParams();
  for (const name of members) if (filter[name] !== undefined) query.set(name, filter[name]);
  return query.size === 0 ? "" : `?${query}`;
}

/** Returns the address of an approval in the list of a filter. */
export const approvalPath = ({ threadId, id }: Pick<Approval, "threadId" | "id">, filter: Filter): string => paths.approval(threadId, id) + queryOf(filter);

const soon = 3_600_000;

/**
 * Returns the approvals that a filter selects from the open ones, in the order of the list. mine are the IDs of those that the
 * caller may decide; the server selects by other assignees.
 */
export function select(open: readonly Approval[], { view, agent, tool, assignee }: Filter, mine: ReadonlySet<string>, now: number): readonly Approval[] {
  const selected = open.filter(
    (approval) =>
      (agent === undefined || approval.agent === agent) &&
      (tool === undefined || approval.toolName === tool) &&
      (assignee !== "me" || mine.has(approval.id)) &&
      (view !== "expiring" || (approval.expiresAt !== undefined && Date.parse(approval.expiresAt) - now < soon)),
  );
  return selected.sort(orderOf(view));
}

/** Returns the order of a view: what expires first, what was decided last, or what waits for longest. */
export function orderOf(view: Filter["view"]): (a: Approval, b: Approval) => number {
  const time = (text: string | undefined) => (text === undefined ? Infinity : Date.parse(text));
  if (view === "expiring") return (a, b) => time(a.expiresAt) - time(b.expiresAt);
  if (view === "decided") return (a, b) => time(b.decisions.at(-1)?.at) - time(a.decisions.at(-1)?.at);
  return (a, b) => time(a.requestedAt) - time(b.requestedAt);
}

const storageKey = "perdure.inbox.views";

/** Returns the views that this browser has saved. */
export function savedViews(): View[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(storageKey) ?? "[]");
    if (!Array.isArray(stored)) return [];
    return stored
      .filter((view): view is { name: string; query: string } => typeof view?.name === "string" && typeof view?.query === "string")
      .map(({ name, query }) => ({ name, filter: filterOf(new URLSearchParams(query)) }));
  } catch {
    return []; // another program has written it
  }
}

/** Saves the views of this browser. */
export function saveViews(views: readonly View[]): void {
  localStorage.setItem(storageKey, JSON.stringify(views.map(({ name, filter }) => ({ name, query: queryOf(filter) }))));
}
