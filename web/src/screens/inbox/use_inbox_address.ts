import { useMemo } from "react";
import { useLocation, useSearch } from "wouter";
import { paths } from "../../paths";
import { approvalPath, type Filter, filterOf, queryOf } from "./inbox_filter";

/** What the address of the inbox selects, and how to change it. */
export interface InboxAddress {
  filter: Filter;
  /** Shows another list. */
  show: (filter: Filter) => void;
  /** Shows an approval in the list. `isStep`: the back button skips the one that was shown before. */
  open: (approval: { threadId: string; id: string }, isStep?: boolean) => void;
}

/** Reads the address of the inbox. */
export function useInboxAddress(): InboxAddress {
  const search = useSearch();
  const [, navigate] = useLocation();
  const filter = useMemo(() => filterOf(new URLSearchParams(search)), [search]);
  return {
    filter,
    show: (next) => navigate(paths.inbox + queryOf(next)),
    open: (approval, isStep = false) => navigate(approvalPath(approval, filter), { replace: isStep }),
  };
}
