import { useThread } from "@perdure/client/react";
import { Composer } from "../chat/Composer";
import { Page, show } from "../chat/Page";
import { client, threadId } from "../chat/thread";
import { Transcript } from "../chat/Transcript";

interface State {
  task?: { text: string; done: boolean }[];
}

const options = { agent: "agentic-generative-ui", threadId: threadId() };

/** The steps of the task in the state. The agent ticks them off. */
function Task({ steps }: { steps: NonNullable<State["task"]> }) {
  const done = steps.filter((step) => step.done).length;
  return (
    <section className="card" aria-label="Task">
      <progress value={done} max={steps.length} aria-label="Progress" />
      {steps.map((step, index) => (
        <label key={index}><input type="checkbox" readOnly checked={step.done} onClick={(event) => event.preventDefault()} /> {step.text}</label>
      ))}
    </section>
  );
}

function AgenticGenerativeUI() {
  const thread = useThread<State>(client, options);
  const steps = thread.state?.task;
  return (
    <Page>
      <Transcript messages={thread.messages} />
      {steps && <Task steps={steps} />}
      <Composer thread={thread} suggestions={["Go to Mars.", "Make a good day of it."]} />
    </Page>
  );
}

show(<AgenticGenerativeUI />);
