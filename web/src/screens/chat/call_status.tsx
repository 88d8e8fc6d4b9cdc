import { CheckIcon } from "../../components/icons";
import { Status } from "../../components/status";
import styles from "./tool_call.module.css";

/** The state of a tool call or a branch. Most finish, so that state is the quietest. */
export function CallStatus({ value, text }: { value: string; text?: string }) {
  if (value !== "finished") return <Status value={value} {...(text !== undefined && { text })} />;
  return <span className={styles.finished} data-status="finished"><CheckIcon /><span className="visually-hidden">finished</span></span>;
}
