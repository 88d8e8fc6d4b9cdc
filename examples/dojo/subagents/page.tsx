import type { Message } from "@ag-ui/client";
import { textOf } from "@perdure/client";
import { useThread } from "@perdure/client/react";
import type { Call } from "../chat/calls";
import { Composer } from "../chat/Composer";
import { Page, show } from "../chat/Page";
import { client, threadId } from "../chat/thread";
import { Messages, Transcript } from "../chat/Transcript";

const options = { agent: "subagents", threadId: threadId() };

/** Returns the messages of a subagent; without an ID, those of the supervisor. */
const messagesOf = (messages: readonly Message[], subagentRunId?: string) =>
  messages.filter((message) => message.subagentRunId === subagentRunId);

/** Shows a call of a subagent: its status, the task, the work so far, and a result that the work does not show. */
function Subagent({ id, name, draft: { task }, result }: Call) {
  const { messages, subagents } = useThread(client, options);
  const subagent = subagents.find(({ toolCallId }) => toolCallId === id);
  const status = subagent?.status ?? (result === undefined ? "running" : "finished");
  const work = subagent ? messagesOf(messages, subagent.id) : [];
  const isError = result !== undefined && result !== work.map(textOf).at(-1);
  return (
    <section className="card" aria-label={name} aria-busy={status === "running"}>
      <strong>{name}: {status}</strong>
      <em>{task}</em>
      <Messages messages={work} tools={tools} />
      {isError && <p role="alert">{result}</p>}
    </section>
  );
}

const tools = { historian: Subagent, chemist: Subagent, writer: Subagent };

function Subagents() {
  const thread = useThread(client, options);
  return (
    <Page>
      <Transcript messages={messagesOf(thread.messages)} tools={tools} />
      <Composer thread={thread} suggestions={["Write about tea.", "Write about lemonade."]} />
    </Page>
  );
}

show(<Subagents />);
