import { textOf } from "@perdure/client";
import { memo, useState } from "react";
import { argumentsText } from "../../components/decision_text";
import { AgentIcon, ForwardIcon } from "../../components/icons";
import { JSONView } from "../../components/json_view";
import { safeText } from "../../components/safe_text";
import { Branch } from "./branch";
import { CopyButton } from "./copy_button";
import { elementID } from "./element_id";
import styles from "./entry_view.module.css";
import { LongText } from "./long_text";
import { Prose } from "./prose";
import { StructuredAnswer, useStructured } from "./structured_answer";
import { ToolCallView } from "./tool_call";
import { type Entry, isSameEntry, type Work } from "./transcript";
import { UserMessageView } from "./user_message";

/** Properties of an EntryView. */
export interface EntryViewProps {
  entry: Entry;
  /** Whether the run is writing this entry. */
  isActive: boolean;
}

/** An entry of the transcript. */
export const EntryView = memo(function EntryView({ entry, isActive }: EntryViewProps) {
  return (
    <div id={elementID(entry.key)} className={styles.entry} data-kind={entry.kind}>
      <Content entry={entry} isActive={isActive} />
    </div>
  );
}, (a, b) => a.isActive === b.isActive && isSameEntry(a.entry, b.entry));

function Content({ entry, isActive }: EntryViewProps) {
  switch (entry.kind) {
    case "user":
      return <UserMessageView message={entry.message} />;
    case "text":
      return <Answer text={textOf(entry.message)} isActive={isActive} />;
    case "reasoning":
      return <Reasoning text={entry.message.content} isActive={isActive} />;
    case "call":
      return <ToolCallView call={entry.call} result={entry.result} work={entry.work} />;
    case "handoff":
      return <p className={styles.handoff}><AgentIcon /> {safeText(entry.agent)} answers now</p>;
    case "branch":
      return <Branch work={entry.work} />;
    case "activity":
      return <Activity type={entry.message.activityType} content={entry.message.content} />;
    case "instructions":
      return <Instructions role={entry.message.role} text={textOf(entry.message)} />;
  }
}

function Answer({ text, isActive }: { text: string; isActive: boolean }) {
  const value = useStructured(text, isActive);
  return (
    <div className={styles.answer}>
      {value === undefined ? <Prose text={text} /> : <StructuredAnswer value={value} />}
      {!isActive && <span className={styles.tools}><CopyButton label="Copy the answer" text={text} /></span>}
    </div>
  );
}

const Chevron = () => <span className={styles.chevron}><ForwardIcon /></span>;

// It is open while the model reasons, until the reader has chosen.
function Reasoning({ text, isActive }: { text: string; isActive: boolean }) {
  const [choice, setChoice] = useState<boolean>();
  const isOpen = choice ?? isActive;
  return (
    <details className={styles.reasoning} open={isOpen} onToggle={(event) => event.currentTarget.open !== isOpen && setChoice(event.currentTarget.open)}>
      <summary><Chevron /> {isActive ? "Thinking …" : "Reasoning"}</summary>
      <div className={styles.thought}><LongText text={text} isMono={false} /></div>
    </details>
  );
}

/** What a subagent or a branch has done. */
export function WorkView({ work: { entries, subagent } }: { work: Work }) {
  const isWorking = subagent.status === "running";
  return (
    <div className={styles.work} role="group" aria-label={`Work of ${safeText(subagent.name)}`}>
      {entries.map((entry, i) => <EntryView key={entry.key} entry={entry} isActive={isWorking && i === entries.length - 1} />)}
      {entries.length === 0 && <p className="muted">{isWorking ? "It has not written anything yet." : "It has written nothing."}</p>}
      {subagent.error && <p className={styles.failure}>{safeText(subagent.error.message)}</p>}
    </div>
  );
}

function Activity({ type, content }: { type: string; content: Record<string, unknown> }) {
  const { message, progress, total } = content as { message?: unknown; progress?: unknown; total?: unknown };
  const isProgress = typeof progress === "number" && typeof total === "number" && total > 0;
  const isFlat = Object.values(content).every((value) => typeof value !== "object" || value === null);
  const text = typeof message === "string" ? message : isFlat && !isProgress ? argumentsText(content) : undefined;
  return (
    <div className={styles.activity}>
      <p><span className="muted">{safeText(type)}</span> {text !== undefined && safeText(text)}</p>
      {isProgress && <progress value={progress} max={total} aria-label={safeText(type)} />}
      {!isProgress && text === undefined && <JSONView value={content} depth={1} />}
    </div>
  );
}

function Instructions({ role, text }: { role: string; text: string }) {
  return (
    <details className={styles.reasoning}>
      <summary><Chevron /> {role === "system" ? "System message" : "Developer message"}</summary>
      <div className={styles.thought}><LongText text={text} isMono={false} /></div>
    </details>
  );
}
