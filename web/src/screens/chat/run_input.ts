import type { SendOptions } from "@perdure/client/react";
import { useMemo } from "react";
import { useSearchParam } from "../../components/search_param";
import { declaredTools } from "./client_tools";

/** Returns what this tab sends with each message to an agent: its tools, and the revision of the agent if it tries one. */
export function runInput(agent: string, revision: string): SendOptions {
  return { tools: declaredTools(agent), ...(revision !== "" && { revision }) };
}

/** Returns the revision of the agent that the address names, or "", and a function that goes back to the current one. */
export function useRevision(): [string, () => void] {
  const [revision, setRevision] = useSearchParam("revision");
  return useMemo(() => [revision, () => setRevision("")], [revision, setRevision]);
}

/** Returns a path with the revision, if there is one. */
export const withRevision = (path: string, revision: string) => (revision === "" ? path : `${path}?revision=${encodeURIComponent(revision)}`);
