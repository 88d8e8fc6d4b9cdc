// Shows the thread that the fragment of the URL names, and reports each snapshot to the driver of the browser.
import { PerdureClient } from "@perdure/client";
import { useInterrupts, useRun, useThread } from "@perdure/client/react";
import { StrictMode, useEffect } from "react";
import { createRoot } from "react-dom/client";

const client = new PerdureClient({ baseUrl: location.origin });
const options = { threadId: location.hash.slice(1), agent: "writer" };

function Thread() {
  const { messages, connection, isSending, store } = useThread(client, options);
  const { status } = useRun(client, options);
  const { interrupts } = useInterrupts(client, options);
  useEffect(() => {
    window.store = store;
    void window.report({ messages, connection, isSending, status, interrupts: interrupts.map(({ id }) => id) });
  });
  return (
    <ol>
      {messages.map(({ id, role, content }) => (
        <li key={id} data-role={role}>
          {String(content ?? "")}
        </li>
      ))}
    </ol>
  );
}

createRoot(document.getElementById("root")).render(
  <StrictMode>
    <Thread />
  </StrictMode>,
);
