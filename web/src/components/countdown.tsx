import { useEffect, useState } from "react";
import { durationText } from "./time";
import { ScheduleIcon } from "./icons";
import styles from "./countdown.module.css";

const hour = 3_600_000;
const shortly = 300_000;

/** The time until something expires. In the last hour its look says that it is urgent. In a list it is short. */
export function Countdown({ to, isShort = false }: { to: string; isShort?: boolean }) {
  const [now, setNow] = useState(Date.now);
  const left = Date.parse(to) - now;
  const step = left < hour ? 1_000 : 30_000;
  useEffect(() => {
    const timer = window.setInterval(() => setNow(Date.now()), step);
    return () => window.clearInterval(timer);
  }, [step]);
  const urgency = left < shortly ? styles.now : left < hour ? styles.soon : "";
  return (
    <time dateTime={to} title={new Date(to).toLocaleString()} className={`${styles.countdown} ${urgency} number`}>
      <ScheduleIcon />
      {left <= 0 ? "expires now" : (
        <>
          <span className={isShort ? "visually-hidden" : undefined}>expires in </span>
          {durationText(isShort && left > shortly ? left - (left % 60_000) : left - (left % 1_000)).replace(/ 0 (s|min)$/, "")}
        </>
      )}
    </time>
  );
}
