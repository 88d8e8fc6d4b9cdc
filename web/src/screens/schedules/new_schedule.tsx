import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { Dialog } from "../../components/dialog";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { newFields, type ScheduleFields, specOf } from "./schedule_fields";
import { ScheduleForm } from "./schedule_form";

/** The dialog that creates a schedule. */
export function NewSchedule({ onClose }: { onClose: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [initial] = useState(newFields);
  const create = useMutation({
    mutationFn: (fields: ScheduleFields) => client.createSchedule(specOf(fields)),
    onSuccess: (schedule) => {
      void queries.invalidateQueries({ queryKey: ["schedules"] });
      navigate(paths.schedule(schedule.id));
    },
  });
  return (
    <Dialog title="New schedule" isOpen onClose={onClose}>
      <ScheduleForm initial={initial} submitLabel="Create" isPending={create.isPending} error={create.error} onSubmit={create.mutate} onCorrect={create.reset} onClose={onClose} />
    </Dialog>
  );
}
