import { awaitedBy } from "@perdure/client";
import type { OpenInterrupt } from "@perdure/client/react";
import { type FocusEvent, useEffect, useMemo, useRef, useState } from "react";
import { Arguments } from "../../components/decision_arguments";
import { argumentsText, isSignOff } from "../../components/decision_text";
import { AgentIcon, ForwardIcon, ToolIcon } from "../../components/icons";
import { safeText } from "../../components/safe_text";
import { CallStatus } from "./call_status";
import { ClientToolCall } from "./client_tool_call";
import { ContentView } from "./content_view";
import { useConversation } from "./conversation_context";
import { WorkView } from "./entry_view";
import { InterruptView } from "./interrupt_view";
import { LongText } from "./long_text";
import styles from "./tool_call.module.css";
import type { ToolCall, ToolMessage, Work } from "./transcript";

/** Properties of a ToolCallView. */
export interface ToolCallViewProps {
  call: ToolCall;
  result: ToolMessage | undefined;
  /** What the subagent of the call has done. */
  work: Work | undefined;
}

/** A tool call with its arguments and its result, the work of its subagent, and what it waits for. */
export function ToolCallView({ call, result, work }: ToolCallViewProps) {
  const { interrupts, toolCalls, isRunning } = useConversation();
  const [choice, setChoice] = useState<boolean>();
  const interrupt = interrupts.get(call.id);
  const pending = toolCalls.get(call.id);
  const isWait = interrupt !== undefined && awaitedBy(interrupt) !== undefined;
  const isWaiting = interrupt !== undefined || pending !== undefined;
  const isOpen = choice ?? (isWaiting || work?.subagent.status === "running" || work?.subagent.status === "suspended");
  const status = statusOf({ isWaiting, isRunning, result, work });
  const args = useArguments(call.function.arguments);
  const focus = useKeptFocus(isWaiting);
  return (
    <details className={styles.call} {...focus} data-waiting={isWaiting || undefined} open={isOpen} onToggle={(event) => event.currentTarget.open !== isOpen && setChoice(event.currentTarget.open)}>
      <summary>
        <span className={styles.chevron}><ForwardIcon /></span>
        {work ? <AgentIcon /> : <ToolIcon />}
        <span className={`mono ${styles.name}`}>{safeText(nameOf(call, interrupt))}</span>
        <span className={`mono truncate ${styles.preview}`}>{preview(args)}</span>
        <CallStatus value={status} {...(pending && { text: "waits for you" })} />
      </summary>
      {isOpen && (
        <div className={styles.body}>
          {(interrupt?.approval === undefined && !isWait) || work ? <CallArguments args={args} /> : null}
          {work && <WorkView work={work} />}
          {interrupt && <InterruptView interrupt={interrupt} args={args.value} toolName={call.function.name} />}
          {pending && <ClientToolCall call={pending} />}
          {result && !hasWritten(work, result) && <Result result={result} />}
        </div>
      )}
    </details>
  );
}

// An approval that a step of a pipeline asks for has the name of the step, while it is open.
function nameOf({ function: { name } }: ToolCall, interrupt: OpenInterrupt | undefined): string {
  const { approval } = interrupt ?? {};
  return approval && isSignOff(approval) ? approval.step! : name;
}

// When the call stops waiting, the element with the focus leaves the page. The summary of the call then gets the focus.
function useKeptFocus(isWaiting: boolean) {
  const element = useRef<HTMLDetailsElement>(null);
  const hadFocus = useRef(false);
  useEffect(() => {
    if (!isWaiting && hadFocus.current && document.activeElement === document.body) element.current?.querySelector("summary")?.focus({ preventScroll: true });
    hadFocus.current = false;
  }, [isWaiting]);
  return {
    ref: element,
    onFocus: () => void (hadFocus.current = true),
    onBlur: ({ relatedTarget }: FocusEvent) => void (hadFocus.current = relatedTarget === null || (element.current?.contains(relatedTarget) ?? false)),
  };
}

function statusOf({ isWaiting, isRunning, result, work }: { isWaiting: boolean; isRunning: boolean; result: ToolMessage | undefined; work: Work | undefined }): string {
  if (isWaiting) return "waiting";
  if (result) return result.error ? "failed" : "finished";
  if (work && work.subagent.status !== "finished") return work.subagent.status;
  return isRunning ? "running" : "cancelled";
}

// The result of a subagent is its last message.
function hasWritten(work: Work | undefined, { content }: ToolMessage): boolean {
  const last = work?.entries.at(-1);
  return last?.kind === "text" && last.message.content === content;
}

interface ParsedArguments {
  text: string;
  /** Absent while the arguments are incomplete. */
  value?: unknown;
}

function useArguments(text: string): ParsedArguments {
  return useMemo(() => {
    try {
      return { text, value: text.trim() === "" ? {} : (JSON.parse(text) as unknown) };
    } catch {
      return { text };
    }
  }, [text]);
}

const longestPreview = 160;
const largestPreviewed = 10_000;

function preview({ text, value }: ParsedArguments): string {
  const line = value === undefined || text.length > largestPreviewed ? text : argumentsText(value);
  return safeText(line.slice(0, longestPreview).replaceAll(/\s+/g, " "));
}

function CallArguments({ args: { text, value } }: { args: ParsedArguments }) {
  return (
    <section className={styles.part} aria-label="Arguments">
      <h3>Arguments</h3>
      {value === undefined ? <LongText text={text} /> : <Arguments value={value} />}
    </section>
  );
}

function Result({ result: { content, error } }: { result: ToolMessage }) {
  return (
    <section className={styles.part} aria-label="Result">
      <h3>{error ? "Failed" : "Result"}</h3>
      {error && <p className={styles.failure}>{safeText(error.slice(0, 2_000))}</p>}
      {content !== error && <ContentView content={content} />}
    </section>
  );
}
