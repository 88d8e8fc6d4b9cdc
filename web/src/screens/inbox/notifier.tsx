import type { Approval } from "@perdure/client";
import { useInbox } from "@perdure/client/react";
import { useEffect, useRef } from "react";
import { useLocation } from "wouter";
import { showOpenCount } from "../../components/document_title";
import { safeText } from "../../components/safe_text";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { summaryOf, titleOf } from "./approval_title";
import { useNotificationState } from "./notifications";
import { useMine } from "./use_mine";

/** Shows the number of open approvals in the title of the document, and notifies of new ones if its user wants that. The page has one, on all screens. */
export function InboxNotifier() {
  const { approvals } = useInbox(useClient());
  const state = useNotificationState();
  useEffect(() => showOpenCount(approvals.length), [approvals.length]);
  return state === "on" ? <Notifications approvals={approvals} /> : null;
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
