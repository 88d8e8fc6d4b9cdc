import type { Approval } from "@perdure/client";
import { useInbox } from "@perdure/client/react";
import { useEffect, useMemo, useState } from "react";
import { flushSync } from "react-dom";
import { Link } from "wouter";
import { announce } from "../../components/announcer";
import { Button } from "../../components/button";
import { BellIcon } from "../../components/icons";
import { Loading, Page } from "../../components/page";
import { Problem } from "../../components/problem";
import { type Shortcut, useShortcuts } from "../../components/shortcuts";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { ApprovalDetail, detailHeading } from "./approval_detail";
import { ApprovalList } from "./approval_list";
import { type BulkDecision, BulkDialog, SelectionBar } from "./bulk";
import { Filters } from "./filters";
import { type Filter, queryOf, select } from "./inbox_filter";
import { NoApprovals, NoneChosen } from "./inbox_empty";
import { toggleNotifications, useNotificationState } from "./notifications";
import { useApproval, useApprovals, withCurrent } from "./use_approvals";
import { useCaller } from "./use_caller";
import { useInboxAddress } from "./use_inbox_address";
import { useMine } from "./use_mine";
import { focusedApproval, useSteps } from "./use_steps";
import { useThreadTitles } from "./use_thread_titles";
import { Views } from "./views";
import styles from "./inbox.module.css";

// An approval that is open has these keys. Without one, they are only in the list of keys.
const decisionKeys: readonly Shortcut[] = [
  { keys: "a", label: "Approve the open approval", run: () => undefined },
  { keys: "e", label: "Edit its arguments, then approve", run: () => undefined },
  { keys: "r", label: "Reject it with a reason", run: () => undefined },
];

const none: ReadonlySet<string> = new Set();

/** The open approvals, questions and limits of all threads: a list, and the one that the address selects. */
export default function Inbox({ thread = "", approval: current = "" }: { thread?: string; approval?: string }) {
  const { filter, show, open: openApproval } = useInboxAddress();
  const all = useInbox(useClient()).approvals;
  const mineIfKnown = useMine(all);
  const mine = mineIfKnown ?? none;
  const caller = useCaller();
  const now = useNow();
  const list = useApprovals(filter, mine, now);
  const shown = useApproval(thread, current);
  const approvals = useMemo(() => withCurrent(list.approvals, shown.approval, filter), [list.approvals, shown.approval, filter]);
  const areDecided = filter.view === "decided";
  const titles = useThreadTitles(approvals, !areDecided);
  const openIDs = useIDs(all);
  const selection = useSelection(approvals, openIDs);
  const [bulk, setBulk] = useState<{ decision: BulkDecision; approvals: Approval[] }>();
  const decideAll = (decision: BulkDecision) => selection.approvals.length > 0 && setBulk({ decision, approvals: selection.approvals });
  const step = useSteps(approvals, current, openApproval);
  // The heading takes the focus at once: with the next key, what that key opens has it.
  const openDetail = (approval: Approval) => {
    flushSync(() => openApproval(approval));
    document.getElementById(detailHeading)?.focus({ preventScroll: true });
  };
  useShortcuts("Inbox", [
    { keys: "j", label: "Next approval", run: () => step(1) },
    { keys: "k", label: "Previous approval", run: () => step(-1) },
    { keys: "Enter", label: "Open the approval", run: () => undefined }, // the key of a link
    ...(areDecided ? [] : [
      { keys: "x", label: "Select the approval", run: () => selection.toggle(current || focusedApproval() || "") },
      { keys: "A", label: "Approve the selected ones", run: () => decideAll("approve") },
      { keys: "R", label: "Reject the selected ones", run: () => decideAll("reject") },
    ]),
    ...(areDecided || current !== "" ? [] : decisionKeys),
    { keys: "n", label: "Turn notifications on or off", run: () => void changeNotifications() },
  ]);
  const countOf = (view: Filter) =>
    view.view === "decided" || (view.assignee !== undefined && view.assignee !== "me") ? undefined : select(all, view, mine, now).length;
  const back = paths.inbox + queryOf(filter);
  return (
    <Page title="Inbox" layout="fixed" actions={<NotificationButton />}>
      <div className={styles.inbox} data-detail={current !== "" || undefined}>
        <div className={styles.views}><Views filter={filter} countOf={countOf} /></div>
        <div className={styles.side}>
          <Filters filter={filter} known={useMemo(() => [...all, ...list.approvals], [all, list.approvals])} onChange={show} />
          {list.error !== undefined && <div className={styles.problem}><Problem error={list.error} onRetry={list.onRetry} /></div>}
          {list.isLoading && <Loading />}
          {!list.isLoading && list.error === undefined && approvals.length === 0 && <NoApprovals filter={filter} open={all.length} />}
          <ApprovalList
            approvals={approvals} filter={filter} current={current} mine={mine} caller={caller} titles={titles} open={openIDs} selected={selection.ids}
            onSelect={selection.toggle} onOpen={openDetail} onMore={list.onMore}
          />
          {selection.approvals.length > 0 && <SelectionBar count={selection.approvals.length} onDecide={decideAll} onClear={selection.clear} />}
        </div>
        <div className={styles.detail}>
          {current !== "" && <Link href={back} className={styles.back}>← Inbox</Link>}
          {current === "" ? <NoneChosen areDecided={areDecided} hasApprovals={approvals.length > 0} /> : <ApprovalDetail key={current} shown={shown} isMine={mineIfKnown?.has(current)} hasShortcuts={bulk === undefined} />}
        </div>
      </div>
      {bulk && (
        <BulkDialog
          {...bulk}
          titles={titles}
          onClose={(done) => {
            selection.remove(done);
            setBulk(undefined);
          }}
        />
      )}
    </Page>
  );
}

const useIDs = (approvals: readonly Approval[]): ReadonlySet<string> => useMemo(() => new Set(approvals.map(({ id }) => id)), [approvals]);

// The time, every half a minute: what expires soon changes with it.
function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = window.setInterval(() => setNow(Date.now()), 30_000);
    return () => window.clearInterval(timer);
  }, []);
  return now;
}

// The selected approvals of the list. An approval that is decided meanwhile loses its selection.
function useSelection(approvals: readonly Approval[], open: ReadonlySet<string>) {
  const [ids, setIDs] = useState<ReadonlySet<string>>(new Set());
  return {
    ids,
    approvals: useMemo(() => approvals.filter(({ id }) => ids.has(id) && open.has(id)), [approvals, ids, open]),
    toggle: (id: string) => open.has(id) && setIDs(ids.has(id) ? new Set([...ids].filter((other) => other !== id)) : new Set([...ids, id])),
    remove: (done: readonly string[]) => setIDs(new Set([...ids].filter((id) => !done.includes(id)))),
    clear: () => setIDs(new Set()),
  };
}

async function changeNotifications(): Promise<void> {
  announce(notificationTexts[await toggleNotifications()]);
}

const notificationTexts = {
  on: "Notifications are on",
  off: "Notifications are off",
  blocked: "The settings of the browser block notifications",
  missing: "This browser has no notifications here",
};

function NotificationButton() {
  const state = useNotificationState();
  if (state === "missing") return null;
  return (
    <Button kind="quiet" aria-pressed={state === "on"} isDisabled={state === "blocked"} onPress={() => void changeNotifications()}>
      <BellIcon /> {state === "blocked" ? "Notifications are blocked" : state === "on" ? "Notifications on" : "Notify me"}
    </Button>
  );
}
