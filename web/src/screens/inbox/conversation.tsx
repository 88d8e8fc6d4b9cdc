import type { Message } from "@ag-ui/client";
import { type Approval, textOf } from "@perdure/client";
import { useThread } from "@perdure/client/react";
import { memo, useMemo } from "react";
import { Link } from "wouter";
import { argumentsText } from "../../components/decision_text";
import { Markdown } from "../../components/markdown";
import { safeText } from "../../components/safe_text";
import { paths } from "../../paths";
import { useClient } from "../../session";
import styles from "./conversation.module.css";

const shownMessages = 8;
const longestResult = 400;

/** The last messages of the conversation, live: an approver sees what led to the call, and what the agent does after the decision. */
export function Conversation({ approval, isReadable }: { approval: Approval; isReadable: boolean | undefined }) {
  return (
    <section aria-label="Conversation" className={styles.conversation}>
      <header className={styles.header}>
        <h3>Conversation</h3>
        {isReadable && <Link href={paths.thread(approval.threadId)}>Open the thread</Link>}
      </header>
      {isReadable === undefined && <p className="muted">Loading …</p>}
      {isReadable === false && <p className="muted">You may decide, but not read the thread. Its owner can share it with you.</p>}
      {isReadable && <Messages approval={approval} />}
    </section>
  );
}

function Messages({ approval: { threadId, agent, toolCallId } }: { approval: Approval }) {
  const options = useMemo(() => ({ threadId, agent }), [threadId, agent]);
  const { messages, connection } = useThread(useClient(), options);
  const shown = messages.slice(-shownMessages);
  return (
    <>
      {shown.length === 0 && <p className="muted">{connection === "closed" ? "The conversation cannot be read now." : "Loading …"}</p>}
      {messages.length > shown.length && <p className={styles.earlier}>{messages.length - shown.length} earlier messages</p>}
      {shown.map((message) => <Entry key={message.id} message={message} toolCallId={toolCallId} />)}
    </>
  );
}

const Entry = memo(function Entry({ message, toolCallId }: { message: Message; toolCallId: string }) {
  const text = textOf(message);
  const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
  if (text === "" && calls.length === 0) return null;
  return (
    <article className={styles.message} data-role={message.role} data-failed={(message.role === "tool" && message.error !== undefined) || undefined}>
      <h4 className={styles.role}>{message.role === "tool" && message.error ? "Failed" : (roleNames[message.role] ?? message.role)}</h4>
      <div className={styles.body}>
        {text !== "" && <Text message={message} text={text} />}
        {calls.map(({ id, function: { name, arguments: args } }) => (
          <p key={id} className={styles.call} data-current={id === toolCallId || undefined}>
            <strong>{safeText(name)}</strong> {id === toolCallId ? <span className={styles.here}>this call</span> : safeText(argumentsText(parsed(args)))}
          </p>
        ))}
      </div>
    </article>
  );
});

function Text({ message, text }: { message: Message; text: string }) {
  if (message.role === "assistant") return <Markdown text={text} />;
  if (message.role === "tool") return <p className={styles.result}>{safeText(text.length > longestResult ? text.slice(0, longestResult) + " …" : text)}</p>;
  return <p className={styles.plain}>{safeText(text)}</p>;
}

const roleNames: Record<string, string> = { user: "User", assistant: "Agent", tool: "Result", system: "System", developer: "Instructions", activity: "Activity", reasoning: "Reasoning" };

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // the model is still writing it
  }
}
