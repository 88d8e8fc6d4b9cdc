import { Button } from "../../components/button";
import { EditIcon, ForkIcon, RetryIcon } from "../../components/icons";
import type { UserMessage } from "./transcript";
import styles from "./transcript_view.module.css";
import type { useChanges } from "./use_changes";

/** Properties of a LastMessage. */
export interface LastMessageProps {
  message: UserMessage;
  changes: ReturnType<typeof useChanges>;
  onEdit: () => void;
}

/** What can be done with the last message of the user: another answer, in the thread or in a fork, and an edit. */
export function LastMessage({ message: { id, content }, changes: { isPending, mutate }, onEdit }: LastMessageProps) {
  return (
    <div className={styles.actions} role="group" aria-label="Last message">
      <Button kind="quiet" isDisabled={isPending} onPress={() => mutate({})}><RetryIcon /> Answer again</Button>
      <Button kind="quiet" isDisabled={isPending} onPress={() => mutate({ messageId: id, content, isFork: true })}><ForkIcon /> Answer again in a fork</Button>
      <Button kind="quiet" isDisabled={isPending} onPress={onEdit}><EditIcon /> Edit</Button>
    </div>
  );
}
