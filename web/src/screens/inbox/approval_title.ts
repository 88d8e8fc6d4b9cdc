import type { Approval } from "@perdure/client";
import { argumentsText, isLimit, isQuestion } from "../../components/decision_text";

/** Returns the title of an approval: its tool, or what is asked where the tool says nothing. */
export function titleOf(approval: Approval): string {
  if (isLimit(approval)) return "Soft limit";
  return isQuestion(approval) || approval.toolName === "approve" ? approval.message : approval.toolName;
}

/** Returns what distinguishes an approval from others of the same title, in one line. */
export function summaryOf(approval: Approval): string {
  if (isLimit(approval)) return approval.message;
  if (isQuestion(approval)) return `Question of ${approval.toolName || approval.agent}`;
  return approval.argsTruncated ? "Arguments too large for a line" : argumentsText(approval.args);
}

/** Returns the number of votes for the arguments with the most votes, and how many a decision needs. */
export function votesOf({ quorum, tallies = [] }: Approval): { votes: number; quorum: number } {
  return { votes: Math.max(0, ...tallies.map(({ votes }) => votes)), quorum };
}
