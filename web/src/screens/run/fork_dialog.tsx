import type { ForkPoint } from "@perdure/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { announce } from "../../components/announcer";
import { Button } from "../../components/button";
import { Choice } from "../../components/choice";
import { Dialog, DialogActions } from "../../components/dialog";
import { Problem } from "../../components/problem";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { durationText } from "../../components/time";
import { causeOf, type Trace, treeOf } from "./trace";

const endOfRun = "end";

/** Chooses where a new thread begins that has the conversation of this one up to there. */
export function ForkDialog({ trace, onClose }: { trace: Trace; onClose: () => void }) {
  const [, navigate] = useLocation();
  const client = useClient();
  const { data: points = [] } = useQuery({
    queryKey: ["forkpoints", trace.threadId, trace.runId, trace.cursor],
    queryFn: () => client.forkPoints(trace.threadId, trace.runId),
  });
  const [chosen, setChosen] = useState<string>();
  const at = chosen ?? pointBeforeFailure(trace, points)?.cursor ?? points.at(-1)?.cursor ?? endOfRun;
  const fork = useMutation({
    mutationFn: () => client.fork(trace.threadId, trace.runId, undefined, at === endOfRun ? {} : { at }),
    onSuccess: (threadId) => {
      announce("The fork is ready");
      navigate(paths.thread(threadId));
    },
  });
  const options = points.length > 0 ? points.map((point) => ({ id: point.cursor, label: labelOf(point, trace) })) : [{ id: endOfRun, label: "At the end of the run" }];
  return (
    <Dialog title="Fork the thread" isOpen onClose={onClose}>
      <p>The fork is a new thread with the conversation and the state of this one up to the place that you choose. This thread does not change.</p>
      <Choice label="Where the fork begins" options={options} value={at} onChange={setChosen} />
      {fork.error && <Problem error={fork.error} />}
      <DialogActions>
        <Button onPress={onClose}>Close</Button>
        <Button kind="primary" onPress={() => fork.mutate()} isDisabled={fork.isPending}>Fork</Button>
      </DialogActions>
    </Dialog>
  );
}

function labelOf({ kind, name, at }: ForkPoint, { startedAt }: Trace): string {
  const offset = durationText(Math.max(0, Date.parse(at) - Date.parse(startedAt)));
  return kind === "end" ? `At the end of the run, ${offset}` : `After the ${kind} ${name ? `“${name}”` : ""}, ${offset}`;
}

// Who forks a run that failed wants to continue before the failure.
function pointBeforeFailure(trace: Trace, points: readonly ForkPoint[]): ForkPoint | undefined {
  const cause = causeOf(treeOf(trace.spans));
  return cause && points.findLast(({ at, kind }) => kind !== "end" && at <= cause.startedAt);
}
