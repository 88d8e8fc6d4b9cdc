import type { Approval } from "@perdure/client";
import { type Caller, exclusionOf, hasVoted } from "./use_caller";

/** Tells why an open approval does not wait for the user of the page. */
export function NotMine({ approval, caller }: { approval: Approval; caller: Caller | undefined }) {
  return <p className="muted">{textOf(approval, caller)}</p>;
}

function textOf(approval: Approval, caller: Caller | undefined): string {
  switch (exclusionOf(approval, caller)) {
    case "contributor":
      return "You have contributed to this conversation, so you may not decide. Another approver must.";
    case "others":
      return "Other people decide this. The details tell whom.";
  }
  return hasVoted(approval, caller) ? "You have voted, and other people must vote too. You can still change your vote." : "This does not wait for you.";
}
