import styles from "./schedules.module.css";

/** Times in the time zone of a schedule, and in that of the reader if it differs. */
export function NextTimes({ times, timeZone }: { times: readonly string[]; timeZone: string }) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const seconds = times.some((at) => new Date(at).getSeconds() !== 0) && ({ second: "2-digit" } as const);
  const there = new Intl.DateTimeFormat(undefined, { timeZone, ...date, ...clock, ...seconds });
  const here = new Intl.DateTimeFormat(undefined, { weekday: "short", ...clock, ...seconds });
  const isOther = times.some((at) => new Intl.DateTimeFormat(undefined, { timeZone, weekday: "short", ...clock, ...seconds }).format(new Date(at)) !== here.format(new Date(at)));
  return (
    <>
      <p className="muted">In {timeZone}{isOther && <>; in brackets, in your zone, {own}</>}.</p>
      <ul className={styles.next}>
        {times.map((at) => (
          <li key={at}>
            <time dateTime={at} className="number">{there.format(new Date(at))}{isOther && <span className="muted"> ({here.format(new Date(at))})</span>}</time>
          </li>
        ))}
      </ul>
    </>
  );
}

const date = { weekday: "short", month: "short", day: "numeric", year: "numeric" } as const;
const clock = { hour: "2-digit", minute: "2-digit" } as const;
