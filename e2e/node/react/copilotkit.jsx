// A page with CopilotKit's chat on one thread of one agent: ?agent=…&thread=…. It renders calls of calculate,
// asks a person about each interrupt, has a tool that a person answers, and shows the state of the agent.
import { CopilotChat, CopilotKitProvider, useAgent, useHumanInTheLoop, useInterrupt, useRenderTool } from "@copilotkit/react-core/v2";
import { createRoot } from "react-dom/client";
import { z } from "zod";

const query = new URLSearchParams(location.search);
const agentId = query.get("agent");
const threadId = query.get("thread");

function Sum({ parameters, status, result }) {
  return <p className="sum">{`${parameters?.expression} = ${status === "complete" ? result : "…"}`}</p>;
}

function Approval({ interrupt, resolve }) {
  return (
    <p className="interrupt">
      {interrupt?.message}
      <button className="approve" onClick={() => resolve({ approved: true })}>Approve</button>
      <button className="reject" onClick={() => resolve({ approved: false })}>Reject</button>
    </p>
  );
}

function Color({ status, respond, result }) {
  if (status === "complete") return <p className="color">{`chosen: ${result}`}</p>;
  if (status !== "executing") return <p className="color">…</p>;
  return <button className="blue" onClick={() => respond("blue")}>Blue</button>;
}

function Page() {
  const { agent } = useAgent({ agentId });
  useRenderTool({ name: "calculate", parameters: z.object({ expression: z.string() }), render: Sum, agentId }, []);
  useInterrupt({ agentId, render: Approval });
  useHumanInTheLoop({ name: "pick_color", description: "Lets the person pick a color.", parameters: z.object({}), render: Color, agentId });
  return (
    <>
      <p id="state">{JSON.stringify(agent.state)}</p>
      <button id="double" onClick={() => agent.setState({ ...agent.state, seats: 2 * (agent.state.seats ?? 1) })}>Double</button>
      <p id="running">{String(agent.isRunning)}</p>
      <CopilotChat agentId={agentId} threadId={threadId} />
    </>
  );
}

createRoot(document.getElementById("root")).render(
  <CopilotKitProvider runtimeUrl="/api" headers={query.has("key") ? { Authorization: `Bearer ${query.get("key")}` } : {}}>
    <Page />
  </CopilotKitProvider>,
);
