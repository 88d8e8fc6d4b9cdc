// Shows the thread that the fragment of the URL names. Its driver sends messages with window.store, and reads in
// window.connections what the page has shown of the connection.
import { PerdureClient } from "@perdure/client";
import { useRun, useThread } from "@perdure/client/react";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

// The pauses are short, so that a test can measure what follows them.
const client = new PerdureClient({ baseUrl: location.origin, retry: { maxDelay: 1000 } });
const options = { threadId: location.hash.slice(1), agent: "writer" };
window.connections = [];

function Thread() {
  const { messages, connection, transport, store } = useThread(client, options);
  const { status } = useRun(client, options);
  window.store = store;
  if (window.connections.at(-1) !== connection) window.connections.push(connection);
  return (
    <main className={`${status} ${connection} ${transport}`}>
      <p>{connection}</p>
      <ol>
        {messages.map(({ id, role, content }) => (
          <li key={id} className={role}>
            {String(content ?? "")}
          </li>
        ))}
      </ol>
    </main>
  );
}

createRoot(document.getElementById("root")).render(
  <StrictMode>
    <Thread />
  </StrictMode>,
);
