import { useSyncExternalStore } from "react";

interface Announcement {
  id: number;
  text: string;
}

const shownFor = 10_000;
const region = { last: 0, announcements: [] as readonly Announcement[], listeners: new Set<() => void>() };

function change(announcements: readonly Announcement[]): void {
  region.announcements = announcements;
  for (const listener of region.listeners) listener();
}

/**
 * Has screen readers say a change of state, such as "The run has finished", after what they are saying. Do not announce tokens
 * of a stream.
 */
export function announce(text: string): void {
  // Each announcement is an element of its own: a second one at the same time does not replace the first one.
  const announcement = { id: ++region.last, text };
  change([...region.announcements, announcement]);
  setTimeout(() => change(region.announcements.filter((other) => other !== announcement)), shownFor);
}

function subscribe(listener: () => void): () => void {
  region.listeners.add(listener);
  return () => region.listeners.delete(listener);
}

/** The live region of the page. */
export function Announcer() {
  const announcements = useSyncExternalStore(subscribe, () => region.announcements);
  return (
    <div role="status" aria-live="polite" aria-atomic="false" aria-label="Announcements" className="visually-hidden">
      {announcements.map(({ id, text }) => <p key={id}>{text}</p>)}
    </div>
  );
}
