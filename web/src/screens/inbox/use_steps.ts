import type { Approval } from "@perdure/client";

/** Returns what moves from the current approval of a list to the next one (1) or the previous one (-1). */
export function useSteps(approvals: readonly Approval[], current: string, open: (approval: Approval, isStep: boolean) => void): (step: 1 | -1) => void {
  return (step) => {
    const at = approvals.findIndex(({ id }) => id === (current || focusedApproval()));
    const next = approvals[at < 0 ? (step > 0 ? 0 : approvals.length - 1) : Math.min(approvals.length - 1, Math.max(0, at + step))];
    if (next === undefined) return;
    // On a narrow screen the list alone moves its focus, and Enter opens the approval.
    if (current !== "" || !isNarrow()) open(next, current !== "");
    // At once: with the next key, what that key opens has the focus.
    const row = document.querySelector<HTMLElement>(`[data-approval="${CSS.escape(next.id)}"]`);
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest" });
  };
}

/** Returns the ID of the approval whose row has the focus. */
export const focusedApproval = (): string | undefined => (document.activeElement as HTMLElement | null)?.dataset.approval;

const isNarrow = (): boolean => window.matchMedia("(max-width: 860px)").matches;
