import type { ContentPart } from "@perdure/client";
import type { ThreadHook } from "@perdure/client/react";
import { type FormEvent, type ReactNode, useState } from "react";

const connections = { connecting: "Connecting …", connected: "", reconnecting: "Reconnecting …", closed: "" };
const statuses = { idle: "", running: "The agent is working …", waiting: "The agent is waiting for you." };

interface Props {
  thread: ThreadHook<unknown>;
  /** Messages that the user can send with a click. */
  suggestions?: string[];
  /** Parts of the next message after its text. */
  attachments?: ContentPart[];
  /** The state with which the next run begins. Absent: the state of the thread. */
  state?: unknown;
  /** Called when a message with the attachments is sent. */
  onSend?: () => void;
  /** Shown above the field of the message. */
  children?: ReactNode;
}

/** Sends messages, stops runs, and shows the status of the thread. */
export function Composer({ thread: { run, connection, connectionError, store }, suggestions = [], attachments = [], state, onSend, children }: Props) {
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  const isRunning = run.status === "running";

  const send = (message: string) => {
    setError("");
    const content: ContentPart[] = [...(message ? [{ type: "text" as const, text: message }] : []), ...attachments];
    store.send(attachments.length ? content : message, state === undefined ? {} : { state }).catch((reason) => {
      setText(message);
      setError(reason.message);
    });
    onSend?.();
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setText("");
    send(text);
  };
  const failure = error || connectionError?.message || run.error?.message;

  return (
    <footer>
      <p role="status">{connections[connection] || statuses[run.status]}</p>
      {failure && <p role="alert">{failure}</p>}
      <div className="suggestions" role="group" aria-label="Suggestions">
        {suggestions.map((message) => (
          <button key={message} type="button" disabled={isRunning} onClick={() => send(message)}>{message}</button>
        ))}
      </div>
      {children}
      <form className="composer" onSubmit={submit}>
        <input aria-label="Message" autoFocus value={text} onChange={(event) => setText(event.target.value)} />
        <button disabled={(text === "" && !attachments.length) || isRunning}>Send</button>
        <button type="button" disabled={!isRunning} onClick={() => store.cancel()}>Stop</button>
      </form>
    </footer>
  );
}
