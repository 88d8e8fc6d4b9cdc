import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { announce } from "../../components/announcer";
import { Button, ButtonLink } from "../../components/button";
import { Dialog, DialogActions } from "../../components/dialog";
import { ForkIcon, StopIcon } from "../../components/icons";
import { Problem } from "../../components/problem";
import { useShortcuts } from "../../components/shortcuts";
import { paths } from "../../paths";
import { useClient } from "../../session";
import type { Trace } from "./trace";

/** What a person can do with a run. */
export function RunActions({ trace, onFork }: { trace: Trace; onFork: () => void }) {
  const [isCancelling, setCancelling] = useState(false);
  useShortcuts("Run", [{ keys: "f", label: "Fork the run", run: onFork }]);
  return (
    <>
      {trace.status === "running" && <Button kind="danger" onPress={() => setCancelling(true)}><StopIcon />Cancel</Button>}
      <Button onPress={onFork}><ForkIcon />Fork</Button>
      <ButtonLink href={paths.thread(trace.threadId)}>Open conversation</ButtonLink>
      <CancelDialog trace={trace} isOpen={isCancelling} onClose={() => setCancelling(false)} />
    </>
  );
}

function CancelDialog({ trace, isOpen, onClose }: { trace: Trace; isOpen: boolean; onClose: () => void }) {
  const client = useClient();
  const cancel = useMutation({
    mutationFn: () => client.cancel(trace.threadId, trace.runId),
    onSuccess: () => {
      announce("The run is being cancelled");
      onClose();
    },
  });
  return (
    <Dialog title="Cancel the run?" isOpen={isOpen} onClose={onClose}>
      <p>The calls that are active end, and nothing follows. The messages of the run stay.</p>
      {cancel.error && <Problem error={cancel.error} />}
      <DialogActions>
        <Button onPress={onClose}>Keep it running</Button>
        <Button kind="danger" onPress={() => cancel.mutate()} isDisabled={cancel.isPending}>Cancel the run</Button>
      </DialogActions>
    </Dialog>
  );
}
