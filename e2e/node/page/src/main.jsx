// Shows the thread that the fragment of the URL names, and reports each snapshot to the driver of the browser.
import { PerdureClient } from "@perdure/client";
import { useRun, useThread } from "@perdure/client/react";
import { StrictMode, useEffect } from "react";
import { createRoot } from "react-dom/client";

const client = new PerdureClient({ baseUrl: location.origin });
const options = { threadId: location.hash.slice(1), agent: "writer" };

function Thread() {
  const { messages, connection, store } = useThread(client, options);
  const { status } = useRun(client, options);
  useEffect(() => {
    window.store = store;
    void window.report({ messages, connection, status });
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
