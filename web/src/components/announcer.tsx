import { useSyncExternalStore } from "react";

const announcement = { text: "", listeners: new Set<() => void>() };

/** Has screen readers say a change of state, such as "The run has finished". Do not announce tokens of a stream. */
export function announce(text: string): void {
  // The same text again is a new announcement.
  announcement.text = announcement.text === text ? text + "\u00a0" : text;
  for (const listener of announcement.listeners) listener();
}

function subscribe(listener: () => void): () => void {
  announcement.listeners.add(listener);
  return () => announcement.listeners.delete(listener);
}

/** The live region of the page. */
export function Announcer() {
  const text = useSyncExternalStore(subscribe, () => announcement.text);
  return <div role="status" aria-live="polite" className="visually-hidden">{text}</div>;
}
