import { ConnectionLostError, ProblemError } from "@perdure/client";
import type { ReactNode } from "react";
import { Button } from "./button";
import styles from "./problem.module.css";

// What a person can do about a problem, by its code.
const advice: Record<string, string> = {
  forbidden: "Ask the owner of the thread to share it with you, or an administrator for the role.",
  unknown_thread: "It was deleted, or its owner does not share it with you.",
  unknown_agent: "Look at the list of agents, or publish it.",
  busy: "Wait for the active run, steer it, or cancel it.",
  rate_limited: "Wait a moment and try again.",
  quota_exceeded: "Ask an administrator for a larger quota, or end runs that you do not need.",
  node_full: "The server is busy. Try again soon.",
  not_an_approver: "Its rule names other people. The details tell whom.",
  not_by_requester: "An approver who has not contributed to the conversation must decide.",
  unauthenticated: "Sign in again.",
};

/** Returns the texts of an error: what happened, and what to do. */
export function describe(error: unknown): { title: string; advice?: string | undefined; code?: string } {
  if (error instanceof ProblemError) {
    const { detail, title, code } = error.problem;
    return { title: detail || title || `The server answered ${error.status}.`, advice: advice[code], code };
  }
  if (error instanceof ConnectionLostError || error instanceof TypeError) {
    return { title: "The server does not answer.", advice: "Check that Perdure runs. The page tries again when you do." };
  }
  return { title: error instanceof Error ? error.message : String(error) };
}

/** An error, with what to do about it. */
export function Problem({ error, onRetry, children }: { error: unknown; onRetry?: () => void; children?: ReactNode }) {
  const { title, advice: hint, code } = describe(error);
  return (
    <div className={styles.problem} role="alert">
      <p>
        <strong>{title}</strong> {code !== undefined && <code className={styles.code}>{code}</code>}
      </p>
      {hint !== undefined && <p>{hint}</p>}
      {children}
      {onRetry && <Button onPress={onRetry}>Try again</Button>}
    </div>
  );
}
