import { useInterrupts, useThread } from "@perdure/client/react";
import { type FormEvent, useState } from "react";
import type { Call } from "../chat/calls";
import { Composer } from "../chat/Composer";
import { Page, show } from "../chat/Page";
import { client, threadId } from "../chat/thread";
import { Transcript } from "../chat/Transcript";

// The model calls the tool of the page, and the user makes its result.
const confirmPlan = {
  name: "confirm_plan",
  description: "Asks the user which steps of a plan to do. The user may edit them.",
  parameters: {
    type: "object",
    properties: { steps: { type: "array", items: { type: "string" }, description: "Short imperatives, in order." } },
    required: ["steps"],
  },
};
const options = { agent: "human-in-the-loop", threadId: threadId(), tools: [confirmPlan] };

/** Shows a call of confirm_plan: the form while the call waits for its result, and then the result. */
function Plan({ id, args, result }: Call) {
  const { toolCalls, store } = useInterrupts(client, options);
  if (result !== undefined) return <div className="card">{result}</div>;
  if (!toolCalls.some(({ toolCallId }) => toolCallId === id)) return <div className="card">Planning …</div>;
  const answer = (content: string) => store.sendToolResult({ toolCallId: id, content });
  return <PlanForm proposed={args?.steps} answer={answer} />;
}

function PlanForm({ proposed, answer }: { proposed: string[]; answer: (text: string) => Promise<unknown> }) {
  const [steps, setSteps] = useState(() => proposed.map((text) => ({ text, isSelected: true })));
  const [error, setError] = useState("");
  const change = (index: number, part: { text?: string; isSelected?: boolean }) =>
    setSteps(steps.map((step, i) => (i === index ? { ...step, ...part } : step)));
  const send = (text: string) => void answer(text).catch((reason) => setError(reason.message));

  const selected = steps.filter(({ isSelected }) => isSelected).map(({ text }) => text);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    send(`Confirmed: ${selected.join("; ")}.`);
  };
  return (
    <form className="card" aria-label="Plan" onSubmit={submit}>
      {steps.map(({ text, isSelected }, index) => (
        <div key={index} className="buttons">
          <input type="checkbox" aria-label={`Do step ${index + 1}`} checked={isSelected} onChange={(event) => change(index, { isSelected: event.target.checked })} />
          <input aria-label={`Step ${index + 1}`} value={text} disabled={!isSelected} onChange={(event) => change(index, { text: event.target.value })} />
        </div>
      ))}
      {error && <p role="alert">{error}</p>}
      <div className="buttons">
        <button disabled={selected.length === 0}>Confirm</button>
        <button type="button" onClick={() => send("Rejected: do none of the steps.")}>Reject</button>
      </div>
    </form>
  );
}

function HumanInTheLoop() {
  const thread = useThread(client, options);
  return (
    <Page>
      <Transcript messages={thread.messages} tools={{ confirm_plan: Plan }} />
      <Composer thread={thread} suggestions={["Plan a weekend at the sea."]} />
    </Page>
  );
}

show(<HumanInTheLoop />);
