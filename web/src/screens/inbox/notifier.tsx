import type { Approval } from "@perdure/client";
import { useInbox } from "@perdure/client/react";
import { useCallback, useEffect, useRef } from "react";
import { useLocation } from "wouter";
import { announce } from "../../components/announcer";
import { showOpenCount } from "../../components/document_title";
import { useRetry } from "../../components/online";
import { safeText } from "../../components/safe_text";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { summaryOf, titleOf } from "./approval_title";
import { useNotificationState } from "./notifications";
import { useMine } from "./use_mine";

/**
 * Shows the number of open approvals in the title of the document, announces new ones to screen readers, and notifies of them
 * if its user wants that. The page has one, on all screens.
 */
export function InboxNotifier() {
  const { approvals, status, error, store } = useInbox(useClient());
  const state = useNotificationState();
  useEffect(() => showOpenCount(approvals.length), [approvals.length]);
  useRetry(error?.code === "connection_lost", useCallback(() => store.reload(), [store]));
  useAnnouncements(approvals, status === "ready");
  return state === "on" ? <Notifications approvals={approvals} /> : null;
}

const collectTime = 500;

// Approvals that arrive together are one announcement. The screen of a conversation announces what its thread waits for.
function useAnnouncements(approvals: readonly Approval[], isReady: boolean): void {
  const [location] = useLocation();
  const shown = useRef(location);
  const known = useRef<ReadonlySet<string>>(undefined);
  useEffect(() => void (shown.current = location), [location]);
  useEffect(() => {
    if (!isReady) return;
    const timer = window.setTimeout(() => {
      const before = known.current;
      known.current = new Set(approvals.map(({ id }) => id));
      const added = before === undefined ? [] : approvals.filter(({ id, threadId }) => !before.has(id) && shown.current !== paths.thread(threadId));
      if (added.length > 0) announce(newText(added));
    }, collectTime);
    return () => window.clearTimeout(timer);
  }, [approvals, isReady]);
}

const mostNamed = 3;

function newText(added: readonly Approval[]): string {
  const names = [...new Set(added.map((approval) => safeText(titleOf(approval))))];
  const rest = names.length - mostNamed;
  return `${added.length} new approval${added.length === 1 ? "" : "s"}: ${names.slice(0, mostNamed).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}

// Only of approvals that this user may decide, and only while the page is hidden. All tabs notify; those of one approval
// are one notification, because they have the same tag.
function Notifications({ approvals }: { approvals: readonly Approval[] }) {
  const mine = useMine(approvals);
  const [, navigate] = useLocation();
  const known = useRef<ReadonlySet<string>>(undefined);
  useEffect(() => {
    if (mine === undefined) return;
    const before = known.current;
    known.current = mine;
    if (before === undefined || document.visibilityState === "visible") return;
    const added = approvals.filter(({ id }) => mine.has(id) && !before.has(id));
    for (const approval of added.slice(-most)) notify(approval, () => navigate(paths.approval(approval.threadId, approval.id)));
  }, [approvals, mine, navigate]);
  return null;
}

const most = 3; // at a time: a notification is no list

function notify(approval: Approval, open: () => void): void {
  try {
    const notification = new Notification(safeText(titleOf(approval)), { body: safeText(summaryOf(approval)).slice(0, 200), tag: approval.id });
    notification.onclick = () => {
      notification.close();
      window.focus();
      open();
    };
  } catch {
    // Browsers of phones notify only from service workers.
  }
}
