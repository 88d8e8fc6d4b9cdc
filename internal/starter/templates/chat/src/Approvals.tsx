import type { Decision, PerdureClient } from "@perdure/client";
import { type OpenInterrupt, useInterrupts } from "@perdure/client/react";
import { useState } from "react";

interface Props {
  client: PerdureClient;
  options: { threadId: string; agent: string };
}

export function Approvals({ client, options }: Props) {
  const { interrupts, store } = useInterrupts(client, options);
  return interrupts
    .filter(({ metadata }) => !metadata?.["perdure.question"])
    .map((interrupt) => <Approval key={interrupt.id} {...interrupt} decide={(decision) => store.decide(interrupt.id, decision)} />);
}

function Approval({ message, approval, decide }: OpenInterrupt & { decide: (decision: Decision) => Promise<unknown> }) {
  const [error, setError] = useState("");
  const [isSending, setIsSending] = useState(false); // also while the server is not there
  const submit = (decision: Decision) => {
    setError("");
    setIsSending(true);
    decide(decision)
      .catch((reason) => setError(reason.message))
      .finally(() => setIsSending(false));
  };
  return (
    <fieldset disabled={isSending}>
      <legend>{message}</legend>
      <pre>{JSON.stringify(approval?.args, null, 2)}</pre>
      <button onClick={() => submit({ decision: "approve" })}>Approve</button>
      <button onClick={() => submit({ decision: "reject", reason: "Not now." })}>Reject</button>
      {error && <p role="alert">{error}</p>}
    </fieldset>
  );
}
