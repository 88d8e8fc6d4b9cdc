import styles from "./schedules.module.css";

/** Times in the time zone of a schedule, and in that of the reader if it differs. */
export function NextTimes({ times, timeZone }: { times: readonly string[]; timeZone: string }) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const there = new Intl.DateTimeFormat(undefined, { timeZone, ...style });
  const here = new Intl.DateTimeFormat(undefined, style);
  return (
    <>
      <p className="muted">In {timeZone}{own !== timeZone && <>, and in brackets in your zone, {own}</>}.</p>
      <ul className={styles.next}>
        {times.map((at) => {
          const [time, yours] = [there.format(new Date(at)), here.format(new Date(at))];
          return <li key={at}><time dateTime={at} className="number">{time}{yours !== time && <span className="muted"> ({yours})</span>}</time></li>;
        })}
      </ul>
    </>
  );
}

const style = { weekday: "short", year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" } as const;
