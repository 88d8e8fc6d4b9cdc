import { PerdureClient } from "@perdure/client";
import { useEffect, useState } from "react";
import { Chat } from "./Chat";

const client = new PerdureClient({ baseUrl: location.origin });

/** Returns the agent and the thread in the fragment of the URL, so that a reload shows the same conversation. */
const readAddress = () => {
  const fragment = new URLSearchParams(location.hash.slice(1));
  return { agent: fragment.get("agent") ?? "", threadId: fragment.get("thread") ?? "" };
};

/** Returns the fragment of a new thread. */
const newThread = (agent: string) => `#${new URLSearchParams({ agent, thread: crypto.randomUUID() })}`;

const openThread = (agent: string) => location.assign(newThread(agent));

export function App() {
  const [agents, setAgents] = useState<string[]>();
  const [{ agent, threadId }, setAddress] = useState(readAddress);
  const [error, setError] = useState("");

  useEffect(() => {
    const changed = () => setAddress(readAddress());
    addEventListener("hashchange", changed);
    client
      .agents()
      .then((list) => setAgents(list.map(({ name }) => name)))
      .catch((reason) => setError(`The agents cannot be read: ${reason.message}`));
    return () => removeEventListener("hashchange", changed);
  }, []);

  useEffect(() => {
    if (agents?.length && !threadId) location.replace(newThread(agent || agents[0]));
  }, [agents, agent, threadId]);

  const isUnknown = agents !== undefined && !agents.includes(agent);
  return (
    <main>
      <header>
        <select aria-label="Agent" value={isUnknown ? "" : agent} onChange={(event) => openThread(event.target.value)}>
          {isUnknown && <option value="" disabled>Choose an agent</option>}
          {agents?.map((name) => <option key={name}>{name}</option>)}
        </select>
        <button type="button" disabled={!agent || isUnknown} onClick={() => openThread(agent)}>New chat</button>
      </header>
      {error && <p role="alert">{error}</p>}
      {!agents && !error && !threadId && <p role="status">Connecting to Perdure …</p>}
      {agents?.length === 0 && <p role="alert">Perdure has no agents. Create one with "perdure new agent helper", and reload the page.</p>}
      {isUnknown && agents.length > 0 && threadId && <p role="alert">There is no agent "{agent}". The agents are: {agents.join(", ")}.</p>}
      {threadId && !isUnknown && <Chat key={threadId} client={client} options={{ agent, threadId }} />}
    </main>
  );
}
