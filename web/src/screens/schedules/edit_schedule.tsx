import { ProblemError, type Schedule } from "@perdure/client";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { announce } from "../../components/announcer";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { safeText } from "../../components/safe_text";
import { Time } from "../../components/time";
import { useClient } from "../../session";
import { fieldsOf, type ScheduleFields, specOf } from "./schedule_fields";
import { ScheduleForm } from "./schedule_form";
import styles from "./schedules.module.css";

/** Another caller has replaced the schedule since the form was filled. The page shows the conflict instead of this error. */
class ScheduleChangedError extends Error {}

/** The dialog that changes a schedule. A change that another caller makes meanwhile is not overwritten unasked. */
export function EditSchedule({ schedule, onClose }: { schedule: Schedule; onClose: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const key = ["schedule", schedule.id];
  // The version that was loaded into the form, and the one that it may replace.
  const [loaded, setLoaded] = useState(schedule);
  const [replaced, setReplaced] = useState(schedule);
  const save = useMutation({
    mutationFn: async (fields: ScheduleFields) => {
      const current = await client.schedule(schedule.id);
      queries.setQueryData(key, current);
      if (current.changedAt !== replaced.changedAt) throw new ScheduleChangedError();
      return client.replaceSchedule(schedule.id, specOf(fields, current));
    },
    onSuccess: (changed) => {
      queries.setQueryData(key, changed);
      void queries.invalidateQueries({ queryKey: ["schedules"] });
      announce("The schedule is changed");
      onClose();
    },
    onError: (error) => void (error instanceof ProblemError && error.status === 409 && queries.invalidateQueries({ queryKey: key })),
  });
  const load = () => {
    setLoaded(schedule);
    setReplaced(schedule);
    save.reset();
  };
  const keep = () => {
    setReplaced(schedule);
    save.reset();
  };
  const isOutdated = schedule.changedAt !== replaced.changedAt;
  return (
    <Dialog title={`Change ${schedule.id}`} isOpen onClose={onClose}>
      <ScheduleForm
        key={loaded.changedAt} initial={fieldsOf(loaded)} isExisting hasOtherTimes={(schedule.calendars ?? []).length + (schedule.intervals ?? []).length > 0}
        submitLabel="Save" isPending={save.isPending || isOutdated} error={save.error instanceof ScheduleChangedError ? null : save.error} onSubmit={save.mutate} onCorrect={save.reset} onClose={onClose}
      >
        {isOutdated && (
          <div className={styles.conflict} role="alert">
            <p><strong>{safeText(schedule.changedBy ?? "Somebody")} has changed the schedule <Time at={schedule.changedAt} />.</strong> Your text is kept.</p>
            <p className={styles.choices}>
              <Button onPress={load}>Load that version</Button>
              <Button onPress={keep}>Keep mine, to replace it</Button>
            </p>
          </div>
        )}
      </ScheduleForm>
    </Dialog>
  );
}
