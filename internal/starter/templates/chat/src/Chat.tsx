import { type PerdureClient, textOf } from "@perdure/client";
import { useThread } from "@perdure/client/react";
import { type FormEvent, useState } from "react";
import { Approvals } from "./Approvals";
import { Questions } from "./Questions";

interface Props {
  client: PerdureClient;
  options: { threadId: string; agent: string };
}

export function Chat({ client, options }: Props) {
  const { messages, run, interrupts, connection, connectionError, store } = useThread(client, options);
  const [text, setText] = useState("");
  const [error, setError] = useState("");

  const submit = (event: FormEvent) => {
    event.preventDefault();
    setText("");
    setError("");
    store.send(text).catch((reason) => {
      setText(text);
      setError(reason.message);
    });
  };
  const isWaiting = interrupts.length > 0;

  return (
    <>
      <ol>
        {messages
          .filter((message) => (message.role === "user" || message.role === "assistant") && textOf(message))
          .map((message) => <li key={message.id} className={message.role}>{textOf(message)}</li>)}
      </ol>
      <Approvals client={client} options={options} />
      <Questions client={client} options={options} />
      {isWaiting && <p role="status">The agent waits for a decision. Then you can send the next message.</p>}
      {connection === "connecting" && <p role="status">Connecting …</p>}
      {connection === "reconnecting" && <p role="status">Reconnecting …</p>}
      {connectionError && <p role="alert">The connection is lost: {connectionError.message} <button onClick={() => store.reconnect()}>Reconnect</button></p>}
      {run.error && !connectionError && <p role="alert">The run failed: {run.error.message}</p>}
      {error && <p role="alert">{error}</p>}
      <form onSubmit={submit}>
        <input aria-label="Message" autoFocus value={text} onChange={(event) => setText(event.target.value)} placeholder="What is 12*7?" />
        <button disabled={text === "" || run.status === "running" || isWaiting}>Send</button>
        <button type="button" disabled={run.status !== "running"} onClick={() => store.cancel().catch((reason) => setError(reason.message))}>Stop</button>
      </form>
    </>
  );
}
