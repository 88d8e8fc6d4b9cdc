import { useThread } from "@perdure/client/react";
import { type Call, useClientTool } from "../chat/calls";
import { Composer } from "../chat/Composer";
import { Page, show } from "../chat/Page";
import { client, threadId } from "../chat/thread";
import { Transcript } from "../chat/Transcript";

// The arguments of the tool are the data of a card. Its result tells the model only that the user sees the card.
const generateHaiku = {
  name: "generate_haiku",
  description: "Shows a haiku to the user.",
  parameters: {
    type: "object",
    properties: {
      background: { type: "string", description: "A light background for the haiku: a value of the CSS property." },
      lines: { type: "array", items: { type: "string" }, minItems: 3, maxItems: 3 },
    },
    required: ["background", "lines"],
  },
};
const options = { agent: "tool-based-generative-ui", threadId: threadId(), tools: [generateHaiku] };

/** Draws a call of generate_haiku, as far as the model has written its arguments. */
function Haiku({ args, draft: { background, lines = [] } }: Call) {
  return (
    <section className="card haiku" aria-label="Haiku" aria-busy={!args} style={{ background }}>
      {lines.map((line: string, index: number) => <span key={index}>{line}</span>)}
    </section>
  );
}

function ToolBasedGenerativeUI() {
  const thread = useThread(client, options);
  useClientTool(thread, generateHaiku.name, () => "The page shows the haiku.");
  return (
    <Page>
      <Transcript messages={thread.messages} tools={{ generate_haiku: Haiku }} />
      <Composer thread={thread} suggestions={["Write a haiku about the sea.", "Write a haiku about old bicycles."]} />
    </Page>
  );
}

show(<ToolBasedGenerativeUI />);
