import type { Message } from "@ag-ui/client";
import { useThread } from "@perdure/client/react";
import { type Call, textOf } from "../chat/calls";
import { Composer } from "../chat/Composer";
import { Page, show } from "../chat/Page";
import { client, threadId } from "../chat/thread";
import { Messages, Transcript } from "../chat/Transcript";

const options = { agent: "subagents", threadId: threadId() };

/** Returns the messages of a subagent; without an ID, those of the supervisor. */
const messagesOf = (messages: readonly Message[], subagentRunId?: string) =>
  messages.filter((message) => message.subagentRunId === subagentRunId);

/** Shows a call of a subagent: the task, the work so far, and an error. */
function Subagent({ id, name, draft: { task }, result }: Call) {
  const { messages } = useThread(client, options);
  const work = messagesOf(messages, id.replace("call_", "sub_")); // the ID of the subagent that works for a call
  const isFailed = result !== undefined && result !== work.map(textOf).at(-1);
  return (
    <section className="card" aria-label={name} aria-busy={result === undefined}>
      <strong>{name}{result === undefined && " is working …"}</strong>
      <em>{task}</em>
      <Messages messages={work} tools={subagents} />
      {isFailed && <p role="alert">{result}</p>}
    </section>
  );
}

const subagents = { historian: Subagent, chemist: Subagent, writer: Subagent };

function Subagents() {
  const thread = useThread(client, options);
  return (
    <Page>
      <Transcript messages={messagesOf(thread.messages)} tools={subagents} />
      <Composer thread={thread} suggestions={["Write about tea.", "Write about lemonade."]} />
    </Page>
  );
}

show(<Subagents />);
