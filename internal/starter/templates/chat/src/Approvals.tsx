import type { Decision } from "@perdure/client";
import { useInterrupts } from "@perdure/client/react";
import { useState } from "react";
import type { ThreadProps } from "./Chat";

/** Asks the user about the tool calls that wait for an approval. */
export function Approvals({ client, options }: ThreadProps) {
  const { interrupts, store } = useInterrupts(client, options);
  const [error, setError] = useState("");
  const decide = (id: string, decision: Decision) => {
    setError("");
    store.decide(id, decision).catch((reason) => setError(reason.message));
  };
  return (
    <>
      {interrupts.map(({ id, message, approval }) => (
        <fieldset key={id}>
          <legend>{message}</legend>
          <pre>{JSON.stringify(approval?.args, null, 2)}</pre>
          <button onClick={() => decide(id, { decision: "approve" })}>Approve</button>
          <button onClick={() => decide(id, { decision: "reject" })}>Reject</button>
        </fieldset>
      ))}
      {error && <p role="alert">{error}</p>}
    </>
  );
}
