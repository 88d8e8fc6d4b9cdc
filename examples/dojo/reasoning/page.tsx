import type { Message } from "@ag-ui/client";
import { textOf } from "@perdure/client";
import { useThread } from "@perdure/client/react";
import { Composer } from "../chat/Composer";
import { Page, show } from "../chat/Page";
import { client, threadId } from "../chat/thread";
import { Transcript } from "../chat/Transcript";

const options = { agent: "reasoning", threadId: threadId() };

function Reasoning() {
  const thread = useThread(client, options);
  const isRunning = thread.run.status === "running";

  /** Shows reasoning: open while it is the last message of an active run, and folded afterwards. */
  const render = (message: Message) => {
    if (message.role !== "reasoning") return undefined;
    const isThinking = isRunning && message.id === thread.messages.at(-1)?.id;
    return (
      <details key={String(isThinking)} open={isThinking}>
        <summary>{isThinking ? "Thinking …" : "Thought"}</summary>
        <p>{textOf(message)}</p>
      </details>
    );
  };

  return (
    <Page>
      <Transcript messages={thread.messages} render={render} />
      <Composer thread={thread} suggestions={["A bat and a ball cost 1.10. The bat costs 1 more than the ball. What does the ball cost?"]} />
    </Page>
  );
}

show(<Reasoning />);
