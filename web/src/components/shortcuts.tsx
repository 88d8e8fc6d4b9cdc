import { useEffect, useId, useSyncExternalStore } from "react";
import { Dialog } from "./dialog";
import styles from "./shortcuts.module.css";

/** A key, or two keys in sequence ("g i"), and what it does. */
export interface Shortcut {
  keys: string;
  label: string;
  run: () => void;
}

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

/** Listens to the keys of all shortcuts. The page has one. */
export function ShortcutListener() {
  useEffect(() => {
    let first = "";
    let timer = 0;
    const press = (event: KeyboardEvent) => {
      if (!registry.isOn || isTaken(event) || event.key.length > 1) return;
      const all = registry.list.flatMap(({ shortcuts }) => shortcuts);
      const pressed = first === "" ? event.key : `${first} ${event.key}`;
      const found = all.findLast(({ keys }) => keys === pressed);
      window.clearTimeout(timer);
      first = "";
      if (found) {
        event.preventDefault();
        found.run();
      } else if (all.some(({ keys }) => keys.startsWith(event.key + " "))) {
        first = event.key;
        timer = window.setTimeout(() => (first = ""), 1_500);
      }
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  return null;
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
