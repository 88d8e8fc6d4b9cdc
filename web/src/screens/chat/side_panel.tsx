import type { Thread } from "@perdure/client";
import type { Subagent, ThreadHook } from "@perdure/client/react";
import { useSyncExternalStore } from "react";
import { Tab, TabList, TabPanel, Tabs } from "react-aria-components";
import { useSearchParams } from "wouter";
import { IconButton } from "../../components/button";
import { CloseIcon } from "../../components/icons";
import { RunPanel } from "./run_panel";
import styles from "./side_panel.module.css";
import { StatePanel } from "./state_panel";
import { SubagentsPanel } from "./subagents_panel";

/** What the side panel of the conversation shows. */
export type Panel = "state" | "subagents" | "run" | "off";

const panels: readonly Panel[] = ["state", "subagents", "run", "off"];
const storageKey = "perdure.chatPanel";

// A page of this width has no place for the panel, unless its user opens it.
const narrow = window.matchMedia("(width < 1100px)");

function subscribe(listener: () => void): () => void {
  narrow.addEventListener("change", listener);
  return () => narrow.removeEventListener("change", listener);
}

/**
 * Returns what the panel shows, by the address or the last choice, and a function that changes it. Without a choice, the panel
 * opens when it has something to show.
 */
export function usePanel({ state }: ThreadHook<unknown>, subagents: readonly Subagent[]): [Panel, (panel: Panel) => void] {
  const [search, setSearch] = useSearchParams();
  const isNarrow = useSyncExternalStore(subscribe, () => narrow.matches);
  const hasState = typeof state === "object" && state !== null && Object.keys(state).length > 0;
  const filled = hasState ? "state" : subagents.length > 0 ? "subagents" : "off";
  const fallback = isNarrow ? "off" : (localStorage.getItem(storageKey) ?? filled);
  const asked = search.get("panel") ?? fallback;
  const panel = panels.find((name) => name === asked) ?? "off";
  const change = (next: Panel) => {
    localStorage.setItem(storageKey, next);
    setSearch((params) => {
      params.set("panel", next);
      return params;
    }, { replace: true });
  };
  return [panel, change];
}

/** Properties of a SidePanel. */
export interface SidePanelProps {
  thread: ThreadHook<unknown>;
  subagents: readonly Subagent[];
  summary: Thread | undefined;
  agent: string;
  panel: Panel;
  onPanel: (panel: Panel) => void;
}

/** The side panel of the conversation: state, subagents and runs. */
export function SidePanel({ thread, subagents, summary, agent, panel, onPanel }: SidePanelProps) {
  return (
    <aside className={styles.panel} aria-label="Details">
      <Tabs className={styles.tabs!} selectedKey={panel} onSelectionChange={(key) => onPanel(key as Panel)}>
        <div className={styles.head}>
          <TabList className={styles.list!} aria-label="Details">
            <Tab id="state" className={styles.tab!}>State</Tab>
            <Tab id="subagents" className={styles.tab!}>Subagents{subagents.length > 0 && <span className={styles.count}>{subagents.length}</span>}</Tab>
            <Tab id="run" className={styles.tab!}>Run</Tab>
          </TabList>
          <IconButton label="Close the panel" onPress={() => onPanel("off")}><CloseIcon /></IconButton>
        </div>
        <TabPanel id="state" className={styles.body!}><StatePanel thread={thread} exists={summary !== undefined} /></TabPanel>
        <TabPanel id="subagents" className={styles.body!}><SubagentsPanel subagents={subagents} /></TabPanel>
        <TabPanel id="run" className={styles.body!}><RunPanel thread={thread} summary={summary} agent={agent} /></TabPanel>
      </Tabs>
    </aside>
  );
}
