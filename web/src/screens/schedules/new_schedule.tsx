import type { ScheduleSpec } from "@perdure/client";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useLocation } from "wouter";
import { Button } from "../../components/button";
import { Choice } from "../../components/choice";
import { Dialog, DialogActions } from "../../components/dialog";
import { Field } from "../../components/field";
import { Problem } from "../../components/problem";
import { paths } from "../../paths";
import { useClient } from "../../session";
import styles from "./schedules.module.css";

const overlaps = [
  { id: "skip", label: "Skip this time" },
  { id: "buffer_one", label: "Wait, at most one" },
  { id: "buffer_all", label: "Wait, all of them" },
  { id: "cancel_other", label: "Cancel the active run" },
  { id: "allow_all", label: "Run at the same time" },
];

/** The dialog that creates a schedule with one message and cron times. The API has further kinds of times. */
export function NewSchedule({ onClose }: { onClose: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const agents = useQuery({ queryKey: ["agents"], queryFn: () => client.agents() });
  const [agent, setAgent] = useState("");
  const [id, setID] = useState("");
  const [message, setMessage] = useState("");
  const [cron, setCron] = useState("0 9 * * 1-5");
  const [timeZone, setTimeZone] = useState(Intl.DateTimeFormat().resolvedOptions().timeZone);
  const [overlap, setOverlap] = useState("skip");
  const [note, setNote] = useState("");
  const chosen = agent || agents.data?.[0]?.name || "";
  const create = useMutation({
    mutationFn: () =>
      client.createSchedule({
        ...(id !== "" && { id }),
        agent: chosen,
        input: { messages: [{ role: "user", content: message }] },
        cron: [cron],
        timeZone,
        overlap: overlap as NonNullable<ScheduleSpec["overlap"]>,
        ...(note !== "" && { note }),
      }),
    onSuccess: (schedule) => {
      void queries.invalidateQueries({ queryKey: ["schedules"] });
      navigate(paths.schedule(schedule.id));
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate();
  };
  return (
    <Dialog title="New schedule" isOpen onClose={onClose}>
      <form className={styles.stack} onSubmit={submit}>
        <div className={styles.row}>
          <Choice label="Agent" options={(agents.data ?? []).map(({ name }) => ({ id: name, label: name }))} value={chosen} onChange={setAgent} />
          <Field label="ID" value={id} onChange={setID} placeholder="chosen by the server" />
        </div>
        <Field label="Message" rows={3} value={message} onChange={setMessage} isRequired hint="What each run is asked." />
        <div className={styles.row}>
          <Field label="Cron" value={cron} onChange={setCron} isRequired hint="Minute, hour, day, month, weekday." />
          <Field label="Time zone" value={timeZone} onChange={setTimeZone} isRequired />
        </div>
        <Choice label="If the run before is still active" options={overlaps} value={overlap} onChange={setOverlap} />
        <Field label="Note" value={note} onChange={setNote} />
        {create.error && <Problem error={create.error} />}
        <DialogActions>
          <Button onPress={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" isDisabled={create.isPending || chosen === ""}>Create</Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
