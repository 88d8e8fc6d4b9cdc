import { type PerdureClient, textOf } from "@perdure/client";
import { useThread } from "@perdure/client/react";
import { type FormEvent, useState } from "react";
import { Approvals } from "./Approvals";

export interface ThreadProps {
  client: PerdureClient;
  options: { agent: string; threadId: string };
}

export function Chat({ client, options }: ThreadProps) {
  const { messages, run, connection, store } = useThread(client, options);
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

  return (
    <>
      <ol>
        {messages
          .filter((message) => (message.role === "user" || message.role === "assistant") && textOf(message))
          .map((message) => <li key={message.id} className={message.role}>{textOf(message)}</li>)}
      </ol>
      <Approvals client={client} options={options} />
      {connection === "reconnecting" && <p>Reconnecting …</p>}
      {run.error && <p role="alert">The run failed: {run.error.message}</p>}
      {error && <p role="alert">{error}</p>}
      <form onSubmit={submit}>
        <input aria-label="Message" autoFocus value={text} onChange={(event) => setText(event.target.value)} placeholder="What is 12*7?" />
        <button disabled={text === "" || run.status === "running"}>Send</button>
        <button type="button" disabled={run.status !== "running"} onClick={() => store.cancel()}>Stop</button>
      </form>
    </>
  );
}
