import { PerdureClient } from "@perdure/client";
import { useEffect, useState } from "react";
import { Chat } from "./Chat";

const client = new PerdureClient({ baseUrl: location.origin });

/** Returns the agent and the thread in the fragment of the URL, so that a reload shows the same conversation. */
const address = () => location.hash.slice(1).split("/").map(decodeURIComponent);

const openThread = (agent: string) => {
  location.hash = `${encodeURIComponent(agent)}/${crypto.randomUUID()}`;
};

export function App() {
  const [agents, setAgents] = useState<string[]>([]);
  const [[agent, threadId], setAddress] = useState(address);
  const [error, setError] = useState("");

  useEffect(() => {
    const changed = () => setAddress(address());
    addEventListener("hashchange", changed);
    client
      .agents()
      .then((list) => {
        setAgents(list.map(({ name }) => name));
        if (location.hash === "" && list.length > 0) openThread(list[0].name);
      })
      .catch((reason) => setError(`Perdure does not answer: ${reason.message}`));
    return () => removeEventListener("hashchange", changed);
  }, []);

  return (
    <main>
      <header>
        <select aria-label="Agent" value={agent} onChange={(event) => openThread(event.target.value)}>
          {agents.map((name) => <option key={name}>{name}</option>)}
        </select>
        <button type="button" disabled={!agent} onClick={() => openThread(agent)}>New chat</button>
      </header>
      {error && <p role="alert">{error}</p>}
      {threadId && <Chat key={threadId} client={client} options={{ agent, threadId }} />}
    </main>
  );
}
