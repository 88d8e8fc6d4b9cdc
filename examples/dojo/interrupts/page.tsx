import type { Decision } from "@perdure/client";
import { useInterrupts, useThread } from "@perdure/client/react";
import { type FormEvent, useState } from "react";
import type { Call } from "../chat/calls";
import { Composer } from "../chat/Composer";
import { Page, show } from "../chat/Page";
import { client, threadId } from "../chat/thread";
import { Transcript } from "../chat/Transcript";

const options = { agent: "interrupts", threadId: threadId() };

interface Transfer {
  to: string;
  amount: number;
}

/** Shows a call of transfer_money: the form while the call waits for an approval, and then the result. */
function TransferCall({ id, args, result }: Call) {
  const { interrupts, store } = useInterrupts(client, options);
  const interrupt = interrupts.find(({ toolCallId }) => toolCallId === id);
  if (!interrupt) return <div className="card">{result ?? "Transferring …"}</div>;
  return <ApprovalForm message={interrupt.message ?? ""} proposed={args as Transfer} decide={(decision) => store.decide(interrupt.id, decision)} />;
}

interface ApprovalProps {
  message: string;
  proposed: Transfer;
  decide: (decision: Decision) => Promise<unknown>;
}

function ApprovalForm({ message, proposed, decide }: ApprovalProps) {
  const [transfer, setTransfer] = useState(proposed);
  const [reason, setReason] = useState("");
  const [error, setError] = useState("");
  const isEdited = transfer.to !== proposed.to || transfer.amount !== proposed.amount;
  const send = (decision: Decision) => void decide(decision).catch((reason) => setError(reason.message));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    send(isEdited ? { decision: "edit", args: { ...transfer } } : { decision: "approve" });
  };
  return (
    <form aria-label="Approval" onSubmit={submit}>
      <fieldset>
        <legend>{message}</legend>
        <label>To <input required value={transfer.to} onChange={(event) => setTransfer({ ...transfer, to: event.target.value })} /></label>
        <label>Amount <input type="number" required min={1} value={transfer.amount} onChange={(event) => setTransfer({ ...transfer, amount: Number(event.target.value) })} /></label>
        <label>Reason for a denial <input value={reason} onChange={(event) => setReason(event.target.value)} /></label>
        {error && <p role="alert">{error}</p>}
        <div className="buttons">
          <button>{isEdited ? "Approve with changes" : "Approve"}</button>
          <button type="button" onClick={() => send({ decision: "reject", ...(reason && { reason }) })}>Deny</button>
        </div>
      </fieldset>
    </form>
  );
}

function Interrupts() {
  const thread = useThread(client, options);
  return (
    <Page>
      <Transcript messages={thread.messages} tools={{ transfer_money: TransferCall }} />
      <Composer thread={thread} suggestions={["Send 120 to Ada.", "Send 75 to Grace."]} />
    </Page>
  );
}

show(<Interrupts />);
