import { useEffect, useState } from "react";
import { growingText } from "./time";
import { ScheduleIcon } from "./icons";
import styles from "./countdown.module.css";

const hour = 3_600_000;
const shortly = 300_000;

/** Properties of a Countdown. */
export interface CountdownProps {
  to: string;
  /** What happens then. Default `expires`. */
  event?: "expires" | "escalates" | "continues" | "stops waiting";
  /** It is in a list: the words are for screen readers. */
  isShort?: boolean;
}

/** The time until something happens. In the last hour its look says that an expiry is urgent. */
export function Countdown({ to, event = "expires", isShort = false }: CountdownProps) {
  const [now, setNow] = useState(Date.now);
  const left = Date.parse(to) - now;
  const step = left < hour ? 1_000 : 30_000;
  useEffect(() => {
    const timer = window.setInterval(() => setNow(Date.now()), step);
    return () => window.clearInterval(timer);
  }, [step]);
  const urgency = event !== "expires" ? "" : left < shortly ? styles.now : left < hour ? styles.soon : "";
  return (
    <time dateTime={to} title={new Date(to).toLocaleString()} className={`${styles.countdown} ${urgency} number`}>
      <ScheduleIcon />
      {left <= 0 ? `${event} now` : (
        <>
          <span className={isShort ? "visually-hidden" : undefined}>{event} in </span>
          {growingText(isShort && left > shortly ? left - (left % 60_000) : left - (left % 1_000)).replace(/ 0 (s|min)$/, "")}
        </>
      )}
    </time>
  );
}
