import { useEffect, useId, useRef, useState, useSyncExternalStore } from "react";
import { Dialog } from "./dialog";
import styles from "./shortcuts.module.css";

/** A key, or two keys in sequence ("g i"), and what it does. */
export interface Shortcut {
  keys: string;
  label: string;
  run: () => void;
  /** It changes something on the server: a key that is held down does not repeat it. */
  isFinal?: boolean;
}

/** How long the first key of a sequence waits for the second one. The page shows that it waits. */
const prefixTime = 3_000;

const storageKey = "perdure.shortcuts";
const registry = {
  groups: new Map<string, { title: string; shortcuts: readonly Shortcut[] }>(),
  list: [] as readonly { title: string; shortcuts: readonly Shortcut[] }[],
  isOn: localStorage.getItem(storageKey) !== "off",
  listeners: new Set<() => void>(),
};

function changed(): void {
  registry.list = [...registry.groups.values()];
  for (const listener of registry.listeners) listener();
}

function subscribe(listener: () => void): () => void {
  registry.listeners.add(listener);
  return () => registry.listeners.delete(listener);
}

/** Has keys for what a screen can do, while the component is shown. The list of shortcuts names them. */
export function useShortcuts(title: string, shortcuts: readonly Shortcut[]): void {
  const id = useId();
  useEffect(() => {
    registry.groups.set(id, { title, shortcuts });
    changed();
    return () => {
      registry.groups.delete(id);
      changed();
    };
  });
}

// A key in a field is text, and in an open dialog, menu or list box it belongs to that.
function isTaken(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  return event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || target.closest("input, textarea, select, [contenteditable=true], [role=dialog], [role=listbox], [role=menu]") !== null;
}

/**
 * Listens to the keys of all shortcuts, and shows the first key of a sequence while it waits for the second one. The key after
 * it is always the second one: if the sequence does not exist, that key has no effect. The page has one listener.
 */
export function ShortcutListener() {
  const [first, setFirst] = useState("");
  const waiting = useRef("");
  useEffect(() => {
    const wait = (key: string) => setFirst((waiting.current = key));
    const press = (event: KeyboardEvent) => {
      if (event.key === "Escape") return wait("");
      if (!registry.isOn || isTaken(event) || event.key.length > 1) return;
      const all = registry.list.flatMap(({ shortcuts }) => shortcuts);
      const prefix = waiting.current;
      wait("");
      const found = all.findLast(({ keys }) => keys === (prefix === "" ? event.key : `${prefix} ${event.key}`));
      if (found) {
        event.preventDefault();
        if (!event.repeat || !found.isFinal) found.run();
      } else if (prefix === "" && sequencesOf(all, event.key).length > 0) wait(event.key);
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  useEffect(() => {
    if (first === "") return;
    const timer = window.setTimeout(() => setFirst((waiting.current = "")), prefixTime);
    return () => window.clearTimeout(timer);
  }, [first]);
  return first === "" ? null : <Sequences first={first} />;
}

const sequencesOf = (all: readonly Shortcut[], first: string): readonly Shortcut[] => all.filter(({ keys }) => keys.startsWith(`${first} `));

// The keys that may follow the first one. Sighted users see that the next key has another meaning now.
function Sequences({ first }: { first: string }) {
  const groups = useSyncExternalStore(subscribe, () => registry.list);
  const sequences = sequencesOf(groups.flatMap(({ shortcuts }) => shortcuts), first);
  return (
    <div className={styles.sequences} role="group" aria-label={`Keys after ${first}`}>
      <kbd>{first}</kbd>
      <dl>
        {sequences.map(({ keys, label }) => (
          <div key={keys}>
            <dt><kbd>{keys.slice(first.length + 1)}</kbd></dt>
            <dd>{label}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** The list of the shortcuts of this screen, with a switch: single keys can be turned off (WCAG 2.1.4). */
export function ShortcutList({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const groups = useSyncExternalStore(subscribe, () => registry.list);
  const isOn = useSyncExternalStore(subscribe, () => registry.isOn);
  const toggle = () => {
    registry.isOn = !registry.isOn;
    localStorage.setItem(storageKey, registry.isOn ? "on" : "off");
    changed();
  };
  return (
    <Dialog title="Keyboard shortcuts" isOpen={isOpen} onClose={onClose}>
      <label className={styles.switch}>
        <input type="checkbox" checked={isOn} onChange={toggle} /> Use shortcuts
      </label>
      {groups.map(({ title, shortcuts }) => (
        <section key={title}>
          <h3>{title}</h3>
          <dl className={styles.list}>
            {shortcuts.map(({ keys, label }) => (
              <div key={keys}>
                <dt>{keys.split(" ").map((key) => <kbd key={key}>{key}</kbd>)}</dt>
                <dd>{label}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </Dialog>
  );
}
