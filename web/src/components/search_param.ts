import { useCallback } from "react";
import { useSearch } from "wouter";

/**
 * A parameter of the query string, such as the tab of a screen, and the function that changes it. The empty text removes it.
 * The change replaces the entry in the history.
 */
export function useSearchParam(name: string): [string, (value: string) => void] {
  const value = new URLSearchParams(useSearch()).get(name) ?? "";
  const change = useCallback((next: string) => changeSearchParams({ [name]: next }), [name]);
  return [value, change];
}

/** Changes parameters of the query string. An empty text removes one. */
export function changeSearchParams(changes: Record<string, string>): void {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  if (url.href !== location.href) history.replaceState(history.state, "", url);
}
