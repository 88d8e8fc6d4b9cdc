import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { announce } from "../../components/announcer";
import { Button } from "../../components/button";
import { Choice } from "../../components/choice";
import { Dialog, DialogActions } from "../../components/dialog";
import { JSONField } from "../../components/json_field";
import { Unparsed } from "../../components/json_schema";
import { Problem } from "../../components/problem";
import { safeText } from "../../components/safe_text";
import { Sending } from "../../components/sending";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { continueInFork, type Restart, startOver } from "./continued_fork";
import styles from "./fork_dialog.module.css";
import { pointBefore, pointText, stepAfter } from "./fork_point";
import { useRestart } from "./restart";
import { repairPath, useRevisionChoice } from "./revision_choice";
import { causeOf, type Span, titleOf, type Trace, type Tree } from "./trace";

const endOfRun = "end";
const startOfRun = "start";

/** Properties of a ForkDialog. */
export interface ForkDialogProps {
  trace: Trace;
  tree: Tree;
  /** The span before which the fork begins at first. Default: the one that made the run fail, or the end of the run. */
  before?: Span | undefined;
  onClose: () => void;
}

/** Chooses where a new thread begins that has the conversation of this one up to there, and with what it continues. */
export function ForkDialog({ trace, tree, before = causeOf(tree), onClose }: ForkDialogProps) {
  const client = useClient();
  const points = useQuery({ queryKey: ["forkpoints", trace.threadId, trace.runId, trace.cursor], queryFn: () => client.forkPoints(trace.threadId, trace.runId) });
  const [chosen, setChosen] = useState<string>();
  const found = points.data ?? [];
  const wanted = before && pointBefore(tree, before, found);
  const restart = useRestart(trace);
  const isRestart = restart !== undefined && (chosen === startOfRun || (chosen === undefined && before !== undefined && points.data !== undefined && wanted === undefined));
  const point = isRestart ? undefined : (found.find(({ cursor }) => cursor === chosen) ?? wanted ?? found.at(-1));
  const options = [
    ...(restart ? [{ id: startOfRun, label: "At the start, with the same input" }] : []),
    ...(found.length > 0 ? found.map((each) => ({ id: each.cursor, label: pointText(each, trace) })) : [{ id: endOfRun, label: "At the end of the run" }]),
  ];
  const next = point && stepAfter(tree, point);
  return (
    <Dialog title="Fork the run" isOpen onClose={onClose}>
      <p>The fork is a new thread with the conversation and the state up to the place that you choose. This thread does not change.</p>
      {before && points.data && wanted === undefined && <p className={styles.note}>Nothing had finished before “{safeText(titleOf(before))}”.{isRestart && " The run begins again in a new thread."}</p>}
      {points.error && <Problem error={points.error} onRetry={() => void points.refetch()} />}
      <div>
        <Choice label="Where the fork begins" options={options} value={isRestart ? startOfRun : (point?.cursor ?? endOfRun)} onChange={setChosen} />
        {next !== undefined && <p className={styles.hint}>It continues with the step “{safeText(next)}”.</p>}
      </div>
      {isRestart && <Continuation trace={trace} restart={restart} onClose={onClose} />}
      {!isRestart && (point === undefined || point.kind === "end" ? <EndOfRun trace={trace} onClose={onClose} /> : <Continuation trace={trace} at={point.cursor} onClose={onClose} />)}
    </Dialog>
  );
}

// Returns the mutation that makes a fork without a run, and shows its conversation.
function useFork({ threadId, runId }: Trace) {
  const client = useClient();
  const [, navigate] = useLocation();
  return useMutation({
    mutationFn: (at: string | undefined) => client.fork(threadId, runId, undefined, at === undefined ? {} : { at }),
    onSuccess: (fork) => {
      announce("The fork is ready");
      navigate(paths.thread(fork));
    },
  });
}

function EndOfRun({ trace, onClose }: { trace: Trace; onClose: () => void }) {
  const fork = useFork(trace);
  return (
    <>
      {fork.error && <Problem error={fork.error} />}
      {fork.isPending && <Sending />}
      <DialogActions>
        <Button onPress={onClose}>Close</Button>
        <Button kind="primary" onPress={() => fork.mutate(undefined)} isDisabled={fork.isPending}>Fork</Button>
      </DialogActions>
    </>
  );
}

interface ContinuationProps {
  trace: Trace;
  /** The cursor of the fork point; absent = the run starts over. */
  at?: string;
  restart?: Pick<Restart, "input" | "previous"> | undefined;
  onClose: () => void;
}

// After a step or a turn, the agent can continue without a message: with another definition, or another state.
function Continuation({ trace, at, restart, onClose }: ContinuationProps) {
  const client = useClient();
  const [, navigate] = useLocation();
  const fork = useFork(trace);
  const revision = useRevisionChoice(trace);
  const [change, setChange] = useState<unknown>();
  const isObject = change === undefined || (typeof change === "object" && change !== null && !Array.isArray(change) && !(change instanceof Unparsed));
  const next = useMutation({
    mutationFn: async () => {
      const { threadId, runId, agent } = trace;
      const run = { threadId, runId, agent, revision: await revision.resolve(), change: change as Record<string, unknown> | undefined };
      return restart ? startOver(client, { ...run, ...restart }) : continueInFork(client, { ...run, at: at! });
    },
    onSuccess: ({ threadId, runId }) => {
      announce(restart ? "The run has started over" : "The fork continues");
      navigate(paths.run(threadId, runId));
    },
  });
  const error = next.error ?? fork.error;
  const isPending = next.isPending || fork.isPending;
  return (
    <>
      <div>
        <Choice label="Definition" options={revision.options} value={revision.value} onChange={revision.choose} />
        <p className={styles.hint}><Link href={repairPath(trace)}>Edit the definition</Link></p>
      </div>
      <JSONField
        label="Change of the state" initial={undefined} onChange={setChange} rows={3} error={isObject ? undefined : "This is no object."}
        hint={'Members to set, such as {"rate": 6}. null removes one. The outputs of steps stay.'}
      />
      {error && <Problem error={error} />}
      {isPending && <Sending />}
      <DialogActions>
        <Button onPress={onClose}>Close</Button>
        {!restart && <Button onPress={() => fork.mutate(at)} isDisabled={isPending}>Fork only</Button>}
        <Button kind="primary" onPress={() => next.mutate()} isDisabled={isPending || !isObject}>{restart ? "Start over" : "Fork and continue"}</Button>
      </DialogActions>
    </>
  );
}
