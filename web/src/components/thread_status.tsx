import type { ThreadEntry } from "@perdure/client";
import { Status } from "./status";

/** The word for the state of a thread in lists: a running thread may be stuck or retrying. */
export function threadStatus({ status, retrying, stuck }: ThreadEntry): string {
  if (stuck) return "stuck";
  return retrying && status === "running" ? "retrying" : status;
}

/** The state of a thread in a list. */
export function ThreadStatus({ thread }: { thread: ThreadEntry }) {
  return <Status value={threadStatus(thread)} />;
}
