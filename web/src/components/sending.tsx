import { useEffect, useState } from "react";
import { announce } from "./announcer";
import { useOnline } from "./online";

const patience = 1_000;

/** Tells that the server has not answered a command yet. Show it while the command is pending: it is empty for the first second. */
export function Sending() {
  const isOnline = useOnline();
  const [isLate, setLate] = useState(false);
  const text = isOnline ? "Sending … The server has not answered yet." : "You are offline. This is sent when you are back.";
  useEffect(() => {
    const timer = window.setTimeout(() => setLate(true), patience);
    return () => window.clearTimeout(timer);
  }, []);
  useEffect(() => void (isLate && announce(text)), [isLate, text]);
  return isLate ? <p className="muted">{text}</p> : null;
}
