import { useEffect, useState } from "react";
import type { StartingThread } from "./starting";

/** Returns why the first message of a thread was refused, or undefined. */
export function useStarted(starting: StartingThread | undefined): unknown {
  const [error, setError] = useState<unknown>();
  useEffect(() => void starting?.started.then(() => setError(undefined), setError), [starting]);
  return error;
}
