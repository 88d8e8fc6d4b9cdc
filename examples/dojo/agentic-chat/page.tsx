import { useThread } from "@perdure/client/react";
import { callsOf, useClientTool } from "../chat/calls";
import { Composer } from "../chat/Composer";
import { Page, show } from "../chat/Page";
import { client, threadId } from "../chat/thread";
import { Transcript } from "../chat/Transcript";

// The page declares the tool. The agent allows it with tools: ["client:change_background"].
const changeBackground = {
  name: "change_background",
  description: "Changes the background of the page.",
  parameters: {
    type: "object",
    properties: { background: { type: "string", description: "A value of the CSS property background, such as a gradient." } },
    required: ["background"],
  },
};
const options = { agent: "agentic-chat", threadId: threadId(), tools: [changeBackground] };

function AgenticChat() {
  const thread = useThread(client, options);
  useClientTool(thread, changeBackground.name, () => "The background has changed.");

  // The background follows from the conversation, so that a reload and another tab show it too.
  const calls = callsOf(thread.messages).filter(({ name, args }) => name === changeBackground.name && args);
  return (
    <Page style={{ background: calls.at(-1)?.args?.background }}>
      <Transcript messages={thread.messages} />
      <Composer thread={thread} suggestions={["Make the background teal.", "What can you do?"]} />
    </Page>
  );
}

show(<AgenticChat />);
