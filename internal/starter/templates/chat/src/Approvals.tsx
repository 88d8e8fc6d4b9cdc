import { useInterrupts } from "@perdure/client/react";
import type { ThreadProps } from "./Chat";

/** Asks the user about the tool calls that wait for an approval. */
export function Approvals({ client, options }: ThreadProps) {
  const { interrupts, store } = useInterrupts(client, options);
  return interrupts.map(({ id, message, approval }) => (
    <fieldset key={id}>
      <legend>{message}</legend>
      <pre>{JSON.stringify(approval?.args, null, 2)}</pre>
      <button onClick={() => store.decide(id, { decision: "approve" })}>Approve</button>
      <button onClick={() => store.decide(id, { decision: "reject" })}>Reject</button>
    </fieldset>
  ));
}
