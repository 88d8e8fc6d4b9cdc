import type { Decision } from "@perdure/client";
import { useInterrupts, useThread } from "@perdure/client/react";
import { useState } from "react";
import type { Call } from "../chat/calls";
import { Composer } from "../chat/Composer";
import { Page, show } from "../chat/Page";
import { client, threadId } from "../chat/thread";
import { Transcript } from "../chat/Transcript";

interface State {
  document?: string;
}

const options = { agent: "predictive-state-updates", threadId: threadId() };

/** Shows a call of update_state: it asks the user about the text, which is in the document already. */
function Change({ id, result }: Call) {
  const { interrupts, store } = useInterrupts(client, options);
  const [error, setError] = useState("");
  const interrupt = interrupts.find(({ toolCallId }) => toolCallId === id);
  if (!interrupt) return <div className="card">{result ?? "Writing …"}</div>;
  const decide = (decision: Decision) => void store.decide(interrupt.id, decision).catch((reason) => setError(reason.message));
  return (
    <form className="card" aria-label="Change" onSubmit={(event) => event.preventDefault()}>
      <p>Keep the new text?</p>
      {error && <p role="alert">{error}</p>}
      <div className="buttons">
        <button type="button" onClick={() => decide({ decision: "approve" })}>Confirm</button>
        <button type="button" onClick={() => decide({ decision: "reject" })}>Reject</button>
      </div>
    </form>
  );
}

function PredictiveStateUpdates() {
  const thread = useThread<State>(client, options);
  return (
    <Page>
      <section className="card document" aria-label="Document">{thread.state?.document ?? "The document is empty."}</section>
      <Transcript messages={thread.messages} tools={{ update_state: Change }} />
      <Composer thread={thread} suggestions={["Write a story about a dragon.", "Write a story about a pirate."]} />
    </Page>
  );
}

show(<PredictiveStateUpdates />);
