// Shows the thread that the fragment of the URL names. Its driver sends messages with window.store.
import { PerdureClient } from "@perdure/client";
import { useRun, useThread } from "@perdure/client/react";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

const client = new PerdureClient({ baseUrl: location.origin });
const options = { threadId: location.hash.slice(1), agent: "writer" };

function Thread() {
  const { messages, connection, transport, store } = useThread(client, options);
  const { status } = useRun(client, options);
  window.store = store;
  return (
    <ol className={`${status} ${connection} ${transport}`}>
      {messages.map(({ id, role, content }) => (
        <li key={id} className={role}>
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
