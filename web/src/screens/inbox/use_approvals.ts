import { type Approval, ProblemError } from "@perdure/client";
import { useInbox } from "@perdure/client/react";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useClient } from "../../session";
import { type Filter, orderOf, select } from "./inbox_filter";
import { useReadable } from "./use_readable";

/** The approvals of a list. */
export interface ApprovalList {
  approvals: readonly Approval[];
  isLoading: boolean;
  error?: unknown;
  onRetry: () => void;
  /** Loads older ones, if there are some. */
  onMore?: (() => void) | undefined;
}

/** Follows the approvals that a filter selects. mine are the IDs of those that the caller may decide. */
export function useApprovals(filter: Filter, mine: ReadonlySet<string>, now: number): ApprovalList {
  const open = useOpenApprovals(filter, mine, now);
  const decided = useDecidedApprovals(filter);
  return filter.view === "decided" ? decided : open;
}

function useOpenApprovals(filter: Filter, mine: ReadonlySet<string>, now: number): ApprovalList {
  const { assignee } = filter;
  const { approvals, status, error, store } = useInbox(useClient(), assignee === undefined || assignee === "me" ? {} : { assignee });
  return {
    approvals: useMemo(() => select(approvals, filter, mine, now), [approvals, filter, mine, now]),
    isLoading: status === "loading" && approvals.length === 0,
    error: error && new ProblemError({ status: 0, code: error.code, detail: error.message }),
    onRetry: () => store.reload(),
  };
}

function useDecidedApprovals({ view, agent, tool }: Filter): ApprovalList {
  const client = useClient();
  const pages = useInfiniteQuery({
    queryKey: ["approvals", "decided", agent, tool],
    queryFn: ({ pageParam, signal }) =>
      client.approvals({ status: "decided", limit: 50, ...(agent && { agent }), ...(tool && { tool }), ...(pageParam && { cursor: pageParam }) }, { signal }),
    initialPageParam: "",
    getNextPageParam: ({ nextCursor }) => nextCursor,
    enabled: view === "decided",
    refetchInterval: 5_000,
  });
  return {
    approvals: useMemo(() => pages.data?.pages.flatMap(({ items }) => items) ?? [], [pages.data]),
    isLoading: pages.isLoading,
    error: pages.data ? undefined : (pages.error ?? undefined),
    onRetry: () => void pages.refetch(),
    onMore: pages.hasNextPage ? () => void pages.fetchNextPage() : undefined,
  };
}

/** One approval. */
export interface ShownApproval {
  approval?: Approval | undefined;
  /** Whether it waits for a decision. */
  isOpen: boolean;
  isLoading: boolean;
  /** Whether the caller may read its thread, if that is known. */
  isReadable: boolean | undefined;
  error?: unknown;
}

/** Follows one approval, open or decided. */
export function useApproval(thread: string, id: string): ShownApproval {
  const client = useClient();
  const { approvals } = useInbox(client);
  const open = approvals.find((approval) => approval.id === id);
  // The audit has a decision a moment after the inbox has removed the approval.
  const [lastOpen, setLastOpen] = useState<Approval>();
  if (open !== undefined && open !== lastOpen) setLastOpen(open);
  const wasOpen = lastOpen?.id === id;
  const isReadable = useReadable(thread);
  const audit = useQuery<Approval>({
    // A vote or an escalation has an event in the audit.
    queryKey: ["approval", thread, id, open && `${open.escalations} ${open.decisions.map(({ digest }) => digest)}`],
    queryFn: ({ signal }) => findApproval(client, isReadable === true, thread, id, signal),
    placeholderData: (previous) => (previous?.id === id ? previous : undefined),
    refetchInterval: ({ state: { data } }) => (open !== undefined ? 15_000 : data?.status === "open" || (wasOpen && data === undefined) ? 500 : false),
    enabled: id !== "" && isReadable !== undefined && (isReadable || open === undefined),
  });
  const known = audit.data;
  const current = open ?? known ?? (wasOpen ? lastOpen : undefined);
  const isOpen = open !== undefined || (known?.status === "open" && !wasOpen);
  const isDecided = current?.status === "decided" || current?.status === "expired";
  const approval = useMemo(
    () =>
      current && {
        ...current,
        ...(known?.events && { events: known.events }),
        // The decisions of an approval that was open a moment ago are votes.
        ...(!isOpen && !isDecided && { decisions: [] }),
      },
    [current, known, isOpen, isDecided],
  );
  return {
    approval,
    isOpen,
    isLoading: audit.isPending && approval === undefined,
    isReadable,
    error: approval === undefined ? (audit.error ?? undefined) : undefined,
  };
}

type Client = ReturnType<typeof useClient>;

// Approvers that may not read the thread find the approval in the list of decided ones.
async function findApproval(client: Client, isReadable: boolean, thread: string, id: string, signal: AbortSignal): Promise<Approval> {
  const source = isReadable ? client.audit(thread, {}, { signal }) : client.approvals({ status: "decided", thread }, { signal });
  for await (const approval of source) if (approval.id === id) return approval;
  const detail = isReadable ? "The thread has no such approval." : "You may not read the thread, and are no approver of it.";
  throw new ProblemError({ status: 404, code: "unknown_approval", detail });
}

/** Returns the list with the current approval in its place, so that it stays where it is when it is decided. */
export function withCurrent(approvals: readonly Approval[], current: Approval | undefined, { view }: Filter): readonly Approval[] {
  if (current === undefined || view === "decided" || approvals.some(({ id }) => id === current.id)) return approvals;
  return [...approvals, current].sort(orderOf(view));
}
