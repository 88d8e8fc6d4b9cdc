import type { Schedule as ScheduleEntry } from "@perdure/client";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { Button } from "../../components/button";
import { confirm } from "../../components/confirmation";
import { Dialog, DialogActions } from "../../components/dialog";
import { EditIcon } from "../../components/icons";
import { JSONView } from "../../components/json_view";
import { Loading, Page } from "../../components/page";
import { Problem } from "../../components/problem";
import { Sending } from "../../components/sending";
import { useShortcuts } from "../../components/shortcuts";
import { Status } from "../../components/status";
import { type Column, Table } from "../../components/table";
import { Time } from "../../components/time";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { parseCron } from "./cron";
import { cronText } from "./cron_text";
import { EditSchedule } from "./edit_schedule";
import styles from "./schedules.module.css";
import { NextTimes } from "./next_times";
import { timesText } from "./times";

type Firing = NonNullable<ScheduleEntry["recent"]>[number];

const columns: Column<Firing>[] = [
  { title: "Fired", cell: ({ firedAt, threadId, runId }) => <Link href={paths.run(threadId, runId)}><Time at={firedAt} isAbsolute /></Link> },
  { title: "Planned", cell: ({ scheduledAt }) => <Time at={scheduledAt} isAbsolute /> },
  {
    title: "Outcome",
    cell: ({ active, outcome = "unknown", code }) => (
      <>
        <Status value={active ? "running" : outcome === "refused" ? "failed" : outcome} {...(outcome === "refused" && { text: "refused" })} /> {code !== undefined && <code>{code}</code>}
      </>
    ),
  },
  { title: "Thread", cell: ({ threadId }) => <Link href={paths.thread(threadId)}>{threadId}</Link> },
];

/** A schedule: its next times, its firings, and what can be done with it. */
export default function Schedule({ schedule: id }: { schedule: string }) {
  const client = useClient();
  const [, navigate] = useLocation();
  const [isDeleting, setDeleting] = useState(false);
  const [isEditing, setEditing] = useState(false);
  const found = useQuery({ queryKey: ["schedule", id], queryFn: () => client.schedule(id), refetchInterval: 5_000 });
  const schedule = found.data;
  const change = useChange(id);
  const toggle = () => schedule && !change.isPending && change.mutate(schedule.paused ? "resume" : "pause");
  const fire = () => !change.isPending && change.mutate("fire");
  useShortcuts("Schedule", [
    { keys: "p", label: "Pause or resume", run: () => void toggle(), isFinal: true },
    { keys: "e", label: "Change the schedule", run: () => setEditing(true) },
    { keys: "f", label: "Fire now", run: () => void fire(), isFinal: true },
  ]);
  if (!schedule) return <Page title={id}>{found.error ? <Problem error={found.error} onRetry={() => void found.refetch()} /> : <Loading />}</Page>;
  const actions = (
    <>
      <Button onPress={fire} isDisabled={change.isPending}>Fire now</Button>
      <Button onPress={() => setEditing(true)}><EditIcon />Change</Button>
      <Button onPress={toggle} isDisabled={change.isPending}>{schedule.paused ? "Resume" : "Pause"}</Button>
      <Button kind="danger" onPress={() => setDeleting(true)}>Delete</Button>
    </>
  );
  return (
    <Page
      title={id}
      trail={<Link href={paths.schedules}>Schedules</Link>}
      beside={<Status value={schedule.paused ? "paused" : "ready"} text={schedule.paused ? "paused" : "active"} />}
      actions={actions}
    >
      <div className={styles.stack}>
        {change.error && <Problem error={change.error} />}
        {change.isPending && <Sending />}
        {schedule.paused && schedule.pausedBecause && <p>Paused: {schedule.pausedBecause}</p>}
        <div className={styles.columns}>
          <div className={styles.stack}>
            <h2>Firings</h2>
            {schedule.recent?.length ? <Table label="Firings" columns={columns} rows={schedule.recent} keyOf={({ firedAt, runId }) => firedAt + runId} /> : <p className="muted">It has not fired yet.</p>}
            <h2>Input of each run</h2>
            <div className={styles.panel}><JSONView value={schedule.input} depth={4} /></div>
          </div>
          <Facts schedule={schedule} />
        </div>
      </div>
      {isEditing && <EditSchedule schedule={schedule} onClose={() => setEditing(false)} />}
      {isDeleting && (
        <Dialog title={`Delete ${id}?`} isOpen onClose={() => setDeleting(false)}>
          <p>It will not fire again. Active runs, and the threads of earlier ones, stay.</p>
          <DialogActions>
            <Button onPress={() => setDeleting(false)}>Cancel</Button>
            <Button kind="danger" onPress={() => change.mutate("delete", { onSuccess: () => navigate(paths.schedules) })}>Delete</Button>
          </DialogActions>
        </Dialog>
      )}
    </Page>
  );
}

const said = { fire: "The schedule fires now", pause: "The schedule is paused", resume: "The schedule is active", delete: "The schedule is deleted" };

// Returns the mutation that changes a schedule, and reads it again.
function useChange(id: string) {
  const client = useClient();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (action: keyof typeof said) => {
      if (action === "fire") return client.triggerSchedule(id);
      if (action === "pause") return client.pauseSchedule(id);
      return action === "resume" ? client.resumeSchedule(id) : client.deleteSchedule(id);
    },
    onSuccess: (_, action) => {
      confirm(said[action]);
      void queries.invalidateQueries({ queryKey: ["schedules"] });
      if (action !== "delete") void queries.invalidateQueries({ queryKey: ["schedule", id] });
    },
  });
}

function Facts({ schedule }: { schedule: ScheduleEntry }) {
  const { agent, threadId, owner, changedBy, runAs, overlap, onBusy, fired, missed, skipped, next, note, createdAt, paused, timeZone, cron = [] } = schedule;
  return (
    <aside className={styles.panel} aria-label="About the schedule">
      {note !== undefined && <p>{note}</p>}
      <h2>Next times</h2>
      {paused && <p className="muted">None while it is paused.</p>}
      {!paused && next.length === 0 && <p className="muted">none</p>}
      {!paused && next.length > 0 && <NextTimes times={next} timeZone={timeZone} />}
      <dl className={styles.facts}>
        <dt>Times</dt>
        <dd><span className="mono">{timesText(schedule)}</span>{cron.length > 0 && <div className="muted">{cron.flatMap((line) => parseCron(line) ?? []).map(cronText).join("; ")}</div>}</dd>
        <dt>Agent</dt>
        <dd><Link href={paths.agent(agent)}>{agent}</Link></dd>
        <dt>Thread</dt>
        <dd>{threadId === undefined ? "a new one each time" : <Link href={paths.thread(threadId)}>{threadId}</Link>}</dd>
        {owner !== undefined && <><dt>Owner</dt><dd>{owner}</dd></>}
        {(runAs ?? changedBy) !== undefined && <><dt>Acts as</dt><dd>{runAs ?? changedBy}</dd></>}
        <dt>Overlap</dt>
        <dd>{overlap}</dd>
        <dt>Busy thread</dt>
        <dd>{onBusy}</dd>
        <dt>Fired</dt>
        <dd className="number">{fired}</dd>
        <dt>Missed</dt>
        <dd className="number">{missed}</dd>
        <dt>Skipped</dt>
        <dd className="number">{skipped}</dd>
        <dt>Created</dt>
        <dd><Time at={createdAt} /></dd>
      </dl>
    </aside>
  );
}
