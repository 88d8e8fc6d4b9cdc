import { useCallback, useSyncExternalStore } from "react";

/** A changed definition that is not published yet. The tab of the browser keeps it until it is published or discarded. */
export interface Draft {
  text: string;
  /** The revision from which the text began. */
  base: string;
}

const listeners = new Set<() => void>();
const keyOf = (agent: string) => `perdure.draft.${agent}`;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The draft of an agent, and a function that replaces or discards it. */
export function useDraft(agent: string): [Draft | undefined, (draft: Draft | undefined) => void] {
  const stored = useSyncExternalStore(subscribe, () => sessionStorage.getItem(keyOf(agent)));
  const change = useCallback((draft: Draft | undefined) => {
    if (draft === undefined) sessionStorage.removeItem(keyOf(agent));
    else sessionStorage.setItem(keyOf(agent), JSON.stringify(draft));
    for (const listener of listeners) listener();
  }, [agent]);
  return [stored === null ? undefined : (JSON.parse(stored) as Draft), change];
}
