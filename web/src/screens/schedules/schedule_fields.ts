import { ProblemError, type Schedule, type ScheduleSpec } from "@perdure/client";

/** What the form of a schedule edits. */
export interface ScheduleFields {
  agent: string;
  id: string;
  /** What each run is asked; undefined = the input is more than one message. */
  message: string | undefined;
  /** The input of each run. */
  input: ScheduleSpec["input"];
  /** Cron expressions, one a line. */
  cron: string;
  timeZone: string;
  overlap: NonNullable<ScheduleSpec["overlap"]>;
  note: string;
}

/** The fields of a new schedule: on workdays at nine. */
export const newFields = (): ScheduleFields => ({
  agent: "", id: "", message: "", input: {}, cron: "0 9 * * 1-5", timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone, overlap: "skip", note: "",
});

/** Returns the fields of a schedule. */
export function fieldsOf({ agent, id, input = {}, cron = [], timeZone, overlap, note = "" }: Schedule): ScheduleFields {
  return { agent, id, message: messageOf(input), input, cron: cron.join("\n"), timeZone, overlap, note };
}

// Returns the text of an input that is one message of a user.
function messageOf({ messages, ...rest }: ScheduleSpec["input"]): string | undefined {
  const [first, ...others] = (messages ?? []) as { role?: string; content?: unknown }[];
  const isText = first?.role === "user" && typeof first.content === "string" && Object.keys(first).length === 2;
  return isText && others.length + Object.keys(rest).length === 0 ? (first.content as string) : undefined;
}

/** Returns the specification of fields. What they do not have is that of the schedule that is replaced. */
export function specOf({ agent, id, message, input, cron, timeZone, overlap, note }: ScheduleFields, replaced?: Schedule): ScheduleSpec {
  const lines = cron.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  return {
    ...(replaced && keptOf(replaced)),
    ...(id !== "" && { id }),
    agent,
    input: message === undefined ? input : { messages: [{ role: "user", content: message }] },
    ...(lines.length > 0 && { cron: lines }),
    timeZone,
    overlap,
    ...(note !== "" && { note }),
  };
}

const kept = ["threadId", "calendars", "intervals", "runAs", "startAt", "endAt", "jitter", "catchupWindow", "pauseOnFailure", "onBusy"] as const;

const keptOf = (schedule: Schedule): Partial<ScheduleSpec> => Object.fromEntries(kept.flatMap((name) => (schedule[name] === undefined ? [] : [[name, schedule[name]]])));

/** Returns the field that an error is about, and what is wrong with it; undefined = it is about none of them. */
export function fieldMistake(error: unknown): { field: keyof ScheduleFields; detail: string } | undefined {
  if (!(error instanceof ProblemError)) return undefined;
  const { pointer, detail = "is invalid" } = error.problem as { pointer?: string; detail?: string };
  const member = pointer?.split("/")[1];
  const field = (["agent", "id", "input", "cron", "timeZone", "overlap", "note"] as const).find((name) => name === member);
  return field && { field, detail };
}
