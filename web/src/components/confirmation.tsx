import { useEffect, useSyncExternalStore } from "react";
import { announce } from "./announcer";
import styles from "./confirmation.module.css";
import { CheckIcon } from "./icons";

const confirmed = { text: "", listeners: new Set<() => void>() };

/** Tells that what the user asked for is done: as a text on the page for some seconds, and to screen readers. */
export function confirm(text: string): void {
  announce(text);
  show(text);
}

function show(text: string): void {
  confirmed.text = text;
  for (const listener of confirmed.listeners) listener();
}

function subscribe(listener: () => void): () => void {
  confirmed.listeners.add(listener);
  return () => confirmed.listeners.delete(listener);
}

const shownFor = 6_000;

/** The place of confirmations on the page. */
export function Confirmation() {
  const text = useSyncExternalStore(subscribe, () => confirmed.text);
  useEffect(() => {
    if (text === "") return;
    const timer = window.setTimeout(() => show(""), shownFor);
    return () => window.clearTimeout(timer);
  }, [text]);
  if (text === "") return null;
  // The announcer has the text for screen readers.
  return <div className={styles.confirmation} aria-hidden="true"><CheckIcon />{text}</div>;
}
