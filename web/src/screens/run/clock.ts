import { useEffect, useState } from "react";

/** The time in milliseconds. While isTicking is true, it changes twice a second. */
export function useNow(isTicking: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isTicking) return;
    setNow(Date.now());
    const timer = window.setInterval(() => setNow(Date.now()), 500);
    return () => window.clearInterval(timer);
  }, [isTicking]);
  return now;
}
