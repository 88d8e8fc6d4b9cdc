import type { RunSnapshot, ThreadStore } from "@perdure/client/react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { announce } from "../../components/announcer";
import { Button, IconButton } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { ForkIcon, PanelIcon, PauseIcon, PlayIcon } from "../../components/icons";
import { Problem } from "../../components/problem";
import { useShortcuts } from "../../components/shortcuts";
import { paths } from "../../paths";
import { useClient } from "../../session";
import type { Panel } from "./side_panel";
import { newThreadID } from "./starting";

/** Properties of ThreadActions. */
export interface ThreadActionsProps {
  threadId: string;
  status: string;
  run: RunSnapshot;
  store: ThreadStore;
  panel: Panel;
  onPanel: (panel: Panel) => void;
}

/** The buttons of a thread: pause and resume, fork, and the panel. */
export function ThreadActions({ threadId, status, run, store, panel, onPanel }: ThreadActionsProps) {
  const client = useClient();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const action = useMutation({
    mutationFn: async (name: "pause" | "resume" | "fork") => {
      if (name === "fork") return navigate(paths.thread(await client.fork(threadId, run.runId!, newThreadID())));
      await store[name]();
      await queries.invalidateQueries({ queryKey: ["thread", threadId] });
      announce(name === "pause" ? "The run pauses before its next step" : "The run continues");
    },
  });
  const canFork = run.runId !== undefined && run.status !== "running";
  const isPaused = status === "paused";
  const canPause = isPaused || status === "running";
  const pause = () => canPause && !action.isPending && action.mutate(isPaused ? "resume" : "pause");
  const fork = () => canFork && !action.isPending && action.mutate("fork");
  useShortcuts("Thread", [
    { keys: "p", label: "Pause or resume the run", run: pause, isFinal: true },
    { keys: "f", label: "Fork the thread", run: fork, isFinal: true },
  ]);
  const isOpen = panel !== "off";
  return (
    <>
      {canPause && <Button isDisabled={action.isPending} onPress={pause}>{isPaused ? <><PlayIcon /> Resume</> : <><PauseIcon /> Pause</>}</Button>}
      {canFork && <Button isDisabled={action.isPending} onPress={fork}><ForkIcon /> Fork</Button>}
      <IconButton label={isOpen ? "Hide the panel" : "Show the panel"} aria-expanded={isOpen} onPress={() => onPanel(isOpen ? "off" : "state")}><PanelIcon /></IconButton>
      <Dialog title="It did not work" isOpen={action.isError} onClose={action.reset}><Problem error={action.error} /></Dialog>
    </>
  );
}
