import type { Approval } from "@perdure/client";

/** What a decision is about: an approval of the inbox, or as much of it as the interrupt of a thread has. */
export type Decidable = Pick<Approval, "id"> &
  Partial<Pick<Approval, "toolName" | "args" | "argsTruncated" | "reason" | "responseSchema" | "step" | "quorum" | "tallies" | "decisions">>;

/** Whether a tool asks a question, which has an answer, instead of waiting for an approval. */
export const isQuestion = ({ reason }: Decidable): boolean => reason !== undefined && reason !== "" && reason !== "tool_call";

/** Whether a run has reached a soft limit. */
export const isLimit = ({ step }: Decidable): boolean => step === "~limit";

/** Whether a step of a pipeline waits for an approval, and no tool. */
export const isSignOff = ({ step, toolName }: Decidable): boolean => toolName === "approve" && step !== undefined && step !== "";

/** Whether the arguments can be edited. */
export const hasArguments = ({ args, argsTruncated }: Decidable): boolean => !argsTruncated && typeof args === "object" && args !== null && Object.keys(args).length > 0;

const pastTense: Record<string, string> = {
  approve: "approved",
  edit: "approved with changes",
  reject: "rejected",
  answer: "answered",
  cancel: "cancelled",
  expire: "expired",
};

/** Returns what has happened to an approval by its decision, such as "rejected". */
export const decidedText = (decision: string): string => pastTense[decision] ?? decision;

/** Returns what a person has done with a decision, such as "rejected it". */
export const verdictText = (decision: string): string => (decision === "edit" ? "approved it with changes" : `${decidedText(decision)} it`);

/** The color and the icon of a decision, as a value of Status. */
export const decidedStatus = (decision: string): string =>
  decision === "approve" || decision === "edit" || decision === "answer" ? "approved" : decision === "reject" ? "rejected" : decision === "expire" ? "expired" : "cancelled";

/** Returns a name for a person: the API has none for callers without credentials. */
export const personText = (subject: string | undefined): string => subject || "Somebody";

/** Returns arguments as one line, such as "orderId: A-1001, amount: 80". */
export function argumentsText(args: unknown): string {
  if (args === undefined || args === null) return "";
  if (typeof args !== "object") return String(args);
  const text = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  return Array.isArray(args) ? text(args)! : Object.entries(args).map(([name, value]) => `${name}: ${text(value)}`).join(", ");
}
