import type { ThreadHook } from "@perdure/client/react";
import { type FormEvent, useState } from "react";

const statuses = { idle: "", running: "The agent is working …", waiting: "The agent is waiting for you." };

interface Props {
  thread: ThreadHook<unknown>;
  /** Messages that the user can send with a click. */
  suggestions?: string[];
}

/** Sends messages, stops runs, and shows the status of the thread. */
export function Composer({ thread: { run, connection, connectionError, store }, suggestions = [] }: Props) {
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  const isRunning = run.status === "running";

  const send = (message: string) => {
    setError("");
    store.send(message).catch((reason) => setError(reason.message));
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setText("");
    send(text);
  };
  const failure = error || connectionError?.message || run.error?.message;

  return (
    <footer>
      <p role="status">{connection === "reconnecting" ? "Reconnecting …" : statuses[run.status]}</p>
      {failure && <p role="alert">{failure}</p>}
      <div className="suggestions" role="group" aria-label="Suggestions">
        {suggestions.map((message) => (
          <button key={message} type="button" disabled={isRunning} onClick={() => send(message)}>{message}</button>
        ))}
      </div>
      <form className="composer" onSubmit={submit}>
        <input aria-label="Message" autoFocus value={text} onChange={(event) => setText(event.target.value)} />
        <button disabled={text === "" || isRunning}>Send</button>
        <button type="button" disabled={!isRunning} onClick={() => store.cancel()}>Stop</button>
      </form>
    </footer>
  );
}
