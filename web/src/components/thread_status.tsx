import type { ThreadEntry } from "@perdure/client";
import { Status } from "./status";

/** The word for the state of a thread in lists: a running thread may be stuck or retrying. */
export function threadStatus({ status, retrying, stuck }: ThreadEntry): string {
  if (stuck) return "stuck";
  return retrying && status === "running" ? "retrying" : status;
}

/** The state of a thread in a list. One that waits for no person looks different. */
export function ThreadStatus({ thread }: { thread: ThreadEntry }) {
  const value = threadStatus(thread);
  const [first] = thread.waitingFor ?? [];
  const waitsForPerson = thread.waitingFor?.some((kind) => kind !== "timer" && kind !== "event");
  return <Status value={value === "waiting" && first !== undefined && !waitsForPerson ? first : value} />;
}
