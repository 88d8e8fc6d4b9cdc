import { awaitedBy, type Thread } from "@perdure/client";
import type { ThreadHook } from "@perdure/client/react";
import { useCallback, useEffect, useState } from "react";
import { Link } from "wouter";
import { announce } from "../../components/announcer";
import { useOnline, useRetry } from "../../components/online";
import { safeText } from "../../components/safe_text";
import { waitText } from "../../components/wait_text";
import { paths } from "../../paths";
import { elementID } from "./element_id";
import styles from "./status_line.module.css";

/** Properties of a StatusLine. */
export interface StatusLineProps {
  thread: ThreadHook<unknown>;
  status: string;
  agent: string;
  /** Absent until the server has the thread. */
  summary: Thread | undefined;
}

/** One line above the composer: the connection if it is not as it should be, or what the run does. */
export function StatusLine({ thread: { connection, connectionError, interrupts, toolCalls, store, messages, transport, run, threadId }, status, agent, summary }: StatusLineProps) {
  const isOnline = useOnline();
  const hasContinued = useContinuation(isOnline ? connection : "offline", status, messages.length > 0);
  const isLost = connectionError?.code === "connection_lost";
  useRetry(isLost, useCallback(() => store.reconnect(), [store]));
  if (!isOnline) return <p className={styles.line} data-kind="connection">You are offline. Nothing is lost: runs continue, and this page when you are back.</p>;
  if (connection === "closed") {
    return (
      <p className={styles.line} data-kind="problem">
        The connection is lost{connectionError ? `: ${connectionError.message}` : "."} <button type="button" onClick={() => store.reconnect()}>Connect again</button>
      </p>
    );
  }
  if (connection === "reconnecting") return <p className={styles.line} data-kind="connection">Reconnecting … Nothing is lost.</p>;
  if (hasContinued) return <p className={styles.line} data-kind="connection">Continued where it was.</p>;
  const asking = interrupts.filter((interrupt) => !awaitedBy(interrupt));
  const first = (asking[0] ?? toolCalls[0] ?? interrupts[0])?.toolCallId;
  if (status === "waiting" && first !== undefined) {
    const show = () => document.getElementById(elementID(first))?.scrollIntoView({ block: "start" });
    const count = asking.length + toolCalls.length;
    const wait = interrupts[0] && awaitedBy(interrupts[0]);
    return (
      <p className={styles.line} data-kind={count === 0 ? undefined : "waiting"}>
        {agent} waits {count === 0 && wait ? safeText(waitText(wait, interrupts[0]!.expiresAt)) : count === 1 ? "for you" : `for ${count} answers`}. <button type="button" onClick={show}>Show</button>
      </p>
    );
  }
  const { stuck, retrying } = summary ?? {};
  if (status === "running" && stuck) return <p className={styles.line} data-kind="problem">The run makes no progress: {safeText(stuck.reason)}.</p>;
  if (status === "running" && retrying) {
    return (
      <p className={styles.line} data-kind="problem">
        “{safeText(retrying.name ?? retrying.activity)}” fails, and is attempted again (attempt {retrying.attempt}): {safeText(retrying.error)}. {run.runId !== undefined && <Link href={paths.run(threadId, run.runId)}>Find out why</Link>}
      </p>
    );
  }
  if (status === "running") return <p className={styles.line} data-kind="running">{agent} is working …</p>;
  if (status === "paused") return <p className={styles.line} data-kind="paused">{run.isCalling ? "The run pauses after the current step." : "The run is paused."}</p>;
  return <p className={styles.line}>{transport === "sse" && "Your network blocks WebSockets. The chat works, but may be slower."}</p>;
}

const shownFor = 5_000;

/** Whether the page has just continued a stream: after a loss, or because a run was active when the page opened. */
function useContinuation(connection: string, status: string, hasMessages: boolean): boolean {
  const [last, setLast] = useState("");
  const [wasLost, setLost] = useState(false);
  const [isShown, setShown] = useState(false);
  const [isDecided, setDecided] = useState(false); // whether the page has shown how the thread was when it opened
  if (last !== connection) {
    setLast(connection);
    if (connection === "connected") setLost(false);
    else if (connection !== "connecting") setLost(true);
    if (connection === "connected" && wasLost) setShown(true);
  }
  if (!isDecided && connection === "connected" && hasMessages) {
    setDecided(true);
    const [navigation] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
    const isOpening = performance.now() < shownFor * 2;
    if (status === "running" && isOpening && navigation?.type === "reload") setShown(true);
  }
  useEffect(() => {
    if (!isShown) return;
    announce("Continued where it was");
    const timer = setTimeout(() => setShown(false), shownFor);
    return () => clearTimeout(timer);
  }, [isShown]);
  return isShown;
}
