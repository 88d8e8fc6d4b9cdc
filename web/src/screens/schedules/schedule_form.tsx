import { useQuery } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { Button } from "../../components/button";
import { Choice } from "../../components/choice";
import { DialogActions } from "../../components/dialog";
import { Field } from "../../components/field";
import { JSONField } from "../../components/json_field";
import { Unparsed } from "../../components/json_schema";
import { Problem } from "../../components/problem";
import { Sending } from "../../components/sending";
import { useClient } from "../../session";
import { CronPreview } from "./cron_text";
import { fieldMistake, type ScheduleFields } from "./schedule_fields";
import styles from "./schedules.module.css";

const overlaps = [
  { id: "skip", label: "Skip this time" },
  { id: "buffer_one", label: "Wait, at most one" },
  { id: "buffer_all", label: "Wait, all of them" },
  { id: "cancel_other", label: "Cancel the active run" },
  { id: "terminate_other", label: "Terminate the active run" },
  { id: "allow_all", label: "Run at the same time" },
];

/** Properties of a ScheduleForm. */
export interface ScheduleFormProps {
  initial: ScheduleFields;
  /** Whether the schedule exists: its ID cannot change. */
  isExisting?: boolean;
  /** Whether it has other times than cron expressions, so that none is needed. */
  hasOtherTimes?: boolean;
  submitLabel: string;
  isPending: boolean;
  /** Why the last request was refused. A mistake in a field is shown at the field. */
  error: unknown;
  onSubmit: (fields: ScheduleFields) => void;
  /** Called when a field changes after an error: the error is about the fields before. */
  onCorrect: () => void;
  onClose: () => void;
  /** What follows the fields. */
  children?: ReactNode;
}

/** The form of a schedule. The API has further kinds of times and options. */
export function ScheduleForm({ initial, isExisting = false, hasOtherTimes = false, submitLabel, isPending, error, onSubmit, onCorrect, onClose, children }: ScheduleFormProps) {
  const client = useClient();
  const agents = useQuery({ queryKey: ["agents"], queryFn: () => client.agents() });
  const [fields, setFields] = useState(initial);
  const set = (change: Partial<ScheduleFields>) => {
    setFields((before) => ({ ...before, ...change }));
    if (error !== null) onCorrect();
  };
  const mistake = fieldMistake(error);
  const mistakeIn = (name: keyof ScheduleFields) => (mistake?.field === name ? mistake.detail : undefined);
  const names = (agents.data ?? []).map(({ name }) => name);
  const agent = fields.agent || (names[0] ?? "");
  // An agent that is no longer published stays an option.
  const options = [...new Set([...names, ...(agent === "" ? [] : [agent])])].map((name) => ({ id: name, label: name }));
  const lines = initial.cron.split("\n").length;
  const isParsed = !((fields.input as unknown) instanceof Unparsed);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isParsed) onSubmit({ ...fields, agent });
  };
  return (
    <form className={styles.stack} onSubmit={submit}>
      <div className={styles.row}>
        <Choice label="Agent" options={options} value={agent} onChange={(name) => set({ agent: name })} error={mistakeIn("agent")} />
        {!isExisting && <Field label="ID" value={fields.id} onChange={(id) => set({ id })} placeholder="chosen by the server" error={mistakeIn("id")} />}
      </div>
      {fields.message === undefined
        ? <JSONField label="Input" initial={initial.input} onChange={(input) => set({ input: (input ?? {}) as ScheduleFields["input"] })} error={mistakeIn("input")} hint="Messages and state of each run." />
        : <Field label="Message" rows={3} value={fields.message} onChange={(message) => set({ message })} isRequired hint="What each run is asked." error={mistakeIn("input")} />}
      <div className={styles.row}>
        <Field
          label="Cron" value={fields.cron} onChange={(cron) => set({ cron })} isRequired={!hasOtherTimes} error={mistakeIn("cron")} {...(lines > 1 && { rows: lines })}
          hint={<>{lines > 1 ? "Minute, hour, day, month, weekday. One a line." : "Minute, hour, day, month, weekday."}<span className={styles.preview}><CronPreview cron={fields.cron} timeZone={fields.timeZone} /></span></>}
        />
        <Field label="Time zone" value={fields.timeZone} onChange={(timeZone) => set({ timeZone })} isRequired error={mistakeIn("timeZone")} options={Intl.supportedValuesOf("timeZone")} />
      </div>
      <Choice label="If the run before is still active" options={overlaps} value={fields.overlap} onChange={(overlap) => set({ overlap: overlap as ScheduleFields["overlap"] })} error={mistakeIn("overlap")} />
      <Field label="Note" value={fields.note} onChange={(note) => set({ note })} error={mistakeIn("note")} />
      {error !== null && mistake === undefined && <Problem error={error} />}
      {isPending && <Sending />}
      {children}
      <DialogActions>
        <Button onPress={onClose}>Cancel</Button>
        <Button kind="primary" type="submit" isDisabled={isPending || agent === ""}>{submitLabel}</Button>
      </DialogActions>
    </form>
  );
}
