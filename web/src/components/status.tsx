import { BellIcon, CheckIcon, CrossIcon, DotIcon, PauseIcon, RetryIcon, ScheduleIcon, StopIcon, WaitIcon } from "./icons";
import styles from "./status.module.css";

// The look of the words for states that the API uses. Every state has an icon and a text, so none depends on color.
const looks: Record<string, { color: string; icon: () => React.JSX.Element; text?: string }> = {
  running: { color: "blue", icon: DotIcon },
  waiting: { color: "amber", icon: WaitIcon },
  timer: { color: "blue", icon: ScheduleIcon, text: "waiting" },
  event: { color: "blue", icon: BellIcon, text: "waiting" },
  suspended: { color: "amber", icon: WaitIcon },
  interrupt: { color: "amber", icon: WaitIcon, text: "waiting" },
  open: { color: "amber", icon: WaitIcon },
  paused: { color: "violet", icon: PauseIcon },
  retrying: { color: "amber", icon: RetryIcon },
  stuck: { color: "red", icon: StopIcon },
  idle: { color: "gray", icon: CheckIcon },
  finished: { color: "green", icon: CheckIcon },
  success: { color: "green", icon: CheckIcon, text: "finished" },
  ready: { color: "green", icon: CheckIcon },
  approved: { color: "green", icon: CheckIcon },
  failed: { color: "red", icon: CrossIcon },
  error: { color: "red", icon: CrossIcon, text: "failed" },
  rejected: { color: "red", icon: CrossIcon },
  expired: { color: "gray", icon: StopIcon },
  cancelled: { color: "gray", icon: StopIcon },
};

/** A state as an icon and a text, such as that of a run. With a label, screen readers have that instead of the text. */
export function Status({ value, text, label }: { value: string; text?: string; label?: string }) {
  const look = looks[value] ?? { color: "gray", icon: DotIcon };
  return (
    <span className={`${styles.status} ${styles[look.color]}`} data-status={value} title={label}>
      <look.icon />
      {label === undefined ? text ?? look.text ?? value : <><span aria-hidden="true">{text}</span><span className="visually-hidden">{label}</span></>}
    </span>
  );
}
